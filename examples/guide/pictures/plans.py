"""RAM and time of ways to train the model of examples/guide/choosing-a-plan.md, as fit tells them: for a picture, and for the table of that page."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "lib/attune_torch"))
from attune_torch import fit  # noqa: E402

PAGE = ROOT / "examples/guide/choosing-a-plan.md"
SHOWN = ("everything; AdamW", "everything; AdamW; blocks recomputed", "everything; AdamW; tape in 8 bits", "everything; AdamW, moments in bf16",
         "everything; AdamW; updates in backward", "everything; AdamW, moments in bf16; updates in backward",
         "everything; SGD; updates in backward; blocks recomputed", "last block; AdamW", "LoRA, rank 4, all weights; AdamW", "biases and norms; AdamW",
         "head; AdamW")
ADAPTING = ("everything; AdamW", "last block; AdamW", "LoRA, rank 4, all weights; AdamW", "biases and norms; AdamW", "head; AdamW")


def measured(home, with_times):
    """Lines of figures.txt: `plan WAY: BYTES…` of what is shown, by part, and `time WAY: CYCLES`, estimated."""
    home.mkdir(parents=True, exist_ok=True)
    program = re.search(r"```cpp\n(.*?\nusing Model = [^;]*;\n)", PAGE.read_text(), re.S)[1]
    header = home / "model.hpp"
    if not header.is_file() or header.read_text() != program:
        header.write_text(program)
    search = fit.Search(fit.ModelType(home, "Model", header), "cortex-m4", "attune::CrossEntropy<>", ROOT)
    sizes = search.sizes()
    named = {str(candidate): candidate for candidate in sizes}
    lines = [f"plan {way}: {' '.join(str(sizes[named[way]][part]) for part in fit.PARTS)}" for way in SHOWN]
    if with_times:
        lines += [f"time {way}: {search.measure(named[way])['cycles']}" for way in SHOWN]
    search.close()
    return "".join(f"{line}\n" for line in lines)


def values(lines):
    """{way: numbers}"""
    return {way: [int(number) for number in numbers.split()] for way, numbers in (line.split(": ") for line in lines)}


def adapting(figures):
    """The table of parts of the model."""
    ram, cycles = values(figures["plan"]), values(figures["time"])
    types = {str(candidate): re.sub(r"attune::(Role::)?", r"\1", candidate.trained("")[1]).replace("kBase", "kModel")
             for candidate in fit.candidates("EncoderLayer< using Model = attune::Sequential<")[0] if str(candidate) in ADAPTING}
    rows = [f"| {way.removesuffix('; AdamW')} | {sum(ram[way]):,} bytes | {cycles[way][0] / 168e3:.0f} ms | `{types[way]}` |" for way in ADAPTING]
    return "\n".join(["| trained | RAM | a step | type |", "|---|---|---|---|", *rows])


def with_table(page, figures):
    """The text of the page with its table."""
    return re.sub(r"(<!-- draw -->\n).*?(\n<!-- end -->)", lambda found: found[1] + adapting(figures) + found[2], page.read_text(), flags=re.S)
