"""What a single node says of the cluster, its directories, producers, leaders, and of quotas."""
import time

from lib.differential.admin import ask, shaped, until
from lib.differential.compare import Case
from lib.differential.fetch import fill
from lib.differential.records import batch


def describe_cluster(b):
    for version in range(3):
        for operations in (False, True):
            body = {"includeClusterAuthorizedOperations": operations}
            for endpoint in (1, 2, 0, 3, -1) if version >= 1 else (None,):
                if endpoint:
                    body["endpointType"] = endpoint
                if version >= 2:
                    body["includeFencedBrokers"] = operations
                answer = b.ask("DescribeCluster", version, body)
                if answer["clusterId"]:
                    b.names[answer["clusterId"]] = "the cluster"
                b.note(f"DescribeCluster v{version}", shaped(answer))


def elect_leaders(b):
    b.topic("k-e", 2)
    for version in range(3):
        for kind in (0, 1, 7) if version >= 1 else (0,):
            for topics in ([("k-e", [0, 1, 9]), ("k-nowhere", [0])], [("k-e", [])], []):
                body = {"topicPartitions": [{"topic": t, "partitions": p} for t, p in topics],
                        "timeoutMs": 5000}
                if version >= 1:
                    body["electionType"] = kind
                ask(b, "ElectLeaders", version, body)
        body = {"topicPartitions": None, "timeoutMs": 5000}
        answer = b.ask("ElectLeaders", version, body)
        b.note("of all", {"topic": "k-e", "partitionResult": []} in
               answer["replicaElectionResults"])
        b.note("nothing to do", [r for r in answer["replicaElectionResults"]
                                 if r["partitionResult"]])


def reassignments(b):
    b.topic("k-r", 2)

    def move(version, *topics):
        ask(b, "AlterPartitionReassignments", version, {"timeoutMs": 5000, "topics": [
            {"name": t, "partitions": [{"partitionIndex": i, "replicas": r} for i, r in parts]}
            for t, parts in topics]})
    for version in (0, 1):
        move(version, ("k-r", [(0, [1]), (1, None), (7, [1])]), ("k-nowhere", [(0, [1])]))
        move(version, ("k-r", [(0, [2]), (1, [])]))
        move(version, ("k-r", [(0, [1, 1]), (1, [1, 2])]))
        move(version, ("k-r", [(0, [-1])]))
        move(version, ("k-r", []))
        move(version)
        move(version, ("k bad", [(0, [1])]), ("", [(0, [1])]))
        move(version, ("k-r", [(-1, [1]), (0, [1]), (1, [1])]))
        move(version, ("k-r", [(0, None), (1, None)]))
        move(version, ("k-r", [(0, [2, 1])]))
    ask(b, "AlterPartitionReassignments", 1, {
        "timeoutMs": 5000, "allowReplicationFactorChange": False,
        "topics": [{"name": "k-r", "partitions": [{"partitionIndex": 0, "replicas": [1]}]}]})
    ask(b, "ListPartitionReassignments", 0, {"timeoutMs": 5000, "topics": None})
    for name in ("k-r", "k-nowhere", "k bad", ""):
        for partitions in ([], [0], [0, 8], [-1], [0, 0]):
            ask(b, "ListPartitionReassignments", 0, {"timeoutMs": 5000, "topics": [
                {"name": "k-r", "partitionIndexes": [1]},
                {"name": name, "partitionIndexes": partitions}]})


def log_dirs(b):
    b.topic("k-l", 2)
    fill(b, "k-l", 0, batch((1, None, b"v")))

    def look(version, topics):
        body = {"topics": topics and [{"topic": t, "partitions": p} for t, p in topics]}
        answer = b.ask("DescribeLogDirs", version, body)
        for directory in answer["results"]:
            b.names[directory["logDir"]] = "the directory"
            for key in ("totalBytes", "usableBytes"):
                if key in directory:
                    directory[key] = directory[key] > 0
            directory["topics"] = [t for t in directory["topics"] if t["name"] == "k-l"]
        b.note(f"DescribeLogDirs v{version}", shaped(answer))
        return answer["results"][0]["logDir"]
    for version in range(1, 6):
        path = look(version, [("k-l", [0, 1, 7]), ("k-nowhere", [0])])
        look(version, [("k-l", [])])
        look(version, [])
        look(version, None)
    for version in (1, 2):
        def move(*directories):
            ask(b, "AlterReplicaLogDirs", version, {"dirs": [
                {"path": path, "topics": [{"name": t, "partitions": p} for t, p in topics]}
                for path, topics in directories]})
        for target in (path, "/nowhere", path + "/", ".", ""):
            move((target, [("k-l", [0, 7]), ("k-nowhere", [0])]))
            move((target, [("k-l", [0, 1])]))
        move((path, []), ("/nowhere", []))
        move((path, [("k-l", [])]))
        move((path, [("k-l", [0])]), ("/nowhere", [("k-l", [1])]))
        move()


def producers(b):
    b.topic("k-p", 2)
    fill(b, "k-p", 1, batch((1, None, b"v")))
    fresh = {"transactionalId": None, "transactionTimeoutMs": 1000, "producerId": -1,
             "producerEpoch": -1}
    # A Kafka that has just started still fetches its first ids.
    pid = until(b, lambda: b.ask("InitProducerId", 4, fresh),
                lambda a: a["errorCode"] == 0)["producerId"]
    b.rename(pid, "the producer")
    now = int(time.time() * 1000)
    for sequence in (0, 1):
        fill(b, "k-p", 0, batch((now, None, b"v"), producer_id=pid, producer_epoch=0,
                                base_sequence=sequence))

    def look(*topics):
        answer = b.ask("DescribeProducers", 0, {"topics": [
            {"name": t, "partitionIndexes": p} for t, p in topics]})
        for topic in answer["topics"]:
            for partition in topic["partitions"]:
                for one in partition["activeProducers"]:
                    one["lastTimestamp"] = one["lastTimestamp"] > 0
        b.note("DescribeProducers v0", shaped(answer))
    look(("k-p", [0, 1, 7]), ("k-nowhere", [0]), ("k bad", [0]))
    look(("k-p", []))
    look()
    for partition in range(-1, 4):
        look(("k-p", [partition]))
        look(("k-nowhere", [partition]))
    look(("k-p", [0]), ("k-p", [1]))
    look(("", [0]), ("k" * 250, [0]), (".", [0]))
    fill(b, "k-p", 1, batch((now, None, b"v"), producer_id=pid, producer_epoch=0, base_sequence=7))
    look(("k-p", [0, 1]))
    fill(b, "k-p", 0, batch((now, None, b"v"), producer_id=pid, producer_epoch=3, base_sequence=0))
    look(("k-p", [0, 1]))
    fill(b, "k-p", 0, batch(*[(now, None, b"v")] * 3, producer_id=pid, producer_epoch=3,
                            base_sequence=1))
    look(("k-p", [0]))
    b.topic("k-p2")
    look(("k-p2", [0]), ("k-p", [0, 1]))
    fill(b, "k-p2", 0, batch((now, None, b"v")))
    look(("k-p2", [0]))


def quorum(b):
    for version in range(3):
        for topic, partition in (("__cluster_metadata", 0), ("k-nowhere", 0),
                                 ("__cluster_metadata", 1)):
            answer = b.ask("DescribeQuorum", version, {"topics": [
                {"topicName": topic, "partitions": [{"partitionIndex": partition}]}]})
            for one in answer["topics"][0]["partitions"]:
                one["leaderEpoch"] = one["leaderEpoch"] > 0
                end = one.pop("highWatermark")
                for voter in one["currentVoters"]:
                    voter["logEndOffset"] = voter["logEndOffset"] == end
            for node in answer.get("nodes", []):
                node["listeners"] = len(node["listeners"])
            b.note(f"DescribeQuorum v{version}", shaped(answer))
        ask(b, "DescribeQuorum", version, {"topics": []})
        for topics in ([("__cluster_metadata", [])], [("k-nowhere", [])],
                       [("__cluster_metadata", [0]), ("k-nowhere", [0])],
                       [("__cluster_metadata", [0, 1])], [("__cluster_metadata", [-1])]):
            ask(b, "DescribeQuorum", version, {"topics": [
                {"topicName": t, "partitions": [{"partitionIndex": p} for p in parts]}
                for t, parts in topics]})


def features(b):
    """Of features that neither has; those that Kafka finalizes are not told of here."""
    def update(version, *updates):
        ask(b, "UpdateFeatures", version, {"timeoutMs": 5000, "featureUpdates": [
            {"feature": f, "maxVersionLevel": level} for f, level in updates]})
    for version in range(3):
        update(version)
        update(version, ("no.such", 1))
        update(version, ("no.such", 1), ("no.such.either", 3))
        update(version, ("", 1))
        update(version, ("no.such", 0))
        update(version, ("no.such", -1))
        update(version, ("no.such", 1), ("no.such", 2))


def entity(*parts):
    return [{"entityType": t, "entityName": n} for t, n in parts]


def alter_quotas(b, *entries, version=1, dry=False):
    ask(b, "AlterClientQuotas", version, {"entries": [
        {"entity": entity(*e), "ops": [{"key": k, "value": v or 0.0, "remove": v is None}
                                       for k, v in ops]} for e, ops in entries],
        "validateOnly": dry})


U, C = ("user", "u1"), ("client-id", "c1")
ANY_USER, ANY_CLIENT = ("user", None), ("client-id", None)


def quotas(b):
    alter_quotas(b, ([U], [("producer_byte_rate", 1000.0)]),
                 ([U, C], [("producer_byte_rate", 10.0), ("consumer_byte_rate", 20.0)]),
                 ([ANY_CLIENT], [("request_percentage", 50.5)]),
                 ([ANY_USER, ANY_CLIENT], [("producer_byte_rate", 5.0)]))
    bad = [([U], [("no.such", 1.0)]), ([("no-such", "x")], [("producer_byte_rate", 1.0)]),
           ([], [("producer_byte_rate", 1.0)]), ([("user", "")], [("producer_byte_rate", 1.0)]),
           ([("user", "u2")], [("producer_byte_rate", -1.0)]),
           ([("user", "u3")], [("producer_byte_rate", 1.5)]),
           ([("user", "u4")], [("producer_byte_rate", 0.0)]),
           ([("ip", "1.2.3.4")], [("producer_byte_rate", 5.0)]),
           ([("ip", "nowhere.invalid")], [("connection_creation_rate", 5.0)]),
           ([("ip", "1.2.3.4"), ("user", "u")], [("connection_creation_rate", 5.0)]),
           ([("user", "u7")], [("connection_creation_rate", 5.0)])]
    for one in bad:
        alter_quotas(b, one)
    alter_quotas(b, *bad)
    # Kafka answers both with an error and takes the first all the same; we do not.
    alter_quotas(b, ([U], [("producer_byte_rate", 1.0)]), ([U], [("producer_byte_rate", 2.0)]),
                 dry=True)
    alter_quotas(b, ([("user", "u10")], []), ([("user", "u11")], [("producer_byte_rate", None)]))
    alter_quotas(b, ([("user", "u12")], [("producer_byte_rate", 1.0)]), version=0, dry=True)
    alter_quotas(b, ([("user", "u12")], [("no.such", 1.0)]), dry=True)
    alter_quotas(b)

    def look(*components, strict=False, version=1, note=True):
        body = {"components": [{"entityType": t, "matchType": m, "match": x}
                               for t, m, x in components], "strict": strict}
        return ask(b, "DescribeClientQuotas", version, body, note=note)
    until(b, lambda: look(note=False), lambda a: len(a["entries"]) == 4)
    for strict in (False, True):
        look(strict=strict)
        for version in (0, 1):
            look(("user", 0, "u1"), strict=strict, version=version)
        for kind in ("user", "client-id"):
            look((kind, 2, None), strict=strict)
            look((kind, 1, None), strict=strict)
            look((kind, 0, "nobody"), strict=strict)
        look(("user", 2, None), ("client-id", 2, None), strict=strict)
        look(("user", 0, "u1"), ("client-id", 0, "c1"), strict=strict)
        look(("ip", 2, None), strict=strict)
    for wrong in ([("no-such", 2, None)], [("user", 9, None)], [("user", 0, None)],
                  [("user", 1, "x")], [("user", 2, "x")], [("user", 0, "a"), ("user", 0, "b")],
                  [("ip", 0, "1.2.3.4"), ("user", 2, None)], [("user", 0, "")], [("", 0, "a")]):
        look(*wrong)
    alter_quotas(b, ([U], [("producer_byte_rate", None), ("no.such", None)]),
                 ([U, C], [("producer_byte_rate", None)]),
                 ([ANY_CLIENT], [("request_percentage", None)]),
                 ([ANY_USER, ANY_CLIENT], [("producer_byte_rate", None)]))
    until(b, lambda: look(note=False), lambda a: len(a["entries"]) == 1)
    look()
    alter_quotas(b, ([U, C], [("consumer_byte_rate", None)]))
    until(b, lambda: look(note=False), lambda a: not a["entries"])
    look()


def scram(b):
    """Neither has credentials; tools ask for them beside a user's quotas."""
    def look(*users):
        ask(b, "DescribeUserScramCredentials", 0, {"users": [{"name": u} for u in users]})
    ask(b, "DescribeUserScramCredentials", 0, {"users": None})
    look()
    for name in ("alice", "", "*", " ", "a b", "ä", "a=b,c", "User:alice", "a" * 300, "ANONYMOUS",
                 "a/b", "\t"):
        look(name)
    look("alice", "bob")
    look("bob", "alice", "bob")
    look("bob", "bob", "alice", "alice", "carol")
    look("", "")
    look("", "alice")
    look(*[f"user-{i}" for i in range(100)])


CASES = [
    Case("DescribeCluster", describe_cluster),
    Case("ElectLeaders", elect_leaders),
    Case("AlterPartitionReassignments and ListPartitionReassignments", reassignments),
    Case("DescribeLogDirs and AlterReplicaLogDirs", log_dirs),
    Case("DescribeProducers", producers),
    Case("DescribeQuorum", quorum),
    Case("UpdateFeatures", features),
    Case("AlterClientQuotas and DescribeClientQuotas", quotas),
    Case("DescribeUserScramCredentials", scram),
]
