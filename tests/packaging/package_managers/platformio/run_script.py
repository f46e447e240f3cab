#!/usr/bin/env python3
"""Stands for PlatformIO and SCons: reads library.json, runs its script, and prints the options of the project's C++.

  run_script.py LIBRARY [--command TEXT] OPTION... [--then OPTION...]

Like the real ones, it puts build_flags behind CXXFLAGS: an option that begins with -std is the C++ compiler's own, every other one
is in CCFLAGS, which follow in the command. Options behind --then are added by a later script. --command is another command.
"""
import json
import string
import sys
from pathlib import Path

library, options = Path(sys.argv[1]), sys.argv[2:]
command = "$CXX -o $TARGET -c $CXXFLAGS $CCFLAGS $_CCCOMCOM $SOURCES"
if options[:1] == ["--command"]:
    command, options = options[1], options[2:]
at = options.index("--then") if "--then" in options else len(options)
before, later = options[:at], options[at + 1:]
told = json.loads((library / "library.json").read_text())


class Environment(dict):
    def Replace(self, **values):
        self.update(values)

    def Exit(self, code):
        sys.exit(code)


def add(environment, flags):
    for flag in flags:
        environment["CXXFLAGS" if flag.startswith("-std") else "CCFLAGS"].append(flag)


def new():
    return Environment(CXXCOM=command, CXXFLAGS=[], CCFLAGS=[])


scope = {"env": new(), "projenv": new()}
for environment in scope.values():
    add(environment, before)
environments = list(scope.values())
scope["Import"] = lambda *names: [scope[name] for name in names]
exec((library / told["build"]["extraScript"]).read_text(), scope)
for environment in environments:
    add(environment, later)
header = library / told["build"]["includeDir"] / told["headers"]
assert header.is_file(), header
found = environments[1]
text = string.Template(found["CXXCOM"]).safe_substitute(
    CXX="", TARGET="", SOURCES="", _CCCOMCOM="", CXXFLAGS=" ".join(found["CXXFLAGS"]), CCFLAGS=" ".join(found["CCFLAGS"]))
print(*(word for word in text.split() if word not in ("-o", "-c")), f"-I{library / told['build']['includeDir']}")
