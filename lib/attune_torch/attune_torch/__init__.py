"""From torch.nn.Module to attune on a board, and back.

    import attune_torch
    attune_torch.export(module, sample_input, "gestures")     # a folder: C++ type, weights, samples, CMake
    attune_torch.export(*attune_torch.from_checkpoint("bert-tiny", tokens=32), "bert")  # a folder of Hugging Face
    module = attune_torch.from_onnx("model.onnx")             # or a file of torch.onnx; sample_input = module.sample_input()
    attune_torch.check("gestures", on="mps2_an386")           # builds it, runs it, names the first layer that differs
    attune_torch.load(module, "learned.safetensors")          # what a board has learned
    attune_torch.save_takes("takes.safetensors", x, y, user=user)   # takes of users, for python3 -m attune_torch fit --data
"""
import importlib

_PLACES = {"CheckFailed": "errors", "Unsupported": "errors", "check": "building", "export": "folder", "from_checkpoint": "families",
           "from_onnx": "onnx_file", "load": "loading", "receive": "building", "save_takes": "takes"}
__all__ = sorted(_PLACES)


def __getattr__(name):
    """Imports PyTorch only for what needs it: `check` and `receive` do without."""
    if name not in _PLACES:
        raise AttributeError(f"module 'attune_torch' has no attribute '{name}'")
    return getattr(importlib.import_module(f".{_PLACES[name]}", __name__), name)
