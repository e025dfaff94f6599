#!/usr/bin/env python3
"""Consumer groups: the same requests to a real Kafka and to us, Kafka's own consumers and tools.

    groups_test.py [--list] [NAME...]      NAME: differential or consumers

KAFKA_ADDRESS=host:port takes a Kafka 4.4.0 that runs already (with the settings of
tests/lib/differential/groups.py), CASES=text only the cases whose name has the text.
"""
import json
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from lib import process, real_kafka, suite
from lib.calque import Calque
from lib.differential import comparison, groups, tables, transactional_offsets
from lib.differential.broker import Broker
from lib.differential.codec import Codec

VERSION = comparison.VERSION
TOOLS = "org.apache.kafka.tools."
differential = comparison.suite_of(
    groups.CASES + transactional_offsets.CASES, tables.CLASSIC_GROUP_APIS,
    settings=groups.SETTINGS, ours=groups.SETTINGS)


def must_hold(text, *wanted):
    for one in wanted:
        if one not in text:
            raise AssertionError(f"{one} is not in:\n{text[-3000:]}")


class Consumer:
    """Kafka's VerifiableConsumer: it says what it is assigned, reads and commits, a line each."""

    def __init__(self, folder, name, bootstrap, topic, group, *more):
        self.log = os.path.join(folder, f"{name}.log")
        self.child = process.start(real_kafka.java_command(VERSION, TOOLS + "VerifiableConsumer", [
            "--bootstrap-server", bootstrap, "--topic", topic, "--group-id", group,
            "--reset-policy", "earliest", *(more or ("--session-timeout", "6000"))]), self.log)

    def events(self, name):
        if not os.path.exists(self.log):
            return []
        found = []
        with open(self.log, "rb") as file:
            for line in file:
                if line.startswith(b"{") and line.endswith(b"}\n"):
                    event = json.loads(line)
                    if event.get("name") == name:
                        found.append(event)
        return found

    def assigned(self):
        """The partitions that it has now."""
        held = set()
        for event in self.events_in_order():
            partitions = {p["partition"] for p in event["partitions"]}
            held = held | partitions if event["name"] == "partitions_assigned" \
                else held - partitions
        return held

    def events_in_order(self):
        every = []
        with open(self.log, "rb") as file:
            for line in file:
                if line.startswith(b"{") and line.endswith(b"}\n"):
                    event = json.loads(line)
                    if event.get("name") in ("partitions_assigned", "partitions_revoked"):
                        every.append(event)
        return every

    def read(self):
        """Every (partition, offset) that was read, as often as it was."""
        return [(p["partition"], offset) for event in self.events("records_consumed")
                for p in event["partitions"]
                for offset in range(p["minOffset"], p["maxOffset"] + 1)]

    def end(self):
        process.end(self.child, signal.SIGTERM, 30)


class Consumers:
    """Kafka's own consumers and operators' tools against us."""

    def __init__(self, tests):
        self.tests, self.calque, self.first, self.second = tests, None, None, None
        self.written = 0

    def start(self):
        self.calque = Calque(os.path.join(self.tests.folder, "calque"), {
            "group.initial.rebalance.delay.ms": 500, "offsets.topic.num.partitions": 3})
        self.calque.start()
        self.run("TopicCommand", "--create", "--topic", "orders", "--partitions", "6")

    def clean(self):
        for one in (self.first, self.second):
            if one is not None:
                process.end(one.child, signal.SIGKILL)
        if self.calque is not None and self.calque.child is not None:
            self.calque.kill()

    def run(self, main, *args, check=True):
        run = real_kafka.run_class(VERSION, TOOLS + main, [
            "--bootstrap-server", self.calque.bootstrap, *args], check=check)
        return run.stdout.decode() + run.stderr.decode()

    def groups(self, *args, check=True):
        return self.run("consumer.group.ConsumerGroupCommand", *args, check=check)

    def produce(self, count):
        real_kafka.run_class(VERSION, TOOLS + "VerifiableProducer", [
            "--bootstrap-server", self.calque.bootstrap, "--topic", "orders",
            "--max-messages", str(count), "--repeating-keys", "97"])
        self.written += count

    def consumer(self, name):
        return Consumer(self.tests.folder, name, self.calque.bootstrap, "orders", "readers")

    def await_read(self, *who):
        def all_read():
            return len({r for one in who for r in one.read()}) >= self.written
        try:
            process.wait_for("everything to be read", all_read, 60)
        except AssertionError as e:
            raise AssertionError(f"{e}\n" + "\n".join(process.tail(w.log) for w in who)) from None
        return [r for one in who for r in one.read()]

    def alone(self):
        self.produce(200)
        self.first = self.consumer("first")
        read = self.await_read(self.first)
        suite.equal("read twice", len(read) - len(set(read)), 0)
        suite.equal("partitions", self.first.assigned(), set(range(6)))

    def share(self):
        self.second = self.consumer("second")
        process.wait_for("both to have their part", lambda: (
            len(self.first.assigned()), len(self.second.assigned())) == (3, 3), 60)
        suite.equal("partitions of both", self.first.assigned() & self.second.assigned(), set())
        self.produce(200)
        read = self.await_read(self.first, self.second)
        suite.equal("read twice", len(read) - len(set(read)), 0)

    def killed(self):
        """The broker dies without a word; consumers go on with the generation they had."""
        self.calque.kill()
        self.calque.start()
        self.produce(200)
        read = self.await_read(self.first, self.second)
        # What was read and not committed when it died may come again.
        twice = len(read) - len(set(read))
        if twice > 200:
            raise AssertionError(f"{twice} records were read twice")
        return f"{twice} records twice"

    def left(self):
        self.first.end()
        process.wait_for("the other to have all", lambda: len(self.second.assigned()) == 6, 60)
        self.produce(100)
        self.await_read(self.first, self.second)

    def described(self):
        out = self.groups("--list", "--state")
        if not re.search(r"readers\s+.*Stable", out):
            raise AssertionError(f"not stable:\n{out}")
        out = self.groups("--describe", "--group", "readers")
        rows = [line.split() for line in out.splitlines() if line.startswith("readers")]
        suite.equal("partitions", len(rows), 6)
        # GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG …
        suite.equal("lag", sum(int(r[5]) for r in rows), 0)
        suite.equal("committed", sum(int(r[3]) for r in rows), self.written)
        out = self.groups("--describe", "--group", "readers", "--members", "--verbose")
        if "orders" not in out:
            raise AssertionError(f"no assignment:\n{out}")
        out = self.groups("--describe", "--group", "readers", "--state")
        if "range" not in out or "Stable" not in out:
            raise AssertionError(f"no state:\n{out}")

    def reset(self):
        live = self.groups("--reset-offsets", "--group", "readers", "--topic", "orders",
                           "--to-earliest", "--execute", check=False)
        if "inactive" not in live:
            raise AssertionError(f"offsets of a live group were reset:\n{live}")
        self.second.end()
        process.wait_for("the group to be empty", lambda: "Empty" in self.groups(
            "--describe", "--group", "readers", "--state", check=False), 30, 0.5)
        self.groups("--reset-offsets", "--group", "readers", "--topic", "orders",
                    "--to-offset", "5", "--execute")
        out = self.groups("--describe", "--group", "readers")
        rows = [line.split() for line in out.splitlines() if line.startswith("readers")]
        suite.equal("offsets", {r[3] for r in rows}, {"5"})
        self.groups("--delete-offsets", "--group", "readers", "--topic", "orders:0")
        out = self.groups("--describe", "--group", "readers")
        rows = [line.split() for line in out.splitlines() if line.startswith("readers")]
        suite.equal("partitions with an offset", len([r for r in rows if r[3] == "5"]), 5)

    def staged(self):
        """A transaction is open, and its offsets keep their group from being forgotten."""
        broker = Broker("Calque", self.calque.bootstrap, Codec())
        txn = transactional_offsets.Transaction(broker, "stages")
        txn.includes("staged")
        txn.commit(3, "staged", "orders", [(0, 17), (1, 18)])
        answers = [one["errorCode"] for _, answer in broker.log for topic in answer["topics"]
                   for one in topic["partitions"]]
        broker.close()
        suite.equal("errors", answers, [0, 0])
        if "staged" not in self.groups("--list").split():
            raise AssertionError("the group is not there")

    def dump(self):
        """What Kafka's tool reads in our __consumer_offsets."""
        found = ""
        for i in range(3):
            folder = os.path.join(self.calque.data, f"__consumer_offsets-{i}")
            for name in sorted(n for n in os.listdir(folder) if n.endswith(".log")):
                found += real_kafka.run_class(VERSION, TOOLS + "DumpLogSegments", [
                    "--offsets-decoder", "--files",
                    os.path.join(folder, name)]).stdout.decode()
        if "exception" in found.lower():
            raise AssertionError(f"not understood:\n{found[-3000:]}")
        return found

    def dumped(self):
        found = self.dump()
        must_hold(found, '"group":"readers"', '"topic":"orders"', '"protocolType":"consumer"',
                  '"offset":5', '"generation"', '"group":"staged"', '"offset":18',
                  "isTransactional: true")
        if "unknown" in found.lower():
            raise AssertionError(f"not understood:\n{found[-3000:]}")

    def deleted(self):
        self.groups("--delete", "--group", "readers", "--group", "staged")
        self.calque.kill()
        self.calque.start()
        suite.equal("groups", self.groups("--list").split(), [])

    def end(self):
        self.calque.stop()

    def steps(self):
        return [("one consumer", self.alone), ("two share the partitions", self.share),
                ("the broker is killed and comes back", self.killed),
                ("one leaves, the other takes all", self.left),
                ("kafka-consumer-groups describes", self.described),
                ("kafka-consumer-groups resets and deletes offsets", self.reset),
                ("offsets of an open transaction", self.staged),
                ("Kafka's tool reads __consumer_offsets", self.dumped),
                ("a deleted group is gone for good", self.deleted), ("a clean end", self.end)]


def consumers(tests, made=Consumers):
    c = made(tests)
    tests.test("start", needed=True)(c.start)
    for name, body in c.steps():
        tests.test(name, needed=name == "one consumer")(body)
    return c.clean


if __name__ == "__main__":
    sys.exit(suite.main({"differential": differential, "consumers": consumers}))
