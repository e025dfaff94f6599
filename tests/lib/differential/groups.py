"""Consumer groups of the classic protocol, committed offsets, and the administration of both."""
import struct
import time

from lib.differential.codec import ZERO_ID
from lib.differential.compare import Case

SENTENCES = {"errorMessage"}
UNORDERED = {"topics", "partitions", "members", "groups", "results", "coordinators",
             "topicPartitions"}
# Both brokers run with these: a rebalance shall not take seconds.
SETTINGS = {"group.initial.rebalance.delay.ms": 500, "group.max.size": 3,
            "offsets.topic.num.partitions": 3, "offset.metadata.max.bytes": 100}
NOBODY = "nobody-1234"


def shaped(b, value, field=""):
    if isinstance(value, dict):
        return {k: shaped(b, v, k) for k, v in value.items()}
    if isinstance(value, list):
        items = [shaped(b, v) for v in value]
        return sorted(items, key=lambda v: repr(b.comparable(v))) if field in UNORDERED else items
    if field in SENTENCES and value:
        return "a sentence"
    return value


def ask(b, api, version, body, connection=0):
    answer = b.ask(api, version, body, connection)
    b.note(f"{api} v{version}", shaped(b, answer) if isinstance(answer, dict) else answer)
    return answer


def subscription(*topics):
    names = b"".join(struct.pack(">h", len(t)) + t.encode() for t in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def protocols(*names, topics=("g-t",)):
    return [{"name": n, "metadata": subscription(*topics)} for n in names or ("range",)]


def coordinate(b):
    """Waits until there is a coordinator: Kafka makes its topic when it is first asked."""
    for _ in range(200):
        found = b.ask("FindCoordinator", 4, {"keyType": 0, "coordinatorKeys": ["g"]})
        if found["coordinators"][0]["errorCode"] == 0:
            answer = b.ask("OffsetFetch", 8, {"groups": [{"groupId": g, "topics": None}
                                                         for g in "abcdefghij"]})
            if not any(g["errorCode"] for g in answer["groups"]):
                return
    raise AssertionError(f"{b.name} has no coordinator")


def await_state(b, group, state):
    """What was sent on another connection has arrived."""
    for _ in range(500):
        if b.ask("DescribeGroups", 5, {"groups": [group]})["groups"][0]["groupState"] == state:
            return
    raise AssertionError(f"{b.name}: {group} does not become {state}")


class Member:
    """One consumer with a connection of its own."""
    made = 0

    def __init__(self, b, group, version=9, instance=None, name=None, **more):
        Member.made += 1
        self.b, self.group, self.version, self.instance = b, group, version, instance
        self.name, self.connection = name or "a", Member.made
        self.id, self.generation, self.protocol, self.asked = "", -1, "range", more

    def join_body(self, **more):
        body = {"groupId": self.group, "sessionTimeoutMs": 10000, "memberId": self.id,
                "protocolType": "consumer", "protocols": protocols()}
        if self.version >= 1:
            body["rebalanceTimeoutMs"] = 20000
        if self.version >= 5:
            body["groupInstanceId"] = self.instance
        return {**body, **self.asked, **more}

    def call_it(self, member_id):
        if member_id:
            self.b.rename(member_id, f"member {self.name}")
            self.id = member_id

    def begin_join(self, **more):
        """Sends the join, after the one that asks for an id if the version has that."""
        if self.version >= 4 and not self.id and self.instance is None:
            answer = self.b.ask("JoinGroup", self.version, self.join_body(**more), self.connection)
            self.call_it(answer["memberId"])
            self.b.note("is told an id", shaped(self.b, answer))
        self.waits = self.b.send("JoinGroup", self.version, self.join_body(**more),
                                 self.connection)

    def end_join(self):
        answer = self.b.receive("JoinGroup", self.version, self.waits, self.connection)
        if answer["errorCode"] == 0:
            self.call_it(answer["memberId"])
            self.generation, self.protocol = answer["generationId"], answer["protocolName"]
        return answer

    def note_join(self, answer):
        self.b.note(f"JoinGroup v{self.version}", shaped(self.b, answer))

    def join(self, **more):
        self.begin_join(**more)
        answer = self.end_join()
        self.note_join(answer)
        return answer

    def sync_body(self, assignments=(), **more):
        body = {"groupId": self.group, "generationId": self.generation, "memberId": self.id,
                "assignments": [{"memberId": m, "assignment": a} for m, a in assignments]}
        if self.version >= 3:
            body["groupInstanceId"] = self.instance
        if self.version >= 5:
            body.update(protocolType=self.asked.get("protocolType", "consumer"),
                        protocolName=self.protocol)
        return {**body, **more}

    def sync(self, assignments=(), **more):
        version = min(self.version, 5)
        return ask(self.b, "SyncGroup", version, self.sync_body(assignments, **more),
                   self.connection)

    def beat(self, **more):
        version = min(self.version, 4)
        body = {"groupId": self.group, "generationId": self.generation, "memberId": self.id}
        if version >= 3:
            body["groupInstanceId"] = self.instance
        return ask(self.b, "Heartbeat", version, {**body, **more}, self.connection)

    def leave(self, version=5, **more):
        if version < 3:
            body = {"groupId": self.group, "memberId": self.id}
        else:
            body = {"groupId": self.group, "members": [
                {"memberId": self.id, "groupInstanceId": self.instance}]}
        return ask(self.b, "LeaveGroup", version, {**body, **more}, self.connection)

    def settle(self, assignment=b"all"):
        self.join()
        self.sync([(self.id, assignment)])
        return self


def settled_pair(b, group, **more):
    """Two members in one stable generation; who leads is named a."""
    one, two = Member(b, group, name="x", **more), Member(b, group, name="y", **more)
    one.begin_join()
    two.begin_join()
    answers = one.end_join(), two.end_join()
    if answers[1]["members"]:
        one, two = two, one
    one.name, two.name = "a", "b"
    for m in (one, two):
        m.call_it(m.id)
    one.sync([(one.id, b"one"), (two.id, b"two")])
    two.sync()
    return one, two


# FindCoordinator


def find_coordinator(b):
    coordinate(b)
    for version in range(7):
        for key in ("g", "", "\u00fc"):
            for key_type in (0, 3, -1):
                if version == 0 and key_type:
                    continue
                body = {"key": key} if version < 4 else {"coordinatorKeys": [key, "other"]}
                if version:
                    body["keyType"] = key_type
                ask(b, "FindCoordinator", version, body)
    ask(b, "FindCoordinator", 6, {"coordinatorKeys": [], "keyType": 0})
    for version in (4, 5):
        ask(b, "FindCoordinator", version, {"coordinatorKeys": ["g:t:0"], "keyType": 2})


# Members


def life_of_a_group(b):
    coordinate(b)
    for version in range(10):
        m = Member(b, f"g-life-{version}", version)
        m.settle()
        m.beat()
        m.sync()
        ask(b, "DescribeGroups", 5, {"groups": [m.group]})
        m.join()  # The leader: anew.
        m.beat()
        m.sync([(m.id, b"again")])
        m.leave(min(version, 5))
        m.beat()
        ask(b, "DescribeGroups", 5, {"groups": [m.group]})


def join_errors(b):
    coordinate(b)
    for version in range(10):
        m = Member(b, f"g-je-{version}", version)
        bodies = [m.join_body(groupId=""), m.join_body(sessionTimeoutMs=5999),
                  m.join_body(sessionTimeoutMs=1800001), m.join_body(sessionTimeoutMs=-1),
                  m.join_body(memberId=NOBODY), m.join_body(protocolType=""),
                  m.join_body(protocols=[]), m.join_body(groupId="", memberId=NOBODY),
                  m.join_body(sessionTimeoutMs=1, memberId=NOBODY)]
        if version >= 5:
            bodies.append(m.join_body(memberId=NOBODY, groupInstanceId="i"))
        for body in bodies:
            ask(b, "JoinGroup", version, body)
    live = Member(b, "g-je-live").settle()
    for version in (0, 4, 5, 9):
        m = Member(b, "g-je-live", version)
        bodies = [m.join_body(protocolType="connect"), m.join_body(protocols=protocols("other")),
                  m.join_body(protocols=[]), m.join_body(memberId=NOBODY)]
        if version >= 5:
            bodies += [m.join_body(groupInstanceId="i", memberId=NOBODY),
                       m.join_body(groupInstanceId="i", protocolType="x"),
                       m.join_body(groupInstanceId="i", memberId=live.id)]
        for body in bodies:
            ask(b, "JoinGroup", version, body)
    live.leave()


def sync_and_beat_errors(b):
    coordinate(b)
    live = Member(b, "g-se").settle()
    for version in range(6):
        for change in ({"groupId": ""}, {"groupId": "g-se-none"}, {"memberId": NOBODY},
                       {"memberId": ""}, {"generationId": 7}, {"generationId": -1}):
            live.version = version
            body = {**live.sync_body(), **change}
            if version >= 3:
                body["groupInstanceId"] = None
            ask(b, "SyncGroup", version, body)
            if version <= 4:
                live.beat(**change)
        if version >= 3:
            ask(b, "SyncGroup", version, {**live.sync_body(), "groupInstanceId": "i"})
            if version <= 4:
                live.beat(groupInstanceId="i")
    live.version = 9
    for change in ({"protocolType": "connect"}, {"protocolName": "other"}, {"protocolType": None},
                   {"protocolName": None}, {}):
        live.sync(**change)
    live.leave()
    live.sync()
    live.beat()


def two_members(b):
    coordinate(b)
    one, two = settled_pair(b, "g-two")
    for m in (one, two):
        m.beat()
    # A follower that has not changed is told of what is there.
    two.join()
    two.beat()
    # The leader makes the group begin anew; the other hears it from its heartbeat.
    one.begin_join()
    await_state(b, "g-two", "PreparingRebalance")
    two.beat()
    two.sync()
    ask(b, "DescribeGroups", 5, {"groups": ["g-two"]})
    two.begin_join()
    one.note_join(one.end_join())
    two.note_join(two.end_join())
    ask(b, "DescribeGroups", 5, {"groups": ["g-two"]})
    waits = b.send("SyncGroup", 5, two.sync_body(), two.connection)
    one.sync([(one.id, b"1")])
    b.note("the other's assignment", b.receive("SyncGroup", 5, waits, two.connection))
    ask(b, "DescribeGroups", 5, {"groups": ["g-two"]})
    two.begin_join(protocols=protocols(topics=("g-t", "g-u")))
    await_state(b, "g-two", "PreparingRebalance")
    one.beat()
    one.leave()
    two.note_join(two.end_join())
    two.sync([(two.id, b"2")])
    two.leave()


def full_group(b):
    coordinate(b)
    members = [Member(b, "g-full", name=f"m{i}") for i in range(3)]
    for m in members:
        m.begin_join()
    answers = [m.end_join() for m in members]
    leader = next(m for m, a in zip(members, answers) if a["members"])
    extra = Member(b, "g-full", 3, name="extra")
    ask(b, "JoinGroup", 3, extra.join_body(), extra.connection)
    leader.sync([])
    ask(b, "JoinGroup", 3, extra.join_body(), extra.connection)
    ask(b, "JoinGroup", 9, Member(b, "g-full").join_body(), extra.connection)
    ask(b, "JoinGroup", 9, Member(b, "g-full", instance="i").join_body(), extra.connection)


def pending_member(b):
    coordinate(b)
    m = Member(b, "g-pending")
    answer = b.ask("JoinGroup", 9, m.join_body())
    m.call_it(answer["memberId"])
    b.note("JoinGroup v9", shaped(b, answer))
    # Kafka tells the id before the new group is written, and describes what is written.
    named = {"groups": ["g-pending"]}
    deadline = time.monotonic() + 5
    while (b.ask("DescribeGroups", 5, named)["groups"][0]["groupState"] == "Dead"
           and time.monotonic() < deadline):
        time.sleep(0.02)
    ask(b, "DescribeGroups", 5, named)
    m.beat()
    m.sync()
    m.leave()
    m.leave()
    m.begin_join()
    b.note("after it left", shaped(b, m.end_join()))


def static_members(b):
    coordinate(b)
    for version in range(5, 10):
        group = f"g-static-{version}"
        one = Member(b, group, version, instance="i1", name="first").settle()
        again = Member(b, group, version, instance="i1", name="second")
        again.join()
        again.sync()
        again.beat()
        one.beat()
        one.sync()
        ask(b, "JoinGroup", version, one.join_body(), again.connection)
        ask(b, "LeaveGroup", 5, {"groupId": group, "members": [
            {"memberId": one.id, "groupInstanceId": "i1"},
            {"memberId": one.id, "groupInstanceId": None},
            {"memberId": "", "groupInstanceId": "i2"}, {"memberId": "", "groupInstanceId": None},
            {"memberId": again.id, "groupInstanceId": "i2"}]})
        again.beat()
        ask(b, "DescribeGroups", 5, {"groups": [group]})
        ask(b, "LeaveGroup", 5, {"groupId": group, "members": [
            {"memberId": "", "groupInstanceId": "i1"}]})
        ask(b, "DescribeGroups", 5, {"groups": [group]})


def static_changes(b):
    coordinate(b)
    one = Member(b, "g-static-change", instance="i1", name="first",
                 protocols=protocols("range", "sticky")).settle()
    again = Member(b, "g-static-change", instance="i1", name="second",
                   protocols=protocols("sticky"))
    again.join()
    again.sync([(again.id, b"s")])
    one.beat()
    # In the middle of a rebalance.
    again.begin_join()
    again.note_join(again.end_join())
    third = Member(b, "g-static-change", instance="i1", name="third",
                   protocols=protocols("sticky"))
    third.join()
    again.sync([(again.id, b"s")])
    third.sync([(third.id, b"t")])
    third.leave()


def leave_versions(b):
    coordinate(b)
    for version in range(6):
        m = Member(b, f"g-leave-{version}", 9)
        m.settle()
        for change in ({"groupId": ""}, {"groupId": "g-leave-none"}):
            m.leave(version, **change)
        if version < 3:
            m.leave(version, memberId=NOBODY)
            m.leave(version, memberId="")
        else:
            m.leave(version, members=[])
            m.leave(version, members=[{"memberId": NOBODY}, {"memberId": ""}])
            m.leave(version, members=[{"memberId": m.id}, {"memberId": m.id}])
        m.leave(version)
        m.leave(version)


# Offsets


def commit_body(b, group, version, topic, partitions, **more):
    entries = []
    for index, offset, *metadata in partitions:
        entry = {"partitionIndex": index, "committedOffset": offset,
                 "committedMetadata": metadata[0] if metadata else "m"}
        if version >= 6:
            entry["committedLeaderEpoch"] = offset % 5 - 1
        entries.append(entry)
    named = {"topicId": topic} if version >= 10 else {"name": topic}
    return {"groupId": group, "topics": [{**named, "partitions": entries}], **more}


def fetch_body(version, group, topics, **more):
    """`topics`: None, or [(name or id, [partitions])]."""
    named = None if topics is None else [
        {"topicId" if version >= 10 else "name": n, "partitionIndexes": p} for n, p in topics]
    if version < 8:
        return {"groupId": group, "topics": named, **more}
    return {"groups": [{"groupId": group, "topics": named}], **more}


def commit_versions(b):
    coordinate(b)
    topic = b.topic("g-commit", 3)
    for version in range(2, 11):
        named = topic if version >= 10 else "g-commit"
        unknown = "7" * 32 if version >= 10 else "g-no-such"
        group = f"g-commit-{version}"
        ask(b, "OffsetCommit", version, commit_body(
            b, group, version, named, [(0, 10), (1, 11, None), (2, 12, ""), (3, 1), (-1, 1),
                                       (0, 13, "x" * 101), (0, 14, "x" * 100)]))
        ask(b, "OffsetCommit", version, commit_body(b, group, version, unknown, [(0, 1)]))
        for nothing in (named, unknown):
            ask(b, "OffsetCommit", version, commit_body(b, group, version, nothing, []))
        ask(b, "OffsetCommit", version, {"groupId": group, "topics": []})
        ask(b, "OffsetCommit", version, commit_body(b, "", version, named, [(0, 10)]))
        for generation, member in ((5, "m"), (5, ""), (-1, "m"), (0, "")):
            for where in (group, group + "-none"):
                ask(b, "OffsetCommit", version, commit_body(
                    b, where, version, named, [(1, 20)],
                    generationIdOrMemberEpoch=generation, memberId=member))
        if version >= 7:
            ask(b, "OffsetCommit", version, commit_body(b, group, version, named, [(1, 30)],
                                                        groupInstanceId="i"))
        ask(b, "OffsetFetch", 7, fetch_body(7, group, None))
        ask(b, "OffsetFetch", 7, fetch_body(7, "", None))
    ask(b, "OffsetCommit", 10, commit_body(b, "g", 10, ZERO_ID, [(0, 1)]))


def commit_as_member(b):
    coordinate(b)
    topic = b.topic("g-t", 2)
    m = Member(b, "g-member").settle()
    for version in range(2, 11):
        named = topic if version >= 10 else "g-t"
        for generation, member in ((1, m.id), (2, m.id), (1, NOBODY), (-1, m.id), (-1, ""),
                                   (1, "")):
            ask(b, "OffsetCommit", version, commit_body(
                b, "g-member", version, named, [(0, 100 + version)],
                generationIdOrMemberEpoch=generation, memberId=member))
        if version >= 7:
            ask(b, "OffsetCommit", version, commit_body(
                b, "g-member", version, named, [(0, 1)], generationIdOrMemberEpoch=1,
                memberId=m.id, groupInstanceId="i"))
    m.join()
    ask(b, "OffsetCommit", 9, commit_body(b, "g-member", 9, "g-t", [(0, 7)], memberId=m.id,
                                          generationIdOrMemberEpoch=2))
    ask(b, "OffsetFetch", 7, fetch_body(7, "g-member", None))
    m.leave()


def fetch_versions(b):
    coordinate(b)
    topic, other = b.topic("g-fetch", 3), b.topic("g-fetch-other", 1)
    b.ask("OffsetCommit", 8, commit_body(b, "g-fetch", 8, "g-fetch", [(0, 10), (2, 12)]))
    b.ask("OffsetCommit", 8, commit_body(b, "g-fetch", 8, "g-fetch-other", [(0, 5)]))
    for version in range(1, 11):
        named = [topic, other, "7" * 32] if version >= 10 else ["g-fetch", "g-fetch-other", "no"]
        for group in ("g-fetch", "g-fetch-none", ""):
            ask(b, "OffsetFetch", version, fetch_body(version, group, [
                (named[0], [0, 1, 2, 3, -1]), (named[1], []), (named[2], [0])]))
            ask(b, "OffsetFetch", version, fetch_body(version, group, []))
            if version >= 2:
                ask(b, "OffsetFetch", version, fetch_body(version, group, None))
        if version >= 7:
            ask(b, "OffsetFetch", version, fetch_body(version, "g-fetch", None,
                                                      requireStable=True))
    for version in (8, 9, 10):
        ask(b, "OffsetFetch", version, {"groups": [
            {"groupId": g, "topics": None} for g in ("g-fetch", "g-none", "g-fetch")]})
        ask(b, "OffsetFetch", version, {"groups": []})
    for member, epoch in (("m", 5), ("", 5), (None, -1), ("m", -1)):
        ask(b, "OffsetFetch", 9, {"groups": [{"groupId": "g-fetch", "topics": None,
                                              "memberId": member, "memberEpoch": epoch}]})


def deleted_topic(b):
    coordinate(b)
    b.topic("g-gone", 1)
    b.ask("OffsetCommit", 8, commit_body(b, "g-gone", 8, "g-gone", [(0, 10)]))
    ask(b, "OffsetFetch", 7, fetch_body(7, "g-gone", None))
    b.delete_topic("g-gone")
    for _ in range(100):
        left = b.ask("OffsetFetch", 7, fetch_body(7, "g-gone", None))
        if not left["topics"]:
            break
    b.note("after the deletion", left)


# Administration


def describe(b):
    coordinate(b)
    live = Member(b, "g-describe").settle()
    b.topic("g-t", 2)
    b.ask("OffsetCommit", 8, commit_body(b, "g-describe-simple", 8, "g-t", [(0, 1)]))
    for version in range(7):
        ask(b, "DescribeGroups", version, {"groups": [
            "g-describe", "g-describe-simple", "g-none", "", "g-describe"]})
        ask(b, "DescribeGroups", version, {"groups": []})
        if version >= 3:
            ask(b, "DescribeGroups", version, {"groups": ["g-describe", "g-none"],
                                               "includeAuthorizedOperations": True})
    live.leave()


def list_groups(b):
    coordinate(b)
    live = Member(b, "g-list").settle()
    b.topic("g-t", 2)
    b.ask("OffsetCommit", 8, commit_body(b, "g-list-simple", 8, "g-t", [(0, 1)]))

    def listed(version, **filters):
        answer = b.ask("ListGroups", version, filters)
        answer["groups"] = [g for g in answer["groups"] if g["groupId"].startswith("g-list")]
        b.note(f"ListGroups v{version}", {"filters": filters, **shaped(b, answer)})

    for version in range(6):
        listed(version)
        if version >= 4:
            for states in (["Stable"], ["stable", " EMPTY "], ["Dead"], ["No such"], [""]):
                listed(version, statesFilter=states)
        if version >= 5:
            for types in (["classic"], ["CLASSIC"], ["consumer"], ["share"], ["No such"], [""]):
                listed(version, typesFilter=types)
            listed(version, typesFilter=["Classic"], statesFilter=["Empty"])
    live.leave()


def delete_groups(b):
    coordinate(b)
    b.topic("g-t", 2)
    live = Member(b, "g-delete-live").settle()
    for version in range(4):
        simple = f"g-delete-{version}"
        b.ask("OffsetCommit", 8, commit_body(b, simple, 8, "g-t", [(0, 1)]))
        for _ in range(2):
            ask(b, "DeleteGroups", version, {"groupsNames": [
                simple, "g-delete-live", "g-none", "", simple]})
        for names in ([], ["g-none"], ["g-delete-live", "g-delete-live"]):
            ask(b, "DeleteGroups", version, {"groupsNames": names})
        ask(b, "OffsetFetch", 7, fetch_body(7, simple, None))
        ask(b, "DescribeGroups", 6, {"groups": [simple]})
    live.leave()
    ask(b, "DeleteGroups", 2, {"groupsNames": ["g-delete-live"]})


def delete_offsets(b):
    coordinate(b)
    b.topic("g-t", 2)
    b.topic("g-u", 1)
    live = Member(b, "g-od").settle()
    for topic in ("g-t", "g-u"):
        b.ask("OffsetCommit", 8, commit_body(
            b, "g-od", 8, topic, [(0, 1)], memberId=live.id, generationIdOrMemberEpoch=1))

    def delete(group, *topics):
        ask(b, "OffsetDelete", 0, {"groupId": group, "topics": [
            {"name": t, "partitions": [{"partitionIndex": p} for p in ps]} for t, ps in topics]})

    every = [("g-t", [0, 1, 5]), ("g-u", [0]), ("no-such", [0])]
    for group in ("g-od", "g-od-none", ""):
        delete(group, *every)
        delete(group)
        delete(group, ("no-such", [0]))
    ask(b, "OffsetFetch", 7, fetch_body(7, "g-od", None))
    live.leave()
    delete("g-od", *every)
    ask(b, "OffsetFetch", 7, fetch_body(7, "g-od", None))
    worker = Member(b, "g-od-w", protocolType="connect").settle()
    delete("g-od-w", *every)
    delete("g-od-w")
    delete("g-od-w", ("g-t", [0]))
    worker.leave()
    for topic in ("g-t", "g-u"):
        b.ask("OffsetCommit", 8, commit_body(b, "g-od-simple", 8, topic, [(0, 1)]))
    for topics in ([("g-t", [1])], [("g-t", [])], [("g-t", [-1])], [("", [0])], [("g-t", [0, 0])],
                   [("g-t", [0])], [("g-u", [0]), ("g-u", [0])], every):
        delete("g-od-simple", *topics)
        ask(b, "OffsetFetch", 7, fetch_body(7, "g-od-simple", None))


CASES = [
    Case("FindCoordinator, every version, key and type", find_coordinator),
    Case("the life of a group in every version", life_of_a_group),
    Case("JoinGroup with wrong fields", join_errors),
    Case("SyncGroup and Heartbeat with wrong fields", sync_and_beat_errors),
    Case("two members, who join, change and leave", two_members),
    Case("a group that is full", full_group),
    Case("a member that was told an id", pending_member),
    Case("static members come back", static_members),
    Case("static members change", static_changes),
    Case("LeaveGroup, every version", leave_versions),
    Case("OffsetCommit, every version, from outside of a group", commit_versions),
    Case("OffsetCommit of a member", commit_as_member),
    Case("OffsetFetch, every version", fetch_versions),
    Case("offsets of a topic that is deleted", deleted_topic),
    Case("DescribeGroups, every version", describe),
    Case("ListGroups, every version and filter", list_groups),
    Case("DeleteGroups, every version", delete_groups),
    Case("OffsetDelete", delete_offsets),
]
