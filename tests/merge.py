"""One source of several tests, which instantiate together what they share: the library is read once, and Tensor<4, 8> compiled once.

  tests/merge.py MERGED FILE...

Each file keeps its names to itself, in a namespace of its own. The files that they include come before, for no namespace.
"""
import re
import sys
from pathlib import Path


def preamble(file):
    """The directives of a file up to its last #include, whose conditions end here."""
    lines = file.read_text().splitlines()
    last = max(i for i, line in enumerate(lines) if re.match(r"\s*#\s*include\b", line))
    directives = [line for line in lines[:last + 1] if re.match(r"\s*#", line)]
    opened = sum(bool(re.match(r"\s*#\s*if", line)) - bool(re.match(r"\s*#\s*endif\b", line)) for line in directives)
    return [beside(file, line) for line in directives] + ["#endif"] * opened


def beside(file, line):
    """A header in the folder of the file is found from elsewhere, too."""
    found = re.match(r'(\s*#\s*include\s*)"([^"]+)"', line)
    return f'{found[1]}"{file.parent / found[2]}"' if found and (file.parent / found[2]).is_file() else line


def merged(files):
    lines = [line for file in files for line in preamble(file)]
    for file in files:
        name = re.sub(r"\W", "_", f"{file.parent.name}_{file.stem}")
        lines += [f"namespace {name} {{", f'#include "{file}"', "}"]
    return "\n".join(lines) + "\n"


def main():
    to, *files = map(Path, sys.argv[1:])
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(merged(files))


if __name__ == "__main__":
    main()
