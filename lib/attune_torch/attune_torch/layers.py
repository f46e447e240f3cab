"""attune's layers: their C++ types, and the names of their tensors."""
import math
from dataclasses import dataclass, field

import torch


def options(**values):
    """Designated initializers, without those that are None."""
    return "{" + ", ".join(f".{name} = {text(value)}" for name, value in values.items() if value is not None) + "}"


def text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value)
    return str(value)


def unless(value, default):
    return None if value == default else value


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
    inner: list = field(default_factory=list)   # the layers of a model inside it
    terms: list = field(default_factory=list)   # of a sum, the layers of each

    def every(self):
        """The layers inside, and it."""
        return [layer for inner in self.inner for layer in inner.every()] + [self]


def convolution_type(extents, d_in, d_out, kernel, stride, padding, groups, causal, bias, dilation=(1, 1)):
    """Conv1d of one extent, Conv2d of two."""
    common = dict(groups=unless(groups, 1), bias=None if bias else False)
    if len(extents) == 1:
        shape = options(seq_len=extents[0], d_in=d_in, d_out=d_out, kernel=kernel[0], stride=unless(stride[0], 1),
                        padding=unless(padding[0], 0), **common, causal=causal or None, dilation=unless(dilation[0], 1))
        return f"attune::Conv1d<attune::Conv1dShape{shape}>"
    shape = options(height=extents[0], width=extents[1], d_in=d_in, d_out=d_out, kernel_height=kernel[0], kernel_width=kernel[1],
                    stride_height=unless(stride[0], 1), stride_width=unless(stride[1], 1), padding_height=unless(padding[0], 0),
                    padding_width=unless(padding[1], 0), **common,
                    dilation_height=unless(dilation[0], 1), dilation_width=unless(dilation[1], 1))
    return f"attune::Conv2d<attune::Conv2dShape{shape}>"


def pool_type(extents, d_model, kernel, stride, padding=(0, 0), count_padding=True, kind="Avg", ceil=False):
    """AvgPool1d of one extent, AvgPool2d of two; MaxPool1d and MaxPool2d with kind="Max"."""
    counts = False if kind == "Avg" and any(padding) and not count_padding else None
    if len(extents) == 1:
        shape = options(seq_len=extents[0], d_model=d_model, kernel=kernel[0], stride=unless(stride[0], kernel[0]),
                        padding=unless(padding[0], 0), count_padding=counts, ceil=unless(ceil, False))
        return f"attune::{kind}Pool1d<attune::Pool1dShape{shape}>"
    shape = options(height=extents[0], width=extents[1], d_model=d_model, kernel_height=kernel[0], kernel_width=kernel[1],
                    stride_height=unless(stride[0], kernel[0]), stride_width=unless(stride[1], kernel[1]),
                    padding_height=unless(padding[0], 0), padding_width=unless(padding[1], 0), count_padding=counts, ceil=unless(ceil, False))
    return f"attune::{kind}Pool2d<attune::Pool2dShape{shape}>"


def linear(rows, d_in, d_out, bias):
    return f"attune::Linear<attune::LinearShape{options(rows=rows, d_in=d_in, d_out=d_out, bias=None if bias else False)}>"


def scale_type(rows, d_model):
    return f"attune::LayerScale<attune::ScaleShape{options(rows=rows, d_model=d_model)}>"


def prelu_type(rows, d_model, slopes):
    """nn.PReLU: one slope, or one for each feature."""
    return f"attune::Prelu<attune::PreluShape{options(rows=rows, d_model=d_model, slopes=unless(slopes, 1))}>"


def sequence_pooling_type(seq_len, d_model, bias=True):
    """CCT's pooling: the weight [1, d_model] and the bias [1] of an nn.Linear."""
    shape = options(seq_len=seq_len, d_model=d_model, bias=None if bias else False)
    return f"attune::SequencePooling<attune::SequencePoolingShape{shape}>"


def glu_type(rows, d_model, activation="attune::Activation::kSigmoid", first=False):
    """nn.GLU of 2·d_model features: the second half, or the first, is the gate."""
    shape = options(rows=rows, d_model=d_model, activation=unless(activation, "attune::Activation::kSigmoid"),
                    gate="attune::GluGate::kFirst" if first else None)
    return f"attune::Glu<attune::GluShape{shape}>"


def group_norm_type(rows, d_model, groups, epsilon, affine=True):
    """nn.GroupNorm of [batch, d_model, rows]."""
    shape = options(rows=rows, d_model=d_model, groups=groups, epsilon=unless(epsilon, 1e-5), affine=unless(affine, True))
    return f"attune::GroupNorm<attune::GroupNormShape{shape}>"


def reversible_type(model, epsilon, affine=False, last=False):
    """RevIN around a model."""
    shape = options(epsilon=unless(epsilon, 1e-5), affine=unless(affine, False), subtract_last=unless(last, False))
    return f"attune::ReversibleNorm<{model}{f', attune::ReversibleNormOptions{shape}' if shape != '{}' else ''}>"


def masked_type(model, padding, table=0, target_padding=None):
    """A model whose padding is hidden from attention."""
    shape = options(padding=unless(padding, 0), table=unless(table, 0), target_padding=target_padding)
    return f"attune::MaskFromIds<{model}{f', attune::MaskFromIdsOptions{shape}' if shape != '{}' else ''}>"


def feature_bias_type(rows, d_model):
    """A bias alone, such as that of a tied head."""
    return f"attune::FeatureBias<attune::FeatureBiasShape{options(rows=rows, d_model=d_model)}>"


def prefix_type(seq_len, d_model, tokens=1):
    """Trained tokens in front of seq_len others: a class token, or registers."""
    return f"attune::ClassToken<attune::TokenShape{options(seq_len=seq_len, d_model=d_model, tokens=unless(tokens, 1))}>"


def drop_type(seq_len, d_model, tokens=1):
    """Without the first of seq_len tokens."""
    return f"attune::DropTokens<attune::TokenShape{options(seq_len=seq_len, d_model=d_model, tokens=unless(tokens, 1))}>"


def reshape_type(rows, d_model, out_rows=1):
    """The numbers of all tokens in rows of another length; one row is a flattened sequence."""
    return f"attune::Reshape<attune::ReshapeShape{options(rows=rows, d_model=d_model, out_rows=unless(out_rows, 1))}>"


def norm_shape(rows, d_model, epsilon, weight=True, bias=True):
    return f"attune::NormShape{options(rows=rows, d_model=d_model, epsilon=unless(epsilon, 1e-5), weight=unless(weight, True), bias=unless(bias, weight))}"


@dataclass
class Attention:
    """What is recognized of self-attention."""
    seq_len: int
    d_model: int
    num_heads: int
    num_kv_heads: int
    d_k: int
    bias: bool
    output_bias: bool
    causal: bool = False
    rotary_dim: int = 0
    rotary_base: float = 10000.0
    rotary_adjacent: bool = False
    rotary_scaling: tuple = ()  # Llama 3's: factor, low and high frequency factor, original length
    names: dict = field(default_factory=dict)  # of EncoderLayerNames, whole paths
    tensors: list = field(default_factory=list)
    window: tuple = None  # keys to the left and to the right that a query sees, None where all; a causal mask is none
    memory: tuple = ()  # tokens and features of an encoder's output that it attends to
    head_norm: tuple = ()  # QueryKeyNorm's enumerator, and epsilon
    score_scale: tuple = ()  # ScoreScale's enumerator, and how many there are

    def shape(self):
        return options(
            seq_len=self.seq_len, d_model=self.d_model, num_heads=self.num_heads,
            num_kv_heads=unless(self.num_kv_heads, self.num_heads), kv_len=unless(self.memory[0], self.seq_len) if self.memory else None,
            d_k=unless(self.d_k, self.d_model // self.num_heads if self.d_model % self.num_heads == 0 else -1),
            **(dict.fromkeys(("d_key", "d_value"), unless(self.memory[1], self.d_model)) if self.memory else {}),
            bias=unless(self.bias, True), output_bias=unless(self.output_bias, self.bias),
            scaling="attune::Scaling::kOne" if self.score_scale else None,
            rotary_dim=unless(self.rotary_dim, 0),
            rotary_pairs="attune::RotaryPairs::kInterleaved" if self.rotary_dim and self.rotary_adjacent else None,
            rotary_base=unless(self.rotary_base, 10000.0) if self.rotary_dim else None,
            rotary_scaling=options(factor=self.rotary_scaling[0], low_frequency_factor=unless(self.rotary_scaling[1], 1.0),
                                   high_frequency_factor=unless(self.rotary_scaling[2], 4.0),
                                   original_length=unless(self.rotary_scaling[3], 8192)) if self.rotary_scaling else None,
            window="{.right = 0}" if self.causal else options(
                left=self.window[0], right=self.window[1], own_key=None if self.window[2] else "attune::OwnKey::kHidden") if self.window else None,
            query_key_norm=f"attune::QueryKeyNorm::{self.head_norm[0]}" if self.head_norm else None,
            query_key_epsilon=unless(self.head_norm[1], 1e-5) if self.head_norm else None,
            score_scale=f"attune::ScoreScale::{self.score_scale[0]}" if self.score_scale else None,
            score_scales=unless(self.score_scale[1], self.num_heads) if self.score_scale else None)


@dataclass
class Norm:
    rows: int
    d_model: int
    epsilon: float
    weight: bool
    bias: bool
    root_mean_square: bool = False
    deviation: bool = False  # by the unbiased standard deviation, as in The Annotated Transformer

    def type(self):
        if self.root_mean_square:
            shape = f"attune::NormShape{options(rows=self.rows, d_model=self.d_model, epsilon=unless(self.epsilon, 1e-5), weight=unless(self.weight, True))}"
            return f"attune::RmsNorm<{shape}>"
        kind = "DeviationNorm" if self.deviation else "LayerNorm"
        return f"attune::{kind}<{norm_shape(self.rows, self.d_model, self.epsilon, self.weight, self.bias)}>"


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
        attentions = [{name: value for name, value in vars(item).items() if name not in ("names", "tensors")} for item in (self.attention, self.cross) if item]
        return repr((attentions, self.network, self.norm, self.before, sorted(self.names.items())))

    def plain(self):
        """Whether EncoderLayerShape, or DecoderLayerShape, says all of it."""
        a, n, c = self.attention, self.network, self.cross
        if c and (c.memory[1] != a.d_model or any(getattr(a, name) != getattr(c, name) for name in (
                "num_heads", "num_kv_heads", "d_k", "bias", "output_bias", "head_norm", "score_scale"))):
            return False
        return (a.bias == a.output_bias == n.bias == self.norm.bias and self.norm.weight and not n.gated and
                not self.norm.root_mean_square and not self.norm.deviation and not {"scale1", "scale2"} & set(self.names))

    def declare(self, name):
        """C++ of a block called `name`: lines, and its type."""
        placement = "attune::NormPlacement::kBefore" if self.before else None
        if self.plain():
            n = self.network
            kind, memory = ("Decoder", self.cross.memory[0]) if self.cross else ("Encoder", None)
            shape = options(attention=self.attention.shape(), d_ff=n.d_ff,
                            memory_len=unless(memory, self.attention.seq_len),
                            activation=unless(n.activation, "attune::Activation::kRelu"), norm=placement,
                            epsilon=unless(self.norm.epsilon, 1e-5))
            return [f"inline constexpr attune::{kind}LayerShape k{name}{shape};"], f"attune::{kind}Layer<k{name}>"
        n = self.network
        swish = n.gated and n.activation == "attune::Activation::kSilu"
        network = options(rows=n.rows, d_model=n.d_model, d_ff=n.d_ff,
                          activation=None if swish else unless(n.activation, "attune::Activation::kRelu"),
                          bias=unless(n.bias, True))
        kind = "SwiGlu" if swish else "GatedFeedForward" if n.gated else "FeedForward"
        branches = [f"attune::MultiHeadAttention<k{name}Attention>", f"attune::{kind}<k{name}Network>"]
        for index, scale in enumerate(("scale1", "scale2")):
            if scale in self.names:
                branches[index] = f"attune::Sequential<{branches[index]}, {scale_type(n.rows, n.d_model)}>"
        cross = [f"inline constexpr attune::AttentionShape k{name}Memory{self.cross.shape()};"] if self.cross else []
        if cross:
            branches.insert(1, f"attune::MultiHeadAttention<k{name}Memory>")
        return [f"inline constexpr attune::AttentionShape k{name}Attention{self.attention.shape()};", *cross,
                f"inline constexpr attune::FeedForwardShape k{name}Network{network};",
                f"using {name} = attune::{'Decoder' if self.cross else 'Encoder'}LayerOf<",
                *(f"    {branch}," for branch in branches),
                f"    {self.norm.type()}" + (f",\n    attune::BranchOptions{{.norm = {placement}}}" if placement else "") + ">;"], name
