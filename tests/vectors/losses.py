"""attune's losses of an output and a target of one shape, one line each: the vectors, their comparison and drawn programs read this table, and
tests/packaging/lists compares it with the library. PyTorch is needed only to call a formula."""
from dataclasses import dataclass, field
from typing import Callable


@dataclass(frozen=True)
class Loss:
    """Its type in namespace attune, from options by PyTorch's names; its formula, of torch.nn.functional, output and target; the options of its
    vectors, by the ends of their names; the values of options to draw."""
    cpp: Callable
    formula: Callable
    vectors: dict
    drawn: dict = field(default_factory=dict)

    def default(self):
        """The C++ type of the first vector's options."""
        return self.cpp(**{name: CPP.get(value, value) for name, value in next(iter(self.vectors.values())).items()})


CPP = {"mean": "attune::Reduction::kMean", "sum": "attune::Reduction::kSum"}
MEAN_AND_SUM = {"mean": {"reduction": "mean"}, "sum": {"reduction": "sum"}}

LOSSES = {
    "mse": Loss(lambda reduction: f"SquaredError<{reduction}>", lambda F, y, target, **options: F.mse_loss(y, target, **options), MEAN_AND_SUM),
    "huber": Loss(lambda reduction, delta: f"Huber<attune::HuberOptions{{.reduction = {reduction}, .delta = {delta}}}>",
                  lambda F, y, target, **options: F.huber_loss(y, target, **options),
                  {"mean": {"reduction": "mean", "delta": 1.0}, "sum_delta": {"reduction": "sum", "delta": 0.3}}, {"delta": [0.1, 1.0, 3.0]}),
    "entropy": Loss(lambda reduction: "Entropy", lambda F, y, target, **_: (F.softmax(y, -1) * (target - F.log_softmax(y, -1))).sum(-1).mean(),
                    {"mean": {"reduction": "mean"}}, {"reduction": ["mean"]}),
}
