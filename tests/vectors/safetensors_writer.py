"""Writes .safetensors files: a 64-bit header length, a JSON header, raw little-endian values."""
import json
import struct

import numpy as np

_DTYPES = {np.dtype(np.float32): "F32", np.dtype(np.float64): "F64", np.dtype(np.bool_): "BOOL",
           np.dtype(np.int64): "I64", np.dtype(np.int32): "I32",
           np.dtype(np.float16): "F16", np.dtype(np.uint16): "BF16"}  # bits: numpy has no bfloat16


def save(path, tensors, metadata):
    """Metadata values that are not strings are written as JSON."""
    text = {key: value if isinstance(value, str) else json.dumps(value) for key, value in metadata.items()}
    header = {"__metadata__": dict(sorted(text.items()))}
    body = b""
    # The widest types first, so that every tensor stays aligned.
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])):
        data = tensor.astype(tensor.dtype.newbyteorder("<")).tobytes()
        header[name] = {"dtype": _DTYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    encoded = json.dumps(header, separators=(",", ":")).encode()
    encoded += b" " * (-(len(encoded) + 8) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(encoded)) + encoded + body)
