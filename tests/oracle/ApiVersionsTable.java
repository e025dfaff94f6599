import java.util.Comparator;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiKeys;

/**
 * What a broker of this release says in ApiVersions: a line `KEY NAME MIN MAX` for each API of the
 * listener for clients, by key, without versions that are not stable.
 */
public class ApiVersionsTable {
    public static void main(String[] args) {
        ApiKeys.apisForListener(ApiMessageType.ListenerType.BROKER).stream()
            .sorted(Comparator.comparingInt((ApiKeys key) -> key.id))
            .forEach(key -> key
                .toApiVersionForApiResponse(false, ApiMessageType.ListenerType.BROKER)
                .ifPresent(range -> System.out.println(range.apiKey() + " " + key.name + " "
                    + range.minVersion() + " " + range.maxVersion())));
    }
}
