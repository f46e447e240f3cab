"""From the normal form to attune's layers, which are Values of other kinds. A refused step becomes a stand-in, and matching goes on: every
step that attune has no layer for is told at once."""
import math

import torch

from . import evaluate as numbers
from .activations import ACTIVATIONS
from .attention import AttentionMatch, attention
from .errors import Unsupported
from .formulas import OWN_FACTORS, Formulas
from .groups import groups, with_groups
from .layers import llama3_scaling
from .normal import Constant, REFUSED, Value, Windows
from .rearranged import Rearranged
from .sample_norms import KINDS as SAMPLE_NORMS, SampleNorms
from .shared import applied, inside, share

# Functions that stand for themselves; others may be parts of a formula.
NAMED = {"softplus", "elu", "leaky_relu", "hardtanh", "hardswish", "hardsigmoid", "mish", "gelu", "silu", "relu", "softmax", "log_sigmoid_forward", "prelu"}
NO_RESIDUAL = "a sum of two values that is no residual connection: one is to be computed from the other, and have its shape"


def scalings_of(root):
    """Scalings of rotary positions that configs have."""
    found = [(), (8.0, 1.0, 4.0, 8192), (32.0, 1.0, 4.0, 8192)]  # Llama 3.1's and 3.2's
    for module in root.modules():
        for holder in (module, getattr(module, "config", None), getattr(module, "args", None)):
            scaling = getattr(holder, "rope_scaling", None)
            if isinstance(scaling, dict) and "low_freq_factor" in scaling:
                found.append(llama3_scaling(scaling))
    return list(dict.fromkeys(found))


def window_count(extent, size, step, around, ceil):
    """How many windows attune has over a dimension."""
    amount = around[0]
    rest = (extent + 2 * amount - size) % step
    return (extent + 2 * amount - size) // step + 1 + (ceil and rest > 0 and amount + step - rest < size)


def constants_of(layer):
    """The trained constants of a layer, by their names in attune."""
    found = {name: layer.data[name] for name in ("weight", "bias", "table", "tokens") if isinstance(layer.data.get(name), Constant)}
    if layer.data.get("temperature") is not None:
        found["temperature"] = layer.data["temperature"].parameter
    if layer.data.get("relative") is not None:
        found["relative_bias"] = layer.data["relative"].table
    for part in ("query", "key", "values"):
        if part in layer.data and hasattr(layer.data[part], "weight"):
            projection = layer.data[part]
            found |= {f"{part}.{name}": getattr(projection, name) for name in ("weight", "bias") if getattr(projection, name) is not None}
            found |= {f"{part}_norm.{name}": getattr(projection.norm, name) for name in ("weight", "bias") if getattr(projection.norm, name, None) is not None}
    return found


def of_computed(block):
    """What is said of a weight that forward computes."""
    for name in block.name.split(" & "):
        path, _, leaf = name.partition(".parametrizations.") if ".parametrizations." in name else name.rpartition(".")
        if f"{path}.weight_mask" in block.name.split(" & "):
            return f"the weight of {path} is computed from {name}: call torch.nn.utils.prune.remove(model.{path}, 'weight') before"
        call = f"parametrize.remove_parametrizations(model.{path}, {leaf.partition('.')[0]!r})" if ".parametrizations." in name else \
            f"remove_weight_norm(model.{path})" if leaf in ("weight_g", "weight_v") else f"remove_spectral_norm(model.{path})" if leaf == "weight_orig" else None
        if call:
            return f"the weight of {path} is computed from {name}: call torch.nn.utils.{call} before"
    return f"a tensor that is computed from {block.name}, which training would change; make it the parameter itself"


class Matcher(AttentionMatch, Rearranged, SampleNorms, Formulas):
    """`output`: the layer that ends a graph. `refusals`: (number of a value, message). `notes`: sentences for people. `group`: the graph is that of
    a group of tokens in another one."""

    def __init__(self, graph, group=False):
        super().__init__(graph if group else with_groups(graph))
        self.notes, self.stack, self.scalings = [], [], scalings_of(graph.captured.where.module)
        self.last = None  # the function that is left out at the end
        self.output = self.layer(graph.output if group else self.without_softmax(graph.output))
        if not group:
            self.check_order()
            self.check_ids()
        self.check_behind()
        if not self.refusals:
            share(self.output)
        if not self.refusals and not group:
            self.check_tensors()

    def without_softmax(self, value):
        """The logits, where a model ends with their softmax or log-softmax."""
        is_log = value.data.get("name") == "log" and value.sources[0].kind == "softmax"
        soft = value.sources[0] if is_log else value
        if soft.kind == "softmax" and torch.equal(soft.data["index"], torch.arange(soft.data["index"].numel()).view(value.tokens, value.features)):
            self.last = torch.log_softmax if is_log else torch.softmax
            self.notes.append(f"The {'log-' if is_log else ''}softmax at the end is left out: the outputs are logits, which CrossEntropy takes.")
            return soft.sources[0]
        return value

    def finished(self, logits):
        """What the module answers, of the layers' output in its shape."""
        return logits if self.last is None else self.last(logits, -1)

    # ---- Values to layers ----

    def layer(self, value):
        if value not in self.memo:
            self.stack.append(value)
            try:
                self.memo[value] = getattr(self, f"on_{value.kind}", self.on_row)(value)
            except Unsupported as problem:
                self.refuse(value, str(problem))
                self.memo[value] = self.new("refused", [self.layer(item) for item in self.beyond(value)], value)
            self.stack.pop()
        return self.memo[value]

    def refuse(self, value, text):
        if text == REFUSED:
            return
        operation = next((item.operation for item in [value, *self.stack[::-1], *value.derived()] if item.operation is not None), None)
        self.refusals.append((value.number, f"{text}: {operation.describe()}" if operation else text))

    def beyond(self, value):
        """What to look at after a refused value: of attention, what its projections take."""
        if value.kind in ("pointwise", "reduce", "softmax"):
            cuts = [item for item in self.cuts(value)[0] if item.layout.shape == value.layout.shape]
            named = next((at for at, item in enumerate(cuts) if item.kind == "softmax" or item.data.get("name") in NAMED), len(cuts))
            return (cuts[:1] if value.data.get("name", value.kind) in NAMED else cuts[:named + 1][-1:]) or [
                item for item in value.derived() if value.data.get("name") != "where" or item is not value.sources[0]]
        if value.kind not in ("contract", "unknown", "linear"):
            return value.derived()
        kinds = {"linear": ("gather",)}.get(value.kind, ("contract", "softmax", "pointwise", "gather", "reduce"))
        found, stack, seen = {}, value.derived(), set()
        while stack:
            item = stack.pop()
            if item in seen:
                continue
            seen.add(item)
            if item.kind in kinds and item.derived():
                stack += item.derived()
            else:
                found.update(dict.fromkeys(item.derived() if item.kind == "linear" and value.kind != "linear" else [item]))
        return sorted(found, key=lambda item: item.number)

    def new(self, kind, sources, value, layout=None, **data):
        """A layer of the operation of a value, with its layout or another one."""
        return Value(kind, sources, value.layout if layout is None else layout, data, value.operation, value.number)

    def with_data(self, layer, value, **data):
        """A layer with other data, after the operation that made a value."""
        return self.new(layer.kind, layer.sources, value, **dict(layer.data, **data))

    def on_input(self, value):
        return value

    on_group = on_input

    def on_groups(self, value):
        inner = Matcher(value.data["graph"], group=True)
        self.refusals += inner.refusals
        self.notes += inner.notes
        return self.new("groups", [self.layer(value.sources[0])], value, output=inner.output, **value.data)

    def on_unknown(self, value):
        if value.data.get("why"):
            self.refuse(value, value.data["why"])
        return self.new("refused", [self.layer(item) for item in self.beyond(value)], value)

    def on_same(self, value):
        return self.new(value.kind, [self.layer(value.sources[0])], value, **value.data)

    on_embedding = on_group_norm = on_same

    def on_norm(self, value):
        data = dict(value.data)
        for part in ("weight", "bias"):
            if data[part] is not None:
                data[part] = self.graph.unshifted(data[part])
        return self.new("norm", [self.layer(value.sources[0])], value, **data)

    def turned(self, layer, value):
        """A layer with its tokens and features exchanged."""
        return layer.sources[0] if layer.kind == "transpose" else self.new("transpose", [layer], value, layer.layout.transpose(1, 2))

    def on_row(self, value):
        if value.data.get("name") in ("prelu", "leaky_relu"):
            return self.prelu(value)
        cuts = [cut for cut in self.cuts(value)[0] if cut.layout.shape == value.layout.shape and value.data.get("name") != "batch_norm"]
        problem = None
        for cut in reversed(cuts):
            try:
                found = self.identify(value, cut)
            except Unsupported as own:
                problem = problem or own
                continue
            if found is not None:
                return found
        found = self.mean_of_tokens(value) or self.weighted_sum(value) or self.step(value) or self.reversible(value) or self.sample_norm(value)
        if found is not None:
            return found
        if problem is not None:
            raise problem
        for cut in reversed(cuts):
            self.refuse_other(value, cut)
        if value.kind == "reduce":
            return self.pool(value)
        if value.kind == "softmax":
            raise Unsupported("a softmax that is not attention's; leave it out at the end of a model, as CrossEntropy takes logits")
        return self.sum_or_product(value)

    def prelu(self, value):
        """Also a leaky ReLU, whose slope is a constant."""
        x, slopes = value.sources if len(value.sources) > 1 else (*value.sources, Constant.unnamed(torch.tensor((self.literals(value, *value.sources) or [0.01])[0]).double()))
        if not isinstance(slopes, Constant) or slopes.values.numel() not in (1, value.features):
            raise Unsupported("nn.PReLU of something else than the features of each token")
        return self.new("prelu", [self.layer(x)], value, weight=slopes.each(torch.flatten))

    # ---- Linear layers and convolutions ----

    def on_linear(self, value):
        several = self.linear_of_several(value)
        if several is not None:
            return several
        source, data = value.sources[0], dict(value.data)
        convolution = data.get("convolution")
        if convolution is None:
            found = self.of_windows(value, source) if source.kind == "gather" and len(source.sources) == 1 and not self.from_input(source) else None
            return found or self.new("linear", [self.layer(source)], value, **data)
        inner = source if source.kind != "gather" else source.sources[0]
        index, weight = source.data["index"] if source.kind == "gather" else None, convolution.weight
        linear = {"weight": data["weight"], "bias": data["bias"], "shape": weight}
        if convolution.span == convolution.kernel == convolution.stride and not any(sum(convolution.around, ())) and convolution.groups == 1 and inner.kind == "input":
            if source.kind == "gather" and torch.equal(weight.addresses.flatten(1).t(), data["weight"].addresses):
                return self.new("linear", [self.new("rearranged", [inner], source, patches=True, **source.data)], value, **linear)
        channels = weight.addresses.shape[1] * convolution.groups
        if inner.tokens == channels == 1 and inner.kind != "input" and is_image(Value("transpose", [inner], inner.layout.transpose(1, 2)), index, convolution):
            return self.new("convolution", [self.turned(self.layer(inner), value)], value, index=index, **data)  # over the features of one token
        if inner.features != channels or not is_image(inner, index, convolution):
            rows = self.input_windows(source, inner)
            if rows is not None and convolution.groups == 1:
                return self.new("linear", [rows], value, **linear)
            if index is not None and len(index) == value.tokens and set(convolution.kernel) == {1} and convolution.groups == 1:  # a Linear
                return self.new("linear", [self.layer(source)], value, **linear)
            raise Unsupported("a convolution whose channels are not the features of tokens, or with padding that is not zeros")
        return self.new("convolution", [self.layer(inner)], value, index=index, **data)

    def input_windows(self, source, inner):
        """Windows of the input itself as the board's rows, as of a convolution with circular padding; or None."""
        index = source.data["index"] if source.kind == "gather" else None
        if inner.kind == "gather" and len(inner.sources) == 1 and index is not None:
            index, inner = inner.data["index"].flatten()[index], inner.sources[0] if not bool((index < 0).any()) else inner
        if inner.kind != "input" or index is None or bool((index < 0).any()):
            return None
        return self.new("rearranged", [inner], source, index=index, numbers=source.data["numbers"])

    @staticmethod
    def extents(layer):
        """Height and width of a layer's tokens, if it is an image's; else their number."""
        while layer.kind in ("activation", "prelu", "norm", "group_norm", "scale", "feature_bias", "affine", "batch_norm", "normalization", "sum", "linear", "positions") and "convolution" not in layer.data:
            layer = layer.sources[0]
        if layer.kind == "convolution":
            own = layer.data["convolution"]
            return tuple((extent + sum(pair) - span) // step + 1 for extent, pair, span, step in zip(
                own.extents, own.around, own.span, own.stride)) if layer.tokens > 1 or len(own.extents) > 1 else (1,)
        if layer.kind == "window_pooling":
            return layer.data["out"]
        return (layer.tokens,)

    # ---- Pooling, sums and products ----

    def pool(self, value):
        index, source, name = value.data["index"], value.sources[0], value.data["name"]
        windows, features, size = index.shape
        if name not in ("mean", "amax", "sum"):
            own = features == 1 and size == source.features and bool((index // size == torch.arange(windows)[:, None, None]).all())
            raise Unsupported(f"{name} of each token's features that is no part of a norm; of the input, compute it before the model" if own else
                              f"{name} of something else than the features of each token, as statistics of a sample")
        if features != source.features or not bool(((index % source.features == torch.arange(features)[None, :, None]) | (index < 0)).all()):
            raise Unsupported("a mean or a maximum of another dimension than the tokens'")
        before = self.layer(source)
        if windows > 1:
            return self.window_pool(value, before, name)
        if size != source.tokens:
            tokens = (index[0, 0] // source.features).sort().values
            if not torch.equal(tokens, torch.arange(source.tokens - size, source.tokens)):
                raise Unsupported("pooling of some tokens; attune pools all of them, or all but some in front")
            before = self.new("drop_tokens", [before], value, source.layout[:, -size:])
        if name == "sum":
            mean = self.new("pooling", [before], value, type="kMean")
            return self.new("affine", [mean], value, weight=Constant.unnamed(torch.full((features,), float(size)).double()),
                            bias=Constant.unnamed(torch.zeros(features).double()))
        return self.new("pooling", [before], value, type="kMean" if name == "mean" else "kMax")

    def window_pool(self, value, before, name):
        if name not in ("mean", "amax") or "pool" not in value.data:
            raise Unsupported("windows of tokens that are reduced without a pooling; nn.AvgPool1d and nn.MaxPool1d are the nearest")
        pool, out, index = value.data["pool"], value.data["out"], value.data["index"]
        if len(self.extents(before)) == 1 and pool.extents[0] == 1:  # a sequence as an image of one row
            pool, out = Windows(*(getattr(pool, part)[1:] for part in ("extents", "kernel", "stride", "around"))), out[1:]
        if out != tuple(window_count(*dimension, value.data["ceil"]) for dimension in zip(pool.extents, pool.kernel, pool.stride, pool.around)):
            raise Unsupported("pooling whose last window begins in padding")
        inside = index.sort(-1).values
        repeated = torch.cat([torch.zeros_like(inside[..., :1], dtype=torch.bool), inside.diff(dim=-1) == 0], -1)  # of places outside, for a maximum
        places = torch.where(repeated, -1, inside).flatten(1)
        if not is_image(value.sources[0], places, pool, inside.shape[-1]):
            raise Unsupported("pooling that does not take [batch, channels, …] of a sequence or an image")
        own = {name: value.data[name] for name in ("divisor", "include", "ceil") if name in value.data}
        return self.new("window_pooling", [before], value, index=index, windows=pool, out=out, name=name, **own)

    def sum_or_product(self, value):
        name, derived = value.data["name"], value.derived()
        if len(derived) == 2 and len(value.sources) == 2 and name in ("add", "mul") and not self.alpha(value) and all(
                item.layout.shape == value.layout.shape for item in derived):
            kind, layers = "sum" if name == "add" else "product", [self.layer(item) for item in derived]
            if all(item.kind == "transpose" for item in layers):
                return self.turned(self.new(kind, [item.sources[0] for item in layers], value, value.layout.transpose(1, 2)), value)
            return self.new(kind, layers, value)
        if len(derived) == 2 and name == "mul" and {item.tokens for item in derived} == {1, value.tokens} and all(
                item.features == value.features for item in derived):
            return self.new("product", [self.layer(item) for item in sorted(derived, key=lambda item: -item.tokens)], value)
        if len(derived) == 2 and name == "sub" and not self.alpha(value) and all(item.layout.shape == value.layout.shape for item in value.sources):
            minus = -torch.ones(value.features).double()
            return self.new("sum", [self.layer(derived[0]), self.affine(value, derived[1], minus, 0 * minus)], value)
        if len(derived) == 2 and name in ("add", "sub", "mul", "div"):
            for item in derived:
                self.layer(item)
            raise Unsupported(NO_RESIDUAL if name in ("add", "sub") else "a product of two values")
        found = self.outer_product(value)
        if found is not None:
            return found
        if name == "where":
            raise Unsupported("a choice by the input's numbers; rows of padding need none, as attention hides them")
        if name in ("mul", "div") and len(derived) == 1:
            raise Unsupported(f"a product with a constant; {OWN_FACTORS.format(value.features)}")
        raise Unsupported("attune has no layer for this")

    # ---- What is to hold of all layers ----

    def check_order(self):
        """Refuses an output whose tokens or features are in another order than what they are computed from."""
        order, (count, tokens, features) = self.graph.output_index, self.graph.output.layout.shape
        self.transposed = False
        if torch.equal(order, torch.arange(len(order))):
            return
        if torch.equal(order, torch.arange(len(order)).view(count, tokens, features).transpose(1, 2).flatten()):
            if self.output.kind == "transpose":
                self.output = self.output.sources[0]
                return
            self.transposed = True
            if tokens > 1 and features > 1 and len(self.graph.output_shape) < 4:
                self.notes.append("PyTorch's output is [features, tokens]; the device's is [tokens, features].")
        else:
            self.refusals.append((self.graph.output.number, "an output whose tokens or features are in another order than those it is computed from"))

    def layers(self):
        """Every layer, also within groups and applications, in the order of the values."""
        found, stack = {}, [self.output]
        while stack:
            item = stack.pop()
            if item not in found:
                found[item] = None
                stack += item.derived() + ([item.data["output"]] if inside(item) else [])
        return sorted(found, key=lambda item: item.number)

    def check_ids(self):
        """Refuses ids that are changed before an embedding looks them up, and integers that none looks up."""
        floats = {value for value, given in zip(self.graph.inputs, self.graph.captured.given) if given.is_floating_point()}
        changed = set()
        for layer in self.layers()[::-1]:
            for source in () if layer in changed or layer.kind in ("rearranged", "refused") else layer.derived():
                given = source.sources[0] if source.kind == "rearranged" else source
                if layer.kind == "embedding" and source.kind != "refused" and (given.kind != "input" or given in floats):
                    self.refuse(layer, "ids that are computed from the input; give the model those that the embedding looks up, as integers")
                    changed |= set(numbers.region(source))
                elif layer.kind != "embedding" and given.kind == "input" and given not in floats:
                    self.refuse(layer, "integers that no embedding looks up; give the model floats, sample_input.float()")

    def check_tensors(self):
        """Refuses tensors of two layers, except for an embedding that is the head, too, and tensors that are computed."""
        seen, folded = [], set()  # of each constant: layer, addresses, the lowest and the highest of them; and BatchNorms
        for layer in self.layers():
            fold = layer.data.get("fold")
            if fold is not None and fold[0] in folded:
                self.refuse(layer, f"BatchNorm {fold[0]} is that of two layers; give each a BatchNorm of its own")
            folded |= {fold[0]} if fold is not None else set()
            for constant in constants_of(layer).values():
                for block in self.graph.blocks_of(constant.addresses):
                    if block.computed and self.parameters_of(block) and layer.kind != "positions":
                        self.refuse(layer, of_computed(block))
                    elif block.computed and self.parameters_of(block):
                        self.refuse(layer, f"positions that are computed from {block.name}; add the parameter itself")
                low, high = (int(end) for end in constant.addresses.aminmax())
                for other, addresses, lowest, highest in seen:
                    if lowest > high or highest < low or other.kind == "embedding" and layer.kind == "linear":
                        continue
                    shared = self.graph.names(addresses[(addresses < 0) & torch.isin(addresses, constant.addresses)])
                    if other is layer:
                        if set(shared) & self.graph.captured.parameters:
                            self.refuse(layer, f"{shared[0]} is in several places of a layer, whose numbers would be trained one by one")
                    elif shared and other.kind == layer.kind == "positions" and not set(shared) & self.graph.captured.parameters:
                        other.data["shared"] = layer.data["shared"] = shared[0]  # a buffer of sines, for two inputs
                    elif shared:
                        self.refuse(layer, f"{shared[0]} is a tensor of two layers; attune ties a head to the embedding before it, and repeats layers in a row")
                seen.append((layer, constant.addresses, low, high))

    def parameters_of(self, block):
        return [name for name in (block.name or "").split(" & ") if name in self.graph.captured.parameters]

def is_image(value, index, convolution, window=0):
    """Whether windows are those of the tokens of a value, as rows of an image; in any order inside of a `window`. `index`: their places, or None of all
    in their order."""
    if value.tokens != math.prod(convolution.extents):
        return False
    places, index = convolution.of(value.places.t().view(1, -1, *convolution.extents), -1)[0], value.places if index is None else index.clamp(min=-1)
    if window:
        index, places = (item.reshape(len(item), -1, window).sort(-1).values for item in (index, places))
    return torch.equal(index, places)


# ---- Layers, computed: what attune does ----

def convolution(value, sources):
    windows = numbers.gather(value, sources) if value.data["index"] is not None else sources[0]
    return numbers.linear(value, [windows])


numbers.KINDS.update(
    attention=attention, groups=groups, shared=applied, grid=numbers.gather,
    repeat_last=lambda value, sources: torch.cat([sources[0], sources[0][:, -1:].expand(-1, value.tokens - sources[0].shape[1], -1)], 1), pooling=lambda value, sources: pooled(value, *sources), convolution=convolution, rearranged=numbers.gather,
    window_pooling=numbers.reduce,
    sequence_pooling=lambda value, sources: numbers.linear(value, sources).softmax(1).transpose(1, 2) @ sources[0],
    class_token=lambda value, sources: torch.cat([value.data["tokens"].values.expand(len(sources[0]), value.tokens - sources[0].shape[1], -1), sources[0]], 1),
    drop_tokens=lambda value, sources: sources[0][:, -value.tokens:], reshape=lambda value, sources: sources[0].reshape(-1, value.tokens, value.features),
    feature_bias=lambda value, sources: sources[0] + value.data["bias"].values,
    transpose=lambda value, sources: sources[0].transpose(1, 2),
    prelu=lambda value, sources: torch.where(sources[0] > 0, sources[0], sources[0] * value.data["weight"].values),
    activation=lambda value, sources: ACTIVATIONS[value.data["name"]].formula(sources[0]),
    positions=lambda value, sources: sources[0] + value.data["table"].values,
    token_type=lambda value, sources: sources[0] + value.data["table"].values[value.data["row"]],
    sum=lambda value, sources: sources[0] + sources[1], product=lambda value, sources: sources[0] * sources[1],
    scale=lambda value, sources: sources[0] * value.data["weight"].values, **SAMPLE_NORMS)
for kind in ("affine", "batch_norm", "normalization"):
    numbers.KINDS[kind] = lambda value, sources: sources[0] * value.data["weight"].values + value.data["bias"].values


def pooled(value, x, ids=None):
    if ids is not None:
        kept = (ids != value.data["padding"][1]).double()
        return (x * kept).sum(1, keepdim=True) / kept.sum(1, keepdim=True)
    if value.data["type"] in ("kFirst", "kLast"):
        return x[:, :1] if value.data["type"] == "kFirst" else x[:, -1:]
    return x.mean(1, keepdim=True) if value.data["type"] == "kMean" else x.amax(1, keepdim=True)
