#!/usr/bin/env python3
"""Every client library that we know of against Calque: produces, consumes, administers.

    clients_test.py [--list] [NAME...]

`smoke-clients` is the libraries, `clients` also Kafka's own command-line programs; that run writes
the table of docs/compatibility.md. TESTS_BROKER=kafka runs the same against a real Kafka 4.4.0,
which must pass all of it: that is how the programs are proved.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from clients import brokers, builds, kafka_tools, matrix, plan, table
from lib import process, suite, wire
from lib.calque import Calque

AT_ONCE = 2  # Programs at a time: as many as the cores that the tests may count on.
PROGRAM_S = 300
JUDGES = {"java": "java-4.4.0", "librdkafka": "librdkafka-newest"}
SETTINGS = {"auto.create.topics.enable": "false", "group.initial.rebalance.delay.ms": 0}


class Run:
    """What one program said, step by step."""

    def __init__(self, command, words):
        self.answers = {}
        began = last = time.monotonic()
        with tempfile.TemporaryFile() as said:
            child = process.child(command + words, said)
            timer = threading.Timer(PROGRAM_S, child.kill)
            timer.start()
            for line in child.stdout:
                now = time.monotonic()
                try:
                    answer = json.loads(line)
                    answer["seconds"], last = now - last, now
                    self.answers.setdefault(answer["step"], []).append(answer)
                except (ValueError, KeyError, TypeError):
                    continue  # Some libraries print to the standard output.
            process.end(child)
            timer.cancel()
            self.seconds = time.monotonic() - began
            said.seek(max(0, said.seek(0, 2) - 1500))
            self.end = f"exit status {child.returncode} after {self.seconds:.0f} s\n" \
                       f"{said.read().decode(errors='replace')}"
        self.slow = sorted(((a["seconds"], text) for text, all in self.answers.items()
                            for a in all), reverse=True)[:3]

    def take(self, text):
        """A step can be asked several times: the answers come in the same order."""
        if not self.answers.get(text):
            raise AssertionError(f"no answer; {self.end}")
        return self.answers[text].pop(0)


class Matrix:
    def __init__(self, tests, clients, tools=()):
        self.tools = dict.fromkeys(tools)
        self.tests, self.clients, self.broker, self.served = tests, clients, None, {}
        self.pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self.runs, self.judged, self.results = {}, {}, {}

    def clean(self):
        self.pool.shutdown(cancel_futures=True)
        brokers.end(self.broker)

    def start(self):
        """The broker, the topics, and the one topic that all clients read."""
        folder = self.tests.folder
        plan.write_files(folder)
        self.broker = brokers.start(folder, SETTINGS)
        with wire.Connection(self.broker.bootstrap) as c:
            self.served = c.api_versions()
        shared = {"shared": plan.CODECS, "shared-without-zstd": plan.CODECS[:4]}
        words = [f"create:{topic}:1:retention.ms=-1" for topic in shared]
        words += [f"create:{c.topic}:2:retention.ms=-1" for c in self.clients]
        words += [f"create:{plan.transactional_topic(c)}:2:retention.ms=-1"
                  for c in self.clients if "transact" in c.can]
        for c in self.clients:  # For those that cannot.
            if "create" not in c.can:
                words += [f"create:{c.topic}-admin:2:retention.ms=-1",
                          f"create:{c.topic}-small:1:max.message.bytes=1000"]
        words += [f"produce:{topic}:0:{codec}:plain:{folder}/shared-{codec}"
                  for topic, codecs in shared.items() for codec in codecs]
        run = Run(builds.once("java-4.4.0", lambda: builds.java("4.4.0")),
                  [self.broker.bootstrap, *words])
        for word in words:
            plan.is_ok()(run.take(word))
        for client in self.clients:
            if not isinstance(self.broker, Calque):
                client.settle_ms = 800
            client.port = int(self.broker.bootstrap.split(":")[1])
            self.runs[client.name] = self.pool.submit(self.run, client)
        for version, tools in self.tools.items():
            tools = kafka_tools.Tools(version, self.broker.bootstrap, self.served, folder)
            self.tools[version] = tools
            for name, apis, body in tools.tests():
                if all(a in self.served for a in apis):
                    self.runs[version, name] = self.pool.submit(body)
        for judge in sorted({c.judge for c in self.clients}):
            self.judged[judge] = self.pool.submit(self.judge, judge)

    def missing(self, apis):
        return [plan.API_NAMES[a] for a in apis if a not in self.served]

    def waits_for(self, step):
        return self.missing(step.apis)

    def run(self, client):
        steps = [s for s in plan.steps(client, self.tests.folder) if not self.waits_for(s)]
        return Run(client.command(), [self.broker.bootstrap, "about", *(s.text for s in steps)])

    def produced(self, client):
        texts = [t for _, _, t in plan.producing(client, self.tests.folder)]
        count = len(client.as_written(plan.PRODUCED)) * len(texts)
        return f"consume:{client.topic}:0:earliest:{count}", texts

    def judge(self, judge):
        """Reads what the clients wrote, with another implementation, once all have written."""
        mine = [c for c in self.clients if c.judge == judge]
        concurrent.futures.wait([self.runs[c.name] for c in mine])
        command = next(c for c in matrix.clients() if c.name == JUDGES[judge]).command()
        return Run(command, [self.broker.bootstrap, *(self.produced(c)[0] for c in mine),
                             *(s.text for c in mine for s in self.isolated(c))])

    def isolated(self, client):
        if "transact" not in client.can:
            return []
        return [s for s in plan.reads_isolated(client) if not self.waits_for(s)]

    def read_back(self, client):
        text, texts = self.produced(client)
        answer = self.judged[client.judge].result().take(text)
        wanted = [r for _ in texts for r in client.as_written(plan.PRODUCED)]
        plan.is_ok(lambda ok: plan.compare("records", ok["records"], wanted,
                                           fields=client.fields_kept))(answer)
        with wire.Client(self.broker.bootstrap) as reader:
            batches = reader.read_log(client.topic, 0)
        said = base = f"{len(wanted)} records, {len(batches)} batches"
        size = len(wanted) // len(texts)
        for n, (codec, mode, text) in enumerate(plan.producing(client, self.tests.folder)):
            here = [b for b in batches if n * size <= b.base_offset < (n + 1) * size]
            if codec == "lz4" and client.lz4_waits_for not in (None, *self.served):
                said, codec = base + "; lz4 waits for FindCoordinator", "none"
            codecs = {b.codec for b in here}
            # librdkafka leaves a batch plain that its codec would only make larger.
            if client.judge == "java" and len(codecs) > 1:
                codecs.discard("none")
            suite.equal(f"codec of {text}", codecs, {codec})
            suite.equal(f"producer ids of {text}", {b.producer_id >= 0 for b in here},
                        {mode == "idempotent"})
        return said

    def transactions(self, client):
        said, judged = self.aspect(client, "transactions"), self.judged[client.judge].result()
        for step in self.isolated(client):
            try:
                step.check(judged.take(step.text))
            except AssertionError as e:
                raise AssertionError(f"{step.text} of the judge: {e}") from None
        return said

    def is_what_it_says(self, client, run):
        """The version in the table is the one that ran."""
        def look(ok):
            told = " on librdkafka ".join([ok["version"], *filter(None, [ok.get("librdkafka")])])
            suite.equal("version", told, client.version)
        plan.is_ok(look)(run.take("about"))

    def aspect(self, client, aspect):
        """One line of the output: all steps of the client that belong to it."""
        steps = [s for s in plan.steps(client, self.tests.folder) if s.aspect == aspect]
        waiting = sorted({w for s in steps for w in self.waits_for(s)})
        run, wrong, right = self.runs[client.name].result(), [], 0
        if aspect == "produces":
            self.is_what_it_says(client, run)
        for step in steps:
            if self.waits_for(step):
                continue
            try:
                step.check(run.take(step.text))
                right += 1
            except AssertionError as e:
                wrong.append(f"{step.text[:120]}: {e}")
        if wrong:
            raise AssertionError("\n".join(wrong))
        if not right:
            raise suite.Waiting(", ".join(waiting))
        if aspect == "produces" and os.environ.get("TESTS_TIMES"):
            print(f"         {client.name}: {run.seconds:.1f} s, {run.slow}", flush=True)
        return f"{right} steps" + ("; not yet served: " + ", ".join(waiting) if waiting else "")

    def recorded(self, key, look):
        """The body of a test; its result stays for the table."""
        def body():
            try:
                said = look()
            except suite.Waiting as e:
                self.results[key] = f"waits for {e}"
                raise
            except builds.Missing as e:
                self.results[key] = "not built"
                raise AssertionError(str(e)) from None
            except BaseException:
                self.results[key] = "FAILED"
                raise
            self.results[key] = said or "passed"
            return said
        return body

    def client_test(self, client, aspect):
        own = {"is read back": self.read_back, "transactions": self.transactions}
        look = own.get(aspect, lambda c: self.aspect(c, aspect))
        return self.recorded((client.name, aspect), lambda: look(client))

    def tool_test(self, version, name, apis):
        def look():
            if self.missing(apis):
                raise suite.Waiting(", ".join(self.missing(apis)))
            return self.runs[version, name].result()
        return self.recorded((f"kafka-{version}", name), look)


def make(smoke):
    def build(tests):
        m = Matrix(tests, matrix.clients(),
                   () if smoke else kafka_tools.VERSIONS)
        tests.test("start", needed=True)(m.start)
        for client in m.clients:
            for aspect in plan.ASPECTS:
                if aspect == "transactions" and "transact" not in client.can:
                    m.results[client.name, aspect] = "not in the library"
                    continue
                tests.test(f"{client.name} {aspect}")(m.client_test(client, aspect))
        for version in m.tools:
            for name, apis, _ in kafka_tools.Tools(version, "", {}, "").tests():
                tests.test(f"kafka-{version} {name}")(m.tool_test(version, name, apis))
        if not smoke and os.environ.get("TESTS_BROKER") != "kafka":
            tests.test("table of docs/compatibility.md")(lambda: table.write(m))
        return m.clean
    return build


if __name__ == "__main__":
    sys.exit(suite.main({"smoke-clients": make(True), "clients": make(False)}))
