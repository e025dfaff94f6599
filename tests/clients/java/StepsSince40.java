import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** What the admin client learnt up to 4.x. */
public class StepsSince40 {
    private final Client client;

    public StepsSince40(Client client) {
        this.client = client;
        client.steps.put("quorum", a -> Client.none(
            client.admin().describeMetadataQuorum().quorumInfo()));
        client.steps.put("config-resources", this::configResources);
        client.steps.put("list-all-offsets", this::listAllOffsets);
    }

    String configResources(String[] a) throws Exception {
        Collection<String> names = new ArrayList<>();
        for (ConfigResource r : Client.wait(client.admin().listConfigResources(
                 Collections.singleton(ConfigResource.Type.TOPIC),
                 new org.apache.kafka.clients.admin.ListConfigResourcesOptions()).all()))
            names.add(r.name());
        return "{\"topics\":" + Client.strings(names) + "}";
    }

    String listAllOffsets(String[] a) throws Exception {
        TopicPartition at = new TopicPartition(a[0], Integer.parseInt(a[1]));
        List<Long> found = new ArrayList<>();
        for (OffsetSpec spec : new OffsetSpec[] {
                 OffsetSpec.earliest(), OffsetSpec.latest(), OffsetSpec.maxTimestamp(),
                 OffsetSpec.earliestLocal()})
            found.add(Client.wait(client.admin().listOffsets(Collections.singletonMap(at, spec))
                                      .partitionResult(at)).offset());
        return Client.offsets(found);
    }
}
