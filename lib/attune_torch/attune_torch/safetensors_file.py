"""The bytes of .safetensors files, without PyTorch: https://huggingface.co/docs/safetensors."""
import json
import math
import struct
from pathlib import Path

# Bytes of a number, by the format's names of types.
SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}


def beginning(tensors, metadata=None):
    """What a file has in front of the numbers, for {name: (type, shape)} in the order of the numbers."""
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name, (dtype, shape) in tensors.items():
        end = at + math.prod(shape) * SIZES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


class Twice(Exception):
    """A name that an object of the header has twice."""


def once(pairs):
    found = {}
    for name, value in pairs:
        if name in found:
            raise Twice(name)
        found[name] = value
    return found


def header_of(text):
    """The header's object, or None."""
    try:
        header = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) else None


def whole(number):
    return type(number) is int and number >= 0


def read(path):
    """{name: (type, shape, bytes)}, and the metadata. Raises ValueError of a file that is damaged. The bytes of an unknown type may be any."""
    data = Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else len(data)
    text = data[8:8 + length] if length <= len(data) - 8 else b""
    try:
        header = header_of(text)
        if header is None and header_of(text.rstrip(b"\0 ")) is not None:
            raise ValueError(f"{path}: its header is padded with NUL characters; the format pads it with spaces")
    except Twice as name:
        raise ValueError(f"{path} is damaged: {name} is in its header twice") from None
    if header is None:
        raise ValueError(f"{path} is no .safetensors file")
    found, spans, data = {}, [], memoryview(data)[8 + length:]
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise ValueError(f"{path} is damaged: its metadata")
    for name, entry in header.items():
        dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets")) if isinstance(entry, dict) else [None] * 3
        if not isinstance(dtype, str) or not isinstance(shape, list) or not isinstance(offsets, list) or not all(map(whole, shape + offsets)) or len(offsets) != 2:
            raise ValueError(f"{path} is damaged: {name}")
        begin, end = offsets
        if end > len(data):
            raise ValueError(f"{path} is cut short: {name}")
        if dtype in SIZES and end - begin != math.prod(shape) * SIZES[dtype]:
            raise ValueError(f"{path} is damaged: {name} has {end - begin} bytes, which is not its shape's size")
        spans.append((begin, end))
        found[name] = dtype, shape, data[begin:end]
    spans.sort()
    if [begin for begin, _ in spans] + [len(data)] != [0] + [end for _, end in spans]:
        raise ValueError(f"{path} is damaged: its tensors overlap, or leave bytes out")
    return found, metadata
