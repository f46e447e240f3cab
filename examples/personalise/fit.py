#!/usr/bin/env python3
"""Searches for a way to train the classifier of spoken digits on one new speaker, with python3 -m attune_torch fit.

usage: fit.py PREFIX FOLDER [STEPS]

PREFIX.safetensors and PREFIX_recordings.safetensors are what base.cpp wrote. The search works in FOLDER/spoken, with a base in 8 bits and the
64 KB of the other methods. STEPS: at most so many steps of ten takes, 100 by default. examples/run personalise --method fit calls it. Needs
torch alone."""
import pathlib
import sys
from array import array

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "lib/attune_torch"))

import torch  # noqa: E402
from torch import nn  # noqa: E402

import attune_torch  # noqa: E402
from attune_torch import fit, fit_data, tensors  # noqa: E402
from attune_torch.errors import CheckFailed  # noqa: E402

TOKENS, BANDS, WIDTH, HEADS, BLOCKS, DIGITS = 32, 16, 32, 4, 2, 10  # of model.hpp
SCALE = 1 / 32  # of recording.hpp
TAKES_OF_DIGIT, BATCH, RAM = 5, 10, 64 * 1024


class Classifier(nn.Module):
    """Base of model.hpp, without masks."""

    def __init__(self):
        super().__init__()
        self.embed, self.pos = nn.Linear(BANDS, WIDTH), nn.Parameter(torch.zeros(TOKENS, WIDTH))
        block = nn.TransformerEncoderLayer(WIDTH, HEADS, 2 * WIDTH, dropout=0, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(block, BLOCKS, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, DIGITS)

    def forward(self, x):
        return self.head(self.norm(self.encoder(self.embed(x) + self.pos)).mean(1))


def takes(recordings):
    """Recordings as bytes (recording.hpp), as fit takes them: the new speaker's takes first, then what is tested."""
    bands, (length, digit, speaker, use) = recordings[:, :TOKENS * BANDS].to(torch.int8), recordings[:, TOKENS * BANDS:].int().T
    known = use < 3  # the others' takes are for methods that rehearse
    x = (bands[known].float() * SCALE).flatten()
    words = {"y": digit, "length": length, "user": speaker}
    return {"x": array("f", x.tolist()), **{name: array("i", values[known].tolist()) for name, values in words.items()}}


def main(prefix, folder, steps="100"):
    torch.manual_seed(1)
    model = Classifier().eval()
    model.load_state_dict(tensors.read(f"{prefix}.safetensors"))
    spoken, data = pathlib.Path(folder) / "spoken", pathlib.Path(folder) / "takes.safetensors"
    spoken.parent.mkdir(parents=True, exist_ok=True)
    attune_torch.export(model, torch.randn(2, TOKENS, BANDS), spoken)
    recordings = tensors.read(f"{prefix}_recordings.safetensors")["recordings"]
    made = takes(recordings)
    fit_data.write(data, made, {"x": [len(made["y"]), TOKENS, BANDS]})
    speaker = int(made["user"][0])
    found = fit.fit(spoken, ram=RAM, base="int8", data=data, takes=TAKES_OF_DIGIT, batch=BATCH, seeds=1, new=speaker,
                    passes=max(1, int(steps) * BATCH // (TAKES_OF_DIGIT * DIGITS)))
    before, after = found["before"], found["chosen"].trained
    own, others, hash = found["trainings"].first(found["chosen"].way)
    counts = f" step_instructions={found['instructions']} step_cycles={found['cycles']}" if found["cycles"] else ""
    print(f"result example=personalise target=host method=fit precision=float speaker={speaker} steps={found['chosen'].steps} own_before={before.own[0]:.4f} "
          f"own_after={after.own[0]:.4f} others_before={before.others[0]:.4f} others_after={after.others[0]:.4f} "
          f"trained_parameters={found['parts']['parameters'] // 4} ram_bytes={fit.ram_of(found['parts'])} tape_bytes={found['parts']['tape']} "
          f"stack_bytes={found['stack']}{counts} parameters_hash={hash}")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (CheckFailed, OSError, ValueError) as problem:
        sys.exit(f"personalise: {problem}")
