import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Map;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.config.ConfigResource;

/** AlterConfigs, which replaces all of a resource's settings. */
public class StepsUntil39 {
    public StepsUntil39(Client client) {
        client.steps.put("alter-all", a -> {
            Collection<ConfigEntry> entries = new ArrayList<>();
            for (Map.Entry<String, String> e : Client.pairs(a, 1).entrySet())
                entries.add(new ConfigEntry(e.getKey(), e.getValue()));
            return Client.none(client.admin().alterConfigs(Collections.singletonMap(
                new ConfigResource(ConfigResource.Type.TOPIC, a[0]), new Config(entries))).all());
        });
    }
}
