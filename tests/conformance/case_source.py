"""What every family is made from: a case's file, read tensor by tensor, and the C++ texts of values and masks."""

import itertools
import json
import math
import re
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
    magnitudes: dict = field(default_factory=dict)  # tensor -> what its rounding errors are relative to, if not itself


# ---- Reading a file ----

class Source:
    """The tensors of a file, asked for by name and shape."""

    def __init__(self, tensors, metadata):
        self.tensors, self.metadata = tensors, metadata

    def __contains__(self, name):
        return name in self.tensors

    def get(self, name, *shape):
        """The tensor, which must have the shape if one is given."""
        if name not in self.tensors:
            raise ValueError(f"there is no tensor {name}")
        tensor = self.tensors[name]
        if shape and tensor.shape != list(shape):
            raise ValueError(f"{name} is {tensor.shape}, expected {list(shape)}")
        return tensor

    def option(self, name, default=None):
        """A number, boolean or list of the metadata."""
        if name not in self.metadata:
            return default
        value = self.metadata[name]
        return json.loads(value) if isinstance(value, str) else value

    def scalar(self, name):
        dtype = self.get(name).dtype
        if dtype not in ("F32", "F64"):
            raise Skip(f"{name} is of type {dtype}: no such scalar")
        return "float" if dtype == "F32" else "double"


def concatenate(tensors):
    values = [value for tensor in tensors for value in tensor.values]
    return Tensor(tensors[0].dtype, [len(values)], values)


def constant(value, like):
    return Tensor(like.dtype, [], [value])


def boolean(value):
    return "true" if value else "false"


def braces(**members):
    return "{" + ", ".join(f".{name} = {value}" for name, value in members.items()) + "}"


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


def torch_masks(source, dtype, batch, heads, seq_len, kv_len):
    """What mask_options() takes, and the data of its masks. PyTorch's are true where attention is not allowed."""
    mask, mask_data = {}, {}
    if "attn_mask" in source:
        attn_mask = source.get("attn_mask")
        if attn_mask.dtype == "BOOL":
            attn_mask = hidden_where(attn_mask, True, dtype)
        if len(attn_mask.shape) == 2 and source.option("causal", 0) and is_causal(attn_mask):
            mask["causal"] = True
            mask_data["causal_offsets"] = Tensor("I32", [batch], [0] * batch)
        elif len(attn_mask.shape) == 2:
            mask["additive_heads"] = 1
            mask_data["additive"] = broadcast(attn_mask, [batch, seq_len, kv_len])
        elif attn_mask.shape == [batch * heads, seq_len, kv_len]:
            mask["additive_heads"] = heads
            mask_data["additive"] = attn_mask
        else:
            raise ValueError(f"attn_mask is {attn_mask.shape}")
    if "key_padding_mask" in source:
        padding = source.get("key_padding_mask", batch, kv_len)
        if padding.dtype != "BOOL":
            raise Skip("key_padding_mask that is added: no such mask")
        mask["padding"] = True
        mask_data["valid"] = Tensor("BOOL", padding.shape, [not hidden for hidden in padding.values])
    return mask, {name: mask_data[name] for name in ("causal_offsets", "valid", "additive") if name in mask_data}


# ---- Layouts and precisions ----

def as_rows(tensor, axis):
    """[rows, cols] with the given axis as columns."""
    axis %= len(tensor.shape)
    inner = math.prod(tensor.shape[axis + 1:])
    cols = tensor.shape[axis]
    values = [tensor.values[(outer * cols + j) * inner + i]
              for outer in range(math.prod(tensor.shape[:axis])) for i in range(inner) for j in range(cols)]
    return Tensor(tensor.dtype, [len(values) // cols, cols], values)


HALF_EPSILON = 2.0 ** -10


def onnx_epsilon(source):
    types = source.option("original_dtypes", {}).values()
    if "bfloat16" in types:
        return 2.0 ** -7
    return HALF_EPSILON if "float16" in types else None
