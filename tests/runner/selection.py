"""Tests that cover a file or a change, for `tests/run --only` and `--changed`.

A program has the tests of a room. Objects of its build are linked one by one, so that an edit of a header compiles the tests that
are named after it, and no others.
"""
import re
import resource
import shlex
import subprocess
from dataclasses import dataclass, field

import parts
from suite import ROOT

LIBRARY, TESTS = ROOT / "lib/attune", ROOT / "tests"
BUILD = ROOT / "build/quick"
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)


class UnknownPath(Exception):
    pass


def room_of(path):
    """The room of a header or of a test; `whole` for files outside the rooms."""
    folder = path.relative_to(LIBRARY if path.is_relative_to(LIBRARY) else TESTS).parts[:-1]
    return folder[0] if folder else "whole"


def tests_of(room):
    folder, pattern = (TESTS, "*_test.cpp") if room == "whole" else (TESTS / room, "**/*_test.cpp")
    return sorted(path for path in folder.glob(pattern) if path.name != "mpi_test.cpp")


def includes_of(path):
    """Files of the project that a file includes."""
    for name in INCLUDE.findall(path.read_text()):
        for place in (ROOT / "lib", TESTS, path.parent):
            if (place / name).is_file():
                yield (place / name).resolve()


def includers_of(files):
    """Files of the library and of its tests that include one of these, directly or not, and these."""
    every = [path for folder in (LIBRARY, TESTS) for suffix in ("hpp", "cpp") for path in folder.rglob(f"*.{suffix}")]
    including = {}
    for path in every:
        for included in includes_of(path):
            including.setdefault(included, []).append(path)
    found, waiting = set(), list(files)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += including.get(path, [])
    return found


def resolve(name):
    """A path as people type it: from the project, from lib/attune or from tests."""
    for place in (ROOT, LIBRARY, TESTS):
        path = (place / name).resolve()
        if (path.is_dir() or path.suffix in (".hpp", ".cpp") and path.exists()) and (path.is_relative_to(LIBRARY) or path.is_relative_to(TESTS)):
            return path
    raise UnknownPath(f"--only takes a header of lib/attune, a test or a room; there is no {name}")


def named_after(header):
    """Tests of a header: those with its name, else those of its room that include it, else the room's."""
    tests = tests_of(room_of(header))
    named = [test for test in tests if test.name.startswith(f"{header.stem}_")]
    return named or [test for test in tests if header in includes_of(test)] or tests


def covering(name):
    """The tests that `--only NAME` runs."""
    path = resolve(name)
    if path.is_dir():
        tests = tests_of(room_of(path / "any"))
    elif path.is_relative_to(LIBRARY):
        tests = named_after(path)
    elif path.name.endswith("_test.cpp"):
        tests = [path]
    else:
        tests = sorted(file for file in includers_of([path]) if file.name.endswith("_test.cpp"))
    if not tests:
        raise UnknownPath(f"{name} has no unit tests on the host")
    return tests


@dataclass
class Selection:
    """Tests by room."""
    tests: dict = field(default_factory=dict)

    def add(self, tests):
        for test in tests:
            self.tests.setdefault(room_of(test), {})[test] = None

    def __contains__(self, test):
        return test in self.tests.get(room_of(test), {})


def changed_since(revision):
    """Files that differ from a revision, new ones too."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()

    try:
        names = [*git("diff", "--name-only", revision, "--"), *git("ls-files", "--others", "--exclude-standard")]
    except subprocess.CalledProcessError:
        raise UnknownPath(f"--changed takes a revision of Git; there is no {revision}") from None
    return [(ROOT / name).resolve() for name in names]


def rooms_of(files):
    """Rooms with unit tests whose files include one of these, directly or not, or are these."""
    return {room_of(path) for path in includers_of(files)} & {program.removeprefix("attune_").removesuffix("_tests") for program in parts.room_programs()}


def changed(revision):
    """(selection, files without unit tests): all tests of the rooms that differ from a revision, and of those that include them."""
    files = changed_since(revision)
    sources = [path for path in files if path.suffix in (".hpp", ".cpp") and (path.is_relative_to(LIBRARY) or path.is_relative_to(TESTS))]
    selection = Selection()
    for room in sorted(rooms_of(sources)):
        selection.add(tests_of(room))
    return selection, [path for path in files if path not in sources or not rooms_of([path])]


def link_command(program, objects):
    """CMake's command that links a program, with `objects` alone of its tests."""
    commands = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", "-s", f"tests/{program}"], check=True, stdout=subprocess.PIPE, text=True)
    words = [word for word in shlex.split(commands.stdout.splitlines()[-1]) if word not in (":", "&&")]
    words[words.index("-o") + 1] += "_only"
    if missing := set(objects) - set(words):
        raise UnknownPath(f"{program} has no {', '.join(sorted(missing))}")
    return [word for word in words if not word.endswith("_test.cpp.o") or word in objects]


def run(selection):
    """Builds and runs the tests of a selection. Returns the exit code."""
    started = resource.getrusage(resource.RUSAGE_CHILDREN)
    whole, links = [], {}
    if not (BUILD / "build.ninja").exists():
        parts.cmake("quick", "--preset", "quick")
    parts.cmake("quick", "--build", "--preset", "quick", "--target", "build.ninja")  # knows new tests, before their commands are asked for
    for room, tests in selection.tests.items():
        program = f"attune_{room}_tests"
        if len(tests) == len(tests_of(room)):
            whole.append(program)
        else:
            links[program] = link_command(program, [f"tests/CMakeFiles/{program}.dir/{test.relative_to(TESTS)}.o" for test in tests])
    objects = {word: None for words in links.values() for word in words if word.endswith((".o", ".a")) and not word.startswith("/")}
    parts.cmake("quick", "--build", "--preset", "quick", "--target", *whole, *objects)
    for words in links.values():
        parts.run_checked("env", "-C", BUILD, *words)
    code = parts.run_programs("quick", [*whole, *(f"{program}_only" for program in links)])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"-- {used.ru_utime + used.ru_stime - started.ru_utime - started.ru_stime:.1f} s of processors", flush=True)
    return code


def what_else(selection, files):
    """One line for each kind of test that a selection leaves out."""
    more = Selection()
    more.add(test for test in includers_of(files) if test.name.endswith("_test.cpp") and test in tests_of(room_of(test)) and test not in selection)
    if more.tests:
        counts = ", ".join(f"{room} ({len(tests)})" for room, tests in sorted(more.tests.items()))
        yield f"other tests that include it, by room: {counts}; run tests/run --only {' '.join(sorted(more.tests))}"
    yield "on a board: tests/run --on mps2_an386; everything that a change must pass: tests/run --full"
