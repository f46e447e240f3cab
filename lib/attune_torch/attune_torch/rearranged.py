"""Numbers of values in another order: the board's input, some of the tokens or features, trained tokens, heads side by side, grids of tokens."""
import math
from dataclasses import replace

import torch

from .errors import Unsupported
from .normal import Constant, REFUSED, Value, Windows, side_by_side

BEHIND = "a trained token behind the others, whose order matters here; put it in front: torch.cat([token, x], 1)"
ROW_BY_ROW = ("linear", "norm", "activation", "scale", "feature_bias", "affine", "batch_norm", "prelu", "product", "sum")
NOT_FIRST = "some of the tokens; attune takes one, or all but some in front. Export the model without this step, and take the rows on the device"


def grids_of(order):
    """The grids (outer, rows, columns, cell) that are transposed for an order, at most two; or None."""
    count = len(order)
    if int(order[0]) or int(order[-1]) != count - 1:  # which stay in their places
        return None
    divisors = [size for size in range(1, count + 1) if count % size == 0]

    def transposed(outer, rows, columns, cell):
        return torch.arange(count).view(outer, rows, columns, cell).transpose(1, 2).flatten()

    def one(order):
        """The grid that has this order; it is told by the places of the first tokens."""
        moved = (order != torch.arange(count)).nonzero().flatten()
        cell = int(moved[0]) if len(moved) else 0
        columns = int(order[cell]) // cell if cell else 0
        if columns < 2 or count % (cell * columns):
            return None
        starts = order[::cell][:count // (cell * columns)]
        rows = int((starts != torch.arange(len(starts)) * columns * cell).int().argmax()) or len(starts)
        if count % (rows * columns * cell):
            return None
        found = (count // (rows * columns * cell), rows, columns, cell)
        return found if torch.equal(transposed(*found), order) else None

    found = one(order)
    if found is not None:
        return [found]
    for outer in divisors:
        for rows in (size for size in divisors if size > 1 and count // outer % size == 0):
            for columns in (size for size in divisors if size > 1 and count // outer // rows % size == 0):
                first = (outer, rows, columns, count // (outer * rows * columns))
                second = one(transposed(outer, columns, rows, first[3])[order])  # the first one's inverse is the grid back
                if second is not None:
                    return [first, second]
    return None


def said(layer):
    return {"linear": "a Linear", "contract": "a product"}.get(layer.kind, layer.kind)


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
            own = (index < 0).all(1)
            if not bool(own.any()):
                return self.concatenation(value)
            rest = Value("gather", value.sources, value.layout[:, ~own], dict(value.data, index=index[~own]), value.operation, value.number)
            index = torch.full_like(index, -1).masked_scatter(~own[:, None], torch.arange(rest.layout[0].numel()))
            return self.with_constants(Value("gather", [rest], value.layout, dict(value.data, index=index), value.operation, value.number), rest)
        if bool((index < 0).any()):
            return self.with_constants(value, first)
        token, feature, width = index // first.features, index % first.features, first.features
        if value.features == width and bool((feature == torch.arange(width)).all()):
            return self.regridded(value, first) or self.some_tokens(value, first, token[:, 0])
        if value.tokens == first.tokens and bool((token == torch.arange(first.tokens)[:, None]).all()) and bool((feature == feature[0]).all()):
            return self.some_features(value, self.layer(first), feature[0])
        if torch.equal(index, first.places.t()):
            return self.turned(self.layer(first), value)
        if first.is_whole(index):
            return self.new("reshape", [self.layer(first)], value)
        found = self.regridded(value, first)
        if found is not None:
            return found
        heads = first.kind == "contract" and value.layout.shape == first.layout.shape
        raise Unsupported("rows with numbers of several tokens' heads; put heads side by side by y.transpose(1, 2).reshape(batch, tokens, -1)" if heads else
                          f"[{first.tokens}, {first.features}] rearranged to [{value.tokens}, {value.features}]")

    def some_features(self, value, before, columns):
        """Some of the features of a Linear, also behind an activation."""
        if before.kind == "activation":
            inner = self.some_features(value, before.sources[0], columns)
            return self.new("activation", [inner], value, **before.data)
        if before.kind != "linear" or before.changed:
            if before.kind == "refused":
                raise Unsupported(REFUSED)
            raise Unsupported(f"a part of the features of {said(before)}")
        weight, bias = side_by_side([before], columns)
        return self.new("linear", before.sources, value, weight=weight.each(torch.t), bias=bias)

    def regridded(self, value, first):
        """All numbers in an order that grids of tokens have when their rows become columns, once or twice; or None."""
        width = math.gcd(value.features, first.features)
        rows = value.data["index"].reshape(-1, width)
        order = rows[:, 0] // width
        if bool((rows != order[:, None] * width + torch.arange(width)).any()) or not torch.equal(order.sort().values, torch.arange(first.places.numel() // width)):
            return None
        grids = grids_of(order)
        if grids is None:
            return None
        layer, layout = self.layer(first), first.layout.reshape(len(first.layout), -1, width)
        if first.features != width:
            layer = self.new("reshape", [layer], value, layout)
        for grid in grids:
            index = torch.arange(len(order)).view(grid).transpose(1, 2).flatten()
            layout = layout[:, index]
            layer = self.new("grid", [layer], value, layout, grid=grid, index=index[:, None] * width + torch.arange(width))
        return layer if value.features == width else self.new("reshape", [layer], value)

    def of_windows(self, value, source):
        """A Linear of windows of tokens that overlap, or reach over the end, or of all tokens of a sequence or an image, as a convolution; or None."""
        index, inner = source.data["index"], source.sources[0]
        before, width = self.layer(inner), inner.features
        kernel, whole = index.shape[1] // width, index.shape == (1, inner.layout[0].numel())
        step = int(index[1, 0] - index[0, 0]) // width if len(index) > 1 else 0
        windows = index[:1] + step * width * torch.arange(len(index))[:, None]
        over = max(0, (len(index) - 1) * step + kernel - inner.tokens)  # times that the last token is there again
        fits = torch.equal(index[0].sort().values, torch.arange(kernel * width)) and torch.equal(
            index, (windows // width).clamp(max=inner.tokens - 1) * width + windows % width)
        if whole and not fits:
            raise Unsupported("a Linear of some numbers of all tokens")
        if not whole and (not fits or not 0 < step <= kernel or not over and (step == kernel or len(index) != (inner.tokens - kernel) // step + 1)):
            return None
        if over:
            before = self.new("repeat_last", [before], value, torch.cat([inner.layout, inner.layout[:, -1:].expand(-1, over, -1)], 1))
        extents, size = (self.extents(before),) * 2 if whole else ((before.tokens,), (kernel,))
        column = index[0].argsort().view(kernel, width).t()  # of each number of a kernel, [features, tokens]
        shaped = value.data["weight"].each(lambda item: item.t()[:, column].reshape(value.features, width, *size))
        convolution = Windows(extents, size, (1,) * len(size) if whole else (step,), ((0, 0),) * len(size), weight=shaped)
        return self.new("convolution", [before], value, weight=value.data["weight"], bias=value.data["bias"], convolution=convolution, index=windows)

    def outer_product(self, value):
        """Each number of one token times a vector of its own, which makes it a token, as models of tables do: a convolution with a group for each
        number, and its features as tokens. Times the same vector: a Linear, also of ones, which adds each number to a row. Or None."""
        x, constant = (next((item for item in value.sources if isinstance(item, kind)), None) for kind in (Value, Constant))
        if value.data["name"] not in ("mul", "add") or len(value.sources) != 2 or constant is None or 1 in value.layout.shape[1:] or self.alpha(value):
            return None
        (count, width), before, turn = value.layout.shape[1:], self.layer(x), (x.tokens, x.features) == (1, value.features)
        if turn:  # each vector is a column
            (count, width), constant = (width, count), constant.each(torch.t)
        elif (x.tokens, x.features) != (count, 1):
            return None
        if value.data["name"] == "add":
            ones = Constant.unnamed(torch.ones(1, width).double())
            return None if turn else self.positions(value, self.new("linear", [before], value, weight=ones, bias=None), constant)
        if not turn and not constant.per_token:
            return self.new("linear", [before], value, weight=constant.each(lambda item: item.expand(1, -1)), bias=None)
        if turn:
            row = before
        elif before.kind == "rearranged":
            row = self.new("rearranged", before.sources, x, x.layout.transpose(1, 2), **dict(before.data, index=before.data["index"].t()))
            whole = before.sources[0].is_whole(row.data["index"])
            row = before.sources[0] if whole and before.sources[0].tokens == 1 else row
        else:
            row = self.turned(before, value)
        return self.of_features(value, row, constant.each(lambda item: item.expand(count, width).reshape(-1, 1)), None, turn)

    def of_features(self, value, before, weight, bias, turn):
        """Tokens that are a Linear of one feature each, over all tokens: weights [features * width, tokens]. `turn`: its columns instead."""
        layout = value.layout.transpose(1, 2) if turn else value.layout
        count, length = layout.shape[1], weight.values.shape[1]
        place = torch.arange(count).repeat_interleave(layout.shape[2]) == torch.arange(count)[:, None]
        convolution = Windows((length,), (length,), (1,), ((0, 0),), count, weight=weight.each(lambda item: item[:, None]))
        found = self.new("convolution", [before], value, layout.flatten(1)[:, None], weight=weight.each(lambda item: (item.t()[:, None] * place).flatten(0, 1)),
                         bias=bias, index=torch.arange(length * count)[None], convolution=convolution)
        found = self.new("reshape", [found], value, layout)
        return self.turned(found, value) if turn else found

    def linear_for_each(self, value):
        """Linears of one feature each, in a row: those of a table's numbers, or of the variables of a time series. None if there are none."""
        linears = value.sources
        if not all(item.kind == "linear" and item.tokens == 1 and item.sources[0].kind == "gather" and not item.changed for item in linears):
            return None
        parts = [item.sources[0] for item in linears]
        count, (length, width), inner = len(parts), linears[0].data["weight"].values.shape, parts[0].sources[0]
        if any(item.data["weight"].values.shape != (length, width) for item in linears) or any(item.sources != [inner] for item in parts):
            return None
        rows, turn = value.data["index"], value.layout.shape[1:] != (count, width)
        columns, order = torch.cat([item.data["index"] for item in parts]), torch.arange(count * length)
        before = inner.places.numel() == len(order) and (self.layer(inner) if torch.equal(columns, order.view(length, -1).t()) else self.turned(
            self.layer(inner), value) if inner.tokens == count and torch.equal(columns.flatten(), order) else None)
        if not before or not torch.equal((rows.t() if turn else rows).flatten(), torch.arange(count * width)):
            return None
        return self.of_features(value, before, *side_by_side(linears, torch.arange(count * width)), turn)

    def some_tokens(self, value, first, token):
        """The first token, or a convolution without its last ones."""
        before = self.layer(first)
        convolution = before.data.get("convolution")
        if before.kind == "convolution" and len(convolution.kernel) == 1 and torch.equal(token, torch.arange(value.tokens)):
            cut, ((ahead, behind),) = first.tokens - value.tokens, convolution.around
            if 0 < cut <= behind and convolution.stride == (1,):
                shorter = replace(convolution, around=((ahead, behind - cut),))
                return self.with_data(before, value, convolution=shorter, index=before.data["index"][:value.tokens])
        if value.tokens == 1 and int(token[0]) in (0, first.tokens - 1):
            return self.new("pooling", [before], value, type="kFirst" if int(token[0]) == 0 else "kLast")
        if value.tokens == 1:  # the first behind those that are dropped
            behind = self.new("drop_tokens", [before], value, first.layout[:, int(token[0]):])
            return self.new("pooling", [behind], value, type="kFirst")
        if bool((token.diff() == 1).all()) and int(token[-1]) == first.tokens - 1:
            return self.new("drop_tokens", [before], value)
        repeated = len(token.unique()) < len(token)
        raise Unsupported("tokens in another order, some of them several times" if repeated else
                          "tokens in another order" if value.tokens >= first.tokens else NOT_FIRST)

    def with_constants(self, value, first):
        """Trained tokens in front of the others; or behind them, and then attune has them in front, where `behind` says what follows."""
        index = value.data["index"]
        rows = (index < 0).all(1)
        count = int(rows.sum())
        whole = first.is_whole(index[~rows])
        if value.features != first.features or not whole or bool(((index < 0) != rows[:, None]).any()):
            raise Unsupported("constants between the numbers of tokens, as of a change in place or padding")
        behind = not bool(rows[:count].all())
        if not bool(rows[:count].all() | rows[-1] & (count == 1)):
            raise Unsupported("a trained token that is not in front of the others" if self.graph.names(value.data["constants"]) else
                              "constants between the numbers of tokens, as of a change in place or padding")
        before, constants = self.layer(first), value.data["constants"]
        constants = constants[rows]
        ends = [at for at in range(1, count) if self.graph.blocks_of(constants[at]) != self.graph.blocks_of(constants[at - 1])] + [count]
        for begin, end in list(zip([0, *ends], ends))[::-1]:  # a layer for each parameter
            tokens = self.graph.constant(constants[begin] if end == begin + 1 else constants[begin:end])
            before = self.new("class_token", [before], value, value.layout[:, begin:], tokens=tokens, behind=behind)
        return before

    def linear_of_several(self, value):
        """A Linear or a convolution of features of several values side by side, as the sum of one of each; or None."""
        source, convolution = value.sources[0], value.data.get("convolution")
        beside = source.sources[0] if convolution and source.kind == "gather" and len(source.sources) == 1 else source
        if beside.kind != "gather" or len(beside.sources) < 2 or any(item.tokens != beside.tokens for item in beside.sources) or convolution and convolution.groups > 1:
            return None
        if all(self.layer(item).kind in ("attention", "linear") for item in beside.sources) and not convolution:
            return None
        begins, at, found = [], 0, []
        for item in beside.sources:
            begins.append(at)
            at += item.layout[0].numel()
        index, token = beside.data["index"], torch.arange(beside.tokens)[:, None]
        for begin, item in zip(begins, beside.sources):
            columns = ((index[0] >= begin) & (index[0] < begin + item.features)).nonzero().flatten()
            if not torch.equal(index[:, columns], begin + token * item.features + torch.arange(item.features)):
                return None
            data = dict(value.data, bias=None if found else value.data["bias"])
            if convolution is None:
                data["weight"] = value.data["weight"].each(lambda numbers: numbers[columns])  # noqa: B023
                found.append(self.new("linear", [self.layer(item)], value, **data))
                continue
            own = convolution.weight.each(lambda numbers: numbers[:, columns])  # noqa: B023
            rows = torch.arange(len(value.data["weight"].addresses)).view(beside.features, -1)[columns].flatten()
            windows = (beside.places if source is beside else source.data["index"])[:, rows]
            place = torch.full((beside.features,), -1)
            place[columns] = torch.arange(len(columns))
            windows = torch.where(windows < 0, -1, windows // beside.features * item.features + place[windows % beside.features])
            data |= {"weight": value.data["weight"].each(lambda numbers: numbers[rows]), "convolution": replace(convolution, weight=own)}  # noqa: B023
            found.append(self.new("convolution", [self.layer(item)], value, index=windows, **data))
        if sum(item.data["weight"].values.shape[0] for item in found) != len(value.data["weight"].values):
            return None
        result = found[0]
        for item in found[1:]:
            result = self.new("sum", [result, item], value)
        return result

    def check_behind(self):
        """Takes the first token where forward takes the last, if that is a trained one behind the others. Refuses trained tokens behind others whose
        order is of consequence."""
        moved = {layer for layer in self.layers() if layer.kind == "class_token" and layer.data["behind"]}
        for layer in self.layers() if moved else ():
            kind, data, sources = layer.kind, layer.data, set(layer.derived())
            if layer in moved or not moved & sources:
                continue
            if kind == "positions":
                same = layer.sources[0].kind == "class_token" and not moved & set(layer.sources[0].derived())
                layer.data = dict(data, table=data["table"].each(lambda item: item.roll(1, 0)))
            elif kind == "attention":
                same = data["window"] == (None, None, True) and not data["padding"] and not data["mask"].any() and not data["query"].rotary
            elif kind == "pooling":
                same = data["type"] != "kFirst" and not data.get("padding")
                layer.data = dict(data, type="kFirst") if data["type"] == "kLast" else data
            else:
                same = kind in ROW_BY_ROW and sources <= moved
            if not same:
                self.refuse(layer, BEHIND)
            if kind != "pooling" and (kind != "attention" or layer.sources[0] in moved):
                moved.add(layer)
        if self.output in moved:
            self.refuse(self.output, BEHIND)

    def concatenation(self, value):
        """Features of several values side by side: heads of one attention, or a Linear in parts."""
        found = self.linear_for_each(value)
        if found is not None:
            return found
        layers, at, flat = [self.layer(item) for item in value.sources], 0, []
        for source in value.sources:
            flat.append(source.places + at)
            at += source.places.numel()
        if any(item.tokens != value.tokens for item in value.sources):
            raise Unsupported("features of several values side by side" if value.tokens == 1 else
                              "a concatenation of tokens that is not a class token in front of the others")
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
        raise Unsupported(f"a concatenation of {' and '.join(sorted({said(item) for item in layers}))}")

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
