#!/usr/bin/env python3
"""Consumer groups of a real Kafka go on here after a failover, at their next record.

    group_sync_test.py [--list] [NAME...]     e.g. group-sync-4.4.0, group-sync-2.1.1
"""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from lib import calque as calque_program
from lib import clients, process, real_kafka, scenario, suite, wire
from lib.calque import Calque
from lib.suite import equal

VERSIONS = ["4.4.0", "2.1.1"]
TOOLS = "4.4.0"
GROUP_COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
PARTITIONS, RECORDS, HALF = 3, 300, 150
OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR = 8, 9, 10
REQUEST_TIMED_OUT = 7

# Reads so many records in a group, commits each with its epoch and a metadata text, says which.
READ_SOME = r'''
import sys, time
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
bootstrap, group, topic, count, linger = sys.argv[1:]
c = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "enable.auto.commit": False,
              "auto.offset.reset": "earliest", "session.timeout.ms": 6000})
c.subscribe([topic])
left, idle = int(count), time.time() + 40
while left and time.time() < idle:
    m = c.poll(1)
    if m is None or m.error():
        continue
    print(m.partition(), m.offset(), flush=True)
    left -= 1
    epoch = m.leader_epoch()
    at = TopicPartition(topic, m.partition(), m.offset() + 1, "after %d" % m.offset(),
                        -1 if epoch is None else epoch)
    while True:
        try:
            c.commit(offsets=[at], asynchronous=False)
            break
        except KafkaException as e:  # A slow machine's broker did not get it done in time.
            if e.args[0].code() != KafkaError.REQUEST_TIMED_OUT or time.time() > idle:
                raise
print("end", flush=True)
while linger == "stay":
    c.poll(1)
c.close()
'''


def places(text):
    return [tuple(int(w) for w in line.split()) for line in text.splitlines()
            if line and line[0].isdigit()]


def read_with_python(bootstrap, group, topic, count):
    run = subprocess.run([clients.python_client(), "-c", READ_SOME, bootstrap, group, topic,
                          str(count), "leave"], capture_output=True, text=True, timeout=90)
    found = places(run.stdout)
    if run.returncode or len(found) != count:
        raise AssertionError(f"{group} read {len(found)} of {count} at {bootstrap}: "
                             f"{run.stderr[-1500:]}")
    return found


def read_with_java(bootstrap, group, topic, count):
    """Kafka's console consumer. It commits, when it ends, what it printed."""
    run = real_kafka.run_class(TOOLS, CONSOLE, [
        "--bootstrap-server", bootstrap, "--topic", topic, "--group", group, "--from-beginning",
        "--max-messages", str(count), "--timeout-ms", "40000", "--property", "print.value=false",
        "--property", "print.partition=true", "--property", "print.offset=true"], timeout=120)
    found = []
    for line in run.stdout.decode(errors="replace").splitlines():
        words = dict(w.split(":", 1) for w in line.split("\t") if ":" in w)
        if "Partition" in words and "Offset" in words:
            found.append((int(words["Partition"]), int(words["Offset"])))
    if len(found) != count:
        raise AssertionError(f"{group} read {len(found)} of {count} at {bootstrap}: "
                             f"{run.stderr[-1500:].decode(errors='replace')}")
    return found


def coordinator(bootstrap, group):
    def found():
        with wire.Connection(bootstrap.split(",")[0]) as c:
            r = c.call(FIND_COORDINATOR, 1, wire.Writer().string(group).put("b", 0))
            r.take("i")
            error, _text, _node = r.take("h"), r.string(), r.take("i")
            host, port = r.string(), r.take("i")
            return None if error else f"{host}:{port}"
    return process.wait_for(f"the coordinator of {group}", found, 60)


def committed(bootstrap, group):
    """{(topic, partition): (offset, leader epoch, metadata)}"""
    def found():
        with wire.Connection(coordinator(bootstrap, group)) as c:
            r = c.call(OFFSET_FETCH, 5, wire.Writer().string(group).put("i", -1))
            r.take("i")
            table = {}
            for _ in range(r.take("i")):
                topic = r.string()
                for _ in range(r.take("i")):
                    partition, offset, epoch = r.take("iqi")
                    text, error = r.string(), r.take("h")
                    equal(f"error of {topic}-{partition}", error, 0)
                    table[topic, partition] = (offset, epoch, text)
            error = r.take("h")
            return None if error else (table,)
    return process.wait_for(f"the offsets of {group}", found, 60)[0]


def commit(bootstrap, group, topic, partition, offset, text="by hand"):
    process.wait_for(f"the commit of {group}",
                     lambda: try_to_commit(bootstrap, group, topic, partition, offset, text), 60)


def try_to_commit(bootstrap, group, topic, partition, offset, text):
    with wire.Connection(coordinator(bootstrap, group)) as c:
        body = wire.Writer().string(group).put("i", -1).string("").put("i", 1).string(topic)
        body.put("iiqi", 1, partition, offset, -1).string(text)
        r = c.call(OFFSET_COMMIT, 6, body)
        r.take("i")
        r.take("i")
        r.string()
        r.take("i")
        _partition, error = r.take("ih")
        if error not in (0, REQUEST_TIMED_OUT):
            raise wire.KafkaError(error, f"OffsetCommit of {group}")
        return error == 0


def current_offsets(bootstrap, group):
    """What kafka-consumer-groups shows: {(topic, partition): CURRENT-OFFSET}"""
    out = real_kafka.run_class(TOOLS, GROUP_COMMAND, [
        "--bootstrap-server", bootstrap, "--describe", "--group", group]).stdout.decode()
    rows = [line.split() for line in out.splitlines() if line.startswith(group + " ")]
    if not rows:
        raise AssertionError(f"{bootstrap} shows nothing of {group}:\n{out}")
    return {(r[1], int(r[2])): r[3] for r in rows}


class Proof:
    def __init__(self, version, tests):
        self.version, self.tests = version, tests
        self.kafka = self.calque = self.live = None
        self.read = {}

    def clean(self):
        if self.live is not None:
            process.end(self.live, signal.SIGKILL)
        if self.calque is not None and self.calque.child is not None:
            self.calque.kill()
        if self.kafka is not None:
            self.kafka.stop(kill=True)

    def at_source(self, *args):
        run = subprocess.run([calque_program.BINARY, *args, "--bootstrap-server",
                              self.kafka.bootstrap], capture_output=True, text=True, timeout=120)
        if run.returncode:
            raise AssertionError(f"calque {' '.join(args)}: {run.stderr}")
        return run.stdout

    def produce(self, topic, records=RECORDS, *more):
        self.at_source("sample", "produce", "--topic", topic, "--records", str(records),
                       "--record-size", "10000", *more)

    def end_at_source(self, topic, partition=0):
        with wire.Client(self.kafka.bootstrap) as client:
            return client.list_offset(topic, partition, wire.LATEST)[1]

    def groups(self, mirror):
        rows = self.calque.json("mirror", "describe", mirror, "--groups")
        return {r["group"]: r for r in rows}

    def await_group(self, mirror, group, what, condition):
        def come():
            row = self.groups(mirror).get(group)
            return row is not None and condition(row)
        try:
            process.wait_for(what, come, 60, 0.3)
        except AssertionError as e:
            raise AssertionError(f"{e}: {self.groups(mirror)}\n{process.tail(self.calque.log)}"
                                 ) from None

    def create(self, mirror, topic, groups, refresh_ms):
        self.calque.cli("mirror", "create", mirror, "--source", self.kafka.bootstrap, "--topics",
                        topic, "--groups", groups, "--config",
                        f"metadata.refresh.interval.ms={refresh_ms}", "--wait", timeout=90)

    # ---- in order ----

    def fill_source(self):
        self.kafka = scenario.source(self.version, os.path.join(self.tests.folder, "source"))
        self.kafka.start()
        topics = {"orders": PARTITIONS, "late": PARTITIONS, "lost": PARTITIONS, "ahead": 1}
        for topic, partitions in topics.items():
            self.produce(topic, RECORDS, "--create-partitions", str(partitions))
        scenario.await_topics(self.kafka.bootstrap, topics)

    def groups_read_half(self):
        source = self.kafka.bootstrap
        for group, topic, reader in (("py-orders", "orders", read_with_python),
                                     ("java-orders", "orders", read_with_java),
                                     ("py-late", "late", read_with_python),
                                     ("java-lost", "lost", read_with_java)):
            self.read[group] = reader(source, group, topic, HALF)
        commit(source, "other-orders", "orders", 0, 7)

    def mirror_takes_them_over(self):
        self.calque = Calque(os.path.join(self.tests.folder, "copy"))
        self.calque.start()
        self.create("dr", "orders", "py-.*,java-orders", 1000)
        for group in ("py-orders", "java-orders"):
            self.await_group("dr", group, f"{group} to be here",
                             lambda r: r["clamped"] == 0 and r["offsets"] == len(
                                 committed(self.kafka.bootstrap, group)))
            theirs, ours = (committed(side, group) for side in (self.kafka.bootstrap,
                                                                self.calque.bootstrap))
            equal(f"offsets, epochs and metadata of {group}", ours, theirs)
        if not any(epoch >= 0 for _, epoch, _ in ours.values()) and self.version >= "4":
            raise AssertionError("no leader epoch was committed at the source")
        equal("what was left out", committed(self.calque.bootstrap, "other-orders"), {})
        # Of a group with offsets in several topics only those of the mirror's.
        equal("topics of py-late", committed(self.calque.bootstrap, "py-late"), {})
        listed = {r["mirror"]: r for r in self.calque.json("mirror", "list")}
        equal("patterns", listed["dr"]["groups"], "py-.*,java-orders")

    def tools_show_the_same(self):
        for group in ("py-orders", "java-orders"):
            equal(f"CURRENT-OFFSET of {group}", current_offsets(self.calque.bootstrap, group),
                  current_offsets(self.kafka.bootstrap, group))
            rows = self.calque.json("group", "describe", group)["offsets"]
            equal(f"'calque group describe {group}'",
                  {(r["topic"], r["partition"]): str(r["committedOffset"]) for r in rows},
                  current_offsets(self.calque.bootstrap, group))
            for row in rows:
                end = self.end_at_source("orders", row["partition"])
                equal(f"lag of {group} in {row['partition']}", row["lag"],
                      end - row["committedOffset"])
            if group not in self.at_source("group", "list"):
                raise AssertionError(f"{group} is not listed at the source")

    def offsets_ahead_are_clamped(self):
        end = self.end_at_source("ahead")
        commit(self.kafka.bootstrap, "far-ahead", "ahead", 0, end + 50)
        self.create("ahead", "ahead", "far-.*", 1000)
        self.await_group("ahead", "far-ahead", "it to be clamped",
                         lambda r: (r["clamped"], r["behind"]) == (1, 50))
        equal("clamped", committed(self.calque.bootstrap, "far-ahead")["ahead", 0][0], end)
        self.produce("ahead", 80)
        self.await_group("ahead", "far-ahead", "it to be raised", lambda r: r["clamped"] == 0)
        equal("raised", committed(self.calque.bootstrap, "far-ahead")["ahead", 0],
              (end + 50, -1, "by hand"))

    def live_members_are_left_alone(self):
        log = os.path.join(self.tests.folder, "live.log")
        self.live = process.start([clients.python_client(), "-c", READ_SOME, self.calque.bootstrap,
                                   "py-live", "orders", "10", "stay"], log)
        process.wait_for("the consumer here", lambda: "end" in process.tail(log), 60)
        mine = committed(self.calque.bootstrap, "py-live")
        for partition in range(PARTITIONS):
            commit(self.kafka.bootstrap, "py-live", "orders", partition, 40)
        self.await_group("dr", "py-live", "the refusal to be told",
                         lambda r: "members here" in (r["errorMessage"] or ""))
        time.sleep(3)
        equal("its offsets here", committed(self.calque.bootstrap, "py-live"), mine)
        refused = self.calque.cli("group", "reset", "py-live", "--to-earliest", "--execute",
                                  check=False)
        equal("reset of a live group", refused.returncode, 1)
        refused = self.calque.cli("group", "delete", "py-live", check=False)
        equal("deletion of a live group", refused.returncode, 1)
        process.end(self.live, signal.SIGTERM)
        self.live = None

    def last_round_of_a_stop(self):
        """Committed after the last periodic round; only the failover itself can bring it here."""
        self.create("late", "late", "py-late", 600000)
        self.await_group("late", "py-late", "the first rounds",
                         lambda r: r["offsets"] and r["clamped"] == 0)
        time.sleep(1)
        self.read["py-late"] += read_with_python(self.kafka.bootstrap, "py-late", "late", 30)
        theirs = committed(self.kafka.bootstrap, "py-late")
        if committed(self.calque.bootstrap, "py-late") == theirs:
            raise AssertionError("a periodic round was faster: nothing is proved")
        self.calque.cli("mirror", "stop", "late", "--wait", timeout=60)
        equal("offsets after the stop", committed(self.calque.bootstrap, "py-late"), theirs)
        # And nothing is taken over after it.
        commit(self.kafka.bootstrap, "py-late", "late", 0, 1)
        time.sleep(3)
        equal("offsets later", committed(self.calque.bootstrap, "py-late"), theirs)

    def goes_on(self, group, topic, reader):
        before = self.read[group]
        after = reader(self.calque.bootstrap, group, topic, RECORDS - len(before))
        twice = set(before) & set(after)
        equal(f"records that {group} read twice", sorted(twice)[:5], [])
        equal(f"records that {group} read", len(set(before) | set(after)), RECORDS)

    def programs_go_on_here(self):
        self.calque.cli("mirror", "stop", "dr", "--wait", timeout=60)
        self.goes_on("py-late", "late", read_with_python)
        self.goes_on("py-orders", "orders", read_with_python)
        self.goes_on("java-orders", "orders", read_with_java)

    def source_is_dead_at_the_stop(self):
        self.create("lost", "lost", "java-lost", 1000)
        self.await_group("lost", "java-lost", "the first round",
                         lambda r: r["offsets"] and r["clamped"] == 0)
        theirs = committed(self.kafka.bootstrap, "java-lost")
        self.kafka.stop(kill=True)
        self.kafka = None
        began = time.monotonic()
        self.calque.cli("mirror", "stop", "lost", "--wait", timeout=30)
        took = time.monotonic() - began
        if took >= 10:
            raise AssertionError(f"stop took {took:.1f} s")
        equal("offsets of the last round", committed(self.calque.bootstrap, "java-lost"), theirs)
        self.goes_on("java-lost", "lost", read_with_java)
        return f"stop took {took:.2f} s"

    def restart_keeps_all(self):
        groups = ["py-late", "py-orders", "java-orders", "java-lost", "far-ahead"]
        before = {g: committed(self.calque.bootstrap, g) for g in groups}
        self.calque.kill()
        self.calque.start()
        equal("offsets after kill -9", {g: committed(self.calque.bootstrap, g) for g in groups},
              before)

    def group_commands(self):
        def now():
            return {k: v[0] for k, v in committed(self.calque.bootstrap, "py-orders").items()}
        before = now()
        reset = ["group", "reset", "py-orders"]
        plan = self.calque.json(*reset, "--to-earliest")
        equal("plan", {r["after"] for r in plan["offsets"]}, {0})
        equal("after a dry run", now(), before)
        self.calque.cli(*reset, "--topic", "orders:0", "--shift-by", "-10", "--execute")
        equal("shifted", now(), {**before, ("orders", 0): before["orders", 0] - 10})
        self.calque.cli(*reset, "--topic", "orders:0,1", "--to-offset", "3", "--execute")
        self.calque.cli(*reset, "--topic", "orders:2", "--to-datetime", "1970-01-01T00:00:00Z",
                        "--execute")
        equal("moved", now(), {("orders", 0): 3, ("orders", 1): 3, ("orders", 2): 0})
        self.calque.cli(*reset, "--to-latest", "--execute")
        rows = self.calque.json("group", "describe", "py-orders")["offsets"]
        equal("lag at the end", {r["lag"] for r in rows}, {0})
        self.calque.cli("group", "delete", "py-orders")
        names = [r["group"] for r in self.calque.json("group", "list")]
        equal("listed after its deletion", "py-orders" in names, False)
        equal("another one", "java-orders" in names, True)
        gone = self.calque.cli("group", "describe", "py-orders", check=False)
        equal("exit code", gone.returncode, 1)


def make(version):
    def build(tests):
        p = Proof(version, tests)
        steps = [
            (p.fill_source, True), (p.groups_read_half, True), (p.mirror_takes_them_over, True),
            (p.tools_show_the_same, False), (p.offsets_ahead_are_clamped, False),
            (p.live_members_are_left_alone, False), (p.last_round_of_a_stop, False),
            (p.programs_go_on_here, False), (p.source_is_dead_at_the_stop, False),
            (p.restart_keeps_all, False), (p.group_commands, False)]
        for body, needed in steps:
            tests.test(body.__name__.replace("_", " "), needed)(body)
        return p.clean
    return build


if __name__ == "__main__":
    sys.exit(suite.main({f"group-sync-{v}": make(v) for v in VERSIONS}))
