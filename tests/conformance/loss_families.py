"""Families of losses."""
import math
import sys
from functools import partial
from pathlib import Path

from case_source import Case, Skip, as_rows, braces, concatenate, onnx_epsilon
from optimizer_types import torch_optimizer

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "vectors"))
from losses import CPP, LOSSES  # noqa: E402


# ---- Against values ----

REDUCTIONS = CPP


def value_loss(family, source):
    """A loss of tests/vectors/losses.py."""
    tensor = source.get("input")
    cols = tensor.shape[-1]
    rows = math.prod(tensor.shape[:-1])
    reduction = source.text("reduction")
    if reduction not in REDUCTIONS:
        raise Skip(f"reduction {reduction}: no such option")
    scalar = source.scalar("input")
    loss = LOSSES[family]
    options = {name: float(source.option(name, value)) for name, value in next(iter(loss.vectors.values())).items() if name != "reduction"}
    return Case(header="squared_error_case.hpp",
                call=f"squared_error_case<attune::{loss.cpp(reduction=REDUCTIONS[reduction], **options)}, {rows}, {cols}, {scalar}>",
                data={"input": tensor, "target": source.get("target", *tensor.shape)},
                expected={"loss": source.get("loss"), "grad.input": source.get("grad.input", *tensor.shape)},
                scalar=scalar, terms=rows * cols)


# ---- Against classes ----


def cross_entropy_case(source, logits, targets, reduction, expected, label_smoothing=0, ignore_index=-100,
                       class_weights=None, grad_out=None, epsilon=None):
    rows, classes = logits.shape
    if targets.dtype not in ("I32", "I64"):
        raise Skip(f"targets of type {targets.dtype}: a target is one class")
    if reduction not in (*REDUCTIONS, "none"):
        raise Skip(f"reduction {reduction}: no such option")
    if reduction == "mean" and targets.values and set(targets.values) == {ignore_index}:
        raise Skip("a mean of no target: not a number elsewhere, here 0")
    if not -2 ** 31 <= ignore_index < 2 ** 31:
        raise Skip(f"ignore_index {ignore_index}: no int")
    scalar = "float" if logits.dtype == "F32" else "double"
    options = "attune::CrossEntropyOptions" + braces(
        reduction=REDUCTIONS.get(reduction, REDUCTIONS["sum"]),
        label_smoothing=float(label_smoothing), ignore_index=ignore_index)
    reduced = "conformance::Reduced::" + ("kNo" if reduction == "none" else "kYes")
    data = {"logits": logits, "targets": targets}
    if class_weights is not None:
        data["class_weights"] = class_weights
    if grad_out is not None:
        data["grad_out"] = grad_out
    return Case(header="cross_entropy_case.hpp",
                call=f"cross_entropy_case<{options}, {reduced}, {rows}, {classes}, {scalar}>",
                data=data, expected=expected, scalar=scalar, terms=max(rows, classes), epsilon=epsilon)


def cross_entropy(source):
    """functional.cross_entropy, whose second axis is the classes; without reduction the gradient is that of
    sum(loss * grad_out)."""
    logits = source.get("logits")
    samples, classes, *rest = logits.shape
    reduction = source.text("reduction")
    ignore = source.text("ignore_index", "none")
    loss = source.get("loss")
    if loss.values and len(loss.values) != (samples * math.prod(rest) if reduction == "none" else 1):
        raise ValueError(f"loss is {loss.shape}, of logits {logits.shape} with reduction {reduction}")
    grad_out = None
    expected = {"loss": loss}
    if "grad.logits" in source:
        expected["grad.logits"] = as_rows(source.get("grad.logits", *logits.shape), 1)
        if reduction == "none":
            grad_out = source.get("grad_out")
            if len(grad_out.values) != len(loss.values):
                raise ValueError(f"grad_out is {grad_out.shape}, loss {loss.shape}")
    return cross_entropy_case(
        source, as_rows(logits, 1), source.get("target", samples, *rest), reduction, expected,
        label_smoothing=source.option("label_smoothing", 0),
        ignore_index=-100 if ignore in ("none", None) else int(ignore),
        class_weights=source.get("class_weight", classes) if "class_weight" in source else None, grad_out=grad_out)


def onnx_cross_entropy(source):
    """ONNX SoftmaxCrossEntropyLoss: the classes are the second axis."""
    x = source.get("input.x")
    source.scalar("input.x")
    reduction = source.text("attr.reduction", "mean")
    targets = source.get("input.y", x.shape[0], *x.shape[2:])
    expected = {"loss": source.get("output.z", *targets.shape) if reduction == "none" else source.get("output.z")}
    if "output.log_prob" in source:
        expected["log_prob"] = as_rows(source.get("output.log_prob", *x.shape), 1)
    return cross_entropy_case(
        source, as_rows(x, 1), targets, reduction, expected,
        ignore_index=source.option("attr.ignore_index", -2 ** 31),  # without one no target is ignored
        class_weights=source.get("input.w", x.shape[1]) if "input.w" in source else None,
        epsilon=onnx_epsilon(source))


def batch_of_classes(source):
    """A Linear trained on one batch of sequences by a Trainer, with cross-entropy against a class of every token."""
    x, target = source.get("input"), source.get("target")
    batch, rows, d_in = x.shape
    classes = source.get("param0.weight").shape[0]
    scalar = source.scalar("input")
    optimizer, options = torch_optimizer(source, scalar)
    loss_options = "attune::CrossEntropyOptions" + braces(label_smoothing=float(source.option("label_smoothing")))
    loss = f"attune::CrossEntropy<{loss_options}>"
    weights = {}
    if "class_weight" in source:
        loss = f"attune::WeightedCrossEntropy<{classes}, {loss_options}, {scalar}>"
        weights["class_weights"] = source.get("class_weight", classes)
    shape = "attune::LinearShape" + braces(rows=rows, d_in=d_in, d_out=classes)
    steps = source.option("steps")

    def parameters(prefix):
        return {"weight": source.get(prefix + "weight", classes, d_in).transpose(), "bias": source.get(prefix + "bias", classes)}

    return Case(header="batch_of_classes_case.hpp",
                call=f"batch_of_classes_case<{shape}, {loss}, {optimizer}, {batch}>",
                data={"options": options, "max_norm": float(source.option("max_norm")), "steps": steps,
                      "parameters": concatenate(list(parameters("param0.").values())), "inputs": x,
                      "targets": target, **weights},
                expected={"losses": source.get("losses"), "norms": source.get("norms"), **parameters("param_final.")},
                scalar=scalar, terms=steps * batch * rows)


FAMILIES = {
    "batch_of_classes": batch_of_classes,
    **{family: partial(value_loss, family) for family in LOSSES},
    "cross_entropy": cross_entropy,
    "SoftmaxCrossEntropyLoss": onnx_cross_entropy,
}
