"""From torch.nn.Module to attune on a board, and back.

    import attune_torch
    attune_torch.export(module, sample_input, "gestures")     # a folder: C++ type, weights, samples, CMake
    module = attune_torch.from_onnx("model.onnx")             # or a file of torch.onnx; sample_input = module.sample_input()
    attune_torch.check("gestures", on="mps2_an386")           # builds it, runs it, names the first layer that differs
    attune_torch.load(module, "learned.safetensors")          # what a board has learned
"""
from .building import check
from .folder import export
from .loading import load, receive
from .onnx_file import from_onnx
from .recording import Unsupported

__all__ = ["Unsupported", "check", "export", "from_onnx", "load", "receive"]
