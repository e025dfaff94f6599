"""A runner for tests that build on each other: one brings up what the next one looks at."""
import os
import shutil
import sys
import tempfile
import time
import traceback


def place():
    """Where folders are made. In a chroot nothing may be mounted at its root, and then a Kafka
    cannot tell how large the disk is; elsewhere than there it can."""
    with open("/proc/self/mounts") as f:
        mounted = {line.split()[1] for line in f}
    at = os.path.realpath(tempfile.gettempdir())
    while at not in mounted:
        if at == "/":
            return "/dev/shm" if "/dev/shm" in mounted else None
        at = os.path.dirname(at)
    return None


class Waiting(Exception):
    """The test is there, but what it tests is not yet: it counts neither as passed nor failed."""


class Suite:
    """Named tests in order. After a failed test marked `needed` the rest cannot run and fails."""

    def __init__(self, name):
        self.name, self.tests, self.passed, self.failed = name, [], 0, 0
        self.folder = None

    def test(self, name, needed=False):
        def add(body):
            self.tests.append((name, needed, body))
            return body
        return add

    def report(self, verdict, name, seconds, detail=""):
        print(f"  {verdict:6} {self.name}: {name} ({seconds:.1f} s)", flush=True)
        if detail:
            print("\n".join("         " + line for line in detail.rstrip().split("\n")),
                  flush=True)

    def run(self):
        self.folder = tempfile.mkdtemp(prefix="calque-test-", dir=place())
        broken = None
        for name, needed, body in self.tests:
            began = time.monotonic()
            if broken:
                self.failed += 1
                self.report("FAILED", name, 0, f"not run, because this failed: {broken}")
                continue
            try:
                detail = body()
                self.passed += 1
                self.report("ok", name, time.monotonic() - began, detail or "")
            except Waiting as e:
                self.report("waits", name, time.monotonic() - began, f"for {e}")
            except Exception as e:  # Whatever went wrong, the other tests have their turn.
                self.failed += 1
                text = str(e) if isinstance(e, AssertionError) and str(e) else \
                    traceback.format_exc()
                self.report("FAILED", name, time.monotonic() - began, text[-6000:])
                if needed:
                    broken = name

    def clean(self):
        if os.environ.get("KEEP_TEST_FOLDERS"):
            print(f"  kept: {self.folder}")
        elif self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def equal(what, got, wanted):
    if got != wanted:
        raise AssertionError(f"{what}: got {str(got)[:1500]}, wanted {str(wanted)[:1500]}")


def main(makers, argv=None):
    """Runs the suites whose name begins with an argument, or all; `--list` prints the names."""
    argv = sys.argv[1:] if argv is None else argv
    if argv == ["--list"]:
        print("\n".join(makers))
        return 0
    unknown = [a for a in argv if not any(name.startswith(a) for name in makers)]
    if unknown:
        print(f"there is no test {unknown[0]}; there are: {', '.join(makers)}", file=sys.stderr)
        return 2
    passed = failed = 0
    for name, make in makers.items():
        if argv and not any(name.startswith(a) for a in argv):
            continue
        suite = Suite(name)
        end = make(suite)
        try:
            suite.run()
        finally:
            if end is not None:
                end()
            suite.clean()
        passed += suite.passed
        failed += suite.failed
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0
