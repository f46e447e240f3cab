"""The C++ types and options of optimizers, from their names elsewhere."""
from case_source import Skip, braces, number


def adam_type(scalar, weight_decay="kDecoupled", epsilon="kOutsideRoot"):
    variant = "attune::AdamVariant" + braces(weight_decay=f"attune::WeightDecay::{weight_decay}",
                                             epsilon=f"attune::EpsilonPlacement::{epsilon}")
    return f"attune::Adam<{variant}, {scalar}>"


def adam_options(scalar, lr, betas, eps, weight_decay):
    # A decay rate is made from a double, whatever the scalar.
    return braces(learning_rate=number(scalar, lr), beta1=float(betas[0]), beta2=float(betas[1]),
                  epsilon=number(scalar, eps), weight_decay=number(scalar, weight_decay))


def sgd_type(scalar, momentum, nesterov):
    kind = "kNone" if momentum == 0 else "kNesterov" if nesterov else "kClassic"
    return f"attune::Sgd<attune::Momentum::{kind}, {scalar}>"


def sgd_options(scalar, lr, momentum=0, dampening=0, weight_decay=0):
    return braces(learning_rate=number(scalar, lr), momentum=number(scalar, momentum),
                  dampening=number(scalar, dampening), weight_decay=number(scalar, weight_decay))


def torch_optimizer(source, scalar):
    """The C++ type and options of an optimizer with PyTorch's names for its options."""
    for name in ("amsgrad", "maximize"):
        if source.option(name, False):
            raise Skip(f"{name}: no such option")
    kind = source.text("optimizer", source.text("family")).split("_")[0]
    lr, weight_decay = source.option("lr"), source.option("weight_decay", 0)
    if kind == "sgd":
        momentum = source.option("momentum", 0)
        return (sgd_type(scalar, momentum, source.option("nesterov", False)),
                sgd_options(scalar, lr, momentum, source.option("dampening", 0), weight_decay))
    if kind not in ("adam", "adamw"):
        raise Skip(f"{kind}: no such optimizer yet")
    return (adam_type(scalar, "kDecoupled" if kind == "adamw" else "kCoupled"),
            adam_options(scalar, lr, source.option("betas", [0.9, 0.999]), source.option("eps", 1e-8), weight_decay))
