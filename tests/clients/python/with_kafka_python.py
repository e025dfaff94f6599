"""kafka-python: the newest, and 2.0.2, which probes with the oldest versions of each request."""
import re
import time

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaError, KafkaTimeoutError, for_code
from kafka.structs import OffsetAndMetadata

import steps
from steps import Refused

BOOTSTRAP, _ = steps.arguments()
OLD = kafka.__version__.startswith("2.0")
ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor,
             "sticky": StickyPartitionAssignor}
if not OLD:
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    ASSIGNORS["cooperative-sticky"] = CooperativeStickyAssignor
KINDS = {"topic": ConfigResourceType.TOPIC, "broker": ConfigResourceType.BROKER}


def number(error):
    errno = getattr(error, "errno", None)
    return errno if isinstance(errno, int) and errno > 0 else None


def check(code, message=""):
    if code:
        raise Refused(code, for_code(code).__name__, message or "")


def partition_row(p):
    if OLD:
        return [p["partition"], p["leader"], p["replicas"], p["isr"]]
    return [p["partition_index"], p["leader_id"], p["replica_nodes"], p["isr_nodes"]]


class Listener(kafka.ConsumerRebalanceListener):
    def __init__(self, me, commit):
        self.me, self.commit = me, commit

    def on_partitions_assigned(self, assigned):
        self.me.assigned(p.partition for p in assigned)

    def on_partitions_revoked(self, revoked):
        if OLD:  # In the newest this runs where nothing may wait.
            self.commit()
        self.me.revoked(p.partition for p in revoked)

    def on_partitions_lost(self, lost):
        self.me.revoked(p.partition for p in lost)


class Client(steps.Transactions):
    def __init__(self):
        self.made = None

    @property
    def admin(self):
        if self.made is None:
            self.made = KafkaAdminClient(bootstrap_servers=BOOTSTRAP, request_timeout_ms=10_000)
        return self.made

    def producer(self, codec="none", idempotent=False):
        more = {} if OLD else {"enable_idempotence": idempotent, "delivery_timeout_ms": 15_000}
        return KafkaProducer(bootstrap_servers=BOOTSTRAP, acks="all", linger_ms=20,
                             batch_size=4_000_000,
                             compression_type=None if codec == "none" else codec,
                             max_request_size=20_000_000,
                             request_timeout_ms=10_000, max_block_ms=4000, **more)

    def consumer(self, group=None, **more):
        return KafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=group, fetch_max_wait_ms=100,
                             enable_auto_commit=False, auto_offset_reset="none",
                             check_crcs=True, **more)

    def about(self):
        return {"version": kafka.__version__}

    def send(self, producer, topic, partition, records):
        try:
            # It refuses headers without a value.
            sent = [producer.send(topic, value, key, [(n, d or b"") for n, d in headers],
                                  int(partition), timestamp)
                    for timestamp, key, value, headers in records]
            return [s.get(steps.TIMEOUT_S).offset for s in sent]
        finally:
            producer.close(timeout=5)

    def produce(self, topic, partition, codec, mode, path):
        return {"offsets": self.send(self.producer(codec, mode == "idempotent"), topic, partition,
                                     steps.records(path))}

    def large(self, topic, partition, size):
        self.send(self.producer(), topic, partition, [(0, None, bytes(int(size)), [])])

    def read(self, consumer, count):
        got, look = [], steps.deadline(f"reading {count} records")
        while len(got) < count:
            look()
            for batch in consumer.poll(500).values():
                got += [steps.shown(m.offset, m.timestamp, m.key, m.value, m.headers)
                        for m in batch]
        return got[:count]

    def transactional(self, name):
        producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id=name,
                                 request_timeout_ms=10_000, delivery_timeout_ms=15_000)
        producer.init_transactions()
        return producer

    def write(self, producer, topic, value):
        sent = [producer.send(topic, value.encode(), partition=p) for p in (0, 1)]
        producer.flush(steps.TIMEOUT_S)
        for s in sent:
            s.get(steps.TIMEOUT_S)

    def send_offset(self, producer, group, topic, offset):
        producer.send_offsets_to_transaction(
            {TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)}, group)

    def offset(self, group, topic, partition):
        consumer = self.consumer(group)
        try:
            return consumer.committed(TopicPartition(topic, partition))
        finally:
            consumer.close()

    def consume_isolated(self, topic, partition, isolation, count):
        return self.consume(topic, partition, "earliest", count, isolation_level=isolation)

    def consume(self, topic, partition, start, count, **more):
        consumer, at = self.consumer(**more), TopicPartition(topic, int(partition))
        try:
            consumer.assign([at])
            if start == "earliest":
                consumer.seek_to_beginning(at)
            else:
                consumer.seek(at, int(start))
            return {"records": self.read(consumer, int(count))}
        finally:
            consumer.close()

    def tail(self, topic, partition):
        consumer, at = self.consumer(), TopicPartition(topic, int(partition))
        try:
            consumer.assign([at])
            consumer.seek_to_end(at)
            end = consumer.position(at)
            self.send(self.producer(), topic, partition, [(int(time.time() * 1000), None,
                                                           b"tail", [])])
            return {"end": end, "records": self.read(consumer, 1)}
        finally:
            consumer.close()

    def member(self, topic, group, protocol, *options):
        options, me = steps.pairs(options), steps.Membership()
        more = {"group_instance_id": options["instance"]} if "instance" in options else {}
        consumer = KafkaConsumer(
            bootstrap_servers=BOOTSTRAP, group_id=group, enable_auto_commit=False,
            auto_offset_reset="earliest", heartbeat_interval_ms=1000,
            session_timeout_ms=int(options.get("session", 6000)),
            partition_assignment_strategy=[ASSIGNORS[protocol]], **more)

        def commit():
            offsets = dict(me.unsaved)
            if not offsets:
                return
            try:
                consumer.commit({TopicPartition(topic, p): OffsetAndMetadata(o, "")
                                 for p, o in offsets.items()})
                me.committed(offsets)
            except KafkaError as e:
                me.failed(e)
        consumer.subscribe([topic], listener=Listener(me, commit))
        try:
            while not me.ending:
                try:
                    me.read([(m.partition, m.offset)
                             for batch in consumer.poll(250).values() for m in batch])
                except KafkaError as e:  # The newest tells so of a broker that is away.
                    if not e.retriable:
                        raise
                    me.failed(e)
                    time.sleep(0.2)
                if me.is_time():
                    commit()
            commit()
        finally:
            consumer.close()
        return me.result()

    def times(self, topic, partition, timestamps):
        consumer, at = self.consumer(), TopicPartition(topic, int(partition))
        try:
            found = [consumer.offsets_for_times({at: int(t)})[at] for t in timestamps.split(",")]
        finally:
            consumer.close()
        return {"offsets": [f and f.offset for f in found]}

    def ends(self, topic, partition):
        consumer, at = self.consumer(), TopicPartition(topic, int(partition))
        try:
            return {"earliest": consumer.beginning_offsets([at])[at],
                    "latest": consumer.end_offsets([at])[at]}
        finally:
            consumer.close()

    def create(self, topic, partitions, *config):
        self.create_copies(topic, partitions, 1, *config)

    def create_copies(self, topic, partitions, copies, *config):
        self.admin.create_topics([NewTopic(topic, int(partitions), int(copies),
                                           topic_configs=steps.pairs(config))])

    def list(self):
        return {"topics": sorted(self.admin.list_topics())}

    def describe(self, topic):
        found = self.admin.describe_topics([topic])[0]
        check(found.get("error_code"))
        return {"partitions": [partition_row(p) for p in found["partitions"]]}

    def describe_cluster(self):
        data = self.admin.describe_cluster()
        return {"id": data["cluster_id"], "controller": data["controller_id"],
                "nodes": [[b.get("node_id", b.get("broker_id")), b["host"], b["port"]]
                          for b in data["brokers"]]}

    cluster = describe_cluster

    def configs(self, kind, name):
        if OLD:
            found = {}
            for answer in self.admin.describe_configs([ConfigResource(KINDS[kind], name)]):
                for code, message, _, _, entries in answer.resources:
                    check(code, message)
                    found.update({e[0]: e[1] for e in entries})
            return {"configs": found}
        data = self.admin.describe_configs([ConfigResource(KINDS[kind], name)],
                                           config_filter="all")
        return {"configs": {k: v["value"] for k, v in data[kind][name].items()}}

    def alter(self, topic, *config):
        self.change([ConfigResource(KINDS["topic"], topic, steps.pairs(config))], True)

    def change(self, resources, incremental):
        """This library returns what went wrong and raises nothing."""
        for results in self.admin.alter_configs(resources, incremental=incremental).values():
            for result in results.values():
                if result != "OK":
                    code = re.search(r"\[Error (\d+)\]", result)
                    raise Refused(code and int(code[1]), "returned", result)

    def alter_all(self, topic, *config):
        resource = ConfigResource(KINDS["topic"], topic, steps.pairs(config))
        if OLD:
            for code, message, *_ in self.admin.alter_configs([resource]).resources:
                check(code, message)
        else:
            self.change([resource], False)

    def partitions(self, topic, count):
        self.admin.create_partitions({topic: NewPartitions(int(count))})

    def delete_records(self, topic, partition, offset):
        at = TopicPartition(topic, int(partition))
        return {"low": self.admin.delete_records({at: int(offset)})[at]["low_watermark"]}

    def log_dirs(self):
        return {"partitions": [f"{topic['name']}-{p['partition_index']}"
                               for broker in self.admin.describe_log_dirs()
                               for log_dir in broker["log_dirs"] for topic in log_dir["topics"]
                               for p in topic["partitions"]]}

    def elect_leaders(self, topic, partition):
        self.admin.elect_leaders(0, {topic: [int(partition)]})

    def reassignments(self):
        self.admin.list_partition_reassignments()

    def producers(self, topic, partition):
        at = TopicPartition(topic, int(partition))
        return {"count": len(self.admin.describe_producers([at])[at].active_producers)}

    def features(self):
        self.admin.describe_features()

    def quorum(self):
        self.admin.describe_metadata_quorum()

    def config_resources(self):
        return {"topics": self.admin.list_config_resources(["TOPIC"])["topic"]}

    def describe_topics(self, topic):
        found = self.admin.describe_topic_partitions([topic])["topics"][0]
        check(found.get("error_code"))
        return {"id": str(found["topic_id"]),
                "partitions": [partition_row(p) for p in found["partitions"]]}

    def delete(self, topic):
        self.admin.delete_topics([topic])


steps.run(Client(), number)
