"""Produce and InitProducerId: what a leader takes, what it refuses and how it says so."""
import time

from lib.differential.broker import CLOSED
from lib.differential.codec import ZERO_ID
from lib.differential.compare import Case
from lib.differential.records import batch, record

HOUR_MS = 3_600_000
ONE = (1000, None, b"value")
INT_MAX = (1 << 31) - 1


def now_ms():
    return int(time.time() * 1000)


def request(entries, acks=-1, transactional_id=None, **more):
    """`entries`: (topic name or id, partition, records), in the order of the request."""
    topics = []
    for topic, partition, data in entries:
        key = "topicId" if len(topic) == 32 else "name"
        if not topics or topics[-1][key] != topic:
            topics.append({key: topic, "partitionData": []})
        topics[-1]["partitionData"].append({"index": partition, "records": data})
    return {"acks": acks, "timeoutMs": 10000, "transactionalId": transactional_id,
            "topicData": topics, **more}


def produce(b, topic, data, version=9, partition=0, acks=-1, **more):
    return b.call("Produce", version, request([(topic, partition, data)], acks, **more))


def log_of(b, topic, partition=0):
    """Notes what the partition holds in the end."""
    b.call("Fetch", 11, {"maxWaitMs": 0, "minBytes": 0, "maxBytes": 10 << 20, "topics": [
        {"topic": topic, "partitions": [{"partition": partition, "fetchOffset": 0,
                                         "partitionMaxBytes": 10 << 20}]}]})


def bad(name, data, allowed=(), version=9, **configs):
    """One batch for a new topic, and a look at the log afterwards."""
    topic = "p-" + name.replace(" ", "-")

    def body(b):
        b.topic(topic, **configs)
        produce(b, topic, data() if callable(data) else data, version)
        log_of(b, topic)
    return Case(f"batch: {name}", body, allowed)


UNOPENED = "compressed records are opened only where the topic's settings need it " \
           "(docs/decisions.md)"
REBUILT = "records with wrong offsets are numbered anew; Kafka stores them as they are"

BATCHES = [
    bad("good", batch()),
    bad("checksum", batch(crc=5)),
    bad("no records field", b""),
    bad("a size of 3", batch(length=3)),
    bad("a negative size", batch(length=-1)),
    bad("a size below the header", batch(length=20)),
    bad("cut", batch()[:-3]),
    bad("cut in the header", batch()[:30]),
    bad("ten bytes", batch()[:10]),
    bad("three bytes behind", batch() + b"xyz"),
    bad("twenty zeros behind", batch() + bytes(20)),
    bad("two batches", batch() + batch()),
    bad("magic 0", batch(magic=0)),
    bad("magic 1", batch(magic=1)),
    bad("magic 3", batch(magic=3)),
    bad("a base offset", batch(base_offset=5)),
    bad("a negative base offset", batch(base_offset=-5)),
    bad("a count too high", batch(count=2)),
    bad("no count", batch(count=0, last_offset_delta=0)),
    bad("a negative last offset", batch(last_offset_delta=-1)),
    bad("control", batch(attributes=0x20)),
    bad("a producer without sequence", batch(producer_id=7, producer_epoch=0)),
    bad("a producer without epoch", batch(producer_id=7, base_sequence=0)),
    bad("codec 5", batch(attributes=5)),
    bad("codec 7", batch(attributes=7)),
    bad("a free attribute", batch(attributes=0x100)),
    bad("a delete horizon", batch(attributes=0x40)),
    bad("too few records", batch(ONE, ONE, count=3, last_offset_delta=2)),
    bad("too many records", batch(ONE, ONE, ONE, count=2, last_offset_delta=1)),
    bad("bytes behind the records", batch(tail=b"abc")),
    bad("a record that is none", batch(b"\x05\x01\x01", base_timestamp=1000)),
    bad("a header without key", batch(record(0, headers=[(None, b"x")]), base_timestamp=1000,
                                      max_timestamp=1000)),
    bad("record attributes", batch(record(0, attributes=1), base_timestamp=1000,
                                   max_timestamp=1000)),
    bad("record offsets with a gap", batch(record(0), record(5), base_timestamp=1000,
                                           max_timestamp=1000),
        [("records[0].records", REBUILT)]),
    bad("wrong largest timestamp", batch((1000, None, b"a"), (2000, None, b"b"),
                                         max_timestamp=5)),
    bad("no timestamp", batch((-1, None, b"a"))),
    bad("LogAppendTime", batch(attributes=8)),
    bad("LogAppendTime without timestamp", batch((-1, None, b"a"), attributes=8)),
    bad("the future", lambda: batch((now_ms() + 2 * HOUR_MS, None, b"a"), ONE,
                                    (now_ms() + 3 * HOUR_MS, b"key", b""))),
    bad("too large", batch((1000, None, bytes(1_100_000)))),
    bad("gzip", batch(ONE, ONE, codec=1)),
    bad("gzip of garbage", batch(codec=1, payload=b"garbage"), [
        ("partitionResponses[0].errorCode", UNOPENED), ("baseOffset", UNOPENED),
        ("highWatermark", UNOPENED), ("lastStableOffset", UNOPENED), ("records", UNOPENED)]),
    bad("zstd in version 3", batch(attributes=4), version=3),
    bad("snappy of garbage with keys", batch(attributes=2), cleanup_policy="compact"),
    bad("garbage in version 5", batch(count=9), version=5),
    bad("garbage in version 8", batch(count=9), version=8),
    bad("above the limit of the topic", batch((1000, None, bytes(1000))), max_message_bytes=1000),
    bad("at the limit of the topic", batch((1000, None, bytes(920))), max_message_bytes=1000),
    bad("no key on a compacted topic", batch(ONE, ONE, (1000, b"k", b"v"), ONE, ONE),
        cleanup_policy="compact"),
    bad("no key in gzip", batch(ONE, (1000, b"k", b"v"), codec=1), cleanup_policy="compact"),
    bad("a tombstone", batch((1000, b"k", None)), cleanup_policy="compact"),
    bad("append time", batch((1000, None, b"a"), (2000, None, b"b")),
        message_timestamp_type="LogAppendTime"),
    bad("append time sent", batch(attributes=8), message_timestamp_type="LogAppendTime"),
    bad("append time over gzip", batch(ONE, ONE, codec=1), message_timestamp_type="LogAppendTime"),
    bad("the past", lambda: batch((now_ms() - 2 * HOUR_MS, None, b"a")),
        message_timestamp_before_max_ms=HOUR_MS),
    bad("the past in gzip", lambda: batch((now_ms(), None, b"a"),
                                          (now_ms() - 2 * HOUR_MS, None, b"b"), codec=1),
        message_timestamp_before_max_ms=HOUR_MS),
    bad("the future in gzip", lambda: batch((now_ms() + 2 * HOUR_MS, None, b"a"), ONE, codec=1)),
    bad("the future of a topic without bounds",
        batch((4_102_444_800_000, None, b"a")),  # The year 2100.
        message_timestamp_after_max_ms=(1 << 63) - 1),
    bad("compression of the topic", batch((1000, b"k", b"a"), (2000, None, b"b")),
        compression_type="gzip"),
    bad("compression taken away", batch((1000, b"k", b"a"), (2000, None, b"b"), codec=1),
        compression_type="uncompressed"),
    bad("compression as it was", batch((1000, b"k", b"a"), codec=1), compression_type="gzip"),
    bad("compression and append time", batch(ONE, ONE), compression_type="gzip",
        message_timestamp_type="LogAppendTime"),
]


def versions(b):
    topic_id = b.topic("p-versions")
    for version in range(3, 14):
        produce(b, topic_id if version >= 13 else "p-versions", batch(), version)
    log_of(b, "p-versions")


def places(b):
    topic_id = b.topic("p-places", 2)
    for name, partition in (("p-nowhere", 0), ("p-places", 2), ("p-places", -1), ("", 0),
                            ("in/valid", 0)):
        produce(b, name, batch(), partition=partition)
    for one, partition in ((topic_id, 1), (topic_id, 7), ("12" * 16, 0), (ZERO_ID, 0)):
        produce(b, one, batch(), 13, partition)
    for entries in ([], [("p-places", 0, batch()), ("p-nowhere", 0, batch()),
                         ("p-places", 1, batch(crc=1))],
                    [("p-places", 0, batch()), ("p-places", 0, batch(ONE, ONE)),
                     ("p-places", 1, batch(crc=3)), ("p-nowhere", 0, batch()),
                     ("p-places", 1, batch())],
                    [("p-places", 0, batch()), ("p-places", 1, batch(magic=7))],
                    [("p-places", 0, batch()), ("p-places", 1, batch(length=3))]):
        b.call("Produce", 9, request(entries))
    b.call("Produce", 9, {"acks": -1, "timeoutMs": 1, "topicData": [
        {"name": "p-places", "partitionData": []}]})
    b.call("Produce", 9, request([("p-places", 0, batch())]) | {"timeoutMs": -1})
    log_of(b, "p-places")
    log_of(b, "p-places", 1)


def acks(b):
    b.topic("p-acks")
    for n in (1, -1, 2, -2, 32767, -32768):
        produce(b, "p-acks", batch(), acks=n)
    produce(b, "p-nowhere", batch(), acks=2)
    produce(b, "p-acks", b"", acks=2)
    produce(b, "p-acks", batch(crc=1), acks=2)
    # Without acknowledgement there is no answer: the next one is that of the next request.
    b.send("Produce", 9, request([("p-acks", 0, batch())], acks=0))
    produce(b, "p-acks", batch())
    for entries in ([("p-nowhere", 0, batch())], [("p-acks", 0, batch(crc=1))],
                    [("p-acks", 0, batch()), ("p-acks", 5, batch())]):
        sent = b.send("Produce", 9, request(entries, acks=0))
        b.note("a failure without acknowledgement", b.receive("Produce", 9, sent) == CLOSED)
    log_of(b, "p-acks")


def transactional(b):
    b.topic("p-transactional")
    produce(b, "p-transactional", batch(attributes=0x10, producer_id=5, producer_epoch=0,
                                        base_sequence=0))
    produce(b, "p-transactional", batch(attributes=0x10))
    produce(b, "p-transactional", batch(), transactional_id="not in use")
    log_of(b, "p-transactional")


def segments(b):
    b.topic("p-segments", segment_bytes=1 << 20, max_message_bytes=4 << 20)
    produce(b, "p-segments", batch((1000, None, bytes(1 << 20))))
    produce(b, "p-segments", batch((1000, None, bytes(900_000))))


class Producer:
    def __init__(self, b, topic, producer_id=9000):
        self.b, self.topic, self.producer_id = b, topic, producer_id

    def __call__(self, sequence, n=1, epoch=0, time=1000, **fields):
        records = [(time + i, None, b"v%d" % i) for i in range(n)]
        fields.setdefault("producer_id", self.producer_id)
        produce(self.b, self.topic, batch(*records, producer_epoch=epoch, base_sequence=sequence,
                                          **fields))


def sequences(b):
    b.topic("p-sequences")
    p = Producer(b, "p-sequences")
    p(5)  # A producer that is not known may begin anywhere.
    p(5)
    p(5, time=7777)  # The sequence is what counts.
    p(6, 2)
    for sequence, n in ((9, 1), (5, 1), (6, 1), (7, 1), (6, 3)):
        p(sequence, n)
    for i in range(6):
        p(8 + i, time=2000 + i)
    for sequence, n in ((5, 1), (6, 2), (8, 1), (9, 1), (10, 1), (13, 1)):
        p(sequence, n)
    p(-5)
    log_of(b, "p-sequences")


def epochs(b):
    b.topic("p-epochs")
    p = Producer(b, "p-epochs")
    for sequence, epoch in ((0, 0), (3, 2), (0, 2), (1, 0), (0, 0), (1, 2), (0, 2), (0, 1), (2, 3),
                            (0, 3), (0, -1)):
        p(sequence, epoch=epoch)
    other = Producer(b, "p-epochs", 9001)
    for sequence, epoch in ((0, -1), (0, -1), (9, -1), (9, 0), (1, -1)):
        other(sequence, epoch=epoch)
    Producer(b, "p-epochs", -2)(0)
    log_of(b, "p-epochs")


def wrapping(b):
    b.topic("p-wrapping")
    p = Producer(b, "p-wrapping")
    p(INT_MAX - 1, 3)
    p(1)
    p(INT_MAX - 1, 3)
    q = Producer(b, "p-wrapping", 9001)
    q(INT_MAX)
    q(0)
    q(INT_MAX)
    log_of(b, "p-wrapping")


def duplicates_under_append_time(b):
    b.topic("p-repeated-append-time", message_timestamp_type="LogAppendTime")
    p = Producer(b, "p-repeated-append-time")
    p(0)
    p(0)


def duplicates_after_checks(b):
    """A repeated batch must be good, too."""
    b.topic("p-checked")
    p = Producer(b, "p-checked")
    p(0)
    p(0, crc=1)
    p(0, count=2)
    p(1, attributes=0x20)
    p(1)


def producer_ids(b):
    def ask(version, **fields):
        body = {"transactionalId": None, "transactionTimeoutMs": 1000} | fields
        deadline = time.monotonic() + 20
        answer = b.ask("InitProducerId", version, body)
        while answer["errorCode"] == 14 and time.monotonic() < deadline:
            time.sleep(0.05)  # Kafka fetches its first block of ids.
            answer = b.ask("InitProducerId", version, body)
        if answer["producerId"] >= 0:
            answer["producerId"] = "fresh" if answer["producerId"] not in seen else "seen"
            seen.add(answer["producerId"])
        b.note(f"InitProducerId v{version}", answer)
    seen = set()
    for version in range(0, 6):
        ask(version)
        ask(version, transactionalId="")
        ask(version, transactionTimeoutMs=-1)
    for version in range(3, 6):
        for producer_id, epoch in ((5, -1), (-1, 5), (5, 5), (-2, -2)):
            ask(version, producerId=producer_id, producerEpoch=epoch)


CASES = BATCHES + [
    Case("produce: every version", versions),
    Case("produce: topics and partitions", places),
    Case("produce: acknowledgements", acks),
    Case("produce: transactional batches without a transaction", transactional),
    Case("produce: a batch larger than a segment", segments),
    Case("idempotence: sequences, the last five batches", sequences),
    Case("idempotence: epochs", epochs),
    Case("idempotence: sequences wrap", wrapping),
    Case("idempotence: duplicates under LogAppendTime", duplicates_under_append_time),
    Case("idempotence: duplicates are checked", duplicates_after_checks),
    Case("producer ids", producer_ids),
]
