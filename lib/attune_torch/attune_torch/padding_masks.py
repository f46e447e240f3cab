"""Masks of padding that forward makes of its ids: the keys whose id is one number are hidden."""
import torch

from .errors import Unsupported
from .evaluate import KINDS, computed_from, evaluate, region
from .formulas import AFFINE, close, draw
from .normal import Constant

HIDDEN = -1e3  # what is added to scores that nobody shall see; exp(HIDDEN) is 0 in floats
TOGETHER = 1 << 22  # numbers of scores that are computed at once
WRITE = "mask = (ids != padding)[:, None, None, :] hides keys alone"


def checked(inner, scores, ids, heads, size, padding):
    """The id, if its keys are hidden, and nothing else changes."""
    other, at = padding + 1 if padding == 0 else 0, torch.eye(size, dtype=torch.bool)
    patterns = torch.cat([torch.zeros(1, size, dtype=torch.bool), at, draw(24, size) > 0])
    x = draw(1, scores.tokens, scores.features, scale=10)

    def rows(padded, numbers):
        known = {ids: torch.where(padded, padding, other).double()[:, :, None], scores: numbers.expand(len(padded), -1, -1)}
        return evaluate(inner, known).view(len(padded), scores.tokens, heads, size)

    zero, plain = rows(patterns[:1], torch.zeros_like(x)), rows(patterns[:1], x)
    hidden = zero <= HIDDEN
    for some in patterns.split(max(1, TOGETHER // x.numel())):
        keys = hidden | some[:, None, None, :]
        y, still = rows(some, x), rows(some, torch.zeros_like(x))
        if not torch.equal(still <= HIDDEN, keys):
            queries = scores.tokens == size and torch.equal(still <= HIDDEN, keys | some[:, :, None, None])
            own = scores.tokens == size and torch.equal(still <= HIDDEN, hidden | some[:, :, None, None])
            raise Unsupported((f"a mask that hides all keys from padding, where PyTorch answers a mean of all tokens; {WRITE}") if queries or own else
                              f"a mask of ids that hides other keys than those of padding; {WRITE}")
        if bool((y[keys] > HIDDEN / 2).any()) or not close(y[~keys], plain.expand_as(y)[~keys], 1e-9):
            raise Unsupported("a mask that forward computes from its ids, and that changes scores of other tokens than padding")
    return padding


def is_mean(value, x, ids, padding):
    patterns = torch.cat([torch.zeros(1, ids.tokens, dtype=torch.bool), torch.eye(ids.tokens, dtype=torch.bool), draw(24, ids.tokens) > 0])
    patterns[:, 0] &= ~patterns.all(1)
    rows = draw(len(patterns), x.tokens, x.features, scale=10)
    known = {ids: torch.where(patterns, padding, padding + 1 if padding == 0 else 0).double()[:, :, None], x: rows}
    kept = (~patterns).double()[:, :, None]
    return close(evaluate(value, known), (rows * kept).sum(1, keepdim=True) / kept.sum(1, keepdim=True), 1e-6)


def refuse_several(values):
    """The ids and the padding that all attention has in common; or None. Raises Unsupported if some has other ones."""
    found = {value: value.data.get("padding") for value in values}
    if len(set(found.values())) > 1:
        odd = next(value for value, padding in found.items() if padding != next(iter(found.values())))
        raise Unsupported(f"attention that hides padding beside attention that hides none, or another id's: {odd.operation.describe()}")
    return next(iter(found.values()), None)


class PaddingMasks:
    """The part of a Matcher that knows them."""

    def ids_of_mask(self, ends, inner):
        """Scores and ids, if these two are what scores with a mask are computed from; or None twice."""
        given = dict(zip(self.graph.inputs, self.graph.captured.given))
        scores = [item for item in ends if item.kind == "contract" and item.layout.shape == inner.layout.shape]
        ids = [item for item in ends if item in given and not given[item].is_floating_point()]
        return (scores[0], ids[0]) if len(scores) == len(ids) == 1 and len(ends) == 2 else (None, None)

    def padding_of(self, inner, scores, ids, heads, size):
        """The id of the keys that a mask hides, besides those that it hides always."""
        if ids.tokens != size or ids.features != 1:
            raise Unsupported("a mask that forward computes from ids, of other tokens than attention's keys")
        of_scores, items = {scores}, sorted(region(inner, [scores, ids]), key=lambda item: item.number)
        for item in items:
            name = item.data.get("name", item.kind)
            if any(source in of_scores for source in item.derived()):
                of_scores.add(item)
                if name not in AFFINE | {"gather"} or name == "where" and item.sources[0] in of_scores:
                    raise Unsupported("attention whose scores are changed by more than a factor and a mask")
            elif item.kind not in ("pointwise", "gather"):
                raise Unsupported("a mask that forward computes from other ids than each key's own, as from their number")
        return checked(inner, scores, ids, heads, size, self.padding_id(ids, [item for item in items if item not in of_scores], items))

    def padding_id(self, ids, masks, items):
        """The id that differs from all others, in everything that is computed from one id alone. Every id is tried."""
        count = max((len(item.data["table"].addresses) for item in self.graph.values if item.kind == "embedding" and ids in region(item)), default=0)
        if count < 3:
            raise Unsupported("a mask that forward computes from ids that no embedding takes")
        of_one, found = {ids: torch.arange(count).double().view(1, -1, 1)}, set()
        for item in masks:
            sources = set(item.derived())
            if len(sources) == 1 and sources <= set(of_one) and all(source.values.numel() == 1 for source in item.sources if isinstance(source, Constant)):
                if item.kind == "gather" and not bool((item.data["index"] < 0).any()):
                    of_one[item] = of_one[item.sources[0]]
                elif item.kind == "pointwise":
                    of_one[item] = KINDS["pointwise"](item, [source.values.reshape(1, 1, 1) if isinstance(source, Constant) else of_one[source] for source in item.sources])
        for item in items:
            for source in item.derived() if item not in of_one else ():
                if source in of_one:
                    numbers = of_one[source].flatten()
                    others = (numbers != numbers.mode().values).nonzero().flatten().tolist()
                    found.add(others[0] if len(others) == 1 else None)
        if len(found) != 1 or None in found:
            raise Unsupported("a mask that forward computes from its ids, and not by comparing them with one id, that of padding")
        return found.pop()

    def mean_of_tokens(self, value):
        """A mean of the tokens that are no padding: sum(x · mask) / sum(mask); or None."""
        total = value.sources[0]
        if value.data.get("name") != "div" or getattr(total, "kind", "") != "reduce" or total.data["name"] != "sum" or value.tokens != 1:
            return None
        inputs = [item for item in self.graph.inputs if not self.graph.captured.given[item.number].is_floating_point()]
        product = total.sources[0]
        found = [(x, ids) for x in product.derived() for ids in inputs if x.layout.shape[1:] == (ids.tokens, value.features) and ids.features == 1]
        for x, ids in found:
            items = sorted(region(value, [x, ids]), key=lambda item: item.number)
            names = {item.data.get("name", item.kind) for item in items if computed_from(item, x)}
            if names <= {"mul", "div", "where", "sum", "gather", "_to_copy"} and all(item.kind in ("pointwise", "gather", "reduce") for item in items):
                padding = self.padding_id(ids, [item for item in items if not computed_from(item, x)], items)
                if is_mean(value, x, ids, padding):
                    layer = self.new("pooling", [self.layer(x)], value, type="kMean", padding=(ids, padding))
                    layer.reads = [ids]
                    return layer
        return None

