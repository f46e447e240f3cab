"""Tensors that are others in attune's file than in the state_dict: how they get there, and how what a board learned comes back.

Each change has `apply(state)`, from the state_dict to the file, and `undo(learned)`. A file's metadata names the changes, so that
`load` undoes them in a module of the same kind.
"""
import json
import math
from dataclasses import dataclass, field

import torch

FOLDED = "attune.folded"          # of each BatchNorm in the layer before it, that layer
ALONE = "attune.alone"            # BatchNorms that are a layer
NORMALIZED = "attune.normalized"  # of each layer that normalizes by buffers, their names
SCALED = "attune.scaled"          # of each tensor, the factor that it was multiplied by
TAKEN = "attune.taken"            # of each tensor that is made of parts of others, its shape and the parts
LEFT_OUT = "attune.left_out"      # tensors that no layer reads


def scale_and_shift(mean, variance, weight, bias, epsilon):
    """A BatchNorm in evaluation: y = x·scale + shift for each feature."""
    scale = torch.rsqrt(variance.double() + epsilon) * (weight.double() if weight is not None else 1)
    return scale, (bias.double() if bias is not None else 0) - mean.double() * scale


def warnings_of(mean, deviation, where):
    """A sentence for each feature that is divided by almost nothing: it was constant in training, or its unit is far too large."""
    deviation = deviation.double().abs().flatten()
    least = 1e-6 * torch.maximum(mean.double().abs().flatten(), deviation.median().clamp(min=1))
    return tuple(f"feature {feature} of {where} has a standard deviation of {float(deviation[feature]):.3g}: a reading that is off by 0.001 "
                 f"becomes {float(0.001 / deviation[feature]):.3g}. Leave a constant feature out of the input, or make its deviation 1"
                 for feature in (deviation < least).nonzero().flatten().tolist())


def without(state, path):
    """The tensors of all other modules."""
    return {name: value for name, value in state.items() if name.rpartition(".")[0] != path}


def identity(norm, weight, bias):
    """The tensors of a BatchNorm whose statistics do nothing."""
    found = {"running_mean": torch.zeros_like(bias) if norm.affine else -bias, "running_var": torch.ones_like(bias) - norm.eps}
    if norm.affine:
        found |= {"weight": weight, "bias": bias}
    if norm.num_batches_tracked is not None:
        found["num_batches_tracked"] = norm.num_batches_tracked
    return found


@dataclass
class Folded:
    """A BatchNorm in the convolution or Linear before it."""
    norm: str   # path of the BatchNorm
    layer: str  # path of the layer
    scale: torch.Tensor
    shift: torch.Tensor
    module: object = None  # the BatchNorm, and whether the layer has a bias, for undo
    biased: bool = False
    warnings: tuple = ()

    def names(self):
        """Of the layer's weight and bias."""
        return [f"{self.layer}.{name}" if self.layer else name for name in ("weight", "bias")]

    def apply(self, state):
        """The state_dict without the BatchNorm."""
        weight, bias = self.names()
        scale = self.scale.reshape(-1, *[1] * (state[weight].dim() - 1))
        shift = self.shift + (state[bias].double() * self.scale if bias in state else 0)
        return without(state, self.norm) | {weight: (state[weight].double() * scale).to(state[weight].dtype),
                                            bias: shift.to(state[weight].dtype)}

    def undo(self, learned):
        """The state_dict with a BatchNorm that is the identity; it has the bias where the layer has none."""
        bias = self.names()[1]
        rest = {name: value for name, value in learned.items() if self.biased or name != bias}
        shift = torch.zeros_like(learned[bias]) if self.biased else learned[bias]
        tensors = identity(self.module, torch.ones_like(shift), shift)
        return rest | {f"{self.norm}.{name}": value for name, value in tensors.items()}

    def text(self):
        return f"{self.norm}: folded into {self.layer}, and the identity now"


@dataclass
class Alone:
    """A BatchNorm as a convolution of one token and one feature: a factor and a bias for each."""
    norm: str
    scale: torch.Tensor
    shift: torch.Tensor
    module: object = None
    warnings: tuple = ()

    def apply(self, state):
        weight = f"{self.norm}.weight"
        dtype = state[weight].dtype
        return without(state, self.norm) | {weight: self.scale.reshape(-1, 1, 1).to(dtype), f"{self.norm}.bias": self.shift.to(dtype)}

    def undo(self, learned):
        weight, bias = (learned[f"{self.norm}.{name}"] for name in ("weight", "bias"))
        return learned | {f"{self.norm}.{name}": value for name, value in identity(self.module, weight.flatten(), bias).items()}

    def text(self):
        return f"{self.norm}: its statistics are in its weight and bias now"


@dataclass
class Normalized:
    """(x - mean) / std by two tensors of the state_dict, as such a convolution: its weight is 1 / std, its bias -mean / std."""
    layer: str
    mean: str
    std: str
    shapes: tuple = ()  # of mean and std, for undo
    warnings: tuple = ()

    def apply(self, state):
        mean, std = (state[name].double().flatten() for name in (self.mean, self.std))
        dtype = state[self.std].dtype
        rest = {name: value for name, value in state.items() if name not in (self.mean, self.std)}
        return rest | {f"{self.layer}.weight": (1 / std).reshape(-1, 1, 1).to(dtype), f"{self.layer}.bias": (-mean / std).to(dtype)}

    def undo(self, learned):
        weight, bias = (learned[f"{self.layer}.{name}"] for name in ("weight", "bias"))
        scale = weight.double().flatten()
        if not bool((scale != 0).all()):
            raise ValueError(f"{self.layer}.weight has a zero, and {self.std} is its inverse")
        rest = {name: value for name, value in learned.items() if not name.startswith(f"{self.layer}.")}
        values = {self.mean: -bias.double() / scale, self.std: 1 / scale}
        return rest | {name: value.to(weight.dtype).reshape(shape) for (name, value), shape in zip(values.items(), self.shapes)}

    def text(self):
        return f"{self.mean}, {self.std}: from {self.layer}"


@dataclass
class Scaled:
    """A tensor times a constant, which forward multiplies a value by."""
    tensor: str
    factor: float
    warnings = ()

    def apply(self, state):
        value = state[self.tensor]
        return state | {self.tensor: (value.double() * self.factor).to(value.dtype)}

    def undo(self, learned):
        value = learned[self.tensor]
        return learned | {self.tensor: (value.double() / self.factor).to(value.dtype)}

    def text(self):
        return f"{self.tensor}: divided by {self.factor:.6g}, which forward multiplies by"


def runs(numbers):
    """Numbers as [first, step, count] of each run."""
    found = []
    for number in numbers:
        last = found[-1] if found else None
        if last and (last[2] == 1 or number == last[0] + last[1] * last[2]):
            last[1:] = [number - last[0], 2] if last[2] == 1 else [last[1], last[2] + 1]
        else:
            found.append([number, 0, 1])
    return found


def numbers_of(found):
    return [first + step * index for first, step, count in found for index in range(count)]


@dataclass
class Part:
    """Rows of a tensor: number [i, j] is that of `source` at rows[i] + columns[j], times a factor. Without a source, rows that no tensor has."""
    source: str
    rows: list
    columns: list
    factor: float
    count: int

    def takes(self, other):
        return (self.source, self.columns, self.factor) == (other.source, other.columns, other.factor)

    def extend(self, other):
        self.rows += other.rows
        self.count += other.count

    def index(self):
        return torch.tensor(self.rows)[:, None] + torch.tensor(self.columns)

    def packed(self):
        return [self.source, runs(self.rows), runs(self.columns), self.factor] if self.source else [None, self.count]


@dataclass
class Taken:
    """Tensors that are slices, permutations or stacks of others: by name, the shape and the parts in order of their rows."""
    tensors: dict
    own: dict = field(default_factory=dict)  # the state_dict of the module, for undo
    warnings = ()

    def names(self):
        return list(self.tensors)

    def homeless(self):
        """Tensors that no tensor of the module has."""
        return [name for name, (_, parts) in self.tensors.items() if not any(part.source for part in parts)]

    def sources(self):
        return {part.source for _, parts in self.tensors.values() for part in parts if part.source}

    def apply(self, state):
        made = {}
        for name, (shape, parts) in self.tensors.items():
            width = math.prod(shape[1:])
            rows = [state[part.source].reshape(-1)[part.index()].double() * part.factor if part.source else torch.zeros(part.count, width).double()
                    for part in parts]
            made[name] = torch.cat(rows).reshape(shape).float() if parts else torch.zeros(shape)
        return {name: value for name, value in state.items() if name not in self.sources()} | made

    def undo(self, learned):
        found = {source: self.own[source].detach().clone() for source in self.sources()}
        for name, (shape, parts) in self.tensors.items():
            rows, at = learned[name].reshape(shape[0] if shape else 1, -1), 0
            for part in parts:
                if part.source:
                    found[part.source].view(-1)[part.index()] = (rows[at:at + part.count].double() / part.factor).to(found[part.source].dtype)
                at += part.count
        return {name: value for name, value in learned.items() if name not in self.tensors} | found

    def text(self):
        return "\n".join(f"{', '.join(sorted({part.source for part in parts if part.source})) or 'no tensor of the module'}: from {name}"
                         for name, (_, parts) in self.tensors.items())


@dataclass
class LeftOut:
    """Tensors that no layer reads, and second names of tied ones: they stay in the module as they are."""
    tensors: list
    own: dict = field(default_factory=dict)
    warnings = ()

    def apply(self, state):
        return {name: value for name, value in state.items() if name not in self.tensors}

    def undo(self, learned):
        found = dict(learned)
        for name in self.tensors:
            first = next((other for other in learned if other in self.own and same_storage(self.own[other], self.own[name])), None)
            found[name] = learned[first] if first is not None else self.own[name].detach()
        return found

    def text(self):
        return f"{len(self.tensors)} tensors that no layer reads: as they were"


def same_storage(a, b):
    return a is b or a.shape == b.shape and a.data_ptr() == b.data_ptr() and a.numel() > 0


def metadata_of(changes):
    kinds = {FOLDED: {change.norm: change.layer for change in changes if isinstance(change, Folded)},
             ALONE: [change.norm for change in changes if isinstance(change, Alone)],
             NORMALIZED: {change.layer: [change.mean, change.std] for change in changes if isinstance(change, Normalized)},
             SCALED: {change.tensor: change.factor for change in changes if isinstance(change, Scaled)},
             TAKEN: {name: [shape, [part.packed() for part in parts]] for change in changes if isinstance(change, Taken)
                     for name, (shape, parts) in change.tensors.items()},
             LEFT_OUT: [name for change in changes if isinstance(change, LeftOut) for name in change.tensors]}
    return {key: json.dumps(value, separators=(",", ":") if key == TAKEN else None) for key, value in kinds.items() if value} or None


def entry_of(metadata, key, kind):
    """An entry of the metadata; None where it is damaged."""
    try:
        found = json.loads(metadata.get(key, json.dumps(kind())))
    except (TypeError, ValueError):
        return None
    return found if isinstance(found, kind) else None


def taken_of(metadata, file, state):
    """The tensors that are made of others, and those that are left out."""
    found, entries = [], entry_of(metadata, TAKEN, dict)
    left = entry_of(metadata, LEFT_OUT, list)
    if left is None or not all(isinstance(name, str) and name in state for name in left):
        raise ValueError(f"{file}: tensors were left out that the module does not have: {left}")
    if left:
        found.append(LeftOut(left, state))
    try:
        tensors = {name: (shape, [Part(part[0], numbers_of(part[1]), numbers_of(part[2]), float(part[3]), sum(run[2] for run in part[1])) if part[0] else
                                  Part(None, [], [], 1.0, part[1]) for part in parts]) for name, (shape, parts) in entries.items()}
        for shape, parts in tensors.values():
            fits = all(part.source is None or part.factor and 0 <= int(part.index().min()) and int(part.index().max()) < state[part.source].numel()
                       and len(part.columns) == math.prod(shape[1:]) for part in parts)
            if not fits or parts and sum(part.count for part in parts) != (shape[0] if shape else 1):
                raise ValueError
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, RuntimeError):
        raise ValueError(f"{file}: its tensors are parts of others that the module does not have") from None
    return [*found, Taken(tensors, state)] if tensors else found


def changes_of(module, metadata, file):
    """The changes that a file's tensors have, for a module of the same kind. Factors come last, as they do in an export."""
    found, modules, state = [], dict(module.named_modules()), module.state_dict(keep_vars=True)
    found += taken_of(metadata, file, state)
    made = {name for change in found if isinstance(change, Taken) for name in change.tensors}

    def norm_of(path):
        norm = modules.get(path) if isinstance(path, str) else None
        return norm if isinstance(norm, torch.nn.modules.batchnorm._BatchNorm) and norm.running_var is not None else None

    def numbers(norm):
        return scale_and_shift(norm.running_mean, norm.running_var, norm.weight, norm.bias, norm.eps)

    pairs = entry_of(metadata, FOLDED, dict)
    for path, layer in pairs.items() if pairs is not None else [(FOLDED, None)]:
        norm = norm_of(path)
        if norm is None or not isinstance(layer, str) or layer == path or f"{layer}.weight" not in made and \
                norm.num_features not in getattr(getattr(modules.get(layer), "weight", None), "shape", ()):
            raise ValueError(f"{file}: BatchNorm {path} was folded into {layer}, and the module has no such layers")
        fold = Folded(path, layer, *numbers(norm), norm)
        fold.biased = fold.names()[1] in state
        found.append(fold)
    paths = entry_of(metadata, ALONE, list)
    for path in paths if paths is not None else [ALONE]:
        norm = norm_of(path)
        if norm is None or not norm.affine:
            raise ValueError(f"{file}: the file has a BatchNorm {path} with weights, and the module has not")
        found.append(Alone(path, *numbers(norm), norm))
    names = entry_of(metadata, NORMALIZED, dict)
    for layer, pair in names.items() if names is not None else [(NORMALIZED, None)]:
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(name, str) and name in state for name in pair) or \
                len({state[name].numel() for name in pair}) > 1:
            raise ValueError(f"{file}: {layer} was made of {pair}, and the module has no such tensors")
        found.append(Normalized(layer, *pair, tuple(state[name].shape for name in pair)))
    factors = entry_of(metadata, SCALED, dict)
    for tensor, factor in factors.items() if factors is not None else [(SCALED, None)]:
        known = tensor in state or tensor in made or any(tensor in change.names() for change in found if isinstance(change, Folded))
        if not known or type(factor) not in (int, float) or not math.isfinite(factor) or factor == 0:
            raise ValueError(f"{file}: {tensor} was multiplied by {factor}, and the module has no such tensor")
        found.append(Scaled(tensor, factor))
    return found
