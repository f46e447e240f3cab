"""A trained classifier as PyTorch saved it, with some inputs and the logits of them: the file goes into flash as it is.

Metadata gives the architecture, `param.*` is the state_dict. The program runs the model where the file is and from a copy,
trains the copy for one step, and writes the file again, unchanged and trained; `written.*` are the tensors of that file.

The step is one of plain gradient descent, on the sequences with the largest losses: the others have hardly a gradient. The
weights that are written have to be one step by the gradients that the program writes; whether these are right, the family
`train` knows. The losses follow from the file's own logits.
"""
import math

from case_source import Case, boolean, braces, number
from encoder_families import has_bias, layer_shape, layer_terms
import safetensors
from safetensors import Tensor

TRAINED_ON = 3  # sequences at most
LEARNING_RATE = 0.5


def sequential(shape, encoder_layer, epsilon, tensors, scalar):
    """The model's type, and the names of its layers that have parameters."""
    tokens, width = shape["seq_len"], shape["embed_dim"]

    def linear(name, rows, d_in, d_out):
        options = braces(rows=rows, d_in=d_in, d_out=d_out, bias=boolean(name + ".bias" in tensors))
        return name, f"Linear<attune::LinearShape{options}, {scalar}>"

    layers = [linear("embed", tokens, shape["d_in"], width)]
    if "pos" in tensors:
        layers.append(("pos", "LearnedPositions<attune::PositionShape" + braces(seq_len=tokens, d_model=width)
                       + f", {scalar}>"))
    layers.append(("encoder.layers", f"Repeat<{shape['layers']}, attune::EncoderLayer<{encoder_layer}, {scalar}>>"))
    if "norm.weight" in tensors:
        options = braces(rows=tokens, d_model=width, epsilon=epsilon, weight="true", bias=boolean("norm.bias" in tensors))
        layers.append(("norm", f"LayerNorm<attune::NormShape{options}, {scalar}>"))
    layers.append((None, "Pooling<attune::PoolingShape" + braces(seq_len=tokens, d_model=width) + f", {scalar}>"))
    layers.append(linear("head", 1, width, shape["classes"]))
    return (f"attune::Sequential<{', '.join('attune::' + text for _, text in layers)}>",
            [name for name, _ in layers if name])


def state_dict(source, shape):
    """The file's `param.*` by their names in the state_dict; those that the architecture has, and no others."""
    width, d_ff, tokens = shape["embed_dim"], shape["dim_feedforward"], shape["seq_len"]
    expected = {"embed.weight": [width, shape["d_in"]], "head.weight": [shape["classes"], width]}
    optional = {"embed.bias": [width], "head.bias": [shape["classes"]], "pos": [tokens, width], "norm.weight": [width]}
    if "param.norm.weight" in source:
        optional["norm.bias"] = [width]
    for i in range(shape["layers"]):
        layer = {"self_attn.in_proj_weight": [3 * width, width], "self_attn.out_proj.weight": [width, width],
                 "linear1.weight": [d_ff, width], "linear2.weight": [width, d_ff], "norm1.weight": [width],
                 "norm2.weight": [width]}
        biases = {name.replace("weight", "bias"): sizes[:1] for name, sizes in layer.items()}
        if has_bias(source):
            layer.update(biases)
        expected.update((f"encoder.layers.{i}.{name}", sizes) for name, sizes in layer.items())
    expected.update((name, sizes) for name, sizes in optional.items() if "param." + name in source)
    for name in source.tensors:
        if name.startswith("param.") and name.removeprefix("param.") not in expected:
            raise ValueError(f"{name} is no tensor of the model that the metadata describe")
    result = {name: source.get("param." + name) for name in expected}
    if "pos" in result:  # of shape [1, tokens, width], too
        positions = result["pos"]
        while len(positions.shape) > 2 and positions.shape[0] == 1:
            positions = positions.at(0)
        result["pos"] = positions
    for name, tensor in result.items():
        if tensor.shape != expected[name]:
            raise ValueError(f"param.{name} is {tensor.shape}, expected {expected[name]}")
    return result


def losses_of(logits, labels):
    """Cross-entropy of each row."""
    result = []
    for row, label in enumerate(labels):
        values = logits.at(row).values
        largest = max(values)
        result.append(math.log(sum(math.exp(value - largest) for value in values)) + largest - values[label])
    return result


def others_unchanged(original, files, names):
    """What is wrong with `written`, where it should be the original with other values in the tensors of `names`."""
    before = safetensors.parts(original)
    try:
        after = safetensors.parts(files.get("written", b""))
    except ValueError as error:
        return f"written: not a safetensors file: {error}"
    if before[0] != after[0]:
        return "written: another header"
    if len(before[2]) != len(after[2]):
        return f"written: {len(after[2])} bytes of tensors instead of {len(before[2])}"
    for name, entry in before[1].items():
        begin, end = entry.get("data_offsets", (0, 0))
        if name not in names and before[2][begin:end] != after[2][begin:end]:
            return f"written: {name} has changed"
    return None


def one_step(original, files, names, rate, epsilon):
    """What is wrong with `written`, where it should be the original after a step of such a rate by `gradients`."""
    if wrong := others_unchanged(original, files, names):
        return wrong
    before, gradients, after = (safetensors.parse(data)[0] for data in (original, files["gradients"], files["written"]))
    if not any(value for name in names for value in gradients[name].values):
        return "gradients: nothing but zeros"
    for name in names:
        for weight, gradient, now in zip(before[name].values, gradients[name].values, after[name].values):
            step = rate * gradient
            if not abs(now - (weight - step)) <= 2 * epsilon * max(abs(weight), abs(step)):
                return f"written: {name} is not a step by its gradient"
    return None


def trained_model(source):
    x = source.get("input")
    count = x.shape[0]
    shape = {name: source.option(name)
             for name in ("seq_len", "d_in", "embed_dim", "num_heads", "dim_feedforward", "layers", "classes")}
    if odd := [name for name, size in shape.items() if not isinstance(size, int) or size < 1]:
        raise ValueError(f"{odd[0]} is {shape[odd[0]]}")
    source.get("input", count, shape["seq_len"], shape["d_in"])
    lengths, labels = (source.get(name, count).values for name in ("length", "label"))
    if odd := [length for length in lengths if not 1 <= length <= shape["seq_len"]]:
        raise ValueError(f"a sequence has {odd[0]} of {shape['seq_len']} tokens")
    if odd := [label for label in labels if not 0 <= label < shape["classes"]]:
        raise ValueError(f"label {odd[0]} is none of {shape['classes']} classes")
    logits = source.get("logits", count, shape["classes"])
    scalar = source.scalar("param.embed.weight")
    if source.scalar("input") != scalar:
        raise ValueError(f"input is of type {x.dtype}, the weights are {scalar}s")
    epsilon = float(source.option("layer_norm_eps", 1e-5))
    tensors = state_dict(source, shape)
    model, layers = sequential(shape, layer_shape(source, "EncoderLayer", shape["seq_len"]), epsilon, tensors, scalar)
    losses = losses_of(logits, labels)
    batch = min(count, TRAINED_ON)
    rows = sorted(range(count), key=lambda row: -losses[row])[:batch]
    expected = {"logits": logits, "losses": Tensor(logits.dtype, [batch], [losses[row] for row in rows])}
    weights = {"param." + name for name in tensors}
    epsilon_of_scalar = 2.0 ** (-23 if scalar == "float" else -52)
    names = ", ".join(f'"{layer}"' for layer in layers)
    return Case(
        header="trained_model_case.hpp",
        call=f'trained_model_case<attune::PyTorchPart<attune::PyTorchModule<{model}, {names}>, "param">, {batch}>',
        data={"sequences": count, "input_scale": number(scalar, source.option("input_scale", 1)),
              "learning_rate": number(scalar, LEARNING_RATE), "trained_on": Tensor("I32", [batch], rows)},
        expected=expected, scalar=scalar,
        terms=shape["layers"] * layer_terms(source, shape["seq_len"]) + shape["d_in"] + batch * shape["seq_len"],
        magnitudes={"losses": max(map(abs, logits.values))}, in_flash=True,
        check_files=lambda original, files: one_step(original, files, weights, LEARNING_RATE / batch, epsilon_of_scalar))


FAMILIES = {"trained_model": trained_model}
