"""Reads what program_text<Trainer>() prints, and draws it: steps as columns, values as bars."""
import re
from dataclasses import dataclass

HEAD = re.compile(r"(\w+): scratch takes ([\d,]+) bytes")
ROW = re.compile(r" *([\d,]+)  (?:tape|scratch \+ ([\d,]+)) +((?:[#.] +)+)(.*)")
KINDS = ("output", "gradient", "tape", "scratch")
LEFT, TOP, ROW_HEIGHT, ARENA_HEIGHT = 224, 92, 22, 150


@dataclass
class Value:
    name: str
    bytes: int
    place: int | None  # in scratch; None: on the tape
    steps: list  # whether it lives in each of them

    @property
    def kind(self):
        return next((i for i, kind in enumerate(KINDS) if self.name.startswith(kind)), 0)

    def lives(self):
        """[(first, end)] of the steps in which it lives without a pause"""
        bounds = [i for i in range(len(self.steps) + 1) if (i > 0 and self.steps[i - 1]) != (i < len(self.steps) and self.steps[i])]
        return list(zip(bounds[::2], bounds[1::2]))


@dataclass
class Program:
    name: str
    scratch: int
    steps: list
    values: list


def read(text):
    """The programs of a text, those of an inner model behind its own."""
    programs = []
    for line in text.splitlines():
        if head := HEAD.match(line):
            programs.append(Program(head[1], int(head[2].replace(",", "")), [], []))
        elif programs and line.lstrip().startswith("bytes"):
            programs[-1].steps = line.split()[2:]
        elif programs and (row := ROW.match(line)):
            place = int(row[2].replace(",", "")) if row[2] else None
            programs[-1].values.append(Value(row[4], int(row[1].replace(",", "")), place, [mark == "#" for mark in row[3].split()]))
    if not programs:
        raise ValueError("this is no text of program_text<Trainer>()")
    return programs


def draw(text, new_picture, width):
    """The first program: its tape row by row, and below it scratch, where heights are bytes."""
    program = read(text)[0]
    tape = [value for value in program.values if value.place is None]
    scratch = [value for value in program.values if value.place is not None]
    arena = TOP + ROW_HEIGHT * len(tape) + 26
    picture = new_picture(f"Values of a {program.name} in the steps of its training", arena + (ARENA_HEIGHT + 18 if scratch else 0))
    picture.text(24, 30, f"{program.name}: steps as columns, values as bars, in bytes", "title")
    picture.legend(24, 56, KINDS, 110)
    step_width = (width - 24 - LEFT) / len(program.steps)
    for i, step in enumerate(program.steps):
        picture.text(LEFT + step_width * (i + 0.5), TOP - 8, step, "ink middle")

    def bars(value, y, height):
        for first, end in value.lives():
            picture.rect(LEFT + step_width * first, y, step_width * (end - first) - 2, max(height - 2, 1), f"c{value.kind}",
                         f"<title>{value.name}: {value.bytes:,} bytes</title>")

    for i, value in enumerate(tape):
        picture.text(LEFT - 10, TOP + ROW_HEIGHT * i + 15, f"{value.name}: {value.bytes:,}", "ink end")
        bars(value, TOP + ROW_HEIGHT * i, ROW_HEIGHT)
    if scratch:
        picture.text(24, arena - 8, f"scratch: {program.scratch:,}")
        picture.rect(LEFT, arena, width - 24 - LEFT, ARENA_HEIGHT, "grid")
        for value in scratch:
            bars(value, arena + ARENA_HEIGHT * value.place / program.scratch, ARENA_HEIGHT * value.bytes / program.scratch)
    return picture.end()
