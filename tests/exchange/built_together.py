"""Checks folders of attune_torch.export as attune_torch.check does, but builds them in one build (tests/exchange/exported)."""
import re
import shutil
import subprocess
from pathlib import Path

from attune_torch import CheckFailed
from attune_torch.building import board_value, run

ROOT = Path(__file__).resolve().parents[2]


def host_compiler():
    """At -O0 clang takes half of GCC's time, where it is."""
    return ["-DCMAKE_CXX_COMPILER=clang++"] if shutil.which("clang++") else []


class BuiltTogether:
    """Programs for this machine at -O0 and for boards at -O1: they run for a moment, and the bits are the same."""

    def __init__(self, folder):
        self.folder = folder

    def build(self, folders, precisions=("float",), target="host"):
        """Builds what it can; check() says what did not build."""
        build = self.folder / target
        command = ["cmake", "-S", ROOT / "tests/exchange/exported", "-B", build, "-G", "Ninja", f"-DATTUNE_DIR={ROOT}",
                   "-DFOLDERS=" + ";".join(map(str, folders)), "-DCMAKE_BUILD_TYPE=Release",
                   f"-DCMAKE_CXX_FLAGS_RELEASE={'-O0' if target == 'host' else '-O1'} -DNDEBUG"]
        if target == "host":
            command += host_compiler()
        else:
            command += ["--toolchain", ROOT / "cmake/arm-none-eabi.cmake", f"-DATTUNE_PORT={target}",
                        f"-DATTUNE_CPU={board_value(ROOT, target, 'cpu')}"]
        run(command, "cmake")
        programs = [f"{folder.name}_{precision}" for folder in folders for precision in precisions]
        subprocess.run(["cmake", "--build", build, "--target", *programs, "--", "-k", "0"], capture_output=True)

    def check(self, folder, precision="float", target="host"):
        """The largest difference, as it is printed. Raises CheckFailed where a layer's numbers are not PyTorch's."""
        build, name = self.folder / target, f"{folder.name}_{precision}"
        program = build / (name if target == "host" else f"{name}.elf")
        if not program.exists():
            run(["cmake", "--build", build, "--target", name], f"the build for {target}")
        command = [program] if target == "host" else [ROOT / "ports/run", target, program]
        said = run(command, f"{name} on {target}")
        result = re.search(r"^result .* max_difference=(\S+) first_different_layer=-", said, re.M)
        if not result:
            raise CheckFailed(f"{name} on {target}:\n{said}")
        return result[1]
