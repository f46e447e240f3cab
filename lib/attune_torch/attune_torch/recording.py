"""A forward pass as a graph: what was computed from what, with the values themselves, and the lines of `forward`."""
import itertools
import traceback
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from .errors import Unsupported

HERE = str(Path(__file__).parent)
TORCH = str(Path(torch.__file__).parent)


class Node:
    """An operation, or a module that is taken as one. `args` are nodes where they are tensors of the pass."""

    count = itertools.count()

    def __init__(self, operation, args, kwargs, value, path="", module=None, line="", function=None):
        self.index = next(self.count)  # in the order of the pass
        self.function = function
        self.operation, self.args, self.kwargs = operation, args, kwargs
        self.value, self.path, self.module, self.line = value, path, module, line
        self.derived = False  # from the input

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


def taken_whole(module):
    """Modules whose inside is not looked at."""
    if isinstance(module, (nn.LayerNorm, nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.Dropout)):
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


class Recording(TorchFunctionMode):
    """Records a forward pass of a module. `inputs`: its tensors."""

    def __init__(self, module, inputs):
        super().__init__()
        self.module = module
        self.names = {}  # of parameters and buffers, by identity
        self.tensors = module.state_dict(keep_vars=True)
        for name, tensor in self.tensors.items():
            self.names.setdefault(id(tensor), []).append(name)
        self.node_of, self.alive, self.depth = {}, [], 0
        self.nodes = []  # in the order of the pass
        self.paths = {id(inside): path for path, inside in module.named_modules()}
        self.stack = []
        self.in_training = {path for path, inside in module.named_modules() if inside.training}
        self.inputs = [self.keep(value, Node("input", [], {}, value.clone())) for value in inputs]
        for item in self.inputs:
            item.derived = True

    def keep(self, tensor, node):
        self.node_of[id(tensor)] = node
        self.nodes.append(node)
        self.alive.append(tensor)  # an id is not used again while its tensor lives
        return node

    def node(self, value):
        """In the place of tensors in arguments: their nodes."""
        if isinstance(value, torch.Tensor):
            if id(value) not in self.node_of:
                names = self.names.get(id(value), [])
                self.keep(value, Node("constant", [], {}, value.detach().clone(), path=names[0] if names else ""))
            return self.node_of[id(value)]
        if isinstance(value, (list, tuple)):
            return [self.node(item) for item in value]
        if isinstance(value, dict):
            return {key: self.node(item) for key, item in value.items()}
        return value

    def add(self, operation, args, kwargs, output, **more):
        path = self.paths.get(id(self.stack[-1]), "") if self.stack else ""
        # A graph that is run node by node says itself where it is.
        path, line = getattr(self.module, "position", None) or (path, line_of_forward())
        node = Node(operation, args, kwargs, None, **{"path": path, "line": line, **more})
        node.derived = any(item.derived for item in node.inputs())
        outputs = output if isinstance(output, (list, tuple)) else [output]
        for index, tensor in enumerate(outputs):
            if not isinstance(tensor, torch.Tensor):
                continue
            part = node
            if index > 0:
                part = Node(f"part {index}", [node], {}, None, path=node.path, line=node.line)
                part.derived = node.derived
            part.value = tensor.detach().clone()
            self.keep(tensor, part)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self.depth:
            return function(*args, **kwargs)
        before = self.node(list(args)), self.node(kwargs)
        if getattr(function, "__name__", "") == "__bool__" and before[0][0].derived:
            raise Unsupported(f"forward decides by values of its input, and only one way would be exported\n  {line_of_forward()}")
        output = function(*args, **kwargs)
        tensors = output if isinstance(output, (list, tuple)) else [output]
        if any(isinstance(tensor, torch.Tensor) for tensor in tensors):
            self.add(getattr(function, "__name__", str(function)), *before, output, function=function)
        return output

    @contextmanager
    def modules(self):
        """With every module told apart, and some taken whole."""
        def wrap(inside):
            forward = inside.forward

            def called(*args, **kwargs):
                self.stack.append(inside)
                whole = taken_whole(inside) and not self.depth
                before = (self.node(list(args)), self.node(kwargs)) if whole else None
                self.depth += whole
                try:
                    output = forward(*args, **kwargs)
                finally:
                    self.depth -= whole
                    self.stack.pop()
                if whole:
                    self.add(type(inside).__name__, *before, output, module=inside, path=self.paths[id(inside)])
                return output

            inside.forward = called

        inner = list(self.module.modules())
        for inside in inner:
            wrap(inside)
        try:
            yield
        finally:
            for inside in inner:
                del inside.forward


def record(module, args, kwargs):
    """The recording of module(*args, **kwargs), and the node of its output."""
    # Tensors of its own: one may be given twice.
    args, kwargs = [item.detach().clone() for item in args], {name: item.detach().clone() for name, item in kwargs.items()}
    recording = Recording(module, [*args, *kwargs.values()])
    training = module.training
    module.eval()
    try:
        with torch.no_grad(), recording.modules(), recording:
            output = module(*args, **kwargs)
    finally:
        module.train(training)
    if not isinstance(output, torch.Tensor):
        # A Hugging Face output, or a tuple: the logits are its first tensor.
        output = getattr(output, "logits", None) if not isinstance(output, (tuple, dict)) else \
            output["logits"] if isinstance(output, dict) and "logits" in output else list(
                output.values() if isinstance(output, dict) else output)[0]
    if not isinstance(output, torch.Tensor) or id(output) not in recording.node_of:
        raise Unsupported("forward does not answer a tensor that it computed")
    return recording, recording.node_of[id(output)]
