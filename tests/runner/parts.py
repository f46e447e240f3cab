#!/usr/bin/env python3
"""Suites that are too small for a program of their own: tests/runner/parts.py PART ARGUMENT...

Each ends with `N passed, N failed[, N skipped]`. tests/runner/suites.py says how they are called.
"""
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "ports"))
import boards  # noqa: E402

# Images that report no memory of a program's own.
WITHOUT_REPORT = re.compile(r"_measured\.elf$|^(argmax_copy|crew|digits)")
SHAPE = "_[0-9]*x*.elf"
BOARD_COUNTS = re.compile(r"(\d+) passed, (\d+) failed")


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, holds, what=""):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        if not holds and what:
            print(f"FAILED {what}")

    def close(self):
        print(f"{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else ""))
        return 0 if self.passed and not self.failed else 1


def run_capture(*command):
    """(code, output) of a command, with errors in it."""
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace")
    return done.returncode, done.stdout


def run_checked(*command):
    """Runs a command, and shows what it said if it fails, which ends the program."""
    code, output = run_capture(*command)
    if code:
        print("\n".join(output.splitlines()[-60:]))
        sys.exit(code)


def cmake(preset, *arguments):
    """CMake in a build folder, when no other process works there."""
    run_checked("bash", "-c", 'source cmake/bootstrap.sh && attune_cmake "$@"', "bash", f"build/{preset}", *arguments)


def build(preset, *targets):
    cmake(preset, "--preset", preset)
    cmake(preset, "--build", "--preset", preset, *(["--target", *targets] if targets else []))


def build_as(folder, preset, *options, targets=()):
    """A preset's build with other options, in a folder of its own."""
    cmake(folder, "--preset", preset, "-B", f"build/{folder}", *options)
    cmake(folder, "--build", f"build/{folder}", *(["--target", *targets] if targets else []))


def preset_of(target):
    return "host" if target == "host" else boards.value(target, "preset")


# Unit tests.

def run_google_test(*program):
    """(code, output) of a program of GoogleTest: its failures, and its counts in the words of all suites."""
    code, output = run_capture(*program, "--gtest_brief=1", "--gtest_print_time=0")
    lines = [line for line in output.splitlines() if line and not re.match(r"\[==========\]|Running main|\[  PASSED  \]", line)]
    number = {word: re.search(pattern, output, re.M) for word, pattern in
              (("all", r"^\[==========\] (\d+) tests?"), ("passed", r"^\[  PASSED  \] (\d+)"),
               ("skipped", r"^\[  SKIPPED \] (\d+) test"))}
    if not number["all"] or not number["passed"]:
        return code or 1, "\n".join(lines)  # it crashed: without its counts
    counts = {word: int(found[1]) if found else 0 for word, found in number.items()}
    failed = counts["all"] - counts["passed"] - counts["skipped"]  # in brief, nothing else counts those that failed
    lines.append(f"{counts['passed']} passed, {failed} failed" + (f", {counts['skipped']} skipped" if counts["skipped"] else ""))
    return code, "\n".join(lines)


def room_programs():
    """The programs of unit tests on the host, one for each room of the library."""
    rooms = sorted(path.name for path in (ROOT / "lib/attune").iterdir() if path.is_dir())
    return [f"attune_{room}_tests" for room in [*rooms, "whole"]]


def run_programs(folder, programs, emulator=()):
    """Runs programs of GoogleTest, with one count for all."""
    counts = Counts()
    for program in programs:
        code, output = run_google_test(*emulator, f"build/{folder}/tests/{program}")
        found = re.search(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", output, re.M)
        print(f"{program}: {output}")
        if found:
            counts.passed, counts.failed = counts.passed + int(found[1]), counts.failed + int(found[2])
            counts.skipped += int(found[3] or 0)
        if not found or code and not int(found[2]):
            counts.check(False, f"{program} ended with code {code}")
    return counts.close()


def host_tests(preset, *options):
    """Of all rooms or of the programs that are named. `--every`: with every case, and not only those of a quick build."""
    programs = [option for option in options if option != "--every"] or room_programs()
    if "--every" not in options:
        build(preset, *programs)
        return run_programs(preset, programs)
    build_as(f"{preset}-every", preset, "-DATTUNE_EVERY_CASE=ON", targets=programs)
    return run_programs(f"{preset}-every", programs)


def host_tests_as(march, arithmetic):
    folder = f"host-{march}-{arithmetic}"
    build_as(folder, "host", "-DATTUNE_BUILD_EXAMPLES=OFF", "-DATTUNE_NATIVE=OFF", "-DATTUNE_QUICK_TESTS=OFF",
             f"-DCMAKE_CXX_FLAGS=-march={march}", f"-DATTUNE_ARITHMETIC={arithmetic}")
    return run_programs(folder, [program for program in room_programs() if program != "attune_host_tests"])


def host_tests_with(compiler):
    folder = compiler.replace("++", "")
    build_as(folder, "quick", f"-DCMAKE_CXX_COMPILER={compiler}", targets=room_programs())
    return run_programs(folder, room_programs())


def aarch64_tests(processor, *programs):
    """On 64-bit Arm, in qemu-aarch64: of all rooms or of the programs that are named."""
    programs = programs or [program for program in room_programs() if program != "attune_host_tests"]
    build_as("aarch64-clang", "aarch64", "-DCMAKE_CXX_COMPILER=clang++", "-DATTUNE_BUILD_EXAMPLES=OFF", targets=programs)
    return run_programs("aarch64-clang", programs, ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-cpu", processor))


def run_image(board, image):
    environment = dict(os.environ, ATTUNE_TIMEOUT="600")
    done = subprocess.run([ROOT / "ports/run", board, image], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", env=environment)
    return image.name, done.returncode, done.stdout.rstrip("\n")


def images_of(folder):
    """The images of unit tests in a build folder: those that are always built, and those on request."""
    tests = ROOT / "build" / folder / "tests"
    return [[tests / f"{name}.elf" for name in (tests / f"{kind}.txt").read_text().split()] for kind in ("test_images", "on_request")]


def run_images(board, folder, images):
    """With one count for all. Sources that the board has no room for count as skipped."""
    counts, left = Counts(), 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        ends = list(pool.map(lambda image: run_image(board, image), images))
    for name, code, output in ends:
        left += sum(int(number) for number in re.findall(r"^(\d+) cases left to the host", output, re.M))
        numbers = BOARD_COUNTS.fullmatch(output.rpartition("\n")[2].strip())
        if numbers:
            counts.passed, counts.failed = counts.passed + int(numbers[1]), counts.failed + int(numbers[2])
        else:
            counts.check(False, f"{name} ended with code {code} and without its counts")
        if code or not numbers:
            print(output)
    for line in (ROOT / "build" / folder / "tests/left_out.txt").read_text().splitlines():
        counts.skipped += 1
        print(f"no room on {board}: {line} of variables")
    if left:
        print(f"{left} cases that are the same on every machine are left to the host, and on {board} to --everywhere")
    return counts.close()


def board_tests(board, every=""):
    """Of images on request, with `--every`."""
    build(preset_of(board))
    images, on_request = images_of(preset_of(board))
    if on_request and every:
        build(preset_of(board), *(image.stem for image in on_request))
        images += on_request
    elif on_request:
        print(f"left to --on {board}: {', '.join(image.stem for image in on_request)}")
    return run_images(board, preset_of(board), images)


def board_image(board, image):
    """One image of unit tests."""
    build(preset_of(board), image)
    return run_images(board, preset_of(board), [ROOT / "build" / preset_of(board) / "tests" / f"{image}.elf"])


def board_tests_as(board, arithmetic):
    folder = f"{board}-{arithmetic}"
    build_as(folder, preset_of(board), "-DATTUNE_BUILD_EXAMPLES=OFF", "-DATTUNE_QUICK_TESTS=OFF", f"-DATTUNE_ARITHMETIC={arithmetic}")
    return run_images(board, folder, images_of(folder)[0])


def board_images_by(compiler, board, arithmetic, *images):
    """Some images of unit tests by another compiler than GCC."""
    folder = f"{board}-{arithmetic}-{compiler.replace('++', '')}"
    build_as(folder, preset_of(board), "-DATTUNE_BUILD_EXAMPLES=OFF", f"-DCMAKE_CXX_COMPILER={compiler}",
             f"-DATTUNE_ARITHMETIC={arithmetic}", targets=images)
    return run_images(board, folder, [ROOT / "build" / folder / "tests" / f"{image}.elf" for image in images])


def fuzz(preset, program, runs):
    build(preset, program)
    return subprocess.run([ROOT / "build" / preset / "tests" / program, "--runs", runs], cwd=ROOT).returncode


# Programs of boards.

def builds(board, *programs):
    """Programs of a board build."""
    build(preset_of(board), *programs)
    print("1 passed, 0 failed")
    return 0


def built(target, program, _, *command):
    """A command, once a program of a board or of the host is built."""
    build(preset_of(target), program)
    return subprocess.run(command, cwd=ROOT).returncode


def built_images(usable, folder, pattern):
    """Images of all boards that a folder of their builds has."""
    return [image for board in usable for image in sorted((ROOT / "build" / preset_of(board) / folder).glob(pattern))]


def memory_maps(*usable):
    """The memory report of every plan is the linker's, on every board that has images of budgets."""
    counts = Counts()
    for empty in built_images(usable, "tests/budgets", "empty.elf"):
        reporting = [image for image in sorted(empty.parent.glob("*" + SHAPE)) if not WITHOUT_REPORT.search(image.name)]
        if not reporting:  # the board has images of its own kind alone
            continue
        _, output = run_capture("tests/packaging/memory_map", empty, *reporting)
        for line in output.splitlines():
            if "FAILED" in line:
                print(f"{empty.relative_to(ROOT / 'build').parts[0]}: {line}")
        passed, _, failed, *_ = output.splitlines()[-1].split()
        counts.passed, counts.failed = counts.passed + int(passed), counts.failed + int(failed)
    return counts.close()


def firmware_symbols(*usable):
    images = [image for folder in ("examples", "tests/budgets", "tests/ports") for image in built_images(usable, folder, "*.elf")
              if not image.name.endswith("_measured.elf")]
    return subprocess.run(["tests/packaging/no_heap_symbols", "build/cortex-m4/tests/memory_image.elf", *images], cwd=ROOT).returncode


def test_symbols():
    folder = ROOT / "build/cortex-m4/tests"
    images = [*sorted(folder.glob("*_tests.elf")), *sorted(folder.glob("ports/programs/*.elf"))]
    return subprocess.run(["tests/packaging/no_heap_symbols", "--tests", *images], cwd=ROOT).returncode


def bench_programs():
    """The benchmark's programs for this machine compile."""
    counts, folder = Counts(), "build/bench/compiled"
    code, output = run_capture("cmake", "-G", "Ninja", "-S", "tests/bench", "-B", folder, "-DCMAKE_BUILD_TYPE=Debug")
    counts.check(code == 0, f"the benchmark is configured\n{output[-2000:]}")
    code, output = run_capture("cmake", "--build", folder)
    counts.check(code == 0, f"its programs compile\n{output[-2000:]}")
    return counts.close()


# Examples.

class Example:
    """What a run of examples/run said."""

    def __init__(self, *arguments):
        self.code, self.output = run_capture("examples/run", *arguments)
        if self.code:
            print("\n".join(self.output.splitlines()[-20:]))
        self.results = [line for line in self.output.splitlines() if line.startswith("result ")]
        for line in self.output.splitlines():
            if line.startswith("result ") or "bit for bit" in line:
                print(line)
        self.equal = len(re.findall("the same .*, bit for bit", self.output))

    def values(self, key):
        return [found[1] for found in (re.search(rf" {key}=(\S*)", line) for line in self.results) if found]

    def has_no_heap(self):
        return set(self.values("heap_calls")) == {"0"}


def same_bits(expected, *arguments):
    """An example ends with the host's parameters, and logits if it has some."""
    counts = Counts()
    counts.passed = Example(*arguments).equal
    counts.failed = max(0, int(expected) - counts.passed)
    return counts.close()


def recognizes(least, *arguments):
    """An example recognizes that part of its test data on each target, without a heap."""
    counts, example = Counts(), Example(*arguments)
    if example.code:
        counts.check(False, f"it ends with code {example.code}")
    for accuracy in example.values("accuracy"):
        counts.check(float(accuracy) >= float(least), f"it recognizes {accuracy}")
    counts.check(example.has_no_heap(), "it has no heap")
    counts.passed += example.equal
    for _ in re.findall("ended with different", example.output):
        counts.check(False, "targets end with different bits")
    return counts.close()


def example_trains():
    """argmax_copy learns on the host and on the board, to the same bits, without a heap."""
    counts, example = Counts(), Example("argmax_copy")
    for solved in example.values("solved"):
        counts.check(float(solved) >= 0.97, f"it solves {solved}")
    counts.check(example.has_no_heap(), "it has no heap")
    counts.check("same parameters, bit for bit" in example.output, "host and board end with the same parameters")
    large = Example("argmax_copy", "--on", "host", "--shape", "16x32x4")
    counts.check(large.results and float(large.values("solved")[-1]) >= 0.90, "16x32x4 solves 90 %")
    page = (ROOT / "examples/argmax_copy/page.html").read_text()
    counts.check(large.results and f"'16x32x4': '{large.values('parameters_hash')[-1]}'" in page, "the page has the same hash")
    return counts.close()


PARTS = {name.__name__.replace("_", "-"): name for name in (
    host_tests, host_tests_as, host_tests_with, aarch64_tests, board_tests, board_image, board_tests_as, board_images_by, fuzz, builds, built, memory_maps,
    firmware_symbols, test_symbols, bench_programs, same_bits, recognizes, example_trains)}

if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    sys.exit(PARTS[sys.argv[1]](*sys.argv[2:]))
