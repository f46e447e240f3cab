"""Attention: a product of softmax(scale · scores + mask) and values, where queries, keys and values are features of Linears of one value."""
import itertools
import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .errors import Unsupported
from .evaluate import evaluate, normed, region
from .formulas import AFFINE, NORMS, close, draw, moved
from .layers import rotary_frequencies
from .normal import REFUSED, Constant, Value, side_by_side
from .padding_masks import HIDDEN, PaddingMasks
from .relative_bias import RelativePositions
from .temperature import Temperatures

PADDING = "export without it; padding is given at run time, and the folder's README.md shows its SequenceLength"
HEAD_NORMS = ("LayerNorm", "RmsNorm")
CHANGED = "queries, keys or values that are changed by more than a factor, a norm of each head and rotary positions, as by a cosine"
OTHER_SCORES = "attention whose numbers are not those of scaled dot-product attention, with or without a causal mask and rotary positions"


def pairs_of(width, adjacent):
    """The features that rotary positions turn together, [width / 2, 2]."""
    return torch.arange(width).view(-1, 2) if adjacent else torch.arange(width).view(2, -1).t()


def turned(x, rotary, first=0):
    """Rotary positions: x [..., tokens, features] whose first features are turned by their positions."""
    width, adjacent, frequencies = rotary[0], rotary[2], rotary_frequencies(rotary[0], rotary[1], rotary[3])
    angles = (torch.arange(x.shape[-2]) + first)[:, None] * frequencies
    i, j = pairs_of(width, adjacent).t()
    result = x.clone()
    result[..., i] = x[..., i] * angles.cos() - x[..., j] * angles.sin()
    result[..., j] = x[..., j] * angles.cos() + x[..., i] * angles.sin()
    return result


@dataclass
class HeadNorm:
    """A norm of each head's queries or keys."""
    kind: str
    epsilon: float
    weight: Constant
    bias: Constant

    def of(self, y):
        if self.kind == "UnitLength":
            return y * torch.rsqrt(y.square().sum(-1, keepdim=True) + self.epsilon)
        return normed(self.kind, y, self.weight, self.bias, self.epsilon)


class Projection:
    """Queries, keys or values [heads, width] as features of a source: weight [heads, width, d_model], bias [heads, width] or None."""

    backwards = False  # whether rotary positions turn the other way in the module; then the features of each pair have changed places here

    def __init__(self, source, weight, bias, factor, rotary=None, norm=None):
        self.source, self.weight, self.bias, self.factor, self.rotary, self.norm = source, weight, bias, factor, rotary, norm

    def of(self, x):
        """[batch, heads, tokens, width] of [batch, tokens, d_model]."""
        y = torch.einsum("btd,hwd->bhtw", x, self.weight.values)
        y = y if self.bias is None else y + self.bias.values[:, None]
        y = (self.norm.of(y) if self.norm else y) * self.factor
        return turned(y, self.rotary) if self.rotary else y

    def heads(self, index):
        take = lambda item: item and item.each(lambda numbers: numbers[index])  # noqa: E731
        return Projection(self.source, take(self.weight), take(self.bias), self.factor, self.rotary, self.norm)


def as_cosines(query, key, temperature):
    """Norms without parameters as unit lengths, if the temperature takes the constant factor."""
    norms = (query.norm, key.norm)
    if any(norm is None or norm.kind != "RmsNorm" or norm.bias is not None or norm.weight is not None and bool(
            (norm.weight.addresses.any() | (norm.weight.values != norm.weight.values[0])).any()) for norm in norms):
        return
    width, factor = query.weight.values.shape[1], query.factor * query.weight.values.shape[1]
    for norm in norms:
        factor *= 1.0 if norm.weight is None else float(norm.weight.values[0])
    one = abs(factor - 1) < 1e-6
    if one or temperature.kind == "kFactor":
        temperature.parameter = temperature.parameter if one else temperature.parameter.times(factor)
        query.factor, query.norm, key.norm = 1.0, *(HeadNorm("UnitLength", norm.epsilon * width, None, None) for norm in norms)


def is_softmax(weights, cut, size):
    """Whether weights are a softmax of groups of features, also of large scores, where the first have finite numbers."""
    for scale, tolerance in ((1, 1e-7), (30, 1e-6), (300, 1e-6)):
        x = draw(2, cut.tokens, cut.features, scale=scale)
        y, wanted = evaluate(weights, {cut: x}), x.view(*x.shape[:2], -1, size).softmax(-1).view_as(x)
        finite = torch.isfinite(y)
        if scale == 1 and not finite.all() or finite.any() and not close(y[finite], wanted[finite], tolerance):
            return False
    return True


def head_of(index, scores, size):
    """The head of the scores that each head of the weighted sum takes, from its places [heads, rows, keys]."""
    place = index % scores.features
    head = place[:, 0, 0] // size
    rows = torch.arange(index.shape[1])[None, :, None]
    if index.shape[2] != size or index.shape[1] != scores.tokens or not bool((index // scores.features == rows).all()) or not bool(
            (place == head[:, None, None] * size + torch.arange(size)).all()):
        raise Unsupported("attention's weights in another order")
    return head


def window_of(mask):
    """(left, right, own) of the keys [rows, heads, keys] that each row sees: None where a side is open, and whether it sees its own."""
    hidden, (rows, _, keys) = mask[:, 0], mask.shape
    distance = torch.arange(keys) - torch.arange(rows)[:, None]
    seen = distance[~hidden]
    right = None if int(seen.max()) == keys - 1 else int(seen.max())
    left = None if int(seen.min()) == 1 - rows else -int(seen.min())
    own = not bool(hidden[distance == 0].all())
    inside = (distance <= (keys if right is None else right)) & (distance >= -(rows if left is None else left)) & (own | (distance != 0))
    if bool((mask != mask[:, :1]).any()) or not torch.equal(inside, ~hidden) or min(left or 0, right or 0) < 0:
        raise Unsupported(f"a mask that is not causal, and no window of each token's neighbors; if it is a padding mask, {PADDING}")
    return left, right, own


def of_head(constant, width):
    """A constant of all heads' features as one head's, where they share it."""
    rows = constant.each(lambda item: item.reshape(-1, width)) if constant.addresses.numel() % width == 0 else None
    same = rows is not None and bool((rows.addresses == rows.addresses[:1]).all())
    return rows.each(lambda item: item[0]) if same else constant


class AttentionMatch(PaddingMasks, RelativePositions, Temperatures):
    """The part of a Matcher that knows attention."""

    def on_contract(self, value):
        weights, values = value.sources
        cuts, _ = self.cuts(weights, gathers=True)
        soft, inner, factor = (weights, weights.sources[0], 1.0) if weights.kind == "softmax" else self.softmax_behind(weights, cuts)
        if soft is not None and factor == 1 and inner.features == 1 and inner.tokens > 1 and len(soft.data["index"]) == 1 and value.tokens == 1 and torch.equal(
                value.data["right"][0], torch.arange(values.layout[0].numel()).view(values.layout.shape[1:])) and torch.equal(
                value.data["left"].flatten(), torch.arange(inner.tokens)):
            return self.sequence_pooling(value, inner, values)
        scores, ids = self.scores(inner)
        size, heads = scores.data["right"].shape[2], scores.data["left"].shape[0]
        if soft is not None and (soft.data["index"].shape[1] != size or not torch.equal(soft.data["index"].flatten(), torch.arange(soft.data["index"].numel()))):
            raise Unsupported("a softmax over something else than keys")
        head = head_of(value.data["left"], scores, size)
        padding = None if ids is None else (ids, self.padding_of(inner, scores, ids, heads, size))
        temperature, scale, mask, relative = self.scale_and_mask(inner, scores, heads, size, padding)
        window = window_of(mask)
        query = self.projection(scores.sources[0], scores.data["left"][head], norms=True)
        key = self.projection(scores.sources[1], scores.data["right"][head].transpose(1, 2), norms=True)
        context = self.projection(values, value.data["right"])
        context.factor *= factor
        if key.source is not context.source:
            raise Unsupported("attention whose keys and values come from several places")
        if (query.norm is None) != (key.norm is None) or query.norm and (query.norm.kind, query.norm.epsilon) != (key.norm.kind, key.norm.epsilon):
            raise Unsupported("norms of several kinds for queries and keys")
        if context.rotary or (query.rotary, query.backwards) != (key.rotary, key.backwards):
            raise Unsupported("positions that turn values, or queries and keys differently")
        width = query.weight.values.shape[1]
        query.factor *= key.factor * scale * (1 if temperature else width ** 0.5)
        key.factor = 1.0
        if temperature is not None:
            if len(temperature.parameter.values) > 1:
                temperature.parameter = temperature.parameter.each(lambda item: item[head])
            as_cosines(query, key, temperature)
        if relative is not None:
            relative.table = relative.table.each(lambda item: item[head])
        found = self.new("attention", [query.source, key.source], value, query=query, key=key, values=context, window=window, width=width,
                         mask=mask[:, head].permute(1, 0, 2), padding=padding, temperature=temperature, relative=relative)
        found.reads = [] if padding is None else [ids]
        return found

    def weighted_sum(self, value):
        """The sum of tokens, each times its share of a softmax over tokens; or None."""
        product = value.sources[0]
        if value.data.get("name") != "sum" or getattr(product, "data", {}).get("name") != "mul" or not torch.equal(
                value.data["index"].sort(-1).values, torch.arange(product.layout[0].numel()).view(1, product.tokens, -1).transpose(1, 2)):
            return None
        for x, weights in itertools.permutations(product.sources, 2):
            in_order = isinstance(weights, Value) and weights.kind == "gather" and len(weights.sources) == 1 and torch.equal(
                weights.data["index"].flatten(), torch.arange(weights.tokens))
            soft = weights.sources[0] if in_order else weights
            if isinstance(x, Value) and isinstance(soft, Value) and soft.kind == "softmax" and x.layout.shape == product.layout.shape and torch.equal(
                    soft.data["index"], torch.arange(x.tokens)[None]) and weights.layout.shape[1:] == (x.tokens, 1):
                try:
                    return self.sequence_pooling(value, soft.sources[0], x)
                except Unsupported as problem:  # what is before it is in its reason
                    self.refuse(value, str(problem))
                    return self.new("refused", [self.layer(x)], value)
        return None

    def sequence_pooling(self, value, inner, values):
        """Tokens whose weights are a softmax of a Linear of them."""
        scores, before = self.layer(inner), self.layer(values)
        scores = scores.sources[0] if scores.kind == "transpose" else scores
        if scores.kind != "linear" or scores.changed or scores.sources[0] is not before:
            raise Unsupported("weights of tokens that are not a softmax of a Linear of them; x.mean(1) is the nearest")
        return self.new("sequence_pooling", [before], value, weight=scores.data["weight"], bias=scores.data["bias"])

    def softmax_behind(self, weights, cuts):
        """A softmax, or None if it is written out, the scores that it takes, and the factor of its numbers, if nothing else changes them."""
        for cut in reversed(cuts):
            if cut.layout.shape == weights.layout.shape:
                x = draw(2, cut.tokens, cut.features)
                y, sizes = evaluate(weights, {cut: x}), {cut.data["right"].shape[2] if cut.kind == "contract" else cut.tokens, cut.tokens, cut.features}
                factor = float((y * x).sum() / x.square().sum()) if cut.kind == "softmax" else 0.0
                known = bool(factor) and all(close(evaluate(weights, {cut: scale * x}), factor * scale * x) for scale in (1, 1e-2, 1e-4, 1e-6))
                if known or any(cut.features % size == 0 and is_softmax(weights, cut, size) for size in sizes):
                    self.refuse_parameters("attention's weights", weights, cut)
                    return (cut, cut.sources[0], 1.0 if abs(factor - 1) < 1e-9 else factor) if known else (None, cut, 1.0)
        if any(cut.kind == "softmax" for cut in cuts):
            raise Unsupported("attention whose weights are changed behind their softmax by more than a factor")
        raise Unsupported("a product of two values, of which none is a softmax of scores; attention is softmax(scores) · values, then an nn.Linear")

    def scores(self, inner):
        """The product of queries and keys, and the ids that make a mask of padding, or None."""
        cuts, ends = self.cuts(inner, tokens=True, gathers=True)
        if inner.kind == "contract":
            return inner, None
        found = next((cut for cut in reversed(cuts) if cut.kind == "contract" and cut.layout.shape == inner.layout.shape), None)
        if found is None:
            found, ids = self.ids_of_mask(ends, inner)
            if found is not None:
                return found, ids
            others = [item for item in ends if item.kind != "contract"]
            if any(item.kind == "unknown" for item in ends):
                raise Unsupported(REFUSED)
            if any(self.from_input(item) or item.kind in ("input", "gather") for item in others):
                raise Unsupported(f"attention with a mask that forward computes from the input; if it is a padding mask, {PADDING}")
            raise Unsupported("attention whose scores are more than one product, as with relative positions that are computed")
        return found, None

    def scale_and_mask(self, inner, scores, heads, size, padding=None):
        """softmax(temperature · scale · scores + bias + mask): the Temperature or None, the scale, what is hidden [rows, heads, keys] where no id is
        padding, and the RelativeBias or None."""
        if inner is scores:
            return None, 1.0, torch.zeros(scores.tokens, heads, size, dtype=torch.bool), None
        changed = "attention whose scores are changed by more than a factor and a mask"
        if padding is None and not self.only(AFFINE, inner, scores):
            raise Unsupported(f"{changed}: {OTHER_SCORES}")
        ids = {} if padding is None else {padding[0]: torch.full((1, size, 1), float(padding[1] == 0)).double()}
        function = lambda x: evaluate(inner, {scores: x, **ids})  # noqa: E731
        with self.without_bias(inner, scores, heads, size, function, *ids) as (relative, constant):
            return *self.scale_and_mask_of(inner, scores, heads, size, function, [constant], *ids), relative

    def scale_and_mask_of(self, inner, scores, heads, size, function, biases, *ids):
        """The same without biases by relative position. `function` is that of the scores."""
        changed = "attention whose scores are changed by more than a factor and a mask"
        shape = (1, scores.tokens, scores.features)
        zero = function(torch.zeros(shape).double())
        hidden = zero <= HIDDEN
        if bool(hidden.all()):
            raise Unsupported("a mask that hides everything")

        def slopes():
            """The factor of each head, which is all that happens to scores beside the mask."""
            by_head = lambda item: item.view(scores.tokens, heads, size).transpose(0, 1)  # noqa: E731
            start, one = (function(torch.full(shape, number).double()) for number in (0.0, 1.0))
            slope = torch.stack([item[seen].mean() for item, seen in zip(by_head(one - start), by_head(~hidden))])
            x = draw(*shape, scale=10 / max(1.0, float(slope.abs().max())))
            y, factor = function(x), slope.repeat_interleave(size)
            if not torch.equal(start <= HIDDEN, hidden) or not close(y[~hidden], (factor * x + start)[~hidden]) or bool((y[hidden] > HIDDEN / 2).any()):
                raise Unsupported(f"{changed}: {OTHER_SCORES}")
            return slope

        temperature, scale = self.temperature(inner, scores, heads, slopes, biases, *ids)
        if not scale:
            raise Unsupported("scores times 0, whose softmax is a mean of all keys that are seen; give forward a mask that hides none")
        rows = torch.where(hidden, torch.full_like(zero, -math.inf), zero).view(scores.tokens, heads, size)
        if bool(((rows - rows.amax(2, keepdim=True)).abs() > 1e-9)[~hidden.view_as(rows)].any()):
            raise Unsupported("a mask with numbers that are added to scores, as ALiBi's or relative positions")
        return temperature, scale, hidden.view(scores.tokens, heads, size)

    # ---- Queries, keys and values ----

    def projection(self, value, index, norms=False):
        """What queries, keys or values are of a source, from their places [heads, rows, width] in a value. `norms`: perhaps with a norm of each head."""
        cuts, rest = self.cuts(value, tokens=True, gathers=True, norms=norms)
        heads, rows, width = index.shape
        ends = sorted(rest, key=lambda item: item.number)
        linears = all(item.kind == "linear" and "convolution" not in item.data for item in ends)
        if not linears or len({item.sources[0] for item in ends}) != 1:
            ends, norms = [next((item for item in [value, *cuts] if item.kind != "gather"), value)], False
        norms = norms and any(item.kind in ("norm", "reduce") for item in region(value, ends))
        if not norms:
            self.refuse_parameters("queries, keys or values", value, *ends, added=True)
        tokens, total = ends[0].tokens, sum(item.features for item in ends)
        if any(item.tokens != tokens for item in ends):
            raise Unsupported("queries, keys or values of several lengths")
        if rows not in (1, tokens):
            raise Unsupported("heads that are no parts of the features, as of groups of tokens that share some")

        with moved([item for item in self.constants(value, *ends) if self.parameters(item)]):  # zeros say nothing about what is done to them
            found = self.projection_of(value, ends, index, norms)
        for name in ("weight", "bias") if found.norm is not None else ():
            setattr(found.norm, name, self.graph.settled(getattr(found.norm, name)))
        return found

    def projection_of(self, value, ends, index, norms):
        """A projection from the features of some values."""
        (heads, rows, width), tokens, total = index.shape, ends[0].tokens, sum(item.features for item in ends)

        def function(x):
            """[batch, heads, rows, width] of the features of the ends."""
            return evaluate(value, dict(zip(ends, x.split([item.features for item in ends], 2)))).flatten(1)[:, index]

        start = function(torch.zeros(1, tokens, total).double())[0]
        if norms:
            features, norm = self.head_norm(value, ends, function, start)
            base, one = (lambda x: norm.of(x)), 1.0
        else:
            factor = function(torch.ones(1, tokens, total).double())[0] - start
            place = ((function(torch.arange(tokens * total).double().view(1, tokens, total))[0] - start) / factor).round()
            if bool((start - start[:, :1]).abs().max() > 1e-9):
                raise Unsupported("queries or keys with a constant of each position")
            # Position 0 is not turned.
            first, one, norm = place[:, 0], float(factor[0, 0, 0]), None
            inside, x = bool(((place >= 0) & (place < tokens * total)).all()), draw(2, tokens, total)
            if rows == tokens and inside and bool((place // total != torch.arange(rows)[:, None]).any()) and close(function(x), x.flatten(1)[:, place.long()] * one + start):
                raise Unsupported("heads with numbers of several tokens; split features by view(batch, tokens, heads, -1).transpose(1, 2)")
            if not bool(torch.isfinite(first).all()) or not bool(((first >= 0) & (first < total)).all()) or not close(
                    factor[:, 0], torch.full_like(factor[:, 0], one), 1e-9):
                raise Unsupported(CHANGED)
            features, base = first.long(), lambda x: x * one + start[:, :1]
        known = lambda x, rotary=None: (lambda y: turned(y, rotary) if rotary else y)(base(x[:, :rows][:, :, features].permute(0, 2, 1, 3)))  # noqa: E731
        x, rotary, order = draw(2, tokens, total), None, torch.arange(width)
        if not close(function(x), known(x), 1e-9):
            if not norms or not close(function(x), known(x), 1e-6):
                rotary, order = self.rotary(function(x[:1, :1].expand(1, tokens, total))[0, 0], not norms)
                features, start = features[:, order], start[..., order]
            if not all(close(function(scale * x)[..., order], known(scale * x, rotary), 1e-4) for scale in ((0.05, 1, 9) if norms else (1,))):
                raise Unsupported(CHANGED)
        found = self.projected(value, ends, features, torch.zeros_like(start[:, 0]) if norms else start[:, 0], one, rotary, norm)
        found.backwards = not torch.equal(order, torch.arange(width))
        return found

    def head_norm(self, value, ends, function, start):
        """The features [heads, width] of the ends that each head has, and the norm of their queries or keys."""
        if not self.only(NORMS, value, *ends):
            raise Unsupported(CHANGED)
        (heads, _, width), tokens, total = start.shape, ends[0].tokens, sum(item.features for item in ends)
        with torch.enable_grad():
            probe = draw(1, tokens, total).requires_grad_()
            slopes = torch.autograd.grad(list((function(probe)[0, :, 0] * draw(heads, width)).sum(1)), probe, is_grads_batched=True,
                                         grad_outputs=list(torch.eye(heads).double()))[0][:, 0].abs().amax(1)
        features = slopes.argsort(1, descending=True)[:, :width].sort(1).values
        if bool((features != features[:, :1] + torch.arange(width)).any()) or int((slopes > 0).sum()) != heads * width:
            raise Unsupported("a norm of something else than each head's queries or keys")
        constants = [of_head(item, width) for item in self.constants(value, *ends)]

        def of_heads(x):
            """[batch, heads, width] of the first token's features of each head."""
            rows = torch.zeros(len(x), tokens, total).double()
            rows[:, 0, features] = x
            return function(rows)[:, :, 0]

        found = self.norm_of(of_heads, (heads, width), constants, value, *ends, kinds=HEAD_NORMS)
        if found is None:
            alone = self.norm_of(lambda x: of_heads(x.expand(-1, heads, -1))[:, :1], (1, width), [], value, *ends, kinds=HEAD_NORMS)
            raise Unsupported("a norm of queries or keys with other weights for each head; attune's heads share them" if alone else CHANGED)
        kind, epsilon, tensors = found
        return features, HeadNorm(kind, epsilon if epsilon > 1e-15 else 1e-24, **tensors)  # F.normalize, whose rows of zeros stay

    def projected(self, value, ends, features, start, factor, rotary, norm):
        """A Projection of these features [heads, width] of the ends, times a factor, plus `start`."""
        if ends[0].kind != "linear" or "convolution" in ends[0].data:  # the features themselves: an identity
            weight = Constant.unnamed(F.one_hot(features, ends[0].features).double())
            return Projection(self.layer(ends[0]), weight, Constant.unnamed(start / factor) if start.any() else None, factor, rotary)
        weight, bias = side_by_side(ends, features)
        if norm is None and (start.any() or self.parameters(*self.constants(value, *ends))):
            bias = self.added_bias(value, ends, features, start / factor, bias)
        return Projection(self.layer(ends[0].sources[0]), weight, bias, factor, rotary, norm)

    def added_bias(self, value, ends, features, start, bias):
        """A bias that is added after the product."""
        count, total = features.numel(), sum(item.features for item in ends)
        named = [item for item in self.constants(value, *ends) if self.parameters(item)]
        for item in named:
            flat, numbers = item.addresses.reshape(-1), item.values.reshape(-1)
            for index in ([features] if len(flat) == total else []) + ([torch.arange(count).view(features.shape)] if len(flat) == count else []):
                if bias is None and close(numbers[index], start, 1e-9) and len(named) == 1:
                    return self.graph.constant(flat[index])
        if named:
            raise Unsupported(f"a parameter that is added to queries, keys or values, and is no bias of a Linear without one: {self.parameters(named[0])[0]}")
        if bias is not None:
            raise Unsupported("a constant that is added to queries, keys or values, beside the bias of their Linear; add it to that bias before")
        return Constant.unnamed(start)

    def rotary(self, rows, backwards):
        """(dimension, base, whether neighbors are turned together, scaling) of one row that is turned by each position, [positions, features], and the
        order of its features. `backwards`: perhaps the other way, which is the same of pairs whose features change places."""
        moved = ((rows - rows[:1]).abs().amax(0) > 1e-7 * float(rows.abs().max())).nonzero().flatten()
        if not len(moved) or len(rows) < 2 or (int(moved[-1]) + 1) % 2:
            raise Unsupported("queries or keys that depend on positions in another way than rotary positions")
        for tolerance in (1e-6, 1e-4):
            for back, dimension, adjacent in itertools.product((False, True)[:1 + backwards], dict.fromkeys((int(moved[-1]) + 1, rows.shape[1] // 2 * 2)), (False, True)):
                (i, j), order = pairs_of(dimension, adjacent).t(), torch.arange(rows.shape[1])
                if back:
                    order[i], order[j] = j, i
                own = rows[:, order]
                a, b = own[:2]
                angles = torch.atan2(b[j] * a[i] - b[i] * a[j], b[i] * a[i] + b[j] * a[j])
                for base, scaling in self.bases(dimension, angles):
                    if close(turned(own[:1].expand_as(own), (dimension, base, adjacent, scaling)), own, tolerance):
                        return (dimension, base, adjacent, scaling), order
        raise Unsupported("queries or keys that depend on positions in another way than rotary positions with one base")

    def bases(self, dimension, angles):
        """Bases of rotary positions that the angles of one position may have, and scalings."""
        found = [10000.0, 500000.0, 1000000.0]
        if dimension > 2 and 0 < float(angles[1]) < 1:
            base = float(angles[1]) ** (-dimension / 2)
            found[1:1] = [float(f"{base:.{digits}g}") for digits in (1, 2, 3, 4, 6, 9)]
        return itertools.product(found, self.scalings)


def attention(value, sources):
    """What attune computes, before the output projection."""
    data = value.data
    query, key, values = data["query"].of(sources[0]), data["key"].of(sources[1]), data["values"].of(sources[1])
    query = query[:, :, :data["mask"].shape[1]]
    mask = data["mask"]
    if data.get("padding"):
        mask = mask | (sources[2] == data["padding"][1]).transpose(1, 2)[:, None]
    factor = data["width"] ** -0.5 if data["temperature"] is None else data["temperature"].of_heads()
    bias = 0 if data["relative"] is None else data["relative"].of_heads()
    scores = (query @ key.transpose(2, 3) * factor + bias).masked_fill(mask, -math.inf)
    return (scores.softmax(-1) @ values).permute(0, 2, 1, 3).flatten(2)
