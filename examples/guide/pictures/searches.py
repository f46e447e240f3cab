"""What fit prints on examples/guide/fit.md: the page's own commands, their lines in figures.txt, and the page's blocks of them."""
import dataclasses
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "lib/attune_torch"))
from attune_torch import fit  # noqa: E402

PAGE = ROOT / "examples/guide/fit.md"
TAKES = 50  # without labels
# Rows of the first table.
SHOWN = ("everything", "last block", "LoRA, rank 8, queries and values", "LoRA, rank 2, queries and values", "biases and norms", "head")
ROW = re.compile(r"^( *[\d.]+ ± [\d.]+ % +[\d.]+ ± [\d.]+ %) +([\d,]+)  (.*?)(; (?:learning rate|ridge) .*)$")
BOARDS = 2  # of those that fit


def prepared(home):
    """A folder in which the page's commands run as in attune's, with a copy of the model."""
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "examples").exists():
        (home / "examples").symlink_to(ROOT / "examples")
    for file in (ROOT / "examples/exported/vit").iterdir():
        (home / "vit").mkdir(exist_ok=True)
        shutil.copy2(file, home / "vit")
    return home


def shortened(lines):
    """The lines of an answer from its last table on, with the first boards of each list."""
    first = next(i for i, line in enumerate(lines) if line.startswith(("accuracy of ", "chosen: ")))
    for line in lines[first:]:
        if line.startswith("  boards with this core that fit: "):
            line = ", ".join([*line.split(", ")[:BOARDS], "…"])
        if not re.match(r"wrote | {4}\S", line):
            yield line


def printed(home):
    """{block: lines} of what the page's commands print."""
    def run(command):
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "lib/attune_torch")}
        return subprocess.run(command, shell=True, check=True, cwd=home, stdout=subprocess.PIPE, text=True, env=environment).stdout.splitlines()
    text = PAGE.read_text()
    for command in re.findall(r"^/usr/bin/python3 .*$", text, re.M):
        run(command)
    board, users, unlabeled = re.findall(r"^python3 -m attune_torch fit vit .*$", text, re.M)
    answers = {command: run(command) for command in (board, users, unlabeled)}
    rows = [re.match(r" *([\d,]+) .*?  ([a-zL][^ ].*?)(?:  \(does not fit\))?$", line) for line in answers[board]]
    first = {row[2].split("; ")[0]: f"{row[1]} {row[2]}" for row in rows if row}
    chosen = [line.partition("; ")[0] + "; …" if line.startswith("  measured on") else line for line in shortened(answers[board])]
    return {"first": [first[part] for part in SHOWN], "board": chosen, "users": list(shortened(answers[users])),
            "unlabeled": [line for line in shortened(answers[unlabeled]) if not line.startswith(("  measured on", "  on ", "  boards", "  in several"))]}


def is_near(known, line):
    """Whether measured numbers of a line differ by less than 5 %, as flash and stack do by a change of code anywhere."""
    pairs = list(zip(*(list(map(int, re.findall(r"\d+", text.replace(",", "")))) for text in (known, line))))
    return all(abs(number - old) <= 0.05 * old for old, number in pairs)


def measured_again(known, home):
    """The known lines, with the RAM of each way, and what is measured of the chosen ones if it is not near any more, as they are now."""
    model = fit.ExportedModel(home / "vit")
    search = fit.Search(model, "cortex-m4", "attune::CrossEntropy<>", ROOT, takes=TAKES)
    named = {str(way): way for way in search.every}

    def way(text):
        return named[re.sub(r"; batches of \d+", "", text)]

    def left_out(line):
        return way(re.match("measured, and left out: (.*?): ", line)[1])
    ways = {way(line.split(" ", 1)[1]) for line in known["first"]}
    ways |= {way(row[3]) for lines in known.values() for row in map(ROW.match, lines) if row}
    chosen = {block: way(line.removeprefix("chosen: ")) for block, lines in known.items() for line in lines if line.startswith("chosen: ")}
    # A row of trainings has the RAM of the tape with the least, of those that end with the same bits.
    tapes = {one: [dataclasses.replace(one, tape=tape) for tape in fit.TAPES if tape != fit.ROUNDED_TAPE] for one in ways}
    search.every = [one for one in search.every if any(one in own for own in tapes.values())]
    sizes, made = search.sizes(), {}
    for block, lines in known.items():
        made[block] = []
        for line in lines:
            row = ROW.match(line)
            known_line = line
            if block == "first":
                line = f"{fit.ram_of(sizes[way(line.split(' ', 1)[1])]):,} {line.split(' ', 1)[1]}"
            elif row:
                line = f"{row[1]} {min(fit.ram_of(sizes[one]) for one in tapes[way(row[3])] if one in sizes):>10,}  {row[3]}{row[4]}"
            elif line.startswith("measured, and left out: "):
                figures = search.measure(left_out(line))
                limit = 1024 * int(re.search(r"--ram (\d+)K --data", PAGE.read_text())[1])
                line = re.sub(r"[\d,]+ bytes short", f"{figures['static'] + figures['stack'] - limit:,} bytes short", line)
            elif line.startswith("  measured on"):
                said = []
                fit.tell(search, None, chosen[block], sizes[chosen[block]], search.measure(chosen[block]), said.append)
                line = said[1].partition(" of stack")[0] + " of stack" + line.partition(" of stack")[2]
            made[block].append(known_line if line.startswith(("  measured on", "measured, ")) and is_near(known_line, line) else line)
    search.close()
    return made


def lines_of(figures):
    """{block: lines} of figures.txt."""
    found = {}
    for block, line in (text.split(" ", 1) for text in figures["fit"]):
        found.setdefault(block, []).append(line)
    return found


def measured(home, known, with_trainings):
    """Lines of figures.txt: what the page's commands print; without trainings, what is known, with bytes measured again."""
    prepared(home)
    made = printed(home) if with_trainings else measured_again(known, home)
    return "".join(f"fit {block} {line}\n" for block, lines in made.items() for line in lines)


def block(lines):
    return "\n".join(["```", *(textwrap.fill(line, 150, subsequent_indent="    ", break_on_hyphens=False) for line in lines), "```"])


def table(lines):
    return "\n".join(["| RAM | training |", "|---|---|", *("| {} bytes | {} |".format(*line.split(" ", 1)) for line in lines)])


def with_blocks(page, figures):
    """The text of the page with its blocks."""
    known = lines_of(figures)
    return re.sub(r"(<!-- draw (\w+) -->\n).*?(\n<!-- end -->)",
                  lambda found: found[1] + (table if found[2] == "first" else block)(known[found[2]]) + found[3], page.read_text(), flags=re.S)
