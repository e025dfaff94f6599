"""A real Apache Kafka of any release, from Maven Central's jars, on loopback.

Needs a JDK 17 and Maven. Jars are kept in $REAL_KAFKA_CACHE (default ~/.cache/real-kafka).
Before 3.3 there is a ZooKeeper beside the broker, from 3.3 on a broker is its own controller.
"""
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile

from lib import process

CACHE = os.environ.get("REAL_KAFKA_CACHE", os.path.expanduser("~/.cache/real-kafka"))
LOG4J_1 = """log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""
LOG4J_2 = """Configuration:
  Appenders:
    Console: {name: OUT, target: SYSTEM_%s, PatternLayout: {pattern: "[%%d] %%p %%m (%%c)%%n"}}
  Loggers:
    Root: {level: %s, AppenderRef: [{ref: OUT}]}
"""


def number(version):
    return tuple(int(x) for x in version.split("."))


def resolve(coordinates, into):
    """Copies the artifacts `group:artifact:version` and all that they need into a folder."""
    os.makedirs(os.path.dirname(into), exist_ok=True)
    work = tempfile.mkdtemp(prefix=os.path.basename(into) + ".part", dir=os.path.dirname(into))
    part, pom = os.path.join(work, "jars"), os.path.join(work, "pom.xml")
    wanted = "".join("<dependency><groupId>%s</groupId><artifactId>%s</artifactId>"
                     "<version>%s</version></dependency>" % tuple(c.split(":"))
                     for c in coordinates)
    with open(pom, "w") as f:
        f.write('<project xmlns="http://maven.apache.org/POM/4.0.0">'
                "<modelVersion>4.0.0</modelVersion><groupId>tests</groupId>"
                "<artifactId>kafka</artifactId><version>1</version>"
                "<dependencies>%s</dependencies></project>" % wanted)
    run = subprocess.run(["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies",
                          "-DoutputDirectory=" + part], capture_output=True, text=True)
    if run.returncode:
        shutil.rmtree(work, ignore_errors=True)
        raise RuntimeError("Maven cannot resolve %s:\n%s" % (
            coordinates, (run.stdout + run.stderr)[-2000:]))
    try:
        os.rename(part, into)
    except OSError:
        if not os.path.isdir(into):  # Somebody else was faster: theirs are the same jars.
            raise
    shutil.rmtree(work, ignore_errors=True)


def artifacts(version):
    v = number(version)
    scala = "2.12" if v < (2, 4) else "2.13"
    wanted = [f"org.apache.kafka:kafka_{scala}:{version}"]
    if v >= (3, 0):
        wanted.append(f"org.apache.kafka:kafka-tools:{version}")
    if v >= (4, 0):
        log4j = "2.25.3" if v >= (4, 2) else "2.24.3"
        wanted.append(f"org.apache.logging.log4j:log4j-slf4j-impl:{log4j}")
    elif v >= (3, 0):
        wanted.append("org.slf4j:slf4j-reload4j:1.7.36")
    elif v >= (2, 0):
        wanted += ["log4j:log4j:1.2.17", "org.slf4j:slf4j-log4j12:1.7.25"]
    if v < (1, 0):
        wanted.append("javax.xml.bind:jaxb-api:2.3.1")
    if v < (2, 5):
        # An older ZooKeeper client cannot resolve its server's address on a JDK newer than 13.
        wanted.append("org.apache.zookeeper:zookeeper:3.5.9")
    return wanted


def jars(version):
    """The folder of the release's jars, made at first use."""
    into = os.path.join(CACHE, version)
    if not os.path.isdir(into):
        resolve(artifacts(version), into)
    return into


def classpath(version, *more):
    return os.pathsep.join([*more, os.path.join(jars(version), "*")])


def read(path):
    with open(path) as f:
        return f.read()


def logging_option(version, folder, level="INFO", stream="OUT"):
    """Writes the logging configuration of the release and returns the option that names it."""
    if number(version) >= (4, 0):
        path, text = os.path.join(folder, "log4j2.yaml"), LOG4J_2 % (stream, level)
        option = "-Dlog4j2.configurationFile="
    else:
        path, text, option = os.path.join(folder, "log4j.properties"), LOG4J_1, \
            "-Dlog4j.configuration=file:"
    if not os.path.isfile(path) or read(path) != text:
        part = f"{path}.{os.getpid()}"  # Another program may just be reading it.
        with open(part, "w") as f:
            f.write(text)
        os.rename(part, path)
    return option + path


# Starts fast and small; and as Kafka's own scripts start it, to be measured.
QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
TUNED = ("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20",
         "-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent")


def java_command(version, main, args, *, heap="256m", more_classes=(), options=(), machine=QUICK):
    return ["java", "-Xmx" + heap, *machine, *options,
            "-cp", classpath(version, *more_classes), main, *args]


def run_class(version, main, args, *, timeout=120, check=True, more_classes=(), input=None):
    """Runs a class of the release, or one of ours against its jars; output as bytes."""
    quiet = os.path.join(CACHE, "quiet")
    os.makedirs(quiet, exist_ok=True)
    options = [logging_option(version, quiet, "WARN", "ERR")] if number(version) >= (4, 0) else []
    run = subprocess.run(java_command(version, main, args, more_classes=more_classes,
                                      options=options),
                         capture_output=True, timeout=timeout, input=input)
    if check and run.returncode:
        raise AssertionError("%s %s ended with %d\n%s" % (main, " ".join(args), run.returncode,
                             (run.stdout[-1500:] + run.stderr[-3000:]).decode(errors="replace")))
    return run


def compiled(source, version="4.4.0"):
    """Compiles one of our Java programs; returns the folder of its classes, kept between runs."""
    with open(source, "rb") as f:
        text = f.read()
    key = hashlib.sha256(text + version.encode()).hexdigest()[:16]
    into = os.path.join(CACHE, "classes", key)
    if not os.path.isdir(into):
        os.makedirs(os.path.dirname(into), exist_ok=True)
        part = tempfile.mkdtemp(dir=os.path.dirname(into))
        run = subprocess.run(["javac", "-nowarn", "-proc:none", "-cp", classpath(version),
                              "-d", part, source], capture_output=True, text=True)
        if run.returncode:
            shutil.rmtree(part, ignore_errors=True)
            raise RuntimeError(f"javac {source}:\n{run.stdout}{run.stderr}")
        try:
            os.rename(part, into)
        except OSError:
            shutil.rmtree(part, ignore_errors=True)
    return into


class Kafka:
    """One or more brokers of one release. Data, logs and settings stay in `folder`."""

    def __init__(self, version, folder, nodes=1, heap="384m", zookeeper=False, settings=None,
                 machine=QUICK):
        self.machine = machine
        self.version, self.folder, self.nodes, self.heap = version, folder, nodes, heap
        self.kraft = number(version) >= (4, 0) or (number(version) >= (3, 3) and not zookeeper)
        self.ports = [process.free_port() for _ in range(2 * nodes + 1)]
        self.settings = settings or {}
        self.brokers, self.zookeeper, self.formatted = [], None, False
        os.makedirs(folder, exist_ok=True)

    @property
    def bootstrap(self):
        return ",".join(f"127.0.0.1:{self.ports[2 * i]}" for i in range(self.nodes))

    @property
    def data_folders(self):
        return [os.path.join(self.folder, f"data-{i + 1}") for i in range(self.nodes)]

    def _properties(self, i):
        copies = min(3, self.nodes)
        broker, controller = self.ports[2 * i], self.ports[2 * i + 1]
        p = {"log.dirs": self.data_folders[i],
             "offsets.topic.replication.factor": copies, "offsets.topic.num.partitions": 4,
             "transaction.state.log.replication.factor": copies,
             "transaction.state.log.num.partitions": 4,
             "transaction.state.log.min.isr": max(1, copies - 1),
             "group.initial.rebalance.delay.ms": 0, "controlled.shutdown.max.retries": 1,
             "log.cleaner.dedupe.buffer.size": 16777216}
        if self.kraft:
            voters = ",".join(f"{n + 1}@127.0.0.1:{self.ports[2 * n + 1]}"
                              for n in range(self.nodes))
            p.update({
                "process.roles": "broker,controller", "node.id": i + 1,
                "controller.quorum.voters": voters,
                "listeners": f"PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}",
                "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker}",
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"})
        else:
            p.update({"broker.id": i + 1, "zookeeper.connect": f"127.0.0.1:{self.ports[-1]}",
                      "listeners": f"PLAINTEXT://127.0.0.1:{broker}",
                      "zookeeper.session.timeout.ms": 6000,
                      # A partition with one copy cannot be moved away: do not try to.
                      "controlled.shutdown.enable": "false"})
        p.update(self.settings)
        path = os.path.join(self.folder, f"server-{i + 1}.properties")
        with open(path, "w") as f:
            f.writelines(f"{k}={v}\n" for k, v in sorted(p.items()))
        return path

    def _format(self, paths):
        tool = "kafka.tools.StorageTool"
        made = run_class(self.version, tool, ["random-uuid"]).stdout.split()[-1].decode()
        for path in paths:
            run_class(self.version, tool, ["format", "-t", made, "-c", path])
        self.formatted = True

    def _spawn(self, main, args, log, heap):
        options = [logging_option(self.version, self.folder)]
        return process.start(java_command(self.version, main, args, heap=heap, options=options,
                                          machine=self.machine), log)

    def _await_port(self, child, port, log):
        def up():
            if child.poll() is not None:
                raise AssertionError(f"Kafka {self.version} ended\n{process.tail(log)}")
            return process.connects(port)
        try:
            process.wait_for(f"Kafka {self.version} on port {port}", up, 240)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{process.tail(log)}") from None

    def start(self):
        """Starts the brokers, anew or again, and returns the bootstrap address once they answer."""
        paths = [self._properties(i) for i in range(self.nodes)]
        if self.kraft and not self.formatted:
            self._format(paths)
        if not self.kraft and self.zookeeper is None:
            conf, port = os.path.join(self.folder, "zookeeper.cfg"), self.ports[-1]
            with open(conf, "w") as f:
                f.write(f"tickTime=2000\ndataDir={self.folder}/zookeeper\nclientPort={port}\n"
                        "clientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
                        "4lw.commands.whitelist=dump\n")
            log = os.path.join(self.folder, "zookeeper.log")
            self.zookeeper = self._spawn("org.apache.zookeeper.server.quorum.QuorumPeerMain",
                                         [conf], log, "96m")
            self._await_port(self.zookeeper, port, log)
        elif not self.kraft:
            process.wait_for("the sessions of killed brokers to end",
                             lambda: not self._is_registered(), 60)
        self.brokers = [self._spawn("kafka.Kafka", [path], self._log(i), self.heap)
                        for i, path in enumerate(paths)]
        for i, child in enumerate(self.brokers):
            self._await_port(child, self.ports[2 * i], self._log(i))
        return self.bootstrap

    def _is_registered(self):
        """Whether ZooKeeper still knows a broker: while it does, none of its number can start."""
        with socket.create_connection(("127.0.0.1", self.ports[-1]), 5) as s:
            s.sendall(b"dump")
            said = b"".join(iter(lambda: s.recv(65536), b""))
        if b"SessionTracker" not in said:
            raise AssertionError(f"ZooKeeper says {said!r}")
        return b"/brokers/ids/" in said

    def _log(self, i):
        return os.path.join(self.folder, f"server-{i + 1}.log")

    def stop_brokers(self, kill=False):
        for child in self.brokers:
            process.end(child, signal.SIGKILL if kill else signal.SIGTERM, 60)
        self.brokers = []

    def restart(self):
        """One broker after the other, so that with several the controller is never away."""
        for i, child in enumerate(self.brokers):
            process.end(child, signal.SIGTERM, 60)
            self.brokers[i] = self._spawn("kafka.Kafka", [self._properties(i)], self._log(i),
                                          self.heap)
            self._await_port(self.brokers[i], self.ports[2 * i], self._log(i))

    def stop(self, kill=False):
        self.stop_brokers(kill)
        if self.zookeeper is not None:
            process.end(self.zookeeper, signal.SIGKILL)
            self.zookeeper = None
