"""Tensors that are others in attune's file than in the state_dict: how they get there, and how what a board learned comes back.

Each change has `apply(state)`, from the state_dict to the file, and `undo(learned)`. A file's metadata names the changes, so that
`load` undoes them in a module of the same kind.
"""
import json
import math
import operator
from dataclasses import dataclass, field

import torch

FOLDED = "attune.folded"          # of each BatchNorm in the layer before it, that layer
ALONE = "attune.alone"            # BatchNorms that are a layer
NORMALIZED = "attune.normalized"  # of each layer that normalizes by buffers, their names
SCALED = "attune.scaled"          # of each tensor, the factor that it was multiplied by
SHIFTED = "attune.shifted"        # of each tensor, the number that was added to it
TAKEN = "attune.taken"            # of each tensor that is made of parts of others, its shape and the parts
LEFT_OUT = "attune.left_out"      # tensors that no layer reads
KINDS = {FOLDED: dict, ALONE: list, NORMALIZED: dict, SCALED: dict, SHIFTED: dict, TAKEN: dict, LEFT_OUT: list}


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


def identity(norm, weight, bias):
    """The tensors of a BatchNorm whose statistics do nothing."""
    found = {"running_mean": torch.zeros_like(bias) if norm.affine else -bias, "running_var": torch.ones_like(bias) - norm.eps}
    if norm.affine:
        found |= {"weight": weight, "bias": bias}
    if norm.num_batches_tracked is not None:
        found["num_batches_tracked"] = norm.num_batches_tracked
    return found


class Change:
    """`key` of the metadata, where `entries()` are its pairs or names; `sources()`: tensors of the module that it stands for."""
    warnings = ()

    def sources(self):
        return set()


@dataclass
class Folded(Change):
    """A BatchNorm in the convolution or Linear before it; without one, as a convolution of one token and one feature."""
    norm: str   # path of the BatchNorm
    layer: str  # path of the layer, or None
    scale: torch.Tensor
    shift: torch.Tensor
    module: object = None  # the BatchNorm, and whether the layer has a bias, for undo
    biased: bool = False
    warnings: tuple = ()

    @property
    def key(self):
        return ALONE if self.layer is None else FOLDED

    def entries(self):
        return [self.norm] if self.layer is None else [(self.norm, self.layer)]

    def sources(self):
        return {f"{self.norm}.{leaf}" for leaf in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")}

    def names(self):
        """Of the layer's weight and bias."""
        path = self.norm if self.layer is None else self.layer
        return [f"{path}.{name}" if path else name for name in ("weight", "bias")]

    def apply(self, state):
        """The state_dict without the BatchNorm."""
        (weight, bias), shift = self.names(), self.shift
        dtype = state[weight].dtype
        before = torch.ones(len(self.scale), 1, 1).double() if self.layer is None else state[weight].double()
        if self.layer is not None and bias in state:
            shift = shift + state[bias].double() * self.scale
        rest = {name: value for name, value in state.items() if name.rpartition(".")[0] != self.norm}
        return rest | {weight: (before * self.scale.reshape(-1, *[1] * (before.dim() - 1))).to(dtype), bias: shift.to(dtype)}

    def undo(self, learned):
        """The state_dict with a BatchNorm that is the identity; it has the bias where the layer has none, and both where there is no layer."""
        weight, bias = self.names()
        rest = {name: value for name, value in learned.items() if self.biased or name != bias}
        shift = torch.zeros_like(learned[bias]) if self.biased else learned[bias]
        scale = learned[weight].flatten() if self.layer is None else torch.ones_like(shift)
        return rest | {f"{self.norm}.{name}": value for name, value in identity(self.module, scale, shift).items()}

    def text(self):
        return f"{self.norm}: " + ("its statistics are in its weight and bias now" if self.layer is None else f"folded into {self.layer}, and the identity now")


@dataclass
class Normalized(Change):
    """(x - mean) / std by two tensors of the state_dict, as such a convolution: its weight is 1 / std, its bias -mean / std."""
    layer: str
    mean: str
    std: str
    shapes: tuple = ()  # of mean and std, for undo
    warnings: tuple = ()
    key = NORMALIZED

    def entries(self):
        return [(self.layer, [self.mean, self.std])]

    def sources(self):
        return {self.mean, self.std}

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
class Scaled(Change):
    """A tensor times a constant, which forward multiplies a value by."""
    tensor: str
    number: float
    key, done, undone, words = SCALED, operator.mul, operator.truediv, "divided by {:.6g}, which forward multiplies by"

    def entries(self):
        return [(self.tensor, self.number)]

    def changed(self, state, operation):
        value = state[self.tensor]
        return state | {self.tensor: operation(value.double(), self.number).to(value.dtype)}

    def apply(self, state):
        return self.changed(state, self.done)

    def undo(self, learned):
        return self.changed(learned, self.undone)

    def text(self):
        return f"{self.tensor}: {self.words.format(self.number)}"


class Shifted(Scaled):
    """A tensor and a number, which forward adds to it."""
    key, done, undone, words = SHIFTED, operator.add, operator.sub, "less {:.6g}, which forward adds"


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
class Taken(Change):
    """Tensors that are slices, permutations or stacks of others: by name, the shape and the parts in order of their rows."""
    tensors: dict
    own: dict = field(default_factory=dict)  # the state_dict of the module, for undo
    key = TAKEN

    def entries(self):
        return [(name, [shape, [part.packed() for part in parts]]) for name, (shape, parts) in self.tensors.items()]

    def homeless(self):
        """Tensors that no tensor of the module has."""
        return [name for name, (_, parts) in self.tensors.items() if not any(part.source for part in parts)]

    def sources(self):
        return {part.source for _, parts in self.tensors.values() for part in parts if part.source}

    def apply(self, state):
        """NaN stands for numbers that no tensor of the module has."""
        made = {}
        for name, (shape, parts) in self.tensors.items():
            width = math.prod(shape[1:])
            rows = [state[part.source].reshape(-1)[part.index()].double() * part.factor if part.source else torch.full((part.count, width), math.nan).double()
                    for part in parts]
            made[name] = torch.cat(rows).reshape(shape).float() if parts else torch.zeros(shape)
        return {name: value for name, value in state.items() if name not in self.sources()} | made

    def undo(self, learned):
        found = {source: self.own[source].detach().clone(memory_format=torch.contiguous_format) for source in self.sources()}
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
class LeftOut(Change):
    """Tensors that no layer reads, and second names of tied ones: they stay in the module as they are."""
    tensors: list
    own: dict = field(default_factory=dict)
    key = LEFT_OUT

    def entries(self):
        return self.tensors

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


def in_order(changes):
    """As an export makes them: tensors that are left out or made of others, what is folded into layers, factors."""
    return sorted(changes, key=lambda change: (LEFT_OUT, TAKEN, FOLDED, ALONE, NORMALIZED, SHIFTED, SCALED).index(change.key))


def metadata_of(changes):
    found = {key: [entry for change in changes if change.key == key for entry in change.entries()] for key in KINDS}
    return {key: json.dumps(KINDS[key](entries), separators=(",", ":") if key == TAKEN else None) for key, entries in found.items() if entries} or None


def entries_of(metadata, key):
    """An entry's pairs, or names beside None; where it is damaged, its key beside None."""
    try:
        found = json.loads(metadata[key]) if key in metadata else KINDS[key]()
    except (TypeError, ValueError):
        found = None
    if not isinstance(found, KINDS[key]):
        return [(key, None)]
    return list(found.items()) if isinstance(found, dict) else [(name, None) for name in found]


def taken_of(metadata, state):
    """The tensors that are made of others. Raises of entries that are not of this state_dict."""
    tensors = {name: (shape, [Part(part[0], numbers_of(part[1]), numbers_of(part[2]), float(part[3]), sum(run[2] for run in part[1])) if part[0] else
                              Part(None, [], [], 1.0, part[1]) for part in parts]) for name, (shape, parts) in entries_of(metadata, TAKEN)}
    for shape, parts in tensors.values():
        fits = all(part.source is None or part.factor and 0 <= int(part.index().min()) and int(part.index().max()) < state[part.source].numel()
                   and len(part.columns) == math.prod(shape[1:]) for part in parts)
        if not fits or parts and sum(part.count for part in parts) != (shape[0] if shape else 1):
            raise ValueError
    return tensors


def changes_of(module, metadata, file):
    """The changes that a file's tensors have, for a module of the same kind, in the order of an export."""
    modules, state = dict(module.named_modules()), module.state_dict(keep_vars=True)
    left = [name for name, _ in entries_of(metadata, LEFT_OUT)]
    if not all(isinstance(name, str) and name in state for name in left):
        raise ValueError(f"{file}: tensors were left out that the module does not have: {left}")
    try:
        made = taken_of(metadata, state)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, RuntimeError):
        raise ValueError(f"{file}: its tensors are parts of others that the module does not have") from None
    found = [LeftOut(left, state)] * bool(left) + [Taken(made, state)] * bool(made)

    def fold(path, layer):
        """The BatchNorm of a path, in a layer; None if the module has none there."""
        norm = modules.get(path) if isinstance(path, str) else None
        if not isinstance(norm, torch.nn.modules.batchnorm._BatchNorm) or norm.running_var is None:
            return None
        fold = Folded(path, layer, *scale_and_shift(norm.running_mean, norm.running_var, norm.weight, norm.bias, norm.eps), norm)
        fold.biased = layer is not None and (fold.names()[1] in state or fold.names()[1] in made)
        return fold

    for path, layer in entries_of(metadata, FOLDED):
        known = fold(path, layer) if isinstance(layer, str) and layer != path else None
        if known is None or f"{layer}.weight" not in made and known.module.num_features not in getattr(getattr(modules.get(layer), "weight", None), "shape", ()):
            raise ValueError(f"{file}: BatchNorm {path} was folded into {layer}, and the module has no such layers")
        found.append(known)
    for path, _ in entries_of(metadata, ALONE):
        known = fold(path, None)
        if known is None or not known.module.affine:
            raise ValueError(f"{file}: the file has a BatchNorm {path} with weights, and the module has not")
        found.append(known)
    for layer, pair in entries_of(metadata, NORMALIZED):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(name, str) and name in state for name in pair) or \
                len({state[name].numel() for name in pair}) > 1:
            raise ValueError(f"{file}: {layer} was made of {pair}, and the module has no such tensors")
        found.append(Normalized(layer, *pair, tuple(state[name].shape for name in pair)))
    known = {*state, *made, *(name for change in found if change.key == FOLDED for name in change.names())}
    for kind, words in ((Shifted, "{1} was added to {0}"), (Scaled, "{0} was multiplied by {1}")):
        for tensor, number in entries_of(metadata, kind.key):
            if tensor not in known or type(number) not in (int, float) or not math.isfinite(number) or number == 0:
                raise ValueError(f"{file}: {words.format(tensor, number)}, and the module has no such tensor")
            found.append(kind(tensor, number))
    return found
