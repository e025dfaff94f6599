"""Runs `meson test`, shows what failed, and counts test cases where the test says how many it has.

    meson_results.py BUILD_FOLDER [OPTIONS OF MESON TEST...]
"""
import json
import os
import re
import subprocess
import sys

CATCH_PASSED = re.compile(r"All tests passed \(\d+ assertions? in (\d+) test cases?\)")
CATCH_FAILED = re.compile(r"test cases:\s+(\d+) \|(?:\s+(\d+) passed \|)?\s+(\d+) failed")
UNITTEST = re.compile(r"^Ran (\d+) tests? in", re.M)
UNITTEST_FAILED = re.compile(r"^FAILED \((?:failures=(\d+))?(?:, )?(?:errors=(\d+))?", re.M)


def cases(test):
    """(passed, failed) of one test program; one that counts nothing is one test."""
    out = test.get("stdout", "") + test.get("stderr", "")
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    passed = sum(int(n) for n in CATCH_PASSED.findall(out))
    failed = 0
    for total, _, bad in CATCH_FAILED.findall(out):
        passed += int(total) - int(bad)
        failed += int(bad)
    for n in UNITTEST.findall(out):
        passed += int(n)
    for failures, errors in UNITTEST_FAILED.findall(out):
        failed += int(failures or 0) + int(errors or 0)
        passed -= int(failures or 0) + int(errors or 0)
    if good:
        return max(passed, 1), failed
    # A program that crashed after its count, or before it, has failed at least once.
    return max(passed, 0), max(failed, 1)


def main(folder, *options):
    log = os.path.join(folder, "meson-logs", "testlog.json")
    if os.path.exists(log):
        os.unlink(log)
    run = subprocess.run(["meson", "test", "-C", folder, "--no-rebuild", "--print-errorlogs",
                          *options])
    if not os.path.exists(log):
        print("meson test left no log")
        return run.returncode or 1
    with open(log) as f:
        tests = [json.loads(line) for line in f if line.strip()]
    passed = failed = 0
    for test in sorted(tests, key=lambda t: -t.get("duration", 0)):
        good, bad = cases(test)
        passed, failed = passed + good, failed + bad
        if bad:
            print(f"    FAILED {test['name']} ({test['result']}): {bad} of {good + bad}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else run.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
