"""Families of layers with one input: normalization and activation."""
import math
import re
from operator import mul
from pathlib import Path

from case_source import Case, Skip, axis_of, boolean, braces, broadcast, concatenate, onnx_epsilon
from safetensors import Tensor


def layer_case(source, layer, x, out, parameters=(), gradients=(), terms=1, expected=None, epsilon=None,
               magnitudes=None):
    """`parameters`: our names of tensors in the file, in the library's order; `gradients`: of (input, *parameters)."""
    data = {"input": x}
    if parameters:
        data["parameters"] = concatenate([tensor for _, tensor in parameters])
    expected = {"out": out, "out_inference": out, **(expected or {})}
    if gradients:
        data["grad_out"] = source.get("grad_out", *out.shape)
        expected.update(zip(["grad.input", *("grad." + name for name, _ in parameters)], gradients))
    return Case(header="layer_case.hpp", call=f"layer_case<{layer}>", data=data, expected=expected,
                scalar="float" if x.dtype == "F32" else "double", terms=terms, epsilon=epsilon,
                magnitudes=magnitudes or {})


def norm_shape(rows, cols, epsilon, weight, bias):
    return "attune::NormShape" + braces(rows=rows, d_model=cols, epsilon=float(epsilon), weight=boolean(weight),
                                        bias=boolean(bias))


def norm_magnitudes(x, weight, bias, grad_out, epsilon, cols, centered):
    """What the rounding errors of each tensor are relative to, by its name.

    PyTorch computes x/deviation - mean/deviation, which loses what these two are rounded to, however small their
    difference is. So the errors of a normalized feature are relative to their sum, `terms`; what it is multiplied by
    are its values and those of the gradient, by their magnitudes.
    """
    weight = [abs(w) for w in weight.values] if weight else [1.0] * cols
    bias = [abs(b) for b in bias.values] if bias else [0.0] * cols
    out = d_input = 0.0
    d_weight, d_bias = [0.0] * cols, [0.0] * cols
    for start in range(0, len(x.values), cols):
        row = x.values[start:start + cols]
        dy = [abs(g) for g in grad_out.values[start:start + cols]]
        mean = sum(row) / cols if centered else 0.0
        inverse = (sum((value - mean) ** 2 for value in row) / cols + epsilon) ** -0.5
        terms = [(abs(value) + abs(mean)) * inverse for value in row]
        normalized = [abs(value - mean) * inverse for value in row]
        scaled = [g * w for g, w in zip(dy, weight)]
        of_values = sum(map(mul, scaled, normalized)) / cols
        of_terms = sum(map(mul, scaled, terms)) / cols
        out = max(out, *(t * w + b for t, w, b in zip(terms, weight, bias)))
        d_input = max(d_input, *(inverse * (s + sum(scaled) / cols + t * of_values + n * of_terms)
                                 for s, t, n in zip(scaled, terms, normalized)))
        d_weight = [total + g * t for total, g, t in zip(d_weight, dy, terms)]
        d_bias = [total + g for total, g in zip(d_bias, dy)]
    return {"out": out, "out_inference": out, "grad.input": d_input, "grad.weight": max(d_weight),
            "grad.bias": max(d_bias)}


# ---- PyTorch ----

def layer_norm(source):
    """functional.layer_norm over the last axes."""
    return torch_norm(source, "LayerNorm", ("weight", "bias"))


def rms_norm(source):
    return torch_norm(source, "RmsNorm", ("weight",))


def deviation_norm(source):
    return torch_norm(source, "DeviationNorm", ("weight", "bias"))


def torch_norm(source, layer, parameter_names):
    x = source.get("input")
    normalized = source.option("normalized_shape")
    normalized = normalized if isinstance(normalized, list) else [normalized]
    if x.shape[-len(normalized):] != normalized:
        raise ValueError(f"input is {x.shape}, normalized over {normalized}")
    cols = math.prod(normalized)
    rows = math.prod(x.shape) // cols
    parameters = [(name, source.get(name, *normalized)) for name in parameter_names if name in source]
    names = [name for name, _ in parameters]
    if names == ["bias"]:
        raise Skip("a bias without a weight: no such option")
    gradients, magnitudes = [], {}
    if "grad_out" in source:
        gradients = [source.get("grad.input", *x.shape), *(source.get("grad." + name, *normalized) for name in names)]
        magnitudes = norm_magnitudes(x, *(dict(parameters).get(name) for name in ("weight", "bias")),
                                     source.get("grad_out"), source.option("eps"), cols, layer != "RmsNorm")
    shape = norm_shape(rows, cols, source.option("eps"), "weight" in names, "bias" in names)
    return layer_case(source, f"attune::{layer}<{shape}, {source.scalar('input')}>", x, source.get("out", *x.shape),
                      parameters, gradients, terms=max(rows, cols), magnitudes=magnitudes)


# Of a case's name: quick_gelu is attune::Activation::kQuickGelu.
ACTIVATIONS = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): f"k{name}" for name in re.findall(
    r"^  k(\w+) = \d+,", (Path(__file__).resolve().parents[2] / "lib/attune/kernels/ops/activation.hpp").read_text(), re.M)}
ACTIVATIONS["gelu_erf"] = "kGelu"


def rotary_shape(seq_len, heads, d_k, rotary_dim, interleaved, base=10000):
    return "attune::RotaryShape" + braces(
        seq_len=seq_len, num_heads=heads, d_k=d_k, rotary_dim=rotary_dim,
        pairs="attune::RotaryPairs::" + ("kInterleaved" if interleaved else "kHalves"), base=float(base))


def activation_layer(kind, x, scalar):
    if kind not in ACTIVATIONS:
        raise Skip(f"activation {kind}: no such function")
    return f"attune::ActivationLayer<attune::Activation::{ACTIVATIONS[kind]}, 1, {math.prod(x.shape)}, {scalar}>"


def activation(source):
    x = source.get("input")
    gradients = [source.get("grad.input", *x.shape)] if "grad_out" in source else []
    return layer_case(source, activation_layer(source.text("kind"), x, source.scalar("input")), x,
                      source.get("out", *x.shape), gradients=gradients)


def swiglu(source):
    """down(silu(gate(x)) * up(x)), of nn.Linear."""
    x = source.get("input")
    rows, width = x.shape
    d_ff = source.option("dim_feedforward")
    sizes = {"gate": (d_ff, width), "up": (d_ff, width), "down": (width, d_ff)}
    bias = "gate.bias" in source

    def parameters(prefix):
        result = []
        for name, size in sizes.items():
            result.append((name + ".weight", source.get(f"{prefix}{name}.weight", *size).transpose()))
            if bias:
                result.append((name + ".bias", source.get(f"{prefix}{name}.bias", size[0])))
        return result

    shape = "attune::FeedForwardShape" + braces(rows=rows, d_model=width, d_ff=d_ff, bias=boolean(bias))
    gradients = [source.get("grad.input", *x.shape), *(tensor for _, tensor in parameters("grad."))]
    return layer_case(source, f"attune::SwiGlu<{shape}, {source.scalar('input')}>", x, source.get("out", *x.shape),
                      parameters(""), gradients, terms=2 * width + d_ff + rows)


def rotary(source):
    """Positions 0, 1, ..., heads side by side."""
    x = source.get("input")
    seq_len, width = x.shape
    heads = source.option("num_heads")
    shape = rotary_shape(seq_len, heads, width // heads, source.option("rotary_dim"), source.option("interleaved"),
                         source.option("base"))
    return layer_case(source, f"attune::RotaryPositions<{shape}, {source.scalar('input')}>", x,
                      source.get("out", *x.shape), gradients=[source.get("grad.input", *x.shape)], terms=2)


def layer_scale(source):
    x = source.get("input")
    rows, cols = x.shape
    layer = "attune::LayerScale<attune::ScaleShape" + braces(rows=rows, d_model=cols) + f", {source.scalar('input')}>"
    return layer_case(source, layer, x, source.get("out", *x.shape), [("weight", source.get("weight", cols))],
                      [source.get("grad.input", *x.shape), source.get("grad.weight", cols)], terms=rows)


def feature_bias(source):
    x = source.get("input")
    rows, cols = x.shape
    layer = "attune::FeatureBias<attune::FeatureBiasShape" + braces(rows=rows, d_model=cols) + f", {source.scalar('input')}>"
    return layer_case(source, layer, x, source.get("out", *x.shape), [("bias", source.get("bias", cols))],
                      [source.get("grad.input", *x.shape), source.get("grad.bias", cols)], terms=rows)


def prelu(source):
    x = source.get("input")
    rows, cols = x.shape
    slopes = math.prod(source.get("weight").shape)
    layer = "attune::Prelu<attune::PreluShape" + braces(rows=rows, d_model=cols, slopes=slopes) + f", {source.scalar('input')}>"
    return layer_case(source, layer, x, source.get("out", *x.shape), [("weight", source.get("weight", slopes))],
                      [source.get("grad.input", *x.shape), source.get("grad.weight", slopes)], terms=rows * cols)


def glu(source):
    x = source.get("input")
    rows, cols = x.shape[0], x.shape[1] // 2
    layer = "attune::Glu<attune::GluShape" + braces(
        rows=rows, d_model=cols, activation=f"attune::Activation::{ACTIVATIONS[source.text('activation')]}",
        gate="attune::GluGate::k" + source.text("gate").capitalize()) + f", {source.scalar('input')}>"
    return layer_case(source, layer, x, source.get("out", rows, cols), gradients=[source.get("grad.input", *x.shape)], terms=2)


def group_norm(source):
    x = source.get("input")
    rows, cols = x.shape
    parameters = [(name, source.get(name, cols)) for name in ("weight", "bias") if name in source]
    layer = "attune::GroupNorm<attune::GroupNormShape" + braces(
        rows=rows, d_model=cols, groups=source.option("groups"), epsilon=float(source.option("eps")),
        affine=boolean(parameters)) + f", {source.scalar('input')}>"
    return layer_case(source, layer, x, source.get("out", *x.shape), parameters,
                      [source.get("grad.input", *x.shape), *(source.get("grad." + name, cols) for name, _ in parameters)], terms=rows * cols)


def linears(source, parts):
    """(parameters, gradients) of Linears, by their paths in the file and in the library: weights as the library has them, and biases."""
    names = [(f"{part}.{leaf}", f"{path}.{leaf}") for part, path in parts.items() for leaf in ("weight", "bias")]

    def own(name):
        tensor = source.get(name)
        return tensor.transpose() if len(tensor.shape) > 1 else tensor

    return [(ours, own(name)) for name, ours in names], [own("grad." + name) for name, _ in names]


def reversible_norm(source):
    """Around a Linear over tokens."""
    x, scalar = source.get("input"), source.scalar("input")
    (rows, cols), forecast = x.shape, source.get("linear.weight").shape[0]
    affine = [name for name in ("weight", "bias") if name in source]
    inside = (f"attune::Sequential<attune::Transpose<{rows}, {cols}, {scalar}>, attune::Linear<attune::LinearShape"
              f"{braces(rows=cols, d_in=rows, d_out=forecast)}, {scalar}>, attune::Transpose<{cols}, {forecast}, {scalar}>>")
    layer = f"attune::ReversibleNorm<{inside}, attune::ReversibleNormOptions" + braces(
        epsilon=float(source.option("eps")), affine=boolean(affine), subtract_last=boolean(source.option("subtract_last", 0))) + ">"
    parameters, gradients = linears(source, {"linear": "model.1"})
    return layer_case(source, layer, x, source.get("out", forecast, cols), [*(("norm." + name, source.get(name, cols)) for name in affine), *parameters],
                      [source.get("grad.input", *x.shape), *(source.get("grad." + name, cols) for name in affine), *gradients],
                      terms=rows * cols * forecast)


def sum_of_layers(source):
    x, scalar = source.get("input"), source.scalar("input")
    (rows, cols), width = x.shape, source.get("first.weight").shape[0]
    linear = f"attune::Linear<attune::LinearShape{braces(rows=rows, d_in=cols, d_out=width)}, {scalar}>"
    gelu = f"attune::ActivationLayer<attune::Activation::{ACTIVATIONS['gelu_erf']}, {rows}, {width}, {scalar}>"
    layer = f"attune::Sum<{linear}, attune::Sequential<{linear}, {gelu}>>"
    parameters, gradients = linears(source, {"first": "0", "second": "1.0"})
    return layer_case(source, layer, x, source.get("out", rows, width), parameters, [source.get("grad.input", *x.shape), *gradients],
                      terms=max(rows, 2 * cols, 2 * width))


def product_of_layers(source):
    x, scalar = source.get("input"), source.scalar("input")
    (rows, cols), width = x.shape, source.get("second.weight").shape[0]
    excites = "first.weight" not in source
    linear = lambda rows: f"attune::Linear<attune::LinearShape{braces(rows=rows, d_in=cols, d_out=width)}, {scalar}>"  # noqa: E731
    gate = lambda rows: f"{linear(rows)}, attune::Sigmoid<{rows}, {width}, {scalar}>"  # noqa: E731
    pooling = "attune::Pooling<attune::PoolingShape" + braces(seq_len=rows, d_model=cols) + f", {scalar}>"
    layer = f"attune::Product<attune::Identity<{rows}, {cols}, {scalar}>, attune::Sequential<{pooling}, {gate(1)}>>" if excites else \
        f"attune::Product<{linear(rows)}, attune::Sequential<{gate(rows)}>>"
    parameters, gradients = linears(source, {"second": "1.1"} if excites else {"first": "0", "second": "1.0"})
    return layer_case(source, layer, x, source.get("out", rows, width), parameters, [source.get("grad.input", *x.shape), *gradients],
                      terms=max(2 * rows, 2 * cols, 2 * width))


def repeat_last_token(source):
    x, times = source.get("input"), int(source.option("times"))
    (rows, cols) = x.shape
    layer = f"attune::RepeatLastToken<attune::TokenShape{braces(seq_len=rows, d_model=cols, tokens=times)}, {source.scalar('input')}>"
    return layer_case(source, layer, x, source.get("out", rows + times, cols), gradients=[source.get("grad.input", *x.shape)], terms=times + 1)


def each_group(source):
    """A Linear over the tokens of each group, between TransposeGrids where they are not side by side."""
    x, scalar, groups = source.get("input"), source.scalar("input"), int(source.option("groups"))
    (rows, cols), (out, tokens) = x.shape, source.get("linear.weight").shape
    inside = (f"attune::Sequential<attune::Transpose<{tokens}, {cols}, {scalar}>, attune::Linear<attune::LinearShape"
              f"{braces(rows=cols, d_in=tokens, d_out=out)}, {scalar}>, attune::Transpose<{cols}, {out}, {scalar}>>")
    layer, path = f"attune::EachGroup<{groups}, {inside}>", "1"
    if int(source.option("strided")):
        grids = [f"attune::TransposeGrid<attune::TransposeGridShape{braces(rows=own[0], cols=own[1], d_model=cols)}, {scalar}>"
                 for own in ((tokens, groups), (groups, out))]
        layer, path = f"attune::Sequential<{grids[0]}, {layer}, {grids[1]}>", "1.1"
    parameters, gradients = linears(source, {"linear": path})
    return layer_case(source, layer, x, source.get("out", groups * out, cols), parameters, [source.get("grad.input", *x.shape), *gradients],
                      terms=rows * cols)


def shared_repeat(source):
    x, scalar, times = source.get("input"), source.scalar("input"), int(source.option("times"))
    rows, cols = x.shape
    linear = f"attune::Linear<attune::LinearShape{braces(rows=rows, d_in=cols, d_out=cols)}, {scalar}>"
    gelu = f"attune::ActivationLayer<attune::Activation::{ACTIVATIONS['gelu_erf']}, {rows}, {cols}, {scalar}>"
    layer = f"attune::SharedRepeat<{times}, attune::Residual<attune::Sequential<{linear}, {gelu}>>>"
    parameters, gradients = linears(source, {"linear": "0"})
    return layer_case(source, layer, x, source.get("out", rows, cols), parameters, [source.get("grad.input", *x.shape), *gradients],
                      terms=times * max(rows, 2 * cols))


def reduced_attention(source):
    x, scalar = source.get("input"), source.scalar("input")
    (rows, cols), kept = x.shape, source.get("reduction.weight").shape[0]
    reduction = (f"attune::Sequential<attune::Transpose<{rows}, {cols}, {scalar}>, attune::Linear<attune::LinearShape"
                 f"{braces(rows=cols, d_in=rows, d_out=kept)}, {scalar}>, attune::Transpose<{cols}, {kept}, {scalar}>>")
    attention = "attune::MultiHeadAttention<attune::AttentionShape" + braces(
        seq_len=rows, d_model=cols, num_heads=int(source.option("heads")), kv_len=kept) + f", {scalar}>"
    parameters, gradients = linears(source, {"reduction": "0.1"} | {part: f"1.{part}" for part in ("query", "key", "value", "output")})
    # The gradient of the keys' bias cancels to nothing: its errors are those of its terms.
    return layer_case(source, f"attune::ReducedAttention<{reduction}, {attention}>", x, source.get("out", rows, cols), parameters,
                      [source.get("grad.input", *x.shape), *gradients], terms=4 * max(rows, cols),
                      magnitudes={"grad.1.key.bias": max(map(abs, source.get("grad.key.weight").values))})


def sequence_pooling(source):
    x = source.get("input")
    rows, cols = x.shape
    layer = "attune::SequencePooling<attune::SequencePoolingShape" + braces(seq_len=rows, d_model=cols) + f", {source.scalar('input')}>"
    # The gradient of the bias cancels to nothing: its errors are those of its terms.
    return layer_case(source, layer, x, source.get("out", 1, cols),
                      [("weight", source.get("weight", 1, cols).transpose()), ("bias", source.get("bias", 1))],
                      [source.get("grad.input", *x.shape), source.get("grad.weight", 1, cols).transpose(), source.get("grad.bias", 1)],
                      terms=max(rows, cols), magnitudes={"grad.bias": max(map(abs, source.get("grad.weight").values))})


def embedding_sum(source):
    """Ids of words, then of types."""
    ids = source.get("input")
    seq_len = ids.shape[1]
    tables = {name: source.get(f"{name}.weight") for name in ("first", "second")}
    scalar = source.scalar("first.weight")
    embeddings = [f"attune::Embedding<attune::EmbeddingShape{braces(seq_len=seq_len, vocabulary=table.shape[0], d_model=table.shape[1])}, {scalar}>"
                  for table in tables.values()]
    expected = {f"grad.{name}.weight": source.get(f"grad.{name}.weight", *table.shape) for name, table in tables.items()}
    out = source.get("out", seq_len, tables["first"].shape[1])
    return Case(header="layer_case.hpp", call=f"layer_case<attune::EmbeddingSum<{', '.join(embeddings)}>>",
                data={"input": ids, "parameters": concatenate(list(tables.values())), "grad_out": source.get("grad_out", *out.shape)},
                expected={"out": out, "out_inference": out} | expected, scalar=scalar, terms=seq_len)


def conv1d(source):
    return conv(source, "Conv1d", lambda size, kernel, stride, padding, dilation, extra: dict(
        seq_len=size[0], kernel=kernel[0], stride=stride[0], padding=padding[0], dilation=dilation[0], extra_padding=extra[0]))


def conv2d(source):
    return conv(source, "Conv2d", lambda size, kernel, stride, padding, dilation, extra: dict(
        height=size[0], width=size[1], kernel_height=kernel[0], kernel_width=kernel[1], stride_height=stride[0],
        stride_width=stride[1], padding_height=padding[0], padding_width=padding[1], dilation_height=dilation[0],
        dilation_width=dilation[1], extra_padding_height=extra[0], extra_padding_width=extra[1]))


def conv(source, layer, options):
    """Of tokens, row after row of pixels. The weight of groups is a table, else the transpose of PyTorch's."""
    x, out = source.get("input"), source.get("out")
    weight = source.get("weight")
    d_out, d_in, *kernel = weight.shape
    groups = source.option("groups")
    terms = d_in * math.prod(kernel)

    def own(name):
        tensor = source.get(name, *weight.shape)
        table = Tensor(tensor.dtype, [d_out, terms], tensor.values)
        return table if groups > 1 else table.transpose()

    sizes = options(source.option("size"), kernel, source.option("stride"), source.option("padding"),
                    source.option("dilation", [1] * len(kernel)), source.option("extra_padding", [0] * len(kernel)))
    extents = [key for key in sizes if key in ("seq_len", "height", "width")]
    bias = "bias" in source
    shape = {**{key: sizes[key] for key in extents}, "d_in": d_in * groups, "d_out": d_out,
             **{key: value for key, value in sizes.items() if key not in extents}, "groups": groups,
             "bias": boolean(bias)}
    if source.option("causal"):
        shape["causal"] = "true"
    shape |= {key: shape.pop(key) for key in list(shape) if key.startswith(("dilation", "extra"))}  # the last ones
    parameters = [("weight", own("weight"))]
    gradients = [source.get("grad.input", *x.shape), own("grad.weight")]
    if bias:
        parameters.append(("bias", source.get("bias", d_out)))
        gradients.append(source.get("grad.bias", d_out))
    return layer_case(source, f"attune::{layer}<attune::{layer}Shape{braces(**shape)}, {source.scalar('input')}>", x, out,
                      parameters, gradients, terms=max(terms, out.shape[0]))


def pool(layer, dimensions):
    """A family of AvgPool1d, MaxPool2d, …: of tokens, row after row of pixels."""
    def case(source):
        x = source.get("input")
        names = ["seq_len"] if dimensions == 1 else ["height", "width"]
        suffixes = [""] if dimensions == 1 else ["_height", "_width"]
        kernel, padding = source.option("kernel"), source.option("padding", [0] * dimensions)
        shape = dict(zip(names, source.option("size"))) | {"d_model": x.shape[1]}
        for name, values in (("kernel", kernel), ("stride", source.option("stride")), ("padding", padding)):
            shape |= {name + suffix: value for suffix, value in zip(suffixes, values)}
        shape["count_padding"] = boolean(source.option("count_include_pad", 1))
        shape["ceil"] = boolean(source.option("ceil_mode", 0))
        type_ = f"attune::{layer}{dimensions}d<attune::Pool{dimensions}dShape{braces(**shape)}, {source.scalar('input')}>"
        return layer_case(source, type_, x, source.get("out"), gradients=[source.get("grad.input", *x.shape)],
                          terms=math.prod(kernel))
    return case


# ---- ONNX ----

def feature_weight(source, name, x, axis):
    """A weight of each feature; where it is given for fewer, it is repeated."""
    tensor = source.get(name)
    shape = tensor.shape
    while len(shape) > len(x.shape) - axis and shape[0] == 1:
        shape = shape[1:]
    if len(shape) > len(x.shape) - axis:
        broadcast(tensor, x.shape)
        raise Skip(f"{name} is {tensor.shape}: no weights of each token's own")
    return broadcast(Tensor(tensor.dtype, shape, tensor.values), x.shape[axis:])


def onnx_norm(source, layer):
    """Everything from `axis` on is normalized together."""
    x = source.get("input.X")
    axis = axis_of(x, source.option("attr.axis", -1))
    source.option("attr.stash_type", 1)  # what it is computed in: ours is the scalar
    cols = math.prod(x.shape[axis:])
    rows = math.prod(x.shape) // cols
    parameters = [("weight", feature_weight(source, "input.W", x, axis))]
    if "input.B" in source:
        parameters.append(("bias", feature_weight(source, "input.B", x, axis)))
    statistics = x.shape[:axis] + [1] * (len(x.shape) - axis)
    expected = {ours: source.get("output." + theirs, *statistics) for ours, theirs in
                (("mean", "Mean"), ("inverse_deviation", "InvStdDev")) if "output." + theirs in source}
    shape = norm_shape(rows, cols, source.option("attr.epsilon", 1e-5), True, len(parameters) > 1)
    # A mean can cancel to nearly nothing: its errors are those of its terms.
    mean = max((sum(map(abs, x.values[i:i + cols])) for i in range(0, len(x.values), cols)), default=0.0) / cols
    return layer_case(source, f"attune::{layer}<{shape}, {source.scalar('input.X')}>", x,
                      source.get("output.Y", *x.shape), parameters, terms=cols, expected=expected,
                      epsilon=onnx_epsilon(source), magnitudes={"mean": mean})


def onnx_layer_norm(source):
    return onnx_norm(source, "LayerNorm")


def onnx_rms_norm(source):
    return onnx_norm(source, "RmsNorm")


def onnx_gelu(source):
    x = source.get("input.x")
    kind = source.text("attr.approximate", "none")
    kind = {"none": "gelu_erf", "tanh": "gelu_tanh"}.get(kind, kind)
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
    heads = source.option("attr.num_heads", 0)
    if in_columns := len(x.shape) == 3:
        batch, seq_len, width = x.shape
        if heads <= 0 or width % heads != 0:
            raise ValueError(f"num_heads is {heads}, for {width} columns")
        d_k = width // heads
    else:
        batch, heads, seq_len, d_k = x.shape
    rotary_dim = source.option("attr.rotary_embedding_dim", 0) or d_k
    half = rotary_dim // 2
    tables = []
    for name in ("input.cos_cache", "input.sin_cache"):
        if "input.position_ids" in source:
            positions = source.get("input.position_ids", batch, seq_len).values
            cache = source.get(name, len(source.get(name).values) // max(1, half), half)
            if beyond := [position for position in positions if not 0 <= position < cache.shape[0]]:
                raise ValueError(f"position {beyond[0]} is not in {name}, which is {cache.shape}")
            tables.append(concatenate([cache.rows(position, position + 1) for position in positions]))
        else:
            tables.append(source.get(name, batch, seq_len, half))
    # Heads side by side are one call; otherwise every head is a sequence of its own.
    shape = rotary_shape(seq_len, heads if in_columns else 1, d_k, rotary_dim, source.option("attr.interleaved", 0))
    scalar = source.scalar("input.input")
    return Case(header="rotary_case.hpp", call=f"rotary_case<{shape}, {scalar}>",
                data={"batch": batch, "heads": 1 if in_columns else heads, "input": x, "cosine": tables[0],
                      "sine": tables[1]},
                expected={"out": source.get("output.output", *x.shape)}, scalar=scalar, terms=2,
                epsilon=onnx_epsilon(source))


FAMILIES = {
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "deviation_norm": deviation_norm,
    "activation": activation,
    "swiglu": swiglu,
    "rotary": rotary,
    "layer_scale": layer_scale,
    "feature_bias": feature_bias,
    "prelu": prelu,
    "sequence_pooling": sequence_pooling,
    "group_norm": group_norm,
    "reversible_norm": reversible_norm,
    "sum": sum_of_layers,
    "product": product_of_layers,
    "reduced_attention": reduced_attention,
    "each_group": each_group,
    "shared_repeat": shared_repeat,
    "repeat_last_token": repeat_last_token,
    "glu": glu,
    "embedding_sum": embedding_sum,
    "conv1d": conv1d,
    "conv2d": conv2d,
    "avg_pool1d": pool("AvgPool", 1),
    "avg_pool2d": pool("AvgPool", 2),
    "max_pool1d": pool("MaxPool", 1),
    "max_pool2d": pool("MaxPool", 2),
    "LayerNormalization": onnx_layer_norm,
    "RMSNormalization": onnx_rms_norm,
    "Gelu": onnx_gelu,
    "SwiGLU": onnx_swiglu,
    "RotaryEmbedding": onnx_rotary,
}
