#!/usr/bin/env python3
"""Groups of every client library, and of several in one, against Calque.

    group_clients_test.py [--list] [NAME...]

`smoke-groups` is one group of each library and one of eleven members in six languages;
`group-clients` is every assignor and protocol of each library, more mixed groups, Kafka Connect and
Kafka Streams, and writes the table of docs/compatibility.md. All groups share one broker, which is
killed under them. TESTS_BROKER=kafka runs the same against a real Kafka 4.4.0, which must pass all
of it: that is how the programs are proved. ONLY=text runs the groups whose name has the text.
"""
import concurrent.futures
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from clients import brokers, builds, frameworks, groups, matrix, members, table
from lib import suite
from lib.calque import Calque
from lib.differential.codec import Codec

AT_ONCE = 6  # Groups at a time: most of it is waiting for sessions to end.
SETTINGS = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": 500,
            "offsets.topic.num.partitions": 4,
            "group.consumer.session.timeout.ms": members.SESSION_S["consumer"] * 1000,
            "group.consumer.heartbeat.interval.ms": 1000}
LEAST = {"group.consumer.min.session.timeout.ms": members.SESSION_S["consumer"] * 1000,
         "group.consumer.min.heartbeat.interval.ms": 1000}


class Groups:
    def __init__(self, tests, runs):
        only = os.environ.get("ONLY", "")
        self.tests, self.broker = tests, None
        self.runs = [r for r in runs if only in r.name]
        self.pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self.halves, self.results = {}, {}

    def clean(self):
        self.pool.shutdown(cancel_futures=True)
        for run in self.runs:
            run.clean()
        brokers.end(self.broker)

    def start(self):
        folder = self.tests.folder
        self.broker = brokers.start(folder, SETTINGS, only_kafka=LEAST)
        codec = Codec()

        def first(run):
            run.start(folder, self.broker.bootstrap, codec)
            return run.first()
        for run in self.runs:
            self.halves[run.name, 1] = self.pool.submit(first, run)

    def killed(self):
        """At work: the last records are read and not all of them committed."""
        concurrent.futures.wait(self.halves.values())
        alive = [r for r in self.runs if self.halves[r.name, 1].exception() is None]
        if not alive:
            raise AssertionError("no group is left")
        for run in alive:
            run.burst()
        if isinstance(self.broker, Calque):
            self.broker.kill()
        else:
            self.broker.stop_brokers(kill=True)
        time.sleep(0.5)  # What they read and committed until then has been told.
        for run in alive:
            run.excuse()
        self.broker.start()
        for run in alive:
            self.halves[run.name, 2] = self.pool.submit(run.second)
        return f"{len(alive)} groups"

    def half(self, run, n):
        def body():
            key = run.name, n
            self.results[key] = "FAILED"
            if key not in self.halves:
                raise AssertionError("not run, because the first half failed")
            try:
                said = self.halves[key].result()
            except builds.Missing as e:
                self.results[key] = "not built"
                raise AssertionError(str(e)) from None
            self.results[key] = "passed"
            return said
        return body


def make(smoke):
    def build(tests):
        clients = matrix.clients()
        runs = [*groups.mixed(clients, smoke), *groups.own(clients, smoke)]
        g = Groups(tests, runs if smoke else [*frameworks.runs(), *runs])
        tests.test("start", needed=True)(g.start)
        for run in g.runs:
            tests.test(f"{run.name}: join, die, come back")(g.half(run, 1))
        tests.test("the broker is killed and comes back", needed=True)(g.killed)
        for run in g.runs:
            tests.test(f"{run.name}: go on, leave")(g.half(run, 2))
        if not smoke and not os.environ.get("ONLY") and \
                os.environ.get("TESTS_BROKER") != "kafka":
            tests.test("table of docs/compatibility.md")(lambda: table.write_groups(
                clients, g.runs, g.results))
        return g.clean
    return build


if __name__ == "__main__":
    sys.exit(suite.main({"smoke-groups": make(True), "group-clients": make(False)}))
