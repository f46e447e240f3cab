"""Boards of boards.csv: their cores, and which memory of theirs has room for what of a training."""
import csv
import dataclasses
import difflib
import re
from pathlib import Path

from .errors import CheckFailed

# The emulated board with a core, and the core to compile for. Without an FPU the board only lends its memory.
EMULATED = {"cortex-m0": ("mps2_an385", "cortex-m0"), "cortex-m0plus": ("mps2_an385", "cortex-m0plus"),
            "cortex-m3": ("mps2_an385", "cortex-m3"), "cortex-m4-nofpu": ("mps2_an385", "cortex-m3"),
            "cortex-m4": ("mps2_an386", "cortex-m4"), "cortex-m7": ("mps2_an500", "cortex-m7"),
            "cortex-m7-dp": ("mps2_an500_dp", "cortex-m7-dp"), "cortex-m33": ("mps2_an505", "cortex-m33"),
            "cortex-m55": ("mps3_an547", "cortex-m55")}
# What can be objects of their own, by a plan with placement: each has these parts of a training. First what is used most, and is to be in fast memory.
OBJECTS = {"tape and scratch": ("tape", "scratch"), "gradients": ("gradients",), "parameters and moments": ("parameters", "moments", "state"), "inputs": ("inputs",)}
OWNED = 16  # bytes at most that one of them takes more than its parts


@dataclasses.dataclass(frozen=True)
class Board:
    """A row of boards.csv."""
    board: str
    part: str
    core: str
    mhz: int
    memories: tuple  # bytes of each piece of SRAM, the largest first, and of external RAM
    internal: int  # how many of them are SRAM
    flash: int
    current: float = None  # µA per MHz, of the data sheet

    @property
    def names(self):
        return {plain(self.board), plain(self.part)}

    @property
    def ram(self):
        return self.memories[0]

    def called(self, memory):
        """One of its memories, in words."""
        size = self.memories[memory] // 1024
        return f"{size // 1024} MB of external RAM" if memory >= self.internal else f"{size} KB"

    def places(self, sizes):
        """{memory: parts} for parts of {part: bytes}, earlier parts in earlier memories as far as all have room; {} if they do not fit."""
        def place(rest, room):
            if not rest:
                return []
            for memory, free in enumerate(room):
                if sizes[rest[0]] <= free:
                    others = place(rest[1:], [*room[:memory], free - sizes[rest[0]], *room[memory + 1:]])
                    if others is not None:
                        return [(memory, rest[0]), *others]
            return None
        found = {}
        for memory, what in place([what for what in sizes if sizes[what]], list(self.memories)) or []:
            found.setdefault(memory, []).append(what)
        return found

    def placed(self, sizes):
        """Those places in words."""
        return "; ".join(f"{', '.join(found)} in {self.called(memory)}" for memory, found in sorted(self.places(sizes).items()))


def plain(name):
    return re.sub(r"[^a-z0-9]", "", name.lower())


def boards():
    """All rows of boards.csv. Only a current that a data sheet gives is there."""
    with open(Path(__file__).with_name("boards.csv"), newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            internal = [int(size) for size in [row["ram_kb"], *filter(None, row["more_ram_kb"].split("+"))]]
            external = [int(row["external_ram_kb"])] if row["external_ram_kb"] else []
            yield Board(row["board"], row["part"], row["core"], int(row["mhz"]), tuple(1024 * size for size in internal + external), len(internal), int(row["flash_kb"]) * 1024,
                        float(row["ua_per_mhz"]) if row["ua_per_mhz"] else None)


def board_named(name):
    """The board, or the part, that is called so, begins so or has all of these words."""
    every, wanted = list(boards()), plain(name)
    found = [board for board in every if wanted in board.names] or [board for board in every if any(wanted and own.startswith(wanted) for own in board.names)]
    words = [plain(word) for word in name.split()]
    found = found or [board for board in every if len(wanted) > 2 and all(word in plain(board.board + board.part) for word in words)]
    if not found:
        names = {plain(own): own for board in every for own in (board.part, board.board)}
        nearest = [names[own] for own in difflib.get_close_matches(wanted, names, 3)]
        raise CheckFailed(f"there is no board '{name}' in boards.csv" + (f"; the nearest names are {', '.join(nearest)}" if nearest else
                          ", which has: " + ", ".join(board.board for board in every)))
    if len({(board.core, board.mhz, board.memories, board.flash) for board in found}) > 1:
        raise CheckFailed(f"'{name}' is more than one board; give the part: " + ", ".join(f"{board.part} ({board.board})" for board in found))
    return found[0]
