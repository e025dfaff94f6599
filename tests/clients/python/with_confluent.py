"""confluent-kafka, which is librdkafka: Debian's release of 2022 as well as the newest."""
import time

import confluent_kafka
from confluent_kafka import (Consumer, KafkaError, KafkaException, Producer, TopicPartition,
                             TIMESTAMP_NOT_AVAILABLE)
from confluent_kafka import admin

import steps
from steps import Refused

BOOTSTRAP, _ = steps.arguments()
BEGINNING, END = confluent_kafka.OFFSET_BEGINNING, confluent_kafka.OFFSET_END
KINDS = {"topic": admin.ConfigResource.Type.TOPIC, "broker": admin.ConfigResource.Type.BROKER}


def number(error):
    if isinstance(error, KafkaException):
        error = error.args[0]
    return error.code() if isinstance(error, KafkaError) and error.code() > 0 else None


def refused(error):
    return Refused(error.code() if error.code() > 0 else None, error.name(), error.str())


def done(futures):
    return {k: f.result(steps.TIMEOUT_S) for k, f in futures.items()}


class Client(steps.Transactions):
    def __init__(self):
        # Many connections at once cost more than they give here.
        self.base = {"bootstrap.servers": BOOTSTRAP, "log_level": 0}
        self.admin = admin.AdminClient(dict(self.base))

    def producer(self, codec="none", idempotent=False):
        return Producer({**self.base, "compression.type": codec, "linger.ms": 20,
                         "enable.idempotence": idempotent, "message.max.bytes": 20_000_000,
                         "message.timeout.ms": 10_000, "topic.metadata.propagation.max.ms": 2000})

    def consumer(self, **more):
        return Consumer({**self.base, "group.id": "unused", "enable.auto.commit": False,
                         "check.crcs": True, "fetch.wait.max.ms": 100,
                         "auto.offset.reset": "error", **more})

    def about(self):
        version = confluent_kafka.version()
        return {"version": version if isinstance(version, str) else version[0],
                "librdkafka": confluent_kafka.libversion()[0]}

    def send(self, producer, topic, partition, records):
        offsets = []

        def on_delivery(error, message):
            offsets.append(error if error is not None else message.offset())
        for timestamp, key, value, headers in records:
            producer.produce(topic, value, key, int(partition), on_delivery=on_delivery,
                             timestamp=timestamp, headers=headers)
        if producer.flush(steps.TIMEOUT_S):
            raise Refused(None, "TIMEOUT", "not all records were delivered")
        for o in offsets:
            if not isinstance(o, int):
                raise refused(o)
        return offsets

    def produce(self, topic, partition, codec, mode, path):
        return {"offsets": self.send(self.producer(codec, mode == "idempotent"), topic, partition,
                                     steps.records(path))}

    def large(self, topic, partition, size):
        self.send(self.producer(), topic, partition, [(0, None, bytes(int(size)), [])])

    def read(self, consumer, count):
        got, check = [], steps.deadline(f"reading {count} records")
        while len(got) < count:
            check()
            m = consumer.poll(1)
            if m is None:
                continue
            if m.error():
                raise refused(m.error())
            kind, timestamp = m.timestamp()
            got.append(steps.shown(m.offset(),
                                   None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
                                   m.key(), m.value(), m.headers()))
        return got

    def transactional(self, name):
        producer = Producer({**self.base, "transactional.id": name})
        producer.init_transactions(steps.TIMEOUT_S)
        return producer

    def write(self, producer, topic, value):
        for partition in 0, 1:
            self.send(producer, topic, partition, [(0, None, value.encode(), [])])

    def send_offset(self, producer, group, topic, offset):
        consumer = self.consumer(**{"group.id": group})
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, offset)],
                                             consumer.consumer_group_metadata(), steps.TIMEOUT_S)
        consumer.close()

    def offset(self, group, topic, partition):
        consumer = self.consumer(**{"group.id": group})
        found = consumer.committed([TopicPartition(topic, partition)], steps.TIMEOUT_S)[0]
        consumer.close()
        if found.error:
            raise refused(found.error)
        return found.offset if found.offset >= 0 else None

    def fence(self, topic, name):
        try:
            super().fence(topic, name)
        except KafkaException as e:
            raise refused(e.args[0]) from None

    def consume_isolated(self, topic, partition, isolation, count):
        return self.consume(topic, partition, "earliest", count,
                            **{"isolation.level": isolation})

    def consume(self, topic, partition, start, count, **more):
        consumer = self.consumer(**more)
        offset = BEGINNING if start == "earliest" else int(start)
        consumer.assign([TopicPartition(topic, int(partition), offset)])
        try:
            return {"records": self.read(consumer, int(count))}
        finally:
            consumer.close()

    def tail(self, topic, partition):
        consumer, at = self.consumer(), TopicPartition(topic, int(partition), END)
        consumer.assign([at])
        try:
            end = consumer.get_watermark_offsets(TopicPartition(topic, int(partition)), 10)[1]
            consumer.poll(1)  # The end is asked for here; what comes later must be seen.
            self.send(self.producer(), topic, partition, [(int(time.time() * 1000), None,
                                                           b"tail", [])])
            return {"end": end, "records": self.read(consumer, 1)}
        finally:
            consumer.close()

    def member(self, topic, group, protocol, *options):
        """Assigns by itself, incrementally where the protocol does."""
        options, me = steps.pairs(options), steps.Membership()
        settings = {"group.protocol": "consumer"} if protocol == "consumer" else {
            "partition.assignment.strategy": protocol, "heartbeat.interval.ms": 1000,
            "session.timeout.ms": int(options.get("session", 6000))}
        if "instance" in options:
            settings["group.instance.id"] = options["instance"]
        consumer = self.consumer(**{"auto.offset.reset": "earliest", "group.id": group,
                                    **settings})

        def commit():
            offsets = dict(me.unsaved)
            if not offsets:
                return
            try:
                for p in consumer.commit(asynchronous=False, offsets=[
                        TopicPartition(topic, p, o) for p, o in offsets.items()]):
                    if p.error:
                        raise KafkaException(p.error)
                me.committed(offsets)
            except KafkaException as e:
                me.failed(e)

        def on_assign(_, partitions):
            me.assigned(p.partition for p in partitions)

        def on_revoke(_, partitions):
            commit()
            me.revoked(p.partition for p in partitions)

        def on_lost(_, partitions):
            me.revoked(p.partition for p in partitions)
        consumer.subscribe([topic], on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
        try:
            while not me.ending:
                records, m = [], consumer.poll(0.25)
                while m is not None:
                    if m.error():
                        me.failed(refused(m.error()))
                    else:
                        records.append((m.partition(), m.offset()))
                    m = consumer.poll(0) if len(records) < 500 else None
                me.read(records)
                if me.is_time():
                    commit()
            commit()
        finally:
            consumer.close()
        return me.result()

    def times(self, topic, partition, timestamps):
        consumer, found = self.consumer(), []
        for t in timestamps.split(","):
            r = consumer.offsets_for_times([TopicPartition(topic, int(partition), int(t))], 10)[0]
            if r.error:
                raise refused(r.error)
            found.append(r.offset if r.offset >= 0 else None)
        consumer.close()
        return {"offsets": found}

    def ends(self, topic, partition):
        consumer = self.consumer()
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, int(partition)), 10)
        consumer.close()
        return {"earliest": low, "latest": high}

    def create(self, topic, partitions, *config):
        return self.create_copies(topic, partitions, 1, *config)

    def create_copies(self, topic, partitions, copies, *config):
        done(self.admin.create_topics([admin.NewTopic(topic, int(partitions), int(copies),
                                                      config=steps.pairs(config))]))

    def list(self):
        return {"topics": sorted(self.admin.list_topics(timeout=10).topics)}

    def describe(self, topic):
        found = self.admin.list_topics(topic, 10).topics[topic]
        if found.error is not None:
            raise refused(found.error)
        return {"partitions": [[p.id, p.leader, p.replicas, p.isrs]
                               for p in found.partitions.values()]}

    def cluster(self):
        data = self.admin.list_topics(timeout=10)
        return {"id": data.cluster_id, "controller": data.controller_id,
                "nodes": [[b.id, b.host, b.port] for b in data.brokers.values()]}

    def describe_cluster(self):
        data = self.admin.describe_cluster(request_timeout=10).result(steps.TIMEOUT_S)
        return {"id": data.cluster_id, "controller": data.controller.id,
                "nodes": [[n.id, n.host, n.port] for n in data.nodes]}

    def describe_topics(self, topic):
        names = confluent_kafka.TopicCollection([topic])
        data = done(self.admin.describe_topics(names))[topic]
        return {"id": str(data.topic_id), "partitions": [
            [p.id, p.leader.id, [n.id for n in p.replicas], [n.id for n in p.isr]]
            for p in data.partitions]}

    def configs(self, kind, name):
        data = done(self.admin.describe_configs([admin.ConfigResource(KINDS[kind], name)]))
        return {"configs": {k: c.value for entries in data.values() for k, c in entries.items()}}

    def alter(self, topic, *config):
        entries = [admin.ConfigEntry(k, v, incremental_operation=admin.AlterConfigOpType.SET)
                   for k, v in steps.pairs(config).items()]
        done(self.admin.incremental_alter_configs([admin.ConfigResource(
            KINDS["topic"], topic, incremental_configs=entries)]))

    def alter_all(self, topic, *config):
        done(self.admin.alter_configs([admin.ConfigResource(
            KINDS["topic"], topic, set_config=steps.pairs(config))]))

    def partitions(self, topic, count):
        done(self.admin.create_partitions([admin.NewPartitions(topic, int(count))]))

    def delete_records(self, topic, partition, offset):
        at = TopicPartition(topic, int(partition), int(offset))
        return {"low": next(iter(done(self.admin.delete_records([at])).values())).low_watermark}

    def list_offsets(self, topic, partition):
        at, found = TopicPartition(topic, int(partition)), []
        for spec in (admin.OffsetSpec.earliest(), admin.OffsetSpec.latest()):
            found.append(done(self.admin.list_offsets({at: spec}))[at].offset)
        return {"offsets": found}

    def elect_leaders(self, topic, partition):
        at = TopicPartition(topic, int(partition))
        result = self.admin.elect_leaders(confluent_kafka.ElectionType.PREFERRED, [at])
        for error in result.result(steps.TIMEOUT_S).values():
            if error is not None:
                raise refused(error)

    def delete(self, topic):
        done(self.admin.delete_topics([topic]))


steps.run(Client(), number)
