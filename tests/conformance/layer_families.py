"""Families of layers with one input: normalisation and activation."""
import math
from operator import mul

from case_source import Case, Skip, boolean, braces, concatenate, onnx_epsilon


def layer_case(source, layer, x, out, parameters=(), gradients=(), terms=1, expected=None, epsilon=None,
               magnitudes=None):
    """`parameters`: our names of tensors in the file, in the library's order; `gradients`: of (input, *parameters)."""
    data = {"input": x}
    if parameters:
        data["parameters"] = concatenate([tensor for _, tensor in parameters])
    expected = {"out": out, "out_inference": out, **(expected or {})}
    if gradients:
        data["grad_out"] = source.get("grad_out", *x.shape)
        expected.update(zip(["grad.input", *("grad." + name for name, _ in parameters)], gradients))
    return Case(header="layer_case.hpp", call=f"layer_case<{layer}>", data=data, expected=expected,
                scalar="float" if x.dtype == "F32" else "double", terms=terms, epsilon=epsilon,
                magnitudes=magnitudes or {})


def norm_shape(rows, cols, epsilon, weight, bias):
    return "attune::NormShape" + braces(rows=rows, d_model=cols, epsilon=float(epsilon), weight=boolean(weight),
                                        bias=boolean(bias))


def layer_norm_magnitudes(x, weight, bias, grad_out, epsilon, cols):
    """What the rounding errors of each tensor are relative to, by its name.

    PyTorch computes x/deviation - mean/deviation, which loses what these two are rounded to, however small their
    difference is. So the errors of a normalised feature are relative to their sum, `terms`; what it is multiplied by
    are its values and those of the gradient, by their magnitudes.
    """
    weight = [abs(w) for w in weight.values] if weight else [1.0] * cols
    bias = [abs(b) for b in bias.values] if bias else [0.0] * cols
    out = d_input = 0.0
    d_weight, d_bias = [0.0] * cols, [0.0] * cols
    for start in range(0, len(x.values), cols):
        row = x.values[start:start + cols]
        dy = [abs(g) for g in grad_out.values[start:start + cols]]
        mean = sum(row) / cols
        inverse = (sum((value - mean) ** 2 for value in row) / cols + epsilon) ** -0.5
        terms = [(abs(value) + abs(mean)) * inverse for value in row]
        normalised = [abs(value - mean) * inverse for value in row]
        scaled = [g * w for g, w in zip(dy, weight)]
        of_values = sum(map(mul, scaled, normalised)) / cols
        of_terms = sum(map(mul, scaled, terms)) / cols
        out = max(out, *(t * w + b for t, w, b in zip(terms, weight, bias)))
        d_input = max(d_input, *(inverse * (s + sum(scaled) / cols + t * of_values + n * of_terms)
                                 for s, t, n in zip(scaled, terms, normalised)))
        d_weight = [total + g * t for total, g, t in zip(d_weight, dy, terms)]
        d_bias = [total + g for total, g in zip(d_bias, dy)]
    return {"out": out, "out_inference": out, "grad.input": d_input, "grad.weight": max(d_weight),
            "grad.bias": max(d_bias)}


# ---- PyTorch ----

def layer_norm(source):
    """functional.layer_norm over the last axis."""
    x = source.get("input")
    cols = source.option("normalized_shape")
    rows = math.prod(x.shape) // cols
    names = [name for name in ("weight", "bias") if name in source]
    parameters = [(name, source.get(name, cols)) for name in names]
    gradients = [source.get("grad.input", *x.shape), *(source.get("grad." + name, cols) for name in names)]
    shape = norm_shape(rows, cols, source.option("eps"), "weight" in names, "bias" in names)
    return layer_case(source, f"attune::LayerNorm<{shape}, {source.scalar('input')}>", x,
                      source.get("out", *x.shape), parameters, gradients, terms=max(rows, cols),
                      magnitudes=layer_norm_magnitudes(x, *(dict(parameters).get(name) for name in ("weight", "bias")),
                                                       source.get("grad_out"), source.option("eps"), cols))


ACTIVATIONS = {"relu": "kRelu", "silu": "kSilu", "gelu_erf": "kGelu", "gelu_tanh": "kGeluTanh"}


def activation_layer(kind, x, scalar):
    if kind not in ACTIVATIONS:
        raise Skip(f"activation {kind}: no such function")
    return f"attune::ActivationLayer<attune::Activation::{ACTIVATIONS[kind]}, 1, {math.prod(x.shape)}, {scalar}>"


def activation(source):
    x = source.get("input")
    return layer_case(source, activation_layer(source.metadata["kind"], x, source.scalar("input")), x,
                      source.get("out", *x.shape), gradients=[source.get("grad.input", *x.shape)])


# ---- ONNX ----

def onnx_norm(source, layer):
    """Everything from `axis` on is normalised together."""
    x = source.get("input.X")
    axis = source.option("attr.axis", -1) % len(x.shape)
    cols = math.prod(x.shape[axis:])
    rows = math.prod(x.shape) // cols
    parameters = [("weight", source.get("input.W"))]
    if "input.B" in source:
        parameters.append(("bias", source.get("input.B")))
    if any(len(tensor.values) != cols for _, tensor in parameters):
        raise Skip("a weight that is broadcast: no such option")
    expected = {ours: source.get("output." + theirs) for ours, theirs in
                (("mean", "Mean"), ("inverse_deviation", "InvStdDev")) if "output." + theirs in source}
    shape = norm_shape(rows, cols, source.option("attr.epsilon", 1e-5), True, len(parameters) > 1)
    return layer_case(source, f"attune::{layer}<{shape}, {source.scalar('input.X')}>", x,
                      source.get("output.Y", *x.shape), parameters, terms=cols, expected=expected,
                      epsilon=onnx_epsilon(source))


def onnx_layer_norm(source):
    return onnx_norm(source, "LayerNorm")


def onnx_rms_norm(source):
    return onnx_norm(source, "RmsNorm")


def onnx_gelu(source):
    x = source.get("input.x")
    kind = {"none": "gelu_erf", "tanh": "gelu_tanh"}[source.metadata.get("attr.approximate", "none")]
    return layer_case(source, activation_layer(kind, x, source.scalar("input.x")), x, source.get("output.y", *x.shape),
                      epsilon=onnx_epsilon(source))


def onnx_swiglu(source):
    """silu(a) * b."""
    a = source.get("input.a")
    scalar = source.scalar("input.a")
    return Case(header="swiglu_case.hpp", call=f"swiglu_case<{math.prod(a.shape)}, {scalar}>",
                data={"gate": a, "up": source.get("input.b", *a.shape)},
                expected={"out": source.get("output.y", *a.shape)}, scalar=scalar, epsilon=onnx_epsilon(source))


def onnx_rotary(source):
    """Angles are given: by position, from caches, or for every token of every sequence."""
    x = source.get("input.input")
    if in_columns := len(x.shape) == 3:
        batch, seq_len, width = x.shape
        heads = source.option("attr.num_heads")
        d_k = width // heads
    else:
        batch, heads, seq_len, d_k = x.shape
    rotary_dim = source.option("attr.rotary_embedding_dim", 0) or d_k
    half = rotary_dim // 2
    tables = []
    for name in ("input.cos_cache", "input.sin_cache"):
        cache = source.get(name)
        if "input.position_ids" in source:
            positions = source.get("input.position_ids", batch, seq_len).values
            tables.append(concatenate([cache.rows(position, position + 1) for position in positions]))
        else:
            tables.append(source.get(name, batch, seq_len, half))
    # Heads side by side are one call; otherwise every head is a sequence of its own.
    shape = "attune::RotaryShape" + braces(
        seq_len=seq_len, num_heads=heads if in_columns else 1, d_k=d_k, rotary_dim=rotary_dim,
        pairs="attune::RotaryPairs::" + ("kInterleaved" if source.option("attr.interleaved", 0) else "kHalves"))
    scalar = source.scalar("input.input")
    return Case(header="rotary_case.hpp", call=f"rotary_case<{shape}, {scalar}>",
                data={"batch": batch, "heads": 1 if in_columns else heads, "input": x, "cosine": tables[0],
                      "sine": tables[1]},
                expected={"out": source.get("output.output", *x.shape)}, scalar=scalar, terms=2,
                epsilon=onnx_epsilon(source))


FAMILIES = {
    "layer_norm": layer_norm,
    "activation": activation,
    "LayerNormalization": onnx_layer_norm,
    "RMSNormalization": onnx_rms_norm,
    "Gelu": onnx_gelu,
    "SwiGLU": onnx_swiglu,
    "RotaryEmbedding": onnx_rotary,
}
