"""Groups of running client programs: who holds, reads and commits what, and what must be so."""
import json
import os
import signal
import struct
import subprocess
import threading
import time

from lib import process
from lib.differential import broker, records
from lib.suite import equal

SESSION_S = {"classic": 6, "consumer": 12}  # The broker says it for the second one.
LEFT_S = 2  # Within it a member that has ended is gone: nobody waits for its session.
WAIT_S = 60


class Member:
    """A client program that runs, and what it has told so far."""

    def __init__(self, group, client, protocol, options):
        self.client, self.protocol, self.news = client, protocol, group.news
        self.name = f"{client.name} {protocol} #{len(group.all) + 1}"
        self.held, self.moves, self.read, self.committed = set(), 0, [], {}
        self.failures, self.answer, self.ended = [], None, False
        path = os.path.join(group.folder, f"{group.name}-{len(group.all) + 1}.log")
        self.errors = open(path, "wb+")
        word = ":".join(["member", group.topic, group.name, protocol,
                         *(f"{k}={v}" for k, v in options.items())])
        self.child = process.child([*client.command(), group.bootstrap, word], self.errors,
                                   subprocess.PIPE)
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.child.stdout:
            try:
                told = json.loads(line)
            except ValueError:
                continue  # Some libraries print to the standard output.
            with self.news:
                if isinstance(told, dict):
                    self._take(told)
                self.news.notify_all()
        with self.news:
            self.ended = True
            self.news.notify_all()

    def _take(self, told):
        kind, values = told.get("event"), told.get("values")
        if kind == "holds":
            self.held, self.moves = set(values), self.moves + 1
        elif kind == "read":
            self.read += [tuple(v) for v in values]
        elif kind == "committed":
            self.committed.update((p, o) for p, o in values)
        elif kind == "failed":
            self.failures += values
        elif "step" in told:
            self.answer = told

    def said(self):
        self.errors.flush()
        size = self.errors.seek(0, 2)
        self.errors.seek(max(0, size - 800))
        text = self.errors.read().decode(errors="replace")
        return f"{self.name}: holds {sorted(self.held)}, has read {len(self.read)}, " \
               f"exit status {self.child.poll()}, answer {self.answer}, failures " \
               f"{self.failures[-3:]}\n{text}"

    def end(self, kill=False):
        """Ends it, and returns once all that it told is known."""
        if kill:
            self.child.kill()
        else:
            self.child.stdin.close()
        with self.news:
            self.news.wait_for(lambda: self.ended, WAIT_S)
        try:
            self.child.wait(5)  # It has closed its output and may not be over yet.
        except subprocess.TimeoutExpired:
            pass  # A status of SIGKILL then says so.
        status = process.end(self.child, signal.SIGKILL)
        if not kill:
            equal(f"end of {self.said()}\n", (status, "ok" in (self.answer or {})), (0, True))


class Group:
    """One group on one topic. Records go to every partition alike: `ends` is their number."""

    def __init__(self, folder, bootstrap, codec, name, partitions=6):
        self.folder, self.bootstrap, self.name, self.topic = folder, bootstrap, name, name
        self.partitions, self.ends, self.safe = set(range(partitions)), 0, 0
        self.news = threading.Condition()
        self.all, self.live, self.excused = [], [], set()
        self.broker = broker.Broker(name, bootstrap, codec)
        self.broker.topic(name, partitions, retention_ms=-1)

    def ask(self, what, api, version, body, look, seconds=30):
        """What look(answer) finds, once it finds no error: the broker may just have come back."""
        end = time.monotonic() + seconds
        while True:
            try:
                answer = self.broker.ask(api, version, body)
                found, errors = look(answer) if answer != broker.CLOSED else (None, {answer})
            except OSError as e:
                found, errors = None, {str(e)}
            if not errors - {0}:
                return found
            self.broker.close()
            if time.monotonic() > end:
                raise AssertionError(f"{self.name}: {what}: {errors}")
            time.sleep(0.2)

    def join(self, client, protocol, **options):
        member = Member(self, client, protocol, options)
        self.all.append(member)
        self.live.append(member)
        return member

    def said(self):
        return "\n".join(m.said() for m in self.live)

    def await_news(self, what, condition, seconds=WAIT_S):
        """Waits for what the members tell, and returns how long it took."""
        began = time.monotonic()

        def or_over():
            dead = [m for m in self.live if m.ended]
            if dead:
                raise AssertionError(f"{dead[0].said()}has ended, while waiting for {what}")
            return condition()
        with self.news:
            if not self.news.wait_for(or_over, seconds):
                raise AssertionError(f"{self.name}: waited {seconds} s in vain for {what}\n" +
                                     self.said())
        return time.monotonic() - began

    def is_shared(self):
        """Every partition has one owner, and nobody has two more than another."""
        sizes = [len(m.held) for m in self.live]
        return sum(sizes) == len(self.partitions) and max(sizes) - min(sizes) <= 1 and \
            set().union(*(m.held for m in self.live)) == self.partitions

    def settle(self, seconds=WAIT_S):
        return self.await_news(f"{len(self.live)} to share the partitions", self.is_shared,
                               seconds)

    def value(self, n):
        return struct.pack(">q", n)

    def produce(self, count=10):
        now = int(time.time() * 1000)
        data = records.Batch([(now, None, self.value(self.ends + i))
                              for i in range(count)]).build()
        left, end = set(self.partitions), time.monotonic() + 60

        def look(answer):
            parts = answer["responses"][0]["partitionResponses"]
            left.difference_update(p["index"] for p in parts if p["errorCode"] == 0)
            return None, {p["errorCode"] for p in parts}
        while left:
            try:
                self.ask("Produce", "Produce", 8, {
                    "transactionalId": None, "acks": -1, "timeoutMs": 20000, "topicData": [
                        {"name": self.topic, "partitionData": [
                            {"index": p, "records": data} for p in sorted(left)]}]}, look, 0)
            except AssertionError:  # What became of it is in the log.
                if time.monotonic() > end:
                    raise
                left = {p for p, end in self.log_ends().items() if end == self.ends}
        self.ends += count
        equal(f"{self.name}: ends of the log", set(self.log_ends().values()), {self.ends})

    def log_ends(self):
        def look(answer):
            parts = answer["topics"][0]["partitions"]
            return {p["partitionIndex"]: p["offset"] for p in parts}, \
                {p["errorCode"] for p in parts}
        return self.ask("ends of the log", "ListOffsets", 7, {
            "replicaId": -1, "isolationLevel": 0, "topics": [{"name": self.topic, "partitions": [
                {"partitionIndex": p, "currentLeaderEpoch": -1, "timestamp": -1}
                for p in sorted(self.partitions)]}]}, look)

    def wanted(self):
        return {(p, o) for p in self.partitions for o in range(self.ends)}

    def have_read(self):
        return sum(len(m.read) for m in self.all) >= len(self.wanted()) and \
            {r for m in self.all for r in m.read} >= self.wanted()

    def await_read(self):
        """Every record, once; those that a dead member had not committed, also twice."""
        self.await_news("everything to be read", self.have_read)
        with self.news:
            every = [r for m in self.all for r in m.read]
        seen, twice = set(), set()
        for r in every:
            (twice if r in seen else seen).add(r)
        equal(f"{self.name}: read twice", sorted(twice - self.excused), [])
        equal(f"{self.name}: read and never written", sorted(seen - self.wanted()), [])
        self.await_committed()

    def committed(self):
        def look(answer):
            group = answer["groups"][0]
            return {p["partitionIndex"]: p["committedOffset"] for t in group["topics"]
                    if t["name"] == self.topic for p in t["partitions"]
                    if p["committedOffset"] >= 0}, {group["errorCode"]}
        return self.ask("committed offsets", "OffsetFetch", 8, {
            "groups": [{"groupId": self.name, "topics": None}], "requireStable": False}, look)

    def await_committed(self):
        wanted = {p: self.ends for p in self.partitions}
        try:
            process.wait_for("the commits", lambda: self.committed() == wanted, WAIT_S)
            self.safe = self.ends
        except AssertionError:
            found = self.committed()
            late = {p: found.get(p) for p in self.partitions if found.get(p) != self.ends}
            raise AssertionError(f"{self.name}: committed, and the ends are {self.ends}: {late}\n"
                                 + self.said()) from None

    def excuse(self):
        """What was not committed, as far as is told or was seen, may be read again."""
        with self.news:
            saved = dict.fromkeys(self.partitions, self.safe)
            for m in self.all:
                for p, o in m.committed.items():
                    saved[p] = max(o, saved[p])
            self.excused |= {(p, o) for p, o in self.wanted() if o >= saved[p]}

    def round(self, count=10):
        """The members share the partitions; what is written is read by who holds it."""
        took = self.settle()
        before = {m: len(m.read) for m in self.live}
        self.produce(count)
        self.await_read()
        for m in self.live:
            strange = {p for p, _ in m.read[before[m]:]} - m.held
            equal(f"partitions that {m.name} read and did not hold", strange, set())
        return took

    def kill(self, member):
        """In the middle of its work."""
        held = set(member.held)
        count = len(member.read)
        self.produce(40)
        self.await_news("its first records", lambda: len(member.read) > count)
        member.end(kill=True)
        self.live.remove(member)
        self.excuse()
        took = self.settle()
        # The session may have begun two heartbeats earlier.
        session = SESSION_S.get(member.protocol, SESSION_S["classic"])
        if not session - 2.5 < took < session + 14:
            raise AssertionError(f"{sorted(held)} of {member.name} were taken over after "
                                 f"{took:.1f} s, and its session is {session} s")
        self.await_read()
        return took

    def leave(self, member):
        """It ends in an orderly way: the broker waits for no session, and the others take over."""
        self.live.remove(member)
        member.end()
        try:
            process.wait_for("the member to be gone", lambda: self.count() == len(self.live),
                             LEFT_S)
        except AssertionError:
            equal(f"members after the end of {member.name}", self.count(), len(self.live))
        return self.settle() if self.live else 0

    def count(self):
        """How many members the broker sees, of either protocol."""
        if self.kind()[0] == "classic":
            body = {"groups": [self.name], "includeAuthorizedOperations": False}
            api, version = "DescribeGroups", 5
        else:
            body = {"groupIds": [self.name], "includeAuthorizedOperations": False}
            api, version = "ConsumerGroupDescribe", 0
        return self.ask("its members", api, version, body, lambda answer: (
            len(answer["groups"][0]["members"]), {answer["groups"][0]["errorCode"]}))

    def kind(self):
        """Type, protocol type and state, as ListGroups tells."""
        def look(answer):
            found = [g for g in answer["groups"] if g["groupId"] == self.name]
            return found[0] if found else None, {answer["errorCode"]}
        g = self.ask("its type", "ListGroups", 5, {"statesFilter": [], "typesFilter": []}, look)
        return g and (g["groupType"].lower(), g["protocolType"], g["groupState"])

    def clean(self):
        for m in self.all:
            process.end(m.child, signal.SIGKILL)
            m.errors.close()
        self.broker.close()
