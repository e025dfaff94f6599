#!/usr/bin/env python3
"""Groups of the "consumer" protocol (KIP-848): the same requests to a real Kafka and to us, and
Kafka's own consumers with group.protocol=consumer.

    consumer_groups_test.py [--list] [NAME...]      NAME: differential, consumers or pattern

KAFKA_ADDRESS=host:port takes a Kafka 4.4.0 that runs already (with the settings of
tests/lib/differential/consumer_groups.py), CASES=text only the cases whose name has the text.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, os.pardir)]
import groups_test  # noqa: E402
from lib import process, real_kafka, suite  # noqa: E402
from lib.calque import Calque  # noqa: E402
from lib.differential import consumer_groups  # noqa: E402
from lib.differential.codec import Codec  # noqa: E402
from lib.differential.compare import Pair  # noqa: E402

VERSION = groups_test.VERSION
QUICK = {"group.consumer.heartbeat.interval.ms": 300, "group.consumer.session.timeout.ms": 4000,
         "group.consumer.assignment.interval.ms": 0, "offsets.topic.num.partitions": 3}


class Differential(groups_test.Differential):
    def start(self):
        address = os.environ.get("KAFKA_ADDRESS")
        if not address:
            self.kafka = real_kafka.Kafka(VERSION, os.path.join(self.tests.folder, "kafka"),
                                          settings=consumer_groups.SETTINGS)
            address = self.kafka.start()
        known = {k: v for k, v in consumer_groups.SETTINGS.items() if ".min." not in k}
        self.calque = Calque(os.path.join(self.tests.folder, "calque"), known)
        self.pair = Pair(address, self.calque.start(), Codec())


def differential(tests):
    d = Differential(tests)
    tests.test("start", needed=True)(d.start)
    only = os.environ.get("CASES", "")
    for case in consumer_groups.CASES:
        if only in case.name:
            tests.test(case.name)(lambda case=case: d.run(case))
    return d.clean


class Consumers(groups_test.Consumers):
    def start(self):
        self.calque = Calque(os.path.join(self.tests.folder, "calque"), QUICK)
        self.calque.start()
        self.run("TopicCommand", "--create", "--topic", "orders", "--partitions", "6")

    def consumer(self, name):
        return groups_test.Consumer(self.tests.folder, name, self.calque.bootstrap, "orders",
                                    "readers", "--group-protocol", "consumer")

    def described(self):
        out = self.groups("--list", "--state")
        if "Stable" not in out:
            raise AssertionError(f"not stable:\n{out}")
        out = self.groups("--describe", "--group", "readers", "--state")
        if "uniform" not in out or "Stable" not in out:
            raise AssertionError(f"no state:\n{out}")
        out = self.groups("--describe", "--group", "readers", "--members", "--verbose")
        if "orders" not in out or "TARGET-ASSIGNMENT" not in out:
            raise AssertionError(f"no assignment:\n{out}")

    def crashed(self):
        """One consumer dies without a word: its session ends, and the other takes over."""
        third = self.consumer("third")
        process.wait_for("both to have their part", lambda: (
            len(third.assigned()), len(self.second.assigned())) == (3, 3), 60)
        third.child.kill()
        third.child.wait()
        process.wait_for("the other to have all", lambda: len(self.second.assigned()) == 6, 60)
        self.produce(100)
        self.await_read(self.first, self.second, third)

    def dumped(self):
        """Kafka's tool reads what we keep."""
        found = ""
        for i in range(3):
            folder = os.path.join(self.calque.data, f"__consumer_offsets-{i}")
            for name in sorted(n for n in os.listdir(folder) if n.endswith(".log")):
                found += real_kafka.run_class(VERSION, groups_test.TOOLS + "DumpLogSegments", [
                    "--offsets-decoder", "--files",
                    os.path.join(folder, name)]).stdout.decode()
        for kind in (3, 5, 6, 7, 8):
            if f'key: {{"type":"{kind}"' not in found and f'"type":{kind},' not in found:
                raise AssertionError(f"no record of type {kind} in:\n{found[-3000:]}")
        for wanted in ('"groupId":"readers"', '"subscribedTopicNames":["orders"]',
                       '"assignmentEpoch"', '"memberEpoch"'):
            if wanted not in found:
                raise AssertionError(f"{wanted} is not in:\n{found[-3000:]}")
        if "exception" in found.lower():
            raise AssertionError(f"not understood:\n{found[-3000:]}")


def consumers(tests):
    c = Consumers(tests)
    tests.test("start", needed=True)(c.start)
    for name, body in (("one consumer", c.alone), ("two share the partitions", c.share),
                       ("the broker is killed and comes back", c.killed),
                       ("one leaves, the other takes all", c.left),
                       ("one crashes, the other takes all", c.crashed),
                       ("kafka-consumer-groups describes", c.described),
                       ("kafka-consumer-groups resets and deletes offsets", c.reset),
                       ("Kafka's tool reads __consumer_offsets", c.dumped),
                       ("a deleted group is gone for good", c.deleted), ("a clean end", c.end)):
        tests.test(name, needed=name == "one consumer")(body)
    return c.clean


def pattern(tests):
    """A Java consumer with a SubscriptionPattern, which the broker looks up."""
    c = Consumers(tests)
    tests.test("start", needed=True)(c.start)

    @tests.test("topics that match are read, also those that come later")
    def matching():
        classes = real_kafka.compiled(os.path.join(HERE, "java", "PatternConsumer.java"), VERSION)
        run = real_kafka.run_class(VERSION, "PatternConsumer", [c.calque.bootstrap, "ord.*"],
                                   more_classes=[classes], timeout=120)
        suite.equal("what was read", run.stdout.decode().splitlines()[-1], "orders orders-late")
    return c.clean


if __name__ == "__main__":
    sys.exit(suite.main({"differential": differential, "consumers": consumers,
                         "pattern": pattern}))
