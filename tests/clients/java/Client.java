import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * kafka-clients of any release from 0.11 on; README.md of the folder above tells the steps. What a
 * release has beyond 0.11 stands in the Steps… classes, which are compiled for that release only.
 */
public class Client {
    static final int TIMEOUT_S = 15;

    interface Step {
        /** Returns a JSON object. */
        String run(String[] a) throws Exception;
    }

    static class Refused extends Exception {
        Refused(String why) { super(why); }
    }

    final String bootstrap;
    final Map<String, Step> steps = new HashMap<>();
    private AdminClient admin;

    Client(String bootstrap) {
        this.bootstrap = bootstrap;
        steps.put("about", a -> "{\"version\":" + quoted(version()) + "}");
        steps.put("produce", a -> offsets(send(producer(a[2], a[3].equals("idempotent")),
                                               records(a[0], a[1], a[4]))));
        steps.put("pause", a -> {
            Thread.sleep(Long.parseLong(a[0]));
            return "null";
        });
        steps.put("large", this::large);
        steps.put("consume", a -> consume("read_uncommitted", a[0], a[1], a[2], a[3]));
        steps.put("consume-isolated", a -> consume(a[2], a[0], a[1], "earliest", a[3]));
        steps.put("transact", a -> new Transactions(this).transact(a));
        steps.put("fence", a -> new Transactions(this).fence(a));
        steps.put("committed", a -> new Transactions(this).committed(a));
        steps.put("tail", this::tail);
        steps.put("member", a -> new Member(this, a).run());
        steps.put("times", this::times);
        steps.put("ends", this::ends);
        steps.put("create", a -> create(a[0], a[1], "1", a, 2));
        steps.put("create-copies", a -> create(a[0], a[1], a[2], a, 3));
        steps.put("list", a -> "{\"topics\":" + strings(wait(admin().listTopics().names())) + "}");
        steps.put("describe", this::describe);
        steps.put("cluster", this::cluster);
        steps.put("configs", this::configs);
        steps.put("delete", a -> none(admin().deleteTopics(Collections.singleton(a[0])).all()));
    }

    static String version() throws Exception {
        Properties said = new Properties();
        try (InputStream in = KafkaProducer.class.getResourceAsStream(
                 "/kafka/kafka-version.properties")) {
            said.load(in);
        }
        return said.getProperty("version");
    }

    AdminClient admin() {
        if (admin == null) admin = AdminClient.create(settings());
        return admin;
    }

    Map<String, Object> settings() {
        Map<String, Object> s = new HashMap<>();
        s.put("bootstrap.servers", bootstrap);
        s.put("request.timeout.ms", 12_000);  // 0.11 wants more than its session timeout
        return s;
    }

    KafkaProducer<byte[], byte[]> producer(String codec, boolean idempotent) {
        Map<String, Object> s = settings();
        s.put("acks", "all");
        s.put("compression.type", codec);
        s.put("enable.idempotence", idempotent);
        s.put("linger.ms", 20);
        s.put("batch.size", 4 << 20);
        s.put("max.request.size", 20_000_000);
        s.put("max.block.ms", 4000);
        if (idempotent) s.put("retries", 10);
        return new KafkaProducer<>(s, new ByteArraySerializer(), new ByteArraySerializer());
    }

    KafkaConsumer<byte[], byte[]> consumer() {
        return consumer("read_uncommitted");
    }

    KafkaConsumer<byte[], byte[]> consumer(String isolation) {
        Map<String, Object> s = settings();
        s.put("isolation.level", isolation);
        s.put("enable.auto.commit", false);
        s.put("auto.offset.reset", "none");
        s.put("fetch.max.wait.ms", 100);
        return new KafkaConsumer<>(s, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    static <T> T wait(Future<T> future) throws Exception {
        return future.get(TIMEOUT_S, TimeUnit.SECONDS);
    }

    static String none(Future<?> future) throws Exception {
        wait(future);
        return "null";
    }

    static byte[] unpack(String text) {
        return text.equals("-") ? null : Base64.getDecoder().decode(text);
    }

    static List<ProducerRecord<byte[], byte[]>> records(String topic, String partition,
                                                        String path) throws Exception {
        List<ProducerRecord<byte[], byte[]>> all = new ArrayList<>();
        try (BufferedReader in = new BufferedReader(new FileReader(path))) {
            for (String line; (line = in.readLine()) != null;) {
                String[] f = line.split("\t", -1);
                List<Header> headers = new ArrayList<>();
                if (!f[3].isEmpty())
                    for (String h : f[3].split(",")) {
                        String[] pair = h.split(":", -1);
                        headers.add(new RecordHeader(
                            new String(unpack(pair[0]), StandardCharsets.UTF_8), unpack(pair[1])));
                    }
                all.add(new ProducerRecord<>(topic, Integer.valueOf(partition),
                                             Long.valueOf(f[0]), unpack(f[1]), unpack(f[2]),
                                             headers));
            }
        }
        return all;
    }

    static List<Long> send(KafkaProducer<byte[], byte[]> producer,
                           List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        try {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (ProducerRecord<byte[], byte[]> r : records) sent.add(producer.send(r));
            List<Long> offsets = new ArrayList<>();
            for (Future<RecordMetadata> f : sent) offsets.add(wait(f).offset());
            return offsets;
        } finally {
            producer.close();
        }
    }

    String large(String[] a) throws Exception {
        return offsets(send(producer("none", false), Collections.singletonList(
            new ProducerRecord<>(a[0], Integer.valueOf(a[1]), null,
                                 new byte[Integer.parseInt(a[2])]))));
    }

    /** poll(Duration) came with 2.0 and poll(long) went with 4.0. */
    @SuppressWarnings("unchecked")
    static ConsumerRecords<byte[], byte[]> poll(Object consumer) throws Exception {
        try {
            Class<?> duration = Class.forName("java.time.Duration");
            Object half = duration.getMethod("ofMillis", long.class).invoke(null, 500L);
            try {
                return (ConsumerRecords<byte[], byte[]>) KafkaConsumer.class
                    .getMethod("poll", duration).invoke(consumer, half);
            } catch (NoSuchMethodException older) {
                return (ConsumerRecords<byte[], byte[]>) KafkaConsumer.class
                    .getMethod("poll", long.class).invoke(consumer, 500L);
            }
        } catch (InvocationTargetException e) {
            throw (Exception) e.getCause();
        }
    }

    static List<String> read(KafkaConsumer<byte[], byte[]> consumer, int count) throws Exception {
        List<String> got = new ArrayList<>();
        long end = System.nanoTime() + TIMEOUT_S * 1_000_000_000L;
        while (got.size() < count) {
            if (System.nanoTime() > end)
                throw new Refused("reading " + count + " records took over " + TIMEOUT_S + " s");
            for (ConsumerRecord<byte[], byte[]> r : poll(consumer))
                if (got.size() < count) got.add(shown(r));
        }
        return got;
    }

    String consume(String isolation, String topic, String partition, String from, String count)
        throws Exception {
        TopicPartition at = new TopicPartition(topic, Integer.parseInt(partition));
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(isolation)) {
            consumer.assign(Collections.singleton(at));
            if (from.equals("earliest")) consumer.seekToBeginning(Collections.singleton(at));
            else consumer.seek(at, Long.parseLong(from));
            return "{\"records\":" + read(consumer, Integer.parseInt(count)) + "}";
        }
    }

    String tail(String[] a) throws Exception {
        TopicPartition at = new TopicPartition(a[0], Integer.parseInt(a[1]));
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            consumer.assign(Collections.singleton(at));
            consumer.seekToEnd(Collections.singleton(at));
            long end = consumer.position(at);
            send(producer("none", false), Collections.singletonList(new ProducerRecord<>(
                a[0], at.partition(), null, "tail".getBytes(StandardCharsets.UTF_8))));
            return "{\"end\":" + end + ",\"records\":" + read(consumer, 1) + "}";
        }
    }

    String times(String[] a) throws Exception {
        TopicPartition at = new TopicPartition(a[0], Integer.parseInt(a[1]));
        List<Long> found = new ArrayList<>();
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            for (String t : a[2].split(",")) {
                OffsetAndTimestamp o = consumer.offsetsForTimes(
                    Collections.singletonMap(at, Long.valueOf(t))).get(at);
                found.add(o == null ? null : (Long) o.offset());
            }
        }
        return offsets(found);
    }

    String ends(String[] a) throws Exception {
        TopicPartition at = new TopicPartition(a[0], Integer.parseInt(a[1]));
        try (KafkaConsumer<byte[], byte[]> consumer = consumer()) {
            return "{\"earliest\":" + consumer.beginningOffsets(Collections.singleton(at)).get(at)
                + ",\"latest\":" + consumer.endOffsets(Collections.singleton(at)).get(at) + "}";
        }
    }

    static Map<String, String> pairs(String[] a, int from) {
        Map<String, String> m = new HashMap<>();
        for (int i = from; i < a.length; i++) {
            String[] pair = a[i].split("=", 2);
            m.put(pair[0], pair[1]);
        }
        return m;
    }

    String create(String topic, String partitions, String copies, String[] a, int from)
        throws Exception {
        NewTopic t = new NewTopic(topic, Integer.parseInt(partitions), Short.parseShort(copies));
        return none(admin().createTopics(Collections.singleton(t.configs(pairs(a, from)))).all());
    }

    /** topicNameValues() took the place of values(), which went with 4.0. */
    @SuppressWarnings("unchecked")
    String describe(String[] a) throws Exception {
        Object answer = admin().describeTopics(Collections.singleton(a[0]));
        Map<String, KafkaFuture<TopicDescription>> all;
        try {
            all = (Map<String, KafkaFuture<TopicDescription>>)
                answer.getClass().getMethod("topicNameValues").invoke(answer);
        } catch (NoSuchMethodException older) {
            all = (Map<String, KafkaFuture<TopicDescription>>)
                answer.getClass().getMethod("values").invoke(answer);
        }
        List<String> partitions = new ArrayList<>();
        for (TopicPartitionInfo p : wait(all.get(a[0])).partitions())
            partitions.add("[" + p.partition() + "," + p.leader().id() + "," + ids(p.replicas())
                           + "," + ids(p.isr()) + "]");
        return "{\"partitions\":" + partitions + "}";
    }

    static List<Integer> ids(List<Node> nodes) {
        List<Integer> all = new ArrayList<>();
        for (Node n : nodes) all.add(n.id());
        return all;
    }

    String cluster(String[] a) throws Exception {
        DescribeClusterResult c = admin().describeCluster();
        List<String> nodes = new ArrayList<>();
        for (Node n : wait(c.nodes()))
            nodes.add("[" + n.id() + "," + quoted(n.host()) + "," + n.port() + "]");
        return "{\"id\":" + quoted(wait(c.clusterId())) + ",\"controller\":"
            + wait(c.controller()).id() + ",\"nodes\":" + nodes + "}";
    }

    String configs(String[] a) throws Exception {
        ConfigResource resource = new ConfigResource(
            ConfigResource.Type.valueOf(a[0].toUpperCase(Locale.ROOT)), a[1]);
        List<String> entries = new ArrayList<>();
        for (ConfigEntry e : wait(admin().describeConfigs(Collections.singleton(resource)).all())
                 .get(resource).entries())
            entries.add(quoted(e.name()) + ":" + quoted(e.value()));
        return "{\"configs\":{" + String.join(",", entries) + "}}";
    }

    static String quoted(String s) {
        if (s == null) return "null";
        StringBuilder out = new StringBuilder("\"");
        for (char c : s.toCharArray())
            if (c == '"' || c == '\\') out.append('\\').append(c);
            else if (c < ' ' || c > '~') out.append(String.format("\\u%04x", (int) c));
            else out.append(c);
        return out.append('"').toString();
    }

    static String strings(Collection<String> all) {
        List<String> quoted = new ArrayList<>();
        for (String s : all) quoted.add(quoted(s));
        return quoted.toString();
    }

    static String offsets(List<Long> offsets) {
        return "{\"offsets\":" + offsets + "}";
    }

    static String packed(byte[] data) {
        return data == null ? "null" : '"' + Base64.getEncoder().encodeToString(data) + '"';
    }

    static String shown(ConsumerRecord<byte[], byte[]> r) {
        List<String> headers = new ArrayList<>();
        for (Header h : r.headers())
            headers.add("[" + quoted(h.key()) + "," + packed(h.value()) + "]");
        return "[" + r.offset() + "," + r.timestamp() + "," + packed(r.key()) + ","
            + packed(r.value()) + "," + headers + "]";
    }

    String run(String text) {
        String[] words = text.split(":");
        String head = "{\"step\":" + quoted(text) + ",";
        try {
            Step step = steps.get(words[0]);
            if (step == null) throw new Refused("unknown step");
            return head + "\"ok\":" + step.run(Arrays.copyOfRange(words, 1, words.length)) + "}";
        } catch (Throwable e) {
            while (e instanceof ExecutionException && e.getCause() != null) e = e.getCause();
            Errors error = Errors.forException(e);
            return head + "\"error\":" + (error.code() > 0 ? "" + error.code() : "null")
                + ",\"name\":" + quoted(e.getClass().getSimpleName())
                + ",\"message\":" + quoted(e.getMessage()) + "}";
        }
    }

    public static void main(String[] args) throws Exception {
        Client client = new Client(args[0]);
        for (String more : new String[] {"StepsUntil39", "StepsSince11", "StepsSince28",
                                         "StepsSince39", "StepsSince40"})
            try {
                Class.forName(more).getDeclaredConstructor(Client.class).newInstance(client);
            } catch (ClassNotFoundException older) {
                continue;
            }
        for (String text : Arrays.copyOfRange(args, 1, args.length)) {
            System.out.println(client.run(text));
            System.out.flush();
        }
        System.exit(0);
    }
}
