"""The cases of the layers around attention: normalisation, activation, losses, encoder, decoder, a trained model."""
import math

import torch
from torch import nn
from torch.nn import functional as F


def leaf(tensor, dtype):
    return tensor.detach().to(dtype).clone().requires_grad_(True)


# ---- Normalisation and activation ----

def layer_norm(cases, name, shape, eps=1e-5, affine=True, scale=1.0, shift=0.0, constant_row=False):
    draw = cases.draw(name)
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


def activation(cases, name, forward):
    """On a grid over [-9, 9]."""
    x = torch.linspace(-9, 9, 73, dtype=torch.float64).float().double()
    grad_out = cases.draw(name).normal(73)

    def compute(dtype):
        leaf_x, g = leaf(x, dtype), grad_out.to(dtype)
        out = forward(leaf_x)
        gradient, = torch.autograd.grad((out * g).sum(), leaf_x)
        return {"input": leaf_x, "grad_out": g, "out": out, "grad.input": gradient}

    cases.write(name, "activation", dict(kind=name, shape=[73]), compute)


# ---- Losses ----

def cross_entropy(cases, name, rows=6, classes=10, reduction="mean", smoothing=0.0, weighted=False, ignore=None,
                  scale=2.0):
    draw = cases.draw(name)
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


def huber(cases, name, reduction, delta, shape=(5, 4)):
    draw = cases.draw(name)
    x, target = draw.normal(*shape, scale=2.0), draw.normal(*shape, scale=2.0)

    def compute(dtype):
        leaf_x, t = leaf(x, dtype), target.to(dtype)
        loss = F.huber_loss(leaf_x, t, reduction=reduction, delta=delta)
        gradient, = torch.autograd.grad(loss, leaf_x)
        return {"input": leaf_x, "target": t, "loss": loss.reshape(1), "grad.input": gradient}

    cases.write(name, "huber", dict(reduction=reduction, delta=delta, shape=list(shape)), compute)


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


def causal_mask(length, dtype):
    later = torch.ones(length, length, dtype=torch.bool).triu(1)
    return torch.zeros(length, length, dtype=dtype).masked_fill(later, -math.inf)


def padding_mask(batch, length):
    """Sequence i has length - 1 - i real tokens, but at least one."""
    return torch.tensor([[token >= max(1, length - 1 - i) for token in range(length)] for i in range(batch)])


def gradients_of(module, inputs, forward, grad_out):
    """Inputs, parameters, output, and the gradients of sum(out * grad_out)."""
    parameters = dict(module.named_parameters())
    out = forward(*inputs.values())
    leaves = [*inputs.values(), *parameters.values()]
    names = [*("grad." + name for name in [*inputs, *parameters])]
    gradients = torch.autograd.grad((out * grad_out).sum(), leaves)
    return {**inputs, "grad_out": grad_out, "out": out, **{"param." + name: p for name, p in parameters.items()},
            **dict(zip(names, gradients))}


def layer_metadata(width, heads, d_ff, act, norm_first, eps):
    return dict(embed_dim=width, num_heads=heads, dim_feedforward=d_ff, norm_first=int(norm_first), layer_norm_eps=eps,
                activation="gelu_erf" if act == "gelu" else act, dropout=0)


def encoder(cases, name, batch=2, length=5, heads=2, head_dim=4, d_ff=16, act="relu", norm_first=False, causal=False,
            padding=False, layers=1, eps=1e-5, final_norm=False):
    draw = cases.draw(name)
    if cases.random_shapes:
        batch, length, heads = draw.integer(1, 3), draw.integer(2, 8), draw.choice([1, 2, 3, 4])
        head_dim, d_ff = draw.integer(2, 7), draw.integer(3, 24)
    width = heads * head_dim
    src, grad_out = draw.normal(batch, length, width), draw.normal(batch, length, width)

    def module(dtype):
        layer = nn.TransformerEncoderLayer(width, heads, d_ff, 0.0, act, eps, batch_first=True, norm_first=norm_first,
                                           dtype=dtype)
        if layers == 1:
            return layer
        return nn.TransformerEncoder(layer, layers, nn.LayerNorm(width, eps, dtype=dtype) if final_norm else None)

    parameters = draw_parameters(module(torch.float64), draw)
    masks = {}
    if padding:
        masks["key_padding_mask"] = padding_mask(batch, length)

    def compute(dtype):
        if causal:
            masks["attn_mask"] = causal_mask(length, dtype)
        m = module(dtype).train()
        m.load_state_dict({key: tensor.to(dtype) for key, tensor in parameters.items()})
        arguments = {"src_mask" if layers == 1 else "mask": masks.get("attn_mask"),
                     "src_key_padding_mask": masks.get("key_padding_mask")}
        tensors = gradients_of(m, {"src": leaf(src, dtype)}, lambda x: m(x, **arguments), grad_out.to(dtype))
        return {**tensors, **masks}

    cases.write(name, "encoder_layer" if layers == 1 else "encoder", dict(
        layer_metadata(width, heads, d_ff, act, norm_first, eps), batch=batch, len=length, causal=int(causal),
        layers=layers, final_norm=int(final_norm)), compute)


def decoder(cases, name, batch=2, length=4, memory_len=5, heads=2, head_dim=3, d_ff=7, act="relu", norm_first=False,
            causal=True, padding=False, eps=1e-5):
    draw = cases.draw(name)
    if cases.random_shapes:
        batch, length, memory_len = draw.integer(1, 3), draw.integer(2, 7), draw.integer(2, 7)
        heads, head_dim, d_ff = draw.choice([1, 2, 3, 4]), draw.integer(2, 6), draw.integer(3, 20)
    width = heads * head_dim
    tgt, memory = draw.normal(batch, length, width), draw.normal(batch, memory_len, width)
    grad_out = draw.normal(batch, length, width)

    def module(dtype):
        return nn.TransformerDecoderLayer(width, heads, d_ff, 0.0, act, eps, batch_first=True, norm_first=norm_first,
                                          dtype=dtype)

    parameters = draw_parameters(module(torch.float64), draw)
    masks = {}
    if padding:
        masks["memory_key_padding_mask"] = padding_mask(batch, memory_len)

    def compute(dtype):
        if causal:
            masks["attn_mask"] = causal_mask(length, dtype)
        m = module(dtype).train()
        m.load_state_dict({key: tensor.to(dtype) for key, tensor in parameters.items()})
        tensors = gradients_of(
            m, {"tgt": leaf(tgt, dtype), "memory": leaf(memory, dtype)},
            lambda x, mem: m(x, mem, tgt_mask=masks.get("attn_mask"),
                             memory_key_padding_mask=masks.get("memory_key_padding_mask")), grad_out.to(dtype))
        return {**tensors, **masks}

    cases.write(name, "decoder_layer", dict(
        layer_metadata(width, heads, d_ff, act, norm_first, eps), batch=batch, len=length, memory_len=memory_len,
        causal=int(causal)), compute)


def transformer_cases(cases):
    layer_norm(cases, "layer_norm_d16", (6, 16))
    layer_norm(cases, "layer_norm_d5_eps", (4, 5), eps=1e-2, scale=0.05)
    layer_norm(cases, "layer_norm_noaffine", (2, 3, 12), affine=False)
    layer_norm(cases, "layer_norm_offset1e3", (4, 32), shift=1000.0)
    layer_norm(cases, "layer_norm_constant_row", (3, 8), constant_row=True)
    activation(cases, "relu", F.relu)
    activation(cases, "silu", F.silu)
    activation(cases, "gelu_erf", F.gelu)
    activation(cases, "gelu_tanh", lambda x: F.gelu(x, approximate="tanh"))
    cross_entropy(cases, "ce_mean")
    cross_entropy(cases, "ce_sum", reduction="sum")
    cross_entropy(cases, "ce_none", reduction="none")
    cross_entropy(cases, "ce_ignore_index", ignore=-100)
    cross_entropy(cases, "ce_extreme", scale=80.0)
    cross_entropy(cases, "ce_weight_smooth", weighted=True, smoothing=0.1, ignore=3)
    cross_entropy(cases, "ce_weight_smooth_sum", weighted=True, smoothing=0.2, reduction="sum")
    huber(cases, "huber_mean", "mean", 1.0)
    huber(cases, "huber_sum_delta", "sum", 0.3)
    encoder(cases, "encoder_layer_post_relu")
    encoder(cases, "encoder_layer_pre_gelu", act="gelu", norm_first=True)
    encoder(cases, "encoder_layer_post_gelu_padding", batch=3, act="gelu", padding=True)
    encoder(cases, "encoder_layer_pre_relu_causal", norm_first=True, causal=True, heads=1, head_dim=5, d_ff=7)
    encoder(cases, "encoder_2layer_pre_gelu_finalnorm", batch=1, act="gelu", norm_first=True, layers=2,
            final_norm=True)
    decoder(cases, "decoder_layer_post_relu")
    decoder(cases, "decoder_layer_pre_gelu_padding", act="gelu", norm_first=True, padding=True)
    decoder(cases, "decoder_layer_post_no_mask", batch=1, length=3, causal=False)
