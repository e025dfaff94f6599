#!/usr/bin/env python3
"""Kafka's own classes as judges over our record batches.

    check_records.py BUILT_BATCHES   they must read from the batches that the program BUILT_BATCHES
                                     prints what we say is in them, and must still write what
                                     tests/golden/records holds
    check_records.py --write         writes tests/golden/records anew

Needs a JDK and the jars of the release (tests/lib/real_kafka.py). Exit status 77: skipped, for they
are not there.
"""
import gzip
import shutil
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
from lib import real_kafka  # noqa: E402

RELEASE = "4.4.0"
GOLDEN = TESTS / "golden" / "records" / f"kafka-{RELEASE}.txt.gz"
SKIPPED = 77


def oracle(mode, given=None):
    classes = real_kafka.compiled(str(TESTS / "oracle" / "RecordVectors.java"), RELEASE)
    run = real_kafka.run_class(RELEASE, "RecordVectors", [mode], more_classes=[classes],
                               input=given.encode() if given is not None else None)
    return run.stdout.decode()


def portable(text):
    """Without what depends on the compressors of the Java at hand: sizes, sums, packed bytes."""
    lines, packed = [], False
    for line in text.splitlines():
        words = line.split(" ")
        if words[0] in ("set", "produce"):
            packed = any(codec in line for codec in ("gzip", "snappy", "lz4", "zstd", "mixed"))
        if packed and words[0] in ("bytes", "accepted"):
            line = words[0]
        elif packed and words[0] == "batch":
            line = " ".join(w for i, w in enumerate(words)
                            if words[i - 1] not in ("size", "crc"))
        lines.append(line)
    return lines


def first_difference(expected, found):
    for i in range(max(len(expected), len(found))):
        a = expected[i] if i < len(expected) else "(end)"
        b = found[i] if i < len(found) else "(end)"
        if a != b:
            return f"line {i + 1}:\n  expected {a[:300]}\n  found    {b[:300]}"
    return None


def check(built_batches):
    ours = subprocess.run([built_batches], check=True, capture_output=True, text=True).stdout
    sets = ours.count("\nset ") + ours.startswith("set ")
    if sets < 50 or "damage" in ours:
        return f"{built_batches} prints {sets} batches, or cannot read its own"
    difference = first_difference(ours.splitlines(), oracle("read", ours).splitlines())
    if difference:
        return f"Kafka's classes read something else from our batches, {difference}"
    with gzip.open(GOLDEN, "rt") as f:
        golden = portable(f.read())
    difference = first_difference(golden, portable(oracle("vectors")))
    if difference:
        return f"{GOLDEN.name} is not what Kafka's classes write, {difference}"
    print(f"{sets} of our batches read alike, {len(golden)} golden lines confirmed")
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not shutil.which("javac"):
        print("skipped: no JDK here")
        sys.exit(SKIPPED)
    try:
        real_kafka.jars(RELEASE)
    except (RuntimeError, OSError) as e:
        print(f"skipped: {e}")
        sys.exit(SKIPPED)
    if sys.argv[1] == "--write":
        with open(GOLDEN, "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as packed:
            packed.write(oracle("vectors").encode())
        return
    problem = check(sys.argv[1])
    if problem:
        sys.exit(problem)


if __name__ == "__main__":
    main()
