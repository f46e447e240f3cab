#!/usr/bin/env python3
"""Stands for PlatformIO: reads library.json, runs its script, and prints the options of the project's C++.

  run_script.py LIBRARY OPTION...

The options are those that a framework has chosen before.
"""
import json
import sys
from pathlib import Path

library, before = Path(sys.argv[1]), sys.argv[2:]
told = json.loads((library / "library.json").read_text())


class Environment(dict):
    def Replace(self, **values):
        self.update(values)


scope = {"env": Environment(), "projenv": Environment(CXXFLAGS=before)}
scope["Import"] = lambda *names: [scope[name] for name in names]
exec((library / told["build"]["extraScript"]).read_text(), scope)
header = library / told["build"]["includeDir"] / told["headers"]
assert header.is_file(), header
print(*scope["projenv"]["CXXFLAGS"], f"-I{library / told['build']['includeDir']}")
