"""The normal form of a captured pass: each computed value is [batch, tokens, features], whatever order and shape the author gave it.

The token and the feature of each number of an operand are looked up by its address, so changes of shape and order need no rules.
Kinds of values:

  input      numbers of a sample
  gather     numbers of other values and constants, rearranged: index [tokens, features]
  linear     tokens times a constant matrix: mm, addmm, bmm, convolution
  pointwise  an operation on each element of values and constants
  reduce     mean, sum, amax, var, … of windows: index [tokens, features, window]
  softmax    of groups: index [groups, size]
  norm       native_layer_norm
  contract   a product of two values, heads × rows × columns: scores, and weighted sums
  embedding  rows of a constant table
  unknown    a refused operation
"""
import bisect
import math
from dataclasses import dataclass, field, replace

import torch
from torch.utils._pytree import tree_map

from .capture import tensors_in
from .errors import Unsupported

POINTWISE = set("""add sub rsub mul div neg pow square sqrt rsqrt exp log log1p abs relu gelu silu sigmoid tanh erf softplus elu leaky_relu
 hardtanh hardswish hardsigmoid mish clamp clamp_min clamp_max maximum minimum where eq ne lt gt le ge logical_not logical_and
 logical_or bitwise_and bitwise_or bitwise_not reciprocal sin cos _to_copy floor sign isinf isnan round threshold
 log_sigmoid_forward remainder floor_divide prelu""".split())
REDUCE = {"mean", "sum", "amax", "amin", "var", "std", "norm", "linalg_vector_norm", "max", "logsumexp", "var_mean", "min"}
REFUSED = "it takes a refused value"
DIFFERENTLY = "samples of the batch are treated differently"
CHANNELS_FIRST = ("convolution", "batch_norm", "pool2d")  # parts of names of operations


def gated(x, dim=-1):
    a, b = x.chunk(2, dim)
    return "mul", a, ("sigmoid", b)


def added(product):
    """A form of a product with an addend; None if the addend is a bias."""
    def form(bias, a, b, beta=1, alpha=1):
        if beta == alpha == 1 and bias.dim() == 1 and not (bias > 0).any() and not (b > 0).any():
            return None
        if beta not in (0, 1):
            raise Unsupported("a product whose addend has a factor")
        times = (product, a, b) if alpha == 1 else ("mul", (product, a, b), alpha)
        return ("add", times, bias) if beta else times
    return form


# Operations as others: name, arguments, which may be forms themselves, and options. None stands for the operation as it is.
FORMS = {
    "addcmul": lambda x, a, b, value=1: ("add", x, ("mul", a, b), {"alpha": value}),
    "addcdiv": lambda x, a, b, value=1: ("add", x, ("div", a, b), {"alpha": value}),
    "addmm": added("mm"), "baddbmm": added("bmm"), "glu": gated,
    "clamp": lambda x, min=None, max=None: ("clamp_min", x, min) if max is None else None,
    "masked_fill": lambda x, mask, number: ("where", mask, number, x), "special_erf": lambda x: ("erf", x),
    "_prelu_kernel": lambda x, slopes: ("prelu", x, slopes),
    "_log_softmax": lambda x, dim, *_: ("log", ("_softmax", x, dim)), "_safe_softmax": lambda x, dim, *_: ("_softmax", x, dim),
    "cudnn_batch_norm": lambda *arguments: ("native_batch_norm", *arguments),
    "_native_batch_norm_legit": lambda x, weight, bias, *rest: (  # with running statistics, or by an overload that has none
        "native_batch_norm", x, weight, bias, *((None, None) if len(rest) < 5 else ()), *rest),
    **dict.fromkeys(("_native_batch_norm_legit_no_training", "_batch_norm_no_update"), lambda x, weight, bias, mean, variance, *rest: (
        "native_batch_norm", x, weight, bias, mean, variance, False, *rest)),
}


def in_memory_order(numbers):
    """The same numbers as they lie in memory, for what is done in any order: transposed matrices take several times as long."""
    return numbers.permute(sorted(range(numbers.dim()), key=lambda dim: -numbers.stride(dim)))


def distinct(numbers):
    """How many different ones there are."""
    low, high = (int(end) for end in numbers.aminmax())
    seen = torch.zeros(high - low + 1, dtype=torch.bool)
    seen[numbers.flatten() - low] = True
    return int(seen.sum())


@dataclass(eq=False)
class Constant:
    """Numbers that do not depend on the input, [tokens or 1, features or 1]. `addresses` are 0 for numbers that no tensor has. Numbers of a tensor
    of the module are here with what forward adds to all of them, and times a factor, or one for each row."""
    addresses: torch.Tensor
    values: torch.Tensor
    shift: float = 0.0
    factor: object = 1.0

    @property
    def per_token(self):
        return self.values.dim() == 2 and self.values.shape[0] > 1

    def each(self, change):
        """The same numbers in another order or shape."""
        return replace(self, addresses=change(self.addresses), values=change(self.values))

    def times(self, factor):
        return replace(self, values=self.values * factor, factor=self.factor * factor)

    @staticmethod
    def unnamed(values):
        """Numbers that no tensor of the module has."""
        return Constant(torch.zeros(values.shape, dtype=torch.int64), values)

    @staticmethod
    def joined(constants):
        """Rows below each other."""
        factors = [item.factor for item in constants]
        rows = factors[0] if len(set(factors)) == 1 else torch.cat([torch.full((len(item.values),), item.factor).double() for item in constants])
        return Constant(*(torch.cat([getattr(item, part) for item in constants]) for part in ("addresses", "values")), factor=rows)

    def rows(self, index):
        """Some of its rows."""
        return replace(self.each(lambda item: item[index]), factor=self.factor[index] if isinstance(self.factor, torch.Tensor) else self.factor)


@dataclass
class Windows:
    """The places that a convolution or a pooling multiplies or reduces together, of one sequence or image: a tuple member has one number, or one pair,
    for each dimension."""
    extents: tuple
    kernel: tuple
    stride: tuple
    around: tuple  # zeros in front and behind
    groups: int = 1
    dilation: tuple = (1, 1)
    weight: Constant = None  # of a convolution, as it is in the module

    @property
    def span(self):
        """The places from a kernel's first number to its last."""
        return tuple((size - 1) * apart + 1 for size, apart in zip(self.kernel, self.dilation))

    @property
    def causal(self):
        return len(self.kernel) == 1 and self.around == ((self.span[0] - 1, 0),) and self.kernel[0] > 1

    def of(self, numbers, outside=0):
        """[batch, windows, channels · kernel] of numbers [batch, channels, extents…]."""
        found = torch.nn.functional.pad(numbers, [amount for pair in self.around[::-1] for amount in pair], value=outside)
        for dim, (span, step, apart) in enumerate(zip(self.span, self.stride, self.dilation), 2):
            found = found.unfold(dim, span, step)[..., ::apart]
        rank = len(self.kernel)
        return found.movedim(1, 1 + rank).flatten(1, rank).flatten(2)


@dataclass(eq=False)
class Value:
    kind: str
    sources: list
    layout: torch.Tensor  # addresses, [batch, tokens, features]
    data: dict = field(default_factory=dict)
    operation: object = None
    number: int = 0
    reads: list = field(default_factory=list)  # inputs that a mask is made of, besides the sources

    @property
    def tokens(self):
        return self.layout.shape[1]

    @property
    def features(self):
        return self.layout.shape[2]

    @property
    def places(self):
        """The places in a sample, [tokens, features]."""
        return torch.arange(self.tokens * self.features).view(self.tokens, self.features)

    def is_whole(self, index):
        """Whether places are all of a sample, in their order, in any shape."""
        return torch.equal(index.flatten(), self.places.flatten())

    @property
    def changed(self):
        """Whether a layer's weight is another one than the module's, by a factor or a BatchNorm."""
        return "fold" in self.data or self.data["weight"].factor != 1

    def derived(self):
        return [item for item in self.sources if isinstance(item, Value)]


def side_by_side(linears, index):
    """The weight [index, inputs] and the bias [index] or None of some features of several Linears of one source."""
    weight = Constant.joined([item.data["weight"].each(torch.t) for item in linears]).rows(index)
    if all(item.data["bias"] is None for item in linears):
        return weight, None
    biases = [item.data["bias"] or Constant.unnamed(torch.zeros(item.features).double()) for item in linears]
    return weight, Constant.joined(biases).rows(index)


def of_each(numbers):
    """Numbers [batch, …] of one sample, which are all samples'."""
    if bool((numbers != numbers[:1]).any()):
        raise Unsupported(DIFFERENTLY)
    return numbers[0]


def is_transposed(operand, value):
    """Whether an operand [batch, features, tokens…] is a value with channels first."""
    return operand.dim() > 2 and operand.flatten(2).shape[1:] == value.layout.transpose(1, 2).shape[1:] and torch.equal(
        operand.flatten(2), value.layout.transpose(1, 2))


def names_of(blocks):
    return list(dict.fromkeys(name for block in blocks for name in (block.name or "").split(" & ") if name))


class Layouts:
    """Values, and which sample, token and feature an address is."""

    def __init__(self, captured):
        self.captured, self.numbers = captured, captured.values()
        self.begins = torch.tensor(captured.begins or [1])
        self.values, self.gathers = [], {}
        # Of each address, its place in the layouts of all values, one behind the other; and where they begin, and the size of a sample.
        self.slot = torch.full((captured.derived + 1,), -1, dtype=torch.int32)
        self.starts, self.sizes, self.end = [], [], 0
        self.batch = captured.inputs[0].shape[0]

    def define(self, kind, sources, layout, data=None, operation=None):
        value = Value(kind, sources, layout, data or {}, operation, len(self.values))
        self.values.append(value)
        self.starts.append(self.end)
        self.sizes.append(max(1, layout[0].numel()))
        if kind != "gather":
            self.end += layout.numel()
            self.slot[layout.flatten()] = torch.arange(self.starts[-1], self.end, dtype=torch.int32)
        return value

    def owned(self, addresses):
        """The numbers of the values that addresses belong to; -1 stands for refused ones."""
        slot = self.slot[addresses[addresses > 0]]
        if not len(slot):
            return []
        first, last = (bisect.bisect(self.starts, int(end)) - 1 for end in slot.aminmax())
        return [first] if first == last else (torch.bucketize(slot, torch.tensor(self.starts), right=True) - 1).unique().tolist()

    def owners(self, addresses):
        """The numbers of the values that addresses belong to. Raises Unsupported after a refused value."""
        found = self.owned(addresses)
        if not found or found[0] < 0:
            raise Unsupported(REFUSED)
        return found

    def homes(self, addresses):
        """Of each address the number of its value, the sample, and the place in a sample; -1 of constants, and after a refused value."""
        slot = self.slot[addresses.clamp(min=0)].contiguous().long()
        owner = torch.bucketize(slot, torch.tensor(self.starts), right=True) - 1
        start, size = (torch.tensor([*table, other])[owner] for table, other in ((self.starts, -1), (self.sizes, 1)))
        sample = torch.where(owner < 0, -1, (slot - start) // size)
        return owner, sample, torch.where(owner < 0, -1, slot - start - sample * size)

    def order_of(self, labels, count):
        """Rows by sample [batch, rows], from the sample of each row; -1 where a row has constants alone."""
        known = labels >= 0
        if not known.all():
            rows = torch.arange(count)
            fitting = [pattern for pattern in (rows // max(1, count // self.batch), rows % self.batch) if bool((pattern == labels)[known].all())]
            if not known.any() or not fitting:
                raise Unsupported("constants whose sample is not told by their place")
            labels = fitting[0]
        if count % self.batch or bool((torch.bincount(labels, minlength=self.batch) != count // self.batch).any()):
            raise Unsupported(DIFFERENTLY)
        return labels.sort(stable=True).indices.view(self.batch, -1)

    def matrix(self, rows):
        """Of rows [R, K]: a value, the row of each of its tokens [batch, tokens], and the column of each feature."""
        derived = rows > 0
        owners = self.owners(rows)
        _, labels, places = self.homes(rows)
        label = labels.amax(1)
        if bool((derived & (labels != label[:, None])).any()):
            raise Unsupported("samples of the batch are mixed")
        order, columns = self.order_of(label, len(rows)), torch.arange(rows.shape[1])
        if len(owners) == 1 and bool(derived.all()):
            value, place = self.values[owners[0]], places[order[0]]
            if value.kind != "input" or place.shape == value.layout.shape[1:]:
                sort = place[0].argsort()
                if bool((place[:, sort].diff(dim=1) > 0).all()):
                    columns = sort
            if distinct(place) == place.numel() and (value.kind != "input" or place.shape == value.layout.shape[1:]):
                order = torch.stack([item[places[item, columns[0]].argsort()] for item in order])
        return self.gather(rows[order][:, :, columns]), order, columns

    def gather(self, layout):
        """The value with this layout: one that is there, or a rearrangement."""
        derived = layout > 0
        owners = self.owners(layout)
        for owner in owners:
            if self.values[owner].layout.shape == layout.shape and torch.equal(self.values[owner].layout, layout):
                return self.values[owner]
        key = (tuple(layout.shape), hash(layout.contiguous().numpy().tobytes()))
        if key not in self.gathers:
            sources, offset = [self.values[owner] for owner in owners], 0
            home, samples, index = self.homes(layout)
            for source in sources:
                index = torch.where(home == source.number, index + offset, index)
                offset += source.layout[0].numel()
            self.refuse_of_samples(layout.clamp(max=0))
            numbers = self.numbers[-layout.clamp(max=0)]
            samples = torch.where(derived, samples, torch.arange(self.batch)[:, None, None])
            if bool((samples != samples[:, :1, :1]).any()):
                raise Unsupported(DIFFERENTLY)
            self.gathers[key] = self.define("gather", sources, layout, {
                "index": of_each(index), "numbers": of_each(numbers), "constants": layout[0].clamp(max=0)})
        return self.gathers[key]

    def view(self, operand):
        """Of an operand of any shape: a value, and where its numbers are in the flattened operand."""
        flat = operand.flatten()
        owners = self.owners(flat)
        if len(owners) == 1 and bool((flat > 0).all()):
            value = self.values[owners[0]]
            extents = [extent for extent in operand.shape[1:] if extent > 1]
            if value.kind == "input" and len(extents) == 2 and tuple(extents) != value.layout.shape[1:] and not is_transposed(operand, value):
                index = torch.arange(len(flat)).view(-1, extents[1])
                gathered, rows, columns = self.matrix(flat[index])
                return gathered, index[rows][:, :, columns]
            if value.layout.numel() == len(flat):
                grid = torch.zeros_like(flat)
                grid[self.slot[flat].long() - self.starts[value.number]] = torch.arange(len(flat))
                grid = grid.view(value.layout.shape)
                if torch.equal(flat[grid], value.layout):
                    return value, grid
        features = self.feature_dimensions(operand)
        order = [dim for dim in range(operand.dim()) if dim not in features] + features
        index = torch.arange(len(flat)).view(operand.shape).permute(order).reshape(-1, math.prod(operand.shape[dim] for dim in features))
        value, rows, columns = self.matrix(flat[index])
        return value, index[rows][:, :, columns]

    def feature_dimensions(self, operand):
        """Dimensions along which the feature changes, and the token does not."""
        owner, sample, place = self.homes(operand)
        width, found = torch.tensor([value.features for value in self.values] + [1])[owner], []
        token, feature = place // width, place % width
        for dim in range(operand.dim()):
            count = operand.shape[dim]
            if count == 1:
                continue
            pairs = [(item.narrow(dim, 0, count - 1), item.narrow(dim, 1, count - 1)) for item in (owner, token, sample, feature)]
            both = (pairs[0][0] == pairs[0][1]) & (pairs[0][0] >= 0)
            same = all(bool((near == far)[both].all()) for near, far in pairs[1:3])
            if same and bool((pairs[3][0] != pairs[3][1])[both].any()):
                found.append(dim)
        return found

    def positions(self, operand):
        """A value, and for each number of an operand its place in a sample of that value, and the sample."""
        value, grid = self.view(operand)
        places, samples = torch.empty(2, operand.numel(), dtype=torch.int64)
        places[grid.flatten()] = value.places.flatten().repeat(self.batch)
        samples[grid.flatten()] = torch.arange(self.batch).repeat_interleave(value.layout[0].numel())
        return value, places.view(operand.shape), samples.view(operand.shape)

    # ---- Constants ----

    def constant(self, addresses):
        return None if addresses is None else Constant(addresses, self.numbers[-addresses])

    def blocks_of(self, addresses):
        """The blocks that constants belong to."""
        low, high = (int(end) for end in addresses.aminmax()) if addresses.numel() else (0, 0)
        if high < 0 and self.captured.block_of(low) is self.captured.block_of(high):
            return [self.captured.block_of(low)]
        found = (torch.bucketize(-addresses[addresses < 0], self.begins, right=True) - 1).unique().tolist()
        return [self.captured.blocks[index] for index in found]

    def names(self, addresses):
        """The names of parameters and buffers that constants are, or are computed from."""
        return names_of(self.blocks_of(addresses))

    def leaves(self, addresses):
        """The addresses of parameters that constants are, or are computed from, and the operations that compute; None where some are not known."""
        found, names, stack = set(), set(), [addresses]
        while stack:
            item = stack.pop()
            for block in self.blocks_of(item):
                if not self.captured.parameters & set(names_of([block])):
                    continue
                if not block.computed:
                    found.update(item[block.has(item)].tolist())
                elif not block.recipe:
                    return None
                else:
                    names.add(block.recipe[0])
                    stack += tensors_in(block.recipe[1:])
        return torch.tensor(sorted(found, reverse=True)), names

    def unshifted(self, constant):
        """A constant that is a parameter and a number, as the parameter's addresses with its own numbers, and others as they are."""
        blocks = self.blocks_of(constant.addresses)
        if len(blocks) != 1 or not blocks[0].shift or not bool((constant.addresses < 0).all()):
            return constant
        return Constant(blocks[0].terms[0][0].reshape(-1)[-constant.addresses - blocks[0].begin], constant.values, blocks[0].shift)

    def settled(self, constant):
        """A constant that was found by drawn numbers, with its tensor's own."""
        if constant is None or not bool(constant.addresses.any()):
            return constant
        return replace(constant, values=(self.numbers[-constant.addresses] + constant.shift) * constant.factor)

    def again(self, addresses, numbers):
        """Numbers of constants that have recipes, from others of parameters: `numbers` are by −address."""
        result = numbers[-addresses.clamp(max=0)]
        for block in self.blocks_of(addresses):
            if block.recipe:
                name, arguments, options = tree_map(lambda item: self.again(item, numbers) if isinstance(item, torch.Tensor) else item, block.recipe)
                own, inside = getattr(torch.ops.aten, name)(*arguments, **options).double().reshape(-1), block.has(addresses)
                result = result.masked_scatter(inside, own[-addresses[inside] - block.begin])
        return result

    def refuse_of_samples(self, layout):
        """Raises Unsupported of constants [batch, …] of which each sample has its own, or a parameter of its own."""
        own = (layout != layout[:1]).any(0)
        trained = self.captured.parameters & set(names_of(block for block in self.blocks_of(layout[:, own]) if not block.computed)) if bool(own.any()) else ()
        if trained or bool((self.numbers[-layout] != self.numbers[-layout[:1]]).any()):
            raise Unsupported("a constant that differs from sample to sample")

    def operand(self, layout):
        """A Constant or Value of numbers [batch, tokens, features], narrow where they repeat."""
        if not (layout > 0).any():
            self.refuse_of_samples(layout)
            one = layout[0]
            for dim in (0, 1):
                narrow = one.narrow(dim, 0, 1)
                same = bool((self.numbers[-one] == self.numbers[-narrow]).all())
                if same and (bool((one == narrow).all()) or len(self.numbers[-one].unique()) == 1 and not self.names(one)):
                    one = narrow
            return self.constant(one)
        owners = self.owned(layout)
        if len(owners) == 1 and owners[0] >= 0 and torch.equal(self.values[owners[0]].layout, layout):
            return self.values[owners[0]]
        for dim in (2, 1):
            narrow = layout.narrow(dim, 0, 1)
            if layout.shape[dim] > 1 and bool((layout == narrow).all()):
                return self.operand(narrow)
        return self.gather(layout)

    def forget(self):
        """Frees what matching alone needs: addresses of operations and of values, but for the first sample."""
        self.slot, self.gathers = None, {}
        for operation in self.captured.operations:
            operation.forget()
        for value in self.values:
            value.layout.set_(value.layout[:1].clone())

    def more(self, like):
        """Addresses for a value between two parts of one operation."""
        count, old = like.numel(), len(self.slot)
        self.slot = torch.cat([self.slot, torch.full((count,), -1, dtype=torch.int32)])
        return torch.arange(old, old + count).view(like.shape)


class Reductions(Layouts):
    """The operations that reduce windows of a value."""

    def on_reduce(self, operation, x, *arguments, **options):
        name, out = operation.name, operation.outputs[0]
        dims = next((item for item in arguments if isinstance(item, (list, tuple))), None)
        if dims is None:
            dims = options.get("dim", [arguments[0]] if name in ("max", "min") and arguments else None)
        dims = [dim % x.dim() for dim in dims] if dims else list(range(x.dim()))
        order = [dim for dim in range(x.dim()) if dim not in dims]
        windows = x.permute(order + dims).reshape(out.numel(), -1)
        unbiased = options.get("unbiased", True) and not any(item is False for item in arguments[:2])
        plain = arguments and not isinstance(arguments[0], (list, tuple)) and arguments[0] is not None
        data = {"correction": options.get("correction", 1 if unbiased else 0),
                "p": float(arguments[0]) if name in ("norm", "linalg_vector_norm") and plain else 2.0}
        if name == "var_mean":
            self.window(operation, "var", windows, out, data)
            return self.window(operation, "mean", windows, operation.outputs[1], data)
        return self.window(operation, {"max": "amax", "min": "amin", "linalg_vector_norm": "norm"}.get(name, name), windows, out, data)

    def window(self, operation, name, windows, out, data=None, outside=None, divisor=None, grid=None):
        """A reduction of windows [numbers of out, size]; without those that are `outside`, and with the divisors of means. `grid`: extents of
        windows over tokens, in the order of `out`."""
        owners = self.owned(windows)
        value, (_, samples, places) = self.values[max(owners[0], 0)], self.homes(windows)
        one = windows.shape == (self.batch, value.features) and value.tokens > 1 and bool((places // value.features == places[0, 0] // value.features).all())
        if len(owners) > 1 or owners[0] < 0 or bool((windows <= 0).any()) or one:  # the features of one token are those of a row of its own
            value, places, samples = self.positions(windows.view(*out.shape, -1) if out.dim() else windows)
            places, samples = places.view(out.numel(), -1), samples.view(out.numel(), -1)
        if bool((samples != samples[:, :1]).any()):
            raise Unsupported("a mean, a sum or a maximum of another dimension than the tokens'; make the batch the first dimension of the input "
                              "and of every value (batch_first=True)")
        token, feature = places.amin(1) // value.features, places.amin(1) % value.features
        rows = None if grid is None else feature.view(-1, math.prod(grid))
        if rows is not None and bool((rows == rows[:, :1]).all()):  # at an edge, several windows begin at one token
            token = torch.arange(rows.shape[1]).repeat(len(rows))
        order = ((samples[:, 0] * max(len(places), value.tokens) + token) * value.features + feature).sort(stable=True).indices.view(self.batch, -1)
        tokens = len(token[order[0]].unique())
        if order.shape[1] % tokens:
            raise Unsupported("windows of different sizes")
        order = order.view(self.batch, tokens, -1)
        index = places[order]
        of_each(index.sort(-1).values)
        data = dict(data or {}, name=name, index=index[0])
        if name == "mean" and divisor is not None:
            data |= {"index": torch.where(outside[order][0], -1, index[0]), "divisor": divisor[order][0]}
        return self.define("reduce", [value], out.flatten()[order], data, operation)

    def on_avg_pool2d(self, operation, x, kernel, stride=(), padding=(0,), ceil=False, include=True, divisor=None, name="mean"):
        pair = lambda given: list(given) * (2 // len(given)) if given else list(kernel) * (2 // len(kernel))  # noqa: E731
        kernel, stride, padding, out = pair(kernel), pair(stride), pair(padding), operation.outputs[0]
        if divisor is not None:
            raise Unsupported("average pooling with divisor_override")
        if name == "mean" and not any(padding) and bool((x == 0).any()):  # zeros that were put around
            zeros, inner = zeros_around(x)
            if all(ahead == after and 2 * ahead <= size for (ahead, after), size in zip(zeros, kernel)):
                padding, x, include = [ahead for ahead, _ in zeros], inner, True
        behind = [max(0, (count - 1) * step + size - extent - amount) for extent, size, step, amount, count in
                  zip(x.shape[-2:], kernel, stride, padding, out.shape[-2:])]  # with ceil_mode, a last window may reach over the end
        longer = any(more > amount for more, amount in zip(behind, padding))

        def windows(numbers, around=0):
            """Windows of numbers with `around` in the padding, and 0 where a last one reaches over it."""
            found = torch.nn.functional.pad(numbers, (padding[1],) * 2 + (padding[0],) * 2, value=around)
            found = torch.nn.functional.pad(found, (0, max(0, behind[1] - padding[1]), 0, max(0, behind[0] - padding[0])))
            return found.unfold(-2, kernel[0], stride[0]).unfold(-2, kernel[1], stride[1])

        squares, ones = windows(x), torch.ones_like(x)
        if squares.shape[:-2] != out.shape:
            raise Unsupported("pooling whose windows are not those of its kernel and stride")
        squares, outside, counted = (item.reshape(out.numel(), -1) for item in (squares, windows(ones) == 0, windows(ones, int(include))))
        if bool(outside.any()):  # what is outside is the window's first number inside
            first = squares.gather(1, (~outside).int().argmax(1, keepdim=True))
            squares = torch.where(outside, first, squares)
        around = tuple((amount, max(amount, more)) for amount, more in zip(padding, behind))
        data = {"pool": Windows(tuple(x.shape[-2:]), tuple(kernel), tuple(stride), around), "include": include, "ceil": longer, "out": tuple(out.shape[-2:])}
        self.window(operation, name, squares, out, data, outside, counted.sum(1), out.shape[-2:])

    def on_max_pool2d_with_indices(self, operation, x, kernel, stride=(), padding=(0,), dilation=(1,), *_):
        if set(dilation) != {1}:
            raise Unsupported("pooling with dilation")
        self.on_avg_pool2d(operation, x, kernel, stride, padding, name="amax")

    def on__adaptive_avg_pool2d(self, operation, x, size, name="mean"):
        if any(extent % count for extent, count in zip(x.shape[-2:], size)):
            raise Unsupported("an adaptive pooling whose windows have different sizes")
        self.on_avg_pool2d(operation, x, [extent // count for extent, count in zip(x.shape[-2:], size)], name=name)

    def on_adaptive_max_pool2d(self, operation, x, size):
        self.on__adaptive_avg_pool2d(operation, x, size, "amax")


def zeros_around(x):
    """Zeros that were put around [batch, channels, positions…], (in front, behind) for each dimension, and what is inside."""
    found = []
    for dim in range(2, x.dim()):
        rows = (x != 0).transpose(0, dim).flatten(1).any(1).nonzero().flatten()
        first, last = (int(rows[0]), int(rows[-1])) if len(rows) else (0, x.shape[dim] - 1)
        found.append((first, x.shape[dim] - 1 - last))
        x = x.narrow(dim, first, last + 1 - first)
    return found, x


def by_head(rows, value, places=None):
    """Rows [batch, 1, heads × tokens, …] as [batch, heads, tokens, …]; `places` are those of the rows in a value."""
    token, count = (rows if places is None else places)[0, 0] // value.features, value.tokens
    if rows.shape[2] % count or bool((token != token[:, :1]).any()):
        raise Unsupported("a product of rows that are no tokens")
    if torch.equal(token[:, 0], torch.arange(count).repeat(len(token) // count)):
        return rows.view(len(rows), -1, count, rows.shape[3])
    if torch.equal(token[:, 0], torch.arange(count).repeat_interleave(len(token) // count)):
        return rows.view(len(rows), count, -1, rows.shape[3]).transpose(1, 2)
    raise Unsupported("a product of rows that are no tokens")


class Graph(Reductions):
    """The values of a capture; `output` is the last. `refusals`: (number of a value, message)."""

    def __init__(self, captured, output, channels_first=False):
        super().__init__(captured)
        self.refusals, self.channels_first, self.read = [], channels_first, set()
        self.other = not channels_first and any(item.dim() == 3 and item.is_floating_point() for item in captured.given)  # way to read the input
        needed = self.needed(captured.operations, output)
        for decision in captured.decisions:
            self.refusals.append((-1, f"forward takes numbers out of its input ({decision.name}), and those of one sample would be exported: "
                                  f"{decision.describe()}"))
        self.inputs = [self.define("input", [], self.input_layout(addresses, given.is_floating_point(), needed))
                       for addresses, given in zip(captured.inputs, captured.given)]
        for operation in needed:
            if operation.name == "embedding_renorm":
                self.unknown(operation, "an embedding with max_norm, which changes rows as they are looked up; set it to None, with rows as they are to be")
                continue
            try:
                self.take(operation)
                self.others(operation)
            except Unsupported as problem:
                self.unknown(operation, str(problem))
            if not self.other:
                operation.forget()
        if not (output > 0).any():
            raise Unsupported("the output is not computed from the input")
        self.output, grid = self.ended(output)
        inverse = torch.empty_like(grid.flatten())
        inverse[grid.flatten()] = torch.arange(grid.numel())
        self.output_index, self.output_shape = inverse, output.shape  # output.flatten() = layout.flatten()[output_index]

    def ended(self, output):
        """The value that is the output, and where its numbers are in the flattened output. Rows of a value in another order, as of groups of tokens, are
        a value of their own."""
        value, grid = self.view(output)
        rows = output.flatten(1, -2) if output.dim() > 2 else output
        own = rows.shape == value.layout.shape and bool((self.homes(rows)[1] == torch.arange(self.batch)[:, None, None]).all())
        if own and not torch.equal(rows, value.layout) and not torch.equal(rows.flatten(), value.layout.transpose(1, 2).flatten()):
            return self.gather(rows), torch.arange(rows.numel()).view(rows.shape)
        return value, grid

    def take(self, operation):
        """Defines the value of an operation, or of its form."""
        method = "pointwise" if operation.name in POINTWISE else "reduce" if operation.name in REDUCE else operation.name
        form = FORMS[operation.name](*operation.arguments, **operation.options) if operation.name in FORMS else None
        if form is not None:
            self.form(operation, form, *operation.outputs)
        elif not hasattr(self, f"on_{method}"):
            raise Unsupported("attune has no layer for this")
        else:
            getattr(self, f"on_{method}")(operation, *operation.arguments, **operation.options)

    def form(self, operation, form, *outputs):
        """A form of an operation, with its outputs; the first is answered."""
        name, *arguments = form
        options = arguments.pop() if isinstance(arguments[-1], dict) else {}
        arguments = [self.form(operation, item, self.more(outputs[0])) if isinstance(item, tuple) else item for item in arguments]
        part = replace(operation, name=name, arguments=arguments, options=options, outputs=outputs, words=operation.describe())
        self.take(part)
        part.forget()
        return outputs[0]

    def input_layout(self, addresses, floats, needed):
        """[batch, tokens, features] of an input: rows of features, ids, or pixels, row by row. Three dimensions have their channels first where
        a convolution, a pooling or a BatchNorm takes them so."""
        if addresses.dim() == 2:
            return addresses[:, None] if floats else addresses[:, :, None]
        if addresses.dim() != 3 or self.channels_first:
            return addresses.flatten(2).transpose(1, 2)
        for operation in needed:
            if any(part in operation.name for part in CHANNELS_FIRST) and operation.arguments[0].dim() > 2:
                rows = operation.arguments[0][0].flatten(1)
                rows = rows[:, (rows > 0).any(0)]
                if torch.equal(rows, addresses[0]):
                    return addresses.transpose(1, 2)
                if torch.equal(rows, addresses[0].reshape(1, -1)):
                    return addresses.reshape(len(addresses), -1, 1)
        return addresses

    def needed(self, operations, output):
        """The operations that the output is computed from. Collects the constants that they read."""
        used, read, found = torch.zeros(len(self.slot), dtype=torch.bool), torch.zeros(len(self.numbers), dtype=torch.bool), []

        def mark(item):
            item = in_memory_order(item)
            low, high = (int(end) for end in item.aminmax()) if item.numel() else (0, 0)
            if high > 0:
                used[item.clamp(min=0)] = True
            if low < 0:
                read[-item.clamp(max=0)] = True

        mark(output)
        for operation in reversed(operations):
            used[0] = False
            if any(bool(used[item].any()) for item in operation.outputs):
                found.append(operation)
                for item in tensors_in((operation.arguments, operation.options)):
                    mark(item)
        self.read = set(names_of(block for block in self.captured.blocks if bool(read[block.begin:block.begin + block.values.numel()].any())))
        return found[::-1]

    def others(self, operation):
        """The outputs of an operation that no layer has."""
        for index, out in enumerate(operation.outputs[1:], 1):
            if out.numel() and out.numel() % self.batch == 0 and bool((self.slot[out] < 0).all()):
                self.define("unknown", self.values[-1].derived(), out.reshape(self.batch, 1, -1), {
                    "why": f"output {index} of {operation.name}, as the places of a maximum"}, operation)

    def unknown(self, operation, why):
        """A refused operation: its numbers have a layout, so that what follows is read, too."""
        if why != REFUSED:
            self.refusals.append((len(self.values), f"{why}: {operation.describe()}"))
        operands = [item for item in operation.arguments if isinstance(item, torch.Tensor) and (item > 0).any()]
        sources = [self.values[owner] for item in operands for owner in self.owned(item) if owner >= 0]
        for out in operation.outputs:
            like = next((item for item in operands if item.shape == out.shape), None)
            try:
                layout = out.flatten()[self.view(like)[1]] if like is not None else None
            except Unsupported:
                layout = None
            if layout is None and out.numel() % self.batch == 0:
                layout = out.reshape(self.batch, 1, -1) if out.dim() < 3 or out.shape[0] != self.batch else out.reshape(self.batch, -1, out.shape[-1])
            if layout is not None:
                self.define("unknown", sources, layout, {}, operation)

    # ---- Elements ----

    def on_pointwise(self, operation, *arguments, **options):
        out, failed = operation.outputs[0], None
        if operation.name == "prelu" and arguments[1].dim() == 1 and out.dim() > 2:  # slopes of the channels
            arguments = (arguments[0], arguments[1].view(-1, *[1] * (out.dim() - 2)), *arguments[2:])
        tensors = [item for item in arguments if isinstance(item, torch.Tensor) and (item > 0).any()]

        def order(item):
            """The operand whose order the result has first: of those with most numbers one with features, as scores before a mask, then the oldest."""
            age = max(self.owned(item), default=-1)
            return -distinct(item), age >= 0 and self.values[age].features == 1, age

        for primary in sorted(tensors, key=order) if len(tensors) > 1 else tensors:
            try:
                _, grid = self.view(primary.expand(out.shape))
                break
            except Unsupported as problem:
                failed = failed or problem
        else:
            raise failed
        sources, template = [], []
        for item in arguments:
            if isinstance(item, torch.Tensor):
                template.append(len(sources))
                sources.append(self.operand(item.expand(out.shape).flatten()[grid]))
            else:
                template.append((item,))
        options = {key: value for key, value in options.items() if key not in ("device", "layout", "memory_format", "pin_memory", "non_blocking")}
        self.define("pointwise", sources, out.flatten()[grid], {"name": operation.name, "template": template, "options": options,
                                                               "type": operation.types[0]}, operation)

    def on_native_batch_norm(self, operation, x, weight, bias, mean, variance, training, momentum, epsilon):
        count = len(operation.outputs[0]) == 1 < self.batch and x.dim() > 2 and x.shape[1] % self.batch == 0 and x.shape[1] // self.batch
        if training and count:  # an InstanceNorm, of each sample's channels
            one = lambda item: item[:count] if item is not None else None  # noqa: E731
            samples = lambda item: item.reshape(self.batch, count, *item.shape[2:])  # noqa: E731
            return self.on_native_group_norm(replace(operation, outputs=[samples(operation.outputs[0])]), samples(x), one(weight), one(bias), self.batch, count, 0, count, epsilon)
        if training or mean is None:
            raise Unsupported(f"BatchNorm {operation.path} has no running statistics (track_running_stats=False): its numbers depend on the batch")
        value, grid = self.view(x)
        channel = grid // x[0, 0].numel() % x.shape[1]
        if value.features != x.shape[1] or bool((channel != torch.arange(value.features)).any()):
            raise Unsupported(f"BatchNorm {operation.path} of something else than the features of each token")
        mean, variance, weight, bias = map(self.constant, (mean, variance, weight, bias))
        scale = torch.rsqrt(variance.values + epsilon) * (weight.values if weight else 1)
        shift = (bias.values if bias else 0) - mean.values * scale
        tensors = [Constant((weight or variance).addresses[None], scale[None]), Constant((bias or mean).addresses[None], shift[None])]
        self.define("pointwise", [value, *tensors], operation.outputs[0].flatten()[grid], {
            "name": "batch_norm", "template": [0, 1, 2], "options": {}, "mean": mean, "affine": weight is not None and bias is not None,
            "deviation": (variance.values + epsilon).sqrt()}, operation)

    def on__softmax(self, operation, x, dim, *_):
        value, places, samples = self.positions(x)
        _, grid = self.view(x)
        places, samples = (item.movedim(dim, -1).reshape(-1, x.shape[dim]) for item in (places, samples))
        if bool((samples != samples[:, :1]).any()):
            raise Unsupported("a softmax over the batch")
        mine = places[samples[:, 0] == 0]
        self.define("softmax", [value], operation.outputs[0].flatten()[grid], {"index": mine[mine[:, 0].argsort()]}, operation)

    def on_native_layer_norm(self, operation, x, shape, weight, bias, epsilon, kind="LayerNorm"):
        width = math.prod(shape)
        value, rows, columns = self.matrix(x.reshape(-1, width))
        weight, bias = (self.constant(item if item is None else item.reshape(-1)[columns]) for item in (weight, bias))
        self.define("norm", [value], operation.outputs[0].reshape(-1, width)[rows][:, :, columns],
                    {"type": kind, "weight": weight, "bias": bias, "epsilon": epsilon}, operation)

    def on__fused_rms_norm(self, operation, x, shape, weight, epsilon):
        self.on_native_layer_norm(operation, x, shape, weight, None, torch.finfo(operation.types[0]).eps if epsilon is None else epsilon, "RmsNorm")

    def on_native_group_norm(self, operation, x, weight, bias, batch, channels, positions, groups, epsilon):
        value, grid = self.view(x)
        weight, bias, out = self.constant(weight), self.constant(bias), operation.outputs[0]
        if not is_transposed(x, value) and not (value.tokens == 1 and torch.equal(x.flatten(1), value.layout.flatten(1))):
            # A channel each, whose numbers are those of a group of features, as in ONNX files.
            owners = self.owned(x)
            value = self.values[owners[0]] if len(owners) == 1 and owners[0] >= 0 else value
            parts = value.layout.transpose(1, 2).reshape(len(x), channels, -1) if value.features % channels == 0 and x.numel() == value.layout.numel() else x[..., :0]
            plain = all(item is None or not self.names(item.addresses) and bool((item.values == number).all()) for item, number in ((weight, 1), (bias, 0)))
            if groups != channels or not plain or not torch.equal(x.flatten(2), parts):
                raise Unsupported(f"GroupNorm {operation.path} of something else than the features of tokens")
            weight = bias = None
            grid = torch.arange(x.numel()).view(len(x), value.features, value.tokens).transpose(1, 2)
        self.define("group_norm", [value], out.flatten()[grid], {"groups": groups, "weight": weight, "bias": bias, "epsilon": epsilon}, operation)

    # ---- Products ----

    def on_linear_rows(self, operation, rows, weight, bias, out):
        """rows [R, K] × weight [K, N] (+ bias [N]) = out [R, N]."""
        value, order, columns = self.matrix(rows)
        weight = weight if torch.equal(columns, torch.arange(len(columns))) else weight[columns]
        return self.define("linear", [value], out[order], {"weight": self.constant(weight), "bias": self.constant(bias)}, operation)

    def product(self, operation, a, b, out, bias=None):
        """a [G, M, K] × b [G, K, N] = out [G, M, N]."""
        left, right = bool((a > 0).any()), bool((b > 0).any())
        if left and right:
            return self.contract(operation, a, b, out)
        if right:  # a constant × a value: the value's columns are its rows
            a, b, out = b.transpose(1, 2), a.transpose(1, 2), out.transpose(1, 2)
        if bool((b == b[:1]).all()) or bool((self.numbers[-b] == self.numbers[-b[:1]]).all()) and not self.names(b):
            return self.on_linear_rows(operation, a.reshape(-1, a.shape[2]), b[0], bias, out.reshape(-1, out.shape[2]))
        raise Unsupported("a constant matrix for each head, as a learned query, or positions that scores are computed from")

    def on_mm(self, operation, *operands, **_):
        """Of matrices, or of batches of them; a bias is in front."""
        *bias, a, b = operands
        self.product(operation, *(item if a.dim() > 2 else item[None] for item in (a, b, operation.outputs[0])), *bias)

    on_bmm = on_addmm = on_baddbmm = on_mm

    def on_mv(self, operation, a, b):
        self.product(operation, a[None], b[None, :, None], operation.outputs[0][None, :, None])

    def on_convolution(self, operation, x, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
        if transposed or (weight > 0).any():
            raise Unsupported("a transposed convolution" if transposed else "a convolution with computed weights")
        rank, out = weight.dim() - 2, operation.outputs[0]
        stride, padding, dilation = (tuple(given) * (rank // len(given)) for given in (stride, padding, dilation))
        zeros, inner = zeros_around(x)
        around = tuple((ahead + own, behind + own) for (ahead, behind), own in zip(zeros, padding))
        windows = Windows(tuple(inner.shape[2:]), tuple(weight.shape[2:]), stride, around, groups, dilation, self.constant(weight))
        parts = weight.reshape(groups, weight.shape[0] // groups, -1).transpose(1, 2)
        whole = torch.zeros(groups * parts.shape[1], weight.shape[0], dtype=torch.int64)
        for group, part in enumerate(parts):  # one matrix with zeros
            whole[group * part.shape[0]:(group + 1) * part.shape[0], group * part.shape[1]:(group + 1) * part.shape[1]] = part
        value, places, samples = self.positions(inner)
        layout, result = windows.of(inner), out.flatten(2).transpose(1, 2)
        data = {"weight": self.constant(whole), "bias": self.constant(bias)}
        if set((*windows.kernel, *stride, groups)) == {1} and not any(sum(around, ())) and torch.equal(layout, value.layout):
            self.define("linear", [value], result, data | {"shape": windows.weight}, operation)
            return
        if bool((samples.flatten(1) != torch.arange(len(inner))[:, None]).any()) or len(inner) != self.batch:
            self.on_linear_rows(operation, layout.flatten(0, 1), whole, bias, result.flatten(0, 1))
            return
        index = windows.of(places, -1)[0]
        source = value if torch.equal(layout, value.layout) else self.define(
            "gather", [value], layout, {"index": index, "numbers": torch.zeros(index.shape).double(), "constants": torch.zeros_like(index)})
        self.define("linear", [source], result, data | {"convolution": windows}, operation)

    def contract(self, operation, a, b, out):
        left, places_a, samples_a = self.positions(a)
        right, places_b, samples_b = self.positions(b)
        label = samples_a[:, 0, 0]
        if any(bool((samples != label[:, None, None]).any()) for samples in (samples_a, samples_b)):
            raise Unsupported("attention over the batch; make the batch the first dimension of the input and of every value (batch_first=True)")
        order = label.sort(stable=True).indices.view(self.batch, -1)
        index_a, index_b = places_a[order], places_b[order]
        if order.shape[1] == 1 and a.shape[1] > left.tokens:  # heads beside each other, whose keys are the same
            index_a, index_b, out = by_head(index_a, left), index_b.expand(-1, a.shape[1] // left.tokens, -1, -1), by_head(out[order], left, index_a)
            order = slice(None)
        self.define("contract", [left, right], out[order].permute(0, 2, 1, 3).flatten(2), {"left": of_each(index_a), "right": of_each(index_b)}, operation)

    # ---- Tables ----

    def on_embedding(self, operation, table, ids, padding=-1, *_, **__):
        if (table > 0).any() or table.dim() != 2:
            raise Unsupported("rows of a computed table")
        value, order, _ = self.matrix(ids.reshape(-1, 1))
        self.define("embedding", [value], operation.outputs[0].reshape(ids.numel(), -1)[order], {"table": self.constant(table), "padding": padding}, operation)

    def on_index(self, operation, table, indices):
        if len(indices) != 1:
            raise Unsupported("an index that is computed from the input")
        self.on_embedding(operation, table, indices[0])
