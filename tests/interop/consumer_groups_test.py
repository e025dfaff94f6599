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
from lib.differential import comparison, consumer_groups, tables  # noqa: E402

VERSION = groups_test.VERSION
QUICK = {"group.consumer.heartbeat.interval.ms": 300, "group.consumer.session.timeout.ms": 4000,
         "group.consumer.assignment.interval.ms": 0, "offsets.topic.num.partitions": 3}


# Kafka's least value of a setting that is not ours.
OUR_SETTINGS = {k: v for k, v in consumer_groups.SETTINGS.items() if ".min." not in k}
differential = comparison.suite_of(consumer_groups.CASES, tables.CONSUMER_GROUP_APIS,
                                   settings=consumer_groups.SETTINGS, ours=OUR_SETTINGS)


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
        told = self.calque.json("group", "describe", "readers")
        groups_test.must_hold(f"{told['type']} {told['state']} {told['assignor']}",
                              "consumer Stable uniform")
        for which in ("partitions", "target"):
            places = sorted(p["partition"] for m in told["members"] for p in m[which])
            suite.equal(which, places, list(range(6)))

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
        found = self.dump()
        for kind in (3, 5, 6, 7, 8):
            if f'key: {{"type":"{kind}"' not in found and f'"type":{kind},' not in found:
                raise AssertionError(f"no record of type {kind} in:\n{found[-3000:]}")
        groups_test.must_hold(found, '"groupId":"readers"', '"subscribedTopicNames":["orders"]',
                              '"assignmentEpoch"', '"memberEpoch"')

    def steps(self):
        steps = super().steps()
        steps.insert(steps.index(("one leaves, the other takes all", self.left)) + 1,
                     ("one crashes, the other takes all", self.crashed))
        return steps


def consumers(tests):
    return groups_test.consumers(tests, Consumers)


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
