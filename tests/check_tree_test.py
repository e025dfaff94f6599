#!/usr/bin/env python3
"""Each rule of tools/check_tree.py finds a breach planted for it, and lets the right form pass."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
from check_tree import check


def breaches(name, source):
    if name.endswith(".h"):
        source = "#pragma once\n" + source
    return [why for _, why in check(name, source)]


class Rules(unittest.TestCase):
    def caught(self, name, source, word):
        found = breaches(name, source)
        self.assertTrue(any(word in why for why in found), f"{name}: {found}")

    def passes(self, name, source):
        self.assertEqual(breaches(name, source), [])

    def test_layers(self):
        self.caught("protocol/base/a.h", '#include "protocol/wire.h"\n', "may not include")
        self.caught("protocol/a.h", '#include "storage/log.h"\n', "may not include")
        self.caught("storage/a.h", '#include "mirror/machine.h"\n', "may not include")
        self.caught("mirror/a.cc", '#include "storage/log.h"\n', "may not include")
        self.caught("mirror/a.cc", '#include "broker/shard.h"\n', "may not include")
        self.caught("broker/a.cc", '#include "tools/cli.h"\n', "may not include")
        self.caught("tools/a.cc", '#include "tests/lib/x.h"\n', "may not include")
        self.passes("tools/a.cc", '#include "mirror/machine.h"\n#include "broker/shard.h"\n')
        self.passes("broker/a.cc", '#include "storage/log.h"\n#include "protocol/base/ids.h"\n')

    def test_includes_are_absolute(self):
        self.caught("storage/a.cc", '#include "log.h"\n', "root of the tree")

    def test_pure_files(self):
        for header in ("<chrono>", "<thread>", "<mutex>", "<fstream>", "<boost/asio.hpp>"):
            self.caught("protocol/batch.cc", f"#include {header}\n", "is pure")
            self.caught("mirror/machine.h", f"#include {header}\n", "is pure")
            self.caught("mirror/reconcile.cc", f"#include {header}\n", "is pure")
            self.passes("protocol/base/clock.h", f"#include {header}\n")
            self.passes("mirror/fetcher.cc", f"#include {header}\n")

    def test_owned_libraries(self):
        for header, owner in (("<rocksdb/db.h>", "storage/metadata/rocksdb_store.cc"),
                              ("<zstd.h>", "protocol/compress.cc"),
                              ("<lz4frame.h>", "protocol/compress.cc"),
                              ("<zlib.h>", "protocol/compress.cc"),
                              ("<snappy.h>", "protocol/compress.cc"),
                              ("<isa-l/crc.h>", "protocol/crc32c.cc"),
                              ('"storage/metadata/r.pb.h"', "storage/metadata/r.cc")):
            self.caught("broker/a.cc", f"#include {header}\n", "belongs to")
            self.passes(owner, f"#include {header}\n")

    def test_length_of_files(self):
        self.caught("broker/a.cc", "\n" * 501, "longer than 500 lines")
        self.passes("broker/a.cc", "\n" * 500)
        self.caught("tests/lib/a.py", "\n" * 701, "longer than 700 lines")

    def test_length_of_functions(self):
        body = "  x();\n" * 69
        self.caught("broker/a.cc", "void f(int a) {\n" + body + "}\n", "a function of 71")
        self.caught("broker/a.cc", "void f(int a,\n       int b) {\n" + body + "}\n", "of 72")
        self.caught("broker/a.cc", "int g(int);\nvoid f(int a) {\n" + body + "}\n", "of 71")
        self.passes("broker/a.cc", "void f(int a) {\n" + body[:-7] + "}\n")
        self.passes("broker/a.cc", "struct S {\n" + "  int a;\n" * 90 + "};\n")
        self.caught("tests/a.py", "def f():\n" + "    pass\n" * 70, "a function of 71")

    def test_columns(self):
        self.caught("broker/a.cc", "int a" + " " * 96 + ";\n", "longer than 100 columns")
        self.passes("docs/a.md", "a" * 200 + "\n")

    def test_unfinished_work(self):
        for word in ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"):
            self.caught("broker/a.cc", f"// {word}: later\n", "unfinished")
            self.caught("docs/a.md", f"{word}\n", "unfinished")

    def test_names_of_files(self):
        for name in ("util", "string_utils", "log_manager", "log_impl", "common", "test_helper"):
            self.caught(f"broker/{name}.cc", "", "does not say")
        self.passes("broker/commonality.cc", "")

    def test_awaits(self):
        self.caught("broker/a.cc", "  co_await on(s, [a] { f(a); });\n", "co_await")
        self.caught("broker/a.cc", "  auto r = co_await f(Options{1, 2});\n", "co_await")
        self.passes("broker/a.cc", "  if (co_await f(a[1], \"{\")) {\n  }\n")
        self.passes("broker/a.cc", "  co_await f();\n  auto g = [a] { return a; };\n")
        self.passes("broker/a.cc", "  // co_await {\n")

    def test_headers(self):
        self.assertEqual([why for _, why in check("broker/a.h", "int a;\n")],
                         ["a header without #pragma once"])


if __name__ == "__main__":
    unittest.main()
