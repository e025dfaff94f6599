#!/usr/bin/env python3
"""Catch-up of the same data by Calque, by a Kafka follower and by MirrorMaker 2, in one run.

  mirror_catchup.py [--gb 2] [--partitions 4] [--kafka 4.3.1] [--rounds 3]
                    [--without mm2,follower,floor] [--out FILE]

One Kafka (the source, one controller) holds a topic of 1 KiB records in 128 KiB batches. Each
round every copier starts empty, catches up, and is measured: seconds, MB/s, CPU-seconds per GB of
its own process (user + system, from /proc), peak resident memory; MirrorMaker 2's target broker
is shown apart. The order changes from round to round; ratios are taken per round against Calque,
then the median. `floor` is the same work without a mirror (mirror_floor.cc). Figures are printed
as a table and written as JSON. Nothing here passes or fails.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
REAL_KAFKA = os.path.join(ROOT, "tests", "real-kafka")
CALQUE = os.environ.get("CALQUE", os.path.join(ROOT, "build", "calque"))
TICK = os.sysconf("SC_CLK_TCK")
TOPIC = "load"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpu_seconds(pid):
    fields = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def peak_mib(pid):
    for line in open("/proc/%d/status" % pid):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0


class Process:
    """A child in its own session, ended by its id."""

    def __init__(self, words, log):
        self.log = open(log, "ab")
        self.child = subprocess.Popen(
            words,
            stdout=self.log,
            stderr=self.log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.pid = self.child.pid

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(30)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


def classpath(version):
    return subprocess.run(
        [REAL_KAFKA, "classpath", version], capture_output=True, text=True, check=True
    ).stdout.strip()


def run_kafka(version, main, *words, **more):
    return subprocess.run(
        ["java", "-Xmx256m", "-cp", classpath(version), main, *words],
        check=True,
        text=True,
        capture_output=True,
        **more
    ).stdout


def await_port(port, child, seconds=90):
    end = time.time() + seconds
    while time.time() < end:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        if child.child.poll() is not None:
            break
        time.sleep(0.05)
    sys.exit("no answer on port %d; see %s" % (port, child.log.name))


def kafka(version, folder, node, roles, port, controller, cluster, heap="1g"):
    """A broker of its own; `controller` is HOST:PORT of the one controller, node 1."""
    os.makedirs(folder, exist_ok=True)
    listeners = "PLAINTEXT://127.0.0.1:%d" % port
    if "controller" in roles:
        listeners += ",CONTROLLER://" + controller
    config = {
        "process.roles": roles,
        "node.id": node,
        "controller.quorum.voters": "1@" + controller,
        "listeners": listeners,
        "advertised.listeners": "PLAINTEXT://127.0.0.1:%d" % port,
        "controller.listener.names": "CONTROLLER",
        "log.dirs": os.path.join(folder, "data"),
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
        "num.replica.fetchers": 1,
        "message.max.bytes": 2000000,
    }
    path = os.path.join(folder, "server.properties")
    with open(path, "w") as f:
        f.writelines("%s=%s\n" % kv for kv in config.items())
    run_kafka(
        version,
        "kafka.tools.StorageTool",
        "format",
        "--ignore-formatted",
        "-t",
        cluster,
        "-c",
        path,
    )
    p = Process(
        ["java", "-Xmx" + heap, "-XX:+UseG1GC", "-cp", classpath(version), "kafka.Kafka", path],
        os.path.join(folder, "log"),
    )
    await_port(port, p)
    return p


def in_sync(version, bootstrap, partitions, replica):
    text = run_kafka(
        version,
        "org.apache.kafka.tools.TopicCommand",
        "--bootstrap-server",
        bootstrap,
        "--describe",
        "--topic",
        TOPIC,
    )
    lists = [
        line.split("Isr:")[1].split()[0].split(",") for line in text.splitlines() if "Isr:" in line
    ]
    return len(lists) == partitions and all(str(replica) in one for one in lists)


def folder_bytes(folder):
    return sum(
        os.path.getsize(os.path.join(d, f))
        for d, _, files in os.walk(folder)
        for f in files
        if f.endswith(".log") and os.path.basename(d).startswith(TOPIC + "-")
    )


def await_bytes(folder, wanted, seconds):
    end = time.time() + seconds
    while time.time() < end:
        if folder_bytes(folder) >= wanted:
            return
        time.sleep(0.1)
    sys.exit("%s did not catch up in %d s" % (folder, seconds))


def follower(run, work):
    """Node 2 of the source's own cluster, restarted without its data."""
    port = free_port()
    folder = os.path.join(work, "follower")
    shutil.rmtree(folder, ignore_errors=True)
    began = time.time()
    p = kafka(run.version, folder, 2, "broker", port, run.controller, run.cluster)
    try:
        await_bytes(folder, run.bytes, 900)
        seconds = time.time() - began
        return {"seconds": seconds, "cpu": cpu_seconds(p.pid), "mib": peak_mib(p.pid)}
    finally:
        p.stop()


def calque(run, work):
    folder = os.path.join(work, "calque")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    port = free_port()
    path = os.path.join(folder, "server.properties")
    with open(path, "w") as f:
        f.write(
            "node.id=1\nlisteners=PLAINTEXT://127.0.0.1:%d\n"
            "advertised.listeners=PLAINTEXT://127.0.0.1:%d\n"
            "log.dirs=%s\n" % (port, port, os.path.join(folder, "data"))
        )
    began = time.time()
    p = Process([CALQUE, "serve", path], os.path.join(folder, "log"))
    try:
        await_port(port, p)
        subprocess.run(
            [
                CALQUE,
                "mirror",
                "create",
                "bench",
                "--source",
                run.bootstrap,
                "--topics",
                TOPIC,
                "--bootstrap-server",
                "127.0.0.1:%d" % port,
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        await_bytes(folder, run.bytes, 900)
        seconds = time.time() - began
        return {"seconds": seconds, "cpu": cpu_seconds(p.pid), "mib": peak_mib(p.pid)}
    finally:
        p.stop()
        shutil.rmtree(os.path.join(folder, "data"), ignore_errors=True)


def mm2_properties(run, port):
    lines = [
        "clusters=a,b",
        "a.bootstrap.servers=" + run.bootstrap,
        "b.bootstrap.servers=127.0.0.1:%d" % port,
        "a->b.enabled=true",
        "a->b.topics=" + TOPIC,
        "tasks.max=2",
        "replication.factor=1",
        "checkpoints.topic.replication.factor=1",
        "heartbeats.topic.replication.factor=1",
        "offset-syncs.topic.replication.factor=1",
        "offset.storage.replication.factor=1",
        "status.storage.replication.factor=1",
        "config.storage.replication.factor=1",
        "replication.policy.class="
        "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "emit.heartbeats.enabled=false",
        "a->b.emit.checkpoints.enabled=false",
        "b.producer.batch.size=131072",
        "b.producer.linger.ms=5",
        "refresh.topics.interval.seconds=5",
    ]
    return "\n".join(lines)


def mirror_maker(run, work):
    folder = os.path.join(work, "mm2")
    shutil.rmtree(folder, ignore_errors=True)
    port, controller = free_port(), "127.0.0.1:%d" % free_port()
    cluster = run_kafka(run.version, "kafka.tools.StorageTool", "random-uuid").split()[-1]
    target = kafka(
        run.version,
        os.path.join(folder, "target"),
        1,
        "broker,controller",
        port,
        controller,
        cluster,
    )
    config = os.path.join(folder, "mm2.properties")
    with open(config, "w") as f:
        f.write(mm2_properties(run, port))
    began = time.time()
    before = cpu_seconds(target.pid)
    p = Process(
        [
            "java",
            "-Xmx1g",
            "-XX:+UseG1GC",
            "-cp",
            run.mm2_classpath,
            "org.apache.kafka.connect.mirror.MirrorMaker",
            config,
        ],
        os.path.join(folder, "log"),
    )
    try:
        await_bytes(
            os.path.join(folder, "target"), int(run.bytes * 0.97), 1800
        )  # its batches are cut anew
        seconds = time.time() - began
        return {
            "seconds": seconds,
            "cpu": cpu_seconds(p.pid),
            "mib": peak_mib(p.pid),
            "target_cpu": cpu_seconds(target.pid) - before,
        }
    finally:
        p.stop()
        target.stop()
        shutil.rmtree(folder, ignore_errors=True)


def floor(run, work):
    out = os.path.join(work, "floor.dat")
    host, port = run.bootstrap.split(":")
    r = json.loads(
        subprocess.run(
            [run.floor, host, port, TOPIC, str(run.partitions), out, "1"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
    )
    os.unlink(out)
    return {"seconds": r["seconds"], "cpu": r["cpu_seconds"], "mib": 0.0}


def mm2_classpath(version, cache):
    """connect-mirror's jars; its newest release here may be older than the broker's."""
    into = os.path.join(cache, "mm2-" + version)
    if not os.path.isdir(into):
        os.makedirs(into + ".part")
        with open(into + ".pom", "w") as f:
            f.write(
                '<project xmlns="http://maven.apache.org/POM/4.0.0">'
                "<modelVersion>4.0.0</modelVersion><groupId>bench</groupId>"
                "<artifactId>mm2</artifactId><version>1</version><dependencies><dependency>"
                "<groupId>org.apache.kafka</groupId>"
                "<artifactId>connect-mirror</artifactId><version>%s</version>"
                "</dependency></dependencies></project>"
                % version
            )
        subprocess.run(
            [
                "mvn",
                "-q",
                "-B",
                "-f",
                into + ".pom",
                "dependency:copy-dependencies",
                "-DoutputDirectory=" + into + ".part",
            ],
            check=True,
        )
        os.rename(into + ".part", into)
    return os.path.join(into, "*")


class Run:
    pass


def prepare(run, a, work):
    run.version, run.partitions = a.kafka, a.partitions
    port, run.controller = free_port(), "127.0.0.1:%d" % free_port()
    run.bootstrap = "127.0.0.1:%d" % port
    run.cluster = run_kafka(a.kafka, "kafka.tools.StorageTool", "random-uuid").split()[-1]
    run.source_folder = os.path.join(work, "source")
    run.source = kafka(
        a.kafka, run.source_folder, 1, "broker,controller", port, run.controller, run.cluster
    )
    second = None
    if (
        "follower" not in a.without
    ):  # node 2 must exist while the topic is made, to be named as a replica
        second = kafka(
            a.kafka,
            os.path.join(work, "follower"),
            2,
            "broker",
            free_port(),
            run.controller,
            run.cluster,
        )
    replicas = "1:2" if second else "1"
    run_kafka(
        a.kafka,
        "org.apache.kafka.tools.TopicCommand",
        "--bootstrap-server",
        run.bootstrap,
        "--create",
        "--topic",
        TOPIC,
        "--replica-assignment",
        ",".join([replicas] * a.partitions),
    )
    if second:
        second.stop()
    run_kafka(
        a.kafka,
        "org.apache.kafka.tools.ProducerPerformance",
        "--topic",
        TOPIC,
        "--num-records",
        str(int(a.gb * 1e9 / 1024)),
        "--record-size",
        "1024",
        "--throughput",
        "-1",
        "--producer-props",
        "bootstrap.servers=" + run.bootstrap,
        "batch.size=131072",
        "linger.ms=20",
        "acks=1",
    )
    run.bytes = folder_bytes(run.source_folder)


def arguments():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--gb", type=float, default=2)
    p.add_argument("--partitions", type=int, default=4)
    p.add_argument("--kafka", default="4.3.1")
    p.add_argument("--mm2", default="4.3.1")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--without", default="", type=lambda s: s.split(","))
    p.add_argument("--out")
    return p.parse_args()


def show(r):
    gb = r["gb"]
    target = "  (+ target %.2f)" % (r["target_cpu"] / gb) if "target_cpu" in r else ""
    print(
        "round %d  %-9s %7.1f s  %7.0f MB/s  %7.2f CPU-s/GB%s"
        "  source %5.2f CPU-s/GB  peak %5.0f MiB"
        % (
            r["round"] + 1,
            r["copier"],
            r["seconds"],
            gb * 1e3 / r["seconds"],
            r["cpu"] / gb,
            target,
            r["source_cpu"] / gb,
            r["mib"],
        ),
        flush=True,
    )


def compare(name, rows):
    ours = {r["round"]: r for r in rows if r["copier"] == "calque"}
    pairs = [(r, ours[r["round"]]) for r in rows if r["copier"] == name]
    ratios = [(r["cpu"] + r.get("target_cpu", 0)) / o["cpu"] for r, o in pairs]
    times = [r["seconds"] / o["seconds"] for r, o in pairs]
    print(
        "%-9s needs %.1f times Calque's CPU (%.1f to %.1f) and %.1f times its time, median of %d"
        % (
            name,
            statistics.median(ratios),
            min(ratios),
            max(ratios),
            statistics.median(times),
            len(pairs),
        )
    )


def build_floor(work):
    program = os.path.join(work, "mirror_floor")
    source = os.path.join(HERE, "mirror_floor.cc")
    subprocess.run(
        ["clang++-19", "-std=c++20", "-O2", "-o", program, source, "-lisal"], check=True
    )
    return program


def measure(run, copiers, rounds, work):
    rows = []
    for n in range(rounds):
        for name in list(copiers) if n % 2 == 0 else reversed(list(copiers)):
            before = cpu_seconds(run.source.pid)
            r = copiers[name](run, work)
            spent = cpu_seconds(run.source.pid) - before
            r.update(copier=name, round=n, gb=run.bytes / 1e9, source_cpu=spent)
            rows.append(r)
            show(r)
    return rows


def main():
    a = arguments()
    copiers = {"calque": calque, "floor": floor, "follower": follower, "mm2": mirror_maker}
    for name in a.without:
        copiers.pop(name, None)
    work = tempfile.mkdtemp(prefix="calque-bench-")
    run = Run()
    try:
        if "mm2" in copiers:
            cache = os.environ.get("REAL_KAFKA_CACHE", os.path.expanduser("~/.cache/real-kafka"))
            run.mm2_classpath = mm2_classpath(a.mm2, cache)
        if "floor" in copiers:
            run.floor = build_floor(work)
        prepare(run, a, work)
        print(
            "%.2f GB of batches in %d partitions, Kafka %s"
            % (run.bytes / 1e9, a.partitions, a.kafka),
            flush=True,
        )
        rows = measure(run, copiers, a.rounds, work)
        for name in copiers:
            if name != "calque" and "calque" in copiers:
                compare(name, rows)
        if a.out:
            with open(a.out, "w") as f:
                json.dump(rows, f, indent=1)
    finally:
        if hasattr(run, "source"):
            run.source.stop()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
