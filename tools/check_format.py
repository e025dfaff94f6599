#!/usr/bin/env python3
"""Fails when a C++ file of the tree is not formatted as .clang-format says.

    check_format.py CLANG_FORMAT ROOT
"""
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from check_tree import tree_files


def main(clang_format, root):
    root = Path(root)
    names = [n for n in tree_files(root) if n.endswith((".h", ".cc"))]
    if not names:
        print("no C++ file found")
        return 1
    status = subprocess.run([clang_format, "--dry-run", "-Werror", *names], cwd=root).returncode
    print(f"{len(names)} files looked at")
    return status


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
