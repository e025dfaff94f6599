"""Fetches what the tests against real Kafkas need from Maven Central and PyPI."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from lib import clients, real_kafka


def main():
    for version in ("4.4.0", "2.1.1"):
        began = time.monotonic()
        real_kafka.jars(version)
        print(f"    Kafka {version}: {time.monotonic() - began:.0f} s", flush=True)
    began = time.monotonic()
    clients.python_client()
    print(f"    {clients.PYTHON_CLIENT}: {time.monotonic() - began:.0f} s", flush=True)


main()
