#!/usr/bin/env python3
"""Writes the .safetensors files that tests make parts of programs: tests/exchange/model_files.py"""
import json
import struct
from pathlib import Path

folder = Path(__file__).resolve().parent


def numbers():
    """Odd multiples of 2⁻⁷ in (−1, 1): F16 and BF16 have them, too."""
    state = 1
    while True:
        state = state * 5 % 2**8
        yield (state - 128) / 128


def save(name, tensors, formats, metadata):
    """tensors: (name, shape, format of struct) in the order of the file; formats: what a file calls them."""
    header, body, value = {"__metadata__": metadata}, b"", numbers()
    for tensor, shape, element in tensors:
        count = 1
        for extent in shape:
            count *= extent
        values = [next(value) for _ in range(count)]
        if element == "H":  # the upper half of a float
            values = [struct.unpack("<I", struct.pack("<f", x))[0] >> 16 for x in values]
        begin = len(body)
        body += struct.pack(f"<{count}{element}", *values)
        header[tensor] = {"dtype": formats[element], "shape": shape, "data_offsets": [begin, len(body)]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    (folder / name).write_bytes(struct.pack("<Q", len(text)) + text + body)


d_model, d_ff = 4, 6
transformer = [("embed.bias", [d_model]), ("embed.weight", [d_model, 2])]
for layer in range(2):
    transformer += [(f"encoder.layers.{layer}.{tensor}", shape) for tensor, shape in [
        ("linear1.bias", [d_ff]), ("linear1.weight", [d_ff, d_model]),
        ("linear2.bias", [d_model]), ("linear2.weight", [d_model, d_ff]),
        ("norm1.bias", [d_model]), ("norm1.weight", [d_model]), ("norm2.bias", [d_model]), ("norm2.weight", [d_model]),
        ("self_attn.in_proj_bias", [3 * d_model]), ("self_attn.in_proj_weight", [3 * d_model, d_model]),
        ("self_attn.out_proj.bias", [d_model]), ("self_attn.out_proj.weight", [d_model, d_model])]]
transformer += [("head.bias", [2]), ("head.weight", [2, d_model])]
# What a build might trip over stands in the metadata.
save("transformer.safetensors", [(*tensor, "f") for tensor in transformer], {"f": "F32"},
     {"format": "pt", "note": "a;b [c ${d} $e @f@ \\ /* // ??/ é (g)"})
# The same model by OwnNames: the names of attune's sets, and the shapes that tensors have there.
own = [("0.bias", [1, d_model]), ("0.weight", [2, d_model])]
for layer in range(2):
    own += [(f"1.{layer}.{tensor}", shape) for tensor, shape in [
        ("feed_forward.linear1.bias", [1, d_ff]), ("feed_forward.linear1.weight", [d_model, d_ff]),
        ("feed_forward.linear2.bias", [1, d_model]), ("feed_forward.linear2.weight", [d_ff, d_model]),
        ("norm1.bias", [1, d_model]), ("norm1.weight", [1, d_model]), ("norm2.bias", [1, d_model]), ("norm2.weight", [1, d_model]),
        *((f"self_attention.{part}.{kind}", [1 if kind == "bias" else d_model, d_model])
          for part in ("key", "output", "query", "value") for kind in ("bias", "weight"))]]
own += [("2.bias", [1, 2]), ("2.weight", [d_model, 2])]
save("own_names.safetensors", [(*tensor, "f") for tensor in own], {"f": "F32"}, {})
save("halves.safetensors", [("bias", [3], "e"), ("weight", [3, 2], "H")], {"e": "F16", "H": "BF16"}, {"format": "pt"})
save("doubles.safetensors", [("bias", [3], "d"), ("weight", [3, 2], "d")], {"d": "F64"}, {"format": "pt"})
save("../packaging/project/weights.safetensors", [("bias", [3], "f"), ("weight", [3, 2], "f")], {"f": "F32"}, {"format": "pt"})
