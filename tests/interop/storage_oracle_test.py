#!/usr/bin/env python3
"""Kafka's dump tool and log loader read the files of a broker that clients wrote to.

    storage_oracle_test.py [--list] [NAME...]
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from lib import clients, scenario, storage_oracle, suite, wire
from lib.calque import Calque
from lib.suite import equal

TOPICS = {"one": 1, "three": 3, "sixteen": 16, "append-time": 1}
PARTITIONS = [(t, p) for t in TOPICS for p in range(TOPICS[t])]


def log_ends(bootstrap):
    with wire.Client(bootstrap) as client:
        return {tp: (client.list_offset(*tp, wire.EARLIEST)[1],
                     client.list_offset(*tp, wire.LATEST)[1]) for tp in PARTITIONS}


class Oracle:
    """The oracle itself: content with Kafka's own files, not with damaged ones."""

    def __init__(self, tests):
        self.tests, self.kafka = tests, None

    def clean(self):
        if self.kafka is not None:
            self.kafka.stop(kill=True)

    def content_with_kafkas_files(self):
        self.kafka = scenario.source("4.4.0", os.path.join(self.tests.folder, "kafka"))
        bootstrap = self.kafka.start()
        scenario.run_steps(bootstrap, 3, "topics", "records:20", "large")
        wanted = log_ends(bootstrap)
        self.kafka.stop()
        self.data = os.path.join(self.tests.folder, "kafka", "data-1")
        files = storage_oracle.check_with_dump(self.data)
        logs = storage_oracle.check_with_loader(self.data, wanted, self.tests.folder)
        return f"{files} files, {logs} logs"

    def finds_damage(self):
        """A flipped byte in a record, a wrong index entry and a lost tail are each found."""
        segment = "one-0/00000000000000000000"

        def flip(path, at):
            with open(path, "r+b") as f:
                f.seek(at)
                byte = f.read(1)[0]
                f.seek(at)
                f.write(bytes([byte ^ 1]))
        for file, at in ((segment + ".log", 300), (segment + ".index", 3)):
            path = os.path.join(self.data, file)
            flip(path, at)
            if not storage_oracle.dump_complaints([path]):
                raise AssertionError(f"byte {at} of {file} was changed unnoticed")
            flip(path, at)
        copy = os.path.join(self.tests.folder, "torn")
        shutil.copytree(os.path.join(self.data, "one-0"), os.path.join(copy, "one-0"))
        path = os.path.join(copy, segment + ".log")
        os.truncate(path, os.path.getsize(path) - 1)
        if not storage_oracle.dump_complaints([path]):
            raise AssertionError("a torn tail went unnoticed")
        end = storage_oracle.load("crashed", copy, {"one-0": 0})["one-0"][1]
        whole = storage_oracle.load("clean", self.data, {"one-0": 0})["one-0"][1]
        if end >= whole:
            raise AssertionError(f"a torn tail left the log end at {end}")


class Files:
    """A Calque that is a leader: written to by real clients, ended cleanly and by kill -9."""

    def __init__(self, tests):
        self.tests, self.calque = tests, None

    def clean(self):
        if self.calque is not None and self.calque.child is not None:
            self.calque.kill()

    def written_by_real_clients(self):
        self.calque = Calque(os.path.join(self.tests.folder, "calque"))
        bootstrap = self.calque.start()
        for topic, partitions in TOPICS.items():
            # Small segments, so that closed ones with all their files are looked at too.
            more = ["--config", "segment.bytes=1048576"] if topic == "one" else []
            if topic == "append-time":
                more += ["--config", "message.timestamp.type=LogAppendTime"]
            self.calque.cli("topic", "create", topic, "--partitions", str(partitions), *more)
        scenario.run_steps(bootstrap, 3, "records:20", "large", "records:20",
                           "idempotent:one:0:50")
        with wire.Client(bootstrap) as client:
            log = client.read_log("one", 0)
            equal("codecs of one-0", {b.codec for b in log}, set(wire.CODECS))
            if not all(b.log_append_time for b in client.read_log("append-time", 0)):
                raise AssertionError("append-time has batches with the time of their creation")

    def clients_read_what_was_written(self):
        for topic in TOPICS:
            with wire.Client(self.calque.bootstrap) as client:
                count = sum(b.count for b in client.read_log(topic, 0))
            equal(f"records of {topic} in the Python client", clients.with_python(
                self.calque.bootstrap, topic, 0).count(b"\n"), count + 1)
            clients.with_kcat(self.calque.bootstrap, topic, 0)

    def kafka_reads_the_files_of_a_clean_end(self):
        wanted = log_ends(self.calque.bootstrap)
        self.calque.stop()
        files = storage_oracle.check_with_dump(self.calque.data)
        logs = storage_oracle.check_with_loader(self.calque.data, wanted, self.tests.folder)
        segments = [n for n in os.listdir(os.path.join(self.calque.data, "one-0"))
                    if n.endswith(".log")]
        if len(segments) < 3:
            raise AssertionError(f"one-0 did not roll: {segments}")
        return f"{files} files, {logs} logs"

    def kafka_reads_the_files_after_kill_and_recovery(self):
        bootstrap = self.calque.start()
        before = log_ends(bootstrap)
        scenario.run_steps(bootstrap, 5, "records:10")
        acknowledged = log_ends(bootstrap)
        self.calque.kill()
        self.calque.start()
        equal("log ends after kill -9", log_ends(bootstrap), acknowledged)
        if acknowledged == before:
            raise AssertionError("nothing was written")
        self.calque.stop()
        storage_oracle.check_with_dump(self.calque.data)
        storage_oracle.check_with_loader(self.calque.data, acknowledged, self.tests.folder)


def make_oracle(tests):
    o = Oracle(tests)
    tests.test("content with Kafka's own files", needed=True)(o.content_with_kafkas_files)
    tests.test("finds damage")(o.finds_damage)
    return o.clean


def make_files(tests):
    f = Files(tests)
    tests.test("written by real clients", needed=True)(f.written_by_real_clients)
    tests.test("clients read what was written")(f.clients_read_what_was_written)
    tests.test("Kafka reads the files of a clean end", needed=True)(
        f.kafka_reads_the_files_of_a_clean_end)
    tests.test("Kafka reads the files after kill -9 and recovery")(
        f.kafka_reads_the_files_after_kill_and_recovery)
    return f.clean


if __name__ == "__main__":
    sys.exit(suite.main({"storage-oracle": make_oracle, "storage-files": make_files}))
