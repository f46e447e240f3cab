#!/usr/bin/env python3
"""A small ViT in PyTorch for the images of examples/digits.

usage: vit.py train FOLDER            trains, and exports into FOLDER
       vit.py untrained FOLDER        exports into FOLDER as it is
       vit.py writers FILE [LABELS]   writes takes of six made-up writers, for python3 -m attune_torch fit --data; with LABELS, 0 or more,
                                      only so many takes of each class and writer have a label
       vit.py learned FOLDER FILE     loads a board's FILE, and counts the recognized images with white and black exchanged

examples/run exported trains and loads, with the board in between. Needs torch alone.
"""
import math
import sys
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "lib/attune_torch"), str(ROOT / "examples/digits")]

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402

import attune_torch  # noqa: E402
from attune_torch import tensors  # noqa: E402
import train as digits  # noqa: E402

WIDTH, HEADS, DEPTH, EPOCHS, BATCH = 24, 3, 2, 40, 32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def attend(self, x):
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(x).reshape(batch, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) / (WIDTH // HEADS) ** 0.5).softmax(-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(batch, tokens, WIDTH))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    """Sixteen patches of 2 × 2 pixels behind a class token."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(1, WIDTH, 2, stride=2)
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, WIDTH))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 17, WIDTH))
        self.blocks = nn.Sequential(*[Block() for _ in range(DEPTH)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 10)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


def part(name):
    images, classes = digits.part(name)
    return images[:, None], classes


def trained(seed=1):
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # the same numbers on every number of cores
    model, (images, classes) = Vit(), part("Train")
    steps = EPOCHS * (len(images) // BATCH)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    for step in range(steps):
        if step % (len(images) // BATCH) == 0:
            order = torch.randperm(len(images))
        batch, order = order[:BATCH], order[BATCH:]
        loss = functional.cross_entropy(model(digits.moved(images[batch, 0], True)[:, None]), classes[batch], label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return model.eval()


def writers(labels=None, count=6):
    """The test images, as each of some writers writes them: at a slant and in a size of their own, with a pen of their own."""
    images, classes = part("Test")
    torch.manual_seed(1)
    rows, users = [], []
    for user in range(count):
        angle, slant, width, height = (torch.rand(4) * torch.tensor([1.2, 1.2, 0.6, 0.6]) - torch.tensor([0.6, 0.6, -0.7, -0.7])).tolist()
        cos, sin = math.cos(angle), math.sin(angle)
        moves = torch.tensor([[width * cos, width * (slant - sin), 0], [height * sin, height * cos, 0]]).expand(len(images), 2, 3)
        written = functional.grid_sample(images, functional.affine_grid(moves, images.shape, align_corners=False), align_corners=False)
        rows.append(functional.unfold(written ** (0.5 + torch.rand(1)), 2, stride=2).transpose(1, 2))
        users += [user] * len(images)
    takes = {"x": torch.cat(rows), "y": classes.repeat(count).int(), "user": torch.tensor(users, dtype=torch.int32)}
    if labels is None:
        return takes
    number = (functional.one_hot(classes).cumsum(0).gather(1, classes[:, None]) - 1).flatten()  # of its class
    return {**takes, "y": torch.where(number < labels, classes, -1).repeat(count).int(), "y_test": takes["y"]}


@torch.no_grad()
def recognized(model, images, classes):
    return f"{int((model(images).argmax(1) == classes).sum())}/{len(classes)}"


def main():
    images, classes = part("Test")
    if sys.argv[1:2] == ["train"] and len(sys.argv) == 3:
        model = trained()
        print(f"result step=train framework=pytorch recognized={recognized(model, images, classes)}", flush=True)
        attune_torch.export(model, images[:8], sys.argv[2])
    elif sys.argv[1:2] == ["untrained"] and len(sys.argv) == 3:
        attune_torch.export(Vit().eval(), images[:8], sys.argv[2])
    elif sys.argv[1:2] == ["writers"] and len(sys.argv) in (3, 4):
        tensors.write(sys.argv[2], writers(*map(int, sys.argv[3:])))
    elif sys.argv[1:2] == ["learned"] and len(sys.argv) == 4:
        model = Vit().eval()
        moved = attune_torch.load(model, sys.argv[3], say=lambda line: None)
        print(f"result step=return framework=pytorch recognized={recognized(model, 1 - images, classes)} tensors={len(moved)}")
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
