"""Activations and norms that are written out in elementary operations, recognized by the numbers that those give.

The operations between two values of a recording are run again on numbers that are drawn here, small and large ones, in the
place of the source and of weights. A formula that only looks alike on the sample, or while a weight is 1, is refused.
"""
import itertools

import torch

from .activations import ACTIVATIONS
from .recording import Node

ELEMENTARY = {"add", "sub", "mul", "multiply", "div", "true_divide", "divide", "pow", "sqrt", "rsqrt", "square", "reciprocal", "neg",
              "mean", "var", "std", "erf", "tanh", "sigmoid", "exp", "relu", "clamp", "maximum", "to", "float", "type", "layer_norm",
              "rms_norm", "sum", "subtract"}
LONGEST = 24


def elementary(node):
    """Whether a value is computed number by number, or over the features."""
    name = node.operation.strip("_")
    names = {name, name[1:] if name[:1] in "ri" else name}  # __radd__, __iadd__
    return bool(names & ELEMENTARY) and node.function is not None


def regions(node):
    """Pairs of a value and the operations from it to `node`, the nearest first."""
    inside = []
    frontier = {node.index: node}
    while len(inside) < LONGEST:
        latest = frontier[max(frontier)]
        if not elementary(latest):
            return
        del frontier[latest.index]
        inside.append(latest)
        frontier |= {item.index: item for item in latest.inputs() if item.derived}
        if not frontier:
            return
        if len(frontier) == 1:
            yield next(iter(frontier.values())), inside[::-1]


def replay(end, drawn, dtype):
    """The value of `end` with numbers in the place of some nodes, by their index. Raises RuntimeError where it cannot be
    computed again."""
    values = {}

    def value(item):
        if isinstance(item, (list, tuple)):
            return type(item)(value(part) for part in item)
        if isinstance(item, dict):
            return {name: value(part) for name, part in item.items()}
        if not isinstance(item, Node):
            return item
        if item.index in drawn:
            return drawn[item.index].clone()  # an operation may be in place
        if not item.derived:
            return item.value.to(dtype) if item.value.is_floating_point() else item.value.clone()
        outputs = every(item.args[0]) if item.operation.startswith("part ") else every(item)
        at = int(item.operation[len("part "):]) if item.operation.startswith("part ") else 0
        return outputs[at].clone()

    def every(node):
        """All outputs of an operation."""
        if node.index not in values:
            if node.function is None:
                raise RuntimeError(f"{node.operation} is no function")
            args = value(list(node.args))
            if "getitem" in node.operation and isinstance(args[1], list):
                args[1] = tuple(args[1])
            found = node.function(*args, **value(node.kwargs))
            values[node.index] = found if isinstance(found, (list, tuple)) else [found]
        return values[node.index]

    return value(end)


def probes(shape):
    draw = torch.Generator().manual_seed(1)
    return [scale * torch.randn(shape, generator=draw, dtype=torch.float64) for scale in (1e-3, 1.0, 1.0, 4.0)]


def same(pairs):
    return all(found.shape == wanted.shape and float((found - wanted).abs().max()) <= 3e-6 * max(1e-3, float(wanted.abs().max()))
               for found, wanted in pairs)


def numbers(inside):
    """Scalars that the operations take, one of which may be an epsilon."""
    found = []

    def visit(item):
        if isinstance(item, Node):
            if not item.derived and item.value.is_floating_point() and item.value.numel() == 1:
                found.append(float(item.value))
        elif isinstance(item, float):
            found.append(item)
        elif isinstance(item, (list, tuple)):
            for part in item:
                visit(part)

    for node in inside:
        visit([list(node.args), list(node.kwargs.values()), [1e-5] if node.operation == "layer_norm" else []])
    return sorted({float(f"{value:.6g}") for value in found if 0 < value < 0.1})


def vectors(inside, d_model):
    """Constants of one number for each feature, and whether all others are scalars."""
    found, known = {}, True
    for node in inside:
        for item in node.inputs():
            if item.derived or item.value.numel() == 1:
                continue
            known &= item.value.numel() == d_model and item.value.shape[-1] == d_model and item.value.is_floating_point()
            found[item.index] = item
    return list(found.values()), known


def activation(x, y):
    """The name of an activation by its inputs and outputs, "" where nothing happens, or None."""
    if same(zip(y, x)):
        return ""
    found = [name for name, known in ACTIVATIONS.items() if same((b, known.formula(a)) for a, b in zip(x, y))]
    return found[0] if found else None


def norm(inside, drawn, x, y):
    """(root_mean_square, epsilon, weight, bias) of a norm over the features; weight and bias are nodes or None. Else None."""
    orders = [()] if not drawn else list(itertools.permutations(drawn))
    for epsilon, root_mean_square, order in itertools.product(numbers(inside), (False, True), orders):
        pairs = []
        for a, b in zip(x, y):
            a = a if root_mean_square else a - a.mean(-1, keepdim=True)
            wanted = a * torch.rsqrt(a.square().mean(-1, keepdim=True) + epsilon)
            for index, (_, vector) in enumerate(order):
                wanted = wanted * vector.reshape(-1) if index == 0 else wanted + vector.reshape(-1)
            pairs.append((b, wanted))
        if same(pairs):
            weight, bias = (*[tensor for tensor, _ in order], None, None)[:2]
            return root_mean_square, epsilon, weight, bias
    return None


def recognize(node):
    """("activation", name, source), ("norm", (root_mean_square, epsilon, weight, bias), source), or None."""
    if not elementary(node):
        return None
    nearest = None
    for source, inside in regions(node):
        if source.shape != node.shape or not source.value.is_floating_point():
            continue
        tensors, known = vectors(inside, source.shape[-1])
        if not known or len(tensors) > 2:
            break
        draw = torch.Generator().manual_seed(2)
        drawn = [(item, torch.randn(item.value.shape, generator=draw, dtype=torch.float64)) for item in tensors]
        x = probes(source.shape)
        try:
            y = [replay(node, {source.index: probe, **{item.index: value for item, value in drawn}}, torch.float64) for probe in x]
        except (RuntimeError, TypeError):
            continue
        if any(not bool(torch.isfinite(item).all()) for item in y):
            continue
        name = activation(x, y) if not drawn else None
        if name is not None:
            return "activation", name, source
        found = norm(inside, drawn, x, y)
        if found is not None and not found[0]:
            return "norm", found, source
        # The end of a LayerNorm, from centered values on, is an RMSNorm, too.
        if found is not None and found[3] is None and nearest is None:
            nearest = "norm", found, source
    return nearest
