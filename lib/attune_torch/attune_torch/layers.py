"""attune's layers: their C++ types, and the names of their tensors."""
import itertools
import math
from dataclasses import dataclass, field

import torch

from .errors import Unsupported

# Members of attune's shapes, in their order, with their defaults: a value, or another member.
SHAPES = {
    "LinearShape": "rows d_in d_out bias=true",
    "Conv1dShape": "seq_len d_in d_out kernel stride=1 padding=0 groups=1 bias=true causal=false dilation=1 extra_padding=0",
    "Conv2dShape": "height width d_in d_out kernel_height kernel_width stride_height=1 stride_width=1 padding_height=0 padding_width=0 groups=1 "
                   "bias=true dilation_height=1 dilation_width=1 extra_padding_height=0 extra_padding_width=0",
    "Pool1dShape": "seq_len d_model kernel stride=kernel padding=0 count_padding=true ceil=false",
    "Pool2dShape": "height width d_model kernel_height kernel_width stride_height=kernel_height stride_width=kernel_width padding_height=0 "
                   "padding_width=0 count_padding=true ceil=false",
    "EmbeddingShape": "seq_len vocabulary d_model padding=-1",
    "ScaleShape": "rows d_model shared=false",
    "PreluShape": "rows d_model slopes=1",
    "SequencePoolingShape": "seq_len d_model bias=true",
    "GluShape": "rows d_model activation=attune::Activation::kSigmoid gate=attune::GluGate::kSecond",
    "GroupNormShape": "rows d_model groups epsilon=1e-05 affine=true",
    "NormShape": "rows d_model epsilon=1e-05 weight=true bias=weight",
    "TokenShape": "seq_len d_model tokens=1",
    "TransposeGridShape": "rows cols d_model cell=1",
    "ReshapeShape": "rows d_model out_rows=1",
    "FeatureBiasShape": "rows d_model",
    "PositionShape": "seq_len d_model",
    "TokenTypeShape": "seq_len d_model types=2 type=0",
    "PoolingShape": "seq_len d_model kind=attune::PoolingKind::kMean",
    "ReversibleNormOptions": "epsilon=1e-05 affine=false subtract_last=false",
    "MaskFromIdsOptions": "padding=0 table=0 target_padding",
    "RotaryScaling": "factor low_frequency_factor=1.0 high_frequency_factor=4.0 original_length=8192",
    "RelativeBias": "kind max_distance=128 buckets=32 rows=0 cols=0 prefix=0",
    "AttentionWindow": "left right own_key=attune::OwnKey::kSeen",
    "AttentionShape": "seq_len d_model num_heads num_kv_heads=num_heads kv_len=seq_len d_k d_key=d_model d_value=d_model d_out=d_model bias=true output_bias=bias scaling "
                      "rotary_dim=0 rotary_pairs rotary_base=10000.0 rotary_scaling window relative_bias query_key_norm query_key_epsilon=1e-05 score_scale "
                      "score_scales=num_heads",
    "FeedForwardShape": "rows d_model d_ff activation=attune::Activation::kRelu bias=true",
    "EncoderLayerShape": "attention d_ff activation=attune::Activation::kRelu norm epsilon=1e-05",
    "DecoderLayerShape": "attention d_ff memory_len activation=attune::Activation::kRelu norm epsilon=1e-05",
}
# Layers whose shape is not called after them.
SHAPE_OF = {"AvgPool1d": "Pool1dShape", "MaxPool1d": "Pool1dShape", "AvgPool2d": "Pool2dShape", "MaxPool2d": "Pool2dShape", "LayerScale": "ScaleShape",
            "ClassToken": "TokenShape", "DropTokens": "TokenShape", "RepeatLastToken": "TokenShape", "LayerNorm": "NormShape", "RmsNorm": "NormShape", "DeviationNorm": "NormShape",
            "LearnedPositions": "PositionShape", "SinusoidalPositions": "PositionShape"}


def text(value):
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def shape(name, /, **values):
    """Designated initializers of a shape, without members that are None or have their default."""
    texts, members = {member: text(value) for member, value in values.items() if value is not None}, []
    defaults = dict(member.partition("=")[::2] for member in SHAPES[name].split())
    unknown = texts.keys() - defaults.keys()
    assert not unknown, f"{name} has no {unknown}"
    for member, default in defaults.items():
        if member in texts and texts[member] != texts.get(default, default):
            members.append(f".{member} = {texts[member]}")
    return "{" + ", ".join(members) + "}"


def layer_type(kind, /, **values):
    """The C++ type of a layer with a shape."""
    name = SHAPE_OF.get(kind, f"{kind}Shape")
    return f"attune::{kind}<attune::{name}{shape(name, **values)}>"


def around(kind, model, /, **values):
    """The C++ type of a layer around a model, with its options."""
    own = shape(f"{kind}Options", **values)
    return f"attune::{kind}<{model}{f', attune::{kind}Options{own}' if own != '{}' else ''}>"


def each_group(count, types):
    """The C++ type of layers on groups of tokens."""
    inner = types[0] if len(types) == 1 else "attune::Sequential<" + ", ".join(types) + ">"
    return f"attune::EachGroup<{count}, {inner}>"


def shared_repeat(count, model):
    """The C++ type of applications of a layer, of 24 at most, within each other if there are more."""
    while count > 1:
        own = max(times for times in range(1, 25) if count % times == 0)
        if own == 1:
            raise Unsupported(f"{count} applications of one layer in a row; attune has 24, or a product of such numbers")
        model, count = f"attune::SharedRepeat<{own}, {model}>", count // own
    return model


def spatial(extents, /, **pairs):
    """Members of a shape over a sequence of one extent, or an image of two, with what it has for each of them."""
    if len(extents) == 1:
        return {"seq_len": extents[0]} | {name: pair[0] for name, pair in pairs.items()}
    return {"height": extents[0], "width": extents[1]} | {
        f"{name}_{side}": amount for name, pair in pairs.items() for side, amount in zip(("height", "width"), pair)}


def llama3_scaling(config):
    """Of a config's rope_scaling."""
    return (float(config["factor"]), float(config["low_freq_factor"]), float(config["high_freq_factor"]),
            int(config["original_max_position_embeddings"]))


def rotary_frequencies(d_k, base, scaling=()):
    """Angles of one position, in double; with Llama 3's scaling."""
    frequencies = base ** (-torch.arange(0, d_k, 2).double() / d_k)
    if not scaling:
        return frequencies
    factor, low, high, length = scaling
    kept = ((length * frequencies / (2 * math.pi) - low) / (high - low)).clamp(0, 1)
    return (1 - kept) * frequencies / factor + kept * frequencies


@dataclass
class Layer:
    """One of a Sequential. `names` has one name, where it has parameters; `tensors` are those of the file."""
    type: str = ""
    names: list = field(default_factory=list)
    tensors: list = field(default_factory=list)
    kind: str = ""
    value: object = None  # of the matcher; a list where the layer's output is a sum
    path: str = ""        # of the module, for people
    shapes: dict = field(default_factory=dict)  # of tensors whose shape in the file is another than the model's
    inner: list = field(default_factory=list)   # the layers inside it, whose types are not known yet
    terms: list = field(default_factory=list)   # the same for each term of a sum or a product; one term of others

    def take(self, *layers):
        """Gets the tensors of layers that it is made of."""
        self.tensors += [name for layer in layers for name in layer.tensors]
        self.shapes |= {name: extents for layer in layers for name, extents in layer.shapes.items()}
        return self

    def enclose(self, terms, begin="", between=" "):
        """The type, names and tensors of a layer around others, from the types and names of each term. `begin`, `between`: in front of the first of
        several types, and of the others."""
        same = lambda: f"attune::Identity<{self.value.tokens}, {self.value.features}>"  # noqa: E731
        models = [(types[0] if types else same()) if len(types) < 2 else f"attune::Sequential<{begin}{f',{between}'.join(types)}>" for types, _ in terms]
        data = getattr(self.value, "data", {})
        if self.kind == "reversible":
            self.type = around("ReversibleNorm", models[0], epsilon=data["epsilon"], affine=data["weight"] is not None, subtract_last=data["last"])
        elif self.kind == "reduced":
            self.type = f"attune::ReducedAttention<{', '.join([models[0], self.type, *models[1:]])}>"
        else:
            names = {"residual": "attune::Residual<", "sum": "attune::Sum<", "product": "attune::Product<", "groups": f"attune::EachGroup<{data.get('count')}, "}
            self.type = shared_repeat(data["count"], models[0]) if self.kind == "shared" else f"{names[self.kind]}{', '.join(models)}>"
        inside = [names for _, names in terms]
        first = inside.pop(0) if self.kind == "reduced" else []
        self.names = [*first, *self.names, *itertools.chain(*inside)]
        self.take(*(layer for term in self.terms for layer in term))

    def every(self):
        """The layers inside, and it."""
        return [layer for inner in self.inner for layer in inner.every()] + [self]


@dataclass
class Attention:
    """What is recognized of attention."""
    members: dict  # of AttentionShape, but for the window
    window: tuple  # keys to the left and to the right that a query sees, None where all, and whether its own
    names: dict    # of EncoderLayerNames, whole paths

    @property
    def causal(self):
        return self.window == (None, 0, True)

    @property
    def memory(self):
        """Whether it attends to an encoder's output."""
        return "kv_len" in self.members

    def shape(self):
        left, right, own = self.window
        window = shape("AttentionWindow", left=left, right=right, own_key=None if own else "attune::OwnKey::kHidden")
        return shape("AttentionShape", **self.members, window=window if window != "{}" else None)


@dataclass
class Norm:
    kind: str  # LayerNorm, RmsNorm, or DeviationNorm, by the unbiased standard deviation, as in The Annotated Transformer
    rows: int
    d_model: int
    epsilon: float
    weight: bool
    bias: bool

    def type(self):
        bias = None if self.kind == "RmsNorm" else self.bias
        return layer_type(self.kind, rows=self.rows, d_model=self.d_model, epsilon=self.epsilon, weight=self.weight, bias=bias)


@dataclass
class Network:
    rows: int
    d_model: int
    d_ff: int
    activation: str
    bias: bool
    gated: bool = False


@dataclass
class Block:
    """An encoder layer. Parts are compared without paths, so that equal ones repeat."""
    attention: Attention
    network: Network
    norm: Norm
    before: bool
    names: dict  # of EncoderLayerNames, relative; empty of torch.nn's own module
    cross: Attention = None  # of a decoder layer, to the encoder's output

    def shape_key(self):
        attentions = [(item.members, item.window) for item in (self.attention, self.cross) if item]
        return repr((attentions, self.network, self.norm, self.before, sorted(self.names.items())))

    def plain(self):
        """Whether EncoderLayerShape, or DecoderLayerShape, says all of it."""
        own, memory = (item and item.members for item in (self.attention, self.cross))
        if memory and ("relative_bias" in memory or memory["d_key"] != own["d_model"] or any(own.get(name) != memory.get(name) for name in (
                "num_heads", "num_kv_heads", "d_k", "bias", "output_bias", "query_key_norm", "query_key_epsilon", "score_scale", "score_scales"))):
            return False
        return (own["bias"] == own["output_bias"] == self.network.bias == self.norm.bias and self.norm.weight and not self.network.gated and
                self.norm.kind == "LayerNorm" and not {"scale1", "scale2"} & set(self.names))

    def declare(self, name):
        """C++ of a block called `name`: lines, and its type."""
        n, cross, placement = self.network, self.cross, "attune::NormPlacement::kBefore" if self.before else None
        kind = "Decoder" if cross else "Encoder"
        if self.plain():
            own, memory = self.attention.members, {}
            if cross and cross.members["kv_len"] != own["seq_len"]:
                memory["memory_len"] = cross.members["kv_len"]
            own = shape(f"{kind}LayerShape", attention=self.attention.shape(), d_ff=n.d_ff, activation=n.activation, norm=placement,
                        epsilon=self.norm.epsilon, **memory)
            return [f"inline constexpr attune::{kind}LayerShape k{name}{own};"], f"attune::{kind}Layer<k{name}>"
        swish = n.gated and n.activation == "attune::Activation::kSilu"
        network = shape("FeedForwardShape", rows=n.rows, d_model=n.d_model, d_ff=n.d_ff, activation=None if swish else n.activation, bias=n.bias)
        feed_forward = "SwiGlu" if swish else "GatedFeedForward" if n.gated else "FeedForward"
        branches = [f"attune::MultiHeadAttention<k{name}Attention>", f"attune::{feed_forward}<k{name}Network>"]
        for index, scale in enumerate(("scale1", "scale2")):
            if scale in self.names:
                branches[index] = f"attune::Sequential<{branches[index]}, {layer_type('LayerScale', rows=n.rows, d_model=n.d_model)}>"
        memory = [f"inline constexpr attune::AttentionShape k{name}Memory{cross.shape()};"] if cross else []
        branches[1:1] = [f"attune::MultiHeadAttention<k{name}Memory>"] if cross else []
        return [f"inline constexpr attune::AttentionShape k{name}Attention{self.attention.shape()};", *memory,
                f"inline constexpr attune::FeedForwardShape k{name}Network{network};",
                f"using {name} = attune::{kind}LayerOf<",
                *(f"    {branch}," for branch in branches),
                f"    {self.norm.type()}" + (f",\n    attune::BranchOptions{{.norm = {placement}}}" if placement else "") + ">;"], name
