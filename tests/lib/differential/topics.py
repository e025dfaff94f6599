"""Topics: creating, growing, deleting and describing them, deleting records, Metadata."""
from lib.differential.admin import ask, create, new_topic, shaped, until
from lib.differential.codec import ZERO_ID
from lib.differential.compare import Case
from lib.differential.records import batch
from lib.differential.fetch import fill

SOME_ID = "7" * 32


def create_versions(b):
    for version in range(2, 8):
        replicas = -1 if version >= 4 else 1
        create(b, new_topic(f"t-v{version}", -1 if version >= 4 else 2, replicas,
                            retention_ms="77"), version=version)
        create(b, new_topic(f"t-dry{version}"), version=version, validate_only=True)
        create(b, new_topic(f"t-v{version}"), version=version)


def create_names(b):
    create(b, new_topic("t.dots"))
    create(b, *[new_topic(name) for name in (
        "t_dots", "t.dots", "", ".", "..", "n" * 249, "m" * 250, "t bad", "t/bad", "t:bad",
        "t\u00fcbad", "t-good", "T-GOOD", "_", "-", "__cluster_metadata")])
    create(b, new_topic("t-twice"), new_topic("t-twice", 2), new_topic("t-once"))
    create(b, new_topic("t.new"), new_topic("t_new"))
    create(b)


def create_counts(b):
    create(b, *[new_topic(f"t-p{n}", n, 1) for n in (0, -1, -2, 3, -(1 << 31))])
    create(b, *[new_topic(f"t-r{n}", 1, n) for n in (0, -1, -2, 2, 32767)])
    create(b, new_topic("t-many", 10001))
    create(b, new_topic("t-some", 5001), new_topic("t-more", 5000))


def create_assignments(b):
    tables = {"one": [(0, [1])], "two": [(0, [1]), (1, [1])], "turned": [(1, [1]), (0, [1])],
              "gap": [(0, [1]), (2, [1])], "from1": [(1, [1])], "negative": [(-1, [1])],
              "twice": [(0, [1]), (0, [1])], "nobody": [(0, [])], "same": [(0, [1, 1])],
              "stranger": [(0, [2])], "more": [(0, [1]), (1, [1, 2])], "minus": [(0, [-1])]}
    for name, table in tables.items():
        create(b, new_topic(f"t-a-{name}", -1, -1, table))
    create(b, new_topic("t-a-count", 1, -1, [(0, [1])]))
    create(b, new_topic("t-a-factor", -1, 1, [(0, [1])]))
    create(b, new_topic("t-a-config", -1, -1, [(0, [1])], no_such="1"))
    create(b, new_topic("t-a-dry", -1, -1, [(0, [2])]), validate_only=True)


BAD_CONFIGS = [
    ("no.such.setting", "1"), ("retention.ms", None), ("retention.ms", "abc"), ("retention.ms", ""),
    ("retention.ms", "-2"), ("retention.ms", "1.5"), ("segment.bytes", "100"),
    ("segment.bytes", "99999999999"), ("cleanup.policy", "compactt"), ("cleanup.policy", "DELETE"),
    ("compression.type", "SNAPPY"), ("compression.type", ""), ("compression.gzip.level", "0"),
    ("compression.gzip.level", "10"), ("preallocate", "yes"), ("preallocate", ""),
    ("min.cleanable.dirty.ratio", "1.5"), ("min.cleanable.dirty.ratio", "x"),
    ("min.insync.replicas", "0"), ("message.timestamp.type", "Now"),
    ("remote.storage.enable", "true"),
    ("follower.replication.throttled.replicas", "x"), ("message.format.version", "2.8"),
    ("message.downconversion.enable", "true"), ("max.message.bytes", "-1"), ("segment.ms", "0"),
    ("flush.messages", "0"), ("index.interval.bytes", "-1"), ("max.compaction.lag.ms", "0")]
GOOD_CONFIGS = [
    ("retention.ms", "-1"), ("retention.bytes", "-5"), ("cleanup.policy", ""),
    ("cleanup.policy", "compact"), ("cleanup.policy", "compact,delete"), ("preallocate", "true"),
    ("segment.ms", "1"), ("flush.ms", "0"), ("compression.type", "zstd"),
    ("compression.zstd.level", "-100"), ("min.insync.replicas", "5"), ("file.delete.delay.ms", "0"),
    ("leader.replication.throttled.replicas", "*"), ("segment.jitter.ms", "5"),
    ("follower.replication.throttled.replicas", "0:1,1:1"), ("local.retention.ms", "99999999999"),
    ("unclean.leader.election.enable", "true"), ("message.timestamp.type", "LogAppendTime"),
    ("errors.deadletterqueue.group.enable", "true"), ("max.message.bytes", "0")]


def create_configs(b):
    for i, (key, value) in enumerate(BAD_CONFIGS + GOOD_CONFIGS):
        create(b, new_topic(f"t-c{i}", 1, 1, **{key.replace(".", "_"): value}))
    create(b, new_topic("t-c-lag", min_compaction_lag_ms="10", max_compaction_lag_ms="5"))
    create(b, new_topic("t-c-both", retention_ms="1", no_such="2"))


def delete_topics(b):
    for name in ("t-d1", "t-d2", "t-d3", "t-d4", "t-d5", "t-d6"):
        b.topic(name)

    def delete(version, *names):
        body = {"timeoutMs": 30000}
        if version >= 6:
            body["topics"] = [{"name": n, "topicId": i} for n, i in names]
        else:
            body["topicNames"] = list(names)
        return ask(b, "DeleteTopics", version, body)
    for version in range(1, 6):
        delete(version, f"t-d{version}", "t-nowhere")
        delete(version, f"t-d{version}")
        delete(version, "t-nowhere", "t-nowhere")
    delete(5, "t bad", "", "t-d6", "t-d6")
    delete(5)
    ids = {name: topic_id for topic_id, name in b.names.items()}
    delete(6, ("t-nowhere", ZERO_ID), (None, SOME_ID), ("t-d6", SOME_ID), (None, ZERO_ID))
    delete(6, ("t-d6", ZERO_ID), ("t-d6", ZERO_ID))
    delete(6, ("t-d6", ZERO_ID), (None, ids["id of t-d6"]))
    delete(6, (None, ids["id of t-d6"]))
    delete(6, (None, ids["id of t-d6"]))


def create_partitions(b):
    for name in ("t-p", "t-q", "t-x", "t-y", "t-z"):
        b.topic(name)

    def more(*topics, version=3, dry=False):
        ask(b, "CreatePartitions", version, {
            "topics": [{"name": n, "count": c,
                        "assignments": None if a is None else [{"brokerIds": x} for x in a]}
                       for n, c, a in topics], "timeoutMs": 30000, "validateOnly": dry})
    for version in range(4):
        more(("t-p", version + 2, None), version=version)
        more(("t-p", version + 2, None), version=version)
        more(("t-q", 0, [[1]]), ("t bad", 5, None), version=version)
    more(("t-p", 50, None), dry=True)
    more(("t-q", 1, None), ("t-x", 0, None), ("t-y", -1, None), ("t-nowhere", 3, None))
    more(("t-q", 3, [[1], [1]]), ("t-x", 3, [[1]]), ("t-y", 2, [[2]]), ("t-z", 2, [[]]))
    more(("t-x", 2, [[1, 1]]), ("t-y", 3, [[1], [1], [1]]), ("t-z", 2, []))
    more(("t-x", 2, None), ("t-x", 3, None))
    more(("t-x", 20000, None), ("t-y", 2, None))
    more(("t bad", 2, None), ("", 2, None))
    more()


def delete_records(b):
    b.topic("t-r", 3)
    fill(b, "t-r", 0, *[batch((i, None, b"v")) for i in range(5)])
    fill(b, "t-r", 1, batch((1, None, b"a"), (2, None, b"b")))

    def delete(version, *topics):
        ask(b, "DeleteRecords", version, {"topics": [
            {"name": n, "partitions": [{"partitionIndex": p, "offset": o} for p, o in parts]}
            for n, parts in topics], "timeoutMs": 10000})
    for version in range(3):
        delete(version, ("t-r", [(0, version + 1), (1, 0), (7, 0)]), ("t-nowhere", [(0, 0)]))
        delete(version, ("t-r", [(0, 0)]), ("t bad", [(0, 0)]))
        delete(version, ("t-r", [(0, -3), (-1, 0)]))
        delete(version, ("t-nowhere", []), ("t-nowhere2", [(0, -1)]))
        delete(version, ("t-r", [(2, 0)]), ("", [(0, 0)]))
    delete(2, ("t-r", [(0, 1), (1, 1), (2, 0)]))
    delete(2, ("t-r", [(0, 6)]), )
    delete(2, ("t-r", [(0, -2), (1, 1 << 62), (2, 1)]))
    delete(2, ("t-r", [(0, -1), (1, -1), (2, -1)]))
    delete(2, ("t-r", []))
    delete(2)
    for partition in range(3):
        b.call("ListOffsets", 7, {"replicaId": -1, "topics": [{"name": "t-r", "partitions": [
            {"partitionIndex": partition, "timestamp": -2}]}]})


def describe_partitions(b):
    for name, count in (("t-e1", 3), ("t-e2", 1), ("t-e3", 2)):
        b.topic(name, count)

    def page(*names, limit=2000, cursor=None):
        ask(b, "DescribeTopicPartitions", 0, {
            "topics": [{"name": n} for n in names], "responsePartitionLimit": limit,
            "cursor": cursor and {"topicName": cursor[0], "partitionIndex": cursor[1]}})
    everything = ("t-e3", "t-e1", "t-e2")
    for limit in (2000, 6, 5, 4, 3, 2, 1, 0, -1):
        page(*everything, limit=limit)
    for cursor in (("t-e1", 0), ("t-e1", 2), ("t-e1", 3), ("t-e1", 99), ("t-e1", -1), ("t-e2", 0),
                   ("t-e3", 1), ("t-nowhere", 0), ("", 0)):
        page(*everything, limit=2, cursor=cursor)
    page("t-e1", "t-e1")
    page("t-e1", "t-nowhere")
    page("t-nowhere", "t-nowhere2", limit=1)


def metadata(b):
    topic_id = b.topic("t-m", 2)
    b.topic("t-m2")

    def look(version, names, **more):
        body = {"topics": names if names is None else [
            {"name": n} if not isinstance(n, tuple) else {"topicId": n[1], "name": n[0]}
            for n in names]}
        if version >= 4:
            body["allowAutoTopicCreation"] = False
        if 8 <= version <= 10:
            body["includeClusterAuthorizedOperations"] = True
        if version >= 8:
            body["includeTopicAuthorizedOperations"] = True
        body.update(more)
        answer = b.ask("Metadata", version, body)
        # Names and epochs of their own; all topics are those of every other case as well.
        if names is None:
            answer["topics"] = [t for t in answer["topics"] if t["name"] in ("t-m", "t-m2")]
        for t in answer["topics"]:
            for p in t["partitions"]:
                p.pop("leaderEpoch", None)
        b.names[answer.get("clusterId")] = "the cluster"
        b.note(f"Metadata v{version}", shaped(answer))
    for version in range(14):
        if version > 0:
            look(version, None)
            look(version, [])
        # Before version 4 asking for it would make it.
        absent = ["t-nowhere"] if version >= 4 else []
        look(version, ["t-m2", "t-m", "t bad", "", "x" * 250] + absent)
        look(version, ["t-m", "t-m"])
    look(9, ["__consumer_offsets", "__transaction_state", "__cluster_metadata"])
    look(9, ["t-m"], includeTopicAuthorizedOperations=False,
         includeClusterAuthorizedOperations=False)
    for version in (12, 13):
        look(version, [(None, topic_id), (None, SOME_ID), ("t-m2", SOME_ID), ("t-m2", topic_id)])
        look(version, [("t-m2", ZERO_ID), (None, topic_id)])
    for version in (10, 11):
        look(version, [("t-m", SOME_ID)])
        look(version, [("t-m", ZERO_ID)])


def auto_creation(b):
    def look(name, version=9, allowed=True):
        body = {"topics": [{"name": name}]}
        if version >= 4:
            body["allowAutoTopicCreation"] = allowed
        return b.ask("Metadata", version, body)["topics"][0]

    def code(answer):
        b.note("Metadata", answer["errorCode"])
    code(look("t-auto", allowed=False))
    code(look("t-auto", allowed=False))
    for i, version in enumerate((0, 3, 4, 9, 13)):
        name = f"t-auto-{i}"
        code(look(name, version))
        made = until(b, lambda: look(name, version), lambda a: a["errorCode"] == 0)
        b.note("made", (made["errorCode"], len(made["partitions"])))
    b.topic("t.auto")
    look("t_auto")
    code(look("t_auto"))


CASES = [
    Case("CreateTopics: every version", create_versions),
    Case("CreateTopics: names", create_names),
    Case("CreateTopics: counts", create_counts),
    Case("CreateTopics: assignments", create_assignments),
    Case("CreateTopics: settings, good and bad", create_configs),
    Case("DeleteTopics", delete_topics),
    Case("CreatePartitions", create_partitions),
    Case("DeleteRecords", delete_records),
    Case("DescribeTopicPartitions", describe_partitions),
    Case("Metadata", metadata),
    Case("Metadata creates topics (A05, A08)", auto_creation),
]
