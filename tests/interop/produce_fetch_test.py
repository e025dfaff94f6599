#!/usr/bin/env python3
"""The same Produce, Fetch, ListOffsets and InitProducerId requests to a real Kafka and to us.

    produce_fetch_test.py [--list]

KAFKA_ADDRESS=host:port takes a Kafka 4.4.0 that runs already, CASES=text only the cases whose name
has the text. The tables of requests stand in tests/lib/differential, for any test that compares
brokers.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from lib import real_kafka, suite
from lib.calque import Calque
from lib.differential import fetch, list_offsets, produce
from lib.differential.codec import Codec
from lib.differential.compare import Pair


class Differential:
    def __init__(self, tests):
        self.tests, self.kafka, self.calque, self.pair = tests, None, None, None

    def start(self):
        address = os.environ.get("KAFKA_ADDRESS")
        if not address:
            self.kafka = real_kafka.Kafka("4.4.0", os.path.join(self.tests.folder, "kafka"),
                                          settings={"auto.create.topics.enable": "false"})
            address = self.kafka.start()
        self.calque = Calque(os.path.join(self.tests.folder, "calque"))
        self.pair = Pair(address, self.calque.start(), Codec())

    def run(self, case):
        return f"{self.pair.run(case)} answers"

    def clean(self):
        if self.pair is not None:
            self.pair.close()
        if self.calque is not None and self.calque.child is not None:
            self.calque.kill()
        if self.kafka is not None:
            self.kafka.stop(kill=True)


def make(tests):
    d = Differential(tests)
    tests.test("start", needed=True)(d.start)
    only = os.environ.get("CASES", "")
    for case in produce.CASES + fetch.CASES + list_offsets.CASES:
        if only in case.name:
            tests.test(case.name)(lambda case=case: d.run(case))
    return d.clean


if __name__ == "__main__":
    sys.exit(suite.main({"produce-fetch": make}))
