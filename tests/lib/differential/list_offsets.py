"""ListOffsets: the ends, times, and everything that negative times stand for."""
from lib.differential.compare import Case
from lib.differential.fetch import fill
from lib.differential.records import batch

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
SPECIAL = (-1, -2, -3, -4, -5, -6, -7, -100, -(1 << 63))


def request(version, parts, isolation=0, replica=-1):
    """`parts`: (topic, partition, timestamp[, leader epoch])."""
    topics = []
    for topic, partition, timestamp, *epoch in parts:
        if not topics or topics[-1]["name"] != topic:
            topics.append({"name": topic, "partitions": []})
        one = {"partitionIndex": partition, "timestamp": timestamp}
        if version >= 4 and epoch:
            one["currentLeaderEpoch"] = epoch[0]
        topics[-1]["partitions"].append(one)
    body = {"replicaId": replica, "topics": topics}
    if version >= 2:
        body["isolationLevel"] = isolation
    return body


def ask(b, version, parts, **options):
    return b.call("ListOffsets", version, request(version, parts, **options))


def versions(b):
    b.topic("l-versions", 2)
    fill(b, "l-versions", 0, batch((1000, None, b"a"), (1500, None, b"b")),
         batch((9000, None, b"c")), batch((5000, None, b"d")))
    for version in range(1, 12):
        for timestamp in SPECIAL + (0, 1000, 1001, 1500, 1501, 5000, 5001, 9000, 9001, 1 << 62):
            ask(b, version, [("l-versions", 0, timestamp), ("l-versions", 1, timestamp)])


def inside_batches(b):
    """A17, for plain and compressed records in any order of time."""
    b.topic("l-inside", 4)
    twelve = [(t, None, b"v") for t in range(1, 13)]
    mixed = [(t, None, b"v") for t in (50, 20, 90, 10, 90, 70)]
    fill(b, "l-inside", 0, batch(*twelve), batch(*mixed))
    fill(b, "l-inside", 1, batch(*twelve, codec=1), batch(*mixed, codec=1))
    fill(b, "l-inside", 2, batch(*mixed), batch(*mixed), batch((91, None, b"v")),
         batch((91, None, b"v")))
    fill(b, "l-inside", 3, batch((-1, None, b"v")), batch((-1, None, b"v"), (5, None, b"v")))
    for partition in range(4):
        for timestamp in (*range(0, 14), 49, 50, 51, 70, 71, 90, 91, 92, -3):
            ask(b, 7, [("l-inside", partition, timestamp)])


def append_time(b):
    b.topic("l-append-time", message_timestamp_type="LogAppendTime")
    fill(b, "l-append-time", 0, batch((1, None, b"a"), (2, None, b"b")))
    for timestamp in (0, 1, 2, 1000, -1, -2, -3, 1 << 60):
        ask(b, 7, [("l-append-time", 0, timestamp)])


def places(b):
    b.topic("l-places", 2)
    fill(b, "l-places", 0, batch((1000, None, b"a")))
    for version in (1, 5, 11):
        ask(b, version, [("l-places", 0, -1), ("l-places", 7, -1), ("l-places", -1, -2),
                         ("l-nowhere", 0, -1), ("l-places", 1, -1)])
        ask(b, version, [("l-places", 7, -100), ("l-nowhere", 0, -100)])
        ask(b, version, [("l-places", 0, -1), ("l-places", 0, -2), ("l-places", 1, -1)])
        ask(b, version, [("l-places", 0, -1), ("l-nowhere", 0, -1), ("l-places", 0, -2)])
        ask(b, version, [])
    for epoch in (-1, 0, 1, 9, -2, -5):
        for timestamp in (-1, -2, -3, 1000):
            ask(b, 7, [("l-places", 0, timestamp, epoch)])
    ask(b, 7, [("l-places", 7, -1, 9)])


def isolation(b):
    b.topic("l-isolation")
    fill(b, "l-isolation", 0, batch((1000, None, b"a")), batch((2000, None, b"b")))
    for level in (0, 1, 2, -1):
        for replica in (-1, -2, 1, 7):
            for timestamp in (-1, -2, -3, 1500):
                ask(b, 7, [("l-isolation", 0, timestamp)], isolation=level, replica=replica)


CASES = [
    Case("list offsets: every version and every time", versions),
    Case("list offsets: inside of batches (A17)", inside_batches),
    Case("list offsets: LogAppendTime", append_time),
    Case("list offsets: places and epochs", places),
    Case("list offsets: isolation levels and replicas", isolation),
]
