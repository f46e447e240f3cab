"""A model that torch.onnx exported, as a module: its nodes become torch functions, its tensors have PyTorch's names again."""
import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from .errors import Unsupported
from .capture import NO_RECURRENT_LAYERS, NodeByNode

OPSETS = range(7, 21)
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
        self.floats = (onnx.TensorProto.FLOAT,)
        self.integers = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
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
        self.refuse_twice(step, self.constants)
        self.constants[step.outputs[0]] = value

    @staticmethod
    def refuse_twice(step, known):
        twice = [name for name in step.outputs if name and name in known]
        if twice:
            raise ValueError(f"the file is damaged: {step.describe()} computes {twice[0]}, which is there already")

    def check(self):
        """Every value is computed once, and before it is read."""
        known = {"", *self.constants, *(item.name for item in self.inputs)}
        self.readers = {}
        for index, step in enumerate(self.steps):
            for name in step.inputs:
                if name not in known:
                    raise ValueError(f"the file is damaged: {step.describe()} reads {name}, which nothing computes")
                self.readers.setdefault(name, []).append(index)
            self.refuse_twice(step, known)
            known.update(step.outputs)
        if self.output not in known:
            raise ValueError(f"the file is damaged: nothing computes its output {self.output}")
        read = [item.name for item in self.inputs if item.name in self.readers]
        if len(read) != 1:
            raise Unsupported(f"a model with {len(read)} inputs ({', '.join(read) or 'none'}); attune's has one, and padding is "
                              "given at run time, as a SequenceLength")
        self.input = next(item for item in self.inputs if item.name in self.readers)


class Names:
    """PyTorch's names of tensors, from names of biases and of nodes."""

    def __init__(self, graph):
        self.known, self.taken = {}, set()
        for step in graph.steps:
            for name in step.inputs:
                if name in graph.initializers and self.of_pytorch(name) and step.scope:
                    self.learn(step.scope, name.rpartition(".")[0])

    @staticmethod
    def of_pytorch(name):
        return not name.startswith(FOLDED)

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
        if not (transposed and name in graph.initializers and Names.of_pytorch(name) and name.endswith("weight")):  # else the module's own is [inputs, outputs]
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
            path, own = names.path(graph.steps[linear.index].scope), names.of_pytorch(linear.matrix) and linear.matrix.endswith("weight")
            tied = linear.matrix in looked_up and path  # a head that is an embedding, too, has its own name beside it
            stem = f"{path}." if path else f"linear_{linear.matrix.rpartition('_')[2]}".replace(":", "_").replace(".", "_").replace("/", "_") + "."
            if linear.bias in graph.initializers and names.of_pytorch(linear.bias) and linear.bias.endswith("bias"):
                stem = linear.bias[: -len("bias")]
            elif linear.bias is not None:
                renamed.add(linear.bias)
            keeps = not linear.transposed and own and not tied
            weight = linear.matrix if keeps else f"{stem}weight"
            bias = weight[: -len("weight")] + "bias" if linear.bias in renamed else f"{stem}bias"
            wanted.append((weight, bias))
        # The order of the file, which is that of the module.
        for name, value in graph.constants.items():
            if name in folded or name in renamed or name not in graph.initializers or not names.of_pytorch(name) or \
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
                if name in graph.initializers and not names.of_pytorch(name) and name not in self.tensors:
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
                if name not in self.graph.initializers or self.names.of_pytorch(name) or name in self.tensors or \
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
        if kind.elem_type not in self.graph.floats + self.graph.integers or len(shape) < 2:
            raise Unsupported(f"the input {item.name} of shape {shape} is no batch of floats or of ids")
        return shape, kind.elem_type in self.graph.integers

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
        known = OPERATIONS.get(step.operation) if not step.domain else None
        shapes = ", ".join(str(list(value.shape)) for value in inputs if isinstance(value, torch.Tensor))
        if known is None and step.operation in ("GRU", "LSTM", "RNN"):
            raise Unsupported(f"{NO_RECURRENT_LAYERS}{step.operation} of {shapes}\n  {self.position[1]}")
        if known is None:
            raise Unsupported(f"attune has no layer for this: {step.operation} of {shapes or 'constants'}\n  {self.position[1]}")
        try:
            return known(step, *inputs)
        except Unsupported as problem:
            raise Unsupported(f"{problem}: {step.operation} of {shapes}\n  {self.position[1]}") from None
        except (RuntimeError, IndexError, TypeError, ValueError) as problem:
            raise Unsupported(f"{step.operation} of {shapes} cannot be computed: {problem}\n  {self.position[1]}") from None


# ---- Operations: https://github.com/onnx/onnx/blob/main/docs/Operators.md ----

def whole(value):
    """A constant's integers; of an attribute, itself."""
    return value.reshape(-1).tolist() if isinstance(value, torch.Tensor) else value


def given(step, value, name):
    """An input, or the attribute that older opsets have instead; None if neither is there."""
    return value if value is not None else step.get(name, None)


def constant(step):
    for name in ("value_float", "value_int", "value_floats", "value_ints"):
        if name in step.attributes:
            value = step.attributes[name]
            return torch.tensor(value, dtype=torch.float32 if "float" in name else torch.int64)
    raise Unsupported("a constant that is neither tensor nor number")


def reshape(step, x, shape):
    wanted = whole(shape)
    if not step.get("allowzero", 0):
        wanted = [x.shape[axis] if extent == 0 else extent for axis, extent in enumerate(wanted)]
    return x.reshape(wanted)


def squeeze(step, x, axes=None):
    axes = given(step, axes, "axes")
    if axes is None:
        return x.squeeze()
    gone = {axis % x.dim() for axis in whole(axes)}
    return x.reshape([extent for axis, extent in enumerate(x.shape) if axis not in gone])


def unsqueeze(step, x, axes=None):
    axes = whole(given(step, axes, "axes"))
    for axis in sorted(axis % (x.dim() + len(axes)) for axis in axes):
        x = x.unsqueeze(axis)
    return x


def flatten(step, x):
    axis = step.get("axis", 1)
    return x.reshape(math.prod(x.shape[:axis]), -1)


def gather(step, x, indices):
    axis = step.get("axis", 0) % x.dim()
    if axis == 0 and x.dim() == 2 and isinstance(x, nn.Parameter) and indices.dim() > 0:
        return F.embedding(indices, x)
    if indices.dim() == 0:
        return x.select(axis, int(indices))
    found = x.index_select(axis, indices.reshape(-1) % x.shape[axis])
    return found.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])


def slice_(step, x, starts=None, ends=None, axes=None, steps=None):
    starts, ends, axes = whole(given(step, starts, "starts")), whole(given(step, ends, "ends")), given(step, axes, "axes")
    axes = whole(axes) if axes is not None else list(range(len(starts)))
    steps = whole(steps) if steps is not None else [1] * len(starts)
    parts = [slice(None)] * x.dim()
    for begin, end, axis, stride in zip(starts, ends, axes, steps):
        if stride == -1 and begin in (-1, x.shape[axis] - 1) and end < -x.shape[axis]:  # as amounts of padding are turned around
            x = x.flip(axis)
            continue
        if stride < 1:
            raise Unsupported("a slice that runs backwards")
        parts[axis % x.dim()] = slice(begin, end, stride)
    return x[tuple(parts)]


def split(step, x, sizes=None):
    axis, sizes = step.get("axis", 0), given(step, sizes, "split")
    if sizes is not None:
        return x.split(whole(sizes), axis)
    return x.split(-(-x.shape[axis] // step.get("num_outputs", len(step.outputs))), axis)


def split_to_sequence(step, x, sizes=None):
    axis, keep = step.get("axis", 0), sizes is not None or step.get("keepdims", 1)
    parts = x.split(1 if sizes is None else whole(sizes) if sizes.dim() else int(sizes), axis)
    return (list(parts) if keep else [part.squeeze(axis) for part in parts],)


def concatenate_sequence(step, parts):
    return torch.stack(parts, step.get("axis")) if step.get("new_axis", 0) else torch.cat(parts, step.get("axis"))


def expand(step, x, shape):
    return x.expand(torch.broadcast_shapes(tuple(x.shape), tuple(whole(shape))))


def cast(step, x):
    kinds = {1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool,
             11: torch.float64}  # TensorProto.DataType
    if step.get("to") not in kinds:
        raise Unsupported("a cast to a type that attune has not")
    return x.to(kinds[step.get("to")])


def divide(step, a, b):
    if not a.is_floating_point() and not b.is_floating_point():
        return torch.div(a, b, rounding_mode="trunc")
    return a / b


def reduced(call):
    """ReduceMean and its siblings: axes are an attribute, or an input from opset 18 on."""
    def run(step, x, axes=None):
        axes = whole(axes) if axes is not None else step.get("axes")
        if not axes:
            if step.get("noop_with_empty_axes", 0):
                return x
            axes = list(range(x.dim()))
        return call(x, list(axes), bool(step.get("keepdims", 1)))
    return run


def maximum_of(x, axes, keep):
    return x.amax(axes[0] if len(axes) == 1 else axes, keep)


def gemm(step, a, b, c=None):
    a = a.t() if step.get("transA", 0) else a
    b = b.t() if step.get("transB", 0) else b
    if c is None:
        return torch.matmul(a, b) * step.get("alpha", 1.0)
    return torch.addmm(c, a, b, beta=step.get("beta", 1.0), alpha=step.get("alpha", 1.0))


def windows(step, x, what):
    """Strides, padding and dilations of windows over a sequence or an image."""
    rank, ones = x.dim() - 2, [1] * (x.dim() - 2)
    pads = list(step.get("pads", [0] * 2 * rank))
    if step.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or pads[:rank] != pads[rank:]:
        raise Unsupported(f"{what} with padding on one side")
    if rank not in (1, 2):
        raise Unsupported(f"{what} over more than two dimensions")
    return list(step.get("strides", ones)), pads[:rank], list(step.get("dilations", ones))


def convolution(step, x, weight, bias=None):
    return (F.conv1d if x.dim() == 3 else F.conv2d)(x, weight, bias, *windows(step, x, "a convolution"), groups=step.get("group", 1))


def padded(step, x, pads=None, value=None):
    pads, value = given(step, pads, "pads"), given(step, value, "value")
    if step.get("mode", "constant") != "constant":
        raise Unsupported("padding that is not constant")
    pads = whole(pads)
    if not any(pads):
        return x
    pairs = list(zip(pads[: len(pads) // 2], pads[len(pads) // 2:]))
    while pairs and pairs[0] == (0, 0):  # the batch and the channels
        pairs = pairs[1:]
    return F.pad(x, [amount for pair in pairs[::-1] for amount in pair], value=float(value) if value is not None else 0.0)


def average_pool(step, x):
    strides, pads, dilations = windows(step, x, "pooling")
    if set(dilations) != {1}:
        raise Unsupported("pooling with dilation")
    return (F.avg_pool1d if x.dim() == 3 else F.avg_pool2d)(
        x, list(step.get("kernel_shape")), strides, pads, bool(step.get("ceil_mode", 0)), bool(step.get("count_include_pad", 0)))


def global_average_pool(step, x):
    return {3: F.adaptive_avg_pool1d, 4: F.adaptive_avg_pool2d}[x.dim()](x, 1)


def batch_norm(step, x, weight, bias, mean, variance):
    if step.get("training_mode", 0):
        raise Unsupported("a BatchNorm in training; call model.eval() before torch.onnx.export")
    return F.batch_norm(x, mean, variance, weight, bias, False, 0.0, step.get("epsilon", 1e-5))


def layer_norm(step, x, weight, bias=None):
    axis = step.get("axis", -1) % x.dim()
    return F.layer_norm(x, x.shape[axis:], weight, bias, nearest(step.get("epsilon", 1e-5)))


def nearest(value):
    """The decimal number that a float of 32 bits was written as."""
    return float(f"{value:.6g}")


def dropout(step, x, ratio=None, training=None):
    if training is not None and bool(training):
        raise Unsupported("dropout of a model in training; call model.eval() before torch.onnx.export")
    return x


def shape(step, x):
    return torch.tensor(list(x.shape)[step.get("start", 0):step.get("end", x.dim())], dtype=torch.int64)


def filled(step, extents):
    value = step.get("value", torch.zeros(1))
    return torch.full(whole(extents), value.item(), dtype=value.dtype)


def clipped(step, x, least=None, most=None):
    least, most = given(step, least, "min"), given(step, most, "max")
    if most is None:
        return x if least is None else x.clamp_min(float(least))
    return x.clamp(None if least is None else float(least), float(most))


def softmax(step, x, function=F.softmax):
    if step.opset < 13:  # over all dimensions from the axis on
        return function(x.flatten(step.get("axis", 1) % x.dim()), -1).view(x.shape)
    return function(x, dim=step.get("axis", -1))


def prelu(step, x, slope):
    return F.prelu(x, slope.flatten()) if slope.numel() in (1, slope.shape[0]) else torch.where(x > 0, x, slope * x)


def hard_sigmoid(step, x):
    slope, shift = nearest(step.get("alpha", 0.2)), nearest(step.get("beta", 0.5))
    return F.hardsigmoid(x) if (slope, shift) == (nearest(1 / 6), 0.5) else (slope * x + shift).clamp(0, 1)


def max_pool(step, x):
    if len(step.outputs) > 1:
        raise Unsupported("maximum pooling with indices")
    return (F.max_pool1d if x.dim() == 3 else F.max_pool2d)(x, list(step.get("kernel_shape")), *windows(step, x, "pooling"), bool(step.get("ceil_mode", 0)))


def instance_norm(step, x, weight, bias):
    """A norm of each channel: a group each."""
    return F.group_norm(x, x.shape[1], weight, bias, nearest(step.get("epsilon", 1e-5)))


def lower_or_upper(step, x, diagonal=None):
    at = 0 if diagonal is None else int(diagonal)
    return x.triu(at) if step.get("upper", 1) else x.tril(at)


# Those that are functions of torch.
FUNCTIONS = dict(
    Add="add", Sub="sub", Mul="mul", MatMul="matmul", Pow="pow", Max="maximum", Min="minimum", Sqrt="sqrt", Reciprocal="reciprocal", Neg="neg", Abs="abs", Exp="exp",
    Log="log", Floor="floor", Sin="sin", Cos="cos", Erf="erf", Tanh="tanh", Sigmoid="sigmoid", Relu="relu", Where="where", Equal="eq", Less="lt", Greater="gt",
    LessOrEqual="le", GreaterOrEqual="ge", Not="logical_not", And="logical_and", Or="logical_or", IsNaN="isnan")
OPERATIONS = {name: lambda step, *inputs, own=getattr(torch, own): own(*inputs) for name, own in FUNCTIONS.items()} | {
    "Constant": constant, "Identity": lambda step, x: x, "Reshape": reshape, "Squeeze": squeeze, "Unsqueeze": unsqueeze,
    "Flatten": flatten, "Gather": gather, "Slice": slice_, "Split": split, "Expand": expand, "Cast": cast, "Shape": shape,
    "SplitToSequence": split_to_sequence, "SequenceAt": lambda step, parts, at: parts[int(at)],
    "ConcatFromSequence": concatenate_sequence,
    "CastLike": lambda step, x, like: x.to(like.dtype), "ConstantOfShape": filled, "Dropout": dropout,
    "Transpose": lambda step, x: x.permute(step.get("perm", list(range(x.dim()))[::-1])),
    "Concat": lambda step, *parts: torch.cat(parts, dim=step.get("axis")),
    "Tile": lambda step, x, counts: x.repeat(whole(counts)),
    "Range": lambda step, begin, end, stride: torch.arange(begin.item(), end.item(), stride.item(), dtype=begin.dtype),
    "Size": lambda step, x: torch.tensor(x.numel()), "NonZero": lambda step, x: x.nonzero().t(),
    "Trilu": lower_or_upper, "Div": divide, "Clip": clipped,
    "Mod": lambda step, a, b: torch.fmod(a, b) if step.get("fmod", 0) else torch.remainder(a, b),
    "Gelu": lambda step, a: F.gelu(a, approximate=step.get("approximate", "none")),
    "Elu": lambda step, a: F.elu(a, nearest(step.get("alpha", 1.0))), "LeakyRelu": lambda step, a: F.leaky_relu(a, nearest(step.get("alpha", 0.01))),
    "PRelu": prelu, "HardSwish": lambda step, a: F.hardswish(a), "HardSigmoid": hard_sigmoid, "Softplus": lambda step, a: F.softplus(a),
    "Mish": lambda step, a: F.mish(a), "LogSoftmax": lambda step, a: softmax(step, a, F.log_softmax),
    "GlobalMaxPool": lambda step, a: a.amax(tuple(range(2, a.dim())), True),
    "Softmax": softmax, "LayerNormalization": layer_norm, "Conv": convolution, "Gemm": gemm,
    "BatchNormalization": batch_norm, "AveragePool": average_pool, "MaxPool": max_pool, "InstanceNormalization": instance_norm, "GlobalAveragePool": global_average_pool, "Pad": padded,
    "Einsum": lambda step, *parts: torch.einsum(step.get("equation"), *parts),
    "ReduceMean": reduced(lambda x, axes, keep: x.mean(axes, keep)),
    "ReduceSum": reduced(lambda x, axes, keep: x.sum(axes, keep)),
    "ReduceMax": reduced(maximum_of),
    "ReduceL2": reduced(lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep)),
}
