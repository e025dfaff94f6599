"""aiokafka: asyncio, with code of its own for producers and consumers."""
import asyncio
import time

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError, for_code

import steps
from steps import Refused

BOOTSTRAP, STEPS = steps.arguments()
ASSIGNORS = {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor,
             "sticky": StickyPartitionAssignor}
KINDS = {"topic": ConfigResourceType.TOPIC, "broker": ConfigResourceType.BROKER}


def number(error):
    errno = getattr(error, "errno", None)
    return errno if isinstance(errno, int) and errno > 0 else None


def check(code, message=""):
    if code:
        raise Refused(code, for_code(code).__name__, message or "")


class Listener(aiokafka.ConsumerRebalanceListener):
    def __init__(self, me, commit):
        self.me, self.commit = me, commit

    async def on_partitions_assigned(self, assigned):
        self.me.assigned(p.partition for p in assigned)

    async def on_partitions_revoked(self, revoked):
        await self.commit()
        self.me.revoked(p.partition for p in revoked)


class Client:
    """Connections are made at first use and closed at the end."""

    def __init__(self):
        self.made = None

    async def admin(self):
        if self.made is None:
            self.made = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
            await self.made.start()
        return self.made

    async def close(self):
        if self.made is not None:
            await self.made.close()

    async def producer(self, codec="none", idempotent=False):
        p = AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, acks="all", linger_ms=20,
                             compression_type=None if codec == "none" else codec,
                             enable_idempotence=idempotent, max_request_size=20_000_000,
                             max_batch_size=4_000_000, request_timeout_ms=5000)
        await p.start()
        return p

    async def consumer(self, group=None, **more):
        c = AIOKafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=group, fetch_max_wait_ms=100,
                             enable_auto_commit=False, auto_offset_reset="none", check_crcs=True,
                             **more)
        await c.start()
        return c

    async def pause(self, milliseconds):
        await asyncio.sleep(int(milliseconds) / 1000)

    async def about(self):
        return {"version": aiokafka.__version__}

    async def send(self, producer, topic, partition, records):
        try:
            sent = [await producer.send(topic, value, key, int(partition), timestamp, headers)
                    for timestamp, key, value, headers in records]
            return [(await asyncio.wait_for(s, steps.TIMEOUT_S)).offset for s in sent]
        finally:
            await producer.stop()

    async def produce(self, topic, partition, codec, mode, path):
        producer = await self.producer(codec, mode == "idempotent")
        return {"offsets": await self.send(producer, topic, partition, steps.records(path))}

    async def large(self, topic, partition, size):
        await self.send(await self.producer(), topic, partition, [(1, None, bytes(int(size)), [])])

    async def read(self, consumer, count):
        got, look = [], steps.deadline(f"reading {count} records")
        while len(got) < count:
            look()
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                got += [steps.shown(m.offset, m.timestamp, m.key, m.value, m.headers)
                        for m in batch]
        return got[:count]

    async def transactional(self, name):
        p = AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, transactional_id=name,
                             request_timeout_ms=5000)
        await p.start()
        return p

    async def write(self, producer, topic, value):
        for partition in 0, 1:
            await producer.send_and_wait(topic, value.encode(), partition=partition)

    async def transact(self, topic, name, *with_offsets):
        producer, committed = await self.transactional(name), []
        try:
            for n, value in enumerate(steps.Transactions.VALUES):
                await producer.begin_transaction()
                await self.write(producer, topic, value)
                if with_offsets:
                    group, source = with_offsets
                    committed.append((await self.committed(group, source, 0))["offset"])
                    await producer.send_offsets_to_transaction(
                        {TopicPartition(source, 0): n + 1}, group)
                if value.startswith("commit"):
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
        finally:
            await producer.stop()
        return {"committed": committed}

    async def fence(self, topic, name):
        first = await self.transactional(name)
        try:
            await first.begin_transaction()
            await self.write(first, topic, "lost")
            second = await self.transactional(name)
            try:
                await second.begin_transaction()
                await self.write(second, topic, "kept")
                await second.commit_transaction()
            finally:
                await second.stop()
            await first.commit_transaction()
        finally:
            await first.stop()

    async def committed(self, group, topic, partition):
        consumer = await self.consumer(group)
        try:
            return {"offset": await consumer.committed(TopicPartition(topic, int(partition)))}
        finally:
            await consumer.stop()

    async def consume_isolated(self, topic, partition, isolation, count):
        return await self.consume(topic, partition, "earliest", count, isolation_level=isolation)

    async def consume(self, topic, partition, start, count, **more):
        consumer, at = await self.consumer(**more), TopicPartition(topic, int(partition))
        try:
            consumer.assign([at])
            if start == "earliest":
                await consumer.seek_to_beginning(at)
            else:
                consumer.seek(at, int(start))
            return {"records": await self.read(consumer, int(count))}
        finally:
            await consumer.stop()

    async def tail(self, topic, partition):
        consumer, at = await self.consumer(), TopicPartition(topic, int(partition))
        try:
            consumer.assign([at])
            await consumer.seek_to_end(at)
            end = await consumer.position(at)
            await self.send(await self.producer(), topic, partition,
                            [(int(time.time() * 1000), None, b"tail", [])])
            return {"end": end, "records": await self.read(consumer, 1)}
        finally:
            await consumer.stop()

    async def member(self, topic, group, protocol, *options):
        options, me = steps.pairs(options), steps.Membership()
        consumer = AIOKafkaConsumer(
            bootstrap_servers=BOOTSTRAP, group_id=group, enable_auto_commit=False,
            auto_offset_reset="earliest", heartbeat_interval_ms=1000,
            group_instance_id=options.get("instance"), rebalance_timeout_ms=30_000,
            session_timeout_ms=int(options.get("session", 6000)),
            partition_assignment_strategy=[ASSIGNORS[protocol]])

        async def commit():
            offsets = dict(me.unsaved)
            if not offsets:
                return
            try:
                await consumer.commit({TopicPartition(topic, p): o for p, o in offsets.items()})
                me.committed(offsets)
            except KafkaError as e:
                me.failed(e)
        consumer.subscribe([topic], listener=Listener(me, commit))
        await consumer.start()
        try:
            while not me.ending:
                me.read([(m.partition, m.offset) for batch in
                         (await consumer.getmany(timeout_ms=250)).values() for m in batch])
                if me.is_time():
                    await commit()
            await commit()
        finally:
            await consumer.stop()
        return me.result()

    async def times(self, topic, partition, timestamps):
        consumer, at = await self.consumer(), TopicPartition(topic, int(partition))
        try:
            found = [(await consumer.offsets_for_times({at: int(t)}))[at]
                     for t in timestamps.split(",")]
        finally:
            await consumer.stop()
        return {"offsets": [f and f.offset for f in found]}

    async def ends(self, topic, partition):
        consumer, at = await self.consumer(), TopicPartition(topic, int(partition))
        try:
            return {"earliest": (await consumer.beginning_offsets([at]))[at],
                    "latest": (await consumer.end_offsets([at]))[at]}
        finally:
            await consumer.stop()

    async def create(self, topic, partitions, *config):
        await self.create_copies(topic, partitions, 1, *config)

    async def create_copies(self, topic, partitions, copies, *config):
        answer = await (await self.admin()).create_topics([NewTopic(
            topic, int(partitions), int(copies), topic_configs=steps.pairs(config))])
        for _, code, *message in answer.topic_errors:
            check(code, str(message))

    async def list(self):
        return {"topics": sorted(await (await self.admin()).list_topics())}

    async def describe(self, topic):
        found = (await (await self.admin()).describe_topics([topic]))[0]
        check(found["error_code"])
        return {"partitions": [[p["partition"], p["leader"], p["replicas"], p["isr"]]
                               for p in found["partitions"]]}

    async def cluster(self):
        data = await (await self.admin()).describe_cluster()
        return {"id": data["cluster_id"], "controller": data["controller_id"],
                "nodes": [[b["node_id"], b["host"], b["port"]] for b in data["brokers"]]}

    async def configs(self, kind, name):
        found = {}
        for answer in await (await self.admin()).describe_configs(
                [ConfigResource(KINDS[kind], name)]):
            for code, message, _, _, entries in answer.resources:
                check(code, message)
                found.update({e[0]: e[1] for e in entries})
        return {"configs": found}

    async def alter_all(self, topic, *config):
        for answer in await (await self.admin()).alter_configs(
                [ConfigResource(KINDS["topic"], topic, steps.pairs(config))]):
            for code, message, *_ in answer.resources:
                check(code, message)

    async def partitions(self, topic, count):
        await (await self.admin()).create_partitions({topic: NewPartitions(int(count))})

    async def delete_records(self, topic, partition, offset):
        at = TopicPartition(topic, int(partition))
        low = await (await self.admin()).delete_records({at: RecordsToDelete(int(offset))})
        return {"low": low[at]}

    async def delete(self, topic):
        answer = await (await self.admin()).delete_topics([topic])
        for _, code in answer.topic_error_codes:
            check(code)


async def main():
    client = Client()
    for text, method, words in STEPS:
        try:
            steps.tell(text, ok=await getattr(client, method)(*words))
        except Exception as e:  # Each step has its own verdict; the next one has its turn.
            steps.tell_error(text, e, number)
    await client.close()


asyncio.run(main())
