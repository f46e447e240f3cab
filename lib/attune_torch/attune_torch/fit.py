"""Which way to train an exported model fits a board: RAM of many ways from the compiler, the rest of the first that fit from images.

RAM is exact: the types' own sizes, for the board's core. Flash, stack, instructions and estimated cycles are those of an image that trains
one sequence on an emulated board with the same core. Nothing is printed that was not measured. Needs no PyTorch."""
import csv
import dataclasses
import os
import re
import struct
import subprocess
import textwrap
from pathlib import Path

from .building import compiler_prefix, configure, refuse_board, run, sources
from .errors import CheckFailed

PARTS = ("parameters", "gradients", "moments", "tape", "scratch", "inputs", "state")
# The emulated board with a core, and the core to compile for. Without an FPU the board only lends its memory.
EMULATED = {"cortex-m0": ("mps2_an385", "cortex-m0"), "cortex-m0plus": ("mps2_an385", "cortex-m0plus"),
            "cortex-m3": ("mps2_an385", "cortex-m3"), "cortex-m4-nofpu": ("mps2_an385", "cortex-m3"),
            "cortex-m4": ("mps2_an386", "cortex-m4"), "cortex-m7": ("mps2_an500", "cortex-m7"),
            "cortex-m7-dp": ("mps2_an500_dp", "cortex-m7-dp"), "cortex-m33": ("mps2_an505", "cortex-m33"),
            "cortex-m55": ("mps3_an547", "cortex-m55")}
# In the order in which candidates are taken: an optimizer with moments before one without; what trains most; the most exact numbers; the
# least time.
LORA = [(rank, roles) for rank in (8, 4, 2, 1) for roles in ("kEverything", "kQueries | kValues")]
TRAINED = {"everything": None,
           **{f"LoRA, rank {rank}, {'all weights' if roles == 'kEverything' else 'queries and values'}": (rank, roles) for rank, roles in LORA},
           "biases and norms": None, "head": None}
OPTIMIZERS = {"AdamW": "attune::AdamW",
              "AdamW, moments in bf16": "attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kBfloat16}>",
              "AdamW, moments in 8 bits": "attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kInt8}>",
              "SGD": "attune::Sgd<>"}
TAPES = ("kept", "attention recomputed", "blocks recomputed")
PLANS = {"batches": "attune::BySequence", "one sequence": "attune::UpdateInBackward"}


@dataclasses.dataclass(frozen=True)
class Board:
    """A row of boards.csv."""
    board: str
    part: str
    core: str
    mhz: int
    ram: int
    flash: int

    @property
    def names(self):
        return {plain(self.board), plain(self.part)}


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A way to train."""
    trains: str
    optimizer: str
    plan: str
    tape: str

    def __str__(self):
        parts = [self.trains, self.optimizer]
        parts += ["updates in backward"] if self.plan == "one sequence" else []
        parts += [self.tape] if self.tape != "kept" else []
        return "; ".join(parts)

    def trained(self, scope):
        """(what it needs to have parameters, the model's type); `scope`: where Model and kBase are, as "vit::"."""
        model, base = f"{scope}Model", f"{scope}kBase"
        if self.trains == "everything":
            return "true", model
        if self.trains == "head":
            return "true", f"attune::LinearProbe<{model}, {base}>"
        if self.trains == "biases and norms":
            return f"attune_torch::kTrains<{model}, attune::detail::TrainVectors>", f"attune::BiasesAndNorms<{model}, {base}>"
        rank, roles = TRAINED[self.trains]
        roles = " | ".join(f"attune::Role::{role}" for role in roles.split(" | "))
        factors = f"attune::LowRank{{.rank = {rank}, .roles = {roles}}}"
        return f"attune_torch::kTrains<{model}, attune::detail::TrainLowRank<{factors}>>", f"attune::Adapted<{model}, {base}, {factors}>"

    def trainer(self, scope, loss):
        return f"attune::Trainer<{self.trained(scope)[1]}, {loss}, {OPTIMIZERS[self.optimizer]}, 1, {PLANS[self.plan]}>"


def space(name, tape):
    """The namespace of a model with a tape, in files of this search."""
    return f"{name}_{tape.replace(' ', '_')}"


def plain(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


def boards():
    """All rows of boards.csv. RAM and flash in bytes."""
    with open(Path(__file__).with_name("boards.csv"), newline="", encoding="utf-8") as file:
        return [Board(row["board"], row["part"], row["core"], int(row["mhz"]), int(row["ram_kb"]) * 1024, int(row["flash_kb"]) * 1024)
                for row in csv.DictReader(file)]


def board_named(name):
    """The board, or the part, that is called so or begins so."""
    every, wanted = boards(), plain(name)
    found = [board for board in every if wanted in board.names] or [board for board in every if any(wanted and own.startswith(wanted) for own in board.names)]
    if not found:
        raise CheckFailed(f"there is no board '{name}' in boards.csv, which has: " + ", ".join(board.board for board in every))
    if len({(board.core, board.mhz, board.ram, board.flash) for board in found}) > 1:
        raise CheckFailed(f"'{name}' is more than one board: " + ", ".join(f"{board.board} ({board.part})" for board in found))
    return found[0]


def candidates(header):
    """(candidates in the order in which they are taken, what was left out and why)."""
    has_blocks, is_sequence = "EncoderLayer<" in header, re.search(r"using Model = attune::Sequential<", header) is not None
    kept, left_out = [], []
    for trains in TRAINED:
        if trains == "head" and not is_sequence:
            left_out.append("head: the model is not a Sequential")
            continue
        for optimizer in OPTIMIZERS:
            for plan in PLANS:
                for tape in TAPES if has_blocks and trains != "head" else TAPES[:1]:
                    kept.append(Candidate(trains, optimizer, plan, tape))
    if not has_blocks:
        left_out.append("recomputed: the model has no encoder layer")
    else:
        left_out.append("head, recomputed: no block is trained")
    kept.sort(key=lambda candidate: candidate.optimizer == "SGD")
    return kept, left_out


RECOMPUTED = """[](attune::EncoderLayerShape shape) {{
  shape.attention.keep_weights = false;
  return shape;
}}({{{fields}}});"""


def declarations(name, header, tape, space):
    """The model's declarations for one tape, in a namespace, with its weights in flash as kBase."""
    begin, end = f"namespace {name} {{", f"}}  // namespace {name}"
    body = header[header.index(begin) + len(begin):header.index(end)]
    if tape == "attention recomputed":
        body = re.sub(r"(attune::EncoderLayerShape \w+)\{(.*?)\};", lambda found: f"{found[1]} = " + RECOMPUTED.format(fields=found[2]), body, flags=re.S)
    elif tape == "blocks recomputed":
        body = re.sub(r"attune::EncoderLayer<(\w+)>", r"attune::Checkpointed<attune::EncoderLayer<\1>>", body)
    return f"namespace {space} {{{body}inline constexpr const auto& kBase = attune::kInFlash<Names, {name}_file>;\n"


def variants(name, header):
    """The declarations once for each tape."""
    tapes = TAPES if "EncoderLayer<" in header else TAPES[:1]
    spaces = [f"{declarations(name, header, tape, space(name, tape))}\n}}  // namespace {space(name, tape)}\n" for tape in tapes]
    return "\n".join(["#pragma once", "", "#include <attune/attune.hpp>", "#include <attune_torch/fit.hpp>", f"#include <{name}_file.hpp>", "", *spaces])


def sizes_source(name, every, loss):
    rows = []
    for candidate in every:
        condition, model = candidate.trained(space(name, candidate.tape) + "::")
        rows.append(f"    attune_torch::figures<{condition}, {model}, {loss}, {OPTIMIZERS[candidate.optimizer]}, {PLANS[candidate.plan]}>(),")
    return "\n".join(['#include "variants.hpp"', "", f'extern "C" [[gnu::section(".attune_fit"), gnu::used]] const attune_torch::Figures '
                      f"attune_fit[{len(every)}] = {{", *rows, "};", ""])


IMAGE = """#include <console.hpp>
#include <instructions.hpp>
#include <port.hpp>

#include "variants.hpp"

// A step with one sequence. The second one counts: moments are zero before the first.
extern "C" {{
{trainer} trainer;
decltype(trainer)::BatchInput input;
decltype(trainer)::BatchTarget target;
}}

int main() {{
  attune::Rng rng(42);
  attune_torch::draw(input, rng);
  attune_torch::draw(target, rng);
  trainer.initialize(attune::XavierUniform{{}}, rng);
  const bool started = trainer.step(input, target, {{.learning_rate = 1e-3f}}).ok();
  port::begin_counting();
  const bool trained = trainer.step(input, target, {{.learning_rate = 1e-3f}}).ok();
  port::end_counting();
  port::print("stack_bytes ", port::stack_high_water(), '\\n');
  return started && trained ? 0 : 1;
}}
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(fit LANGUAGES CXX)
set(ATTUNE_BUILD_PORTS ON)
set(ATTUNE_BUILD_EXAMPLES OFF)
set(ATTUNE_BUILD_TESTS OFF)
add_subdirectory(${{ATTUNE_DIR}} attune)
add_subdirectory({folder} model EXCLUDE_FROM_ALL)
add_library(sizes OBJECT EXCLUDE_FROM_ALL sizes.cpp)
target_link_libraries(sizes PRIVATE attune::attune)
attune_add_program(image SOURCES image.cpp)
foreach(target sizes image)
  target_include_directories(${{target}} PRIVATE ${{ATTUNE_DIR}}/lib/attune_torch)
  {name}_add_to(${{target}}{quantize})
endforeach()
"""


class Search:
    """Builds and measures candidates of one folder, for one core."""

    def __init__(self, folder, core, loss, base, attune):
        self.folder, self.loss, self.core = Path(folder).resolve(), loss, core
        self.name = self.folder.name
        header = self.folder / f"{self.name}.hpp"
        if not header.is_file() or not (self.folder / "model.safetensors").is_file():
            raise CheckFailed(f"{folder} was not written by attune_torch.export")
        self.root = sources(attune)
        self.target, self.cpu = EMULATED[core]
        refuse_board(self.root, self.target)
        self.header = header.read_text(encoding="utf-8")
        self.every, self.left_out = candidates(self.header)
        self.home = self.folder / "build" / "fit"
        self.home.mkdir(parents=True, exist_ok=True)
        self.write("variants.hpp", variants(self.name, self.header))
        self.write("sizes.cpp", sizes_source(self.name, self.every, loss))
        self.write("image.cpp", self.image(self.every[0]))
        quantize = " QUANTIZE int8" if base == "int8" else ""
        self.write("CMakeLists.txt", PROJECT.format(folder=self.folder, name=self.name, quantize=quantize))
        self.build = configure(self.home, self.root, self.target, self.cpu)

    def write(self, file, text):
        """An unchanged file keeps its time."""
        path = self.home / file
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    def image(self, candidate):
        return IMAGE.format(trainer=candidate.trainer(space(self.name, candidate.tape) + "::", self.loss))

    def sizes(self):
        """{candidate: {part: bytes}} of all that the model has parameters for."""
        run(["cmake", "--build", self.build, "--target", "sizes"], "the build of the sizes")
        made = next(self.build.glob("CMakeFiles/sizes.dir/sizes.cpp.*"))
        words = self.build / "sizes.bin"
        run([compiler_prefix(self.root, self.target) + "objcopy", "-O", "binary", "--only-section=.attune_fit", "--set-section-flags",
             ".attune_fit=alloc,load,contents", made, words], "objcopy")
        rows = struct.iter_unpack(f"<{len(PARTS)}I", words.read_bytes())
        found = {candidate: dict(zip(PARTS, row)) for candidate, row in zip(self.every, rows) if any(row)}
        for trains in TRAINED:
            if any(candidate.trains == trains for candidate in self.every) and not any(candidate.trains == trains for candidate in found):
                self.left_out.append(f"{trains}: the model has no such parameters")
        return found

    def measure(self, candidate):
        """Flash and static RAM of an image that trains like this; its stack, instructions and estimated cycles."""
        self.write("image.cpp", self.image(candidate))
        run(["cmake", "--build", self.build, "--target", "image"], f"the build of '{candidate}'")
        image = self.build / "image.elf"
        sections = dict.fromkeys((".text", ".data", ".bss"), 0)
        for line in run([compiler_prefix(self.root, self.target) + "size", "-A", image], "size").splitlines():
            name, *size = line.split()[:2] or [""]
            sections.update({name: int(size[0])} if name in sections else {})
        counts = self.build / "counts"
        done = subprocess.run([self.root / "ports/run", self.target, image], capture_output=True, text=True,
                              env={**os.environ, "ATTUNE_COUNTS": str(counts), "ATTUNE_CYCLES": self.cpu})
        stack = re.search(r"^stack_bytes (\d+)$", done.stdout, re.M)
        if done.returncode or not stack:
            raise CheckFailed(f"'{candidate}' on {self.target} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        region = re.search(r"^region (\d+)(?: (\d+))?", counts.read_text() if counts.is_file() else "", re.M)
        return {"flash": sections[".text"] + sections[".data"], "static": sections[".data"] + sections[".bss"], "stack": int(stack[1]), "instructions": int(region[1]) if region else None,
                "cycles": int(region[2]) if region and region[2] else None}


@dataclasses.dataclass(frozen=True)
class Limits:
    """Bytes, and seconds of a step with one sequence; None: no limit."""
    ram: int = None
    flash: int = None
    step: float = None


def amount(text, units, what):
    """A number with a unit: 64K, 100ms."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text.strip())
    factor = units.get(found[2].lower()) if found else None
    if factor is None or float(found[1]) <= 0:
        raise ValueError(f"'{text}' is not {what}")
    return float(found[1]) * factor


def bytes_of(text):
    return int(amount(text, {"": 1, "b": 1, "k": 1024, "kb": 1024, "m": 1024 ** 2, "mb": 1024 ** 2}, "an amount of memory, as 64K or 65536"))


def seconds_of(text):
    return amount(text, {"s": 1, "ms": 1e-3, "us": 1e-6}, "a time, as 100ms or 2s")


def ram_of(parts):
    return sum(parts.values())


def first_of_each(sizes, limit):
    """For each thing to train: the first candidate within the limit, else the one with the least RAM."""
    for trains in TRAINED:
        own = [candidate for candidate in sizes if candidate.trains == trains]
        if own:
            fitting = [candidate for candidate in own if limit is None or ram_of(sizes[candidate]) <= limit]
            yield fitting[0] if fitting else min(own, key=lambda candidate: ram_of(sizes[candidate]))


def savings(sizes, candidate):
    """What one other choice saves, in words."""
    own = ram_of(sizes[candidate])
    for field, choices in (("optimizer", OPTIMIZERS), ("tape", TAPES), ("plan", PLANS)):
        others = [dataclasses.replace(candidate, **{field: choice}) for choice in choices]
        best = min((other for other in others if other in sizes), key=lambda other: ram_of(sizes[other]))
        saved = own - ram_of(sizes[best])
        if saved > 0:
            words = {"optimizer": best.optimizer, "tape": best.tape, "plan": "updates in backward"}[field]
            yield f"{words} saves {saved:,} bytes"


def shortfall(sizes, limits):
    """Why no candidate is within the limit of RAM."""
    lines = []
    for candidate in first_of_each(sizes, None):
        least = min((other for other in sizes if other.trains == candidate.trains), key=lambda other: ram_of(sizes[other]))
        lines.append(f"{candidate.trains}: {ram_of(sizes[least]) - limits.ram:,} bytes short with {least.optimizer}"
                     f"{', updates in backward' if least.plan == 'one sequence' else ''}{', ' + least.tape if least.tape != 'kept' else ''}")
    return lines


def exceeded(figures, limits, mhz):
    """What a measured candidate takes beyond the limits, in words."""
    beyond = []
    ram = figures["static"] + figures["stack"]
    if limits.ram is not None and ram > limits.ram:
        beyond.append(f"RAM with stack and port: {ram - limits.ram:,} bytes short")
    if limits.flash is not None and figures["flash"] > limits.flash:
        beyond.append(f"flash: {figures['flash'] - limits.flash:,} bytes short")
    if limits.step is not None and not figures["cycles"]:
        beyond.append("a step: this machine counts no instructions of the emulator")
    elif limits.step is not None and figures["cycles"] / (mhz * 1e6) > limits.step:
        beyond.append(f"a step: {figures['cycles'] / (mhz * 1e3):,.1f} ms at {mhz} MHz, {limits.step * 1e3:,.1f} asked")
    return beyond


ADAPT = """// The way to train {name} that `python3 -m attune_torch fit` chose: {candidate}.
// Measured on {target} as {cpu}: {flash:,} bytes of flash, {static:,} of RAM, {stack:,} of stack.
#pragma once

#include <attune/attune.hpp>
#include <{name}_file.hpp>

{declarations}
using Trainer = {trainer};
static_assert(Trainer::memory(attune::Feeding::kOneByOne).total() == {ram}, "another size than fit measured");

}}  // namespace {name}_fit
"""


def write_adapt(search, candidate, ram, figures):
    """The type that was chosen, for a firmware: adapt.hpp in the folder."""
    text = ADAPT.format(name=search.name, candidate=candidate, target=search.target, cpu=search.cpu, ram=f"{ram:,}".replace(",", "'"),
                        declarations=declarations(search.name, search.header, candidate.tape, f"{search.name}_fit"),
                        trainer=candidate.trainer("", search.loss), **figures)
    (search.folder / "adapt.hpp").write_text(text, encoding="utf-8")


def report(search, sizes, limits, everything, say):
    shown = list(sizes) if everything else list(first_of_each(sizes, limits.ram))
    say(f"{len(sizes)} ways to train {search.name}, sizes for {search.cpu}. Left out: {'; '.join(search.left_out)}")
    say(f"{'RAM':>10} {''.join(f'{part:>11}' for part in PARTS)}  training")
    for candidate in shown:
        parts = sizes[candidate]
        fits = limits.ram is None or ram_of(parts) <= limits.ram
        say(f"{ram_of(parts):>10,} {''.join(f'{parts[part]:>11,}' for part in PARTS)}  {candidate}{'' if fits else '  (does not fit)'}")


def boards_that_fit(figures, core):
    """Boards with the core that have the RAM and the flash, and the milliseconds of a step on each."""
    for board in boards():
        if board.core == core and figures["static"] + figures["stack"] <= board.ram and figures["flash"] <= (board.flash or figures["flash"]):
            yield board, figures["cycles"] / (board.mhz * 1e3) if figures["cycles"] else None


def choose(search, sizes, limits, mhz, attempts, say):
    """The first candidate within all limits, and its figures; measures at most so many."""
    fitting = [candidate for candidate in sizes if limits.ram is None or ram_of(sizes[candidate]) <= limits.ram]
    if not fitting:
        raise CheckFailed("\n".join([f"nothing fits {limits.ram:,} bytes of RAM:", *shortfall(sizes, limits)]))
    refused = []
    for candidate in fitting[:attempts]:
        figures = search.measure(candidate)
        beyond = exceeded(figures, limits, mhz)
        if not beyond:
            return candidate, figures
        refused.append(f"{candidate}: " + "; ".join([*beyond, *savings(sizes, candidate)]))
        say("measured, and left out: " + refused[-1])
    raise CheckFailed(f"nothing of the first {len(refused)} that were measured is within all limits; --attempts measures more")


def tell(search, place, candidate, figures, say):
    cycles = f", about {figures['cycles']:,} cycles" if figures["cycles"] else ""
    counted = f", {figures['instructions']:,} instructions{cycles} a step with one sequence" if figures["instructions"] else ""
    say(f"chosen: {candidate}")
    say(f"  measured on {search.target} as {search.cpu}: {figures['flash']:,} bytes of flash, {figures['static']:,} of RAM with the port, "
        f"{figures['stack']:,} of stack{counted}")
    if place and figures["cycles"]:
        say(f"  on {place.board}, {place.mhz} MHz: about {figures['cycles'] / (place.mhz * 1e3):,.1f} ms a step")
    others = [f"{board.board}{f' ({time:,.1f} ms)' if time else ''}" for board, time in boards_that_fit(figures, search.core)]
    say(textwrap.fill(f"boards with this core that fit: {', '.join(others) or 'none in boards.csv'}", 150, initial_indent="  ", subsequent_indent="    "))


def fit(folder, board=None, core=None, ram=None, flash=None, step=None, loss=None, base="float", everything=False, attempts=3, attune=None, say=print):
    """Finds a way to train within the limits, says what it takes, and writes adapt.hpp into the folder. Returns its figures.

    Raises CheckFailed, and says by how much, if nothing fits. `board`: a row of boards.csv, whose memory is the limit unless `ram` or
    `flash` is given. `step`: seconds for a step with one sequence, by estimated cycles at the board's clock."""
    place = board_named(board) if board else None
    if place is None and step is not None:
        raise ValueError("--step is a time on a board: give --board, too")
    if core is not None and core not in EMULATED:
        raise ValueError(f"there is no core '{core}'; there are: " + ", ".join(EMULATED))
    limits = Limits(ram or (place and place.ram) or None, flash or (place and place.flash) or None, step)
    search = Search(folder, core or (place.core if place else "cortex-m4"), loss or "attune::CrossEntropy<>", base, attune)
    sizes = search.sizes()
    report(search, sizes, limits, everything, say)
    candidate, figures = choose(search, sizes, limits, place.mhz if place else 1, attempts, say)
    tell(search, place, candidate, figures, say)
    write_adapt(search, candidate, ram_of(sizes[candidate]), figures)
    say(f"wrote {search.folder / 'adapt.hpp'}")
    return {"candidate": candidate, "parts": sizes[candidate], **figures}
