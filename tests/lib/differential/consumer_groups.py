"""Groups of the "consumer" protocol (KIP-848): heartbeats, and what other requests make of them."""
import struct
import time

from lib.differential.compare import Case
from lib.differential.groups import Member, ask, coordinate, protocols

# Both brokers run with these: no waiting for the next assignment.
SETTINGS = {"group.consumer.assignment.interval.ms": 0,
            "group.consumer.min.assignment.interval.ms": 0,
            "group.consumer.assignor.offload.enable": "false", "group.consumer.max.size": 3,
            "group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 3}


def heartbeat(b, version, body, compared=True):
    full = {"instanceId": None, "rackId": None, "rebalanceTimeoutMs": -1,
            "subscribedTopicNames": None, "serverAssignor": None, "topicPartitions": None, **body}
    if version >= 1:
        full.setdefault("subscribedTopicRegex", None)
    if compared:
        return ask(b, "ConsumerGroupHeartbeat", version, full)
    return b.ask("ConsumerGroupHeartbeat", version, full)


class Modern:
    """One consumer; its id is its own."""

    def __init__(self, b, group, name, version=1, **wishes):
        self.b, self.group, self.id, self.version = b, group, f"{group}-{name}", version
        self.epoch, self.owned, self.wishes, self.instance = 0, [], wishes, wishes.get("instanceId")

    def beat(self, **more):
        body = {"groupId": self.group, "memberId": self.id, "memberEpoch": self.epoch,
                "instanceId": self.instance}
        answer = heartbeat(self.b, self.version, {**body, **more})
        if answer["errorCode"] == 0:
            self.epoch = answer["memberEpoch"]
            if answer["assignment"]:
                self.owned = answer["assignment"]["topicPartitions"]
        return answer

    def join(self, **more):
        self.epoch, self.owned = 0, []
        wishes = {"subscribedTopicNames": ["kip-t"], **self.wishes}
        return self.beat(**{"rebalanceTimeoutMs": 30000, "topicPartitions": [], **wishes, **more})

    def own(self, **more):
        """Says what it owns, which is all that it was last told."""
        return self.beat(**{"topicPartitions": self.owned, **more})

    def leave(self, epoch=-1):
        return self.beat(memberEpoch=epoch)


def prepare(b, partitions=4):
    coordinate(b)
    b.topic("kip-t", partitions)


def describe(b, *names):
    for version in (0, 1):
        ask(b, "ConsumerGroupDescribe", version,
            {"groupIds": list(names), "includeAuthorizedOperations": False})


def wrong_requests(b):
    prepare(b)
    good = {"groupId": "kg-wrong", "memberId": "m", "memberEpoch": 0, "rebalanceTimeoutMs": 1000,
            "subscribedTopicNames": ["kip-t"], "topicPartitions": []}
    for version in (0, 1):
        for change in ({"memberEpoch": -2}, {"memberEpoch": -3}, {"groupId": ""}, {"groupId": " "},
                       {"instanceId": ""}, {"rackId": " "}, {"rebalanceTimeoutMs": -1},
                       {"topicPartitions": None}, {"subscribedTopicNames": None},
                       {"topicPartitions": [{"topicId": "01" * 16, "partitions": [0]}]},
                       {"serverAssignor": "sticky"}, {"serverAssignor": ""},
                       {"memberEpoch": 1}, {"memberEpoch": -1}, {"memberId": "", "memberEpoch": 1},
                       {"memberId": "", "memberEpoch": -1}, {"memberEpoch": -2, "instanceId": "i"}):
            heartbeat(b, version, {**good, **change})
    for regex in ("(", "[a", "a{2000}", "(?=x)", "\\1", "*"):
        heartbeat(b, 1, {**good, "subscribedTopicNames": None, "subscribedTopicRegex": regex})
    heartbeat(b, 1, {**good, "memberId": ""})
    describe(b, "kg-wrong", "")


def own_id(b):
    prepare(b)
    answer = heartbeat(b, 0, {"groupId": "kg-id", "memberId": "", "memberEpoch": 0,
                              "rebalanceTimeoutMs": 1000, "subscribedTopicNames": ["kip-t"],
                              "topicPartitions": []}, compared=False)
    b.rename(answer["memberId"], "an id that was made")
    b.note("joined", answer)
    heartbeat(b, 0, {"groupId": "kg-id", "memberId": answer["memberId"], "memberEpoch": -1})


def alone(b):
    prepare(b)
    m = Modern(b, "kg-alone", "m")
    m.join()
    m.own()
    m.beat()
    describe(b, "kg-alone")
    m.beat(memberEpoch=m.epoch + 1)
    m.beat(memberEpoch=1)
    m.beat(memberId="other")
    m.beat(instanceId="i")
    m.join()
    m.own(rebalanceTimeoutMs=1000, subscribedTopicNames=["kip-t"])
    m.beat(subscribedTopicNames=["kip-t", "kip-none"])
    m.beat(subscribedTopicNames=[])
    m.own()
    m.leave()
    m.leave()
    describe(b, "kg-alone")
    m.join()
    m.leave()
    for version in range(7):
        ask(b, "DescribeGroups", version, {"groups": ["kg-alone"]})
    ask(b, "DeleteGroups", 2, {"groupsNames": ["kg-alone"]})
    describe(b, "kg-alone")


def two(b):
    prepare(b, 1)
    first, second = Modern(b, "kg-two", "a"), Modern(b, "kg-two", "b")
    first.join()
    first.own()
    second.join()
    describe(b, "kg-two")
    first.leave()
    second.beat()
    second.own()
    first.join()
    first.beat()
    second.own()
    second.join()
    describe(b, "kg-two")
    second.leave()
    first.beat()
    first.beat()
    first.leave()


def full(b):
    prepare(b)
    members = [Modern(b, "kg-full", str(i)) for i in range(4)]
    for m in members:
        m.join(subscribedTopicNames=[])
    static = Modern(b, "kg-full", "s", instanceId="i")
    static.join(subscribedTopicNames=[])
    members[0].leave()
    static.join(subscribedTopicNames=[])
    static.join(subscribedTopicNames=[])
    for m in (*members[1:3], static):
        m.leave()


def static_members(b):
    prepare(b)
    m = Modern(b, "kg-static", "1", instanceId="i")
    m.join()
    m.own()
    again = Modern(b, "kg-static", "2", instanceId="i")
    again.join()
    again.beat(memberEpoch=2)
    again.leave(-2)
    m.beat(memberEpoch=-2, instanceId="j")
    m.leave(-2)
    describe(b, "kg-static")
    again.join()
    again.own()
    m.beat(memberEpoch=2)
    m.leave(-1)
    describe(b, "kg-static")
    again.leave(-1)
    describe(b, "kg-static")


def offsets(b):
    prepare(b)
    topic = b.ask("Metadata", 12, {"topics": [{"name": "kip-t"}],
                                   "allowAutoTopicCreation": False})["topics"][0]["topicId"]
    m = Modern(b, "kg-commit", "m")
    m.join()
    m.own()

    def commit(version=9, **more):
        body = {"groupId": "kg-commit", "memberId": m.id, "groupInstanceId": None,
                "generationIdOrMemberEpoch": m.epoch, "topics": [
                    {"partitions": [{"partitionIndex": 0, "committedOffset": 0,
                                     "committedLeaderEpoch": -1, "committedMetadata": ""}],
                     **({"name": "kip-t"} if version < 10 else {"topicId": topic})}], **more}
        ask(b, "OffsetCommit", version, body)

    def fetch(version=9, **more):
        ask(b, "OffsetFetch", version, {"groups": [
            {"groupId": "kg-commit", "memberId": m.id, "memberEpoch": m.epoch, "topics": None,
             **more}], "requireStable": False})
    for version in (9, 10):
        commit(version)
        commit(version, generationIdOrMemberEpoch=m.epoch - 1)
        commit(version, generationIdOrMemberEpoch=m.epoch + 1)
        commit(version, generationIdOrMemberEpoch=-1)
        commit(version, memberId="x")
        commit(version, memberId="", generationIdOrMemberEpoch=-1)
        fetch(version)
        fetch(version, memberEpoch=m.epoch - 1)
        fetch(version, memberEpoch=m.epoch + 1)
        fetch(version, memberId="x")
        fetch(version, memberId=None, memberEpoch=-1)
    commit(8)
    ask(b, "OffsetDelete", 0, {"groupId": "kg-commit", "topics": [
        {"name": "kip-t", "partitions": [{"partitionIndex": 0}]}]})
    ask(b, "DeleteGroups", 2, {"groupsNames": ["kg-commit"]})
    m.leave()
    commit(9, memberId="", generationIdOrMemberEpoch=-1)
    commit(9)
    ask(b, "OffsetDelete", 0, {"groupId": "kg-commit", "topics": [
        {"name": "kip-t", "partitions": [{"partitionIndex": 0}]}]})
    ask(b, "DeleteGroups", 2, {"groupsNames": ["kg-commit"]})


def listed(b):
    prepare(b)
    m = Modern(b, "kg-listed", "m")
    m.join()
    for state in ("Stable", "empty", "Assigning", "Reconciling"):
        for kind in ("consumer", "Classic"):
            groups = b.ask("ListGroups", 5, {"statesFilter": [state], "typesFilter": [kind]})
            b.note(f"{state} {kind}", [g for g in groups["groups"] if g["groupId"] == "kg-listed"])
    m.leave()
    groups = b.ask("ListGroups", 5, {"statesFilter": [], "typesFilter": ["consumer"]})
    b.note("empty", [g for g in groups["groups"] if g["groupId"] == "kg-listed"])


def regex(b):
    prepare(b)
    for name in ("kipx-1", "kipx-2"):
        b.topic(name, 1)
    m = Modern(b, "kg-regex", "m")

    def settled(what):
        answer = heartbeat(b, 1, {"groupId": m.group, "memberId": m.id, "memberEpoch": m.epoch},
                           compared=False)
        for _ in range(100):  # Kafka looks expressions up on another thread.
            if answer["assignment"]:
                break
            m.epoch = answer["memberEpoch"]
            time.sleep(0.05)
            answer = heartbeat(b, 1, {"groupId": m.group, "memberId": m.id,
                                      "memberEpoch": m.epoch}, compared=False)
        m.epoch = answer["memberEpoch"]
        m.owned = answer["assignment"]["topicPartitions"]
        b.note(what, sorted(m.owned, key=lambda t: b.comparable(t["topicId"])))
    m.join(subscribedTopicNames=None, subscribedTopicRegex="kipx-.*")
    settled("looked up")
    m.own()
    describe(b, "kg-regex")
    m.beat(subscribedTopicRegex="", subscribedTopicNames=["kip-t"])
    m.leave()


def other_protocol(b):
    """Members of one protocol and groups of the other."""
    prepare(b)
    m = Modern(b, "kg-other", "m")
    m.join()
    m.leave()
    classic = Member(b, "kg-other", name="c").settle()
    describe(b, "kg-other")
    m.beat(memberEpoch=3)
    m.leave()
    classic.leave()
    m.join()
    m.leave()


def assigned(*partitions):
    return struct.pack(">hih", 0, 1, 5) + b"kip-t" + struct.pack(
        f">i{len(partitions)}ii", len(partitions), *partitions, -1)


def migration(b):
    """A classic group gets a member of the other protocol, and loses it again."""
    prepare(b)
    classic = Member(b, "kg-up", name="c", protocols=protocols("range", topics=("kip-t",)))
    classic.join()
    classic.sync([(classic.id, assigned(0, 1, 2, 3))])
    m = Modern(b, "kg-up", "m")
    m.join()
    describe(b, "kg-up")
    for _ in range(2):  # It gives up partitions, then comes to the new epoch.
        classic.beat()
        classic.join()
        classic.sync()
    classic.beat()
    m.beat()
    describe(b, "kg-up")
    classic.beat(generationId=1)
    classic.sync(generationId=1)
    classic.sync(protocolType="connect")
    classic.sync(protocolName="other")
    classic.beat(memberId=m.id, generationId=m.epoch)
    classic.join(protocols=protocols("other"))
    m.leave()
    describe(b, "kg-up")
    classic.beat()
    classic.join()
    classic.sync([(classic.id, assigned(0, 1, 2, 3))])
    classic.beat()
    classic.leave()


def joined_classic(b, group, name, instance=None, **more):
    return Member(b, group, name=name, instance=instance,
                  protocols=protocols("range", topics=("kip-t",)), **more)


def replaced(b):
    """The only member of the consumer protocol comes back, static, with the classic one."""
    prepare(b)
    m = Modern(b, "kg-replaced", "m", instanceId="i")
    m.join()
    m.own()
    again = joined_classic(b, "kg-replaced", "c", "i")
    again.join()
    describe(b, "kg-replaced")
    ask(b, "DescribeGroups", 6, {"groups": ["kg-replaced"]})
    m.beat()
    m.beat(memberEpoch=-2)
    again.beat()
    again.sync()
    again.sync([(again.id, assigned(0, 1))])
    again.beat()
    again.join()
    again.sync([(again.id, assigned(0, 1))])
    ask(b, "DescribeGroups", 6, {"groups": ["kg-replaced"]})
    again.leave()
    describe(b, "kg-replaced")


def replaced_among_others(b):
    """The last of the consumer protocol, beside a member of the classic one; it had left."""
    prepare(b)
    other = joined_classic(b, "kg-last", "c", "j")
    other.join()
    other.sync([(other.id, assigned(0, 1, 2, 3))])
    m = Modern(b, "kg-last", "m", instanceId="i")
    m.join()
    for _ in range(2):
        other.beat()
        other.join()
        other.sync()
    m.beat()
    m.own()
    describe(b, "kg-last")
    m.leave(-2)
    last = joined_classic(b, "kg-last", "d", "i")
    last.join()
    ask(b, "DescribeGroups", 6, {"groups": ["kg-last"]})
    last.sync()
    other.beat()
    last.beat()
    other.sync()
    other.leave()
    last.leave()


def replaced_with_other_topics(b):
    """... and wants another topic, so that the epoch rises in the same step."""
    prepare(b)
    b.topic("kip-u", 2)
    m = Modern(b, "kg-changed", "m", instanceId="i")
    m.join()
    m.own()
    again = Member(b, "kg-changed", name="c", instance="i",
                   protocols=protocols("range", topics=("kip-u",)))
    again.join()
    describe(b, "kg-changed")
    ask(b, "DescribeGroups", 6, {"groups": ["kg-changed"]})
    again.sync()
    again.beat()
    again.join()
    again.sync([(again.id, assigned(0, 1))])
    again.leave()


def replaced_one_of_two(b):
    """There is another member of the consumer protocol: the group stays."""
    prepare(b)
    m, n = Modern(b, "kg-stays", "m", instanceId="i"), Modern(b, "kg-stays", "n")
    m.join()
    n.join()
    m.own()
    again = joined_classic(b, "kg-stays", "c", "i")
    again.join()
    again.sync()
    describe(b, "kg-stays")
    n.leave()
    ask(b, "DescribeGroups", 6, {"groups": ["kg-stays"]})
    again.beat()
    again.leave()


CASES = [
    Case("ConsumerGroupHeartbeat with wrong fields", wrong_requests),
    Case("a member without an id", own_id),
    Case("a member alone", alone),
    Case("two members and one partition", two),
    Case("a group that is full", full),
    Case("static members", static_members),
    Case("offsets of members", offsets),
    Case("ListGroups", listed),
    Case("a regular expression", regex),
    Case("empty groups change their protocol", other_protocol),
    Case("a classic group is upgraded and comes back", migration),
    Case("the only member is replaced by a classic one", replaced),
    Case("the last of the consumer protocol is replaced", replaced_among_others),
    Case("a classic member replaces the last and wants others", replaced_with_other_topics),
    Case("a classic member replaces one of two", replaced_one_of_two),
]
