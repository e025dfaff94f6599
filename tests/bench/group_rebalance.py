#!/usr/bin/env python3
"""Rebalances (B14): Calque beside Apache Kafka in one run.

  group_rebalance.py [--members 4,100,1000] [--partitions 1000] [--protocol classic,consumer]
                     [--quick] [--rounds 1] [--seconds 10] [--kafka 4.4.0] [--out FILE]

So many members (kload groups) join, send heartbeats and commit for a while, then one more comes,
and one goes. Told are the seconds until each partition is somebody's and nothing changes any more,
the times of heartbeats and commits in between, and the CPU-seconds of the broker in each phase.
The members are the same for both, and their heartbeats stand at even distances when a phase
begins. As shipped, most of a rebalance is waiting: members hear of it with their next heartbeat,
3 s (classic, the client's) or 5 s (consumer, the broker's). --quick takes half a second for both,
and no initial delay, so that the brokers' own work shows. Nothing here passes or fails.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from lib import calque, process, real_kafka

KLOAD = os.path.join(ROOT, "build", "tests", "bench", "kload")
SHIPPED = {"group.initial.rebalance.delay.ms": 3000}
QUICK_MS = 500
QUICK = {"group.initial.rebalance.delay.ms": 0,
         "group.consumer.min.heartbeat.interval.ms": QUICK_MS,
         "group.consumer.heartbeat.interval.ms": QUICK_MS}
PHASES = ("all join", "one joins", "one leaves")
TOPIC = "shared"


class Bench:
    def __init__(self, options, folder):
        self.options, self.groups = options, 0
        settings = QUICK if options.quick else SHIPPED
        self.calque = calque.Calque(os.path.join(folder, "calque"), settings)
        self.kafka = real_kafka.Kafka(options.kafka, os.path.join(folder, "kafka"), heap="2g",
                                      machine=real_kafka.TUNED,
                                      settings={"offsets.topic.num.partitions": 50, **settings})

    def start(self):
        self.at = {"calque": self.calque.start(), "kafka": self.kafka.start()}
        self.pids = {"calque": self.calque.child.pid, "kafka": self.kafka.brokers[0].pid}
        for side in self.at:
            subprocess.run([calque.BINARY, "topic", "create", TOPIC, "--partitions",
                            str(self.options.partitions), "--bootstrap-server", self.at[side]],
                           check=True, stdout=subprocess.DEVNULL)

    def trial(self, side, protocol, members):
        """Phases by name, each with its CPU-seconds."""
        self.groups += 1
        host, port = self.at[side].split(":")
        words = [KLOAD, "groups", host, port, TOPIC, "--partitions", str(self.options.partitions),
                 "--group", f"group-{self.groups}", "--protocol", protocol,
                 "--members", str(members), "--seconds", str(self.options.seconds)]
        if self.options.quick:
            words += ["--beat-ms", str(QUICK_MS)]
        phases = {}
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as load:
            for line in load.stdout:
                cpu = process.cpu_seconds(self.pids[side])
                phase = json.loads(line)
                if phase["phase"] != "begin":
                    phases[phase["phase"]] = {**phase, "cpu": cpu - before}
                before = cpu
        if load.returncode:
            sys.exit(f"kload ended with {load.returncode} against {side}")
        return phases

    def compare(self, protocol, members):
        trials = {"calque": [], "kafka": []}
        for n in range(self.options.rounds):
            for side in (("calque", "kafka") if n % 2 == 0 else ("kafka", "calque")):
                trials[side].append(self.trial(side, protocol, members))
        return trials


def tell(protocol, members, trials):
    print(f"\n{members} members of the {protocol} protocol")

    def line(title, value):
        mine, theirs = (statistics.median(value(t) for t in trials[side])
                        for side in ("calque", "kafka"))
        ratio = f"{theirs / mine:8.2f}" if mine else "       -"
        print(f"  {title:28} calque {mine:9.3f}  kafka {theirs:9.3f}  better by {ratio}",
              flush=True)
    for phase in PHASES:
        line(f"{phase}, s", lambda t: t[phase]["seconds"])
        line(f"{phase}, CPU-s", lambda t: t[phase]["cpu"])
    for what in ("beat", "commit"):
        for share in ("p50", "p99"):
            line(f"{what} {share}, ms", lambda t: t["steady"][what][share])
    line("steady, CPU-ms a second",
         lambda t: t["steady"]["cpu"] * 1000 / t["steady"]["seconds"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--members", default="4,100,1000")
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--protocol", default="classic,consumer")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--kafka", default="4.4.0")
    parser.add_argument("--out")
    options = parser.parse_args()
    subprocess.run(["ninja", "-C", os.path.join(ROOT, "build"), "calque", "tests/bench/kload"],
                   check=True, stdout=subprocess.DEVNULL)
    folder = tempfile.mkdtemp(prefix="calque-bench-")
    bench, results = Bench(options, folder), []
    try:
        bench.start()
        for side in bench.at:  # Not to measure the first steps of a JVM.
            for protocol in options.protocol.split(","):
                bench.trial(side, protocol, 4)
        for members in map(int, options.members.split(",")):
            for protocol in options.protocol.split(","):
                trials = bench.compare(protocol, members)
                tell(protocol, members, trials)
                results.append({"members": members, "protocol": protocol, **trials})
        memory = {side: round(process.memory_mib(pid)) for side, pid in bench.pids.items()}
        print(f"\nresident afterwards: calque {memory['calque']} MiB, kafka {memory['kafka']} MiB")
    finally:
        if bench.calque.child is not None:
            bench.calque.kill()
        bench.kafka.stop(kill=True)
        shutil.rmtree(folder, ignore_errors=True)
    if options.out:
        with open(options.out, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
