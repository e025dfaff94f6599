"""Transactions: what the coordinator answers, and what becomes of the records."""
import time

from lib.differential.compare import Case
from lib.differential.groups import coordinate
from lib.differential.produce import request
from lib.differential.records import batch

SETTINGS = {"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3,
            "transaction.max.timeout.ms": 600000, "group.initial.rebalance.delay.ms": 0}
# Kafka looks for transactions that have run too long only so often.
KAFKA_SETTINGS = SETTINGS | {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200}
CONCURRENT, LOADING, NOT_AVAILABLE, NOT_COORDINATOR = 51, 14, 15, 16
NOT_ENOUGH_REPLICAS = 19  # What old producers hear of a transaction that is being ended.
UNORDERED = {"resultsByTopicV3AndBelow", "topicResults", "resultsByPartition", "activeProducers"}
NOT_YET = (CONCURRENT, LOADING, NOT_AVAILABLE, NOT_COORDINATOR)


def errors_in(answer):
    if isinstance(answer, dict):
        for key, value in answer.items():
            if key.endswith("rrorCode"):
                yield value
            else:
                yield from errors_in(value)
    elif isinstance(answer, list):
        for value in answer:
            yield from errors_in(value)


def settled(b, api, version, body, not_yet=NOT_YET):
    """The answer once nothing is under way any more: markers are written after the answer."""
    deadline = time.monotonic() + 30
    while True:
        answer = b.ask(api, version, body)
        if not isinstance(answer, dict) or not set(errors_in(answer)) & set(not_yet):
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{b.name}: {api} v{version} still answers {answer}")
        time.sleep(0.02)


def ordered(answer):
    """Kafka keeps these lists in maps."""
    if isinstance(answer, dict):
        return {k: sorted(map(ordered, v), key=lambda one: str(
            [one.get(f) for f in ("name", "partitionIndex", "producerEpoch", "lastSequence")]))
            if k in UNORDERED else ordered(v) for k, v in answer.items()}
    return [ordered(one) for one in answer] if isinstance(answer, list) else answer


def call(b, api, version, body, **options):
    answer = settled(b, api, version, body, **options)
    b.note(f"{api} v{version}", ordered(answer))
    return answer


def producers_of(b, topic, partition):
    call(b, "DescribeProducers", 0, {"topics": [{"name": topic, "partitionIndexes": [partition]}]})


class Txn:
    """A transactional id; its producer ids have names, since they differ by right."""

    def __init__(self, b, name, timeout_ms=60000):
        self.b, self.name, self.timeout_ms, self.ids = b, name, timeout_ms, []
        settled(b, "FindCoordinator", 4, {"keyType": 1, "coordinatorKeys": [name]})
        self.id, self.epoch = -1, -1
        self.init()

    def known(self, producer_id):
        if producer_id >= 0 and producer_id not in self.ids:
            self.ids.append(producer_id)
            self.b.rename(producer_id, f"{self.name} {len(self.ids)}")

    def init_body(self, version=5, expected=(-1, -1), **more):
        body = {"transactionalId": self.name, "transactionTimeoutMs": self.timeout_ms}
        if version >= 3:
            body |= {"producerId": expected[0], "producerEpoch": expected[1]}
        return body | more

    def init(self, version=5, expected=(-1, -1), take=True, not_yet=NOT_YET, **more):
        answer = settled(self.b, "InitProducerId", version,
                         self.init_body(version, expected, **more), not_yet)
        self.known(answer["producerId"])
        self.b.note(f"InitProducerId v{version}", answer)
        if take and answer["errorCode"] == 0:
            self.id, self.epoch = answer["producerId"], answer["producerEpoch"]
        return answer

    def who(self, id=None, epoch=None, name=None):
        return {"transactionalId": self.name if name is None else name,
                "producerId": self.id if id is None else id,
                "producerEpoch": self.epoch if epoch is None else epoch}

    def add_body(self, version, topics, verify_only=False, **who):
        topics = [{"name": t, "partitions": p} for t, p in topics]
        if version < 4:
            return {"v3AndBelow" + k[0].upper() + k[1:]: v for k, v in self.who(**who).items()} | \
                {"v3AndBelowTopics": topics}
        return {"transactions": [self.who(**who) | {"verifyOnly": verify_only, "topics": topics}]}

    def add(self, version, topics, **more):
        return call(self.b, "AddPartitionsToTxn", version, self.add_body(version, topics, **more))

    def end(self, version, committed, **who):
        answer = settled(self.b, "EndTxn", version, self.who(**who) | {"committed": committed})
        self.known(answer.get("producerId", -1))
        self.b.note(f"EndTxn v{version}", answer)
        if version >= 5 and answer["errorCode"] == 0:
            self.id, self.epoch = answer["producerId"], answer["producerEpoch"]
        self.await_markers()
        return answer

    def await_markers(self):
        """Kafka writes them after its answer."""
        for _ in range(1000):
            found = self.b.ask("DescribeTransactions", 0, {"transactionalIds": [self.name]})
            if not found["transactionStates"][0]["transactionState"].startswith("Prepare"):
                return
            time.sleep(0.01)
        raise AssertionError(f"{self.b.name}: {self.name} does not end")

    def produce(self, version, topic, partition, sequence, topic_id=None, **more):
        data = batch((1000, None, b"v"), producer_id=more.get("id", self.id),
                     producer_epoch=more.get("epoch", self.epoch), base_sequence=sequence,
                     attributes=0x10)
        entry = (topic_id if version >= 13 else topic, partition, data)
        body = request([entry], transactional_id=more.get("name", self.name))
        return call(self.b, "Produce", version, body, not_yet=(*NOT_YET, NOT_ENOUGH_REPLICAS))

    def describe(self):
        call(self.b, "DescribeTransactions", 0, {"transactionalIds": [self.name]})


def log_of(b, topic, partition=0):
    """All records with markers, and what a reader of committed ones is told."""
    for isolation in (0, 1):
        b.call("Fetch", 11, {
            "maxWaitMs": 0, "minBytes": 0, "maxBytes": 1 << 20, "isolationLevel": isolation,
            "topics": [{"topic": topic, "partitions": [
                {"partition": partition, "fetchOffset": 0, "partitionMaxBytes": 1 << 20}]}]})


def refused(b):
    b.topic("x-ref", 2)
    t = Txn(b, "x-ref")
    wrong = ({"name": ""}, {"name": "x-no-such"}, {"id": 99}, {"epoch": 7}, {"epoch": -1})
    for version in range(0, 6):
        for who in wrong:
            t.add(version, [("x-ref", [0])], **who)
            t.end(version, True, **who)
            t.end(version, False, **who)
            if version < 5:
                call(b, "AddOffsetsToTxn", version, t.who(**who) | {"groupId": "x-g"})
        t.end(version, True)
        if version < 5:
            t.end(version, False)
        t.add(version, [("x-ref", [0, 7]), ("x-nowhere", [0])])
        t.add(version, [("__consumer_offsets", [0])])
        if version < 4:  # later ones come from brokers: Kafka lets them have it, we do not
            t.add(version, [("x-ref", [0]), ("__transaction_state", [0])])
        t.add(version, [])
        for timeout in (0, -1, 600001):
            t.init(version, take=False, transactionTimeoutMs=timeout)
        t.init(version, take=False, transactionalId="")
    for version in range(3, 6):
        for expected in ((99, 0), (t.id, 9), (99, -1), (-1, 3)):
            t.init(version, expected, take=False)
    for version in range(4, 6):
        for who in wrong:
            t.add(version, [("x-ref", [0, 1])], verify_only=True, **who)
        t.add(version, [("x-ref", [0, 1])], verify_only=True)


def find(b):
    for version in range(0, 7):
        for kind in ((0,) if version < 1 else (0, 1, 3)):
            body = {"coordinatorKeys": ["x-f", ""]} if version >= 4 else {"key": "x-f"}
            if version >= 1:
                body["keyType"] = kind
            call(b, "FindCoordinator", version, body)


def classic(b):
    for version in range(0, 5):
        name = f"x-classic-{version}"
        b.topic(name, 2)
        t = Txn(b, name)
        t.describe()
        for n, committed in enumerate((True, False)):
            t.add(min(version, 3), [(name, [0])])
            t.add(min(version, 3), [(name, [0, 1])])
            for p in (0, 1):
                t.produce(9, name, p, n)
            t.describe()
            t.end(version, committed)
            t.end(version, committed)
            t.end(version, not committed)
            t.describe()
        t.add(min(version, 3), [(name, [1])])
        t.end(version, True)  # of nothing
        for p in (0, 1):
            log_of(b, name, p)
            producers_of(b, name, p)


def bumped(b):
    topic_id = b.topic("x-bump", 2)
    t = Txn(b, "x-bump")
    for n, committed in enumerate((True, False, True)):
        for p in (0, 1):
            t.produce(12 + n % 2, "x-bump", p, 0, topic_id)
        t.describe()
        before = {"id": t.id, "epoch": t.epoch}
        t.end(5, committed)
        t.end(5, committed, **before)
        t.describe()
        t.end(5, not committed, **before)
        t.end(5, True)
        t.end(4, committed)
    t.end(5, False)  # of nothing, for a new epoch
    t.end(5, False)
    t.describe()
    t.add(4, [("x-bump", [0])])
    t.add(5, [("x-bump", [1])])
    t.add(5, [("x-bump", [0, 1])], verify_only=True)
    t.end(5, True)
    t.init()
    t.end(5, False)
    t.describe()
    for p in (0, 1):
        log_of(b, "x-bump", p)
        producers_of(b, "x-bump", p)


def mixed(b):
    """Each version of the end after each version of the beginning."""
    b.topic("x-mixed", 1)
    t = Txn(b, "x-mixed")
    for add in (3, 4):
        for end in (4, 5):
            for committed in (True, False):
                t.init()
                t.add(add, [("x-mixed", [0])])
                before = {"id": t.id, "epoch": t.epoch}
                t.end(end, committed)
                for again in (4, 5):
                    for other in (committed, not committed):
                        t.end(again, other, **before)
                        t.id, t.epoch = before["id"], before["epoch"]
                t.describe()


def unknown_partitions(b):
    """Batches of partitions that are not in the transaction."""
    topic_id = b.topic("x-unk", 3)
    t = Txn(b, "x-unk")
    for version in (3, 8, 9, 10, 11):
        t.produce(version, "x-unk", 0, 0)
        t.produce(version, "x-unk", 0, 0, name="x-no-such")
        t.produce(version, "x-unk", 0, 0, id=99)
        t.produce(version, "x-unk", 0, 0, epoch=7)
    for version in (12, 13):
        for wrong in ({"name": "x-no-such"}, {"id": 99}, {"epoch": 7}):
            t.produce(version, "x-unk", 0, 0, topic_id, **wrong)
    t.add(3, [("x-unk", [1])])
    t.produce(9, "x-unk", 1, 0)
    t.produce(9, "x-unk", 0, 0)
    t.produce(11, "x-unk", 2, 0)
    t.produce(9, "x-unk", 1, 0)  # again
    t.produce(9, "x-unk", 1, 5)  # out of order
    t.end(3, True)
    for version in (9, 11):
        t.produce(version, "x-unk", 1, 1)  # after the end
    t.init()
    t.produce(12, "x-unk", 2, 0, topic_id)
    t.end(5, True)
    t.produce(12, "x-unk", 2, 0, topic_id, epoch=t.epoch - 1)  # of the one before
    for p in range(3):
        log_of(b, "x-unk", p)


def goes_on(b):
    """Producers that tell what they have (KIP-360), and those that fence others."""
    b.topic("x-on", 1)
    t = Txn(b, "x-on")
    first = (t.id, t.epoch)
    t.init(5, first)
    t.init(5, first, take=False)
    t.init(5, (t.id, t.epoch))
    t.init(3, first, take=False)
    t.init(4, first, take=False)
    t.init()
    t.init(5, (t.id, t.epoch - 1), take=False)
    t.add(3, [("x-on", [0])])
    t.produce(9, "x-on", 0, 0)
    zombie = {"id": t.id, "epoch": t.epoch}
    t.init(5, not_yet=(LOADING, NOT_AVAILABLE, NOT_COORDINATOR))  # aborts first
    t.init(5, (zombie["id"], zombie["epoch"]), take=False)
    t.init()
    for version in range(0, 6):
        t.end(version, True, **zombie)
        t.add(version, [("x-on", [0])], **zombie)
    t.produce(9, "x-on", 0, 1, **zombie)
    t.produce(12, "x-on", 0, 1, **zombie)
    t.init(5, (zombie["id"], zombie["epoch"]), take=False)
    log_of(b, "x-on")


def too_long(b):
    b.topic("x-long", 1)
    for add, ends in ((3, (3, 4)), (4, (4, 5))):
        t = Txn(b, f"x-long-{add}", timeout_ms=300)
        t.add(add, [("x-long", [0])])
        t.produce(9, "x-long", 0, 0)
        time.sleep(1.5)
        t.describe()
        before = {"id": t.id, "epoch": t.epoch}
        for version in ends:
            t.end(version, True, **before)
            t.id, t.epoch = before["id"], before["epoch"]
        t.add(add, [("x-long", [0])], **before)
        t.init(5, (before["id"], before["epoch"]))
    log_of(b, "x-long")


def offsets(b):
    coordinate(b)
    topic = b.topic("x-offs", 1)
    t = Txn(b, "x-offs")

    def commit(version, **who):
        entry = {"partitionIndex": 0, "committedOffset": 5, "committedMetadata": ""}
        if version >= 2:
            entry["committedLeaderEpoch"] = -1
        named = {"topicId": topic} if version >= 6 else {"name": "x-offs"}
        body = t.who(**who) | {"groupId": "x-og", "topics": [named | {"partitions": [entry]}]}
        if version >= 3:
            body |= {"memberId": "", "groupInstanceId": None}
            body |= {"generationIdOrMemberEpoch": -1}
        return call(b, "TxnOffsetCommit", version, body)
    for version in range(0, 5):
        commit(version)
        for wrong in ({"name": "x-no-such"}, {"id": 99}, {"epoch": 7}):
            commit(version, **wrong)
        call(b, "AddOffsetsToTxn", version, t.who() | {"groupId": "x-og"})
        commit(version)
        t.describe()
        t.end(min(version, 4), version % 2 == 0)
        commit(version)
    for version in (5, 6):
        for wrong in ({"name": "x-no-such"}, {"id": 99}, {"epoch": 77}):
            commit(version, **wrong)
        commit(version)
        t.end(5, True)


def by_hand(b):
    """WriteTxnMarkers, as Admin.abortTransaction sends it."""
    for version in (1, 2):
        name = f"x-hand-{version}"
        b.topic(name, 2)
        t = Txn(b, name, timeout_ms=600000)

        def mark(id, epoch, where, committed=False, coordinator_epoch=0, **more):
            marker = {"producerId": id, "producerEpoch": epoch, "transactionResult": committed,
                      "coordinatorEpoch": coordinator_epoch,
                      "topics": [{"name": n, "partitionIndexes": p} for n, p in where]}
            return call(b, "WriteTxnMarkers", version, {"markers": [marker | more]})
        t.add(3, [(name, [0, 1])])
        for p in (0, 1):
            t.produce(9, name, p, 0)
        mark(t.id, t.epoch, [(name, [0, 9]), ("x-nowhere", [0])])
        mark(t.id, t.epoch - 1, [(name, [0])])
        mark(t.id, t.epoch, [(name, [0])], coordinator_epoch=-1)
        mark(t.id, t.epoch, [(name, [1])], committed=True, coordinator_epoch=5)
        mark(t.id, t.epoch, [(name, [1])], coordinator_epoch=4)
        mark(99, 0, [(name, [0])])
        mark(t.id, t.epoch, [])
        if version >= 2:
            for kind in (1, 2):
                mark(t.id, t.epoch, [(name, [0])], transactionVersion=kind)
                mark(t.id, t.epoch + 1, [(name, [0])], transactionVersion=kind)
        call(b, "WriteTxnMarkers", version, {"markers": []})
        for p in (0, 1):
            log_of(b, name, p)
            producers_of(b, name, p)


def shown(b):
    b.topic("x-show", 2)
    made = [Txn(b, f"x-show-{n}", timeout_ms=600000) for n in range(4)]
    made[1].add(3, [("x-show", [0, 1])])
    for t in made[2:]:
        t.add(3, [("x-show", [0])])
        t.end(3, t is made[2])
    time.sleep(0.2)  # Some durations are longer.
    for t in made:
        t.describe()
    for ids in ([], [""], ["x-no-such"], ["x-show-1", "x-show-1", "x-show-2", "x-no-such"]):
        call(b, "DescribeTransactions", 0, {"transactionalIds": ids})

    def listed(version, states=(), ids=(), **more):
        answer = settled(b, "ListTransactions", version, {
            "stateFilters": list(states), "producerIdFilters": list(ids)} | more)
        answer["transactionStates"] = sorted(
            (s for s in answer["transactionStates"] if s["transactionalId"].startswith("x-show")),
            key=lambda s: s["transactionalId"])
        answer["unknownStateFilters"].sort()
        b.note(f"ListTransactions v{version}", answer)
    for version in range(0, 3):
        listed(version)
        listed(version, ["Ongoing"])
        listed(version, ["Empty", "CompleteCommit", "ongoing"])
        listed(version, ["Dead", "PrepareEpochFence"])
        listed(version, ["no such", ""])
        listed(version, ids=[made[1].id, 99])
        listed(version, ["Ongoing"], [made[2].id])
        if version >= 1:
            for duration in (-1, 0, 100, 500000):
                listed(version, durationFilter=duration)
        if version >= 2:
            for pattern in ("", None, "x-show-[12]", "x-show", "x-.*-3", "(", "a" * 10):
                listed(version, transactionalIdPattern=pattern)


CASES = [
    Case("transactions: who and what is refused", refused),
    Case("FindCoordinator of transactions, every version", find),
    Case("transactions of the first version", classic),
    Case("transactions of the second version", bumped),
    Case("ends of one version after beginnings of another", mixed),
    Case("batches of partitions that are not in the transaction", unknown_partitions),
    Case("InitProducerId of producers that go on, and that fence others", goes_on),
    Case("transactions that run too long", too_long),
    Case("offsets in transactions", offsets),
    Case("WriteTxnMarkers by hand", by_hand),
    Case("DescribeTransactions and ListTransactions", shown),
]
