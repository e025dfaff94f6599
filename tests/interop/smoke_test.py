#!/usr/bin/env python3
"""A short mirror and failover for each generation of Kafka.

    smoke_test.py [--list] [NAME...]      e.g. smoke-3.9.1
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from lib import clients, scenario, suite, wire
from lib.calque import Calque
from lib.scenario import TOPICS
from lib.suite import equal

VERSIONS = ["4.4.0", "4.3.1", "3.9.1", "3.3.2", "2.8.2", "2.4.1", "2.1.1"]
PARTITIONS = [(t, p) for t in TOPICS for p in range(TOPICS[t])]


class Smoke:
    def __init__(self, version, tests):
        self.version, self.tests, self.kafka, self.calque = version, tests, None, None

    def clean(self):
        if self.calque is not None and self.calque.child is not None:
            self.calque.kill()
        if self.kafka is not None:
            self.kafka.stop(kill=True)

    def mirror(self):
        self.kafka = scenario.source(self.version, os.path.join(self.tests.folder, "source"))
        source = self.kafka.start()
        scenario.run_steps(source, 1, "topics", "records:6", "transactions", "open")
        self.calque = Calque(os.path.join(self.tests.folder, "copy"))
        self.calque.start()
        self.calque.cli("mirror", "create", "dr", "--source", source, "--topics",
                        ",".join(TOPICS), "--wait")
        self.calque.await_mirroring("dr", len(PARTITIONS), seconds=5)
        self.compare()

    def compare(self):
        with wire.Client(self.kafka.bootstrap) as a, wire.Client(self.calque.bootstrap) as b:
            for tp in PARTITIONS:
                theirs, ours = a.read_log(*tp), b.read_log(*tp)
                equal(f"bytes of {tp}", [t.data for t in ours] == [t.data for t in theirs], True)
                equal(f"ends of {tp}", b.list_offset(*tp, wire.LATEST)[1],
                      a.list_offset(*tp, wire.LATEST)[1])

    def survives_a_kill(self):
        self.calque.kill()
        scenario.run_steps(self.kafka.bootstrap, 2, "records:6")
        self.calque.start()
        self.calque.await_mirroring("dr", len(PARTITIONS), seconds=60)
        self.compare()

    def fail_over(self):
        self.kafka.stop(kill=True)
        self.calque.cli("mirror", "stop", "dr", "--wait", timeout=30)
        said = scenario.run_steps(self.calque.bootstrap, 3, "idempotent:one:0:3")
        with wire.Client(self.calque.bootstrap) as client:
            end = client.list_offset("one", 0, wire.LATEST)[1]
        equal("offsets written", said.split(), ["offsets", *(str(end - n) for n in (3, 2, 1))])
        read = clients.with_kcat(self.calque.bootstrap, "one", 0)
        if not read:
            raise AssertionError("kcat reads nothing")
        self.calque.stop()


def make(version):
    def build(tests):
        s = Smoke(version, tests)
        tests.test("mirror", needed=True)(s.mirror)
        tests.test("survives a kill")(s.survives_a_kill)
        tests.test("fail over")(s.fail_over)
        return s.clean
    return build


if __name__ == "__main__":
    sys.exit(suite.main({f"smoke-{v}": make(v) for v in VERSIONS}))
