"""A .safetensors file for model.hpp, with numbers of a generator: weights.py FILE"""
import json
import struct
import sys

SHAPES = {"embed.weight": [8, 3], "embed.bias": [8], "block.self_attn.in_proj_weight": [24, 8], "block.self_attn.in_proj_bias": [24],
          "block.self_attn.out_proj.weight": [8, 8], "block.self_attn.out_proj.bias": [8], "block.linear1.weight": [16, 8],
          "block.linear1.bias": [16], "block.linear2.weight": [8, 16], "block.linear2.bias": [8], "block.norm1.weight": [8],
          "block.norm1.bias": [8], "block.norm2.weight": [8], "block.norm2.bias": [8], "head.weight": [3, 8], "head.bias": [3]}
header, body, state = {}, b"", 1
for name, shape in SHAPES.items():
    count = 1
    for extent in shape:
        count *= extent
    values = []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % (1 << 31)
        values.append(state / (1 << 31) - 0.5)
    data = struct.pack(f"<{count}f", *values)
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
    body += data
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + body)
