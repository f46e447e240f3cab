"""Boards, as their board.conf describes them. ports/boards.sh has the same for scripts."""
import functools
from pathlib import Path

PORTS = Path(__file__).resolve().parent
CPUS_WITHOUT_FPU = {"cortex-m0", "cortex-m0plus", "cortex-m3", "rv32imc", "lx106"}


class UnknownTarget(Exception):
    """No target has that name."""


@functools.cache
def values(board):
    """All lines `key=value` of a board."""
    lines = (PORTS / board / "board.conf").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def value(board, key):
    return values(board).get(key, "")


def names():
    """Names of all boards, sorted."""
    return sorted(conf.parent.name for conf in PORTS.glob("*/board.conf"))


def port_of(target):
    """host, or the board of that name or with that processor."""
    for board in ["host", *names()]:
        if target == board or (board != "host" and target == value(board, "cpu")):
            return board
    listed = " ".join(f"{board} ({value(board, 'cpu')})" for board in names())
    raise UnknownTarget(f"no target '{target}'; there are: host {listed}")


def needs(port):
    """Kinds that cmake/bootstrap.sh takes. Arm's binutils read every image, and its C++ headers are lent."""
    return ["build"] if port == "host" else ["build", "arm", "qemu", *value(port, "needs").split()]


def has_fpu(board):
    """Without one there is no fused multiply-add."""
    return value(board, "cpu") not in CPUS_WITHOUT_FPU


def has_core_of_another(board):
    """A board before it has the same core, so that compiled code is the same but for the port."""
    def core(name):
        return value(name, "cpu").removesuffix("-dp")
    return any(other < board and core(other) == core(board) for other in names())
