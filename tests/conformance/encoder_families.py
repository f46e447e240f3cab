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


def stack_parameters(source, prefix, attentions, width):
    """Of layers one after the other, and of the normalization after them, if there is one."""
    layers, bias = number_of_layers(source), has_bias(source)
    stacked = "param.layers.0.linear1.weight" in source
    if not stacked and layers > 1 and prefix == "grad.":
        raise Skip("the gradient of weights that layers share: no such layer")
    result = []
    for i in range(layers):
        result += layer_parameters(source, f"{prefix}layers.{i}." if stacked else prefix, f"{i}.", attentions, width,
                                   source.option("dim_feedforward"), bias)
    if not source.option("final_norm", 0):
        return result
    for name, start in (("weight", 1.0), ("bias", 0.0)):
        if f"param.norm.{name}" in source:
            result.append((f"norm.{name}", source.get(f"{prefix}norm.{name}", width)))
        elif prefix == "param.":  # as PyTorch's starts, or would if there were one
            dtype = source.get("param.layers.0.linear1.weight" if stacked else "param.linear1.weight").dtype
            result.append((f"norm.{name}", Tensor(dtype, [width], [start] * width)))
    return result


def has_bias(source):
    """Whether the layers are made with bias=True."""
    return any(name.startswith("param") and name.endswith("linear1.bias") for name in source.tensors)


LAYERS_AT_MOST = 8  # as stack_parameters.hpp has it


def number_of_layers(source):
    layers = source.option("layers", 1)
    if not 1 <= layers <= LAYERS_AT_MOST:
        raise Skip(f"{layers} layers: cases have 1 to {LAYERS_AT_MOST}")
    return layers


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


def encoder(source):
    """nn.TransformerEncoderLayer, or an nn.TransformerEncoder of several."""
    src = source.get("src")
    batch, seq_len, width = src.shape

    def parameters(prefix):
        return stack_parameters(source, prefix, [("self_attn", "self_attention")], width)

    shape = layer_shape(source, "EncoderLayer", seq_len)
    mask, mask_data = torch_masks(source, src.dtype, batch, source.option("num_heads"), seq_len, seq_len,
                                  ("attn_mask", "src_mask"), ("key_padding_mask", "src_key_padding_mask"))
    data = {"batch": batch, "src": src, "mask": mask_data}
    return stack_case(source, "src", data, {"grad.src": src}, parameters, shape, mask_options(**mask),
                      layer_terms(source, seq_len))


def decoder(source):
    """nn.TransformerDecoderLayer, or an nn.TransformerDecoder of several."""
    tgt, memory = source.get("tgt"), source.get("memory")
    batch, seq_len, width = tgt.shape
    memory_len = memory.shape[1]
    heads = source.option("num_heads")
    source.get("memory", batch, memory_len, width)

    def parameters(prefix):
        return stack_parameters(source, prefix,
                                [("self_attn", "self_attention"), ("multihead_attn", "cross_attention")], width)

    # A padding mask of no name is of what it has the length of.
    paddings = {"tgt": ["tgt_key_padding_mask"], "memory": ["memory_key_padding_mask"]}
    if "key_padding_mask" in source:
        fits = source.get("key_padding_mask").shape == [batch, seq_len]
        paddings["tgt" if fits else "memory"].append("key_padding_mask")
    shape = layer_shape(source, "DecoderLayer", seq_len, memory_len=memory_len)
    mask, mask_data = torch_masks(source, tgt.dtype, batch, heads, seq_len, seq_len, ("attn_mask", "tgt_mask"),
                                  paddings["tgt"])
    memory_mask, memory_data = torch_masks(source, tgt.dtype, batch, heads, seq_len, memory_len, ("memory_mask",),
                                           paddings["memory"])
    data = {"batch": batch, "src": tgt, "memory": memory, "mask": mask_data, "memory_mask": memory_data}
    return stack_case(source, "tgt", data, {"grad.tgt": tgt, "grad.memory": memory}, parameters, shape,
                      f"{mask_options(**mask)}, {mask_options(**memory_mask)}",
                      layer_terms(source, seq_len) + layer_terms(source, memory_len))


def stack_case(source, name, data, inputs, parameters, shape, masks, terms):
    """`name`: of the tensor that goes through the layers; `inputs`: names of gradients, and what they are of."""
    x = source.get(name)
    batch, seq_len, _ = x.shape
    layers = source.option("layers", 1)
    scalar = source.scalar(name)
    out = source.get(source.first("out", "expected") or "out", *x.shape)
    expected = {"out": out, "out_inference": out}
    data["parameters"] = concatenate([tensor for _, tensor in parameters("param.")])
    if "grad_out" in source:
        data["grad_out"] = source.get("grad_out", *x.shape)
        expected.update((gradient, source.get(gradient, *tensor.shape)) for gradient, tensor in inputs.items())
        expected.update(("grad." + ours, tensor) for ours, tensor in parameters("grad."))
    order = ("batch", "parameters", "src", "memory", "grad_out", "mask", "memory_mask")
    function = "encoder_case" if name == "src" else "decoder_case"
    return Case(header=f"{function}.hpp",
                call=f"{function}<{shape}, {layers}, {boolean(source.option('final_norm', 0))}, {masks}, {scalar}>",
                data={key: data[key] for key in order if key in data}, expected=expected, scalar=scalar,
                terms=layers * terms + batch * seq_len, tolerance=source.option("atol", None),
                magnitudes=shared_magnitudes(expected))


def transformer(source):
    """nn.Transformer. Source and target of a sequence stand one behind the other."""
    src, tgt = source.get("src"), source.get("tgt")
    (batch, source_len, width), seq_len = src.shape, tgt.shape[1]
    heads, layers, scalar = source.option("num_heads"), number_of_layers(source), source.scalar("src")
    epsilon = float(source.option("layer_norm_eps", 1e-5))

    def parameters(prefix):
        result = []
        for part, attentions in (("encoder", [("self_attn", "self_attention")]),
                                 ("decoder", [("self_attn", "self_attention"), ("multihead_attn", "cross_attention")])):
            for i in range(layers):
                result += layer_parameters(source, f"{prefix}{part}.layers.{i}.", f"{part}.0.{i}.", attentions, width,
                                           source.option("dim_feedforward"))
            result += norm_parameters(source, f"{prefix}{part}.norm", f"{part}.1", width)
        return result

    def stack(kind, rows, **more):
        return (f"attune::Sequential<attune::Repeat<{layers}, attune::{kind}Layer<"
                f"{layer_shape(source, kind + 'Layer', rows, **more)}, {scalar}>>, "
                f"attune::LayerNorm<{norm_shape(rows, width, epsilon, True, True)}, {scalar}>>")

    def joined(first, second):
        values = []
        for i in range(batch):
            values += first.at(i).values + second.at(i).values
        return Tensor(first.dtype, [batch, source_len + seq_len, width], values)

    masks, data = [], {}
    for name, rows, cols, ours, padding in (
            ("source_mask", source_len, source_len, "src_mask", "src_key_padding_mask"),
            ("mask", seq_len, seq_len, "attn_mask", "tgt_key_padding_mask"),
            ("memory_mask", seq_len, source_len, "memory_mask", "memory_key_padding_mask")):
        mask, data[name] = torch_masks(source, src.dtype, batch, heads, rows, cols, (ours,), (padding,))
        masks.append(mask_options(**mask))
    out = source.get("out", batch, seq_len, width)
    expected = {"out": out, "out_inference": out,
                "grad.input": joined(source.get("grad.src", *src.shape), source.get("grad.tgt", *tgt.shape))}
    expected.update(("grad." + ours, tensor) for ours, tensor in parameters("grad."))
    return Case(header="transformer_case.hpp",
                call=f"transformer_case<attune::EncoderDecoder<{stack('Encoder', source_len)}, "
                     f"{stack('Decoder', seq_len, memory_len=source_len)}>, {', '.join(masks)}>",
                data={"batch": batch, "parameters": concatenate([tensor for _, tensor in parameters("param.")]),
                      "input": joined(src, tgt), "grad_out": source.get("grad_out", *out.shape), **data},
                expected=expected, scalar=scalar,
                terms=layers * (2 * layer_terms(source, source_len) + layer_terms(source, seq_len)) + batch * seq_len,
                magnitudes=shared_magnitudes(expected))


def train(source):
    """A classifier of nn.Linear, learned positions, nn.TransformerEncoder, nn.LayerNorm, mean and nn.Linear."""
    x = source.get("input")
    batch, seq_len, features = x.shape
    width, d_ff, layers = source.option("embed_dim"), source.option("dim_feedforward"), number_of_layers(source)
    bias = has_bias(source)
    classes, steps = source.option("classes"), source.option("steps")
    scalar = source.scalar("input")

    def parameters(prefix):
        result = linear_parameters(source, prefix + "embed", "embed", features, width)
        result.append(("positions.weight", source.get(prefix + "pos", seq_len, width)))
        for i in range(layers):
            result += layer_parameters(source, f"{prefix}encoder.layers.{i}.", f"encoder.{i}.",
                                       [("self_attn", "self_attention")], width, d_ff, bias)
        result += norm_parameters(source, prefix + "norm", "encoder.norm", width)
        return result + linear_parameters(source, prefix + "head", "head", width, classes)

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
    return Case(header="llama_case.hpp", call=f"llama_case<{shape}, {vocabulary}, {d_ff}, {layers}, {scalar}>",
                data={"parameters": concatenate(list(parameters("").values())), "ids": source.get("ids", seq_len),
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
