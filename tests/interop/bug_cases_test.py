#!/usr/bin/env python3
"""What brokers and mirrors before this one got wrong, tried on the running program.

    bug_cases_test.py [--list] [NAME...]
"""
import collections
import contextlib
import os
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from lib import clients, process, scenario, suite, wire
from lib.calque import Calque
from lib.differential import broker as differential_broker
from lib.differential import codec, fetch, groups, produce, records
from lib.differential.broker import Broker
from lib.suite import equal

FRAME_BYTES_MAX = 100 << 20  # socket.request.max.bytes


class OneBroker:
    def __init__(self, tests):
        self.tests, self.calque = tests, None

    def clean(self):
        if self.calque is not None and self.calque.child is not None:
            self.calque.kill()


class Clients(OneBroker):
    """A broker without a mirror, and clients that are new, old, greedy or none at all."""

    def start(self):
        self.calque = Calque(os.path.join(self.tests.folder, "calque"))
        self.calque.start()
        self.calque.cli("topic", "create", "t", "--partitions", "1")

    def on_a_running_broker(self, body):
        """One test that ends the broker must not be the end of all others."""
        def run():
            if self.calque.child is None or self.calque.child.poll() is not None:
                self.calque.start()
            return body()
        return run

    def memory(self):
        with open(f"/proc/{self.calque.child.pid}/status") as f:
            return int(next(l for l in f if l.startswith("VmRSS:")).split()[1]) << 10

    def send(self, *pieces):
        """Sends bytes on a connection of their own; what comes back until the other side closes,
        or for a second."""
        with socket.create_connection(("127.0.0.1", self.calque.port), 5) as s:
            answer = b""
            try:
                for piece in pieces:
                    s.sendall(piece)
                s.settimeout(1)
                while piece := s.recv(65536):
                    answer += piece
            except TimeoutError:
                return answer, False
            except OSError:
                pass  # Closed by the broker, which is one of the right answers.
            return answer, True

    def alive(self):
        with wire.Connection(self.calque.bootstrap) as c:
            if not c.api_versions():
                raise AssertionError("the broker does not answer any more")

    def grows_less_than(self, mebibytes, *pieces, times=1):
        before = self.memory()
        sockets = []
        for _ in range(times):
            s = socket.create_connection(("127.0.0.1", self.calque.port), 10)
            sockets.append(s)
            try:
                for piece in pieces:
                    s.sendall(piece)
            except OSError:
                pass  # The broker had seen enough.
        time.sleep(0.5)
        grown = self.memory() - before
        for s in sockets:
            s.close()
        if grown > mebibytes << 20:
            raise AssertionError(f"memory grew by {grown >> 20} MiB")
        self.alive()
        return f"{grown >> 10} KiB"

    def newer_api_versions(self):
        with wire.Connection(self.calque.bootstrap) as c:
            r = c.call(wire.API_VERSIONS, 127, wire.Writer().raw(b"\xff" * 9), flexible=True)
            equal("error of ApiVersions v127", r.take("h"), 35)
            ranges = {}
            for _ in range(r.take("i")):
                key, low, high = r.take("hhh")
                ranges[key] = (low, high)
            r.done()
            low, high = ranges[wire.API_VERSIONS]
            if low != 0 or high < 3:
                raise AssertionError(f"ApiVersions {low} to {high} in the refusal")
            body = wire.Writer().compact_string("tests").compact_string("1").tags()
            equal("ApiVersions v3 on the same connection",
                  c.call(wire.API_VERSIONS, 3, body, flexible=True).take("h"), 0)

    def produce_is_shown_from_0(self):
        with wire.Connection(self.calque.bootstrap) as c:
            equal("lowest Produce", c.api_versions()[wire.PRODUCE][0], 0)
        for codec in ("gzip", "snappy", "lz4", "zstd"):
            run = subprocess.run(["kcat", "-P", "-b", self.calque.bootstrap, "-t", "t", "-p", "0",
                                  "-z", codec], input=b"x" * 1024, capture_output=True, timeout=60)
            equal(f"exit status of kcat ({run.stderr[:300]})", run.returncode, 0)
            with wire.Client(self.calque.bootstrap) as client:
                equal("codec", client.read_log("t", 0)[-1].codec, codec)

    def no_null_records(self):
        with wire.Client(self.calque.bootstrap) as client:
            end = client.list_offset("t", 0, wire.LATEST)[1]
            for version in range(4, 12):
                try:
                    client.fetch("t", 0, 10 ** 9, version=version, max_wait_ms=0)
                    raise AssertionError("offset 10^9 was found")
                except wire.KafkaError as e:
                    equal("error", e.code, 1)
                data = client.fetch("t", 0, end, version=version, max_wait_ms=0)[3]
                equal("records at the log end", data, b"")

    def large_first_batch(self):
        self.calque.cli("sample", "produce", "--topic", "large", "--records", "1",
                        "--record-size", "900000", "--create-partitions", "1")
        with wire.Client(self.calque.bootstrap) as client:
            data = client.fetch("large", 0, 0, max_bytes=1)[3]
            equal("whole batches with max_bytes=1", len(list(wire.parse_batches(data))), 1)

    def a_client_that_needs_newer_fetch(self):
        """confluent-kafka 2.6.0, whose library knew Fetch only from 2.7 on."""
        self.calque.cli("sample", "produce", "--topic", "newer", "--records", "10",
                        "--create-partitions", "1")
        said = clients.with_python(self.calque.bootstrap, "newer", 0,
                                   requirement="confluent-kafka==2.6.0").split(b"\n")
        equal("records and the end", (len([l for l in said if l]), said[-2]), (11, b"end 10"))

    def times_inside_a_batch(self):
        """One batch of twelve records of the times 1 to 12, asked for with kcat."""
        twelve = [(t, None, b"v") for t in range(1, 13)]
        with self.raw() as broker:
            for name, gzip in (("times", 0), ("times-gzip", 1)):
                broker.topic(name)
                fetch.fill(broker, name, 0, records.batch(*twelve, codec=gzip))
        for name in ("times", "times-gzip"):
            for time_ms, offset in ((0, 0), (1, 0), (5, 4), (12, 11), (13, -1)):
                run = subprocess.run(["kcat", "-Q", "-b", self.calque.bootstrap, "-t",
                                      f"{name}:0:{time_ms}"], capture_output=True, timeout=60)
                said = run.stdout.decode().strip()
                if not said.endswith(f"offset {offset}"):
                    raise AssertionError(f"time {time_ms} of {name}: {said} "
                                         f"{run.stderr.decode()}, wanted offset {offset}")

    def a_resend_is_stored_once(self):
        """The answer is lost, once with the connection, once with the broker's process."""
        def send(broker, sequence):
            data = records.batch((1000, None, b"%d" % sequence), producer_id=4711,
                                 producer_epoch=0, base_sequence=sequence)
            sent = broker.send("Produce", 9, produce.request([("resent", 0, data)]))
            answer = broker.receive("Produce", 9, sent)["responses"][0]["partitionResponses"][0]
            equal(f"answer to sequence {sequence}", (answer["errorCode"], answer["baseOffset"]),
                  (0, sequence))
        with self.raw() as broker:
            broker.topic("resent")
        for sequence in range(6):
            with self.raw() as broker:
                send(broker, sequence)
            if sequence % 2:
                self.calque.kill()
                self.calque.start()
            for again in range(max(0, sequence - 4), sequence + 1):
                with self.raw() as broker:
                    send(broker, again)
        with wire.Client(self.calque.bootstrap) as client:
            equal("records", sum(b.count for b in client.read_log("resent", 0)), 6)

    @contextlib.contextmanager
    def raw(self):
        broker = Broker("Calque", self.calque.bootstrap, codec.Codec())
        try:
            yield broker
        finally:
            broker.close()

    def epoch_rises_at_a_restart(self):
        def epoch():
            with wire.Client(self.calque.bootstrap) as client:
                return client.metadata(["t"])["t"][0][1]
        before = epoch()
        self.calque.stop()
        self.calque.start()
        clean = epoch()
        self.calque.kill()
        self.calque.start()
        if not before < clean < epoch():
            raise AssertionError(f"leader epochs {before}, {clean}, {epoch()}")

    def counts_beyond_the_bytes(self):
        head = struct.pack(">hhih", wire.METADATA, 1, 1, -1)
        frame = head + struct.pack(">i", 0x7fffffff)
        said = [self.grows_less_than(2, struct.pack(">i", len(frame)) + frame)]
        head = struct.pack(">hhihb", wire.METADATA, 9, 1, -1, 0)
        frame = head + b"\xff\xff\xff\xff\x0f"
        said.append(self.grows_less_than(2, struct.pack(">i", len(frame)) + frame))
        return ", ".join(said)

    def tags_without_end(self):
        head = struct.pack(">hhih", wire.API_VERSIONS, 3, 1, -1)
        tags = b"".join(wire.Writer().varint(n).varint(0).data for n in range(200_000))
        frame = head + bytes(wire.Writer().varint(200_000).data) + tags
        said = [self.grows_less_than(8, struct.pack(">i", len(frame)) + frame)]
        frame = head + b"\xff\xff\xff\xff\x0f" + bytes(20)
        said.append(self.grows_less_than(2, struct.pack(">i", len(frame)) + frame))
        return ", ".join(said)

    def promised_and_not_sent(self):
        """Frames of 100 MiB announced by many and sent by none take no memory."""
        return self.grows_less_than(32, struct.pack(">i", FRAME_BYTES_MAX), b"\0" * 20, times=100)

    def not_kafka_at_all(self):
        for what, data in (("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
                           ("TLS", bytes.fromhex("16030100c8010000c40303") + bytes(200)),
                           ("ssh", b"SSH-2.0-OpenSSH_9.2\r\n"),
                           ("a size of 0", bytes(4)), ("a negative size", b"\xff" * 4),
                           ("too large a size", struct.pack(">i", FRAME_BYTES_MAX + 1))):
            answer, closed = self.send(data)
            equal(f"answer to {what}", (answer, closed), (b"", True))
        for seed in range(20):
            self.send(os.urandom(2000) if seed else b"")
        self.alive()


class Groups(OneBroker):
    """Consumer groups, and a broker that comes and goes under them."""
    SETTINGS = {"offsets.topic.num.partitions": 1, "offsets.topic.segment.bytes": 65536,
                "log.cleaner.backoff.ms": 200, "group.initial.rebalance.delay.ms": 0}
    LOADING = 14

    def start(self):
        self.calque = Calque(os.path.join(self.tests.folder, "calque"), self.SETTINGS)
        self.calque.start()
        with self.raw() as broker:
            groups.coordinate(broker)

    @contextlib.contextmanager
    def raw(self):
        broker = Broker("Calque", self.calque.bootstrap, codec.Codec())
        try:
            yield broker
        finally:
            broker.close()

    def commit(self, broker, group, topic, offsets):
        """`offsets`: by partition."""
        answer = broker.ask("OffsetCommit", 8, {
            "groupId": group, "generationIdOrMemberEpoch": -1, "memberId": "", "topics": [
                {"name": topic, "partitions": [
                    {"partitionIndex": p, "committedOffset": o, "committedMetadata": ""}
                    for p, o in offsets.items()]}]})
        errors = {p["errorCode"] for p in answer["topics"][0]["partitions"]}
        equal(f"errors of the commit of {group}", errors, {0})

    def fetched(self, broker, group, topic, partition=0, version=7):
        """The error, wherever the version has its place, and the offset."""
        asked = [{"name": topic, "partitionIndexes": [partition]}]
        if version >= 8:
            answer = broker.ask("OffsetFetch", version,
                                {"groups": [{"groupId": group, "topics": asked}]})["groups"][0]
        else:
            answer = broker.ask("OffsetFetch", version, {"groupId": group, "topics": asked})
        if answer.get("errorCode"):
            return answer["errorCode"], None
        one = answer["topics"][0]["partitions"][0]
        return one["errorCode"], one["committedOffset"]

    def consumed(self, group, topic):
        """The number of records that a consumer of the group reads up to the end."""
        run = subprocess.run(["kcat", "-b", self.calque.bootstrap, "-G", group, "-e", "-q", "-X",
                              "auto.offset.reset=earliest", topic], capture_output=True, timeout=60)
        equal(f"exit status of kcat ({run.stderr[-300:]})", run.returncode, 0)
        return len(run.stdout.splitlines())

    def produce(self, topic, count):
        self.calque.cli("sample", "produce", "--topic", topic, "--records", str(count),
                        "--record-size", "20")

    def topic_deleted_and_made_anew(self):
        """[C16] The new topic is read from its beginning, at once and after a restart."""
        self.calque.cli("topic", "create", "again", "--partitions", "1")
        self.produce("again", 10)
        equal("records of the first", self.consumed("readers", "again"), 10)
        equal("records after that", self.consumed("readers", "again"), 0)
        self.calque.cli("topic", "delete", "again")
        self.calque.cli("topic", "create", "again", "--partitions", "1")
        with self.raw() as broker:
            equal("offset in the new one", self.fetched(broker, "readers", "again"), (0, -1))
        self.produce("again", 5)
        self.calque.kill()
        self.calque.start()
        equal("records of the second", self.consumed("readers", "again"), 5)

    def deleted_group_stays_away(self):
        """[C10]"""
        self.calque.cli("topic", "create", "gone", "--partitions", "1")
        with self.raw() as broker:
            self.commit(broker, "gone", "gone", {0: 0})
            answer = broker.ask("DeleteGroups", 2, {"groupsNames": ["gone"]})
            equal("error", answer["results"][0]["errorCode"], 0)
        self.calque.kill()
        self.calque.start()
        with self.raw() as broker:
            groups.coordinate(broker)
            equal("offset", self.fetched(broker, "gone", "gone"), (0, -1))
            state = broker.ask("DescribeGroups", 5, {"groups": ["gone"]})["groups"][0]
            equal("state", state["groupState"], "Dead")

    def compacted_log_is_loaded(self):
        """[C12] Nearly all of the log is gone when it is read again."""
        self.calque.cli("topic", "create", "often", "--partitions", "100")
        folder = os.path.join(self.calque.data, "__consumer_offsets-0")

        def size():
            return sum(os.path.getsize(os.path.join(folder, f)) for f in os.listdir(folder)
                       if f.endswith(".log"))
        with self.raw() as broker:
            for n in range(300):
                self.commit(broker, "often", "often", {p: 0 for p in range(100)})
            written = 300 * 100 * 50
            process.wait_for("the log to be compacted", lambda: size() < written // 4, 60)
        self.calque.kill()
        begun = time.monotonic()
        self.calque.start()
        with self.raw() as broker:
            groups.coordinate(broker)
            took = time.monotonic() - begun
            if took > 5:
                raise AssertionError(f"loading took {took:.1f} s")
            equal("offset", self.fetched(broker, "often", "often", 99), (0, 0))
        return f"{size() >> 10} KiB left, {took:.1f} s"

    def no_offset_is_made_up_while_loading(self):
        """[A23] A coordinator that loads says so in every version."""
        partitions, count = 500, 300
        self.calque.cli("topic", "create", "many", "--partitions", str(partitions))
        with self.raw() as broker:
            for n in range(count):
                self.commit(broker, f"many-{n}", "many", {p: 0 for p in range(partitions)})
        self.calque.kill()
        self.calque.spawn()
        told = collections.Counter()
        begun = time.monotonic()
        version = 1
        while told[0, 0] < 12:
            if time.monotonic() - begun > 30:
                raise AssertionError(f"still not loaded: {told}")
            try:  # From the first moment on, without a wait.
                with self.raw() as broker:
                    while told[0, 0] < 12:
                        said = self.fetched(broker, f"many-{count - 1}", "many", version=version)
                        told[said] += 1
                        version = version % 9 + 1
            except ConnectionRefusedError:
                pass
        wrong = set(told) - {(0, 0), (self.LOADING, None), (self.LOADING, -1)}
        equal("wrong answers", wrong, set())
        return f"{sum(n for (e, _), n in told.items() if e)} times loading"

    def waiting_members_do_not_keep_it(self):
        """[C20] 200 members wait in JoinGroup; SIGTERM."""
        self.calque.kill()
        with open(self.calque.properties, "a") as f:
            f.write("group.initial.rebalance.delay.ms=300000\n")
        self.calque.start()
        with self.raw() as broker:
            groups.coordinate(broker)
            waiting = [broker.send("JoinGroup", 3, {
                "groupId": "waiters", "sessionTimeoutMs": 300000, "rebalanceTimeoutMs": 300000,
                "memberId": "", "protocolType": "consumer",
                "protocols": groups.protocols("range")}, connection=n + 1) for n in range(200)]

            def all_there():
                found = broker.ask("DescribeGroups", 5, {"groups": ["waiters"]})["groups"][0]
                return len(found["members"]) == 200
            process.wait_for("200 members", all_there, 30)
            begun = time.monotonic()
            self.calque.stop()
            took = time.monotonic() - begun
            if took > 10:
                raise AssertionError(f"the end took {took:.1f} s")
            answers = collections.Counter()
            for n, sent in enumerate(waiting):
                answer = broker.receive("JoinGroup", 3, sent, connection=n + 1)
                answers[answer if isinstance(answer, str) else answer["errorCode"]] += 1
        wrong = set(answers) - {15, 16, differential_broker.CLOSED}
        equal("answers", wrong, set())
        return f"{took:.1f} s, answers {dict(answers)}"


class Mirrors:
    """A Kafka 4.4.0 whose operators do what mirrors stumble over."""

    def __init__(self, tests):
        self.tests, self.kafka, self.calque, self.other = tests, None, None, None

    def clean(self):
        if self.calque is not None and self.calque.child is not None:
            self.calque.kill()
        for kafka in (self.kafka, self.other):
            if kafka is not None:
                kafka.stop(kill=True)

    def start(self):
        self.kafka = scenario.source("4.4.0", os.path.join(self.tests.folder, "source"))
        self.kafka.start()
        self.run("create:trimmed", "create:inside", "create:reborn", "create:moved",
                 "batch:trimmed:20", "batch:inside:10", "trim:inside:4", "batch:inside:10",
                 "batch:reborn:20", "batch:reborn:20", "batch:moved:20")
        self.calque = Calque(os.path.join(self.tests.folder, "copy"))
        self.calque.start()
        for topic in ("trimmed", "inside", "reborn", "moved"):
            self.calque.cli("mirror", "create", topic, "--source", self.kafka.bootstrap,
                            "--topics", topic, "--config", "metadata.refresh.interval.ms=500")
            self.calque.await_mirroring(topic, 1)

    def run(self, *steps):
        scenario.run_steps(self.kafka.bootstrap, 1, *steps)

    def ends(self, address, topic):
        with wire.Client(address) as client:
            return (client.list_offset(topic, 0, wire.EARLIEST)[1],
                    client.list_offset(topic, 0, wire.LATEST)[1])

    def data(self, address, topic):
        with wire.Client(address) as client:
            return b"".join(b.data for b in client.read_log(topic, 0))

    def failed(self, mirror, seconds=60):
        return process.wait_for(f"{mirror} to be FAILED", lambda: next(
            (r for r in self.calque.describe(mirror) if r["state"] == "FAILED"), None), seconds)

    def log_start_inside_a_batch(self):
        """[E36]"""
        equal("log start and end", self.ends(self.calque.bootstrap, "inside"), (4, 20))
        equal("bytes", self.data(self.calque.bootstrap, "inside") ==
              self.data(self.kafka.bootstrap, "inside"), True)

    def retention_overtakes_the_mirror(self):
        """[E01] The gap is told, and what comes after it is copied."""
        self.calque.cli("mirror", "pause", "trimmed", "--wait")
        self.run("batch:trimmed:20", "batch:trimmed:20", "trim:trimmed:40", "batch:trimmed:5")
        self.calque.cli("mirror", "resume", "trimmed")
        rows = self.calque.await_mirroring("trimmed", 1)
        equal("what is said to be skipped", (rows[0]["skippedFrom"], rows[0]["skippedTo"]),
              (20, 40))
        equal("log start and end", self.ends(self.calque.bootstrap, "trimmed"), (40, 65))
        equal("bytes", self.data(self.calque.bootstrap, "trimmed") ==
              self.data(self.kafka.bootstrap, "trimmed"), True)

    def topic_deleted_and_made_anew(self):
        """[E02] The new one's records never follow the old one's."""
        before = self.data(self.calque.bootstrap, "reborn")
        self.run("delete:reborn", "create:reborn", "batch:reborn:50")
        row = self.failed("reborn")
        if not row["errorMessage"]:
            raise AssertionError("FAILED without a reason")
        equal("bytes", self.data(self.calque.bootstrap, "reborn") == before, True)
        return row["errorMessage"]

    def another_cluster_at_the_address(self):
        """[E22] Its cluster id is another: nothing of it is appended."""
        before = self.data(self.calque.bootstrap, "moved")
        self.kafka.stop()
        self.other = scenario.source("4.4.0", os.path.join(self.tests.folder, "other"))
        self.other.ports = self.kafka.ports
        self.other.start()
        scenario.run_steps(self.other.bootstrap, 2, "create:moved", "batch:moved:20",
                           "batch:moved:30")
        row = self.failed("moved", 90)
        equal("bytes", self.data(self.calque.bootstrap, "moved") == before, True)
        self.calque.cli("mirror", "stop", "moved", "--wait")
        equal("state", self.calque.describe("moved")[0]["state"], "STOPPED")
        return row["errorMessage"]


def make_clients(tests):
    c = Clients(tests)
    tests.test("start", needed=True)(c.start)
    for name, body in (("A01", c.newer_api_versions), ("A02", c.produce_is_shown_from_0),
                       ("A03", c.no_null_records), ("A12", c.large_first_batch),
                       ("A06", c.a_client_that_needs_newer_fetch),
                       ("A17", c.times_inside_a_batch), ("D01", c.a_resend_is_stored_once),
                       ("A28", c.epoch_rises_at_a_restart), ("F01", c.counts_beyond_the_bytes),
                       ("F02", c.tags_without_end), ("F04", c.promised_and_not_sent),
                       ("F06", c.not_kafka_at_all)):
        tests.test(f"{name} {body.__name__.replace('_', ' ')}")(c.on_a_running_broker(body))
    return c.clean


def make_groups(tests):
    g = Groups(tests)
    tests.test("start", needed=True)(g.start)
    for name, body in (("C16", g.topic_deleted_and_made_anew), ("C10", g.deleted_group_stays_away),
                       ("C12", g.compacted_log_is_loaded),
                       ("A23", g.no_offset_is_made_up_while_loading),
                       ("C20", g.waiting_members_do_not_keep_it)):
        tests.test(f"{name} {body.__name__.replace('_', ' ')}")(body)
    return g.clean


def make_mirrors(tests):
    m = Mirrors(tests)
    tests.test("start", needed=True)(m.start)
    for name, body in (("E36", m.log_start_inside_a_batch),
                       ("E01", m.retention_overtakes_the_mirror),
                       ("E02", m.topic_deleted_and_made_anew),
                       ("E22", m.another_cluster_at_the_address)):
        tests.test(f"{name} {body.__name__.replace('_', ' ')}")(body)
    return m.clean


if __name__ == "__main__":
    sys.exit(suite.main({"bug-cases-clients": make_clients, "bug-cases-groups": make_groups,
                         "bug-cases-mirrors": make_mirrors}))
