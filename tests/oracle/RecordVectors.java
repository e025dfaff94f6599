import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Scanner;
import java.util.function.BiPredicate;
import java.util.zip.CRC32C;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.BufferSupplier;
import org.apache.kafka.common.utils.internals.ByteBufferOutputStream;
import org.apache.kafka.common.utils.internals.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.LogValidator.MetricsRecorder;
import org.apache.kafka.storage.internals.log.RecordValidationException;

/**
 * Record batches as Kafka's own classes make and read them, one fact a line.
 *
 *   RecordVectors vectors   prints batches of every kind, what they hold, and what a leader makes
 *                           of produced ones
 *   RecordVectors read      reads lines `bytes HEX`, prints what they hold in the same words
 *
 * Lines: `set NAME`, then `bytes HEX`, then for each batch in the bytes `batch ...` and for each of
 * its records `record OFFSET TIMESTAMP KEY VALUE [HEADERKEY HEADERVALUE]...`. Byte strings are
 * written as x and hexadecimal digits, null as -.
 * `produce NAME COMPACTED APPENDTIME CODEC BEFORE AFTER NOW`, then `bytes HEX`, then either
 * `refused ERRORCODE` or `accepted HEX`: the batch as a leader of epoch 5 appends it at offset 100.
 */
public class RecordVectors {
    static final String[] CODECS = {"none", "gzip", "snappy", "lz4", "zstd"};
    static final Header[] NO_HEADERS = {};

    public static void main(String[] args) throws Exception {
        if (args.length == 1 && args[0].equals("vectors")) {
            everyFormat();
            headerFields();
            control();
            filtered();
            mixed();
            produced();
        } else if (args.length == 1 && args[0].equals("read")) {
            Scanner in = new Scanner(System.in, StandardCharsets.US_ASCII);
            while (in.hasNextLine()) {
                String[] words = in.nextLine().split(" ");
                if (words[0].equals("set")) System.out.println("set " + words[1]);
                if (words[0].equals("bytes")) print(unhex(words[1]));
            }
        } else {
            System.err.println("usage: RecordVectors vectors|read");
            System.exit(2);
        }
    }

    static byte[] ascii(String s) {
        return s.getBytes(StandardCharsets.UTF_8);
    }

    static String hex(ByteBuffer b) {
        StringBuilder s = new StringBuilder();
        for (int i = b.position(); i < b.limit(); i++) s.append(String.format("%02x", b.get(i)));
        return s.toString();
    }

    static ByteBuffer unhex(String s) {
        byte[] b = new byte[s.length() / 2];
        for (int i = 0; i < b.length; i++) {
            b[i] = (byte) Integer.parseInt(s.substring(2 * i, 2 * i + 2), 16);
        }
        return ByteBuffer.wrap(b);
    }

    static String word(ByteBuffer b) {
        return b == null ? "-" : "x" + hex(b);
    }

    static String word(byte[] b) {
        return b == null ? "-" : word(ByteBuffer.wrap(b));
    }

    static int bit(boolean b) {
        return b ? 1 : 0;
    }

    static void print(String name, ByteBuffer bytes) {
        System.out.println("set " + name);
        print(bytes);
    }

    static void print(ByteBuffer bytes) {
        System.out.println("bytes " + hex(bytes));
        for (MutableRecordBatch b : MemoryRecords.readableRecords(bytes.duplicate()).batches()) {
            b.ensureValid();
            Integer count = b.countOrNull();
            StringBuilder s = new StringBuilder("batch");
            s.append(" base ").append(b.baseOffset()).append(" last ").append(b.lastOffset());
            s.append(" size ").append(b.sizeInBytes()).append(" magic ").append(b.magic());
            s.append(" codec ").append(b.compressionType().name);
            s.append(" append_time ");
            s.append(bit(b.timestampType() == TimestampType.LOG_APPEND_TIME));
            s.append(" transactional ").append(bit(b.isTransactional()));
            s.append(" control ").append(bit(b.isControlBatch()));
            s.append(" horizon ").append(bit(b.deleteHorizonMs().isPresent()));
            s.append(" epoch ").append(b.partitionLeaderEpoch());
            s.append(" max_timestamp ").append(b.maxTimestamp());
            s.append(" producer ").append(b.producerId()).append(' ').append(b.producerEpoch());
            s.append(' ').append(b.baseSequence()).append(' ').append(b.lastSequence());
            s.append(" count ").append(count == null ? "-" : count.toString());
            s.append(" crc ").append(b.magic() == 2 ? b.checksum() : -1);
            System.out.println(s);
            for (Record r : b) print(b, r);
        }
    }

    static void print(RecordBatch b, Record r) {
        StringBuilder s = new StringBuilder("record ");
        s.append(r.offset()).append(' ').append(r.timestamp());
        s.append(' ').append(word(r.key())).append(' ').append(word(r.value()));
        for (Header h : r.headers()) {
            s.append(' ').append(word(ascii(h.key()))).append(' ').append(word(h.value()));
        }
        System.out.println(s);
        if (!b.isControlBatch()) return;
        ControlRecordType type = ControlRecordType.parse(r.key());
        boolean end = type == ControlRecordType.ABORT || type == ControlRecordType.COMMIT;
        System.out.println("control " + ControlRecordType.parseTypeId(r.key()) + " "
            + (end ? "" + EndTransactionMarker.deserialize(r).coordinatorEpoch() : "-"));
    }

    static Compression codec(String name) {
        return Compression.of(name).build();
    }

    /** A builder with room for everything. */
    static MemoryRecordsBuilder builder(byte magic, String codec, TimestampType type, long base,
                                        long appendTime, long producer, short epoch, int sequence,
                                        boolean transactional, int leaderEpoch) {
        return new MemoryRecordsBuilder(new ByteBufferOutputStream(1 << 20), magic, codec(codec),
            type, base, appendTime, producer, epoch, sequence, transactional, false, leaderEpoch,
            1 << 20);
    }

    static MemoryRecordsBuilder simple(byte magic, String codec, TimestampType type, long base) {
        return builder(magic, codec, type, base, 1_700_000_000_123L, -1, (short) -1, -1, false,
            magic < 2 ? -1 : 3);
    }

    static ByteBuffer built(MemoryRecordsBuilder b) {
        return b.build().buffer().duplicate();
    }

    static List<SimpleRecord> few() {
        long t = 1_600_000_000_000L;
        return List.of(
            new SimpleRecord(t, ascii("key"), ascii("value")),
            new SimpleRecord(t + 5, null, ascii("no key")),
            new SimpleRecord(t - 90_000, ascii("tombstone"), null),
            new SimpleRecord(t + 2, new byte[0], new byte[0]),
            new SimpleRecord(t + 1, (byte[]) null, (byte[]) null));
    }

    static ByteBuffer few(MemoryRecordsBuilder b) {
        return built(append(b, few()));
    }

    static List<SimpleRecord> large() {
        List<SimpleRecord> records = new ArrayList<>();
        Random random = new Random(7);
        for (int i = 0; i < 12; i++) {
            byte[] value = new byte[20_000];
            // Text that compresses, between bytes that do not, across every codec's block size.
            for (int j = 0; j < value.length; j++) value[j] = (byte) ('a' + (i + j / 9) % 26);
            byte[] noise = new byte[200];
            random.nextBytes(noise);
            System.arraycopy(noise, 0, value, 500 * i, noise.length);
            records.add(new SimpleRecord(1_600_000_000_000L + i, ascii("k" + i), value));
        }
        return records;
    }

    static void everyFormat() {
        for (byte magic = 0; magic <= 2; magic++) {
            for (String codec : CODECS) {
                if (magic < 2 && codec.equals("zstd")) continue;
                for (TimestampType type : TimestampType.values()) {
                    if (type == TimestampType.NO_TIMESTAMP_TYPE) continue;
                    if (magic == 0 && type == TimestampType.LOG_APPEND_TIME) continue;
                    String name = "magic" + magic + "-" + codec + "-" + type.name;
                    MemoryRecordsBuilder b = simple(magic, codec, type, 1000);
                    for (SimpleRecord r : few()) {
                        // One time for all, so that it can be told from the batch alone.
                        long t = type == TimestampType.LOG_APPEND_TIME ? 1_500L : r.timestamp();
                        b.append(new SimpleRecord(t, r.key(), r.value()));
                    }
                    print(name, built(b));
                }
                MemoryRecordsBuilder one = simple(magic, codec, TimestampType.CREATE_TIME, 0);
                one.append(new SimpleRecord(1L, ascii("only"), ascii("one")));
                print("magic" + magic + "-" + codec + "-one", built(one));
                if (magic < 2 && codec.equals("none")) continue;
                MemoryRecordsBuilder b = simple(magic, codec, TimestampType.CREATE_TIME, 77);
                for (SimpleRecord r : large()) b.append(r);
                print("magic" + magic + "-" + codec + "-large", built(b));
            }
        }
    }

    static void headerFields() {
        for (String codec : CODECS) {
            MemoryRecordsBuilder b = simple((byte) 2, codec, TimestampType.CREATE_TIME, 0);
            b.append(1L, ascii("k"), ascii("v"), new Header[] {
                new RecordHeader("", (byte[]) null), new RecordHeader("empty", new byte[0]),
                new RecordHeader("\u00fcml\u00e4ut \u20ac", ascii("x")),
                new RecordHeader("twice", ascii("1")), new RecordHeader("twice", ascii("2"))});
            Header[] many = new Header[200];
            for (int i = 0; i < many.length; i++) {
                many[i] = new RecordHeader("h" + i, ascii("" + i));
            }
            b.append(2L, (byte[]) null, (byte[]) null, many);
            b.append(3L, ascii("k"), null, NO_HEADERS);
            print("headers-" + codec, built(b));
        }
        int[] sizes = {0, 1, 55, 63, 64, 120, 127, 128, 8191, 8192};
        MemoryRecordsBuilder lengths = simple((byte) 2, "none", TimestampType.CREATE_TIME, 0);
        for (int n : sizes) lengths.append(n, new byte[n / 100], new byte[n]);
        print("lengths", built(lengths));

        MemoryRecordsBuilder times = simple((byte) 2, "none", TimestampType.CREATE_TIME, 0);
        for (long t : new long[] {0, Long.MAX_VALUE, -1, 1, 1L << 31, -1, (1L << 62) + 1, 63, 64}) {
            times.append(t, ascii("t"), null, NO_HEADERS);
        }
        print("timestamps", built(times));
        MemoryRecordsBuilder none = simple((byte) 2, "none", TimestampType.CREATE_TIME, 0);
        none.append(-1L, null, ascii("no timestamp"), NO_HEADERS);
        print("no-timestamp", built(none));

        MemoryRecordsBuilder gaps = simple((byte) 2, "none", TimestampType.CREATE_TIME, 1L << 40);
        for (long o : new long[] {0, 3, 63, 64, 65, 8192, 1 << 30, Integer.MAX_VALUE}) {
            gaps.appendWithOffset((1L << 40) + o, 5L, ascii("gap"), null, NO_HEADERS);
        }
        print("offset-gaps", built(gaps));
        print("largest-numbers", built(append(builder((byte) 2, "none", TimestampType.CREATE_TIME,
            Long.MAX_VALUE - 5, -1, Long.MAX_VALUE, Short.MAX_VALUE, Integer.MAX_VALUE, true,
            Integer.MAX_VALUE), few().subList(0, 3))));
        print("idempotent", built(append(builder((byte) 2, "lz4", TimestampType.CREATE_TIME, 9, -1,
            4711, (short) 3, 12, false, 0), few())));
        print("transactional", built(append(builder((byte) 2, "none", TimestampType.CREATE_TIME, 9,
            -1, 0, (short) 0, 0, true, 0), few())));
        print("no-leader-epoch", few(builder((byte) 2, "none", TimestampType.CREATE_TIME, 0, -1, -1,
            (short) -1, -1, false, -1)));
    }

    static MemoryRecordsBuilder append(MemoryRecordsBuilder b, List<SimpleRecord> records) {
        for (SimpleRecord r : records) b.append(r);
        return b;
    }

    static MemoryRecordsBuilder controlBuilder() {
        return new MemoryRecordsBuilder(new ByteBufferOutputStream(4096), (byte) 2, codec("none"),
            TimestampType.CREATE_TIME, 50, -1, -1, (short) -1, -1, false, true, 4, 4096);
    }

    static void control() {
        for (ControlRecordType type : List.of(ControlRecordType.ABORT, ControlRecordType.COMMIT)) {
            print("marker-" + type, MemoryRecords.withEndTransactionMarker(0L, 1_600_000_000_000L,
                -1, 4711L, (short) 3, new EndTransactionMarker(type, 17)).buffer());
        }
        print("marker-extremes", MemoryRecords.withEndTransactionMarker(1L << 50, 0L,
            Integer.MAX_VALUE, Long.MAX_VALUE, Short.MAX_VALUE,
            new EndTransactionMarker(ControlRecordType.ABORT, Integer.MAX_VALUE)).buffer());
        print("leader-change", MemoryRecords.withLeaderChangeMessage(8, 1_600_000_000_000L, 2,
            ByteBuffer.allocate(256), new LeaderChangeMessage().setLeaderId(1)).buffer());
        for (short type : new short[] {3, 4, 5, 6, 7, 99, -3}) {
            ByteBuffer key = ByteBuffer.allocate(4).putShort((short) 0).putShort((short) 2).flip();
            MemoryRecordsBuilder b = controlBuilder();
            b.appendControlRecordWithOffset(50,
                new SimpleRecord(6L, key, ByteBuffer.wrap(new byte[3])));
            // The builder refuses types that it does not know, so the key is changed afterwards: it
            // follows the header and five one-byte fields, and the type follows its version.
            ByteBuffer bytes = copy(built(b)).putShort(61 + 5 + 2, type);
            print("control-type-" + type, summed(bytes));
        }
    }

    static ByteBuffer copy(ByteBuffer b) {
        return ByteBuffer.allocate(b.remaining()).put(b.duplicate()).flip();
    }

    /** Makes the checksum of one batch right again. */
    static ByteBuffer summed(ByteBuffer b) {
        CRC32C crc = new CRC32C();
        crc.update(b.array(), 21, b.limit() - 21);
        return b.putInt(17, (int) crc.getValue());
    }

    static ByteBuffer filter(ByteBuffer in, long deleteRetention,
                             BiPredicate<RecordBatch, Record> keep) {
        MemoryRecords.RecordFilter filter = new MemoryRecords.RecordFilter(5_000, deleteRetention) {
            @Override protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                return new BatchRetentionResult(batch.magic() < 2
                    ? BatchRetention.DELETE_EMPTY : BatchRetention.RETAIN_EMPTY,
                    batch.isControlBatch());
            }
            @Override protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                return keep.test(batch, record);
            }
        };
        ByteBuffer out = ByteBuffer.allocate(1 << 20);
        return MemoryRecords.readableRecords(in).filterTo(filter, out, BufferSupplier.create(),
            1 << 20).outputBuffer().duplicate().flip();
    }

    /** What Kafka's log cleaner leaves. */
    static void filtered() {
        for (String codec : CODECS) {
            ByteBuffer in = few(simple((byte) 2, codec, TimestampType.CREATE_TIME, 20));
            print("cleaned-" + codec, filter(in.duplicate(), 0, (b, r) -> r.offset() % 2 == 1));
            print("cleaned-tail-" + codec, filter(in.duplicate(), 0, (b, r) -> r.offset() < 22));
            // The cleaners of old releases kept the old formats; today's writes magic 2.
            for (byte magic = 0; magic < 2 && !codec.equals("zstd"); magic++) {
                MemoryRecordsBuilder gaps = simple(magic, codec, TimestampType.CREATE_TIME, 20);
                for (long o : new long[] {23, 24, 31}) gaps.appendWithOffset(o, few().get(0));
                print("cleaned-magic" + magic + "-" + codec, built(gaps));
            }
        }
        for (String codec : CODECS) {
            ByteBuffer in = built(append(builder((byte) 2, codec, TimestampType.CREATE_TIME, 30, -1,
                4711, (short) 3, 12, true, 5), few()));
            print("emptied-" + codec, filter(in.duplicate(), 0, (b, r) -> false));
            ByteBuffer plain = few(simple((byte) 2, codec, TimestampType.CREATE_TIME, 30));
            print("horizon-" + codec, filter(plain, 60_000, (b, r) -> r.offset() != 31));
        }
        ByteBuffer marker = MemoryRecords.withEndTransactionMarker(3, 1_000L, 6, 4711L, (short) 3,
            new EndTransactionMarker(ControlRecordType.COMMIT, 1)).buffer();
        print("horizon-marker", filter(marker, 60_000, (b, r) -> true));
    }

    static void mixed() {
        ByteBuffer all = ByteBuffer.allocate(1 << 20);
        long base = 0;
        for (byte magic = 0; magic <= 2; magic++) {
            for (String codec : List.of("none", "lz4", "none", "gzip")) {
                all.put(few(simple(magic, codec, TimestampType.CREATE_TIME, base)));
                base += 7;
            }
        }
        print("mixed", all.flip());
    }

    static final class Rules {
        boolean compacted = false;
        boolean appendTime = false;
        String codec = "producer";
        long before = Long.MAX_VALUE;
        long after = 3_600_000;
        long now = 1_600_000_100_000L;
    }

    static Time clock(long now) {
        return (Time) Proxy.newProxyInstance(RecordVectors.class.getClassLoader(),
            new Class<?>[] {Time.class}, (proxy, method, args) -> {
                if (method.getName().equals("milliseconds")) return now;
                if (method.getName().equals("nanoseconds")) return 0L;
                throw new IllegalStateException(method.getName());
            });
    }

    static void produce(String name, Rules rules, ByteBuffer bytes) {
        System.out.println("produce " + name + " " + bit(rules.compacted) + " "
            + bit(rules.appendTime) + " " + rules.codec + " " + rules.before + " " + rules.after
            + " " + rules.now);
        System.out.println("bytes " + hex(bytes));
        MetricsRecorder metrics = (MetricsRecorder) Proxy.newProxyInstance(
            RecordVectors.class.getClassLoader(), new Class<?>[] {MetricsRecorder.class},
            (proxy, method, args) -> null);
        MemoryRecords records = MemoryRecords.readableRecords(copy(bytes));
        CompressionType source = records.batches().iterator().next().compressionType();
        Compression target = rules.codec.equals("producer")
            ? Compression.of(source).build() : codec(rules.codec);
        LogValidator validator = new LogValidator(records, new TopicPartition("t", 0),
            clock(rules.now), source, target, rules.compacted, (byte) 2,
            rules.appendTime ? TimestampType.LOG_APPEND_TIME : TimestampType.CREATE_TIME,
            rules.before, rules.after, 5, AppendOrigin.CLIENT);
        try {
            MemoryRecords result = validator.validateMessagesAndAssignOffsets(
                PrimitiveRef.ofLong(100), metrics, BufferSupplier.create()).validatedRecords();
            System.out.println("accepted " + hex(result.buffer()));
        } catch (RecordValidationException e) {
            System.out.println("refused " + Errors.forException(e.invalidException()).code());
        } catch (ApiException e) {
            System.out.println("refused " + Errors.forException(e).code());
        }
    }

    static MemoryRecordsBuilder fromProducer(String codec, long producer, int sequence) {
        return builder((byte) 2, codec, TimestampType.CREATE_TIME, 0, -1, producer,
            (short) (producer < 0 ? -1 : 0), sequence, false, -1);
    }

    static void produced() {
        List<SimpleRecord> keyed = List.of(few().get(0), few().get(2), few().get(3));
        for (String codec : CODECS) {
            Rules rules = new Rules();
            produce("plain-" + codec, rules, few(fromProducer(codec, -1, -1)));
            produce("idempotent-" + codec, rules, few(fromProducer(codec, 4711, 0)));
            rules.compacted = true;
            produce("keyed-" + codec, rules, built(append(fromProducer(codec, -1, -1), keyed)));
            produce("keyless-" + codec, rules, few(fromProducer(codec, -1, -1)));
            rules = new Rules();
            rules.appendTime = true;
            produce("append-time-" + codec, rules, few(fromProducer(codec, -1, -1)));
            for (String other : CODECS) {
                if (other.equals(codec)) continue;
                rules = new Rules();
                rules.codec = other;
                produce("recompress-" + codec + "-" + other, rules,
                    few(fromProducer(codec, 4711, 3)));
                rules.appendTime = true;
                produce("recompress-append-time-" + codec + "-" + other, rules,
                    few(fromProducer(codec, 4711, 3)));
            }
        }
        produceTimestamps();
        produceHeaders();
    }

    static void produceTimestamps() {
        Rules rules = new Rules();
        for (long t : new long[] {rules.now + rules.after, rules.now + rules.after + 1, -1, 0}) {
            produce("future-" + t, rules, built(append(fromProducer("none", -1, -1),
                List.of(few().get(0), new SimpleRecord(t, ascii("k"), ascii("v"))))));
        }
        rules.before = 1_000;
        for (long t : new long[] {rules.now - 1_000, rules.now - 1_001, -1}) {
            produce("past-" + t, rules, built(append(fromProducer("none", -1, -1),
                List.of(new SimpleRecord(t, ascii("k"), ascii("v"))))));
        }
        rules.after = Long.MAX_VALUE;
        rules.compacted = true;
        produce("past-and-keyless", rules, built(append(fromProducer("none", -1, -1),
            List.of(new SimpleRecord(0L, null, ascii("v"))))));
        List<SimpleRecord> past = List.of(new SimpleRecord(0L, ascii("k"), ascii("v")));
        List<SimpleRecord> keyless = List.of(new SimpleRecord(rules.now, null, ascii("v")));
        produce("past-then-keyless", rules,
            built(append(append(fromProducer("none", -1, -1), past), keyless)));
        produce("keyless-then-past", rules,
            built(append(append(fromProducer("none", -1, -1), keyless), past)));
        // A producer that claims LogAppendTime for itself.
        for (String codec : CODECS) {
            for (boolean appendTime : new boolean[] {false, true}) {
                rules = new Rules();
                rules.appendTime = appendTime;
                MemoryRecordsBuilder b = builder((byte) 2, codec, TimestampType.LOG_APPEND_TIME, 0,
                    1_600_000_000_500L, -1, (short) -1, -1, false, -1);
                produce("claims-append-time-" + codec + "-" + appendTime, rules, few(b));
            }
        }
    }

    /** Header fields bent by hand, the checksum made good again. */
    static ByteBuffer bent(int at, int value) {
        ByteBuffer b = copy(few(fromProducer("none", 4711, 0)));
        if (at == 21) b.putShort(at, (short) value); else b.putInt(at, value);
        return summed(b);
    }

    static void produceHeaders() {
        Rules rules = new Rules();
        produce("count-low", rules, bent(57, 4));
        produce("count-high", rules, bent(57, 6));
        produce("count-zero", rules, bent(57, 0));
        produce("count-negative", rules, bent(57, -1));
        produce("last-delta-high", rules, bent(23, 5));
        produce("last-delta-low", rules, bent(23, 3));
        produce("last-delta-negative", rules, bent(23, -1));
        produce("control-bit", rules, bent(21, 0x20));
        produce("transaction-bit", rules, bent(21, 0x10));
        produce("no-sequence", rules, bent(53, -1));
        produce("largest-sequence", rules, bent(53, Integer.MAX_VALUE));
    }
}
