#!/usr/bin/env python3
"""Mirrors a real Kafka, looks at the copy from all sides, fails over.

    mirror_test.py [--list] [NAME...]     e.g. mirror-4.4.0, mirror-2.1.1
"""
import glob
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from lib import clients, process, scenario, storage_oracle, suite, wire
from lib.calque import Calque
from lib.scenario import OPEN_TRANSACTIONS, TOPICS
from lib.suite import equal

VERSIONS = ["4.4.0", "2.1.1"]
PARTITIONS = [(t, p) for t in TOPICS for p in range(TOPICS[t])]
MIRROR, BULK, BULK_PARTITIONS = "dr", "bulk", 6
KILLS, KILLS_WHILE_BEHIND, KILLS_MAX = 20, 8, 60
ABORT_MARKER, RESET_RECORD = 0, 7


def bytes_of(batches):
    return b"".join(b.data for b in batches)


def both(work):
    """Does the same on both sides at once; returns what each gave."""
    results, errors = {}, []

    def run(side):
        try:
            results[side] = work(side)
        except Exception as e:  # Handed on to the caller's thread below.
            errors.append(e)
    threads = [threading.Thread(target=run, args=(side,)) for side in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return results[0], results[1]


class Proof:
    """One source release and one copy, through the life of a mirror."""

    def __init__(self, version, tests):
        self.version, self.tests = version, tests
        self.kafka = self.calque = self.logs = None
        self.bulk_producer = None

    def clean(self):
        for child in (self.calque, self.kafka):
            if child is not None:
                try:
                    child.kill() if isinstance(child, Calque) else child.stop(kill=True)
                except AttributeError:
                    pass  # It is not running.

    def addresses(self):
        return self.kafka.bootstrap, self.calque.bootstrap

    # ---- the source ----

    def fill_source(self):
        self.kafka = scenario.source(self.version, os.path.join(self.tests.folder, "source"))
        bootstrap = scenario.fill(self.kafka)
        with wire.Client(bootstrap) as client:
            self.logs = scenario.await_quiet(client, TOPICS)
            self.require_variety(client)
        return f"{sum(len(bytes_of(l)) for l in self.logs.values()) >> 10} KiB in " \
               f"{len(PARTITIONS)} partitions"

    def require_variety(self, client):
        """The proof is worth what the source holds: fail when something of it is missing."""
        for topic in ("one", "three", "sixteen", "append-time"):
            log = self.logs[topic, 0]
            equal(f"codecs of {topic}", {b.codec for b in log}, set(wire.CODECS))
            if len({b.leader_epoch for b in log}) < scenario.RESTARTS + 1:
                raise AssertionError(f"too few leader epochs in {topic}")
        if not all(b.log_append_time for b in self.logs["append-time", 0]):
            raise AssertionError("append-time has batches with the time of their creation")
        if not any(len(b.data) > 900 << 10 for b in self.logs["one", 0]):
            raise AssertionError("there is no large batch")
        compacted = self.logs["compacted", 0]
        if sum(b.count for b in compacted) >= compacted[-1].last_offset + 1:
            raise AssertionError("the compacted topic has no gaps")
        for partition in range(3):
            log = self.logs["transactions", partition]
            equal("kinds of markers", {wire.control_type(b) for b in log if b.control}, {0, 1})
            end = client.list_offset("transactions", partition, wire.LATEST)[1]
            stable = client.list_offset("transactions", partition, wire.LATEST, isolation=1)[1]
            equal("an open transaction", stable < end, ("transactions", partition) in
                  OPEN_TRANSACTIONS)

    # ---- the copy ----

    def create_mirror(self):
        self.calque = Calque(os.path.join(self.tests.folder, "copy"))
        self.calque.start()
        self.calque.cli("mirror", "create", MIRROR, "--source", self.kafka.bootstrap, "--topics",
                        ",".join(TOPICS), "--wait", timeout=90)
        rows = self.calque.await_mirroring(MIRROR, len(PARTITIONS), seconds=1)
        equal("mirrored partitions", sorted((r["topic"], r["partition"]) for r in rows),
              sorted(PARTITIONS))

    def same_bytes(self):
        with wire.Client(self.kafka.bootstrap) as a, wire.Client(self.calque.bootstrap) as b:
            for topic, partition in PARTITIONS:
                self.same_partition(a, b, topic, partition)

    def same_partition(self, a, b, topic, partition):
        source, copy = a.read_log(topic, partition), b.read_log(topic, partition)
        for ours, theirs in zip(copy, source):
            if ours.data != theirs.data:
                raise AssertionError(f"{topic}-{partition} differs at {theirs.base_offset}: "
                                     f"{ours} is not {theirs}"[:3000])
        equal(f"batches of {topic}-{partition}", len(copy), len(source))
        equal(f"bytes of {topic}-{partition}", bytes_of(copy) == bytes_of(source), True)

    def every_fetch_version(self):
        with wire.Client(self.calque.bootstrap) as client:
            for topic, partition in (("one", 0), ("transactions", 0), ("compacted", 0)):
                wanted = bytes_of(self.logs[topic, partition])
                for version in range(4, 12):
                    got = client.read_log(topic, partition, version=version)
                    equal(f"bytes of {topic} by Fetch v{version}", bytes_of(got) == wanted, True)
            one = client.read_log("one", 0, max_bytes=1000)
            equal("bytes with a limit smaller than a batch",
                  bytes_of(one) == bytes_of(self.logs["one", 0]), True)

    def same_offsets(self):
        with wire.Client(self.kafka.bootstrap) as a, wire.Client(self.calque.bootstrap) as b:
            for topic, partition in PARTITIONS:
                name, log = f"{topic}-{partition}", self.logs[topic, partition]
                stamps = sorted({t.max_timestamp for t in log})
                asked = [(wire.EARLIEST, 0), (wire.LATEST, 0), (wire.LATEST, 1), (0, 0)]
                asked += [(t + d, 0) for t in stamps[::max(1, len(stamps) // 5)] for d in (0, 1)]
                asked += [(stamps[-1], 0)] if stamps else []
                for timestamp, isolation in asked:
                    theirs = a.list_offset(topic, partition, timestamp, isolation)
                    ours = b.list_offset(topic, partition, timestamp, isolation)
                    equal(f"ListOffsets({timestamp}) of {name}", ours[:2], theirs[:2])
                    # Kafka 2.1 gives no epoch for the ends of a log.
                    if theirs[2] < 0 or not log:
                        continue
                    if timestamp == wire.LATEST:  # the leader's own epoch, never below the source's
                        if ours[2] < theirs[2]:
                            raise AssertionError(f"leader epoch of {name}: {ours[2]} < {theirs[2]}")
                        continue
                    # The cleaner took the first records: the source remembers the epoch of the log
                    # start, while a copy knows the epochs of what there is.
                    if timestamp == wire.EARLIEST and log[0].base_offset > theirs[1]:
                        continue
                    equal(f"epoch of ListOffsets({timestamp}) of {name}", ours[2], theirs[2])
                self.same_newest(a, b, topic, partition)

    def same_newest(self, a, b, topic, partition):
        stamp, offset, _ = b.list_offset(topic, partition, wire.MAX_TIMESTAMP)
        if a.versions[wire.LIST_OFFSETS][1] >= 7:
            equal(f"ListOffsets(max timestamp) of {topic}-{partition}", (stamp, offset),
                  a.list_offset(topic, partition, wire.MAX_TIMESTAMP)[:2])
            return
        log = self.logs[topic, partition]
        newest = max((t.max_timestamp for t in log), default=-1)
        equal(f"newest timestamp of {topic}-{partition}", stamp, newest)
        if log and not any(t.base_offset <= offset <= t.last_offset for t in log
                           if t.max_timestamp == newest):
            raise AssertionError(f"{topic}-{partition}: offset {offset} is not of the newest")

    def same_epochs(self):
        asked = 0
        with wire.Client(self.kafka.bootstrap) as a, wire.Client(self.calque.bootstrap) as b:
            for (topic, partition), log in self.logs.items():
                epochs = {t.leader_epoch for t in log}
                for epoch in sorted(epochs | {e + 1 for e in epochs if e != max(epochs)}):
                    asked += 1
                    equal(f"end of epoch {epoch} of {topic}-{partition}",
                          b.end_offset_for_epoch(topic, partition, epoch),
                          a.end_offset_for_epoch(topic, partition, epoch))
        return f"{asked} questions"

    def same_metadata(self):
        with wire.Client(self.kafka.bootstrap) as a, wire.Client(self.calque.bootstrap) as b:
            theirs, ours = a.metadata(list(TOPICS)), b.metadata(list(TOPICS))
            for topic in TOPICS:
                equal(f"partitions of {topic}", sorted(ours[topic]), sorted(theirs[topic]))
                for partition, (_, epoch) in theirs[topic].items():
                    if ours[topic][partition][1] < epoch:
                        raise AssertionError(f"{topic}-{partition}: leader epoch "
                                             f"{ours[topic][partition][1]}, source {epoch}")
            if a.cluster_id == b.cluster_id:
                raise AssertionError("the copy claims to be the source cluster")
            if self.version >= "2.8":
                equal("topic ids", b.topic_ids(list(TOPICS)), a.topic_ids(list(TOPICS)))

    # ---- clients ----

    def counted(self, topic, partition):
        return sum(b.count for b in self.logs[topic, partition] if not b.control)

    def kcat_reads_the_same(self):
        for topic, partition in PARTITIONS:
            for isolation in ("read_committed", "read_uncommitted")[:1 + (topic == "transactions")]:
                theirs, ours = both(lambda side: clients.with_kcat(
                    self.addresses()[side], topic, partition, isolation))
                equal(f"{topic}-{partition} {isolation} in kcat", ours == theirs, True)
                if self.counted(topic, partition) and not ours and topic != "transactions":
                    raise AssertionError(f"kcat got nothing of {topic}-{partition}")

    def python_reads_the_same(self):
        for topic, partition in PARTITIONS:
            if topic == "sixteen" and partition > 3:
                continue
            theirs, ours = both(lambda side: clients.with_python(
                self.addresses()[side], topic, partition, "read_committed"))
            equal(f"{topic}-{partition} in the Python client", ours == theirs, True)

    def console_consumer_reads_the_same(self):
        for topic in ("one", "compacted", "transactions"):
            theirs, ours = both(lambda side: clients.with_console_consumer(
                self.addresses()[side], topic, 0, self.counted(topic, 0)))
            equal(f"{topic}-0 in the console consumer", ours == theirs, True)
        if self.version < "3":
            theirs, ours = both(lambda side: clients.with_console_consumer(
                self.addresses()[side], "three", 0, self.counted("three", 0),
                version=self.version))
            equal("three-0 in the source's own console consumer", ours == theirs, True)

    def producer_is_refused(self):
        said = scenario.run_steps(self.calque.bootstrap, 7, "refused:one", timeout=60)
        if not said.startswith("refused PolicyViolationException") or MIRROR not in said:
            raise AssertionError(f"a producer before failover: {said}")
        seconds = int(said.split()[2].removesuffix("ms")) / 1000
        if seconds > 10:
            raise AssertionError(f"the refusal took {seconds} s: the client took it for transient")
        return said

    def verify_command(self):
        run = self.calque.cli("verify", "--source", self.kafka.bootstrap, "--target",
                              self.calque.bootstrap, "--topics", ",".join(TOPICS))
        return run.stdout[-300:]

    # ---- faults ----

    def bulk_ends(self, address):
        with wire.Client(address) as client:
            return sum(client.list_offset(BULK, p, wire.LATEST)[1]
                       for p in range(BULK_PARTITIONS))

    def source_dies_and_comes_back(self):
        """Killed while the copy is catching up; nobody tells the copy anything."""
        scenario.run_steps(self.kafka.bootstrap, 20, f"bulk:{BULK}:{BULK_PARTITIONS}:150:0")
        scenario.await_topics(self.kafka.bootstrap, {BULK: BULK_PARTITIONS})
        wanted = self.bulk_ends(self.kafka.bootstrap)
        self.calque.cli("mirror", "create", BULK, "--source", self.kafka.bootstrap, "--topics",
                        BULK)
        got = 0
        while got == 0:
            try:
                got = self.bulk_ends(self.calque.bootstrap)
            except wire.KafkaError:
                pass  # The topic is not there yet.
        self.kafka.stop_brokers(kill=True)
        if self.bulk_ends(self.calque.bootstrap) >= wanted:
            raise AssertionError("the copy had caught up before the source died")
        time.sleep(3)
        self.kafka.start()
        scenario.await_topics(self.kafka.bootstrap, {**TOPICS, BULK: BULK_PARTITIONS})
        self.calque.await_mirroring(BULK, BULK_PARTITIONS, seconds=60)
        self.calque.await_mirroring(MIRROR, len(PARTITIONS), seconds=60)
        self.same_bulk()
        return f"killed after {got} of {wanted} records"

    def same_bulk(self):
        with wire.Client(self.kafka.bootstrap) as a, wire.Client(self.calque.bootstrap) as b:
            for partition in range(BULK_PARTITIONS):
                self.same_partition(a, b, BULK, partition)

    def bulk_bytes(self):
        """Bytes in the logs of the source and of the copy, which are the same when it has all.
        Asking the brokers instead takes longer than a catch-up does."""
        def size(folders):
            return sum(os.path.getsize(log) for folder in folders
                       for log in glob.glob(os.path.join(folder, f"{BULK}-*", "*.log")))
        return size(self.kafka.data_folders), size([self.calque.data])

    def await_catching_up(self, had, seconds):
        """Returns when the copy lacks something and has more than `had` bytes, or in vain."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            theirs, ours = self.bulk_bytes()
            if had < ours < theirs:
                return

    def killed_again_and_again(self):
        """kill -9 of the copy while the source is being written to; some hit its recovery."""
        chance, kills, behind = random.Random(4), 0, 0
        enough, problems = os.path.join(self.tests.folder, "enough"), []

        def write():
            try:
                scenario.run_steps(self.kafka.bootstrap, 21,
                                   f"bulk:{BULK}:{BULK_PARTITIONS}:4000:8:{enough}")
            except Exception as e:  # Handed on below.
                problems.append(e)
        began = self.bulk_ends(self.kafka.bootstrap)
        had = self.bulk_bytes()[1]
        producer = threading.Thread(target=write)
        producer.start()
        try:
            process.wait_for("the producer", lambda: problems or self.bulk_ends(
                self.kafka.bootstrap) > began, 60)
            while (kills < KILLS or behind < KILLS_WHILE_BEHIND) and kills < KILLS_MAX:
                if kills % 5 == 4:
                    time.sleep(chance.uniform(0.01, 0.1))
                else:
                    self.await_catching_up(had, seconds=5)
                    if kills % 2:  # In the middle of what comes later.
                        time.sleep(chance.uniform(0.1, 1.0))
                        self.await_catching_up(had, seconds=5)
                wanted = self.bulk_bytes()[0]
                self.calque.kill()
                had = self.bulk_bytes()[1]
                behind += had < wanted
                kills += 1
                time.sleep(chance.uniform(0, 0.5))  # There shall be something to catch up with.
                self.calque.spawn()
        finally:
            open(enough, "w").close()
            producer.join()
        if problems:
            raise problems[0]
        self.calque.await_ready()
        self.calque.await_mirroring(BULK, BULK_PARTITIONS, seconds=60)
        self.calque.await_mirroring(MIRROR, len(PARTITIONS), seconds=60)
        self.same_bulk()
        self.same_bytes()
        if behind < KILLS_WHILE_BEHIND:
            raise AssertionError(f"only {behind} of {kills} kills met a copy that was behind")
        return f"{behind} of {kills} kills met a copy that was behind"

    # ---- failover ----

    def fail_over(self):
        with wire.Client(self.kafka.bootstrap) as client:
            self.source_ends = {tp: client.list_offset(*tp, wire.LATEST)[1] for tp in PARTITIONS}
            self.source_epochs = {tp: client.metadata([tp[0]])[tp[0]][tp[1]][1]
                                  for tp in PARTITIONS}
        self.kafka.stop(kill=True)
        time.sleep(1)
        began = time.monotonic()
        self.calque.cli("mirror", "stop", MIRROR, "--wait", timeout=30)
        took = time.monotonic() - began
        self.calque.cli("mirror", "stop", BULK, "--wait", timeout=30)
        equal("states", {r["state"] for r in self.calque.describe(MIRROR)}, {"STOPPED"})
        if took >= 10:
            raise AssertionError(f"stop took {took:.1f} s")
        return f"stop with a dead source took {took:.2f} s"

    def tail_of_the_logs(self):
        """Abort markers, then one reset record, in a leader epoch that the source never had."""
        with wire.Client(self.calque.bootstrap) as client:
            for tp in PARTITIONS:
                aborts = OPEN_TRANSACTIONS.get(tp, 0)
                end = client.list_offset(*tp, wire.LATEST)[1]
                equal(f"log end of {tp}", end, self.source_ends[tp] + aborts + 1)
                equal(f"last stable offset of {tp}", client.list_offset(*tp, wire.LATEST, 1)[1],
                      end)
                batches = client.read_log(*tp)
                ours = [b for b in batches if b.base_offset >= self.source_ends[tp]]
                equal(f"control records at the end of {tp}", [wire.control_type(b) for b in ours],
                      [ABORT_MARKER] * aborts + [RESET_RECORD])
                if min(b.leader_epoch for b in ours) <= self.source_epochs[tp]:
                    raise AssertionError(f"{tp}: local records in a leader epoch of the source")
                equal(f"mirrored bytes of {tp}", bytes_of(batches[:-len(ours)]) ==
                      bytes_of(self.logs[tp]), True)

    def producer_continues_at_the_end(self):
        with wire.Client(self.calque.bootstrap) as client:
            places = [("one", 0), ("transactions", 0), ("transactions", 2), ("compacted", 0)]
            ends = {tp: client.list_offset(*tp, wire.LATEST)[1] for tp in places}
        # Several producers: their ids begin where the mirrored ones began, at 0.
        steps = [f"idempotent:{t}:{p}:4" for t, p in places if t != "compacted"] * 3
        said = scenario.run_steps(self.calque.bootstrap, 30, *steps).split("\n")
        for tp in places[:3]:
            lines = [said[i] for i, s in enumerate(steps)
                     if s.startswith(f"idempotent:{tp[0]}:{tp[1]}")]
            offsets = [int(w) for line in lines for w in line.split()[1:]]
            equal(f"offsets written to {tp}", offsets, list(range(ends[tp], ends[tp] + 12)))

    def committed_reader_comes_to_the_end(self):
        for partition in range(3):
            read = clients.with_python(self.calque.bootstrap, "transactions", partition,
                                       "read_committed")
            with wire.Client(self.calque.bootstrap) as client:
                end = client.list_offset("transactions", partition, wire.LATEST)[1]
            equal("end of the partition", read.splitlines()[-1], f"end {end}".encode())

    def restart_keeps_all(self):
        def read():
            with wire.Client(self.calque.bootstrap) as client:
                return {tp: bytes_of(client.read_log(*tp)) for tp in PARTITIONS}
        before = read()
        self.calque.stop()
        self.calque.start()
        after = read()
        equal("changed partitions", [tp for tp in PARTITIONS if before[tp] != after[tp]], [])
        equal("states", {r["state"] for r in self.calque.describe(MIRROR)}, {"STOPPED"})

    def kafka_reads_our_files(self):
        with wire.Client(self.calque.bootstrap) as client:
            wanted = {tp: (client.list_offset(*tp, wire.EARLIEST)[1],
                           client.list_offset(*tp, wire.LATEST)[1]) for tp in PARTITIONS}
        self.calque.stop()
        dumped = storage_oracle.check_with_dump(self.calque.data)
        loaded = storage_oracle.check_with_loader(
            self.calque.data, wanted, self.tests.folder, producers=False)
        return f"{dumped} files dumped, {loaded} logs loaded"


def make(version):
    def build(tests):
        p = Proof(version, tests)
        steps = [
            (p.fill_source, True), (p.create_mirror, True), (p.same_bytes, False),
            (p.every_fetch_version, False), (p.same_offsets, False), (p.same_epochs, False),
            (p.same_metadata, False), (p.kcat_reads_the_same, False),
            (p.python_reads_the_same, False), (p.console_consumer_reads_the_same, False),
            (p.producer_is_refused, False), (p.verify_command, False),
            (p.source_dies_and_comes_back, False), (p.killed_again_and_again, False),
            (p.fail_over, True), (p.tail_of_the_logs, False),
            (p.producer_continues_at_the_end, False),
            (p.committed_reader_comes_to_the_end, False), (p.restart_keeps_all, False),
            (p.kafka_reads_our_files, False)]
        for body, needed in steps:
            tests.test(body.__name__.replace("_", " "), needed)(body)
        return p.clean
    return build


if __name__ == "__main__":
    sys.exit(suite.main({f"mirror-{v}": make(v) for v in VERSIONS}))
