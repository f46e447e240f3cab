"""Norms and activations that are written out as formulas: recognized by their numbers."""
import math

import torch
import torch.nn.functional as F

# Operations that a formula is made of.
STEPS = {"add", "sub", "rsub", "mul", "div", "true_divide", "divide", "multiply", "subtract", "pow", "square", "sqrt", "rsqrt", "mean", "var",
         "erf", "exp", "tanh", "sigmoid", "neg", "reciprocal", "relu", "clamp", "maximum", "layer_norm", "native_layer_norm", "__add__",
         "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__pow__", "__rpow__", "__neg__", "float",
         "to", "type_as"}
FUNCTIONS = {
    "kRelu": F.relu, "kSilu": F.silu, "kGelu": F.gelu, "kTanh": torch.tanh, "kSigmoid": torch.sigmoid,
    "kGeluTanh": lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "kQuickGelu": lambda x: x * torch.sigmoid(1.702 * x),
    "kSquaredRelu": lambda x: F.relu(x).square(),
}


def regions(node):
    """Each value that all of `node` is computed from by a formula, the nearest first, and what lies between."""
    inside, border = [node], []

    def spread(item):
        for before in item.inputs():
            if before.derived and not any(before is known for known in border):
                border.append(before)

    spread(node)
    while border and len(inside) < 60:
        if len(border) == 1 and border[0].shape == node.shape:
            yield border[0], list(inside)
        latest = max(border, key=lambda item: item.order)
        if latest.operation not in STEPS or latest.module is not None:
            return
        border.remove(latest)
        inside.append(latest)
        spread(latest)


def activation(x, y):
    """The name of the function with y = f(x), or None."""
    x, y = x.double(), y.double()
    errors = {name: float((function(x) - y).abs().max()) for name, function in FUNCTIONS.items()}
    best = min(errors, key=errors.get)
    return best if errors[best] <= 2e-6 * max(1.0, float(y.abs().max())) else None


def constants(inside):
    """Vectors of parameters, and small numbers, of a formula."""
    vectors, numbers = [], []
    for node in inside:
        for item in [*node.args, *node.kwargs.values()]:
            if isinstance(item, float):
                numbers.append(item)
        for item in node.inputs():
            if item.derived:
                continue
            if item.value.numel() == 1:
                numbers.append(float(item.value))
            elif item.value.dim() <= 1 or item.value.numel() == item.value.shape[-1]:
                vectors.append(item)
    return vectors, [float(f"{number:.7g}") for number in numbers if 0 < number < 0.1] or [1e-5, 1e-6, 1e-12, 1e-8]


def norm(x, y, inside):
    """(whether it is RMSNorm, epsilon, weight, bias) with y = norm(x), weight and bias as nodes; or None."""
    vectors, epsilons = constants(inside)
    if len(vectors) > 2:
        return None
    x, y = x.double(), y.double()
    best = None
    for rms in (False, True):
        centered = x if rms else x - x.mean(-1, keepdim=True)
        power = centered.pow(2).mean(-1, keepdim=True)
        for epsilon in epsilons:
            normal = centered * torch.rsqrt(power + epsilon)
            for weight in [None, *vectors]:
                for bias in [None, *vectors] if not rms else [None]:
                    if sum(item is not None for item in (weight, bias)) != len(vectors) or (weight is bias and weight is not None):
                        continue
                    z = normal * weight.value.double().flatten() if weight is not None else normal
                    z = z + bias.value.double().flatten() if bias is not None else z
                    error = float((z - y).abs().max())
                    if best is None or error < best[0]:
                        best = (error, rms, epsilon, weight, bias)
    if best is None or not best[0] <= 1e-5 * max(1.0, float(y.abs().max())):
        return None
    return best[1:]
