"""A trained factor of attention's scores, one for all heads or one for each: a temperature, or the scale of cosines."""
import math
from contextlib import ExitStack
from dataclasses import dataclass

import torch

from .capture import exchanged
from .errors import Unsupported
from .evaluate import region
from .formulas import close
from .normal import Constant

# attune::ScoreScale's enumerators: the factor, the operations that may compute it beside those of LINEAR, and parameters to try.
LINEAR = {"mul", "div", "neg", "_to_copy", "reciprocal"}
LIMITS = {"clamp", "clamp_max", "minimum"}
KINDS = {
    "kFactor": (lambda t: t, set(), (-3.0, -0.2, 0.1, 0.7, 2.0, 50.0)),
    "kInverse": (lambda t: 1 / t, set(), (-3.0, -0.2, 0.1, 0.7, 2.0, 50.0)),
    "kExponential": (torch.exp, {"exp"}, (-30.0, -2.0, -0.3, 0.4, 1.5, 4.0, 9.0, 30.0)),
    "kClampedExponential": (lambda t: t.clamp(max=math.log(100)).exp(), {"exp"} | LIMITS, (-600.0, -30.0, -2.0, -0.3, 0.4, 1.5, 4.0, 4.6, 4.7, 9.0, 300.0)),
}


@dataclass
class Temperature:
    """The parameter [heads] or [1], and the factor that it makes of scores, beside a constant one."""
    kind: str
    parameter: Constant

    def of_heads(self):
        return KINDS[self.kind][0](self.parameter.values)[:, None, None]


class Temperatures:
    """The part of a Matcher that knows them."""

    def temperature(self, inner, scores, heads, slopes, biases, *ids):
        """What trained parameters make of scores, and the constant factor beside it; None and the factor where there are none. `slopes` answers
        the factor of each head, [heads], or raises Unsupported. `biases`: constants that are known."""
        constants = list({id(item): item for item in self.constants(inner, scores, *ids)}.values())
        learned = [item for item in constants if self.parameters(item) and item not in biases]
        if not learned:
            factor = slopes()
            if not close(factor, factor[:1].expand(heads)):
                raise Unsupported("attention whose heads have factors of their own that no parameter is")
            return None, float(factor[0])
        found = self.graph.leaves(torch.cat([item.addresses.flatten() for item in learned]))
        if found is None or len(found[0]) not in (1, heads) or len({name for item in learned for name in self.parameters(item)}) > 1:
            self.refuse_parameters("relative positions or a temperature: attention's scores", inner, scores, *ids)
        leaves, names = found
        names |= {item.data.get("name", item.kind) for item in region(inner, [scores, *ids]) if any(source in learned for source in item.sources)}
        if not names <= LINEAR | KINDS["kClampedExponential"][1]:
            self.refuse_parameters("relative positions or a temperature: attention's scores", inner, scores, *ids)
        for kind, (function, own, tried) in KINDS.items():
            if not names <= LINEAR | own:
                continue
            factors = []
            for number in tried:
                t = number * (1 + torch.arange(len(leaves)).double() / 16)
                numbers = self.graph.numbers.clone()
                numbers[-leaves] = t
                with ExitStack() as stack:
                    for item in learned:
                        stack.enter_context(exchanged(item, "values", self.graph.again(item.addresses, numbers)))
                    try:
                        factors.append(slopes() / function(t))
                    except Unsupported:
                        break
            if len(factors) == len(tried) and torch.isfinite(torch.stack(factors)).all() and close(
                    torch.stack(factors), factors[0].mean().expand(len(tried), heads), 1e-5):
                parameter = Constant(leaves, self.graph.numbers[-leaves])
                return Temperature(kind, parameter), float(factors[0].mean())
        raise Unsupported(f"a temperature that is neither t, 1 / t, exp(t) nor exp(min(t, log(100))) of a parameter of one number or one for each head: {self.parameters(learned[0])[0]}")
