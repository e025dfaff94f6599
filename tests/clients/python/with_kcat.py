"""kcat, a program: what it cannot express on its command line is left out of what it writes."""
import json
import re
import signal
import subprocess
import zlib

import steps
from steps import Refused

BOOTSTRAP, _ = steps.arguments()
# What librdkafka says, and the broker's number for it.
SAYINGS = (("Message size too large", 10), ("Unknown topic or partition", 3),
           ("Unknown partition", 3), ("Unknown topic", 3), ("Offset out of range", 1),
           ("offset not available on the broker", 1), ("fenced by a newer instance", 90))
# The partitioner's choices, CRC-32 of the key: the first partition of two, the second.
KEYS = [next(k for k in (b"%d" % n for n in range(99)) if zlib.crc32(k) % 2 == p) for p in (0, 1)]
BLOCK = 1024  # What it reads at once.


def kcat(*args, data=None):
    run = subprocess.run(["kcat", "-b", BOOTSTRAP, *args], input=data, capture_output=True,
                         timeout=2 * steps.TIMEOUT_S,
                         **({} if data is not None else {"stdin": subprocess.DEVNULL}))
    said = run.stderr.decode(errors="replace")
    # It goes on after some errors and ends with 0.
    if run.returncode or "ERROR" in said or "Delivery failed" in said:
        raise refused(said, run.returncode)
    return run.stdout


def refused(said, status):
    code = next((code for text, code in SAYINGS if text in said), None)
    return Refused(code, "kcat", f"status {status}: {said[-400:]}")


def text_only(data):
    return data is not None and not set(data) & set(b"\0\t\n")


class Client:
    def about(self):
        said = subprocess.run(["kcat", "-V"], capture_output=True, text=True)
        version, library = re.search(r"Version (\S+) .*librdkafka (\d[0-9.]*)",
                                     said.stdout + said.stderr, re.S).groups()
        return {"version": version, "librdkafka": library}

    def send(self, topic, partition, lines, *options):
        kcat("-P", "-t", topic, "-p", partition, "-K", "\t", "-X", "linger.ms=50",
             "-X", "message.max.bytes=20000000", "-X", "message.timeout.ms=10000",
             "-X", "topic.metadata.propagation.max.ms=2000", *options, data=b"".join(lines))

    def produce(self, topic, partition, codec, mode, path):
        """One invocation, so that the batch is worth compressing; the header is on all records."""
        lines = [key + b"\t" + value + b"\n" for _, key, value, headers in steps.records(path)
                 if not [h for h in headers if h[1] is not None] and text_only(key)
                 and text_only(value)]
        self.send(topic, partition, lines, "-z", codec, "-H", "h=x", "-X",
                  "enable.idempotence=" + str(mode == "idempotent").lower())

    def large(self, topic, partition, size):
        self.send(topic, partition, [b"k\t" + b"v" * int(size) + b"\n"])

    def read(self, topic, partition, start, *options):
        data = kcat("-C", "-q", "-t", topic, "-p", partition, "-o", start,
                    "-X", "check.crcs=true", "-X", "fetch.wait.max.ms=100",
                    "-X", "auto.offset.reset=error", "-f", "%o %T %K %S %k%s", *options)
        got, at = [], 0

        def part(length):
            nonlocal at
            if length < 0:
                return None
            at += length
            return data[at - length:at]
        while at < len(data):
            head = re.compile(rb"(\d+) (-?\d+) (-?\d+) (-?\d+) ").match(data, at)
            at = head.end()
            offset, timestamp, key, value = map(int, head.groups())
            got.append(steps.shown(offset, timestamp, part(key), part(value), []))
        return got

    def consume(self, topic, partition, start, count):
        start = "beginning" if start == "earliest" else start
        return {"records": self.read(topic, partition, start, "-c", count)}

    def begin(self, topic, name, value, wait=True):
        """A kcat is one transaction: it ends with its input. It reads that in blocks and leaves
        out empty lines. Of these keys one is for each partition."""
        run = subprocess.Popen(
            ["kcat", "-b", BOOTSTRAP, "-P", "-t", topic, "-K", "\t", "-X", "linger.ms=5",
             "-X", "transactional.id=" + name], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        run.stdin.write(b"".join(key + b"\t" + value.encode() + b"\n" for key in KEYS))
        run.stdin.write(b"\n" * BLOCK)
        run.stdin.flush()
        look = steps.deadline(f"writing {value}")
        while wait and any(self.last(topic, p) != steps.pack(value.encode()) for p in (0, 1)):
            look()
        return run

    def last(self, topic, partition):
        found = self.read(topic, str(partition), "beginning", "-e", "-X",
                          "isolation.level=read_uncommitted")
        return found[-1][3] if found else None

    def end(self, run, commit=True):
        if not commit:
            run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=steps.TIMEOUT_S)[1].decode(errors="replace")
        if run.returncode or commit == ("Aborting transaction" in said):
            raise refused(said, run.returncode)

    def transact(self, topic, name):
        for value in steps.Transactions.VALUES:
            commit = value.startswith("commit")
            self.end(self.begin(topic, name, value, wait=not commit), commit)
        return {}

    def fence(self, topic, name):
        first = self.begin(topic, name, "lost")
        self.end(self.begin(topic, name, "kept", wait=False))
        self.end(first)

    def consume_isolated(self, topic, partition, isolation, count):
        return {"records": self.read(topic, partition, "beginning", "-c", count, "-X",
                                     "isolation.level=" + isolation)}

    def tail(self, topic, partition):
        """The last record, counted from the end."""
        end = self.ends(topic, partition)["latest"]
        self.send(topic, partition, [b"\ttail\n"])
        return {"end": end, "records": self.read(topic, partition, "-1", "-e")}

    def query(self, topic, partition, timestamp):
        said = kcat("-Q", "-t", f"{topic}:{partition}:{timestamp}").decode()
        return int(re.search(r"offset (-?\d+)", said)[1])

    def times(self, topic, partition, timestamps):
        found = [self.query(topic, partition, t) for t in timestamps.split(",")]
        return {"offsets": [f if f >= 0 else None for f in found]}

    def ends(self, topic, partition):
        return {"earliest": self.query(topic, partition, -2),
                "latest": self.query(topic, partition, -1)}

    def metadata(self, *args):
        return json.loads(kcat("-L", "-J", *args))

    def list(self):
        return {"topics": [t["topic"] for t in self.metadata()["topics"]]}

    def cluster(self):
        data = self.metadata()
        nodes = [[b["id"], *b["name"].rsplit(":", 1)] for b in data["brokers"]]
        # It tells no id of the cluster.
        return {"id": "not told", "controller": data["controllerid"],
                "nodes": [[i, host, int(port)] for i, host, port in nodes]}

    def describe(self, topic):
        found = self.metadata("-t", topic)["topics"][0]
        if "error" in found:
            code = next((c for text, c in SAYINGS if text in found["error"]), None)
            raise Refused(code, "kcat", found["error"])
        return {"partitions": [[p["partition"], p["leader"], [r["id"] for r in p["replicas"]],
                                [r["id"] for r in p["isrs"]]] for p in found["partitions"]]}


steps.run(Client(), lambda error: None)
