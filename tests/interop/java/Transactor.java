import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Transactional producers told what to do: Transactor BOOTSTRAP reads one command a line and
 * answers each with a line, `ok …` or `error CLASS text`.
 */
public class Transactor {
    final String bootstrap;
    final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();

    Transactor(String bootstrap) { this.bootstrap = bootstrap; }

    KafkaProducer<String, String> make(String id, String timeout) {
        Map<String, Object> s = new HashMap<>();
        s.put("bootstrap.servers", bootstrap);
        s.put("transactional.id", id);
        s.put("transaction.timeout.ms", Integer.valueOf(timeout));
        s.put("max.block.ms", 25_000);
        s.put("request.timeout.ms", 12_000);
        return new KafkaProducer<>(s, new StringSerializer(), new StringSerializer());
    }

    /** The values of each partition up to its end, `partition:value,value…`. */
    String read(String topic, int partitions, String isolation) {
        Map<String, Object> s = new HashMap<>();
        s.put("bootstrap.servers", bootstrap);
        s.put("isolation.level", isolation);
        s.put("enable.auto.commit", false);
        StringBuilder out = new StringBuilder();
        try (KafkaConsumer<String, String> c =
                 new KafkaConsumer<>(s, new StringDeserializer(), new StringDeserializer())) {
            for (int i = 0; i < partitions; ++i) {
                TopicPartition tp = new TopicPartition(topic, i);
                c.assign(Collections.singleton(tp));
                c.seekToBeginning(Collections.singleton(tp));
                long end = c.endOffsets(Collections.singleton(tp)).get(tp);
                List<String> values = new ArrayList<>();
                long until = System.currentTimeMillis() + 20_000;
                while (c.position(tp) < end && System.currentTimeMillis() < until)
                    for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(200)))
                        values.add(r.value());
                if (c.position(tp) < end) throw new IllegalStateException("stuck at " +
                    c.position(tp) + " before " + end + " of " + tp);
                out.append(i).append(':').append(String.join(",", values)).append(' ');
            }
        }
        return out.toString().trim();
    }

    String committed(String group, String topic, int partition) {
        Map<String, Object> s = new HashMap<>();
        s.put("bootstrap.servers", bootstrap);
        s.put("group.id", group);
        TopicPartition tp = new TopicPartition(topic, partition);
        try (KafkaConsumer<String, String> c =
                 new KafkaConsumer<>(s, new StringDeserializer(), new StringDeserializer())) {
            OffsetAndMetadata found = c.committed(Collections.singleton(tp)).get(tp);
            return found == null ? "none" : Long.toString(found.offset());
        }
    }

    String run(String[] a) throws Exception {
        KafkaProducer<String, String> p = a.length > 1 ? producers.get(a[1]) : null;
        switch (a[0]) {
            case "producer": producers.put(a[1], make(a[2], a[3])); return "";
            case "init": p.initTransactions(); return "";
            case "begin": p.beginTransaction(); return "";
            case "send": {
                Future<RecordMetadata> sent =
                    p.send(new ProducerRecord<>(a[2], Integer.valueOf(a[3]), null, a[4]));
                p.flush();
                return Long.toString(sent.get().offset());
            }
            case "post":
                p.send(new ProducerRecord<>(a[2], Integer.valueOf(a[3]), null, a[4]));
                return "";
            case "offsets":
                p.sendOffsetsToTransaction(
                    Collections.singletonMap(new TopicPartition(a[3], Integer.parseInt(a[4])),
                                             new OffsetAndMetadata(Long.parseLong(a[5]))),
                    new ConsumerGroupMetadata(a[2]));
                return "";
            case "commit": p.commitTransaction(); return "";
            case "abort": p.abortTransaction(); return "";
            case "close": p.close(Duration.ZERO); return "";
            case "read": return read(a[1], Integer.parseInt(a[2]), a[3]);
            case "committed": return committed(a[1], a[2], Integer.parseInt(a[3]));
            default: throw new IllegalArgumentException(a[0]);
        }
    }

    public static void main(String[] args) throws Exception {
        Transactor t = new Transactor(args[0]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ok ready");
        for (String line; (line = in.readLine()) != null;) {
            if (line.equals("halt")) Runtime.getRuntime().halt(0);
            String said;
            try {
                said = "ok " + t.run(line.split(" "));
            } catch (Exception e) {
                Throwable root = e instanceof java.util.concurrent.ExecutionException
                    ? e.getCause() : e;
                said = "error " + root.getClass().getSimpleName() + " " +
                    String.valueOf(root.getMessage()).replace('\n', ' ');
            }
            System.out.println(said);
        }
        Runtime.getRuntime().halt(0);
    }
}
