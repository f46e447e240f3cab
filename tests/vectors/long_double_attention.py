"""Multi-head attention and its gradients in numpy's long double, for the rounding errors of PyTorch in double.

Where long double is no wider than double (some processors), the errors come out as zero or tiny, and a comparison is with
PyTorch's own values, as for cases without them.
"""
import numpy as np


def attention_in_long_double(inputs, weights, heads, attn_mask, key_padding_mask, add_zero_attn, grad_out):
    """out, attn, then the gradients of sum(out * grad_out) by each input and each weight, in their order. The arguments
    are those of make_vectors.py's mha(), as dicts of arrays; a fully masked row is zero."""
    x = {name: np.asarray(value, np.longdouble) for name, value in inputs.items()}
    w = {name: np.asarray(value, np.longdouble) for name, value in weights.items()}
    dy = np.asarray(grad_out, np.longdouble)
    query, key, value = (list(x.values()) * 3)[:3]
    batch, tgt_len, width = query.shape
    keys, d = key.shape[1], width // heads
    scale = 1 / np.sqrt(np.longdouble(d))
    matrices = np.split(w["in_proj_weight"], 3) if "in_proj_weight" in w else [w[f"{name}_proj_weight"] for name in "qkv"]
    biases = np.split(w["in_proj_bias"], 3) if "in_proj_bias" in w else [np.longdouble(0)] * 3

    def split(rows):  # [batch, tokens, width] to [batch, heads, tokens, d]
        return rows.reshape(batch, -1, heads, d).swapaxes(1, 2)

    def join(of_heads):
        return of_heads.swapaxes(1, 2).reshape(batch, -1, width)

    def append(rows, name):
        appended = [w[name]] if name in w else []
        appended += [np.zeros((1, 1, width), np.longdouble)] if add_zero_attn else []
        return np.concatenate([rows, *(np.repeat(row, batch, 0) for row in appended)], 1)

    q, k, v = (rows @ matrix.T + bias for rows, matrix, bias in zip((query, key, value), matrices, biases))
    q, k, v = split(q), split(append(k, "bias_k")), split(append(v, "bias_v"))
    scores = q @ k.swapaxes(2, 3) * scale
    if attn_mask is not None:
        mask = np.asarray(attn_mask)
        mask = np.where(mask, -np.inf, 0) if mask.dtype == bool else mask
        scores[..., :keys] += mask.reshape(batch, heads, tgt_len, keys) if mask.ndim == 3 else mask
    if key_padding_mask is not None:
        padding = np.asarray(key_padding_mask)[:, None, None, :]
        scores[..., :keys] = np.where(padding, -np.inf, scores[..., :keys])
    largest = scores.max(-1, keepdims=True)
    attn = np.exp(scores - np.where(np.isfinite(largest), largest, 0))
    attn /= np.maximum(attn.sum(-1, keepdims=True), np.finfo(np.longdouble).tiny)
    context = join(attn @ v)
    out = context @ w["out_proj.weight"].T + w.get("out_proj.bias", 0)

    d_context = split(dy @ w["out_proj.weight"])
    d_attn = d_context @ v.swapaxes(2, 3)
    d_scores = attn * (d_attn - (attn * d_attn).sum(-1, keepdims=True)) * scale
    d_q, d_k, d_v = join(d_scores @ k), join(d_scores.swapaxes(2, 3) @ q), join(attn.swapaxes(2, 3) @ d_context)
    gradients = {name: rows[:, keys:keys + 1].sum(0, keepdims=True) for name, rows in (("bias_k", d_k), ("bias_v", d_v))}
    d_projected = (d_q, d_k[:, :keys], d_v[:, :keys])
    d_matrices = [np.einsum("bto,bti->oi", d_rows, rows) for d_rows, rows in zip(d_projected, (query, key, value))]
    gradients.update(zip((f"{name}_proj_weight" for name in "qkv"), d_matrices))
    gradients["in_proj_weight"] = np.concatenate(d_matrices) if "in_proj_weight" in w else None
    gradients["in_proj_bias"] = np.concatenate([rows.sum((0, 1)) for rows in d_projected])
    gradients["out_proj.weight"] = np.einsum("bto,bti->oi", dy, context)
    gradients["out_proj.bias"] = dy.sum((0, 1))
    d_inputs = [rows @ matrix for rows, matrix in zip(d_projected, matrices)]
    gradients.update(zip(x, d_inputs if len(x) == 3 else [sum(d_inputs)]))
    return [out, attn, *(gradients[name] for name in (*x, *w))]
