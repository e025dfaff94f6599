import java.util.Collections;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.common.TopicPartition;

/** What the admin client learnt up to 1.1. */
public class StepsSince11 {
    private final Client client;

    public StepsSince11(Client client) {
        this.client = client;
        client.steps.put("partitions", a -> Client.none(client.admin().createPartitions(
            Collections.singletonMap(a[0], NewPartitions.increaseTo(Integer.parseInt(a[1]))))
            .all()));
        client.steps.put("delete-records", this::deleteRecords);
    }

    String deleteRecords(String[] a) throws Exception {
        TopicPartition at = new TopicPartition(a[0], Integer.parseInt(a[1]));
        return "{\"low\":" + Client.wait(client.admin().deleteRecords(Collections.singletonMap(
            at, RecordsToDelete.beforeOffset(Long.parseLong(a[2])))).lowWatermarks().get(at))
            .lowWatermark() + "}";
    }
}
