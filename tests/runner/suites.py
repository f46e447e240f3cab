"""The table of suites: what `tests/run` starts for each of its options, in order.

Suites beside the ones in front start in their order, too: those that nothing waits for first, since only one process at a
time builds in build/host or build/cortex-m4, and unit tests of the Cortex-M4 come first there.
"""
import os
import re
import shutil
import sys
from pathlib import Path

import boards
from suite import ROOT, Suite

PYTHON = [sys.executable, "-B"]
PARTS = [*PYTHON, "tests/runner/parts.py"]
RUN_CASES = [*PYTHON, "tests/conformance/run_cases.py"]
BOARD = "build arm qemu"
# A board for each kind of kernels: without and with an FPU, in assembly, and with vectors.
KERNELS = ["microbit", "riscv32_virt", "mps2_an386", "mps3_an547"]
# Those with kernels in assembly.
CLANG = ["mps2_an386", "mps3_an547"]


def same_bits(name, count, *arguments):
    """An example ends with the host's bits: `count` comparisons."""
    return Suite(name, [*PARTS, "same-bits", count, *arguments], BOARD)


def recognizes(name, least, *arguments):
    """An example recognizes that part of its test data, without a heap."""
    return Suite(name, [*PARTS, "recognizes", least, *arguments], BOARD)


BACKGROUND = [
    Suite("fields of shapes, by clang", "tests/packaging/shapes", "build clang tests"),
    Suite("a program for several processors", "tests/packaging/dispatched", "build gcc clang", "qemu-user"),
    Suite("programs of READMEs and pages", "tests/packaging/pages", "build clang", "mpi"),
    Suite("models behind plain C", "tests/packaging/c_models", f"{BOARD} python", "arduino"),
    Suite("modules of PyTorch, exported and checked", "tests/exchange/exporter", f"{BOARD} torch"),
    Suite("spellings of public code, exported or refused", "tests/exchange/exporter_patterns", "torch"),
    Suite("which training fits a board", "tests/exchange/fit", BOARD),
    Suite("packages of a release", "tests/packaging/packages", "build git pkg-config", "meson zephyr yaml xmllint arduino"),
    Suite("text, token by token", "tests/examples/stream_test", BOARD, "bible"),
    Suite("spoken digits of a new speaker", "tests/examples/personalise_test", BOARD),
    Suite("learning in a browser", "tests/examples/browser_test", "build browser"),
    Suite("files of digits, between PyTorch, the host and flash", "tests/examples/files_test", BOARD, "torch"),
    Suite("checks of trained models", "tests/conformance/checks_can_fail", "build tests"),
    Suite("state_dicts of PyTorch, there and back", "tests/exchange/with_pytorch", "build gcc torch", "npm"),
    Suite("a checkpoint, tuned on a board and back", "tests/exchange/round_trip", f"{BOARD} torch"),
    Suite("training in integers, against NumPy", "tests/training/int8_against_numpy", "build gcc torch"),
    Suite("ONNX files, read and checked", "tests/exchange/onnx_files", "build torch onnx"),
    Suite("12 drawn options of attention, against PyTorch", "tests/vectors/fuzz_against_torch 12", "build tests torch"),
    Suite("10 drawn programs, on this PC and a Cortex-M4", "tests/fuzz/draw 10", f"{BOARD} gcc clang"),
    Suite("files from logs", "tests/exchange/hex_lines", "build python"),
    Suite("examples", [*PARTS, "example-trains"], BOARD),
    Suite("whole models, counted", "tests/bench/self_test.py", "build"),
    Suite("both cores of an MPS2 AN521", "tests/ports/cores", BOARD),
    Suite("training on virt, killed 50 times",
          [*PARTS, "built", "virt", "resume", "--", "tests/ports/killed", "build/cortex-a15/tests/ports/resume.elf"], BOARD),
    Suite("a monitor with ticks, saves and resets", "tests/examples/monitor_test", BOARD),
    Suite("training on the micro:bit, reset 12 times",
          [*PARTS, "built", "microbit", "resume", "--", "ports/run", "microbit", "build/cortex-m0/tests/ports/resume.elf",
           "--resets", "12"], BOARD),
    Suite("the site", "tests/packaging/docs", "docs", "browser"),
    Suite("public names", "tests/packaging/api", "build gcc clang docs json mpi"),
    Suite("figures of pictures", "examples/guide/pictures/draw --measure --check", BOARD),
    Suite("what an example reports", "tests/examples/run_test", BOARD),
    Suite("checks of images", "tests/packaging/checks_can_fail", "build arm"),
    Suite("a ViT from PyTorch to a board and back", "tests/examples/exported_test", f"{BOARD} torch"),
    Suite("keywords in a stream", "tests/examples/spotter_test", BOARD),
    Suite("slices of a model", "tests/budgets/slices", f"{BOARD} tests"),
    Suite("a fleet of devices, and the mean of their files", "tests/examples/fleet_test", "build"),
    Suite("estimated cycles", "tests/ports/cycles", BOARD),
    Suite("digits on several ranks, over MPI", "tests/host/ranks", "build tests mpi pgrep"),
    Suite("checks of budgets", "tests/budgets/self_test.py"),
    recognizes("digits, d_model 16, on the host", 0.91, "digits", "--on", "host"),
    same_bits("argmax_copy on both cores, the first steps", 1, "argmax_copy", "--cores", "2", "--steps", "20"),
    same_bits("digits, d_model 16, the first steps on a Cortex-M4", 2, "digits", "--steps", "40", "--images", "40"),
    same_bits("digits with gradients, parameters and moments in PSRAM", 2, "digits", "--steps", "2", "--images", "4", "--memory", "psram=8"),
    same_bits("digits in integers, the first steps on a Cortex-M4", 2, "digits", "--steps", "20", "--images", "40", "--precision", "int8"),
    recognizes("digits, d_model 32, trained on the host, in the flash of the micro:bit", 0.95,
               "digits", "--on", "host", "--on", "microbit", "--shape", "8x32x4", "--images", "60"),
    Suite("digits on threads, and its page", [*PARTS, "built", "host", "digits_8x32x4", "--", *PYTHON, "tests/host/on_pc.py",
                                              "build/host/examples/digits_8x32x4"], "build"),
]
CONSUMERS = Suite("find_package, add_subdirectory, FetchContent", "tests/packaging/consume", f"{BOARD} gcc python")
PICO = Suite("a Raspberry Pi Pico in rp2040js",
             [*PARTS, "built", "microbit", "argmax_copy_8x4x1", "--", "tests/ports/pico", "build/cortex-m0/examples/argmax_copy_8x4x1.elf"],
             f"{BOARD} tests rp2040js")


def by_clang(compiler, on, *options):
    """The same bits on boards, by clang with its own assembler."""
    return Suite(f"the same bits on boards by {compiler}", ["tests/reproducibility/run", *options, "--by", compiler, *on], f"{BOARD} {compiler}")


def images_by_clang(compiler, on=CLANG):
    """The kernels in assembly by clang: those of an FPU, and those of vectors."""
    return [Suite(f"unit tests of kernels on {board} by {compiler}, {arithmetic}",
                  [*PARTS, "board-images-by", compiler, board, arithmetic, *images], f"{BOARD} tests {compiler}")
            for board, arithmetic, images in (("mps2_an386", "unfused", ["attune_kernels_tests"]),
                                              ("mps3_an547", "fused", ["elementary_tests", "gemm_tests", "int8_gemm_tests"])) if board in on]


def background(suites):
    for suite in suites:
        suite.background = True
    return suites


def cases(name, folder, target, *options):
    return Suite(f"{name} on {target}", [*RUN_CASES, "--cases", folder, "--on", target, *options], "build tests")


def host_tests(name, preset, *options):
    return Suite(name, [*PARTS, "host-tests", preset, *options], "build tests clang")


def aarch64(name, processor, *programs):
    """Unit tests on 64-bit Arm."""
    return Suite(name, [*PARTS, "aarch64-tests", processor, *programs], "build tests clang aarch64")


def faults(board, *options):
    """Images that end in a fault, and those with interrupts."""
    folder = f"build/{boards.value(board, 'preset')}/tests/ports"
    return [Suite(f"faults on {board}", ["tests/ports/faults", board, folder], BOARD),
            Suite(f"ticks and interrupts on {board}", ["tests/ports/interrupts", board, f"{folder}/programs", *options], BOARD)]


def target(port, *options):
    """Unit tests of a target, and vectors with these options; without `--quick` all of them."""
    if port == "host":
        return [host_tests("unit tests on host, every case", "quick", "--every"), cases("vectors", "tests/vectors", "host", *options)]
    return [Suite(f"unit tests on {port}", [*PARTS, "board-tests", port, *([] if "--quick" in options else ["--every"])],
                  f"{BOARD} tests"), *faults(port),
            cases("vectors", "tests/vectors", port, *options)]


def fuzz(sessions, cuts, preset="host"):
    """Calls with what can come from outside, damaged files, and power cuts while a state is saved. With the preset `quick` clang compiles
    them without optimizing, in a third of the time; some runs more slowly."""
    return background([
        Suite(f"{runs} {what}", [*PARTS, "fuzz", preset, program, runs], "build tests clang")
        for runs, what, program in ((sessions, "sessions of calls", "attune_fuzz"),
                                    (sessions, "damaged files", "attune_fuzz_files"), (cuts, "power cuts", "attune_power_cuts"),
                                    (cuts, "histories of unsettled flash", "attune_unsettled_flash"))])


def sanitized():
    return [host_tests("unit tests, sanitized", "sanitize"),
            host_tests("training on a PC, ThreadSanitizer", "sanitize-threads", "attune_host_tests")]


def quick_boards(which):
    """A few seconds for a board."""
    suites = []
    for board in which:
        pages = board == "microbit"  # as mps2_an386 it has all of them: a core without and one with Armv7-M's instructions
        programs = "port_programs" if pages else "board_programs"
        suites += [Suite(f"programs for {board}", [*PARTS, "builds", board, "faulting", programs, "argmax_copy_8x4x1"], BOARD),
                   *faults(board, *([] if pages else ["--without-pages"]))]
    return suites


def on_every_board(usable):
    return same_bits("example on every board, the first steps", len(usable), "argmax_copy", "--on", "all", "--steps", "10")


def memory_reports(usable):
    """Of the images that tests/budgets/run has built."""
    return Suite("memory reports and the linker's sizes on boards", [*PARTS, "memory-maps", *usable], BOARD, last=True)


def images(usable):
    """Memory reports and symbols of firmware that the other suites have built."""
    return [
        Suite("memory reports and the linker's sizes, a batch",
              "tests/packaging/memory_map build/cortex-m4/tests/budgets/empty.elf build/cortex-m4/tests/memory_image.elf", BOARD, last=True),
        memory_reports(usable),
        Suite("firmware symbols", [*PARTS, "firmware-symbols", *usable], BOARD, last=True),
        Suite("symbols of the tests", [*PARTS, "test-symbols"], BOARD, last=True),
    ]


def at_hand():
    """More data and cases, where they are at hand beside the project."""
    def place(variable, default):
        path = Path(os.environ.get(variable, ROOT.parent / "shared" / default))
        return path if path.exists() else None

    suites = []
    if vowels := place("ATTUNE_VOWELS", "datasets/japanese_vowels.i8.safetensors"):
        suites.append(recognizes("vowels, on the host", 0.965, "vowels", "--data", vowels))
    if extra := place("ATTUNE_EXTRA_CASES", "conformance"):
        suites.append(cases("conformance cases", extra, "host", "--quick"))
    if trained := place("ATTUNE_TRAINED", "trained"):
        suites += [cases("trained models", trained, "host", "--quick"), cases("trained models", trained, "mps2_an386")]
    return suites


def everyday(usable):
    """`tests/run` without an option: whether the library works."""
    kernels = [board for board in KERNELS if board in usable and board != "mps2_an386"]
    return [
        *background([
            Suite("golden hashes of the zoo on mps2_an386", [*PARTS, "board-image", "mps2_an386", "zoo_golden"], f"{BOARD} tests"),
            # mps2_an386 has the zoo's hashes.
            Suite("the same bits with the other kinds of kernels", ["tests/reproducibility/run", "--quick", *kernels], BOARD),
            Suite("one model behind plain C", "tests/packaging/c_models --one", f"{BOARD} python"),
            Suite("one module of PyTorch, exported and checked", "tests/exchange/exporter --one", f"{BOARD} torch"),
            Suite("find_package", "tests/packaging/consume --one", f"{BOARD} gcc python"),
            Suite("spelling and sentences", "tests/packaging/words", "git codespell"),
            Suite("lists that stand in several places", "tests/packaging/lists", "python"),
            Suite("links between pages", "examples/guide/site/build --links", "python"),
            Suite("definitions that code browsers find", "tests/packaging/tags", "clang tags"),
            Suite("colors of pictures", "tests/packaging/pictures", "rsvg"),
            Suite("checks of the runner", "tests/runner/self_test.py")]),
        host_tests("unit tests on host", "quick", "attune_everyday_tests"),
        Suite("rooms of the library", "tests/packaging/rooms"),
        Suite("names that are macros of Arduino cores", "tests/packaging/names/macros"),
        Suite("unit tests of kernels on mps2_an386", [*PARTS, "board-image", "mps2_an386", "attune_kernels_tests"], f"{BOARD} tests"),
        cases("vectors", "tests/vectors", "host", "--quick"),
        Suite("messages of what must not compile", "tests/compile_failure/run --quick", "build gcc clang"),
    ]


def full(usable):
    """`tests/run --full`: the suites of `tests/run`, unless others contain them, and more."""
    contained = {"links between pages", "one model behind plain C", "one module of PyTorch, exported and checked", "find_package",
                 "the same bits with the other kinds of kernels", "unit tests of kernels on mps2_an386"}
    return [
        *background([CONSUMERS]), *fuzz(20_000, 5_000, "quick"), *background([*BACKGROUND, *at_hand(), on_every_board(usable)]),
        *target("mps2_an386", "--quick"), *(suite for suite in everyday(usable) if suite.name not in contained),
        host_tests("unit tests on host, compositions", "quick", "attune_composed_tests"),
        Suite("the other messages of what must not compile", "tests/compile_failure/run --others", "build gcc clang"),
        Suite("the same bits with each kind of kernels", ["tests/reproducibility/run", *(board for board in KERNELS if board in usable)],
              BOARD),
        by_clang("clang++-14", [board for board in CLANG if board in usable], "--quick"),
        Suite("every header alone, together with other compilers", "tests/packaging/headers_alone", "build gcc arm clang", "mpi"),
        Suite("the same bits on the host, whatever the compiler", "tests/reproducibility/run host", "build gcc clang"),
        Suite("the same bits on 64-bit Arm", "tests/reproducibility/run aarch64", "build gcc aarch64"),
        aarch64("unit tests of kernels on 64-bit Arm", "max", "attune_kernels_tests"),
        # Unfused, those of all models are compared above.
        Suite("golden hashes of six models of the zoo on the host, fused",
              "tests/zoo/golden --in fused Llama Translator Convolution Int8Base TokenByToken Pooled", "build clang"),
        *images_by_clang("clang++-14", ["mps3_an547"]),
        # mps2_an386 has had all of its tests. Steps of an example tell of the boards whose core another one has.
        *quick_boards(board for board in usable if board != "mps2_an386" and not boards.has_core_of_another(board)),
        Suite("budgets on a board of each kind", "tests/budgets/run --quick", f"{BOARD} tests"), *images(usable),
    ]


def left_out(usable, suites):
    """Names of the suites of --full that are not among these, those of several boards as one."""
    here = {suite.name for suite in suites}
    names = [suite.name for suite in full(usable) if suite.name not in here]
    board = re.compile(rf" (?:on|for) (?:{'|'.join([*usable, 'template'])})\b")
    families = [board.sub(" on boards", name) for name in names]
    return list(dict.fromkeys(family if families.count(family) > 1 else name for name, family in zip(names, families)))


def every_page(usable):
    """The pages of ports/rtos on every core, of which --full has two."""
    suites = []
    for board in (board for board in usable if not boards.has_core_of_another(board)):
        folder = f"build/{boards.value(board, 'preset')}/tests/ports/programs"
        suites += [Suite(f"programs for {board}, every page", [*PARTS, "builds", board, "port_programs"], BOARD),
                   Suite(f"ticks, interrupts and pages on {board}", ["tests/ports/interrupts", board, folder], BOARD)]
    return suites


def every_compiler(usable):
    """Compilers that are newer than this machine's own, and clang for every Cortex-M."""
    suites = []
    for compiler in ("clang++-16", "clang++-19", "g++-13", "g++-14", "g++-15"):
        suites.append(Suite(f"every header alone, {compiler}",
                            ["env", f"COMPILERS={compiler}", "tests/packaging/headers_alone"], f"build {compiler}"))
        suites.append(Suite(f"unit tests on host, {compiler}", [*PARTS, "host-tests-with", compiler], f"build tests {compiler}"))
    cortex_m = [board for board in usable if boards.value(board, "family") == "cortex_m"]
    for compiler in ("clang++-14", "clang++-16", "clang++-19"):
        suites += [by_clang(compiler, cortex_m), *images_by_clang(compiler)]
    return suites


def every_vector_unit():
    """Unit tests in both arithmetics, for the vector units of this processor."""
    flags = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
    return [
        Suite(f"unit tests on host, {march}, {arithmetic}", [*PARTS, "host-tests-as", march, arithmetic], "build tests")
        for march, unit in (("x86-64", "sse2"), ("x86-64-v3", "avx2"), ("x86-64-v4", "avx512f")) if unit in flags
        for arithmetic in ("unfused", "fused") if (march, arithmetic) != ("x86-64", "fused")]  # SSE2 has no FMA


def everywhere(usable):
    """`tests/run --everywhere`."""
    on_boards = [
        Suite(f"unit tests on {board}, {arithmetic}", [*PARTS, "board-tests-as", board, arithmetic], f"{BOARD} tests")
        for board in usable for arithmetic in ("unfused", "fused") if arithmetic == "unfused" or boards.has_fpu(board)]
    return [
        recognizes("digits, all of the training on a Cortex-M4", 0.91, "digits"),
        recognizes("digits in integers with weights in bf16, on the host", 0.91, "digits", "--on", "host", "--precision", "int8_bf16"),
        same_bits("seq_len 16, d_model 8, 2 heads on the micro:bit", 1, "argmax_copy", "--on", "host", "--on", "microbit",
                  "--shape", "16x8x2", "--steps", "20"),
        same_bits("digits on every board, the first steps", 2 * len(usable), "digits", "--on", "all", "--steps", "2", "--images", "4"),
        Suite("the same bits on the host, whatever the compiler", "tests/reproducibility/run --full host", "build gcc clang aarch64"),
        aarch64("unit tests on 64-bit Arm", "max"),
        aarch64("unit tests of kernels on a Cortex-A76, with SDOT", "cortex-a76", "attune_kernels_tests"),
        aarch64("unit tests of kernels on a Cortex-A72, without", "cortex-a72", "attune_kernels_tests"),
        Suite("messages of what must not compile, each compiler", "tests/compile_failure/run --each", "build gcc clang"),
        PICO, Suite("an ESP8266's processor in QEMU", "tests/ports/xtensa", "build gcc arm xtensa"),
        Suite("the same bits on every board", ["tests/reproducibility/run", *usable], BOARD),
        Suite("the same bits with compiler options", "tests/reproducibility/flags", f"{BOARD} gcc clang++-19"),
        Suite("all budgets on every board", "tests/budgets/run", f"{BOARD} tests"), memory_reports(usable),
        Suite("spoken digits of a new speaker, every method", "tests/examples/personalise_test --all", BOARD),
        Suite("text, token by token, from all of the training", "tests/examples/stream_test --all", BOARD, "bible"),
        Suite("models behind plain C, every library on a board", "tests/packaging/c_models --all", f"{BOARD} python", "arduino"),
        Suite("packages of a release, every sketch", "tests/packaging/packages --all", "build git pkg-config",
              "meson zephyr yaml xmllint arduino"),
        Suite("modules of PyTorch, every model", "tests/exchange/exporter --all", f"{BOARD} torch"),
        Suite("which training fits a board, in every kind of numbers", "tests/exchange/fit --all", BOARD),
        Suite("a ViT that PyTorch trains, to a board and back", "tests/examples/exported_test --all", f"{BOARD} torch"),
        Suite("programs of READMEs and pages, by GCC", "tests/packaging/pages --gcc", "build gcc", "mpi"),
        Suite("accuracy in 8 bits", "tests/accuracy/run digits spoken_digits", "build"),
        Suite("models of layers in firmware", "tests/packaging/models", "build arm"),
        Suite("files of several vector units", "tests/packaging/vector_units", "build", "qemu-user"),
        Suite("programs of the benchmark", [*PARTS, "bench-programs"], "build"),
        Suite("every header alone, each compiler", "tests/packaging/headers_alone --each", "build gcc arm clang", "mpi"),
        # What --full leaves to these.
        *target("host"), cases("vectors", "tests/vectors", "mps2_an386"), *every_page(usable), *fuzz(50_000, 5_000),
        *quick_boards(board for board in [*usable, "template"] if boards.has_core_of_another(board)),
        Suite("60 drawn options of attention, against PyTorch", "tests/vectors/fuzz_against_torch 60", "build tests torch"),
        Suite("40 drawn programs, on this PC and a Cortex-M4", "tests/fuzz/draw 40", f"{BOARD} gcc clang"),
        Suite("golden hashes of the zoo on the host", "tests/zoo/golden", "build clang"),
        *every_compiler(usable), *every_vector_unit(), *on_boards,
    ]
