"""Kafka's own command-line programs, of a new and an old release."""
import json
import os
import re
import subprocess
import threading

from clients import builds, plan
from clients.plan import (CREATE_PARTITIONS, DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS,
                          INCREMENTAL_ALTER_CONFIGS, JOIN_GROUP)
from lib import real_kafka
from lib.suite import equal

VERSIONS = ("4.4.0", "2.8.2")
TIMEOUT_S = 240
MAINS = {  # Those that moved.
    "4.4.0": {"topics": "org.apache.kafka.tools.TopicCommand",
              "configs": "org.apache.kafka.tools.ConfigCommand",
              "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
              "console-producer": "org.apache.kafka.tools.ConsoleProducer",
              "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
              "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
              "consumer-perf-test": "org.apache.kafka.tools.ConsumerPerformance"},
    "2.8.2": {"topics": "kafka.admin.TopicCommand", "configs": "kafka.admin.ConfigCommand",
              "get-offsets": "kafka.tools.GetOffsetShell",
              "console-producer": "kafka.tools.ConsoleProducer",
              "console-consumer": "kafka.tools.ConsoleConsumer",
              "log-dirs": "kafka.admin.LogDirsCommand",
              "consumer-perf-test": "kafka.tools.ConsumerPerformance"}}
COMMON = {"producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
          "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
          "verifiable-consumer": "org.apache.kafka.tools.VerifiableConsumer",
          "client-compatibility-test": "org.apache.kafka.tools.ClientCompatibilityTest"}
ONE_AT_A_TIME = threading.Lock()
LOG4J_1 = "log4j.rootLogger=WARN, err\nlog4j.appender.err=org.apache.log4j.ConsoleAppender\n" \
          "log4j.appender.err.target=System.err\n" \
          "log4j.appender.err.layout=org.apache.log4j.SimpleLayout\n"


def jars(version):
    if version == "4.4.0":
        return real_kafka.jars(version)
    into = os.path.join(builds.CACHE, "kafka-" + version)
    with builds.alone("kafka-" + version):
        if not os.path.isdir(into):
            try:
                real_kafka.resolve([f"org.apache.kafka:kafka_2.13:{version}",
                                    f"org.apache.kafka:kafka-tools:{version}"], into)
            except (RuntimeError, OSError) as e:
                raise builds.Missing(str(e).replace("\n", " | ")[-900:]) from None
    return into


class Tools:
    """One release's programs; each method is one test and returns what it has to say."""

    def __init__(self, version, broker, served, folder):
        self.version, self.broker, self.served, self.folder = version, broker, served, folder
        self.old = version == "2.8.2"
        self.topic = f"kafka-{version}"

    def tests(self):
        """(name, what it needs, method)"""
        return [("topics", (CREATE_PARTITIONS,), self.topics),
                ("configs", (INCREMENTAL_ALTER_CONFIGS, DESCRIBE_CONFIGS), self.configs),
                ("get-offsets", (), self.get_offsets),
                ("console producer and consumer", (), self.console),
                ("verifiable-producer", (), self.verifiable_producer),
                ("verifiable-consumer", (JOIN_GROUP,), self.verifiable_consumer),
                ("client-compatibility-test", (), self.compatibility),
                ("log-dirs", (DESCRIBE_LOG_DIRS,), self.log_dirs),
                ("producer-perf-test", (), self.producer_perf),
                ("consumer-perf-test", (JOIN_GROUP,), self.consumer_perf)]

    def run(self, name, *args, data=None, check=True):
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        if self.old:
            path = os.path.join(self.folder, "log4j-1.properties")
            with open(path, "w") as f:
                f.write(LOG4J_1)
            command.append(f"-Dlog4j.configuration=file:{path}")
        else:
            command.append(real_kafka.logging_option(self.version, self.folder, "WARN", "ERR"))
        main = MAINS[self.version].get(name) or COMMON[name]
        folder = builds.once("tools " + self.version, lambda: jars(self.version))
        done = subprocess.run([*command, "-cp", folder + "/*", main, *args], input=data,
                              capture_output=True, timeout=TIMEOUT_S,
                              **({} if data is not None else {"stdin": subprocess.DEVNULL}))
        output, errors = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        if check and done.returncode:
            raise AssertionError(f"{name} {' '.join(args)} ended with {done.returncode}\n"
                                 f"{output[-1500:]}{errors[-1500:]}")
        return output, errors

    def at(self, *args):
        return ["--bootstrap-server", self.broker, *args]

    def create(self, topic, partitions=1):
        self.run("topics", *self.at("--create", "--topic", topic, "--partitions", str(partitions),
                                    "--replication-factor", "1", "--config", "retention.ms=-1"))

    def topics(self):
        topic = self.topic + "-topics"
        self.create(topic, 2)
        said, _ = self.run("topics", *self.at("--describe", "--topic", topic))
        for wanted in (r"PartitionCount:\s*2", r"ReplicationFactor:\s*1", r"retention\.ms=-1",
                       r"Partition:\s*1\s+Leader:\s*1\s+Replicas:\s*1\s+Isr:\s*1"):
            if not re.search(wanted, said):
                raise AssertionError(f"no {wanted} in\n{said}")
        self.run("topics", *self.at("--alter", "--topic", topic, "--partitions", "3"))
        _, errors = self.run("topics", *self.at("--create", "--topic", topic), check=False)
        said, out = self.run("topics", *self.at("--create", "--topic", topic), check=False)
        if "already exists" not in said + out + errors:
            raise AssertionError(f"a second creation said: {said}{out}")
        self.run("topics", *self.at("--delete", "--topic", topic))
        names = self.run("topics", *self.at("--list"))[0].split()
        equal("shared in the list", "shared" in names, True)
        equal("the deleted one in the list", topic in names, False)

    def configs(self):
        topic = self.topic + "-configs"
        self.create(topic)
        entity = ["--entity-type", "topics", "--entity-name", topic]
        self.run("configs", *self.at(*entity, "--alter", "--add-config",
                                     "max.message.bytes=123456,cleanup.policy=compact"))
        said, _ = self.run("configs", *self.at(*entity, "--describe"))
        for wanted in ("max.message.bytes=123456", "cleanup.policy=compact"):
            if wanted not in said:
                raise AssertionError(f"no {wanted} in\n{said}")
        self.run("configs", *self.at(*entity, "--alter", "--delete-config", "max.message.bytes"))
        said, _ = self.run("configs", *self.at(*entity, "--describe"))
        equal("the deleted setting", "max.message.bytes=123456" in said, False)
        said, _ = self.run("configs", *self.at("--entity-type", "brokers", "--entity-name", "1",
                                               "--describe", "--all"))
        equal("log.retention.ms of the broker", "log.retention.ms=" in said, True)

    def get_offsets(self):
        count = len(plan.SHARED)
        where = ["--broker-list" if self.old else "--bootstrap-server", self.broker, "--topic",
                 "shared", "--time"]
        asked = {"-2": 0, "-1": count, str(plan.T0 + 3500): 4}
        for time, offset in asked.items():
            said, _ = self.run("get-offsets", *where, time)
            equal(f"offset at {time}", said.split(), [f"shared:0:{offset}"])

    def console(self):
        topic = self.topic + "-console"
        self.create(topic)
        lines = [f"k{i}\tvalue {i} \u20ac" for i in range(50)]
        reader, formatter = ("--property", "--property") if self.old else \
            ("--reader-property", "--formatter-property")
        self.run("console-producer", *self.at(
            "--topic", topic, reader, "parse.key=true", reader, "key.separator=\t",
            "--compression-codec", "zstd"), data="\n".join(lines).encode() + b"\n")
        said, errors = self.run("console-consumer", *self.at(
            "--topic", topic, "--partition", "0", "--offset", "earliest", "--max-messages", "50",
            "--timeout-ms", "30000", formatter, "print.key=true"))
        equal(f"what was read ({errors[-300:]})", said.splitlines(), lines)

    def verifiable_producer(self):
        topic = self.topic + "-verifiable"
        self.create(topic)
        said, _ = self.run("verifiable-producer", *(["--broker-list", self.broker] if self.old
                                                    else self.at()),
                           "--topic", topic, "--max-messages", "500", "--acks", "-1",
                           "--throughput", "-1")
        told = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        offsets = sorted(t["offset"] for t in told if t["name"] == "producer_send_success")
        equal("offsets of the acknowledged", offsets, list(range(500)))

    def verifiable_consumer(self):
        topic = self.topic + "-verifiable-consumer"
        self.create(topic)
        self.run("producer-perf-test", "--topic", topic, "--num-records", "500", "--record-size",
                 "20", "--throughput", "-1", "--producer-props", f"bootstrap.servers={self.broker}")
        said, _ = self.run("verifiable-consumer", *(["--broker-list", self.broker] if self.old
                                                    else self.at()),
                           "--topic", topic, "--group-id", topic, "--max-messages", "500",
                           "--reset-policy", "earliest")
        told = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        equal("records consumed",
              sum(t["count"] for t in told if t["name"] == "records_consumed"), 500)

    def compatibility(self):
        supported = ["--offsets-for-times-supported", "true", "--cluster-id-supported", "true",
                     "--expect-record-too-large-exception", "false", "--num-cluster-nodes", "1",
                     "--create-topics-supported", "true", "--describe-configs-supported", "true",
                     "--describe-acls-supported", str(29 in self.served).lower()]
        if not self.old:
            supported += ["--idempotent-producer-supported", "true"]
        topic = self.topic + "-compatibility"
        self.create(topic)
        with ONE_AT_A_TIME:  # It creates a topic whose name it does not let one choose.
            said, errors = self.run("client-compatibility-test",
                                    *self.at("--topic", topic, *supported))
            self.run("topics", *self.at("--delete", "--topic", "newtopic"))
        if "SUCCESS" not in said + errors:
            raise AssertionError((said + errors)[-1500:])

    def log_dirs(self):
        said, _ = self.run("log-dirs", *self.at("--describe", "--topic-list", "shared"))
        told = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
        found = [p for b in told["brokers"] for d in b["logDirs"] for p in d["partitions"]]
        equal("partitions", [p["partition"] for p in found], ["shared-0"])
        if found[0]["size"] <= 0:
            raise AssertionError(f"a size of {found[0]['size']}")

    def perf_topic(self):
        self.create(self.topic + "-perf", 3)
        return self.topic + "-perf"

    def producer_perf(self):
        said, _ = self.run("producer-perf-test", "--topic", self.perf_topic(), "--num-records",
                           "20000", "--record-size", "200", "--throughput", "-1",
                           "--producer-props", f"bootstrap.servers={self.broker}", "acks=all",
                           "compression.type=lz4")
        if not said.strip().splitlines()[-1].startswith("20000 records sent"):
            raise AssertionError(said[-500:])

    def consumer_perf(self):
        topic = self.topic + "-consumer-perf"
        self.create(topic)
        self.run("producer-perf-test", "--topic", topic, "--num-records", "20000", "--record-size",
                 "200", "--throughput", "-1", "--producer-props",
                 f"bootstrap.servers={self.broker}")
        said, _ = self.run("consumer-perf-test", *self.at("--topic", topic, "--messages", "20000"))
        last = said.strip().splitlines()[-1].split(", ")
        if int(last[4]) < 20000:
            raise AssertionError(said[-500:])
