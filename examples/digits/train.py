#!/usr/bin/env python3
"""The model of model.hpp in PyTorch: trains it on the same images and saves it for the board, or checks a board's parameters.

usage: train.py [--d-model 16|32] [--steps N] [--seed N] [--out FILE.safetensors]
       train.py --check FILE.safetensors

Saves the state_dict under its own names, and `logits`: the model's output for the first 64 test images, which examples/run compares.
--check loads a file with load_state_dict(strict=True) and prints its accuracy.
Needs torch (Debian: python3-torch) and nothing else.
"""
import argparse
import json
import math
import pathlib
import re
import struct
import sys

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    sys.exit(f"train.py: {sys.executable} has no torch. On Debian and Ubuntu: apt-get install python3-torch, then "
             "/usr/bin/python3 examples/digits/train.py; elsewhere: pip install torch")

IMAGES = pathlib.Path(__file__).resolve().parent / "packed_images.hpp"
BATCH = 32
COMPARED = 64  # test images whose logits a file carries


class Digits(nn.Module):
    """An image is a sequence of eight rows, a row a token of eight pixels."""

    def __init__(self, d_model):
        super().__init__()
        small = d_model <= 16
        self.embed = nn.Linear(8, d_model)
        self.pos = nn.Parameter(0.1 * torch.randn(8, d_model))
        layer = nn.TransformerEncoderLayer(d_model, 2 if small else 4, 2 * d_model, dropout=0.0, activation="gelu",
                                           norm_first=True, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1 if small else 2)
        for parameter in self.encoder.parameters():  # its layers begin as copies of one
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
        self.head = nn.Linear(d_model, 10)

    def forward(self, images):
        return self.head(self.encoder(self.embed(images) + self.pos).mean(dim=1))


# .safetensors: 8 bytes of length, a header of JSON, the numbers.

def save(path, tensors):
    """Sorted and padded as the reference does it; all tensors are float32."""
    header, body = {"__metadata__": {"format": "pt"}}, b""
    for name, tensor in sorted(tensors.items()):
        data = struct.pack(f"<{tensor.numel()}f", *tensor.flatten().tolist())
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


def load(path):
    """What save() saved, by name."""
    data = pathlib.Path(path).read_bytes()
    end = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:end]).items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32", f"{name} is {entry['dtype']}"
            first, last = (end + offset for offset in entry["data_offsets"])
            numbers = struct.unpack(f"<{(last - first) // 4}f", data[first:last])
            tensors[name] = torch.tensor(numbers).reshape(entry["shape"])
    return tensors


# The images, of packed_images.hpp: 320 bits each, five a pixel.

def part(name):
    """(images [n, 8, 8] from 0 to 1, classes [n]) of the part Train or Test."""
    text = IMAGES.read_text(encoding="utf-8")
    packed = re.search(rf"kPacked{name}\[.*?\] = \{{(.*?)\n\}};", text, re.DOTALL).group(1)
    labels = re.search(rf"k{name}Labels\[\] =(.*?);", text, re.DOTALL).group(1)
    images = []
    for words in re.findall(r"\{\{(.*?)\}\}", packed):
        bits = sum(int(word, 16) << 32 * i for i, word in enumerate(words.split(", ")))
        images.append([bits >> 5 * pixel & 31 for pixel in range(64)])
    classes = [int(digit) for digit in re.findall(r"\d", labels)]
    return torch.tensor(images).reshape(-1, 8, 8) / 16, torch.tensor(classes)


def moved(images, small):
    """The same digits by slightly different hands, as vary() of images.hpp moves them."""
    n = len(images)
    if small:  # half of them by a whole pixel
        ways = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]] + [[0.0, 0.0]] * 4)
        down, right = ways[torch.randint(8, (n,))].unbind(1)
        slant = torch.zeros(n)
    else:
        down, right, slant = torch.rand(n) - 0.5, torch.rand(n) - 0.5, 0.3 * torch.rand(n) - 0.15
    one, zero = torch.ones(n), torch.zeros(n)
    ways = torch.stack([one, -slant, -right / 4, zero, one, -down / 4], 1).reshape(n, 2, 3)
    grid = functional.affine_grid(ways, (n, 1, 8, 8), align_corners=False)
    return functional.grid_sample(images.unsqueeze(1), grid, align_corners=False).squeeze(1)


def train(d_model, steps, seed):
    torch.manual_seed(seed)
    small = d_model <= 16
    model = Digits(d_model)
    images, classes = part("Train")
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01 if small else 0.1)
    warmup, order = max(1, steps // 20), torch.empty(0, dtype=torch.long)
    for step in range(steps):
        rate = (step + 1) / warmup if step < warmup else 0.5 + 0.5 * math.cos(math.pi * (step - warmup) / (steps - warmup))
        optimizer.param_groups[0]["lr"] = (0.01 if small else 0.008) * rate
        if len(order) < BATCH:
            order = torch.cat([order, torch.randperm(len(images))])
        batch, order = order[:BATCH], order[BATCH:]
        loss = functional.cross_entropy(model(moved(images[batch], small)), classes[batch], label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 200 == 0:
            print(f"  step {step + 1} of {steps}  loss {loss.item():.4f}", flush=True)
    return model


@torch.no_grad()
def logits(model, images):
    model.eval()
    return model(images)


def test(model):
    images, classes = part("Test")
    correct = int((logits(model, images).argmax(dim=1) == classes).sum())
    print(f"recognized {correct} of {len(images)} images it has not seen, {100 * correct / len(images):.1f} %")


def check(path):
    state = load(path)
    expected = state.pop("logits", None)  # of what PyTorch trained, not of a state_dict
    model = Digits(state["embed.weight"].shape[0])
    model.load_state_dict(state, strict=True)
    print(f"{path}: load_state_dict(strict=True) takes all {len(state)} tensors")
    test(model)
    if expected is not None:
        difference = (logits(model, part("Test")[0][:len(expected)]) - expected).abs().max()
        print(f"logits of {len(expected)} images differ from the file's by at most {difference:.2g}")


def main():
    arguments = argparse.ArgumentParser(description="Trains the digits model in PyTorch and saves it for the board.")
    arguments.add_argument("--d-model", type=int, choices=(16, 32), default=16)
    arguments.add_argument("--steps", type=int, default=1800, help="steps of 32 images; default 1800")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--out", default="digits.safetensors", metavar="FILE", help="default digits.safetensors")
    arguments.add_argument("--check", metavar="FILE", help="load this file and print its accuracy, without training")
    given = arguments.parse_args()
    torch.set_num_threads(1)  # of products this small: faster, and the same numbers everywhere
    if given.check:
        return check(given.check)
    model = train(given.d_model, given.steps, given.seed)
    test(model)
    save(given.out, {**model.state_dict(), "logits": logits(model, part("Test")[0][:COMPARED])})
    print(f"saved {given.out}: {sum(p.numel() for p in model.parameters())} parameters, logits of {COMPARED} images")
    return None


if __name__ == "__main__":
    main()
