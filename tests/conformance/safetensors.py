"""Reads .safetensors files: a 64-bit header length, a JSON header, raw little-endian values."""
import json
import math
import struct
from dataclasses import dataclass

# dtype -> code of the struct module
_FORMATS = {"F64": "d", "F32": "f", "F16": "e", "BF16": "H", "I64": "q",
            "I32": "i", "I16": "h", "I8": "b", "U8": "B", "BOOL": "?"}


@dataclass
class Tensor:
    dtype: str
    shape: list
    values: list  # flat, row-major

    def at(self, index):
        """Row `index` of the first axis."""
        size = math.prod(self.shape[1:])
        return Tensor(self.dtype, self.shape[1:], self.values[index * size:(index + 1) * size])

    def rows(self, first, last):
        size = math.prod(self.shape[1:])
        return Tensor(self.dtype, [last - first, *self.shape[1:]], self.values[first * size:last * size])

    def transpose(self):
        rows, cols = self.shape
        return Tensor(self.dtype, [cols, rows], [self.values[i * cols + j] for j in range(cols) for i in range(rows)])


def parts(data):
    """The bytes of the header, what it says, and the bytes behind it. ValueError when it is not a safetensors file."""
    if len(data) < 8:
        raise ValueError("shorter than a header")
    length, = struct.unpack_from("<Q", data)
    if length > len(data) - 8:
        raise ValueError("the header is cut off")
    text = bytes(data[8:8 + length])
    header = json.loads(text)
    if not isinstance(header, dict):
        raise ValueError("the header is not an object")
    return text, header, memoryview(data)[8 + length:]


def parse(data):
    """The tensors and the metadata of a file's bytes."""
    _, header, body = parts(data)
    metadata = header.pop("__metadata__", {})
    return {name: _tensor(name, entry, body) for name, entry in header.items()}, metadata


def load(path):
    with open(path, "rb") as file:
        return parse(file.read())


def _tensor(name, entry, body):
    begin, end = entry["data_offsets"]
    dtype, shape = entry["dtype"], entry["shape"]
    if dtype not in _FORMATS:
        raise ValueError(f"{name} is of the unknown type {dtype}")
    count = math.prod(shape)
    layout = f"<{count}{_FORMATS[dtype]}"
    if not 0 <= begin <= end <= len(body) or end - begin != struct.calcsize(layout):
        raise ValueError(f"{name}{shape} does not fit its bytes {begin}..{end} of {len(body)}")
    values = list(struct.unpack_from(layout, body, begin))
    if dtype == "BF16":  # the upper half of a float
        values = [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in values]
    return Tensor(dtype, shape, values)
