"""Suites, and the run that starts them, shows what they print, and adds their counts."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Suites that run beside the ones in front: as many at a time, and this much nicer.
BACKGROUND = 3
NICENESS = 10
COUNTS = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?")


@dataclass
class Suite:
    """A program that ends with `N passed, N failed[, N skipped]`.

    `needs`: kinds of cmake/bootstrap.sh without which it is skipped. `wants`: kinds without which a part of it is.
    `background`: it keeps one processor busy, and runs while later suites do. `last`: it looks at what the others have built, and starts
    when they have ended.
    """
    name: str
    command: list
    needs: str = ""
    wants: str = ""
    background: bool = False
    last: bool = False

    def __post_init__(self):
        self.command = [str(word) for word in (self.command.split() if isinstance(self.command, str) else self.command)]


@dataclass
class End:
    """How a suite ended."""
    code: int
    output: str
    seconds: float
    processor_seconds: float


def counts_of(output):
    """(passed, failed, skipped) of the closing line, or None."""
    closing = [found for found in map(COUNTS.fullmatch, output.splitlines()) if found]
    return tuple(int(number or 0) for number in closing[-1].groups()) if closing else None


def counts_so_far(output):
    """Counts of a suite that crashed: the lines that it printed before."""
    lines = output.splitlines()
    return [sum(line.startswith(start) for line in lines) for start in ("ok ", "FAILED ", "skipped ")]


running = set()  # process groups of suites


def end_all():
    """Ends every suite, with all that it started."""
    for group in list(running):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGTERM)


def give_way(session):
    """Linux shares the processors among sessions first (sched_autogroup); the niceness of processes counts within one alone."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{session}/autogroup").write_text(str(NICENESS))


def execute(command, background=False, show=None):
    """Runs a command in the project's folder. `show` gets every line at once."""
    start = time.monotonic()
    with tempfile.TemporaryFile() as log:
        nice = ["nice", "-n", str(NICENESS)] if background else []
        process = subprocess.Popen([*nice, *command], cwd=ROOT, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE if show else log, stderr=subprocess.STDOUT, start_new_session=True)
        running.add(process.pid)
        if background:
            give_way(process.pid)
        for line in process.stdout or ():
            log.write(line)
            show(line.decode(errors="replace"))
        _, status, usage = os.wait4(process.pid, 0)
        running.discard(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
        log.seek(0)
        output = log.read().decode(errors="replace")
    return End(process.returncode, output, time.monotonic() - start, usage.ru_utime + usage.ru_stime)


def show(text):
    sys.stdout.write(text)
    sys.stdout.flush()


class Run:
    """Counts of all suites so far, and the suites that run beside."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.problems = []
        self.passing = []
        self.left_out = []
        self.pool = ThreadPoolExecutor(BACKGROUND)
        self.pending = []
        self.shown = self.total = 0

    def skip(self, why):
        self.skipped += 1
        show(f"tests/run: {why}\n")

    def run(self, suites):
        """Starts suites in their order, and returns when all have ended."""
        self.total += len(suites)
        try:
            for suite in suites:
                if not suite.last:
                    self.start(suite)
            for suite, future in self.pending:
                end = future.result()
                self.head(suite)
                show(end.output)
                self.count(suite, end)
            for suite in suites:
                if suite.last:
                    self.start(suite)
        except BaseException:  # Ctrl-C
            self.pool.shutdown(wait=False, cancel_futures=True)
            end_all()
            raise
        self.pending = []

    def head(self, suite):
        """A suite's name, and how far the run is."""
        self.shown += 1
        show(f"== {suite.name} ({self.shown} of {self.total})\n")

    def start(self, suite):
        if suite.background:
            self.pending.append((suite, self.pool.submit(execute, suite.command, background=True)))
        else:
            self.head(suite)
            self.count(suite, execute(suite.command, show=show))

    def count(self, suite, end):
        """A suite that ended without its counts, or with an error that they do not show, is one failure more."""
        counts = counts_of(end.output)
        passed, failed, skipped = counts or counts_so_far(end.output)
        problem = None
        if counts is None:
            problem = f"{suite.name} ended with code {end.code} and without its counts"
        elif end.code != 0 and failed == 0:
            problem = f"{suite.name} ended with code {end.code}"
        if problem:
            show(f"tests/run: {problem}\n")
            failed += 1
        if failed:
            self.problems.append(f"{suite.name}: {failed} failed")
        else:
            self.passing.append(suite.name)
        self.passed, self.failed, self.skipped = self.passed + passed, self.failed + failed, self.skipped + skipped
        show(f"-- {end.seconds:.0f} s, {end.processor_seconds:.0f} s of processors\n")

    def close(self):
        """Prints what the run leaves out, and the sum; returns the exit code."""
        if self.left_out:
            show(f"\ntests/run: left to --full: {'; '.join(self.left_out)}\n")
        show("\n" + "".join(f"tests/run: {problem}\n" for problem in self.problems))
        show(f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "") + "\n")
        return 1 if self.failed else 0
