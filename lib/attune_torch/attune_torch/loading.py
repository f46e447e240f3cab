"""What a board has learned, in PyTorch again."""
import torch

from . import tensors
from .folding import folds_of


def load(module, file, say=print):
    """Loads a file that a board exported into the module: strict, as load_state_dict, and with the shapes of the module. Says
    of each tensor how far it moved. A BatchNorm that the export folded becomes the identity: the layer before it has the
    folded weight, and the bias where it has one; else the bias is BatchNorm's. Answers the norms of the differences by name.
    Nothing is changed where it raises."""
    learned, metadata = tensors.read_all(file)
    state = module.state_dict()
    folds = folds_of(module, metadata, file)
    for _, fold in folds:
        state = fold.apply(state)
    for name in tensors.conv1d_weights(module) & set(learned):
        learned[name] = learned[name].t()
    missing, unknown = sorted(set(state) - set(learned)), sorted(set(learned) - set(state))
    if missing or unknown:
        raise ValueError(f"{file} is not of this module: " + "; ".join(
            text for text in (f"missing {', '.join(missing)}" if missing else "", f"unknown {', '.join(unknown)}" if unknown else "")
            if text))
    for name, value in learned.items():
        if tuple(value.shape) != tuple(state[name].shape):
            raise ValueError(f"{file}: {name} is {list(value.shape)}, and the module's is {list(state[name].shape)}")
        if value.is_floating_point() != state[name].is_floating_point():
            raise ValueError(f"{file}: {name} has numbers of {str(value.dtype).removeprefix('torch.')}, and the module's of "
                             f"{str(state[name].dtype).removeprefix('torch.')}")
        if value.is_floating_point() and not torch.isfinite(value).all():
            raise ValueError(f"{file}: {name} has numbers that are not finite")
    moved = {name: float((value.double() - state[name].double()).norm()) for name, value in learned.items()}
    own = module.state_dict()
    for norm, fold in folds:
        learned = fold.undo(learned, norm, fold.names()[1] in own)
    module.load_state_dict({name: value.to(own[name].dtype) for name, value in learned.items()}, strict=True)
    for name, distance in moved.items():
        say(f"{name}: moved by {distance:.6g}" if distance else f"{name}: as it was")
    for _, fold in folds:
        say(f"{fold.norm}: folded into {fold.layer}, and the identity now")
    return moved
