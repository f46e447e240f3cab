"""From a recording to attune's layers. What is recognized is confirmed by the recorded numbers."""
import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn

from . import elementwise
from .activations import ACTIVATIONS
from .convolutions import Convolutions
from .errors import Unsupported
from .folding import Normalized, warnings_of
from .layers import Attention, Block, Layer, Network, Norm, linear, llama3_scaling, options, rotary_frequencies, scale_type, unless
from .layout import SHAPES, axes, tokens
from .recording import Node, NodeByNode
from .tensors import conv1d_weights

# Operations that change no number, or none outside training.
SAME = {"dropout", "Dropout", "contiguous", "clone", "detach", "float", "to", "type", "alpha_dropout", "feature_dropout"}
OPERATIONS = {name: kind for kind, known in ACTIVATIONS.items() for name in known.operations}
SUMS = {"add", "__add__", "__radd__", "__iadd__", "add_", "iadd"}
PRODUCTS = {"mul", "__mul__", "__rmul__", "mul_", "__imul__", "imul", "multiply"}
QUOTIENTS = {"div", "__truediv__", "true_divide", "divide", "div_", "__itruediv__", "__idiv__", "__div__"}
DIFFERENCES = {"sub", "__sub__", "subtract", "sub_", "__isub__"}
RECURRENT = {"gru", "lstm", "rnn_tanh", "rnn_relu", "gru_cell", "lstm_cell", "rnn_tanh_cell", "rnn_relu_cell"}
POOLS = {"avg_pool1d", "avg_pool2d", "adaptive_avg_pool1d", "adaptive_avg_pool2d"}

# Of an nn.TransformerEncoderLayer that is written out.
TORCH_NAMES = {"qkv_weight": "self_attn.in_proj_weight", "qkv_bias": "self_attn.in_proj_bias", "output": "self_attn.out_proj",
               "linear1": "linear1", "linear2": "linear2", "norm1": "norm1", "norm2": "norm2"}
# Of an nn.MultiheadAttention; without biases it has no qkv_bias.
MULTIHEAD_NAMES = {"qkv_weight": "in_proj_weight", "qkv_bias": "in_proj_bias", "output": "out_proj"}


# Remedies that several messages have.
BATCH_FIRST = "make the batch the first dimension of the input and of every value (batch_first=True)"
NO_RECURRENT_LAYERS = "attune has no recurrent layers (GRU, LSTM, RNN, and their cells); attention or a causal nn.Conv1d can take their place: "
NORMALIZATION = "a normalization by constants; make its mean and deviation buffers of one number for each feature, (x - self.mean) / self.std, " \
    "or normalize samples before the model, in Python and on the device"
PADDING = "export without it; padding is given at run time, and the folder's README.md shows its SequenceLength"


class NotReached(Exception):
    """A chain ends elsewhere."""


def close(a, b, tolerance=1e-4):
    return a.shape == b.shape and bool(torch.isfinite(a).all()) and float((a - b).abs().max()) <= tolerance * max(
        1.0, float(b.abs().max()))


def same_numbers(a, b):
    """Whether numbers stay the same, but for their rounding to a type of fewer bits."""
    if a.shape != b.shape or a.is_floating_point() != b.is_floating_point():
        return False
    return torch.equal(a.double(), b.double()) or a.dtype != b.dtype and a.is_floating_point() and close(a.double(), b.double(), 1e-2)


def rows_of(shape):
    """Tokens and features of a value [batch, tokens, features] or [batch, features]."""
    if len(shape) == 3:
        return shape[1], shape[2]
    if len(shape) == 2:
        return 1, shape[1]
    raise Unsupported(f"a tensor of shape {list(shape)}: attune's have a batch, tokens and features")


def relative(names):
    """The path that names of tensors and modules share, and the names below it."""
    shared = []
    for step in zip(*[name.split(".") for name in names.values()]):
        if len(set(step)) > 1:
            break
        shared.append(step[0])
    path = ".".join(shared)
    return path, {key: name[len(path) + 1 if path else 0:] for key, name in names.items()}


class Recognizer(Convolutions):
    def __init__(self, recording):
        self.recording = recording
        self.tensors = recording.tensors
        self.conv1d = conv1d_weights(recording.module)
        self.patches = None  # the model's inputs, where the first step cuts them into patches or rearranges them
        self.rows = ""       # how, for people
        self.folds = {}      # BatchNorms by their paths, and normalizations
        self.factors = {}    # of a tensor, the constants that it is multiplied by, by their nodes
        self.attention_names = None  # of attention outside of transformer blocks
        self.floats = set()  # tensors that are vectors for a token or a feature, and not quantized
        self.ids = []        # the inputs of several tables, in the order of the device
        self.memory = None   # what decoder layers attend to
        self.pair = ()       # the inputs of an encoder and a decoder
        self.axes = axes(recording.nodes)

    close = staticmethod(close)

    def tokens(self, node):
        """The value as attune has it: [batch, tokens, features]."""
        return tokens(node.value, self.axes.get(node.index))

    def unchanged(self, node, before):
        """Whether an operation leaves tokens and features as they are."""
        if node.operation in SAME:
            return node.function is None or same_numbers(node.value, before.value)  # hints were compared
        if node.operation not in SHAPES or self.axes.get(node.index) is None:
            return False
        return torch.equal(self.tokens(node), self.tokens(before))

    def origin(self, node):
        """The value before operations that leave tokens and features as they are."""
        while True:
            derived = [item for item in node.inputs() if item.derived]
            if len(derived) != 1 or not self.unchanged(node, derived[0]):
                return node
            node = derived[0]

    # ---- Chains of layers ----

    def from_an_input(self, node):
        """The input that a value is computed from, and the layers from there."""
        for source in self.recording.inputs:
            before = dict(self.folds), {tensor: dict(factors) for tensor, factors in self.factors.items()}
            try:
                return source, self.chain(node, source)
            except NotReached:
                self.folds, self.factors = before
        raise NotReached

    def encoder_decoder(self, output, target, decoder):
        """The layers of a model whose decoder attends to an encoder's output, as one."""
        source, chain = self.from_an_input(self.memory)
        if source is target:
            raise Unsupported("a decoder whose target is the encoder's source")
        if not chain:
            raise Unsupported("a decoder that attends to an input itself; give the model an encoder, as an nn.Linear before")
        if self.ids or self.patches is not None:
            raise Unsupported("an encoder and a decoder of which one takes several ids for each token, or patches")
        self.pair = (source, target)
        parts = [self.blocks(chain), decoder]
        layer = Layer(names=[name for part in parts for inner in part for name in inner.names], output=self.tokens(output),
                      tensors=[tensor for part in parts for inner in part for tensor in inner.tensors], path="decoder",
                      shapes={name: shape for part in parts for inner in part for name, shape in inner.shapes.items()})
        layer.kind, layer.parts = "encoder_decoder", parts
        return layer

    def chain(self, node, source):
        """The layers from the value of `source` to that of `node`."""
        backwards = []
        while node is not source:
            if node.operation == "input" or not node.derived:
                raise NotReached
            try:
                found, node = self.last_layer(node, source)
            except Unsupported:
                self.refuse_before(node, source)
                raise
            backwards += reversed(found)
        return backwards[::-1]

    def refuse_before(self, node, source):
        """Raises what is refused before an operation that is refused, if something is: the first of the pass is told."""
        derived = [item for item in node.inputs() if item.derived]
        if node.operation in QUOTIENTS and len(derived) == 1 and derived[0].operation in DIFFERENCES:  # a normalization
            derived = [item for item in derived[0].inputs() if item.derived]
        if len(derived) == 1 and node.operation != "linear" and derived[0].operation != "pad" or node.operation in SUMS:
            try:
                self.chain(min(derived, key=lambda item: item.index), source)
            except NotReached:
                pass

    def last_layer(self, node, source):
        """The layers at the end of a chain (none, where numbers stay the same), and the node before them."""
        name = node.operation
        derived = [item for item in node.inputs() if item.derived]
        if self.unchanged(node, derived[0]):
            return [], derived[0]
        if node.module is not None:
            return self.module_layer(node, derived)
        if name == "linear" or self.is_conv1d(node):
            return self.linear_layer(node, source)
        if name == "embedding":
            return [self.embedding(node)], node.args[0]
        if name in OPERATIONS or name == "gelu":
            return [self.activation(node)], derived[0]
        formula = self.formula(node)
        if formula:
            return formula
        if name in SUMS:
            return self.sum_layer(node, derived, source)
        by_constants = self.by_constants(node, derived, source)
        if by_constants:
            return by_constants
        scale = self.scale(node) if name in PRODUCTS else None
        if scale:
            return [scale], derived[0]
        if name in ("conv1d", "conv2d"):
            return self.convolution_layer(node)
        if name in POOLS:
            return self.average_pool(node)
        if name == "batch_norm":
            return self.batch_norm(node, source)
        if name == "mean":
            return [self.pooling(node, "kMean")], derived[0]
        if name in ("amax", "max"):
            return [self.pooling(node, "kMax")], derived[0]
        if name in ("cat", "concat", "concatenate"):
            return [self.class_token(node)], derived[0]
        if name in SHAPES:
            if self.rearranged(node):
                self.patches, self.rows = self.tokens(node), f"The input is as forward rearranges it, {list(self.tokens(node).shape[1:])}"
                return [], self.recording.inputs[0]
            found = self.between_layouts(node)
            if found:
                return [found], found.source
            found = self.cut_convolution(node) if "getitem" in name else None
            if found:
                return found
        if name in ("__getitem__", "getitem", "select"):
            return [self.first_token(node)], derived[0]
        raise self.no_layer(node)

    @staticmethod
    def no_layer(node):
        known = {"batch_norm": "BatchNorm"} | dict.fromkeys(
            ("matmul", "__matmul__", "bmm", "einsum", "scaled_dot_product_attention"),
            "a product of two values; attention ends with its output projection, an nn.Linear")
        derived = [item for item in node.inputs() if item.derived]
        what = known.get(node.operation)
        if node.operation in PRODUCTS | QUOTIENTS:
            what = "a product of two values" if len(derived) > 1 else NORMALIZATION if derived[0].operation in DIFFERENCES else \
                "a product with a constant that is not behind a layer with weights of its own; make the factors of features a parameter, " \
                f"nn.Parameter(torch.full(({node.shape[-1]},), …)), which becomes a LayerScale"
        elif node.operation in DIFFERENCES and len(derived) == 1:
            what = NORMALIZATION
        elif node.operation == "sum":
            what = "a sum over tokens; divide it by their number, x.sum(1) / x.shape[1], or take x.mean(1), which is a Pooling"
        elif node.operation.startswith("part "):
            what = f"output {node.operation[len('part '):]} of {node.args[0].operation}, as attention's weights or the places of a maximum"
        elif node.operation in SAME:
            what = "a dropout that is active in evaluation, as F.dropout without training=self.training" if "dropout" in node.operation.lower() \
                else "a conversion that changes numbers or their kind; make inputs that are no ids floats"
        elif node.operation in ("softmax", "log_softmax"):
            what = "a softmax that is not attention's; leave it out at the end of a model, as CrossEntropy takes logits"
        elif node.operation in SHAPES and len(derived) == 1 and node.value.numel() == derived[0].value.numel() and derived[0].shape[-1] == 1:
            what = "a single feature whose dimension is dropped before the last step; squeeze the output at the very end"
        elif node.operation in SHAPES and node.value.dim() > 1 and node.shape[:2] == derived[0].shape[:2][::-1] and node.shape[0] != node.shape[1]:
            what = f"a value whose batch is not its first dimension; {BATCH_FIRST}"
        return node.refused("attune has no layer for this: " + (f"{what}: " if what else ""))

    def rearranged(self, node):
        """Whether a value is the first input in another order and shape, each sample by itself. The device then takes it so."""
        *_, image = self.layouts(node)
        if image is not self.recording.inputs[0] or node.value.numel() != image.value.numel() or node.value.dim() > 3 or \
                node.shape[0] != image.shape[0]:
            return False
        samples = torch.arange(float(image.shape[0])).reshape(-1, *[1] * (image.value.dim() - 1)).expand(image.shape)
        try:
            found = elementwise.replay(node, {image.index: samples}, torch.float32)
        except (RuntimeError, TypeError, IndexError):
            return False
        return torch.equal(found.reshape(node.shape[0], -1), samples.reshape(node.shape[0], -1))

    def unit_feature(self, node):
        """The model's output before changes of shape that drop its only feature, as squeeze(-1)."""
        while node.operation == "select" or node.operation in SHAPES and (self.axes.get(node.index) is None or node.value.dim() < 2):
            derived = [item for item in node.inputs() if item.derived]
            axis = self.axes.get(derived[0].index) if len(derived) == 1 else None
            if axis is None or derived[0].shape[axis] != 1 or node.value.numel() != derived[0].value.numel() or \
                    node.value.dim() < 1 or node.shape[0] != derived[0].shape[0]:
                break
            node = derived[0]
        return node

    # ---- Constants that values are multiplied by ----

    def constant_factor(self, node):
        """The number that a value is multiplied by, if it is one and no parameter; or None."""
        values = [*node.args, *node.kwargs.values()]
        numbers = [item for item in values if not (isinstance(item, Node) and item.derived)]
        if node.operation not in PRODUCTS | QUOTIENTS or len(values) != 2 or len(numbers) != 1 or (
                node.operation in QUOTIENTS and values[0] is numbers[0]):
            return None
        number = numbers[0]
        if isinstance(number, Node):
            trained = dict(self.recording.module.named_parameters())
            if number.value.numel() != 1 or any(name in trained for name in self.origins(number)):
                return None
            number = float(number.value)
        number = float(torch.tensor(number, dtype=torch.float32)) if type(number) in (int, float) else 0.0  # as PyTorch takes it
        if not math.isfinite(number) or number == 0:
            return None
        return 1 / number if node.operation in QUOTIENTS else number

    @staticmethod
    def ending(layer):
        """The tensors that a layer's output is proportional to; none of one that has no such."""
        kind = getattr(layer, "kind", "")
        if kind in ("linear", "convolution", "embedding", "scale", "by_feature") or kind == "norm" and layer.norm.weight:
            return layer.tensors
        path = layer.attention.names["output"] if kind == "attention" else layer.network_names["linear2"] if kind == "gated" else None
        return [name for name in layer.tensors if path is not None and name.rpartition(".")[0] == path]

    def by_constants(self, node, derived, source):
        """A mean over tokens that is a sum divided by their number, a factor in the tensors of the layer before it, or a normalization by
        buffers, as `last_layer` answers; or None."""
        normalized = self.normalization(node, derived)
        if normalized:
            return normalized
        factor = self.constant_factor(node)
        if factor is None:
            return None
        before = self.origin(derived[0])
        if before.operation == "sum":
            tokens = before.args[0].value.numel() // before.value.numel()
            return ([self.pooling(before, "kMean", node)], before.args[0]) if abs(factor * tokens - 1) < 1e-6 else None
        if before is source or before.operation == "input":
            return None
        found, rest = self.last_layer(before, source)
        tensors = self.ending(found[-1]) if found else []
        if not tensors or any(len(self.recording.names[id(self.tensors[tensor])]) > 1 for tensor in tensors if tensor in self.tensors):
            return None
        for tensor in tensors:
            self.factors.setdefault(tensor, {})[node.index] = factor
        found[-1].output = self.tokens(node)
        return found, rest

    def normalization(self, node, derived):
        """(x - mean) / std, by tensors of the state_dict with one number for each feature; or None."""
        if node.operation not in QUOTIENTS or len(derived) != 1 or derived[0] is not node.args[0] or derived[0].operation not in DIFFERENCES:
            return None
        difference = derived[0]
        constants = [difference.args[1], node.args[1]] if len(difference.args) == len(node.args) == 2 else []
        axis = self.axes.get(node.index)
        if len(constants) < 2 or axis is None or not all(isinstance(item, Node) for item in constants) or not difference.args[0].derived:
            return None
        names = [self.by_name(item, node.shape[axis]) for item in constants]
        if None in names:
            return None
        mean, std = (item.value.flatten() for item in constants)
        x, y = self.tokens(difference.args[0]), self.tokens(node)
        weight, bias = (1 / std.double()).float(), (-mean.double() / std.double()).float()
        if not close(x * weight + bias, y, 1e-5):
            raise node.refused("a normalization whose mean is so far from 0 that x / std - mean / std loses what (x - mean) / std keeps; normalize "
                               "samples before the model, in Python and on the device: ")
        prefix = names[0].rpartition(".")[0]
        path = f"{prefix}.normalization" if prefix else "normalization"
        if any(name.startswith(f"{path}.") for name in self.tensors) or path in self.folds:
            raise node.refused(f"a second normalization beside {path}: ")
        self.folds[path] = Normalized(path, *names, warnings=warnings_of(mean, std, names[1]))
        return [self.by_feature(node, path)], difference.args[0]

    def by_name(self, constant, features):
        """The name in the state_dict of a constant with one number for each feature; or None."""
        if constant.derived or constant.value.numel() != features or constant.value.dtype != torch.float32:
            return None
        return next((name for name in self.origins(constant) if torch.equal(self.tensors[name].detach().flatten(), constant.value.flatten())), None)

    # ---- Single layers ----

    def layer(self, node, type_, name=None, tensors=()):
        return Layer(type=type_, names=[name] if name is not None else [], tensors=list(tensors), output=self.tokens(node),
                     path=node.path, node=node)

    def vectors(self, node, type_, name, tensor):
        """A layer whose tensor has vectors for tokens or features; QUANTIZE leaves it floats."""
        self.floats.add(tensor)
        return self.layer(node, type_, name, [tensor])

    def name_of(self, node):
        """The name of a parameter in the state_dict."""
        if isinstance(node, Node) and node.operation == "constant" and node.path:
            return node.path
        return None

    def prefix(self, node, ending):
        name = self.name_of(node)
        if name is None and isinstance(node, Node):
            self.refuse_parametrized(node)
        if name is None or not (name == ending or name.endswith("." + ending)):
            raise Unsupported(f"the tensor of this operation is not called …{ending} in the state_dict: {name or 'no parameter'}")
        return name[: -len(ending) - 1] if name != ending else ""

    def weight_and_bias(self, node, weight, bias):
        """The path of a layer by its parameters, and their names. The bias, if there is one, is to be the parameter beside the weight,
        or beside one of its names where it is tied."""
        path = self.prefix(weight, "weight")
        if bias is None:
            return path, [weight.path]
        beside = (self.name_of(bias) or "").removesuffix("bias") + "weight"
        if beside not in self.recording.names[id(self.tensors[weight.path])]:
            raise node.refused(f"a bias that is not the parameter beside {weight.path}: ")
        return beside[: -len(".weight")], [beside, bias.path]

    def refuse_parametrized(self, node):
        """Raises Unsupported of a weight that weight_norm, spectral_norm or a parametrization computes."""
        for name in self.origins(node):
            path, _, leaf = name.partition(".parametrizations.") if ".parametrizations." in name else name.rpartition(".")
            call = f"parametrize.remove_parametrizations(model.{path}, {leaf.partition('.')[0]!r})" if ".parametrizations." in name else \
                f"remove_weight_norm(model.{path})" if leaf in ("weight_g", "weight_v") else \
                f"remove_spectral_norm(model.{path})" if leaf == "weight_orig" else None
            if call:
                raise Unsupported(f"the weight of {path} is computed from {name}: call torch.nn.utils.{call} before")

    def argument(self, node, index, key, default=None):
        if len(node.args) > index:
            return node.args[index]
        return node.kwargs.get(key, default)

    @staticmethod
    def is_conv1d(node):
        """Whether a view ends Hugging Face's Conv1D: addmm of rows, and a weight that is [in, out]."""
        return node.operation in ("view", "reshape") and node.args[0].operation == "addmm"

    def linear_parts(self, node):
        """Weight, bias, input of F.linear, or of Hugging Face's Conv1D."""
        if node.operation == "linear":
            return self.argument(node, 1, "weight"), self.argument(node, 2, "bias"), node.args[0]
        product = node if node.operation == "addmm" else node.args[0]
        if product.args[2].path not in self.conv1d:
            raise product.refused("a product with a weight that is [in, out] and no Conv1D's: ")
        source = product.args[1]
        while source.operation in ("view", "reshape"):
            source = source.args[0]
        return product.args[2], product.args[0], source

    def linear_layer(self, node, source):
        network = self.gated(node)
        if network:
            return [network], network.source
        attention = self.attention(node)
        if attention:
            return [attention], attention.source
        before = self.linear_parts(node)[2]
        flattened = self.flattened_linear(node, before)
        if flattened:
            return flattened
        if self.axes.get(before.index) != before.value.dim() - 1:
            raise node.refused("a Linear of something else than the features of each token: ")
        return [self.plain_linear(node)], before

    def plain_linear(self, node, source=None):
        weight, bias, before = self.linear_parts(node)
        rows, d_in = rows_of((source or before).shape)
        d_out = node.shape[-1]
        layer = self.layer(node, linear(rows, d_in, d_out, bias is not None), *self.weight_and_bias(node, weight, bias))
        layer.kind, layer.bias, layer.weight = "linear", bias is not None, weight
        layer.make = lambda bias: linear(rows, d_in, d_out, bias)
        layer.d_in, layer.d_out = d_in, d_out
        return layer

    def embedding(self, node):
        ids, table = node.args[0], node.args[1]
        if not ids.derived:
            raise node.refused("an embedding of constants that is not added to the tokens: ")
        if self.argument(node, 3, "max_norm") is not None:
            raise node.refused("an embedding with max_norm, which changes rows as they are looked up; set it to None, with rows as they are to be: ")
        padding = self.argument(node, 2, "padding_idx", None)
        seq_len = ids.shape[1] if len(ids.shape) == 2 else 1
        type_ = f"attune::Embedding<attune::EmbeddingShape{options(seq_len=seq_len, vocabulary=table.shape[0], d_model=table.shape[1], padding=padding if padding is not None and padding >= 0 else None)}>"
        layer = self.layer(node, type_, self.prefix(table, "weight"), [table.path])
        layer.kind, layer.table = "embedding", table
        return layer

    def class_token(self, node):
        """A trained token in front of the others."""
        parts = node.args[0]
        tokens = len(parts) == 2 and not parts[0].derived and parts[1].derived and len(node.shape) == 3 and self.axes.get(node.index) == 2
        if not tokens or not torch.equal(node.value[:, 1:], parts[1].value) or self.argument(node, 1, "dim", 0) not in (1, -2):
            raise node.refused("attune has no layer for this: a concatenation that is not a class token in front of the tokens, ")
        for name in self.origins(parts[0]):
            if torch.equal(self.tensors[name].detach().reshape(1, -1).expand(node.shape[0], -1), node.value[:, 0]):
                shape = options(seq_len=node.shape[1] - 1, d_model=node.shape[2])
                layer = self.vectors(node, f"attune::ClassToken<attune::TokenShape{shape}>", name, name)
                if self.tensors[name].dim() != 1:
                    layer.shapes = {name: tuple(self.tensors[name].shape)}
                return layer
        raise node.refused("a class token that is no parameter: ")

    def activation_name(self, node):
        if node.operation == "gelu":
            tanh = self.argument(node, 1, "approximate", "none") == "tanh"
            return "attune::Activation::" + ("kGeluTanh" if tanh else "kGelu")
        if node.operation in OPERATIONS:
            return "attune::Activation::" + OPERATIONS[node.operation]
        return None

    def activation(self, node):
        rows, cols = rows_of(self.tokens(node).shape)
        layer = self.layer(node, f"attune::ActivationLayer<{self.activation_name(node)}, {rows}, {cols}>")
        layer.kind, layer.activation = "activation", self.activation_name(node)
        return layer

    def formula(self, node):
        """An activation or a norm that is written out, as `last_layer` answers; or None."""
        kind, found, source = elementwise.recognize(node) or ("", None, None)
        if kind == "activation" and not found:
            return [], source
        if kind == "activation":
            rows, cols = rows_of(self.tokens(node).shape)
            name = f"attune::Activation::{found}"
            layer = self.layer(node, f"attune::ActivationLayer<{name}, {rows}, {cols}>")
            layer.kind, layer.activation = "activation", name
            return [layer], source
        if kind == "norm":
            root_mean_square, epsilon, weight, bias = found
            if any(item is not None and self.name_of(item) is None for item in (weight, bias)):
                raise node.refused("a norm whose weight is no parameter: ")
            path = self.prefix(weight, "weight") if weight is not None else ""
            if self.axes.get(node.index) != node.value.dim() - 1:
                raise node.refused("a norm over something else than the features of each token: ")
            if bias is not None and (root_mean_square or self.prefix(bias, "bias") != path):
                raise node.refused("a norm whose bias is not its weight's neighbor: ")
            norm = Norm(*rows_of(node.shape), epsilon, weight is not None, bias is not None, root_mean_square)
            layer = self.layer(node, norm.type(), path or None, [item.path for item in (weight, bias) if item is not None])
            layer.kind, layer.norm = "norm", norm
            return [layer], source
        return None

    @staticmethod
    def layouts(node):
        """A value, and those before its changes of shape and layout."""
        yield node
        while node.operation in SHAPES or node.operation in SAME:
            derived = [item for item in node.inputs() if item.derived]
            if len(derived) != 1:
                return
            node = derived[0]
            yield node

    def sources(self, node):
        """Values that a layer's input may be in another layout: those before it, then others that are made from the first."""
        *before, origin = self.layouts(node)
        yield from [*before, origin]
        for other in self.recording.nodes:
            if other.operation in SHAPES and other not in before and any(item is origin for item in self.layouts(other)):
                yield other

    def between_layouts(self, node):
        """A linear layer or attention whose tokens lie in another order in between, as [tokens, batch, features]; else None."""
        *_, inner = self.layouts(node)
        if inner is node or inner.operation != "linear" or len(node.shape) != 3:
            return None
        attention = self.attention(inner, node)
        if attention:
            return attention
        weight, bias, before = self.linear_parts(inner)
        for source in self.sources(before):
            if len(source.shape) == 3 and source.shape[-1] == weight.shape[1] and close(
                    F.linear(source.value, weight.value, bias.value if bias is not None else None), node.value, 1e-5):
                layer = self.plain_linear(inner, source)
                layer.output, layer.source = node.value, source
                return layer
        return None

    def pooling(self, node, kind, answer=None):
        """Of a mean or a maximum; of a sum with an `answer`, the value that is the mean."""
        before = node.args[0]
        dims = self.argument(node, 1, "dim", self.argument(node, 1, "axis"))
        rank, axis = before.value.dim(), self.axes.get(before.index)
        dims = [dim % rank for dim in (dims if isinstance(dims, (list, tuple)) else [dims]) if isinstance(dim, int)]
        if rank < 3 or axis is None or sorted([0, axis, *dims]) != list(range(rank)):
            batch = f"; {BATCH_FIRST}" if 0 in dims else ""
            raise node.refused(f"a mean or a maximum of another dimension than the tokens'{batch}: ")
        return self.pooled(answer or node, before, kind)

    def pooled(self, node, before, kind):
        _, seq_len, d_model = self.tokens(before).shape
        shape = options(seq_len=seq_len, d_model=d_model, kind=None if kind == "kMean" else f"attune::PoolingKind::{kind}")
        return self.layer(node, f"attune::Pooling<attune::PoolingShape{shape}>")

    def first_token(self, node):
        before = node.args[0]
        rows = self.tokens(before)
        if rows.dim() == 3 and node.shape == (rows.shape[0], rows.shape[2]) and torch.equal(node.value, rows[:, 0]):
            return self.pooled(node, before, "kFirst")
        raise node.refused("a part of the tokens that is not the first one; export the model without this step, and take that row of the "
                           "output on the device: ")

    def norm(self, node):
        """A Norm, where the module is one by its numbers; its input's node."""
        module, before = node.module, node.args[0]
        rows, d_model = rows_of(before.shape)
        weight = getattr(module, "weight", None)
        bias = getattr(module, "bias", None)
        if isinstance(module, nn.LayerNorm):
            if tuple(module.normalized_shape) != (d_model,):
                raise node.refused("a LayerNorm over more than the features: ")
            self.confirm(node, F.layer_norm(before.value, (d_model,), weight, bias, module.eps))
            return Norm(rows, d_model, module.eps, weight is not None, bias is not None)
        numbers = [value for value in vars(module).values() if isinstance(value, float)] + [
            1e-5, 1e-6, 1e-8, 1e-12, torch.finfo(torch.float32).eps]
        if len(node.args) > 1 or node.kwargs:
            raise node.refused("a norm of several values: ")
        # Small numbers, which show epsilon, and large ones, which show whether it is a norm at all. Their mean is not 0, as it is
        # after another norm: there both kinds are the same.
        drawn = 1 + torch.randn(before.shape, generator=torch.Generator().manual_seed(1)).to(before.value.dtype)
        probes = torch.stack([0.01 * drawn, 10 * drawn]).double()
        with torch.no_grad():
            target = torch.stack([module(probe.to(drawn.dtype)) for probe in probes]).double()

        def error(kind):
            root_mean_square, epsilon = kind
            x = probes if root_mean_square else probes - probes.mean(-1, keepdim=True)
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon)
            return float((y * weight.double() - target if weight is not None else y - target).abs().max())

        limit = 1e-5 * max(1.0, float(target.abs().max()))
        fitting = [kind for kind in itertools.product((True, False), numbers) if error(kind) <= limit]
        if fitting:
            root_mean_square, epsilon = min(fitting, key=lambda kind: (kind[1] != numbers[0], error(kind)))
            return Norm(rows, d_model, epsilon, weight is not None, False, root_mean_square)
        raise node.refused("a norm that is neither LayerNorm nor RMSNorm: ")

    def module_layer(self, node, derived):
        module = node.module
        if self.axes.get(derived[0].index) != derived[0].value.dim() - 1:
            raise node.refused("a layer of something else than the features of each token: ")
        if isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
            return [self.transformer_layer(node)], node.args[0]
        if isinstance(module, nn.MultiheadAttention):
            found = self.multihead(node)
            return [found], found.source
        norm = self.norm(node)
        names = [f"{node.path}.{name}" for name, _ in module.named_parameters()]
        layer = self.layer(node, norm.type(), node.path if names else None, names)
        layer.kind, layer.norm = "norm", norm
        return [layer], node.args[0]

    def scale(self, node):
        """A parameter with a factor for each feature (LayerScale), or None."""
        constants = [item for item in node.args if isinstance(item, Node) and not item.derived]
        axis = self.axes.get(node.index)
        if len(constants) != 1 or axis is None:
            return None
        factors = constants[0].value
        behind = node.value.dim() - 1 - axis  # dimensions of 1 behind the features
        if factors.numel() != node.shape[axis] or factors.dim() <= behind or factors.shape[-1 - behind] != factors.numel():
            return None
        for name in self.origins(constants[0]):
            if torch.equal(self.tensors[name].detach().flatten(), factors.flatten()):
                shape = list(self.tensors[name].shape)
                if shape[-1] != factors.numel():
                    raise node.refused(f"factors of {shape}; make {name} a vector of [{factors.numel()}], and its shape one of forward's steps: ")
                layer = self.vectors(node, scale_type(*rows_of(self.tokens(node).shape)), name, name)
                layer.kind = "scale"
                if self.tensors[name].dim() != 1:
                    layer.shapes = {name: tuple(self.tensors[name].shape)}
                return layer
        return None

    # ---- Sums: positions and residuals ----

    def sum_layer(self, node, derived, source):
        embeddings = self.embedding_sum(node)
        if embeddings:
            return embeddings, self.recording.inputs[0]
        terms = [item for item in node.args if isinstance(item, Node)]
        if len(terms) != 2 or self.argument(node, 2, "alpha", 1) != 1:
            raise self.no_layer(node)
        constant = [term for term in terms if not term.derived]
        if constant:
            return self.added(node, derived[0], constant[0]), derived[0]
        # What is computed from the other one comes later.
        skip, branch = sorted((self.origin(term) for term in terms), key=lambda term: term.index)
        try:
            same = self.tokens(branch).shape == self.tokens(skip).shape
            inside = self.chain(branch, skip) if same else []
        except NotReached:
            inside = []
        if inside:
            layer = self.layer(node, "")
            layer.kind, layer.inside = "residual", inside
            return [layer], skip
        raise node.refused("a sum of two values that is no residual connection: one is to be computed from the other, and have its "
                          "shape: ")

    def plain_sum(self, node):
        """Whether a value is the sum of two, neither times alpha."""
        return node.operation in SUMS and len(node.args) == 2 and all(isinstance(item, Node) for item in node.args) and \
            self.argument(node, 2, "alpha", 1) == 1

    def embedding_sum(self, node):
        """Two tables or more that are looked up with inputs, their sum, and constants that are added to it; or None."""
        tables, constants, queue = [], [], [node]
        while queue:
            term = self.origin(queue.pop(0))
            if not term.derived:
                constants.append(term)
            elif term.operation == "embedding" and self.origin(term.args[0]).operation == "input":
                tables.append(term)
            elif self.plain_sum(term):
                queue = [*term.args, *queue]
            else:
                return None
        if len(tables) < 2:
            return None
        inputs = [self.origin(table.args[0]) for table in tables]
        if len({tuple(item.shape) for item in inputs}) > 1 or len({table.shape for table in tables}) > 1:
            raise node.refused("a sum of embeddings with different numbers of tokens or features: ")
        parts, value = [self.embedding(table) for table in tables], tables[0].value
        type_ = parts[0].type
        for part, table in zip(parts[1:], tables[1:]):
            type_, value = f"attune::EmbeddingSum<{type_}, {part.type}>", value + table.value
        self.ids = inputs
        sum_ = Node("add", tables, {}, value, path=node.path, line=node.line)
        sum_.derived = True
        self.axes[sum_.index] = value.dim() - 1
        layer = Layer(type=type_, names=[name for part in parts for name in part.names], output=value, path=node.path,
                      tensors=[tensor for part in parts for tensor in part.tensors])
        layer.kind = "embeddings"
        found = [layer]
        for index, constant in enumerate(constants):
            next_ = node if index + 1 == len(constants) else Node("add", [sum_, constant], {}, sum_.value + constant.value, path=node.path)
            self.axes[next_.index] = self.axes[sum_.index]
            found += self.added(next_, sum_, constant)
            sum_ = next_
        return found

    def added(self, node, before, constant):
        """Constants that are added: positions, a token type, or a sum of such."""
        if self.plain_sum(constant):
            first, second = constant.args
            sum_ = Node("add", [before, first], {}, before.value + first.value, path=node.path, line=node.line)
            self.axes[sum_.index] = self.axes.get(before.index)
            return [*self.added(sum_, before, first), *self.added(node, sum_, second)]
        return [self.token_type(node, constant) or self.positions(node, constant)]

    def token_type(self, node, constant):
        """A row of a table that is added to every token, or None."""
        if constant.operation != "embedding" or len(node.shape) != 3 or self.axes.get(node.index) != 2:
            return None
        ids, table = constant.args[0], constant.args[1]
        if ids.value.unique().numel() != 1 or self.name_of(table) is None or (
                node.shape[1] == 1 and "type" not in table.path):
            return None
        types, d_model = table.shape
        shape = options(seq_len=node.shape[1], d_model=d_model, types=unless(types, 2), type=unless(int(ids.value.flatten()[0]), 0))
        return self.vectors(node, f"attune::TokenType<attune::TokenTypeShape{shape}>", self.prefix(table, "weight"), table.path)

    def positions(self, node, constant):
        rows, d_model = rows_of(self.tokens(node).shape)
        value = constant.value
        if value.dim() <= node.value.dim():
            value = tokens(value.expand(node.value.shape), self.axes.get(node.index))
            if not torch.equal(value, value[:1].expand(value.shape)):
                raise node.refused("a constant that is added, and differs from sample to sample: ")
            value = value[0]
        value = value.reshape(rows, d_model)
        shape = f"attune::PositionShape{options(seq_len=rows, d_model=d_model)}"
        for name in self.origins(constant):
            tensor = self.tensors[name]
            if tensor.numel() % d_model or tensor.shape[-1] != d_model:
                continue
            if torch.equal(tensor.detach().reshape(-1, d_model)[:rows].to(value.dtype), value):
                layer = self.vectors(node, f"attune::LearnedPositions<{shape}>", name, name)
                if tensor.dim() != 2:
                    layer.shapes = {name: tuple(tensor.shape)}
                return layer
        angles = torch.arange(rows).double()[:, None] * 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
        table = torch.stack([angles.sin(), angles.cos()], -1).reshape(rows, -1)[:, :d_model]
        if close(value.double(), table, 1e-5):
            return self.layer(node, f"attune::SinusoidalPositions<{shape}>")
        raise node.refused("a constant that is added, and is neither a parameter of [tokens, features] nor sinusoidal "
                          "positions: ")

    def origins(self, node):
        """Names of the tensors that a constant comes from."""
        if node.operation == "constant":
            return [node.path] if node.path in self.tensors else []
        return [name for item in node.inputs() for name in self.origins(item)]

    # ---- Attention ----

    @staticmethod
    def confirm(node, expected):
        """Raises Unsupported of a module that does not compute what its class of torch.nn does."""
        if not bool(torch.isfinite(node.value).all()):
            raise node.refused("numbers that are NaN or infinite on sample_input, which is to have real inputs: ")
        if not close(node.value, expected):
            raise node.refused("a module whose numbers are not those of its class in torch.nn, as with a forward of its own or exchanged parts: ")

    @classmethod
    def attended(cls, module, x, memory, causal):
        """What an nn.MultiheadAttention answers to queries of x, and keys and values of memory."""
        biases = module.in_proj_bias.chunk(3) if module.in_proj_bias is not None else [None] * 3
        q, k, v = (F.linear(value, weight, bias) for value, weight, bias in zip((x, memory, memory), module.in_proj_weight.chunk(3), biases))
        context = cls.attend(q, k, v, module.num_heads, q.shape[-1] // module.num_heads, causal, (0, 10000.0, False, ()))
        return F.linear(context, module.out_proj.weight, module.out_proj.bias)

    @classmethod
    def encoded(cls, module, x, memory, causal, activation):
        """What an nn.TransformerEncoderLayer answers, or with a memory an nn.TransformerDecoderLayer."""
        def network(y):
            inner = F.linear(y, module.linear1.weight, module.linear1.bias)
            return F.linear(ACTIVATIONS[activation].formula(inner), module.linear2.weight, module.linear2.bias)

        branches = [lambda y: cls.attended(module.self_attn, y, y, causal), network]
        if memory is not None:
            branches.insert(1, lambda y: cls.attended(module.multihead_attn, y, memory, False))
        for index, branch in enumerate(branches, 1):
            norm = getattr(module, f"norm{index}")
            x = x + branch(norm(x)) if module.norm_first else norm(x + branch(x))
        return x

    def multihead(self, node):
        module = node.module
        query, key, value = node.args[:3]
        if query is not key or key is not value:
            raise node.refused("attention to another sequence: ")
        if not module.batch_first:
            raise node.refused(f"nn.MultiheadAttention with batch_first=False; {BATCH_FIRST}: ")
        if module.bias_k is not None or module.add_zero_attn or not module._qkv_same_embed_dim:
            raise node.refused("nn.MultiheadAttention with add_bias_kv, add_zero_attn, kdim or vdim: ")
        if self.argument(node, 3, "key_padding_mask") is not None:
            raise node.refused(f"a padding mask; {PADDING}: ")
        mask = self.argument(node, 5, "attn_mask")
        seq_len, d_model = rows_of(query.shape)
        bias = module.in_proj_bias is not None
        path = node.path
        names = {"qkv_weight": f"{path}.in_proj_weight", "output": f"{path}.out_proj"}
        if bias:
            names["qkv_bias"] = f"{path}.in_proj_bias"
        attention = Attention(seq_len, d_model, module.num_heads, module.num_heads, d_model // module.num_heads, bias,
                              module.out_proj.bias is not None, self.is_causal(mask, node), names=names,
                              tensors=[f"{path}.{name}" for name, _ in module.named_parameters()])
        self.confirm(node, self.attended(module, query.value, query.value, attention.causal))
        return self.attention_layer(node, attention, query)

    def is_causal(self, mask, node):
        """Whether a mask hides all that comes later; a mask that hides nothing is none."""
        if mask is None:
            return False
        if isinstance(mask, Node) and self.recording.is_of_input(mask):
            raise node.refused(f"a mask that forward computes from the input; if it is one of padding, {PADDING}: ")
        value = mask.value if isinstance(mask, Node) else mask
        seq_len = value.shape[-1]
        hides = value.bool() if value.dtype in (torch.bool, torch.uint8) else value < -1e4
        later = torch.triu(torch.ones(seq_len, seq_len, dtype=torch.bool), 1)
        if value.dtype not in (torch.bool, torch.uint8) and bool((value[~hides] != 0).any()):
            raise node.refused("a mask with numbers that are added to scores, as ALiBi's: ")
        if torch.equal(hides, later.expand(hides.shape)):
            return True
        if not hides.any():
            return False
        raise node.refused(f"a mask that is not causal; if it is a window, SlidingWindowMask is given at run time; if it is one of padding, {PADDING}: ")

    def attention_layer(self, node, attention, source):
        layer = self.layer(node, f"attune::MultiHeadAttention<attune::AttentionShape{attention.shape()}>",
                           tensors=attention.tensors)
        layer.kind, layer.attention, layer.source = "attention", attention, source
        return layer

    def attention(self, node, end=None):
        """Attention that ends with a linear layer, and changes of layout up to `end`; None where something else comes before."""
        weight, bias, before = self.linear_parts(node)
        region, sources, softmax, from_input, hides = set(), [], [], False, False
        queue = [before]
        while queue:
            item = queue.pop()
            if id(item) in region or not item.derived:
                continue
            region.add(id(item))
            hides = hides or item.value.dtype is torch.bool and self.recording.is_of_input(item)
            if item.operation in ("linear", "addmm"):
                sources.append(item)
            elif item.module is not None:
                return None
            elif item.operation == "input":
                from_input = True
            else:
                if item.operation in ("softmax", "_softmax", "scaled_dot_product_attention"):
                    softmax.append(item)
                queue += item.inputs()
        if len(softmax) != 1 or len(sources) not in (1, 3):
            return None
        if hides:
            raise softmax[0].refused(f"attention with a mask that forward computes from its values, as a padding mask; {PADDING}: ")
        if from_input:
            raise softmax[0].refused("attention that also takes the model's input itself, as a padding mask that forward computes; "
                                     f"{PADDING}: ")
        parts = [self.linear_parts(item) for item in sources]
        inputs = {id(part[2]) for part in parts}
        if len(inputs) != 1:
            raise node.refused("attention to another sequence: ")
        for source in [parts[0][2]] if end is None else self.sources(parts[0][2]):
            found = self.confirmed(node, softmax[0], sources, parts, before, source, end)
            if found is not None:
                break
        if found is None:
            raise softmax[0].refused("attention whose numbers are not those of scaled dot-product attention, with or without a "
                              "causal mask and rotary positions: ")
        found.output_bias = bias is not None
        found.names["output"], tensors = self.weight_and_bias(node, weight, bias)
        found.tensors += tensors
        return self.attention_layer(end or node, found, source)

    def confirmed(self, node, softmax, sources, parts, before, source, end):
        """Tries the forms of attention until one has the recorded numbers. With an `end`, tokens lie in another order between
        the source and it; only their numbers are compared."""
        if end is not None and (len(source.shape) != 3 or source.shape[:2] != end.shape[:2] or
                                source.shape[-1] != parts[0][0].shape[1]):
            return None
        seq_len, d_model = rows_of(source.shape)
        scores = softmax.shape if softmax.operation != "scaled_dot_product_attention" else softmax.args[0].shape
        batch = source.shape[0]
        if before.value.numel() % (batch * seq_len):
            return None
        heads = scores[1] if len(scores) == 4 else max(1, scores[0] // batch)

        def projected(item, part):
            """In the order [batch, tokens, features]."""
            if end is None:
                return item.value.reshape(batch, seq_len, -1).double()
            return F.linear(source.value, part[0].value, part[1].value if part[1] is not None else None).double()

        target = (before.value.reshape(batch, seq_len, -1) if end is None else end.value).double()
        output = self.linear_parts(node)

        def answer(context):
            if end is None:
                return context
            return F.linear(context, output[0].value.double(), output[1].value.double() if output[1] is not None else None)

        if len(sources) == 1:
            packed = projected(sources[0], parts[0])
            if packed.shape[-1] % 3:
                return None
            tries = [(list(packed.chunk(3, -1)), (0, 1, 2))]
        else:
            values = [projected(item, part) for item, part in zip(sources, parts)]
            tries = [([values[i] for i in order], order) for order in itertools.permutations(range(3))]
        for (q, k, v), order in tries:
            if q.shape[-1] % heads:
                continue
            d_k = q.shape[-1] // heads
            if k.shape != v.shape or k.shape[-1] % d_k or heads % (k.shape[-1] // d_k):
                continue
            for causal, rotary in itertools.product((False, True), self.rotaries(d_k)):
                context = self.attend(q, k, v, heads, d_k, causal, rotary)
                if (end is not None and context.shape[-1] != output[0].shape[1]) or not close(answer(context), target):
                    continue
                if not self.holds(source, parts, order, end or before, output if end is not None else None,
                                  lambda q, k, v: self.attend(q, k, v, heads, d_k, causal, rotary)):
                    continue
                return self.attention_of(node, sources, parts, order, (seq_len, d_model, heads, k.shape[-1] // d_k, d_k), causal, rotary)
        return None

    def attention_of(self, node, sources, parts, order, sizes, causal, rotary):
        """The Attention of these sizes, with the names of its projections: three of them, or one that is packed."""
        if len(sources) == 3:
            parts = [parts[i] for i in order]
        weights, biases = [[part[i] for part in parts] for i in (0, 1)]
        has_bias = biases[0] is not None
        if any((item is not None) != has_bias for item in biases):
            raise node.refused("biases of some of queries, keys and values alone: ")
        if len(sources) == 3:
            paths = [self.weight_and_bias(node, *item)[0] for item in zip(weights, biases)]
            names = dict(zip(("query", "key", "value"), paths))
        else:
            if None in (self.name_of(weights[0]), self.name_of(biases[0]) if has_bias else ""):
                self.refuse_parametrized(weights[0])
                raise sources[0].refused("queries, keys and values whose weight or bias is no parameter: ")
            names = {"qkv_weight": weights[0].path} | ({"qkv_bias": biases[0].path} if has_bias else {})
        dimension, base, adjacent, scaling = rotary
        tensors = [item.path for item in weights + biases if item is not None]
        return Attention(*sizes, has_bias, True, causal, dimension, base, adjacent, scaling, names, tensors)

    def holds(self, source, parts, order, end, output, attend):
        """Whether attention has the recorded operations' numbers for other inputs and weights, too: large ones, so that scales,
        masks and the roles of queries and keys show. True where they cannot be run again."""
        *_, root = self.layouts(source)
        root = root if output is not None else source

        def run(drawn):
            return elementwise.replay(end, drawn, torch.float32)

        draw = torch.Generator().manual_seed(1)
        drawn = {root.index: torch.randn(root.shape, generator=draw)}
        for weight, bias in [part[:2] for part in parts] + ([output[:2]] if output is not None else []):
            drawn[weight.index] = 1.5 * torch.randn(weight.shape, generator=draw) / math.sqrt(weight.shape[1])
            if bias is not None:
                drawn[bias.index] = torch.randn(bias.shape, generator=draw)
        try:
            if not close(run({root.index: root.value}), end.value):
                return True
            found = run(drawn)
            x = elementwise.replay(source, drawn, torch.float32).double()
        except (RuntimeError, TypeError, IndexError):
            return True
        x = x.reshape(x.shape[0], -1, x.shape[-1])

        def linear_of(x, weight, bias):
            matrix = drawn[weight.index].double()
            return F.linear(x, matrix.t() if weight.path in self.conv1d else matrix,
                            drawn[bias.index].double() if bias is not None else None)

        projected = [linear_of(x, *part[:2]) for part in parts]
        q, k, v = projected[0].chunk(3, -1) if len(parts) == 1 else (projected[i] for i in order)
        context = attend(q, k, v)
        context = linear_of(context, *output[:2]) if output is not None else context
        return close(context, found.reshape(context.shape).double(), 1e-3)

    def rotaries(self, d_k):
        """Rotary positions that the model may have: (dimension, base, adjacent pairs, scaling)."""
        yield 0, 10000.0, False, ()
        bases, scalings = {10000.0, 500000.0, 1000000.0}, {()}
        for module in self.recording.module.modules():
            for holder in (module, getattr(module, "config", None), getattr(module, "args", None)):
                for name in ("rope_theta", "rotary_base", "rope_base", "theta", "base", "rotary_emb_base"):
                    value = getattr(holder, name, None)
                    if isinstance(value, (int, float)) and value > 1:
                        bases.add(float(value))
                scaling = getattr(holder, "rope_scaling", None)
                if isinstance(scaling, dict) and "low_freq_factor" in scaling:
                    scalings.add(llama3_scaling(scaling))
        if isinstance(self.recording.module, NodeByNode):
            bases |= set(self.recording.module.rotary_bases)
        if d_k % 2 == 0:
            for scaling, base, adjacent in itertools.product(sorted(scalings), sorted(bases), (False, True)):
                yield d_k, base, adjacent, scaling

    @staticmethod
    def attend(q, k, v, heads, d_k, causal, rotary):
        def split(x):
            return x.reshape(*x.shape[:2], -1, d_k).transpose(1, 2)
        q, k, v = split(q), split(k), split(v)
        dimension, base, adjacent, scaling = rotary
        if dimension:
            angles = torch.arange(q.shape[2]).double()[:, None] * rotary_frequencies(d_k, base, scaling)
            cos, sin = angles.cos(), angles.sin()

            def rotate(x):
                if adjacent:
                    a, b = x[..., 0::2], x[..., 1::2]
                    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)
                a, b = x.chunk(2, -1)
                return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)
            q, k = rotate(q), rotate(k)
        k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(d_k)
        if causal:
            scores = scores.masked_fill(torch.triu(torch.ones(scores.shape[-2:], dtype=torch.bool), 1), -math.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)

    def gated(self, node):
        """down(f(gate(x)) * up(x)), or None."""
        product = self.linear_parts(node)[2]
        if product.operation not in ("mul", "__mul__", "multiply") or len(product.args) != 2:
            return None
        for gate, up in (product.args, product.args[::-1]):
            if not (isinstance(gate, Node) and isinstance(up, Node)):
                continue
            kind, inner = self.activation_of(gate)
            if kind is None or inner is up:
                continue
            if inner.operation != "linear" or up.operation != "linear" or inner.args[0] is not up.args[0]:
                continue
            parts = {"gate": inner, "linear1": up, "linear2": node}
            weights = {name: self.linear_parts(item) for name, item in parts.items()}
            biases = {weight[1] is not None for weight in weights.values()}
            if len(biases) != 1:
                raise node.refused("biases of a part of a gated network: ")
            rows, d_model = rows_of(inner.args[0].shape)
            names = {name: self.weight_and_bias(node, *weight[:2])[0] for name, weight in weights.items()}
            tensors = [tensor.path for weight in weights.values() for tensor in weight[:2] if tensor is not None]
            layer = self.layer(node, "", None, tensors)
            layer.kind, layer.source = "gated", inner.args[0]
            layer.network = Network(rows, d_model, weights["gate"][0].shape[0], kind, biases.pop(), True)
            layer.network_names = names
            return layer
        return None

    def activation_of(self, node):
        """The activation that ends in a value, and the node that it is of; or None twice."""
        if self.activation_name(node):
            return self.activation_name(node), node.args[0]
        kind, name, source = elementwise.recognize(node) or ("", None, None)
        return (f"attune::Activation::{name}", source) if kind == "activation" and name else (None, None)

    # ---- Blocks ----

    def attends_to(self, node):
        """The tokens of a decoder layer's memory, which is one for all layers; the target is to be causal, as in EncoderDecoder."""
        memory = self.origin(self.argument(node, 1, "memory"))
        if self.memory is not None and self.memory is not memory:
            raise node.refused("decoder layers that attend to different values: ")
        if not memory.derived or len(memory.shape) != 3:
            raise node.refused("a decoder layer that attends to something else than an encoder's output: ")
        for index, name in ((3, "memory_mask"), (4, "tgt_key_padding_mask"), (5, "memory_key_padding_mask")):
            if self.argument(node, index, name) is not None:
                raise node.refused(f"{name}; padding is given at run time, in an EncoderDecoderMask: ")
        if node.shape[1] > 1 and not self.is_causal(self.argument(node, 2, "tgt_mask"), node):
            raise node.refused("a decoder layer without a causal tgt_mask: ")
        self.memory = memory
        return memory.shape[1]

    def transformer_layer(self, node):
        """nn.TransformerEncoderLayer or nn.TransformerDecoderLayer."""
        module = node.module
        attention, before = module.self_attn, node.args[0]
        decodes = isinstance(module, nn.TransformerDecoderLayer)
        if not attention.batch_first:
            raise node.refused(f"{type(module).__name__} with batch_first=False; {BATCH_FIRST}: ")
        norms = [module.norm1, module.norm2, *([module.norm3] if decodes else [])]
        attentions = [attention, *([module.multihead_attn] if decodes else [])]
        biases = [part.bias is not None for part in (module.linear1, module.linear2)], [part.out_proj.bias is not None for part in attentions]
        if any(type(norm) is not nn.LayerNorm or norm.weight is None or norm.eps != norms[0].eps for norm in norms) or any(
                len(set(have)) > 1 for have in biases) or any(
                part.in_proj_weight is None or part.bias_k is not None or part.add_zero_attn for part in attentions):
            raise node.refused("a transformer layer with parts exchanged, so that its norms, its attention or its biases differ from those of "
                               "torch.nn: ")
        if not decodes and self.argument(node, 2, "src_key_padding_mask") is not None:
            raise node.refused(f"a padding mask; {PADDING}: ")
        seq_len, d_model = rows_of(before.shape)
        memory_len = self.attends_to(node) if decodes else 0
        causal = seq_len > 1 if decodes else self.is_causal(self.argument(node, 1, "src_mask", None), node)
        bias = attention.in_proj_bias is not None
        function = module.activation
        probes = torch.linspace(-3, 3, 64), torch.linspace(-30, 30, 64)
        known = [(name, known.formula) for name, known in ACTIVATIONS.items()]
        activation = [name for name, reference in known if all(close(function(probe), reference(probe), 1e-6) for probe in probes)]
        if not activation:
            raise node.refused(f"an activation that attune has not; it has {', '.join(name[1:] for name, _ in known)}: ")
        block = Block(
            Attention(seq_len, d_model, attention.num_heads, attention.num_heads, d_model // attention.num_heads, bias, bias,
                      causal and not decodes),
            Network(seq_len, d_model, module.linear1.out_features, "attune::Activation::" + activation[0],
                    module.linear1.bias is not None),
            Norm(seq_len, d_model, module.norm1.eps, True, getattr(module.norm1, "bias", None) is not None),
            module.norm_first, {}, memory_len)
        if decodes and not block.plain():
            raise node.refused("a decoder layer of which a part alone has biases: ")
        self.confirm(node, self.encoded(module, before.value, self.memory.value if decodes else None, causal, activation[0]))
        layer = self.layer(node, "", node.path, [f"{node.path}.{name}" for name, _ in module.named_parameters()])
        layer.kind, layer.block = "block", block
        return layer

    def blocks(self, chain):
        """Residuals and norms of a chain become encoder layers."""
        found, at = [], 0
        while at < len(chain):
            block, taken = self.block_at(chain, at)
            if block is not None:
                found.append(block)
                at += taken
                continue
            layer = chain[at]
            kind = getattr(layer, "kind", "")
            if kind == "residual":
                self.residual(layer)
            if kind == "gated":
                raise layer.node.refused("a gated network that is not a part of a transformer block, which has attention and a network with "
                                         "norms and sums: ")
            if kind == "attention":
                self.alone(layer)
            found.append(layer)
            at += 1
        return found

    def alone(self, layer):
        """Attention that is not a part of a transformer block: its path, and the table of its names."""
        path, names = relative(layer.attention.names)
        layer.names = [path]
        known = self.attention_names or names
        if ("qkv_weight" in known) != ("qkv_weight" in names) or any(known.get(key, name) != name for key, name in names.items()):
            raise layer.node.refused(f"attention outside of transformer blocks with other names than before, {', '.join(names.values())} and "
                                     f"{', '.join(known.values())}; give its modules the same names: ")
        self.attention_names = known | names

    def residual(self, layer):
        """A residual connection that is no part of a transformer block."""
        inside = self.blocks(layer.inside)
        if any(getattr(inner, "kind", "") == "block" for inner in inside):
            raise Unsupported(f"a residual connection around a transformer block in {layer.path or 'the model'}")
        types = ", ".join(inner.type for inner in inside)
        layer.type = f"attune::Residual<{types if len(inside) == 1 else f'attune::Sequential<{types}>'}>"
        for inner in inside:
            layer.names += inner.names
            layer.tensors += inner.tensors
            layer.shapes |= inner.shapes

    def block_at(self, chain, at):
        def kind(index):
            return getattr(chain[index], "kind", "") if index < len(chain) else ""

        def inside(index):
            kinds = [getattr(layer, "kind", "") for layer in chain[index].inside]
            return kinds[:-1] if kinds[-1] == "scale" else kinds

        networks = (["linear", "activation", "linear"], ["gated"])
        if kind(at) == "residual" and kind(at + 1) == "residual" and inside(at) == ["norm", "attention"] and \
                inside(at + 1)[:1] == ["norm"] and inside(at + 1)[1:] in networks:
            first, second = chain[at].inside, chain[at + 1].inside
            return self.block(first[1:], second[1:], first[0], second[0], True, chain[at + 1]), 2
        if [kind(at + i) for i in range(4)] == ["residual", "norm", "residual", "norm"] and inside(at) == ["attention"] and \
                inside(at + 2) in networks:
            return self.block(chain[at].inside, chain[at + 2].inside, chain[at + 1], chain[at + 3], False,
                              chain[at + 3]), 4
        return None, 0

    def block(self, attending, network, norm1, norm2, before, last):
        attention, *scale1 = attending
        scale2 = network[-1:] if network[-1].kind == "scale" else []
        members = [*attending, *network, norm1, norm2]
        network = network[:len(network) - len(scale2)]
        names = dict(attention.attention.names)
        names |= {name: scale[0].names[0] for name, scale in (("scale1", scale1), ("scale2", scale2)) if scale}
        if len(network) == 1:
            parts = network[0].network
            names |= network[0].network_names
        else:
            first, second = network[0], network[2]
            if first.bias != second.bias:
                raise Unsupported(f"a network in {first.path} of which one layer has a bias")
            parts = Network(attention.attention.seq_len, first.d_in, first.d_out, network[1].activation, first.bias)
            names |= {"linear1": first.names[0], "linear2": second.names[0]}
        if norm1.norm != norm2.norm:
            raise Unsupported(f"two norms of different options in one block: {norm1.path}, {norm2.path}")
        if norm1.names:
            names |= {"norm1": norm1.names[0], "norm2": norm2.names[0]}
        path, names = relative(names)
        layer = Layer(names=[path], tensors=[tensor for member in members for tensor in member.tensors], output=last.output,
                      path=path, shapes={name: shape for member in members for name, shape in member.shapes.items()})
        layer.kind = "block"
        layer.block = Block(attention.attention, parts, norm1.norm, before, names)
        if layer.block.plain() and names == TORCH_NAMES:
            layer.block.names = {}
        return layer


def recognize(recording, output):
    """The recognizer of a recorded model, its layers, and the node of their output."""
    recognizer = Recognizer(recording)
    try:
        recurrent = next((node for node in recording.nodes if node.derived and node.operation in RECURRENT), None)
        if recurrent:
            raise Unsupported(NO_RECURRENT_LAYERS + recurrent.describe())
        used = {item.index for node in recording.nodes for item in node.inputs()}
        unused = [index for index, item in enumerate(recording.inputs) if item.index not in used]
        if unused:
            raise Unsupported(f"forward does not use input {unused[0]}")
        output = recognizer.unit_feature(output)
        target, chain = recognizer.from_an_input(output)
        layers = recognizer.blocks(chain)
        if recognizer.memory is not None:
            layers = [recognizer.encoder_decoder(output, target, layers)]
    except NotReached:
        raise Unsupported("the output is not computed from the input alone") from None
    if len(recording.inputs) > 1 and not recognizer.ids and recognizer.memory is None:
        raise Unsupported("a model with several inputs that are neither ids whose embeddings are added up, nor a source and a target; of a "
                          f"padding mask: {PADDING}")
    return recognizer, layers, output
