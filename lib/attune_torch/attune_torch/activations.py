"""attune's activation functions, one line each: everything in Python that knows them reads this table."""
import math
from dataclasses import dataclass, field
from typing import Callable

import torch
import torch.nn.functional as F


@dataclass(frozen=True)
class Activation:
    """Its formula, PyTorch's operations that always compute it, and its names in a config.json of Hugging Face."""
    formula: Callable
    operations: list = field(default_factory=list)
    hugging_face: list = field(default_factory=list)


# By the enumerators of attune::Activation.
ACTIVATIONS = {
    "kRelu": Activation(F.relu, ["relu", "relu_"], ["relu"]),
    "kSilu": Activation(F.silu, ["silu", "swish"], ["silu", "swish"]),
    "kGelu": Activation(lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))), [], ["gelu", "gelu_python"]),
    "kGeluTanh": Activation(lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))), [],
                            ["gelu_new", "gelu_pytorch_tanh", "gelu_fast"]),
    "kTanh": Activation(torch.tanh, ["tanh"], ["tanh"]),
    "kSigmoid": Activation(torch.sigmoid, ["sigmoid"], ["sigmoid"]),
    "kQuickGelu": Activation(lambda x: x * torch.sigmoid(1.702 * x), [], ["quick_gelu"]),
    "kSquaredRelu": Activation(lambda x: F.relu(x).square(), [], ["relu2"]),
    "kHardSwish": Activation(lambda x: x * F.relu6(x + 3) / 6, ["hardswish", "hardswish_"], ["hardswish"]),
    "kElu": Activation(F.elu, ["elu", "elu_"], ["elu"]),
}
