#!/usr/bin/env python3
"""Tests of the tests' own Python code that need no broker."""
import collections
import contextlib
import io
import socket
import struct
import sys
import threading
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from clients import members, plan, table
from lib import meson_results, storage_oracle, suite, wire
from lib.differential import broker, compare, records


def batch(base, deltas=0, epoch=3, attributes=0, records=b"xyz", magic=2):
    body = struct.pack(">ibIhiqqqhii", epoch, magic, 0, attributes, deltas, 5, 6, 7, 8, 9, 1)
    body += records
    return struct.pack(">qi", base, len(body)) + body


class Batches(unittest.TestCase):
    def test_whole_batches_are_read_and_a_cut_one_is_left_out(self):
        data = batch(10, 4) + batch(20, attributes=0x34)
        found = list(wire.parse_batches(data + batch(30)[:-1]))
        self.assertEqual([b.base_offset for b in found], [10, 20])
        self.assertEqual(found[0].last_offset, 14)
        self.assertEqual((found[0].leader_epoch, found[0].producer_id), (3, 7))
        self.assertTrue(found[1].control and found[1].transactional)
        self.assertEqual(found[1].codec, "zstd")
        self.assertEqual(b"".join(b.data for b in found), data)

    def test_an_old_format_is_not_taken_for_a_batch(self):
        with self.assertRaises(ValueError):
            list(wire.parse_batches(batch(0, magic=1)))

    def test_control_type(self):
        # length, attributes, timestamp delta, offset delta, key length 4 (zigzag), key
        record = bytes([20, 0, 0, 0, 8]) + struct.pack(">hh", 0, 7) + bytes([0, 0])
        found = next(wire.parse_batches(batch(0, attributes=0x30, records=record)))
        self.assertEqual(wire.control_type(found), 7)


class MadeBatches(unittest.TestCase):
    def test_checksum(self):
        self.assertEqual(records.crc32c(b"123456789"), 0xE3069283)

    def test_a_made_batch_is_read(self):
        data = records.batch((1000, b"k", b"v"), (2000, None, b"w"), producer_id=7,
                             producer_epoch=1, base_sequence=5)
        found = next(wire.parse_batches(data))
        self.assertEqual((found.count, found.last_offset_delta, found.max_timestamp),
                         (2, 1, 2000))
        self.assertEqual((found.producer_id, found.base_sequence, found.data), (7, 5, data))
        said = records.describe(data + data[:-1])
        self.assertTrue(said[0]["crc"])
        self.assertEqual(said[1], f"{len(data) - 1} bytes of a cut batch")
        self.assertFalse(records.describe(records.batch(crc=1))[0]["crc"])

    def test_gzip_hides_nothing(self):
        plain, packed = (records.describe(records.batch(codec=c))[0]["records"] for c in (0, 1))
        self.assertEqual(plain, packed)


class Comparison(unittest.TestCase):
    class Side:
        """A broker that answers what it was told to."""

        def __init__(self, *answers):
            self.answers, self.log = answers, []

        def begin(self):
            self.log = []

    def run_case(self, real, ours, allowed=()):
        pair = object.__new__(compare.Pair)
        pair.kafka, pair.ours = self.Side(*real), self.Side(*ours)
        pair.counts = collections.Counter()
        return pair.run(compare.Case("case", lambda b: b.log.extend(b.answers), allowed))

    def test_equal_answers_pass_and_others_do_not(self):
        answer = ("Fetch v4", {"a": [1, {"b": 2}]})
        self.assertEqual(self.run_case([answer, answer], [answer, answer]), 2)
        for other in ({"a": [1, {"b": 3}]}, {"a": [1]}, {"a": [1, {}]}, {}, {"a": None}):
            with self.assertRaises(AssertionError):
                self.run_case([answer], [("Fetch v4", other)])
        for other in ([], [answer, answer], [("Fetch v5", answer[1])]):
            with self.assertRaises(AssertionError):
                self.run_case([answer], other)
        with self.assertRaises(AssertionError):
            self.run_case([], [])

    def test_what_may_differ_has_to(self):
        real, ours = ("x", {"a": {"b": 1}}), ("x", {"a": {"b": 2}})
        self.assertEqual(self.run_case([real], [ours], [("a.b", "a reason")]), 1)
        with self.assertRaises(AssertionError):
            self.run_case([real], [real], [("a.b", "a reason")])

    def test_names_times_and_sentences(self):
        b = broker.Broker("x", "localhost:1", None)
        b.rename(77, "session")
        b.names["ab" * 16] = "id of t"
        now = int(time.time() * 1000)
        self.assertEqual(b.comparable({"sessionId": 77, "other": 77, "topicId": "ab" * 16,
                                       "t": now, "port": 9, "errorMessage": "no",
                                       "records": b""}),
                         {"sessionId": "session", "other": 77, "topicId": "id of t", "t": "now",
                          "port": "port", "errorMessage": "a sentence", "records": []})
        self.assertEqual(b.comparable({"topics": [2, 1], "rest": [2, 1]}),
                         {"topics": [1, 2], "rest": [2, 1]})


class Numbers(unittest.TestCase):
    def test_varints_come_back(self):
        for n in (0, 1, 127, 128, 300, 2 ** 31):
            self.assertEqual(wire.Reader(bytes(wire.Writer().varint(n).data)).varint(), n)

    def test_strings_come_back(self):
        for s in (None, "", "topic", "é" * 100):
            w = wire.Writer().string(s).compact_string(s)
            r = wire.Reader(bytes(w.data))
            self.assertEqual((r.string(), r.compact_string()), (s, s))
            r.done()

    def test_too_few_and_too_many_bytes_are_errors(self):
        with self.assertRaises(ValueError):
            wire.Reader(b"\0\5ab").string()
        with self.assertRaises(ValueError):
            wire.Reader(b"a").done()


class Connections(unittest.TestCase):
    def serve(self, answer):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def run():
            peer, _ = listener.accept()
            with peer:
                size = struct.unpack(">i", peer.recv(4))[0]
                request = peer.recv(size)
                peer.sendall(answer(request))
        thread = threading.Thread(target=run)
        thread.start()
        self.addCleanup(thread.join)
        return f"127.0.0.1:{listener.getsockname()[1]}"

    def test_a_response_of_another_request_is_refused(self):
        address = self.serve(lambda _: struct.pack(">ii", 4, 99))
        with wire.Connection(address) as c, self.assertRaises(ValueError):
            c.api_versions()

    def test_api_versions(self):
        def answer(request):
            body = request[4:8] + struct.pack(">hihhh", 0, 1, 1, 4, 18)
            return struct.pack(">i", len(body)) + body
        with wire.Connection(self.serve(answer)) as c:
            self.assertEqual(c.api_versions(), {1: (4, 18)})

    def test_a_closed_connection_is_an_error(self):
        with wire.Connection(self.serve(lambda _: b"\0\0")) as c:
            with self.assertRaises(ConnectionError):
                c.api_versions()


class Suites(unittest.TestCase):
    def run_suite(self, *bodies):
        def make(tests):
            for n, (needed, body) in enumerate(bodies):
                tests.test(f"test {n}", needed)(body)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = suite.main({"a": make}, [])
        return status, out.getvalue()

    def fail(self):
        suite.equal("a number", 1, 2)

    def test_all_well(self):
        status, out = self.run_suite((False, lambda: None), (True, lambda: "a detail"))
        self.assertEqual((status, out.split("\n")[-2]), (0, "2 passed, 0 failed"))
        self.assertIn("a detail", out)

    def test_the_rest_goes_on_after_a_failure(self):
        status, out = self.run_suite((False, self.fail), (False, lambda: None))
        self.assertEqual((status, out.split("\n")[-2]), (1, "1 passed, 1 failed"))
        self.assertIn("a number: got 1, wanted 2", out)

    def test_nothing_that_needs_a_failed_one_passes(self):
        status, out = self.run_suite((True, self.fail), (False, lambda: None))
        self.assertEqual((status, out.split("\n")[-2]), (1, "0 passed, 2 failed"))

    def test_no_test_at_all_is_no_success(self):
        self.assertEqual(self.run_suite()[0], 1)

    def test_an_unknown_name_is_an_error(self):
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(suite.main({"a": lambda tests: None}, ["b"]), 2)


class Counts(unittest.TestCase):
    def count(self, result, out):
        return meson_results.cases({"result": result, "stdout": out})

    def test_programs_that_count(self):
        self.assertEqual(self.count("OK", "All tests passed (9 assertions in 4 test cases)"),
                         (4, 0))
        self.assertEqual(self.count("FAIL", "test cases: 5 | 4 passed | 1 failed\n"), (4, 1))
        self.assertEqual(self.count("FAIL", "test cases: 1 | 1 failed\n"), (0, 1))
        self.assertEqual(self.count("OK", "Ran 7 tests in 0.1s\n\nOK"), (7, 0))
        self.assertEqual(self.count("FAIL", "Ran 7 tests in 0.1s\n\nFAILED (failures=1, errors=2)"),
                         (4, 3))

    def test_programs_that_do_not(self):
        self.assertEqual(self.count("OK", ""), (1, 0))
        self.assertEqual(self.count("FAIL", ""), (0, 1))
        self.assertEqual(self.count("TIMEOUT", "world 17"), (0, 1))

    def test_a_crash_after_the_count_is_a_failure(self):
        self.assertEqual(self.count("FAIL", "All tests passed (1 assertion in 1 test case)"),
                         (1, 1))


class DumpOutput(unittest.TestCase):
    def test_gaps_are_legal_only_where_they_are(self):
        head = "Non-consecutive offsets in /d/%s/00000000000000000000.log"
        gap = "  3 is followed by 5"
        self.assertEqual(storage_oracle.without_gaps([head % "compacted-0", gap, ""]), [])
        self.assertEqual(storage_oracle.without_gaps([head % "a-0", "  -1 is followed by 5"]), [])
        self.assertEqual(len(storage_oracle.without_gaps([head % "a-0", gap])), 1)
        self.assertEqual(storage_oracle.without_gaps(["anything else"]), ["anything else"])


class ClientPlan(unittest.TestCase):
    def test_records_that_differ_are_seen(self):
        as_read = [[i, *r] for i, r in enumerate(plan.PRODUCED)]
        plan.compare("records", as_read, plan.PRODUCED)
        for field, other in ((0, 7), (1, 1), (2, "eA=="), (3, None), (4, [["h", None]])):
            changed = [list(r) for r in as_read]
            changed[5][field] = other
            with self.assertRaises(AssertionError):
                plan.compare("records", changed, plan.PRODUCED)
        with self.assertRaises(AssertionError):
            plan.compare("records", as_read[:-1], plan.PRODUCED)

    def test_an_empty_field_is_not_a_null_one(self):
        with self.assertRaises(AssertionError):
            plan.compare("r", [[0, 1, "", "", []]], [[1, None, "", []]])

    def test_errors_and_successes_are_told_apart(self):
        failed = {"error": 3, "name": "Unknown", "message": None}
        plan.is_error(3)(failed)
        plan.is_error(5, "Unknown")(failed)
        plan.is_ok()({"ok": None})
        for check, answer in ((plan.is_error(4, "Other"), failed), (plan.is_ok(), failed),
                              (plan.is_error(3), {"ok": None}), (plan.is_ok_or(84), failed)):
            with self.assertRaises(AssertionError):
                check(answer)

    def test_waiting_counts_neither_way(self):
        tests = suite.Suite("x")

        def body():
            raise suite.Waiting("groups")
        tests.test("waits")(body)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            tests.run()
        tests.clean()
        self.assertEqual((tests.passed, tests.failed), (0, 0))
        self.assertIn("waits  x: waits", out.getvalue())

    def test_only_what_stands_between_the_marks_is_written(self):
        def page(one, other):
            return f"a\n<!-- x: begin -->\n{one}\n<!-- x: end -->\nb\n" \
                   f"<!-- y: begin -->\n{other}\n<!-- y: end -->\n"
        self.assertEqual(table.between(page("old", "old"), ["new"], "y"), page("old", "new"))
        with self.assertRaises(AssertionError):
            table.between(page("old", "old"), ["new"], "z")


class Groups(unittest.TestCase):
    """The judge of groups: what members tell is wrong in each way that it should see."""

    def group(self, *held):
        g = object.__new__(members.Group)
        g.name, g.partitions, g.news = "g", {0, 1, 2, 3}, threading.Condition()
        g.ends, g.safe, g.excused = 2, 0, set()
        g.all = []
        for partitions in held:
            m = object.__new__(members.Member)
            m.held, m.moves, m.read, m.committed, m.ended = set(partitions), 1, [], {}, False
            m.name, m.failures, m.said = "m", [], lambda: "m"
            m.read = [(p, o) for p in partitions for o in range(2)]
            g.all.append(m)
        g.live = list(g.all)
        g.await_committed = lambda: None
        return g

    def test_one_owner_for_each_partition_and_fair_shares(self):
        for held, right in (([(0, 1), (2, 3)], True), ([(0, 1, 2, 3), ()], False),
                            ([(0, 1), (1, 2)], False), ([(0, 1), (2,)], False),
                            ([(0, 1), (1, 2, 3)], False), ([(0, 2), (1,), (3,)], True)):
            self.assertEqual(self.group(*held).is_shared(), right, held)

    def test_a_record_is_read_once(self):
        g = self.group((0, 1), (2, 3))
        g.await_read()
        g.all[1].read.append((0, 1))
        with self.assertRaisesRegex(AssertionError, "read twice"):
            g.await_read()
        g.excused = {(0, 1)}
        g.await_read()
        g.all[1].read.append((0, 7))
        with self.assertRaisesRegex(AssertionError, "never written"):
            g.await_read()

    def test_a_record_that_is_missing_is_waited_for(self):
        g = self.group((0, 1), (2, 3))
        g.all[0].read.remove((1, 0))
        with self.assertRaisesRegex(AssertionError, "in vain"):
            g.await_news("all", g.have_read, 0.05)
        g.all[0].ended = True
        with self.assertRaisesRegex(AssertionError, "has ended"):
            g.await_news("all", g.have_read, 5)

    def test_only_what_was_not_committed_is_excused(self):
        g = self.group((0, 1), (2, 3))
        g.safe = 1
        g.all[0].committed = {0: 2, 1: 1}
        g.excuse()
        self.assertEqual(g.excused, {(1, 1), (2, 1), (3, 1)})

    def test_what_a_member_tells(self):
        g = self.group(())
        m = g.all[0]
        for told in ({"event": "holds", "values": [1, 2]}, {"event": "holds", "values": [2]},
                     {"event": "read", "values": [[2, 0], [2, 1]]},
                     {"event": "committed", "values": [[2, 2]]},
                     {"event": "failed", "values": ["x"]}, {"step": "member", "ok": {"read": 2}}):
            m._take(told)
        self.assertEqual((m.held, m.moves, m.read, m.committed, m.failures, m.answer["ok"]),
                         ({2}, 3, [(2, 0), (2, 1)], {2: 2}, ["x"], {"read": 2}))


if __name__ == "__main__":
    unittest.main()
