""".safetensors files as tensors of PyTorch."""
import ctypes

import torch

from . import safetensors_file

TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
         "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8,
         "BOOL": torch.bool}
NAMES = {dtype: name for name, dtype in TYPES.items()}


def conv1d_weights(module):
    """Names of weights that are [in, out], as Hugging Face's Conv1D has them. In attune's files they are [out, in], so that a
    device multiplies with them in place."""
    return {f"{path}.weight" for path, inside in module.named_modules() if type(inside).__name__ == "Conv1D"}


def write(path, tensors, metadata=None):
    """Tensors by name, the largest alignment first, as the format's own library orders them."""
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    with open(path, "wb") as file:
        file.write(safetensors_file.beginning({name: (NAMES[tensors[name].dtype], tensors[name].shape) for name in order}, metadata))
        for name in order:
            tensor = tensors[name].detach().cpu().contiguous()
            file.write(ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()))


def read(path):
    """Tensors by name, without those of types that PyTorch does not have."""
    return {name: tensor_of(*entry) for name, entry in safetensors_file.read(path)[0].items() if entry[0] in TYPES}


def read_all(path):
    """Tensors by name, and the metadata. Raises ValueError of a file that is damaged, or has numbers of another type."""
    found, metadata = safetensors_file.read(path)
    unknown = next((name for name, (dtype, *_) in found.items() if dtype not in TYPES), None)
    if unknown is not None:
        raise ValueError(f"{path}: {unknown} has numbers of {found[unknown][0]}, which cannot be read")
    return {name: tensor_of(*entry) for name, entry in found.items()}, metadata


def tensor_of(dtype, shape, data):
    numbers = torch.frombuffer(bytearray(data), dtype=TYPES[dtype]) if len(data) else torch.empty(0, dtype=TYPES[dtype])
    return numbers.reshape(shape)
