"""OffsetForLeaderEpoch."""
from lib.differential.compare import Case
from lib.differential.fetch import fill


def ask(b, version, *topics, replica=-1):
    body = {"topics": [{"topic": t, "partitions": [
        {"partition": p, "currentLeaderEpoch": current, "leaderEpoch": epoch}
        for p, current, epoch in parts]} for t, parts in topics]}
    if version >= 3:
        body["replicaId"] = replica
    b.call("OffsetForLeaderEpoch", version, body)


def versions(b):
    b.topic("o-versions", 2)
    fill(b, "o-versions", 0)
    fill(b, "o-versions", 0)
    for version in range(2, 5):
        for epoch in (0, 1, 7, -1, -2, 0x7fffffff):
            ask(b, version, ("o-versions", [(0, -1, epoch), (1, -1, epoch)]))
        ask(b, version, ("o-versions", [(0, 0, 0), (7, -1, 0), (-1, -1, 0)]),
            ("o-nowhere", [(0, -1, 0)]), ("o bad", [(0, -1, 0)]))
        ask(b, version, ("o-versions", []))
        ask(b, version)
        for current in (0, 1, 9, -1, -2):
            ask(b, version, ("o-versions", [(0, current, 0)]))
    for replica in (-2, 1, 7):
        ask(b, 4, ("o-versions", [(0, -1, 0)]), replica=replica)


CASES = [Case("offset for leader epoch: epochs, places, replicas", versions)]
