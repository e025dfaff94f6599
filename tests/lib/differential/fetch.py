"""Fetch: what is read, how much of it, what a session leaves out, how long a request waits."""
import time

from lib.differential.codec import ZERO_ID
from lib.differential.compare import Case
from lib.differential.records import batch

MANY = 10 << 20
ONE = (1000, None, b"value")
UNKNOWN_ID = "12" * 16


def request(version, parts, *, wait=0, min_bytes=1, max_bytes=MANY, isolation=0, session=0,
            epoch=-1, forget=(), replica=-1):
    """`parts` and `forget`: (topic name or id, partition[, offset[, more fields]])."""
    def grouped(entries, make):
        topics = []
        for topic, *rest in entries:
            key = "topicId" if version >= 13 else "topic"
            if not topics or topics[-1][key] != topic:
                topics.append({key: topic, "partitions": []})
            topics[-1]["partitions"].append(make(*rest))
        return topics

    def partition(index, offset=0, more=None):
        return {"partition": index, "fetchOffset": offset, "partitionMaxBytes": MANY} | (more or {})

    body = {"maxWaitMs": wait, "minBytes": min_bytes, "maxBytes": max_bytes,
            "isolationLevel": isolation, "topics": grouped(parts, partition)}
    if version >= 15:
        body["replicaState"] = {"replicaId": replica, "replicaEpoch": -1}
    else:
        body["replicaId"] = replica
    if version >= 7:
        body |= {"sessionId": session, "sessionEpoch": epoch,
                 "forgottenTopicsData": grouped(forget, lambda index: index)}
    return body


def fetch(b, version, parts, connection=0, **options):
    return b.call("Fetch", version, request(version, parts, **options), connection)


def fill(b, topic, partition=0, *batches):
    for data in batches or (batch(),):
        answer = b.ask("Produce", 9, {"acks": -1, "timeoutMs": 10000, "topicData": [
            {"name": topic, "partitionData": [{"index": partition, "records": data}]}]})
        error = answer["responses"][0]["partitionResponses"][0]["errorCode"]
        if error:
            raise AssertionError(f"{b.name}: Produce to {topic}: error {error}")


def versions(b):
    topic_id = b.topic("f-versions", 2)
    fill(b, "f-versions", 0, batch(ONE, ONE), batch(ONE))
    for version in range(4, 19):
        name, nowhere = (topic_id, UNKNOWN_ID) if version >= 13 else ("f-versions", "f-nowhere")
        fetch(b, version, [(name, 0, 0)])
        fetch(b, version, [(name, 1, 0)])
        fetch(b, version, [(name, 0, 10 ** 9), (name, 1, 1), (name, 0, 3)])
        fetch(b, version, [(name, 0, 0), (nowhere, 0, 0), (name, 7, 0), (name, -1, 0)])
        fetch(b, version, [(name, 0, 0)], isolation=1)
        fetch(b, version, [(name, 1, 0), (name, 1, 5), (nowhere, 0, 0)], isolation=1)
        fetch(b, version, [])


def offsets(b):
    topic_id = b.topic("f-offsets")
    fill(b, "f-offsets", 0, batch(ONE, ONE, ONE), batch(ONE, codec=1), batch(ONE, ONE))
    for offset in (0, 1, 2, 3, 4, 5, 6, 7, -1, -2, 1 << 62, -(1 << 63)):
        fetch(b, 11, [("f-offsets", 0, offset)])
    fetch(b, 13, [(ZERO_ID, 0, 0)])
    fetch(b, 12, [("", 0, 0), ("in/valid", 0, 0)])
    fetch(b, 13, [(topic_id, 0, 0), (UNKNOWN_ID, 0, 0), (topic_id, 3, 0)])
    # The same partition twice.
    fetch(b, 11, [("f-offsets", 0, 0), ("f-offsets", 0, 5)])
    fetch(b, 13, [(topic_id, 0, 5), (UNKNOWN_ID, 0, 0), (topic_id, 0, 3)])


def limits(b):
    b.topic("f-limits", 3)
    for partition in range(3):
        fill(b, "f-limits", partition, *[batch((1000, None, bytes(931))) for _ in range(4)])
    all_of_it = [("f-limits", p, 0) for p in range(3)]
    for n in (0, 1, 999, 1000, 1001, 1999, 2000, 2500, 4000, 4500, 4999, 5000, 5500, 8000, 12000,
              -1, -(1 << 31)):
        fetch(b, 11, all_of_it, max_bytes=n)
        fetch(b, 11, [("f-limits", p, 0, {"partitionMaxBytes": n}) for p in range(3)])
        fetch(b, 11, [("f-limits", 2, 4), ("f-limits", 0, 2, {"partitionMaxBytes": n})],
              max_bytes=1500)
    fetch(b, 11, [("f-limits", 0, 4), ("f-limits", 1, 3)], max_bytes=1)
    fetch(b, 11, [("f-limits", 0, 9), ("f-limits", 1, 3), ("f-limits", 2, 3)], max_bytes=1)


def leader_epochs(b):
    topic_id = b.topic("f-epochs")
    fill(b, "f-epochs", 0, batch(ONE, ONE))
    for version in (9, 12, 16, 18):
        name = topic_id if version >= 13 else "f-epochs"
        for epoch in (-1, 0, 1, 7, -2, -5):
            fetch(b, version, [(name, 0, 0, {"currentLeaderEpoch": epoch})])
    for epoch in (-1, 0, 1, 7, -2):
        for offset in (0, 1, 2, 3, 9, -1):
            fetch(b, 12, [("f-epochs", 0, offset, {"lastFetchedEpoch": epoch})])
    fetch(b, 12, [("f-epochs", 0, 9, {"lastFetchedEpoch": 0, "currentLeaderEpoch": 3})])


def requests_of_others(b):
    """Replicas that are none, isolation levels that are none."""
    topic_id = b.topic("f-others")
    fill(b, "f-others", 0, batch(ONE, ONE))
    for replica in (-2, -3, 7, 1):
        for version in (11, 12, 15, 18):
            name = topic_id if version >= 13 else "f-others"
            fetch(b, version, [(name, 0, 0)], replica=replica)
            fetch(b, version, [(name, 0, 0, {"currentLeaderEpoch": 0})], replica=replica)
        fetch(b, 11, [("f-others", 0, 0), ("f-nowhere", 0, 0)], replica=replica, isolation=1)
    for isolation in (2, -1, 127):
        fetch(b, 11, [("f-others", 0, 0)], isolation=isolation)


class Session:
    def __init__(self, b, version, name="session"):
        self.b, self.version, self.id, self.epoch, self.name = b, version, 0, 0, name

    def __call__(self, parts=(), epoch=None, **options):
        answer = fetch_noting(self.b, self.version, parts, self, epoch, options)
        if epoch is None and answer.get("errorCode") == 0:
            self.id, self.epoch = answer["sessionId"], self.epoch + 1
        return answer


def fetch_noting(b, version, parts, session, epoch, options):
    body = request(version, parts, session=options.pop("session", session.id),
                   epoch=session.epoch if epoch is None else epoch,
                   **{k: v for k, v in options.items() if k != "connection"})
    answer = b.ask("Fetch", version, body, options.get("connection", 0))
    if isinstance(answer, dict) and answer["sessionId"]:
        b.rename(answer["sessionId"], session.name)
    b.note(f"Fetch v{version}", answer)
    return answer


def sessions(version):
    def body(b):
        topic = f"f-session-{version}"
        topic_id = b.topic(topic, 4)
        name = topic_id if version >= 13 else topic
        fill(b, topic, 0, batch(ONE, ONE))
        s = Session(b, version)
        s([(name, 0, 0), (name, 1, 0), (name, 2, 0)])
        s([(name, 0, 2)])  # Nothing new.
        s()
        fill(b, topic, 1)
        s()
        s()  # The offset was not moved: the record comes again.
        s([(name, 1, 1)])
        fill(b, topic, 2)
        fill(b, topic, 0)
        s()
        s([(name, 0, 3), (name, 2, 1)])
        s([(name, 3, 0)])  # One more.
        s([(name, 9, 0)])  # One that does not exist: it is told each time.
        s()
        s(forget=[(name, 9)])
        s([(name, 1, 77)])  # Out of range: told each time.
        s()
        s([(name, 1, 1)])  # When the error goes away it is told once more.
        s()
        fill(b, topic, 3)
        fill(b, topic, 1)
        s(forget=[(name, 3)])
        s([(name, 1, 2)])
        s([(name, 3, 0)], forget=[(name, 3)])  # Both at once: it is forgotten.
        s(forget=[(name, 0), (name, 1), (name, 2), (name, 5)])  # The last ones: the session ends.
        s(epoch=s.epoch)
    return body


def session_order(b):
    """What had records goes to the end of the line, so that all have their turn."""
    b.topic("f-order", 3)
    for partition in range(3):
        fill(b, "f-order", partition, *[batch((1000, None, bytes(931))) for _ in range(3)])
    s = Session(b, 11)
    s([("f-order", p, 0) for p in range(3)], max_bytes=1)
    for _ in range(4):
        s(max_bytes=1)
    s([("f-order", 0, 1), ("f-order", 1, 2)], max_bytes=1500)
    for _ in range(3):
        s(max_bytes=1500)


def session_errors(b):
    topic_id = b.topic("f-session-errors")
    part = [("f-session-errors", 0, 0)]
    by_id = [(topic_id, 0, 0)]
    for session, epoch in ((0, 5), (77, 1), (-5, 1), (1 << 30, 3), (0, -2), (77, -2)):
        if session >= 0:  # Kafka does not answer a negative id.
            fetch(b, 12, part, session=session, epoch=epoch)
    s = Session(b, 12)
    s(part)
    s(epoch=0x7fffffff)
    s(epoch=s.epoch + 1)
    s(epoch=s.epoch - 1 or 9)
    s()
    s(epoch=s.epoch - 1)  # A repeated request.
    s()
    # With topic ids where there were names.
    answer = b.ask("Fetch", 13, request(13, [], session=s.id, epoch=s.epoch))
    b.note("Fetch v13", answer)
    s()
    s([("f-session-errors", 0, 0)], epoch=-1)  # Closes it.
    s()
    t = Session(b, 13, "another")
    t(by_id)
    b.note("Fetch v12", b.ask("Fetch", 12, request(12, [], session=t.id, epoch=t.epoch)))
    t()
    # A full request ends the session that it names and opens another.
    u = Session(b, 13, "a third")
    u.id = t.id
    u(by_id)
    t()
    u()
    # A session belongs to no connection.
    u(connection=1)
    u(connection=2)
    u()


def session_without_partitions(b):
    s = Session(b, 12)
    s()
    s()


def session_with_unknown(b):
    """Topics that are not there, by name and by id."""
    topic_id = b.topic("f-known")
    b.without_topic("f-later")
    s = Session(b, 12)
    s([("f-known", 0, 0), ("f-later", 0, 0)])
    s()
    b.topic("f-later")
    s()
    s()
    t = Session(b, 13, "by id")
    t([(topic_id, 0, 0), (UNKNOWN_ID, 0, 0)])
    t()
    t(forget=[(UNKNOWN_ID, 0)])


def session_over_deletion(b):
    """A26: the id of a topic that is gone, and of an older life of one that is there."""
    old = b.topic("f-reborn")
    other = b.topic("f-other")
    fill(b, "f-reborn")
    by_name, by_id = Session(b, 12, "by name"), Session(b, 13, "by id")
    by_name([("f-reborn", 0, 0), ("f-other", 0, 0)])
    by_id([(old, 0, 0), (other, 0, 0)])
    b.delete_topic("f-reborn")
    fetch(b, 12, [("f-reborn", 0, 0)])
    fetch(b, 13, [(old, 0, 0)])
    by_name()
    by_id()
    new = b.topic("f-reborn")
    b.rename(old, "old id of f-reborn")
    fetch(b, 13, [(old, 0, 0), (new, 0, 0)])
    by_name()
    by_id()
    by_id()
    by_id([(new, 0, 0)], forget=[(old, 0)])
    by_id()


def timed(b, what, at_least, below, version, parts, **options):
    began = time.monotonic()
    fetch(b, version, parts, **options)
    b.took(what, time.monotonic() - began, at_least, below)


def waiting(b):
    b.topic("f-wait", 2)
    fill(b, "f-wait")
    part = [("f-wait", 0, 1)]
    timed(b, "nothing there", 0.5, 3, 11, part, wait=600)
    timed(b, "nothing wanted", 0, 0.5, 11, part, wait=5000, min_bytes=0)
    timed(b, "no time", 0, 0.5, 11, part, wait=0)
    timed(b, "negative time", 0, 0.5, 11, part, wait=-1)
    timed(b, "something there", 0, 0.5, 11, [("f-wait", 0, 0)], wait=5000)
    timed(b, "too little there", 0.5, 3, 11, [("f-wait", 0, 0)], wait=600, min_bytes=10000)
    timed(b, "less wanted than one may have", 0, 0.5, 11, [("f-wait", 0, 0)], wait=5000,
          min_bytes=10000, max_bytes=10)
    timed(b, "out of range", 0, 0.5, 11, part + [("f-wait", 1, 5)], wait=5000)
    timed(b, "an epoch of the past", 0, 0.5, 11, [("f-wait", 1, 0, {"currentLeaderEpoch": 9})],
          wait=5000)
    timed(b, "another topic is unknown", 0.5, 3, 11, part + [("f-nowhere", 0, 0)], wait=600)
    timed(b, "all topics are unknown", 0, 0.5, 11, [("f-nowhere", 0, 0)], wait=5000)
    timed(b, "no partition", 0, 0.5, 11, [], wait=5000)
    timed(b, "a diverged log", 0, 0.5, 12, [("f-wait", 0, 9, {"lastFetchedEpoch": 0})], wait=5000)
    s = Session(b, 11)
    s([("f-wait", 0, 1), ("f-wait", 1, 0)])
    began = time.monotonic()
    s(wait=600)
    b.took("an empty request of a session", time.monotonic() - began, 0.5, 3)


def woken(b):
    b.topic("f-woken", 2)
    b.topic("f-woken-deleted")

    def while_waiting(what, act, version, parts, **options):
        began = time.monotonic()
        sent = b.send("Fetch", version, request(version, parts, wait=20000, **options), 1)
        time.sleep(0.3)
        act()
        b.note(what, b.receive("Fetch", version, sent, 1))
        b.took(what, time.monotonic() - began, 0.3, 8)

    while_waiting("an append", lambda: fill(b, "f-woken", 1), 11,
                  [("f-woken", 0, 0), ("f-woken", 1, 0)])
    while_waiting("an append, read committed", lambda: fill(b, "f-woken", 1), 11,
                  [("f-woken", 0, 0), ("f-woken", 1, 1)], isolation=1)
    while_waiting("two appends", lambda: fill(b, "f-woken", 1, batch((1, None, bytes(300))),
                                              batch((1, None, bytes(300)))), 11,
                  [("f-woken", 0, 0), ("f-woken", 1, 2)], min_bytes=600)
    while_waiting("a deletion", lambda: b.delete_topic("f-woken-deleted"), 11,
                  [("f-woken", 0, 0), ("f-woken-deleted", 0, 0)])


CASES = [
    Case("fetch: every version", versions),
    Case("fetch: offsets and places", offsets),
    Case("fetch: limits and the first batch", limits),
    Case("fetch: leader epochs and diverged logs", leader_epochs),
    Case("fetch: replicas and isolation levels that are none", requests_of_others),
    Case("sessions: by name", sessions(11)),
    Case("sessions: by name, flexible", sessions(12)),
    Case("sessions: by id", sessions(13)),
    Case("sessions: by id, newest", sessions(18)),
    Case("sessions: order", session_order),
    Case("sessions: errors", session_errors),
    Case("sessions: without partitions", session_without_partitions),
    Case("sessions: unknown topics", session_with_unknown),
    Case("sessions: deleted and made anew (A26)", session_over_deletion),
    Case("long poll: when it waits", waiting),
    Case("long poll: what wakes it", woken),
]
