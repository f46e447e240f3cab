"""Numbers of values in another order: the board's input, some of the tokens or features, trained tokens, heads side by side."""
import torch

from .errors import Unsupported
from .normal import Constant, Value, side_by_side

NOT_FIRST = "some of the tokens; attune takes one, or all but some in front. Export the model without this step, and take the rows on the device"


class Rearranged:
    """The part of a Matcher that knows numbers in another order."""

    def from_input(self, value):
        """Whether a value is the input, changed by constants alone."""
        while value.kind in ("pointwise", "gather") and len(value.derived()) == 1:
            value = value.derived()[0]
        return value.kind == "input"

    def on_gather(self, value):
        index, first = value.data["index"], value.sources[0]
        if len(value.sources) == 1 and first.kind == "input":
            zeros = not bool(value.data["constants"].any())  # as of patches that reach over the edge
            if bool((index < 0).any()) and not (zeros and bool((index >= 0).any(1).all())):
                return self.with_constants(value, first)
            return self.new("rearranged", [first], value, **value.data)
        if len(value.sources) > 1:
            return self.concatenation(value)
        if bool((index < 0).any()):
            return self.with_constants(value, first)
        token, feature, width = index // first.features, index % first.features, first.features
        if value.features == width and bool((feature == torch.arange(width)).all()):
            return self.some_tokens(value, first, token[:, 0])
        if value.tokens == first.tokens and bool((token == torch.arange(first.tokens)[:, None]).all()) and bool((feature == feature[0]).all()):
            return self.some_features(value, self.layer(first), feature[0])
        if torch.equal(index, torch.arange(first.layout[0].numel()).view(first.tokens, -1).t()):
            return self.turned(self.layer(first), value)
        if torch.equal(index.flatten(), torch.arange(first.layout[0].numel())):
            return self.new("reshape", [self.layer(first)], value)
        raise Unsupported(f"[{first.tokens}, {first.features}] rearranged to [{value.tokens}, {value.features}]")

    def some_features(self, value, before, columns):
        """Some of the features of a Linear, also behind an activation."""
        if before.kind == "activation":
            inner = self.some_features(value, before.sources[0], columns)
            return self.new("activation", [inner], value, **before.data)
        if before.kind != "linear" or before.changed:
            raise Unsupported(f"a part of the features of {self.said(before)}")
        weight, bias = side_by_side([before], columns)
        return self.new("linear", before.sources, value, weight=weight.each(torch.t), bias=bias)

    def of_windows(self, value, source):
        """A Linear of windows of tokens that overlap, or of all tokens of a sequence or an image, as a convolution; or None."""
        index, inner = source.data["index"], source.sources[0]
        before, width = self.layer(inner), inner.features
        kernel, whole = index.shape[1] // width, index.shape == (1, inner.layout[0].numel())
        step = int(index[1, 0] - index[0, 0]) // width if len(index) > 1 else 0
        fits = torch.equal(index[0].sort().values, torch.arange(kernel * width)) and torch.equal(index, index[:1] + step * width * torch.arange(len(index))[:, None])
        if whole and not fits:
            raise Unsupported("a Linear of some numbers of all tokens")
        if not whole and (not fits or not 0 < step < kernel or len(index) != (inner.tokens - kernel) // step + 1):
            return None
        extents, size = (self.extents(before),) * 2 if whole else ((inner.tokens,), (kernel,))
        column = index[0].argsort().view(kernel, width).t()  # of each number of a kernel, [features, tokens]
        shaped = value.data["weight"].each(lambda item: item.t()[:, column].reshape(value.features, width, *size))
        convolution = {"extents": extents, "kernel": size, "stride": (1,) * len(size) if whole else (step,), "around": ((0, 0),) * len(size), "groups": 1,
                       "causal": False, "weight": shaped}
        return self.new("convolution", [before], value, weight=value.data["weight"], bias=value.data["bias"], convolution=convolution, index=index)

    @staticmethod
    def said(layer):
        return {"linear": "a Linear", "contract": "a product"}.get(layer.kind, layer.kind)

    def some_tokens(self, value, first, token):
        """The first token, or a convolution without its last ones."""
        before = self.layer(first)
        convolution = before.data.get("convolution")
        if before.kind == "convolution" and len(convolution["kernel"]) == 1 and torch.equal(token, torch.arange(value.tokens)):
            cut, ((ahead, behind),) = first.tokens - value.tokens, convolution["around"]
            if 0 < cut <= behind and convolution["stride"] == (1,):
                around = ((ahead, behind - cut),)
                causal = self.is_causal(convolution["kernel"], self.spans(convolution), around)
                data = dict(before.data, convolution=dict(convolution, causal=causal, around=around), index=before.data["index"][:value.tokens])
                return self.new("convolution", before.sources, value, **data)
        if value.tokens == 1 and int(token[0]) in (0, first.tokens - 1):
            return self.new("pooling", [before], value, type="kFirst" if int(token[0]) == 0 else "kLast")
        if value.tokens == 1:  # the first behind those that are dropped
            behind = Value("drop_tokens", [before], first.layout[:, int(token[0]):], {}, value.operation, value.number)
            return self.new("pooling", [behind], value, type="kFirst")
        if bool((token.diff() == 1).all()) and int(token[-1]) == first.tokens - 1:
            return self.new("drop_tokens", [before], value)
        raise Unsupported("tokens in another order" if value.tokens >= first.tokens else NOT_FIRST)

    def with_constants(self, value, first):
        """Trained tokens in front of the others."""
        index = value.data["index"]
        rows = (index < 0).all(1)
        count = int(rows.sum())
        whole = torch.equal(index[~rows].flatten(), torch.arange(first.layout[0].numel()))
        if value.features != first.features or not whole or bool(((index < 0) != rows[:, None]).any()):
            raise Unsupported("constants between the numbers of tokens, as of a change in place or padding")
        if not bool(rows[:count].all()):
            raise Unsupported("a trained token that is not in front of the others")
        before, constants = self.layer(first), value.data["constants"]
        ends = [at for at in range(1, count) if self.graph.blocks_of(constants[at]) != self.graph.blocks_of(constants[at - 1])] + [count]
        for begin, end in list(zip([0, *ends], ends))[::-1]:  # a layer for each parameter
            tokens = self.graph.constant(constants[begin] if end == begin + 1 else constants[begin:end])
            before = Value("class_token", [before], value.layout[:, begin:], {"tokens": tokens}, value.operation, value.number)
        return before

    def concatenation(self, value):
        """Features of several values side by side: heads of one attention, or a Linear in parts."""
        layers, at, flat = [self.layer(item) for item in value.sources], 0, []
        for source in value.sources:
            flat.append(torch.arange(source.layout[0].numel()).view(source.layout.shape[1:]) + at)
            at += source.layout[0].numel()
        if any(item.tokens != value.tokens for item in value.sources):
            raise Unsupported("a concatenation of tokens that is not a class token in front of the others")
        side = torch.cat(flat, 1)
        order = value.data["index"]
        if not torch.equal(side.sort(1).values, order.sort(1).values):
            raise Unsupported("a concatenation of some features")
        chosen = (side[0][None] == order[0][:, None]).int().argmax(1)
        if not torch.equal(side[:, chosen], order):
            raise Unsupported("a concatenation of features in another order for each token")
        if any(item.kind == "refused" for item in layers):
            return self.new("refused", layers, value)
        if all(item.kind == "attention" for item in layers) and torch.equal(chosen, torch.arange(len(chosen))):
            return self.heads_side_by_side(value, layers)
        if all(item.kind == "linear" and item.sources == layers[0].sources and not item.changed and "shape" not in item.data for item in layers):
            weight, bias = side_by_side(layers, chosen)
            return self.new("linear", layers[0].sources, value, weight=weight.each(torch.t), bias=bias)
        raise Unsupported(f"a concatenation of {' and '.join(sorted({self.said(item) for item in layers}))}")

    def heads_side_by_side(self, value, layers):
        first = layers[0].data
        for item in layers:
            same = all(item.data[part].rotary == first[part].rotary and abs(item.data[part].factor - first[part].factor) < 1e-9 and
                       (item.data[part].bias is None) == (first[part].bias is None) for part in ("query", "key", "values"))
            if item.sources != layers[0].sources or item.data["window"] != first["window"] or not same:
                raise Unsupported("attention of several kinds side by side")
        joined = {}
        for part in ("query", "key", "values"):
            projection = first[part].heads(slice(None))
            for tensor in ("weight", "bias"):
                if getattr(projection, tensor) is not None:
                    setattr(projection, tensor, Constant.joined([getattr(item.data[part], tensor) for item in layers]))
            joined[part] = projection
        return self.new("attention", layers[0].sources, value, **dict(first, **joined, mask=torch.cat([item.data["mask"] for item in layers])))
