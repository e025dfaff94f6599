"""TxnOffsetCommit: who may commit offsets in a transaction, and what is told of pending ones."""
import time

from lib.differential.compare import Case
from lib.differential.consumer_groups import Modern
from lib.differential.groups import Member, NOBODY, ask, commit_body, coordinate, fetch_body


class Transaction:
    """A producer's, open until its time is over. A broker without transactions takes any id."""

    def __init__(self, b, name):
        self.b, self.name = b, name
        b.ask("FindCoordinator", 4, {"keyType": 1, "coordinatorKeys": [name]})
        for _ in range(300):
            made = b.ask("InitProducerId", 4, {
                "transactionalId": name, "transactionTimeoutMs": 600000, "producerId": -1,
                "producerEpoch": -1})
            if made["errorCode"] not in (14, 15, 16):  # Kafka makes its topic meanwhile.
                break
            time.sleep(0.1)
        self.served = made["errorCode"] == 0
        self.id, self.epoch = (made["producerId"], made["producerEpoch"]) if self.served \
            else (4000, 0)

    def includes(self, group):
        if not self.served:
            return
        for _ in range(100):
            added = self.b.ask("AddOffsetsToTxn", 3, {
                "transactionalId": self.name, "producerId": self.id, "producerEpoch": self.epoch,
                "groupId": group})
            if added["errorCode"] == 0:
                return
            time.sleep(0.1)
        raise AssertionError(f"{group} is not added: {added}")

    def commit(self, version, group, topic, partitions, **more):
        ask(self.b, "TxnOffsetCommit", version, body_of(
            version, group, topic, partitions, transactionalId=self.name, producerId=self.id,
            producerEpoch=self.epoch, **more))


def body_of(version, group, topic, partitions, **more):
    body = commit_body(None, group, 5, topic, partitions, **more)
    for entry in body["topics"]:
        if version >= 6:
            entry["topicId"] = entry.pop("name")
        for partition in entry["partitions"]:
            if version >= 2:
                partition["committedLeaderEpoch"] = 3
    return body


def refused(b):
    """What is refused before the transaction is looked for."""
    coordinate(b)
    topic = b.topic("g-txn", 3)
    for version in range(0, 7):
        named = topic if version >= 6 else "g-txn"
        unknown = "7" * 32 if version >= 6 else "g-no-such"
        in_none = {"transactionalId": "t-none", "producerId": 99, "producerEpoch": 1}
        for group in ("g-txn", ""):
            for where, partitions in ((named, [(3, 1), (-1, 1), (4, 1, None)]), (named, []),
                                      (unknown, [(0, 1), (1, 1)]), (unknown, [])):
                ask(b, "TxnOffsetCommit", version,
                    body_of(version, group, where, partitions, **in_none))
            ask(b, "TxnOffsetCommit", version, {"groupId": group, "topics": [], **in_none})
        for partitions in ([(0, 1)], [(0, 1, "x" * 101), (7, 1)]):
            ask(b, "TxnOffsetCommit", version, body_of(version, "", named, partitions, **in_none))
        if version >= 3:
            ask(b, "TxnOffsetCommit", version, body_of(
                version, "", named, [(0, 1)], memberId="m", generationIdOrMemberEpoch=4,
                groupInstanceId="i", **in_none))
        ask(b, "OffsetFetch", 7, fetch_body(7, "g-txn", None, requireStable=True))


def fetch_all_ways(b, group, name, topic):
    for version in (7, 8, 10):
        for stable in (True, False):
            for topics in (None, [(topic if version >= 10 else name, [0, 1, 2, 3])]):
                ask(b, "OffsetFetch", version,
                    fetch_body(version, group, topics, requireStable=stable))


def members(b):
    coordinate(b)
    topic = b.topic("g-tm", 3)
    txn = Transaction(b, "t-members")
    for group in ("g-tm", "g-tm-static", "g-tm-none", "g-tm-simple"):
        txn.includes(group)
    m = Member(b, "g-tm").settle()
    s = Member(b, "g-tm-static", instance="i", name="s").settle()
    ask(b, "OffsetCommit", 8, commit_body(b, "g-tm", 8, "g-tm", [(1, 3)], memberId=m.id,
                                          generationIdOrMemberEpoch=m.generation))
    some = [(0, 10), (1, 11, "x" * 101), (2, 12, "x" * 100)]
    for version in range(0, 7):
        named = topic if version >= 6 else "g-tm"
        if version < 3:
            txn.commit(version, "g-tm", named, some)
            continue
        for generation, member in ((1, m.id), (2, m.id), (0, m.id), (1, NOBODY), (-1, m.id),
                                   (-1, NOBODY), (-1, ""), (1, "")):
            txn.commit(version, "g-tm", named, some, generationIdOrMemberEpoch=generation,
                       memberId=member)
        for member, instance in ((m.id, "i"), (m.id, None)):
            txn.commit(version, "g-tm", named, some, generationIdOrMemberEpoch=1,
                       memberId=member, groupInstanceId=instance)
        for member, instance in ((s.id, "i"), (NOBODY, "i"), (s.id, "j"), ("", "i")):
            for generation in (1, 2, -1):
                txn.commit(version, "g-tm-static", named, some, memberId=member,
                           groupInstanceId=instance, generationIdOrMemberEpoch=generation)
        for generation, member in ((5, "m"), (0, ""), (5, "")):
            txn.commit(version, "g-tm-none", named, some, generationIdOrMemberEpoch=generation,
                       memberId=member)
        for member, instance in (("m", None), ("", "i"), ("", None)):
            txn.commit(version, "g-tm-simple", named, some, memberId=member,
                       groupInstanceId=instance)
    for group in ("g-tm", "g-tm-static", "g-tm-none", "g-tm-simple"):
        fetch_all_ways(b, group, "g-tm", topic)
    m.join()  # and the group waits for the assignment
    txn.commit(3, "g-tm", "g-tm", some, generationIdOrMemberEpoch=2, memberId=m.id)
    m.leave()
    s.leave()


def modern_members(b):
    coordinate(b)
    b.topic("kip-t", 4)
    topic = b.ask("Metadata", 12, {"topics": [{"name": "kip-t"}],
                                   "allowAutoTopicCreation": False})["topics"][0]["topicId"]
    txn = Transaction(b, "t-modern")
    txn.includes("kg-txn")
    m = Modern(b, "kg-txn", "m")
    m.join()
    m.own()
    for version in range(0, 7):
        named = topic if version >= 6 else "kip-t"
        if version < 3:
            txn.commit(version, "kg-txn", named, [(0, 10)])
            continue
        for epoch, member in ((m.epoch, m.id), (m.epoch - 1, m.id), (m.epoch + 1, m.id),
                              (-1, m.id), (-1, ""), (m.epoch, ""), (m.epoch, NOBODY)):
            txn.commit(version, "kg-txn", named, [(0, 10), (1, 5, "x" * 5000)],
                       generationIdOrMemberEpoch=epoch, memberId=member)
        txn.commit(version, "kg-txn", named, [(1, 5, "x" * 5000)],
                   generationIdOrMemberEpoch=m.epoch + 1, memberId=m.id)
        txn.commit(version, "kg-txn", named, [(1, 5, "x" * 5000)],
                   generationIdOrMemberEpoch=m.epoch - 1, memberId=m.id)
    for stable in (True, False):
        ask(b, "OffsetFetch", 9, {"groups": [
            {"groupId": "kg-txn", "memberId": m.id, "memberEpoch": m.epoch, "topics": [
                {"name": "kip-t", "partitionIndexes": [0, 1]}]}], "requireStable": stable})
    m.leave()


def deletions(b):
    """What is pending is deleted as well, and keeps nothing from being deleted."""
    coordinate(b)
    topic = b.topic("g-td", 3)
    b.topic("g-td-other", 2)
    txn = Transaction(b, "t-deletions")
    for group in ("g-td", "g-td-gone"):
        txn.includes(group)
        ask(b, "OffsetCommit", 8, commit_body(b, group, 8, "g-td", [(0, 1)]))
        for name in ("g-td", "g-td-other"):
            txn.commit(3, group, name, [(0, 10), (1, 11)])
        fetch_all_ways(b, group, "g-td", topic)
    ask(b, "OffsetDelete", 0, {"groupId": "g-td", "topics": [
        {"name": "g-td", "partitions": [{"partitionIndex": i} for i in (0, 1, 2, 7)]}]})
    fetch_all_ways(b, "g-td", "g-td", topic)
    ask(b, "OffsetFetch", 8, fetch_body(8, "g-td", [("g-td-other", [0, 1])], requireStable=True))
    ask(b, "DeleteGroups", 2, {"groupsNames": ["g-td-gone"]})
    fetch_all_ways(b, "g-td-gone", "g-td", topic)
    ask(b, "OffsetFetch", 8, fetch_body(8, "g-td-gone", [("g-td-other", [0, 1])],
                                        requireStable=True))


CASES = [
    Case("TxnOffsetCommit, every version, refused", refused),
    Case("TxnOffsetCommit, every version, of members and others", members),
    Case("TxnOffsetCommit of members of the consumer protocol", modern_members),
    Case("OffsetDelete and DeleteGroups with pending offsets", deletions),
]
