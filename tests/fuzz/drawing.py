"""Draws programs for tests/fuzz/draw: a model, its loss, mask, optimizer and batch, and what is compared, from a seed.

A program is C++ for tests/fuzz/drawn.hpp. One seed gives one program, whatever other seeds are drawn.
"""
import random
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vectors"))
from losses import LOSSES  # noqa: E402

TOKENS = [2, 3, 5, 8, 11, 16, 17, 18, 24, 33, 40]
WIDTHS = [4, 6, 8, 12, 16]
ACTIVATIONS = re.findall(r"^  (k\w+) = \d+,", (Path(__file__).resolve().parents[2] / "lib/attune/kernels/ops/activation.hpp").read_text(), re.M)


@dataclass
class Layer:
    """A layer's type, its output, and what a model with it may have."""
    text: str
    rows: int
    cols: int
    attends: bool = False   # takes masks
    mixes: bool = False     # tokens meet without a mask
    pads: bool = False      # leaves padding out where they meet
    streams: bool = True    # runs token by token
    drops: bool = False     # has dropout
    ids: int = 0            # takes token ids below this
    unmasked: bool = False  # takes no mask


@dataclass
class Program:
    seed: int
    layers: list
    model: str = ""
    before: list = field(default_factory=list)  # declarations in front of the model
    constants: str = ""
    loss: str = "MeanSquaredError"
    classes: int = 0
    optimizer: str = "AdamW"
    options: str = ""
    batch: int = 1
    masking: str = "kNone"    # of the zoo
    causal: str = ""          # in place of a CausalMask
    padded: bool = False      # a padding that is causal, too
    lengths: bool = False     # a SequenceLength has the bits of padding
    twin_model: str = ""      # the same bits and parameters
    streams: bool = False
    packed: bool = False


def fields(**values):
    """A designated initializer."""
    return "{" + ", ".join(f".{name} = {str(value).lower() if isinstance(value, bool) else value}" for name, value in values.items()) + "}"


def attention_shape(r, rows, cols, streams=False, keep=None, grids=True):
    heads = r.choice([h for h in (1, 2, 3, 4) if cols % h == 0])
    shape = dict(seq_len=rows, d_model=cols, num_heads=heads)
    if r.random() < 0.4:
        shape["num_kv_heads"] = r.choice([h for h in (1, 2, 3, 4) if heads % h == 0])
    if r.random() < 0.3:
        shape["d_k"] = r.choice([1, 2, 3, 4, 5, 8])
    if r.random() < 0.3:
        shape["d_v"] = r.choice([1, 1, 2, 3, 5])
    if r.random() < 0.2:
        shape["bias"] = False
    width = shape.get("d_k", cols // heads)
    if r.random() < 0.2 and width >= 2:
        shape["rotary_dim"] = width // 2 * 2
        if r.random() < 0.5:
            shape["rotary_pairs"] = "RotaryPairs::kInterleaved"
    if r.random() < 0.35:
        shape["keep_weights"] = False
    if r.random() < 0.12:
        shape["window"] = fields(left=r.choice([1, 3, 6]), right=0)
    elif not streams and r.random() < 0.15:
        shape["window"] = fields(own_key="OwnKey::kHidden")
    if r.random() < 0.12:
        shape["alibi"] = True
    if r.random() < 0.15:
        kind = r.choice(["kDistance", "kBuckets", "kCausalBuckets"] + ["kGrid", "kGridDistance"] * (grids and not streams))
        wide = r.choice([n for n in (1, 2, 3) if rows > 1 == rows % n or n == 1])
        shape["relative_bias"] = fields(kind="RelativePositions::" + kind, **(
            dict(rows=rows // wide, cols=wide, prefix=rows % wide) if "Grid" in kind else dict(max_distance=r.choice([4, 9]), buckets=r.choice([4, 6]))))
    if r.random() < 0.12:
        shape["softcap"] = 5
    if r.random() < 0.15:
        shape["query_key_norm"] = f"QueryKeyNorm::{r.choice(['kRootMeanSquare', 'kLayerNorm', 'kUnitLength'])}"
    if r.random() < 0.2:
        shape["score_scale"] = f"ScoreScale::{r.choice(['kFactor', 'kInverse', 'kExponential', 'kClampedExponential'])}"
        shape["score_scales"] = r.choice([1, heads])
    if not streams and r.random() < 0.12:
        shape["add_bias_kv"] = True
    if not streams and r.random() < 0.08:
        shape["add_zero_attn"] = True
    if keep is not None:
        shape.pop("keep_weights", None)
        if not keep:
            shape["keep_weights"] = False
    return in_order(shape)


ORDER = ["seq_len", "d_model", "num_heads", "num_kv_heads", "kv_len", "d_k", "d_v", "d_key", "d_value", "bias", "rotary_dim", "rotary_pairs",
         "dropout", "keep_weights", "window", "alibi", "relative_bias", "softcap", "query_key_norm", "score_scale", "score_scales", "add_bias_kv", "add_zero_attn"]


def in_order(shape):
    return {name: shape[name] for name in ORDER if name in shape}


def attention(shape):
    return f"MultiHeadAttention<AttentionShape{fields(**shape)}>"


def may_drop(r, shape):
    """The same attention, which may drop weights in training."""
    return in_order(shape | dict(dropout=0.25)) if r.random() < 0.15 else shape


def draw_attention(r, rows, cols):
    streams = r.random() < 0.7
    shape = may_drop(r, attention_shape(r, rows, cols, streams))
    return Layer(attention(shape), rows, cols, attends=True, streams=streams, drops="dropout" in shape)


def draw_encoder(r, rows, cols):
    shape = may_drop(r, attention_shape(r, rows, cols, True))
    if r.random() < 0.6:
        shape = {name: shape[name] for name in shape if name not in ("d_k", "d_v")} if r.random() < 0.5 else shape
        encoder = dict(attention=fields(**shape), d_ff=r.choice([5, 8, 17, 33]), activation=f"Activation::{r.choice(ACTIVATIONS)}")
        if r.random() < 0.4:
            encoder["norm"] = "NormPlacement::kBefore"
        text = f"EncoderLayer<EncoderLayerShape{fields(**encoder)}>"
    else:
        network = f"SwiGlu<FeedForwardShape{fields(rows=rows, d_model=cols, d_ff=r.choice([5, 12]), bias=False)}>"
        norm = f"RmsNorm<NormShape{fields(rows=rows, d_model=cols)}>"
        text = f"EncoderLayerOf<{attention(shape)}, {network}, {norm}, BranchOptions{{.norm = NormPlacement::kBefore}}>"
    if r.random() < 0.25:
        text = f"{r.choice(['Repeat', 'SharedRepeat'])}<2, {text}>"
    elif r.random() < 0.2:
        text = f"Checkpointed<{text}>"
    return Layer(text, rows, cols, attends=True, drops="dropout" in shape)


def draw_linear(r, rows, cols):
    out = r.choice(WIDTHS + [1, 3, 33])
    shape = dict(rows=rows, d_in=cols, d_out=out)
    if r.random() < 0.2:
        shape["bias"] = False
    return Layer(f"Linear<LinearShape{fields(**shape)}>", rows, out)


def draw_feed_forward(r, rows, cols):
    shape = dict(rows=rows, d_model=cols, d_ff=r.choice([3, 8, 17, 33]))
    if r.random() < 0.6:
        shape["activation"] = f"Activation::{r.choice(ACTIVATIONS)}"
    name = r.choice(["FeedForward", "FeedForward", "SwiGlu"])
    if name == "SwiGlu":
        shape.pop("activation", None)
    return Layer(f"{name}<FeedForwardShape{fields(**shape)}>", rows, cols)


def draw_conv(r, rows, cols):
    if rows < 3:
        return draw_linear(r, rows, cols)
    out = r.choice([4, 6, 7, 8, 12])
    kernel = r.choice([1, 2, 3])
    shape = dict(seq_len=rows, d_in=cols, d_out=out, kernel=kernel)
    stride = r.choice([1, 1, 2])
    padding = r.choice([0, 1]) if kernel == 3 else 0
    groups = [g for g in (2, 3, cols) if cols % g == 0 and out % g == 0 and g > 1]
    causal = r.random() < 0.25
    dilation = 2 if kernel > 1 and r.random() < 0.2 and (causal or rows + 2 * padding > (kernel - 1) * 2) else 1
    span = (kernel - 1) * dilation + 1
    if stride > 1:
        shape["stride"] = stride
    if padding and not causal:
        shape["padding"] = padding
    if groups and r.random() < 0.4:
        shape["groups"] = r.choice(groups)
    if causal:
        shape["causal"] = True
        reach = rows + span - 1
    else:
        reach = rows + 2 * padding
    if dilation > 1:
        shape["dilation"] = dilation
    return Layer(f"Conv1d<Conv1dShape{fields(**shape)}>", (reach - span) // stride + 1, out, mixes=True,
                 streams=causal and stride == 1)


def draw_norm(r, rows, cols):
    return Layer(f"{r.choice(['LayerNorm', 'RmsNorm', 'DeviationNorm'])}<NormShape{fields(rows=rows, d_model=cols)}>", rows, cols)


def draw_activation(r, rows, cols):
    return Layer(f"ActivationLayer<Activation::{r.choice(ACTIVATIONS)}, {rows}, {cols}>", rows, cols)


def draw_dropout(r, rows, cols):
    return Layer(f"Dropout<DropoutShape{fields(rows=rows, d_model=cols, probability=r.choice([0.25, 0.5]))}>", rows, cols, drops=True)


def draw_small(r, rows, cols):
    """A layer with few parameters, token by token."""
    kind = r.randrange(7)
    if kind == 0:
        return Layer(f"LearnedPositions<PositionShape{fields(seq_len=rows, d_model=cols)}>", rows, cols)
    if kind == 1:
        return Layer(f"LayerScale<ScaleShape{fields(rows=rows, d_model=cols, initial=0.5)}>", rows, cols)
    if kind == 2:
        return draw_dropout(r, rows, cols)
    if kind == 3:
        return Layer(f"Prelu<PreluShape{fields(rows=rows, d_model=cols, slopes=r.choice([1, cols]))}>", rows, cols)
    if kind == 4:
        return Layer(f"FeatureBias<FeatureBiasShape{fields(rows=rows, d_model=cols)}>", rows, cols)
    if kind == 5 and cols % 2 == 0:
        gate = fields(rows=rows, d_model=cols // 2, activation=f"Activation::{r.choice(ACTIVATIONS)}",
                      gate=f"GluGate::{r.choice(['kFirst', 'kSecond'])}")
        return Layer(f"Glu<GluShape{gate}>", rows, cols // 2)
    return draw_norm(r, rows, cols)


def draw_of_sequence(r, rows, cols):
    """A layer with few parameters that mixes tokens, or changes their number."""
    def layer(text, rows, cols=cols):
        return Layer(text, rows, cols, mixes=True, streams=False)

    kind = r.randrange(7)
    if kind == 0:
        tokens = r.choice([1, 1, 3])
        return layer(f"ClassToken<TokenShape{fields(seq_len=rows, d_model=cols, tokens=tokens)}>", rows + tokens)
    if kind == 1:
        return draw_padded(r, rows, cols)
    if kind == 2:
        return layer(f"SequencePooling<SequencePoolingShape{fields(seq_len=rows, d_model=cols)}>", 1)
    if rows < 2:
        return draw_norm(r, rows, cols)
    if kind == 4 and rows != cols and rows % 2:
        return layer(f"Transpose<{rows}, {cols}>", cols, rows)
    if kind == 3:
        return layer(f"DropTokens<TokenShape{fields(seq_len=rows, d_model=cols, tokens=1)}>", rows - 1)
    if kind == 4 and rows % 2 == 0:
        return layer(f"Reshape<ReshapeShape{fields(rows=rows, d_model=cols, out_rows=rows // 2)}>", rows // 2, 2 * cols)
    shape = dict(seq_len=rows, d_model=cols, kernel=2)
    if r.random() < 0.5:
        shape["padding"] = 1
    windows = (rows + 2 * shape.get("padding", 0)) // 2
    if r.random() < 0.4:
        shape["ceil"] = True
        windows += rows % 2 if "padding" not in shape else 0  # padding alone is no window
    name = r.choice(["AvgPool1d", "MaxPool1d"])
    return layer(f"{name}<Pool1dShape{fields(**shape)}>", windows)


def draw_padded(r, rows, cols):
    """A layer in which tokens meet, of as many tokens, that leaves padding out."""
    kind = r.randrange(3)
    if kind == 0:
        groups = r.choice([groups for groups in (1, 2, 3, cols) if cols % groups == 0])
        text = f"GroupNorm<GroupNormShape{fields(rows=rows, d_model=cols, groups=groups)}>"
    elif kind == 1:
        shape = dict(seq_len=rows, d_model=cols, kernel=3, stride=1, padding=1, count_padding=r.random() < 0.5)
        text = f"{r.choice(['AvgPool1d', 'MaxPool1d'])}<Pool1dShape{fields(**shape)}>"
    else:
        dilation = r.choice([1, 2])
        shape = dict(seq_len=rows, d_in=cols, d_out=cols, kernel=3, padding=dilation, groups=r.choice([1, cols]), dilation=dilation)
        text = f"Conv1d<Conv1dShape{fields(**shape)}>"
    return Layer(text, rows, cols, mixes=True, pads=True, streams=False)


def draw_composed(r, rows, cols):
    """Layers side by side, times each other or their input, beside it, or with the statistics of a sequence around them."""
    kind = r.choice(["Sum", "Product", "Residual", "ReversibleNorm"])
    drawers = [r.choice([draw_attention, draw_feed_forward]), *r.choices([draw_attention, draw_norm, draw_padded, draw_dropout], k=r.choice([1, 1, 2]))]
    parts = [draw(r, rows, cols) for draw in drawers]
    if kind == "Product":
        parts = parts[:2] if r.random() < 0.7 else parts[:1]
    factors = [f"Identity<{rows}, {cols}>"] * (kind == "Product" and len(parts) < 2) + [part.text for part in parts]
    text = f"{kind}<{', '.join(factors)}>" if kind in ("Sum", "Product") else f"{kind}<{sequential(parts)}>"
    if kind == "ReversibleNorm":
        text = f"{text[:-1]}, ReversibleNormOptions{fields(epsilon=0.1, affine=r.random() < 0.5, subtract_last=r.random() < 0.5)}>"
    mixes = kind == "ReversibleNorm" or any(part.mixes for part in parts)
    return Layer(text, rows, cols, any(part.attends for part in parts), mixes, mixes, not mixes and all(part.streams for part in parts),
                 any(part.drops for part in parts))


def draw_grouped(r, rows, cols):
    """Layers on groups of tokens, side by side or every so many ones."""
    groups = r.choice([groups for groups in range(1, rows + 1) if rows % groups == 0 and (rows // groups > 1 or rows == 1)])
    trained = [draw_attention, draw_encoder, draw_feed_forward, draw_norm]
    drawers = [r.choice(trained), *r.choices([*trained, draw_dropout], k=r.choice([0, 0, 1]))]
    parts = [draw(r, rows // groups, cols) for draw in drawers]
    text = f"EachGroup<{groups}, {sequential(parts)}>"
    if r.random() < 0.5:
        grids = [f"TransposeGrid<TransposeGridShape{fields(rows=own[0], cols=own[1], d_model=cols)}>" for own in ((rows // groups, groups), (groups, rows // groups))]
        text = f"Sequential<{grids[0]}, {text}, {grids[1]}>"
    return Layer(text, rows, cols, mixes=True, streams=False, drops=any(part.drops for part in parts), unmasked=True)


def draw_reduced(r, rows, cols):
    """Attention to the tokens of a layer, often fewer ones. Its queries are the input, or another layer's output."""
    reduction = r.choice([draw_conv, draw_of_sequence])(r, rows, cols)
    shape = may_drop(r, attention_shape(r, rows, cols, grids=False))
    shape.pop("window", None)  # it can hide all of fewer keys
    shape = in_order(shape | dict(kv_len=reduction.rows, d_key=reduction.cols, d_value=reduction.cols))
    queries = [r.choice([draw_feed_forward, draw_norm, draw_padded, draw_dropout])(r, rows, cols)] * (r.random() < 0.4)
    text = f"ReducedAttention<{', '.join([reduction.text, attention(shape), *(layer.text for layer in queries)])}>"
    return Layer(text, rows, cols, mixes=True, streams=False, drops="dropout" in shape or any(layer.drops for layer in [reduction, *queries]), unmasked=True)


DRAWERS = [(draw_attention, 5), (draw_encoder, 3), (draw_linear, 4), (draw_feed_forward, 2), (draw_conv, 3), (draw_norm, 2),
           (draw_activation, 1), (draw_small, 2), (draw_of_sequence, 1), (draw_padded, 1), (draw_composed, 2), (draw_grouped, 1), (draw_reduced, 1)]


def draw_layer(r, rows, cols):
    draw, = r.choices([d for d, _ in DRAWERS], [w for _, w in DRAWERS])
    return draw(r, rows, cols)


def draw_layers(r, first=None):
    """Layers in a row, from a matrix or from token ids, with one that `first` draws."""
    rows, cols = r.choice(TOKENS), r.choice(WIDTHS)
    layers = []
    if r.random() < 0.2:
        words = r.choice([5, 11, 37])
        layers.append(Layer(f"Embedding<EmbeddingShape{fields(seq_len=rows, vocabulary=words, d_model=cols)}>", rows, cols, ids=words))
    for number in range(r.choice([1, 1, 2, 2, 3])):
        draw = first if first and number == 0 else draw_layer
        layers.append(draw(r, rows, cols))
        rows, cols = layers[-1].rows, layers[-1].cols
    # The mask is of as many tokens as there are ids.
    end = next((number for number, layer in enumerate(layers, 1) if layer.rows != layers[0].rows), len(layers))
    inside = layers[:end]
    if layers[0].ids and any(layer.attends or layer.pads for layer in inside) and not any(layer.unmasked for layer in inside) and r.random() < 0.8:
        return [masked_by_ids(r, inside), *layers[end:]]
    return layers


def masked_by_ids(r, layers):
    """The same layers, which hide an id themselves."""
    first, last = layers[0], layers[-1]
    text = f"MaskFromIds<{sequential(layers)}, MaskFromIdsOptions{fields(padding=r.randrange(first.ids))}>"
    masked = Layer(text, last.rows, last.cols, any(layer.attends for layer in layers), any(layer.mixes for layer in layers), False,
                   False, any(layer.drops for layer in layers), first.ids)
    masked.first_rows = first.rows
    return masked


def sequential(layers):
    return layers[0].text if len(layers) == 1 else f"Sequential<{', '.join(layer.text for layer in layers)}>"


def trains(layer):
    return not any(layer.text.startswith(name) for name in (
        "ActivationLayer", "Dropout", "Glu", "AvgPool1d", "MaxPool1d", "DropTokens", "Reshape", "Transpose", "Pooling"))


def draw_optimizer(r, program):
    rate = r.choice([0.3, 1.0])
    moments = r.choice(["kScalar", "kScalar", "kBfloat16", "kInt8", "kInt8Stochastic"])
    kind = r.choice(["sgd", "sgd", "momentum", "adam", "adam", "l2", "adafactor", "groups", "weights"])
    if kind == "sgd":
        program.optimizer = "Sgd<>"
    elif kind == "momentum":
        program.optimizer = f"Sgd<Momentum::{r.choice(['kClassic', 'kNesterov'])}, float, MomentPrecision::{moments}>"
    elif kind == "adafactor":
        rate, program.optimizer = 0.1, r.choice(["Adafactor<>", "Adafactor<StepScale::kRelative>"])
    else:
        rate = 0.05
        none = r.random() < 0.2 and moments in ("kScalar", "kInt8")
        variant = fields(weight_decay=f"WeightDecay::{'kCoupled' if kind == 'l2' else 'kDecoupled'}",
                         moments=f"MomentPrecision::{moments}", first_moment=f"FirstMoment::{'kNone' if none else 'kKept'}")
        program.optimizer = f"Adam<AdamVariant{variant}>"
        if kind == "groups":
            program.optimizer = f"ParameterGroups<{program.optimizer}>"
        if kind == "weights":
            program.optimizer = f"StochasticBfloat16<{program.optimizer}>"
    program.options = "{.weights = {.learning_rate = 0.05f}, .biases = {.learning_rate = 0.1f}}" if kind == "groups" \
        else f"{{.learning_rate = {rate}f}}"


def draw_mask(r, program, pooled):
    """A mask that all layers of the model understand."""
    layers = program.layers
    attends, pads = (any(getattr(layer, name) for layer in layers) for name in ("attends", "pads"))
    if not (attends or pads) or any(layer.mixes and not layer.pads for layer in layers) or r.random() < 0.25:
        return
    program.masking = "kPadding" if pooled or pads else r.choice(["kCausal", "kCausal", "kPadding", "kPadding"])
    program.padded = r.random() < 0.5
    program.lengths = pooled or program.classes > 0
    if program.masking == "kCausal" and r.random() < 0.25:
        program.causal = f"SlidingWindowMask{{.left = {r.randint(1, 9)}, .right = {r.randint(0, 2)}}}"


def draw_head(r, program, rows, cols):
    """The end of a model: an output as it is, a class for each token, or one for the sequence."""
    end = r.choice(["as it is", "tokens", "pooled", "pooled"])
    layers = program.layers
    if end == "pooled" and rows > 1:
        kind = r.choice(["kMean", "kMax", "kFirst", "kLast"])
        pooling = f"Pooling<PoolingShape{fields(seq_len=rows, d_model=cols, kind=f'PoolingKind::{kind}')}>"
        layers.append(Layer(pooling, 1, cols, streams=False))
        rows = 1
    if end != "as it is":
        program.classes = r.choice([2, 3, 5, 33])
        layers.append(Layer(f"Linear<LinearShape{fields(rows=rows, d_in=cols, d_out=program.classes)}>", rows, program.classes))
        options = r.choice(["{}", "{}", "{.label_smoothing = 0.1}", "{.noise_exponent = 0.7}"])
        program.loss = f"CrossEntropy<CrossEntropyOptions{options}>"
    else:
        program.loss = r.choice([*(loss.default() for loss in LOSSES.values()), "SumSquaredError" if r.random() < 0.3 else "MeanSquaredError"])
    return end == "pooled"


def draw_adapted(r, program):
    """Constants in front, adapted, frozen or with trained biases; a trained head behind them."""
    layers = program.layers
    front = sequential(layers)
    weighed = ("Linear", "Multi", "Encoder", "Feed", "SwiGlu", "Conv", "Repeat", "SharedRepeat", "Checkpointed", "Reduced")
    adapted = any(layer.text.startswith(weighed) and ".groups" not in layer.text for layer in layers)
    storage = r.choice(["Tensor", "Tensor", "Int8Weights", "Bfloat16Weights", "PackedInt8Weights"])
    storage = storage if adapted else "Tensor"  # nothing else has weights of fewer bits
    constants = "Front::Parameters" if storage == "Tensor" else f"Front::ParametersOf<{storage}, Tensor>"
    program.packed = storage == "PackedInt8Weights"
    program.before += [f"using Front = {front};", f"inline {constants} front;"]
    program.constants = f"drawn::draw_constants<Front>(front, {program.seed + 7});"
    projects = any(layer.text.startswith(("Linear", "Conv")) and ".groups" not in layer.text for layer in layers)
    roles = r.choice(["kEverything", "kEverything", "kProjections" if projects else "kEverything"])
    rank = fields(rank=r.choice([1, 2, 4, 9]), roles=f"Role::{roles}", biases_and_norms=r.random() < 0.3)
    kind = r.choice([f"Adapted<Front, front, LowRank{rank}>"] * 3 * adapted + ["Frozen<Front, front>"])
    mixes = [layer for layer in layers if layer.mixes]
    merged = Layer(kind, layers[-1].rows, layers[-1].cols, any(x.attends for x in layers), bool(mixes),
                   bool(mixes) and all(x.pads for x in mixes), False, any(x.drops for x in layers), layers[0].ids)
    merged.first_rows = getattr(layers[0], "first_rows", layers[0].rows)
    program.layers = [merged]


def draw_tied(r, program):
    rows, cols, words = r.choice(TOKENS), r.choice(WIDTHS), r.choice([5, 11, 37])
    body = [draw(r, rows, cols) for draw in r.choices([draw_attention, draw_encoder, draw_feed_forward, draw_norm], k=r.choice([1, 2]))]
    program.layers = body
    program.classes, program.loss = words, "CrossEntropy<>"
    embedding = f"Embedding<EmbeddingShape{fields(seq_len=rows, vocabulary=words, d_model=cols)}>"
    program.model = f"Tied<{embedding}, Sequential<{', '.join(layer.text for layer in body)}>>"
    draw_mask(r, program, False)
    body[0].ids = words


def recomputed(model):
    """The same model with the other choice of keeping weights, in floats with the same bits."""
    if "keep_weights = false" in model:
        return model.replace(", .keep_weights = false", "")
    before, shape, after = model.partition("AttentionShape{")
    if not shape:
        return ""
    inside, _, rest = after.partition("}>")
    names = [name for name in ORDER if f".{name} =" in inside]
    later = [f".{name} =" for name in names if ORDER.index(name) > ORDER.index("keep_weights")]
    at = min([inside.index(name) for name in later], default=None)
    inside = f"{inside}, .keep_weights = false" if at is None else f"{inside[:at]}.keep_weights = false, {inside[at:]}"
    return f"{before}{shape}{inside}}}>{rest}"


def draw_program(seed):
    r = random.Random(seed)
    program = Program(seed, [])
    kind = r.choices(["row", "adapted", "tied", "attention", "stream"], [8, 4, 2, 4, 3])[0]
    if kind == "tied":
        draw_tied(r, program)
    elif kind in ("attention", "stream"):
        rows, cols = r.choice(TOKENS), r.choice(WIDTHS)
        shape = attention_shape(r, rows, cols, streams=True)
        program.layers = [Layer(attention(shape), rows, cols, attends=True)]
        program.model = program.layers[0].text
        draw_mask(r, program, False)
        program.twin_model = recomputed(program.model)
    else:
        program.layers = draw_layers(r, draw_conv if kind == "adapted" and r.random() < 0.3 else None)
        last = program.layers[-1]
        if kind == "adapted":
            draw_adapted(r, program)
        pooled = draw_head(r, program, last.rows, last.cols)
        if not any(trains(layer) and not layer.text.startswith("Frozen") for layer in program.layers):
            program.layers.append(Layer(f"Linear<LinearShape{fields(rows=program.layers[-1].rows, d_in=program.layers[-1].cols, d_out=4)}>",
                                        program.layers[-1].rows, 4))
            program.classes = program.classes and 4
        program.model = sequential(program.layers)
        first = program.layers[0]
        first.rows = getattr(first, "first_rows", first.rows)
        draw_mask(r, program, pooled)
        if r.random() < 0.5 and kind == "row":
            program.twin_model = recomputed(program.model)
    draw_optimizer(r, program)
    program.batch = r.choice([1, 1, 2, 3, 5])
    program.streams = kind == "stream" and not program.causal and all(layer.streams and not layer.drops for layer in program.layers)
    return program


def compares(program):
    """What is compared, as C++: trainings in floats and mostly in integers, and streams."""
    r = random.Random(program.seed + 1)
    for precision in ["kFloats"] + ["kIntegers"] * (r.random() < 0.7):
        ways = [*(["kInBackward"] if program.batch == 1 else ["kThreads"]), r.choice(["kAccumulated", "kSlices", "kInSharedBuffers"])]
        if precision == "kFloats":
            ways += ["kTwin"] * bool(program.twin_model)
            ways += ["kLockstep"] * (program.batch > 1 and not program.packed and program.masking in ("kNone", "kCausal"))
        key = f"drawn::Key{{drawn::Precision::{precision}, drawn::Masking::{program.masking}, {program.batch}}}"
        resumed = str(r.random() < 0.3).lower()
        yield f"drawn::compare_trainings<Entry, {key}, {resumed}, {', '.join(f'drawn::Way::{way}' for way in ways)}>({program.seed});"
    for precision in ["kInference", "kInt8Inference"] * program.streams:
        yield f"drawn::compare_streams<Entry, drawn::Key{{drawn::Precision::{precision}, drawn::Masking::kCausal}}>({program.seed});"


def source_of(program):
    """The program as a header for a unit of drawn programs: a model of the zoo, and what is compared."""
    ids = max([layer.ids for layer in program.layers] + [1])
    members = [f'static constexpr const char* kName = "{program.seed}";', f"using Model = {program.model};",
               *([f"using Twin = {program.twin_model};"] if program.twin_model else []),
               f"using Loss = {program.loss};", f"using Optimizer = {program.optimizer};",
               f"static constexpr Optimizer::Options kOptions{program.options};",
               f"static constexpr int kTokens = {program.layers[0].rows}, kVocabulary = {ids}, kClasses = {max(program.classes, 1)};",
               f"static constexpr bool kTakesLengths = {str(program.lengths).lower()};",
               f"static void fill_constants() {{ {program.constants} }}"]
    if program.causal:
        members.append(f"static constexpr auto causal() {{ return {program.causal}; }}")
    if program.padded:
        members.append("static auto padded(const auto& mask) { return CausalMask{} && mask; }")
    return "\n".join([f"namespace program_{program.seed} {{", "using namespace attune;", *program.before, "struct Entry : zoo::Defaults {",
                      *(f"  {member}" for member in members), "};", "inline void run() {", *(f"  {line}" for line in compares(program)), "}",
                      f"}}  // namespace program_{program.seed}", ""])
