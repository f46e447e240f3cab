"""Layers that forward applies several times in a row, with the same tensors, as one value: "shared", whose data has the number of applications,
the value that the first one begins with, and the one that it ends with."""
import hashlib
from collections import Counter

import torch

from .evaluate import evaluate, meet, region
from .normal import Constant, Value


def frozen(item, numbers):
    """What tells one part of a value from another. `numbers`: those of the values that it may be computed from."""
    if isinstance(item, torch.Tensor):
        return tuple(item.shape), hashlib.sha1(item.detach().contiguous().numpy().tobytes()).hexdigest()
    if isinstance(item, Value):
        return "value", numbers.get(item, f"{id(item)}")
    if isinstance(item, (list, tuple)):
        return tuple(frozen(part, numbers) for part in item)
    if isinstance(item, dict) or hasattr(item, "__dict__"):
        parts = item if isinstance(item, dict) else vars(item)
        return tuple((key, frozen(part, numbers)) for key, part in parts.items())
    return repr(item)


def inside(value):
    """The last and the first value of the layers within a value; or None."""
    ends = {"groups": lambda data: (data["output"], data["graph"].inputs[0]), "shared": lambda data: (data["output"], data["begin"])}
    return ends[value.kind](value.data) if value.kind in ends else None


def signature(end, begin):
    """What layers compute of a value `begin`: the same for equal layers of the same tensors."""
    numbers, found = {begin: 0}, []
    for item in sorted(region(end, {begin}), key=lambda value: value.number):
        data = {"count": item.data["count"], "layers": signature(*inside(item))} if inside(item) else item.data
        found.append((item.kind, tuple(item.layout.shape), frozen([item.sources, item.reads, data], numbers)))
        numbers[item] = len(numbers)
    return tuple(found)


def constants(item):
    """The constants among parts of a value that have numbers of the module."""
    if isinstance(item, (Value, torch.Tensor)):
        return []
    if isinstance(item, Constant):
        return [item] if bool((item.addresses < 0).any()) else []
    parts = item.values() if isinstance(item, dict) else item if isinstance(item, (list, tuple)) else vars(item).values() if hasattr(item, "__dict__") else ()
    return [found for part in parts for found in constants(part)]


def has_tensors(end, begin):
    """Whether layers have tensors; activations have none."""
    return any(has_tensors(*inside(item)) if inside(item) else constants([item.sources, item.data]) for item in region(end, {begin}))


def reads_twice(output):
    """Whether two values seem to have one tensor: most models have no such values, and need no closer look."""
    ends = Counter()
    for item in region(output):
        flat = [constant.addresses.flatten() for constant in constants([item.sources, {} if inside(item) else item.data])]
        ends.update({(int(addresses[0]), int(addresses[-1]), len(addresses)) for addresses in flat})
    return any(count > 1 for count in ends.values())


def first_run(signatures, own):
    """Where a run of equal layers with tensors begins, the number of these layers, and how often they are applied; or None. Few layers come first:
    they may be parts of more."""
    for size in range(1, len(signatures) // 2 + 1):
        for at in range(len(signatures) - 2 * size + 1):
            times = 1
            while signatures[at:at + size] == signatures[at + times * size:at + (times + 1) * size]:
                times += 1
            if times > 1 and any(own[at:at + size]):
                return at, size, times
    return None


def share(output, begin=None):
    """Makes each run of equal layers with the same tensors one value, between `begin`, or an input, and an output."""
    if not reads_twice(output):
        return
    ends = [output]
    while ends[-1] is not begin and ends[-1].derived() and (before := meet(*ends[-1].derived())) is not None:
        ends.append(before)
    ends.reverse()
    for end in ends:
        if end.kind == "reversible":
            share(end.sources[0], end.data["inner"])
    signatures, own = ([of(end, start) for start, end in zip(ends, ends[1:])] for of in (signature, has_tensors))
    while (run := first_run(signatures, own)) is not None:
        at, size, times = run
        start, first, last = ends[at], ends[at + size], ends[at + size * times]
        reads = {read for item in region(first, {start}) for read in item.reads}
        last.kind, last.sources, last.reads = "shared", [start], sorted(reads, key=lambda value: value.number)
        last.data = {"count": times, "begin": start, "output": first}
        ends[at + 1:at + size * times] = []
        signatures[at:at + size * times], own[at:at + size * times] = [signature(last, start)], [True]


def applied(value, sources):
    """What the applications compute."""
    x = sources[0]
    for _ in range(value.data["count"]):
        x = evaluate(value.data["output"], {value.data["begin"]: x, **dict(zip(value.reads, sources[1:]))})
    return x
