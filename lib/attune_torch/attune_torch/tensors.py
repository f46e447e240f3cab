""".safetensors files, as far as they are needed here: https://huggingface.co/docs/safetensors."""
import ctypes
import json
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
    """Tensors by name."""
    return read_all(path)[0]


def read_all(path):
    """Tensors by name, and the metadata."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 8 or struct.unpack("<Q", data[:8])[0] > len(data) - 8:
        raise ValueError(f"{path} is no .safetensors file")
    length = struct.unpack("<Q", data[:8])[0]
    tensors, metadata = {}, {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            metadata = entry
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        if end > len(data):
            raise ValueError(f"{path} is cut short: {name}")
        raw = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[entry["dtype"]]) if end > begin else \
            torch.empty(0, dtype=TYPES[entry["dtype"]])
        tensors[name] = raw.reshape(entry["shape"])
    return tensors, metadata
