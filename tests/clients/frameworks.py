"""Kafka Connect's workers and Kafka Streams' instances as groups: see groups.py for the halves."""
import json
import os
import signal
import time
import urllib.request

from clients import builds, members
from lib import clients, process
from lib.differential import broker
from lib.suite import equal

VERSION = "4.4.0"
CONNECT = "4.3.0"  # The connectors for files that are on Maven Central do not load in 4.4.0.
WAIT_S = 90


class Streams(members.Group):
    """A group whose parts are tasks: two for each of six partitions, before and after a topic
    that Streams makes itself."""

    def __init__(self, folder, bootstrap, codec, name):
        super().__init__(folder, bootstrap, codec, name)
        self.output, self.counts = name + "-counts", {}
        self.broker.topic(self.output, 1, retention_ms=-1)
        self.written, self.inputs = 0, self.partitions
        self.partitions = {f"{t}_{p}" for t in (0, 1) for p in self.inputs}

    def produce(self, count=10):
        """Values that are spread over the partitions of the topic between."""
        self.partitions, tasks = self.inputs, self.partitions
        super().produce(count)
        self.partitions = tasks

    def value(self, n):
        return f"word-{n % 40}".encode()

    def read_counts(self):
        """The last count of each word."""
        found = {}
        for line in clients.with_kcat(self.bootstrap, self.output, 0).decode().splitlines():
            key, value = line.split()[-2:]
            found[key] = int(value)
        return found

    def await_counts(self):
        wanted = {}
        for n in range(self.ends):
            word = self.value(n).decode()
            wanted[word] = wanted.get(word, 0) + len(self.inputs)
        try:
            process.wait_for("the counts", lambda: self.read_counts() == wanted, WAIT_S, 0.5)
        except AssertionError:
            equal("counts", self.read_counts(), wanted)
        self.await_all_committed()

    def await_all_committed(self):
        """Then nothing is counted twice, whoever dies."""
        process.wait_for("the commits", lambda: all(
            self.committed().get(p, 0) == self.ends for p in self.inputs), 30, 0.3)


class WordCount:
    name, version, what = "Kafka Streams", VERSION, "two instances that count, at least once"

    def __init__(self):
        self.group = None

    def command(self):
        return builds.once(self.name, lambda: builds.streams(VERSION))

    def start(self, folder, bootstrap, codec):
        self.command()
        self.group = Streams(folder, bootstrap, codec, "g-streams")

    def join(self):
        state = os.path.join(self.group.folder, f"streams-{len(self.group.all)}")
        return self.group.join(self, "classic", output=self.group.output, state=state)

    def round(self):
        took = self.group.settle(WAIT_S)
        self.group.produce(40)
        self.group.await_counts()
        return took

    def first(self):
        self.join()
        self.round()
        other = self.join()
        shared = self.round()
        equal("type of the group", self.group.kind(), ("classic", "consumer", "Stable"))
        time.sleep(1)  # A commit of the later tasks as well.
        other.end(kill=True)
        self.group.live.remove(other)
        lost = self.round()
        self.join()
        again = self.round()
        time.sleep(1)
        return f"shared after {shared:.1f} s, lost after {lost:.1f} s, again after {again:.1f} s"

    def burst(self):
        return

    def excuse(self):
        return

    def second(self):
        took = self.round()
        # An instance that ends stays a member until its session is over.
        last = self.group.live.pop()
        last.end()
        left = self.round()
        self.group.live.pop().end()
        return f"shared again after {took:.1f} s, went on alone after {left:.1f} s"

    def clean(self):
        if self.group is not None:
            self.group.clean()


class Worker:
    def __init__(self, connect, n):
        self.port = process.free_port()
        self.log = os.path.join(connect.folder, f"worker-{n}.log")
        path = os.path.join(connect.folder, f"worker-{n}.properties")
        settings = {
            "bootstrap.servers": connect.bootstrap, "group.id": connect.group,
            "listeners": f"http://127.0.0.1:{self.port}", "rest.advertised.host.name": "127.0.0.1",
            "session.timeout.ms": 6000, "heartbeat.interval.ms": 1000,
            "scheduled.rebalance.max.delay.ms": 1000, "offset.flush.interval.ms": 500,
            "plugin.discovery": "service_load", "consumer.session.timeout.ms": 6000,
            "consumer.heartbeat.interval.ms": 1000}
        for kind in ("config", "offset", "status"):
            settings[f"{kind}.storage.topic"] = f"{connect.group}-{kind}"
            settings[f"{kind}.storage.replication.factor"] = 1
        for kind in ("offset", "status"):
            settings[f"{kind}.storage.partitions"] = 2
        for kind in ("key", "value"):
            settings[f"{kind}.converter"] = "org.apache.kafka.connect.storage.StringConverter"
        with open(path, "w") as f:
            f.writelines(f"{k}={v}\n" for k, v in settings.items())
        self.child = process.start([*builds.connect(CONNECT), path], self.log)

    def ask(self, path, body=None):
        """The answer, or None while there is no right one."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/{path}", None if body is None else
            json.dumps(body).encode(), {"Content-Type": "application/json"},
            method="GET" if body is None else "PUT")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return json.load(answer)
        except (OSError, ValueError):  # Also what HTTP calls an error: a rebalance is on.
            return None


class Connect:
    """A file goes through a topic into another file, by one task on each of two workers."""

    name, version, what = "Kafka Connect", CONNECT, "two workers, a source and a sink of files"
    group, topic = "g-connect", "g-connect-lines"

    def __init__(self):
        self.workers, self.lines, self.broker = [], 0, None

    def start(self, folder, bootstrap, codec):
        self.folder, self.bootstrap = os.path.join(folder, "connect"), bootstrap
        os.makedirs(self.folder)
        builds.connect(CONNECT)
        self.broker = broker.Broker(self.name, bootstrap, codec)
        self.broker.topic(self.topic, 1, retention_ms=-1)
        self.source, self.sink = (os.path.join(self.folder, n) for n in ("source", "sink"))
        self.write(20)

    def write(self, count):
        with open(self.source, "a") as f:
            f.writelines(f"line {self.lines + i}\n" for i in range(count))
        self.lines += count

    def add_worker(self):
        worker = Worker(self, len(os.listdir(self.folder)))
        self.workers.append(worker)
        return worker

    def wait_for(self, what, condition):
        try:
            return process.wait_for(what, condition, WAIT_S, 0.3)
        except AssertionError as e:
            tails = [f"{self.tasks(w)}\n{process.tail(w.log)}" for w in self.workers]
            raise AssertionError("\n".join([str(e), *tails])) from None

    def create(self):
        file = "org.apache.kafka.connect.file.FileStream"
        for name, kind, settings in (
                ("source", "Source", {"topic": self.topic, "file": self.source}),
                ("sink", "Sink", {"topics": self.topic, "file": self.sink})):
            body = {"connector.class": f"{file}{kind}Connector", "tasks.max": "1", **settings}
            self.wait_for(f"the connector {name}", lambda: self.workers[0].ask(
                f"connectors/{name}/config", body))

    def tasks(self, worker):
        """{connector: the port of the worker where its task runs}"""
        found = {}
        for name in ("source", "sink"):
            status = worker.ask(f"connectors/{name}/status")
            for task in (status or {}).get("tasks", []):
                if task["state"] == "RUNNING":
                    found[name] = int(task["worker_id"].rsplit(":", 1)[1])
        return found

    def await_tasks(self):
        """Both run, and no worker that is there idles."""
        ports = {w.port for w in self.workers}
        return self.wait_for("the tasks", lambda: (lambda t: len(t) == 2 and set(
            t.values()) == ports and t)(self.tasks(self.workers[0])))

    def await_lines(self):
        def arrived():
            try:
                with open(self.sink) as f:
                    return set(f.read().splitlines()) == {
                        f"line {i}" for i in range(self.lines)}
            except FileNotFoundError:
                return False
        self.wait_for(f"all {self.lines} lines", arrived)

    def first(self):
        self.add_worker()
        self.create()
        self.await_tasks()
        self.await_lines()
        self.add_worker()
        self.await_tasks()
        self.write(20)
        self.await_lines()
        found = self.broker.ask("DescribeGroups", 5, {"groups": [self.group]})["groups"][0]
        equal("the workers' group", (found["groupState"], found["protocolType"],
                                     found["protocolData"], len(found["members"])),
              ("Stable", "connect", "sessioned", 2))
        victim = next(w for w in self.workers
                      if w.port == self.tasks(self.workers[0])["source"])
        began = time.monotonic()
        process.end(victim.child, signal.SIGKILL)
        self.workers.remove(victim)
        self.write(20)
        self.await_tasks()
        lost = time.monotonic() - began
        self.await_lines()
        self.add_worker()
        self.await_tasks()
        return f"the task of a dead worker went on after {lost:.1f} s"

    def burst(self):
        self.write(20)

    def excuse(self):
        return

    def second(self):
        self.await_lines()
        self.write(20)
        self.await_tasks()
        self.await_lines()
        began = time.monotonic()
        equal("end of a worker", process.end(self.workers.pop().child, signal.SIGTERM, 40), 143)
        self.await_tasks()
        left = time.monotonic() - began
        self.write(20)
        self.await_lines()
        equal("end of a worker", process.end(self.workers.pop().child, signal.SIGTERM, 40), 143)
        return f"the task of a worker that ended went on after {left:.1f} s"

    def clean(self):
        for w in self.workers:
            process.end(w.child, signal.SIGKILL)
        if self.broker is not None:
            self.broker.close()


def runs():
    return [Connect(), WordCount()]
