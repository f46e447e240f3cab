"""A model that torch.onnx exported, as a module: its nodes become torch functions, its tensors have PyTorch's names again."""
import inspect
import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from .errors import Unsupported
from .capture import NO_RECURRENT_LAYERS, NodeByNode

OPSETS = range(7, 21)
FLOAT, INTEGERS = 1, (6, 7)  # TensorProto.DataType
FOLDED = "onnx::"  # torch.onnx names tensors so that it has computed from others, as transposed weights


def from_onnx(path, sizes=None):
    """The model of an .onnx file, for `export(module, module.sample_input(), folder)`. `sizes` gives symbolic extents of the
    input their numbers, as {"sequence": 16}; the batch needs none. Raises Unsupported with the node's name, and ValueError
    where the file is damaged."""
    return OnnxModule(Path(path), sizes or {})


def read(path):
    """The file as onnx.ModelProto."""
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise ValueError("reading .onnx files takes the Python package onnx: apt install python3-onnx, or pip install onnx") from None
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        model = onnx.load(str(path))
    except Exception as problem:  # noqa: BLE001: protobuf's own type of error
        raise ValueError(f"{path} is no ONNX file, or is cut short: {problem}") from None
    if not model.graph.node or not model.graph.output:
        raise ValueError(f"{path} is no ONNX file, or is cut short: its graph has no nodes or no outputs")
    versions = {item.domain: item.version for item in model.opset_import}
    version = versions.get("", versions.get("ai.onnx", 0))
    if version not in OPSETS:
        raise Unsupported(f"{path} has opset {version}; export it with opset_version={OPSETS[0]} to {OPSETS[-1]}")
    return model, version, onnx


def words(*names):
    """The names. protobuf in Python answers bytes where they are no UTF-8."""
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"the file is damaged: a name is {names}")
    return names


class Step:
    """A node of the graph, read."""

    def __init__(self, node, index, onnx, opset):
        self.opset = opset
        words(node.name, node.op_type, node.domain, *node.input, *node.output, *(item.name for item in node.attribute))
        self.name, self.operation = node.name or f"{node.op_type}_{index}", node.op_type
        self.domain = node.domain if node.domain not in ("", "ai.onnx") else ""
        self.inputs, self.outputs = list(node.input), list(node.output)
        self.attributes = {}
        for attribute in node.attribute:
            value = onnx.helper.get_attribute_value(attribute)
            if attribute.type == onnx.AttributeProto.TENSOR:
                value = tensor_of(value, onnx, self.name)
            self.attributes[attribute.name] = value.decode() if isinstance(value, bytes) else value
        self.scope = self.name.split("/")[1:-1] if self.name.startswith("/") else []
        self.path = dotted(self.scope)

    def get(self, name, default=None):
        return self.attributes.get(name, default)

    def describe(self):
        return f"node {self.name} ({self.domain + '.' if self.domain else ''}{self.operation})"


def tensor_of(proto, onnx, name):
    try:
        return torch.tensor(onnx.numpy_helper.to_array(proto))
    except Exception as problem:  # noqa: BLE001: whatever NumPy says of bytes that are missing
        raise ValueError(f"the tensor {name} is damaged: {problem}") from None


def dotted(scope):
    """A path of modules. Children of nn.Sequential repeat its name: blocks/blocks.0/norm1 is blocks.0.norm1."""
    path, before = "", None
    for part in scope:
        if before is not None and (part == before or part.startswith(before + ".")):
            path = path[: len(path) - len(before)] + part
        else:
            path = f"{path}.{part}" if path else part
        before = part
    return path


def refuse_twice(step, known):
    twice = [name for name in step.outputs if name and name in known]
    if twice:
        raise ValueError(f"the file is damaged: {step.describe()} computes {twice[0]}, which is there already")


class Graph:
    """Nodes, constants, and who reads them."""

    def __init__(self, path):
        model, self.opset, onnx = read(path)
        graph = model.graph
        words(*(item.name for items in (graph.initializer, graph.input, graph.output) for item in items))
        self.constants = {item.name: tensor_of(item, onnx, item.name) for item in graph.initializer}
        if len(self.constants) < len(graph.initializer):
            raise ValueError("the file is damaged: two of its tensors have one name")
        self.initializers = set(self.constants)
        self.steps = [Step(node, index, onnx, self.opset) for index, node in enumerate(graph.node)]
        self.inputs = [item for item in graph.input if item.name not in self.initializers]
        self.outputs = [item.name for item in graph.output]
        self.output = self.outputs[0]
        steps = []
        for step in self.steps:
            if step.operation == "Identity" and step.inputs[0] in self.initializers:
                # torch.onnx writes equal tensors once; each has its own name and training here.
                self.define(step, self.constants[step.inputs[0]].clone())
                self.initializers.add(step.outputs[0])
            elif step.operation == "Constant" and "value" in step.attributes:
                self.define(step, step.attributes["value"])
            else:
                steps.append(step)
        self.steps = steps
        for name in sorted(self.initializers):
            if self.constants[name].dtype in (torch.float16, torch.bfloat16, torch.float64):
                raise Unsupported(f"the tensor {name} is {self.constants[name].dtype}; export a model in floats of 32 bits")
        self.check()

    def define(self, step, value):
        refuse_twice(step, self.constants)
        self.constants[step.outputs[0]] = value

    def check(self):
        """Every value is computed once, and before it is read."""
        known = {"", *self.constants, *(item.name for item in self.inputs)}
        self.readers = {}
        for index, step in enumerate(self.steps):
            for name in step.inputs:
                if name not in known:
                    raise ValueError(f"the file is damaged: {step.describe()} reads {name}, which nothing computes")
                self.readers.setdefault(name, []).append(index)
            refuse_twice(step, known)
            known.update(step.outputs)
        if self.output not in known:
            raise ValueError(f"the file is damaged: nothing computes its output {self.output}")
        read = [item.name for item in self.inputs if item.name in self.readers]
        if len(read) != 1:
            raise Unsupported(f"a model with {len(read)} inputs ({', '.join(read) or 'none'}); attune's has one, and padding is "
                              "given at run time, as a SequenceLength")
        self.input = next(item for item in self.inputs if item.name in self.readers)


def is_of_pytorch(name):
    return not name.startswith(FOLDED)


class Names:
    """PyTorch's names of tensors, from names of biases and of nodes."""

    def __init__(self, graph):
        self.known, self.taken = {}, set()
        for step in graph.steps:
            for name in step.inputs:
                if name in graph.initializers and is_of_pytorch(name) and step.scope:
                    self.learn(step.scope, name.rpartition(".")[0])

    def learn(self, scope, path):
        """Modules that are never called are missing in names of nodes: model.layers.0.norm is /layers.0/norm."""
        for count in range(1, len(scope) + 1):
            tail = dotted(scope[count - 1:])[len(scope[count - 1]) + 1:] if count < len(scope) else ""
            head = path if not tail else path[: -len(tail) - 1] if path.endswith("." + tail) else ""
            if head and (head == dotted(scope[:count]) or head.endswith("." + dotted(scope[:count]))):
                self.known.setdefault(tuple(scope[:count]), head)

    def path(self, scope):
        for count in range(len(scope), 0, -1):
            head = self.known.get(tuple(scope[:count]))
            if head is not None:
                whole, part = dotted(scope), dotted(scope[:count])
                return head + whole[len(part):] if whole.startswith(part) else f"{head}.{dotted(scope[count:])}"
        return dotted(scope)

    def free(self, name):
        """The name, with a number where another tensor has it."""
        path, dot, leaf = name.rpartition(".")
        count, found = 1, name
        while found in self.taken:
            count += 1
            found = f"{path}_{count}.{leaf}" if dot else f"{leaf}_{count}"
        self.taken.add(found)
        return found


@dataclass
class Linear:
    """A product with a constant matrix at step `index`, and the sum with a bias, if any, at step `end`: one step here."""
    index: int
    matrix: str
    transposed: bool  # whether the matrix is a transposed weight
    bias: str
    end: int
    weight: nn.Parameter = None
    addend: nn.Parameter = None


def linears(graph):
    """The Linears of a graph."""
    found, writer = [], {name: step for step in graph.steps for name in step.outputs}

    def matrix(name):
        """The constant behind a name, and whether it is a transposed weight."""
        if name in graph.constants:
            return name, True
        step = writer.get(name)
        if step is not None and step.operation == "Transpose" and step.inputs[0] in graph.constants and step.get("perm") == [1, 0]:
            return step.inputs[0], False
        return None, False

    def is_float(name, dimensions):
        return name in graph.constants and graph.constants[name].dim() == dimensions and graph.constants[name].is_floating_point()

    for index, step in enumerate(graph.steps):
        if step.domain or step.operation not in ("MatMul", "Gemm"):
            continue
        name, transposed = matrix(step.inputs[1])
        if name is None or not is_float(name, 2) or step.inputs[0] in graph.constants:
            continue
        bias, end = None, index
        if step.operation == "Gemm":
            if step.get("alpha", 1.0) != 1 or step.get("beta", 1.0) != 1 or step.get("transA", 0):
                continue
            transposed ^= bool(step.get("transB", 0))
            bias = step.inputs[2] if len(step.inputs) > 2 and step.inputs[2] else None
            if bias is not None and not is_float(bias, 1):
                continue
        else:
            readers = graph.readers.get(step.outputs[0], [])
            if len(readers) == 1 and graph.steps[readers[0]].operation == "Add" and step.outputs[0] != graph.output:
                others = [other for other in graph.steps[readers[0]].inputs if other != step.outputs[0]]
                columns = graph.constants[name].shape[1 if transposed else 0]
                if len(others) == 1 and is_float(others[0], 1) and graph.constants[others[0]].shape[0] == columns:
                    bias, end = others[0], readers[0]
        if not (transposed and name in graph.initializers and is_of_pytorch(name) and name.endswith("weight")):  # else the module's own is [inputs, outputs]
            found.append(Linear(index, name, transposed, bias, end))
    return found


class OnnxModule(NodeByNode):
    """Runs a graph node by node. Its state_dict is that of the module that was exported, as far as the file has it."""

    def __init__(self, path, sizes):
        super().__init__()
        self.file, self.graph = path.name, Graph(path)
        self.names = Names(self.graph)
        self.tensors, self.linears = {}, linears(self.graph)  # constants by the file's name
        self.shape, self.is_integer = self.input_shape(sizes)
        self.name_tensors()
        self.name_tables()  # refuses operations first
        if len(self.graph.outputs) > 1:
            raise Unsupported(f"a model with {len(self.graph.outputs)} outputs ({', '.join(self.graph.outputs)}); attune's has one")
        self.eval()

    def _get_name(self):
        return self.file

    # ---- Tensors and their names ----

    def place(self, name, tensor):
        """A parameter under a name with dots."""
        owner = self
        *path, leaf = name.split(".")
        for part in path:
            owner = owner._modules.setdefault(part, nn.Module())
        owner._parameters[leaf] = tensor
        return tensor

    def parameter(self, tensor):
        return nn.Parameter(tensor.contiguous(), requires_grad=False)

    def name_tensors(self):
        graph, names = self.graph, self.names
        looked_up = {step.inputs[0] for step in graph.steps if step.operation == "Gather"}
        folded = {linear.matrix for linear in self.linears if linear.transposed}
        renamed, wanted = set(), []  # biases with other names than the file's; names of each product's weight and bias
        for linear in self.linears:
            path, own = names.path(graph.steps[linear.index].scope), is_of_pytorch(linear.matrix) and linear.matrix.endswith("weight")
            tied = linear.matrix in looked_up and path  # a head that is an embedding, too, has its own name beside it
            stem = f"{path}." if path else f"linear_{linear.matrix.rpartition('_')[2]}".replace(":", "_").replace(".", "_").replace("/", "_") + "."
            if linear.bias in graph.initializers and is_of_pytorch(linear.bias) and linear.bias.endswith("bias"):
                stem = linear.bias[: -len("bias")]
            elif linear.bias is not None:
                renamed.add(linear.bias)
            keeps = not linear.transposed and own and not tied
            weight = linear.matrix if keeps else f"{stem}weight"
            bias = weight[: -len("weight")] + "bias" if linear.bias in renamed else f"{stem}bias"
            wanted.append((weight, bias))
        # The order of the file, which is that of the module.
        for name, value in graph.constants.items():
            if name in folded or name in renamed or name not in graph.initializers or not is_of_pytorch(name) or \
                    name not in graph.readers or not value.is_floating_point() or value.dim() == 0:
                continue
            names.taken.add(name)
            self.tensors[name] = self.place(name, self.parameter(value))
        tables = [self.tensors[name] for name in sorted(looked_up) if name in self.tensors and self.tensors[name].dim() == 2]
        made = {}
        for linear, (weight, bias) in zip(self.linears, wanted):
            linear.weight = self.linear_tensor(linear.matrix, weight, linear.transposed, tables, made)
            linear.addend = None if linear.bias is None else self.linear_tensor(linear.bias, bias, False, [], made)
        # torch.onnx folds BatchNorm into convolutions, and their tensors lose their names.
        for step in graph.steps:
            for name, leaf in zip(step.inputs[1:], ("weight", "bias")) if step.operation == "Conv" else ():
                if name in graph.initializers and not is_of_pytorch(name) and name not in self.tensors:
                    path = names.path(step.scope) or "convolution"
                    self.tensors[name] = self.place(names.free(f"{path}.{leaf}"), self.parameter(graph.constants[name]))

    def linear_tensor(self, name, wanted, transposed, tables, made):
        """The parameter [outputs, inputs] of a matrix, or that of a bias. A head that is tied to an embedding is the same under two names."""
        if name in self.tensors and not transposed and wanted == name:
            return self.tensors[name]
        if (name, wanted) not in made:
            value = self.graph.constants[name].t() if transposed else self.graph.constants[name]
            same = [table for table in tables if table.shape == value.shape and torch.equal(table, value)]
            made[name, wanted] = self.place(self.names.free(wanted), same[0] if same else self.parameter(value))
        return made[name, wanted]

    def name_tables(self):
        """Folded tables of positions are parameters, too; their module's name is lost."""
        with torch.no_grad():
            values = self.run(self.sample_input())
        for step in self.graph.steps:
            if step.operation != "Add" or len(step.inputs) != 2:
                continue
            for name, other in (step.inputs, step.inputs[::-1]):
                table = self.graph.constants.get(name)
                if name not in self.graph.initializers or is_of_pytorch(name) or name in self.tensors or \
                        table.dim() not in (2, 3) or not table.is_floating_point() or float(table.abs().max()) > 1e3:
                    continue
                shape = tuple(values[other].shape) if other in values else ()
                if len(shape) == 3 and tuple(table.shape)[-2:] == shape[1:] and table.numel() == shape[1] * shape[2]:
                    path = self.names.path(step.scope)
                    wanted = self.names.free(f"{path}.positions" if path else "positions")
                    self.tensors[name] = self.place(wanted, self.parameter(table))

    # ---- The input ----

    def input_shape(self, sizes):
        item = self.graph.input
        kind = item.type.tensor_type
        shape, unknown = [], []
        for axis, extent in enumerate(kind.shape.dim):
            if extent.dim_value > 0:
                shape.append(extent.dim_value)
            elif axis == 0:
                shape.append(3)
            elif extent.dim_param in sizes:
                shape.append(sizes[extent.dim_param])
            else:
                unknown.append(extent.dim_param or f"dimension {axis}")
        if unknown:
            raise ValueError(f"the input {item.name} has extents without a number: {', '.join(unknown)}; give them, as "
                             f"--size {unknown[0]}=16")
        if kind.elem_type not in (FLOAT, *INTEGERS) or len(shape) < 2:
            raise Unsupported(f"the input {item.name} of shape {shape} is no batch of floats or of ids")
        return shape, kind.elem_type in INTEGERS

    def vocabulary(self):
        """Rows of the smallest table that is looked up with the input."""
        reach = {self.graph.input.name}
        rows = []
        for step in self.graph.steps:
            if step.operation in ("Cast", "Identity", "Reshape", "Unsqueeze", "Squeeze") and step.inputs[0] in reach:
                reach.add(step.outputs[0])
            if step.operation == "Gather" and step.inputs[1] in reach and step.inputs[0] in self.graph.constants:
                rows.append(self.graph.constants[step.inputs[0]].shape[0])
        if not rows:
            raise Unsupported(f"the input {self.graph.input.name} is of integers, and no embedding looks them up")
        return min(rows)

    def sample_input(self, seed=0):
        """A batch that is drawn: floats around 0, or ids below the vocabulary."""
        draw = torch.Generator().manual_seed(seed)
        if self.is_integer:
            return torch.randint(0, self.vocabulary(), self.shape, generator=draw)
        return torch.randn(self.shape, generator=draw)

    # ---- The nodes ----

    def forward(self, x):
        return self.run(x)[self.graph.output]

    def run(self, x):
        values = {**self.graph.constants, **self.tensors, self.graph.input.name: x}
        begun, ended = {linear.index for linear in self.linears if linear.index != linear.end}, {linear.end: linear for linear in self.linears}
        for index, step in enumerate(self.graph.steps):
            self.__dict__["position"] = (self.names.path(step.scope), f"{step.describe()} of {self.file}")  # a layer may be called so, too
            if index in begun:
                continue
            if index in ended:
                results = F.linear(values[self.graph.steps[ended[index].index].inputs[0]], ended[index].weight, ended[index].addend)
            else:
                results = self.results(step, [values[name] if name else None for name in step.inputs])
            values.update(zip(step.outputs, results if isinstance(results, (list, tuple)) else [results]))
        return values

    def results(self, step, inputs):
        shapes = ", ".join(str(list(value.shape)) for value in inputs if isinstance(value, torch.Tensor))
        if step.domain or step.operation not in OPERATIONS:
            why = NO_RECURRENT_LAYERS if step.operation in ("GRU", "LSTM", "RNN") else "attune has no layer for this: "
            raise Unsupported(f"{why}{step.operation} of {shapes or 'constants'}\n  {self.position[1]}")
        try:
            return computed(step, inputs)
        except Unsupported as problem:
            raise Unsupported(f"{problem}: {step.operation} of {shapes}\n  {self.position[1]}") from None
        except (RuntimeError, IndexError, TypeError, ValueError) as problem:
            raise Unsupported(f"{step.operation} of {shapes} cannot be computed: {problem}\n  {self.position[1]}") from None


# ---- Operations: https://github.com/onnx/onnx/blob/main/docs/Operators.md ----
# Functions of a node's inputs and, by ONNX's names, of its attributes: what became an input in a later opset is one parameter.

def whole(value):
    """A constant's integers; of an attribute, itself."""
    return value.reshape(-1).tolist() if isinstance(value, torch.Tensor) else value


def constant(value_float=None, value_floats=None, value_int=None, value_ints=None):
    floats, integers = (value if value is not None else values for value, values in ((value_float, value_floats), (value_int, value_ints)))
    if floats is None and integers is None:
        raise Unsupported("a constant that is neither tensor nor number")
    return torch.tensor(integers, dtype=torch.int64) if floats is None else torch.tensor(floats, dtype=torch.float32)


def reshape(x, shape, allowzero=0):
    return x.reshape([x.shape[axis] if extent == 0 and not allowzero else extent for axis, extent in enumerate(whole(shape))])


def squeeze(x, axes=None):
    if axes is None:
        return x.squeeze()
    gone = {axis % x.dim() for axis in whole(axes)}
    return x.reshape([extent for axis, extent in enumerate(x.shape) if axis not in gone])


def unsqueeze(x, axes):
    axes = whole(axes)
    for axis in sorted(axis % (x.dim() + len(axes)) for axis in axes):
        x = x.unsqueeze(axis)
    return x


def gather(x, indices, axis=0):
    axis %= x.dim()
    if axis == 0 and x.dim() == 2 and isinstance(x, nn.Parameter) and indices.dim() > 0:
        return F.embedding(indices, x)
    if indices.dim() == 0:
        return x.select(axis, int(indices))
    found = x.index_select(axis, indices.reshape(-1) % x.shape[axis])
    return found.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])


def slice_(x, starts, ends, axes=None, steps=None):
    starts, ends = whole(starts), whole(ends)
    axes = list(range(len(starts))) if axes is None else whole(axes)
    steps = [1] * len(starts) if steps is None else whole(steps)
    parts = [slice(None)] * x.dim()
    for begin, end, axis, stride in zip(starts, ends, axes, steps):
        if stride == -1 and begin in (-1, x.shape[axis] - 1) and end < -x.shape[axis]:  # as amounts of padding are turned around
            x = x.flip(axis)
            continue
        if stride < 1:
            raise Unsupported("a slice that runs backwards")
        parts[axis % x.dim()] = slice(begin, end, stride)
    return x[tuple(parts)]


def split(x, split=None, axis=0, num_outputs=None, outputs=1):
    return x.split(-(-x.shape[axis] // (num_outputs or outputs)) if split is None else whole(split), axis)


def split_to_sequence(x, split=None, axis=0, keepdims=1):
    parts = x.split(1 if split is None else whole(split) if split.dim() else int(split), axis)
    return (list(parts) if split is not None or keepdims else [part.squeeze(axis) for part in parts],)


def cast(x, to):
    kinds = {1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool,
             11: torch.float64}  # TensorProto.DataType
    if to not in kinds:
        raise Unsupported("a cast to a type that attune has not")
    return x.to(kinds[to])


def divide(a, b):
    return torch.div(a, b, rounding_mode=None if a.is_floating_point() or b.is_floating_point() else "trunc")


def reduced(call):
    """ReduceMean and its siblings."""
    def run(x, axes=None, keepdims=1, noop_with_empty_axes=0):
        axes = whole(axes)
        if not axes and noop_with_empty_axes:
            return x
        return call(x, list(axes or range(x.dim())), bool(keepdims))
    return run


def gemm(a, b, c=None, alpha=1.0, beta=1.0, transA=0, transB=0):
    a, b = a.t() if transA else a, b.t() if transB else b
    return torch.matmul(a, b) * alpha if c is None else torch.addmm(c, a, b, beta=beta, alpha=alpha)


def windows(what, x, strides=None, pads=None, dilations=None, auto_pad="NOTSET", **_):
    """Strides, padding and dilations of windows over a sequence or an image."""
    rank = x.dim() - 2
    pads = list(pads or [0] * 2 * rank)
    if auto_pad not in ("NOTSET", "VALID") or pads[:rank] != pads[rank:]:
        raise Unsupported(f"{what} with padding on one side")
    if rank not in (1, 2):
        raise Unsupported(f"{what} over more than two dimensions")
    return list(strides or [1] * rank), pads[:rank], list(dilations or [1] * rank)


def convolution(x, weight, bias=None, group=1, **places):
    return (F.conv1d if x.dim() == 3 else F.conv2d)(x, weight, bias, *windows("a convolution", x, **places), groups=group)


def average_pool(x, kernel_shape, ceil_mode=0, count_include_pad=0, **places):
    strides, pads, dilations = windows("pooling", x, **places)
    if set(dilations) != {1}:
        raise Unsupported("pooling with dilation")
    return (F.avg_pool1d if x.dim() == 3 else F.avg_pool2d)(x, list(kernel_shape), strides, pads, bool(ceil_mode), bool(count_include_pad))


def max_pool(x, kernel_shape, ceil_mode=0, outputs=1, **places):
    if outputs > 1:
        raise Unsupported("maximum pooling with indices")
    return (F.max_pool1d if x.dim() == 3 else F.max_pool2d)(x, list(kernel_shape), *windows("pooling", x, **places), bool(ceil_mode))


def padded(x, pads, value=None, mode="constant"):
    if mode != "constant":
        raise Unsupported("padding that is not constant")
    pads = whole(pads)
    if not any(pads):
        return x
    pairs = list(zip(pads[: len(pads) // 2], pads[len(pads) // 2:]))
    while pairs and pairs[0] == (0, 0):  # the batch and the channels
        pairs = pairs[1:]
    return F.pad(x, [amount for pair in pairs[::-1] for amount in pair], value=0.0 if value is None else float(value))


def batch_norm(x, weight, bias, mean, variance, epsilon=1e-5, training_mode=0):
    if training_mode:
        raise Unsupported("a BatchNorm in training; call model.eval() before torch.onnx.export")
    return F.batch_norm(x, mean, variance, weight, bias, False, 0.0, epsilon)


def nearest(value):
    """The decimal number that a float of 32 bits was written as."""
    return float(f"{value:.6g}")


def dropout(x, ratio=None, training_mode=None):
    if training_mode is not None and bool(training_mode):
        raise Unsupported("dropout of a model in training; call model.eval() before torch.onnx.export")
    return x


def clipped(x, min=None, max=None):
    if max is None:
        return x if min is None else x.clamp_min(float(min))
    return x.clamp(None if min is None else float(min), float(max))


def softmax(x, axis=None, opset=13, function=F.softmax):
    if opset < 13:  # over all dimensions from the axis on
        return function(x.flatten((1 if axis is None else axis) % x.dim()), -1).view(x.shape)
    return function(x, dim=-1 if axis is None else axis)


def prelu(x, slope):
    return F.prelu(x, slope.flatten()) if slope.numel() in (1, slope.shape[0]) else torch.where(x > 0, x, slope * x)


def hard_sigmoid(x, alpha=0.2, beta=0.5):
    slope, shift = nearest(alpha), nearest(beta)
    return F.hardsigmoid(x) if (slope, shift) == (nearest(1 / 6), 0.5) else (slope * x + shift).clamp(0, 1)


# Those that are functions of torch.
FUNCTIONS = dict(
    Add="add", Sub="sub", Mul="mul", MatMul="matmul", Pow="pow", Max="maximum", Min="minimum", Sqrt="sqrt", Reciprocal="reciprocal", Neg="neg", Abs="abs", Exp="exp",
    Log="log", Floor="floor", Sin="sin", Cos="cos", Erf="erf", Tanh="tanh", Sigmoid="sigmoid", Relu="relu", Where="where", Equal="eq", Less="lt", Greater="gt",
    LessOrEqual="le", GreaterOrEqual="ge", Not="logical_not", And="logical_and", Or="logical_or", IsNaN="isnan")
OPERATIONS = {name: lambda *inputs, own=getattr(torch, own): own(*inputs) for name, own in FUNCTIONS.items()} | {
    "Constant": constant, "Identity": lambda x: x, "Reshape": reshape, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Gather": gather, "Slice": slice_,
    "Split": split, "SplitToSequence": split_to_sequence, "SequenceAt": lambda parts, at: parts[int(at)],
    "ConcatFromSequence": lambda parts, axis, new_axis=0: (torch.stack if new_axis else torch.cat)(parts, axis),
    "Concat": lambda *parts, axis: torch.cat(parts, axis),
    "Flatten": lambda x, axis=1: x.reshape(math.prod(x.shape[:axis]), -1),
    "Expand": lambda x, shape: x.expand(torch.broadcast_shapes(tuple(x.shape), tuple(whole(shape)))),
    "Transpose": lambda x, perm=None: x.permute(list(range(x.dim()))[::-1] if perm is None else perm),
    "Tile": lambda x, repeats: x.repeat(whole(repeats)),
    "Trilu": lambda x, k=None, upper=1: (torch.triu if upper else torch.tril)(x, 0 if k is None else int(k)),
    "Cast": cast, "CastLike": lambda x, like: x.to(like.dtype), "Dropout": dropout,
    "Shape": lambda x, start=0, end=None: torch.tensor(list(x.shape)[start:end], dtype=torch.int64),
    "Size": lambda x: torch.tensor(x.numel()), "NonZero": lambda x: x.nonzero().t(),
    "ConstantOfShape": lambda shape, value=torch.zeros(1): torch.full(whole(shape), value.item(), dtype=value.dtype),
    "Range": lambda begin, end, stride: torch.arange(begin.item(), end.item(), stride.item(), dtype=begin.dtype),
    "Div": divide, "Mod": lambda a, b, fmod=0: (torch.fmod if fmod else torch.remainder)(a, b), "Clip": clipped,
    "Gelu": lambda x, approximate="none": F.gelu(x, approximate=approximate),
    "Elu": lambda x, alpha=1.0: F.elu(x, nearest(alpha)), "LeakyRelu": lambda x, alpha=0.01: F.leaky_relu(x, nearest(alpha)),
    "PRelu": prelu, "HardSwish": F.hardswish, "HardSigmoid": hard_sigmoid, "Softplus": lambda x: F.softplus(x), "Mish": F.mish,
    "Softmax": softmax, "LogSoftmax": lambda x, axis=None, opset=13: softmax(x, axis, opset, F.log_softmax),
    "LayerNormalization": lambda x, weight, bias=None, axis=-1, epsilon=1e-5: F.layer_norm(x, x.shape[axis % x.dim():], weight, bias, nearest(epsilon)),
    "InstanceNormalization": lambda x, weight, bias, epsilon=1e-5: F.group_norm(x, x.shape[1], weight, bias, nearest(epsilon)),  # a group is a channel
    "BatchNormalization": batch_norm, "Gemm": gemm, "Einsum": lambda *parts, equation: torch.einsum(equation, *parts),
    "Conv": convolution, "AveragePool": average_pool, "MaxPool": max_pool, "Pad": padded,
    "GlobalAveragePool": lambda x: {3: F.adaptive_avg_pool1d, 4: F.adaptive_avg_pool2d}[x.dim()](x, 1),
    "GlobalMaxPool": lambda x: x.amax(tuple(range(2, x.dim())), True),
    "ReduceMean": reduced(torch.mean), "ReduceSum": reduced(torch.sum), "ReduceMax": reduced(torch.amax),
    "ReduceL2": reduced(lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep)),
}


def computed(step, inputs):
    """A node's results: its function of the inputs and of those attributes that the function has."""
    function, given = OPERATIONS[step.operation], {**step.attributes, "opset": step.opset, "outputs": len(step.outputs)}
    parameters = inspect.signature(function).parameters
    if any(item.kind == item.VAR_KEYWORD for item in parameters.values()):
        parameters = parameters | step.attributes
    return function(*inputs, **{name: value for name, value in given.items() if name in parameters and name != "own"})
