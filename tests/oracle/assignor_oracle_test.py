#!/usr/bin/env python3
"""The assignors of the "consumer" group protocol against Kafka's own classes.

    assignor_oracle_test.py            Kafka still gives the committed results
    assignor_oracle_test.py --write    replaces the committed ones

The committed ones are in tests/golden/assignor_vectors.txt; unit_consumer_groups holds our
assignors against them, or against others: `ASSIGNOR_VECTORS=FILE unit_consumer_groups`.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.dirname(HERE)]
from lib import real_kafka, suite  # noqa: E402

VERSION, SEED, COUNT = "4.4.0", 848, 400
COMMITTED = os.path.join(os.path.dirname(HERE), "golden", "assignor_vectors.txt")


def make(seed=SEED, count=COUNT):
    classes = real_kafka.compiled(os.path.join(HERE, "AssignorVectors.java"), VERSION)
    return real_kafka.run_class(VERSION, "AssignorVectors", [str(seed), str(count)],
                                more_classes=[classes]).stdout.decode("ascii")


def assignors(s):
    @s.test("Kafka still gives the committed results")
    def vectors():
        with open(COMMITTED, encoding="ascii") as file:
            suite.equal("equal to those committed", make() == file.read(), True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        text = make()
        with open(COMMITTED, "w", encoding="ascii") as out:
            out.write(text)
    else:
        sys.exit(suite.main({"assignors": assignors}))
