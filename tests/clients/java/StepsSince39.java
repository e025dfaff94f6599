import java.util.Collections;
import org.apache.kafka.common.TopicPartition;

/** What the admin client learnt up to 3.9. */
public class StepsSince39 {
    public StepsSince39(Client client) {
        client.steps.put("producers", a -> {
            TopicPartition at = new TopicPartition(a[0], Integer.parseInt(a[1]));
            return "{\"count\":" + Client.wait(client.admin().describeProducers(
                Collections.singleton(at)).partitionResult(at)).activeProducers().size() + "}";
        });
    }
}
