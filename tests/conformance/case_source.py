"""What every family is made from: a case's file, read tensor by tensor, and the C++ texts of values and masks."""

import itertools
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from safetensors import Tensor


class Skip(Exception):
    """The library cannot do this; the message says what."""


@dataclass
class Case:
    header: str     # of the C++ template
    call: str       # its instantiation
    data: dict      # members of its data struct, in their order: Tensor, list of str, dict, number or C++ text
    expected: dict  # name of a reported tensor -> Tensor
    scalar: str
    terms: int = 1  # length of the sums behind a result
    epsilon: float = None    # of the arithmetic that made the expected values, where coarser than the scalar's
    tolerance: float = None  # absolute, where the source states one
    exact_zeros: list = field(default_factory=list)  # tensors that are exactly zero wherever they are expected to be
    errors: dict = field(default_factory=dict)  # tensor -> exact value − expected one, where a wider type made them
    magnitudes: dict = field(default_factory=dict)  # tensor -> what its rounding errors are relative to, if not itself
    in_flash: bool = False    # whether the program has the file itself, as a model file that the call gets first
    check_files: Callable = None  # (bytes of the case's file, {name: bytes that the program wrote}) -> what is wrong


# ---- Reading a file ----

_REQUIRED = object()
_PYTHON_WORDS = {"True": True, "False": False, "None": None}


class Source:
    """The tensors and the metadata of a file, asked for by name; what nobody asked for is `unused`."""

    def __init__(self, tensors, metadata):
        self.tensors, self.metadata = tensors, metadata
        self._asked = set()

    def __contains__(self, name):
        return name in self.tensors

    def get(self, name, *shape):
        """The tensor, which must have the shape if one is given."""
        if name not in self.tensors:
            raise ValueError(f"there is no tensor {name}")
        self._asked.add(name)
        tensor = self.tensors[name]
        if shape and tensor.shape != list(shape):
            raise ValueError(f"{name} is {tensor.shape}, expected {list(shape)}")
        return tensor

    def first(self, *names):
        """The first of these names that a tensor has, or None."""
        return next((name for name in names if name in self.tensors), None)

    def text(self, name, default=_REQUIRED):
        """A value of the metadata as it stands there."""
        if name not in self.metadata and default is _REQUIRED:
            raise ValueError(f"the metadata has no {name}")
        self._asked.add(name)
        return self.metadata.get(name, default)

    def option(self, name, default=_REQUIRED):
        """A number, boolean or list of the metadata."""
        value = self.text(name, default)
        if name not in self.metadata or not isinstance(value, str):
            return value
        try:
            return _PYTHON_WORDS[value] if value in _PYTHON_WORDS else json.loads(value)
        except ValueError:
            raise ValueError(f"{name} is {value!r}, neither a number nor a list") from None

    def scalar(self, name):
        dtype = self.get(name).dtype
        if dtype not in ("F32", "F64"):
            raise Skip(f"{name} is of type {dtype}: no such scalar")
        return "float" if dtype == "F32" else "double"

    def unused(self):
        """What changes a result and was not asked for: masks, parameters, and all that an ONNX node has."""
        tensors = [name for name in self.tensors
                   if name.startswith(("input.", "output.", "param")) or name.endswith("mask")]
        attributes = [name for name in self.metadata if name.startswith("attr.")]
        return [name for name in tensors + attributes if name not in self._asked]


def concatenate(tensors):
    values = [value for tensor in tensors for value in tensor.values]
    return Tensor(tensors[0].dtype, [len(values)], values)


def constant(value, like):
    return Tensor(like.dtype, [], [value])


def boolean(value):
    return "true" if value else "false"


def braces(**members):
    return "{" + ", ".join(f".{name} = {value}" for name, value in members.items()) + "}"


def check_types(case):
    """Of the data: something in it, one kind of scalar, and integers that fit an int."""
    def tensors(data):
        for name, value in data.items():
            if isinstance(value, dict):
                yield from tensors(value)
            elif isinstance(value, Tensor):
                yield name, value

    scalar = {"float": "F32", "double": "F64"}[case.scalar]
    for name, tensor in tensors(case.data):
        if not tensor.values:
            raise Skip(f"{name} is {tensor.shape}: no empty tensors")
        if tensor.dtype in ("I32", "I64"):
            if odd := [value for value in tensor.values if not -2 ** 31 <= value < 2 ** 31]:
                raise ValueError(f"{name} has {odd[0]}, which is no int")
        elif tensor.dtype not in ("BOOL", scalar):
            raise ValueError(f"{name} is of type {tensor.dtype}, others of {scalar}")


# ---- Masks ----

def number(scalar, value):
    return f"{scalar}({float(value)!r})"


def labels(names):
    """Names that can stand in a report."""
    if odd := [name for name in names if not re.fullmatch(r"[\w.\-]+", name)]:
        raise ValueError(f"odd name of a tensor: {odd[0]!r}")
    if not names:
        raise ValueError("there is no parameter")
    return list(names)


def mask_options(causal=False, padding=False, additive_heads=0):
    return "conformance::MaskOptions" + braces(
        causal=boolean(causal), padding=boolean(padding), additive_heads=additive_heads)


def hidden_where(tensor, hidden, dtype):
    """An additive mask: -infinity where a boolean tensor equals `hidden`, otherwise 0."""
    return Tensor(dtype, tensor.shape, [-math.inf if value == hidden else 0.0 for value in tensor.values])


def broadcast(tensor, shape):
    """The tensor with its axes of length 1, and those in front of it, repeated."""
    source = [1] * (len(shape) - len(tensor.shape)) + tensor.shape
    if len(source) > len(shape) or any(have not in (1, want) for have, want in zip(source, shape)):
        raise ValueError(f"{tensor.shape} does not broadcast to {shape}")
    values = []
    for position in itertools.product(*map(range, shape)):
        index = 0
        for at, have in zip(position, source):
            index = index * have + (at if have > 1 else 0)
        values.append(tensor.values[index])
    return Tensor(tensor.dtype, list(shape), values)


def is_causal(tensor):
    rows, cols = tensor.shape
    return all(tensor.values[i * cols + j] == (-math.inf if j > i else 0.0) for i in range(rows) for j in range(cols))


def torch_masks(source, dtype, batch, heads, seq_len, kv_len, masks=("attn_mask",), paddings=("key_padding_mask",)):
    """What mask_options() takes, and the data of its masks. PyTorch's are true where attention is not allowed.

    `masks`, `paddings`: what the file may call them.
    """
    mask, mask_data = {}, {}
    additive = None
    if name := source.first(*masks):
        additive = source.get(name)
        additive = (hidden_where(additive, True, dtype) if additive.dtype == "BOOL"
                    else Tensor(dtype, additive.shape, additive.values))
        if additive.shape == [seq_len, kv_len]:
            if source.option("causal", True) and is_causal(additive):
                mask["causal"] = True
                mask_data["causal_offsets"] = Tensor("I32", [batch], [0] * batch)
                additive = None
            else:
                additive = broadcast(additive, [batch, 1, seq_len, kv_len])
        elif additive.shape == [batch * heads, seq_len, kv_len]:
            additive = Tensor(dtype, [batch, heads, seq_len, kv_len], additive.values)
        else:
            raise ValueError(f"{name} is {additive.shape}, expected {[seq_len, kv_len]}, or so for every head")
    if name := source.first(*paddings):
        padding = source.get(name, batch, kv_len)
        if padding.dtype == "BOOL":
            mask["padding"] = True
            mask_data["valid"] = Tensor("BOOL", padding.shape, [not hidden for hidden in padding.values])
        else:  # added, like the mask
            rows = Tensor(dtype, [batch, 1, 1, kv_len], padding.values)
            shape = additive.shape if additive else [batch, 1, seq_len, kv_len]
            sums = broadcast(rows, shape).values
            if additive:
                sums = map(sum, zip(sums, additive.values))
            additive = Tensor(dtype, shape, list(sums))
    if additive:
        mask["additive_heads"] = additive.shape[1]
        mask_data["additive"] = additive
    return mask, {name: mask_data[name] for name in ("causal_offsets", "valid", "additive") if name in mask_data}


# ---- Layouts and precisions ----

def axis_of(tensor, axis):
    """The axis counted from the front."""
    if not -len(tensor.shape) <= axis < len(tensor.shape):
        raise ValueError(f"axis {axis} of a tensor {tensor.shape}")
    return axis % len(tensor.shape)


def as_rows(tensor, axis):
    """[rows, cols] with the given axis as columns."""
    axis = axis_of(tensor, axis)
    inner = math.prod(tensor.shape[axis + 1:])
    cols = tensor.shape[axis]
    values = [tensor.values[(outer * cols + j) * inner + i]
              for outer in range(math.prod(tensor.shape[:axis])) for i in range(inner) for j in range(cols)]
    return Tensor(tensor.dtype, [len(values) // cols, cols], values)


def as_columns(tensor):
    """[batch, tokens, heads * width] of [batch, heads, tokens, width]."""
    batch, heads, tokens, width = tensor.shape
    values = [value for b in range(batch) for t in range(tokens) for h in range(heads)
              for value in tensor.values[((b * heads + h) * tokens + t) * width:][:width]]
    return Tensor(tensor.dtype, [batch, tokens, heads * width], values)


def joined(first, second, axis):
    """Two tensors, one behind the other along an axis."""
    size_of = [math.prod(tensor.shape[axis:]) for tensor in (first, second)]
    values = []
    for outer in range(math.prod(first.shape[:axis])):
        for tensor, size in zip((first, second), size_of):
            values += tensor.values[outer * size:(outer + 1) * size]
    shape = list(first.shape)
    shape[axis] += second.shape[axis]
    return Tensor(first.dtype, shape, values)


def onnx_epsilon(source):
    types = source.option("original_dtypes", {}).values()
    if "bfloat16" in types:
        return 2.0 ** -7
    return 2.0 ** -10 if "float16" in types else None


def no_dropout(source):
    """PyTorch's dropout is its generator's; in evaluation there is none."""
    training = source.option("training", 1) and source.text("mode", "train") != "eval"
    if training and source.option("dropout", 0):
        raise Skip("dropout in training: another generator's masks")
