"""A forward pass as a graph: what was computed from what, with the values themselves, and the lines of `forward`."""
import itertools
import math
import traceback
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from .errors import Unsupported
from .provenance import Provenance

HERE = str(Path(__file__).parent)
TORCH = str(Path(torch.__file__).parent)
# Operations that give numbers instead of tensors.
VALUES = {"__bool__", "__float__", "__int__", "__index__", "item", "tolist", "numpy", "__array__"}


def hint_for(path):
    """How to export what a module computes in another way; a line of a message."""
    if not path:
        return ""  # a hint for the whole model would be the model
    return f"\n  hint: if attune has what it computes, write it so beside the model: export(…, hints={{{path!r}: lambda module, x: …}})"


class HintsError(ValueError):
    """Hints for modules that are not there, or not called."""


class Node:
    """An operation, or a module that is taken as one. `args` are nodes where they are tensors of the pass."""

    count = itertools.count()

    def __init__(self, operation, args, kwargs, value, path="", module=None, line="", function=None):
        self.index = next(self.count)  # in the order of the pass
        self.function = function
        self.operation, self.args, self.kwargs = operation, args, kwargs
        self.value, self.path, self.module, self.line = value, path, module, line
        self.derived = False  # from the input
        self.hint = ""        # a line of a message

    @property
    def shape(self):
        return tuple(self.value.shape)

    def inputs(self):
        """The nodes that it is computed from."""
        found = []

        def visit(value):
            if isinstance(value, Node):
                found.append(value)
            elif isinstance(value, (list, tuple)):
                for item in value:
                    visit(item)
            elif isinstance(value, dict):
                visit(list(value.values()))

        visit([self.args, self.kwargs])
        return found

    def describe(self):
        where = f" in {self.path}" if self.path else ""
        shapes = ", ".join(str(list(node.shape)) for node in self.inputs() if node.derived)
        line = f"\n  {self.line}" if self.line else ""
        return f"{self.operation}{where} of {shapes or 'constants'}{line}"

    def refused(self, text):
        """The exception that names this operation, with a hint."""
        return Unsupported(text + self.describe() + self.hint)


class NodeByNode(nn.Module):
    """A graph that is run node by node, and says itself where it is."""
    position = ("", "")  # of the node that runs: module path, and words for people
    rotary_bases = ()    # that it may have


def taken_whole(module):
    """Modules whose inside is not looked at."""
    if isinstance(module, (nn.LayerNorm, nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
        return True
    return norm_like(module)


def norm_like(module):
    """A module of one's own that may be a norm over features: at most one weight, which is a vector."""
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        return False
    parameters = dict(module.named_parameters())
    is_norm = "norm" in type(module).__name__.lower() and not list(module.children())
    return is_norm and set(parameters) <= {"weight"} and all(p.dim() == 1 for p in parameters.values())


def line_of_forward():
    """The innermost line of the model itself; nothing within an nn.Sequential, which has none."""
    stack = traceback.extract_stack()
    modules = [at for at, frame in enumerate(stack) if frame.name == "called" and frame.filename.startswith(HERE)]
    for frame in reversed(stack[modules[0] if modules else len(stack):]):
        if not frame.filename.startswith((HERE, TORCH)):
            return f"{frame.filename}:{frame.lineno}: {frame.line}"
    return ""


def failure(problem):
    """An exception of somebody's code as words: its type, its text, and the innermost line that is neither PyTorch's nor of this package."""
    lines = [f"\n  {frame.filename}:{frame.lineno}: {frame.line}" for frame in traceback.extract_tb(problem.__traceback__)
             if not frame.filename.startswith((HERE, TORCH, "<"))]
    return f"{type(problem).__name__}: {problem}{lines[-1] if lines else ''}"


class Recording(TorchFunctionMode):
    """Records a forward pass of a module. `inputs`: its tensors. `hints`: functions by modules' paths, recorded in place of their
    forward; the values are those of the modules themselves."""

    def __init__(self, module, inputs, hints):
        super().__init__()
        self.hints = hints
        self.module = module
        self.names = {}  # of parameters and buffers, by identity
        self.tensors = module.state_dict(keep_vars=True)
        for name, tensor in self.tensors.items():
            self.names.setdefault(id(tensor), []).append(name)
        self.node_of, self.tensor_of, self.alive, self.depth = {}, {}, [], 0
        self.nodes = []  # in the order of the pass
        self.paths = {id(inside): path for path, inside in module.named_modules()}
        self.stack, self.used_hints = [], set()
        self.failed = ""  # the innermost module that raises
        self.in_training = {path for path, inside in module.named_modules() if inside.training}
        self.provenance = Provenance(self.tensors, inputs, self)
        self.read = set()  # tensors of the state_dict that the output is computed from
        self.inputs = [self.keep(value, Node("input", [], {}, value.clone())) for value in inputs]
        for item in self.inputs:
            item.derived = True

    def keep(self, tensor, node):
        self.node_of[id(tensor)] = node
        self.tensor_of[node.index] = tensor
        self.nodes.append(node)
        self.alive.append(tensor)  # an id is not used again while its tensor lives
        return node

    def node(self, value):
        """In the place of tensors in arguments: their nodes."""
        if isinstance(value, torch.Tensor):
            if id(value) not in self.node_of:
                self.refuse_unseen(value)
                names = self.names.get(id(value), [])
                self.keep(value, Node("constant", [], {}, value.detach().clone(), path=names[0] if names else ""))
            self.refuse_changed(value)
            return self.node_of[id(value)]
        if isinstance(value, (list, tuple)):
            return [self.node(item) for item in value]
        if isinstance(value, dict):
            return {key: self.node(item) for key, item in value.items()}
        return value

    def refuse_unseen(self, tensor):
        """Raises Unsupported of a value that is computed from the input by an operation that was not recorded: it is no constant."""
        if self.provenance.is_of_input(tensor):
            raise Unsupported(f"a value {list(tensor.shape)} is computed from the input by an operation that PyTorch {torch.__version__} does not show, "
                              "as x[0], x[1:], x[None] or x[index]; its numbers would be exported as constants. Write x.select(0, 0), x.narrow(0, 1, n), "
                              "x.unsqueeze(0) or x.index_select(0, index); they are used in\n  " + line_of_forward() + self.hint())

    def decide(self, name):
        """Raises Unsupported where numbers that are computed from the input become numbers of Python."""
        raise Unsupported(f"forward takes numbers out of its input ({name}), and those of one sample would be exported\n  " +
                          line_of_forward() + self.hint())

    def hint(self):
        return hint_for(self.paths[id(self.stack[-1])]) if self.stack else ""

    def is_of_input(self, node):
        """Whether a value is computed from the input's numbers, not from its shape alone."""
        tensor = self.tensor_of.get(node.index)
        return node.derived if tensor is None else self.provenance.is_of_input(tensor)

    def refuse_changed(self, tensor):
        """Raises Unsupported of a value that an operation which is not recorded has changed, as y[:, 0] = 0 or through a view."""
        node = self.node_of[id(tensor)]
        self.depth += 1
        try:
            known = torch.equal(tensor, node.value) or torch.equal(tensor[tensor == tensor], node.value[node.value == node.value])
        finally:
            self.depth -= 1
        if not known:
            raise node.refused("forward changes a value in place, in part or through a view, as by y[:, 0] = 0; compute a new value instead. "
                               "It changes the output of ") if node.operation != "input" else Unsupported("forward changes its input in place")

    def add(self, operation, args, kwargs, output, **more):
        path = self.paths.get(id(self.stack[-1]), "") if self.stack else ""
        position = self.module.position if isinstance(self.module, NodeByNode) else None
        path, line = position or (path, line_of_forward())
        node = Node(operation, args, kwargs, None, **{"path": path, "line": line, **more})
        node.hint = "" if position else hint_for(node.path)
        outputs = output if isinstance(output, (list, tuple)) else [output]
        self.depth += 1
        of_input = any(self.provenance.is_of_input(item) for item in outputs if isinstance(item, torch.Tensor))  # zeros_like(x) is not
        self.depth -= 1
        node.derived = of_input and any(item.derived for item in node.inputs())
        for index, tensor in enumerate(outputs):
            if not isinstance(tensor, torch.Tensor):
                continue
            part = node
            if index > 0:
                part = Node(f"part {index}", [node], {}, None, path=node.path, line=node.line)
                part.derived = node.derived
            self.depth += 1
            part.value = tensor.detach().clone()
            self.depth -= 1
            self.keep(tensor, part)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.depth:
            return function(*args, **kwargs)
        before = self.node(list(args)), self.node(kwargs)
        if getattr(function, "__name__", "") in VALUES and any(isinstance(item, Node) and item.derived for item in before[0]):
            raise Unsupported(f"forward takes numbers out of its input ({function.__name__}), and those of one sample would be exported\n  " +
                              line_of_forward() + hint_for(self.paths[id(self.stack[-1])]))
        output = function(*args, **kwargs)
        tensors = output if isinstance(output, (list, tuple)) else [output]
        if any(isinstance(tensor, torch.Tensor) for tensor in tensors):
            self.add(getattr(function, "__name__", str(function)), *before, output, function=function)
        return output

    @contextmanager
    def modules(self):
        """With every module told apart, and some taken whole."""
        own = {}  # functions that the caller has put in the place of a module's forward

        def wrap(inside):
            forward = inside.forward
            if "forward" in vars(inside):
                own[inside] = forward

            def called(*args, **kwargs):
                self.stack.append(inside)
                hint = None if self.depth else self.hints.get(self.paths[id(inside)])
                if hint is not None:
                    try:
                        return self.hinted(inside, forward, hint, args, kwargs)
                    finally:
                        self.stack.pop()
                whole = taken_whole(inside) and not self.depth
                before = (self.node(list(args)), self.node(kwargs)) if whole else None
                self.depth += whole
                try:
                    output = forward(*args, **kwargs)
                except Exception:
                    self.failed = self.failed or self.paths[id(inside)]
                    raise
                finally:
                    self.depth -= whole
                    self.stack.pop()
                self.check_recorded(inside, output)
                if whole:
                    self.add(type(inside).__name__, *before, output, module=inside, path=self.paths[id(inside)])
                return output

            inside.forward = called

        inner = list(self.module.modules())
        unknown = set(self.hints) - set(self.paths.values())
        if unknown:
            raise HintsError(f"hints: there is no module '{sorted(unknown)[0]}'; paths are as in named_modules()")
        for inside in inner:
            wrap(inside)
        try:
            yield
        finally:
            for inside in inner:
                del inside.forward
                if inside in own:
                    inside.forward = own[inside]
        unused = set(self.hints) - self.used_hints
        if unused:
            raise HintsError(f"hints: forward does not call '{sorted(unused)[0]}'")

    def hinted(self, module, forward, hint, args, kwargs):
        """Records the hint of a module, and answers what the module does."""
        path = self.paths[id(module)]
        self.used_hints.add(path)
        self.depth += 1
        try:
            copies = [item.clone() if isinstance(item, torch.Tensor) else item for item in args]
            output = forward(*copies, **kwargs)
        finally:
            self.depth -= 1
        found = hint(module, *args, **kwargs)
        for name, one in (("the module", output), ("its hint", found)):
            if not isinstance(one, torch.Tensor):
                raise Unsupported(f"{path}: {name} answers a {type(one).__name__}; a hint is for a module that answers one tensor")
        self.depth += 1
        try:
            far = float((output - found).abs().max()) if output.shape == found.shape else math.inf
            if not far <= 1e-4 * max(1.0, float(output.abs().max())):
                raise Unsupported(f"the hint of {path or 'the model'} is wrong: the module answers {list(output.shape)}, its hint "
                                  f"{list(found.shape)}, and they differ by {far:.3g}")
        finally:
            self.depth -= 1
        self.add("clone", [self.node(found)], {}, output)
        return output

    def check_recorded(self, module, output):
        """Whether operations were recorded that give a module's output: none are of a scripted function, or of NumPy."""
        if isinstance(output, torch.Tensor) and not self.depth and not taken_whole(module) and id(output) not in self.node_of and \
                id(output) not in self.names:
            path = self.paths[id(module)]
            self.depth += 1  # its shape is no part of the model
            raise Unsupported(f"{type(module).__name__}{f' in {path}' if path else ''} answers {list(output.shape)} that no recorded operation "
                              "computed, as by torch.jit, NumPy or an autograd.Function of one's own" + hint_for(path))


def record(module, args, kwargs, hints):
    """The recording of module(*args, **kwargs), and the node of its output."""
    # Tensors of its own: one may be given twice.
    args, kwargs = [item.detach().clone() for item in args], {name: item.detach().clone() for name, item in kwargs.items()}
    recording = Recording(module, [*args, *kwargs.values()], hints)
    with in_evaluation(module), torch.no_grad():
        try:
            with recording.modules(), recording.provenance, recording:
                output = module(*args, **kwargs)
        except (Unsupported, HintsError):
            raise
        except Exception as problem:  # noqa: BLE001: whatever the model raises
            try:
                module(*args, **kwargs)
            except Exception as own:  # noqa: BLE001
                shapes = ", ".join(f"{list(item.shape)} of {str(item.dtype).removeprefix('torch.')}" for item in (*args, *kwargs.values()))
                where = f" in {recording.failed}" if recording.failed else ""
                raise Unsupported(f"forward itself fails{where} on sample_input, {shapes}: {failure(own)}") from own
            raise Unsupported(f"forward cannot be recorded: {failure(problem)}") from problem
    output = the_output(output)
    if id(output) not in recording.node_of:
        raise Unsupported("forward does not answer a tensor that it computed")
    recording.refuse_changed(output)
    recording.read = recording.provenance.names_of(output)
    return recording, recording.node_of[id(output)]


@contextmanager
def in_evaluation(module):
    """With a module in evaluation; then each module inside has its own mode again."""
    modes = [(inside, inside.training) for inside in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for inside, training in modes:
            inside.training = training


def the_output(output):
    """The one tensor that forward answers: itself, the logits of a Hugging Face output, or the only one of a tuple or a dict."""
    logits = getattr(output, "logits", None)
    if isinstance(output, torch.Tensor) or isinstance(logits, torch.Tensor):
        return output if isinstance(output, torch.Tensor) else logits
    pairs = output.items() if isinstance(output, dict) else enumerate(output) if isinstance(output, (list, tuple)) else ()
    found = {key: item for key, item in pairs if item is not None}
    if len(found) == 1 and all(isinstance(item, torch.Tensor) for item in found.values()):
        return next(iter(found.values()))
    if not found:
        raise Unsupported(f"forward answers no tensor, but {'nothing' if output is None else f'a {type(output).__name__}'}")
    words = ", ".join(f"[{key!r}] {list(item.shape) if isinstance(item, torch.Tensor) else f'a {type(item).__name__}'}" for key, item in found.items())
    raise Unsupported(f"forward answers {len(found)} values, and a model of attune has one output: {words}\n"
                      f"  choose one: export a module whose forward returns self.model(x)[{next(iter(found))!r}]")
