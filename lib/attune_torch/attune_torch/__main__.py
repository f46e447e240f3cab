"""python3 -m attune_torch export FILE.py:make_model --out gestures
python3 -m attune_torch export CHECKPOINT --tokens 32 --out bert
python3 -m attune_torch export model.onnx --out gestures [--size sequence=16]
python3 -m attune_torch check gestures [--on mps2_an386]
python3 -m attune_torch fit gestures --board stm32f411 [--ram 64K] [--flash 256K] [--step 100ms] [--data takes.safetensors]
python3 -m attune_torch receive LOG --out learned.safetensors"""
import argparse
import importlib.util
import re
import signal
import sys
import traceback
import warnings
from pathlib import Path

from . import fit
from .building import check, receive
from .errors import CheckFailed, ExportWarning, Unsupported


def made(place, tokens, token_types, sizes):
    """A module, a sample input and hints if there are any: of a checkpoint's folder, of an ONNX file, or what FILE.py:function answers."""
    if (Path(place) / "config.json").is_file():
        from .families import from_checkpoint
        return from_checkpoint(place, tokens, token_types=token_types)
    if tokens is not None or token_types:
        raise ValueError(f"'{place}' has no config.json: --tokens and --token-types are for checkpoints")
    if place.endswith(".onnx"):
        from .onnx_file import from_onnx
        module = from_onnx(place, sizes)
        return module, module.sample_input()
    file, _, function = place.partition(":")
    if not function or not Path(file).is_file():
        raise ValueError(f"'{place}': give FILE.py:make_model, a function that answers (module, sample_input), a file model.onnx, or a "
                         "folder with config.json")
    sys.path.insert(0, str(Path(file).resolve().parent))
    spec = importlib.util.spec_from_file_location(Path(file).stem, file)
    source = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(source)
    if not callable(getattr(source, function, None)):
        raise ValueError(f"there is no function {function} in {file}")
    from .capture import failure
    try:
        pair = getattr(source, function)()
    except (Unsupported, ModuleNotFoundError):
        raise
    except Exception as problem:  # noqa: BLE001: whatever it raises
        raise ValueError(f"{function}() of {file} fails: {failure(problem)}") from problem
    if not isinstance(pair, tuple) or len(pair) not in (2, 3):
        raise ValueError(f"{function} must return (module, sample_input) or (module, sample_input, hints)")
    return pair


def export_to(out, place, tokens=None, token_types=False, sizes=()):
    """Exports what `place` names into the folder, and says what there is to say."""
    from .folder import export
    module, sample, *hints = made(place, tokens, token_types, dict(sizes))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ExportWarning)
        found = export(module, sample, out, *hints)
    for text in [*(f"warning: {warning.message}" for warning in said), *found.remarks()]:
        print(f"attune_torch: {text}", file=sys.stderr)
    print(f"wrote {out}: {len(found.layers)} layers; python3 -m attune_torch check {out}")


def exported_folder(place, out):
    """The folder that fit works in: `place`, or what is exported of an .onnx file or FILE.py:function into `out`, by default a folder named after
    the file."""
    file, _, function = place.partition(":")
    if file.endswith(".py") and not function and not Path(place).is_dir():
        raise ValueError(f"'{place}': name the function, too, as {place}:make_model")
    if Path(place).is_dir() or not (place.endswith(".onnx") or (file.endswith(".py") and function)):
        if out:
            raise ValueError(f"--out is the folder of an .onnx file or FILE.py:make_model, and '{place}' is neither")
        return place
    out = Path(out or re.sub(r"\W+", "_", Path(file).stem, flags=re.ASCII))
    if out.exists() and not (out / "check.safetensors").is_file():
        raise ValueError(f"'{out}' is there already, and was not written by attune_torch.export; give another folder with --out")
    export_to(out, place)
    return out


def size(text):
    """NAME=NUMBER, an extent of an .onnx file's input."""
    name, _, number = text.partition("=")
    if not name or not number.isdigit() or int(number) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': give NAME=NUMBER, as sequence=16")
    return name, int(number)


class Once(argparse.Action):
    """Stores the value of an option that may stand there once."""

    def __call__(self, parser, options, value, name=None):
        if getattr(options, self.dest) is not None:
            parser.error(f"{name} is given twice")
        setattr(options, self.dest, value)


def as_argument(parse):
    """For argparse, which keeps the sentence of such an error alone."""
    def parsed(text):
        try:
            return parse(text)
        except ValueError as problem:
            raise argparse.ArgumentTypeError(str(problem)) from problem
    return parsed


class Parser(argparse.ArgumentParser):
    """Wrong options are one sentence."""

    def error(self, message):
        self.exit(2, f"attune_torch: {message}; see {self.prog} --help\n")


def main(arguments=None):
    parser = Parser(prog="attune_torch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    attune = argparse.ArgumentParser(add_help=False)
    attune.add_argument("--attune", help="the folder of attune, if it is not this package's")
    one = commands.add_parser("export", help="write a folder with a model as a type of attune")
    one.add_argument("model", help="FILE.py:make_model, a function that answers (module, sample_input), a file model.onnx, or the "
                                   "folder of a Hugging Face checkpoint")
    one.add_argument("--tokens", type=int, help="the length of a checkpoint's sequence on the device")
    one.add_argument("--token-types", action="store_true", help="a checkpoint of BERT takes the type of each token, too")
    one.add_argument("--out", required=True, help="the folder; its last name is the C++ namespace")
    one.add_argument("--size", action="append", default=[], type=size, metavar="NAME=NUMBER",
                     help="an extent of an .onnx file's input that has a name instead of a number")
    one = commands.add_parser("check", parents=[attune], help="build a folder, run it, and name the first layer that differs from PyTorch")
    one.add_argument("folder")
    one.add_argument("--on", action="append", default=[], help="also check on a board, as mps2_an386; may be repeated")
    one = commands.add_parser("fit", parents=[attune], help="find a way to train a model within a board's memory and time")
    one.add_argument("folder", help="an exported folder; or FILE.py:make_model or a file model.onnx, which is exported first")
    one.add_argument("--out", help="of FILE.py:make_model or model.onnx: the folder to export into. Default: named after the file")
    one.add_argument("--model", help="a C++ type instead of an exported folder, as small::Model; then the search works in the folder, which may be new")
    one.add_argument("--header", help="the header of --model")
    one.add_argument("--board", action=Once, help="a board or part of boards.csv, as stm32f411: its memory is the limit")
    one.add_argument("--core", action=Once, help="without a board: its core, as cortex-m7. Default: cortex-m4")
    one.add_argument("--ram", action=Once, type=as_argument(fit.bytes_of), help="at most so much RAM, stack included, as 64K")
    one.add_argument("--flash", action=Once, type=as_argument(fit.bytes_of), help="at most so much flash, weights included, as 256K")
    one.add_argument("--step", action=Once, type=as_argument(fit.seconds_of), help="at most so long for a step with one sequence, as 100ms, by estimated cycles")
    one.add_argument("--loss", help="the C++ type of the loss. Default: attune::CrossEntropy<>")
    one.add_argument("--base", choices=["float", "int8"], help="the numbers of constant weights in flash. Default: 8 bits are tried where floats may not fit")
    one.add_argument("--only", default="", help="only ways to train with this in their names, as 'LoRA, rank 4', or with one of several, as 'head|LoRA'")
    one.add_argument("--all", action="store_true", dest="everything", help="print all candidates instead of one for each part that is trained")
    one.add_argument("--attempts", type=int, default=3, help="candidates to measure until one is within all limits. Default: 3")
    one.add_argument("--data", action=Once, help="a .safetensors file with x, y and, by option, y_test, length and user: takes to learn from and to be tested with")
    one.add_argument("--new", type=int, metavar="USER", help="of --data: only this user is new, as the model was trained with the others. Default: each once")
    one.add_argument("--unlabeled", type=int, default=0, metavar="TAKES", help="without --data: ways that learn without labels, from so many takes at most")
    one.add_argument("--takes", type=int, default=5, help="takes of each class that a new user gives. Default: 5")
    one.add_argument("--batch", type=int, help="takes of a step, but of plans that update after each. Default: 4, 8 and 16 are tried")
    one.add_argument("--seeds", type=int, default=2, help="how often each user is new, with other takes. Default: 2")
    one.add_argument("--passes", type=int, default=20, help="passes over the takes at most. Default: 20")
    one.add_argument("--confirm", action="store_true", help="train the chosen way on the emulated board, too, and compare")
    one = commands.add_parser("receive", parents=[attune], help="restore a file from a board's hex lines")
    one.add_argument("source", help="a log, or a serial port")
    one.add_argument("--out", required=True, dest="file")
    options = vars(parser.parse_args(arguments))
    command = options.pop("command")
    try:
        if command == "export":
            export_to(options["out"], options["model"], options["tokens"], options["token_types"], options["size"])
        elif command == "check":
            check(**options)
        elif command == "fit":
            out = options.pop("out")
            fit.fit(**options if options["model"] else {**options, "folder": exported_folder(options["folder"], out)})
        else:
            print(receive(**options))
    except ModuleNotFoundError as missing:
        lines = [f"{frame.filename}:{frame.lineno}" for frame in traceback.extract_tb(missing.__traceback__)
                 if not re.search(r"/(attune_torch|python3[^/]*|(site|dist)-packages)/|^<", frame.filename)]
        needs = f"{lines[-1]} imports the" if lines else f"{command} needs the"
        print(f"attune_torch: {needs} Python package {missing.name}, which {sys.executable} lacks: install it, or run {command} with a Python that has it", file=sys.stderr)
        return 1
    except (Unsupported, CheckFailed, ValueError, OSError) as problem:
        print(f"attune_torch: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # another one would end this one's words
        print("attune_torch: interrupted" + ("; what is measured is kept, and the same command goes on from there" if command == "fit" else ""),
              file=sys.stderr)
        return 130
    return 0


sys.exit(main())
