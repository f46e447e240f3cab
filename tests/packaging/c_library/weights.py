"""Three .safetensors files for model.hpp, with the same numbers of a generator: weights.py FILE OWN_FILE SURE_FILE

FILE is as PyTorch writes it, OWN_FILE as attune does under OwnNames: weights are [in, out], biases [1, out]. SURE_FILE has a head
that is sure of most inputs of learning.c, and finds its classes about equally frequent.
"""
import json
import struct
import sys

SHAPES = {"embed.weight": [8, 3], "embed.bias": [8], "block.self_attn.in_proj_weight": [24, 8], "block.self_attn.in_proj_bias": [24],
          "block.self_attn.out_proj.weight": [8, 8], "block.self_attn.out_proj.bias": [8], "block.linear1.weight": [16, 8],
          "block.linear1.bias": [16], "block.linear2.weight": [8, 16], "block.linear2.bias": [8], "block.norm1.weight": [8],
          "block.norm1.bias": [8], "block.norm2.weight": [8], "block.norm2.bias": [8], "head.weight": [3, 8], "head.bias": [3]}

SURE, USUAL = 128, [2.33, -7.04, 6.02]  # a factor of the head, whose outputs are about 1/8 of it times these


def save(name, tensors):
    """tensors: name to (shape, numbers)."""
    header, body = {}, b""
    for tensor, (shape, values) in tensors.items():
        data = struct.pack(f"<{len(values)}f", *values)
        header[tensor] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(name, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


tensors, state = {}, 1
for tensor, shape in SHAPES.items():
    values = []
    for _ in range(shape[0] * (shape[1] if len(shape) > 1 else 1)):
        state = (state * 1103515245 + 12345) % (1 << 31)
        values.append(state / (1 << 31) - 0.5)
    tensors[tensor] = shape, values
save(sys.argv[1], tensors)
sure = dict(tensors)
sure["head.weight"] = [3, 8], [SURE * value for value in tensors["head.weight"][1]]
sure["head.bias"] = [3], [8 * (value - usual) for value, usual in zip(tensors["head.bias"][1], USUAL)]
save(sys.argv[3], sure)

# Layers by their places, and three projections instead of one.
PLACES = [("embed.", "0."), ("block.self_attn.out_proj.", "1.self_attention.output."), ("block.linear", "1.feed_forward.linear"),
          ("block.", "1."), ("head.", "3.")]
own = {}
for tensor, (shape, values) in tensors.items():
    parts = [(tensor, values)]
    if "in_proj" in tensor:
        third, kind = len(values) // 3, tensor.rpartition("_")[2]
        shape = [shape[0] // 3, *shape[1:]]
        parts = [(f"1.self_attention.{part}.{kind}", values[i * third:(i + 1) * third]) for i, part in enumerate(("query", "key", "value"))]
    for name, numbers in parts:
        for here, there in PLACES:
            if name.startswith(here):
                name = name.replace(here, there, 1)
        rows, cols = shape if len(shape) == 2 else (shape[0], 1)
        own[name] = [cols, rows], [numbers[i * cols + j] for j in range(cols) for i in range(rows)]
save(sys.argv[2], own)
