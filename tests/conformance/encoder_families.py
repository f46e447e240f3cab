"""Families of whole layers of a transformer, stacks of them, and a model trained with them."""
from case_source import Case, Skip, boolean, braces, concatenate, is_causal, mask_options, torch_masks
from layer_families import ACTIVATIONS
from optimizer_types import adam_options
from safetensors import Tensor

ATTENTION = ("query", "key", "value", "output")


def attention_parameters(source, prefix, ours, width):
    """[(our name, tensor)] of an nn.MultiheadAttention, in the library's order, from PyTorch's [out, in]."""
    packed, packed_bias = (source.get(prefix + name, 3 * width, *rest)
                           for name, rest in (("in_proj_weight", [width]), ("in_proj_bias", [])))
    result = []
    for i, name in enumerate(ATTENTION[:3]):
        result.append((f"{ours}.{name}.weight", packed.rows(i * width, (i + 1) * width).transpose()))
        result.append((f"{ours}.{name}.bias", packed_bias.rows(i * width, (i + 1) * width)))
    result.append((f"{ours}.output.weight", source.get(prefix + "out_proj.weight", width, width).transpose()))
    result.append((f"{ours}.output.bias", source.get(prefix + "out_proj.bias", width)))
    return result


def linear_parameters(source, prefix, ours, d_in, d_out):
    return [(ours + ".weight", source.get(prefix + ".weight", d_out, d_in).transpose()),
            (ours + ".bias", source.get(prefix + ".bias", d_out))]


def norm_parameters(source, prefix, ours, width):
    return [(f"{ours}.{name}", source.get(f"{prefix}.{name}", width)) for name in ("weight", "bias")]


def layer_parameters(source, prefix, ours, attentions, width, d_ff):
    """`attentions`: PyTorch's and our names of them. A layer has one norm for each, and one for its network."""
    result = []
    for theirs, name in attentions:
        result += attention_parameters(source, f"{prefix}{theirs}.", ours + name, width)
    result += linear_parameters(source, prefix + "linear1", ours + "feed_forward.linear1", width, d_ff)
    result += linear_parameters(source, prefix + "linear2", ours + "feed_forward.linear2", d_ff, width)
    for i in range(len(attentions) + 1):
        result += norm_parameters(source, f"{prefix}norm{i + 1}", f"{ours}norm{i + 1}", width)
    return result


def layer_shape(source, kind, seq_len, **more):
    activation = source.metadata["activation"]
    if activation not in ACTIVATIONS:
        raise Skip(f"activation {activation}: no such function")
    if source.option("dropout", 0):
        raise Skip("dropout: another generator's masks")
    return f"attune::{kind}Shape" + braces(
        seq_len=seq_len, d_model=source.option("embed_dim"), num_heads=source.option("num_heads"),
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
    layers, final_norm = source.option("layers", 1), bool(source.option("final_norm", 0))
    d_ff = source.option("dim_feedforward")
    stacked = "param.layers.0.linear1.weight" in source

    def parameters(prefix):
        result = []
        for i in range(layers):
            result += layer_parameters(source, f"{prefix}layers.{i}." if stacked else prefix, f"{i}.",
                                       [("self_attn", "self_attention")], width, d_ff)
        if final_norm and prefix + "norm.weight" in source:
            result += norm_parameters(source, prefix + "norm", "norm", width)
        elif final_norm:  # as PyTorch's starts
            result += [("norm.weight", Tensor(src.dtype, [width], [1.0] * width)),
                       ("norm.bias", Tensor(src.dtype, [width], [0.0] * width))]
        return result

    mask, mask_data = torch_masks(source, src.dtype, batch, source.option("num_heads"), seq_len, seq_len)
    scalar = source.scalar("src")
    out = source.get("out" if "out" in source else "expected", *src.shape)
    expected = {"out": out, "out_inference": out}
    data = {"batch": batch, "parameters": concatenate([tensor for _, tensor in parameters("param.")]), "src": src}
    if "grad_out" in source:
        data["grad_out"] = source.get("grad_out", *src.shape)
        expected["grad.src"] = source.get("grad.src", *src.shape)
        expected.update(("grad." + name, tensor) for name, tensor in parameters("grad."))
    data["mask"] = mask_data
    shape = layer_shape(source, "EncoderLayer", seq_len)
    return Case(header="encoder_case.hpp",
                call=f"encoder_case<{shape}, {layers}, {boolean(final_norm)}, {mask_options(**mask)}, {scalar}>",
                data=data, expected=expected, scalar=scalar,
                terms=layers * layer_terms(source, seq_len) + batch * seq_len,
                tolerance=source.option("atol"), magnitudes=shared_magnitudes(expected))


def decoder(source):
    """nn.TransformerDecoderLayer; of masks it may have a causal one, and padding of the memory."""
    tgt, memory = source.get("tgt"), source.get("memory")
    batch, seq_len, width = tgt.shape
    memory_len = memory.shape[1]

    def parameters(prefix):
        return layer_parameters(source, prefix, "",
                                [("self_attn", "self_attention"), ("multihead_attn", "cross_attention")], width,
                                source.option("dim_feedforward"))

    masks = {name for name in source.tensors if "mask" in name}
    if unknown := sorted(masks - {"attn_mask", "memory_key_padding_mask"}):
        raise Skip(f"{unknown[0]}: no such decoder case yet")
    if "attn_mask" in masks and not is_causal(source.get("attn_mask", seq_len, seq_len)):
        raise Skip("attn_mask: a decoder case is causal or without a mask")
    mask_data = {}
    if "memory_key_padding_mask" in masks:
        padding = source.get("memory_key_padding_mask", batch, memory_len)
        mask_data["valid"] = Tensor("BOOL", padding.shape, [not hidden for hidden in padding.values])
    scalar = source.scalar("tgt")
    out = source.get("out" if "out" in source else "expected", *tgt.shape)
    expected = {"out": out, "out_inference": out}
    data = {"batch": batch, "parameters": concatenate([tensor for _, tensor in parameters("param.")]), "tgt": tgt,
            "memory": source.get("memory", batch, memory_len, width)}
    if "grad_out" in source:
        data["grad_out"] = source.get("grad_out", *tgt.shape)
        expected["grad.tgt"] = source.get("grad.tgt", *tgt.shape)
        expected["grad.memory"] = source.get("grad.memory", *memory.shape)
        expected.update(("grad." + name, tensor) for name, tensor in parameters("grad."))
    data["mask"] = mask_data
    shape = layer_shape(source, "DecoderLayer", seq_len, memory_len=memory_len)
    mask = "attune::CausalMask" if "attn_mask" in masks else "attune::NoMask"
    return Case(header="encoder_case.hpp",
                call=f"decoder_case<{shape}, {mask}, {mask_options(padding='valid' in mask_data)}, {scalar}>",
                data=data, expected=expected, scalar=scalar,
                terms=layer_terms(source, seq_len) + layer_terms(source, memory_len) + batch * seq_len,
                tolerance=source.option("atol"), magnitudes=shared_magnitudes(expected))


def train(source):
    """A classifier of nn.Linear, learned positions, nn.TransformerEncoder, nn.LayerNorm, mean and nn.Linear."""
    x = source.get("input")
    batch, seq_len, features = x.shape
    width, d_ff, layers = (source.option(name) for name in ("embed_dim", "dim_feedforward", "layers"))
    classes, steps = source.option("classes"), source.option("steps")
    scalar = source.scalar("input")

    def parameters(prefix):
        result = linear_parameters(source, prefix + "embed", "embed", features, width)
        result.append(("positions.weight", source.get(prefix + "pos", seq_len, width)))
        for i in range(layers):
            result += layer_parameters(source, f"{prefix}encoder.layers.{i}.", f"encoder.{i}.",
                                       [("self_attn", "self_attention")], width, d_ff)
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


FAMILIES = {
    "encoder_layer": encoder,
    "encoder": encoder,
    "decoder_layer": decoder,
    "train": train,
}
