import java.io.IOException;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.Stores;

/**
 * Kafka Streams counts the values of a topic into another, over a topic between them and with a
 * changelog, at least once or as `guarantee=…` says. It tells its tasks as a member tells its
 * partitions.
 *
 *     WordCounter BOOTSTRAP member:INPUT:APPLICATION:PROTOCOL:output=TOPIC:state=FOLDER
 */
public class WordCounter {
    public static void main(String[] args) throws Exception {
        String[] a = args[1].split(":");
        Map<String, String> options = new HashMap<>();
        for (int i = 4; i < a.length; i++) options.put(a[i].split("=")[0], a[i].split("=")[1]);
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("application.id", a[2]);
        p.put("group.protocol", a[3]);
        p.put("default.key.serde", Serdes.String().getClass());
        p.put("default.value.serde", Serdes.String().getClass());
        p.put("commit.interval.ms", 500);
        p.put("replication.factor", 1);
        p.put("state.dir", options.get("state"));
        if (options.containsKey("guarantee"))
            p.put("processing.guarantee", options.get("guarantee"));
        p.put("session.timeout.ms", 6000);
        p.put("heartbeat.interval.ms", 1000);
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(a[1]).groupBy((key, value) -> value)
            .count(Materialized.as(Stores.inMemoryKeyValueStore("counts")))
            .toStream().mapValues(String::valueOf).to(options.get("output"));
        KafkaStreams streams = new KafkaStreams(builder.build(), p);
        streams.setUncaughtExceptionHandler(e -> {
            tell("failed", "\"" + e.getClass().getSimpleName() + "\"");
            return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
        Thread watch = new Thread(() -> watch(streams));
        watch.setDaemon(true);
        watch.start();
        while (System.in.read() >= 0) continue;
        boolean closed = streams.close(Duration.ofSeconds(20));
        System.out.println("{\"step\":\"member\",\"" + (closed ? "ok" : "error") + "\":null}");
        System.exit(0);
    }

    static void tell(String event, String values) {
        System.out.println("{\"event\":\"" + event + "\",\"values\":[" + values + "]}");
        System.out.flush();
    }

    static void watch(KafkaStreams streams) {
        String told = "";
        try {
            while (true) {
                TreeSet<String> tasks = new TreeSet<>();
                if (streams.state() == KafkaStreams.State.RUNNING)
                    for (ThreadMetadata thread : streams.metadataForLocalThreads())
                        for (TaskMetadata task : thread.activeTasks())
                            tasks.add("\"" + task.taskId() + "\"");
                String all = String.join(",", tasks);
                if (!all.equals(told)) tell("holds", all);
                told = all;
                Thread.sleep(100);
            }
        } catch (InterruptedException end) {
            return;
        }
    }
}
