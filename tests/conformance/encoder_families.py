"""Families of whole layers of a transformer, stacks of them, and a model trained with them."""
from case_source import Case, Skip, boolean, braces, concatenate, mask_options, no_dropout, torch_masks
from layer_families import ACTIVATIONS, norm_shape
from optimizer_types import adam_options
from safetensors import Tensor

ATTENTION = ("query", "key", "value", "output")


def attention_parameters(source, prefix, ours, width, bias=True):
    """[(our name, tensor)] of an nn.MultiheadAttention, in the library's order, from PyTorch's [out, in]."""
    packed = source.get(prefix + "in_proj_weight", 3 * width, width)
    packed_bias = source.get(prefix + "in_proj_bias", 3 * width) if bias else None
    result = []
    for i, name in enumerate(ATTENTION[:3]):
        result.append((f"{ours}.{name}.weight", packed.rows(i * width, (i + 1) * width).transpose()))
        if bias:
            result.append((f"{ours}.{name}.bias", packed_bias.rows(i * width, (i + 1) * width)))
    return result + linear_parameters(source, prefix + "out_proj", ours + ".output", width, width, bias)


def linear_parameters(source, prefix, ours, d_in, d_out, bias=True):
    result = [(ours + ".weight", source.get(prefix + ".weight", d_out, d_in).transpose())]
    return result + [(ours + ".bias", source.get(prefix + ".bias", d_out))] if bias else result


def norm_parameters(source, prefix, ours, width, bias=True):
    return [(f"{ours}.{name}", source.get(f"{prefix}.{name}", width))
            for name in (("weight", "bias") if bias else ("weight",))]


def layer_parameters(source, prefix, ours, attentions, width, d_ff, bias=True):
    """`attentions`: PyTorch's and our names of them. A layer has one norm for each, and one for its network."""
    result = []
    for theirs, name in attentions:
        result += attention_parameters(source, f"{prefix}{theirs}.", ours + name, width, bias)
    result += linear_parameters(source, prefix + "linear1", ours + "feed_forward.linear1", width, d_ff, bias)
    result += linear_parameters(source, prefix + "linear2", ours + "feed_forward.linear2", d_ff, width, bias)
    for i in range(len(attentions) + 1):
        result += norm_parameters(source, f"{prefix}norm{i + 1}", f"{ours}norm{i + 1}", width, bias)
    return result


def stack_parameters(source, prefix, ours, attentions, width):
    """Of layers one after the other, and of the normalization after them, if there is one; `ours`: our name of them all."""
    layers, bias = number_of_layers(source), has_bias(source)
    stacked, normed = "param.layers.0.linear1.weight" in source, source.option("final_norm", 0)
    if not stacked and layers > 1 and prefix == "grad.":
        raise Skip("the gradient of weights that layers share: no such layer")
    result = []
    for i in range(layers):
        result += layer_parameters(source, f"{prefix}layers.{i}." if stacked else prefix, f"{ours}{'0.' if normed else ''}{i}.",
                                   attentions, width, source.option("dim_feedforward"), bias)
    for name, start in (("weight", 1.0), ("bias", 0.0)) if normed else ():
        if f"param.norm.{name}" in source:
            result.append((f"{ours}1.{name}", source.get(f"{prefix}norm.{name}", width)))
        elif prefix == "param.":  # as PyTorch's starts, or would if there were one
            dtype = source.get("param.layers.0.linear1.weight" if stacked else "param.linear1.weight").dtype
            result.append((f"{ours}1.{name}", Tensor(dtype, [width], [start] * width)))
    return result


def has_bias(source):
    """Whether the layers are made with bias=True."""
    return any(name.startswith("param") and name.endswith("linear1.bias") for name in source.tensors)


def number_of_layers(source):
    layers = source.option("layers", 1)
    if layers < 1:
        raise Skip(f"{layers} layers: no such model")
    return layers


def stack(source, kind, rows, scalar, normed=True, **more):
    """The type of layers one after the other, with or without a normalization behind them."""
    layers = f"attune::Repeat<{number_of_layers(source)}, attune::{kind}Layer<{layer_shape(source, kind + 'Layer', rows, **more)}, {scalar}>>"
    norm = norm_shape(rows, source.option("embed_dim"), float(source.option("layer_norm_eps", 1e-5)), True, True)
    return f"attune::Sequential<{layers}, attune::LayerNorm<{norm}, {scalar}>>" if normed else layers


def layer_shape(source, kind, seq_len, **more):
    activation = source.text("activation")
    if activation not in ACTIVATIONS:
        raise Skip(f"activation {activation}: no such function")
    no_dropout(source)
    return f"attune::{kind}Shape" + braces(
        attention=braces(seq_len=seq_len, d_model=source.option("embed_dim"), num_heads=source.option("num_heads"),
                         bias=boolean(has_bias(source))),
        d_ff=source.option("dim_feedforward"), **more, activation=f"attune::Activation::{ACTIVATIONS[activation]}",
        norm="attune::NormPlacement::" + ("kBefore" if source.option("norm_first", 0) else "kAfter"),
        epsilon=float(source.option("layer_norm_eps", 1e-5)))


def layer_terms(source, kv_len):
    """The lengths of the sums that a value goes through on its way through a layer, forward and back.

    Query, scores, context, output, two norms, and the two linear layers.
    """
    width, heads = source.option("embed_dim"), source.option("num_heads")
    return 2 * (width + width // heads + kv_len + width + 2 * width + width + source.option("dim_feedforward"))


def shared_magnitudes(tensors):
    """PyTorch packs query, key and value: what one of the three loses is relative to the largest of them.

    So it is with the key's bias, whose gradient is zero but for rounding.
    """
    result = {}
    for name in tensors:
        parts = name.rsplit(".", 2)
        if len(parts) == 3 and parts[1] in ATTENTION[:3]:
            family = [".".join([parts[0], part, parts[2]]) for part in ATTENTION[:3]]
            result[name] = max(abs(value) for member in family for value in tensors[member].values)
    return result


SELF, CROSS = ("self_attn", "self_attention"), ("multihead_attn", "cross_attention")


def encoder(source):
    """nn.TransformerEncoderLayer, or an nn.TransformerEncoder of several."""
    src, scalar = source.get("src"), source.scalar("src")
    batch, seq_len, width = src.shape
    mask, mask_data = torch_masks(source, src.dtype, batch, source.option("num_heads"), seq_len, seq_len,
                                  ("attn_mask", "src_mask"), ("key_padding_mask", "src_key_padding_mask"))
    return model_case(source, stack(source, "Encoder", seq_len, scalar, source.option("final_norm", 0)), [mask],
                      {"input": src, "batch": batch, "mask": mask_data}, src.shape,
                      lambda: source.get("grad.src", *src.shape),
                      lambda prefix: stack_parameters(source, prefix, "", [SELF], width),
                      source.option("layers", 1) * layer_terms(source, seq_len) + batch * seq_len)


def joined_rows(first, second):
    """The sequences of a batch, each behind that of another."""
    values = [value for i in range(first.shape[0]) for tensor in (first, second) for value in tensor.at(i).values]
    return Tensor(first.dtype, [first.shape[0], first.shape[1] + second.shape[1], first.shape[2]], values)


def decoder(source):
    """nn.TransformerDecoderLayer, or an nn.TransformerDecoder of several. The memory's encoder changes nothing."""
    tgt, memory, scalar = source.get("tgt"), source.get("memory"), source.scalar("tgt")
    batch, seq_len, width = tgt.shape
    memory_len = memory.shape[1]
    heads = source.option("num_heads")
    source.get("memory", batch, memory_len, width)

    # A padding mask of no name is of what it has the length of.
    paddings = {"tgt": ["tgt_key_padding_mask"], "memory": ["memory_key_padding_mask"]}
    if "key_padding_mask" in source:
        fits = source.get("key_padding_mask").shape == [batch, seq_len]
        paddings["tgt" if fits else "memory"].append("key_padding_mask")
    mask, mask_data = torch_masks(source, tgt.dtype, batch, heads, seq_len, seq_len, ("attn_mask", "tgt_mask"),
                                  paddings["tgt"])
    memory_mask, memory_data = torch_masks(source, tgt.dtype, batch, heads, seq_len, memory_len, ("memory_mask",),
                                           paddings["memory"])
    identity = "attune::AvgPool1d<attune::Pool1dShape" + braces(seq_len=memory_len, d_model=width, kernel=1, stride=1) + f", {scalar}>"
    layers = stack(source, "Decoder", seq_len, scalar, source.option("final_norm", 0), memory_len=memory_len)
    return model_case(source, f"attune::EncoderDecoder<{identity}, {layers}>", [{}, mask, memory_mask],
                      {"input": joined_rows(memory, tgt), "batch": batch, "mask": mask_data, "memory_mask": memory_data},
                      tgt.shape,
                      lambda: joined_rows(source.get("grad.memory", *memory.shape), source.get("grad.tgt", *tgt.shape)),
                      lambda prefix: stack_parameters(source, prefix, "decoder.", [SELF, CROSS], width),
                      source.option("layers", 1) * (layer_terms(source, seq_len) + layer_terms(source, memory_len))
                      + batch * seq_len)


def transformer(source):
    """nn.Transformer. Source and target of a sequence stand one behind the other."""
    src, tgt = source.get("src"), source.get("tgt")
    (batch, source_len, width), seq_len = src.shape, tgt.shape[1]
    heads, layers, scalar = source.option("num_heads"), number_of_layers(source), source.scalar("src")

    def parameters(prefix):
        result = []
        for part, attentions in (("encoder", [SELF]), ("decoder", [SELF, CROSS])):
            for i in range(layers):
                result += layer_parameters(source, f"{prefix}{part}.layers.{i}.", f"{part}.0.{i}.", attentions, width,
                                           source.option("dim_feedforward"))
            result += norm_parameters(source, f"{prefix}{part}.norm", f"{part}.1", width)
        return result

    masks, data = [], {"input": joined_rows(src, tgt), "batch": batch}
    for name, rows, cols, ours, padding in (
            ("source_mask", source_len, source_len, "src_mask", "src_key_padding_mask"),
            ("mask", seq_len, seq_len, "attn_mask", "tgt_key_padding_mask"),
            ("memory_mask", seq_len, source_len, "memory_mask", "memory_key_padding_mask")):
        mask, data[name] = torch_masks(source, src.dtype, batch, heads, rows, cols, (ours,), (padding,))
        masks.append(mask)
    return model_case(source, f"attune::EncoderDecoder<{stack(source, 'Encoder', source_len, scalar)}, "
                      f"{stack(source, 'Decoder', seq_len, scalar, memory_len=source_len)}>", masks, data, tgt.shape,
                      lambda: joined_rows(source.get("grad.src", *src.shape), source.get("grad.tgt", *tgt.shape)), parameters,
                      layers * (2 * layer_terms(source, source_len) + layer_terms(source, seq_len)) + batch * seq_len)


def model_case(source, model, masks, data, shape, input_gradient, parameters, terms):
    """`masks`: their options, one or those of source, target and memory; `shape`: of the output; `input_gradient()`,
    `parameters(prefix)`: what the file has of them."""
    scalar = {"F32": "float", "F64": "double"}[data["input"].dtype]
    out = source.get(source.first("out", "expected") or "out", *shape)
    expected = {"out": out, "out_inference": out}
    data["parameters"] = concatenate([tensor for _, tensor in parameters("param.")])
    if "grad_out" in source:
        data["grad_out"] = source.get("grad_out", *shape)
        expected["grad.input"] = input_gradient()
        expected.update(("grad." + ours, tensor) for ours, tensor in parameters("grad."))
    order = ("input", "parameters", "grad_out", "batch", "mask", "source_mask", "memory_mask")
    return Case(header="layer_case.hpp", call=f"layer_case<{', '.join([model, *(mask_options(**mask) for mask in masks)])}>",
                data={key: data[key] for key in order if key in data}, expected=expected, scalar=scalar, terms=terms,
                tolerance=source.option("atol", None), magnitudes=shared_magnitudes(expected))


def train(source):
    """A classifier of nn.Linear, learned positions, nn.TransformerEncoder, nn.LayerNorm, mean and nn.Linear."""
    x = source.get("input")
    batch, seq_len, features = x.shape
    width, d_ff, layers = source.option("embed_dim"), source.option("dim_feedforward"), number_of_layers(source)
    bias = has_bias(source)
    classes, steps = source.option("classes"), source.option("steps")
    scalar = source.scalar("input")

    def parameters(prefix):
        result = linear_parameters(source, prefix + "embed", "0", features, width)
        result.append(("1.weight", source.get(prefix + "pos", seq_len, width)))
        for i in range(layers):
            result += layer_parameters(source, f"{prefix}encoder.layers.{i}.", f"2.{i}.", [SELF], width, d_ff, bias)
        result += norm_parameters(source, prefix + "norm", "3", width)
        return result + linear_parameters(source, prefix + "head", "5", width, classes)

    expected = {name: source.get(name) for name in ("losses", "logits_step0", "logits_final")}
    expected.update(("grad0." + name, tensor) for name, tensor in parameters("grad0."))
    # AdamW makes steps of the rounding noise in the key bias's gradient, which is zero.
    expected.update(("param_final." + name, tensor) for name, tensor in parameters("param_final.")
                    if not name.endswith("key.bias"))
    magnitudes = shared_magnitudes({name: tensor for name, tensor in expected.items() if name.startswith("grad0.")})
    model = "conformance::ClassifierShape" + braces(layer=layer_shape(source, "EncoderLayer", seq_len), layers=layers,
                                                    features=features, classes=classes)
    options = adam_options(scalar, source.option("lr"), source.option("betas"), source.option("eps"),
                           source.option("weight_decay"))
    return Case(header="train_case.hpp", call=f"train_case<{model}, {scalar}>",
                data={"options": options, "steps": steps, "batch": batch,
                      "parameters": concatenate([tensor for _, tensor in parameters("param0.")]), "inputs": x,
                      "targets": source.get("target", batch)},
                expected=expected, scalar=scalar, terms=layers * layer_terms(source, seq_len) + batch * seq_len,
                magnitudes=magnitudes)


def llama(source):
    """Llama's blocks over an embedding that is the head, too."""
    vocabulary, width = source.get("embedding.weight").shape
    heads, kv_heads, layers = (source.option(name) for name in ("num_heads", "num_kv_heads", "layers"))
    kv_width = kv_heads * width // heads
    d_ff = source.get("layers.0.gate.weight").shape[0]
    seq_len, = source.get("ids").shape
    sizes = {"self_attention.query": ("q_proj_weight", width, width),
             "self_attention.key": ("k_proj_weight", kv_width, width),
             "self_attention.value": ("v_proj_weight", kv_width, width),
             "self_attention.output": ("out_proj.weight", width, width),
             "feed_forward.gate": ("gate.weight", d_ff, width), "feed_forward.up": ("up.weight", d_ff, width),
             "feed_forward.down": ("down.weight", width, d_ff)}

    def parameters(prefix):
        result = {"embedding.weight": source.get(prefix + "embedding.weight", vocabulary, width)}
        for layer in range(layers):
            ours, theirs = f"body.0.{layer}.", f"{prefix}layers.{layer}."
            result.update({f"{ours}{name}.weight": source.get(theirs + of_file, *size).transpose()
                           for name, (of_file, *size) in sizes.items()})
            result.update({f"{ours}{norm}.weight": source.get(f"{theirs}{norm}.weight", width)
                           for norm in ("norm1", "norm2")})
        result["body.1.weight"] = source.get(prefix + "norm.weight", width)
        return result

    out = source.get("out", seq_len, vocabulary)
    expected = {"out": out, "out_inference": out}
    expected.update(("grad." + name, tensor) for name, tensor in parameters("grad.").items())
    # A norm's gradient is a sum of products of others' that cancels: errors are relative to the largest of all.
    gradients = [name for name in expected if name.startswith("grad.")]
    largest = max(abs(value) for name in gradients for value in expected[name].values)
    scalar = source.scalar("embedding.weight")
    shape = "attune::AttentionShape" + braces(
        seq_len=seq_len, d_model=width, num_heads=heads, num_kv_heads=kv_heads, bias="false",
        rotary_dim=width // heads, window="{.right = 0}")
    norm = f"attune::RmsNorm<attune::NormShape{braces(rows=seq_len, d_model=width)}, {scalar}>"
    network = "attune::SwiGlu<attune::FeedForwardShape" + braces(rows=seq_len, d_model=width, d_ff=d_ff, bias="false") + f", {scalar}>"
    block = (f"attune::EncoderLayerOf<attune::MultiHeadAttention<{shape}, {scalar}>, {network}, {norm}, "
             "attune::BranchOptions{.norm = attune::NormPlacement::kBefore}>")
    tokens = "attune::Embedding<attune::EmbeddingShape" + braces(seq_len=seq_len, vocabulary=vocabulary, d_model=width) + f", {scalar}>"
    return Case(header="layer_case.hpp",
                call=f"layer_case<attune::Tied<{tokens}, attune::Sequential<attune::Repeat<{layers}, {block}>, {norm}>>>",
                data={"input": source.get("ids", seq_len), "parameters": concatenate(list(parameters("").values())),
                      "grad_out": source.get("grad_out", seq_len, vocabulary)},
                expected=expected, scalar=scalar, terms=layers * (3 * width + d_ff + 2 * seq_len),
                magnitudes=dict.fromkeys(gradients, largest))


FAMILIES = {
    "llama": llama,
    "encoder_layer": encoder,
    "encoder": encoder,
    "decoder_layer": decoder,
    "decoder": decoder,
    "transformer": transformer,
    "train": train,
}
