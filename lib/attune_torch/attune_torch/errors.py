"""What attune_torch raises. Without PyTorch, which `check` and `receive` do not need."""


class Unsupported(Exception):
    """What attune has no layer for: module path, operation, shapes and the line of `forward`."""


class CheckFailed(Exception):
    """Numbers differ, or the model does not build; the text says where."""


class ExportWarning(UserWarning):
    """A model that is exported, and a number in it that will surprise."""
