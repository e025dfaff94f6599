#!/usr/bin/env python3
"""Kafka's own classes as judges over our schemas and the committed vectors.

    kafka_oracle_test.py [--list] [NAME...]
"""
import os
import subprocess
import sys

TESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
sys.path.insert(0, TESTS)
from lib import suite


def says_yes(script):
    run = subprocess.run([sys.executable, os.path.join(TESTS, "oracle", script)],
                         capture_output=True, text=True, timeout=300)
    if run.returncode:
        raise AssertionError(f"{script} ended with {run.returncode}\n{run.stdout}{run.stderr}")
    return run.stdout.strip()[-300:]


def make(tests):
    tests.test("each field of our schemas is as in Kafka's")(
        lambda: says_yes("compare_schemas.py"))
    tests.test("the committed vectors are what Kafka's classes write")(
        lambda: says_yes("check_vectors.py"))


if __name__ == "__main__":
    sys.exit(suite.main({"kafka-oracle": make}))
