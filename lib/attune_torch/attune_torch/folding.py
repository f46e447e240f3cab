"""BatchNorm as a part of the convolution or Linear before it: y = (w·x + b)·scale + shift for each feature, in evaluation."""
import json
from dataclasses import dataclass

import torch

FOLDED = "attune.folded"  # in a file's metadata: of each folded BatchNorm, the layer that it was folded into, as JSON


@dataclass
class Folded:
    """A BatchNorm in the layer before it."""
    norm: str   # path of the BatchNorm
    layer: str  # path of the layer
    scale: torch.Tensor
    shift: torch.Tensor

    @classmethod
    def of(cls, norm, layer, mean, variance, weight, bias, epsilon):
        scale = torch.rsqrt(variance.double() + epsilon) * (weight.double() if weight is not None else 1)
        return cls(norm, layer, scale, (bias.double() if bias is not None else 0) - mean.double() * scale)

    def names(self):
        """Of the layer's weight and bias."""
        return [f"{self.layer}.{name}" if self.layer else name for name in ("weight", "bias")]

    def apply(self, state):
        """The state_dict without the BatchNorm."""
        weight, bias = self.names()
        scale = self.scale.reshape(-1, *[1] * (state[weight].dim() - 1))
        shift = self.shift + (state[bias].double() * self.scale if bias in state else 0)
        state = {name: value for name, value in state.items() if name.rpartition(".")[0] != self.norm}
        return state | {weight: (state[weight].double() * scale).to(state[weight].dtype), bias: shift.to(state[weight].dtype)}

    def undo(self, learned, norm, biased):
        """The state_dict with the BatchNorm `norm`, which is the identity; it has the bias where the layer has none."""
        bias = self.names()[1]
        rest = {name: value for name, value in learned.items() if biased or name != bias}
        shift = torch.zeros_like(learned[bias]) if biased else learned[bias]
        found = {"running_mean": torch.zeros_like(shift) if norm.affine else -shift, "running_var": torch.ones_like(shift) - norm.eps}
        if norm.affine:
            found |= {"weight": torch.ones_like(shift), "bias": shift}
        if norm.num_batches_tracked is not None:
            found["num_batches_tracked"] = norm.num_batches_tracked
        return rest | {f"{self.norm}.{name}": value for name, value in found.items()}


def metadata_of(folds):
    return {FOLDED: json.dumps({fold.norm: fold.layer for fold in folds})} if folds else None


def folds_of(module, metadata, file):
    """The BatchNorms of the module that were folded for a file, as (BatchNorm, Folded)."""
    found, modules = [], dict(module.named_modules())
    try:
        pairs = json.loads(metadata.get(FOLDED, "{}"))
    except (TypeError, ValueError):
        pairs = None
    for path, layer in pairs.items() if isinstance(pairs, dict) else [(FOLDED, pairs)]:
        norm = modules.get(path)
        if not isinstance(layer, str) or not isinstance(norm, torch.nn.modules.batchnorm._BatchNorm) or norm.running_var is None or layer == path or \
                norm.num_features not in getattr(getattr(modules.get(layer), "weight", None), "shape", ()):
            raise ValueError(f"{file}: BatchNorm {path} was folded into {layer}, and the module has no such layers")
        found.append((norm, Folded.of(path, layer, norm.running_mean, norm.running_var, norm.weight, norm.bias, norm.eps)))
    return found
