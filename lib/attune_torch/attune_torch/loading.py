"""What a board has learned, in PyTorch again."""
import torch

from . import tensors
from .folding import LeftOut, Taken, changes_of


def load(module, file, say=print):
    """Loads a file that a board exported into the module: strict, as load_state_dict, and with the shapes of the module. Says
    of each tensor how far it moved, as it is in the file. What the export changed is changed back (folding.py): a BatchNorm in the
    layer before it becomes the identity, and has the bias where the layer has none; factors of forward are divided out. Answers the
    norms of the differences by name. Nothing is changed where it raises."""
    learned, metadata = tensors.read_all(file)
    state = module.state_dict()
    changes = changes_of(module, metadata, file)
    for change in changes:
        state = change.apply(state)
    made = {name for change in changes if isinstance(change, Taken) for name in change.tensors}
    for name in list(learned):  # second names of tied tensors, which the export leaves out
        if name not in state and any(isinstance(change, LeftOut) and name in change.tensors for change in changes):
            del learned[name]
    for name in tensors.conv1d_weights(module) & set(learned) - made:
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
    homeless = {name for change in changes if isinstance(change, Taken) for name in change.homeless()}
    moved = {name: float((value.double() - state[name].double()).nan_to_num().norm()) for name, value in learned.items() if name not in homeless}
    own = module.state_dict()
    for change in reversed(changes):
        learned = change.undo(learned)
    module.load_state_dict({name: value.to(own[name].dtype) for name, value in learned.items()}, strict=True)
    for name, distance in moved.items():
        say(f"{name}: moved by {distance:.6g}" if distance else f"{name}: as it was")
    for change in changes:
        say(change.text())
    return moved
