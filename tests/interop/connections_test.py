#!/usr/bin/env python3
"""Connections, many of them, and what a broker may take for those that send or ask too much.

    connections_test.py [--list]
"""
import os
import resource
import selectors
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from lib import suite, wire
from lib.calque import Calque

IDLE = 10_000
LONG_POLLS = 500
KIB_EACH_MAX = 16
QUEUED_BYTES = 8 << 20
METADATA = struct.pack(">hhihi", 3, 1, 7, -1, 0)  # Of no topics.


def frame(request):
    return struct.pack(">i", len(request)) + request


def received(s, n):
    data = b""
    while len(data) < n:
        piece = s.recv(n - len(data))
        if not piece:
            raise AssertionError("the broker closed a connection")
        data += piece
    return data


def answer(s):
    return received(s, struct.unpack(">i", received(s, 4))[0])


class Many:
    def __init__(self, tests):
        self.tests, self.calque, self.sockets = tests, None, []

    def start(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard < IDLE + 1000 and hard != resource.RLIM_INFINITY:
            raise AssertionError(f"{hard} open files are allowed: raise the limit, ulimit -Hn")
        # The broker raises its own, from whatever it is started with.
        self.calque = Calque(os.path.join(self.tests.folder, "calque"),
                             {"queued.max.request.bytes": QUEUED_BYTES,
                              # All connect at once, and a SYN that finds no place waits 1 s.
                              "socket.listen.backlog.size": 4096})
        self.calque.start()
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.calque.cli("topic", "create", "t", "--partitions", "1")

    def clean(self):
        for s in self.sockets:
            s.close()
        if self.calque is not None and self.calque.child is not None:
            self.calque.kill()

    def kib(self, what="VmRSS"):
        with open(f"/proc/{self.calque.child.pid}/status") as f:
            return int(next(l for l in f if l.startswith(what + ":")).split()[1])

    def connect(self, i):
        s = socket.socket()
        s.bind((f"127.0.0.{1 + i % 200}", 0))
        s.settimeout(30)
        s.connect(("127.0.0.1", self.calque.port))
        return s

    def queued_bytes(self):
        """Requests of 32 times the bytes that may be queued wait, and all are answered."""
        before, size, count = self.kib(), 1 << 20, 256
        request = METADATA[:-4] + struct.pack(">ih", 1, 3) + b"t" * 3
        request = frame(request + bytes(size - len(request)))  # What follows is passed over.
        waiting = [self.connect(i) for i in range(count)]
        selector = selectors.DefaultSelector()
        left = {}
        for s in waiting:
            s.setblocking(False)
            left[s] = memoryview(request)
            selector.register(s, selectors.EVENT_READ | selectors.EVENT_WRITE)
        most, answered, deadline = before, 0, time.monotonic() + 60
        while answered < count and time.monotonic() < deadline:
            for key, events in selector.select(1):
                s = key.fileobj
                if events & selectors.EVENT_WRITE and left[s]:
                    left[s] = left[s][s.send(left[s]):]
                    if not left[s]:
                        selector.modify(s, selectors.EVENT_READ)
                if events & selectors.EVENT_READ:
                    if not s.recv(65536):
                        raise AssertionError("the broker closed a connection")
                    answered += 1
                    selector.unregister(s)
            most = max(most, self.kib())
        for s in waiting:
            s.close()
        suite.equal("answers", answered, count)
        grown = most - before
        # The buffers of those that are served next are given back a little later.
        if grown > 4 * QUEUED_BYTES >> 10:
            raise AssertionError(f"{grown} KiB for {QUEUED_BYTES >> 10} KiB of requests")
        return f"{grown} KiB at most for {count} requests of 1 MiB"

    def idle(self):
        before, began = self.kib(), time.monotonic()
        for i in range(IDLE):
            self.sockets.append(self.connect(i))
        for s in self.sockets:
            s.sendall(frame(METADATA))
        for s in self.sockets:
            answer(s)
        took, each = time.monotonic() - began, (self.kib() - before) / IDLE
        if each > KIB_EACH_MAX:
            raise AssertionError(f"{each:.1f} KiB of memory for an idle connection")
        return f"{IDLE} connections in {took:.1f} s, {each:.1f} KiB of memory each"

    def others_are_served(self):
        with wire.Client(self.calque.bootstrap) as client:
            began = time.monotonic()
            client.metadata()
            took = time.monotonic() - began
        for s in self.sockets[::100]:
            s.sendall(frame(METADATA))
            answer(s)
        if took > 2:
            raise AssertionError(f"an answer took {took:.1f} s")
        return f"{took * 1000:.0f} ms"

    def still_there(self):
        """None was closed behind its back."""
        time.sleep(2)
        for s in self.sockets:
            s.setblocking(False)
            try:
                if s.recv(1) == b"":
                    raise AssertionError("the broker closed an idle connection")
            except BlockingIOError:
                pass

    def ends_in_time(self):
        """[G08] Idle clients and long polls do not hold up the end."""
        fetch = struct.pack(">hhihiiiibi", 1, 4, 7, -1, -1, 30_000, 1, 1 << 20, 0, 1) + \
            struct.pack(">h", 1) + b"t" + struct.pack(">iiqi", 1, 0, 0, 1 << 20)
        for s in self.sockets[:LONG_POLLS]:
            s.settimeout(30)
            s.sendall(frame(fetch))
        time.sleep(1)
        began = time.monotonic()
        self.calque.stop()
        took = time.monotonic() - began
        if took > 20:
            raise AssertionError(f"the end took {took:.1f} s")
        return f"{took:.1f} s"


def connections(tests):
    m = Many(tests)
    tests.test("start", needed=True)(m.start)
    tests.test("requests wait within queued.max.request.bytes")(m.queued_bytes)
    tests.test(f"{IDLE} idle connections are held", needed=True)(m.idle)
    tests.test("others are served")(m.others_are_served)
    tests.test("idle connections stay")(m.still_there)
    tests.test(f"G08 the end does not wait for {LONG_POLLS} long polls")(m.ends_in_time)
    return m.clean


if __name__ == "__main__":
    sys.exit(suite.main({"connections": connections}))
