"""The cases of the layers around attention: normalization, activation, losses, encoder, decoder, a trained model."""
import math
import re
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib/attune_torch"))
from attune_torch.activations import ACTIVATIONS  # noqa: E402
from losses import LOSSES  # noqa: E402


def leaf(tensor, dtype):
    return tensor.detach().to(dtype).clone().requires_grad_(True)


# Of a token that is drawn for a stack. A norm of few features makes nearly the same of whatever they were (of two, 1
# and -1), and its gradients are mostly rounding noise.
LEAST_WIDTH = 8


def random_shape(draw, axes):
    return (*(draw.integer(1, 6) for _ in range(axes - 1)), draw.integer(3, 40))


# ---- Normalization and activation ----

def layer_norm(cases, name, shape, eps=1e-5, affine=True, scale=1.0, shift=0.0, constant_row=False):
    draw = cases.draw(name)
    if cases.random_shapes:
        shape = random_shape(draw, len(shape))
    x = (draw.normal(*shape, scale=scale) + shift).float().double()
    if constant_row:
        x[0] = 3.25
    width = shape[-1]
    weights = {"weight": draw.normal(width, scale=0.5) + 1, "bias": draw.normal(width, scale=0.5)} if affine else {}
    weights = {key: tensor.float().double() for key, tensor in weights.items()}
    grad_out = draw.normal(*shape)

    def compute(dtype):
        leaves = {"input": leaf(x, dtype), **{key: leaf(w, dtype) for key, w in weights.items()}}
        out = F.layer_norm(leaves["input"], (width,), leaves.get("weight"), leaves.get("bias"), eps)
        gradients = torch.autograd.grad((out * grad_out.to(dtype)).sum(), list(leaves.values()))
        return {**leaves, "grad_out": grad_out.to(dtype), "out": out,
                **{"grad." + key: d for key, d in zip(leaves, gradients)}}

    cases.write(name, "layer_norm", dict(normalized_shape=width, eps=eps, affine=affine, shape=list(shape)), compute)


def rms_norm(cases, name, shape, eps=1e-5, affine=True, scale=1.0):
    draw = cases.draw(name)
    if cases.random_shapes:
        shape = random_shape(draw, len(shape))
    width = shape[-1]
    tensors = {"input": draw.normal(*shape, scale=scale)}
    if affine:
        tensors["weight"] = (draw.normal(width, scale=0.5) + 1).float().double()
    by_formula(cases, name, "rms_norm", tensors, dict(normalized_shape=width, eps=eps, shape=list(shape)), draw,
               lambda input, weight=1: input * torch.rsqrt(input.pow(2).mean(-1, keepdim=True) + eps) * weight)


def swiglu(cases, name, rows=5, width=6, d_ff=9, bias=True):
    draw = cases.draw(name)
    if cases.random_shapes:
        rows, width, d_ff = draw.integer(1, 9), draw.integer(1, 17), draw.integer(1, 33)
    tensors = {"input": draw.normal(rows, width)}
    for layer, size in (("gate", (d_ff, width)), ("up", (d_ff, width)), ("down", (width, d_ff))):
        tensors[layer + ".weight"] = draw.normal(*size, scale=size[1] ** -0.5)
        if bias:
            tensors[layer + ".bias"] = draw.normal(size[0], scale=0.3)

    def forward(**t):
        gate, up = (F.linear(t["input"], t[f"{layer}.weight"], t.get(f"{layer}.bias")) for layer in ("gate", "up"))
        return F.linear(F.silu(gate) * up, t["down.weight"], t.get("down.bias"))

    by_formula(cases, name, "swiglu", tensors, dict(dim_feedforward=d_ff), draw, forward)


def rotary(cases, name, length=6, heads=2, d_k=8, rotary_dim=None, interleaved=False, base=10000.0):
    """Heads side by side; sines and cosines are rounded from what is wider than double."""
    draw = cases.draw(name)
    if cases.random_shapes:
        length, heads, d_k = draw.integer(1, 12), draw.integer(1, 5), draw.integer(2, 20)
        rotary_dim = 2 * draw.integer(1, d_k // 2)
    rotary_dim = rotary_dim or d_k
    half = rotary_dim // 2
    angles = np.arange(length, dtype=np.longdouble)[:, None] * np.longdouble(base) ** (
        -2 * np.arange(half, dtype=np.longdouble) / rotary_dim)
    tables = [torch.from_numpy(f(angles).astype(np.float64)) for f in (np.cos, np.sin)]

    def forward(input):
        x = input.view(length, heads, d_k)
        cosine, sine = (table.to(input.dtype)[:, None, :] for table in tables)
        rotated, rest = x[..., :rotary_dim], x[..., rotary_dim:]
        if interleaved:
            a, b = rotated[..., 0::2], rotated[..., 1::2]
            pairs = torch.stack([a * cosine - b * sine, a * sine + b * cosine], -1).flatten(-2)
        else:
            a, b = rotated[..., :half], rotated[..., half:]
            pairs = torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1)
        return torch.cat([pairs, rest], -1).view(length, heads * d_k)

    by_formula(cases, name, "rotary", {"input": draw.normal(length, heads * d_k)},
               dict(num_heads=heads, rotary_dim=rotary_dim, interleaved=int(interleaved), base=base), draw, forward)


def lora(cases, name, length=5, heads=2, head_dim=4, rank=2, alpha=4.0, adapted=("query", "value"), causal=False,
         biases=False):
    """Self-attention with constant weights and x @ A.T @ B.T * (alpha / rank) beside some of them.

    Gradients of what is trained: A, B, and with `biases` all biases but the key's, whose gradient is rounding noise.
    """
    draw = cases.draw(name)
    if cases.random_shapes:
        length, heads, head_dim = draw.integer(1, 12), draw.integer(1, 4), draw.integer(1, 9)
        rank = draw.integer(1, 6)
        alpha = float(draw.integer(1, 2 * rank))  # of more, scores are large and gradients what their rounding leaves
    width = heads * head_dim
    constants, trained = {}, {"input": draw.normal(length, width)}
    for layer in ("query", "key", "value", "output"):
        constants[layer + ".weight"] = draw.normal(width, width, scale=width ** -0.5)
        if layer in adapted:
            trained[layer + ".lora_A"] = draw.normal(rank, width, scale=width ** -0.5)
            trained[layer + ".lora_B"] = draw.normal(width, rank, scale=0.3)
        of_biases = trained if biases and layer != "key" else constants
        of_biases[layer + ".bias"] = draw.normal(width, scale=0.3)
    grad_out = draw.normal(length, width)

    def compute(dtype):
        leaves = {key: leaf(tensor, dtype) for key, tensor in trained.items()}
        t = {**{key: tensor.to(dtype) for key, tensor in constants.items()}, **leaves}

        def project(layer, x):
            y = F.linear(x, t[layer + ".weight"], t[layer + ".bias"])
            if layer not in adapted:
                return y
            return y + F.linear(F.linear(x, t[layer + ".lora_A"]), t[layer + ".lora_B"]) * (alpha / rank)

        query, key, value = (project(layer, t["input"]).view(length, heads, head_dim).transpose(0, 1)
                             for layer in ("query", "key", "value"))
        scores = query @ key.transpose(1, 2) / math.sqrt(head_dim)
        if causal:
            scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), -math.inf)
        out = project("output", (scores.softmax(-1) @ value).transpose(0, 1).reshape(length, width))
        gradients = torch.autograd.grad((out * grad_out.to(dtype)).sum(), list(leaves.values()))
        return {**t, "grad_out": grad_out.to(dtype), "out": out,
                **{"grad." + key: d for key, d in zip(leaves, gradients)}}

    cases.write(name, "lora", dict(num_heads=heads, rank=rank, alpha=alpha, adapted=list(adapted), causal=int(causal),
                                   biases=int(biases)), compute)


def by_formula(cases, name, family, tensors, metadata, draw, forward):
    """out = forward(**tensors), and the gradient of every tensor."""
    grad_out = draw.normal(*tensors["input"].shape)

    def compute(dtype):
        leaves = {key: leaf(tensor, dtype) for key, tensor in tensors.items()}
        g = grad_out.to(dtype)
        out = forward(**leaves)
        gradients = torch.autograd.grad((out * g).sum(), list(leaves.values()))
        return {**leaves, "grad_out": g, "out": out, **{"grad." + key: d for key, d in zip(leaves, gradients)}}

    cases.write(name, family, metadata, compute)


def gelu_tanh(x):
    return F.gelu(x, approximate="tanh")


def stable_gelu_tanh(x):
    """In double by a sigmoid that is at most 1/2: the gradient of PyTorch's own is off by 15 ulp of a double, where
    1 - tanh^2 cancels."""
    if x.dtype != torch.float64:
        return gelu_tanh(x)
    slope = math.sqrt(8 / math.pi) * (x + 0.044715 * x ** 3)
    part = x * torch.sigmoid(torch.where(x > 0, -slope, slope))
    return torch.where(x > 0, x - part, part)


def stable_tanh(x):
    """In double with a derivative that is not 1 - tanh^2, which cancels."""
    if x.dtype != torch.float64:
        return torch.tanh(x)
    part = torch.sigmoid(-2 * x.abs())
    return torch.sign(x) * (1 - 2 * part)


def activations(random_shapes):
    """{name of a case: function} of attune_torch's table, by PyTorch's own functions."""
    formulas = {re.sub(r"(?<!^)(?=[A-Z])", "_", name[1:]).lower(): one.formula for name, one in ACTIVATIONS.items()}
    del formulas["gelu"]
    return {**formulas, "gelu_erf": F.gelu, "gelu_tanh": stable_gelu_tanh if random_shapes else gelu_tanh,
            "tanh": stable_tanh if random_shapes else torch.tanh}


def activation(cases, name, forward, kind=None):
    """On a grid over [-9, 9]."""
    draw = cases.draw(name)
    count = draw.integer(1, 150) if cases.random_shapes else 73
    x = torch.linspace(-9, 9, count, dtype=torch.float64).float().double()
    grad_out = draw.normal(count)

    def compute(dtype):
        leaf_x, g = leaf(x, dtype), grad_out.to(dtype)
        out = forward(leaf_x)
        gradient, = torch.autograd.grad((out * g).sum(), leaf_x)
        return {"input": leaf_x, "grad_out": g, "out": out, "grad.input": gradient}

    cases.write(name, "activation", dict(kind=kind or name, shape=[count]), compute)


# ---- Losses ----

def cross_entropy(cases, name, rows=6, classes=10, reduction="mean", smoothing=0.0, weighted=False, ignore=None,
                  scale=2.0):
    draw = cases.draw(name)
    if cases.random_shapes:
        rows, classes = draw.integer(3, 12), draw.integer(4, 40)
    x = draw.normal(rows, classes, scale=scale)
    target = torch.tensor([draw.integer(0, classes - 1) for _ in range(rows)])
    weight = (draw.normal(classes).abs() + 0.1).float().double() if weighted else None
    if ignore is not None:
        target[1] = target[-1] = ignore
    grad_out = draw.normal(rows)

    def compute(dtype):
        logits, g = leaf(x, dtype), grad_out.to(dtype)
        class_weight = weight.to(dtype) if weighted else None
        loss = F.cross_entropy(logits, target, weight=class_weight, reduction=reduction, label_smoothing=smoothing,
                               ignore_index=-100 if ignore is None else ignore)
        gradient, = torch.autograd.grad((loss * g).sum() if reduction == "none" else loss, logits)
        tensors = {"logits": logits, "target": target, "loss": loss.reshape(-1), "grad.logits": gradient}
        if weighted:
            tensors["class_weight"] = class_weight
        if reduction == "none":
            tensors["grad_out"] = g
        return tensors

    cases.write(name, "cross_entropy", dict(
        reduction=reduction, label_smoothing=smoothing, ignore_index="none" if ignore is None else ignore), compute)


def value_loss(cases, name, family, shape=(5, 4), **options):
    """A loss of losses.py."""
    draw = cases.draw(name)
    if cases.random_shapes:
        shape = random_shape(draw, 2)
    x, target = draw.normal(*shape, scale=2.0), draw.normal(*shape, scale=2.0)

    def compute(dtype):
        leaf_x, t = leaf(x, dtype), target.to(dtype)
        loss = LOSSES[family].formula(F, leaf_x, t, **options)
        gradient, = torch.autograd.grad(loss, leaf_x)
        return {"input": leaf_x, "target": t, "loss": loss.reshape(1), "grad.input": gradient}

    cases.write(name, family, dict(**options, shape=list(shape)), compute)


# ---- Encoder, decoder ----

def draw_parameters(module, draw):
    parameters = {}
    for name, parameter in module.named_parameters():
        if parameter.dim() > 1:
            value = draw.normal(*parameter.shape, scale=parameter.shape[-1] ** -0.5)
        else:
            value = draw.normal(*parameter.shape, scale=0.2)
            if "norm" in name and name.endswith("weight"):
                value = (value + 1).float().double()
        parameters[name] = value
    return parameters


def causal_mask(queries, keys):
    later = torch.ones(queries, keys, dtype=torch.bool).triu(1)
    return torch.zeros(queries, keys, dtype=torch.float64).masked_fill(later, -math.inf)


def any_mask(draw, kind, batch, heads, queries, keys):
    """Every query sees the first key, which is never padding."""
    if kind == "causal":
        return causal_mask(queries, keys)
    if kind == "float":
        return draw.normal(queries, keys)
    if kind == "bool":
        mask = draw.true_with(0.4, queries, keys)
        mask[:, 0] = False
        return mask
    if kind == "float3d":
        return draw.normal(batch * heads, queries, keys)
    return None


def padding_mask(batch, length):
    """Sequence i has length - 1 - i real tokens, but at least one."""
    return torch.tensor([[token >= max(1, length - 1 - i) for token in range(length)] for i in range(batch)])


def gradients_of(module, inputs, forward, grad_out, left_out=frozenset()):
    """Inputs, parameters, output, and the gradients of sum(out * grad_out)."""
    parameters = {name: p for name, p in module.named_parameters() if name not in left_out}
    out = forward(*inputs.values())
    leaves = [*inputs.values(), *parameters.values()]
    names = [*("grad." + name for name in [*inputs, *parameters])]
    gradients = torch.autograd.grad((out * grad_out).sum(), leaves)
    return {**inputs, "grad_out": grad_out, "out": out, **{"param." + name: p for name, p in parameters.items()},
            **dict(zip(names, gradients))}


def layer_metadata(width, heads, d_ff, act, norm_first, eps):
    return dict(embed_dim=width, num_heads=heads, dim_feedforward=d_ff, norm_first=int(norm_first), layer_norm_eps=eps,
                activation="gelu_erf" if act == "gelu" else act, dropout=0)


def without_biases(parameters):
    """Makes the biases of layers zeros, as if made with PyTorch 2's bias=False, and returns their names."""
    names = {name for name in parameters if name.endswith("bias") and name != "norm.bias"}
    for name in names:
        parameters[name] = torch.zeros_like(parameters[name])
    return names


def stack(cases, name, kind, sizes, inputs, masks, act, norm_first, layers, eps, final_norm, bias, draw):
    """A layer or several. `masks`: what the module calls them, what the file calls them, and the mask."""
    batch, length, heads, head_dim, d_ff = sizes
    width = heads * head_dim
    one, several = {"encoder": (nn.TransformerEncoderLayer, nn.TransformerEncoder),
                    "decoder": (nn.TransformerDecoderLayer, nn.TransformerDecoder)}[kind]

    def module(dtype):
        layer = one(width, heads, d_ff, 0.0, act, eps, batch_first=True, norm_first=norm_first, dtype=dtype)
        if layers == 1:
            return layer
        return several(layer, layers, nn.LayerNorm(width, eps, dtype=dtype) if final_norm else None)

    parameters = draw_parameters(module(torch.float64), draw)
    left_out = frozenset() if bias else without_biases(parameters)
    masks = [entry for entry in masks if entry[2] is not None]
    grad_out = inputs.pop("grad_out")

    def compute(dtype):
        m = module(dtype).train()
        m.load_state_dict({key: tensor.to(dtype) for key, tensor in parameters.items()})
        cast = {ours: mask if mask.dtype == torch.bool else mask.to(dtype) for _, ours, mask in masks}
        arguments = {theirs: cast[ours] for theirs, ours, _ in masks}
        tensors = gradients_of(m, {key: leaf(tensor, dtype) for key, tensor in inputs.items()},
                               lambda *leaves: m(*leaves, **arguments), grad_out.to(dtype), left_out)
        return {**tensors, **cast}

    metadata = dict(layer_metadata(width, heads, d_ff, act, norm_first, eps), batch=batch, len=length)
    if kind == "decoder":
        metadata["memory_len"] = inputs["memory"].shape[1]
    metadata["causal"] = int(any(ours == "attn_mask" and mask.dtype != torch.bool and bool((mask == -math.inf).any())
                                 for _, ours, mask in masks))
    if kind == "encoder" or layers > 1:
        metadata.update(layers=layers, final_norm=int(final_norm))
    cases.write(name, f"{kind}_layer" if layers == 1 else kind, metadata, compute)


def encoder(cases, name, batch=2, length=5, heads=2, head_dim=4, d_ff=16, act="relu", norm_first=False, mask=None,
            padding=False, layers=1, eps=1e-5, final_norm=False, bias=True):
    draw = cases.draw(name)
    if cases.random_shapes:
        batch, length, heads = draw.integer(1, 3), draw.integer(1, 8), draw.choice([1, 2, 3, 4])
        head_dim, d_ff = draw.integer(-(-LEAST_WIDTH // heads), 9), draw.integer(3, 24)
    width = heads * head_dim
    inputs = {"src": draw.normal(batch, length, width), "grad_out": draw.normal(batch, length, width)}
    masks = [("src_mask" if layers == 1 else "mask", "attn_mask", any_mask(draw, mask, batch, heads, length, length)),
             ("src_key_padding_mask", "key_padding_mask", padding_mask(batch, length) if padding else None)]
    stack(cases, name, "encoder", (batch, length, heads, head_dim, d_ff), inputs, masks, act, norm_first, layers, eps,
          final_norm, bias, draw)


def decoder(cases, name, batch=2, length=4, memory_len=5, heads=2, head_dim=3, d_ff=7, act="relu", norm_first=False,
            mask="causal", padding=False, memory_mask=None, memory_padding=False, layers=1, eps=1e-5,
            final_norm=False, bias=True):
    draw = cases.draw(name)
    if cases.random_shapes:
        batch, length, memory_len = draw.integer(1, 3), draw.integer(1, 7), draw.integer(1, 7)
        heads = draw.choice([1, 2, 3, 4])
        head_dim, d_ff = draw.integer(-(-LEAST_WIDTH // heads), 9), draw.integer(3, 20)
    width = heads * head_dim
    inputs = {"tgt": draw.normal(batch, length, width), "memory": draw.normal(batch, memory_len, width),
              "grad_out": draw.normal(batch, length, width)}
    masks = [("tgt_mask", "attn_mask", any_mask(draw, mask, batch, heads, length, length)),
             ("memory_mask", "memory_mask", any_mask(draw, memory_mask, batch, heads, length, memory_len)),
             ("tgt_key_padding_mask", "tgt_key_padding_mask", padding_mask(batch, length) if padding else None),
             ("memory_key_padding_mask", "memory_key_padding_mask",
              padding_mask(batch, memory_len) if memory_padding else None)]
    stack(cases, name, "decoder", (batch, length, heads, head_dim, d_ff), inputs, masks, act, norm_first, layers, eps,
          final_norm, bias, draw)


def transformer(cases, name, batch=2, source_len=5, length=4, heads=2, head_dim=4, d_ff=9, act="relu", norm_first=False,
                padding=False, layers=2, eps=1e-5):
    """nn.Transformer with a causal target; `padding` is that of the source, and of the memory."""
    draw = cases.draw(name)
    if cases.random_shapes:
        batch, source_len, length = draw.integer(1, 3), draw.integer(1, 7), draw.integer(1, 7)
        heads = draw.choice([1, 2, 3, 4])
        head_dim, d_ff = draw.integer(-(-LEAST_WIDTH // heads), 9), draw.integer(3, 20)
    width = heads * head_dim
    inputs = {"src": draw.normal(batch, source_len, width), "tgt": draw.normal(batch, length, width)}
    grad_out = draw.normal(batch, length, width)
    masks = {"attn_mask": any_mask(draw, "causal", batch, heads, length, length)}
    if padding:
        masks["src_key_padding_mask"] = masks["memory_key_padding_mask"] = padding_mask(batch, source_len)

    def module(dtype):
        return nn.Transformer(width, heads, layers, layers, d_ff, 0.0, act, layer_norm_eps=eps, batch_first=True,
                              norm_first=norm_first, dtype=dtype)

    parameters = draw_parameters(module(torch.float64), draw)

    def compute(dtype):
        m = module(dtype).train()
        m.load_state_dict({key: tensor.to(dtype) for key, tensor in parameters.items()})
        cast = {ours: mask if mask.dtype == torch.bool else mask.to(dtype) for ours, mask in masks.items()}
        arguments = {"tgt_mask" if ours == "attn_mask" else ours: mask for ours, mask in cast.items()}
        tensors = gradients_of(m, {key: leaf(tensor, dtype) for key, tensor in inputs.items()},
                               lambda *leaves: m(*leaves, **arguments), grad_out.to(dtype), frozenset())
        return {**tensors, **cast}

    cases.write(name, "transformer", dict(layer_metadata(width, heads, d_ff, act, norm_first, eps), batch=batch,
                                          layers=layers, causal=1), compute)


def transformer_cases(cases):
    layer_norm(cases, "layer_norm_d16", (6, 16))
    layer_norm(cases, "layer_norm_d5_eps", (4, 5), eps=1e-2, scale=0.05)
    layer_norm(cases, "layer_norm_noaffine", (2, 3, 12), affine=False)
    layer_norm(cases, "layer_norm_offset1e3", (4, 32), shift=1000.0)
    layer_norm(cases, "layer_norm_constant_row", (3, 8), constant_row=True)
    rms_norm(cases, "rms_norm_d16", (6, 16))
    rms_norm(cases, "rms_norm_noaffine_eps", (2, 3, 5), eps=1e-2, affine=False, scale=0.05)
    swiglu(cases, "swiglu")
    swiglu(cases, "swiglu_nobias", rows=1, width=3, d_ff=5, bias=False)
    rotary(cases, "rotary_halves")
    rotary(cases, "rotary_interleaved_partial", heads=3, d_k=5, rotary_dim=4, interleaved=True, base=100.0)
    lora(cases, "lora_query_value")
    lora(cases, "lora_all_causal_biases", length=7, heads=3, head_dim=3, rank=3, alpha=2.0,
         adapted=("query", "key", "value", "output"), causal=True, biases=True)
    for name, forward in activations(cases.random_shapes).items():
        activation(cases, name, forward)
    cross_entropy(cases, "ce_mean")
    cross_entropy(cases, "ce_sum", reduction="sum")
    cross_entropy(cases, "ce_none", reduction="none")
    cross_entropy(cases, "ce_ignore_index", ignore=-100)
    cross_entropy(cases, "ce_extreme", scale=80.0)
    cross_entropy(cases, "ce_weight_smooth", weighted=True, smoothing=0.1, ignore=3)
    cross_entropy(cases, "ce_weight_smooth_sum", weighted=True, smoothing=0.2, reduction="sum")
    for family, loss in LOSSES.items():
        for end, options in loss.vectors.items():
            value_loss(cases, f"{family}_{end}", family, **options)
    encoder(cases, "encoder_layer_post_relu")
    encoder(cases, "encoder_layer_pre_gelu", act="gelu", norm_first=True)
    encoder(cases, "encoder_layer_post_gelu_padding", batch=3, act="gelu", padding=True)
    encoder(cases, "encoder_layer_pre_relu_causal", norm_first=True, mask="causal", heads=1, head_dim=5, d_ff=7)
    encoder(cases, "encoder_2layer_pre_gelu_finalnorm", batch=1, act="gelu", norm_first=True, layers=2,
            final_norm=True)
    transformer(cases, "transformer_post_relu")
    transformer(cases, "transformer_pre_gelu_padding", batch=3, act="gelu", norm_first=True, padding=True)
    decoder(cases, "decoder_layer_post_relu")
    decoder(cases, "decoder_layer_pre_gelu_padding", act="gelu", norm_first=True, memory_padding=True)
    decoder(cases, "decoder_layer_post_no_mask", batch=1, length=3, mask=None)
    encoder(cases, "encoder_layer_pre_relu_nobias_mask", norm_first=True, mask="float3d", bias=False)
    decoder(cases, "decoder_2layer_post_gelu_masks", batch=3, act="gelu", mask="float", padding=True,
            memory_mask="bool", memory_padding=True, layers=2, final_norm=True)
