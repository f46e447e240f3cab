"""From torch.nn.Module to attune on a board, and back.

    import attune_torch
    attune_torch.export(module, sample_input, "gestures")     # a folder: C++ type, weights, samples, CMake
    attune_torch.export(*attune_torch.from_checkpoint("bert-tiny", tokens=32), "bert")  # a folder of Hugging Face
    attune_torch.check("gestures", on="mps2_an386")           # builds it, runs it, names the first layer that differs
    attune_torch.load(module, "learned.safetensors")          # what a board has learned
"""
from .building import check
from .families import from_checkpoint
from .folder import export
from .loading import load, receive
from .recording import Unsupported

__all__ = ["Unsupported", "check", "export", "from_checkpoint", "load", "receive"]
