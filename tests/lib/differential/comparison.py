"""A test suite that sends tables of cases to a real Kafka 4.4.0 and to us."""
import os

from lib import real_kafka, suite
from lib.calque import Calque
from lib.differential.codec import Codec
from lib.differential.compare import Pair

VERSION = "4.4.0"
# Not while it is tested, and as in lib/calque.py.
NO_RETENTION = {"log.initial.task.delay.ms": "3600000"}


class Comparison:
    """Both brokers, with settings for the real one and for ours. KAFKA_ADDRESS=host:port takes a
    Kafka that runs already."""

    def __init__(self, tests, settings=None, ours=None):
        self.tests, self.settings, self.our_settings = tests, settings, ours
        self.kafka, self.calque, self.pair = None, None, None

    def start(self):
        address = os.environ.get("KAFKA_ADDRESS")
        if not address:
            self.kafka = real_kafka.Kafka(VERSION, os.path.join(self.tests.folder, "kafka"),
                                          settings=NO_RETENTION | (self.settings or {}))
            address = self.kafka.start()
        self.calque = Calque(os.path.join(self.tests.folder, "calque"), self.our_settings)
        self.pair = Pair(address, self.calque.start(), Codec())

    def run(self, case):
        return f"{self.pair.run(case)} answers"

    def covers(self, apis, at_least):
        """Each API was asked so often: what a table does not hold is not compared."""
        few = {api: self.pair.counts[api] for api in apis if self.pair.counts[api] < at_least}
        suite.equal(f"APIs with fewer than {at_least} answers", few, {})
        return ", ".join(f"{api} {self.pair.counts[api]}" for api in apis)

    def clean(self):
        if self.pair is not None:
            self.pair.close()
        if self.calque is not None and self.calque.child is not None:
            self.calque.kill()
        if self.kafka is not None:
            self.kafka.stop(kill=True)


def suite_of(cases, apis, at_least=20, settings=None, ours=None, more=()):
    """What suite.main takes. `more`: pairs of a name and a function of the Comparison.
    CASES=text: only the cases whose name has the text."""
    def make(tests):
        comparison = Comparison(tests, settings, ours)
        tests.test("start", needed=True)(comparison.start)
        only = os.environ.get("CASES", "")
        for case in cases:
            if only in case.name:
                tests.test(case.name)(lambda case=case: comparison.run(case))
        if not only:
            tests.test(f"at least {at_least} answers of each API were compared")(
                lambda: comparison.covers(apis, at_least))
            for name, body in more:
                tests.test(name)(lambda body=body: body(comparison))
        return comparison.clean
    return make
