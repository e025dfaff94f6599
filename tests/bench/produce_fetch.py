#!/usr/bin/env python3
"""Produce and fetch of the same bytes by Calque and by a tuned Apache Kafka, in one run.

  produce_fetch.py [--only B1,B2,...] [--pairs 5] [--seconds 4] [--warm-up 30] [--kafka 4.4.0]
                   [--pin] [--out FILE]

Both brokers stay up on empty folders of one disk. A workload makes pairs of trials, Calque and
Kafka in turns (A B B A ...), each on a topic of its own; the ratio is taken within a pair, then
the median, the least and the greatest are told. One more trial of Calque a pair gives the A/A
row: no claim smaller than its spread. CPU is user + system of the broker alone. The load (kload)
checks in each trial that what was acknowledged is stored, and all sums and offsets when it reads.
--pin starts brokers on cpu 0, which is then all that they have, and the load on cpu 1. Deleted
topics are removed at once and given time to go: memory that was never used before is slow on a
virtual machine, and whoever gets more of it loses. Nothing here passes or fails.

B1 small records, B2 large batches, B3 the same durable (each batch is synced by both sides; for
acks=all Calque always syncs, Kafka only when told), B6 latency from producer to consumer, and
what sending back the same bytes takes (the floor), B7 reading it all from the page cache.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from lib import calque, process, real_kafka

DELETE_DELAY_MS = 200
KLOAD = os.path.join(ROOT, "build", "tests", "bench", "kload")
SMALL = ["--records", "125", "--record-bytes", "100"]       # 16 KiB a batch
LARGE = ["--records", "1000", "--record-bytes", "1000"]     # 1 MB a batch
PACED = ["--record-bytes", "1000", "--rate", "20000"]
# Name, what kload does, options, partitions, settings of the topic.
WORKLOADS = [
    ("B1 100 B in 16 KiB, 1 producer, acks=1", "produce", [*SMALL, "--acks", "1"], 1, {}),
    ("B1 100 B in 16 KiB, 16 producers, acks=1", "produce",
     [*SMALL, "--producers", "16", "--acks", "1"], 8, {}),
    ("B1 single records, 16 producers, acks=1", "produce",
     ["--records", "1", "--record-bytes", "100", "--producers", "16", "--acks", "1"], 8, {}),
    ("B1 100 B in 16 KiB, 16 producers, acks=all", "produce",
     [*SMALL, "--producers", "16", "--acks", "-1"], 8, {}),
    ("B1 100 B in 16 KiB, 16 producers, acks=all, each synced", "produce",
     [*SMALL, "--producers", "16", "--acks", "-1"], 8, {"flush.messages": "1"}),
    ("B2 1 KB in 1 MB, 1 partition, acks=1", "produce", [*LARGE, "--acks", "1"], 1, {}),
    ("B2 1 KB in 1 MB, 8 partitions, acks=1", "produce", [*LARGE, "--acks", "1"], 8, {}),
    ("B2 the same in zstd", "produce", [*LARGE, "--acks", "1", "--codec", "zstd"], 8, {}),
    ("B3 4 KB batches, 64 producers, each synced", "produce",
     ["--records", "4", "--record-bytes", "1000", "--producers", "64", "--in-flight", "1",
      "--acks", "-1"], 1, {"flush.messages": "1"}),
    ("B6 1,000 records of 1 KB a second", "latency",
     ["--record-bytes", "1000", "--rate", "1000", "--acks", "-1"], 1, {}),
    ("B6 20 MB/s of 1 KB", "latency", [*PACED, "--acks", "-1"], 1, {}),
    ("B6 20 MB/s of 1 KB, acks=1: none syncs", "latency", [*PACED, "--acks", "1"], 1, {}),
    ("B6 20 MB/s of 1 KB, each synced", "latency", [*PACED, "--acks", "-1"], 1,
     {"flush.messages": "1"}),
    ("B7 1 GB from the page cache", "fetch", [], 8, {}),
]


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.calque = calque.Calque(os.path.join(folder, "calque"),
                                    {"log.segment.delete.delay.ms": DELETE_DELAY_MS})
        self.kafka = real_kafka.Kafka(
            options.kafka, os.path.join(folder, "kafka"), heap="4g",
            machine=real_kafka.TUNED,
            settings={"num.network.threads": 2, "num.io.threads": 4,
                      "socket.send.buffer.bytes": -1, "socket.receive.buffer.bytes": -1,
                      "log.preallocate": "true", "log.segment.delete.delay.ms": DELETE_DELAY_MS})
        self.topics = 0
        self.cpus = os.sched_getaffinity(0)

    def start(self):
        if self.options.pin:
            os.sched_setaffinity(0, {0})  # children inherit it
        self.calque.start()
        self.kafka.start()
        self.echo = subprocess.Popen([KLOAD, "echo-server"], stdout=subprocess.PIPE, text=True)
        self.echo_port = self.echo.stdout.readline().strip()
        os.sched_setaffinity(0, self.cpus)
        self.pids = {"calque": self.calque.child.pid, "kafka": self.kafka.brokers[0].pid}

    def stop(self):
        self.echo.kill()
        self.echo.wait()
        self.calque.stop()
        self.kafka.stop()

    def bootstrap(self, side):
        return (self.calque if side == "calque" else self.kafka).bootstrap

    def topic(self, side, partitions, settings):
        self.topics += 1
        name = f"bench-{self.topics}"
        words = [calque.BINARY, "topic", "create", name, "--partitions", str(partitions),
                 "--bootstrap-server", self.bootstrap(side)]
        for key, value in settings.items():
            words += ["--config", f"{key}={value}"]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        time.sleep(0.3)  # Kafka answers before its leaders are ready.
        return name

    def drop(self, side, topic):
        subprocess.run([calque.BINARY, "topic", "delete", topic, "--bootstrap-server",
                        self.bootstrap(side)], check=True, stdout=subprocess.DEVNULL)
        time.sleep(1 + DELETE_DELAY_MS / 1000)

    def load(self, side, what, topic, partitions, more):
        host, port = self.bootstrap(side).split(":")
        return self.run_kload(side, [what, host, port, topic, "--partitions", str(partitions),
                                     *more])

    def floor(self, workload, seconds):
        return self.run_kload("echo", ["echo", "127.0.0.1", self.echo_port, "-", *workload[2],
                                       "--seconds", str(seconds)])

    def run_kload(self, side, words):
        words = [KLOAD, *words]
        if self.options.pin:
            words = ["taskset", "-c", "1", *words]
        run = subprocess.run(words, stdout=subprocess.PIPE, text=True)
        if run.returncode:
            sys.exit(f"kload ended with {run.returncode} against {side}")
        return json.loads(run.stdout)

    def trial(self, side, workload, seconds):
        _, what, more, partitions, settings = workload
        topic = self.topic(side, partitions, settings)
        if what == "fetch":
            self.load(side, "produce", topic, partitions, [*LARGE, "--gb", "1", "--seconds", "60"])
        else:
            more = [*more, "--seconds", str(seconds)]
        os.sync()
        before = process.cpu_seconds(self.pids[side])
        result = self.load(side, what, topic, partitions, more)
        result["cpu"] = process.cpu_seconds(self.pids[side]) - before
        self.drop(side, topic)
        if "gb" in result:
            result["mb_s"] = result["gb"] * 1000 / result["seconds"]
            result["cpu_gb"] = result["cpu"] / result["gb"]
            result["batches_s"] = result["batches"] / result["seconds"]
        return result

    def compare(self, workload):
        self.trial("kafka", workload, self.options.warm_up)
        self.trial("calque", workload, 1)
        pairs = []
        for n in range(self.options.pairs):
            order = ["calque", "kafka"] if n % 2 == 0 else ["kafka", "calque"]
            pair = {side: self.trial(side, workload, self.options.seconds) for side in order}
            pair["again"] = self.trial("calque", workload, self.options.seconds)
            if workload[1] == "latency":
                pair["floor"] = self.floor(workload, self.options.seconds)
            pairs.append(pair)
        return pairs


def spread(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def tell(workload, pairs):
    print(f"\n{workload[0]}")
    keys = ([("mb_s", "MB/s", False), ("batches_s", "batches/s", False),
             ("cpu_gb", "CPU-s/GB", True)] if "mb_s" in pairs[0]["calque"] else [])
    keys += [(k, f"{k} ms", True) for k in ("p50", "p99", "p999") if k in pairs[0]["calque"]]
    if "mb_s" not in pairs[0]["calque"]:
        keys.append(("cpu", "CPU-s", True))
    for key, title, less_is_better in keys:
        def ratios(mine, theirs):
            of = [(p[mine][key] or 1e-9, p[theirs][key] or 1e-9) for p in pairs]
            return [b / a if less_is_better else a / b for a, b in of]
        print("  %-10s calque %10.3f  kafka %10.3f  better by %-20s A/A %s" % (
            title, statistics.median(p["calque"][key] for p in pairs),
            statistics.median(p["kafka"][key] for p in pairs),
            spread(ratios("calque", "kafka")), spread(ratios("calque", "again"))), flush=True)
    if "floor" in pairs[0]:
        print("  floor      " + ", ".join(
            f"{key} {spread([p['floor'][key] for p in pairs])} ms" for key in ("p50", "p99")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", help="workloads whose names begin so, with commas between")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--warm-up", type=float, default=30)
    parser.add_argument("--kafka", default="4.4.0")
    parser.add_argument("--pin", action="store_true")
    parser.add_argument("--out")
    options = parser.parse_args()
    subprocess.run(["ninja", "-C", os.path.join(ROOT, "build"), "calque", "tests/bench/kload"],
                   check=True, stdout=subprocess.DEVNULL)
    wanted = tuple(options.only.split(",")) if options.only else ("",)
    folder = tempfile.mkdtemp(prefix="calque-bench-")
    bench, results = Bench(options, folder), {}
    try:
        bench.start()
        for workload in WORKLOADS:
            if workload[0].startswith(wanted):
                results[workload[0]] = bench.compare(workload)
                tell(workload, results[workload[0]])
        memory = {side: round(process.memory_mib(pid)) for side, pid in bench.pids.items()}
        print(f"\nresident afterwards: calque {memory['calque']} MiB, kafka {memory['kafka']} MiB")
        bench.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if options.out:
        with open(options.out, "w") as f:
            json.dump(results, f, indent=1)


main()
