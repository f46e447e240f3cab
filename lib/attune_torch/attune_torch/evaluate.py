"""Values of the normal form, and layers, computed for other numbers."""
from collections import Counter

import torch
import torch.nn.functional as F

from .normal import Constant


def region(value, ends=()):
    """A value and what it is computed from, down to the ends."""
    stack, seen = [value], {}
    while stack:
        item = stack.pop()
        if item not in ends and item not in seen:
            seen[item] = None
            stack += item.derived()
    return list(seen)


def computed_from(value, other):
    """Whether a value is another one, or computed from it."""
    stack, seen = [value], set()
    while stack:
        item = stack.pop()
        if item is other:
            return True
        if item not in seen and item.number >= other.number:
            seen.add(item)
            stack += item.derived()
    return False


def meet(*values):
    """The nearest value that everything of several goes through; or None."""
    frontier = set(values)
    while len(frontier) > 1:
        last = max(frontier, key=lambda item: item.number)
        if not last.derived():
            return None
        frontier = (frontier - {last}) | set(last.derived())
    return frontier.pop()


def evaluate(value, known, kept=None):
    """[batch, tokens, features] of a value. `known` has those of others, by value, and gets all that are computed; or those that are `kept`."""
    stack = [value]
    uses = Counter(source for item in region(value, known) for source in {*item.derived(), *item.reads}) if kept is not None else None
    while stack:
        top = stack[-1]
        missing = [] if top in known else [item for item in top.derived() if item not in known]
        if missing:
            stack += missing
            continue
        stack.pop()
        if top not in known:
            known[top] = KINDS[top.kind](top, [item.values if isinstance(item, Constant) else known[item] for item in [*top.sources, *top.reads]])
            for source in {*top.derived(), *top.reads} if kept is not None else ():
                uses[source] -= 1
                if not uses[source] and source not in kept:
                    del known[source]
    return known[value]


def gather(value, sources):
    flat, index = torch.cat([item.flatten(1) for item in sources], 1), value.data["index"]
    result = flat[:, index.clamp(min=0)]
    return torch.where(index < 0, value.data.get("numbers", torch.zeros(1)).to(result.dtype), result) if bool((index < 0).any()) else result


def linear(value, sources):
    result, bias = sources[0] @ value.data["weight"].values, value.data.get("bias")
    return result if bias is None else result + bias.values


def pointwise(value, sources):
    name, options = value.data["name"], dict(value.data["options"])
    arguments = [sources[item] if isinstance(item, int) else item[0] for item in value.data["template"]]
    if name == "batch_norm":
        return arguments[0] * arguments[1] + arguments[2]
    if name == "_to_copy":
        return arguments[0].to(value.data["type"]).double()
    if name in ("where", "logical_not", "bitwise_not", "logical_and", "logical_or", "bitwise_and", "bitwise_or"):
        arguments = [item.bool() if isinstance(item, torch.Tensor) and not (name == "where" and index) else item for index, item in enumerate(arguments)]
    if name == "where":
        arguments = [item if isinstance(item, torch.Tensor) else torch.tensor(float(item)).double() for item in arguments]
    result = getattr(torch.ops.aten, name)(*arguments, **options)
    return (result[0] if isinstance(result, (tuple, list)) else result).double()


def reduce(value, sources):
    windows, name = sources[0].flatten(1)[:, value.data["index"].clamp(min=0)], value.data["name"]
    if "divisor" in value.data:
        return windows.masked_fill(value.data["index"] < 0, 0).sum(-1) / value.data["divisor"]
    if name == "norm":
        return windows.norm(p=value.data["p"], dim=-1)
    if name in ("var", "std"):
        return getattr(torch, name)(windows, dim=-1, unbiased=bool(value.data["correction"]))
    return getattr(windows, name)(dim=-1)


def softmax(value, sources):
    flat, index = sources[0].flatten(1), value.data["index"]
    result = torch.zeros_like(flat)
    result[:, index.flatten()] = flat[:, index].softmax(-1).flatten(1)
    return result.view_as(sources[0])


def normed(kind, x, weight, bias, epsilon):
    """A norm of each row. `weight`, `bias`: Constants or None."""
    weight, bias = (item and item.values for item in (weight, bias))
    if kind == "LayerNorm":
        return F.layer_norm(x, x.shape[-1:], weight, bias, epsilon)
    x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + epsilon) if kind == "DeviationNorm" else \
        x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)
    return x * (1 if weight is None else weight) + (0 if bias is None else bias)


def norm(value, sources):
    return normed(value.data["type"], sources[0], *(value.data[name] for name in ("weight", "bias", "epsilon")))


def group_norm(value, sources):
    weight, bias = (value.data[name] and value.data[name].values for name in ("weight", "bias"))
    return F.group_norm(sources[0].transpose(1, 2), value.data["groups"], weight, bias, value.data["epsilon"]).transpose(1, 2)


def embedding(value, sources):
    return value.data["table"].values[sources[0].squeeze(-1).round().long()]


KINDS = {"gather": gather, "linear": linear, "pointwise": pointwise, "reduce": reduce, "softmax": softmax, "norm": norm, "group_norm": group_norm,
         "embedding": embedding}
