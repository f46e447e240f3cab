"""Functions of rows: activations and norms under any spelling, factors and biases of features. Each is confirmed by numbers that are drawn
here, never the sample's, and by the operations in its region: numbers say nothing about what happens far from them."""
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import torch
import torch.nn.functional as F

from .activations import ACTIVATIONS
from .capture import exchanged
from .errors import Unsupported
from .evaluate import evaluate, normed, region
from .normal import Constant, Value

AFFINE = {"add", "sub", "rsub", "mul", "div", "neg", "batch_norm", "_to_copy", "where"}
NORMS = AFFINE - {"where", "batch_norm"} | {"mean", "sum", "var", "std", "norm", "pow", "square", "sqrt", "rsqrt", "reciprocal", "clamp_min"}
SMOOTH = AFFINE | {"relu", "gelu", "silu", "sigmoid", "tanh", "erf", "exp", "pow", "square", "reciprocal", "hardswish", "hardsigmoid", "elu"}
LIMITS = {"clamp", "clamp_min", "maximum", "hardtanh"}  # of numbers that the ones drawn here pass
COMPARED = {"gt", "ge", "lt", "le"}  # with 0, a choice that an activation may make
FAR = 7  # the largest of them
SMALL = 1e-6  # the largest length that a norm may divide by in place of a shorter one
BESIDE = (1e-2, 1e-15)  # rows beside which an epsilon is seen, and one that is a least norm, as in F.normalize
# Functions that attune has not, to be called by their names.
OTHERS = {"softplus": F.softplus, "leaky ReLU": F.leaky_relu, "Mish": F.mish, "ReLU that ends at 6": F.relu6,
          "hard sigmoid": F.hardsigmoid, "L2 normalization": lambda x: F.normalize(x, dim=-1)}
OWN_FACTORS = "make the factors of features a parameter, nn.Parameter(torch.full(({},), …)), which becomes a LayerScale"


def close(a, b, tolerance=1e-7):
    return a.shape == b.shape and bool(torch.isfinite(a).all()) and (not a.numel() or float((a - b).abs().max()) <= tolerance * float(b.abs().max()))


def draw(*shape, scale=1.0, seed=5):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale


@contextmanager
def moved(constants):
    """The constants with drawn values, the same where addresses are: at its start, a factor of 1 says nothing about where it is used."""
    known = torch.cat([torch.zeros(1, dtype=torch.int64), *(item.addresses.flatten() for item in constants)]).unique()
    numbers = 1 + 0.3 * draw(len(known), seed=20)
    with ExitStack() as stack:
        for item in constants:
            stack.enter_context(exchanged(item, "values", torch.where(
                item.addresses < 0, numbers[torch.searchsorted(known, item.addresses.contiguous())], item.values)))
        yield


def expands(value, tokens, gathers, norms=False):
    """Whether a value is a function of the rows of others. `tokens`: also with constants of each token. `gathers`: also rearranged.
    `norms`: also a norm of heads."""
    if value.kind == "pointwise":
        return tokens or not any(isinstance(item, Constant) and item.per_token for item in value.sources)
    if value.kind == "gather":
        return gathers
    if value.kind == "norm":
        return norms and value.sources[0].kind in ("gather", "linear")
    if value.kind == "reduce":
        index, width = value.data["index"], value.sources[0].features
        rows = torch.arange(len(index))[:, None, None]
        return index.shape[1] == 1 and index.shape[2] == width and bool((index // width == rows).all()) or gathers
    return value.kind == "softmax" and value.data["index"].shape[1] == value.features


def also_far(function, formula, x):
    """Whether two functions are the same far from 0, where the first has finite numbers."""
    for scale in (10, 1e3, 1e6):
        found, wanted = function(scale * x), formula(scale * x)
        finite = torch.isfinite(found) & torch.isfinite(wanted)
        if finite.any() and not close(found[finite], wanted[finite], 1e-6):
            return False
    return True


def proportional(constant, wanted):
    """The factor f for which constant · f is `wanted`; 0.0 if there is none."""
    own = constant.values.reshape(-1)
    at = int(own.abs().argmax())
    factor = float(wanted[at] / own[at]) if own[at] else 0.0
    return factor if factor and close(own * factor, wanted, 1e-6) else 0.0


class Formulas:
    """The part of a Matcher that knows functions of rows."""

    def __init__(self, graph):
        self.graph, self.memo, self.refusals = graph, {}, list(graph.refusals)
        self.uses = Counter(source for value in graph.values for source in set(value.derived()))
        self.uses[graph.output] += 1

    # ---- Regions ----

    def cuts(self, value, tokens=False, gathers=False, norms=False):
        """Values through which everything in `value` goes, the nearest first; and the ends beyond which nothing is a function of rows."""
        frontier, found = {value}, []
        while True:
            open_ones = [item for item in frontier if expands(item, tokens, gathers, norms) and item.derived()]
            if not open_ones:
                return found, frontier
            last = max(open_ones, key=lambda item: item.number)
            frontier = (frontier - {last}) | set(last.derived())
            if len(frontier) == 1 and value not in frontier:
                found.append(next(iter(frontier)))

    def constants(self, value, *cuts):
        return [source for item in region(value, cuts) for source in (item.sources if item.kind != "norm" else item.data.values())
                if isinstance(source, Constant)]

    def parameters(self, *constants):
        """The names of trained parameters that constants are, or are computed from."""
        return [name for item in constants for name in self.graph.names(item.addresses) if name in self.graph.captured.parameters]

    def only(self, operations, value, *cuts):
        """Whether nothing but these operations is between two values; a choice is made by constants, or in an activation by the sign of a cut, alone."""
        for item in region(value, cuts):
            name = item.data.get("name", item.kind)
            if name in COMPARED and operations is SMOOTH and item.sources[0] in cuts and self.literals(item, *item.derived()) == [0]:
                continue
            if name not in operations | {"gather"} and not (
                    name in LIMITS and operations is SMOOTH and all(abs(number) < FAR for number in self.literals(item, *item.derived()))):
                return False
            if name == "clamp_min" and operations is NORMS and any(abs(number) > SMALL for number in self.literals(item, *item.derived())):
                return False
            if name == "where" and isinstance(item.sources[0], Value) and (item.sources[0] in cuts or item.sources[0].data.get("name") not in COMPARED):
                return False
        return True

    def refuse_parameters(self, what, value, *cuts, added=False):
        """Raises Unsupported of parameters whose present values would be in a layer for good; unless `added`, as a bias."""
        for item in region(value, cuts):
            learned = self.parameters(*(source for source in item.sources if isinstance(source, Constant)))
            if learned and not (added and item.data.get("name") == "add"):
                name = learned[0]
                raise Unsupported(f"{what} with a parameter of its own: {name}, {list(self.tensor(name).shape)}, takes part in forward, and no layer "
                                  "of attune has it. Make it a buffer (register_buffer) or freeze it (requires_grad_(False)), or leave it out of forward")

    def tensor(self, name):
        return dict(self.graph.captured.where.module.state_dict(keep_vars=True))[name]

    # ---- Activations and norms ----

    def probe(self, value, cut, count, scale=1.0):
        """Numbers that are drawn, and what a value makes of them; None twice if it is no function of these rows, or one that is a factor and a bias."""
        if self.only(AFFINE, value, cut):
            return None, None
        x = draw(count, cut.tokens, cut.features, scale=scale)
        try:
            y = evaluate(value, {cut: x})
        except (RuntimeError, TypeError):
            return None, None
        return (x, y) if y.shape == x.shape else (None, None)

    def identify(self, value, cut):
        """An activation or a norm, from a value's numbers; or None."""
        x, _ = self.probe(value, cut, 2)
        if x is None:
            return None
        function = lambda x: evaluate(value, {cut: x})  # noqa: E731
        found = self.activation(value, cut, function, x)
        return self.norm(value, cut, function) if found is None and self.only(NORMS, value, cut) else found

    def refuse_other(self, value, cut):
        """Raises Unsupported of a function that attune has not, by its name."""
        x, y = self.probe(value, cut, 6, 4)
        for name, known in OTHERS.items() if x is not None else ():
            wanted = known(x)
            flat, target = (item - item.mean((0, 1)) for item in (wanted, y))
            slope = ((target * flat).sum((0, 1)) / flat.square().sum((0, 1))).nan_to_num()
            shift = (y - slope * wanted)[0, 0]
            if bool(slope.any()) and close(y, slope * wanted + shift, 1e-4):
                raise Unsupported(f"attune has no {name}")

    def activation(self, value, cut, function, x):
        if not self.only(SMOOTH, value, cut):
            return None
        far = torch.linspace(-3 * FAR, 3 * FAR, x.numel()).double().view(x.shape)
        for name, known in ACTIVATIONS.items():
            if all(close(function(item), known.formula(item), 1e-6) for item in (0.3 * x, x, 4 * x, far)) and also_far(function, known.formula, far):
                if self.parameters(*self.constants(value, cut)):
                    self.refuse_parameters("an activation", value, cut)
                return self.new("activation", [self.layer(cut)], value, name=name)
        return None

    def literals(self, value, *cuts):
        """Numbers that the operations of a region have."""
        found = []
        for item in region(value, cuts):
            found += [float(part) for entry in item.data.get("template", ()) if isinstance(entry, tuple) for part in entry
                      if isinstance(part, (int, float)) and not isinstance(part, bool)]
            found += [float(source.values) for source in item.sources if isinstance(source, Constant) and source.values.numel() == 1]
            found += [item.data["epsilon"]] if "epsilon" in item.data else []
        return found

    def norm(self, value, cut, function):
        """A norm; which parameter is its weight and which its bias is told by drawn numbers in their places."""
        constants, x = self.constants(value, cut), draw(2, cut.tokens, cut.features)
        with moved([item for item in constants if self.parameters(item)]):
            found = self.norm_of(function, (cut.tokens, cut.features), constants, value, cut)
        if found is None:
            return None
        kind, epsilon, tensors = found
        weight, bias = (self.graph.settled(tensors[name]) for name in ("weight", "bias"))
        if not close(function(x), normed(kind, x, weight, bias, epsilon), 1e-5):
            raise Unsupported("a norm whose weight or bias is computed from a parameter")
        of_norm = kind != "RmsNorm" and (bias is None or bool(bias.addresses.any()))
        found = self.new("norm", [self.layer(cut)], value, type=kind, epsilon=epsilon, weight=weight, bias=bias if of_norm else None)
        return found if of_norm or bias is None else self.new("feature_bias", [found], value, bias=bias)

    def norm_of(self, function, shape, constants, value, *cuts, kinds=("LayerNorm", "RmsNorm", "DeviationNorm")):
        """The kind, the epsilon, and the weight and the bias of a norm of rows [batch, *shape]; or None."""
        zero = function(torch.zeros(1, *shape).double())
        for kind in kinds if shape[1] > 1 else kinds[:2]:
            spread = (lambda x: x.std(-1, keepdim=True)) if kind == "DeviationNorm" else lambda x: centered(x).square().mean(-1, keepdim=True).sqrt()  # noqa: E731
            centered = (lambda x: x - x.mean(-1, keepdim=True)) if kind != "RmsNorm" else (lambda x: x)
            unit = lambda x: centered(x) / spread(x)  # noqa: E731
            large = draw(4, *shape, scale=1e6)
            one, two = function(large)[:, :1], unit(large)[:, :1]
            bias = zero[0, 0] if torch.isfinite(zero).all() else torch.zeros(shape[1]).double()
            weight = ((one - bias) * two).sum((0, 1)) / two.square().sum((0, 1))
            if not torch.isfinite(weight).all() or not weight.abs().max():
                continue
            at, outside, x = int(weight.abs().argmax()), kind == "DeviationNorm", draw(2, *shape)
            scales = (2e-3, 0.05, 1, 9) if self.only(NORMS - LIMITS, value, *cuts) else (1e-5, 1e-4, 2e-3, 0.05, 1, 9)
            for small in (draw(1, 1, shape[1], scale=scale, seed=6) for scale in BESIDE):
                ratio = (function(small.expand(1, *shape))[0, 0, at] - bias[at]) / weight[at] / centered(small)[0, 0, at]
                epsilon = self.epsilon(float(1 / ratio - spread(small)) if outside else float(ratio ** -2 - spread(small).square()), value, *cuts)
                root = (lambda x: spread(x) + epsilon) if outside else (lambda x: (spread(x).square() + epsilon).sqrt())
                known = lambda x: centered(x) / root(x) * weight + bias  # noqa: E731
                if all(close(function(scale * x), known(scale * x), 1e-5) for scale in scales) and torch.allclose(
                        zero[:1, :1], known(torch.zeros_like(small)), equal_nan=True):
                    return kind, epsilon, self.vectors(weight, bias, constants)
        return None

    def epsilon(self, found, value, *cuts):
        """An epsilon as the code has it, from its value by numbers."""
        fitting = [item for item in self.literals(value, *cuts) if item > 0 and abs(item - found) <= 0.02 * item + 1e-13]
        if not fitting:
            return max(0.0, float(f"{found:.6g}"))
        nearest = min(fitting, key=lambda item: abs(item - found))
        short = float(f"{nearest:.6g}")  # as people wrote what is a float of 32 bits
        return short if torch.tensor(short) == torch.tensor(nearest) else nearest

    def vectors(self, weight, bias, constants):
        """A norm's weight and bias as constants with addresses, if they are among the constants; every parameter of those is one of them."""
        features, found, learned = len(weight), {}, set(self.parameters(*constants))
        candidates = [item for item in constants if item.values.numel() == features and self.graph.names(item.addresses)]
        for name, wanted, plain in (("weight", weight, 1.0), ("bias", bias, 0.0)):
            fitting = [item for item in candidates if close(item.values.reshape(-1), wanted, 1e-6)
                       and not any(item is other for other in found.values())]
            fitting = fitting or [item for item in candidates if not any(item is other for other in found.values()) and proportional(item, wanted)]
            if fitting:
                found[name] = fitting[0].each(torch.flatten)
                candidates = [item for item in candidates if item is not fitting[0]]
                factor = proportional(fitting[0], wanted)
                found[name] = found[name].times(factor) if factor and abs(factor - 1) > 1e-6 else self.graph.unshifted(found[name])
            else:
                far = float((wanted - plain).abs().max()) > 1e-6
                found[name] = Constant.unnamed(wanted) if far else None
        left = learned - set(self.parameters(*(item for item in (found["weight"], found["bias"]) if item is not None)))
        if left:
            raise Unsupported(f"a norm with more than a weight and a bias: {sorted(left)[0]}")
        return found

    # ---- Factors and biases of features ----

    def step(self, value):
        """One operation with constants on each feature: a bias, a factor, a BatchNorm; or None."""
        name, derived = value.data.get("name"), list(dict.fromkeys(value.derived()))
        if value.kind != "pointwise" or name not in AFFINE or len(derived) != 1 or derived[0].layout.shape != value.layout.shape:
            return None
        x = derived[0]
        if name == "_to_copy":
            raise Unsupported(f"a conversion to {str(value.data['type']).removeprefix('torch.')}, which rounds; ids are integers in sample_input, and all else floats of 32 bits")
        if name == "batch_norm":
            return self.batch_norm(value, x)
        others = [item for item in value.sources if isinstance(item, Constant)]
        if any(item.per_token for item in others):
            return self.table(value, x, others)
        probe = lambda number: evaluate(value, {x: torch.full((1, x.tokens, x.features), number, dtype=torch.float64)})[0, 0]  # noqa: E731
        shift, slope = probe(0.0), probe(1.0) - probe(0.0)
        drawn = draw(1, x.tokens, x.features, scale=3)
        if not torch.isfinite(shift).all() or not close(evaluate(value, {x: drawn}), slope * drawn + shift):
            return None
        normalized = self.normalization(value, x, others)
        if normalized is not None:
            return normalized
        if self.parameters(*others):
            return self.learned(value, x, others[0], slope, shift)
        if bool((slope == 1).all()) and bool((shift == 0).all()):
            return self.layer(x)
        if name == "add" and value.tokens == 1 and torch.equal(shift[::2], torch.zeros_like(shift[::2])) and torch.equal(shift[1::2], torch.ones_like(shift[1::2])):
            return self.new("positions", [self.layer(x)], value, table=Constant.unnamed(shift[None]))  # sinusoidal, of the first token
        return self.affine(value, x, slope, shift)

    def table(self, value, x, others):
        """Numbers for each token and feature that are added."""
        name, constant = value.data["name"], others[0]
        if name in ("add", "sub") and len(others) == 1 and not self.alpha(value) and not (constant.values.shape[1] == 1 < x.features and self.parameters(constant)):
            if name == "add":
                before = self.layer(x)
                if before.kind != "transpose":
                    return self.positions(value, before, constant)
                turned = self.new(value.kind, [x], value, value.layout.transpose(1, 2))
                return self.turned(self.positions(turned, before.sources[0], constant.each(torch.t)), value)
            if value.sources[0] is x and not self.parameters(constant):
                return self.positions(value, self.layer(x), Constant.unnamed(-constant.values))
        if name in ("add", "mul") and len(others) == 1 and constant.values.shape[1] == 1 and not self.alpha(value):  # of the features of what is turned
            before, kind, tensor = self.turned(self.layer(x), value), *(("scale", "weight") if name == "mul" else ("feature_bias", "bias"))
            return self.turned(self.new(kind, [before], value, before.layout, **{tensor: constant.each(torch.flatten)}), value)
        raise Unsupported("a product with a constant for each token" if name in ("mul", "div") else "a constant for each token that is not added")

    def positions(self, value, before, constant, factor=1.0):
        """Layers that add a constant [tokens, features]; a sum of two parameters is two of them."""
        blocks = self.graph.blocks_of(constant.addresses)
        if len(blocks) == 1 and blocks[0].terms and not blocks[0].shift and bool((constant.addresses < 0).all()):
            at = -constant.addresses.expand(1, value.tokens, value.features) - blocks[0].begin
            for term, own in blocks[0].terms:
                before = self.positions(value, before, self.graph.operand(term.reshape(-1)[at]), factor * own)
            return before
        if not constant.per_token and value.tokens > 1 and factor == 1:
            return self.row(value, before, constant) or self.new("feature_bias", [before], value, bias=constant.each(lambda item: item.expand(1, value.features).flatten()))
        return self.new("positions", [before], value, table=constant.each(lambda item: item.expand(value.layout.shape[1:])).times(factor))

    def row(self, value, before, constant):
        """A row of a table that is added to every token."""
        blocks = self.graph.blocks_of(constant.addresses)
        flat = -constant.addresses.reshape(-1)
        if len(blocks) == 1 and len(blocks[0].shape) == 2 and blocks[0].shape[1] == value.features == len(flat) and not blocks[0].computed:
            at = int(flat[0]) - blocks[0].begin
            if (value.tokens > 1 or "type" in blocks[0].name) and at % value.features == 0 and torch.equal(flat, torch.arange(len(flat)) + flat[0]):
                return self.new("token_type", [before], value, block=blocks[0], row=at // value.features, table=self.graph.constant(
                    -torch.arange(blocks[0].begin, blocks[0].begin + blocks[0].values.numel()).view(blocks[0].shape)))
        return None

    def alpha(self, value):
        return value.data["options"].get("alpha", 1) != 1

    def learned(self, value, x, constant, slope, shift):
        """A parameter with a number for each feature."""
        name, before, width = value.data["name"], self.layer(x), value.features
        vector = constant.values.numel() == width
        flat = constant.each(torch.flatten) if vector else None
        if name == "add" and vector and not self.alpha(value):
            found = self.row(value, before, constant)
            if found is not None:
                return found
            takes_bias = before.kind in ("linear", "convolution") or before.kind == "norm" and before.data["type"] == "LayerNorm"
            if takes_bias and before.data["bias"] is None and self.uses[x] == 1:
                return self.with_data(before, value, bias=flat)
            return self.new("feature_bias", [before], value, bias=flat)
        if name == "mul" and vector:
            flat = self.graph.unshifted(flat)
            if before.kind == "norm" and before.data["weight"] is None and before.data["bias"] is None and self.uses[x] == 1:
                return self.with_data(before, value, weight=flat)
            return self.new("scale", [before], value, weight=flat)
        if name == "mul" and constant.values.numel() == 1:
            return self.new("scale", [before], value, weight=constant.each(torch.flatten))
        if vector or constant.values.numel() > 1:
            raise Unsupported("a parameter that divides features, or is subtracted from them")
        raise Unsupported(f"a product with a constant, {self.parameters(constant)[0]}; {OWN_FACTORS.format(width)}" if name in ("mul", "div") else
                          "a parameter of one number that is added to each feature")

    def affine(self, value, x, slope, shift):
        """Constants on each feature, in the layer before them or as a layer."""
        before = self.layer(x)
        plain = bool((slope == slope[0]).all()) and not shift.any() and float(slope[0]) != 0
        if plain and self.uses[x] == 1 and self.may_scale(before):
            return self.scaled(value, before, self.factor(value, float(slope[0])))
        if before.kind in ("linear", "convolution") and before.data["bias"] is None and self.uses[x] == 1 and bool((slope == 1).all()):
            return self.with_data(before, value, bias=Constant.unnamed(shift))
        if before.kind in ("affine", "scale") and not before.data["weight"].addresses.any() and self.uses[x] == 1:
            slope, shift, before = slope * before.data["weight"].values, slope * (before.data["bias"].values if "bias" in before.data else 0) + shift, before.sources[0]
            if close(slope, torch.ones_like(slope), 1e-6) and not shift.any():
                return before
            plain = bool((slope == slope[0]).all()) and not shift.any()
        if plain:
            return self.new("scale", [before], value, weight=Constant.unnamed(slope[:1]))
        return self.new("affine", [before], value, weight=Constant.unnamed(slope), bias=Constant.unnamed(shift))

    def factor(self, value, slope):
        """A factor as PyTorch takes it, whose numbers of Python become floats of 32 bits."""
        literals, name = self.literals(value, *value.derived()), value.data["name"]
        if len(literals) != 1 or name not in ("mul", "div"):
            return slope
        number = float(torch.tensor(literals[0], dtype=torch.float32))
        return number if name == "mul" else 1 / number

    def may_scale(self, layer):
        """Whether a factor of a layer's output is one of its tensors, none of which has numbers of the module beside others, nor is the head's, too."""
        if layer.kind == "embedding" and any(value.kind == "linear" and torch.isin(layer.data["table"].addresses[0, 0], value.data["weight"].addresses)
                                             for value in self.graph.values):
            return False
        tensors = [layer.data[name] for name in ("weight", "bias", "table") if isinstance(layer.data.get(name), Constant)]
        if any(bool((item.addresses < 0).any() & item.values[item.addresses == 0].any()) for item in tensors if item.addresses.shape == item.values.shape):
            return False
        return layer.kind in ("linear", "convolution", "embedding", "scale", "batch_norm") or layer.kind == "norm" and layer.data["weight"] is not None

    def scaled(self, value, before, factor):
        data = {name: item.times(factor) for name, item in before.data.items() if isinstance(item, Constant)}
        if "convolution" in before.data:
            data["convolution"] = replace(before.data["convolution"], weight=before.data["convolution"].weight.times(factor))
        return self.with_data(before, value, **data)

    def batch_norm(self, value, x):
        """In the convolution or Linear before it, or a layer by itself."""
        before = self.layer(x)
        scale, shift = (item.values[0] for item in value.sources[1:])
        path = self.graph.names(value.data["mean"].addresses)[0].rpartition(".")[0]
        fold = (path, scale, shift, value.data["mean"].values, value.data["deviation"])
        if path in self.graph.captured.in_training:
            raise Unsupported(f"BatchNorm {path} is in training mode, where its numbers depend on the batch: call module.eval() after training")
        if before.kind in ("linear", "convolution") and not before.changed and self.uses[x] == 1:
            weight, bias = before.data["weight"], before.data["bias"] or Constant.unnamed(torch.zeros(value.features).double())
            weight, bias = Constant(weight.addresses, weight.values * scale), Constant(bias.addresses, bias.values * scale + shift)
            return self.with_data(before, value, fold=fold, weight=weight, bias=bias)
        if not value.data["affine"]:
            raise Unsupported(f"BatchNorm {path} has no convolution or Linear before it, into which it could be folded, and no weights that could be a "
                              "layer (affine=False)")
        weight, bias = (item.each(torch.flatten) for item in value.sources[1:])
        return self.new("batch_norm", [before], value, weight=weight, bias=bias, fold=fold)

    def normalization(self, value, x, others):
        """(x - mean) / std by two tensors of the state_dict; or None."""
        if value.data["name"] != "div" or x.data.get("name") != "sub" or len(others) != 1 or value.sources[0] is not x or self.uses[x] > 1:
            return None
        inner = x.derived()[0]
        mean = next((item for item in x.sources if isinstance(item, Constant)), None)
        if x.sources[0] is not inner or mean is None or self.alpha(x):
            return None
        named = [self.named_vector(item, value.features) for item in (mean, others[0])]
        elsewhere = {name for item in self.graph.values if item not in (value, x) for source in item.sources if isinstance(source, Constant)
                     for name in self.graph.names(source.addresses)}
        if None in named or elsewhere & set(named):  # as of an output that gets them back
            return None
        values = [item.values.reshape(-1) for item in (mean, others[0])]
        weight, bias = (1 / values[1]).float(), (-values[0] / values[1]).float()
        x = draw(2, inner.tokens, inner.features).float() * values[1].float() + values[0].float()
        if not close((x * weight + bias).double(), ((x - values[0].float()) / values[1].float()).double(), 1e-4):
            raise Unsupported("a normalization whose mean is so far from 0 that x / std - mean / std loses what (x - mean) / std keeps; normalize "
                              "samples before the model, in Python and on the device")
        return self.new("normalization", [self.layer(inner)], value, weight=Constant.unnamed(1 / values[1]), bias=Constant.unnamed(-values[0] / values[1]),
                        names=named, mean=values[0], deviation=values[1])

    def named_vector(self, constant, features):
        """The name of a tensor of the state_dict that a constant is as a whole; or None."""
        blocks = self.graph.blocks_of(constant.addresses)
        if len(blocks) != 1 or blocks[0].computed or blocks[0].name not in self.graph.captured.stored or blocks[0].values.numel() != features:
            return None
        return blocks[0].name if torch.equal(-constant.addresses.reshape(-1), torch.arange(features) + blocks[0].begin) else None
