"""Groups of tokens that take the place of the batch: a part of a model in which each group is a sequence of its own, with the same weights.

A split of a value is [groups, tokens, features]: of each group the places in a sample of the value. It begins at a product of queries and
keys whose heads have tokens of their own, and spreads to sources and users as long as these keep groups apart. The largest part of the
graph with one value in front and one behind becomes values whose batch are the groups of all samples, which match as any model does.
"""
import copy

import torch

from .evaluate import evaluate, region
from .normal import Constant, Value

NAMES = {"reduce": ("name", "correction", "p"), "norm": ("type", "weight", "bias", "epsilon"), "linear": ("weight", "bias", "shape")}


def split_by(groups, places):
    """The split of places [tokens, features] whose groups are known, -1 of those that are not; or None where they are no whole tokens or features."""
    for turned in (False, True):
        own = groups.t() if turned else groups  # rows are of one group
        known = own.amax(1)
        if bool(((own != known[:, None]) & (own >= 0)).any()):
            continue
        if bool((known < 0).any()):  # constants alone, as a class token in each group
            count = int(known.max()) + 1
            if len(known) % count:
                continue
            blocks = known.view(count, -1)
            if bool((blocks.amax(1) < 0).any()) or bool(((blocks != blocks.amax(1, keepdim=True)) & (blocks >= 0)).any()):
                continue
            known = blocks.amax(1, keepdim=True).expand_as(blocks).reshape(-1)
        sizes = torch.bincount(known)
        if bool((sizes != sizes[0]).any()):
            continue
        order = known.sort(stable=True).indices.view(len(sizes), -1)
        return places[:, order].permute(1, 0, 2) if turned else places[order]
    return None


def units(value, source):
    """What of a value, and of a source that it is computed from, is of one group: places [units, …] in each of them, -1 of constants. None where all
    groups meet, or nothing is known."""
    kind, data, each = value.kind, value.data, value.places.reshape(-1, 1)
    if kind in ("pointwise", "softmax"):
        return each, source.places.expand(value.layout.shape[1:]).reshape(-1, 1)
    if kind in ("linear", "norm") and "convolution" not in data:
        return value.places, source.places
    if kind == "gather" and len(value.sources) == 1:
        return each, data["index"].reshape(-1, 1)
    if kind == "reduce":
        return each, data["index"].flatten(0, 1)
    if kind == "contract":
        index = data["left" if source is value.sources[0] else "right"]
        return value.places.view(value.tokens, len(index), -1).transpose(0, 1).flatten(1), index.flatten(1)
    return None


def carried(groups, given, taken, count):
    """The groups of `count` places, -1 of those that no unit takes, from those of the places that units are given; None where groups meet."""
    own = torch.where(given < 0, -1, groups[given.clamp(min=0)])
    found, inside = torch.full((count,), -1), taken >= 0
    whole = own[:, :1].expand_as(taken)
    found[taken[inside]] = whole[inside]
    return found if torch.equal(own, own[:, :1].expand_as(own)) and torch.equal(found[taken[inside]], whole[inside]) else None


class Splits:
    """What of a graph keeps the groups of a product apart: `of` has the splits of values."""

    def __init__(self, graph, seed, split):
        self.graph, self.of, self.inverse, self.users = graph, {}, {}, {}
        for value in region(graph.output):
            for source in dict.fromkeys(value.derived()):
                self.users.setdefault(source, []).append(value)
        count, stack = len(split), [(seed, split)]
        while stack:
            value, split = stack.pop()
            if split is None or len(split) != count or value in self.of or len(split.flatten().unique()) != split.numel() or split.numel() != value.layout[0].numel():
                continue
            self.of[value], inverse = split, torch.empty(2, split.numel(), dtype=torch.int64)
            inverse[0, split.flatten()] = torch.arange(len(split)).repeat_interleave(split[0].numel())
            inverse[1, split.flatten()] = torch.arange(split[0].numel()).repeat(len(split))
            self.inverse[value] = inverse
            stack += [(source, self.of_source(value, source)) for source in value.derived()]
            stack += [(user, self.of_user(user, value)) for user in self.users.get(value, ())]
        self.inside = {value: data for value in self.of for data in [self.within(value)] if data is not None}

    # ---- Splits of neighbors ----

    def grouped(self, value, index):
        """The groups of places [tokens, features, …] in a value, from its split; −1 of others."""
        return torch.where(index < 0, -1, self.inverse[value][0][index.clamp(min=0)])

    def of_source(self, value, source):
        pair = units(value, source)
        found = None if pair is None else carried(self.inverse[value][0], *pair, source.places.numel())
        if found is None:
            return None
        found = found.view(source.tokens, source.features)
        for dim in (1, 0):  # numbers that nothing takes are of their token's, or feature's, group
            most, least = found.amax(dim, keepdim=True), torch.where(found < 0, found.max() + 1, found).amin(dim, keepdim=True)
            if torch.equal(most, least):
                found = most.expand_as(found)
                break
        return split_by(found, source.places) if bool((found >= 0).all()) else None

    def of_user(self, value, source):
        pair = units(value, source)
        found = None if pair is None else carried(self.inverse[source][0], *pair[::-1], value.places.numel())
        return None if found is None else split_by(found.view(value.tokens, value.features), value.places)

    def agree(self, value, source):
        """Whether a value and its source keep the same groups apart."""
        pair = units(value, source)
        if pair is None:
            return False
        groups = self.inverse[value][0][pair[0]]
        own = torch.where(pair[1] < 0, groups[:, :1], self.inverse[source][0][pair[1].clamp(min=0)])
        return bool((groups == groups[:, :1]).all()) and bool((own == groups[:, :1]).all())

    # ---- Values of a group ----

    def local(self, source, index):
        """Places in a source, [groups, …], as places in each group [1, …]; None where groups meet, or differ."""
        group, own = (torch.where(index < 0, -1, item[index.clamp(min=0)]) for item in self.inverse[source])
        mine = torch.arange(len(index)).view(-1, *[1] * (index.dim() - 1))
        same = bool(((group == mine) | (index < 0)).all()) and bool((own == own[:1]).all())
        return own[0] if same else None

    def constant(self, constant, value, split):
        """A constant of each element as that of each group's elements; None where groups have different ones."""
        whole = constant.each(lambda item: item.expand(value.tokens, value.features).reshape(-1)[split])
        same = bool((whole.addresses == whole.addresses[:1]).all())
        if not same and (self.graph.names(constant.addresses) or bool((whole.values != whole.values[:1]).any())):
            return None
        whole = whole.each(lambda item: item[0])
        for dim in (0, 1):
            narrow = whole.each(lambda item: item.narrow(dim, 0, 1))  # noqa: B023
            if bool((whole.addresses == narrow.addresses).all()) and bool((whole.values == narrow.values).all()):
                whole = narrow
        return whole

    def within(self, value):
        """What a value is within a group: its data, and constants by their places among the sources; or None where groups meet."""
        split, data = self.of[value], value.data
        if not value.derived() or value.reads or not all(source in self.of and self.agree(value, source) for source in value.derived()):
            return None
        if value.kind == "pointwise":
            constants = {at: self.constant(source, value, split) for at, source in enumerate(value.sources) if isinstance(source, Constant)}
            whole = data["name"] != "batch_norm" or split.shape[2] == value.features
            return (data, constants) if whole and None not in constants.values() else None
        source = value.sources[0]
        if value.kind in ("linear", "norm") and "convolution" not in data:
            return {name: data[name] for name in NAMES[value.kind] if name in data}, {}
        if value.kind == "gather" and len(value.sources) == 1:
            index = self.local(source, data["index"].flatten()[split])
            numbers, constants = (data[name].flatten()[split] for name in ("numbers", "constants"))
            if index is None or bool((constants != constants[:1]).any()) or bool((numbers != numbers[:1]).any()):
                return None
            return {"index": index, "numbers": numbers[0], "constants": constants[0]}, {}
        if value.kind == "reduce" and "pool" not in data and "divisor" not in data:
            index = self.local(source, data["index"].flatten(0, 1)[split])
            return None if index is None else ({"index": index} | {name: data[name] for name in NAMES["reduce"] if name in data}, {})
        if value.kind == "softmax":
            rows = self.grouped(source, data["index"])
            if bool((rows != rows[:, :1]).any()) or len(rows) % len(split):
                return None
            index = self.local(source, data["index"][rows[:, 0].sort(stable=True).indices].view(len(split), -1, rows.shape[1]))
            return None if index is None else ({"index": index[index[:, 0].argsort()]}, {})
        if value.kind == "contract":
            sides = []
            for side, source in zip(("left", "right"), value.sources):
                order = self.grouped(source, data[side])[:, 0, 0].sort(stable=True).indices.view(len(split), -1)
                sides.append(self.local(source, data[side][order]))
            return None if any(side is None for side in sides) else (dict(zip(("left", "right"), sides)), {})
        return None

    # ---- The largest part ----

    def through(self, value, neighbors, least):
        """The values that everything goes through from a value on, the nearest first."""
        frontier, found = {value}, []
        pick = min if least else max
        while True:
            last = pick(frontier, key=lambda item: item.number)
            more = neighbors(last)
            if not more or last is self.graph.output and least:
                return found
            frontier = (frontier - {last}) | set(more)
            if len(frontier) == 1:
                found.append(next(iter(frontier)))

    def part(self, contract):
        """The value in front of the largest part around a product whose groups do not meet, and the one behind it; or None."""
        below = self.through(contract, lambda item: item.derived(), False)
        above = self.through(contract, lambda item: self.users.get(item, []), True)
        for bottom in reversed(below):
            if bottom not in self.of or bottom.kind == "input" and all(item.kind == "gather" for item in self.users[bottom]):
                continue  # the device takes what is rearranged
            for top in reversed(above):
                if top not in self.inside:
                    continue
                part = set(region(top, [bottom]))
                users = {user for item in part - {top} for user in self.users.get(item, ())}
                if part <= self.inside.keys() and users <= part and self.graph.output not in part - {top}:
                    return bottom, top
        return None


def seeds(graph):
    """Products of queries and keys whose heads take tokens of their own: (product, value that has the tokens, its split)."""
    for value in graph.values:
        if value.kind != "contract":
            continue
        source, places = value.sources[0], value.data["left"]
        while True:  # to what the queries are numbers of
            if source.kind == "gather" and len(source.sources) == 1 and not bool((source.data["index"] < 0).any()):
                places, source = source.data["index"].flatten()[places], source.sources[0]
                continue
            same = [item for item in source.derived() if item.layout.shape == source.layout.shape] if source.kind in ("pointwise", "norm") else []
            if not same:
                break
            source = same[0]
        token = places // source.features
        if bool((token != token[..., :1]).any()):
            continue
        rows = torch.unique(token[..., 0].sort(1).values, dim=0)  # of each group, its tokens
        if len(rows) > 1 and rows.numel() == source.tokens == len(rows.unique()):
            yield value, source, rows[..., None] * source.features + torch.arange(source.features)


def regrouped(splits, bottom, top):
    """The part between two values as values of groups: its input, its output, and all of them."""
    def layout(value):
        return value.layout.flatten(1)[:, splits.of[value]].flatten(0, 1)
    made, gathers = {bottom: Value("group", [], layout(bottom), {}, None, bottom.number)}, {}
    for value in sorted(region(top, [bottom]), key=lambda item: item.number):
        data, constants = splits.inside[value]
        sources = [constants[at] if at in constants else made[source] for at, source in enumerate(value.sources)]
        if value.kind == "gather":  # tokens in another order may be in the same within a group
            if is_identity(sources[0], data["index"]):
                made[value] = sources[0]
                continue
            key = (sources[0].number, *(tuple(data[name].flatten().tolist()) for name in ("index", "constants")), *data["index"].shape)
            if key in gathers:
                made[value] = gathers[key]
                continue
        made[value] = Value(value.kind, sources, layout(value), dict(data), value.operation, value.number)
        if value.kind == "gather":
            gathers[key] = made[value]
    return made[bottom], made[top], list(dict.fromkeys(made.values()))


def is_identity(value, index):
    """Whether places [tokens, features] are those of a value in its own order."""
    return index.shape == value.layout.shape[1:] and torch.equal(index, value.places)


def arranged(value, index, layout, number, operation):
    """The numbers of a value in another order; the value itself if it is its own."""
    if is_identity(value, index):
        return value
    return Value("gather", [value], layout, {"index": index, "numbers": torch.zeros(index.shape).double(), "constants": torch.zeros_like(index)}, operation, number)


def with_groups(graph):
    """The graph with its groups as values of their own: "groups", whose data has the graph of a group, its input and their number."""
    tried = set()
    while True:
        found = next(((value, *rest) for value, *rest in seeds(graph) if value not in tried), None)
        if found is None:
            return graph
        contract, source, split = found
        tried.add(contract)
        splits = Splits(graph, source, split)
        part = splits.part(contract)
        if part is None:
            continue
        bottom, top = part
        given, output, values = regrouped(splits, bottom, top)
        inner = copy.copy(graph)
        inner.values, inner.output, inner.refusals, inner.inputs = values, output, [], [given]
        before, behind = splits.of[bottom], splits.of[top]
        rows = arranged(bottom, before.flatten(0, 1), given.layout.view(-1, before.shape[0] * before.shape[1], before.shape[2]), top.number - 0.4, top.operation)
        whole = Value("groups", [rows], output.layout.view(-1, behind.shape[0] * behind.shape[1], behind.shape[2]),
                      {"graph": with_groups(inner), "count": len(before)}, top.operation, top.number - 0.2)
        group, place = splits.inverse[top]
        last = arranged(whole, (group * behind[0].numel() + place).view(top.tokens, top.features), top.layout, top.number, top.operation)
        old = set(region(top, [bottom]))
        for user in graph.values:
            if user not in old:
                user.sources = [last if item is top else item for item in user.sources]
        new = [item for item in dict.fromkeys((rows, whole, last)) if item not in graph.values]
        graph.values = sorted([item for item in graph.values if item not in old] + new, key=lambda item: item.number)
        graph.output = last if graph.output is top else graph.output


def groups(value, sources):
    """What the layers of groups compute."""
    graph, count, x = value.data["graph"], value.data["count"], sources[0]
    result = evaluate(value.data["output"], {graph.inputs[0]: x.reshape(len(x) * count, -1, x.shape[2])})
    return result.reshape(len(x), -1, result.shape[2])
