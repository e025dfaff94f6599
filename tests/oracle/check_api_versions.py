#!/usr/bin/env python3
"""Makes the table of Kafka's APIs and versions anew with its own classes, and compares.

    check_api_versions.py            exit status 1 if it differs from the one that is committed
    check_api_versions.py --write    replaces that

The table is what ApiVersions of a Kafka 4.4.0 lists: made from ApiMessageType. unit_broker holds
our answer against it, interop/admin_test.py that of a running Kafka.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from lib import real_kafka  # noqa: E402

VERSION = "4.4.0"
COMMITTED = os.path.join(ROOT, "tests", "golden", "api_versions.txt")


def make():
    source = os.path.join(HERE, "ApiVersionsTable.java")
    classes = real_kafka.compiled(source, VERSION)
    run = real_kafka.run_class(VERSION, "ApiVersionsTable", [], more_classes=[classes])
    return run.stdout.decode("ascii")


def committed():
    """The text, as it stands."""
    with open(COMMITTED, encoding="ascii") as file:
        return file.read()


def ranges(text):
    """{key: (least version, greatest version)}"""
    rows = (line.split() for line in text.splitlines())
    return {int(key): (int(low), int(high)) for key, _, low, high in rows}


def main():
    made = make()
    if sys.argv[1:] == ["--write"]:
        with open(COMMITTED, "w", encoding="ascii") as file:
            file.write(made)
        return 0
    if made != committed():
        print(f"{COMMITTED} is not what Kafka {VERSION} says; --write replaces it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
