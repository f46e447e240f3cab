#!/usr/bin/env python3
"""The runner counts what suites say, and what happened before one crashed; its table names programs that are there; every
program without an extension has its language in .gitattributes.

  tests/runner/self_test.py     ends with `N passed, N failed`
"""
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ports"), str(ROOT / "tests"), str(ROOT / "tests/runner")]
import boards  # noqa: E402
import merge  # noqa: E402
import passed  # noqa: E402
import selection  # noqa: E402
import suites as table  # noqa: E402
from checks import check, close  # noqa: E402
from suite import Run, Suite, counts_of  # noqa: E402


def run(*scripts):
    """(passed, failed, skipped) of suites that are scripts, what is shown, and the exit code."""
    of_run, shown = Run(), io.StringIO()
    with contextlib.redirect_stdout(shown):
        of_run.run([Suite(f"suite {i}", ["bash", "-c", script], background=i % 2 == 1) for i, script in enumerate(scripts)])
        code = of_run.close()
    return (of_run.passed, of_run.failed, of_run.skipped), shown.getvalue(), code


counts, said, code = run("echo 3 passed, 0 failed", "echo 4 passed, 1 failed, 2 skipped; exit 1", "echo 1 passed, 0 failed, 1 skipped")
check("counts are added", counts == (8, 1, 3))
check("a failure is the exit code", code == 1)
check("suites are shown in front, then beside", said.index("suite 2") < said.index("suite 1"))
check("the sum is the last line", said.endswith("\n8 passed, 1 failed, 3 skipped\n"))
check("the suite that fails is named at the end", "tests/run: suite 1: 1 failed" in said)
counts, said, code = run("echo 3 passed, 0 failed")
check("all is well", code == 0 and said.endswith("\n3 passed, 0 failed\n"))
counts, said, code = run("echo ok a; echo ok b; echo FAILED c; kill -SEGV $$")
check("a crash keeps counts and is a failure", counts == (2, 2, 0) and "ended with code -11 and without its counts" in said)
counts, said, code = run("echo 3 passed, 0 failed; exit 7")
check("an error that counts do not show is a failure", counts == (3, 1, 0) and "ended with code 7" in said)
counts, said, code = run("true")
check("silence is a failure", counts == (0, 1, 0))
counts, said, code = run('root=$PWD; source tests/checks.sh; check one true; check two false; echo "$nothing"; check three true')
check("a script that crashes closes with its counts", counts == (1, 1, 0) and code == 1)
check("it says what crashed", "unbound" in said)
check("the last closing line counts", counts_of("1 passed, 0 failed\n2 passed, 0 failed") == (2, 0, 0))
check("counts within a line do not", counts_of("so 1 passed, 0 failed") is None)

ROOMS = ROOT / "tests"
check("a header is covered by the tests named after it", selection.covering("layers/activation.hpp") == [ROOMS / "layers/activation_test.cpp"])
check("a kernel, too", ROOMS / "kernels/gemm_test.cpp" in selection.covering("lib/attune/kernels/ops/gemm.hpp"))
check("a room has all of its tests", ROOMS / "core/rng_test.cpp" in selection.covering("core"))
check("a test covers itself", selection.covering("tests/core/rng_test.cpp") == [ROOMS / "core/rng_test.cpp"])
check("a header of tests is covered by those that include it", len(selection.covering("gradient_suite.hpp")) > 10)
above = selection.includers_of([ROOT / "lib/attune/training/adafactor.hpp"])
check("what includes a header is found", ROOMS / "training/adafactor_test.cpp" in above and ROOT / "lib/attune/attune.hpp" in above)
check("and nothing else", ROOMS / "core/rng_test.cpp" not in above)
check("a change of a low room reaches the rooms above it", {"core", "layers", "training"} <= selection.rooms_of([ROOT / "lib/attune/core/rng.hpp"]))
check("a program beside the rooms is in none", not selection.rooms_of([ROOT / "tests/budgets/slices.cpp"]))
for name in (ROOT / "tests/runner/compositions.txt").read_text().split():
    check(f"the composition {name} is a test", (ROOMS / f"{name}_test.cpp").is_file())
for name in ("layers/nothing.hpp", "README.md", "../.."):
    try:
        selection.covering(name)
        check(f"--only {name} is refused", False)
    except selection.UnknownPath as error:
        check(f"--only {name} is refused", name in str(error))
selected = selection.Selection()
selected.add([ROOMS / "core/rng_test.cpp"])
check("a selection knows its tests", ROOMS / "core/rng_test.cpp" in selected and ROOMS / "core/ids_test.cpp" not in selected)


# Tests that are compiled together.
def includes_late(text):
    """Whether a file includes behind its first line of code, where merge.py does not look."""
    code = re.search(r"^(?!//|/\*|#|\s|$)", text, re.M)
    return bool(code and re.search(r"^#include", text[code.start():], re.M))


late = [test.name for test in ROOMS.rglob("*_test.cpp") if includes_late(test.read_text())]
check("tests include before all else", late == ["cpp_header_test.cpp"] and includes_late("int x;\n#include <a>\n"), late)
with tempfile.TemporaryDirectory() as home:
    folder = Path(home)
    (folder / "beside.hpp").touch()
    (folder / "a_test.cpp").write_text('// text\n#include <attune/a.hpp>\n#if X\n#include "beside.hpp"\nint y;\n#endif\n#define Y 1\n')
    lines = merge.merged([folder / "a_test.cpp"]).splitlines()
    check("what tests include comes first, under its conditions", lines[:4] == ["#include <attune/a.hpp>", "#if X", f'#include "{folder}/beside.hpp"', "#endif"])
    check("a test has a namespace of its own", lines[4:] == [f"namespace {folder.name}_a_test {{", f'#include "{folder}/a_test.cpp"', "}"])

    # What passed.
    subprocess.run(["git", "init", "-q", folder], check=True)
    kept, before = folder / "kept.json", passed.files(folder)
    (folder / ".gitignore").write_text("kept.json\n")
    check("a new file is another state", passed.files(folder) != before)
    passed.keep(before, ["a"], kept, folder)
    check("what passed with other files is forgotten", not kept.exists() and passed.of(before, kept) == set())
    before = passed.files(folder)
    passed.keep(before, ["a", "b"], kept, folder)
    check("what passed is known", passed.of(passed.files(folder), kept) == {"a", "b"})
    (folder / "a_test.cpp").write_text("")
    check("until a file changes", passed.of(passed.files(folder), kept) == set())

usable = [board for board in boards.names() if board != "template"]
for suite in [*table.everyday(usable), *table.full(usable), *table.everywhere(usable), *table.sanitized(), *table.fuzz(1, 1)]:
    program = next(word for word in suite.command if word.startswith(("tests/", "examples/")) or word == "ports/run")
    check(f"{suite.name}: {program} is there", (ROOT / program).is_file())

LANGUAGES = {"python3": "Python", "bash": "Shell", "node": "JavaScript"}
attributes = dict(line.split() for line in (ROOT / ".gitattributes").read_text().splitlines() if line.startswith("/"))
for folder in (".ci", "cmake", "examples", "ports", "tests"):
    for program in sorted((ROOT / folder).rglob("*")):
        if not program.suffix and program.is_file() and os.access(program, os.X_OK):
            name = f"/{program.relative_to(ROOT)}"
            interpreter = program.read_text().splitlines()[0].rpartition(" ")[2]
            check(f".gitattributes has the language of {name}", attributes.get(name) == f"linguist-language={LANGUAGES.get(interpreter)}")

close()
