#!/usr/bin/env python3
"""Holds the source tree to its layering and to the rules that no compiler checks.

    check_tree.py ROOT        prints one line a breach; exit status 1 if there is any

Changing a table below changes the architecture: say why in docs/decisions.md.
"""
import ast
import re
import subprocess
import sys
from pathlib import Path

# A folder may include from itself and from what stands here. Lower never includes higher.
LAYERS = {
    "protocol/base": [],
    "protocol": ["protocol/base"],
    "storage": ["protocol", "protocol/base"],
    "mirror": ["protocol", "protocol/base"],
    "broker": ["protocol", "protocol/base", "storage", "mirror"],
    "tools": ["protocol", "protocol/base", "storage", "mirror", "broker"],
    "tests": ["protocol", "protocol/base", "storage", "mirror", "broker", "tools"],
}
# Files free of I/O, threads and clocks, so that a test can drive them through every order of
# events, and the headers that they may therefore not name.
IMPURE = (r"<boost/asio|<(thread|mutex|shared_mutex|condition_variable|future|chrono|fstream"
          r"|filesystem|unistd\.h|fcntl\.h|time\.h|ctime)>|<sys/")
PURE = [r"protocol/(?!base/).*", r"mirror/(machine|reconcile|group_(sync|offsets))\.(h|cc)",
        r"broker/groups/.*", r"broker/transactions/.*"]
# A library that one place alone may touch, so that it can be replaced there.
OWNED = {
    r"<rocksdb/": r"storage/metadata/.*",
    r"\.pb\.h[>\"]": r"storage/metadata/.*",
    r"<(zstd\.h|lz4.*|zlib\.h|snappy.*)>": r"protocol/compress\.cc",
    r"<(isa-l.*|crc\.h)>": r"protocol/crc32c\.cc",
    r"<re2/": r"mirror/topic_filter\.cc|tools/verify\.cc|broker/groups/consumer/topic_regex\.cc",
}
LINES_MAX = {".h": 500, ".cc": 500, ".py": 700, ".java": 700}
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100
# Names that say nothing about what a file holds.
EMPTY_NAMES = re.compile(r"(^|_)(utils?|helpers?|managers?|impl|common|misc)(_|$)")
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"][^>"]+[>"])', re.M)
LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"'
                     r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])*'", re.S)
SOURCES = {".h", ".cc", ".py", ".java"}
TEXTS = SOURCES | {".md", ".msg", ".proto", ".build", ".ini", ".txt", ".sh", ""}


def without_text(source):
    """The source with comments and literals blanked; every line and column stays where it was."""
    return LITERAL.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), source)


def line_of(source, at):
    return source.count("\n", 0, at) + 1


def layer_of(name):
    return "protocol/base" if name.startswith("protocol/base/") else name.split("/")[0]


def includes(name, source):
    layer = layer_of(name)
    for m in INCLUDE.finditer(source):
        what, line = m[1], line_of(source, m.start())
        if what[0] == '"':
            other = layer_of(what[1:])
            if other not in LAYERS:
                yield line, f"{what}: name the file from the root of the tree"
            elif other != layer and other not in LAYERS.get(layer, []):
                yield line, f"{layer} may not include from {other}"
        if any(re.fullmatch(p, name) for p in PURE) and re.search(IMPURE, what):
            yield line, f"{name} is pure and may not include {what}"
        for library, owner in OWNED.items():
            if re.search(library, what) and layer != "tests" and not re.fullmatch(owner, name):
                yield line, f"{what} belongs to {owner}"


def awaits_with_braces(code):
    """g++ 12 destroys a lambda's captures, or an aggregate, twice when it is made there."""
    for m in re.finditer(r"\bco_await\b", code):
        depth = 0
        for at in range(m.end(), len(code)):
            c = code[at]
            if c in "([":
                depth += 1
            elif c in ")]":
                depth -= 1
            if depth < 0 or (c == ";" and depth == 0):
                break
            if c == "{":
                yield (line_of(code, m.start()), "a '{' inside a co_await expression: name the "
                       "lambda or aggregate first (some compilers destroy it twice)")
                break


def long_cpp_functions(code):
    """Functions at column 0, which is where clang-format puts them inside namespaces."""
    lines, start = code.split("\n"), None
    for number, line in enumerate(lines, 1):
        if re.match(r"[A-Za-z_~\[]", line) and not re.match(r"(namespace|extern)\b", line):
            if start is None:
                start = number
        if line.startswith("}") or (start is not None and line.rstrip().endswith(";")
                                    and number == start):
            if start is not None and line.rstrip() == "}":
                head = " ".join(lines[start - 1:start + 3])
                length = number - start + 1
                if "(" in head.split("{")[0] and length > FUNCTION_LINES_MAX:
                    yield start, f"a function of {length} lines (at most {FUNCTION_LINES_MAX})"
            start = None


def long_python_functions(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                yield node.lineno, f"a function of {length} lines (at most {FUNCTION_LINES_MAX})"


def check(name, source):
    """Yields (line, breach) for one file of the tree."""
    path = Path(name)
    for number, line in enumerate(source.split("\n"), 1):
        if UNFINISHED.search(line):
            yield number, "unfinished work is written down elsewhere than in the tree"
        if path.suffix in SOURCES and len(line) > COLUMNS_MAX:
            yield number, f"longer than {COLUMNS_MAX} columns"
    if path.suffix not in SOURCES:
        return
    if EMPTY_NAMES.search(path.stem):
        yield 1, f"'{path.stem}' does not say what the file holds"
    lines_max = LINES_MAX[path.suffix]
    if source.count("\n") > lines_max:
        yield 1, f"longer than {lines_max} lines"
    if path.suffix in (".h", ".cc"):
        code = without_text(source)
        yield from includes(name, source)
        yield from awaits_with_braces(code)
        if layer_of(name) != "tests":
            yield from long_cpp_functions(code)
        if path.suffix == ".h" and "#pragma once" not in source:
            yield 1, "a header without #pragma once"
    if path.suffix == ".py":
        yield from long_python_functions(source)


def tree_files(root):
    """What git has or would take; without git, everything but build folders."""
    git = subprocess.run(["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z",
                          "--cached", "--others", "--exclude-standard"], capture_output=True)
    if git.returncode == 0:
        names = sorted(n for n in git.stdout.decode().split("\0") if n)
        return [n for n in names if (root / n).is_file()]
    names = (str(p.relative_to(root)) for p in root.rglob("*") if p.is_file())
    return sorted(n for n in names if not re.match(r"(build|\.git)[^/]*/", n))


def main(root):
    root, breaches, files = Path(root), 0, 0
    for name in tree_files(root):
        if Path(name).suffix not in TEXTS or name == "LICENSE":
            continue
        try:
            source = (root / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        files += 1
        for line, why in check(name, source):
            breaches += 1
            print(f"{name}:{line}: {why}")
    print(f"{files} files, {breaches} breaches")
    return 1 if breaches or not files else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
