"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs, ListConfigResources."""
from lib.differential.admin import ask, shaped, until
from lib.differential.compare import Case
from lib.differential.groups import coordinate

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
          "group.consumer.max.assignment.interval.ms", "group.consumer.max.heartbeat.interval.ms",
          "group.consumer.max.session.timeout.ms", "group.consumer.min.assignment.interval.ms",
          "group.consumer.min.heartbeat.interval.ms", "group.consumer.min.session.timeout.ms",
          "log.cleanup.policy", "log.flush.offset.checkpoint.interval.ms",
          "log.index.interval.bytes", "log.index.size.max.bytes",
          "log.message.timestamp.after.max.ms", "log.message.timestamp.before.max.ms",
          "log.message.timestamp.type", "log.retention.bytes",
          "log.retention.check.interval.ms", "log.retention.hours",
          "log.retention.minutes", "log.retention.ms", "log.roll.hours",
          "log.roll.jitter.hours", "log.roll.jitter.ms", "log.roll.ms",
          "log.segment.bytes", "log.segment.delete.delay.ms",
          "max.connection.creation.rate", "max.connections",
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


SESSION, BEAT, PAUSE = (f"consumer.{name}.ms" for name in
                        ("session.timeout", "heartbeat.interval", "assignment.interval"))
# By setting: values at and beyond Kafka's limits.
GROUP_VALUES = {
    SESSION: ["44999", "45000", "60000", "60001", "abc", "-1", " 50000 "],
    BEAT: ["4999", "5000", "15000", "15001", "0"],
    PAUSE: ["-1", "0", "15000", "15001"],
    "consumer.assignor.offload.enable": ["true", "TRUE", "maybe"],
    "share.session.timeout.ms": ["44999", "45000", "60000", "60001"],
    "share.heartbeat.interval.ms": ["4999", "5000", "15000", "15001"],
    "share.assignment.interval.ms": ["-1", "0", "15000", "15001"],
    "share.assignor.offload.enable": ["false"],
    "share.record.lock.duration.ms": ["14999", "15000", "60000", "60001"],
    "share.delivery.count.limit": ["1", "2", "10", "11", "2147483648"],
    "share.partition.max.record.locks": ["99", "100", "4000", "4001"],
    "share.auto.offset.reset": ["latest", "Latest", "earliest", "none", "by_duration:x",
                                "by_duration:P1D", "by_duration:p1dt1h2m3.5s", "by_duration:PT",
                                "by_duration:P", "by_duration:PT1M1H", "by_duration:P1Y",
                                "by_duration:PT-1H", "by_duration:PT1.5H"],
    "share.isolation.level": ["read_committed", "READ_COMMITTED"],
    "share.renew.acknowledge.enable": ["false", "x"],
    "errors.deadletterqueue.topic.name": ["", "a", "__x"],
    "errors.deadletterqueue.copy.record.enable": ["true", "x"],
    "streams.session.timeout.ms": ["44999", "45000", "60000", "60001"],
    "streams.heartbeat.interval.ms": ["4999", "5000", "15000", "15001"],
    "streams.assignment.interval.ms": ["-1", "0", "15000", "15001"],
    "streams.initial.rebalance.delay.ms": ["-1", "0", "999999"],
    "streams.num.standby.replicas": ["-1", "0", "2", "3"],
    "streams.num.warmup.replicas": ["-1", "0", "20", "21"],
    "streams.acceptable.recovery.lag": ["-1", "9223372036854775807", "9223372036854775808"],
    "streams.task.offset.interval.ms": ["14999", "15000", "999999"],
    "streams.assignor.name": ["sticky", "x", ""],
    "streams.rack.aware.assignment.tags": ["a,b", "a, b", "", "a,,b", "a,a"],
}


def describe_groups(b):
    for synonyms in (False, True):
        describe(b, (GROUP, "cg-none", None), synonyms=synonyms)
    describe(b, (GROUP, "cg-none", [SESSION, "no.such", "share.assignor.offload.enable"]),
             docs=True)
    for name in ("", " "):
        describe(b, (GROUP, name, [SESSION]))


def alter_groups(b):
    for key, values in GROUP_VALUES.items():
        for value in values:
            alter(b, (GROUP, "cg-values", [(key, SET, value)]))
    settle(b, GROUP, "cg-values", {SESSION: ("50000", 8)})
    describe(b, (GROUP, "cg-values", None))
    names = b.ask("ListConfigResources", 1, {"resourceTypes": [GROUP]})["configResources"]
    b.note("is listed", {"resourceName": "cg-values", "resourceType": GROUP} in names)
    alter(b, (GROUP, "cg-values", [(k, DELETE, None) for k in GROUP_VALUES]))
    settle(b, GROUP, "cg-values", {SESSION: ("45000", 5)})
    names = b.ask("ListConfigResources", 1, {"resourceTypes": [GROUP]})["configResources"]
    b.note("is listed", {"resourceName": "cg-values", "resourceType": GROUP} in names)
    for changes in ([("no.such", SET, "1")], [("no.such", DELETE, None)], [(SESSION, SET, None)],
                    [(SESSION, APPEND, "50000")], [("no.such", SUBTRACT, "x")],
                    [("streams.rack.aware.assignment.tags", APPEND, "x")],
                    [(BEAT, SET, "5000"), (BEAT, SET, "6000")],
                    [(BEAT, SET, "6000"), ("no.such", SET, "1")], []):
        alter(b, (GROUP, "cg-more", changes))
        alter(b, (GROUP, "", changes))
    alter(b, (GROUP, "cg-more", [(BEAT, SET, "6000")]), dry=True)
    alter(b, (GROUP, "cg-more", [(BEAT, SET, "6")]), dry=True)
    settle(b, GROUP, "cg-more", {BEAT: ("5000", 5)})
    replace(b, (GROUP, "cg-more", [(BEAT, "7000"), (SESSION, "47000")]))
    settle(b, GROUP, "cg-more", {BEAT: ("7000", 8), SESSION: ("47000", 8)})
    replace(b, (GROUP, "cg-more", [(SESSION, "48000")]))
    settle(b, GROUP, "cg-more", {BEAT: ("5000", 5), SESSION: ("48000", 8)})
    replace(b, (GROUP, "cg-more", []), (GROUP, "", []))
    settle(b, GROUP, "cg-more", {SESSION: ("45000", 5)})


def act_on_groups(b):
    """Members are told the new interval with their next heartbeat."""
    b.topic("c-act")

    def beat(epoch, **more):
        return b.ask("ConsumerGroupHeartbeat", 1, {
            "groupId": "cg-act", "memberId": "m", "memberEpoch": epoch, "instanceId": None,
            "rackId": None, "rebalanceTimeoutMs": -1, "subscribedTopicNames": None,
            "subscribedTopicRegex": None, "serverAssignor": None, "topicPartitions": None, **more})

    def interval(wanted):
        answer = until(b, lambda: beat(joined["memberEpoch"]),
                       lambda a: a["heartbeatIntervalMs"] == wanted)
        b.note("interval", answer["heartbeatIntervalMs"])
    coordinate(b)
    joined = beat(0, rebalanceTimeoutMs=30000, subscribedTopicNames=["c-act"], topicPartitions=[])
    b.note("interval", joined["heartbeatIntervalMs"])
    alter(b, (GROUP, "cg-act", [(BEAT, SET, "7000")]))
    interval(7000)
    alter(b, (GROUP, "cg-act", [(BEAT, DELETE, None)]))
    interval(5000)
    beat(-1)


CASES = [
    Case("DescribeConfigs of topics", describe_topics),
    Case("DescribeConfigs of brokers and loggers", describe_brokers),
    Case("IncrementalAlterConfigs of topics (A19)", alter_topics),
    Case("AlterConfigs of topics", replace_topics),
    Case("both, of brokers", alter_brokers),
    Case("levels of loggers", loggers),
    Case("DescribeConfigs of groups", describe_groups),
    Case("settings of groups", alter_groups),
    Case("settings of groups act", act_on_groups),
    Case("ListConfigResources", list_resources),
]
