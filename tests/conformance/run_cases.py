#!/usr/bin/env python3
"""Runs conformance cases: compiles one instantiation of the library for each .safetensors file, and compares.

usage: run_cases.py --cases DIR [--on TARGET] [--quick] [--jobs N] [--build DIR]

--quick compiles sooner: barely optimized programs. Of cases that exist in both precisions it takes on the host all in double and a
third in float, on a board about a third in float and none in double; the number of omitted cases is printed. Prints a line for
each failed or skipped case, then the counts. Exits with 1 if a case failed, and with 2 if the cases or the target do not exist.
"""
import argparse
import contextlib
import fcntl
import glob
import os
import re
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True  # the source tree stays clean

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VECTORS = ROOT / "tests/vectors"
sys.path.append(str(ROOT / "ports"))
import boards  # noqa: E402
import families  # noqa: E402
import safetensors  # noqa: E402

# Cases that share a program: enough to parse the headers seldom, few enough to keep every processor busy.
CASES_PER_PROGRAM = 10
TIMEOUT_SECONDS = 1800  # a program that hangs, on a busy machine

# The tolerance of a tensor, an absolute bound for each of its elements:
#
#   MULTIPLE * max(oracle's own error, epsilon * magnitude * sqrt(terms), smallest normal number)
#
# Where a case exists in both precisions, the double one is the truth, and the oracle's own error is the largest
# difference between the two: what PyTorch loses by computing in float. For a double case a wider type is the truth,
# if the file has the differences (error.X); otherwise it is the double one, which may itself be off, and the oracle's
# own error is that in float times 2^-52 / 2^-23. The second term is a few ulp: of the tensor's largest element, with `terms` the length of the sums
# behind it, whose rounding errors are independent of each other and so grow with its root; or, for attention, of the
# largest sum of absolute values (mha_magnitudes.py). MULTIPLE leaves room for another order of summation, and for an
# oracle that was lucky.
MULTIPLE = 2
EPSILON = {"float": 2.0 ** -23, "double": 2.0 ** -52}
SMALLEST_NORMAL = {"float": 2.0 ** -126, "double": 2.0 ** -1022}
# Two precisions of one case that are further apart than this many times the second term are not one case.
PARTNER_LIMIT = 16


class Usage(Exception):
    """The command line asks for something that does not exist."""


# ---- Cases ----

@dataclass
class Outcome:
    name: str
    path: Path
    case: families.Case = None
    oracle: dict = None   # tensor -> the oracle's own error in float
    skipped: str = None   # why
    failed: str = None    # why
    worst: tuple = (0.0, "", 0.0, 0.0)  # error / tolerance, tensor, error, tolerance


def read(path, directory):
    outcome = Outcome(str(path.relative_to(directory)).removesuffix(".safetensors"), path)
    try:
        outcome.case = prepare(path)
        outcome.oracle = add_partner(outcome.case, path)
    except families.Skip as reason:
        outcome.skipped = str(reason)
        if path.resolve().is_relative_to(VECTORS):  # made for what the library has
            outcome.failed, outcome.skipped = f"is skipped: {reason}", None
    except Exception as error:  # whatever is wrong with one file is the failure of that file
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        outcome.failed = f"not a usable case: {kind}{error}"
    return outcome


def prepare(path):
    """The case of a file, and where it has them the errors of the expected values."""
    tensors, metadata = safetensors.load(path)
    errors = {name.removeprefix("error."): tensors.pop(name) for name in list(tensors) if name.startswith("error.")}
    case = families.prepare(tensors, metadata)
    if errors:
        case.errors = families.prepare({**tensors, **errors}, metadata).expected
    return case


def add_partner(case, path):
    """Finds the same case in the other precision; makes the double one the truth. Returns the oracle's own error."""
    other = {"float": (".f32.", ".f64."), "double": (".f64.", ".f32.")}[case.scalar]
    if other[0] not in path.name:
        return {}
    try:
        partner = prepare(path.with_name(path.name.replace(*other)))
    except Exception:  # reported when its own turn comes
        return {}
    shapes = [{name: tensor.shape for name, tensor in c.expected.items()} for c in (case, partner)]
    if shapes[0] != shapes[1]:
        return {}
    errors = {name: max(map(difference, tensor.values, partner.expected[name].values))
              for name, tensor in case.expected.items()}
    if any(error > PARTNER_LIMIT * few_ulps(case, name, "float") for name, error in errors.items()):
        return {}  # not rounding: one of the two is wrong, and each has to answer for its own values
    if case.scalar == "float":
        case.expected = partner.expected
    return errors


def difference(a, b):
    """|a - b|; 0 for equal infinities, infinite when one of them is not a number."""
    if a == b:
        return 0.0
    distance = abs(a - b)
    return distance if distance == distance else float("inf")


def few_ulps(case, name, scalar):
    finite = [abs(value) for value in case.expected[name].values if abs(value) < float("inf")]
    magnitude = case.magnitudes.get(name, max(finite, default=0.0))
    epsilon = max(EPSILON[scalar], case.epsilon or 0.0)
    return max(epsilon * magnitude * case.terms ** 0.5, SMALLEST_NORMAL[scalar])


def tolerance(outcome, name):
    case = outcome.case
    if case.tolerance is not None:
        return max(case.tolerance, SMALLEST_NORMAL[case.scalar])
    if name in case.errors:
        oracle = max(map(abs, case.errors[name].values), default=0.0)
    else:
        oracle = outcome.oracle.get(name, 0.0) * EPSILON[case.scalar] / EPSILON["float"]
    return MULTIPLE * max(oracle, few_ulps(case, name, case.scalar))


def largest_error(case, name, values):
    expected = case.expected[name].values
    if name not in case.errors:
        return max(map(difference, values, expected), default=0.0)
    # No double is the exact value: it is the expected one plus its error.
    return max((difference(a - b, error) for a, b, error in zip(values, expected, case.errors[name].values)), default=0.0)


def compare(outcome, results, files):
    """Judges a case by the tensors that it reported, and by the files that it wrote."""
    if outcome.case.check_files:
        outcome.failed = outcome.case.check_files(outcome.path.read_bytes(), files)
        if outcome.failed:
            return
    for name, data in files.items():
        try:
            tensors, _ = safetensors.parse(data)
        except (KeyError, TypeError, ValueError) as error:
            outcome.failed = f"{name}: not a safetensors file: {error}"
            return
        results.update((f"{name}.{tensor}", value.values) for tensor, value in tensors.items())
    for name, tensor in outcome.case.expected.items():
        values = results.get(name, [])
        if len(values) != len(tensor.values):
            outcome.failed = f"{name}: {len(values)} scalars instead of {len(tensor.values)}"
            return
        error, bound = largest_error(outcome.case, name, values), tolerance(outcome, name)
        outcome.worst = max(outcome.worst, (error / bound, name, error, bound))
        if name in outcome.case.exact_zeros and any(v != 0 and t == 0 for v, t in zip(values, tensor.values)):
            outcome.failed = f"{name}: a hidden key has a weight that is not exactly zero"
            return
    ratio, name, error, bound = outcome.worst
    if ratio > 1:
        outcome.failed = f"{name}: error {error:.3g}, tolerance {bound:.3g}"


# ---- C++ ----

ARRAY_TYPES = {"F32": "float", "F64": "double", "I32": "int", "I64": "int", "BOOL": "bool"}


def literal(value, dtype):
    if dtype == "BOOL":
        return "true" if value else "false"
    if dtype in ("I32", "I64"):
        return str(value)
    if value != value:
        return f"std::numeric_limits<{ARRAY_TYPES[dtype]}>::quiet_NaN()"
    if abs(value) == float("inf"):
        return ("-" if value < 0 else "") + f"std::numeric_limits<{ARRAY_TYPES[dtype]}>::infinity()"
    return float(value).hex() + ("f" if dtype == "F32" else "")


def member(value, name, arrays):
    """The initializer of one member of a data struct; what needs an array is added to `arrays`."""
    if isinstance(value, dict):
        return "{" + ", ".join(f".{k} = {member(v, f'{name}_{k}', arrays)}" for k, v in value.items()) + "}"
    if isinstance(value, safetensors.Tensor):
        values = ", ".join(literal(v, value.dtype) for v in value.values)
        arrays.append(f"constexpr {ARRAY_TYPES[value.dtype]} {name}[] = {{{values}}};")
        return name
    if isinstance(value, list):
        values = ", ".join(f'"{text}"' for text in value)
        arrays.append(f"constexpr const char* {name}[] = {{{values}}};")
        return name
    return str(value)


def model_files(outcomes):
    """The files that a program has in flash, by the C++ types that it knows them by."""
    return {f"model_{i}": outcome.path.resolve() for i, outcome in enumerate(outcomes) if outcome.case.in_flash}


def source_text(outcomes):
    """A program that runs the cases one after the other."""
    headers = sorted({"report.hpp"} | {outcome.case.header for outcome in outcomes}
                     | {f"{name}.hpp" for name in model_files(outcomes)})
    arrays, calls = [], []
    for i, outcome in enumerate(outcomes):
        data = member(outcome.case.data, f"case_{i}", arrays)
        arguments = f"model_{i}{{}}, {data}" if outcome.case.in_flash else data
        calls += [f'  port::print("case {i}\\n");', f"  conformance::{outcome.case.call}({arguments});",
                  '  port::print("end\\n");']
    return "\n".join([*(f'#include "{header}"' for header in headers), "#include <limits>", "namespace {", *arrays, "}",
                      "int main() {", *calls, "}", ""])


# ---- Targets ----

class Target:
    """Where programs are built for and run on: the host, or a board by its name or its processor's."""

    def __init__(self, wanted):
        self.name, self.cpu, self.is_riscv = boards.port_of(wanted), None, False
        if self.name != "host":
            self.cpu = boards.value(self.name, "cpu")
            self.is_riscv = boards.value(self.name, "family") == "riscv"
        compiler = ["riscv64-unknown-elf-g++", "qemu-system-riscv32"] if self.is_riscv else ["arm-none-eabi-g++", "qemu-system-arm"]
        tools = ["cmake", "ninja", *(compiler if self.cpu else [])]
        if missing := [tool for tool in tools if not shutil.which(tool)]:
            raise Usage(f"{self.name} needs {', '.join(missing)}")

    def configure_options(self, quick):
        if self.cpu is None:
            flags, compiler = "-O3 -DNDEBUG", []
            if quick:  # where clang is, it is twice as fast as GCC
                has_clang = shutil.which("clang++")
                flags = f"-O{0 if has_clang else 1} -DNDEBUG -DATTUNE_INLINE=inline"
                compiler = ["-DCMAKE_CXX_COMPILER=clang++"] if has_clang else []
            return ["-DCMAKE_BUILD_TYPE=Release", "-DATTUNE_NATIVE=ON", f"-DCMAKE_CXX_FLAGS_RELEASE={flags}", *compiler]
        flags = "-Og -DATTUNE_INLINE=inline" if quick else "-O2"
        toolchain = "riscv-unknown-elf.cmake" if self.is_riscv else "arm-none-eabi.cmake"
        return ["-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_CXX_FLAGS_RELEASE={flags}", f"-DATTUNE_CPU={self.cpu}",
                f"-DATTUNE_PORT={self.name}", f"--toolchain={ROOT / 'cmake' / toolchain}"]

    def command(self, build, program):
        if self.cpu is None:
            return [str(build / program)]
        return [str(ROOT / "ports" / "run"), self.name, str(build / f"{program}.elf")]


# ---- Building and running ----

@dataclass
class Program:
    name: str
    outcomes: list
    problem: str = None  # why it has no results, or not all
    too_large: str = None  # for the board's memory: by how much


def build(programs, target, folder, jobs, quick):
    """Builds the programs; `problem` says which did not build, and why."""
    sources = folder / "cases"
    sources.mkdir(parents=True, exist_ok=True)
    texts = {sources / f"{program.name}.cpp": source_text(program.outcomes) for program in programs}
    texts[sources / "models.cmake"] = "".join(
        f"attune_add_model({program.name} NAME {name} FILE [==[{path}]==])\n"
        for program in programs for name, path in model_files(program.outcomes).items())
    for path in set(sources.glob("*.cpp")) - set(texts):
        path.unlink()
    for path, text in texts.items():  # what has not changed is not compiled again
        if not path.exists() or path.read_text() != text:
            path.write_text(text)

    configured = subprocess.run(
        ["cmake", "-G", "Ninja", "-S", HERE, "-B", folder, f"-DCASES={sources}", *target.configure_options(quick)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if configured.returncode != 0:
        raise SystemExit(configured.stdout + "run_cases.py: CMake cannot configure the cases")
    make = ["cmake", "--build", folder, "--parallel", str(jobs)]
    if subprocess.run([*make, "--", "-k", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
        return
    for program in programs:  # some failed: ask for each, the headers first
        made = subprocess.run([*make, "--target", program.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        if made.returncode != 0:
            if overflow := re.search(r"region `(\w+)' overflowed by (\d+) bytes", made.stdout):
                program.too_large = "too large for {1}: its {0} would need {2} more bytes".format(
                    overflow[1], target.name, overflow[2])
            errors = re.findall(r"(?:error:|undefined reference|overflowed).*", made.stdout)
            program.problem = f"does not compile: {errors[0] if errors else made.stdout[-200:]}"
            if not program.outcomes:
                return


def run(program, target, folder):
    """Runs a program and judges the cases that it finished."""
    try:
        done = subprocess.run(target.command(folder, program.name), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, timeout=TIMEOUT_SECONDS)
        output, code = done.stdout, done.returncode
    except subprocess.TimeoutExpired:
        program.problem = f"not finished after {TIMEOUT_SECONDS} s"
        return
    finished = parse(output.decode(errors="replace"), [outcome.case.scalar for outcome in program.outcomes])
    if code != 0 or len(finished) != len(program.outcomes):
        program.problem = f"stopped with exit code {code} after {output[-80:].decode(errors='replace').split()[-8:]}"
        return
    for outcome, (results, files, error) in zip(program.outcomes, finished):
        compare(outcome, results, files)
        outcome.failed = error or outcome.failed


def parse(output, scalars):
    """The tensors, the files, and the refusal if any, of each case that reached its end."""
    finished = []
    results, files, error = {}, {}, None
    for line in output.splitlines():
        word, _, rest = line.partition(" ")
        if word == "case":
            results, files, error = {}, {}, None
        elif word == "error":
            error = error or rest
        elif word == "end":
            finished.append((results, files, error))
        elif word == "file":
            name, _, digits = rest.partition(" ")
            files[name] = files.get(name, b"") + bytes.fromhex(digits)
        elif word == "tensor":
            name, _, digits = rest.partition(" ")
            bits = bytes.fromhex(digits)
            code, size = ("f", 4) if scalars[len(finished)] == "float" else ("d", 8)
            results.setdefault(name, []).extend(struct.unpack(f">{len(bits) // size}{code}", bits))
    return finished


def run_all(outcomes, target, folder, jobs, quick):
    """Builds and runs in groups; a group that does not build or finish is tried again case by case."""
    # Equal instantiations next to each other are compiled once.
    ordered = sorted(outcomes, key=lambda outcome: (outcome.case.header, outcome.case.call))
    count = -(-len(ordered) // CASES_PER_PROGRAM)
    programs = [Program(f"group_{i}", ordered[len(ordered) * i // count:len(ordered) * (i + 1) // count])
                for i in range(count)]
    # If not even the headers compile, no case will, and the trouble of trying each can be saved.
    headers = Program("headers", [])
    while programs:
        build([headers, *programs], target, folder, jobs, quick)
        if headers.problem is not None:
            for outcome in ordered:
                outcome.failed = f"the library {headers.problem}"
            return
        with ThreadPoolExecutor(jobs) as pool:
            list(pool.map(lambda program: run(program, target, folder), (p for p in programs if p.problem is None)))
        unfinished = [program for program in programs if program.problem is not None]
        for program in unfinished:
            if len(program.outcomes) == 1 and program.too_large:
                program.outcomes[0].skipped = program.too_large
            elif len(program.outcomes) == 1:
                program.outcomes[0].failed = program.problem
        again = [outcome for program in unfinished if len(program.outcomes) > 1 for outcome in program.outcomes]
        programs = [Program(f"single_{i}", [outcome]) for i, outcome in enumerate(again)]


def thinned(outcomes, scalar, names, keeps):
    """The cases, but of those of a scalar with a partner in the other precision, by `names`, only the ones whose number in their
    kind `keeps` tells to keep."""
    other = {"float": (".f32.", ".f64."), "double": (".f64.", ".f32.")}[scalar]
    counts, kept = {}, []
    for outcome in outcomes:
        name = outcome.path.name
        if outcome.case and outcome.case.scalar == scalar and other[0] in name and name.replace(*other) in names:
            number = counts[outcome.case.header] = counts.get(outcome.case.header, -1) + 1
            if not keeps(number):
                continue
        kept.append(outcome)
    return kept


def quick_choice(outcomes, on_board):
    """On the host every case in double and a third of each kind in float; on a board, in float alone, the first two of each kind and
    a third of the rest."""
    names = {outcome.path.name for outcome in outcomes if outcome.case}
    if not on_board:
        return thinned(outcomes, "float", names, lambda number: number % 3 == 0)
    in_float = thinned(outcomes, "float", names, lambda number: number < 2 or number % 3 == 0)
    return thinned(in_float, "double", names, lambda number: False)


@contextlib.contextmanager
def alone_in(folder):
    """One run at a time works in a build folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "run_cases.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"run_cases.py: another run works in {folder}; waiting for its end", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main():
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", metavar="DIR", type=Path, required=True, help="folder of .safetensors files")
    parser.add_argument("--only", metavar="PATTERN", default="*", help="files of these names alone, such as 'relu.*'")
    parser.add_argument("--on", metavar="TARGET", default="host", help="host, a board under ports/, or its processor")
    parser.add_argument("--quick", action="store_true", help="fewer and less optimized programs")
    parser.add_argument("--jobs", metavar="N", type=int, default=os.cpu_count(), help="number of processes")
    parser.add_argument("--build", metavar="DIR", type=Path, default=ROOT / "build" / "conformance",
                        help="build folder, with one for each target in it (default: build/conformance)")
    arguments = parser.parse_args()
    target = Target(arguments.on)
    if not arguments.cases.is_dir():
        raise Usage(f"no folder {arguments.cases}")
    # Unlike Path.rglob, this follows links to folders.
    names = glob.glob(f"**/{arguments.only}.safetensors", root_dir=arguments.cases, recursive=True)
    paths = sorted(arguments.cases / name for name in names)
    if not paths:
        raise Usage(f"no {arguments.only}.safetensors under {arguments.cases}")
    folder = (arguments.build / (target.name + ("-quick" if arguments.quick else ""))).resolve()

    outcomes = [read(path, arguments.cases) for path in paths]
    if arguments.quick:
        kept = quick_choice(outcomes, on_board=target.cpu is not None)
        print(f"{len(outcomes) - len(kept)} of {len(outcomes)} cases are left to a run without --quick")
        outcomes = kept
    ready = [outcome for outcome in outcomes if outcome.case and not outcome.failed]
    if ready:
        with alone_in(folder):
            run_all(ready, target, folder, max(1, arguments.jobs), arguments.quick)

    ready = [outcome for outcome in ready if not outcome.skipped]
    failed = [outcome for outcome in outcomes if outcome.failed]
    skipped = [outcome for outcome in outcomes if outcome.skipped]
    for outcome in failed:
        print(f"FAIL {outcome.name}: {outcome.failed}")
    for outcome in skipped:
        print(f"SKIP {outcome.name}: {outcome.skipped}")
    if ready:
        worst = max(ready, key=lambda outcome: outcome.worst[0])
        print(f"worst error / tolerance: {worst.worst[0]:.2f} ({worst.name}, {worst.worst[1]})")
    print(f"{len(outcomes) - len(failed) - len(skipped)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Usage, boards.UnknownTarget) as error:
        print(f"run_cases.py: {error}", file=sys.stderr)
        sys.exit(2)
