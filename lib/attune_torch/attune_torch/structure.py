"""Layers as attune composes them: chains, residual connections, gated networks, transformer blocks, an encoder and a decoder; with C++ types
and names."""
import torch

from .errors import Unsupported
from .folding import Alone, Folded, LeftOut, Normalized, Scaled, warnings_of
from .layers import Attention, Block, Layer, Network, Norm, convolution_type, linear, options, pool_type, scale_type, unless
from .match import NO_RESIDUAL
from .naming import Tensors, joined, shared_path
from .normal import Constant

# Of an nn.TransformerEncoderLayer that is written out.
TORCH_NAMES = {"qkv_weight": "self_attn.in_proj_weight", "qkv_bias": "self_attn.in_proj_bias", "output": "self_attn.out_proj",
               "linear1": "linear1", "linear2": "linear2", "norm1": "norm1", "norm2": "norm2"}
# Of an nn.MultiheadAttention; without biases it has no qkv_bias.
MULTIHEAD_NAMES = {"qkv_weight": "in_proj_weight", "qkv_bias": "in_proj_bias", "output": "out_proj"}
NETWORKS = (["linear", "activation", "linear"], ["gated"])


def refused(value, text):
    """The exception that names the operation of a value."""
    return Unsupported(f"{text}: {value.operation.describe()}" if value.operation else text)


def relative(names):
    """The path that names of tensors and modules share, and the names below it."""
    path = shared_path(list(names.values()))
    return path, {key: name[len(path) + 1 if path else 0:] for key, name in names.items()}


def computed_from(value, other):
    """Whether a value is computed from another one."""
    stack, seen = [value], set()
    while stack:
        item = stack.pop()
        if item is other:
            return True
        if item not in seen and item.number >= other.number:
            seen.add(item)
            stack += item.derived()
    return False


def kinds(value):
    found, stack, seen = set(), [value], set()
    while stack:
        item = stack.pop()
        if item not in seen:
            seen.add(item)
            found.add(item.kind)
            stack += item.derived()
    return found


def meet(a, b):
    """The nearest value that both are computed from, along first sources; or None."""
    line = [a]
    while line[-1].derived():
        line.append(line[-1].sources[0])
    while b not in line:
        if not b.derived():
            return None
        b = b.sources[0]
    return b


class Structure:
    """`parts`: lists of Layers, one of them, or an encoder's and a decoder's."""

    def __init__(self, matcher, state, transposed):
        self.matcher, self.graph = matcher, matcher.graph
        self.tensors = Tensors(matcher.graph, state, transposed)
        self.changes, self.attention_names = [], None
        self.floats = set()    # tensors that are vectors for a token or a feature, and not quantized
        self.memory = None     # the encoder's output
        self.tables = []       # of a sum of embeddings: what their ids are
        layers, self.source = self.chain(matcher.output)
        layers = self.blocks(layers)
        self.parts = [layers]
        self.memory_source = None
        if self.memory is not None:
            encoder, self.memory_source = self.chain(self.memory)
            if self.memory_source is self.source:
                raise Unsupported("a decoder whose target is the encoder's source")
            if not encoder:
                raise Unsupported("a decoder that attends to an input itself; give the model an encoder, as an nn.Linear before")
            self.parts = [self.blocks(encoder), layers]
        for layer in [layer for part in self.parts for layer in part]:
            if "" in layer.names:
                self.give_path(layer)
        self.check_inputs()
        self.leave_out(state)

    def check_inputs(self):
        """Refuses inputs that no layer takes."""
        inputs = [value for value in self.graph.values if value.kind == "input"]
        taken = {self.source, self.memory_source, *self.tables}
        read = {item for value in self.graph.values for item in value.derived()}
        unused = [index for index, value in enumerate(inputs) if value not in taken and not self.is_taken(value, taken)]
        if not unused:
            return
        if not any(value in read for value in [inputs[unused[0]]]):
            raise Unsupported(f"forward does not use input {unused[0]}; of a padding mask: export without it; padding is given at run time")
        raise Unsupported("a model with several inputs that are neither ids whose embeddings are added up, nor a source and a target")

    @staticmethod
    def is_taken(value, taken):
        return any(item is not None and item.kind == "rearranged" and item.sources[0] is value for item in taken)

    def leave_out(self, state):
        """What of the state_dict is not in the file."""
        tensors = self.tensors
        taken = {name for change in tensors.changes() for name in change.sources()}
        others = {name for change in self.changes for name in (
            [f"{change.norm}.{leaf}" for leaf in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")] if isinstance(change, (Folded, Alone))
            else [change.mean, change.std] if isinstance(change, Normalized) else [])}
        left = [name for name in state if name not in tensors.file and name not in taken and name not in others]
        order = (Folded, Alone, Normalized, Scaled)
        self.changes = [*([LeftOut(left)] if left else []), *tensors.changes(),
                        *sorted(self.changes, key=lambda change: next(at for at, kind in enumerate(order) if isinstance(change, kind)))]
        for change in self.changes:
            if not hasattr(change, "tensors"):
                tensors.file = change.apply(tensors.file)
        self.left = left

    def give_path(self, layer):
        """A path for a layer that is the module itself, whose tensors have none in common."""
        tensors, path = self.tensors, layer.kind
        while any(name.startswith(f"{path}.") for name in [*tensors.file, *tensors.state]):
            path += "_"
        new = {name: joined(path, name) for name in layer.tensors}
        for name in layer.tensors:
            tensors.rename(name, new[name])
        for change in self.changes:
            if isinstance(change, Scaled):
                change.tensor = new.get(change.tensor, change.tensor)
            elif isinstance(change, Folded) and joined(change.layer, "weight") in new:
                change.layer = joined(path, change.layer)
        layer.names = [path if name == "" else joined(path, name) for name in layer.names]
        layer.tensors = list(new.values())
        layer.shapes = {new.get(name, name): shape for name, shape in layer.shapes.items()}
        self.floats = {new.get(name, name) for name in self.floats}

    # ---- Chains ----

    def chain(self, value, stop=None):
        """The layers between `stop`, or an input, and a value, in order; and the value that they take."""
        found = []
        while value is not stop:
            if value.kind in ("input", "rearranged"):
                if stop is not None:
                    raise refused(value, NO_RESIDUAL)
                break
            layers, value = self.step(value, stop)
            found += layers[::-1]
        found = found[::-1]
        return self.gated(self.attentions(found)), value

    def step(self, value, stop):
        """The layers that end in a value, and the value that they take."""
        sources = value.sources
        if value.kind == "sum":
            return self.sum(value, stop)
        if value.kind == "product":
            meeting = meet(*sources)
            branches = [self.chain(item, meeting)[0] for item in sources] if meeting is not None else []
            order = sorted(branches, key=len)
            if [[layer.kind for layer in branch] for branch in order] != [["linear"], ["linear", "activation"]]:
                raise refused(value, "a product of two values")
            layer = self.plain(value, "gate")
            layer.up, layer.gate, layer.activation = order[0][0], order[1][0], order[1][1].activation
            return [layer], meeting
        if value.kind == "attention":
            layer = self.plain(value, "core")
            if sources[0] is not sources[1]:
                self.attend_to(value, stop)
            return [layer], sources[0]
        if not hasattr(self, value.kind):
            raise refused(value, "attune has no layer for this")
        return [getattr(self, value.kind)(value)], sources[0]

    def sum(self, value, stop):
        sources = value.sources
        for skip, branch in sorted((sources, sources[::-1]), key=lambda pair: pair[0].number):
            if skip.number > branch.number or not computed_from(branch, skip):
                continue
            inside, _ = self.chain(branch, skip)
            if inside:
                layer = self.plain(value, "residual")
                layer.inside = inside
                return [layer], skip
        ids = [item for item in sources if "embedding" in kinds(item)]
        if len(ids) == 2 and stop is None:
            return self.embeddings(value)
        raise refused(value, NO_RESIDUAL)

    def embeddings(self, value):
        """Tables that are looked up with several inputs, and constants that are added."""
        tables, constants, queue = [], [], [value]
        while queue:
            item = queue.pop(0)
            if item.kind == "sum":
                queue = [*item.sources, *queue]
            elif item.kind in ("positions", "token_type"):
                constants.append(item)
                queue.insert(0, item.sources[0])
            elif item.kind == "embedding" and item.sources[0].kind == "input":
                tables.append(item)
            else:
                raise refused(value, NO_RESIDUAL)
        if len({(item.tokens, item.features) for item in tables}) > 1:
            raise refused(value, "a sum of embeddings with different numbers of tokens or features")
        parts = [self.embedding(item) for item in tables]
        layer, type_ = self.plain(tables[-1], "embeddings"), parts[0].type
        for part in parts[1:]:
            type_ = f"attune::EmbeddingSum<{type_}, {part.type}>"
        layer.type, layer.value = type_, tables
        for part in parts:
            layer.names += part.names
            layer.tensors += part.tensors
        layer.path = value.operation.path
        found = [layer]
        self.tables = [item.sources[0] for item in tables]
        for item in constants[::-1]:
            added = getattr(self, item.kind)(item)
            added.value = [*(found[-1].value if isinstance(found[-1].value, list) else [found[-1].value]), item]
            found.append(added)
        return found, tables[0].sources[0]

    def attend_to(self, value, stop):
        memory = value.sources[1]
        if stop is not None and computed_from(memory, stop) or self.memory is not None and self.memory is not memory:
            raise refused(value, "attention to another sequence" if self.memory is None else "decoder layers that attend to different values")
        if value.data["mask"].any():
            raise refused(value, "a mask of the encoder's tokens; padding is given at run time, in an EncoderDecoderMask")
        self.memory = memory

    def attentions(self, layers):
        """Attention with the Linear behind it as one layer."""
        found, at = [], 0
        while at < len(layers):
            layer = layers[at]
            if layer.kind == "core":
                after = layers[at + 1] if at + 1 < len(layers) and layers[at + 1].kind == "linear" else None
                after = after if after is not None and after.d_out == layer.value.sources[0].features else None
                found.append(self.attention(layer, after))
                at += 1 + (after is not None)
            else:
                found.append(layer)
                at += 1
        return found

    def gated(self, layers):
        """down(f(gate(x)) * up(x)) as one layer."""
        found, at = [], 0
        while at < len(layers):
            layer = layers[at]
            if layer.kind == "gate":
                down = layers[at + 1] if at + 1 < len(layers) and layers[at + 1].kind == "linear" else None
                if down is None:
                    raise refused(layer.value, "a product of two values, as of GLU, that no Linear follows")
                parts = {"gate": layer.gate, "linear1": layer.up, "linear2": down}
                biases = {part.bias for part in parts.values()}
                if len(biases) > 1:
                    raise refused(layer.value, "biases of a part of a gated network")
                whole = self.plain(down.value, "gated")
                whole.network = Network(layer.value.tokens, down.d_out, layer.gate.d_out, layer.activation, biases.pop(), True)
                whole.network_names = {name: part.names[0] for name, part in parts.items()}
                whole.tensors = [tensor for part in parts.values() for tensor in part.tensors]
                if layer.gate.d_in != down.d_out:
                    raise refused(layer.value, "a gated network with another width behind it")
                found.append(whole)
                at += 2
            else:
                found.append(layer)
                at += 1
        return found

    # ---- Single layers ----

    @staticmethod
    def plain(value, kind, type_="", names=(), tensors=()):
        return Layer(type_, list(names), list(tensors), kind, value, value.operation.path if value.operation else "")

    @staticmethod
    def place(value):
        return value.operation.path if value.operation else ""

    def scaled(self, value, tensors):
        """The factors that forward multiplies a layer by, in its tensors."""
        factor = 1.0
        for fold in value.data.get("folds", ()):
            factor *= fold[1] if fold[0] == "factor" else 1.0
        if value.data.get("factor"):
            factor *= value.data["factor"]
        if factor != 1.0:
            self.changes += [Scaled(tensor, factor) for tensor in tensors]

    def projection(self, value, weight, role="linear"):
        """Path and tensors of a Linear or a convolution, with the BatchNorm that is folded into it."""
        data = value.data
        fold = next((item for item in data.get("folds", ()) if item[0] == "batch_norm"), None)
        original = self.original(data, fold)
        path, tensors = self.tensors.layer(role, self.place(value), weight, original)
        if fold is not None:
            _, norm, scale, shift, mean, deviation = fold
            self.changes.append(Folded(norm, path, scale, shift, warnings=warnings_of(mean, deviation, f"{norm}.running_mean")))
            if len(tensors) < 2:
                tensors = [*tensors, joined(path, "bias")]
        self.scaled(value, tensors)
        return path, tensors

    @staticmethod
    def original(data, fold):
        """The bias before folds; None if a BatchNorm has made it."""
        bias = data["bias"]
        if bias is None or fold is not None and not bool((bias.addresses != 0).any()):
            return None
        return bias

    @staticmethod
    def oriented(value):
        """A Linear's weight as it is in the file: [outputs, inputs], or the shape of the convolution that cuts patches."""
        data = value.data
        if "shape" in data:
            return data["shape"]
        return Constant(data["weight"].addresses.t(), data["weight"].values.t())

    def linear(self, value):
        d_in, d_out, rows = value.sources[0].features, value.features, value.tokens
        weight = self.oriented(value)
        path, tensors = self.projection(value, weight)
        bias = len(tensors) > 1
        layer = self.plain(value, "linear", linear(rows, d_in, d_out, bias), [path], tensors)
        layer.bias, layer.d_in, layer.d_out = bias, d_in, d_out
        if "shape" in value.data:
            layer.shapes = {tensors[0]: tuple(weight.addresses.shape)}
        return layer

    def convolution(self, value):
        data = value.data["convolution"]
        path, tensors = self.projection(value, data["weight"])
        padding = tuple(0 if data["causal"] else ahead for ahead, _ in data["around"])
        groups = data["groups"]
        d_in = data["weight"].addresses.shape[1] * groups
        type_ = convolution_type(data["extents"], d_in, value.features, data["kernel"], data["stride"], padding, groups, data["causal"], len(tensors) > 1)
        layer = self.plain(value, "convolution", type_, [path], tensors)
        layer.bias = len(tensors) > 1
        shape = tuple(self.tensors.file[tensors[0]].shape)
        if shape != tuple(data["weight"].addresses.shape):
            layer.shapes = {tensors[0]: shape}
        return layer

    def embedding(self, value):
        table, padding = value.data["table"], value.data["padding"]
        type_ = f"attune::Embedding<attune::EmbeddingShape{options(seq_len=value.tokens, vocabulary=len(table.addresses), d_model=value.features, padding=padding if padding >= 0 else None)}>"
        path, tensors = self.tensors.layer("embedding", self.place(value), table, None)
        self.scaled(value, tensors)
        layer = self.plain(value, "embedding", type_, [path], tensors)
        layer.scaled = bool(value.data.get("folds"))
        return layer

    def norm(self, value):
        data = value.data
        weight, bias = data["weight"], data["bias"]
        norm = Norm(value.tokens, value.features, data["epsilon"], weight is not None or bias is not None, bias is not None, data["type"] == "RmsNorm")
        names, tensors = [], []
        if weight is None and bias is not None:
            weight = Constant(torch.zeros_like(bias.addresses), torch.ones(value.features).double())
        if weight is not None:
            path, tensors = self.tensors.layer("norm", self.place(value), weight, bias)
            names = [path]
            if bias is not None and len(tensors) < 2:
                raise refused(value, "a norm whose bias is a constant")
            self.scaled(value, tensors)
        layer = self.plain(value, "norm", norm.type(), names, tensors)
        layer.norm = norm
        return layer

    def activation(self, value):
        name = f"attune::Activation::{value.data['name']}"
        layer = self.plain(value, "activation", f"attune::ActivationLayer<{name}, {value.tokens}, {value.features}>")
        layer.activation = name
        return layer

    def vectors(self, value, type_, name, shape, rank, kind=""):
        """A layer whose tensor has vectors for tokens or features; QUANTIZE leaves it floats."""
        self.floats.add(name)
        layer = self.plain(value, kind or value.kind, type_, [name], [name])
        if len(shape) != rank:
            layer.shapes = {name: shape}
        return layer

    def class_token(self, value):
        name, shape = self.tensors.vector(value.data["tokens"], joined(self.place(value), "class_token"))
        type_ = f"attune::ClassToken<attune::TokenShape{options(seq_len=value.tokens - 1, d_model=value.features)}>"
        return self.vectors(value, type_, name, shape, 1)

    def positions(self, value):
        rows, d_model = value.tokens, value.features
        shape, table = f"attune::PositionShape{options(seq_len=rows, d_model=d_model)}", value.data["table"]
        if not self.tensors.owners(table.addresses):
            angles = torch.arange(rows).double()[:, None] * 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
            known = torch.stack([angles.sin(), angles.cos()], -1).reshape(rows, -1)[:, :d_model]
            if float((table.values - known).abs().max()) <= 1e-5:
                return self.plain(value, "positions", f"attune::SinusoidalPositions<{shape}>")
        name, extents = self.tensors.vector(table, joined(self.place(value), "positions"))
        return self.vectors(value, f"attune::LearnedPositions<{shape}>", name, extents, 2)

    def token_type(self, value):
        block, row = value.data["block"], value.data["row"]
        shape = options(seq_len=value.tokens, d_model=value.features, types=unless(block.shape[0], 2), type=unless(row, 0))
        path, tensors = self.tensors.layer("token_type", self.place(value), value.data["table"], None)
        self.floats.update(tensors)
        return self.plain(value, "token_type", f"attune::TokenType<attune::TokenTypeShape{shape}>", [path], tensors)

    def scale(self, value):
        name, shape = self.tensors.vector(value.data["weight"], joined(self.place(value), "scale"))
        self.scaled(value, [name])
        return self.vectors(value, scale_type(value.tokens, value.features), name, shape, 1, "scale")

    def affine(self, value):
        """Constants on each feature."""
        if not value.data["bias"].values.any():
            return self.scale(value)
        path = self.tensors.free(joined(joined(self.place(value), "affine"), "weight"))[:-len(".weight")]
        return self.by_feature(value, path, [self.tensors.take(joined(path, "weight"), Constant(
            value.data["weight"].addresses.reshape(-1, 1, 1), value.data["weight"].values.reshape(-1, 1, 1))), self.tensors.take(joined(path, "bias"), value.data["bias"])])

    def by_feature(self, value, path, tensors):
        """A factor and a bias for each feature: a convolution of one token, of one feature in each group."""
        d_model = value.features
        type_ = convolution_type((value.tokens,), d_model, d_model, (1,), (1,), (0,), d_model, False, True)
        return self.plain(value, "by_feature", type_, [path], tensors)

    def batch_norm(self, value):
        _, norm, scale, shift, mean, deviation = value.data["fold"]
        tensors = [joined(norm, "weight"), joined(norm, "bias")]
        for name in tensors:
            self.tensors.use(name, self.tensors.state[name])
        self.changes.append(Alone(norm, scale, shift, warnings=warnings_of(mean, deviation, f"{norm}.running_mean")))
        self.scaled(value, tensors)
        return self.by_feature(value, norm, tensors)

    def normalization(self, value):
        mean, std = value.data["names"]
        path = joined(mean.rpartition(".")[0], "normalization")
        if joined(path, "weight") in self.tensors.file or joined(path, "weight") in self.tensors.state:
            raise refused(value, f"a second normalization beside {path}")
        for name in (mean, std):
            self.tensors.use(name, self.tensors.state[name])
        self.tensors.file[joined(path, "weight")] = self.tensors.file[joined(path, "bias")] = value.data["mean"]  # until it is applied
        self.changes.append(Normalized(path, mean, std, warnings=warnings_of(value.data["mean"], value.data["deviation"], std)))
        self.scaled(value, [joined(path, "weight"), joined(path, "bias")])
        return self.by_feature(value, path, [joined(path, "weight"), joined(path, "bias")])

    def pooling(self, value):
        kind = value.data["type"]
        shape = options(seq_len=value.sources[0].tokens, d_model=value.features, kind=None if kind == "kMean" else f"attune::PoolingKind::{kind}")
        return self.plain(value, "pooling", f"attune::Pooling<attune::PoolingShape{shape}>")

    def window_pooling(self, value):
        data = value.data
        return self.plain(value, "window_pooling", pool_type(data["extents"], value.features, data["kernel"], data["stride"]))

    # ---- Attention ----

    def attention(self, core, after):
        """Projections, attention, and the Linear behind it."""
        value, data = core.value, core.value.data
        parts = [data[name] for name in ("query", "key", "values")]
        heads, width, d_model = parts[0].weight.values.shape
        if parts[2].weight.values.shape[1] != width:
            raise refused(value, "values of another width than keys")
        if value.tokens not in (value.sources[0].tokens,):
            raise refused(value, "attention whose queries are some of the tokens")
        shared = self.key_heads(value, parts)
        parts[1:] = [part.heads(shared) for part in parts[1:]]
        bias = any(part.bias is not None for part in parts)
        names, tensors = self.projections(value, parts, bias)
        if after is not None:
            names["output"], output_bias, last = after.names[0], after.bias, after.value
            tensors += after.tensors
        else:
            names["output"], output_bias, last = self.identity(value, names, d_model, heads * width, tensors), False, value
        left, right = data["window"]
        causal = right == 0 and left is None and value.tokens > 1
        rotary = parts[0].rotary or (0, 10000.0, False, ())
        found = Attention(value.tokens, d_model, heads, len(shared), width, bias, output_bias, causal, *rotary, names, tensors)
        found.window = None if causal or left is None and right is None else (left, right)
        found.memory = value.sources[0] is not value.sources[1]
        layer = self.plain(last, "attention", f"attune::MultiHeadAttention<attune::AttentionShape{found.shape()}>", (), tensors)
        layer.attention, layer.core = found, value
        return layer

    @staticmethod
    def key_heads(value, parts):
        """The first head of each group that has one head of keys and values."""
        heads = parts[0].weight.values.shape[0]

        def same(a, b):
            return all(torch.equal(part.weight.values[a], part.weight.values[b]) and torch.equal(part.weight.addresses[a], part.weight.addresses[b])
                       for part in parts[1:])
        first = [0] + [head for head in range(1, heads) if not same(head, head - 1)]
        size = heads // len(first)
        if first != list(range(0, heads, size)) or len(first) * size != heads:
            raise refused(value, "heads that share keys and values in another order than in groups")
        return first

    def projections(self, value, parts, bias):
        """The names of queries, keys and values, packed in one tensor or each for itself."""
        place, roles = self.place(value), ("query", "key", "value")
        rows = [Constant(*(getattr(part.weight, own).flatten(0, 1) for own in ("addresses", "values"))) for part in parts]
        zero = lambda part: torch.zeros(part.weight.values.shape[:2])  # noqa: E731
        biases = [Constant(part.bias.addresses.flatten(), part.bias.values.flatten()) if part.bias is not None else
                  Constant(zero(part).long().flatten(), zero(part).double().flatten()) for part in parts]
        factors = [part.factor if abs(part.factor - 1) > 1e-6 else 1.0 for part in parts]
        owners = {name for item in rows for name in self.tensors.owners(item.addresses)}
        blocks = {block.begin for item in rows for block in self.graph.blocks_of(item.addresses)}
        if len(owners) == 1 and len(blocks) == 1 and all(bool((item.addresses < 0).all()) for item in rows):
            found = self.packed(place, rows, biases if bias else None, factors, owners.pop())
            if found is not None:
                return found
        names, tensors = {}, []
        for role, item, own, factor in zip(roles, rows, biases, factors):
            names[role], made = self.tensors.layer(role, place, item, own if bias else None)
            if bias and len(made) < 2:
                made.append(self.tensors.take(joined(names[role], "bias"), own))
            if factor != 1.0:
                self.changes += [Scaled(name, factor) for name in made]
            tensors += made
        return names, tensors

    def packed(self, place, rows, biases, factors, owner):
        """Queries, keys and values one behind the other, as a tensor of the module has them; or None if it is a part of that tensor."""
        weight = Constant(*(torch.cat([getattr(item, own) for item in rows]) for own in ("addresses", "values")))
        if not self.tensors.covers(weight.addresses, owner):
            return None
        scale = torch.cat([torch.full((len(item.values),), factor) for item, factor in zip(rows, factors)])
        plain = bool((scale == 1).all())
        bias = Constant(*(torch.cat([getattr(item, own) for item in biases]) for own in ("addresses", "values"))) if biases else None
        turned = [name for name in self.tensors.whole(weight.addresses.t()) if name in self.tensors.transposed]
        names = turned or self.tensors.whole(weight.addresses)
        state = self.tensors.state
        found = {"qkv_weight": self.tensors.use(names[0], state[names[0]]) if names and plain else self.tensors.take(owner, weight, scale)}
        if bias is not None:
            whole = self.tensors.whole(bias.addresses) if plain else []
            owners = self.tensors.owners(bias.addresses)
            wanted = owners[0] if len(owners) == 1 and state[owners[0]].numel() == len(bias.addresses) else self.tensors.free(joined(place, "in_proj_bias"))
            found["qkv_bias"] = self.tensors.use(whole[0], state[whole[0]]) if whole else self.tensors.take(wanted, bias, scale)
        return found, list(found.values())

    def identity(self, value, names, d_model, width, tensors):
        """An output projection that changes nothing, where the module has none."""
        if width != d_model:
            raise refused(value, "attention without an output projection whose heads are not as wide as its input")
        path = joined(shared_path(list(names.values())), "output")
        one = torch.eye(d_model).double()
        path = self.tensors.free(joined(path, "weight"))[:-len(".weight")]
        tensors.append(self.tensors.take(joined(path, "weight"), Constant(torch.zeros(d_model, d_model, dtype=torch.int64), one)))
        return path

    # ---- Blocks ----

    def blocks(self, chain):
        """Residuals and norms of a chain become transformer layers."""
        found, at = [], 0
        while at < len(chain):
            block, taken = self.block_at(chain, at)
            if block is not None:
                found.append(block)
                at += taken
                continue
            layer = chain[at]
            if layer.kind == "residual":
                self.residual(layer)
            if layer.kind == "gated":
                raise refused(layer.value, "a gated network that is not a part of a transformer block, which has attention and a network with norms and sums")
            if layer.kind == "attention":
                self.alone(layer)
            found.append(layer)
            at += 1
        return found

    def alone(self, layer):
        """Attention that is not a part of a transformer block: its path, and the table of its names."""
        if layer.attention.memory:
            raise refused(layer.core, "attention to another sequence, outside of a decoder layer")
        path, names = relative(layer.attention.names)
        layer.names = [path]
        known = self.attention_names or names
        if ("qkv_weight" in known) != ("qkv_weight" in names) or any(known.get(key, name) != name for key, name in names.items()):
            raise refused(layer.core, f"attention outside of transformer blocks with other names than before, {', '.join(names.values())} and "
                          f"{', '.join(known.values())}; give its modules the same names")
        self.attention_names = known | names

    def residual(self, layer):
        """A residual connection that is no part of a transformer block."""
        inside = self.blocks(layer.inside)
        if any(inner.kind == "block" for inner in inside):
            raise Unsupported(f"a residual connection around a transformer block in {layer.path or 'the model'}")
        types = ", ".join(inner.type for inner in inside)
        layer.type = f"attune::Residual<{types if len(inside) == 1 else f'attune::Sequential<{types}>'}>"
        for inner in inside:
            layer.names += inner.names
            layer.tensors += inner.tensors
            layer.shapes |= inner.shapes

    def block_at(self, chain, at):
        def kind(index):
            return chain[index].kind if index < len(chain) else ""

        def inside(index):
            kinds_ = [layer.kind for layer in chain[index].inside]
            return kinds_[:-1] if kinds_[-1] == "scale" else kinds_

        decodes = self.decoder_at(chain, at, kind, inside)
        if decodes is not None:
            return decodes
        if kind(at) == "residual" and kind(at + 1) == "residual" and inside(at) == ["norm", "attention"] and \
                inside(at + 1)[:1] == ["norm"] and inside(at + 1)[1:] in NETWORKS:
            first, second = chain[at].inside, chain[at + 1].inside
            if not self.alike(first[0], second[0], second[1:]):
                return None, 0
            return self.block(first[1:], second[1:], first[0], second[0], True, chain[at + 1]), 2
        if [kind(at + i) for i in range(4)] == ["residual", "norm", "residual", "norm"] and inside(at) == ["attention"] and inside(at + 2) in NETWORKS and \
                self.alike(chain[at + 1], chain[at + 3], chain[at + 2].inside):
            return self.block(chain[at].inside, chain[at + 2].inside, chain[at + 1], chain[at + 3], False, chain[at + 3]), 4
        return None, 0

    @staticmethod
    def alike(norm1, norm2, network):
        """Whether the parts of a block have one kind of norm, and both layers of its network have a bias or none."""
        return norm1.norm == norm2.norm and (len(network) < 3 or network[0].bias == network[2].bias)

    def decoder_at(self, chain, at, kind, inside):
        """A decoder layer: attention to itself, to the encoder, a network."""
        count = 3 if [kind(at + i) for i in range(3)] == ["residual"] * 3 else 6 if [kind(at + i) for i in range(6)] == ["residual", "norm"] * 3 else 0
        if not count:
            return None
        before = count == 3
        branches = [layer.inside for layer in (chain[at:at + 3] if before else chain[at:at + 6:2])]
        wanted = [["norm"] * before + part for part in (["attention"], ["attention"], NETWORKS[0])]
        if [[layer.kind for layer in branch] for branch in branches] != wanted or not branches[1][-1].attention.memory:
            return None
        norms = [branch[0] for branch in branches] if before else chain[at + 1:at + 6:2]
        attention, cross = branches[0][-1], branches[1][-1]
        parts = [layer for branch in branches for layer in branch] + ([] if before else norms)
        names = {f"self_attn.{key}": name for key, name in attention.attention.names.items()}
        names |= {f"multihead_attn.{key}": name for key, name in cross.attention.names.items()}
        names |= {f"norm{index}": norm.names[0] for index, norm in enumerate(norms, 1) if norm.names}
        first, function, second = branches[2][-3:]
        names |= {"linear1": first.names[0], "linear2": second.names[0]}
        path, names = relative(names)
        own = {f"{name}.{key}": f"{name}.{value}" for name in ("self_attn", "multihead_attn") for key, value in MULTIHEAD_NAMES.items()}
        own |= {name: name for name in ("norm1", "norm2", "norm3", "linear1", "linear2")}
        if any(own.get(key) != name for key, name in names.items()):
            raise refused(attention.core, "a decoder layer whose tensors are not called as those of an nn.TransformerDecoderLayer")
        if attention.core.tokens > 1 and not attention.attention.causal:
            raise refused(attention.core, "a decoder layer without a causal tgt_mask")
        attention.attention.causal = False
        block = self.plain(parts[-1].value if not before else chain[at + 2].value, "block", "", [path], [tensor for part in parts for tensor in part.tensors])
        block.path = path
        block.block = Block(attention.attention, Network(attention.attention.seq_len, first.d_in, first.d_out, function.activation, first.bias), norms[0].norm,
                            before, {}, self.memory.tokens)
        a, b = attention.attention, cross.attention
        alike = all(norm.norm == norms[0].norm for norm in norms) and (a.bias, a.output_bias, a.num_heads, a.d_k) == (b.bias, b.output_bias, b.num_heads, b.d_k)
        if not alike or first.bias != second.bias or not block.block.plain():
            raise refused(attention.core, "a decoder layer with parts exchanged, or of which a part alone has biases")
        return block, count

    def block(self, attending, network, norm1, norm2, before, last):
        attention, *scale1 = attending
        if attention.attention.memory:
            raise refused(attention.core, "attention to another sequence, outside of a decoder layer")
        scale2 = network[-1:] if network[-1].kind == "scale" else []
        members = [*attending, *network, norm1, norm2]
        network = network[:len(network) - len(scale2)]
        names = dict(attention.attention.names)
        names |= {name: scale[0].names[0] for name, scale in (("scale1", scale1), ("scale2", scale2)) if scale}
        if len(network) == 1:
            parts = network[0].network
            names |= network[0].network_names
        else:
            first, second = network[0], network[2]
            parts = Network(attention.attention.seq_len, first.d_in, first.d_out, network[1].activation, first.bias)
            names |= {"linear1": first.names[0], "linear2": second.names[0]}
        if norm1.names:
            names |= {"norm1": norm1.names[0], "norm2": norm2.names[0]}
        path, names = relative(names)
        layer = self.plain(last.value, "block", "", [path], [tensor for member in members for tensor in member.tensors])
        layer.path = path
        layer.shapes = {name: shape for member in members for name, shape in member.shapes.items()}
        layer.block = Block(attention.attention, parts, norm1.norm, before, names)
        if layer.block.plain() and names == TORCH_NAMES:
            layer.block.names = {}
        return layer
