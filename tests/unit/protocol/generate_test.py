#!/usr/bin/env python3
"""What the message generator accepts, refuses, and says about it."""
import os
import subprocess
import sys
import tempfile
import unittest

GENERATOR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "protocol",
                         "generate.py")
sys.path.insert(0, os.path.dirname(GENERATOR))
import generate  # noqa: E402

HEAD = "api 7 thing  versions 1-5  flexible 3+\n"


def schema(request, response="  error_code  i16\n", head=HEAD):
    return f"{head}request\n{request}response\n{response}"


class Refused(unittest.TestCase):
    def refused(self, text, line, words):
        with self.assertRaises(generate.SchemaError) as caught:
            generate.parse("x.msg", text)
        message = str(caught.exception)
        self.assertTrue(message.startswith(f"x.msg:{line}: "), message)
        self.assertIn(words, message)

    def field(self, text, words, line=3):
        self.refused(schema(text), line, words)

    def test_heads(self):
        self.refused("", 0, "no head line")
        self.refused("# only a comment\n", 1, "no head line")
        self.refused("request\n", 1, "expected `api KEY NAME versions A-B")
        self.refused("api x thing versions 1-5\n", 1, "expected `api")
        self.refused("api 7 thing versions 5-1\n", 1, "bad version range 5-1")
        self.refused("api 7 thing versions 1-5 flexible 6+\n", 1, "flexible 6+ is above")
        self.refused("api 7 thing versions 1-5 rigid\n", 1, "expected `api")

    def test_sections(self):
        self.refused(HEAD + "  a  i8\n", 2, "a field outside of request and response")
        self.refused(HEAD + "request\n  a  i8\nrequest\n", 4, "section request stands twice")
        self.refused(HEAD + "request\n  a  i8\n", 3, "section response is missing")
        self.refused("record 1 thing versions 0-0\nkey\n  a  i8\n", 3, "section value is missing")
        self.refused(HEAD + "key\n", 2, "not understood: key")

    def test_unknown_words(self):
        self.field("  a  int32\n", "unknown type int32")
        self.field("  a  [i32\n", "unknown type [i32")
        self.field("  a  i32 sometimes\n", "not understood: a  i32 sometimes")
        self.field("  a\n", "not understood: a")
        self.field("  a  [thing]\n", "a has no fields; is thing a type?")
        self.field("  a  struct\n", "a has no fields")
        self.field("  a  [int32]\n  b  i8\n", "a has no fields; is int32 a type?")

    def test_indentation(self):
        self.field("a  i8\n", "indented by a multiple of two")
        self.field("   a  i8\n", "indented by a multiple of two")
        self.field("\ta  i8\n", "a tab")
        self.field("    a  i8\n", "indented too deep")
        self.field("  a  i8\n    b  i8\n", "a is a i8 and can have no fields below it", 4)
        self.field("  a  [i8]\n    b  i8\n", "can have no fields below it", 4)

    def test_names(self):
        self.field("  a  i8\n  a  i16\n", "a stands twice", 4)
        self.field("  class  i8\n", "class can be no field's name")
        self.field("  A  i8\n", "A can be no field's name")
        self.field("  api_key  i16\n", "api_key is the name of something that every message has")
        self.field("  a  [x]\n    n  i8\n  b  [x]\n    n  i8\n", "two structs would be called X", 5)
        # Below another struct both are allowed.
        generate.parse("x.msg", schema("  a  [x]\n    api_key  i8\n  b  [y]\n    api_key  i8\n"))

    def test_versions(self):
        self.field("  a  i8  0+\n", "bad version range 0+: 1-5 is what there is")
        self.field("  a  i8  2-6\n", "bad version range 2-6")
        self.field("  a  i8  4-2\n", "bad version range 4-2")
        self.field("  a  i8  6\n", "bad version range 6")
        self.field("  a  [x]  2-4\n    b  i8  5+\n", "bad version range 5+: 2-4", 4)

    def test_null(self):
        self.field("  a  string  null 2+\n", "a is not nullable")
        self.field("  a  string?  1-3  null 4+\n", "null 4+ is outside of the field's versions")
        self.field("  a  i32?\n", "a nullable i32 is not supported")

    def test_tags(self):
        self.field("  a  i8  tag 0\n", "a tagged field before the first flexible version")
        self.field("  a  i8  2+  tag 0\n", "a tagged field before the first flexible version")
        self.field("  a  i8  3+  tag 0\n  b  i8  3+  tag 0\n", "tag 0 stands twice", 4)
        self.field("  a  records  3+  tag 0\n", "records cannot be tagged")
        self.field("  a  string?  3+  tag 0\n", "needs the default null")
        self.refused("record 1 thing versions 0-0 flexible 0+\nkey\n  a i8 tag 0\nvalue\n  b i8\n",
                     3, "a tagged field before the first flexible version")

    def test_defaults(self):
        self.field("  a  i8 = 128\n", "128 does not fit into i8")
        self.field("  a  u16 = -1\n", "-1 does not fit into u16")
        self.field("  a  i32 = x\n", "x is no integer")
        self.field("  a  bool = 1\n", "1 is no bool")
        self.field("  a  string = null\n", "its type is not nullable")
        self.field("  a  string = x\n", "can have no default but null")
        self.field("  a  [i32] = 0\n", "can have no default but null")
        self.field("  a  f64 = much\n", "much is no number")

    def test_arrays(self):
        self.field("  a  [bool]\n", "an array of bool is not supported")
        self.field("  a  [records]\n", "an array of records is not supported")


class Made(unittest.TestCase):
    def test_versions_narrow_with_depth(self):
        m = generate.parse("x.msg", schema("  a  [x]  2-4\n    b  i8\n    c  i8  3+\n"))
        a = m.sections["request"][0]
        self.assertEqual((a.lo, a.hi), (2, 4))
        self.assertEqual([(c.lo, c.hi) for c in a.children], [(2, 4), (3, 4)])

    def test_keys_are_never_flexible(self):
        m = generate.parse("x.msg", "record 1 thing versions 0-0 flexible 0+\n"
                                    "key\n  a string\nvalue\n  b string\n")
        self.assertIn("flexible_since = 32767", generate.header(m))
        self.assertIn("flexible_since = 0", generate.header(m))

    def test_tags_are_written_in_ascending_order(self):
        m = generate.parse("x.msg", schema("  a  i8  3+  tag 1\n  b  i8  3+  tag 0\n"))
        source = generate.source(m, "x.gen.h")
        self.assertLess(source.index("m.b"), source.index("m.a"))

    def test_defaults_are_kafkas(self):
        m = generate.parse("x.msg", schema("  a  string?\n  b  string? = null\n  c  i32 = 0x10\n"
                                           "  d  [i8]?\n"))
        header = generate.header(m)
        self.assertIn("std::optional<std::string> a = std::string{};", header)
        self.assertIn("std::optional<std::string> b{};", header)
        self.assertIn("std::int32_t c = 0x10;", header)
        self.assertIn("std::optional<std::vector<std::int8_t>> d = std::vector<std::int8_t>{};",
                      header)

    def test_a_nullable_struct_is_complete_before_it_is_used(self):
        m = generate.parse("x.msg", schema("  a  [x]\n    b  struct? = null\n      c  i8\n"))
        header = generate.header(m)
        self.assertIn("    using B = ThingRequestXB;", header)
        self.assertLess(header.index("struct ThingRequestXB {"),
                        header.index("struct ThingRequest {"))

    def test_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            bad, good = os.path.join(folder, "bad.msg"), os.path.join(folder, "thing.msg")
            out = [os.path.join(folder, n) for n in ("thing.gen.h", "thing.gen.cc")]
            with open(bad, "w") as f:
                f.write(schema("  a  wat\n"))
            with open(good, "w") as f:
                f.write(schema("  a  i8\n"))
            run = subprocess.run([sys.executable, GENERATOR, bad, *out], capture_output=True,
                                 text=True)
            self.assertEqual(run.returncode, 1)
            self.assertEqual(run.stderr, f"{bad}:3: unknown type wat\n")
            self.assertFalse(os.path.exists(out[0]))
            subprocess.run([sys.executable, GENERATOR, good, *out], check=True)
            # What has not changed is not written again, or everything would be compiled again.
            os.utime(out[0], (1, 1))
            subprocess.run([sys.executable, GENERATOR, good, *out], check=True)
            self.assertEqual(os.stat(out[0]).st_mtime, 1)
            run = subprocess.run([sys.executable, GENERATOR], capture_output=True, text=True)
            self.assertEqual(run.returncode, 1)
            self.assertIn("generate.py NAME.msg", run.stderr)


if __name__ == "__main__":
    unittest.main()
