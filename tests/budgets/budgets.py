"""usage: tests/budgets/run [--on BOARD | --quick] [--record] [--clock MHZ]
       tests/budgets/run --table

  (nothing)    build the firmware of tests/budgets/CMakeLists.txt for every board, measure it, and fail if a figure is more
               than 1 % above budgets.json
  --on BOARD   only this board; may be repeated
  --quick      all images of mps2_an386 and microbit, two images of a board for each other kind of kernels and of one with two cores
  --record     write the measured figures to budgets.json
  --clock MHZ  the clock for converting estimated cycles to milliseconds. Default: the board's own
  --table      print the tables of README.md from budgets.json

Figures of every image, at -O2 unless its name has another level, and unfused arithmetic:
  text          bytes of flash: code and constants, the port included
  ram           bytes of variables (.data and .bss), without the stack
  stack         the most bytes of stack in use from reset to the end, by the fill pattern of the start-up code
  stack_bound   the most bytes that any run can use, by the call graph (stack_bound.py); `stack` never exceeds it
  instructions  one training step or one inference, counted exactly by QEMU: for argmax_copy a step of 64 sequences, for digits
                a step of 32 images or the inference of one image, as examples/run reports them; for a product two sequences
                and an update, in slices. On two cores, the time of the core that calls (ports/instruction_counter.c)
  second_stack, second_stack_bound
                the same as stack and stack_bound, of the second core
Estimated cycles (ports/cycles/README.md) are printed beside instructions, without a budget.
Figures depend on the compiler: with another compiler than the recorded one none is compared, and with another QEMU no instructions.
`stack` is always compared with `stack_bound`. Two images train on both cores, on one board. A board with the core of another has two images, which tell of its port. RISC-V: two
images on one board, without a bound, because stack_bound.py reads Arm's instructions.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "cmake"), str(ROOT / "ports")]
import stack_bound  # noqa: E402
from boards import has_core_of_another, names as board_names, value as board_value  # noqa: E402

FILE = ROOT / "tests/budgets/budgets.json"
README = ROOT / "tests" / "budgets" / "README.md"
GROWTH = 0.01
SHOWN = ("microbit", "mps2_an385", "mps2_an386", "mps2_an500", "mps2_an505", "mps3_an547")  # one board of each core, in README
FIGURES = ("text", "ram", "stack", "stack_bound", "second_stack", "second_stack_bound", "instructions")
EXAMPLE = "argmax_copy_8x4x1"
# Examples, with what makes them do what is counted once. They print, so README's bound of the stack is not theirs.
EXAMPLES = {
    EXAMPLE: ["--steps", "1"],
    f"{EXAMPLE}_cores2": ["--steps", "1"],
    "digits_8x16x2": ["--steps", "1", "--images", "0"],
    "digits_inference_8x32x4": ["--images", "1"],
}
IMAGES = {
    "trainer_16x32x4": "training 16×32×4, AdamW",
    "trainer_16x32x4_update_in_backward": "with UpdateInBackward",
    "trainer_16x32x4_sgd": "with SGD, no moments",
    "trainer_16x32x4_masked": "with AdamW and a KeyPaddingMask",
    "inference_16x32x4": "inference 16×32×4, parameters in flash",
    "trainer_16x8x2": "training 16×8×2, AdamW",
    EXAMPLE: "`argmax_copy` 8×4×1",
    "digits_8x16x2": "`digits` 8×16×2, training",
    "digits_inference_8x32x4": "`digits` 8×32×4, inference, parameters in flash",
    "product_Os": "product, -Os",
    "product_O2": "product, -O2",
    "product_O3": "product, -O3",
    f"{EXAMPLE}_cores2": "`argmax_copy` 8×4×1 on both cores",
    "crew_digits_8x16x2": "training `digits` 8×16×2 on both cores",
}
# Images on both cores, and the only board that has them and no others. The calls that the second core makes through pointers.
CREWS = (f"{EXAMPLE}_cores2", "crew_digits_8x16x2")
BOARD_OF_CREWS = "mps2_an521"
SECOND_ROOT = "second_reset_handler"
CALLS_OF_SECOND = ((SECOND_ROOT, r"attune::TwoCores::start.*"),
                   (r"attune::TwoCores::(start.*|serve)", r"(?!.*_FUN).*TwoCores.*run.*"))
# Products, at their own optimization levels, and the only board that has them. README's bound of the stack is not theirs.
PRODUCTS = ("product_Os", "product_O2", "product_O3")
BOARD_OF_PRODUCTS = "mps2_an505"
# Compilers and emulators, by a family's prefix in budgets.json, and the board of RISC-V.
TOOLS = {"": ("arm-none-eabi-g++", "qemu-system-arm"), "riscv_": ("riscv64-unknown-elf-g++", "qemu-system-riscv32")}
RISCV = "riscv32_virt"
# Images of RISC-V, and of boards whose core another board has.
SELECTED = ("trainer_16x32x4", EXAMPLE)
# With --quick: boards that have all images, and those that have two.
WHOLE = ("mps2_an386", "microbit")
QUICK = (*WHOLE, "mps3_an547", BOARD_OF_CREWS, RISCV)
WRITTEN = r"at most ([\d,]+) bytes of stack"  # README's bound, of all images but EXAMPLES


class Failure(Exception):
    """What went wrong, for people."""


def output_of(*command, **options):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          stdin=subprocess.DEVNULL, text=True, **options)
    if done.returncode != 0:
        lines = "\n".join(done.stdout.splitlines()[-60:])
        raise Failure(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{lines}")
    return done.stdout


def boards():
    """Those of Arm, but slow ones, and one of RISC-V."""
    return [board for board in board_names() if board == RISCV or not (board_value(board, "slow") or prefix(board))]


def prefix(board):
    """Of its family, in budgets.json."""
    return "riscv_" if board_value(board, "family") == "riscv" else ""


def images_of(board, quick):
    if board == BOARD_OF_CREWS:
        return CREWS
    if prefix(board) or has_core_of_another(board) or quick and board not in WHOLE:
        return SELECTED
    return [image for image in IMAGES if image not in CREWS and (image not in PRODUCTS or board == BOARD_OF_PRODUCTS)]


def tools(families):
    """The versions that figures depend on."""
    return {family + what: output_of(tool, "--version").splitlines()[0]
            for family in sorted(families) for what, tool in zip(("compiler", "qemu"), TOOLS[family])}


def of_family(recorded, family):
    """What is recorded, with the tools of a family."""
    return {"compiler": recorded.get(family + "compiler"), "qemu": recorded.get(family + "qemu"), "budgets": recorded["budgets"]}


# Measuring.

def cmake(preset, *arguments):
    """CMake in a preset's build folder, when no other process works there."""
    output_of("bash", "-c", 'source cmake/bootstrap.sh && attune_cmake "$@"', "bash", f"build/{preset}", *arguments, cwd=ROOT)


def build(board, images):
    """Builds images of a board. Returns its build folder."""
    preset = board_value(board, "preset")
    cmake(preset, "--preset", preset)
    cache = (ROOT / "build" / preset / "CMakeCache.txt").read_text(encoding="utf-8")
    if "ATTUNE_ARITHMETIC:STRING=unfused\n" not in cache:
        raise Failure(f"build/{preset} is not configured for unfused arithmetic, which budgets are for")
    targets = ["budget_images"]
    if images in (SELECTED, CREWS):
        targets = [f"{image}{kind}" for image in images for kind in ("", "_measured")] + ([] if prefix(board) else ["empty"])
    cmake(preset, "--build", "--preset", preset, "--target", *targets)
    return ROOT / "build" / preset


def train():
    """The parameters of digits_inference_8x32x4, which the host trains in seconds. An unchanged file keeps its time."""
    to = ROOT / "build/trained/digits_inference_8x32x4.safetensors"
    with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
        output_of(ROOT / "examples/run", "digits", "--on", "host", "--shape", "8x32x4", "--export", file.name)
        trained = pathlib.Path(file.name).read_bytes()
    if not to.exists() or to.read_bytes() != trained:
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(trained)


def sections(elf):
    return {line.split()[0]: int(line.split()[1])
            for line in output_of("arm-none-eabi-size", "-A", elf).splitlines() if line.startswith(".")}


def emulate(board, elf, counted):
    """(stack of each core, [instructions, cycles]) of one run; None for what this board cannot tell, and for what is not to be
    counted."""
    arguments = EXAMPLES.get(elf.name.removesuffix("_measured.elf"), [])
    has_runner = os.access(ROOT / "ports" / board / "run", os.X_OK)  # no plugin there, and no options
    if has_runner and arguments:
        return [None], None
    with tempfile.NamedTemporaryFile("r") as counts:
        text = output_of(ROOT / "ports/run", board, elf, *arguments,
                         env={**os.environ, "ATTUNE_COUNTS": counts.name, "ATTUNE_CYCLES": "1", "ATTUNE_TIMEOUT": "300"})
        slices = re.findall(r"^region (.*)$", counts.read(), re.MULTILINE)
    stacks = list(map(int, re.findall(r"^(?:second_)?stack_bytes (\d+)$", text, re.MULTILINE)))
    if not stacks:
        raise Failure(f"{elf.name} on {board} does not tell its stack:\n{text}")
    if has_runner or not counted:
        return stacks, None
    if not slices:
        raise Failure(f"{elf.name} on {board}: no instructions are counted; ports/instruction_counter.c is for QEMU 7.2 to 10")
    return stacks, list(map(int, slices[0].split()))  # the first slice that is counted


def measure(board, folder, image, counted):
    """The figures of an image, None if the board has no room for it."""
    home = folder / ("examples" if (folder / "examples" / f"{image}.elf").exists() else "tests/budgets")
    elf = home / f"{image}.elf"
    if image in (folder / "tests/budgets/left_out.txt").read_text(encoding="utf-8").replace(" (", "\n").splitlines():
        return None
    size = sections(elf)
    figures = {"text": size[".text"] + size[".data"], "ram": size[".data"] + size[".bss"]}
    stacks, counts = emulate(board, folder / f"tests/budgets/{image}_measured.elf", counted)
    figures.update(zip(("stack", "second_stack"), stacks))
    places = [folder / "ports", home / f"CMakeFiles/{image}.dir"]
    try:
        if not prefix(board):
            figures["stack_bound"], _ = stack_bound.bound(elf, places)
        if image in CREWS:
            figures["second_stack_bound"], _ = stack_bound.bound(elf, places, SECOND_ROOT, [*CALLS_OF_SECOND, *stack_bound.KNOWN_CALLS])
    except stack_bound.Unbounded as reason:
        raise Failure(f"{image} on {board}: no bound on the stack: {reason}") from reason
    figures.update(zip(("instructions", "cycles"), counts or ()))
    return {key: value for key, value in figures.items() if value is not None}


def tell_cycles(measured, clock):
    """Takes the cycles out of figures: nothing is held against an estimate."""
    for image, by_board in measured.items():
        for board, figures in by_board.items():
            if cycles := figures.pop("cycles", None):
                mhz = clock or float(board_value(board, "clock")) / 1e6
                print(f"estimated {image} on {board}: {cycles:,} cycles, {cycles / figures['instructions']:.2f} an instruction, "
                      f"{cycles / mhz / 1000:.2f} ms at {mhz:g} MHz")


# Comparing.

class Report:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def ok(self):
        self.passed += 1

    def fail(self, text):
        self.failed += 1
        print(f"FAILED {text}")

    def skip(self, text):
        self.skipped += 1
        print(f"skipped {text}")


def check_bounds(measured, written, report):
    """Measured ≤ computed ≤ what README says, which is the same for every board."""
    for image, by_board in measured.items():
        for board, figures in by_board.items():
            where, bound = f"{image} on {board}", figures.get("stack_bound")
            if bound is None:
                continue
            if over := [core for core in ("", "second_") if figures.get(f"{core}stack", 0) > figures.get(f"{core}stack_bound", 0)]:
                report.fail(f"{where}: {figures[f'{over[0]}stack']} bytes of {over[0]}stack, more than the computed bound of "
                            f"{figures.get(f'{over[0]}stack_bound')}")
            elif image not in EXAMPLES and image not in (*PRODUCTS, *CREWS) and written is not None and bound > written:
                report.fail(f"{where}: {bound} bytes of stack are possible, README says at most {written}")
            else:
                report.ok()


def compare(recorded, measured, here, report):
    """Fails where a figure has grown, tells where one has shrunk. Skips what other tools have made."""
    shrunk = 0
    if here["compiler"] != recorded["compiler"]:
        report.skip(f"all figures: recorded with {recorded['compiler']}, here is {here['compiler']}")
        return
    other_qemu = here["qemu"] != recorded["qemu"]
    if other_qemu:
        report.skip(f"instructions: recorded with {recorded['qemu']}, here is {here['qemu']}")
    for image, by_board in measured.items():
        for board, figures in by_board.items():
            before = recorded["budgets"].get(image, {}).get(board, {})
            for figure, now in figures.items():
                was = before.get(figure)
                if figure == "instructions" and other_qemu:
                    continue
                if was is None:
                    report.fail(f"{image} on {board}: {figure} is not recorded; tests/budgets/run --record does")
                elif now > was * (1 + GROWTH):
                    report.fail(f"{image} on {board}: {figure} was {was:,}, is {now:,} ({now / was - 1:+.2%}, "
                                f"{GROWTH:.0%} is allowed)")
                else:
                    report.ok()
                    if now < was * (1 - GROWTH):
                        shrunk += 1
                        print(f"shrunk {image} on {board}: {figure} was {was:,}, is {now:,} ({now / was - 1:+.2%})")
            for figure in before.keys() - figures.keys() - ({"instructions"} if other_qemu else set()):
                report.fail(f"{image} on {board}: {figure} is recorded, but not measured")
    if shrunk:
        print(f"{shrunk} figures are smaller than recorded; tests/budgets/run --record keeps them so")


def written_bound(readme):
    """What README says of the stack."""
    if not (match := re.search(WRITTEN, readme)):
        raise Failure(f"README has no sentence with '{WRITTEN}'")
    return int(match.group(1).replace(",", ""))


# The file.

def read():
    with open(FILE, encoding="utf-8") as file:
        return json.load(file)


def text_of(recorded):
    """JSON, a line for each image on each board."""
    images = []
    for image, by_board in recorded["budgets"].items():
        lines = [f'      "{board}": {json.dumps(figures)}' for board, figures in sorted(by_board.items())]
        images.append(f'    "{image}": {{\n' + ",\n".join(lines) + "\n    }")
    head = "".join(f'  "{key}": {json.dumps(version)},\n' for key, version in recorded.items() if key != "budgets")
    return "{\n" + head + '  "budgets": {\n' + ",\n".join(images) + "\n  }\n}\n"


def table(recorded):
    """README's tables: images of several boards, on SHOWN, and images of one board."""
    labels = {"text": "text", "ram": "RAM", "stack_bound": "stack, at most", "second_stack_bound": "second core's", "instructions": "instructions"}

    def cell(figures, figure):
        return f"{figures[figure]:,}" if figure in figures else "–"

    several = [["", *(board_value(board, "cpu").removeprefix("cortex-").upper() for board in SHOWN)], ["---"] * (len(SHOWN) + 1)]
    one = [["on one board", *labels.values()], ["---"] * (len(labels) + 1)]
    for image, by_board in recorded["budgets"].items():
        if len(by_board) == 1:
            (board, figures), = by_board.items()
            one.append([f"{IMAGES[image]}, `{board}`", *(cell(figures, figure) for figure in labels)])
            continue
        rams = {by_board[board]["ram"] for board in SHOWN if board in by_board}
        for figure in ("text", *(["ram"] if len(rams) > 1 else []), "stack_bound", "instructions"):
            name = f"{IMAGES[image]}{'' if len(rams) > 1 else f', RAM {rams.pop():,}'}: text" if figure == "text" else labels[figure]
            several.append([name, *(cell(by_board.get(board, {}), figure) for board in SHOWN)])
    return "\n".join("".join("| " + " | ".join(row) + " |\n" for row in rows) for rows in (several, one))


def check_readme(recorded, report):
    if table(recorded) in README.read_text(encoding="utf-8"):
        report.ok()
    else:
        report.fail("tests/budgets/README.md: its tables are not those of tests/budgets/run --table")


def main():
    arguments, chosen, record, quick, clock = sys.argv[1:], [], False, False, None
    while arguments:
        option = arguments.pop(0)
        if option in ("--help", "-h"):
            print(__doc__, end="")
            return 0
        if option == "--table":
            print(table(read()), end="")
            return 0
        if option == "--record":
            record = True
        elif option == "--quick":
            quick = True
        elif option == "--clock" and arguments and re.fullmatch(r"[1-9]\d*(\.\d+)?", arguments[0]):
            clock = float(arguments.pop(0))
        elif option == "--on" and arguments and arguments[0] in boards():
            chosen.append(arguments.pop(0))
        else:
            print(f"tests/budgets/run: {option}?\nboards: {' '.join(boards())}\n{__doc__}", end="", file=sys.stderr)
            return 2

    if quick and (record or chosen):
        raise Failure("--quick goes without --on and --record")
    report = Report()
    wanted = chosen or [board for board in boards() if not quick or board in QUICK]
    if RISCV in wanted and not all(map(shutil.which, TOOLS["riscv_"])):
        report.skip(f"{RISCV}: no compiler or no emulator for it")
        wanted.remove(RISCV)
    families = {prefix(board) for board in wanted}
    here = tools(families)
    recorded = read() if FILE.exists() else {"budgets": {}}
    if record and not chosen:
        recorded = {"budgets": {}}
    # A plugin is for one QEMU; only --record asks another one for instructions.
    counted = {family: record or here[family + "qemu"] == recorded.get(family + "qemu") for family in families}
    if record and any(recorded.get(key, version) != version for key, version in here.items()):
        raise Failure("with another compiler or QEMU than recorded, --record takes every board: leave out --on")
    images = {board: images_of(board, quick) for board in wanted}
    if any("digits_inference_8x32x4" in of_board for of_board in images.values()):
        train()
    folders = {board: build(board, images[board]) for board in wanted}
    places = [(image, board) for image in IMAGES for board in folders if image in images[board]]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda at: measure(at[1], folders[at[1]], at[0], counted[prefix(at[1])]), places))
    measured = {image: {} for image in IMAGES}
    small = {}  # in the place of what there is no room for: only their stack is looked at
    for (image, board), figures in zip(places, results):
        if figures is not None:
            measured[image][board] = figures
            continue
        report.skip(f"{image}: no room on {board}")
        if (other := image.replace("16x32x4", "16x8x2")) not in IMAGES:
            small.setdefault(other, {})[board] = measure(board, folders[board], other, counted[prefix(board)])

    tell_cycles(measured, clock)
    tell_cycles(small, clock)
    if record:
        for image in IMAGES:
            kept = {board: figures for board, figures in recorded["budgets"].get(image, {}).items() if board not in folders}
            recorded["budgets"][image] = {**kept, **measured[image]}
        check_bounds({**measured, **small}, None, report)
        if report.failed == 0:
            FILE.write_text(text_of({**recorded, **here}), encoding="utf-8")
    else:
        same_compiler = here.get("compiler") == recorded["compiler"]
        written = written_bound(README.read_text(encoding="utf-8")) if same_compiler else None
        check_bounds({**measured, **small}, written, report)
        for family in sorted(families):
            of_boards = {image: {board: figures for board, figures in by_board.items() if prefix(board) == family}
                         for image, by_board in measured.items()}
            compare(of_family(recorded, family), of_boards, of_family({**here, "budgets": {}}, family), report)
        check_readme(recorded, report)
    print(f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped")
    return 1 if report.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        sys.exit(f"tests/budgets/run: {failure}")
