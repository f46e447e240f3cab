"""The cases of attention's options: what nn.MultiheadAttention has of them from there, the rest from their formulas."""
import math

import torch
from torch import nn
from torch.nn import functional as F

from transformer_cases import leaf


def alibi_slopes(heads):
    """Press et al., 2022: of a power of two; of other numbers those of the one below, and every other of the next."""
    def of_power(n):
        return [2 ** (-8 * (i + 1) / n) for i in range(n)]

    below = 2 ** int(math.log2(heads))
    return (of_power(below) + of_power(2 * below)[::2])[:heads]


def rotated(x, rotary_dim, interleaved, offset):
    """x [batch, heads, tokens, d_k], from position `offset` on."""
    pairs = rotary_dim // 2
    angle = torch.outer(torch.arange(x.shape[2], dtype=torch.float64) + offset,
                        10000.0 ** (-torch.arange(pairs, dtype=torch.float64) / pairs))
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    turned, rest = x[..., :rotary_dim], x[..., rotary_dim:]
    a, b = (turned[..., 0::2], turned[..., 1::2]) if interleaved else turned.split(pairs, -1)
    both = a * cos - b * sin, a * sin + b * cos
    turned = torch.stack(both, -1).flatten(-2) if interleaved else torch.cat(both, -1)
    return torch.cat([turned, rest], -1)


def t5_bucket(distance, buckets, max_distance, two_sided):
    """T5: `distance` is key - query. Logarithms of 32-bit floats, as its code has them."""
    if two_sided:
        buckets //= 2
        later, distance = (distance > 0).long() * buckets, distance.abs()
    else:
        later, distance = 0, (-distance).clamp(min=0)
    exact = buckets // 2
    far = exact + ((distance.float() / exact).log() / math.log(max_distance / exact) * (buckets - exact)).long()
    return later + torch.where(distance < exact, distance, far.clamp(max=buckets - 1))


def relative_entries(seq_len, kv_len, offset, kind, size):
    """The entry of each query and key, and the number of entries. `size`: max_distance; buckets and max_distance; or rows, columns and a prefix."""
    query, key = torch.arange(seq_len)[:, None] + offset, torch.arange(kv_len)[None, :]
    if kind == "distance":
        return (key - query).clamp(-size[0], size[0]) + size[0], 2 * size[0] + 1
    if kind in ("buckets", "causal_buckets"):
        return t5_bucket(key - query, *size, kind == "buckets"), size[0]
    rows, cols, prefix = size
    grid = torch.stack(torch.meshgrid(torch.arange(rows), torch.arange(cols), indexing="ij")).flatten(1)
    apart = grid[:, :, None] - grid[:, None, :]
    if kind == "grid":
        entries, count = (apart[0] + rows - 1) * (2 * cols - 1) + apart[1] + cols - 1, (2 * rows - 1) * (2 * cols - 1)
    else:
        entries, count = apart[0].abs() * cols + apart[1].abs(), rows * cols
    if prefix:
        entries = F.pad(entries, (prefix, 0, prefix, 0), value=count)
        entries[prefix:, :prefix], entries[:prefix, :prefix] = count + 1, count + 2
        count += 3
    return entries[offset:offset + seq_len], count


def visible(seq_len, kv_len, window, offset):
    position = torch.arange(seq_len)[:, None] + offset
    key = torch.arange(kv_len)[None, :]
    left, right, sinks, *others = window
    return (key <= position + right) & ((key >= position - left) | (key < sinks)) & ((key != position) | (not others))


def attention(query, key, value, weights, options):
    """Output and weights of [batch, tokens, width] inputs."""
    heads, kv_heads, offset = options["num_heads"], options["num_kv_heads"], options["offset"]
    batch, seq_len, width = query.shape
    kv_len, d_k = key.shape[1], width // heads
    biases = (None,) * 3
    if "in_proj_bias" in weights:
        biases = weights["in_proj_bias"].split([width, kv_heads * d_k, kv_heads * d_k])
    matrices = (weights["in_proj_weight"].split(width) if "in_proj_weight" in weights
                else [weights[f"{letter}_proj_weight"] for letter in "qkv"])
    q, k, v = (F.linear(x, w, b).view(batch, -1, count, d_k).transpose(1, 2)
               for x, w, b, count in zip((query, key, value), matrices, biases, (heads, kv_heads, kv_heads)))
    norm, eps = options.get("query_key_norm"), options.get("query_key_epsilon")
    if norm == "rms":
        q, k = (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weights[f"{name}_norm.weight"]
                for name, x in (("query", q), ("key", k)))
    elif norm == "layer":
        q, k = (F.layer_norm(x, (d_k,), weights[f"{name}_norm.weight"], weights[f"{name}_norm.bias"], eps)
                for name, x in (("query", q), ("key", k)))
    elif norm == "unit":
        q, k = (x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + eps) for x in (q, k))
    if rotary_dim := options.get("rotary_dim"):
        q, k = (rotated(x, rotary_dim, options["interleaved"], at) for x, at in ((q, offset), (k, 0)))
    appended = 0
    if "bias_k" in weights:
        rows = (weights[name].view(1, kv_heads, 1, d_k).expand(batch, -1, -1, -1) for name in ("bias_k", "bias_v"))
        k, v = (torch.cat([x, row], 2) for x, row in zip((k, v), rows))
        appended += 1
    if options.get("add_zero_attn"):
        k, v = (F.pad(x, (0, 0, 0, 1)) for x in (k, v))
        appended += 1
    k, v = (x.repeat_interleave(heads // kv_heads, 1) for x in (k, v))
    scale = 1.0 if norm == "unit" or options.get("scaling") == "one" else 1 / math.sqrt(d_k)
    scores = (q * scale) @ k.transpose(-1, -2)
    if kind := options.get("score_scale"):
        t = weights["temperature"]
        factor = {"factor": t, "inverse": 1 / t, "exp": t.exp(), "clamped": t.clamp(max=math.log(100)).exp()}[kind]
        scores = scores * factor[:, None, None]
    if cap := options.get("softcap"):
        scores = cap * torch.tanh(scores / cap)
    of_tokens = scores[..., :kv_len]
    if options.get("alibi"):
        distance = (torch.arange(seq_len)[:, None] + offset - torch.arange(kv_len)[None, :]).abs()
        slopes = torch.tensor(alibi_slopes(heads), dtype=scores.dtype)
        of_tokens = of_tokens - slopes[:, None, None] * distance
    if relative := options.get("relative"):
        entries, _ = relative_entries(seq_len, kv_len, offset, relative, options["relative_size"])
        of_tokens = of_tokens + weights["relative_bias"][:, entries]
    if window := options.get("window"):
        of_tokens = of_tokens.masked_fill(~visible(seq_len, kv_len, window, offset), -math.inf)
    attn = torch.softmax(torch.cat([of_tokens, scores[..., kv_len:]], -1), -1)
    context = (attn @ v).transpose(1, 2).reshape(batch, seq_len, width)
    return F.linear(context, weights["out_proj.weight"], weights.get("out_proj.bias")), attn


def case(cases, name, seq_len=5, kv_len=None, num_heads=2, num_kv_heads=None, d_k=4, bias=True, add_bias_kv=False,
         offset=0, temperatures=(), **options):
    """Without kv_len it is self-attention. `temperatures`: one, or one for each head. A fourth number of a window hides the query's own key."""
    draw = cases.draw(name)
    self_attention, batch = kv_len is None, 2
    kv_heads, width, keys = num_kv_heads or num_heads, num_heads * d_k, kv_len or seq_len
    inputs = {"query": draw.normal(batch, seq_len, width)}
    if not self_attention:
        inputs.update(key=draw.normal(batch, keys, width), value=draw.normal(batch, keys, width))
    kv_width = kv_heads * d_k
    if kv_heads == num_heads:
        weights = {"in_proj_weight": draw.normal(3 * width, width, scale=width ** -0.5)}
    else:
        weights = {f"{letter}_proj_weight": draw.normal(rows, width, scale=width ** -0.5)
                   for letter, rows in zip("qkv", (width, kv_width, kv_width))}
    if bias:
        weights["in_proj_bias"] = draw.normal(width + 2 * kv_width, scale=0.3)
    weights["out_proj.weight"] = draw.normal(width, width, scale=width ** -0.5)
    if bias:
        weights["out_proj.bias"] = draw.normal(width, scale=0.3)
    if norm := options.get("query_key_norm"):
        options["query_key_epsilon"] = 1e-5
        for which in ("query", "key") if norm != "unit" else ():
            weights[f"{which}_norm.weight"] = 1 + draw.normal(d_k, scale=0.3)
            if norm == "layer":
                weights[f"{which}_norm.bias"] = draw.normal(d_k, scale=0.3)
    if temperatures:
        weights["temperature"] = torch.tensor(temperatures, dtype=torch.float64)
    if relative := options.get("relative"):
        _, entries = relative_entries(seq_len, keys, offset, relative, options["relative_size"])
        weights["relative_bias"] = draw.normal(num_heads, entries)
    if add_bias_kv:
        weights.update({key: draw.normal(1, 1, kv_width) for key in ("bias_k", "bias_v")})
    grad_out = draw.normal(batch, seq_len, width)
    of_formula = dict(options, num_heads=num_heads, num_kv_heads=kv_heads, offset=offset)

    def compute(dtype):
        def results(forward):
            x = {key: leaf(tensor, dtype) for key, tensor in inputs.items()}
            w = {key: leaf(tensor, dtype) for key, tensor in weights.items()}
            out, attn = forward((list(x.values()) * 3)[:3], w)
            gradients = torch.autograd.grad((out * grad_out.to(dtype)).sum(), [*x.values(), *w.values()])
            return [out, attn, *gradients]

        def module(qkv, w):
            layer = nn.MultiheadAttention(width, num_heads, bias=bias, add_bias_kv=add_bias_kv, batch_first=True,
                                          add_zero_attn=bool(options.get("add_zero_attn")), dtype=dtype)
            mask = None
            if window := options.get("window"):
                mask = ~visible(seq_len, keys, window, offset)
            return torch.nn.utils.stateless.functional_call(
                layer, w, tuple(qkv), dict(attn_mask=mask, average_attn_weights=False))

        ours = results(lambda qkv, w: attention(*qkv, w, of_formula))
        if kv_heads == num_heads and not options.keys() - {"window", "add_zero_attn"}:
            theirs = results(module)
            bound = 1e-3 if dtype == torch.float32 else 1e-9
            assert all((a - b).abs().max() <= bound for a, b in zip(theirs, ours)), (name, dtype)
            ours = theirs
        tensors = {key: tensor.to(dtype) for key, tensor in {**inputs, **weights, "grad_out": grad_out}.items()}
        tensors.update(zip(["out", "attn", *("grad." + key for key in [*inputs, *weights])], ours))
        return tensors

    cases.write(name, "mha", dict(
        options, batch=batch, tgt_len=seq_len, src_len=keys, embed_dim=width, num_heads=num_heads, num_kv_heads=kv_heads,
        head_dim=d_k, bias=bias, self_attention=int(self_attention), offset=offset, add_bias_kv=int(add_bias_kv),
        add_zero_attn=int(bool(options.get("add_zero_attn")))), compute)


def llama(cases, name, seq_len=5, vocabulary=7, num_heads=4, num_kv_heads=2, d_k=2, d_ff=10, layers=2):
    """RMSNorm, causal attention with grouped heads and rotary positions, SwiGLU; the head is the embedding."""
    draw = cases.draw(name)
    width, kv_width = num_heads * d_k, num_kv_heads * d_k
    weights = {"embedding.weight": draw.normal(vocabulary, width)}
    sizes = {"q_proj_weight": (width, width), "k_proj_weight": (kv_width, width), "v_proj_weight": (kv_width, width),
             "out_proj.weight": (width, width), "gate.weight": (d_ff, width), "up.weight": (d_ff, width),
             "down.weight": (width, d_ff)}
    for layer in range(layers):
        for key, size in sizes.items():
            weights[f"layers.{layer}.{key}"] = draw.normal(*size, scale=size[1] ** -0.5)
        for norm in ("norm1", "norm2"):
            weights[f"layers.{layer}.{norm}.weight"] = 1 + draw.normal(width, scale=0.3)
    weights["norm.weight"] = 1 + draw.normal(width, scale=0.3)
    ids = torch.tensor([draw.integer(0, vocabulary - 1) for _ in range(seq_len)])
    grad_out = draw.normal(seq_len, vocabulary)
    options = dict(num_heads=num_heads, num_kv_heads=num_kv_heads, offset=0, rotary_dim=d_k, interleaved=0,
                   window=[1000, 0, 0])

    def norm(x, weight):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight

    def compute(dtype):
        w = {key: leaf(tensor, dtype) for key, tensor in weights.items()}
        x = F.embedding(ids, w["embedding.weight"])
        for layer in range(layers):
            own = {key.removeprefix(f"layers.{layer}."): tensor for key, tensor in w.items()}
            tokens = norm(x, own["norm1.weight"])[None]
            x = x + attention(tokens, tokens, tokens, own, options)[0][0]
            tokens = norm(x, own["norm2.weight"])
            gated = F.silu(F.linear(tokens, own["gate.weight"])) * F.linear(tokens, own["up.weight"])
            x = x + F.linear(gated, own["down.weight"])
        out = norm(x, w["norm.weight"]) @ w["embedding.weight"].T
        gradients = torch.autograd.grad((out * grad_out.to(dtype)).sum(), list(w.values()))
        return {**w, "ids": ids, "grad_out": grad_out.to(dtype), "out": out,
                **{"grad." + key: d for key, d in zip(w, gradients)}}

    cases.write(name, "llama", dict(num_heads=num_heads, num_kv_heads=num_kv_heads, layers=layers), compute)


def attention_option_cases(cases):
    far = 1000  # beyond all keys
    case(cases, "mha_grouped_causal", num_heads=4, num_kv_heads=2, window=[far, 0, 0])
    case(cases, "mha_multi_query_cross", kv_len=7, num_heads=3, num_kv_heads=1, bias=False)
    case(cases, "mha_window_sinks", seq_len=8, window=[2, 1, 1])
    case(cases, "mha_window_softcap_offset", seq_len=3, kv_len=7, window=[2, 0, 2], softcap=0.8, offset=4)
    case(cases, "mha_alibi_causal", num_heads=3, window=[far, 0, 0], alibi=1)
    case(cases, "mha_rms_norm_rotary", d_k=6, query_key_norm="rms", rotary_dim=4, interleaved=1)
    case(cases, "mha_layer_norm_grouped", kv_len=6, num_heads=4, num_kv_heads=2, query_key_norm="layer")
    case(cases, "mha_temperature", scaling="one", score_scale="exp", temperatures=(-0.7,), window=[far, far, 0, 1])
    case(cases, "mha_temperature_heads_grouped", kv_len=6, num_heads=4, num_kv_heads=2, score_scale="factor", temperatures=(0.5, -1.5, 2, 0))
    case(cases, "mha_temperature_inverse_rotary", query_key_norm="rms", rotary_dim=4, interleaved=0, score_scale="inverse", temperatures=(1.5, 3))
    case(cases, "mha_cosine_clamped", num_heads=3, query_key_norm="unit", score_scale="clamped", temperatures=(2.3, 5, -1), window=[far, 0, 0])
    case(cases, "mha_rotary_offset", seq_len=3, kv_len=6, rotary_dim=4, interleaved=0, offset=3)
    case(cases, "mha_relative_distance_grouped", seq_len=7, num_heads=4, num_kv_heads=2, d_k=3, relative="distance", relative_size=[2], window=[far, 0, 0])
    case(cases, "mha_relative_buckets", seq_len=24, d_k=2, scaling="one", relative="buckets", relative_size=[12, 16])
    case(cases, "mha_relative_buckets_causal_cross", seq_len=4, kv_len=24, relative="causal_buckets", relative_size=[10, 17], offset=20)
    case(cases, "mha_relative_grid", seq_len=12, num_heads=3, d_k=5, relative="grid", relative_size=[3, 4, 0])
    case(cases, "mha_relative_grid_prefix", seq_len=7, relative="grid", relative_size=[2, 3, 1], softcap=1.5, alibi=1)
    case(cases, "mha_relative_grid_distance", seq_len=6, d_k=6, bias=False, relative="grid_distance", relative_size=[3, 2, 0])
    case(cases, "mha_relative_bias_kv_cross", seq_len=3, kv_len=6, relative="grid_distance", relative_size=[3, 2, 0], offset=3, add_bias_kv=True, add_zero_attn=1)
    llama(cases, "llama_tied")
    case(cases, "mha_bias_kv_causal", window=[far, 0, 0], add_bias_kv=True)
    case(cases, "mha_cross_bias_kv_zero_attn", kv_len=3, add_bias_kv=True, add_zero_attn=1)
