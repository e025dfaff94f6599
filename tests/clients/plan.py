"""What each client is asked to do, and what a right answer is: the same for all of them.

A step is one word of the programs' command line (README.md). It belongs to an aspect, which is one
line of the test's output; it names the APIs without which it cannot work, so that it waits for a
broker that does not advertise them instead of failing.
"""
import base64
import os
import random

from lib.suite import equal

ASPECTS = ("produces", "is read back", "consumes", "seeks by time", "transactions", "administers",
           "handles errors")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
T0 = 1_700_000_000_000  # The topics keep records for ever: these are old.

(PRODUCE, FETCH, LIST_OFFSETS, METADATA, JOIN_GROUP, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS,
 INIT_PRODUCER_ID, DESCRIBE_CONFIGS, ALTER_CONFIGS, DESCRIBE_LOG_DIRS, CREATE_PARTITIONS,
 ELECT_LEADERS, INCREMENTAL_ALTER_CONFIGS, LIST_REASSIGNMENTS, CLIENT_QUOTAS, DESCRIBE_QUORUM,
 DESCRIBE_CLUSTER, DESCRIBE_PRODUCERS, LIST_CONFIG_RESOURCES, DESCRIBE_TOPIC_PARTITIONS,
 FIND_COORDINATOR, DESCRIBE_GROUPS, END_TXN, TXN_OFFSET_COMMIT) = (
    0, 1, 2, 3, 11, 19, 20, 21, 22, 32, 33, 35, 37, 43, 44, 46, 48, 55, 60, 61, 74, 75, 10, 15, 26,
    28)
API_NAMES = {JOIN_GROUP: "groups (JoinGroup)", DELETE_RECORDS: "DeleteRecords",
             ALTER_CONFIGS: "AlterConfigs", DESCRIBE_LOG_DIRS: "DescribeLogDirs",
             ELECT_LEADERS: "ElectLeaders", INCREMENTAL_ALTER_CONFIGS: "IncrementalAlterConfigs",
             LIST_REASSIGNMENTS: "ListPartitionReassignments",
             CLIENT_QUOTAS: "DescribeClientQuotas", DESCRIBE_QUORUM: "DescribeQuorum",
             DESCRIBE_PRODUCERS: "DescribeProducers",
             LIST_CONFIG_RESOURCES: "ListConfigResources", FIND_COORDINATOR: "FindCoordinator",
             DESCRIBE_TOPIC_PARTITIONS: "DescribeTopicPartitions",
             DESCRIBE_GROUPS: "DescribeGroups", END_TXN: "transactions (EndTxn)",
             TXN_OFFSET_COMMIT: "TxnOffsetCommit"}


def pack(data):
    return None if data is None else base64.b64encode(data).decode()


def contents():
    """Records as [timestamp, key, value, [[header, value]]], in base64 where bytes are meant."""
    noise = random.Random(4).randbytes(20_000)
    made = [(b"k0", b"v0", []), (None, b"no key", []), (b"tombstone", None, []), (b"", b"", []),
            (bytes(range(256)), bytes(range(255, -1, -1)),
             [("h", b"\0\xff"), ("h", b""), ("\u00fc", b"x")]),
            (b"null header", b"x", [("none", None)]), (b"long", b"abcdefghij" * 9000, []),
            (b"noise", noise, []), ("h\u00e9".encode(), "\u20ac \U0001f40d".encode(), []),
            (b"last", b"\n\t:,-=", [("h", b":,-=\n")])]
    return [[T0 + 1000 * i, pack(k), pack(v), [[n, pack(d)] for n, d in h]]
            for i, (k, v, h) in enumerate(made)]


CONTENTS = contents()
COUNT = len(CONTENTS)
# One of each producer's records is older than its neighbours.
PRODUCED = [[t - (7000 if i == 5 else 0), *rest] for i, (t, *rest) in enumerate(CONTENTS)]
# The topic that all clients read: a batch of each codec, one after the other in time.
SHARED = [[t + 100_000 * c, *rest] for c in range(len(CODECS)) for t, *rest in CONTENTS]


def line(record):
    """The form in which the programs read it."""
    def shown(text):
        return "-" if text is None else text
    timestamp, key, value, headers = record
    return "\t".join([str(timestamp), shown(key), shown(value), ",".join(
        f"{pack(n.encode())}:{shown(d)}" for n, d in headers)]) + "\n"


def write_files(folder):
    """Writes the records of producers and those of the shared topic; returns the folder."""
    with open(os.path.join(folder, "records"), "w") as f:
        f.writelines(map(line, PRODUCED))
    with open(os.path.join(folder, "one"), "w") as f:
        f.write(line(PRODUCED[0]))
    for c, codec in enumerate(CODECS):
        with open(os.path.join(folder, f"shared-{codec}"), "w") as f:
            f.writelines(map(line, SHARED[c * COUNT:(c + 1) * COUNT]))


def compare(what, got, wanted, first_offset=0, fields=4):
    """Records as the programs print them, an offset before the rest, against ours."""
    equal(f"{what}: number of records", len(got), len(wanted))
    names = ("timestamp", "key", "value", "headers")
    for i, (theirs, ours) in enumerate(zip(got, wanted)):
        equal(f"{what}: offset of record {i}", theirs[0], first_offset + i)
        for name, a, b in list(zip(names, theirs[1:], ours))[4 - fields:]:
            equal(f"{what}: {name} of record {i}", a, b)


class Step:
    def __init__(self, aspect, text, check, apis=(), needs=()):
        self.aspect, self.text, self.check, self.apis = aspect, text, check, apis
        self.uses = {text.split(":")[0], *needs}


def is_ok(check=None):
    def look(answer):
        if "ok" not in answer:
            raise AssertionError(f"{answer.get('name')} ({answer.get('error')}): "
                                 f"{str(answer.get('message'))[:300]}")
        if check:
            check(answer["ok"])
    return look


def is_error(*wanted):
    """One of these: the broker's number, or a name of the client's own making."""
    def look(answer):
        if "error" not in answer:
            raise AssertionError(f"no error: {str(answer.get('ok'))[:200]}")
        if answer["error"] not in wanted and answer["name"] not in wanted:
            raise AssertionError(f"{answer['name']} ({answer['error']}) and none of {wanted}: "
                                 f"{str(answer.get('message'))[:300]}")
    return look


def is_ok_or(code):
    return lambda answer: (is_ok() if "ok" in answer else is_error(code))(answer)


def producing(client, folder):
    """The steps that produce, one batch of all records each."""
    for codec in client.codecs:
        for mode in ("plain", "idempotent") if client.idempotent else ("plain",):
            yield codec, mode, f"produce:{client.topic}:0:{codec}:{mode}:{folder}/records"


def produces(client, folder):
    for n, (_, mode, text) in enumerate(producing(client, folder)):
        def check(ok, first=n * COUNT):
            if client.tells_offsets:
                equal("offsets", ok["offsets"], list(range(first, first + COUNT)))
        yield Step("produces", text, is_ok(check),
                   (INIT_PRODUCER_ID,) if mode == "idempotent" else ())


def shared_topic(client):
    """A client that does not know zstd may not meet it."""
    return "shared" if "zstd" in client.reads else "shared-without-zstd"


def consumes(client):
    def records(wanted, first=0):
        def check(ok):
            got = [[offset, *record] for (offset, *_), record in zip(
                ok["records"], client.as_read([r[1:] for r in ok["records"]]))]
            compare("records", got, client.as_read(wanted), first)
        return is_ok(check)
    groups = (JOIN_GROUP,) if client.groups_only else ()
    known, shared = COUNT * len(client.reads), shared_topic(client)
    yield Step("consumes", f"consume:{shared}:0:earliest:{known}", records(SHARED[:known]), groups)
    for first in (COUNT, COUNT + 3, known - 1):
        yield Step("consumes", f"consume:{shared}:0:{first}:{known - first}",
                   records(SHARED[first:known], first), groups)

    def tail(ok):
        equal("the end", ok["end"], 0)
        equal("offset and value of what came after", [[r[0], r[3]] for r in ok["records"]],
              [[0, pack(b"tail")]])
    yield Step("consumes", f"tail:{client.topic}:1", is_ok(tail), groups)


def seeks(client):
    # Before all, the first, inside a batch, between two batches, the last, after all.
    asked = [0, T0, T0 + 3500, T0 + 50_000, SHARED[-1][0], SHARED[-1][0] + 1]
    found = [0, 0, 4, COUNT, len(SHARED) - 1, None]

    def times(ok):
        equal(f"offsets of {asked}", ok["offsets"], found)

    def ends(ok):
        equal("ends", ok, {"earliest": 0, "latest": len(SHARED)})
    yield Step("seeks by time", "times:shared:0:" + ",".join(map(str, asked)), is_ok(times))
    yield Step("seeks by time", "ends:shared:0", is_ok(ends))


# What stands in each partition of a client's topic of transactions: every one of them is one record
# and one marker. The producer that wrote "lost" was fenced by the one that wrote "kept".
UNCOMMITTED = [[2 * n, value] for n, value in enumerate(
    ("commit 0", "abort 1", "commit 2", "lost", "kept"))]
ISOLATED = {"read_committed": [UNCOMMITTED[0], UNCOMMITTED[2], UNCOMMITTED[4]],
            "read_uncommitted": UNCOMMITTED}


def transactional_topic(client):
    return client.topic + "-transactions"


def reads_isolated(client):
    """Steps that read what the transactions left, for the client itself and for its judge.

    The last record is a committed one, so that whoever sees the right number of records sees no
    others."""
    def check(wanted):
        return is_ok(lambda ok: equal("offsets and values", [[r[0], r[3]] for r in ok["records"]],
                                      [[o, pack(v.encode())] for o, v in wanted]))
    for partition in 0, 1:
        for isolation, wanted in ISOLATED.items():
            yield Step("transactions",
                       f"consume-isolated:{transactional_topic(client)}:{partition}:{isolation}:"
                       f"{len(wanted)}", check(wanted), (END_TXN,))


def transactions(client):
    """Offsets of a group go along where the library has them: 1, 2 in the aborted one, 3."""
    topic, offsets = transactional_topic(client), "committed" in client.can
    group, apis = topic + "-group", (END_TXN, *((TXN_OFFSET_COMMIT,) if offsets else ()))

    def check(ok):
        if offsets:
            equal("offsets before the end of each", ok["committed"], [None, 1, 1])
    yield Step("transactions", f"transact:{topic}:{topic}" + f":{group}:shared" * offsets,
               is_ok(check), apis)
    yield Step("transactions", f"fence:{topic}:{topic}", is_error(47, 90, *client.fenced), apis)
    # The second producer has waited until all before it was done.
    yield Step("transactions", f"committed:{group}:shared:0", gives("offset", 3), apis)
    yield from reads_isolated(client)


def described(partitions):
    return is_ok(lambda ok: equal("partitions", sorted(ok["partitions"]),
                                  [[p, 1, [1], [1]] for p in range(partitions)]))


def has(field, *wanted):
    return is_ok(lambda ok: equal(f"missing in {field}",
                                  [w for w in wanted if w not in ok[field]], []))


def gives(field, wanted):
    return is_ok(lambda ok: equal(field, ok[field], wanted))


def setting(key, value):
    return is_ok(lambda ok: equal(key, ok["configs"].get(key), value))


def shows_cluster(client):
    def check(ok):
        equal("controller and nodes", [ok["controller"], ok["nodes"]],
              [1, [[1, "127.0.0.1", client.port]]])
        if not ok["id"]:
            raise AssertionError("no cluster id")
    return is_ok(check)


class Administration:
    """Builds the steps of this aspect; what a client needs time to see is waited for."""

    def __init__(self, client):
        self.client = client

    def step(self, text, check=None, *apis, needs=()):
        return Step("administers", text, check or is_ok(), apis, needs)

    def settle(self):
        """A real Kafka answers a change before it shows it, and some clients have caches."""
        return self.step(f"pause:{self.client.settle_ms}")

    def topics(self, topic, folder):
        yield self.step(f"create:{topic}:2:retention.ms=-1:segment.bytes=1048576", None,
                        CREATE_TOPICS)
        yield self.settle()
        yield self.step("list", has("topics", topic, "shared"))
        yield self.step("cluster", shows_cluster(self.client))
        yield self.step("describe-cluster", shows_cluster(self.client), DESCRIBE_CLUSTER)
        yield self.step(f"describe:{topic}", described(2))
        yield self.step(f"describe-topics:{topic}", described(2),
                        *self.client.describe_topics_needs)
        yield self.step(f"produce:{topic}:0:none:plain:{folder}/records")

    def configs(self, topic):
        yield self.step(f"configs:topic:{topic}", setting("segment.bytes", "1048576"),
                        DESCRIBE_CONFIGS, needs=["create"])
        yield self.step("configs:broker:1", has("configs", "log.dirs"), DESCRIBE_CONFIGS)
        yield self.step("configs:broker:1", has("configs", "log.retention.ms", "num.partitions"),
                        DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS)
        yield self.step(f"alter:{topic}:max.message.bytes=300000", None, INCREMENTAL_ALTER_CONFIGS)
        yield self.settle()
        yield self.step(f"configs:topic:{topic}", setting("max.message.bytes", "300000"),
                        INCREMENTAL_ALTER_CONFIGS, needs=["alter"])
        yield self.step(f"alter-all:{topic}:retention.ms=-1:max.message.bytes=200000", None,
                        ALTER_CONFIGS)
        yield self.settle()
        yield self.step(f"configs:topic:{topic}", setting("max.message.bytes", "200000"),
                        ALTER_CONFIGS, needs=["alter-all"])
        quota = f"quotas:{self.client.topic}:{self.client.settle_ms}"
        yield self.step(quota, is_ok(lambda ok: equal("quotas", ok, {"rate": 1e9, "left": 0})),
                        CLIENT_QUOTAS)
        yield self.step("config-resources", has("topics", topic, "shared"), LIST_CONFIG_RESOURCES)

    def partitions(self, topic):
        yield self.step(f"partitions:{topic}:3", None, CREATE_PARTITIONS)
        yield self.settle()
        yield self.step(f"describe:{topic}", described(3), needs=["partitions"])
        yield self.step(f"list-offsets:{topic}:0", gives("offsets", [0, COUNT]))
        yield self.step(f"list-all-offsets:{topic}:0", gives("offsets", [0, COUNT, COUNT - 1, 0]))
        yield self.step(f"delete-records:{topic}:0:4", gives("low", 4), DELETE_RECORDS)
        yield self.step("log-dirs", has("partitions", topic + "-0", "shared-0"),
                        DESCRIBE_LOG_DIRS)
        # There is but one candidate; some clients say so, some are silent about it.
        yield self.step(f"elect-leaders:{topic}:0", is_ok_or(84), ELECT_LEADERS)
        yield self.step("reassignments", None, LIST_REASSIGNMENTS)
        yield self.step(f"producers:{topic}:0", gives("count", 0), DESCRIBE_PRODUCERS)

    def steps(self, topic, folder):
        yield from self.topics(topic, folder)
        yield from self.configs(topic)
        yield from self.partitions(topic)
        yield self.step("features")
        yield self.step("quorum", None, DESCRIBE_QUORUM)
        yield self.step(f"delete:{topic}", None, DELETE_TOPICS)
        yield self.settle()
        yield self.step(f"describe:{topic}", is_error(3), DELETE_TOPICS, needs=["delete"])


def administers(client, folder):
    return Administration(client).steps(client.topic + "-admin", folder)


def errors(client, folder):
    small, missing = client.topic + "-small", client.topic + "-missing"

    def add(text, *wanted, apis=(), needs=()):
        return Step("handles errors", text, is_error(*wanted), apis, needs)
    yield Step("handles errors", f"create:{small}:1:max.message.bytes=1000", is_ok())
    yield add(f"large:{small}:0:5000", 10)
    yield Step("handles errors", f"large:{small}:0:500", is_ok())
    yield add(f"produce:{missing}:0:none:plain:{folder}/one", 3, *client.unknown_topic)
    yield add(f"describe:{missing}", 3)
    yield add(f"delete:{missing}", 3, apis=(DELETE_TOPICS,))
    yield add(f"consume:shared:0:1000000:1", 1, *client.out_of_range,
              needs=["sees-out-of-range"])
    if client.configs_refused:  # Too old for Kafka 4.
        refused = add("configs:topic:shared", 35)
        refused.uses = set()
        yield refused
    yield add(f"create:{small}:1", 36)
    yield add("create:not/a/name:1", 17)
    yield add(f"create:{small}-2:1:cleanup.policy=shred", 40)
    yield add(f"create:{small}-2:0", 37)
    yield add(f"create-copies:{small}-2:1:3", 38)
    yield add(f"partitions:{small}:1", 37)
    yield add(f"alter:{small}:cleanup.policy=shred", 40, apis=(INCREMENTAL_ALTER_CONFIGS,))
    yield add(f"delete-records:{small}:0:1000000", 1, apis=(DELETE_RECORDS,))


def steps(client, folder):
    """All steps of a client in order, without those that its library has no function for."""
    every = [*produces(client, folder), *consumes(client), *seeks(client), *transactions(client),
             *administers(client, folder), *errors(client, folder)]
    return [s for s in every if s.uses <= client.can]
