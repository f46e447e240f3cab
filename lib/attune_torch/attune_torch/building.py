"""Builds an exported folder and runs it, on this machine and on emulated boards; takes what a board sends. Needs no PyTorch."""
import concurrent.futures
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from .errors import CheckFailed

ROOT = Path(__file__).resolve().parents[3]


def filled(template, **values):
    """A text of the folder templates, with values in place of @names@."""
    text = (Path(__file__).parent / "templates" / f"{template}.in").read_text(encoding="utf-8")
    return re.sub(r"@(\w+)@", lambda found: str(values[found[1]]), text)


def sources(attune):
    """attune's folder: given, $ATTUNE_DIR, or the one that this package stands in."""
    folder = Path(attune or os.environ.get("ATTUNE_DIR") or ROOT).resolve()
    if not (folder / "lib/attune/attune.hpp").is_file():
        raise CheckFailed(f"{folder} is not the folder of attune; pass --attune, or set ATTUNE_DIR")
    return folder


def run(command, what, watch=None):
    """What it prints; `watch` is called with each line. Raises CheckFailed where it fails."""
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            errors = pool.submit(process.stderr.read)
            lines = []
            for line in process.stdout:
                lines.append(line)
                if watch:
                    watch(line.rstrip())
            stdout, stderr = "".join(lines), errors.result()
    if process.returncode:
        lines = (stdout + stderr).splitlines()
        errors = [line for line in lines if re.search("error:|error at|killed|overflowed by", line.lower())]  # quantization says "error", too
        at = next((index for index, line in enumerate(lines) if line.startswith("CMake Error")), None)
        said = lines[at:at + 12] if at is not None else (errors or lines)[-12:]
        raise CheckFailed("\n".join([f"{what} ended with {process.returncode}:", *said]))
    return stdout


def board_value(root, board, key):
    lines = (root / "ports" / board / "board.conf").read_text().splitlines()
    return next((line.split("=", 1)[1] for line in lines if line.startswith(key + "=")), "")


def refuse_board(root, target):
    if not (root / "ports" / target / "board.conf").is_file():
        boards = sorted(path.parent.name for path in (root / "ports").glob("*/board.conf"))
        raise CheckFailed(f"there is no target '{target}'; there are: host, " + ", ".join(boards))


def compiler_prefix(root, target):
    """Of the tools for a board; nothing for this machine."""
    if target == "host":
        return ""
    return "riscv64-unknown-elf-" if board_value(root, target, "emulator").endswith("riscv32") else "arm-none-eabi-"


def configure(folder, root, target, cpu=None, options=()):
    """The build folder for a target; `cpu` instead of the board's own."""
    build = folder / "build" / (target if cpu is None else f"{target}-{cpu}")
    command = ["cmake", "-S", folder, "-B", build, f"-DATTUNE_DIR={root}", "-DCMAKE_BUILD_TYPE=Release", *options]
    if shutil.which("ninja"):
        command += ["-G", "Ninja"]
    if target != "host":
        compiler = "riscv-unknown-elf" if board_value(root, target, "emulator").endswith("riscv32") else "arm-none-eabi"
        command += ["--toolchain", root / f"cmake/{compiler}.cmake", f"-DATTUNE_CPU={cpu or board_value(root, target, 'cpu')}",
                    f"-DATTUNE_PORT={target}"]
    if not any((build / file).exists() for file in ("build.ninja", "Makefile")):  # written last
        run(command, "cmake")
    return build


def flash_bytes(program, target, root):
    """Code and constants of a firmware; nothing of a program of this machine."""
    if target == "host":
        return None
    sizes = run([compiler_prefix(root, target) + "size", program], "size").splitlines()[1].split()
    return int(sizes[0]) + int(sizes[1])


def run_check(build, root, target, name):
    """What a checking program prints, and its file."""
    run(["cmake", "--build", build, "--target", name], f"the build for {target}")
    program = (build / name).with_suffix("" if target == "host" else ".elf")
    command = [program] if target == "host" else [root / "ports/run", target, program]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=1800)
    if not re.search("^result ", done.stdout, re.M):
        raise CheckFailed(f"{name} on {target} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout, program


def name_of(folder):
    """The name of a folder's model: its header and namespace."""
    return re.sub(r"\W+", "_", folder.name, flags=re.ASCII)


def refuse_renamed(folder):
    names = [header.stem for header in folder.glob("*.hpp") if header.stem != "adapt"]
    if (folder / "model.safetensors").is_file() and len(names) == 1 and names[0] != name_of(folder):
        raise CheckFailed(f"the folder {folder.name} has the model {names[0]}, and a folder has its model's name: rename it to {names[0]}, or export the model again")


def check(folder, on=(), attune=None, precisions=("float", "int8"), say=print):
    """Builds the folder's check, and runs it on this machine and on the targets `on`, in float and int8. Says a result line
    for each, and raises CheckFailed where a layer's numbers are not PyTorch's."""
    folder = Path(folder).resolve()
    if not (folder / "check.safetensors").is_file():
        raise CheckFailed(f"{folder} was not written by attune_torch.export")
    refuse_renamed(folder)
    if "_add_check(" not in (folder / "CMakeLists.txt").read_text():
        raise CheckFailed(f"{folder} was exported by version 1 of attune_torch: firmware takes it as it is; to check it, export it again")
    root = sources(attune)
    targets = ["host"] + [target for target in ([on] if isinstance(on, str) else on) if target != "host"]
    for target in targets[1:]:
        refuse_board(root, target)
    results, plans, wrong = [], {}, []
    for target in targets:
        build = configure(folder, root, target, options=["-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"] if target == "host" else [])  # the bits are the same
        for names in [precisions] if target == "host" and precisions else [[precision] for precision in precisions]:
            said, program = run_check(build, root, target, "check_" + "_".join(sorted(names)))
            flash = flash_bytes(program, target, root)
            lines = [f"{line} flash_bytes={flash if flash is not None else '-'}" for line in said.splitlines() if line.startswith("result ")]
            for line in lines:
                say(line)
                results.append(dict(re.findall(r"(\w+)=(\S+)", line)))
                if results[-1]["first_different_layer"] != "-":
                    wrong.append(f"{results[-1]['precision']} on {target}: the first layer that differs from PyTorch is "
                                 f"{results[-1]['first_different_layer']}\n{said.rstrip()}")
            if target == targets[-1]:
                plans |= {name: int(size) for name, size in re.findall(r"^plan (\w+) ram_bytes=(\d+)", said, re.M) if name not in plans}
    write_sizes(folder, plans, results)
    if wrong:
        raise CheckFailed("\n".join(wrong))
    check_adapt(folder, root, targets, say)
    return results


def check_adapt(folder, root, targets, say):
    """Trains as the folder's adapt.hpp says, where fit has written the takes of its first run, and compares with the search. Says a result
    line for each target."""
    adapt = (folder / "adapt.hpp").read_text(encoding="utf-8") if (folder / "adapt.hpp").is_file() and (folder / "adapt.safetensors").is_file() else ""
    found = re.search(r"kOptions\{.*?= ([\d.e+-]+)f\}.*?kSteps = (\d+);\n.*adapt.safetensors, SHA-256 (\w+): (\d+ \d+ \w+)$", adapt, re.M | re.S)
    if not found:
        return
    rate, steps, takes, expected = found.groups()
    batch = re.search(r"kBatch = (\d+);", adapt)[1]
    name, home = re.search(r"^namespace (\w+)_fit \{", adapt, re.M)[1], folder / "build" / "adapt"
    if f"// Export {export_hash(folder, name)}" not in adapt:
        raise CheckFailed(f"{folder / 'adapt.hpp'} is of another export; run python3 -m attune_torch fit again")
    if hashlib.sha256((folder / "adapt.safetensors").read_bytes()).hexdigest() != takes:
        raise CheckFailed(f"{folder / 'adapt.safetensors'} has other takes than {folder / 'adapt.hpp'} learned from; run python3 -m attune_torch fit again")
    mask = f"{name}_fit::Length" if "using Length = " in adapt else "attune::NoMask"
    home.mkdir(parents=True, exist_ok=True)
    (home / "learns.cpp").write_text(filled("learns.cpp", name=name, mask=mask))
    (home / "CMakeLists.txt").write_text(filled("learns.cmake", name=name, folder=folder, quantize=" QUANTIZE int8" if "// QUANTIZE int8" in adapt else ""))
    for target in targets:
        build = configure(home, root, target, options=["-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG"] if target == "host" else [])
        try:
            run(["cmake", "--build", build, "--target", "learns"], f"the build for {target}")
        except CheckFailed as problem:
            if "overflowed by" not in str(problem):
                raise
            say(f"{target} has no room for the takes of adapt.safetensors beside the firmware, so the training of adapt.hpp was not run there")
            continue
        words = ["--steps", steps, "--batch", batch, "--rate", str(round(float(rate) * 1e6))]
        command = [build / "learns"] if target == "host" else [root / "ports/run", target, build / "learns.elf", *words]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env={**os.environ, "ATTUNE_ARGUMENTS": " ".join(words)})
        learned = re.search(r"^trained 0 (\d+ \d+ \w+) \d ok$", done.stdout, re.M)
        if done.returncode or not learned:
            raise CheckFailed(f"the training of adapt.hpp on {target} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        own, others, hash = learned[1].split()
        say(f"result training=adapt target={target} recognized_new={own} recognized_others={others} parameters_hash={hash}")
        if learned[1] != expected:
            raise CheckFailed(f"the training of adapt.hpp on {target} ends with {learned[1]}, and the search with {expected}")


def export_hash(folder, name):
    """A hash of what was exported. adapt.hpp has it, to tell whether it belongs to this export."""
    files = (folder / f"{name}.hpp", folder / "model.safetensors")
    return hashlib.sha256("".join(hashlib.sha256(file.read_bytes()).hexdigest() for file in files).encode()).hexdigest()


PLANS = {"inference": "inference, weights in flash", "everything": "training everything, `AdamW`",
         "everything_update_in_backward_sgd": "training everything, `UpdateInBackward`, `Sgd<>`",
         "lora": "training factors of rank 4 (LoRA), weights in flash", "biases_and_norms": "training biases and norms, weights in flash"}


def write_sizes(folder, plans, results):
    """The table of the folder's README."""
    readme = folder / "README.md"
    if not readme.is_file():
        return
    rows = ["| | RAM, bytes |", "|---|---|", *(f"| {PLANS.get(name, name)} | {size:,} |" for name, size in plans.items()), "",
            "| flash of the check, bytes | float | int8 |", "|---|---|---|"]
    for target in dict.fromkeys(result["target"] for result in results if result["flash_bytes"] != "-"):
        sizes = {result["precision"]: f"{int(result['flash_bytes']):,}" for result in results if result["target"] == target}
        rows.append(f"| {target} | {sizes.get('float', '–')} | {sizes.get('int8', '–')} |")
    files = {result["precision"]: f"{int(result['file_bytes']):,}" for result in results}
    rows.append(f"| of it the weights | {files.get('float', '–')} | {files.get('int8', '–')} |")
    text = re.sub(r"<!-- sizes -->.*<!-- end -->", lambda _: "<!-- sizes -->\n" + "\n".join(rows) + "\n<!-- end -->",
                  readme.read_text(), flags=re.S)
    readme.write_text(text)


def receive(source, file, attune=None):
    """Puts a file together from the hex lines of a board's log, or of a serial port; every line has a CRC."""
    script = sources(attune) / "cmake/hex_lines.py"
    done = subprocess.run([sys.executable, str(script), str(source), str(file)], capture_output=True, text=True)
    if done.returncode or not Path(file).is_file():
        raise ValueError((done.stdout + done.stderr).strip())
    return f"wrote {file}: {Path(file).stat().st_size:,} bytes"
