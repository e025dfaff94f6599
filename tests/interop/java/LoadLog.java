import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.storage.internals.log.LogConfig;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;
import org.apache.kafka.storage.internals.log.LogOffsetsListener;
import org.apache.kafka.storage.internals.log.ProducerStateManagerConfig;
import org.apache.kafka.storage.internals.log.UnifiedLog;
import org.apache.kafka.storage.log.metrics.BrokerTopicStats;

/**
 * Opens partition directories with Kafka's own log loader and says what it found.
 *
 *   LoadLog clean|crashed NAME=START...     in a folder that holds the partition directories
 *
 * `clean`: as after a clean shutdown, files are trusted. `crashed`: everything is recovered.
 * A line a partition: NAME START END EPOCH:OFFSET,... TOPIC-ID NUMBER-OF-PRODUCERS
 */
public class LoadLog {
    public static void main(String[] args) throws Exception {
        boolean clean = args[0].equals("clean");
        File folder = new File(args[1]);
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        try (BrokerTopicStats stats = new BrokerTopicStats(false)) {
            for (String arg : Arrays.asList(args).subList(2, args.length)) {
                String name = arg.substring(0, arg.lastIndexOf('='));
                long start = Long.parseLong(arg.substring(arg.lastIndexOf('=') + 1));
                load(new File(folder, name), start, clean, scheduler, stats);
            }
        }
        scheduler.shutdown();
    }

    static void load(File dir, long start, boolean clean, KafkaScheduler scheduler,
                     BrokerTopicStats stats) throws Exception {
        Optional<Uuid> id = topicId(dir);
        UnifiedLog log = UnifiedLog.create(
            dir, new LogConfig(Map.of()), start, start, scheduler, stats, Time.SYSTEM, 900_000,
            new ProducerStateManagerConfig(86_400_000, false), 600_000,
            new LogDirFailureChannel(1), clean, id, new ConcurrentHashMap<>(), false,
            LogOffsetsListener.NO_OP_OFFSETS_LISTENER);
        String epochs = log.leaderEpochCache().epochEntries().stream()
            .map(e -> e.epoch() + ":" + e.startOffset()).collect(Collectors.joining(","));
        System.out.println(dir.getName() + " " + log.logStartOffset() + " " + log.logEndOffset()
            + " " + (epochs.isEmpty() ? "-" : epochs) + " "
            + log.topicId().map(Uuid::toString).orElse("-") + " "
            + log.producerStateManager().activeProducers().size());
        log.close();
    }

    static Optional<Uuid> topicId(File dir) throws Exception {
        File file = new File(dir, "partition.metadata");
        if (!file.exists()) return Optional.empty();
        for (String line : Files.readAllLines(file.toPath(), StandardCharsets.UTF_8))
            if (line.startsWith("topic_id: "))
                return Optional.of(Uuid.fromString(line.substring(10)));
        throw new IllegalStateException(file + " names no topic id");
    }
}
