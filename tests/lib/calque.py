"""A Calque broker of this tree as a child process, and its command line."""
import json
import os
import signal
import subprocess
import time

from lib import process, wire

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BINARY = os.environ.get("TESTS_CALQUE", os.path.join(ROOT, "build", "calque"))


class Calque:
    """Settings, data and log stay in `folder`; the port stays the same over restarts."""

    def __init__(self, folder, settings=None):
        self.folder, self.port, self.child = folder, process.free_port(), None
        self.data = os.path.join(folder, "data")
        self.log = os.path.join(folder, "calque.log")
        os.makedirs(folder, exist_ok=True)
        lines = {"node.id": 1, "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
                 "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
                 "log.dirs": self.data,
                 # Many records of the tests are as old as 1970.
                 "log.initial.task.delay.ms": 3600000}
        lines.update(settings or {})
        self.properties = os.path.join(folder, "server.properties")
        with open(self.properties, "w") as f:
            f.writelines(f"{k}={v}\n" for k, v in lines.items())

    bootstrap = property(lambda self: f"127.0.0.1:{self.port}")

    def spawn(self):
        if not os.access(BINARY, os.X_OK):
            raise AssertionError(f"there is no program at {BINARY}: build it first")
        self.child = process.start([BINARY, "serve", self.properties], self.log)

    def await_ready(self, seconds=30):
        def ready():
            if self.child.poll() is not None:
                raise AssertionError(f"calque ended with {self.child.returncode}\n"
                                     f"{process.tail(self.log)}")
            try:
                with wire.Connection(self.bootstrap, 5) as c:
                    return bool(c.api_versions())
            except OSError:
                return False
        try:
            process.wait_for("calque to answer", ready, seconds, 0.02)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{process.tail(self.log)}") from None

    def start(self):
        self.spawn()
        self.await_ready()
        return self.bootstrap

    def stop(self):
        """A clean end, which is part of what is tested: it takes seconds and exits with 0."""
        child, self.child = self.child, None
        status = process.end(child, signal.SIGTERM, 20)
        if status != 0:
            raise AssertionError(f"calque ended with {status} after SIGTERM\n"
                                 f"{process.tail(self.log)}")

    def kill(self):
        child, self.child = self.child, None
        process.end(child, signal.SIGKILL)

    def cli(self, *args, check=True, timeout=120):
        run = subprocess.run([BINARY, *args, "--bootstrap-server", self.bootstrap],
                             capture_output=True, text=True, timeout=timeout,
                             stdin=subprocess.DEVNULL)
        if check and run.returncode:
            raise AssertionError("calque %s ended with %d\n%s%s" % (
                " ".join(args), run.returncode, run.stdout[-2000:], run.stderr[-2000:]))
        return run

    def json(self, *args, **options):
        text = self.cli(*args, "--json", **options).stdout
        try:
            return json.loads(text)
        except ValueError:
            raise AssertionError(f"calque {' '.join(args)} --json printed no JSON: {text[:500]}")

    def describe(self, mirror):
        """The partitions of a mirror, as `mirror describe --json` tells them."""
        return self.json("mirror", "describe", mirror)

    def await_mirroring(self, mirror, partitions=None, seconds=60):
        """Waits until every partition is MIRRORING without lag and returns them."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                rows = self.describe(mirror)
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                rows = []
            waiting = [r for r in rows if r["state"] != "MIRRORING" or r["lag"] != 0]
            if rows and not waiting and (partitions is None or len(rows) >= partitions):
                return rows
            if time.monotonic() > deadline:
                raise AssertionError(f"{mirror}: after {seconds} s {len(rows)} partitions, not at "
                                     f"rest: {json.dumps(waiting[:3])}\n"
                                     f"{process.tail(self.log)}")
            time.sleep(0.1)
