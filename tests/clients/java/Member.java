import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A member of a group until standard input ends; each of its doings is a line of JSON. */
public class Member implements ConsumerRebalanceListener {
    private static final long COMMIT_NS = 500_000_000;
    private static final String ASSIGNORS = "org.apache.kafka.clients.consumer.";

    private final String topic;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final TreeSet<Integer> held = new TreeSet<>();
    private final Map<TopicPartition, OffsetAndMetadata> due = new HashMap<>();
    private long committed = System.nanoTime();
    private int count;
    private volatile boolean ending;

    Member(Client client, String[] a) {
        topic = a[0];
        Map<String, Object> s = client.settings();
        Map<String, String> options = Client.pairs(a, 3);
        s.put("group.id", a[1]);
        s.put("enable.auto.commit", false);
        s.put("auto.offset.reset", "earliest");
        if (options.containsKey("instance")) s.put("group.instance.id", options.get("instance"));
        if (a[2].equals("consumer")) {
            s.put("group.protocol", "consumer");
        } else {
            s.put("session.timeout.ms", Integer.parseInt(options.getOrDefault("session", "6000")));
            s.put("heartbeat.interval.ms", 1000);
            s.put("partition.assignment.strategy", strategy(a[2]));
        }
        consumer = new KafkaConsumer<>(s, new ByteArrayDeserializer(),
                                       new ByteArrayDeserializer());
    }

    static String strategy(String protocol) {
        switch (protocol) {
            case "range": return ASSIGNORS + "RangeAssignor";
            case "roundrobin": return ASSIGNORS + "RoundRobinAssignor";
            case "sticky": return ASSIGNORS + "StickyAssignor";
            case "cooperative-sticky": return ASSIGNORS + "CooperativeStickyAssignor";
            default: throw new IllegalArgumentException("protocol " + protocol);
        }
    }

    static void tell(String event, String values) {
        System.out.println("{\"event\":\"" + event + "\",\"values\":" + values + "}");
        System.out.flush();
    }

    private void changed(Collection<TopicPartition> partitions, boolean more) {
        for (TopicPartition p : partitions)
            if (more) held.add(p.partition());
            else held.remove(p.partition());
        due.keySet().removeIf(p -> !held.contains(p.partition()));
        tell("holds", held.toString());
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        changed(partitions, true);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit();
        changed(partitions, false);
    }

    /** Came with 2.4. */
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        changed(partitions, false);
    }

    private void commit() {
        committed = System.nanoTime();
        if (due.isEmpty()) return;
        try {
            consumer.commitSync(due);
        } catch (KafkaException e) {
            tell("failed", "[" + Client.quoted(e.toString()) + "]");
            return;
        }
        List<String> values = new ArrayList<>();
        due.forEach((p, o) -> values.add("[" + p.partition() + "," + o.offset() + "]"));
        due.clear();
        tell("committed", values.toString());
    }

    private void read() throws Exception {
        List<String> values = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> r : Client.poll(consumer)) {
            values.add("[" + r.partition() + "," + r.offset() + "]");
            due.put(new TopicPartition(topic, r.partition()),
                    new OffsetAndMetadata(r.offset() + 1));
        }
        count += values.size();
        if (!values.isEmpty()) tell("read", values.toString());
    }

    private void awaitEnd() {
        try {
            while (System.in.read() >= 0) continue;
        } catch (IOException closed) {
            tell("failed", "[" + Client.quoted(closed.toString()) + "]");
        }
        ending = true;
    }

    String run() throws Exception {
        Thread watch = new Thread(this::awaitEnd);
        watch.setDaemon(true);
        watch.start();
        consumer.subscribe(Collections.singleton(topic), this);
        try {
            while (!ending) {
                read();
                if (System.nanoTime() - committed > COMMIT_NS) commit();
            }
            commit();
        } finally {
            consumer.close();
        }
        return "{\"read\":" + count + "}";
    }
}
