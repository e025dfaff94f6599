"""The client libraries: how each is built and started, and what its library can do."""
import base64

from clients import builds
from clients.plan import CODECS, DESCRIBE_TOPIC_PARTITIONS, FIND_COORDINATOR, pack

BASE = {"about", "produce", "large", "consume", "tail", "times", "ends", "pause",
        "sees-out-of-range"}
TOPICS = {"create", "create-copies", "list", "describe", "cluster", "configs", "delete"}
ALL = BASE | TOPICS | {"partitions"}
ISOLATED = {"transact", "fence", "consume-isolated"}
TRANSACTIONS = ISOLATED | {"committed"}  # With offsets of a group.


class Client:
    """Which steps a client can do follows from its library, never from the broker."""

    def __init__(self, name, language, package, version, command, *, can=ALL, codecs=CODECS,
                 reads=CODECS, idempotent=True, judge="librdkafka", unknown_topic=(),
                 out_of_range=(), describe_topics_needs=(), groups_only=False,
                 tells_offsets=True, fields_kept=4, null_header=None, empty_is_null=False,
                 settle_ms=0, lz4_waits_for=None, configs_refused=False, fenced=(), notes=""):
        self.name, self.language, self.package = name, language, package
        self.version, self.make_command = version, command
        self.can, self.codecs, self.reads, self.idempotent = can, codecs, reads, idempotent
        self.judge, self.unknown_topic, self.out_of_range = judge, unknown_topic, out_of_range
        self.describe_topics_needs = describe_topics_needs
        self.groups_only, self.tells_offsets = groups_only, tells_offsets
        self.fields_kept, self.null_header = fields_kept, null_header
        self.empty_is_null, self.settle_ms = empty_is_null, settle_ms
        # librdkafka takes a broker without groups for one that knows no lz4, and sends without.
        self.lz4_waits_for = lz4_waits_for
        self.configs_refused, self.fenced, self.notes = configs_refused, fenced, notes
        self.topic, self.port = "c-" + name, 0

    def as_written(self, records):
        """What a library makes of the records that it is given."""
        return [[t, k, v, [[n, self.null_header if d is None else d] for n, d in h]]
                for t, k, v, h in records]

    def as_read(self, records):
        """The same of records of others, without their offsets."""
        if not self.empty_is_null:
            return records
        return [[t, k or None, v or None, [[n, d or None] for n, d in h]]
                for t, k, v, h in records]

    def command(self):
        return builds.once(self.name, self.make_command)


class Kcat(Client):
    """A command line has no place for nulls, control characters and a time of each record."""

    def as_written(self, records):
        def is_text(packed):
            return packed is not None and not set(base64.b64decode(packed)) & set(b"\0\t\n")
        return [[t, k, v, [["h", pack(b"x")]]] for t, k, v, h in records
                if is_text(k) and is_text(v) and not [d for _, d in h if d is not None]]

    def as_read(self, records):
        return [[t, k, v, []] for t, k, v, _ in records]


JAVA_28 = {"alter", "log-dirs", "list-offsets", "elect-leaders", "reassignments", "quotas",
           "features", "delete-records"}


def java(version, can, **more):
    return Client(f"java-{version}", "Java", "kafka-clients", version,
                  lambda: builds.java(version), can=can | TRANSACTIONS,
                  out_of_range=("OffsetOutOfRangeException",),
                  unknown_topic=("TimeoutException",), **more)


def confluent(name, version, command, can, **more):
    return Client(name, "Python", "confluent-kafka", version, command, can=can | TRANSACTIONS,
                  judge="java", fenced=("_FENCED",),
                  unknown_topic=("_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"),
                  lz4_waits_for=FIND_COORDINATOR,
                  out_of_range=("_AUTO_OFFSET_RESET",), **more)


def clients():
    new_confluent = ALL | {"alter", "alter-all", "delete-records", "list-offsets",
                           "describe-cluster", "describe-topics", "elect-leaders"}
    return [
        java("4.4.0", ALL | JAVA_28 | {"producers", "quorum", "config-resources",
                                       "list-all-offsets"}),
        java("3.9.1", ALL | JAVA_28 | {"producers", "alter-all"}),
        java("2.8.2", ALL | JAVA_28 | {"alter-all"}),
        java("2.1.1", ALL | {"alter-all", "delete-records"}),
        java("0.11.0.3", (ALL - {"partitions", "configs"}) | {"alter-all"}, codecs=CODECS[:4],
             reads=CODECS[:4], configs_refused=True,
             notes="its DescribeConfigs v0 is refused, as by Kafka 4.4.0"),
        confluent("librdkafka-debian", "1.7.0 on librdkafka 2.0.2",
                  lambda: builds.debian_python("with_confluent.py"), ALL | {"alter-all"}),
        confluent("librdkafka-2.6.0", "2.6.0 on librdkafka 2.6.0",
                  lambda: builds.python("with_confluent.py", "confluent-2.6.0.txt"), new_confluent),
        confluent("librdkafka-newest", "2.16.1 on librdkafka 2.16.0",
                  lambda: builds.python("with_confluent.py", "confluent-newest.txt"),
                  new_confluent),
        Kcat("kcat", "C", "kcat", "1.7.1 on librdkafka 2.0.2",
             lambda: builds.debian_program("kcat", "with_kcat.py"), judge="java",
             can=BASE | ISOLATED | {"list", "describe", "cluster"}, tells_offsets=False,
             fields_kept=3, lz4_waits_for=FIND_COORDINATOR, unknown_topic=("kcat",),
             notes="no offsets in transactions"),
        Client("rdkafka", "Rust", "rdkafka", "0.33.2 on librdkafka 2.0.2", builds.rust_program,
               judge="java", can=ALL | TRANSACTIONS | {"alter-all"},
               lz4_waits_for=FIND_COORDINATOR, fenced=("Fenced",),
               unknown_topic=("UnknownTopic", "UnknownPartition"),
               out_of_range=("AutoOffsetReset",)),
        Client("kafka-python", "Python", "kafka-python", "3.0.12",
               lambda: builds.python("with_kafka_python.py", "kafka-python-newest.txt"),
               can=ALL | TRANSACTIONS | {
                   "alter", "alter-all", "delete-records", "log-dirs", "elect-leaders",
                   "reassignments", "producers", "features", "quorum", "config-resources",
                   "describe-topics", "describe-cluster"},
               describe_topics_needs=(DESCRIBE_TOPIC_PARTITIONS,),
               unknown_topic=("KafkaTimeoutError",), null_header=""),
        Client("kafka-python-2.0.2", "Python", "kafka-python", "2.0.2",
               lambda: builds.python("with_kafka_python.py", "kafka-python-2.0.2.txt"),
               can=ALL | {"alter-all"}, idempotent=False, unknown_topic=("KafkaTimeoutError",),
               null_header=""),
        Client("aiokafka", "Python", "aiokafka", "0.14.0",
               lambda: builds.python("with_aiokafka.py", "aiokafka.txt"),
               can=ALL | TRANSACTIONS | {"alter-all", "delete-records"},
               fenced=("ProducerFenced",)),
        Client("franz-go", "Go", "franz-go", "1.22.3", lambda: builds.go_program("franz"),
               settle_ms=250,
               can=ALL | TRANSACTIONS | {
                   "alter", "alter-all", "delete-records", "log-dirs", "elect-leaders",
                   "reassignments", "quotas", "producers", "features", "config-resources",
                   "list-all-offsets"}),
        Client("sarama", "Go", "sarama", "1.61.1", lambda: builds.go_program("sarama"),
               can=ALL | TRANSACTIONS | {
                   "alter", "alter-all", "delete-records", "log-dirs", "elect-leaders",
                   "reassignments", "quotas", "list-offsets"}),
        Client("kafka-go", "Go", "segmentio/kafka-go", "0.4.51",
               lambda: builds.go_program("kafkago"), idempotent=False, empty_is_null=True,
               settle_ms=250,
               can=ALL | {"alter", "alter-all", "elect-leaders", "reassignments",
                          "list-offsets"}),
        Client("kafkajs", "JavaScript", "kafkajs", "2.2.4",
               lambda: builds.node("with_kafkajs.js"), groups_only=True, null_header="",
               can=(ALL | TRANSACTIONS | {"alter-all", "delete-records", "reassignments"})
                   - {"sees-out-of-range"},
               notes="consumes in groups only; snappy, lz4, zstd by snappyjs, lz4js, zstd-wasm; "
                     "moves to the end by itself when out of range"),
    ]
