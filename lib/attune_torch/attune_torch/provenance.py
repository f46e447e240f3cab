"""Which numbers of a forward pass come from the input, and from which tensors of the state_dict: seen below Python, where views, indices,
scripted functions and in-place operations are operations like others."""
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

INPUT = 1  # the bit of the model's input; each tensor of the state_dict has one of the next
# Operations that take from a tensor its shape, type and device alone.
SHAPES = ("empty", "full", "zeros", "ones", "rand", "randn", "randint")
OF_SHAPES = {f"new_{name}" for name in SHAPES} | {f"{name}_like" for name in SHAPES}
# Operations that an index in brackets is made of.
INDICES = {"select", "slice", "index", "unsqueeze"}
# Operations that answer a number or a bool of Python.
DECISIONS = {"_local_scalar_dense", "is_nonzero", "equal"}


def storage_of(tensor):
    storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()
    return storage, storage.data_ptr()


class Provenance(TorchDispatchMode):
    """`with Provenance(state, inputs, recording): output = module(*inputs)`. Every storage has a set of origins, as bits: those of everything
    that was ever written to it. `recording.decide(name)` is called where numbers of the input become numbers of Python."""

    def __init__(self, state, inputs, recording):
        super().__init__()
        self.origins, self.alive, self.recording = {}, [], recording
        self.names = list(state)
        for bit, tensor in enumerate(state.values(), 1):
            self.add(tensor, 1 << bit)
        for tensor in inputs:
            self.add(tensor, INPUT)

    def add(self, tensor, origins):
        storage, key = storage_of(tensor)
        if key:
            self.origins[key] = self.origins.get(key, 0) | origins
            self.alive.append(storage)  # an address is not used again while its storage lives

    def of(self, tensor):
        """The origins of a tensor's storage."""
        return self.origins.get(storage_of(tensor)[1], 0) if tensor.layout is torch.strided else INPUT

    def is_of_input(self, tensor):
        return bool(self.of(tensor) & INPUT)

    def names_of(self, tensor):
        """The names of the tensors of the state_dict that it was computed from."""
        origins = self.of(tensor)
        return {name for bit, name in enumerate(self.names, 1) if origins >> bit & 1}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.recording.depth += 1
        try:
            return self.dispatch(function, args, kwargs or {})
        finally:
            self.recording.depth -= 1

    def dispatch(self, function, args, kwargs):
        name = function._schema.name.rpartition("::")[2]
        given = [item for item in tree_flatten((args, kwargs))[0] if isinstance(item, torch.Tensor)]
        origins = 0
        for tensor in given:
            origins |= self.of(tensor)
        # PyTorch 1.13 shows x[0] and x[1:] here alone; the recording takes them where they are of the input.
        shown = bool(origins & INPUT and name in INDICES)
        self.recording.depth -= shown
        try:
            output = function(*args, **kwargs)
        finally:
            self.recording.depth += shown
        if name in DECISIONS and origins & INPUT and self.recording.depth == 1:
            self.recording.decide(name)
        keys = {storage_of(tensor)[1] for tensor in given if tensor.layout is torch.strided}
        for argument, value in zip(function._schema.arguments, args):
            if argument.alias_info is not None and argument.alias_info.is_write and isinstance(value, torch.Tensor):
                self.add(value, origins)
        for tensor in tree_flatten(output)[0]:
            if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
                continue
            storage, key = storage_of(tensor)
            if key and key not in keys:  # a storage of its own, not a view
                self.origins[key] = 0 if name in OF_SHAPES else origins
                self.alive.append(storage)
        return output
