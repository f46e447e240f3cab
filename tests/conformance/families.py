"""What each family of cases is in terms of the library: a C++ instantiation, its data, and what to expect of it.

A family is one function here, in FAMILIES, and one C++ template in a header of this folder. The function gets
the tensors and the metadata of a file and returns a Case; it raises Skip for what the library does not offer, and
any other exception means that the file is not what it says it is.
"""
import itertools
import math

from case_source import (Case, Skip, Source, as_columns, as_rows, axis_of, boolean, braces, broadcast, check_types, concatenate,
                         hidden_where, joined, labels, mask_options, no_dropout, number, onnx_epsilon, torch_masks)
import encoder_families
import layer_families
import loss_families
from mha_magnitudes import mha_magnitudes
from optimizer_types import adam_options, adam_type, sgd_options, sgd_type, torch_optimizer
from safetensors import Tensor
import trained_family


# ---- PyTorch ----

def mha(source):
    """nn.MultiheadAttention, batch first. Its boolean masks are true where attention is not allowed."""
    if source.text("scale", "1/sqrt(head_dim)") != "1/sqrt(head_dim)":
        raise Skip(f"scale {source.text('scale')}: no such option")
    no_dropout(source)
    query = source.get("query")
    batch, seq_len, width = query.shape
    self_attention = "key" not in source
    key, value = (query, query) if self_attention else (source.get("key"), source.get("value"))
    kv_len, d_key, d_value = key.shape[1], key.shape[2], value.shape[2]
    source.get("query", batch, seq_len, width)
    if not self_attention:
        source.get("key", batch, kv_len, d_key)
        source.get("value", batch, kv_len, d_value)
    heads = source.option("num_heads")
    bias = "in_proj_bias" in source
    scalar = source.scalar("query")
    kv_heads = source.option("num_kv_heads", heads)
    d_k = width // heads
    kv_width = kv_heads * d_k
    rows = [width, kv_width, kv_width, width]  # of the projections
    options, appended = mha_options(source)

    def projections(prefix):
        """Weight [in, out] and bias of query, key, value and output, from PyTorch's [out, in]."""
        if "in_proj_weight" in source:
            packed = source.get(prefix + "in_proj_weight", 3 * width, width)
            weights = [packed.rows(i * width, (i + 1) * width) for i in range(3)]
        else:
            weights = [source.get(f"{prefix}{name}_proj_weight", d_out, d_in)
                       for name, d_out, d_in in zip("qkv", rows, (width, d_key, d_value))]
        weights.append(source.get(prefix + "out_proj.weight", width, width))
        result = {}
        for i, (name, weight) in enumerate(zip(("query", "key", "value", "output"), weights)):
            result[name + ".weight"] = weight.transpose()
            if bias and name == "output":
                result[name + ".bias"] = source.get(prefix + "out_proj.bias", width)
            elif bias:
                packed = source.get(prefix + "in_proj_bias", width + 2 * kv_width)
                result[name + ".bias"] = packed.rows(sum(rows[:i]), sum(rows[:i + 1]))
        for name in ("query_norm.weight", "query_norm.bias", "key_norm.weight", "key_norm.bias"):
            if name in source:
                result[name] = source.get(prefix + name, d_k)
        for name in ("bias_k", "bias_v"):
            if name in source:
                result[name] = source.get(prefix + name, 1, 1, kv_width)
        if "temperature" in source:
            result["score_scale"] = source.get(prefix + "temperature", source.get("temperature").shape[0])
        if "relative_bias" in source:
            result["relative_bias"] = source.get(prefix + "relative_bias", heads, source.get("relative_bias").shape[1])
        return result

    mask, mask_data = torch_masks(source, query.dtype, batch, heads, seq_len, kv_len)
    shape = "attune::AttentionShape" + braces(
        seq_len=seq_len, d_model=width, num_heads=heads, num_kv_heads=kv_heads, kv_len=kv_len, d_key=d_key,
        d_value=d_value, bias=boolean(bias), **options)
    parameters = projections("")
    data = {"batch": batch, "parameters": concatenate(list(parameters.values())), "query": query}
    if not self_attention:
        data.update(key=key, value=value)
    data.update(grad_out=source.get("grad_out", batch, seq_len, width),
                mask=mask_data)
    out = source.get("out", batch, seq_len, width)
    expected = {"out": out, "out_inference": out, "attn": source.get("attn", batch, heads, seq_len, kv_len + appended),
                "grad.query": source.get("grad.query", *query.shape)}
    if not self_attention:
        expected["grad.key"] = source.get("grad.key", *key.shape)
        expected["grad.value"] = source.get("grad.value", *value.shape)
    expected.update({"grad." + name: tensor for name, tensor in projections("grad.").items()})
    if {"query_key_norm", "score_scale", "relative_bias"} & set(options):  # of which mha_magnitudes() knows nothing: the largest number of the case
        largest = max(abs(v) for tensor in [*parameters.values(), *expected.values()] for v in tensor.values)
        magnitudes = dict.fromkeys(expected, largest)
    else:
        magnitudes = mha_magnitudes(query, key, value, parameters, expected["attn"], data["grad_out"],
                                    kv_heads)
    return Case(
        header="mha_case.hpp",
        call=f"mha_case<{shape}, {boolean(self_attention)}, {mask_options(**mask)}, {scalar}>",
        data=data, expected=expected, scalar=scalar, exact_zeros=["attn"] if mask or "window" in options else [],
        magnitudes=magnitudes)


def mha_options(source):
    """Members of AttentionShape behind `bias`, in their order, and how many keys they append."""
    result = {"scaling": "attune::Scaling::kOne"} if source.text("scaling", None) == "one" else {}
    if rotary_dim := source.option("rotary_dim", 0):
        pairs = "kInterleaved" if source.option("interleaved", 0) else "kHalves"
        result.update(rotary_dim=rotary_dim, rotary_pairs="attune::RotaryPairs::" + pairs)
    if window := source.option("window", None):
        left, right, sinks, *hides_own = window
        result["window"] = braces(left=left, right=right, sinks=sinks, own_key="attune::OwnKey::" + ("kHidden" if hides_own else "kSeen"))
    if source.option("alibi", 0):
        result["alibi"] = "true"
    kinds = {"distance": ("kDistance", ["max_distance"]), "buckets": ("kBuckets", ["buckets", "max_distance"]),
             "causal_buckets": ("kCausalBuckets", ["buckets", "max_distance"]), "grid": ("kGrid", ["rows", "cols", "prefix"]),
             "grid_distance": ("kGridDistance", ["rows", "cols", "prefix"])}
    if relative := source.text("relative", None):
        kind, names = kinds[relative]
        sizes = dict(zip(names, source.option("relative_size")))
        result["relative_bias"] = braces(kind="attune::RelativePositions::" + kind,
                                         **{name: sizes[name] for name in ("max_distance", "buckets", "rows", "cols", "prefix") if name in sizes})
    if softcap := source.option("softcap", 0):
        result["softcap"] = float(softcap)
    norms = {"rms": "kRootMeanSquare", "layer": "kLayerNorm", "unit": "kUnitLength"}
    if norm := source.text("query_key_norm", None):
        result.update(query_key_norm="attune::QueryKeyNorm::" + norms[norm],
                      query_key_epsilon=source.option("query_key_epsilon"))
    scales = {"factor": "kFactor", "inverse": "kInverse", "exp": "kExponential", "clamped": "kClampedExponential"}
    if scale := source.text("score_scale", None):
        result.update(score_scale="attune::ScoreScale::" + scales[scale], score_scales=source.get("temperature").shape[0])
    appends = [name for name in ("add_bias_kv", "add_zero_attn") if source.option(name, 0)]
    result.update(dict.fromkeys(appends, "true"))
    if offset := source.option("offset", 0):
        result["offset"] = offset
    return result, len(appends)


def lora(source):
    """Self-attention with factors of low rank beside its constant weights."""
    x = source.get("input")
    length, width = x.shape
    heads, rank, alpha = source.option("num_heads"), source.option("rank"), source.option("alpha")
    adapted, biases = source.option("adapted"), source.option("biases")
    layers = ("query", "key", "value", "output")
    roles = {"query": "kQueries", "key": "kKeys", "value": "kValues", "output": "kAttentionOutput"}

    def constants():
        for layer in layers:
            yield source.get(layer + ".weight", width, width).transpose()
            yield source.get(layer + ".bias", width)

    def trained(prefix):
        for layer in layers:
            if layer in adapted:
                yield layer + ".weight.lora_A", source.get(f"{prefix}{layer}.lora_A", rank, width).transpose()
                yield layer + ".weight.lora_B", source.get(f"{prefix}{layer}.lora_B", width, rank).transpose()
            if biases and layer != "key":
                yield layer + ".bias", source.get(f"{prefix}{layer}.bias", width)

    out = source.get("out", length, width)
    expected = {"out": out, "out_inference": out, "grad.input": source.get("grad.input", length, width)}
    expected.update(("grad." + name, tensor) for name, tensor in trained("grad."))
    shape = "attune::AttentionShape" + braces(seq_len=length, d_model=width, num_heads=heads)
    low_rank = "attune::LowRank" + braces(rank=rank, roles=" | ".join("attune::Role::" + roles[a] for a in adapted),
                                          alpha=float(alpha), biases_and_norms=boolean(biases))
    scalar = source.scalar("input")
    mask = "attune::CausalMask" if source.option("causal") else "attune::NoMask"
    return Case(header="lora_case.hpp", call=f"lora_case<{shape}, {low_rank}, {mask}, {scalar}>",
                data={"constants": concatenate(list(constants())),
                      "trained": concatenate([tensor for _, tensor in trained("")]), "input": x,
                      "grad_out": source.get("grad_out", length, width)},
                expected=expected, scalar=scalar, terms=3 * width + 2 * length + 4 * rank)


def linear(source):
    """nn.Linear."""
    d_out, d_in = source.get("weight").shape
    source_input = source.get("input")
    rows = math.prod(source_input.shape[:-1])
    names = ["weight", "bias"] if "bias" in source else ["weight"]

    def parameters(prefix):
        weight = source.get(prefix + "weight", d_out, d_in).transpose()
        return [weight, source.get(prefix + "bias", d_out)] if "bias" in source else [weight]

    shape = "attune::LinearShape" + braces(rows=rows, d_in=d_in, d_out=d_out, bias=boolean("bias" in source))
    scalar = source.scalar("input")
    out = source.get("out")
    expected = {"out": out, "out_inference": out, "grad.input": source.get("grad.input", *source_input.shape)}
    expected.update(zip(("grad." + name for name in names), parameters("grad.")))
    return Case(header="layer_case.hpp", call=f"layer_case<attune::Linear<{shape}, {scalar}>>",
                data={"input": source.get("input", *source_input.shape[:-1], d_in),
                      "parameters": concatenate(parameters("")),
                      "grad_out": source.get("grad_out", *source_input.shape[:-1], d_out)},
                expected=expected, scalar=scalar, terms=max(rows, d_in, d_out))


def softmax_rows(source, to_rows, names, layer="Softmax"):
    """`names`: what the input, the output, and perhaps their gradients are called in the file."""
    tensors = {ours: to_rows(source.get(theirs, *source.get(names["input"]).shape)) for ours, theirs in names.items()
               if ours not in ("grad_out", "grad.input") or theirs in source}
    rows, cols = tensors["input"].shape
    scalar = source.scalar(names["input"])
    magnitudes = {}
    if "grad_out" in tensors:  # dy - sum(y dy) cancels where y is near 1
        magnitudes["grad.input"] = max(map(abs, tensors["grad_out"].values))
    return Case(header="softmax_case.hpp", call=f"softmax_case<attune::{layer}<{rows}, {cols}, {scalar}>, {scalar}>",
                data={name: tensors[name] for name in ("input", "grad_out") if name in tensors},
                expected={name: tensors[name] for name in ("out", "grad.input") if name in tensors},
                scalar=scalar, terms=cols, magnitudes=magnitudes)


SOFTMAX_LAYERS = {"softmax": "Softmax", "log_softmax": "LogSoftmax"}


def softmax(source):
    kind = source.text("kind")
    if kind not in SOFTMAX_LAYERS:
        raise Skip(f"{kind}: no such feature yet")
    dim = source.option("dim", -1)
    return softmax_rows(source, lambda tensor: as_rows(tensor, dim),
                        {"input": "input", "out": "out", "grad_out": "grad_out", "grad.input": "grad.input"},
                        SOFTMAX_LAYERS[kind])


# ---- Optimizers ----

def trajectory(source):
    """torch.optim: parameters after each of the steps, and the final state."""
    names = labels([name.removeprefix("param0.") for name in source.tensors if name.startswith("param0.")])
    start = [source.get("param0." + name) for name in names]
    scalar = source.scalar("param0." + names[0])
    steps = source.get("grads." + names[0]).shape[0]
    gradients = [source.get("grads." + name, steps, *tensor.shape) for name, tensor in zip(names, start)]
    optimizer, options = torch_optimizer(source, scalar)
    expected = {"params." + name: source.get("params." + name, steps, *tensor.shape)
                for name, tensor in zip(names, start)}
    for key, tensor in source.tensors.items():
        if key.startswith("state."):
            expected[key] = tensor
    sizes = ", ".join(str(len(tensor.values)) for tensor in start)
    return Case(header="optimizer_case.hpp", call=f"optimizer_case<{optimizer}, {sizes}>",
                data={"options": options, "steps": steps, "names": names, "parameters": concatenate(start),
                      "gradients": concatenate([tensor.at(step) for step in range(steps) for tensor in gradients])},
                expected=expected, scalar=scalar, terms=steps, tolerance=source.option("atol", None))


def linear_training(source, loss, steps, inputs, targets, parameters):
    rows, d_in = inputs[0].shape
    d_out = targets[0].shape[1]
    scalar = "float"
    optimizer, options = torch_optimizer(source, scalar)
    shape = "attune::LinearShape" + braces(rows=rows, d_in=d_in, d_out=d_out)
    return Case(header="linear_training_case.hpp", call=f"linear_training_case<{shape}, {loss}, {optimizer}>",
                data={"options": options, "steps": steps, "batches": len(inputs), "parameters": concatenate(parameters),
                      "inputs": concatenate(inputs), "targets": concatenate(targets)},
                expected={"weight": source.get("weight_expected", d_out, d_in).transpose(),
                          "bias": source.get("bias_expected", d_out)},
                scalar=scalar, terms=steps, tolerance=source.option("atol", None))


def adamw_linear(source):
    """A Linear and one step for each input, with the sum of outputs as loss."""
    weight = source.get("weight0")
    inputs = [source.get(f"x{i}") for i in itertools.takewhile(lambda i: f"x{i}" in source, itertools.count(1))]
    targets = [Tensor("F32", [x.shape[0], weight.shape[0]], [0.0] * (x.shape[0] * weight.shape[0])) for x in inputs]
    return linear_training(source, "conformance::SumOfOutputs", len(inputs), inputs, targets,
                           [weight.transpose(), source.get("bias0", weight.shape[0])])


def optim_linear_regression(source):
    """A Linear that starts from zeros and is fitted to one batch, with the sum of squared errors as loss."""
    init, loss = source.text("init"), source.text("loss")
    if init != "zeros" or not loss.startswith("sum of squares"):
        raise Skip(f"init {init}, loss {loss}: no such training")
    x, y = source.get("x"), source.get("y")
    zeros = [Tensor("F32", [n], [0.0] * n) for n in (x.shape[1] * y.shape[1], y.shape[1])]
    return linear_training(source, "attune::SumSquaredError", source.option("steps"), [x], [y], zeros)


# ---- ONNX ----

def onnx_attention(source):
    """ONNX Attention. Its boolean masks are true where attention is allowed."""
    softcap = source.option("attr.softcap", 0)
    query, key, value = (source.get("input." + name) for name in "QKV")
    in_columns = len(query.shape) == 3
    heads, kv_heads = (source.option(f"attr.{name}_num_heads", None) for name in ("q", "kv"))
    source.option("attr.softmax_precision", None)  # ours is the scalar's
    if in_columns:
        batch, seq_len, kv_len = query.shape[0], query.shape[1], key.shape[1]
        d_k, d_v = query.shape[2] // heads, value.shape[2] // kv_heads
    else:
        batch, heads, seq_len, d_k = query.shape
        kv_heads, kv_len, d_v = key.shape[1], key.shape[2], value.shape[3]

    def layout(tokens, width, count=heads):
        return [batch, tokens, count * width] if in_columns else [batch, count, tokens, width]

    source.get("input.K", *layout(kv_len, d_k, kv_heads))
    source.get("input.V", *layout(kv_len, d_v, kv_heads))
    past = 0
    if "input.past_key" in source:  # always [batch, heads, tokens, width]
        past = source.get("input.past_key").shape[2]
        before = [source.get("input.past_key", batch, kv_heads, past, d_k),
                  source.get("input.past_value", batch, kv_heads, past, d_v)]
        if in_columns:
            before = [as_columns(tensor) for tensor in before]
        key, value = (joined(a, b, 1 if in_columns else 2) for a, b in zip(before, (key, value)))
        kv_len += past
    mask, mask_data = {}, {}
    lengths = source.get("input.nonpad_kv_seqlen", batch) if "input.nonpad_kv_seqlen" in source else None
    if source.option("attr.is_causal", 0):
        offsets = [length - seq_len for length in lengths.values] if lengths else [past] * batch
        mask["causal"] = True
        mask_data["causal_offsets"] = Tensor("I32", [batch], offsets)
    if lengths:
        mask["padding"] = True
        mask_data["lengths"] = Tensor("I32", [batch], lengths.values)
    if "input.attn_mask" in source:
        additive = source.get("input.attn_mask")
        if additive.dtype == "BOOL":
            additive = hidden_where(additive, False, query.dtype)
        missing = kv_len - additive.shape[-1]
        if missing > 0 and additive.shape[-1] > 1:  # a shorter mask hides the keys that it does not mention
            cols = additive.shape[-1]
            values = [v for i in range(0, len(additive.values), cols)
                      for v in additive.values[i:i + cols] + [-math.inf] * missing]
            additive = Tensor(additive.dtype, additive.shape[:-1] + [kv_len], values)
        mask_heads = additive.shape[-3] if len(additive.shape) > 2 else 1
        mask["additive_heads"] = mask_heads
        mask_data["additive"] = broadcast(additive, [batch, mask_heads, seq_len, kv_len])

    expected = {"Y": source.get("output.Y", *layout(seq_len, d_v))}
    if present := "output.present_key" in source:
        expected["present_key"] = source.get("output.present_key", batch, kv_heads, kv_len, d_k)
        expected["present_value"] = source.get("output.present_value", batch, kv_heads, kv_len, d_v)
        if in_columns:
            expected.update({name: as_columns(expected[name]) for name in ("present_key", "present_value")})
    scores = "kNone"
    if "output.qk_matmul_output" in source:
        scores = ["kProduct", "kCapped", "kMasked", "kWeights"][source.option("attr.qk_matmul_output_mode", 0)]
        expected["qk_matmul_output"] = source.get("output.qk_matmul_output", batch, heads, seq_len, kv_len)
    scalar = source.scalar("input.Q")
    scale = source.option("attr.scale", 0) or 1 / math.sqrt(d_k)
    sizes = "conformance::AttentionSizes" + braces(
        heads=heads, kv_heads=kv_heads, seq_len=seq_len, kv_len=kv_len, d_k=d_k, d_v=d_v,
        heads_in_columns=boolean(in_columns), capped=boolean(softcap), reports_present=boolean(present))
    return Case(header="attention_case.hpp",
                call=f"attention_case<{sizes}, conformance::Scores::{scores}, {mask_options(**mask)}, {scalar}>",
                data={"batch": batch, "scale": number(scalar, scale), "softcap": number(scalar, softcap),
                      "query": source.get("input.Q", *layout(seq_len, d_k)), "key": key, "value": value,
                      "mask": {name: mask_data[name] for name in ("causal_offsets", "lengths", "additive")
                               if name in mask_data}},
                expected=expected, scalar=scalar, terms=d_k + kv_len, epsilon=onnx_epsilon(source))


def onnx_softmax(source, layer="Softmax"):
    """Along an axis; before opset 13 everything from the axis on is one row."""
    flattens = source.option("opset", {}).get("", 13) < 13
    axis = source.option("attr.axis", 1 if flattens else -1)

    def to_rows(tensor):
        if not flattens:
            return as_rows(tensor, axis)
        first = axis_of(tensor, axis)
        return Tensor(tensor.dtype, [math.prod(tensor.shape[:first]), math.prod(tensor.shape[first:])], tensor.values)

    case = softmax_rows(source, to_rows, {"input": "input.x", "out": "output.y"}, layer)
    case.epsilon = onnx_epsilon(source)
    return case


def onnx_log_softmax(source):
    return onnx_softmax(source, "LogSoftmax")


def onnx_optimizer(source, inputs, states):
    """One step from given states. `inputs`: how many tensors there are for each parameter; `states`: (ours, theirs)."""
    names = source.option("node_inputs")[2:]
    count = len(names) // inputs
    parameters, gradients, *moments = [[source.get("input." + name) for name in names[i:i + count]]
                                       for i in range(0, len(names), count)]
    parameter_names = labels(names[:count])
    step, = source.get("input.T").values
    outputs = source.option("node_outputs")
    expected = {"params." + label: source.get("output." + outputs[i]) for i, label in enumerate(parameter_names)}
    for k, state in enumerate(states):
        expected.update({f"state.{state}.{label}": source.get("output." + outputs[(k + 1) * count + i])
                         for i, label in enumerate(parameter_names)})
    data = {"names": parameter_names, "parameters": concatenate(parameters), "gradients": concatenate(gradients)}
    data.update(zip(("first", "second"), map(concatenate, moments)))
    return parameters, step, data, expected


def one_step(optimizer, options, previous_steps, parameters, data, expected, scalar):
    sizes = ", ".join(str(len(tensor.values)) for tensor in parameters)
    return Case(header="optimizer_case.hpp", call=f"optimizer_case<{optimizer}, {sizes}>",
                data={"options": options, "steps": 1, "previous_steps": previous_steps, **data},
                expected=expected, scalar=scalar, terms=1)


def onnx_adam(source):
    """ONNX Adam: moments are given, and step 0 means no bias correction."""
    if source.option("attr.norm_coefficient_post", 0):
        raise Skip("norm_coefficient_post: no such option")
    parameters, step, data, expected = onnx_optimizer(source, 4, ("exp_avg", "exp_avg_sq"))
    scalar = source.scalar("input.R")
    options = adam_options(scalar, source.get("input.R").values[0],
                           (source.option("attr.alpha", 0.9), source.option("attr.beta", 0.999)),
                           source.option("attr.epsilon", 1e-6), source.option("attr.norm_coefficient", 0))
    previous = step - 1 if step > 0 else "conformance::kNoBiasCorrection"
    optimizer = adam_type(scalar, "kCoupled", "kBeforeBiasCorrection")
    return one_step(optimizer, options, previous, parameters, data, expected, scalar)


def onnx_momentum(source):
    """ONNX Momentum: v <- alpha v + beta g, where beta counts as 1 in step 0."""
    parameters, step, data, expected = onnx_optimizer(source, 3, ("momentum_buffer",))
    nesterov = source.text("attr.mode") == "nesterov"
    beta = source.option("attr.beta")
    dampening = 1 - beta if step > 0 else 0
    if nesterov and dampening != 0:
        raise Skip("Nesterov momentum with dampening: no such option")
    scalar = source.scalar("input.R")
    momentum = source.option("attr.alpha")
    options = sgd_options(scalar, source.get("input.R").values[0], momentum, dampening,
                          source.option("attr.norm_coefficient", 0))
    return one_step(sgd_type(scalar, momentum, nesterov), options, step, parameters, data, expected, scalar)


# By the metadata's `family`, or by ONNX's `op`.
FAMILIES = {
    "mha": mha,
    "linear": linear,
    "lora": lora,
    "softmax": softmax,
    "adamw": trajectory,
    "adam": trajectory,
    "sgd": trajectory,
    "adamw_linear": adamw_linear,
    "optim_linear_regression": optim_linear_regression,
    "Attention": onnx_attention,
    "Softmax": onnx_softmax,
    "LogSoftmax": onnx_log_softmax,
    "Adam": onnx_adam,
    "Momentum": onnx_momentum,
    **layer_families.FAMILIES,
    **loss_families.FAMILIES,
    **encoder_families.FAMILIES,
    **trained_family.FAMILIES,
}

# Known, and nothing of the library yet.
MISSING = {
    "Adagrad": "adagrad: no such optimizer yet",
}


def prepare(tensors, metadata):
    """The Case of a file."""
    if not isinstance(metadata, dict):
        raise ValueError("the metadata is not an object")
    family = metadata.get("family") or metadata.get("op")
    if family in MISSING:
        raise Skip(MISSING[family])
    if family is None:
        raise Skip("the metadata names no family")
    if family not in FAMILIES:
        raise Skip(f"unknown family {family}")
    source = Source(tensors, metadata)
    case = FAMILIES[family](source)
    if unused := source.unused():  # whatever it does to the result, we would not
        raise Skip(f"{unused[0].removeprefix('attr.')}: {family} does not know it")
    check_types(case)
    return case
