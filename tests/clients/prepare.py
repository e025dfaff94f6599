"""Builds all client programs, two at a time. What cannot be had is told here, and fails later."""
import concurrent.futures
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from clients import builds, matrix


def build(client):
    began = time.monotonic()
    try:
        client.command()
        said = ""
    except builds.Missing as e:
        said = f": {e}"
    print(f"    {client.name}: {time.monotonic() - began:.0f} s{said}", flush=True)


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    list(pool.map(build, matrix.clients()))
