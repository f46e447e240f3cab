"""Every test, on this machine and on emulated boards. Ends with the counts of them all."""
import argparse
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ports"))

import bare  # noqa: E402
import boards  # noqa: E402
import passed  # noqa: E402
import suites as table  # noqa: E402
from suite import Run, show  # noqa: E402

USAGE = """\
usage: tests/run [--full | --everywhere] [--on TARGET] [--sanitize] [--fuzz N]
       tests/run --only PATH...
       tests/run --changed [REVISION]
       tests/run --cases DIR [--on TARGET]
       tests/run --clean-room [COMMAND...]

Prints the suites that it will run, then each suite with its time, then the sum. Missing tools are installed, and named.

  (nothing)       whether the library works: unit tests of every room on the host, but for compositions; kernels on mps2_an386, equal
                  bits with each kind of kernels, a third of the vectors, a sixth of compile-time messages, rooms, words and links, one
                  package, one exported model and two libraries in C. It ends with the suites that it leaves to --full
  --only PATH...  while you work: the unit tests that cover a header, a test or a room, on the host, and a list of what else covers it
  --changed [REVISION]
                  unit tests of the rooms that differ from REVISION (HEAD, if you leave it out), and of the rooms that include them
  --full          what a change must pass before it lands. The tests above (not again, if they passed with the same files), and:
                  compositions on the host, unit tests on mps2_an386, kernels and equal bits on 64-bit Arm. On every other board: some steps
                  of the example; of every core one has a fault, a stack overflow and interrupts. Flash, RAM, stack and
                  instructions of firmware on a board for each kind of kernels, and on one with two cores. Symbols of every board's
                  firmware. Packages, examples, pages and the site. Unit tests, fuzzing and
                  the host's vectors are barely optimized. The host leaves cases that combine what others check to --on host. A board
                  has unit tests of kernels, single layers and what does no arithmetic, skips those that are the same on every
                  machine, and prints their number; it leaves images of models, training and files to --on
  --on TARGET     unit tests with every case and all vectors of one target: host, a board, or a processor. Vectors are optimized as
                  they ship. all: every target, about half an hour
  --sanitize      unit tests under AddressSanitizer and UndefinedBehaviorSanitizer; lib/attune/host also under ThreadSanitizer
  --fuzz N        only fuzzing, under the same sanitizers: N sessions of calls with outside input, N damaged files, N power cuts
                  during a save. Failures name the session, the file or the cut. --full does 20,000 of each and 5,000
                  cuts; 1000000000 take more than a day
  --everywhere    over two hours, what --full leaves out: the complete unit tests on the host, on 64-bit Arm and on boards; all
                  vectors on the host and boards; an ESP8266's processor; the whole training of digits on a Cortex-M4; equal bits of
                  every compiler, optimization level, vector unit, board and arithmetic; unit tests in both arithmetics, for SSE2,
                  AVX2 and AVX-512 (as far as this processor has them) and every board; newer compilers, as far as available; every
                  header and every message with each compiler; all budgets; every page of ports/rtos on every core; every model of
                  the exporter; every method of personalise; every library in C; every sketch; programs of the benchmark. It does
                  not repeat the rest of --full
  --cases DIR     only one instantiation for every .safetensors case below DIR, on the host or on TARGET
  --clean-room          README's commands on a bare machine, before a release; about 40 minutes, as root, with a network. Makes a Debian
                  root with nothing but Git (mmdebstrap, kept in build/bare), clones the last commit into it, and runs README's
                  commands there, the tests included, and --help of the scripts; or only COMMAND
"""


def fail(*lines):
    for line in lines:
        print(f"tests/run: {line}", file=sys.stderr)
    sys.exit(2)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        fail(message, "try tests/run --help")


def parse(arguments):
    parser = Parser(usage=USAGE, add_help=False, allow_abbrev=False)
    parser.add_argument("--help", "-h", action="store_true")
    parser.add_argument("--on", action="append", default=[])
    parser.add_argument("--cases")
    parser.add_argument("--fuzz")
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--everywhere", action="store_true")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--changed", nargs="?", const="HEAD")
    parser.add_argument("--clean-room", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


# What is installed.

def bootstrap(kinds, quiet=False):
    """Whether everything of these kinds is there, or could be installed."""
    return subprocess.run([ROOT / "cmake/bootstrap.sh", *kinds], stderr=subprocess.DEVNULL if quiet else None).returncode == 0


def require(kinds):
    if not bootstrap(kinds):
        sys.exit(1)


def usable_boards(run):
    """Every board but the template, which is another one under its name, slow ones, and those that lack what cannot be installed."""
    usable = []
    for board in boards.names():
        if board == "template" or boards.value(board, "slow") == "yes":
            continue
        if bootstrap(boards.needs(board)):
            usable.append(board)
        else:
            run.skip(f"the tests on {board} are skipped")
    return usable


def runnable(run, suites):
    """Installs what suites need and want, before the first of them starts. Returns the suites whose needs are there."""
    kinds = dict.fromkeys(kind for suite in suites for kind in f"{suite.needs} {suite.wants}".split())
    missing = set() if bootstrap(kinds) else {kind for kind in kinds if not bootstrap([kind])}
    kept = []
    for suite in suites:
        if lacking := [kind for kind in suite.needs.split() if kind in missing]:
            run.skip(f"{suite.name} is skipped: no {', '.join(lacking)}")
        else:
            kept.append(suite)
    return kept


# What can be asked for.

def run_cases(args):
    if len(args.on) > 1:
        fail("--cases runs on one target at a time")
    port = port_of(args.on[0] if args.on else "host")
    require([*boards.needs(port), "tests"])
    os.execv(table.PYTHON[0], [*table.RUN_CASES[:-1], str(ROOT / table.RUN_CASES[-1]), "--cases", args.cases, "--on", port])


def port_of(target):
    try:
        return boards.port_of(target)
    except boards.UnknownTarget as error:
        fail(error)


def selected(args, run):
    """The suites that the options ask for."""
    if args.fuzz:
        if not args.fuzz.isdecimal() or args.fuzz.startswith("0"):
            fail("--fuzz takes a number of sessions")
        return table.fuzz(int(args.fuzz), int(args.fuzz))
    if args.sanitize:
        return table.sanitized()
    if args.on and not args.everywhere:
        targets = ["host", *usable_boards(run)] if "all" in args.on else [port_of(target) for target in args.on]
        return [suite for target in targets for suite in table.target(target)]
    require("build tests arm qemu clang".split())
    usable = usable_boards(run)
    if args.everywhere:
        return table.everywhere(usable)
    if not args.full:
        suites = table.everyday(usable)
        run.left_out = table.left_out(usable, suites)
        return suites
    return table.full(usable)


def run_selection(args):
    """--only and --changed: unit tests on the host."""
    require("build tests clang".split())
    import selection
    try:
        if args.only:
            tests = selection.Selection()
            for name in args.only:
                tests.add(selection.covering(name))
            files, rest = [selection.resolve(name) for name in args.only], []
        else:
            tests, rest = selection.changed(args.changed)
            files = []
    except selection.UnknownPath as error:
        fail(error)
    names = [str(path.relative_to(ROOT / "tests")) for room in tests.tests.values() for path in room]
    show(f"tests/run: {', '.join(names)}\n" if args.only else f"tests/run: rooms {', '.join(tests.tests) or 'none'}\n")
    try:
        code = selection.run(tests) if names else 0
    except selection.UnknownPath as error:
        fail(error)
    if rest:
        show(f"tests/run: without unit tests: {', '.join(str(path.relative_to(ROOT)) for path in rest)}\n")
    for line in selection.what_else(tests, files):
        show(f"tests/run: {line}\n")
    return code


def plan(args, suites):
    """One line before the first suite: how many there are, and where."""
    where = f" on {', '.join(args.on).replace('all', 'every target')}" if args.on and not args.everywhere else " here and on emulated boards"
    if args.fuzz or args.sanitize:
        where = " here"
    count = "1 suite" if len(suites) == 1 else f"{len(suites)} suites"
    return f"tests/run: {count}{where}; the last line is the sum\n"


def leave_shim():
    """Lets suites start this Python by its name: a script in its place, such as pyenv's, takes longer than Python itself."""
    found = shutil.which("python3")
    if found and not Path(found).resolve().samefile(sys.executable):
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def lock_tree():
    """One run of the tests at a time in a tree: they share its build folders and trained models."""
    (ROOT / "build").mkdir(exist_ok=True)
    lock = open(ROOT / "build/tests.lock", "w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("tests/run: another run works in this tree; waiting for its end", file=sys.stderr, flush=True)
        fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def main():
    args = parse(sys.argv[1:])
    if args.help:
        print(USAGE, end="")
        return 0
    os.chdir(ROOT)
    if args.clean_room is not None:
        return bare.main(args.clean_room)
    if args.cases:
        run_cases(args)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    leave_shim()
    with lock_tree():
        if args.only or args.changed:
            return run_selection(args)
        run = Run()
        suites = selected(args, run)
        files = passed.files()
        if args.full and (done := passed.of(files)):
            show(f"tests/run: not repeated, as they passed in tests/run of the same files: {'; '.join(suite.name for suite in suites if suite.name in done)}\n")
            suites = [suite for suite in suites if suite.name not in done]
        suites = runnable(run, suites)
        show(plan(args, suites))
        run.run(suites)
        if run.left_out:
            passed.keep(files, run.passing)
        return run.close()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
