"""ONNX files of torch.onnx, opsets 14 to 20, as modules that are recorded like any other (https://onnx.ai/onnx/operators).

Initializers are parameters under PyTorch's names. torch.onnx transposes the weights of nn.Linear and renames them; the name
comes back from the bias or from the node, and the weight is [out, in] again.
"""
import re

import torch
import torch.nn.functional as F
from torch import nn

from .errors import Unsupported

OPSETS = range(14, 21)
DTYPES = {1: torch.float32, 2: torch.uint8, 3: torch.int8, 5: torch.int16, 6: torch.int32, 7: torch.int64, 9: torch.bool,
          10: torch.float16, 11: torch.float64}


class Step:
    """A node of the graph: operator, names of its inputs and outputs, attributes."""

    def __init__(self, node, helper, to_tensor):
        self.type, self.name = node.op_type, node.name or node.output[0]
        self.inputs, self.outputs = list(node.input), list(node.output)
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        for key, value in self.attributes.items():
            if hasattr(value, "raw_data"):
                self.attributes[key] = to_tensor(value)

    def get(self, key, default=None):
        value = self.attributes.get(key, default)
        return value.decode() if isinstance(value, bytes) else value


def integers(value):
    return [int(item) for item in value.flatten().tolist()]


def axes_of(step, values, index=1):
    """Axes, which are an attribute in older opsets and an input in newer ones."""
    if len(values) > index and values[index] is not None:
        return integers(values[index])
    axes = step.get("axes")
    return list(axes) if axes is not None else None


def reshape(step, values):
    x, shape = values[0], integers(values[1])
    return x.reshape([x.shape[i] if extent == 0 else extent for i, extent in enumerate(shape)])


def slice_(step, values):
    x, starts, ends = values[0], integers(values[1]), integers(values[2])
    axes = integers(values[3]) if len(values) > 3 and values[3] is not None else list(range(len(starts)))
    steps = integers(values[4]) if len(values) > 4 else [1] * len(starts)
    places = [slice(None)] * x.dim()
    for axis, start, end, stride in zip(axes, starts, ends, steps):
        if stride < 1:
            raise Unsupported(f"a slice backwards in node {step.name}")
        places[axis % x.dim()] = slice(start, end, stride)
    return x[tuple(places)]


def gather(step, values):
    x, index = values
    axis = step.get("axis", 0) % max(1, x.dim())
    if index.numel() == 1 and int(index) < 0:
        index = torch.where(index < 0, index + x.shape[axis], index)
    if index.dim() == 0:
        return x.select(axis, int(index))
    if axis == 0 and x.dim() == 2 and x.is_floating_point():
        return F.embedding(index, x)
    if index.dim() == 1:
        return x.index_select(axis, index)
    raise Unsupported(f"Gather of {list(x.shape)} by {list(index.shape)} in node {step.name}")


def squeeze(step, values):
    x, axes = values[0], axes_of(step, values)
    for axis in sorted((axis % x.dim() for axis in axes), reverse=True) if axes is not None else range(x.dim() - 1, -1, -1):
        if axes is not None or x.shape[axis] == 1:
            x = x.squeeze(axis)
    return x


def unsqueeze(step, values):
    x, axes = values[0], axes_of(step, values)
    for axis in sorted(axis % (x.dim() + len(axes)) for axis in axes):
        x = x.unsqueeze(axis)
    return x


def split(step, values):
    x, axis = values[0], step.get("axis", 0)
    sizes = integers(values[1]) if len(values) > 1 and values[1] is not None else step.get("split")
    return x.split(list(sizes), axis) if sizes is not None else x.chunk(len(step.outputs), axis)


def reduced(function):
    def call(step, values):
        axes, keep = axes_of(step, values), bool(step.get("keepdims", 1))
        axes = axes if axes is not None else list(range(values[0].dim()))
        if function is torch.mean:
            return values[0].mean(axes if len(axes) > 1 else axes[0], keepdim=keep)
        return function(values[0], axes if len(axes) > 1 else axes[0], keepdim=keep)
    return call


def gemm(step, values):
    x, weight = values[:2]
    if step.get("alpha", 1.0) != 1.0 or step.get("beta", 1.0) != 1.0 or step.get("transA", 0):
        raise Unsupported(f"Gemm with alpha, beta or transA in node {step.name}")
    weight = weight if step.get("transB", 0) else weight.t()
    return F.linear(x, weight, values[2] if len(values) > 2 else None)


def convolution(step, values):
    x, weight = values[:2]
    dims = weight.dim() - 2
    pads = list(step.get("pads", [0] * 2 * dims))
    if pads[:dims] != pads[dims:] or step.get("auto_pad", "NOTSET") != "NOTSET":
        raise Unsupported(f"a convolution with different padding at both ends in node {step.name}")
    bias = values[2] if len(values) > 2 else None
    call = {1: F.conv1d, 2: F.conv2d}.get(dims)
    if call is None:
        raise Unsupported(f"a convolution over {dims} dimensions in node {step.name}")
    return call(x, weight, bias, list(step.get("strides", [1] * dims)), pads[:dims], list(step.get("dilations", [1] * dims)),
                step.get("group", 1))


def expand(step, values):
    x, shape = values[0], integers(values[1])
    return x.expand(torch.broadcast_shapes(tuple(x.shape), tuple(shape)))


def layer_norm(step, values):
    x = values[0]
    axis = step.get("axis", -1) % x.dim()
    return F.layer_norm(x, tuple(x.shape[axis:]), values[1], values[2] if len(values) > 2 else None, step.get("epsilon", 1e-5))


def constant(step, values):
    for key in ("value", "value_float", "value_int", "value_floats", "value_ints"):
        if key in step.attributes:
            value = step.attributes[key]
            return value if isinstance(value, torch.Tensor) else torch.tensor(value)
    raise Unsupported(f"a constant without a number in node {step.name}")


def constant_of_shape(step, values):
    value = step.get("value", torch.zeros(1))
    return value.reshape(()).expand(integers(values[0])).clone()


def clip(step, values):
    low, high = ([float(v) for v in values[1:3] if v is not None] + [None, None])[:2]
    return values[0].clamp(low, high)


OPERATORS = {
    "Add": lambda s, v: v[0] + v[1], "Sub": lambda s, v: v[0] - v[1], "Mul": lambda s, v: v[0] * v[1],
    "Div": lambda s, v: v[0] / v[1] if v[0].is_floating_point() else v[0].div(v[1], rounding_mode="trunc"),
    "Pow": lambda s, v: v[0].pow(v[1]), "Sqrt": lambda s, v: v[0].sqrt(), "Erf": lambda s, v: v[0].erf(),
    "Exp": lambda s, v: v[0].exp(), "Neg": lambda s, v: -v[0], "Reciprocal": lambda s, v: v[0].reciprocal(),
    "Tanh": lambda s, v: v[0].tanh(), "Sigmoid": lambda s, v: v[0].sigmoid(), "Relu": lambda s, v: v[0].relu(),
    "Gelu": lambda s, v: F.gelu(v[0], approximate=s.get("approximate", "none")),
    "Softmax": lambda s, v: v[0].softmax(s.get("axis", -1)), "MatMul": lambda s, v: v[0] @ v[1], "Gemm": gemm,
    "Cos": lambda s, v: v[0].cos(), "Sin": lambda s, v: v[0].sin(), "Abs": lambda s, v: v[0].abs(), "Clip": clip,
    "Max": lambda s, v: torch.maximum(v[0], v[1]), "Min": lambda s, v: torch.minimum(v[0], v[1]),
    "Conv": convolution, "LayerNormalization": layer_norm, "ReduceMean": reduced(torch.mean), "ReduceMax": reduced(torch.amax),
    "ReduceSum": reduced(torch.sum), "GlobalAveragePool": lambda s, v: v[0].mean(list(range(2, v[0].dim())), keepdim=True),
    "Reshape": reshape, "Transpose": lambda s, v: v[0].permute(list(s.get("perm", range(v[0].dim())[::-1]))),
    "Flatten": lambda s, v: v[0].flatten(s.get("axis", 1)), "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Expand": expand,
    "Slice": slice_, "Split": split, "Gather": gather, "Concat": lambda s, v: torch.cat(v, s.get("axis")),
    "Identity": lambda s, v: v[0], "Dropout": lambda s, v: v[0],
    "Cast": lambda s, v: v[0].to(DTYPES[s.get("to")]) if s.get("to") in DTYPES else v[0],
    "Constant": constant, "ConstantOfShape": constant_of_shape,
    "Shape": lambda s, v: torch.tensor(list(v[0].shape)[s.get("start", 0):s.get("end")]),
    "Range": lambda s, v: torch.arange(*(item.item() for item in v)), "Where": lambda s, v: torch.where(v[0], v[1], v[2]),
    "Equal": lambda s, v: v[0] == v[1], "Less": lambda s, v: v[0] < v[1], "Greater": lambda s, v: v[0] > v[1],
    "LessOrEqual": lambda s, v: v[0] <= v[1], "GreaterOrEqual": lambda s, v: v[0] >= v[1],
    "Not": lambda s, v: ~v[0], "And": lambda s, v: v[0] & v[1], "Or": lambda s, v: v[0] | v[1],
    "Trilu": lambda s, v: (v[0].triu if s.get("upper", 1) else v[0].tril)(int(v[1]) if len(v) > 1 else 0),
    "Tile": lambda s, v: v[0].repeat(integers(v[1])),
}


class OnnxModule(nn.Module):
    """Runs the graph step by step. Its parameters have PyTorch's names."""

    def __init__(self, model, helper, to_tensor):
        super().__init__()
        graph = model.graph
        self.steps = [Step(node, helper, to_tensor) for node in graph.node]
        missing = sorted({step.type for step in self.steps} - set(OPERATORS))
        if missing:
            first = next(step for step in self.steps if step.type == missing[0])
            raise Unsupported(f"attune has no layer for {', '.join(missing)}, as in node {first.name}")
        self.values = {item.name: to_tensor(item) for item in graph.initializer}
        self.places = {}  # of a value's name: the parameter's
        self.turned = set()  # names of weights that were transposed
        self.output = graph.output[0].name
        self.input = [item for item in graph.input if item.name not in self.values][0].name
        self.name_parameters()

    def name_parameters(self):
        """Makes parameters of the initializers: weights of products [out, in] under PyTorch's names."""
        for step in self.steps:
            if step.type == "Identity" and step.inputs[0] in self.values:  # two equal ones are one in the file
                self.values[step.outputs[0]] = self.values[step.inputs[0]].clone()
        self.steps = [step for step in self.steps if not (step.type == "Identity" and step.inputs[0] in self.values)]
        self.join_biases()
        used = {name for step in self.steps for name in step.inputs}
        tables = [step.inputs[0] for step in self.steps if step.type == "Gather" and step.inputs[0] in self.values]
        for name, value in sorted(self.values.items(), key=lambda item: item[0] not in tables):
            if name not in used or not value.is_floating_point() or value.dim() == 0:
                continue
            tied = [table for table in tables if name in self.turned and torch.equal(self.values[table], value)]
            parameter = getattr(*self.places[tied[0]]) if tied else nn.Parameter(value.clone(), requires_grad=False)
            self.register(name, re.sub(r"[^\w.]+", "_", name), parameter)

    def register(self, name, path, parameter):
        *parents, leaf = path.split(".")
        module = self
        for part in parents:
            if not hasattr(module, part):
                module.add_module(part, nn.Module())
            module = getattr(module, part)
        module.register_parameter(leaf, parameter)
        self.places[name] = (module, leaf)

    def join_biases(self):
        """A product with a constant matrix, and a sum with a vector behind it, become one linear layer."""
        uses = {}
        for step in self.steps:
            for name in step.inputs:
                uses.setdefault(name, []).append(step)
        joined, gone = [], set()
        for step in self.steps:
            if id(step) in gone:
                continue
            joined.append(step)
            if step.type == "Gemm" and step.get("transB", 0) == 0 and step.inputs[1] in self.values:
                self.turn(step, step.inputs[1], self.path_of_weight(step, step.inputs[2] if len(step.inputs) > 2 else ""))
                step.attributes["transB"] = 1
            if step.type != "MatMul" or step.inputs[1] not in self.values or self.values[step.inputs[1]].dim() != 2:
                continue
            after, bias = uses.get(step.outputs[0], []), None
            if len(after) == 1 and after[0].type == "Add":
                other = [name for name in after[0].inputs if name != step.outputs[0]]
                if other and other[0] in self.values and self.values[other[0]].shape == self.values[step.inputs[1]].shape[1:]:
                    bias = other[0]
            self.turn(step, step.inputs[1], self.path_of_weight(step, bias or ""))
            step.type, step.attributes = "Gemm", {"transB": 1}
            if bias is not None:
                step.inputs = [*step.inputs, bias]
                step.outputs = after[0].outputs
                gone.add(id(after[0]))
        self.steps = joined

    def turn(self, step, name, path):
        """The weight of a step, transposed, under PyTorch's name."""
        self.values[path] = self.values[name].t().contiguous()
        self.turned.add(path)
        step.inputs = [step.inputs[0], path, *step.inputs[2:]]

    def path_of_weight(self, step, bias):
        """From the bias (layer.bias, in_proj_bias), or from the node (/blocks/blocks.0/qkv/MatMul)."""
        if re.search(r"(^|[._])bias$", bias):
            return bias[:-4] + "weight"
        weight = step.inputs[1]
        if not weight.startswith("onnx::"):
            return weight
        parts = [part for part in step.name.split("/")[:-1] if part]
        path = []
        for part in parts:  # a scope repeats its parent's name: /blocks/blocks.0/
            path = [*path[:-1], part] if path and part.startswith(path[-1] + ".") else [*path, part]
        return self.below_holders(".".join([*path, "weight"])) if path else re.sub(r"\W+", "_", weight) + ".weight"

    def below_holders(self, path):
        """With modules in front that are never called and name no node: layers.0.up.weight is model.layers.0.up.weight, if there
        is a model.layers.0.norm.weight."""
        parts = path.split(".")
        for count in range(len(parts) - 1, 0, -1):
            shared = ".".join(parts[:count]) + "."
            found = [name[:name.index("." + shared) + 1] for name in self.values if "." + shared in name and "::" not in name]
            if any(name.startswith(shared) for name in self.values):
                return path
            if found:
                return min(found, key=len) + path
        return path

    def forward(self, x):
        values = {self.input: x, "": None}
        for name, value in self.values.items():
            values[name] = getattr(*self.places[name]) if name in self.places else value
        for step in self.steps:
            try:
                answer = OPERATORS[step.type](step, [values[name] for name in step.inputs])
            except Unsupported:
                raise
            except Exception as problem:  # noqa: BLE001: shapes that the file does not allow
                shapes = [list(values[name].shape) for name in step.inputs if values.get(name) is not None]
                raise Unsupported(f"node {step.name}: {step.type} of {shapes}: {problem}") from None
            for name, value in zip(step.outputs, answer if isinstance(answer, (list, tuple)) else [answer]):
                values[name] = value
        return values[self.output]


def vocabulary_of(module, name):
    """The rows of the table that the input's ids look up."""
    names = {name}
    for step in module.steps:
        if step.type in ("Cast", "Identity") and step.inputs[0] in names:
            names.add(step.outputs[0])
        if step.type == "Gather" and step.inputs[1] in names and step.inputs[0] in module.values:
            return module.values[step.inputs[0]].shape[0]
    raise Unsupported(f"the input {name} has integers that are no ids of an embedding")


def from_onnx(path, tokens=None, seed=1):
    """A module and a drawn sample input of an ONNX file. `tokens`: in the place of an extent that the file leaves open, behind
    the batch's."""
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ModuleNotFoundError:
        raise ValueError("reading an ONNX file needs the Python package onnx (Debian: python3-onnx)") from None
    try:
        model = onnx.load(str(path))
        opset = max((item.version for item in model.opset_import if item.domain in ("", "ai.onnx")), default=0)
        if opset <= onnx.defs.onnx_opset_version():  # newer ones the installed package does not know
            onnx.checker.check_model(model)
    except FileNotFoundError:
        raise
    except Exception as problem:  # noqa: BLE001: of protobuf and of the checker
        raise ValueError(f"{path} is no ONNX file: {str(problem).splitlines()[0] if str(problem) else type(problem).__name__}") from None
    if opset not in OPSETS:
        raise Unsupported(f"{path} has opset {opset}; attune reads {OPSETS[0]} to {OPSETS[-1]}")
    module = OnnxModule(model, helper, lambda tensor: torch.from_numpy(numpy_helper.to_array(tensor).copy()))
    inputs = [item for item in model.graph.input if item.name not in {known.name for known in model.graph.initializer}]
    if len(inputs) != 1:
        raise Unsupported(f"{path} has {len(inputs)} inputs, {', '.join(item.name for item in inputs)}; a padding mask is given at "
                          "run time, as a SequenceLength")
    tensor = inputs[0].type.tensor_type
    shape = []
    for index, dim in enumerate(tensor.shape.dim):
        known = dim.dim_value if dim.HasField("dim_value") else None
        if known is None and index > 0 and tokens is None:
            raise ValueError(f"{path} leaves dimension {index} of {inputs[0].name} open; give --tokens N")
        shape.append(known if known is not None else 3 if index == 0 else tokens)
    draw = torch.Generator().manual_seed(seed)
    if tensor.elem_type in (6, 7):
        sample = torch.randint(0, vocabulary_of(module, inputs[0].name), shape, generator=draw)
    else:
        sample = torch.randn(shape, generator=draw)
    return module.eval(), sample
