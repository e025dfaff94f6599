import java.io.File;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Fills a real Kafka with everything that a copy of it must get right, step by step, so that the
 * caller can restart the broker between steps. The content depends on the seed alone.
 *
 *   Scenario BOOTSTRAP SEED STEP...
 *
 * Steps: topics | records:N | large | compact | transactions | open
 *     | bulk:TOPIC:PARTITIONS:MIB:MIB_PER_SECOND[:FILE] (ends when there is such a file)
 *     | create:TOPIC | delete:TOPIC | batch:TOPIC:N | trim:TOPIC:OFFSET (of one partition)
 * and, for a broker that is being taken over: idempotent:TOPIC:PARTITION:N | refused:TOPIC
 */
public class Scenario {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static final List<TopicPartition> PLAIN = new ArrayList<>();

    static {
        PLAIN.add(new TopicPartition("one", 0));
        for (int p = 0; p < 3; p++) PLAIN.add(new TopicPartition("three", p));
        for (int p = 0; p < 16; p++) PLAIN.add(new TopicPartition("sixteen", p));
        PLAIN.add(new TopicPartition("append-time", 0));
    }

    final String bootstrap;
    final Random random;

    Scenario(String bootstrap, long seed) {
        this.bootstrap = bootstrap;
        this.random = new Random(seed);
    }

    Map<String, Object> client() {
        Map<String, Object> c = new HashMap<>();
        c.put("bootstrap.servers", bootstrap);
        return c;
    }

    KafkaProducer<byte[], byte[]> producer(Object... more) {
        Map<String, Object> c = client();
        c.put(ProducerConfig.LINGER_MS_CONFIG, 5);
        c.put(ProducerConfig.BATCH_SIZE_CONFIG, 8192);
        c.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, 120000);
        c.put(ProducerConfig.MAX_REQUEST_SIZE_CONFIG, 1 << 20);
        for (int i = 0; i < more.length; i += 2) c.put((String) more[i], more[i + 1]);
        return new KafkaProducer<>(c, new ByteArraySerializer(), new ByteArraySerializer());
    }

    void topics() throws Exception {
        List<NewTopic> wanted = new ArrayList<>();
        wanted.add(new NewTopic("one", 1, (short) 1));
        wanted.add(new NewTopic("three", 3, (short) 1));
        wanted.add(new NewTopic("sixteen", 16, (short) 1));
        wanted.add(new NewTopic("append-time", 1, (short) 1)
            .configs(Map.of("message.timestamp.type", "LogAppendTime")));
        wanted.add(new NewTopic("transactions", 3, (short) 1));
        wanted.add(new NewTopic("empty", 1, (short) 1));
        // The cleaner leaves the active segment alone: it must roll by time for gaps to appear.
        wanted.add(new NewTopic("compacted", 1, (short) 1)
            .configs(Map.of("cleanup.policy", "compact", "segment.ms", "500",
                            "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "100")));
        try (Admin admin = Admin.create(client())) {
            admin.createTopics(wanted).all().get();
            Set<String> names = wanted.stream().map(NewTopic::name).collect(Collectors.toSet());
            while (!admin.listTopics().names().get().containsAll(names)) Thread.sleep(100);
        }
    }

    byte[] bytes(int size) {
        byte[] b = new byte[size];
        random.nextBytes(b);
        return b;
    }

    /** Text that compresses, as real payloads do. */
    byte[] text(int size) {
        StringBuilder s = new StringBuilder(size + 16);
        while (s.length() < size) s.append("field-").append(random.nextInt(50)).append(',');
        return s.substring(0, size).getBytes(StandardCharsets.UTF_8);
    }

    byte[] key() {
        switch (random.nextInt(5)) {
            case 0: return null;
            case 1: return new byte[0];
            case 2: return bytes(1 + random.nextInt(40));
            default: return text(1 + random.nextInt(20));
        }
    }

    byte[] value() {
        switch (random.nextInt(8)) {
            case 0: return null;
            case 1: return new byte[0];
            case 2: return bytes(random.nextInt(300));
            default: return text(random.nextInt(1000));
        }
    }

    ProducerRecord<byte[], byte[]> record(TopicPartition to) {
        // Some timestamps lie far back, so that the newest one is not always the last.
        Long timestamp =
            random.nextInt(4) == 0 ? Long.valueOf(random.nextInt(1_000_000_000)) : null;
        ProducerRecord<byte[], byte[]> r =
            new ProducerRecord<>(to.topic(), to.partition(), timestamp, key(), value());
        for (int n = Math.max(0, random.nextInt(6) - 2); n > 0; n--) {
            byte[] v = random.nextInt(3) == 0 ? null : bytes(random.nextInt(20));
            r.headers().add(new RecordHeader("h" + random.nextInt(3), v));
        }
        return r;
    }

    void await(List<Future<RecordMetadata>> sent) throws Exception {
        for (Future<RecordMetadata> f : sent) f.get();
        sent.clear();
    }

    /** Records to every plain partition with each codec, with and without producer ids. */
    void records(int each) throws Exception {
        for (String codec : CODECS) {
            boolean idempotent = random.nextBoolean();
            try (KafkaProducer<byte[], byte[]> p =
                     producer("compression.type", codec, "enable.idempotence", idempotent)) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (TopicPartition to : PLAIN)
                    for (int n = 0; n < each; n++) sent.add(p.send(record(to)));
                await(sent);
            }
        }
    }

    void large() throws Exception {
        for (String codec : CODECS) {
            try (KafkaProducer<byte[], byte[]> p = producer("compression.type", codec)) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (String topic : List.of("one", "append-time"))
                    for (byte[] v : List.of(bytes(900 << 10), text(900 << 10), new byte[0]))
                        sent.add(p.send(new ProducerRecord<>(topic, 0, bytes(8), v)));
                await(sent);
            }
        }
    }

    /** Overwrites keys until a reader from offset 0 sees gaps that no control batch explains. */
    void compact() throws Exception {
        long end = System.currentTimeMillis() + 240_000;
        try (KafkaProducer<byte[], byte[]> p =
                 producer("compression.type", "lz4", "enable.idempotence", true)) {
            for (int round = 0;; round++) {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (int n = 0; n < 400; n++) {
                    byte[] k = ("key-" + random.nextInt(100)).getBytes(StandardCharsets.UTF_8);
                    byte[] v = random.nextInt(10) == 0 ? null : text(random.nextInt(400));
                    sent.add(p.send(new ProducerRecord<>("compacted", 0, k, v)));
                }
                await(sent);
                if (round > 4 && gaps("compacted") > 100) return;
                if (System.currentTimeMillis() > end)
                    throw new IllegalStateException("the cleaner left no gaps");
                Thread.sleep(700);
            }
        }
    }

    long gaps(String topic) {
        Map<String, Object> c = client();
        c.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest");
        TopicPartition tp = new TopicPartition(topic, 0);
        long next = 0, missing = 0;
        try (KafkaConsumer<byte[], byte[]> consumer =
                 new KafkaConsumer<>(c, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(tp));
            consumer.seekToBeginning(List.of(tp));
            long end = consumer.endOffsets(List.of(tp)).get(tp);
            while (consumer.position(tp) < end) {
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofSeconds(1))) {
                    missing += r.offset() - next;
                    next = r.offset() + 1;
                }
            }
        }
        return missing;
    }

    void sendSome(KafkaProducer<byte[], byte[]> p, int each) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int partition = 0; partition < 3; partition++)
            for (int n = 0; n < each; n++)
                sent.add(p.send(record(new TopicPartition("transactions", partition))));
        p.flush();
        await(sent);
    }

    void transactions() throws Exception {
        try (KafkaProducer<byte[], byte[]> p = producer("transactional.id", "steady")) {
            p.initTransactions();
            for (int n = 0; n < 6; n++) {
                p.beginTransaction();
                sendSome(p, 5 + n);
                if (n % 3 == 2) p.abortTransaction();
                else p.commitTransaction();
            }
        }
    }

    /** Leaves a transaction open on partitions 0 and 1, with records of others behind it. */
    void open() throws Exception {
        KafkaProducer<byte[], byte[]> p =
            producer("transactional.id", "left-open", "transaction.timeout.ms", 3_000_000);
        p.initTransactions();
        p.beginTransaction();
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (int partition = 0; partition < 2; partition++)
            for (int n = 0; n < 4; n++)
                sent.add(p.send(record(new TopicPartition("transactions", partition))));
        p.flush();
        await(sent);
        transactions();
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** Makes the topic if need be and writes so much to it, at that speed (0: no limit). */
    void bulk(String topic, int partitions, int mebibytes, int speed, File end) throws Exception {
        try (Admin admin = Admin.create(client())) {
            if (!admin.listTopics().names().get().contains(topic))
                admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
        }
        byte[] value = text(1024);
        try (KafkaProducer<byte[], byte[]> p = producer("batch.size", 65536, "acks", "1",
                "enable.idempotence", false, "retries", 1000)) {
            long start = System.nanoTime();
            for (long n = 0; n < mebibytes * 1024L; n++) {
                if (n % 1024 == 0 && end != null && end.exists()) break;
                p.send(new ProducerRecord<>(topic, (int) (n % partitions), null, value), (m, e) -> {
                    if (e != null) throw new IllegalStateException(e);
                });
                long due = speed == 0 ? 0 : n * 1_000_000_000L / (speed * 1024L);
                long ahead = due - (System.nanoTime() - start);
                if (ahead > 20_000_000) Thread.sleep(ahead / 1_000_000);
            }
        }
    }

    void create(String topic) throws Exception {
        try (Admin admin = Admin.create(client())) {
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            while (!admin.listTopics().names().get().contains(topic)) Thread.sleep(100);
        }
    }

    void delete(String topic) throws Exception {
        try (Admin admin = Admin.create(client())) {
            admin.deleteTopics(List.of(topic)).all().get();
            while (admin.listTopics().names().get().contains(topic)) Thread.sleep(100);
        }
    }

    /** Moves the log start. */
    void trim(String topic, long offset) throws Exception {
        try (Admin admin = Admin.create(client())) {
            admin.deleteRecords(Map.of(new TopicPartition(topic, 0),
                RecordsToDelete.beforeOffset(offset))).all().get();
        }
    }

    /** Writes n records in one batch. */
    void batch(String topic, int n) throws Exception {
        try (KafkaProducer<byte[], byte[]> p =
                 producer("linger.ms", 60000, "batch.size", 1 << 20)) {
            p.partitionsFor(topic);
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < n; i++)
                sent.add(p.send(new ProducerRecord<>(topic, 0, bytes(4), text(50))));
            p.flush();
            await(sent);
        }
    }

    /** Writes n records with the default (idempotent) producer; prints the offsets it was given. */
    void idempotent(String topic, int partition, int n) throws Exception {
        try (KafkaProducer<byte[], byte[]> p =
                 producer("max.in.flight.requests.per.connection", 1)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < n; i++)
                sent.add(p.send(new ProducerRecord<>(topic, partition, key(), value())));
            StringBuilder line = new StringBuilder("offsets");
            for (Future<RecordMetadata> f : sent) line.append(' ').append(f.get().offset());
            System.out.println(line);
        }
    }

    /** Expects that an idempotent producer is refused for good; prints class, message, seconds. */
    void refused(String topic) throws Exception {
        long start = System.nanoTime();
        try (KafkaProducer<byte[], byte[]> p = producer()) {
            RecordMetadata m = p.send(new ProducerRecord<>(topic, 0, key(), text(10))).get();
            System.out.println("accepted " + m.offset());
        } catch (ExecutionException e) {
            System.out.println("refused " + e.getCause().getClass().getSimpleName() + " "
                + (System.nanoTime() - start) / 1_000_000 + "ms " + e.getCause().getMessage());
        }
    }

    void step(String step) throws Exception {
        String[] w = step.split(":");
        switch (w[0]) {
            case "topics": topics(); break;
            case "records": records(Integer.parseInt(w[1])); break;
            case "large": large(); break;
            case "compact": compact(); break;
            case "transactions": transactions(); break;
            case "open": open(); break;
            case "bulk":
                bulk(w[1], Integer.parseInt(w[2]), Integer.parseInt(w[3]), Integer.parseInt(w[4]),
                    w.length > 5 ? new File(w[5]) : null);
                break;
            case "create": create(w[1]); break;
            case "delete": delete(w[1]); break;
            case "trim": trim(w[1], Long.parseLong(w[2])); break;
            case "batch": batch(w[1], Integer.parseInt(w[2])); break;
            case "idempotent":
                idempotent(w[1], Integer.parseInt(w[2]), Integer.parseInt(w[3]));
                break;
            case "refused": refused(w[1]); break;
            default: throw new IllegalArgumentException("no such step: " + step);
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 2; i < args.length; i++) {
            // Each step has its own stream of random numbers: a step does not shift the next one's.
            long seed = Long.parseLong(args[1]) * 1000 + i;
            new Scenario(args[0], seed).step(args[i]);
        }
    }
}
