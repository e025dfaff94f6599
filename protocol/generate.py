#!/usr/bin/env python3
"""Turns message schemas (*.msg) into C++ structs and their one wire layout.

    generate.py NAME.msg NAME.gen.h NAME.gen.cc     one message
    generate.py --all all.gen.h NAME.msg...         one header that lists them all, for tables

The language is described in protocol/README.md. In short: a head line
    api 1 fetch  versions 4-18  flexible 12+        (or `mirror KEY ...`, or `record TYPE ...`)
then the sections `request` and `response` (of a record: `key` and `value`), and in them one field
a line:
    name type [= default] [versions] [null versions] [tag N]
Fields that are indented below a struct, or below an array of structs, belong to it.
Every mistake is reported as FILE:LINE: what is wrong.
"""
import re
import sys
from dataclasses import dataclass, field

NUMBERS = {"bool": ("bool", 1), "i8": ("std::int8_t", 1), "i16": ("std::int16_t", 2),
           "u16": ("std::uint16_t", 2), "i32": ("std::int32_t", 4), "u32": ("std::uint32_t", 4),
           "i64": ("std::int64_t", 8), "f64": ("double", 8), "uuid": ("base::Uuid", 16)}
OTHERS = {"string": "std::string", "bytes": "base::Bytes", "records": "Records"}
SECTIONS = {"api": ["request", "response"], "mirror": ["request", "response"],
            "record": ["key", "value"]}
HEAD = re.compile(r"(api|mirror|record) +(\d+) +([a-z]\w*) +versions +(\d+)-(\d+)"
                  r"(?: +flexible +(\d+)\+)?")
FIELD = re.compile(r"(?P<indent> *)(?P<name>\w+) +(?P<type>\[?\w+\]?\??)(?: *= *(?P<default>\S+))?"
                   r"(?: +(?P<versions>\d+(?:-\d+|\+)?))?(?: +null +(?P<null>\d+\+))?"
                   r"(?: +tag +(?P<tag>\d+))?")
# What a field must not be called: it would not compile, or hide what each message has.
RESERVED = set("""
    alignas and auto bool break case char class const continue default delete do double else enum
    explicit export extern false float for friend goto if inline int long mutable namespace new not
    operator or private protected public register return short signed sizeof static struct switch
    template this throw true try typedef union unsigned using virtual void volatile while xor
    """.split())
STATICS = {"api_key", "record_type", "min_version", "max_version", "flexible_since"}
NEVER = 32767


class SchemaError(Exception):
    def __init__(self, path, number, why):
        super().__init__(f"{path}:{number}: {why}")


@dataclass
class Field:
    name: str
    type: str
    default: str      # "" when there is none
    lo: int           # versions that have the field, within the message's and the parent's
    hi: int
    null_from: int    # the first version that knows null; meaningless unless nullable
    tag: int          # -1: not tagged
    number: int       # line in the schema
    children: list = field(default_factory=list)

    @property
    def nullable(self):
        return self.type.endswith("?")

    @property
    def is_array(self):
        return self.type.startswith("[")

    @property
    def element(self):
        return self.type.rstrip("?").strip("[]")

    @property
    def is_struct(self):
        return self.element not in NUMBERS and self.element not in OTHERS

    @property
    def struct_name(self):
        return camel(self.element if self.is_array else self.name)

    @property
    def cpp_element(self):
        if self.element in NUMBERS:
            return NUMBERS[self.element][0]
        return OTHERS.get(self.element) or self.struct_name

    @property
    def cpp_type(self):
        t = f"std::vector<{self.cpp_element}>" if self.is_array else self.cpp_element
        # Records carry their own null.
        return f"std::optional<{t}>" if self.nullable and self.element != "records" else t

    @property
    def cpp_default(self):
        """The initialiser: Kafka's default. A nullable field starts empty unless it says null."""
        if self.default and self.default != "null":
            return self.default
        if self.nullable and self.default != "null" and self.element != "records":
            return f"{self.cpp_type[len('std::optional<'):-1]}{{}}"
        return "{}"


@dataclass
class Message:
    path: str
    kind: str
    key: int
    name: str
    lo: int
    hi: int
    flexible: int
    sections: dict = field(default_factory=dict)

    def is_flexible(self, section):
        return NEVER if section == "key" else self.flexible

    def struct(self, section):
        return camel(self.name) + section.capitalize()


def camel(name):
    return "".join(w.capitalize() for w in name.split("_"))


# --- reading -------------------------------------------------------------------------------------

class Parser:
    def __init__(self, path, text):
        self.path, self.message, self.number = path, None, 0
        self.section = None
        # What the next line may stand in, from outside in: (indent, fields, lo, hi, owner).
        self.open = []
        for self.number, raw in enumerate(text.splitlines(), 1):
            line = raw.split("#")[0].rstrip()
            if line:
                self.line(line)
        if self.message is None:
            self.fail("there is no head line (api, mirror or record)")
        self.close(-1)
        for section in SECTIONS[self.message.kind]:
            if section not in self.message.sections and section != "key":
                self.fail(f"section {section} is missing")

    def fail(self, why, number=None):
        raise SchemaError(self.path, number or self.number, why)

    def line(self, line):
        if "\t" in line:
            self.fail("a tab; indent with spaces")
        if self.message is None:
            return self.head(line)
        if line in SECTIONS[self.message.kind]:
            self.close(-1)
            if line in self.message.sections:
                self.fail(f"section {line} stands twice")
            self.section = self.message.sections[line] = []
            self.open = [(0, self.section, self.message.lo, self.message.hi, None)]
            self.flexible = self.message.is_flexible(line)
            return None
        m = FIELD.fullmatch(line)
        if not m:
            self.fail(f"not understood: {line.strip()}")
        if self.section is None:
            self.fail(f"a field outside of {' and '.join(SECTIONS[self.message.kind])}")
        return self.field(m)

    def head(self, line):
        m = HEAD.fullmatch(line)
        if not m:
            self.fail(f"expected `api KEY NAME versions A-B [flexible C+]`, not: {line.strip()}")
        lo, hi, flexible = int(m[4]), int(m[5]), int(m[6] or NEVER)
        if lo > hi:
            self.fail(f"bad version range {lo}-{hi}")
        if m[6] and flexible > hi:
            self.fail(f"flexible {flexible}+ is above the last version {hi}")
        self.message = Message(self.path, m[1], int(m[2]), m[3], lo, hi, flexible)

    def close(self, indent):
        """Ends the structs that are indented deeper than or as deep as `indent`."""
        while len(self.open) > 1 and self.open[-1][0] > indent:
            owner = self.open.pop()[4]
            if owner is not None and owner.is_struct and not owner.children:
                self.fail(f"{owner.name} has no fields; is {owner.element} a type?", owner.number)

    def field(self, m):
        indent = len(m["indent"])
        if indent == 0 or indent % 2:
            self.fail("fields are indented by a multiple of two spaces")
        self.close(indent - 1)
        above, into, lo, hi, owner = self.open[-1]
        if indent > above + 2:
            self.fail("indented too deep")
        if owner is not None and not owner.is_struct:
            self.fail(f"{owner.name} is a {owner.type} and can have no fields below it")
        lo, hi = self.versions(m["versions"], lo, hi)
        f = Field(m["name"], m["type"], m["default"] or "", lo, hi, lo,
                  int(m["tag"]) if m["tag"] else -1, self.number)
        if m["null"]:
            f.null_from = int(m["null"][:-1])
        self.check(f, m["null"], into, owner)
        into.append(f)
        self.open.append((indent, f.children, lo, hi, f))

    def versions(self, text, lo, hi):
        """The versions of a field, which may not reach beyond those of what it stands in."""
        if text is None:
            return lo, hi
        first, _, last = text.rstrip("+").partition("-")
        first = int(first)
        last = hi if text.endswith("+") else int(last or first)
        if first > last or first < lo or last > hi:
            self.fail(f"bad version range {text}: {lo}-{hi} is what there is")
        return first, last

    def check(self, f, null, into, owner):
        if f.name in RESERVED or not re.fullmatch(r"[a-z][a-z0-9_]*", f.name):
            self.fail(f"{f.name} can be no field's name")
        if owner is None and f.name in STATICS:
            self.fail(f"{f.name} is the name of something that every message has")
        if any(x.name == f.name for x in into):
            self.fail(f"{f.name} stands twice")
        if f.is_array != f.type.rstrip("?").endswith("]"):
            self.fail(f"unknown type {f.type}")
        if f.is_struct:
            if not f.is_array and f.element != "struct":
                self.fail(f"unknown type {f.element}")
            if any(x.is_struct and x.struct_name == f.struct_name for x in into):
                self.fail(f"two structs would be called {f.struct_name}")
        if f.is_array and f.element in ("bool", "records", "struct"):
            self.fail(f"an array of {f.element} is not supported")
        if f.nullable and not f.is_array and f.element in NUMBERS:
            self.fail(f"a nullable {f.element} is not supported")
        if null and not f.nullable:
            self.fail(f"{f.name} is not nullable (its type has no ?)")
        if null and not f.lo <= f.null_from <= f.hi:
            self.fail(f"null {null} is outside of the field's versions {f.lo}-{f.hi}")
        self.check_default(f)
        if f.tag >= 0:
            if f.lo < self.flexible:
                self.fail("a tagged field before the first flexible version")
            if any(x.tag == f.tag for x in into):
                self.fail(f"tag {f.tag} stands twice")
            if f.element in ("bytes", "records"):
                self.fail(f"{f.element} cannot be tagged")
            # Kafka's own are of these kinds where it takes an unquoted null for no default at all.
            if f.nullable and f.default != "null" and not (f.is_array or f.is_struct):
                self.fail("a nullable tagged field needs the default null")

    def check_default(self, f):
        if not f.default:
            return
        if f.default == "null":
            if not f.nullable or f.element == "records":
                self.fail(f"the default of {f.name} is null, but its type is not nullable")
        elif f.is_array or f.element not in NUMBERS or f.element == "uuid":
            self.fail(f"a {f.type} can have no default but null")
        elif f.element == "bool":
            if f.default not in ("true", "false"):
                self.fail(f"{f.default} is no bool")
        elif f.element == "f64":
            if not re.fullmatch(r"-?\d+(\.\d+)?", f.default):
                self.fail(f"{f.default} is no number")
        else:
            self.check_integer(f)

    def check_integer(self, f):
        if not re.fullmatch(r"-?(\d+|0x[0-9a-f]+)", f.default):
            self.fail(f"{f.default} is no integer")
        bits, value = int(f.element[1:]), int(f.default, 0)
        low, high = (0, 2**bits) if f.element[0] == "u" else (-2**(bits - 1), 2**(bits - 1))
        if not low <= value < high:
            self.fail(f"{f.default} does not fit into {f.element}")


def parse(path, text=None):
    if text is None:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    return Parser(path, text).message


# --- writing -------------------------------------------------------------------------------------

def declare(name, fields, out, path="", pad="", head=()):
    """Appends a struct to `out`. std::optional asks how its type is made before the struct around
    it is complete, when no initialiser in it counts yet; so a nullable struct is declared ahead:
    the structs for that are what is returned."""
    path, ahead = path + name, []
    out.append(f"{pad}struct {name} {{")
    out += [f"{pad}  {line}" for line in head]
    for f in fields:
        if f.children and f.nullable and not f.is_array:
            lines = []
            ahead += declare(path + f.struct_name, f.children, lines) + lines
            out.append(f"{pad}  using {f.struct_name} = {path}{f.struct_name};")
        elif f.children:
            ahead += declare(f.struct_name, f.children, out, path, pad + "  ")
    for f in fields:
        start = f.cpp_default
        out.append(f"{pad}  {f.cpp_type} {f.name}{'{}' if start == '{}' else ' = ' + start};")
    if any(f.element == "bytes" for f in fields):
        terms = [f"same({f.name}, o.{f.name})" if f.element == "bytes" and not f.is_array
                 else f"{f.name} == o.{f.name}" for f in fields]
        out.append(f"{pad}  bool operator==(const {name}& o) const {{")
        out.append(f"{pad}    return {' && '.join(terms)};")
        out.append(f"{pad}  }}")
    else:
        out.append(f"{pad}  bool operator==(const {name}&) const = default;")
    out.append(f"{pad}}};")
    return ahead


def guard(lo, hi, message):
    """The condition under which the version `v`, known to be valid, is within lo..hi."""
    terms = [f"v >= {lo}"] if lo > message.lo else []
    terms += [f"v <= {hi}"] if hi < message.hi else []
    return " && ".join(terms)


def least(f, name):
    """An expression: the least that an element of the type takes on the wire."""
    if f.element in NUMBERS:
        return str(NUMBERS[f.element][1])
    if f.is_struct:
        return f"least(std::type_identity<{name}::{f.struct_name}>{{}}, v)"
    return "least_text(flexible)" if f.element == "string" else "least_length(flexible)"


def least_function(name, fields, message, flexible, out):
    out.append(f"[[maybe_unused]] std::size_t least(std::type_identity<{name}>, "
               f"[[maybe_unused]] std::int16_t v) {{")
    out.append(f"  [[maybe_unused]] const bool flexible = v >= {flexible};")
    out.append("  std::size_t n = flexible ? 1 : 0;")
    for f in fields:
        if f.tag >= 0:
            continue
        size = ("least_length(flexible)" if f.is_array else
                "1" if f.is_struct and f.nullable else least(f, name))
        g = guard(f.lo, f.hi, message)
        out.append(f"  {f'if ({g}) ' if g else ''}n += {size};")
    out += ["  return n;", "}"]


def body(f, value, name, message):
    """The statement that reads or writes the field; `value` is the expression that holds it."""
    null = f", {f'v >= {f.null_from}' if f.null_from > f.lo else 'true'}" if f.nullable else ""
    if f.is_array:
        one = ("layout(io, e, v)" if f.is_struct else "io.text(e)" if f.element == "string" else
               "io.blob(e)" if f.element == "bytes" else "io.num(e)")
        return f"io.array({value}{null}, {least(f, name)}, [&](auto& e) {{ {one}; }});"
    if f.is_struct:
        if f.nullable and f.tag >= 0:
            return f"tagged_struct(io, {value}, [&](auto&& e) {{ layout(io, e, v); }});"
        if f.nullable:
            return f"io.nullable({value}{null}, [&](auto&& e) {{ layout(io, e, v); }});"
        return f"layout(io, {value}, v);"
    if f.name == "throttle_time_ms":
        return f"io.throttle_time({value});"
    kind = {"string": "text", "bytes": "blob", "records": "records"}.get(f.element, "num")
    if kind == "records" and not f.nullable:
        null = ", false"
    return f"io.{kind}({value}{null});"


def layout(name, fields, message, flexible, out):
    for f in fields:
        if f.children:
            layout(f"{name}::{f.struct_name}", f.children, message, flexible, out)
    least_function(name, fields, message, flexible, out)
    out.append("template <class Io>")
    out.append(f"void layout(Io& io, typename Io::template Ref<{name}> m, "
               f"[[maybe_unused]] std::int16_t v) {{")
    out.append("  [[maybe_unused]] const bool flexible = io.flexible();")
    tags = []
    for f in fields:
        g = guard(f.lo, f.hi, message)
        if f.tag < 0:
            out.append(f"  {f'if ({g}) ' if g else ''}{body(f, 'm.' + f.name, name, message)}")
        else:
            default = f.cpp_default
            if f.nullable and f.default != "null":
                default = f"typename std::remove_cvref_t<decltype(m.{f.name})>::value_type{{}}"
            tags.append((f.tag, f"tag({f.tag}, {g or 'true'}, m.{f.name}, {default}, [&](auto& t) "
                                f"{{ {body(f, 't', name, message)} }})"))
    separator = ",\n          "
    out.append(f"  io.tags({separator.join(text for _, text in sorted(tags))});")
    out += ["}", ""]


def statics(message, section):
    key = f"static constexpr ::protocol::ApiKey api_key = ::protocol::ApiKey::{message.name};"
    if message.kind == "record":
        key = f"static constexpr std::int16_t record_type = {message.key};"
    return [key, f"static constexpr std::int16_t min_version = {message.lo}, "
                 f"max_version = {message.hi}, flexible_since = {message.is_flexible(section)};"]


def header(message):
    source = message.path.rsplit("/", 1)[-1]
    out = [f"// Made by protocol/generate.py from {source}. Do not edit.", "#pragma once",
           "#include <cstdint>", "#include <optional>", "#include <string>", "#include <vector>",
           "", '#include "protocol/api_table.h"', '#include "protocol/wire.h"', "",
           "namespace protocol {", ""]
    if message.kind != "record":
        offset = " + mirror_api_key_offset" if message.kind == "mirror" else ""
        value = f"static_cast<int>(ApiKey::{message.name})"
        out += [f"static_assert({value} == {message.key}{offset});", ""]
    for section, fields in message.sections.items():
        name = message.struct(section)
        lines = []
        out += declare(name, fields, lines, head=statics(message, section)) + lines
        out += [f"bool decode(base::Bytes in, std::int16_t version, {name}& out);",
                f"void encode(Writer& out, std::int16_t version, const {name}& m);", ""]
    return "\n".join(out + ["}  // namespace protocol", ""])


def has_tagged_struct(fields):
    return any((f.is_struct and not f.is_array and f.nullable and f.tag >= 0)
               or has_tagged_struct(f.children) for f in fields)


def source(message, header_path):
    include = f"protocol/messages/{header_path.rsplit('/', 1)[-1]}"
    out = [f"// Made by protocol/generate.py from {message.path.rsplit('/', 1)[-1]}. Do not edit.",
           f'#include "{include}"', "", "#include <type_traits>", "",
           '#include "protocol/base/check.h"']
    if any(has_tagged_struct(fields) for fields in message.sections.values()):
        out.append('#include "protocol/tagged_struct.h"')
    out += ["", "namespace protocol {", "namespace {", ""]
    ends = []
    # Bytes after a request are no fault: Kafka does not look at them, and librdkafka's request for
    # the metadata of all topics has three.
    for section, fields in message.sections.items():
        name = message.struct(section)
        layout(name, fields, message, message.is_flexible(section), out)
        known = f"version >= {name}::min_version && version <= {name}::max_version"
        flexible = f"version >= {name}::flexible_since"
        ends += [f"bool decode(base::Bytes in, std::int16_t version, {name}& out) {{",
                 f"  if (!({known})) return false;", f"  out = {name}{{}};",
                 f"  Reader io(in, {flexible});", "  layout(io, out, version);",
                 f"  return io.{'ok' if section == 'request' else 'finished'}();", "}", "",
                 f"void encode(Writer& out, std::int16_t version, const {name}& m) {{",
                 f"  CHECK({known});", f"  out.set_flexible({flexible});",
                 "  layout(out, m, version);", "}", ""]
    return "\n".join(out + ["}  // namespace", ""] + ends + ["}  // namespace protocol", ""])


def listing(messages):
    """A header with all messages; PROTOCOL_API_MESSAGES(X) is X(FetchRequest) X(FetchResponse) and
    so on, for tables over all of them."""
    out = ["// Made by protocol/generate.py from all schemas. Do not edit.", "#pragma once"]
    out += [f'#include "protocol/messages/{m.name}.gen.h"' for m in messages]
    for macro, kinds in (("API", ("api", "mirror")), ("RECORD", ("record",))):
        structs = [m.struct(s) for m in messages if m.kind in kinds for s in m.sections]
        out += ["", f"#define PROTOCOL_{macro}_MESSAGES(X) \\"]
        out += [f"  X({s}){' ' + chr(92) if s != structs[-1] else ''}" for s in structs]
    return "\n".join(out + [""])


def write(path, text):
    """Leaves a file that would not change alone, so that nothing is compiled again for it."""
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main(arguments):
    if len(arguments) > 2 and arguments[0] == "--all":
        write(arguments[1], listing([parse(path) for path in arguments[2:]]))
    elif len(arguments) == 3:
        message = parse(arguments[0])
        write(arguments[1], header(message))
        write(arguments[2], source(message, arguments[1]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except SchemaError as error:
        sys.exit(str(error))
