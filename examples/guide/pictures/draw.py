"""Draws the pictures of README and guide, as SVG with colors for light and dark pages, and writes the tables and answers of fit on pages.

usage: examples/guide/pictures/draw [--measure] [--check]
       examples/guide/pictures/draw --program FILE >PICTURE.svg

  (nothing)          draw all pictures, and write the tables
  --measure          first run the programs of this folder, the search of plans.py and those of fit.md on an emulated Cortex-M4 and on this
                     PC (ten minutes), and write figures.txt. Needs torch, for the takes of fit.md
  --check            write nothing; exit with 1 if a picture or a table differs from its figures
  --measure --check  run the programs, and compare their figures with figures.txt, except estimated cycles and trainings. Ends with
                     `N passed, N failed`
  --program FILE     the picture of a model's memory, from what host::program_text<Trainer>() prints

Figures come from figures.txt and from tables of the project: tests/bench/README.md (speed, growth), examples/README.md
(adapting), examples/guide/memory.md (first-program) and lib/attune/README.md (rooms).
"""
import re
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import growth  # noqa: E402
import plans  # noqa: E402
import program  # noqa: E402
import searches  # noqa: E402

WIDTH = 660
PARTS = ("parameters", "gradients", "optimizer", "tape", "scratch", "input, target")
STYLE = """
  svg { color-scheme: light dark; --ink: #1b2128; --soft: #59636e; --line: #d5dbe1; --page: #ffffff; --box: #eef2f6;
    --c0: #1f5fbf; --c1: #7a4fc4; --c2: #b4541a; --c3: #187a4b; --c4: #8a6d00; --c5: #a8326e; }
  @media (prefers-color-scheme: dark) { svg { --ink: #e4e8ec; --soft: #9aa5b1; --line: #3a444f; --page: #0f1317;
    --box: #1d242c; --c0: #6ea8fe; --c1: #b79bf0; --c2: #f0a050; --c3: #56c58d; --c4: #d8bb4c; --c5: #f08ab8; } }
  .page { fill: var(--page); }
  text { font: 13px system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; fill: var(--soft); }
  .title { font-size: 15px; font-weight: 600; fill: var(--ink); } .ink { fill: var(--ink); }
  .code { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, monospace; }
  .number { font-size: 11px; paint-order: stroke; stroke: var(--page); stroke-width: 4px; stroke-linejoin: round; }
  .end { text-anchor: end; } .middle { text-anchor: middle; }
  .box { fill: var(--box); stroke: var(--line); } .line { stroke: var(--soft); fill: none; stroke-width: 1.5; }
  .grid { stroke: var(--line); fill: none; } .whisker { stroke: var(--ink); fill: none; }
""" + "".join(f"  .c{i} {{ fill: var(--c{i}); }} .s{i} {{ stroke: var(--c{i}); fill: none; stroke-width: 2; }}\n" for i in range(6))


def with_fallbacks(svg):
    """In front of each color that is a variable, its color on a light page: file managers and Markdown previews know no variables."""
    light = dict(re.findall(r"--(\w+): (#\w+)", svg.partition("@media")[0]))
    return re.sub(r"(fill|stroke): var\(--(\w+)\)", lambda found: f"{found[1]}: {light[found[2]]}; {found[0]}", svg)


class Picture:
    """Elements of an SVG, from the top left."""

    def __init__(self, name, height, style=STYLE, width=WIDTH):
        self.lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
                      f'height="{height}" role="img" aria-label="{escape(name)}">', f"<title>{escape(name)}</title>",
                      f"<style>{style}</style>", '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
                      'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" style="fill: var(--soft)"/></marker></defs>',
                      f'<rect class="page" width="{width}" height="{height}" rx="8"/>']

    def text(self, x, y, content, kind="", inside=""):
        self.lines.append(f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(str(content))}{inside}</text>')

    def rect(self, x, y, width, height, kind, inside="", more=""):
        self.lines.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"{more}>{inside}</rect>')

    def path(self, points, kind="line", tip=False):
        ends = ' marker-end="url(#tip)"' if tip else ""
        self.lines.append(f'<polyline class="{kind}" points="{" ".join(f"{x:g},{y:g}" for x, y in points)}"{ends}/>')

    def arrow(self, *points):
        self.path(points, tip=True)

    def box(self, x, y, width, height, title, *lines, kind="box"):
        self.rect(x, y, width, height, kind, more=' rx="6"')
        first = y + height / 2 + 5 - 9 * len(lines)
        self.text(x + width / 2, first, title, "ink middle")
        for i, line in enumerate(lines):
            self.text(x + width / 2, first + 18 * (i + 1), line, "middle")

    def legend(self, x, y, names, step):
        for i, name in enumerate(names):
            self.rect(x + i * step, y - 10, 11, 11, f"c{i}")
            self.text(x + i * step + 17, y, name)

    def end(self):
        return with_fallbacks("\n".join([*self.lines, "</svg>"]) + "\n")


def figures():
    """{first word: [the rest of each such line]} of figures.txt"""
    found = {}
    for line in (HERE / "figures.txt").read_text().splitlines():
        key, rest = line.split(" ", 1)
        found.setdefault(key, []).append(rest)
    return found


def table(page, first_cell):
    """Rows of the table on a page whose head begins with that cell."""
    rows = []
    for line in (ROOT / page).read_text().splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip().strip("|").split(" | ")] if line.startswith("|") else None
        if rows and cells is None:
            break
        if cells and (rows or cells[0] == first_cell):
            rows.append(cells)
    return [row for row in rows if not set("".join(row)) <= set("-|: ")]


def number(text):
    return float(re.search(r"[\d,]*\.?\d+", text)[0].replace(",", ""))


def frames():
    """(step, loss, solved of 256, percentages of 8 × 8 weights) of attention while it is learned"""
    for line in figures()["frame"]:
        step, loss, solved, *weights = line.split()
        yield int(step), float(loss), int(solved), [int(weight) for weight in weights]


def learning():
    shown, seconds = list(frames()), 14
    hold = 5  # the last frame stays as long as so many others
    count = len(shown) + hold
    times = ";".join(f"{min(i, len(shown) - 1 + hold) / (count - 1):.3f}" for i in range(len(shown))) + ";1"
    token = int(figures()["token"][0])

    def animated(attribute, values, mode="linear"):
        return (f'<animate attributeName="{attribute}" dur="{seconds}s" repeatCount="indefinite" calcMode="{mode}" '
                f'keyTimes="{times}" values="{";".join([*values, values[-1]])}"/>')

    picture = Picture("Attention of argmax_copy while a Cortex-M4 learns it, and its RAM", 330)
    picture.text(24, 30, "Attention, learned on a Cortex-M4", "title")
    cell, left, top = 25, 52, 62
    for i in range(8):
        picture.text(left - 8, top + cell * i + 17, i, "end")
        picture.text(left + cell * i + 12, top - 7, i, "ink middle" if i == token else "middle")
        for j in range(8):
            values = [f"{weights[8 * i + j] / 100:g}".removeprefix("0") or "0" for *_, weights in shown]
            picture.rect(left + cell * j, top + cell * i, cell - 2, cell - 2, "c0", animated("fill-opacity", values),
                         f' fill-opacity="{values[-1]}"')
    picture.rect(left, top, 8 * cell - 2, 8 * cell - 2, "grid")
    picture.text(24, top + 8 * cell + 20, f"rows: queries; columns: keys; copies token {token}")
    for frame, (step, _, solved, _) in enumerate(shown):
        values = ["1" if frame == other else "0" for other in range(len(shown))]
        last = frame == len(shown) - 1
        picture.lines.append(f'<g opacity="{int(last)}">{animated("opacity", values, "discrete")}')
        picture.text(24, top + 8 * cell + 46, f"step {step:,}: {100 * solved / 256:.0f} % of unseen sequences solved", "ink")
        picture.lines.append("</g>")

    x, y, width = 352, 62, 284
    parts = [int(part) for part in figures()["memory"][0].split()]
    picture.text(x, 30, f"All of its RAM: {sum(parts):,} bytes", "title")
    at = 0
    for i, part in enumerate(parts):
        picture.rect(x + width * at / sum(parts), y, width * part / sum(parts) - 1, 26, f"c{i}")
        at += part
        row, column = divmod(i, 2)
        picture.rect(x + 142 * column, y + 40 + 22 * row, 11, 11, f"c{i}")
        picture.text(x + 17 + 142 * column, y + 50 + 22 * row, f"{PARTS[i]}: {part:,}")
    bottom, height = 270, 76
    losses = [loss for _, loss, *_ in shown][1:]
    picture.text(x, bottom - height - 8, "loss, step by step")
    places = [(x + width * i / (len(losses) - 1), bottom - height * min(1, loss / losses[0])) for i, loss in enumerate(losses)]
    picture.path([(x, bottom), (x + width, bottom)], "grid")
    picture.path([(round(a, 1), round(b, 1)) for a, b in places], "s2")
    across, down = ([f"{place[axis]:.1f}" for place in [places[0], *places]] for axis in (0, 1))
    picture.lines.append(f'<circle class="c2" r="5" cx="{across[-1]}" cy="{down[-1]}">{animated("cx", across)}{animated("cy", down)}</circle>')
    for i in range(0, len(losses), 4):
        picture.text(places[i][0], bottom + 18, f"{shown[i + 1][0]:,}", "end" if i else "")
    picture.text(x, bottom + 42, f"parameters {figures()['parameters'][0]}, as on a PC")
    return picture.end()


def ram():
    # Scratch and state are one part.
    shown = {way: [*parts[:4], parts[4] + parts[6], parts[5]] for way, parts in plans.values(figures()["plan"]).items()}
    cycles = plans.values(figures()["time"])
    most = max(map(sum, shown.values()))
    picture = Picture("RAM of training by part, for each memory plan", 80 + 44 * len(shown))
    picture.text(24, 30, "RAM of training by part, and a step's time on a Cortex-M4", "title")
    left, width = 24, 480
    picture.legend(24, 56, PARTS, 104)
    for row, (name, parts) in enumerate(shown.items()):
        y, x = 92 + 44 * row, left
        picture.text(left, y - 5, name, "ink")
        for i, part in enumerate(parts):
            picture.rect(x, y, max(width * part / most - 1, 0), 16, f"c{i}", f"<title>{PARTS[i]}: {part:,} bytes</title>")
            x += width * part / most
        picture.text(x + 6, y + 13, f"{sum(parts) / 1000:.0f} KB")
        picture.text(WIDTH - 24, y + 13, f"{cycles[name][0] / 168e3:.0f} ms", "end")
    return picture.end()


def first_program():
    head, *rows = table("examples/guide/memory.md", "optimizer")
    kinds = (("BySequence", 2), ("UpdateInBackward", 4), ("and weights in bf16", 5))
    picture = Picture("RAM of README's first program, for each optimizer and plan", 108 + 42 * len(rows))
    picture.text(24, 30, "RAM of README's first program, for each optimizer and plan", "title")
    picture.legend(24, 56, [name for name, _ in kinds], 150)
    left, width = 212, 350
    most = max(number(cell) for row in rows for cell in row[2:6])
    bottom = 74 + 42 * len(rows)
    limit = left + width * 32768 / most
    picture.path([(limit, 68), (limit, bottom)], "line")
    picture.text(limit, bottom + 16, "32 KB", "middle")
    for line, row in enumerate(rows):
        y = 74 + 42 * line
        picture.text(left - 10, y + 22, row[0].replace("`", ""), "ink end")
        for bar, (_, cell) in enumerate(kinds):
            length = width * number(row[cell]) / most
            picture.rect(left, y + 12 * bar, length, 10, f"c{bar}")
            picture.text(left + length + 6, y + 12 * bar + 10, row[cell], "number")
    return picture.end()


def adapting():
    head, *rows = table("examples/README.md", "--method")
    kinds = (("accuracy", head.index("new speaker"), "accuracy, %"), ("ram", head.index("RAM, bytes"), "RAM, KB"),
             ("seconds", len(head) - 1, "a step, seconds"))
    picture = Picture("Accuracy, RAM and time of each way to adapt a model", 84 + 28 * len(rows))
    picture.text(24, 30, "Adapting to a new voice: accuracy, RAM and time of each plan", "title")
    left, width, gap = 228, 86, 58
    for column, (kind, cell, title) in enumerate(kinds):
        x = left + column * (width + gap)
        picture.text(x, 58, title)
        values = [None if row[cell] == "–" else number(row[cell]) for row in rows]
        most = 100 if kind == "accuracy" else max(value for value in values if value is not None)
        for line, value in enumerate(values):
            y = 70 + 28 * line
            if column == 0:
                picture.text(left - 10, y + 14, rows[line][0], "ink code end")
            if value is None:
                picture.text(x, y + 14, "–")
                continue
            length = max(width * value / most, 1)
            picture.rect(x, y, length, 20, f"c{(3, 0, 2)[column]}")
            shown = f"{value:.1f}" if kind == "accuracy" else f"{value / 1000:.0f}" if kind == "ram" else rows[line][cell]
            picture.text(x + length + 6, y + 14, shown)
    return picture.end()


def search():
    """The search with takes of users, as its page shows it: (limit of RAM in KB, [(accuracy, deviation, RAM or None, training)], chosen, board)"""
    limit, lines = re.search(r"--ram (\d+)K --data", searches.PAGE.read_text())[1], "\n".join(searches.lines_of(figures())["users"])
    rows = [(float(accuracy), float(deviation), None if ram == "–" else number(ram), training)
            for accuracy, deviation, ram, training in re.findall(r"^ *([\d.]+) ± ([\d.]+) % .*? % +([\d,]+|–)  (\S.*)$", lines, flags=re.M)]
    chosen = re.search(r"^chosen: (.*)$", lines, flags=re.M)[1]
    board = re.search(r"on (.*?), \d+ MHz: about ([\d.]+ m?s) a step", lines)
    return int(limit), rows, chosen, f"{board[1]}, {board[2]} a step"


def fit():
    limit, rows, chosen, board = search()
    picture = Picture("Ways to train a model on a new user, with their accuracy and RAM, and the one that was chosen", 112 + 46 * len(rows))
    picture.text(24, 30, f"fit: a vision transformer learns a new handwriting, within {limit} KB", "title")
    left, width, of_ram, ram_width = 24, 240, 380, 200
    picture.text(left, 56, "accuracy on the new user, %")
    picture.text(of_ram, 56, "RAM of training, bytes")
    most = max([limit * 1024, *(ram for _, _, ram, _ in rows if ram)])
    border = of_ram + ram_width * limit * 1024 / most
    for row, (accuracy, deviation, ram, training) in enumerate(rows):
        y = 84 + 46 * row
        name, _, options = training.partition("; learning rate ")
        best = name == chosen
        kind = "c3" if best else "c0"
        picture.text(left, y, name + (f": chosen, {board}" if best else ""), "ink")
        picture.rect(left, y + 7, width * accuracy / 100, 14, kind)
        low, high = (left + width * (accuracy + sign * deviation) / 100 for sign in (-1, 1))
        picture.path([(low, y + 14), (min(high, left + width), y + 14)], "whisker")
        picture.text(left + width + 6, y + 19, f"{accuracy:.1f} ± {deviation:.1f}")
        if ram:
            picture.rect(of_ram, y + 7, ram_width * ram / most, 14, kind)
            at = of_ram + ram_width * ram / most + 6
            picture.text(border + 6 if border - 48 < at < border + 6 else at, y + 19, f"{ram:,.0f}")  # never across the border
    end = 84 + 46 * len(rows) - 18
    picture.path([(border, 64), (border, end)], "line")
    picture.text(border, end + 16, f"{limit} KB, with the stack", "middle")
    return picture.end()


def speed():
    head, *rows = table("tests/bench/README.md", "one core")
    cells = (head.index("step, 32 sequences"), head.index("forward, 32 sequences"))
    picture = Picture("Speed on one x86 core, relative to the faster of PyTorch and ONNX Runtime", 100 + 40 * len(rows))
    picture.text(24, 30, "Speed on one x86 core against PyTorch and ONNX Runtime", "title")
    picture.legend(24, 56, ("training step, 32 sequences", "forward, 32 sequences"), 220)
    left, width = 176, 420
    names = {"kwt1": "KWT-1, keywords", "kwt2": "KWT-2, keywords", "bioformer": "Bioformer, gestures", "digits": "digits"}
    most = max(number(row[cell]) for row in rows for cell in cells)
    bottom = 76 + 40 * len(rows)
    for row, cells_of in enumerate(rows):
        y = 74 + 40 * row
        key = cells_of[0]
        tokens = re.sub(r"^stories(\d+)", r"Llama, \1 tokens", re.sub(r"^attention(\d+)", r"attention, \1 tokens", key))
        picture.text(left - 10, y + 21, names.get(key, tokens), "ink end")
        for bar, cell in enumerate(cells):
            value = number(cells_of[cell])
            picture.rect(left, y + 16 * bar, width * value / most, 14, f"c{bar}")
            picture.text(left + width * value / most + 6, y + 16 * bar + 12, f"{value:.2f}")
    one = left + width / most
    picture.path([(one, 68), (one, bottom)], "line")
    picture.text(one, bottom + 16, "1 = equally fast", "middle")
    return picture.end()


def growing():
    head, *rows = table("tests/bench/README.md", "tokens")
    sizes = [int(size) for size in head[1:]]
    curves = {}
    for row, (unit, series, scale) in zip(rows, (("bytes", "kept", 1e3), ("bytes", "recomputed", 1e3), ("milliseconds", "kept", 1),
                                                 ("milliseconds", "recomputed", 1))):
        curves[unit, series] = [(size, number(value) * scale) for size, value in zip(sizes, row[1:])]
    width = 2 * growth.WIDTH
    picture = Picture("Time and RAM of a training against tokens", growth.HEIGHT + 40, growth.STYLE, width)
    for column, unit in enumerate(reversed(growth.UNITS)):
        picture.lines += growth.panel(curves, unit, column * growth.WIDTH, 0)
    for i, (kind, name) in enumerate(growth.SERIES):
        x, y = growth.LEFT + 260 * i, growth.HEIGHT + 18
        picture.path([(x, y), (x + 28, y)], kind)
        picture.text(x + 36, y + 4, name)
    return picture.end()


def layer():
    picture = Picture("A layer's forward, tape and backward", 290)
    picture.text(24, 30, "A layer: forward, tape, backward", "title")
    for x, y, width, title, line in (
            (24, 60, 84, "x", "input"), (190, 60, 280, "forward", "y = softmax(QKᵀ / √d) V"), (552, 60, 84, "y", "output"),
            (190, 146, 126, "tape", "kept for backward"), (344, 146, 126, "parameters", "RAM or flash"),
            (190, 232, 280, "backward", "dx, and gradients are added up"), (552, 232, 84, "dy", "∂L/∂y"), (24, 232, 84, "dx", "∂L/∂x")):
        picture.box(x, y, width, 50, title, line)
    for start, end in (((108, 85), (188, 85)), ((470, 85), (550, 85)), ((230, 110), (230, 144)), ((430, 146), (430, 112)),
                       ((230, 196), (230, 230)), ((380, 196), (380, 230)), ((430, 232), (430, 198)), ((550, 257), (472, 257)),
                       ((188, 257), (110, 257)), ((594, 110), (594, 230))):
        picture.arrow(start, end)
    picture.text(588, 176, "loss", "end")
    picture.text(438, 220, "optimizer")
    return picture.end()


def rooms():
    house = re.search(r"```\n(.*?)```", (ROOT / "lib/attune/README.md").read_text(), flags=re.S)[1]
    floors = [line.split(None, 1) for line in house.splitlines()]
    picture = Picture("The rooms of the library: each includes those below it", 60 + 40 * len(floors))
    picture.text(24, 30, "The rooms of lib/attune: a room includes those below it, never one above", "title")
    for i, (name, what) in enumerate(floors):
        y = 48 + 40 * i
        picture.rect(24, y, 612, 34, "box", more=' rx="5"')
        picture.text(36, y + 22, name, "ink code")
        picture.text(142, y + 22, what if len(what) < 72 else what[:what.rfind(",", 0, 72)])
    return picture.end()


def pytorch():
    picture = Picture("The way of a model from PyTorch to a board and back", 250)
    picture.text(24, 30, "From PyTorch to a board, and back", "title")
    width, gap = 138, 20
    steps = (("PyTorch", "trains the model", "state_dict"), (".safetensors", "PyTorch's names", "float, or int8"),
             ("CMake", "attune_add_model", "checks every tensor"), ("Flash", "read in place", "no copy in RAM"))
    back = (("PyTorch", "load_state_dict", "strict=True"), (".safetensors", "the same names", "on the PC"),
            ("Serial port", "64 bytes at a time", "lines with a CRC"), ("Training", "on the board", "everything, or LoRA"))
    for y, row, begin, end in ((52, steps, -gap, -2), (164, back, 0, 2 - gap)):
        for i, step in enumerate(row):
            x = 24 + i * (width + gap)
            picture.box(x, y, width, 74, *step)
            if i:
                picture.arrow((x + begin, y + 37), (x + end, y + 37))
    picture.arrow((24 + 3 * (width + gap) + width / 2, 126), (24 + 3 * (width + gap) + width / 2, 162))
    return picture.end()


def power_cut():
    cuts = [line.split() for line in figures()["cut"]]
    picture = Picture("Power cuts in a save: what a restart finds", 250)
    picture.text(24, 30, f"{len(cuts)} power cuts in one save: each restart finds a whole state", "title")
    left, width = 110, 520 / (len(cuts) + 1)
    names = {"erase": "erase", "program": "program"}
    mark = len(cuts) - 1
    body = max(i for i, cut in enumerate(cuts[:mark]) if cut[1] == "3") + 1
    for label, y in (("old slot", 66), ("new slot", 106), ("restart finds", 166)):
        picture.text(left - 12, y + 19, label, "ink end")
    picture.rect(left, 66, 520, 28, "c3", "<title>the state of step 100, untouched</title>")
    for i, (kind, page, found) in enumerate([*cuts, ("done", "", "200")]):
        x = left + width * i
        kind_class = "box" if kind == "erase" else "c4" if i < body else "c2" if i < mark else "c1" if i == mark else "c0"
        picture.rect(x, 106, width - 2, 28, kind_class, f"<title>{names.get(kind, 'saved')} {page}</title>")
        picture.rect(x, 166, width - 2, 28, "c3" if found == "100" else "c0", f"<title>the state of step {found}</title>")
    picture.text(left, 152, "erase")
    picture.text(left + 2.4 * width + 20, 152, f"body: {body - 2} units of 8 bytes")
    picture.text(left + body * width - 66, 152, "head, CRCs, mark")
    picture.text(left, 214, "power fails in this operation →")
    picture.rect(left, 228, 11, 11, "c3")
    picture.text(left + 17, 238, "the old state")
    picture.rect(left + 130, 228, 11, 11, "c0")
    picture.text(left + 147, 238, "the new state")
    return picture.end()


def program_of(text):
    return program.draw(text, Picture, WIDTH)


def steps():
    return program_of("\n".join(figures()["program"]))


PICTURES = {"steps": steps, "learning": learning, "ram": ram, "first-program": first_program, "adapting": adapting, "fit": fit, "speed": speed,
            "growth": growing, "layer": layer, "rooms": rooms, "pytorch": pytorch, "power-cut": power_cut}


def measure(with_times):
    """{program: its figures}; the times of plans take a minute, and the trainings of searches some."""

    def run(*command):
        return subprocess.run([str(part) for part in command], check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout

    run("cmake/bootstrap.sh", "build", "arm", "qemu")
    build, found = ROOT / "build/pictures", {}
    board = ["--toolchain", ROOT / "cmake/arm-none-eabi.cmake", "-DATTUNE_CPU=cortex-m4", "-DATTUNE_PORT=mps2_an386"]
    for target, options, programs in (("board", board, ["learning"]), ("host", [], ["power_cut", "program"])):
        run("cmake", "-S", HERE, "-B", build / target, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", *options)
        run("cmake", "--build", build / target, "--target", *programs)
        for program in programs:
            start = ["ports/run", "mps2_an386", build / target / f"{program}.elf"] if options else [build / target / program]
            found[program] = run(*start)
    found["plans.py"] = plans.measured(build / "plans", with_times)
    found["searches.py"] = searches.measured(build / "searches", searches.lines_of(figures()), with_times)
    return found


def differing(measured):
    """Programs whose figures are others than those in figures.txt."""
    known = (HERE / "figures.txt").read_text().splitlines()
    for program, lines in measured.items():
        missing = [line for line in lines.splitlines() if line not in known]
        if missing:
            yield f"{program}: {missing[0][:100]}"


def main():
    if "--help" in sys.argv:
        print(__doc__)
        return 0
    if "--program" in sys.argv:
        try:
            print(program_of(Path(sys.argv[sys.argv.index("--program") + 1]).read_text()), end="")
        except (IndexError, OSError, ValueError) as error:
            sys.exit(f"examples/guide/pictures/draw: --program takes a file of program_text; {error}")
        return 0
    if "--measure" in sys.argv and "--check" in sys.argv:
        measured = measure(with_times=False)
        wrong = list(differing(measured))
        print("".join(f"FAILED figures of {line}\n" for line in wrong) + f"{len(measured) - len(wrong)} passed, {len(wrong)} failed")
        return 1 if wrong else 0
    if "--measure" in sys.argv:
        (HERE / "figures.txt").write_text("".join(measure(with_times=True).values()))
    wrong = 0
    for name, draw in PICTURES.items():
        file = HERE / f"{name}.svg"
        if "--check" not in sys.argv:
            file.write_text(draw())
        elif not file.is_file() or file.read_text() != draw():
            wrong += 1
            print(f"{file.relative_to(ROOT)} is not what its figures say; draw it: examples/guide/pictures/draw")
    pages = {plans.PAGE: plans.with_table, searches.PAGE: searches.with_blocks}
    for page, write in pages.items():
        text = write(page, figures())
        if page.read_text() == text:
            continue
        if "--check" in sys.argv:
            wrong += 1
            print(f"{page.relative_to(ROOT)} does not show its figures; write them: examples/guide/pictures/draw")
        else:
            page.write_text(text)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
