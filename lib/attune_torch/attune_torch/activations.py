"""attune's activation functions, one line each: everything in Python that knows them reads this table."""
import math
from typing import Callable, NamedTuple

import torch
import torch.nn.functional as F


class Activation(NamedTuple):
    """Its formula, and its names in a config.json of Hugging Face."""
    formula: Callable
    hugging_face: tuple = ()


# By the enumerators of attune::Activation.
ACTIVATIONS = {
    "kRelu": Activation(F.relu, ("relu",)),
    "kSilu": Activation(F.silu, ("silu", "swish")),
    "kGelu": Activation(lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2))), ("gelu", "gelu_python")),
    "kGeluTanh": Activation(lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
                            ("gelu_new", "gelu_pytorch_tanh", "gelu_fast")),
    "kTanh": Activation(torch.tanh, ("tanh",)),
    "kSigmoid": Activation(torch.sigmoid, ("sigmoid",)),
    "kQuickGelu": Activation(lambda x: x * torch.sigmoid(1.702 * x), ("quick_gelu",)),
    "kSquaredRelu": Activation(lambda x: F.relu(x).square(), ("relu2",)),
    "kHardSwish": Activation(lambda x: x * F.relu6(x + 3) / 6, ("hardswish",)),
    "kElu": Activation(F.elu, ("elu",)),
}
