#!/usr/bin/env python3
"""Administration: the same requests to a real Kafka and to us, and Kafka's own tools against us.

    admin_test.py [--list] [NAME...]      NAME: administration or tools

KAFKA_ADDRESS=host:port takes a Kafka 4.4.0 that runs already, CASES=text only the cases whose name
has the text. The tables of requests stand in tests/lib/differential. Sentences for people (error
messages, documentation) are our own: compared is whether there is one.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from lib import process, real_kafka, suite, wire
from lib.calque import Calque
from lib.differential import comparison, tables, versions
from lib.differential.compare import Case

VERSION = comparison.VERSION


def served(both):
    """As a client sees it: a Kafka lists each API that we do, in the same versions, and each of
    them is compared."""
    kafka, ours = (b.ask("ApiVersions", 4, {"clientSoftwareName": "tests",
                                            "clientSoftwareVersion": "1"})
                   for b in (both.pair.kafka, both.pair.ours))
    theirs, mine = versions.listed(kafka), versions.listed(ours)
    suite.equal("ranges that Kafka has not",
                {k: (r, theirs.get(k)) for k, r in mine.items() if theirs.get(k) != r}, {})
    compared = {both.pair.kafka.codec.key(api) for api in tables.COMPARED}
    suite.equal("served, but not compared", set(mine) - compared, set())
    features = {f["name"]: f["maxVersion"] for f in kafka["supportedFeatures"]}
    suite.equal("features that Kafka has not",
                [f for f in ours.get("supportedFeatures", ())
                 if f["maxVersion"] > features.get(f["name"], -1)], [])
    return f"{len(mine)} APIs"


def beyond(both):
    ours = both.pair.ours.ask("ApiVersions", 0, {})
    keys = set(versions.listed(ours)) - {both.pair.ours.codec.key("ApiVersions")}
    return both.run(Case("beyond", lambda b: versions.unserved_versions(b, keys)))


administration = comparison.suite_of(
    tables.ADMINISTRATION, tables.ADMINISTRATION_APIS,
    more=(("what is listed is what Kafka lists", served),
          ("versions that nobody serves end the connection", beyond)))


class Tools:
    """Kafka's own command-line programs, as an operator runs them."""

    def __init__(self, tests):
        self.tests, self.calque = tests, None

    def start(self):
        self.calque = Calque(os.path.join(self.tests.folder, "calque"), {
            "log.segment.delete.delay.ms": 1000, "broker.rack": "r1"})
        self.calque.start()

    def clean(self):
        if self.calque is not None and self.calque.child is not None:
            self.calque.kill()

    def run(self, main, *args, check=True):
        run = real_kafka.run_class(VERSION, "org.apache.kafka.tools." + main,
                                   ["--bootstrap-server", self.calque.bootstrap, *args],
                                   check=check)
        return (run.stdout + (b"" if check else run.stderr)).decode()

    def says(self, output, *wanted):
        for one in wanted:
            if one not in output:
                raise AssertionError(f"'{one}' is not in:\n{output[:3000]}")

    def produce(self, topic, count):
        lines = "".join(f"value-{i}\n" for i in range(count)).encode()
        run = real_kafka.run_class(VERSION, "org.apache.kafka.tools.ConsoleProducer",
                                   ["--bootstrap-server", self.calque.bootstrap, "--topic", topic],
                                   input=lines)
        if run.stdout.strip(b" >\n") or run.stderr:  # It ends with 0 even if nothing was taken.
            raise AssertionError(f"it says {(run.stdout + run.stderr).decode()}")

    def topics(self):
        run = self.run
        self.says(run("TopicCommand", "--create", "--topic", "orders", "--partitions", "3",
                      "--config", "retention.ms=3600000"), "Created topic orders.")
        self.says(run("TopicCommand", "--create", "--topic", "orders", check=False),
                  "already exists")
        run("TopicCommand", "--create", "--topic", "orders", "--if-not-exists")
        suite.equal("topics", run("TopicCommand", "--list").split(), ["orders"])
        self.says(run("TopicCommand", "--describe", "--topic", "orders"), "PartitionCount: 3",
                  "ReplicationFactor: 1", "retention.ms=3600000", "Leader: 1")
        run("TopicCommand", "--alter", "--topic", "orders", "--partitions", "5")
        self.says(run("TopicCommand", "--describe", "--topic", "orders"), "PartitionCount: 5")
        suite.equal("under-replicated", run("TopicCommand", "--describe",
                                            "--under-replicated-partitions").strip(), "")
        run("TopicCommand", "--create", "--topic", "doomed")
        run("TopicCommand", "--delete", "--topic", "doomed")
        suite.equal("topics", run("TopicCommand", "--list").split(), ["orders"])

    def configs(self):
        run = self.run
        topic = ("--entity-type", "topics", "--entity-name", "orders")
        self.says(run("ConfigCommand", "--describe", *topic), "retention.ms=3600000",
                  "DYNAMIC_TOPIC_CONFIG:retention.ms=3600000")
        run("ConfigCommand", "--alter", *topic, "--add-config",
            "cleanup.policy=[compact,delete],segment.ms=60000", "--delete-config", "retention.ms")
        shown = run("ConfigCommand", "--describe", *topic)
        self.says(shown, "cleanup.policy=compact,delete", "segment.ms=60000")
        if "retention.ms=3600000" in shown:
            raise AssertionError(f"retention.ms is still there:\n{shown}")
        run("ConfigCommand", "--alter", *topic, "--delete-config", "cleanup.policy")
        self.says(run("ConfigCommand", "--describe", "--all", *topic), "max.message.bytes=1048588")
        self.says(run("ConfigCommand", "--alter", *topic, "--add-config", "segment.ms=x",
                      check=False), "segment.ms")
        run("ConfigCommand", "--alter", "--entity-type", "brokers", "--entity-default",
            "--add-config", "log.retention.ms=7200000")
        self.says(run("ConfigCommand", "--describe", "--entity-type", "brokers",
                      "--entity-default"), "log.retention.ms=7200000")
        self.says(run("ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-name",
                      "1", "--all"), "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=7200000")
        run("ConfigCommand", "--alter", "--entity-type", "broker-loggers", "--entity-name", "1",
            "--add-config", "root=WARN")
        self.says(run("ConfigCommand", "--describe", "--entity-type", "broker-loggers",
                      "--entity-name", "1"), "root=WARN")
        run("ConfigCommand", "--alter", "--entity-type", "broker-loggers", "--entity-name", "1",
            "--add-config", "root=INFO")
        group = ("--entity-type", "groups", "--entity-name", "billing")
        run("ConfigCommand", "--alter", *group, "--add-config",
            "consumer.session.timeout.ms=50000,share.heartbeat.interval.ms=6000")
        self.says(run("ConfigCommand", "--describe", *group),
                  "consumer.session.timeout.ms=50000", "share.heartbeat.interval.ms=6000")
        self.says(run("ConfigCommand", "--describe", "--entity-type", "groups"), "billing")
        self.says(run("ConfigCommand", "--alter", *group, "--add-config",
                      "consumer.session.timeout.ms=5", check=False), "45000")
        run("ConfigCommand", "--alter", *group, "--delete-config",
            "consumer.session.timeout.ms,share.heartbeat.interval.ms")

    def quotas(self):
        run = self.run
        user = ("--entity-type", "users", "--entity-name", "alice")
        run("ConfigCommand", "--alter", *user, "--add-config",
            "producer_byte_rate=1048576,request_percentage=25")
        run("ConfigCommand", "--alter", "--entity-type", "clients", "--entity-default",
            "--add-config", "consumer_byte_rate=2097152")
        self.says(run("ConfigCommand", "--describe", *user), "producer_byte_rate=1048576",
                  "request_percentage=25")
        self.says(run("ConfigCommand", "--describe", "--entity-type", "clients",
                      "--entity-default"), "consumer_byte_rate=2097152")
        run("ConfigCommand", "--alter", *user, "--delete-config",
            "producer_byte_rate,request_percentage")
        run("ConfigCommand", "--alter", "--entity-type", "clients", "--entity-default",
            "--delete-config", "consumer_byte_rate")

    def throttled(self):
        """A tool that produces more than it may is slowed down to what it may, and told so."""
        self.run("TopicCommand", "--create", "--topic", "limited")
        self.run("ConfigCommand", "--alter", "--entity-type", "clients", "--entity-name", "slow",
                 "--add-config", "producer_byte_rate=200000")
        out = real_kafka.run_class(VERSION, "org.apache.kafka.tools.ProducerPerformance", [
            "--bootstrap-server", self.calque.bootstrap, "--topic", "limited", "--num-records",
            "4000", "--record-size", "1000", "--throughput", "-1", "--command-property",
            "client.id=slow", "--print-metrics"], timeout=180).stdout.decode()
        # 2 MB may be borrowed, the other two take ten seconds: 80 ms for a batch of 16 kB.
        rate = float(out.split(" records/sec")[-2].split(", ")[-1])
        if rate > 450:
            raise AssertionError(f"{rate} records of 1 kB a second under a quota of 200 kB/s")
        slow = [line for line in out.splitlines() if "produce-throttle-time-max" in line]
        if not slow or float(slow[0].rsplit(":", 1)[1]) < 40:
            raise AssertionError(f"the producer was not told that it is throttled: {slow}")
        self.run("ConfigCommand", "--alter", "--entity-type", "clients", "--entity-name", "slow",
                 "--delete-config", "producer_byte_rate")
        return f"{rate} records/s"

    def offsets(self):
        self.produce("orders", 40)
        out = self.run("GetOffsetShell", "--topic", "orders")
        suite.equal("end offsets", sum(int(l.rsplit(":", 1)[1]) for l in out.split()), 40)
        ends = {int(l.split(":")[1]): int(l.split(":")[2]) for l in out.split()}
        filled = max(ends, key=ends.get)
        path = os.path.join(self.tests.folder, "delete.json")
        with open(path, "w") as f:
            json.dump({"version": 1, "partitions": [
                {"topic": "orders", "partition": filled, "offset": 1}]}, f)
        self.says(self.run("DeleteRecordsCommand", "--offset-json-file", path),
                  f"partition: orders-{filled}\tlow_watermark: 1")
        out = self.run("GetOffsetShell", "--topic", "orders", "--time", "-2")
        self.says(out, f"orders:{filled}:1")

    def directories(self):
        out = self.run("LogDirsCommand", "--describe", "--topic-list", "orders")
        described = json.loads(next(l for l in out.splitlines() if l.startswith("{")))
        directory = described["brokers"][0]["logDirs"][0]
        suite.equal("the directory", directory["logDir"], self.calque.data)
        suite.equal("partitions", len(directory["partitions"]), 5)
        if not sum(p["size"] for p in directory["partitions"]):
            raise AssertionError(f"nothing was written: {directory}")

    def the_cluster(self):
        self.says(self.run("LeaderElectionCommand", "--election-type", "preferred",
                           "--topic", "orders", "--partition", "0"),
                  "Valid replica already elected")
        self.says(self.run("MetadataQuorumCommand", "describe", "--status"), "LeaderId:",
                  "CurrentVoters:")
        self.says(self.run("BrokerApiVersionsCommand"), "IncrementalAlterConfigs(44): 0 to 1",
                  "rack: r1")
        run = real_kafka.run_class(VERSION, "org.apache.kafka.tools.ClusterTool",
                                   ["cluster-id", "--bootstrap-server", self.calque.bootstrap])
        with wire.Client(self.calque.bootstrap) as client:
            client.metadata()
            self.says(run.stdout.decode(), client.cluster_id)
        path = os.path.join(self.tests.folder, "moves.json")
        with open(path, "w") as f:
            json.dump({"version": 1, "partitions": [
                {"topic": "orders", "partition": 0, "replicas": [1]}]}, f)
        self.run("reassign.ReassignPartitionsCommand", "--reassignment-json-file", path,
                 "--execute")
        self.says(self.run("reassign.ReassignPartitionsCommand", "--list"),
                  "No partition reassignments found.")

    def deletion(self):
        """The directory of a deleted topic is renamed at once and removed after the delay."""
        self.run("TopicCommand", "--delete", "--topic", "orders")
        names = os.listdir(self.calque.data)
        if any(n.startswith("orders-") and not n.endswith("-delete") for n in names):
            raise AssertionError(f"still there: {names}")
        process.wait_for("the files to be removed", lambda: not any(
            n.startswith("orders") for n in os.listdir(self.calque.data)), 20)

    def end(self):
        self.calque.stop()


def tools(tests):
    t = Tools(tests)
    tests.test("start", needed=True)(t.start)
    for name, body in (("kafka-topics", t.topics), ("kafka-configs", t.configs),
                       ("kafka-configs for quotas", t.quotas), ("a quota acts", t.throttled),
                       ("kafka-get-offsets and kafka-delete-records", t.offsets),
                       ("kafka-log-dirs", t.directories),
                       ("leaders, quorum, versions, cluster id, reassignments", t.the_cluster),
                       ("topics are deleted in two steps", t.deletion), ("a clean end", t.end)):
        tests.test(name)(body)
    return t.clean


if __name__ == "__main__":
    sys.exit(suite.main({"administration": administration, "tools": tools}))
