"""Trained biases of attention's scores by relative position: a table, whose numbers several pairs of a query and a key share."""
import math
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from .capture import exchanged
from .formulas import close
from .normal import Constant
from .padding_masks import HIDDEN

DISTANCES = (128, 64, 256, 32, 512, 16, 1024, 20, 8)  # max_distance of T5's buckets: the usual ones


@dataclass
class RelativeBias:
    """attune::RelativeBias: its members, the table [heads, entries], and the entry of each query and key."""
    members: dict
    table: Constant
    entries: torch.Tensor

    def of_heads(self):
        return self.table.values[:, self.entries]


def bucket(distance, buckets, max_distance, two_sided):
    """T5's, for distances from query to key."""
    side = buckets // 2 if two_sided else buckets
    later, away = ((distance > 0) * side, distance.abs()) if two_sided else (0, (-distance).clamp(min=0))
    exact = side // 2
    far = exact + ((away.clamp(min=1).float() / exact).log() / math.log(max_distance / exact) * (side - exact)).long()
    return later + torch.where(away < exact, away, far.clamp(max=side - 1))


def on_grid(rows, cols, prefix, distances):
    """The entries of tokens on a grid, with those of a prefix, and their number."""
    y, x = (item.flatten() for item in torch.meshgrid(torch.arange(rows), torch.arange(cols), indexing="ij"))
    dy, dx = y[:, None] - y, x[:, None] - x
    entries, count = ((dy.abs() * cols + dx.abs(), rows * cols) if distances else
                      ((dy + rows - 1) * (2 * cols - 1) + dx + cols - 1, (2 * rows - 1) * (2 * cols - 1)))
    if not prefix:
        return entries, count
    entries = torch.nn.functional.pad(entries, (prefix, 0, prefix, 0), value=count)
    entries[prefix:, :prefix], entries[:prefix, :prefix] = count + 1, count + 2
    return entries, count + 3


def farthest(row):
    """The distance from which on a row of addresses repeats its last one."""
    changes = (row[1:] != row[:-1]).nonzero()
    return int(changes[-1]) + 1 if len(changes) else 0


def kinds(addresses, size):
    """(members, entries, their number) of what attune has for [heads, queries, keys]; `size`: numbers of the table for each head."""
    rows, keys = addresses.shape[1:]
    distance = torch.arange(keys) - torch.arange(rows)[:, None]
    for prefix in (0, 1) if rows == keys else ():
        for height in [count for count in range(1, keys - prefix + 1) if (keys - prefix) % count == 0]:
            width = (keys - prefix) // height
            for kind in ("kGrid", "kGridDistance") if prefix or (height > 1 and width > 1) else ("kGridDistance",):
                yield {"kind": kind, "rows": height, "cols": width, "prefix": prefix}, *on_grid(height, width, prefix, kind == "kGridDistance")
    limit = max(1, farthest(addresses[0, 0]), farthest(addresses[0, -1].flip(0)))
    yield {"kind": "kDistance", "max_distance": limit}, distance.clamp(-limit, limit) + limit, 2 * limit + 1
    for two_sided in (True, False):
        side = size // 2 if two_sided else size
        for max_distance in DISTANCES if side > 1 and size <= 128 and not (two_sided and size % 2) else ():
            if max_distance > side // 2:
                yield {"kind": "kBuckets" if two_sided else "kCausalBuckets", "max_distance": max_distance, "buckets": size}, bucket(distance, size, max_distance, two_sided), size


class RelativePositions:
    """The part of a Matcher that knows them."""

    @contextmanager
    def without_bias(self, inner, scores, heads, size, function, *ids):
        """The RelativeBias of scores, or None, and the constant that it is; which is zero here."""
        zeros = torch.zeros(1, scores.tokens, scores.features).double()
        start, found = function(zeros), None
        seen = start > HIDDEN
        for item in {id(item): item for item in self.constants(inner, scores, *ids)}.values():
            if self.parameters(item):
                with exchanged(item, "values", item.values + 1):
                    moved = (function(zeros) - start)[seen]
                if found is None and bool((moved.abs() > 1e-9).any()):
                    found = self.relative_bias(item, scores, heads, size, moved)
                    if found is None:
                        self.refuse_parameters("biases that are not by distance, T5's bucket, or place on a grid of all tokens: attention's scores", inner, scores, *ids)
                    known = item
        if found is None:
            yield None, None
        else:
            with exchanged(known, "values", 0 * known.values):
                yield found, known

    def relative_bias(self, item, scores, heads, size, moved):
        """The table of a constant that is added to scores; `moved`: by how much scores move with it."""
        addresses = item.addresses.expand(scores.tokens, scores.features).view(scores.tokens, heads, size).permute(1, 0, 2)
        blocks, factor = self.graph.blocks_of(addresses), float(moved[0])
        if len(blocks) == len(blocks[0].terms) == 1 and not blocks[0].shift and bool((addresses < 0).all()):  # times a number
            given, own = blocks[0].terms[0]
            addresses, factor = given.reshape(-1)[-addresses - blocks[0].begin], factor * own
            blocks = self.graph.blocks_of(addresses)
        if len(blocks) != 1 or blocks[0].computed or bool((addresses >= 0).any()) or not close(moved, moved[:1].expand_as(moved)):
            return None
        begin, count = -blocks[0].begin, len(blocks[0].values)
        for members, entries, number in kinds(addresses, count // heads):
            table, used = torch.zeros(heads, number, dtype=torch.int64), torch.zeros(number, dtype=torch.bool)
            table[:, entries], used[entries] = addresses, True
            if torch.equal(table[:, entries], addresses) and len(table[:, used].unique()) == table[:, used].numel():
                offsets = begin - table
                rest = sorted(set(range(count)) - set(offsets[:, used].flatten().tolist())) if not bool(used.all()) else []
                for head in range(heads if rest else 0):
                    own = [at for at in rest if (at % heads == head if heads > 1 and bool((offsets[:, used] % heads == torch.arange(heads)[:, None]).all())
                                                 else at // (count // heads) == head)]
                    if len(own) >= int((~used).sum()):
                        table[head, ~used] = begin - torch.tensor(own[:int((~used).sum())])
                if bool((table < 0).all()):
                    constant = Constant(table, self.graph.numbers[-table])
                    return RelativeBias(members, constant if abs(factor - 1) < 1e-9 else constant.times(factor), entries)
        return None
