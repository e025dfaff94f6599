#!/usr/bin/env python3
"""Transactions of unmodified clients.

    transactions_test.py [--list] [NAME...]

TESTS_BROKER=kafka runs the same against a real Kafka 4.4.0, which must pass: that is how the
programs are proved. It is spared the kills in the middle of transactions, since a Kafka that is
killed may commit one in one partition and abort it in another.
"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir))
from clients import brokers, builds
from lib import clients, process, real_kafka, suite
from lib.calque import Calque
from lib.differential import comparison, tables, transactions
from lib.suite import equal

SETTINGS = {"num.partitions": 3, "transaction.state.log.num.partitions": 4,
            "offsets.topic.num.partitions": 4, "group.initial.rebalance.delay.ms": 0}
# Kafka looks for transactions that have run too long only so often.
ONLY_KAFKA = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 200}
FENCED = ("ProducerFencedException", "InvalidProducerEpochException")


TOOL_VERSION = "4.4.0"
CONFLUENT = r'''
import sys
from confluent_kafka import KafkaException, Producer, TopicPartition, Consumer, libversion
def producer(id):
    p = Producer({"bootstrap.servers": sys.argv[1], "transactional.id": id})
    p.init_transactions(30)
    return p
def write(p, value):
    p.produce("confluent", value, partition=0)
    p.flush(30)
p = producer("confluent")
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "confluent-group"})
for n, commit in enumerate((True, False, True)):
    p.begin_transaction()
    write(p, ("c" if commit else "a") + str(n))
    p.send_offsets_to_transaction([TopicPartition("confluent", 0, n + 1)],
                                  consumer.consumer_group_metadata(), 30)
    if commit: p.commit_transaction(30)
    else: p.abort_transaction(30)
p.begin_transaction()
write(p, "lost")
other = producer("confluent")
other.begin_transaction()
write(other, "kept")
try:
    p.commit_transaction(30)
    sys.exit("the zombie committed")
except KafkaException as e:
    if not e.args[0].fatal(): sys.exit(f"the zombie lives: {e}")
other.commit_transaction(30)
print(libversion()[0])
'''


class Refused(AssertionError):
    pass


class Transactor:
    """java/Transactor.java with one release of kafka-clients: producers do what they are told."""

    def __init__(self, version, bootstrap, folder):
        classes = real_kafka.compiled(os.path.join(HERE, "java", "Transactor.java"), version)
        # The library logs to where it likes: only its errors file is not read.
        options = [real_kafka.logging_option(version, folder, "WARN", "ERR")]
        command = real_kafka.java_command(version, "Transactor", [bootstrap],
                                          more_classes=[classes], options=options)
        self.errors = open(os.path.join(folder, "transactor.log"), "ab")
        self.child = process.child(command, self.errors, stdin=subprocess.PIPE)
        self.hear()

    def hear(self):
        while True:
            line = self.child.stdout.readline().decode(errors="replace").rstrip("\n")
            if line.startswith("ok "):
                return line[3:]
            if line.startswith("error "):
                raise Refused(line[6:])
            if not line:
                raise AssertionError(f"the producers ended\n{process.tail(self.errors.name)}")

    def tell(self, *words):
        self.child.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.child.stdin.flush()

    def __call__(self, *words):
        self.tell(*words)
        try:
            return self.hear()
        except Refused as e:
            raise Refused(f"{' '.join(map(str, words))}: {e}") from None

    def refused(self, *words):
        """The class of the exception that it must end with."""
        self.tell(*words)
        try:
            said = self.hear()
        except Refused as e:
            return str(e).split(" ")[0]
        raise AssertionError(f"{' '.join(map(str, words))} was not refused: {said}")

    def producer(self, name, timeout_ms=60000, id=None):
        self("producer", name, id or name, timeout_ms)
        self("init", name)

    def end(self):
        process.end(self.child)
        self.errors.close()


class World:
    def __init__(self, tests, version):
        self.tests, self.version = tests, version
        self.broker = self.java = None

    def start(self):
        self.broker = brokers.start(self.tests.folder, SETTINGS, only_kafka=ONLY_KAFKA)
        self.java = Transactor(self.version, self.broker.bootstrap, self.tests.folder)

    def clean(self):
        if self.java is not None:
            self.java.end()
        brokers.end(self.broker)

    def kill_broker(self):
        if isinstance(self.broker, Calque):
            self.broker.kill()
        else:
            self.broker.stop_brokers(kill=True)

    def check(self, topic, committed, everything=None):
        equal(f"read_committed of {topic}", self.java("read", topic, 3, "read_committed"),
              " ".join(f"{p}:{values}" for p, values in enumerate(committed)))
        if everything is not None:
            equal(f"read_uncommitted of {topic}",
                  self.java("read", topic, 3, "read_uncommitted"),
                  " ".join(f"{p}:{values}" for p, values in enumerate(everything)))

    def commit_and_abort(self):
        j, topic = self.java, "plain"
        j.producer("a")
        for n, end in enumerate(("commit", "abort", "commit", "abort", "abort", "commit")):
            j("begin", "a")
            for p in range(3):
                j("send", "a", topic, p, f"{end[0]}{n}")
            j(end, "a")
        j("begin", "a")
        j("abort", "a")  # Nothing was written.
        self.check(topic, ["c0,c2,c5"] * 3, ["c0,a1,c2,a3,a4,c5"] * 3)

    def many_in_one(self):
        j, topic = self.java, "many"
        j.producer("m")
        for n in range(20):
            j("begin", "m")
            for i in range(30):
                j("post", "m", topic, i % 3, f"{n}.{i}")
            j("commit" if n % 2 else "abort", "m")
        wanted = [",".join(f"{n}.{i}" for n in range(1, 20, 2) for i in range(p, 30, 3))
                  for p in range(3)]
        self.check(topic, wanted)

    def zombie(self):
        j, topic = self.java, "zombie"
        j.producer("z1", id="z")
        j("begin", "z1")
        j("send", "z1", topic, 0, "lost")
        j.producer("z2", id="z")
        j("begin", "z2")
        j("send", "z2", topic, 0, "kept")
        why = j.refused("commit", "z1")
        if why not in FENCED:
            raise AssertionError(f"the zombie's commit ended with {why}")
        j("commit", "z2")
        self.check(topic, ["kept", "", ""], ["lost,kept", "", ""])
        return why

    def timeout(self):
        j, topic = self.java, "late"
        j.producer("t", 1500)
        j("begin", "t")
        j("send", "t", topic, 1, "late")
        time.sleep(4)
        self.check(topic, ["", "", ""], ["", "late", ""])
        why = j.refused("commit", "t")
        j("close", "t")
        j.producer("t2", id="t")
        j("begin", "t2")
        j("send", "t2", topic, 1, "good")
        j("commit", "t2")
        self.check(topic, ["", "good", ""])
        return why

    def left_open(self):
        """Its producer is gone; the next one of the same id ends it."""
        j, topic = self.java, "left"
        j.producer("l")
        j("begin", "l")
        j("send", "l", topic, 2, "open")
        equal("before the end", j("read", topic, 3, "read_committed"), "0: 1: 2:")
        j("close", "l")
        j.producer("l2", id="l")
        j("begin", "l2")
        j("send", "l2", topic, 2, "next")
        j("commit", "l2")
        self.check(topic, ["", "", "next"])

    def restart(self):
        """Killed in the middle of transactions: they go on, and what was ended stays ended."""
        j, topic = self.java, "restart"
        for name in "gone", "goes-on", "late-one":
            j.producer(name, 8000 if name == "late-one" else 60000)
            j("begin", name)
            j("send", name, topic, 0, name + "-1")
        j("commit", "gone")
        self.kill_broker()
        self.broker.start()
        j("send", "goes-on", topic, 0, "goes-on-2")
        j("send", "goes-on", topic, 1, "goes-on-3")
        j("commit", "goes-on")
        time.sleep(9)  # The third has run too long meanwhile.
        self.check(topic, ["gone-1,goes-on-1,goes-on-2", "goes-on-3", ""],
                   ["gone-1,goes-on-1,late-one-1,goes-on-2", "goes-on-3", ""])

    def storm(self):
        """Killed while several commit: each transaction is there on every partition, or on none."""
        j, topic = self.java, "storm"
        j.producer("s", 5000)
        for n in range(6):
            j("begin", "s")
            for p in range(3):
                j("send", "s", topic, p, f"s{n}")
            j.tell("commit", "s")
            time.sleep(0.005 * n)
            self.kill_broker()
            self.broker.start()
            j.hear()
        self.check(topic, [",".join(f"s{n}" for n in range(6))] * 3)

    def offsets(self):
        """Of a group: there with the commit, gone with the abort."""
        j, topic = self.java, "with-offsets"
        j.producer("o")
        for n, (end, wanted) in enumerate((("commit", 7), ("abort", 7), ("commit", 9))):
            j("begin", "o")
            j("send", "o", topic, 0, f"{end}{n}")
            j("offsets", "o", "o-group", topic, 0, 7 + n)
            j(end, "o")
            equal(f"after {end} {n}", j("committed", "o-group", topic, 0), str(wanted))
        j("begin", "o")
        j("offsets", "o", "o-other", topic, 0, 1)
        self.kill_broker()
        self.broker.start()
        j("offsets", "o", "o-group", topic, 0, 11)
        j("commit", "o")
        equal("after a restart", j("committed", "o-other", topic, 0), "1")
        equal("after a restart", j("committed", "o-group", topic, 0), "11")
        self.check(topic, ["commit0,commit2", "", ""])

    def tool(self, *args):
        run = real_kafka.run_class(TOOL_VERSION, "org.apache.kafka.tools.TransactionsCommand",
                                   ["--bootstrap-server", self.broker.bootstrap, *args])
        return [line.split() for line in run.stdout.decode().splitlines()]

    def operator(self):
        """Kafka's own tool looks at transactions and ends one that hangs."""
        j, topic = self.java, "hangs"
        j.producer("h", 600000)
        j("begin", "h")
        first = j("send", "h", topic, 0, "hung")
        listed = {row[0]: row for row in self.tool("list")[1:]}
        equal("state", listed["h"][3:], ["Ongoing"])
        described = self.tool("describe", "--transactional-id", "h")
        equal("described", [described[1][0], described[1][1], described[1][4], described[1][-1]],
              [listed["h"][1], "h", "Ongoing", topic + "-0"])
        producers = self.tool("describe-producers", "--topic", topic, "--partition", "0")
        equal("open since", producers[1][-1], first)
        equal("hanging", self.tool("find-hanging", "--broker-id", "1")[1:], [])
        self.tool("abort", "--topic", topic, "--partition", "0", "--start-offset", first)
        producers = self.tool("describe-producers", "--topic", topic, "--partition", "0")
        equal("open since", producers[1][-1], "None")
        self.check(topic, ["", "", ""], ["hung", "", ""])

    def librdkafka(self):
        run = subprocess.run([clients.python_client(), "-c", CONFLUENT, self.broker.bootstrap],
                             capture_output=True, text=True, timeout=90)
        if run.returncode:
            raise AssertionError(run.stderr[-2000:])
        self.check("confluent", ["c0,c2,kept", "", ""], ["c0,a1,c2,lost,kept", "", ""])
        equal("offsets", self.java("committed", "confluent-group", "confluent", 0), "3")
        return run.stdout.strip()

    def count_words(self, n):
        state = os.path.join(self.tests.folder, f"streams-{n}")
        with open(os.path.join(self.tests.folder, f"streams-{n}.log"), "ab") as errors:
            return process.child(
                [*builds.streams(TOOL_VERSION), self.broker.bootstrap,
                 f"member:words:words-app:classic:output=word-counts:state={state}:"
                 "guarantee=exactly_once_v2"], errors, stdin=subprocess.PIPE)

    def await_count(self, wanted):
        def counts():
            values = self.java("read", "word-counts", 3, "read_committed")
            return [int(v) for part in values.split() for v in part.split(":")[1].split(",") if v]
        process.wait_for(f"{wanted} words", lambda: (counts() or [0])[-1] >= wanted, 90, 0.5)
        # What was counted twice would be too many, or be told twice.
        equal("counts", counts(), sorted(set(counts())))
        equal("the last", counts()[-1], wanted)

    def streams(self):
        """Kafka Streams counts exactly once, whoever dies."""
        j = self.java
        j.producer("words", 60000)

        def write():
            j("begin", "words")
            for n in range(60):
                j("post", "words", "words", n % 3, "w")
            j("commit", "words")
        for topic in "words", "word-counts":
            j("read", topic, 3, "read_committed")  # makes it
        one = self.count_words(1)
        write()
        self.await_count(60)
        write()
        time.sleep(0.4)  # Some of it is counted, and not committed.
        process.end(one, 9)
        one = self.count_words(2)
        self.await_count(120)
        write()
        time.sleep(0.4)
        self.kill_broker()
        self.broker.start()
        self.await_count(180)
        write()
        self.await_count(240)
        process.end(one, 9)


def make(version):
    def build(tests):
        w = World(tests, version)
        tests.test("start", needed=True)(w.start)
        tests.test("commit and abort")(w.commit_and_abort)
        tests.test("many records in many transactions")(w.many_in_one)
        tests.test("a zombie is fenced")(w.zombie)
        tests.test("a transaction that runs too long is aborted")(w.timeout)
        tests.test("a transaction that was left open is ended by the next producer")(w.left_open)
        if os.environ.get("TESTS_BROKER") != "kafka":
            tests.test("the broker is killed in the middle")(w.restart)
            tests.test("the broker is killed at commits")(w.storm)
        tests.test("offsets are committed in transactions")(w.offsets)
        if version == TOOL_VERSION:
            tests.test("kafka-transactions looks, and ends what hangs")(w.operator)
            tests.test("librdkafka")(w.librdkafka)
            tests.test("Kafka Streams counts exactly once")(w.streams)
        return w.clean
    return build


differential = comparison.suite_of(transactions.CASES, tables.TRANSACTION_APIS,
                                   settings=transactions.KAFKA_SETTINGS, ours=transactions.SETTINGS)

if __name__ == "__main__":
    sys.exit(suite.main({"differential-transactions": differential,
                         **{f"transactions-{v}": make(v) for v in ("4.4.0", "2.8.2")}}))
