"""Layers one by one: their C++ types, and the names of their tensors."""
import torch

from .errors import Unsupported
from .folding import Alone, Folded, Normalized, Scaled, warnings_of
from .layers import (Attention, Layer, Norm, convolution_type, drop_type, feature_bias_type, glu_type, group_norm_type, linear, options, pool_type, prefix_type,
                     prelu_type, reshape_type, scale_type, sequence_pooling_type, unless)
from .naming import joined, shared_path
from .normal import Constant


def refused(value, text):
    """The exception that names the operation of a value."""
    return Unsupported(f"{text}: {value.operation.describe()}" if value.operation else text)


class LayerTypes:
    """The part of a Structure that knows single layers."""

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
        type_ = convolution_type(data["extents"], d_in, value.features, data["kernel"], data["stride"], padding, groups, data["causal"], len(tensors) > 1,
                                 data.get("dilation", (1, 1)))
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
        norm = Norm(value.tokens, value.features, data["epsilon"], weight is not None or bias is not None, bias is not None, data["type"] == "RmsNorm",
                    data["type"] == "DeviationNorm")
        names, tensors = [], []
        if weight is None and bias is not None:
            weight = Constant(torch.zeros_like(bias.addresses), torch.ones(value.features).double())
        if weight is not None:
            path, tensors = self.tensors.layer("norm", self.place(value), weight, bias)
            names = [path]
            if bias is not None and len(tensors) < 2:
                raise refused(value, "a norm whose bias is a constant")
            self.changes += [Scaled(tensor, data[key]) for tensor, key in zip(tensors, ("weight_factor", "bias_factor")) if key in data]
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
        seq_len = value.sources[0].tokens
        tokens = value.tokens - seq_len
        return self.vectors(value, prefix_type(seq_len, value.features, tokens), name, shape, 1 if tokens == 1 else 2)

    def group_norm(self, value):
        data, affine = value.data, value.data["weight"] is not None
        path, tensors = self.tensors.layer("norm", self.place(value), data["weight"], data["bias"]) if affine else ("", [])
        self.floats.update(tensors)
        return self.plain(value, "group_norm", group_norm_type(value.tokens, value.features, data["groups"], data["epsilon"], affine), [path] * affine, tensors)

    def drop_tokens(self, value):
        seq_len = value.sources[0].tokens
        return self.plain(value, "drop_tokens", drop_type(seq_len, value.features, seq_len - value.tokens))

    def reshape(self, value):
        before = value.sources[0]
        return self.plain(value, "reshape", reshape_type(before.tokens, before.features, value.tokens))

    def transpose(self, value):
        return self.plain(value, "transpose", f"attune::Transpose<{value.features}, {value.tokens}>")

    def prelu(self, value):
        slopes = value.data["weight"]
        path, tensors = self.tensors.layer("prelu", self.place(value), slopes, None)
        self.floats.update(tensors)
        return self.plain(value, "prelu", prelu_type(value.tokens, value.features, len(slopes.addresses)), [path], tensors)

    def sequence_pooling(self, value):
        path, tensors = self.projection(value, self.oriented(value))
        return self.plain(value, "sequence_pooling", sequence_pooling_type(value.sources[0].tokens, value.features, len(tensors) > 1), [path], tensors)

    def sample_norm(self, value):
        """Mean and deviation of the input that a model inside does not see; the type of the whole is known when the model's is."""
        layer = self.plain(value, "reversible")
        if value.data["weight"] is not None:
            path, layer.tensors = self.tensors.layer("revin", self.place(value), value.data["weight"], value.data["bias"])
            self.floats.update(layer.tensors)
            layer.names = [path]
        return layer

    def positions(self, value):
        rows, d_model = value.tokens, value.features
        shape, table = f"attune::PositionShape{options(seq_len=rows, d_model=d_model)}", value.data["table"]
        if not self.tensors.owners(table.addresses) or "shared" in value.data:
            angles = torch.arange(rows).double()[:, None] * 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
            known = torch.stack([angles.sin(), angles.cos()], -1).reshape(rows, -1)[:, :d_model]
            if float((table.values - known).abs().max()) <= 1e-5:
                return self.plain(value, "positions", f"attune::SinusoidalPositions<{shape}>")
            if "shared" in value.data:
                raise refused(value, f"{value.data['shared']} is a tensor of two layers; attune ties a head to the embedding before it, and nothing else")
        name, extents = self.tensors.vector(table, joined(self.place(value), "positions"))
        self.scaled(value, [name])
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

    def feature_bias(self, value):
        name, shape = self.tensors.vector(value.data["bias"], joined(self.place(value), "bias"))
        return self.vectors(value, feature_bias_type(value.tokens, value.features), name, shape, 1)

    def affine(self, value):
        """Constants on each feature."""
        if not value.data["bias"].values.any():
            return self.scale(value)
        path = self.tensors.free(joined(joined(self.place(value), "affine"), "weight"))[:-len(".weight")]
        return self.by_feature(value, path, [self.tensors.take(joined(path, "weight"), Constant(
            value.data["weight"].addresses.reshape(-1, 1, 1), value.data["weight"].values.reshape(-1, 1, 1))), self.tensors.take(joined(path, "bias"), value.data["bias"])])

    def glu(self, gated):
        """A gated network outside of a block: one Linear, the gate, and the Linear that follows, if any."""
        gate, up = gated.parts["gate"], gated.parts["linear1"]
        first = self.tensors.begins_with(gate.value, up.value)
        order = (gate, up) if first else (up, gate)
        weight, bias = (Constant(*(torch.cat([getattr(item.value.data[name], own).t() for item in order]) for own in ("addresses", "values")))
                        if gate.bias or name == "weight" else None for name in ("weight", "bias"))
        for name in gate.tensors + up.tensors:
            self.tensors.forget(name)
        path, tensors = self.tensors.layer("linear", gate.path, weight, bias)
        rows, width = gated.network.rows, gated.network.d_ff
        packed = self.plain(gate.value, "linear", linear(rows, gate.d_in, 2 * width, gate.bias), [path], tensors)
        packed.value = [Constant(weight.addresses, weight.values.t()), bias, gate.value.sources[0]]
        middle = self.plain(gated.product, "glu", glu_type(rows, width, gated.network.activation, first))
        return [packed, middle, *list(gated.parts.values())[2:]]

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
        return self.plain(value, "window_pooling", pool_type(
            data["extents"], value.features, data["kernel"], data["stride"], data["padding"], data["include"], "Max" if data["name"] == "amax" else "Avg", data["ceil"]))

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
        norm = parts[0].norm
        for name, part in zip(("query_norm", "key_norm"), parts if norm and norm.kind != "UnitLength" else ()):
            names[name] = self.head_norm(value, name, part, bias, tensors)
        if after is not None:
            names["output"], output_bias, last = after.names[0], after.bias, after.value
            tensors += after.tensors
        else:
            names["output"], output_bias, last = self.identity(value, names, d_model, heads * width, tensors), False, value
        left, right, own = data["window"]
        causal = right == 0 and left is None and own and value.tokens > 1
        rotary = parts[0].rotary or (0, 10000.0, False, ())
        found = Attention(value.tokens, d_model, heads, len(shared), width, bias, output_bias, causal, *rotary, names, tensors)
        found.window = None if causal or left is None and right is None and own else (left, right, own)
        if norm:
            found.head_norm = ({"LayerNorm": "kLayerNorm", "RmsNorm": "kRootMeanSquare", "UnitLength": "kUnitLength"}[norm.kind], norm.epsilon)
        if data["temperature"] is not None:
            names["score_scale"], count = self.temperature(value, data["temperature"], tensors), len(data["temperature"].parameter.addresses)
            found.score_scale = (data["temperature"].kind, count)
        if value.sources[0] is not value.sources[1]:
            found.memory = (value.sources[1].tokens, value.sources[1].features)
        layer = self.plain(last, "attention", f"attune::MultiHeadAttention<attune::AttentionShape{found.shape()}>", (), tensors)
        layer.attention, layer.core = found, value
        return layer

    def temperature(self, value, found, tensors):
        """The name of the tensor of attention's factor, which is a vector in the file."""
        constant = found.parameter
        owner = self.tensors.owners(constant.addresses)[0]
        whole = owner in self.tensors.whole(constant.addresses) and self.tensors.state[owner].dim() == 1
        name = self.tensors.use(owner, self.tensors.state[owner]) if whole else self.tensors.take(owner, constant)
        if found.factor != 1.0:
            self.changes.append(Scaled(name, found.factor))
        self.floats.add(name)
        tensors.append(name)
        return name

    def head_norm(self, value, role, part, biased, tensors):
        """The path of a norm of queries or keys; the factor of the scores is in its tensors."""
        norm, plain = part.norm, torch.ones(part.weight.values.shape[1]).double()
        if norm.bias is not None and not biased:
            raise refused(value, "a norm of queries and keys that has a bias, behind projections that have none")
        path, made = self.tensors.layer(role, self.place(value), norm.weight or Constant(torch.zeros(len(plain), dtype=torch.int64), plain), norm.bias)
        if norm.kind == "LayerNorm" and biased and len(made) < 2:
            made.append(self.tensors.take(joined(path, "bias"), norm.bias or Constant(torch.zeros(len(plain), dtype=torch.int64), 0 * plain)))
        for tensor, factor in zip(made, (norm.weight_factor, norm.bias_factor)):
            if abs(part.factor * factor - 1) > 1e-6:
                self.changes.append(Scaled(tensor, part.factor * factor))
        tensors += made
        return path

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
        factors = [part.factor if abs(part.factor - 1) > 1e-6 and part.norm is None else 1.0 for part in parts]
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
        """Queries, keys and values in one tensor, if that is a whole tensor of the module; else None."""
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
