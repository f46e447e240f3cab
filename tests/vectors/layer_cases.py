"""The cases of layers that models of images and of time have: LayerScale, PReLU, convolutions, pooling over windows."""
import math

import torch
from torch.nn import functional as F

from transformer_cases import leaf, random_shape


def write(cases, name, family, metadata, x, weights, forward, draw):
    """out = forward(input, **weights), and the gradients. Rows of input and out are tokens."""
    grad_out = draw.normal(*forward(x, **weights).shape)

    def compute(dtype):
        leaves = {"input": leaf(x, dtype), **{key: leaf(w, dtype) for key, w in weights.items()}}
        g = grad_out.to(dtype)
        out = forward(leaves["input"], **{key: leaves[key] for key in weights})
        gradients = torch.autograd.grad((out * g).sum(), list(leaves.values()))
        return {**leaves, "grad_out": g, "out": out, **{"grad." + key: d for key, d in zip(leaves, gradients)}}

    cases.write(name, family, metadata, compute)


def layer_scale(cases, name, shape):
    draw = cases.draw(name)
    if cases.random_shapes:
        shape = random_shape(draw, len(shape))
    write(cases, name, "layer_scale", dict(shape=list(shape)), draw.normal(*shape),
          {"weight": draw.normal(shape[-1], scale=0.5)}, lambda x, weight: x * weight, draw)


def feature_bias(cases, name, shape):
    draw = cases.draw(name)
    if cases.random_shapes:
        shape = random_shape(draw, len(shape))
    write(cases, name, "feature_bias", dict(shape=list(shape)), draw.normal(*shape), {"bias": draw.normal(shape[-1], scale=0.5)},
          lambda x, bias: x + bias, draw)


def prelu(cases, name, slopes, shape=(6, 9)):
    """nn.PReLU of tokens, whose features are its channels."""
    draw = cases.draw(name)
    if cases.random_shapes:
        shape = random_shape(draw, len(shape))
    write(cases, name, "prelu", dict(shape=list(shape)), draw.normal(*shape),
          {"weight": draw.normal(1 if slopes == 1 else shape[-1], scale=0.5)}, F.prelu, draw)


def sequence_pooling(cases, name, seq_len, width):
    """CCT's pooling of tokens: softmax over the scores of a Linear, and the weighted sum."""
    draw = cases.draw(name)
    if cases.random_shapes:
        seq_len, width = draw.integer(1, 9), draw.integer(1, 20)
    weights = {"weight": draw.normal(1, width, scale=0.5), "bias": draw.normal(1)}
    write(cases, name, "sequence_pooling", dict(seq_len=seq_len), draw.normal(seq_len, width), weights,
          lambda x, weight, bias: torch.matmul(F.softmax(F.linear(x, weight, bias), dim=0).transpose(-1, -2), x), draw)


def glu(cases, name, activation, gate, shape=(5, 14)):
    """F.glu of tokens, or with another gate: the first or the second half."""
    draw = cases.draw(name)
    if cases.random_shapes:
        shape = (draw.integer(1, 9), 2 * draw.integer(1, 20))

    def forward(x):
        if activation == "sigmoid" and gate == "second":
            return F.glu(x)
        a, b = x.chunk(2, -1)
        of = getattr(F, activation)
        return of(a) * b if gate == "first" else a * of(b)

    write(cases, name, "glu", dict(activation=activation, gate=gate, shape=list(shape)), draw.normal(*shape), {}, forward, draw)


def group_norm(cases, name, shape, groups, eps=1e-5, affine=True):
    """F.group_norm of tokens, whose features are its channels."""
    draw = cases.draw(name)
    if cases.random_shapes:
        shape = (draw.integer(1, 9), groups * draw.integer(1, 6))
    weights = {"weight": draw.normal(shape[1], scale=0.5) + 1, "bias": draw.normal(shape[1], scale=0.5)} if affine else {}
    write(cases, name, "group_norm", dict(groups=groups, eps=eps, shape=list(shape)), draw.normal(*shape), weights,
          lambda x, weight=None, bias=None: F.group_norm(x.transpose(0, 1)[None], groups, weight, bias, eps)[0].transpose(0, 1), draw)


def reversible_norm(cases, name, shape, forecast, eps=1e-5, affine=True, subtract_last=False):
    """RevIN around a Linear over tokens: features without their mean, or their last value, and deviation, which the forecast gets back."""
    draw = cases.draw(name)
    if cases.random_shapes:
        shape, forecast = [draw.integer(2, 9), draw.integer(1, 20)], draw.integer(1, 9)
    weights = {"weight": 1 + draw.normal(shape[1], scale=0.3), "bias": draw.normal(shape[1])} if affine else {}
    weights |= {"linear.weight": draw.normal(forecast, shape[0], scale=0.5), "linear.bias": draw.normal(forecast)}

    def forward(x, weight=None, bias=None, **linear):
        mean = x.mean(0, keepdim=True)
        deviation = torch.sqrt(x.var(0, keepdim=True, unbiased=False) + eps)
        mean = x[-1:] if subtract_last else mean
        normalized = (x - mean) / deviation
        normalized = normalized if weight is None else normalized * weight + bias
        out = F.linear(normalized.transpose(0, 1), linear["linear.weight"], linear["linear.bias"]).transpose(0, 1)
        out = out if weight is None else (out - bias) / (weight + eps * eps)
        return out * deviation + mean

    write(cases, name, "reversible_norm", dict(eps=eps, affine=int(affine), **({"subtract_last": 1} if subtract_last else {})), draw.normal(*shape) + 3 * draw.normal(1, shape[1]), weights, forward, draw)


def sum_of_layers(cases, name, shape, width):
    """A Linear beside a Linear with a GELU, added up."""
    draw = cases.draw(name)
    if cases.random_shapes:
        shape, width = random_shape(draw, len(shape)), draw.integer(1, 20)
    weights = {f"{part}.{leaf_}": draw.normal(*((width, shape[1]) if leaf_ == "weight" else (width,)), scale=0.5)
               for part in ("first", "second") for leaf_ in ("weight", "bias")}

    def forward(x, **weights):
        first, second = (F.linear(x, weights[f"{part}.weight"], weights[f"{part}.bias"]) for part in ("first", "second"))
        return first + F.gelu(second)

    write(cases, name, "sum", {}, draw.normal(*shape), weights, forward, draw)


def product_of_layers(cases, name, shape, width=None):
    """A Linear times the sigmoid of another Linear; without a width, the input times that of a Linear of its mean."""
    draw, excites = cases.draw(name), width is None
    if cases.random_shapes:
        shape, width = random_shape(draw, len(shape)), draw.integer(1, 20)
    width = shape[1] if excites else width
    weights = {f"{part}.{leaf_}": draw.normal(*((width, shape[1]) if leaf_ == "weight" else (width,)), scale=0.5)
               for part in ("first", "second")[excites:] for leaf_ in ("weight", "bias")}

    def forward(x, **weights):
        linear = lambda part, x: F.linear(x, weights[f"{part}.weight"], weights[f"{part}.bias"])  # noqa: E731
        return x * torch.sigmoid(linear("second", x.mean(0, keepdim=True))) if excites else linear("first", x) * torch.sigmoid(linear("second", x))

    write(cases, name, "product", {}, draw.normal(*shape), weights, forward, draw)


def each_group(cases, name, groups, tokens, width, out, strided=False):
    """A Linear over the tokens of each group, which are side by side, or `strided`: every group-th one."""
    draw = cases.draw(name)
    if cases.random_shapes:
        groups, tokens, width, out = (draw.integer(1, 6) for _ in range(4))
    weights = {"linear.weight": draw.normal(out, tokens, scale=0.5), "linear.bias": draw.normal(out)}

    def forward(x, **linear):
        x = x.reshape(tokens, groups, width).transpose(0, 1) if strided else x.reshape(groups, tokens, width)
        x = F.linear(x.transpose(1, 2), linear["linear.weight"], linear["linear.bias"]).transpose(1, 2)
        return (x.transpose(0, 1) if strided else x).reshape(groups * out, width)

    write(cases, name, "each_group", dict(groups=groups, strided=int(strided)), draw.normal(groups * tokens, width), weights, forward, draw)


def shared_repeat(cases, name, shape, times):
    """A Linear and a GELU with a residual connection, called in a loop."""
    draw = cases.draw(name)
    if cases.random_shapes:
        shape, times = random_shape(draw, len(shape)), draw.integer(1, 6)
    weights = {"linear.weight": draw.normal(shape[1], shape[1], scale=0.5 / math.sqrt(shape[1])), "linear.bias": draw.normal(shape[1], scale=0.5)}

    def forward(x, **linear):
        for _ in range(times):
            x = x + F.gelu(F.linear(x, linear["linear.weight"], linear["linear.bias"]))
        return x

    write(cases, name, "shared_repeat", {"times": times}, draw.normal(*shape), weights, forward, draw)


def reduced_attention(cases, name, shape, kept, heads):
    """Attention whose keys and values are a Linear over tokens, as Linformer's of shared keys and values."""
    draw = cases.draw(name)
    if cases.random_shapes:
        shape, heads = (draw.integer(2, 9), 2 * draw.integer(1, 5)), 2
        kept = draw.integer(1, shape[0])
    tokens, width = shape
    sizes = {"reduction": (kept, tokens)} | {part: (width, width) for part in ("query", "key", "value", "output")}
    weights = {f"{part}.{leaf_}": draw.normal(*(size if leaf_ == "weight" else size[:1]), scale=0.5) for part, size in sizes.items() for leaf_ in ("weight", "bias")}

    def forward(x, **weights):
        linear = lambda part, x: F.linear(x, weights[f"{part}.weight"], weights[f"{part}.bias"])  # noqa: E731
        split = lambda x: x.view(len(x), heads, -1).transpose(0, 1)  # noqa: E731
        memory = linear("reduction", x.t()).t()
        q, k, v = split(linear("query", x)), split(linear("key", memory)), split(linear("value", memory))
        return linear("output", ((q @ k.transpose(1, 2) / math.sqrt(width // heads)).softmax(-1) @ v).transpose(0, 1).reshape(tokens, width))

    write(cases, name, "reduced_attention", {"heads": heads}, draw.normal(*shape), weights, forward, draw)


def deviation_norm(cases, name, shape, eps):
    """The Annotated Transformer's norm of tokens, by the unbiased standard deviation."""
    draw = cases.draw(name)
    if cases.random_shapes:
        shape = (draw.integer(1, 9), draw.integer(2, 20))
    width = shape[-1]
    weights = {"weight": (draw.normal(width, scale=0.5) + 1).float().double(), "bias": draw.normal(width, scale=0.5)}
    write(cases, name, "deviation_norm", dict(normalized_shape=width, eps=eps, shape=list(shape)), draw.normal(*shape), weights,
          lambda x, weight, bias: weight * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + bias, draw)


def embedding_sum(cases, name, seq_len=6, rows=(7, 2), width=5):
    """Two tables, as BERT's words and token types. `input` has the ids of both, [2, seq_len]."""
    draw = cases.draw(name)
    if cases.random_shapes:
        seq_len, width = draw.integer(1, 9), draw.integer(1, 19)
    ids = torch.tensor([[draw.integer(0, count - 1) for _ in range(seq_len)] for count in rows])
    tables = {f"{key}.weight": draw.normal(count, width) for key, count in zip(("first", "second"), rows)}
    grad_out = draw.normal(seq_len, width)

    def compute(dtype):
        leaves = {key: leaf(table, dtype) for key, table in tables.items()}
        out = sum(F.embedding(row, table) for row, table in zip(ids, leaves.values()))
        gradients = torch.autograd.grad((out * grad_out.to(dtype)).sum(), list(leaves.values()))
        return {**leaves, "input": ids, "grad_out": grad_out.to(dtype), "out": out,
                **{"grad." + key: d for key, d in zip(leaves, gradients)}}

    cases.write(name, "embedding_sum", dict(seq_len=seq_len), compute)


def conv(cases, name, size, d_in, d_out, kernel, stride=None, padding=None, groups=1, bias=True, causal=False,
         dilation=None, extra=None):
    """nn.Conv1d or nn.Conv2d, of tokens: `size`, `kernel`, `stride`, `padding` and `dilation` have a number for each dimension, `extra` that of zeros
    more behind than in front."""
    draw = cases.draw(name)
    if cases.random_shapes:
        size = [draw.integer(k * d, k * d + 9) for k, d in zip(kernel, dilation or [1] * len(kernel))]
        groups = 1 if groups == 1 else draw.integer(2, 4)
        depthwise = d_in == groups
        d_in = groups if depthwise else groups * draw.integer(1, 5)
        d_out = groups if depthwise else groups * draw.integer(1, 5)
    stride, padding, spread = stride or [1] * len(size), padding or [0] * len(size), dilation or [1] * len(size)
    weights = {"weight": draw.normal(d_out, d_in // groups, *kernel, scale=0.5)}
    if bias:
        weights["bias"] = draw.normal(d_out, scale=0.5)

    def forward(x, weight, bias=None):
        x = x.transpose(0, 1).reshape(1, -1, *size)
        if causal:
            x = F.pad(x, ((kernel[0] - 1) * spread[0], 0))
        if extra:
            x = F.pad(x, [end for zeros, more in reversed([*zip(padding, extra)]) for end in (zeros, zeros + more)])
        of = F.conv1d if len(size) == 1 else F.conv2d
        y = of(x, weight, bias, stride=stride, padding=0 if extra else padding, dilation=spread, groups=groups)
        return y.flatten(2)[0].transpose(0, 1)

    write(cases, name, f"conv{len(size)}d",
          dict(size=list(size), stride=list(stride), padding=list(padding), groups=groups, causal=int(causal),
               **(dict(dilation=list(dilation)) if dilation else {}), **(dict(extra_padding=list(extra)) if extra else {})),
          draw.normal(torch.Size(size).numel(), d_in), weights, forward, draw)


def repeat_last_token(cases, name, shape, times):
    """nn.ReplicationPad1d at the end of a sequence."""
    draw = cases.draw(name)
    if cases.random_shapes:
        shape, times = random_shape(draw, len(shape)), draw.integer(1, 9)
    write(cases, name, "repeat_last_token", dict(times=times), draw.normal(*shape), {}, lambda x: F.pad(x.transpose(0, 1)[None], (0, times), mode="replicate")[0].transpose(0, 1), draw)


def pool(cases, name, kind, size, width, kernel, stride, **padding):
    """nn.AvgPool1d, nn.AvgPool2d, nn.MaxPool1d or nn.MaxPool2d, of tokens: `kind` is "avg" or "max"."""
    draw = cases.draw(name)
    if cases.random_shapes:
        size, width = [draw.integer(k, k + 9) for k in kernel], draw.integer(1, 20)

    def forward(x):
        x = x.transpose(0, 1).reshape(1, -1, *size)
        of = getattr(F, f"{kind}_pool{len(size)}d")
        return of(x, kernel, stride=stride, **padding).flatten(2)[0].transpose(0, 1)

    write(cases, name, f"{kind}_pool{len(size)}d",
          dict(size=list(size), kernel=list(kernel), stride=list(stride),
               **{key: int(value) if isinstance(value, bool) else value for key, value in padding.items()}),
          draw.normal(torch.Size(size).numel(), width), {}, forward, draw)


def layer_cases(cases):
    layer_scale(cases, "layer_scale", (5, 9))
    feature_bias(cases, "feature_bias", (5, 7))
    prelu(cases, "prelu", 1)
    prelu(cases, "prelu_by_feature", 9)
    glu(cases, "glu", "sigmoid", "second")
    glu(cases, "glu_silu_first", "silu", "first")
    group_norm(cases, "group_norm", (7, 12), 3)
    group_norm(cases, "group_norm_noaffine", (5, 19), 1, eps=1e-2, affine=False)
    reversible_norm(cases, "reversible_norm", (7, 5), 3, eps=1e-2)
    reversible_norm(cases, "reversible_norm_noaffine", (6, 4), 6, affine=False)
    reversible_norm(cases, "reversible_norm_last", (7, 5), 3, eps=1e-2, subtract_last=True)
    reversible_norm(cases, "reversible_norm_last_noaffine", (6, 4), 6, affine=False, subtract_last=True)
    sum_of_layers(cases, "sum", (5, 7), 9)
    product_of_layers(cases, "product", (5, 7), 9)
    product_of_layers(cases, "product_excitation", (6, 8))
    repeat_last_token(cases, "repeat_last_token", (5, 7), 3)
    each_group(cases, "each_group", 3, 4, 5, 2)
    each_group(cases, "each_group_strided", 3, 4, 5, 6, strided=True)
    shared_repeat(cases, "shared_repeat", (5, 7), 4)
    reduced_attention(cases, "reduced_attention", (7, 6), 3, 2)
    deviation_norm(cases, "deviation_norm", (6, 16), 1e-6)
    deviation_norm(cases, "deviation_norm_eps", (3, 7), 0.25)
    sequence_pooling(cases, "sequence_pooling", 7, 10)
    embedding_sum(cases, "embedding_sum")
    conv(cases, "conv1d_same", [11], 3, 5, [3], padding=[1])
    conv(cases, "conv1d_strided_nobias", [13], 4, 3, [4], stride=[3], padding=[2], bias=False)
    conv(cases, "conv1d_groups", [9], 6, 4, [2], groups=2)
    conv(cases, "conv1d_depthwise", [10], 7, 7, [5], padding=[2], groups=7)
    conv(cases, "conv1d_causal", [12], 3, 4, [4], causal=True)
    conv(cases, "conv1d_dilated", [13], 3, 4, [3], padding=[2], dilation=[3])
    conv(cases, "conv1d_dilated_causal", [9], 4, 4, [3], groups=4, dilation=[2], causal=True)
    conv(cases, "conv2d_dilated", [6, 8], 2, 3, [3, 2], stride=[1, 2], padding=[1, 1], dilation=[2, 3])
    conv(cases, "conv1d_even", [9], 2, 3, [4], padding=[1], extra=[1])
    conv(cases, "conv1d_in_front", [8], 4, 4, [5], padding=[3], groups=4, extra=[-2])
    conv(cases, "conv2d_even", [4, 5], 2, 3, [3, 2], padding=[2, 0], extra=[-1, 1])
    conv(cases, "conv2d_patches", [6, 9], 2, 5, [3, 3], stride=[3, 3])
    conv(cases, "conv2d_strided", [5, 6], 3, 4, [3, 2], stride=[2, 1], padding=[1, 0])
    conv(cases, "conv2d_depthwise_nobias", [4, 5], 3, 3, [3, 3], padding=[1, 1], groups=3, bias=False)
    pool(cases, "avg_pool1d", "avg", [11], 6, [3], [2])
    pool(cases, "avg_pool2d", "avg", [5, 6], 3, [2, 3], [2, 1])
    pool(cases, "avg_pool1d_padded", "avg", [11], 6, [3], [2], padding=[1])
    pool(cases, "avg_pool1d_ceil", "avg", [10], 5, [3], [2], padding=[1], ceil_mode=True)
    pool(cases, "avg_pool2d_ceil_valid", "avg", [6, 8], 4, [3, 2], [2, 3], padding=[1, 1], ceil_mode=True, count_include_pad=False)
    pool(cases, "max_pool2d_ceil", "max", [7, 8], 3, [2, 3], [2, 2], padding=[0, 1], ceil_mode=True)
    pool(cases, "avg_pool2d_padded_valid", "avg", [5, 6], 3, [2, 3], [2, 1], padding=[1, 1], count_include_pad=False)
    pool(cases, "max_pool1d", "max", [11], 6, [3], [2])
    pool(cases, "max_pool2d_padded", "max", [6, 7], 3, [3, 3], [2, 2], padding=[1, 1])
