"""Which way to train an exported model fits a board: RAM of many ways from the compiler, the rest of the first that fit from images.

RAM is exact: the types' own sizes, for the board's core. Flash, stack, instructions and estimated cycles are those of an image that trains
one sequence on an emulated board with the same core. With takes of users, accuracy decides (fit_data.py). Nothing is printed that was not
measured. Needs no PyTorch."""
import contextlib
import dataclasses
import hashlib
import itertools
import math
import os
import re
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

from . import fit_data
from .boards import EMULATED, OBJECTS, OWNED, board_named, boards
from .building import compiler_prefix, configure, export_hash, filled, name_of, refuse_board, refuse_renamed, run, sources
from .errors import CheckFailed
from .fit_page import Point, page_of

PARTS = ("parameters", "gradients", "moments", "tape", "scratch", "inputs", "state")
# In the order in which candidates are taken: an optimizer with moments before one without; what trains most; the most exact numbers; the
# least time.
LORA = [(rank, roles) for rank in (8, 4, 2, 1) for roles in ("kEverything", "kQueries | kValues")]
TRAINED = {"everything": None,
           "last block": None,
           **{f"LoRA, rank {rank}, {'all weights' if roles == 'kEverything' else 'queries and values'}": (rank, roles) for rank, roles in LORA},
           "biases and norms": None, "head": None}
CLOSED_FORM, FORWARD_ONLY = "closed form", "forward only"
OPTIMIZERS = {"AdamW": "attune::AdamW",
              "AdamW, moments in bf16": "attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kBfloat16}>",
              "AdamW, moments in 8 bits": "attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kInt8}>",
              "Adafactor": "attune::Adafactor<>",
              "SGD": "attune::Sgd<>",
              CLOSED_FORM: None,
              FORWARD_ONLY: None}
TAPES = ("kept", "attention recomputed", "blocks recomputed", "tape in 8 bits")
ROUNDED_TAPE = TAPES[3]  # the others end with the same bits
TAPE_TYPES = {"attention recomputed": "AttentionRecomputed", "blocks recomputed": "BlocksRecomputed", "tape in 8 bits": "TapeInInt8"}  # of fit.hpp, for a type
IN_THE_MODEL = {"attention recomputed": " with .keep_weights = false in its attention", "blocks recomputed": " with each EncoderLayer in a Checkpointed",
                "tape in 8 bits": " in a QuantizedTape", "kept": ""}
VOLTS = 3.3  # of which energy is told
DRAWN = 6  # trainings whose time is measured for the page
INFOMAX = "attune::SemiSupervised"  # the loss without labels
NO_MASK = "attune::NoMask"  # of takes without lengths
NUMBERS = ("floats", "products in integers", "weights in bf16")
BASES = ("floats", "8 bits")  # of the weights in flash
CODE = 256 * 1024  # bytes of flash beside the weights that no image takes
PLANS = {"batches": "attune::BySequence", "one sequence": "attune::UpdateInBackward"}


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A way to train."""
    trains: str
    optimizer: str
    plan: str
    tape: str
    batch: int = 1  # takes of a step; of RAM it changes nothing, but where there are no labels
    numbers: str = NUMBERS[0]
    base: str = BASES[0]
    unlabeled: bool = False  # learns from all takes at once, `batch` at most

    def __str__(self):
        parts = [self.trains, self.optimizer]
        parts += [self.numbers] if self.numbers != NUMBERS[0] else []
        parts += ["without labels"] if self.unlabeled else [f"batches of {self.batch}"] if self.batch > 1 else []
        parts += ["updates in backward"] if self.plan == "one sequence" else []
        parts += [self.tape] if self.tape != "kept" else []
        parts += ["base in 8 bits"] if self.base != BASES[0] else []
        return "; ".join(parts)

    @property
    def exact(self):
        """With the tape that is kept, if this one has its bits."""
        return self if self.tape == ROUNDED_TAPE else dataclasses.replace(self, tape=TAPES[0])

    @property
    def takes_batches(self):
        return self.plan == "batches" and self.optimizer != CLOSED_FORM and not self.unlabeled

    def in_batches(self, batch):
        """With steps of so many takes, if it takes batches."""
        return dataclasses.replace(self, batch=batch) if self.takes_batches else self

    @property
    def number(self):
        """What the search varies, and its name as a member of the trainer's options."""
        return "ridge" if self.optimizer == CLOSED_FORM else "learning_rate"

    def options(self, value):
        """C++ of the trainer's options with that number."""
        own = f"{{.{self.number} = {value}f}}"
        return f"{{.head = {own}}}" if self.unlabeled and self.optimizer == CLOSED_FORM else own

    def trained(self, scope):
        """(what it needs to have parameters, the model's type); `scope`: where Model and kBase are, as "vit::"."""
        model, base = f"{scope}Model", f"{scope}kBase"
        if self.trains == "everything":
            return "true", model
        if self.trains == "head":
            return f"attune::detail::kIsSequential<{model}>", f"attune::LinearProbe<{model}, {base}>"
        if self.trains == "last block":
            return f"attune::detail::kLastBlock<{model}> >= 0", f"attune::LastBlock<{model}, {base}>"
        if self.trains == "biases and norms":
            return f"attune_torch::kTrains<{model}, attune::detail::TrainVectors>", f"attune::BiasesAndNorms<{model}, {base}>"
        rank, roles = TRAINED[self.trains]
        roles = " | ".join(f"attune::Role::{role}" for role in roles.split(" | "))
        factors = f"attune::LowRank{{.rank = {rank}, .roles = {roles}}}"
        return f"attune_torch::kTrains<{model}, attune::detail::TrainLowRank<{factors}>>", f"attune::Adapted<{model}, {base}, {factors}>"

    @property
    def optimizer_type(self):
        type = OPTIMIZERS[self.optimizer]
        return f"attune::StochasticBfloat16<{type}>" if self.numbers == "weights in bf16" else type

    @property
    def plan_type(self):
        type = PLANS[self.plan]
        return f"attune::Int8TrainingWith<{type}>" if self.numbers == "products in integers" else type

    def trainer(self, scope, loss, batch=None):
        """Its type; `batch` instead of its own."""
        trained, batch = self.trained(scope)[1], batch or self.batch
        if self.optimizer == CLOSED_FORM:
            features = f"attune::LinearProbeFeatures<{scope}Model, {scope}kBase>"
            return f"attune::UnlabeledHeadTrainer<{trained}, {features}, {batch}>" if self.unlabeled else f"attune::ClosedFormTrainer<{trained}, {features}>"
        if self.unlabeled:
            return f"attune::InfoMaxTrainer<{trained}, {self.optimizer_type}, {batch}, {self.plan_type}>"
        if self.optimizer == FORWARD_ONLY:
            return f"attune::ForwardOnlyTrainer<{trained}, {loss}, {batch}, attune::Perturbation{{.size = 1e-2}}>"
        return f"attune::Trainer<{trained}, {loss}, {self.optimizer_type}, {batch}, {self.plan_type}>"

    @property
    def memory(self):
        """C++ of the report of `Trainer`, with one sequence after the other."""
        return f"Trainer::memory({'' if self.optimizer in (CLOSED_FORM, FORWARD_ONLY) else 'attune::Feeding::kOneByOne'})"

    def start(self, scope):
        """C++ that starts `trainer` at the weights in flash; factors are drawn from `seed`."""
        if self.trains != "everything":
            return "trainer.initialize(attune::XavierUniform{}, attune::Rng{seed});"
        return (f"trainer.start_from([](auto& parameters) {{ attune::copy_parameters({scope}kBase, parameters); }}, attune::XavierUniform{{}}, "
                "attune::Rng{seed});")


def space(name, tape, base=BASES[0]):
    """The namespace of a model with a tape and a base, in files of this search."""
    return f"{name}_{tape.replace(' ', '_')}" + ("" if base == BASES[0] else "_int8")


# Never tried, and why.
NONSENSE = {
    "closed form of more than a head in floats: its equations are those of one linear layer":
        lambda way: way.optimizer == CLOSED_FORM and (way.trains, way.numbers, way.plan) != ("head", NUMBERS[0], "batches"),
    "forward only in other numbers, plans and tapes: it has no gradients, no moments and no tape":
        lambda way: way.optimizer == FORWARD_ONLY and (way.numbers, way.plan, way.tape) != (NUMBERS[0], "batches", TAPES[0]),
    "Adafactor beside constants: the moments of what is trained are the small part":
        lambda way: way.optimizer == "Adafactor" and way.trains not in ("everything", "last block"),
    "last block, recomputed or with a tape in 8 bits: one block has one tape, in scratch or not":
        lambda way: way.trains == "last block" and way.tape in ("blocks recomputed", ROUNDED_TAPE),
    "weights in bf16 beside constants: the trained weights are the small part":
        lambda way: way.numbers == "weights in bf16" and way.trains != "everything",
    "weights in bf16, moments in floats: the same for moments saves more":
        lambda way: way.numbers == "weights in bf16" and way.optimizer == "AdamW",
    "products in integers beside constants: this search has constants in floats or in 8 bits that products dequantize, and none that are packed":
        lambda way: way.numbers == "products in integers" and way.trains != "everything",
    "products in integers, attention recomputed: other bits than attention that is kept":
        lambda way: way.numbers == "products in integers" and way.tape == "attention recomputed",
}
NONSENSE_WITHOUT_LABELS = {
    "without labels, head by gradients: in closed form it learns from balanced labels":
        lambda way: way.trains == "head" and way.optimizer != CLOSED_FORM,
    "without labels, updates in backward: gradients of all takes are added":
        lambda way: way.plan == "one sequence",
    "without labels, in other numbers than floats, by Adafactor or forward only: nobody has measured their worth":
        lambda way: way.numbers != NUMBERS[0] or way.optimizer in ("Adafactor", FORWARD_ONLY),
}


def candidates(header, bases=BASES[:1], takes=0, labeled=True):
    """(candidates in the order in which they are taken, what was left out and why). `takes`: at most so many to learn from without labels, or
    with a few. `labeled`: whether any has one."""
    has_blocks, is_sequence = "EncoderLayer<" in header, re.search(r"using Model = attune::Sequential<", header) is not None
    kept, left_out = [], []
    for trains in TRAINED:
        if trains in ("head", "last block") and not is_sequence:
            left_out.append(f"{trains}: the model is not a Sequential")
            continue
        for optimizer, numbers, base, plan, tape in itertools.product(OPTIMIZERS, NUMBERS, bases, PLANS, TAPES if has_blocks and trains != "head" else TAPES[:1]):
            way = Candidate(trains, optimizer, plan, tape, numbers=numbers, base=base)
            if not any(leaves_out(way) for leaves_out in NONSENSE.values()):
                kept.append(way)
    if not has_blocks:
        left_out.append("recomputed: the model has no encoder layer")
    else:
        left_out.append("head, recomputed: no block is trained")
    left_out.extend(NONSENSE)
    kept.sort(key=lambda candidate: {"SGD": 1, FORWARD_ONLY: 2}.get(candidate.optimizer, 0))
    if takes:
        unlabeled = [dataclasses.replace(candidate, unlabeled=True, batch=takes) for candidate in kept if not any(leaves_out(candidate) for leaves_out in NONSENSE_WITHOUT_LABELS.values())]
        left_out.extend(NONSENSE_WITHOUT_LABELS)
        if not labeled:
            left_out.append("with labels: no take to learn from has one")
        kept = kept * labeled + unlabeled
    return kept, left_out


RECOMPUTED = """[](attune::EncoderLayerShape shape) {{
  shape.attention.keep_weights = false;
  return shape;
}}({{{fields}}});"""


def declarations(name, header, tape, space, file):
    """The model's declarations for one tape, in a namespace, with the weights of a file in flash as kBase."""
    begin, end = f"namespace {name} {{", f"}}  // namespace {name}"
    body = header[header.index(begin) + len(begin):header.index(end)]
    if tape == "attention recomputed":
        body = re.sub(r"(attune::EncoderLayerShape \w+)\{(.*?)\};", lambda found: f"{found[1]} = " + RECOMPUTED.format(fields=found[2]), body, flags=re.S)
    elif tape == "blocks recomputed":
        body = re.sub(r"attune::EncoderLayer<(\w+)>", r"attune::Checkpointed<attune::EncoderLayer<\1>>", body)
    elif tape == ROUNDED_TAPE:
        body = re.sub(r"\bModel\b", "ModelInFloats", body) + "using Model = attune::QuantizedTape<ModelInFloats>;\n"
    return f"namespace {space} {{{body}inline constexpr const auto& kBase = attune::kInFlash<Names, {file}>;\n"


class ExportedModel:
    """A folder that attune_torch.export wrote."""

    def __init__(self, folder):
        self.folder = exported(folder)
        self.name = name_of(self.folder)
        self.header = (self.folder / f"{self.name}.hpp").read_text(encoding="utf-8")
        self.files = [self.folder / "model.safetensors"]
        self.define = ""  # the folder's CMake has the weights

    def bases(self, wanted, limit):
        """The bases that can win within the limit of flash, and why another one cannot. `wanted`: this one alone, if there is one."""
        bytes_of_weights = self.files[0].stat().st_size
        if wanted:
            return (BASES[wanted == "int8"],), []
        if limit is None:
            return BASES[:1], ["base in 8 bits: it saves flash alone, and there is no limit of flash"]
        if bytes_of_weights + CODE <= limit:
            return BASES[:1], [f"base in 8 bits: it saves flash alone, and {bytes_of_weights:,} bytes of floats fit"]
        return (BASES, []) if bytes_of_weights < limit else (BASES[1:], [f"base in floats: its {bytes_of_weights:,} bytes do not fit the flash"])

    def file(self, base):
        """The type of the weights' file."""
        return f"{self.name}_file" if base == BASES[0] else f"{self.name}_int8"

    def add_to(self, bases):
        """CMake that gives a target the files."""
        return "\n  ".join(f'attune_add_model(${{target}} NAME {self.file(base)} FILE "{self.files[0]}"{"" if base == BASES[0] else " QUANTIZE int8"})' for base in bases)

    def candidates(self, **more):
        return candidates(self.header, **more)

    def variants(self, base):
        """The declarations once for each tape, or for one alone, which takes a fourth less time to compile."""
        tapes = TAPES if "EncoderLayer<" in self.header else TAPES[:1]
        spaces = [(tape, space(self.name, tape, base)) for tape in tapes]
        declared = [f"#if !defined(ATTUNE_FIT_TAPE) || ATTUNE_FIT_TAPE == {TAPES.index(tape)}\n{declarations(self.name, self.header, tape, own, self.file(base))}\n"
                    f"}}  // namespace {own}\n#endif\n" for tape, own in spaces]
        return "\n".join(["#pragma once", "", "#include <attune/attune.hpp>", "#include <attune_torch/fit.hpp>", f"#include <{self.file(base)}.hpp>", "", *declared])


def included(path, found):
    """Adds what a header includes in quotes, and what that does."""
    for name in re.findall(r'^\s*#\s*include\s*"([^"]+)"', path.read_text(encoding="utf-8", errors="replace"), re.M):
        other = (path.parent / name).resolve()
        if other.is_file() and other not in found:
            found.add(other)
            included(other, found)
    return found


class ModelType:
    """A C++ type of a header. Weights in flash are drawn by the assembler: bytes and times are those of a trained model."""

    def __init__(self, folder, model, header):
        self.folder, self.model, self.path = Path(folder).resolve(), model, Path(header).resolve()
        if not self.path.is_file():
            raise CheckFailed(f"there is no header {header}")
        self.name = name_of(self.folder)
        self.files = sorted(included(self.path, {self.path}))
        self.define = f"template void attune_torch::define_weights<{model}::Parameters>();\n"

    @staticmethod
    def bases(wanted, limit):
        return BASES[:1], ["base in 8 bits: a C++ type has no weights to be rounded"]

    @staticmethod
    def add_to(bases):
        return ""

    def candidates(self, **more):
        """All: the compiler tells what the type does not have."""
        return candidates("EncoderLayer< using Model = attune::Sequential<", **more)

    def variants(self, base):
        lines = ["#pragma once", "", f'#include "{self.path}"', "#include <attune_torch/fit.hpp>", "", f"using attune_fit_model = {self.model};",
                 'extern "C" const attune_fit_model::Parameters attune_fit_weights;']
        for tape in TAPES:
            model = "attune_fit_model" if tape == "kept" else f"attune_torch::{TAPE_TYPES[tape]}<attune_fit_model>"
            lines.append(f"namespace {space(self.name, tape)} {{\nusing Model = {model};\ninline constexpr const auto& kBase = attune_fit_weights;\n}}")
        return "\n".join([*lines, ""])


def type_of(candidate, loss, model="Model"):
    """A candidate's type as a program writes it."""
    written = re.sub(r"\bModel\b", model, candidate.trainer("", loss))
    return written + (f"; {model}{IN_THE_MODEL[candidate.tape]}" if IN_THE_MODEL[candidate.tape] else "")


def size_of(name, candidate, loss):
    """C++ of a candidate's figures: those that its trainer reports, or zeros if the model has nothing to train like this."""
    scope, (condition, _) = space(name, candidate.tape, candidate.base), candidate.trained("")
    if candidate.optimizer == CLOSED_FORM:
        condition = f"attune_torch::kHasHead<Model, {loss}>"
    if candidate.tape != TAPES[0]:
        condition += f" && !std::is_same_v<Model, {space(name, TAPES[0], candidate.base)}::Model>"
    return (f"[]<class Model, const auto& kBase>() -> attune_torch::Figures {{ if constexpr ({condition}) {{ using Trainer = {candidate.trainer('', loss)}; "
            f"return attune_torch::as_figures({candidate.memory}); }} return {{}}; }}.template operator()<{scope}::Model, {scope}::kBase>()")


def sizes_source(name, base, header, rows, mask):
    model = f"{space(name, TAPES[0], base)}::Model"
    takes_mask = (f"template void attune_torch::takes_mask<{model}>(const {model}::Parameters&, const {model}::Input&, {model}::Output&, "
                  f"{model}::InferenceScratch&, const {mask}&);\n" if mask != NO_MASK else "")
    return "\n".join([f'#include "{header}"', "", takes_mask + f'extern "C" [[gnu::section(".attune_fit"), gnu::used]] const attune_torch::Figures '
                      f"attune_fit[{len(rows)}] = {{", *(f"    {row}," for row in rows), "};", ""])


STACK_BOUND, CALL_GRAPHS = "cmake/stack_bound.py", ("CMakeFiles/image.dir", "attune/ports")  # of the image and of the port


def exported(folder):
    """The folder as a path, if attune_torch.export wrote it."""
    path = Path(folder).resolve()
    refuse_renamed(path)
    if not (path / f"{name_of(path)}.hpp").is_file() or not (path / "model.safetensors").is_file():
        raise CheckFailed(f"{folder} was not written by attune_torch.export" + ("; export it first: python3 -m attune_torch export"
                          if (path / "config.json").is_file() else "" if path.is_dir() else ": there is no such folder"))
    return path


def vocabulary_of(folder):
    """How many ids the model takes, where one table looks them up."""
    found = re.findall(r"\.vocabulary = (\d+)", (folder / f"{name_of(folder)}.hpp").read_text(encoding="utf-8"))
    return int(found[0]) if len(found) == 1 else math.inf


def alone_in(home):
    """Makes the folder of a search, and opens a file in it that one search at a time has locked."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        lock = open(home / "lock", "w", encoding="utf-8")
    except OSError as problem:
        raise CheckFailed(f"{home} cannot be written: {problem.strerror}") from problem
    try:
        import fcntl
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # no such locks on this system
        pass
    except OSError as problem:
        lock.close()
        raise CheckFailed(f"another search is at work in {home}; wait for its end") from problem
    return lock


def write_whole(path, content):
    """All of a file, of text or bytes, or nothing."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_bytes(content if isinstance(content, bytes) else content.encode())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


class Search:
    """Builds and measures candidates of one folder, for one core."""

    def __init__(self, model, core, loss, attune, only="", tokens=0, base=None, flash=None, **takes):
        """`base`, `flash`: of bases()."""
        self.model, self.folder, self.name, self.loss, self.core = model, model.folder, model.name, loss, core
        self.mask = f"attune::SequenceLength<{tokens}>" if tokens else NO_MASK
        self.root = sources(attune)
        self.target, self.cpu = EMULATED[core]
        refuse_board(self.root, self.target)
        bases, other_base = model.bases(base, flash)
        every, left_out = model.candidates(bases=bases, **takes)
        self.left_out = left_out + other_base
        self.every = [candidate for candidate in every if any(part.strip() in str(candidate).lower() for part in only.lower().split("|"))]
        if not self.every:
            raise CheckFailed(f"no way to train is called '{only}'; some are: " + ", ".join(TRAINED))
        self.home = self.folder / "build" / "fit"
        self.lock = alone_in(self.home)
        self.measured = fit_data.Cache(self.home / "measured.jsonl")
        self.project = filled("fit.cmake", add_to=model.add_to(bases))
        for base in bases:
            self.write(self.header_of(base), model.variants(base))
        self.write("sizes.cpp", "")
        self.write("image.cpp", self.image(self.every[0]))
        self.write("CMakeLists.txt", self.project)
        if not (self.home / "train.cmake").is_file():
            self.write("train.cmake", "")
        self.build = configure(self.home, self.root, self.target, self.cpu)

    def close(self):
        """Lets another search work in the folder."""
        self.lock.close()

    def write(self, file, text):
        """An unchanged file keeps its time."""
        path = self.home / file
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    @staticmethod
    def header_of(base):
        """The file of the models with a base."""
        return "variants.hpp" if base == BASES[0] else "variants_int8.hpp"

    def include(self, candidate):
        """Lines of a program that has this candidate alone."""
        return f'#define ATTUNE_FIT_TAPE {TAPES.index(candidate.tape)}\n#include "{self.header_of(candidate.base)}"'

    def scope(self, candidate):
        return space(self.name, candidate.tape, candidate.base) + "::"

    def image(self, candidate):
        """A step with one sequence, whatever the batch."""
        scope = self.scope(candidate)
        loss = INFOMAX if candidate.unlabeled and candidate.optimizer != CLOSED_FORM else self.loss
        return filled("fit_image.cpp", trainer=candidate.trainer(scope, self.loss, candidate.batch if candidate.unlabeled else 1), model=f"{scope}Model", loss=loss,
                      include=self.include(candidate), define=self.model.define, start=candidate.start(scope), mask=self.mask,
                      number="1.0f" if candidate.optimizer == CLOSED_FORM else "1e-3f")

    def sizes(self):
        """{candidate: {part: bytes}} of all that the model has parameters for."""
        rows = {candidate: size_of(self.name, candidate, self.loss) for candidate in self.every}
        where = {base: [self.content(base, ".hpp"), self.compiler(), self.cpu, self.mask] for base in {candidate.base for candidate in self.every}}
        for base, own in where.items():
            unknown = [row for candidate, row in rows.items() if candidate.base == base and not self.measured.has([*own, row])]
            for row, figures in zip(unknown, self.compile_sizes(base, unknown) if unknown else ()):
                self.measured.put([*own, row], figures)
        figures = {candidate: self.measured.get([*where[candidate.base], row]) for candidate, row in rows.items()}
        found = {candidate: dict(zip(PARTS, own)) for candidate, own in figures.items() if any(own)}
        for trains in TRAINED:
            if any(candidate.trains == trains for candidate in self.every) and not any(candidate.trains == trains for candidate in found):
                self.left_out.append(f"{trains}: the model has no such parameters, or is not a Sequential of its layers" if trains in ("head", "last block")
                                     else f"{trains}: the model has no such parameters")
        if any(candidate.optimizer == CLOSED_FORM for candidate in self.every) and not any(candidate.optimizer == CLOSED_FORM for candidate in found):
            self.left_out.append("closed form: the model does not end with a Linear of one row with a bias, or the loss takes no classes")
        for tape in {candidate.tape for candidate in self.every} - {candidate.tape for candidate in found}:
            self.left_out.append(f"{tape}: the model has no encoder layer")
        useless = {candidate for candidate in found if candidate.tape != TAPES[0]
                   and ram_of(found[candidate]) >= ram_of(found[dataclasses.replace(candidate, tape=TAPES[0])])}
        if useless:
            self.left_out.append(f"{len(useless)} with another tape than one that is kept: they take as much RAM")
        return {candidate: parts for candidate, parts in found.items() if candidate not in useless}

    def compile_sizes(self, base, rows):
        """The figures that these are, from one translation unit."""
        self.write("sizes.cpp", sizes_source(self.name, base, self.header_of(base), rows, self.mask))
        try:
            run(["cmake", "--build", self.build, "--target", "sizes"], "the build of the sizes")
        except CheckFailed as problem:
            if self.mask != NO_MASK and re.search("have different seq_len|no layer of this model uses a mask", str(problem)):
                raise CheckFailed("length is for a model with attention or pooling over the tokens of its input, with nothing before that changes their number; "
                                  "this one takes whole sequences") from problem
            raise
        made = next(self.build.glob("CMakeFiles/sizes.dir/sizes.cpp.*"))
        words = self.build / "sizes.bin"
        run([compiler_prefix(self.root, self.target) + "objcopy", "-O", "binary", "--only-section=.attune_fit", "--set-section-flags",
             ".attune_fit=alloc,load,contents", made, words], "objcopy")
        return struct.iter_unpack(f"<{len(PARTS)}I", words.read_bytes())

    def compiler(self):
        return run([compiler_prefix(self.root, self.target) + "gcc", "--version"], "gcc")

    def content(self, base, *kinds):
        """A hash of the model, of its weights, and of the library's sources of these kinds."""
        found = hashlib.sha256((self.home / self.header_of(base)).read_bytes())
        files = [path for folder in ("lib", "ports", "cmake") for path in (self.root / folder).rglob("*") if path.suffix in kinds]
        for path in [*self.model.files, *sorted(files)]:
            found.update(path.read_bytes())
        return found.hexdigest()

    def measure(self, candidate):
        """Flash and static RAM of an image that trains like this; its stack, instructions and estimated cycles."""
        key = [self.content(candidate.base, ".hpp", ".cpp", ".S", ".ld", ".cmake", ".conf", ".c"), self.compiler(), self.target, self.cpu, self.image(candidate), filled("fit.cmake", add_to=""),
               (self.root / STACK_BOUND).read_text(encoding="utf-8"), CALL_GRAPHS]
        return self.measured.get(key, lambda: self.measure_image(candidate))

    def measure_image(self, candidate):
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
        regions = re.findall(r"^region (\d+)(?: (\d+))?", counts.read_text() if counts.is_file() else "", re.M)
        (instructions, cycles), inference = [tuple(int(number) if number else None for number in region) for region in regions] or [(None, None)] * 2
        bound = self.stack_bound(image)
        return {"flash": sections[".text"] + sections[".data"], "static": sections[".data"] + sections[".bss"], "stack": bound or int(stack[1]), "is_bound": bound is not None,
                "measured_stack": int(stack[1]), "instructions": instructions, "cycles": cycles, "inference": inference}

    def stack_bound(self, image):
        """Bytes of stack that an image takes at most, by its call graph; None where that has no bound."""
        done = subprocess.run([sys.executable, "-B", self.root / STACK_BOUND, "--tools", compiler_prefix(self.root, self.target), image,
                               *(self.build / folder for folder in CALL_GRAPHS)], capture_output=True, text=True)
        found = re.search(r"^ *(\d+)  bytes at most$", done.stdout, re.M)
        return int(found[1]) if found else None


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
    for field, choices in (("optimizer", OPTIMIZERS), ("numbers", NUMBERS), ("tape", TAPES), ("plan", PLANS)):
        others = [dataclasses.replace(candidate, **{field: choice}) for choice in choices]
        best = min((other for other in others if other in sizes), key=lambda other: ram_of(sizes[other]))
        saved = own - ram_of(sizes[best])
        if saved > 0:
            words = {"optimizer": best.optimizer, "numbers": best.numbers, "tape": best.tape, "plan": "updates in backward"}[field]
            yield f"{words} saves {saved:,} bytes"


def helps(search, sizes, candidate, beyond, figures, limits):
    """What would help, in words, if it takes more than a limit."""
    if any(text.startswith("RAM") for text in beyond):
        yield from savings(sizes, candidate)
    if any(text.startswith("flash") for text in beyond) and isinstance(search.model, ExportedModel) and candidate.base == BASES[0]:
        yield f"a base in 8 bits saves most of 3/4 of the weights, {search.model.files[0].stat().st_size:,} bytes"
    if any(text.startswith("a step") for text in beyond) and figures["cycles"]:
        fitting = [(time, board) for board, time, _ in boards_that_fit(candidate, sizes[candidate], figures, search.core) if time and time <= limits.step * 1e3]
        time, board = max(fitting, key=lambda one: one[0], default=(None, None))
        yield f"{board.board} with {board.mhz} MHz takes {time:,.1f} ms" if board else f"{figures['cycles'] / (limits.step * 1e6):,.0f} MHz would do, and no board of this core has them"


def shortfall(sizes, limits, place=None):
    """Why no candidate is within the limit of RAM, and which would be in several memories of a board."""
    lines = []
    for candidate in first_of_each(sizes, None):
        own = [other for other in sizes if other.trains == candidate.trains]
        least = min(own, key=lambda other: ram_of(sizes[other]))
        split = next((other for other in own if place and place.places(objects_of(other, sizes[other]))), None)
        lines.append(f"{candidate.trains}: {ram_of(sizes[least]) - limits.ram:,} bytes short with {least.optimizer}"
                     f"{', ' + least.numbers if least.numbers != NUMBERS[0] else ''}"
                     f"{', updates in backward' if least.plan == 'one sequence' else ''}{', ' + least.tape if least.tape != 'kept' else ''}"
                     + (f"; in several memories, without the stack, {str(split).removeprefix(split.trains + '; ')}: {place.placed(objects_of(split, sizes[split]))}" if split else ""))
    return lines


def objects_of(candidate, parts, stack=0):
    """{object: bytes} of what can be in memories of its own, for Board.places."""
    sizes = {name: sum(parts[part] for part in own) for name, own in OBJECTS.items()}
    sizes = {name: size + OWNED * (size > 0) for name, size in sizes.items()}
    if candidate.optimizer in (CLOSED_FORM, FORWARD_ONLY):  # their trainers are one object
        sizes = {"the trainer": sum(parts.values()) - parts["inputs"], "inputs": parts["inputs"]}
    return {"stack": stack, **sizes}


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


LENGTH = "/// The tokens in use of a take: the mask of each call.\nusing Length = {mask};\n"
LEARN = "/// Without labels: each step is trainer.learn(count, takes, kOptions), with at most kBatch takes.\n"


def of_stack(figures):
    return f"{figures['stack']:,} of stack {'at most' if figures['is_bound'] else 'measured'}"


def write_adapt(search, candidate, ram, figures, options=""):
    """The type that was chosen, for a firmware: adapt.hpp in the folder."""
    trained = candidate.trained("")[1]
    text = filled("adapt.hpp", name=search.name, candidate=candidate, target=search.target, cpu=search.cpu, flash=f"{figures['flash']:,}",
                  static=f"{figures['static']:,}", ram=f"{ram:,}".replace(",", "'"), of_stack=of_stack(figures), options=options,
                  declarations=declarations(search.name, search.model.header, candidate.tape, f"{search.name}_fit", search.model.file(BASES[0])),
                  trained=trained, loss=search.loss, trainer=candidate.trainer("", "Loss", "kBatch").replace(trained, "Trained"),
                  memory=candidate.memory, batch=candidate.batch, start=candidate.start(""), export=export_hash(search.folder, search.name),
                  quantize="\n// QUANTIZE int8" if candidate.base != BASES[0] else "", learn=LEARN if candidate.unlabeled else "",
                  length=LENGTH.format(mask=search.mask) if search.mask != NO_MASK else "")
    write_whole(search.folder / "adapt.hpp", text)


def report(search, sizes, limits, everything, say):
    shown = list(sizes) if everything else list(first_of_each(sizes, limits.ram))
    say(f"{len(sizes)} ways to train {search.name}, sizes for {search.cpu}")
    for reason in search.left_out:  # those of every model are listed with --all
        if everything or reason not in (*NONSENSE, *NONSENSE_WITHOUT_LABELS):
            say(textwrap.fill(f"left out: {reason}", 150, subsequent_indent="    "))
    say(f"{'RAM':>10} {''.join(f'{part:>11}' for part in PARTS)}  training")
    for candidate in shown:
        parts = sizes[candidate]
        fits = limits.ram is None or ram_of(parts) <= limits.ram
        say(f"{ram_of(parts):>10,} {''.join(f'{parts[part]:>11,}' for part in PARTS)}  {candidate}{'' if fits else '  (does not fit)'}")


def boards_that_fit(candidate, parts, figures, core):
    """(board, milliseconds of a step, where in several memories its parts are) of those with the core that have the RAM and the flash. No
    time is known with external RAM."""
    port = figures["static"] - sum(parts.values())
    for board in boards():
        if board.core != core or figures["flash"] > (board.flash or figures["flash"]):
            continue
        objects, where = objects_of(candidate, parts, figures["stack"] + port), ""
        if figures["static"] + figures["stack"] > board.ram:
            where = board.placed(objects)
            if not where:
                continue
        yield board, figures["cycles"] / (board.mhz * 1e3) if figures["cycles"] and "external" not in where else None, where


def fitting_of(sizes, limits, place):
    """The candidates within the limit of RAM; raises CheckFailed without one."""
    fitting = [candidate for candidate in sizes if limits.ram is None or ram_of(sizes[candidate]) <= limits.ram]
    if not fitting:
        raise CheckFailed("\n".join([f"nothing fits {limits.ram:,} bytes of RAM:", *shortfall(sizes, limits, place)]))
    return fitting


def without_floats(search, sizes, limits):
    """The sizes without a base in floats, if both are there and not even the smallest image of one has room in the flash."""
    floats = [candidate for candidate in sizes if candidate.base == BASES[0]]
    if not floats or len(floats) == len(sizes):
        return sizes
    short = search.measure(min(floats, key=lambda candidate: ram_of(sizes[candidate])))["flash"] - limits.flash
    if short <= 0:
        return sizes
    search.left_out.append(f"base in floats: {short:,} bytes of flash short")
    return {candidate: parts for candidate, parts in sizes.items() if candidate.base != BASES[0]}


def choose(search, ordered, sizes, limits, mhz, attempts, say):
    """The first candidate within all limits, its figures, and why others before it were left out; measures at most so many. Skipped is what
    would not fit with the stack of one before, other tapes of what is too slow, which only take longer, and all of the same part beside a base in
    floats that is too large."""
    refused, most, slow, large = [], math.inf, set(), set()
    for candidate in ordered:
        if ram_of(sizes[candidate]) > most or dataclasses.replace(candidate, tape=TAPES[0]) in slow or (candidate.trains, candidate.base) in large:
            continue
        if len(refused) == attempts:
            break
        figures = search.measure(candidate)
        beyond = exceeded(figures, limits, mhz)
        if not beyond:
            return candidate, figures, refused
        if limits.ram is not None and beyond[0].startswith("RAM"):
            most = ram_of(sizes[candidate]) - (figures["static"] + figures["stack"] - limits.ram)
        if beyond[-1].startswith("a step"):
            slow.add(dataclasses.replace(candidate, tape=TAPES[0]))
        if any(text.startswith("flash") for text in beyond) and candidate.base == BASES[0]:
            large.add((candidate.trains, candidate.base))
        refused.append(f"{candidate}: " + "; ".join([*beyond, *helps(search, sizes, candidate, beyond, figures, limits)]))
        say("measured, and left out: " + refused[-1])
    raise CheckFailed(f"nothing of the first {len(refused)} that were measured is within all limits; --attempts measures more")


@dataclasses.dataclass(frozen=True, eq=False)
class Found:
    """What was trained: the way, its accuracies, and the candidates that train like this within the RAM, the fastest first."""
    way: fit_data.Way
    trained: fit_data.Trained
    variants: list

    steps: int

    @property
    def settings(self):
        return self.way.setting + ("" if self.way.candidate.optimizer == CLOSED_FORM else f", {self.steps} steps")

    def text(self, candidate):
        refused = self.trained.objections
        guard = f"; the guard refuses {len(refused)} of {len(self.trained.own)}, first because {fit_data.OBJECTIONS[refused[0]]}" if refused else ""
        return f"{candidate}; {self.settings}{guard}"

    def least(self, sizes):
        return min(self.variants, key=lambda candidate: ram_of(sizes[candidate]))


def by_accuracy(search, trainings, sizes, fitting, passes, everything, say, progress):
    """(accuracies before, [Found] with the best first)."""
    variants, exact = {}, set(fitting)
    for candidate in fitting:
        if candidate.tape == ROUNDED_TAPE and dataclasses.replace(candidate, tape=TAPES[0]) in exact:
            continue
        variants.setdefault(candidate.exact, []).append(candidate)
    least = {key: min(ram_of(sizes[candidate]) for candidate in own) for key, own in variants.items()}
    trainings.build(list(variants), lambda line: progress(f"compiles {len(variants)} trainings: {line.partition(' ')[0]}"))
    before = trainings.train(fit_data.Way(next(iter(variants)), 0, 0), len(trainings.runs))
    last, dropped = trainings.halve(list(variants), least, passes, progress)
    progress.end()
    found = {}
    for way, trained in sorted(last.items(), key=lambda item: ([-part for part in item[1].score], least[item[0].key], item[0].passes)):
        found.setdefault(way.key, Found(way, trained, variants[way.key], way.steps(trainings.runs[0])))
    if not found:
        raise CheckFailed(f"every training stopped, the first with: {next(iter(dropped.values())).stopped}")
    run, users = trainings.runs[0], len({run.user for run in trainings.runs})
    seeds = len(trainings.runs) // users
    new = f", {users} users, each new once a seed: " if users > 1 else f", user {run.user} is new: " if run.others else ": "
    told = "" if run.labeled == len(run.takes) else f", {run.labeled or 'none'} of them with a label"
    say(f"accuracy of {len(variants)} trainings, {seeds} seed{'s' * (seeds > 1)}{new}learns from {len(run.takes)} takes{told}, is tested with {len(run.own)} others" + (f" and with {len(run.others)} of everybody else" if run.others else ""))
    say(f"{'new user':>14} {'everybody else':>16} {'RAM':>10}  training")

    def row(trained, ram, text):
        say(f"{fit_data.percent(trained.own):>14} {fit_data.percent(trained.others):>16} {ram:>10}  {text}")
    row(before, "–", "nothing")
    best = fit_data.front(found.values(), lambda one: least[one.way.key], lambda one: one.trained.score)
    for one in found.values() if everything else reversed(best):
        row(one.trained, f"{least[one.way.key]:,}", one.text(one.way.candidate))
    if everything:
        for candidate in sorted(set(variants) - set(found), key=list(variants).index):
            way, trained = max(((way, trained) for way, trained in dropped.items() if way.key == candidate), key=lambda item: (item[0].passes, item[1].score))
            row(trained, f"{least[candidate]:,}", f"{way.candidate}; {way.setting}: " + (trained.stopped or f"dropped after {way.passes} passes, of one seed"))
    return before, list(found.values())


def tell(search, place, candidate, parts, figures, say):
    def counted(instructions, cycles):
        return f"{instructions:,} instructions" + (f", about {cycles:,} cycles" if cycles else "")
    counts = (f"; {counted(figures['instructions'], figures['cycles'])} a step with one sequence; {counted(*figures['inference'])} an inference"
              if figures["instructions"] else "")
    say(f"chosen: {candidate}")
    say(f"  measured on {search.target} as {search.cpu}: {figures['flash']:,} bytes of flash, {figures['static']:,} of RAM with the port, "
        f"{of_stack(figures)}{counts}")
    if place and figures["cycles"]:
        energy = f"; a step takes {figures['cycles'] * place.current * VOLTS / 1e6:,.0f} µJ at {VOLTS} V, by the {place.current:g} µA/MHz of its data sheet" if place.current else ""
        inference = f" and {figures['inference'][1] / (place.mhz * 1e3):,.1f} ms an inference" if figures["inference"][1] else ""
        say(f"  on {place.board}, {place.mhz} MHz: about {figures['cycles'] / (place.mhz * 1e3):,.1f} ms a step{inference}{energy}")
    found = list(boards_that_fit(candidate, parts, figures, search.core))
    others = [f"{board.board}{f' ({time:,.1f} ms)' if time else ''}" for board, time, where in found if not where]
    say(textwrap.fill(f"boards with this core that fit: {', '.join(others) or 'none in boards.csv'}", 150, initial_indent="  ", subsequent_indent="    "))
    for board, time, where in found:
        if where:
            say(f"  in several memories of {board.board}{f', {time:,.1f} ms' if time else ''}: {where}")


def time_of(figures, place):
    """Milliseconds of a step on a board, else millions of cycles; None where nothing was counted."""
    return figures["cycles"] and figures["cycles"] / (place.mhz * 1e3 if place else 1e6)


def write_report(search, facts, before, found, sizes, chosen, candidate, limits, place, refused):
    """fit.html. Of those that no other beats with less RAM, the most accurate are measured."""
    best = fit_data.front(found, lambda one: ram_of(sizes[one.least(sizes)]), lambda one: one.trained.score)

    def point(one, candidate, x):
        candidate = dataclasses.replace(candidate, batch=one.way.candidate.batch)
        return Point(one.trained, x, one.text(candidate), type_of(candidate, search.loss), one is chosen)
    ram = [point(one, one.least(sizes), ram_of(sizes[one.least(sizes)])) for one in found]
    plans = {one: one.variants[0] for one in best[-DRAWN:]} | {chosen: candidate}
    times = [point(one, plan, time_of(search.measure(plan), place)) for one, plan in plans.items()]
    short = refused + ([line for line in shortfall(sizes, limits) if " -" not in line] if limits.ram is not None else [])
    write_whole(search.folder / "fit.html", page_of(search.folder.name, facts, before, ram, [point for point in times if point.x], "ms" if place else "million cycles", short))


def fit(folder, board=None, core=None, ram=None, flash=None, step=None, loss=None, base=None, everything=False, attempts=3, attune=None, say=print,
        data=None, takes=5, batch=None, seeds=2, passes=20, confirm=False, model=None, header=None, only="", unlabeled=0, new=None):
    """Finds a way to train within the limits, says what it takes, and writes adapt.hpp into the folder. Returns its figures.

    Raises CheckFailed, and says by how much, if nothing fits. `board`: a row of boards.csv, whose memory is the limit unless `ram` or
    `flash` is given. `step`: seconds for a step with one sequence, by estimated cycles at the board's clock. `model`, `header`: a C++ type instead of an exported
    folder; the search works in `folder`, and writes no adapt.hpp. `only`: ways with this in their names, or with one of several, as "head|LoRA". `data`: a .safetensors file with
    x, y and, by option, length (tokens in use of a take) and user; then the most accurate way within the limits is taken, and fit.html is written, too. Takes with -1 in y, or
    without y, have no label; y_test has the classes that accuracy is measured with. `unlabeled`: without `data`, ways that learn from so many
    takes without labels. `new`: the one user who is new. `confirm`: trains it on the emulated board as well."""
    place = board_named(board) if board else None
    if place is None and step is not None:
        raise ValueError("--step is a time on a board: give --board, too")
    if core is not None and core not in EMULATED:
        raise ValueError(f"there is no core '{core}'; there are: " + ", ".join(EMULATED))
    if min(takes, batch or 1, seeds, passes, attempts) < 1 or batch == 0 or unlabeled < 0:
        raise ValueError("--takes, --batch, --seeds, --passes, --attempts and --unlabeled are 1 or more")
    if (model is None) != (header is None):
        raise ValueError("--model is a C++ type of the header --header: give both")
    if model and (data or base):
        raise ValueError("--model has no weights to start at: --data and --base take a folder that attune_torch.export wrote")
    if unlabeled and data:
        raise ValueError("--unlabeled is for a search without --data, whose y says which takes have a label")
    if new is not None and not data:
        raise ValueError("--new is a user of --data: give both")
    labeled = not unlabeled
    if data:
        had = fit_data.Takes(Path(data), exported(folder), vocabulary_of(exported(folder)))
        runs = had.runs(takes, seeds, batch, new)
        learned = max(len(run.takes) for run in runs)
        labeled, unlabeled = runs[0].labeled > 0, learned if runs[0].labeled < learned else 0
    limits = Limits(ram or (place and place.ram) or None, flash or (place and place.flash) or None, step)
    source = ModelType(folder, model, header) if model else ExportedModel(folder)
    with contextlib.closing(Search(source, core or (place.core if place else "cortex-m4"), loss or "attune::CrossEntropy<>", attune, only, tokens=had.tokens if data and had.length else 0, base=base, flash=limits.flash,
                                   takes=unlabeled, labeled=labeled)) as search:
        sizes = without_floats(search, search.sizes(), limits)
        if data:
            trainings = fit_data.Trainings(search, had, runs, batch)
        else:
            search.left_out.append("batches of several sizes: accuracy alone depends on them, which takes --data")
        report(search, sizes, limits, everything, say)
        if place and not ram and len(place.memories) > 1:
            say(f"limit of RAM: {place.ram // 1024} KB, the largest piece of {place.board}'s " + ", ".join(map(place.called, range(len(place.memories)))))
        ordered, mhz, options, result = fitting_of(sizes, limits, None if ram else place), place.mhz if place else 1, "", {}
        if data:
            before, found = by_accuracy(search, trainings, sizes, ordered, passes, everything, say, fit_data.Progress())
            ordered = [candidate for one in found for candidate in one.variants]
        candidate, figures, refused = choose(search, ordered, sizes, limits, mhz, attempts, say)
        parts, facts = sizes[candidate], []
        if data:
            chosen = next(one for one in found if candidate in one.variants)
            candidate = dataclasses.replace(candidate, batch=chosen.way.candidate.batch)
            takes = trainings.first_takes()
            options = filled("adapt_options.hpp", new=fit_data.percent(chosen.trained.own), others=fit_data.percent(chosen.trained.others), takes=hashlib.sha256(takes).hexdigest(),
                                     options=candidate.options(chosen.way.rate), steps=chosen.steps, first="{} {} {}".format(*trainings.first(chosen.way)))
        tell(search, place, candidate, parts, figures, lambda text: (say(text), facts.append(text)))
        if data:
            own, others, hash = first = trainings.first(chosen.way)
            say(f"  {chosen.settings}: the first run recognizes {own} of {len(runs[0].own)} takes of the new user"
                + (f", {others} of {len(runs[0].others)} of everybody else's" if runs[0].others else "") + f"; hash of its parameters {hash}")
            result = {"before": before, "found": found, "trainings": trainings, "chosen": chosen}
        if data and confirm:
            learned = trainings.on_board(chosen.way, candidate)
            if learned != first:
                raise CheckFailed(f"{search.target} learns {learned}, and this PC {first}")
            say(f"  trained on {search.target} as {search.cpu}, too: it recognizes as many, and the hash is the same")
        if model:
            say(f"  type, where kBase has the weights in flash: {type_of(candidate, search.loss, model)}")
        else:
            if data:
                write_whole(search.folder / "adapt.safetensors", takes)
            write_adapt(search, candidate, ram_of(parts), figures, options)
            say(f"wrote {search.folder / 'adapt.hpp'}")
        if data:
            write_report(search, facts, before, found, sizes, chosen, candidate, limits, place, refused)
            say(f"wrote {search.folder / 'fit.html'}")
        return {"candidate": candidate, "parts": parts, **figures, **result}
