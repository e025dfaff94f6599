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
from lib import suite
from lib.differential import comparison, tables

if __name__ == "__main__":
    sys.exit(suite.main({"produce-fetch": comparison.suite_of(
        tables.PRODUCE_FETCH, tables.PRODUCE_FETCH_APIS,
        settings={"auto.create.topics.enable": "false"})}))
