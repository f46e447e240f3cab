"""Statistics of a sample: a model of features without their mean, or their last value, and deviation over tokens, whose output gets both back (RevIN)."""
import torch

from .errors import Unsupported
from .evaluate import evaluate, region
from .formulas import NORMS, close, draw, moved
from .normal import Constant

SCALES = (1e-5, 1e-3, 0.05, 1.0, 30.0)  # of drawn inputs; the first are small beside the usual epsilon


def moments(x, epsilon, last=False):
    """Mean, or last value, and deviation of each feature over tokens."""
    mean = x.mean(1, keepdim=True)
    return x[:, -1:] if last else mean, ((x - mean).square().mean(1, keepdim=True) + epsilon).sqrt()


def drawn(value, scale, seed=5):
    """Two samples, whose features have a level of their own."""
    return scale * (draw(2, value.tokens, value.features, seed=seed) + 3 * draw(2, 1, value.features, seed=seed + 1))


def normalized(x, data):
    mean, deviation = moments(x, data["epsilon"], data["last"])
    result = (x - mean) / deviation
    return result if data["weight"] is None else result * data["weight"].values + data["bias"].values


def given_back(y, x, data):
    mean, deviation = moments(x, data["epsilon"], data["last"])
    if data["weight"] is not None:
        y = (y - data["bias"].values) / (data["weight"].values + data["epsilon"] ** 2)
    return y * deviation + mean


def always(learned, data, same):
    """Whether something is so for inputs of each scale, also with another factor and bias."""
    for constants in ((), list(dict.fromkeys([*learned, *filter(None, (data["weight"], data["bias"]))]))):
        with moved(constants):
            if not all(same(scale) for scale in SCALES):
                return False
    return True


def elements_of(value):
    """The values that a value is computed from element by element, the earliest first."""
    stack, found = [value], []
    while stack:
        item = stack.pop()
        for other in item.derived() if item.kind == "pointwise" else ():
            if other not in found and other.layout.shape == value.layout.shape:
                found.append(other)
                stack.append(other)
    return sorted(found, key=lambda item: item.number)


class SampleNorms:
    """The part of a Matcher that knows them. The statistics are the input's: it makes no difference whether forward detaches them."""

    def reversible(self, value):
        """A model of a normalized input, whose output gets mean and deviation back; or None."""
        sources = [item for item in region(value) if item.kind in ("input", "group")]
        if value.kind != "pointwise" or len(sources) != 1 or sources[0].features not in value.layout.shape[1:] or sources[0].tokens < 2:
            return None
        source = sources[0]
        for output in elements_of(value):
            norms = [item for item in region(output) if item.kind == "pointwise" and item is not output and item.layout.shape == source.layout.shape]
            for norm in sorted(norms, key=lambda item: -item.number):
                if source not in region(output, [norm]) and self.only(NORMS, norm, source) and self.only(NORMS, value, output, source):
                    for data in filter(None, (self.statistics(norm, source, last) for last in (False, True))):
                        turned = next((turn for turn in (False, True) if self.gives_back(value, output, norm, source, data, turn)), None)
                        if turned is not None:
                            return self.reversed(value, output, norm, source, data, turned)
        return None

    def sample_norm(self, value):
        """An input whose features are normalized over tokens, as a GroupNorm of one feature each; or None."""
        sources = [item for item in region(value) if item.kind in ("input", "group")]
        if value.kind != "pointwise" or len(sources) != 1 or sources[0].layout.shape != value.layout.shape or sources[0].tokens < 2 or not self.only(
                NORMS, value, sources[0]):
            return None
        source, data = sources[0], self.statistics(value, sources[0])
        if data is None or not self.normalizes(value, source, data, self.learned_between(value, source)):
            return None
        return self.new("group_norm", [self.layer(source)], value, groups=source.features, **{name: item for name, item in data.items() if name != "last"})

    def learned_between(self, value, *ends):
        return [item for item in self.constants(value, *ends) if self.parameters(item)]

    def normalizes(self, norm, source, data, learned):
        """Whether a value is its source normalized."""
        return always(learned, data, lambda scale: close(
            evaluate(norm, {source: drawn(source, scale)}), normalized(drawn(source, scale), data), 1e-6))

    def statistics(self, norm, source, last=False):
        """The epsilon, and the factor and the bias of features, of a value that is its source normalized over tokens; or None. `last`: without its
        last value, not its mean."""
        if not any(item.kind == "reduce" for item in region(norm, [source])):
            return None
        constants = self.constants(norm, source)
        with moved([item for item in constants if self.parameters(item)]):
            found = self.statistics_of(norm, source, last, constants)
        return None if found is None else {name: self.graph.settled(item) if isinstance(item, Constant) else item for name, item in found.items()}

    def statistics_of(self, norm, source, last, constants):
        large, small = drawn(source, 1e4), drawn(source, 1e-2)
        y, (mean, deviation) = evaluate(norm, {source: large}), moments(large, 0, last)
        if y.shape != large.shape or not torch.isfinite(y).all():
            return None
        unit = (large - mean) / deviation
        bias = y[:, -1].mean(0) if last else y.mean((0, 1))
        weight = (unit * (y - bias)).sum((0, 1)) / unit.square().sum((0, 1))
        bias = torch.where(bias.abs() < 1e-9, torch.zeros_like(bias), bias)
        mean, deviation = moments(small, 0, last)
        ratio = ((evaluate(norm, {source: small}) - bias) / weight / (small - mean))[0, 0, 0]
        epsilon = self.epsilon(float(ratio ** -2 - deviation[0, 0, 0].square()), norm, source)
        try:
            found = self.vectors(weight, bias, constants)
        except Unsupported:
            return None
        if (found["weight"] is None) != (found["bias"] is None) or any(item is not None and (item.shift or item.factor != 1) for item in found.values()):
            return None
        return {"epsilon": epsilon, "weight": found["weight"], "bias": found["bias"], "last": last}

    def gives_back(self, value, output, norm, source, data, turned):
        """Whether both steps are these, also with another factor and bias. `turned`: the output has a row for each feature."""
        if source.features != value.layout.shape[1 if turned else 2]:
            return False
        turn = (lambda y: y.transpose(1, 2)) if turned else (lambda y: y)  # noqa: E731
        learned = self.learned_between(norm, source) + self.learned_between(value, output, source)
        own = [data[name] for name in ("weight", "bias") if data[name] is not None]
        if {tuple(item.addresses.flatten().tolist()) for item in learned} != {tuple(item.addresses.flatten().tolist()) for item in own}:
            return False
        y = drawn(output, 1.0, 7)
        return self.normalizes(norm, source, data, learned) and always(learned, data, lambda scale: close(
            turn(evaluate(value, {source: drawn(source, scale), output: y})), given_back(turn(y), drawn(source, scale), data), 1e-6))

    def reversed(self, value, output, norm, source, data, turned):
        before = self.layer(source)
        self.memo[norm] = self.new("normalized", [before], norm, statistics=data)
        inside = self.layer(output)
        if not turned:
            return self.new("reversible", [inside, before], value, inner=self.memo[norm], **data)
        inside = self.turned(inside, value)
        return self.turned(self.new("reversible", [inside, before], value, inside.layout, inner=self.memo[norm], **data), value)


KINDS = {"normalized": lambda value, sources: normalized(sources[0], value.data["statistics"]),
         "reversible": lambda value, sources: given_back(*sources, value.data)}
