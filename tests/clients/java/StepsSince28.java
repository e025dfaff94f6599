import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.LogDirDescription;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.quota.ClientQuotaFilterComponent;

/** What the admin client learnt up to 2.8. */
public class StepsSince28 {
    private final Client client;

    public StepsSince28(Client client) {
        this.client = client;
        client.steps.put("alter", this::alter);
        client.steps.put("log-dirs", this::logDirs);
        client.steps.put("list-offsets", this::listOffsets);
        client.steps.put("elect-leaders", this::electLeaders);
        client.steps.put("reassignments", a -> Client.none(
            client.admin().listPartitionReassignments().reassignments()));
        client.steps.put("quotas", this::quotas);
        client.steps.put("features", a -> Client.none(
            client.admin().describeFeatures().featureMetadata()));
    }

    String alter(String[] a) throws Exception {
        Collection<AlterConfigOp> ops = new ArrayList<>();
        for (Map.Entry<String, String> e : Client.pairs(a, 1).entrySet())
            ops.add(new AlterConfigOp(new ConfigEntry(e.getKey(), e.getValue()),
                                      AlterConfigOp.OpType.SET));
        return Client.none(client.admin().incrementalAlterConfigs(Collections.singletonMap(
            new ConfigResource(ConfigResource.Type.TOPIC, a[0]), ops)).all());
    }

    String logDirs(String[] a) throws Exception {
        Collection<String> found = new TreeSet<>();
        for (Map<String, LogDirDescription> dirs : Client.wait(client.admin().describeLogDirs(
                 Collections.singleton(1)).allDescriptions()).values())
            for (LogDirDescription d : dirs.values())
                for (TopicPartition at : d.replicaInfos().keySet()) found.add(at.toString());
        return "{\"partitions\":" + Client.strings(found) + "}";
    }

    String listOffsets(String[] a) throws Exception {
        TopicPartition at = new TopicPartition(a[0], Integer.parseInt(a[1]));
        List<Long> found = new ArrayList<>();
        for (OffsetSpec spec : new OffsetSpec[] {OffsetSpec.earliest(), OffsetSpec.latest()})
            found.add(Client.wait(client.admin().listOffsets(Collections.singletonMap(at, spec))
                                      .partitionResult(at)).offset());
        return Client.offsets(found);
    }

    String electLeaders(String[] a) throws Exception {
        TopicPartition at = new TopicPartition(a[0], Integer.parseInt(a[1]));
        return Client.none(client.admin().electLeaders(ElectionType.PREFERRED,
            Collections.singleton(at)).partitions().thenApply(m -> {
                m.get(at).ifPresent(e -> { throw (RuntimeException) e; });
                return null;
            }));
    }

    /** Sets a quota, reads it back and takes it away. */
    String quotas(String[] a) throws Exception {
        Admin admin = client.admin();
        ClientQuotaEntity entity = new ClientQuotaEntity(
            Collections.singletonMap(ClientQuotaEntity.CLIENT_ID, a[0]));
        ClientQuotaFilter filter = ClientQuotaFilter.containsOnly(Collections.singleton(
            ClientQuotaFilterComponent.ofEntity(ClientQuotaEntity.CLIENT_ID, a[0])));
        String rate = "producer_byte_rate";
        Client.wait(admin.alterClientQuotas(Collections.singleton(new ClientQuotaAlteration(entity,
            Collections.singleton(new ClientQuotaAlteration.Op(rate, 1e9))))).all());
        Thread.sleep(Long.parseLong(a[1]));
        Object found = Client.wait(admin.describeClientQuotas(filter).entities())
            .get(entity).get(rate);
        Client.wait(admin.alterClientQuotas(Collections.singleton(new ClientQuotaAlteration(entity,
            Collections.singleton(new ClientQuotaAlteration.Op(rate, null))))).all());
        Thread.sleep(Long.parseLong(a[1]));
        return "{\"rate\":" + found + ",\"left\":"
            + Client.wait(admin.describeClientQuotas(filter).entities()).size() + "}";
    }
}
