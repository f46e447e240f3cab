"""Every test, on this machine and on emulated boards. Ends with the counts of them all."""
import argparse
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "ports"))

import bare  # noqa: E402
import boards  # noqa: E402
import suites as table  # noqa: E402
from suite import Run, show  # noqa: E402

USAGE = """\
usage: tests/run [--on TARGET] [--sanitize] [--everywhere] [--fuzz N]
       tests/run --cases DIR [--on TARGET]
       tests/run --bare [COMMAND...]

Prints the suites that it will run and how long they take, then each suite, then the sum. Missing tools are installed, and named.

  (nothing)       every test that a change must pass; about 18 minutes on two processors.
                  Unit tests and conformance vectors on the host (all in double, a third in float) and on mps2_an386 (a third in
                  float). On every other board: some steps of the example, a fault, a stack overflow. Equal bits with each kind of
                  kernels. Flash, RAM, stack, instructions and symbols of every board's firmware. Compile-time messages,
                  packaging, examples. Unit tests and the host's vectors are barely optimized. The host leaves cases that combine
                  what others check to --on host. A board has unit tests of kernels, single layers and what does no arithmetic,
                  skips those that are the same on every machine, and prints their number; it leaves images of models, training
                  and files to --on
  --on TARGET     unit tests with every case and all vectors of one target: host, a board, or a processor. Vectors are optimized as
                  they ship. all: every target, about half an hour
  --sanitize      unit tests under AddressSanitizer and UndefinedBehaviorSanitizer; lib/attune/host also under ThreadSanitizer
  --fuzz N        only fuzzing, under the same sanitizers: N sessions of calls with outside input, N damaged files, N power cuts
                  during a save. Failures name the session, the file or the cut. The default run does 50,000 of each and
                  5,000 cuts; 1000000000 take more than a day
  --everywhere    over two hours, what the default run leaves out: the complete unit tests on the host and on boards; all vectors on
                  both; the whole training of digits on a Cortex-M4; equal bits of every compiler, optimization level, vector unit,
                  board and arithmetic; unit tests in both arithmetics, for SSE2, AVX2 and AVX-512 (as far as this processor has
                  them) and every board; newer compilers, as far as available; every header and every message with each compiler;
                  all budgets; every page of ports/rtos on every core; every model of the exporter; every method of personalise;
                  every library in C; every sketch; programs of the benchmark. It does not repeat the rest of the default run
  --cases DIR     only one instantiation for every .safetensors case below DIR, on the host or on TARGET
  --bare          README's commands on a bare machine, before a release; about 40 minutes, as root, with a network. Makes a Debian
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
    parser.add_argument("--everywhere", action="store_true")
    parser.add_argument("--bare", nargs=argparse.REMAINDER)
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

def run_cases(told):
    if len(told.on) > 1:
        fail("--cases runs on one target at a time")
    port = port_of(told.on[0] if told.on else "host")
    require([*boards.needs(port), "tests"])
    os.execv(table.PYTHON[0], [*table.RUN_CASES[:-1], str(ROOT / table.RUN_CASES[-1]), "--cases", told.cases, "--on", port])


def port_of(target):
    try:
        return boards.port_of(target)
    except boards.UnknownTarget as error:
        fail(error)


def asked_for(told, run):
    """The suites that the options ask for."""
    if told.fuzz:
        if not told.fuzz.isdecimal() or told.fuzz.startswith("0"):
            fail("--fuzz takes a number of sessions")
        return table.fuzz(int(told.fuzz), int(told.fuzz))
    if told.sanitize:
        return table.sanitized()
    if told.on and not told.everywhere:
        targets = ["host", *usable_boards(run)] if "all" in told.on else [port_of(target) for target in told.on]
        return [suite for target in targets for suite in table.target(target)]
    require("build tests arm qemu clang".split())
    usable = usable_boards(run)
    return table.everywhere(usable) if told.everywhere else table.everything(usable)


def plan(told, suites):
    """One line before the first suite: how many there are, where, and how long they take on two processors."""
    takes = ("" if told.fuzz or told.sanitize else "over two hours" if told.everywhere else
             "about half an hour" if "all" in told.on else "" if told.on else "about 18 minutes")
    where = f" on {', '.join(told.on).replace('all', 'every target')}" if told.on and not told.everywhere else " here and on emulated boards"
    if told.fuzz or told.sanitize:
        where = " here"
    count = "1 suite" if len(suites) == 1 else f"{len(suites)} suites"
    return f"tests/run: {count}{where}{takes and f', {takes} on two processors'}; the last line is the sum\n"


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
    told = parse(sys.argv[1:])
    if told.help:
        print(USAGE, end="")
        return 0
    os.chdir(ROOT)
    if told.bare is not None:
        return bare.main(told.bare)
    if told.cases:
        run_cases(told)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with lock_tree():
        run = Run()
        suites = runnable(run, asked_for(told, run))
        show(plan(told, suites))
        run.run(suites)
        return run.close()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
