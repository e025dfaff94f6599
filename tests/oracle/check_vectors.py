#!/usr/bin/env python3
"""Makes the message vectors anew with Kafka's own classes and compares them with those committed.

    check_vectors.py            exit status 1 if they differ
    check_vectors.py --write    replaces the committed ones

The versions asked for are those of our schemas. Needs a JDK and Kafka 4.4.0's jars, which come
from Maven Central.
"""
import gzip
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests"), HERE]
import compare_schemas  # noqa: E402
from lib import real_kafka  # noqa: E402

COMMITTED = os.path.join(ROOT, "tests", "golden", "message_vectors.txt.gz")


def make():
    source = os.path.join(HERE, "MessageVectors.java")
    classes = real_kafka.compiled(source, compare_schemas.VERSION)
    wanted = [f"{m.key}:{m.lo}-{m.hi}"
              for m in sorted(compare_schemas.our_messages(), key=lambda m: m.key)]
    run = real_kafka.run_class(compare_schemas.VERSION, "MessageVectors", wanted,
                               more_classes=[classes])
    return run.stdout.decode("ascii")


def committed():
    with open(COMMITTED, "rb") as file:
        return gzip.decompress(file.read()).decode("ascii")


def difference(made, old_text):
    """A sentence, or nothing when both are equal."""
    if made == old_text:
        return ""
    new, old = set(made.splitlines()), set(old_text.splitlines())
    first = sorted(new - old) + sorted(old - new) or ["the order"]
    return (f"{len(new - old)} lines are new, {len(old - new)} are gone, for instance: "
            f"{first[0][:200]}")


def main(arguments):
    if arguments not in ([], ["--write"]):
        sys.exit(__doc__)
    made = make()
    if arguments:
        with open(COMMITTED, "wb") as file:
            file.write(gzip.compress(made.encode("ascii"), 9, mtime=0))
    found = difference(made, committed())
    print(found or f"{len(made.splitlines())} vectors: equal to those committed")
    return 1 if found or not made else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
