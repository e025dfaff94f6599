"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs, ListConfigResources."""
from lib.differential.admin import ask, shaped, until
from lib.differential.compare import Case

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def describe(b, *resources, version=4, synonyms=True, docs=False, note=True):
    body = {"resources": [{"resourceType": t, "resourceName": n, "configurationKeys": keys}
                          for t, n, keys in resources], "includeSynonyms": synonyms}
    if version >= 3:
        body["includeDocumentation"] = docs
    return ask(b, "DescribeConfigs", version, body, note=note)


def alter(b, *resources, version=1, dry=False):
    return ask(b, "IncrementalAlterConfigs", version, {"resources": [
        {"resourceType": t, "resourceName": n,
         "configs": [{"name": k, "configOperation": op, "value": v} for k, op, v in changes]}
        for t, n, changes in resources], "validateOnly": dry})


def replace(b, *resources, version=2, dry=False):
    return ask(b, "AlterConfigs", version, {"resources": [
        {"resourceType": t, "resourceName": n,
         "configs": [{"name": k, "value": v} for k, v in configs]}
        for t, n, configs in resources], "validateOnly": dry})


def values_of(answer):
    return {c["name"]: (c["value"], c["configSource"]) for c in answer["results"][0]["configs"]}


def settle(b, kind, name, wanted):
    """Waits until `wanted` ({key: (value, source)}) shows, then compares what is shown."""
    def shown():
        return describe(b, (kind, name, sorted(wanted)), note=False)
    answer = until(b, shown, lambda a: values_of(a) == wanted)
    b.note(f"DescribeConfigs of {name}", shaped(answer))


def describe_topics(b):
    b.topic("c-d", retention_ms=5, cleanup_policy="compact")
    for version in range(1, 5):
        for synonyms in (False, True):
            describe(b, (TOPIC, "c-d", None), version=version, synonyms=synonyms)
        if version >= 3:
            describe(b, (TOPIC, "c-d", ["retention.ms"]), version=version, docs=True)
    describe(b, (TOPIC, "c-d", []))
    describe(b, (TOPIC, "c-d", ["retention.ms", "no.such", "segment.ms", "flush.ms",
                                "delete.retention.ms"]))
    describe(b, (TOPIC, "c-d", ["retention.ms"]), (TOPIC, "c-d", ["retention.ms"]))
    describe(b, (TOPIC, "c-nowhere", None), (TOPIC, "c bad", None), (TOPIC, "", None))
    describe(b)
    for kind in (0, 3, 99, -1):
        describe(b, (kind, "x", None), (TOPIC, "c-d", ["retention.ms"]))


# Kafka tells of hundreds of settings for parts that are not here; of those that are here the type,
# the default and whether it can be changed are the same.
SHARED = ["auto.create.topics.enable", "broker.rack", "compression.type",
          "connections.max.idle.ms", "delete.topic.enable", "fetch.max.bytes",
          "log.cleanup.policy", "log.flush.offset.checkpoint.interval.ms",
          "log.index.interval.bytes", "log.index.size.max.bytes",
          "log.message.timestamp.after.max.ms", "log.message.timestamp.before.max.ms",
          "log.message.timestamp.type", "log.retention.bytes",
          "log.retention.check.interval.ms", "log.retention.hours",
          "log.retention.minutes", "log.retention.ms", "log.roll.hours",
          "log.roll.jitter.hours", "log.roll.jitter.ms", "log.roll.ms",
          "log.segment.bytes", "log.segment.delete.delay.ms", "max.connections",
          "max.connections.per.ip", "max.connections.per.ip.overrides",
          "max.request.partition.size.limit",
          "message.max.bytes", "node.id", "num.partitions", "producer.id.expiration.ms",
          "queued.max.request.bytes", "quota.window.num", "quota.window.size.seconds",
          "socket.listen.backlog.size", "socket.request.max.bytes"]


def describe_brokers(b):
    for version in range(1, 5):
        describe(b, (BROKER, "1", SHARED), version=version)
    describe(b, (BROKER, "1", ["node.id", "no.such"]), synonyms=False)
    describe(b, (BROKER, "2", None), (BROKER, "x", None), (BROKER, "-1", None))
    describe(b, (LOGGER, "1", ["root", "no.such"]))
    describe(b, (LOGGER, "", None), (LOGGER, "2", None), (LOGGER, "x", None))


def alter_topics(b):
    for name in ("c-a", "c-b", "c-c"):
        b.topic(name)
    alter(b, (TOPIC, "c-a", [("retention.ms", SET, "1000"), ("cleanup.policy", APPEND, "compact")]),
          (TOPIC, "c-b", [("cleanup.policy", SET, "compactt")]),
          (TOPIC, "c-c", [("compression.type", SET, "SNAPPY")]),
          (TOPIC, "c-nowhere", [("retention.ms", SET, "1")]))
    settle(b, TOPIC, "c-a", {"retention.ms": ("1000", 1), "cleanup.policy": ("delete,compact", 1)})
    alter(b, (TOPIC, "c-a", [("cleanup.policy", APPEND, "compact")]),
          (TOPIC, "c-b", [("retention.ms", APPEND, "5")]),
          (TOPIC, "c-c", [("no.such", DELETE, None)]))
    alter(b, (TOPIC, "c-a", [("cleanup.policy", SUBTRACT, "delete"), ("retention.ms", DELETE, None),
                             ("segment.ms", SET, "5000"), ("segment.jitter.ms", DELETE, "3")]),
          (TOPIC, "c-b", [("retention.ms", SUBTRACT, "5")]), version=0)
    settle(b, TOPIC, "c-a", {"retention.ms": ("604800000", 5), "cleanup.policy": ("compact", 1),
                             "segment.ms": ("5000", 1)})
    alter(b, (TOPIC, "c-b", [("retention.ms", SET, None)]))
    alter(b, (TOPIC, "c-b", [("retention.ms", SET, "1"), ("retention.ms", SET, "2")]))
    alter(b, (TOPIC, "c-b", [("retention.ms", SET, "7")]),
          (TOPIC, "c-b", [("segment.ms", SET, "8")]))
    alter(b, (TOPIC, "c-b", []), (TOPIC, "", [("retention.ms", SET, "8")]),
          (TOPIC, "c bad", [("retention.ms", SET, "8")]))
    alter(b, (TOPIC, "c-b", [("retention.ms", SET, "9"), ("no.such", SET, "1")]))
    alter(b, (TOPIC, "c-b", [("min.compaction.lag.ms", SET, "9"),
                             ("max.compaction.lag.ms", SET, "1")]))
    for kind in (0, 3, 99, -1):
        alter(b, (kind, "x", [("a", SET, "b")]))
    alter(b, (TOPIC, "c-b", [("retention.ms", SET, "4")]), dry=True)
    alter(b, (TOPIC, "c-b", [("retention.ms", SET, "x")]), dry=True)
    alter(b, (TOPIC, "c-nowhere", [("retention.ms", SET, "4")]), dry=True)
    settle(b, TOPIC, "c-b", {"retention.ms": ("604800000", 5)})
    alter(b)


def replace_topics(b):
    for name in ("c-r", "c-s"):
        b.topic(name)
    for version in range(3):
        replace(b, (TOPIC, "c-r", [("retention.ms", f"7{version}"), ("segment.ms", "88")]),
                version=version)
        settle(b, TOPIC, "c-r", {"retention.ms": (f"7{version}", 1), "segment.ms": ("88", 1)})
    replace(b, (TOPIC, "c-r", [("segment.ms", "99")]))
    settle(b, TOPIC, "c-r", {"retention.ms": ("604800000", 5), "segment.ms": ("99", 1)})
    replace(b, (TOPIC, "c-r", []), dry=True)
    settle(b, TOPIC, "c-r", {"segment.ms": ("99", 1)})
    replace(b, (TOPIC, "c-r", [("no.such", "1")]), (TOPIC, "c-nowhere", []),
            (TOPIC, "c-s", [("retention.ms", None)]))
    replace(b, (TOPIC, "c-r", [("retention.ms", "x")]), (TOPIC, "c bad", []), (TOPIC, "", []))
    replace(b, (TOPIC, "c-r", []), (TOPIC, "c-s", []))
    settle(b, TOPIC, "c-r", {"segment.ms": ("604800000", 5)})
    for kind in (0, 3, LOGGER, 99):
        replace(b, (kind, "1", [("a", "b")]))
    for version in range(3):
        replace(b, (TOPIC, "c-r", [("cleanup.policy", "compactt")]), version=version)
        replace(b, (TOPIC, "c-nowhere", [("retention.ms", "1")]), version=version, dry=True)
        replace(b, version=version)


def alter_brokers(b):
    b.topic("c-broker")
    alter(b, (BROKER, "", [("log.retention.ms", SET, "123456")]),
          (BROKER, "1", [("log.retention.ms", SET, "9999")]))
    settle(b, BROKER, "1", {"log.retention.ms": ("9999", 2)})
    settle(b, BROKER, "", {"log.retention.ms": ("123456", 3)})
    settle(b, TOPIC, "c-broker", {"retention.ms": ("9999", 2)})
    alter(b, (BROKER, "1", [("log.retention.ms", DELETE, None)]))
    settle(b, TOPIC, "c-broker", {"retention.ms": ("123456", 3)})
    alter(b, (BROKER, "", [("message.max.bytes", SET, "2000000"),
                           ("log.cleanup.policy", APPEND, "compact")]))
    settle(b, TOPIC, "c-broker", {"max.message.bytes": ("2000000", 3),
                                  "cleanup.policy": ("delete,compact", 3)})
    alter(b, (BROKER, "", [(k, DELETE, None) for k in
                           ("log.retention.ms", "message.max.bytes", "log.cleanup.policy")]))
    settle(b, TOPIC, "c-broker", {"retention.ms": ("604800000", 5),
                                  "max.message.bytes": ("1048588", 5),
                                  "cleanup.policy": ("delete", 5)})
    for name in ("1", ""):
        for key, value in (("node.id", "2"), ("num.partitions", "3"), ("message.max.bytes", "abc"),
                           ("message.max.bytes", "-1"), ("log.retention.hours", "3"),
                           ("message.max.bytes", None), ("broker.rack", "x")):
            alter(b, (BROKER, name, [(key, SET, value)]))
    alter(b, (BROKER, "2", [("message.max.bytes", SET, "7")]),
          (BROKER, "x", [("message.max.bytes", SET, "7")]))
    alter(b, (BROKER, "1", [("message.max.bytes", SET, "1500000")]), dry=True)
    alter(b, (BROKER, "1", []))
    replace(b, (BROKER, "1", [("message.max.bytes", "1600000")]))
    settle(b, BROKER, "1", {"message.max.bytes": ("1600000", 2)})
    replace(b, (BROKER, "1", []))
    settle(b, BROKER, "1", {"message.max.bytes": ("1048588", 5)})


def loggers(b):
    """The names of loggers are each broker's own; root they have both."""
    def level(name):
        return describe(b, (LOGGER, "1", [name]), note=False)["results"][0]["configs"][0]["value"]
    for value in ("WARN", "DEBUG", "ERROR", "INFO"):
        alter(b, (LOGGER, "1", [("root", SET, value)]))
        b.note("level", level("root"))
    alter(b, (LOGGER, "1", [("root", SET, "LOUD")]))
    alter(b, (LOGGER, "1", [("root", SET, "info")]))
    alter(b, (LOGGER, "1", [("root", DELETE, None)]))
    alter(b, (LOGGER, "1", [("root", APPEND, "INFO")]))
    alter(b, (LOGGER, "1", [("no.such", SET, "INFO")]))
    alter(b, (LOGGER, "2", [("root", SET, "INFO")]))
    alter(b, (LOGGER, "", [("root", SET, "INFO")]))
    b.note("level", level("root"))


def list_resources(b):
    ask(b, "ListConfigResources", 0, {})
    for kinds in ([BROKER, LOGGER], [METRICS], [GROUP], [BROKER, BROKER], [3], [0], [-1],
                  [BROKER, 99], [LOGGER], [METRICS, GROUP], [GROUP, BROKER, LOGGER], [1], [127],
                  [-128], [BROKER], [LOGGER, LOGGER], [0, 1], [METRICS, METRICS], [3, GROUP]):
        ask(b, "ListConfigResources", 1, {"resourceTypes": kinds})
    b.topic("c-listed")
    for kinds in ([TOPIC], []):
        answer = b.ask("ListConfigResources", 1, {"resourceTypes": kinds})
        b.note("has the topic", {"resourceName": "c-listed", "resourceType": TOPIC} in
               answer["configResources"])
        b.note("types", sorted({r["resourceType"] for r in answer["configResources"]}))


CASES = [
    Case("DescribeConfigs of topics", describe_topics),
    Case("DescribeConfigs of brokers and loggers", describe_brokers),
    Case("IncrementalAlterConfigs of topics (A19)", alter_topics),
    Case("AlterConfigs of topics", replace_topics),
    Case("both, of brokers", alter_brokers),
    Case("levels of loggers", loggers),
    Case("ListConfigResources", list_resources),
]
