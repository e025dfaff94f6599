import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Transactional producers, and the offsets that they commit for a group. */
public class Transactions {
    private static final List<String> VALUES = Arrays.asList("commit 0", "abort 1", "commit 2");

    private final Client client;

    Transactions(Client client) {
        this.client = client;
    }

    private KafkaProducer<byte[], byte[]> producer(String id) {
        Map<String, Object> s = client.settings();
        s.put("transactional.id", id);
        s.put("max.block.ms", Client.TIMEOUT_S * 1000);
        KafkaProducer<byte[], byte[]> made =
            new KafkaProducer<>(s, new ByteArraySerializer(), new ByteArraySerializer());
        made.initTransactions();
        return made;
    }

    /** One record in each of the two partitions, which are there when it returns. */
    private static void write(KafkaProducer<byte[], byte[]> producer, String topic, String value)
        throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int p = 0; p < 2; p++)
            sent.add(producer.send(new ProducerRecord<>(
                topic, p, null, value.getBytes(StandardCharsets.UTF_8))));
        producer.flush();
        for (Future<RecordMetadata> f : sent) Client.wait(f);
    }

    private static Object call(Object of, String method, Class<?>[] types, Object... args)
        throws Exception {
        try {
            return of.getClass().getMethod(method, types).invoke(of, args);
        } catch (InvocationTargetException e) {
            throw (Exception) e.getCause();
        }
    }

    /** The group's metadata took the place of its name with 2.5. */
    private static void send(KafkaProducer<byte[], byte[]> producer, String group,
                             TopicPartition at, long offset) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets =
            Collections.singletonMap(at, new OffsetAndMetadata(offset));
        Class<?> type = String.class;
        Object of = group;
        try {
            type = Class.forName("org.apache.kafka.clients.consumer.ConsumerGroupMetadata");
            of = type.getConstructor(String.class).newInstance(group);
        } catch (ClassNotFoundException older) {
            type = String.class;
        }
        call(producer, "sendOffsetsToTransaction", new Class<?>[] {Map.class, type}, offsets, of);
    }

    /** committed(Set) came with 2.4; committed(TopicPartition) went with 4.0. */
    private Long committed(String group, TopicPartition at) throws Exception {
        Map<String, Object> s = client.settings();
        s.put("group.id", group);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                 s, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            Object found;
            try {
                found = ((Map<?, ?>) call(consumer, "committed",
                                          new Class<?>[] {java.util.Set.class},
                                          Collections.singleton(at))).get(at);
            } catch (NoSuchMethodException older) {
                found = call(consumer, "committed", new Class<?>[] {TopicPartition.class}, at);
            }
            return found == null ? null : (Long) ((OffsetAndMetadata) found).offset();
        }
    }

    String committed(String[] a) throws Exception {
        return "{\"offset\":"
            + committed(a[0], new TopicPartition(a[1], Integer.parseInt(a[2]))) + "}";
    }

    String transact(String[] a) throws Exception {
        List<Long> committed = new ArrayList<>();
        try (KafkaProducer<byte[], byte[]> producer = producer(a[1])) {
            for (String value : VALUES) {
                producer.beginTransaction();
                write(producer, a[0], value);
                if (a.length > 2) {
                    TopicPartition at = new TopicPartition(a[3], 0);
                    committed.add(committed(a[2], at));
                    send(producer, a[2], at, VALUES.indexOf(value) + 1);
                }
                if (value.startsWith("commit")) producer.commitTransaction();
                else producer.abortTransaction();
            }
        }
        return "{\"committed\":" + committed + "}";
    }

    String fence(String[] a) throws Exception {
        KafkaProducer<byte[], byte[]> first = producer(a[1]);
        try {
            first.beginTransaction();
            write(first, a[0], "lost");
            try (KafkaProducer<byte[], byte[]> second = producer(a[1])) {
                second.beginTransaction();
                write(second, a[0], "kept");
                second.commitTransaction();
            }
            first.commitTransaction();
        } finally {
            first.close();
        }
        return "null";
    }
}
