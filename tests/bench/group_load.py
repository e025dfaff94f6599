#!/usr/bin/env python3
"""How long a coordinator takes to load its groups at a restart: Calque beside Apache Kafka.

  group_load.py [--groups 10000] [--partitions 100] [--rounds 3] [--kafka 4.4.0 | --without-kafka]

Each group commits one offset in each partition of a topic; then the broker is stopped and started
again, and asked for one group of each partition of __consumer_offsets until none says that it is
loading. Told are the seconds from the start of the process and from its first answer to that
moment, CPU-seconds and resident memory then. Nothing here passes or fails.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from lib import calque, process, real_kafka, wire

FIND_COORDINATOR, OFFSET_COMMIT, OFFSET_FETCH = 10, 8, 9
NONE, LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 0, 14, 15, 16
TOPIC = "committed"


def group_name(n):
    return f"group-{n:05}"


def commit_body(group, partitions, offset):
    body = wire.Writer().string(group).put("i", -1).string("").string(None)
    body.put("i", 1).string(TOPIC).put("i", partitions)
    for p in range(partitions):
        body.put("iqi", p, offset, -1).string("")
    return body


def commit_all(bootstrap, count, partitions):
    with wire.Connection(bootstrap, 60) as c:
        for n in range(count):
            answer = c.call(OFFSET_COMMIT, 7, commit_body(group_name(n), partitions, n + 1))
            answer.take("i")
            for _ in range(answer.take("i")):
                answer.string()
                for _ in range(answer.take("i")):
                    _, error = answer.take("i"), answer.take("h")
                    if error != NONE:
                        raise wire.KafkaError(error, "OffsetCommit")


def error_of_fetch(c, group, wanted):
    """The error of OffsetFetch, after a look at what it gave."""
    answer = c.call(OFFSET_FETCH, 5, wire.Writer().string(group).put("i", -1))
    answer.take("i")
    found = 0
    for _ in range(answer.take("i")):
        answer.string()
        for _ in range(answer.take("i")):
            answer.take("i"), answer.take("q"), answer.take("i"), answer.string()
            found += answer.take("h") == NONE
    error = answer.take("h")
    if error == NONE and found != wanted:
        raise AssertionError(f"{group}: {found} offsets of {wanted}")
    return error


def await_coordinator(bootstrap, group):
    def found():
        with wire.Connection(bootstrap, 60) as c:
            answer = c.call(FIND_COORDINATOR, 1, wire.Writer().string(group).put("b", 0))
            answer.take("i")
            return answer.take("h") == NONE
    process.wait_for("a coordinator", found, 60)
    with wire.Connection(bootstrap, 60) as c:
        process.wait_for("a coordinator that serves", lambda: error_of_fetch(c, group, 0) == NONE,
                         60)


def groups_by_partition(count):
    """One group for each of the 50 partitions, by Java's hash of the name."""
    of = {}
    for n in range(count):
        value = 0
        for char in group_name(n):
            value = (value * 31 + ord(char)) & 0xFFFFFFFF
        value = value - (1 << 32) if value >> 31 else value
        of.setdefault(abs(value) % 50, group_name(n))
    return list(of.values())


def await_loaded(bootstrap, groups, partitions):
    """Seconds since it answered first."""
    while True:
        try:
            with wire.Connection(bootstrap, 60) as c:
                if not c.api_versions():
                    continue
                first = time.monotonic()
                for group in groups:
                    while (error := error_of_fetch(c, group, partitions)) != NONE:
                        if error not in (LOADING, NOT_AVAILABLE, NOT_COORDINATOR):
                            raise wire.KafkaError(error, "OffsetFetch")
                        time.sleep(0.005)
                return time.monotonic() - first
        except OSError:
            time.sleep(0.01)


def measure(broker, pid_of, spawn, options, name):
    bootstrap = broker.start()
    topic = [calque.BINARY, "topic", "create", TOPIC, "--partitions", str(options.partitions),
             "--bootstrap-server", bootstrap]
    subprocess.run(topic, check=True, stdout=subprocess.DEVNULL)
    await_coordinator(bootstrap, "first")
    began = time.monotonic()
    commit_all(bootstrap, options.groups, options.partitions)
    print(f"{name}: {options.groups} groups committed {options.partitions} offsets each in "
          f"{time.monotonic() - began:.1f} s, one request at a time", flush=True)
    probes, results = groups_by_partition(options.groups), []
    for _ in range(options.rounds):
        broker.stop_brokers() if name == "kafka" else broker.stop()
        began = time.monotonic()
        spawn()
        after_first = await_loaded(bootstrap, probes, options.partitions)
        results.append((time.monotonic() - began, after_first, process.cpu_seconds(pid_of()),
                        process.memory_mib(pid_of())))
    total, after, cpu, mib = (statistics.median(column) for column in zip(*results))
    print(f"{name}: loaded {total:.2f} s after the start, {after:.2f} s after the first answer; "
          f"{cpu:.2f} CPU-s, {mib:.0f} MiB", flush=True)
    broker.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kafka", default="4.4.0")
    parser.add_argument("--without-kafka", action="store_true")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="calque-bench-")
    try:
        ours = calque.Calque(os.path.join(folder, "calque"))
        measure(ours, lambda: ours.child.pid, ours.spawn, options, "calque")
        if not options.without_kafka:
            kafka = real_kafka.Kafka(options.kafka, os.path.join(folder, "kafka"), heap="2g",
                                     machine=real_kafka.TUNED,
                                     settings={"offsets.topic.num.partitions": 50})
            measure(kafka, lambda: kafka.brokers[0].pid, kafka.start, options, "kafka")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
