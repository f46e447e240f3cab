#!/usr/bin/env python3
"""Makes the reference cases with PyTorch, one .safetensors file for each case and precision.

  make_vectors.py [--only NAME...] [--seed N] [--out DIR] [--random-shapes]

Without --seed and --out it makes those of tests/vectors. Linear algebra on another computer may change last bits of
files that are there: for a new case use --only.

Every case draws from a generator of its own, seeded by the seed and its name: adding a case changes no other. Inputs
are representable in float; <case>.f32 is computed in float and <case>.f64 in double from the same inputs, so that
their difference is the oracle's own rounding error. Batch first, Linear weights [out, in], boolean masks true where
attention is not allowed; grad.X is the gradient of sum(out * grad_out). --random-shapes draws the sizes from the
seed, and adds cases whose options are drawn as well, for sets that no code has been tuned to.
"""
import argparse
import math
import sys
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

sys.dont_write_bytecode = True  # the source tree stays clean

from attention_cases import attention_option_cases  # noqa: E402
from layer_cases import layer_cases  # noqa: E402
from long_double_attention import attention_in_long_double  # noqa: E402
from safetensors_writer import save  # noqa: E402
from model_cases import model_cases  # noqa: E402
from random_cases import drawn_attention_cases, random_cases  # noqa: E402
from transformer_cases import leaf, random_shape, transformer_cases  # noqa: E402

PRECISIONS = {"f32": torch.float32, "f64": torch.float64}


class Draw:
    """Random values of one case."""

    def __init__(self, seed, name):
        self._generator = np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())]))

    def normal(self, *shape, scale=1.0):
        """Representable in float, held in double."""
        values = self._generator.standard_normal(shape) * scale
        return torch.from_numpy((values + 0.0).astype(np.float32).astype(np.float64))

    def integer(self, low, high):
        return int(self._generator.integers(low, high + 1))

    def true_with(self, probability, *shape):
        return torch.from_numpy(self._generator.random(shape) < probability)

    def flag(self):
        return bool(self._generator.integers(0, 2))

    def choice(self, options):
        return options[int(self._generator.integers(0, len(options)))]


class Cases:
    def __init__(self, seed, out, random_shapes, only=None):
        self.seed, self.out, self.random_shapes, self.only = seed, out, random_shapes, only
        self.count = 0

    def draw(self, name):
        return Draw(self.seed, name)

    def write(self, name, family, metadata, compute):
        """compute(dtype) -> tensors by name."""
        if self.only and name not in self.only:
            return
        for precision, dtype in PRECISIONS.items():
            tensors = {key: tensor.detach().contiguous().numpy() for key, tensor in compute(dtype).items()}
            common = {"case": name, "family": family, "precision": precision, "seed": self.seed,
                      "generator": "tests/vectors/make_vectors.py", "oracle": f"torch {torch.__version__}"}
            save(self.out / f"{name}.{precision}.safetensors", tensors, {**common, **metadata})
            self.count += 1


# ---- Multi-head attention ----

def attention_by_formula(query, key, value, weights, heads, attn_mask, key_padding_mask, add_zero_attn=False):
    """nn.MultiheadAttention from its definition, with zeros where every key of a query is masked (PyTorch: NaN)."""
    batch, tgt_len, width = query.shape
    head_dim = width // heads
    biases = (None,) * 3 if "in_proj_bias" not in weights else weights["in_proj_bias"].split(width)
    if "in_proj_weight" in weights:
        matrices = weights["in_proj_weight"].split(width)
    else:
        matrices = [weights[f"{name}_proj_weight"] for name in "qkv"]
    q, k, v = (F.linear(x, w, b).view(batch, -1, heads, head_dim).transpose(1, 2)
               for x, w, b in zip((query, key, value), matrices, biases))
    if "bias_k" in weights:
        rows = (weights[name].view(1, heads, 1, head_dim).expand(batch, -1, -1, -1) for name in ("bias_k", "bias_v"))
        k, v = (torch.cat([x, row], 2) for x, row in zip((k, v), rows))
    if add_zero_attn:
        k, v = (F.pad(x, (0, 0, 0, 1)) for x in (k, v))
    appended = (0, k.shape[2] - key.shape[1])  # no mask hides these keys
    scores = (q / math.sqrt(head_dim)) @ k.transpose(-1, -2)
    if attn_mask is not None:
        attn_mask = F.pad(attn_mask, appended)
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros(attn_mask.shape, dtype=scores.dtype).masked_fill(attn_mask, -math.inf)
        scores = scores + (attn_mask.view(scores.shape) if attn_mask.dim() == 3 else attn_mask)
    if key_padding_mask is not None:
        scores = scores.masked_fill(F.pad(key_padding_mask, appended)[:, None, None, :], -math.inf)
    fully_masked = (scores == -math.inf).all(-1, keepdim=True)
    zeros = torch.zeros_like(scores)
    attn = torch.softmax(torch.where(fully_masked, zeros, scores), -1)
    attn = torch.where(fully_masked, zeros, attn)
    context = (attn @ v).transpose(1, 2).reshape(batch, tgt_len, width)
    return F.linear(context, weights["out_proj.weight"], weights.get("out_proj.bias")), attn, fully_masked


def attention_mask(kind, draw, batch, heads, tgt_len, src_len):
    if kind == "causal":
        later = torch.ones(tgt_len, src_len, dtype=torch.bool).triu(1)
        return torch.zeros(tgt_len, src_len, dtype=torch.float64).masked_fill(later, -math.inf)
    if kind == "float":
        return draw.normal(tgt_len, src_len)
    if kind == "float3d":
        return draw.normal(batch * heads, tgt_len, src_len)
    if kind == "float_inf":
        mask = draw.normal(tgt_len, src_len).masked_fill(draw.true_with(0.3, tgt_len, src_len), -math.inf)
        mask[:, 0] = 0.25
        return mask
    if kind == "bool":
        mask = draw.true_with(0.4, tgt_len, src_len)
        mask[torch.arange(tgt_len), torch.arange(tgt_len) % src_len] = False
        return mask
    if kind == "bool_deadrow":
        mask = draw.true_with(0.3, tgt_len, src_len)
        mask[:, 0] = False
        mask[tgt_len // 2] = True
        return mask
    return None


def padding_mask(kind, batch, src_len):
    if kind == "full":  # the last sequence is padding alone
        mask = torch.zeros(batch, src_len, dtype=torch.bool)
        mask[-1] = True
        mask[0, -1] = src_len > 1
        return mask
    lengths = [max(1, src_len - (sequence % src_len)) for sequence in range(batch)]
    mask = torch.tensor([[key >= length for key in range(src_len)] for length in lengths])
    return mask.flip(1) if kind == "left" else mask


def mha(cases, name, batch=2, tgt_len=5, src_len=None, heads=2, head_dim=4, bias=True, kdim=None, vdim=None, mask=None,
        padding=None, scale=1.0, add_bias_kv=False, add_zero_attn=False, errors=False):
    """Without src_len it is self-attention: query is key and value, and grad.query is the total gradient. With `errors` the
    double case has `error.X`, what PyTorch's X is less than the long double's."""
    draw = cases.draw(name)
    self_attention = src_len is None
    if cases.random_shapes:
        batch, tgt_len = draw.integer(1, 3), draw.integer(2, 9)
        heads, head_dim = draw.choice([1, 2, 3, 4, 6, 8]), draw.integer(1, 9)
        src_len = None if self_attention else draw.integer(2, 9)
        kdim, vdim = draw.integer(3, 12) if kdim else None, draw.integer(3, 12) if vdim else None
    width = heads * head_dim
    keys = tgt_len if self_attention else src_len
    kdim, vdim = kdim or width, vdim or width
    inputs = {"query": draw.normal(batch, tgt_len, width, scale=scale)}
    if not self_attention:
        inputs["key"] = draw.normal(batch, keys, kdim, scale=scale)
        inputs["value"] = draw.normal(batch, keys, vdim)
    weights = {}
    if kdim == vdim == width:
        weights["in_proj_weight"] = draw.normal(3 * width, width, scale=width ** -0.5)
    else:
        for letter, d_in in zip("qkv", (width, kdim, vdim)):
            weights[f"{letter}_proj_weight"] = draw.normal(width, d_in, scale=d_in ** -0.5)
    if bias:
        weights["in_proj_bias"] = draw.normal(3 * width, scale=0.3)
    weights["out_proj.weight"] = draw.normal(width, width, scale=width ** -0.5)
    if bias:
        weights["out_proj.bias"] = draw.normal(width, scale=0.3)
    if add_bias_kv:
        weights.update({key: draw.normal(1, 1, width) for key in ("bias_k", "bias_v")})
    attn_mask = attention_mask(mask, draw, batch, heads, tgt_len, keys)
    key_padding_mask = padding_mask(padding, batch, keys) if padding else None
    grad_out = draw.normal(batch, tgt_len, width)

    def compute(dtype):
        module = nn.MultiheadAttention(width, heads, bias=bias, kdim=kdim, vdim=vdim, batch_first=True, dtype=dtype,
                                       add_bias_kv=add_bias_kv, add_zero_attn=add_zero_attn)
        parameters = dict(module.named_parameters())
        with torch.no_grad():
            for key, parameter in parameters.items():
                parameter.copy_(weights[key])
        cast_mask = attn_mask.to(dtype) if mask and attn_mask.dtype != torch.bool else attn_mask
        g = grad_out.to(dtype)

        def results(forward, x, w):
            out, attn, *rest = forward((list(x.values()) * 3)[:3], w)
            return [out, attn, *torch.autograd.grad((out * g).sum(), [*x.values(), *w.values()])], rest

        ours, (fully_masked,) = results(
            lambda qkv, w: attention_by_formula(*qkv, w, heads, cast_mask, key_padding_mask, add_zero_attn),
            {key: leaf(x, dtype) for key, x in inputs.items()}, {key: leaf(w, dtype) for key, w in weights.items()})
        if not fully_masked.any():
            theirs, _ = results(
                lambda qkv, _: module(*qkv, attn_mask=cast_mask, key_padding_mask=key_padding_mask,
                                      average_attn_weights=False),
                {key: leaf(x, dtype) for key, x in inputs.items()}, {key: parameters[key] for key in weights})
            bound = 2e-3 * max(1.0, scale) if dtype == torch.float32 else 1e-9
            for a, b in zip(theirs, ours):
                assert (a - b).abs().max() <= bound * max(1.0, float(a.abs().max())), (name, dtype)
            ours = theirs
        tensors = {key: tensor.to(dtype) for key, tensor in {**inputs, **weights, "grad_out": grad_out}.items()}
        if cast_mask is not None:
            tensors["attn_mask"] = cast_mask
        if key_padding_mask is not None:
            tensors["key_padding_mask"] = key_padding_mask
        names = ["out", "attn", *("grad." + key for key in [*inputs, *weights])]
        tensors.update(zip(names, ours))
        if errors and dtype == torch.float64:
            exact = attention_in_long_double(inputs, weights, heads, attn_mask, key_padding_mask, add_zero_attn, grad_out)
            for key, wide, value in zip(names, exact, ours):
                error = torch.from_numpy((wide - value.detach().numpy()).astype(np.float64))
                assert error.abs().max() <= 1e-9 * max(1.0, float(value.detach().abs().max())), (name, key)
                tensors["error." + key] = error
        return tensors

    appends = dict(add_bias_kv=1) if add_bias_kv else {}
    appends.update(dict(add_zero_attn=1) if add_zero_attn else {})
    cases.write(name, "mha", dict(
        appends, batch=batch, tgt_len=tgt_len, src_len=keys, embed_dim=width, num_heads=heads, head_dim=head_dim, kdim=kdim,
        vdim=vdim, bias=bias, self_attention=int(self_attention), causal=int(mask == "causal"),
        attn_mask=mask or "none",
        key_padding_mask=padding or "none", packed_in_proj=int("in_proj_weight" in weights), scale="1/sqrt(head_dim)",
        fully_masked="zero weights, no contribution"), compute)


def attention_cases(cases):
    def case(name, **options):
        mha(cases, "mha_" + name, **options)

    case("self_h1")
    case("self_h2_b1", batch=1, tgt_len=4, heads=2, head_dim=2)
    case("self_h4_nobias", heads=4, head_dim=3, bias=False)
    case("self_h8_d5", tgt_len=6, heads=8, head_dim=5)
    case("self_h3_d1", batch=1, tgt_len=4, heads=3, head_dim=1)
    case("self_len1", tgt_len=1)
    case("cross", tgt_len=4, src_len=7, head_dim=5)
    case("cross_nobias_h1", tgt_len=3, src_len=6, heads=1, head_dim=7, bias=False)
    case("cross_kvdim", tgt_len=4, src_len=6, heads=4, kdim=7, vdim=11)
    case("cross_kvdim_nobias", src_len=3, head_dim=5, kdim=9, vdim=6, bias=False)
    case("cross_decode_t1", batch=3, tgt_len=1, src_len=9, heads=4)
    case("self_kpm", batch=3, tgt_len=6, padding="right")
    case("cross_kpm_left", batch=3, tgt_len=4, src_len=6, head_dim=5, padding="left")
    case("self_causal", tgt_len=8, heads=4, mask="causal")
    case("self_causal_kpm", batch=3, tgt_len=6, head_dim=3, mask="causal", padding="right")
    case("self_causal_kpm_left_dead", batch=3, head_dim=3, mask="causal", padding="left")
    case("cross_floatmask", tgt_len=4, src_len=6, mask="float")
    case("cross_floatinfmask", src_len=7, heads=3, head_dim=5, mask="float_inf")
    case("self_boolmask", tgt_len=6, mask="bool")
    case("cross_floatmask3d", tgt_len=3, src_len=5, heads=4, head_dim=2, mask="float3d")
    case("self_boolmask_kpm", tgt_len=6, mask="float_inf", padding="right")
    case("self_fullmask_kpm", tgt_len=4, padding="full")
    case("self_fullmask_row", mask="bool_deadrow")
    case("self_saturated", tgt_len=6, head_dim=8, scale=30.0)
    case("self_large_64", batch=1, tgt_len=64, heads=4, head_dim=8)


# ---- Linear, softmax ----

def function(cases, name, family, shape, forward, metadata=None, scale=1.0, parameters=None):
    """out = forward(input, **parameters), and the gradients."""
    draw = cases.draw(name)
    if cases.random_shapes:
        shape = random_shape(draw, len(shape))
        parameters = {key: (*size[:-1], shape[-1]) if key == "weight" else size
                      for key, size in (parameters or {}).items()}
    x = draw.normal(*shape, scale=scale)
    weights = {key: draw.normal(*size, scale=0.5) for key, size in (parameters or {}).items()}
    grad_out = draw.normal(*forward(x, **weights).shape)

    def compute(dtype):
        leaves = {"input": leaf(x, dtype), **{key: leaf(w, dtype) for key, w in weights.items()}}
        g = grad_out.to(dtype)
        out = forward(*leaves.values())
        gradients = torch.autograd.grad((out * g).sum(), list(leaves.values()))
        return {**leaves, "grad_out": g, "out": out, **{"grad." + key: d for key, d in zip(leaves, gradients)}}

    cases.write(name, family, {**(metadata or {}), "shape": list(shape)}, compute)


def function_cases(cases):
    function(cases, "linear", "linear", (4, 3, 7), F.linear, parameters=dict(weight=(5, 7), bias=(5,)))
    function(cases, "linear_nobias", "linear", (6, 5), F.linear, parameters=dict(weight=(9, 5)))
    for suffix, scale in (("", 1.0), ("_large", 40.0), ("_huge", 1e4)):
        for kind, forward in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
            function(cases, kind + suffix, "softmax", (5, 9), lambda x, f=forward: f(x, -1),
                     dict(kind=kind, dim=-1), scale)


# ---- Optimizers ----

def optimizer(cases, name, steps=20, gradient_scale=1.0, zero_every=0, **options):
    """params.X[s] is the parameter after step s + 1, which was fed with grads.X[s]; state.* is the state at the end."""
    draw = cases.draw(name)
    kind = name.split("_")[0]
    start = {"w": draw.normal(4, 3), "b": draw.normal(5)}
    gradients = {key: draw.normal(steps, *tensor.shape, scale=gradient_scale) for key, tensor in start.items()}
    if zero_every:
        for tensor in gradients.values():
            tensor[::zero_every] = 0

    def compute(dtype):
        parameters = {key: nn.Parameter(tensor.to(dtype).clone()) for key, tensor in start.items()}
        implementation = dict(adamw=torch.optim.AdamW, adam=torch.optim.Adam, sgd=torch.optim.SGD)[kind](
            list(parameters.values()), **options)
        trajectory = {key: [] for key in parameters}
        for step in range(steps):
            for key, parameter in parameters.items():
                parameter.grad = gradients[key][step].to(dtype).clone()
            implementation.step()
            for key, parameter in parameters.items():
                trajectory[key].append(parameter.detach().clone())
        tensors = {}
        for key, parameter in parameters.items():
            tensors["param0." + key] = start[key].to(dtype)
            tensors["grads." + key] = gradients[key].to(dtype)
            tensors["params." + key] = torch.stack(trajectory[key])
            for state, tensor in implementation.state[parameter].items():
                if isinstance(tensor, torch.Tensor) and state != "step":
                    tensors[f"state.{state}.{key}"] = tensor
        return tensors

    cases.write(name, kind, dict(options, steps=steps), compute)


def optimizer_cases(cases):
    betas, eps = (0.9, 0.999), 1e-8
    for name, options in {
            "default": dict(lr=1e-3, betas=betas, eps=eps, weight_decay=0.01),
            "wd0": dict(lr=1e-2, betas=betas, eps=eps, weight_decay=0.0),
            "wd_large": dict(lr=0.1, betas=betas, eps=eps, weight_decay=0.5),
            "betas_0.8_0.9": dict(lr=1e-2, betas=(0.8, 0.9), eps=eps, weight_decay=0.05),
            "beta1_0": dict(lr=1e-2, betas=(0.0, 0.99), eps=eps, weight_decay=0.01),
            "eps1e-3": dict(lr=1e-2, betas=betas, eps=1e-3, weight_decay=0.01),
            "tinygrad": dict(lr=1e-2, betas=betas, eps=eps, weight_decay=0.0, gradient_scale=1e-9),
            "hugegrad": dict(lr=1e-2, betas=betas, eps=eps, weight_decay=0.01, gradient_scale=1e6),
            "zerograds": dict(lr=1e-2, betas=betas, eps=eps, weight_decay=0.1, zero_every=2),
            "steps300": dict(lr=1e-3, betas=betas, eps=eps, weight_decay=0.01, steps=300),
    }.items():
        optimizer(cases, "adamw_" + name, **options)
    optimizer(cases, "adam_l2", lr=1e-2, betas=betas, eps=eps, weight_decay=0.1)
    optimizer(cases, "sgd_plain", lr=0.05)
    optimizer(cases, "sgd_momentum", lr=0.05, momentum=0.9)
    optimizer(cases, "sgd_momentum_wd", lr=0.05, momentum=0.9, weight_decay=0.1)
    optimizer(cases, "sgd_nesterov", lr=0.05, momentum=0.8, nesterov=True)
    optimizer(cases, "sgd_dampening", lr=0.05, momentum=0.9, dampening=0.5)


def every_case(cases):
    attention_cases(cases)
    attention_option_cases(cases)
    function_cases(cases)
    optimizer_cases(cases)
    transformer_cases(cases)
    layer_cases(cases)
    model_cases(cases)
    if cases.random_shapes:
        random_cases(cases)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these cases, and no others")
    parser.add_argument("--random-shapes", action="store_true")
    parser.add_argument("--attention", type=int, metavar="N", help="N drawn cases of nn.MultiheadAttention, and no others")
    arguments = parser.parse_args()
    if not arguments.out:
        if arguments.seed != 1 or arguments.random_shapes or arguments.attention:
            parser.error("other cases than those of tests/vectors need a folder of their own: --out DIR")
        arguments.out = Path(__file__).resolve().parent
    arguments.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(arguments.seed)
    cases = Cases(arguments.seed, arguments.out, arguments.random_shapes, arguments.only)
    if arguments.attention:
        drawn_attention_cases(cases, mha, arguments.attention)
    else:
        every_case(cases)
    if not cases.count:
        parser.error(f"there is no case {' or '.join(arguments.only)}")
    print(f"{cases.count} files in {arguments.out}")


if __name__ == "__main__":
    main()
