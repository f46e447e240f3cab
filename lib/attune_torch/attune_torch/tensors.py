""".safetensors files, as far as they are needed here: https://huggingface.co/docs/safetensors."""
import ctypes
import json
import math
import struct

import torch

TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
         "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
         "BOOL": torch.bool}
NAMES = {dtype: name for name, dtype in TYPES.items()}


def conv1d_weights(module):
    """Names of weights that are [in, out], as Hugging Face's Conv1D has them. In attune's files they are [out, in], so that a
    device multiplies with them in place."""
    return {f"{path}.weight" for path, inside in module.named_modules() if type(inside).__name__ == "Conv1D"}


def write(path, tensors, metadata=None):
    """Tensors by name, the largest alignment first, as the format's own library orders them."""
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header, at = {"__metadata__": metadata} if metadata else {}, 0
    for name in order:
        size = tensors[name].numel() * tensors[name].element_size()
        header[name] = {"dtype": NAMES[tensors[name].dtype], "shape": list(tensors[name].shape),
                        "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            tensor = tensors[name].detach().cpu().contiguous()
            file.write(ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()))


def read(path):
    """Tensors by name, without those of types that PyTorch does not have."""
    return read_all(path, unreadable=[])[0]


def whole(number):
    return type(number) is int and number >= 0


def read_all(path, unreadable=None):
    """Tensors by name, and the metadata. Raises ValueError of a file that is damaged. Names of tensors of unknown types are appended
    to `unreadable`; without it they raise ValueError."""
    with open(path, "rb") as file:
        data = file.read()
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
    tensors, spans, data = {}, [], data[8 + length:]
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise ValueError(f"{path} is damaged: its metadata")
    for name, entry in header.items():
        dtype, shape, offsets = (entry.get(key) for key in ("dtype", "shape", "data_offsets")) if isinstance(entry, dict) else [None] * 3
        if not isinstance(shape, list) or not isinstance(offsets, list) or not all(map(whole, shape + offsets)) or len(offsets) != 2:
            raise ValueError(f"{path} is damaged: {name}")
        begin, end = offsets
        if end > len(data):
            raise ValueError(f"{path} is cut short: {name}")
        if not isinstance(dtype, str) or dtype not in TYPES:
            if unreadable is None or not isinstance(dtype, str):
                raise ValueError(f"{path}: {name} has numbers of {dtype}, which cannot be read")
            unreadable.append(name)
            spans.append((begin, end))
            continue
        if end - begin != math.prod(shape) * torch.empty(0, dtype=TYPES[dtype]).element_size():
            raise ValueError(f"{path} is damaged: {name} has {end - begin} bytes, which is not its shape's size")
        spans.append((begin, end))
        raw = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[dtype]) if end > begin else torch.empty(0, dtype=TYPES[dtype])
        tensors[name] = raw.reshape(shape)
    spans.sort()
    if [begin for begin, _ in spans] + [len(data)] != [0] + [end for _, end in spans]:
        raise ValueError(f"{path} is damaged: its tensors overlap, or leave bytes out")
    return tensors, metadata


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
