"""Times attune's training step and forward pass against PyTorch's, taking turns in one process.

usage: against_torch.py LIBRARY     (the attune_steps library)

A step is forward, mean squared error, backward with the gradient of the input, AdamW. A forward pass is inference. Both
sides start from the same numbers, and what they compute is compared before it is timed. Prints `key value` lines.
"""
import ctypes
import gc
import sys

import torch

from turns import race, ratio, repeated, timed

Floats = ctypes.POINTER(ctypes.c_float)


class Entry(ctypes.Structure):
    _fields_ = [("seq_len", ctypes.c_int), ("d_model", ctypes.c_int), ("num_heads", ctypes.c_int)]
    _fields_ += [(name, Floats) for name in ("parameters", "x", "target", "y", "dx", "loss")]
    _fields_ += [("initialize", ctypes.CFUNCTYPE(None))]
    _fields_ += [(name, ctypes.CFUNCTYPE(None, ctypes.c_long)) for name in ("forward", "step")]

    def tensor(self, name, *shape):
        """A copy of what attune has under `name`."""
        size = torch.Size(shape).numel()
        return torch.tensor(getattr(self, name)[:size]).reshape(shape)


def times_as_fast(theirs, ours):
    """By how much `ours` is faster; both are contenders of turns.py."""
    return ratio(*race([theirs, ours], turn=1e-3, budget=1.5, fewest=11, most=61))


def load(layer, entry):
    """Gives the PyTorch layer attune's parameters: the same weights, transposed."""
    d = entry.d_model
    projections = entry.tensor("parameters", 4, d * d + d)
    weights, biases = projections[:, :d * d].reshape(4, d, d).transpose(1, 2), projections[:, d * d:]
    with torch.no_grad():
        layer.in_proj_weight.copy_(weights[:3].reshape(3 * d, d))
        layer.in_proj_bias.copy_(biases[:3].reshape(3 * d))
        layer.out_proj.weight.copy_(weights[3])
        layer.out_proj.bias.copy_(biases[3])


def require_close(what, ours, theirs):
    if not torch.allclose(ours, theirs, rtol=1e-3, atol=1e-5):
        sys.exit(f"against_torch.py: attune and PyTorch disagree on {what}")


def compare(entry):
    shape = (1, entry.seq_len, entry.d_model)
    name = f"{entry.seq_len}x{entry.d_model}x{entry.num_heads}"
    entry.initialize()
    layer = torch.nn.MultiheadAttention(entry.d_model, entry.num_heads, bias=True, batch_first=True)
    load(layer, entry)
    x, target = entry.tensor("x", *shape), entry.tensor("target", *shape)

    layer.eval()
    with torch.inference_mode():
        entry.forward(1)
        require_close(f"the output at {name}", entry.tensor("y", *shape), layer(x, x, x, need_weights=False)[0])
        forward = times_as_fast(repeated(lambda: layer(x, x, x, need_weights=False)), timed(entry.forward))

    layer.train()
    x.requires_grad_(True)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad(set_to_none=True)
        x.grad = None
        y, _ = layer(x, x, x, need_weights=False)
        loss = torch.nn.functional.mse_loss(y, target)
        loss.backward()
        optimizer.step()
        return loss

    entry.step(1)
    require_close(f"the loss at {name}", entry.tensor("loss", 1), step().detach().reshape(1))
    require_close(f"dx at {name}", entry.tensor("dx", *shape), x.grad)
    print(f"step.{name}.vs_torch {times_as_fast(repeated(step), timed(entry.step)):.6g}")
    print(f"forward.{name}.vs_torch {forward:.6g}", flush=True)


def main():
    torch.set_num_threads(1)
    gc.disable()
    library = ctypes.CDLL(sys.argv[1])
    library.attune_bench_entries.restype = ctypes.POINTER(Entry)
    for entry in library.attune_bench_entries()[:library.attune_bench_count()]:
        compare(entry)


main()
