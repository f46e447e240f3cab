"""Layers one by one: their C++ types, and the names of their tensors."""

import torch

from .errors import Unsupported
from .folding import Folded, Normalized, warnings_of
from .layers import Attention, Layer, Norm, each_group, layer_type, shape, spatial
from .naming import joined, shared_path
from .normal import Constant, side_by_side


def refused(value, text):
    """The exception that names the operation of a value."""
    return Unsupported(f"{text}: {value.operation.describe()}" if value.operation else text)


def activation_of(value):
    """The enumerator of an activation."""
    return f"attune::Activation::{value.data['name']}"


def grid(value):
    """The type of a grid of tokens whose rows become columns."""
    outer, rows, cols, cell = value.data["grid"]
    type_ = layer_type("TransposeGrid", rows=rows, cols=cols, d_model=value.features, cell=cell)
    return type_ if outer == 1 else each_group(outer, [type_])


# The types of layers without tensors, of a value and the one that it takes.
PLAIN = {
    "activation": lambda value, x: f"attune::ActivationLayer<{activation_of(value)}, {value.tokens}, {value.features}>",
    "drop_tokens": lambda value, x: layer_type("DropTokens", seq_len=x.tokens, d_model=value.features, tokens=x.tokens - value.tokens),
    "repeat_last": lambda value, x: layer_type("RepeatLastToken", seq_len=x.tokens, d_model=value.features, tokens=value.tokens - x.tokens),
    "grid": lambda value, x: grid(value),
    "reshape": lambda value, x: layer_type("Reshape", rows=x.tokens, d_model=x.features, out_rows=value.tokens),
    "transpose": lambda value, x: f"attune::Transpose<{value.features}, {value.tokens}>",
    "pooling": lambda value, x: layer_type("Pooling", seq_len=x.tokens, d_model=value.features, kind=f"attune::PoolingKind::{value.data['type']}"),
}


ROTARY_SCALING = ("factor", "low_frequency_factor", "high_frequency_factor", "original_length")
HEAD_NORMS = {"LayerNorm": "kLayerNorm", "RmsNorm": "kRootMeanSquare", "UnitLength": "kUnitLength"}


def oriented(value):
    """A Linear's weight as it is in the file: [outputs, inputs], or the shape of the convolution that cuts patches."""
    return value.data["shape"] if "shape" in value.data else value.data["weight"].each(torch.t)


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


class LayerTypes:
    """The part of a Structure that knows single layers."""

    @staticmethod
    def plain(value, type_="", names=(), tensors=(), kind=""):
        return Layer(type_, list(names), list(tensors), kind or value.kind, value, LayerTypes.place(value))

    @staticmethod
    def place(value):
        return value.operation.path if value.operation else ""

    def single(self, value):
        """The layer of a value, and of nothing but it."""
        if value.kind in PLAIN:
            return self.plain(value, PLAIN[value.kind](value, value.sources[0]))
        if not hasattr(self, value.kind):
            raise refused(value, "attune has no layer for this")
        return getattr(self, value.kind)(value)

    def projection(self, value, weight, role="linear"):
        """Path and tensors of a Linear or a convolution, with the BatchNorm that is folded into it."""
        fold = value.data.get("fold")
        bias = value.data["bias"]
        if fold is not None and not bool((bias.addresses != 0).any()):
            bias = None  # the BatchNorm has made it
        path, tensors = self.tensors.layer(role, self.place(value), weight, bias)
        if fold is not None:
            norm, scale, shift, mean, deviation = fold
            self.changes.append(Folded(norm, path, scale, shift, warnings=warnings_of(mean, deviation, f"{norm}.running_mean")))
            if len(tensors) < 2:
                tensors = [*tensors, self.tensors.changed(joined(path, "bias"), value.data["bias"])]
        return path, tensors

    def linear(self, value):
        rows, d_in, d_out, weight = value.tokens, value.sources[0].features, value.features, oriented(value)
        path, tensors = self.projection(value, weight)
        bias = len(tensors) > 1
        layer = self.plain(value, layer_type("Linear", rows=rows, d_in=d_in, d_out=d_out, bias=bias), [path], tensors)
        layer.bias, layer.d_in, layer.d_out = bias, d_in, d_out
        if "shape" in value.data:
            layer.shapes = {tensors[0]: tuple(weight.addresses.shape)}
        return layer

    def convolution(self, value):
        own = value.data["convolution"]
        path, tensors = self.projection(value, own.weight)
        shape, found = (tuple(item.shape) for item in (own.weight.addresses, self.tensors.file[tensors[0]]))
        around = [(0, 0)] if own.causal else own.around
        type_ = layer_type(f"Conv{len(own.extents)}d", d_in=own.weight.addresses.shape[1] * own.groups, d_out=value.features, groups=own.groups,
                           bias=len(tensors) > 1, causal=own.causal or None, **spatial(
                               own.extents, kernel=own.kernel, stride=own.stride, dilation=own.dilation, padding=[ahead for ahead, _ in around],
                               extra_padding=[behind - ahead for ahead, behind in around]))
        layer = self.plain(value, type_, [path], tensors)
        layer.bias = len(tensors) > 1
        if found != shape:
            layer.shapes = {tensors[0]: found}
        return layer

    def embedding(self, value):
        table, padding = value.data["table"], value.data["padding"]
        type_ = layer_type("Embedding", seq_len=value.tokens, vocabulary=len(table.addresses), d_model=value.features, padding=max(padding, -1))
        path, tensors = self.tensors.layer("embedding", self.place(value), table, None)
        return self.plain(value, type_, [path], tensors)

    def norm(self, value):
        data, names, tensors = value.data, [], []
        weight, bias = data["weight"], data["bias"]
        norm = Norm(data["type"], value.tokens, value.features, data["epsilon"], weight is not None or bias is not None, bias is not None)
        if weight is None and bias is not None:
            weight = Constant.unnamed(torch.ones(value.features).double())
        if weight is not None:
            path, tensors = self.tensors.layer("norm", self.place(value), weight, bias)
            names = [path]
        layer = self.plain(value, norm.type(), names, tensors)
        layer.norm = norm
        return layer

    def of_floats(self, value, role, kind, weight, bias=None, **members):
        """A layer whose tensors QUANTIZE leaves floats."""
        path, tensors = self.tensors.layer(role, self.place(value), weight, bias)
        self.floats.update(tensors)
        return self.plain(value, layer_type(kind, **members), [path], tensors)

    def vectors(self, value, role, constant, rank, kind, **members):
        """A layer whose one tensor, which has no leaf in its name, has vectors for tokens or features."""
        name, extents = self.tensors.vector(constant, joined(self.place(value), role))
        self.floats.add(name)
        layer = self.plain(value, layer_type(kind, d_model=value.features, **members), [name], [name])
        if len(extents) != rank:
            layer.shapes = {name: extents}
        return layer

    def class_token(self, value):
        seq_len = value.sources[0].tokens
        tokens = value.tokens - seq_len
        return self.vectors(value, "class_token", value.data["tokens"], 1 if tokens == 1 else 2, "ClassToken", seq_len=seq_len, tokens=tokens)

    def scale(self, value):
        weight = value.data["weight"]
        shared = value.features > 1 and weight.values.numel() == 1
        layer = self.vectors(value, "scale", weight, 1, "LayerScale", rows=value.tokens, shared=shared or None)
        layer.kind = "shared_scale" if shared else "scale"  # also of constants on features
        return layer

    def feature_bias(self, value):
        return self.vectors(value, "bias", value.data["bias"], 1, "FeatureBias", rows=value.tokens)

    def positions(self, value):
        rows, d_model, table = value.tokens, value.features, value.data["table"]
        if not self.tensors.owners(table.addresses) or "shared" in value.data:
            angles = torch.arange(rows).double()[:, None] * 10000.0 ** (-torch.arange(0, d_model, 2).double() / d_model)
            known = torch.stack([angles.sin(), angles.cos()], -1).reshape(rows, -1)[:, :d_model]
            if float((table.values - known).abs().max()) <= 1e-5:
                return self.plain(value, layer_type("SinusoidalPositions", seq_len=rows, d_model=d_model))
            if "shared" in value.data:
                raise refused(value, f"{value.data['shared']} is a tensor of two layers; attune ties a head to the embedding before it, and repeats layers in a row")
        return self.vectors(value, "positions", table, 2, "LearnedPositions", seq_len=rows)

    def group_norm(self, value):
        weight, own = value.data["weight"], {"rows": value.tokens, "d_model": value.features, "groups": value.data["groups"], "epsilon": value.data["epsilon"]}
        if weight is None:
            return self.plain(value, layer_type("GroupNorm", affine=False, **own))
        return self.of_floats(value, "norm", "GroupNorm", weight, value.data["bias"], **own)

    def prelu(self, value):
        slopes = value.data["weight"]
        return self.of_floats(value, "prelu", "Prelu", slopes, rows=value.tokens, d_model=value.features, slopes=len(slopes.addresses))

    def token_type(self, value):
        block, row = value.data["block"], value.data["row"]
        return self.of_floats(value, "token_type", "TokenType", value.data["table"], seq_len=value.tokens, d_model=value.features, types=block.shape[0], type=row)

    def sequence_pooling(self, value):
        path, tensors = self.projection(value, oriented(value))
        return self.plain(value, layer_type("SequencePooling", seq_len=value.sources[0].tokens, d_model=value.features, bias=len(tensors) > 1), [path], tensors)

    def window_pooling(self, value):
        data, own, mean = value.data, value.data["windows"], value.data["name"] != "amax"
        padding = [ahead for ahead, _ in own.around]
        return self.plain(value, layer_type(
            f"{'Avg' if mean else 'Max'}Pool{len(own.extents)}d", d_model=value.features, count_padding=data["include"] or not mean or not any(padding),
            ceil=data["ceil"], **spatial(own.extents, kernel=own.kernel, stride=own.stride, padding=padding)))

    def sample_norm(self, value):
        """Mean and deviation of the input that a model inside does not see; the type of the whole is known when the model's is."""
        layer = self.plain(value)
        if value.data["weight"] is not None:
            path, layer.tensors = self.tensors.layer("revin", self.place(value), value.data["weight"], value.data["bias"])
            self.floats.update(layer.tensors)
            layer.names = [path]
        return layer

    # ---- Constants on each feature ----

    def by_feature(self, value, path, tensors):
        """A factor and a bias for each feature: a convolution of one token, of one feature in each group."""
        type_ = layer_type("Conv1d", seq_len=value.tokens, d_in=value.features, d_out=value.features, kernel=1, groups=value.features)
        return self.plain(value, type_, [path], tensors, "by_feature")

    def affine(self, value):
        weight, bias = value.data["weight"], value.data["bias"]
        if not bias.values.any():
            return self.scale(value)
        path = self.tensors.free_path(joined(self.place(value), "affine"))
        return self.by_feature(value, path, [self.tensors.take(joined(path, "weight"), weight.each(lambda item: item.reshape(-1, 1, 1))),
                                             self.tensors.take(joined(path, "bias"), bias)])

    def batch_norm(self, value):
        norm, scale, shift, mean, deviation = value.data["fold"]
        tensors = [self.tensors.own_or_taken(joined(norm, leaf), value.data[leaf], self.tensors.state) for leaf in ("weight", "bias")]
        self.changes.append(Folded(norm, None, scale, shift, warnings=warnings_of(mean, deviation, f"{norm}.running_mean")))
        return self.by_feature(value, norm, tensors)

    def normalization(self, value):
        mean, std = value.data["names"]
        path = joined(mean.rpartition(".")[0], "normalization")
        tensors = [joined(path, "weight"), joined(path, "bias")]
        if tensors[0] in self.tensors.file or tensors[0] in self.tensors.state:
            raise refused(value, f"a second normalization beside {path}")
        for name in (mean, std):
            self.tensors.use(name, self.tensors.state[name])
        self.tensors.file |= dict.fromkeys(tensors, value.data["mean"])  # until it is applied
        self.changes.append(Normalized(path, mean, std, warnings=warnings_of(value.data["mean"], value.data["deviation"], std)))
        return self.by_feature(value, path, tensors)

    # ---- Gated networks outside of blocks ----

    def glu(self, gated):
        """One Linear, the gate, and the Linear that follows, if any."""
        gate, up = gated.parts["gate"], gated.parts["linear1"]
        first = self.tensors.begins_with(gate.value, up.value)
        order = (gate, up) if first else (up, gate)
        rows, width = gated.network.rows, gated.network.d_ff
        if any("fold" in item.value.data for item in order):
            raise refused(gated.product, "a BatchNorm of a part of a gated network")
        weight, bias = side_by_side([item.value for item in order], torch.arange(2 * width))
        for name in gate.tensors + up.tensors:
            self.tensors.forget(name)
        path, tensors = self.tensors.layer("linear", gate.path, weight, bias)
        packed = self.plain(gate.value, layer_type("Linear", rows=rows, d_in=gate.d_in, d_out=2 * width, bias=gate.bias), [path], tensors)
        packed.value = [weight.each(torch.t), bias, gate.value.sources[0]]
        middle = self.plain(gated.product, layer_type("Glu", rows=rows, d_model=width, activation=gated.network.activation,
                                                      gate="attune::GluGate::kFirst" if first else None), kind="glu")
        return [packed, middle, *list(gated.parts.values())[2:]]

    # ---- Attention ----

    def attention(self, core, after):
        """Projections, attention, and the Linear behind it."""
        value, data = core.value, core.value.data
        parts = [data[name] for name in ("query", "key", "values")]
        heads, width, d_model = parts[0].weight.values.shape
        if parts[2].weight.values.shape[1] != width:
            raise refused(value, "values of another width than keys")
        if value.tokens != value.sources[0].tokens:
            raise refused(value, "attention whose queries are some of the tokens")
        shared = key_heads(value, parts)
        parts[1:] = [part.heads(shared) for part in parts[1:]]
        bias = any(part.bias is not None for part in parts)
        names, tensors = self.projections(value, parts, bias)
        norm, temperature = parts[0].norm, data["temperature"]
        for name, part in zip(("query_norm", "key_norm"), parts if norm and norm.kind != "UnitLength" else ()):
            names[name] = self.head_norm(value, name, part, bias, tensors)
        if after is not None:
            names["output"], output_bias, last = after.names[0], after.bias, after.value
            tensors += after.tensors
        else:
            names["output"], output_bias, last = self.identity(value, names, d_model, heads * width, tensors), False, value
        if temperature is not None:
            names["score_scale"] = self.temperature(value, temperature, tensors)
        if data["relative"] is not None:
            names["relative_bias"] = self.relative_bias(data["relative"].table, tensors)
        members = {"seq_len": value.tokens, "d_model": d_model, "num_heads": heads, "num_kv_heads": len(shared),
                   "d_k": None if width * heads == d_model else width, "d_out": last.features, "bias": bias, "output_bias": output_bias}
        if value.sources[0] is not value.sources[1]:
            memory = value.sources[1]
            members |= {"kv_len": memory.tokens, "d_key": memory.features, "d_value": memory.features}
        if parts[0].rotary:
            dimension, base, adjacent, scaling = parts[0].rotary
            members |= {"rotary_dim": dimension, "rotary_base": base, "rotary_pairs": "attune::RotaryPairs::kInterleaved" if adjacent else None,
                        "rotary_scaling": shape("RotaryScaling", **dict(zip(ROTARY_SCALING, scaling))) if scaling else None}
        if norm:
            members |= {"query_key_norm": f"attune::QueryKeyNorm::{HEAD_NORMS[norm.kind]}", "query_key_epsilon": norm.epsilon}
        if temperature is not None:
            members |= {"scaling": "attune::Scaling::kOne", "score_scale": f"attune::ScoreScale::{temperature.kind}",
                        "score_scales": len(temperature.parameter.addresses)}
        if data["relative"] is not None:
            members["relative_bias"] = shape("RelativeBias", **dict(data["relative"].members, kind=f"attune::RelativePositions::{data['relative'].members['kind']}"))
        found = Attention(members, data["window"], names)
        layer = self.plain(last, f"attune::MultiHeadAttention<attune::AttentionShape{found.shape()}>", (), tensors, "attention")
        layer.attention, layer.core = found, value
        return layer

    def relative_bias(self, table, tensors):
        """The name of the tensor of biases by relative position, [heads, entries] in the file."""
        owner = self.tensors.owners(table.addresses)[0]
        whole = self.tensors.whole(table.addresses) if self.tensors.state[owner].shape == table.addresses.shape else ()
        name = self.tensors.own_or_taken(owner, table, whole)
        self.floats.add(name)
        tensors.append(name)
        return name

    def temperature(self, value, found, tensors):
        """The name of the tensor of attention's factor, which is a vector in the file."""
        constant = found.parameter
        owner = self.tensors.owners(constant.addresses)[0]
        name = self.tensors.own_or_taken(owner, constant, self.tensors.whole(constant.addresses) if self.tensors.state[owner].dim() == 1 else ())
        self.floats.add(name)
        tensors.append(name)
        return name

    def head_norm(self, value, role, part, biased, tensors):
        """The path of a norm of queries or keys; the factor of the scores is in its tensors."""
        norm, factor = part.norm, part.factor if abs(part.factor - 1) > 1e-6 else 1.0
        if norm.bias is not None and not biased:
            raise refused(value, "a norm of queries and keys that has a bias, behind projections that have none")
        plain = Constant.unnamed(torch.ones(part.weight.values.shape[1]).double())
        bias = norm.bias or (Constant.unnamed(0 * plain.values) if norm.kind == "LayerNorm" and biased else None)
        path, made = self.tensors.layer(role, self.place(value), (norm.weight or plain).times(factor), bias and bias.times(factor))
        tensors += made
        return path

    def projections(self, value, parts, bias):
        """The names of queries, keys and values, packed in one tensor or each for itself."""
        place, roles = self.place(value), ("query", "key", "value")
        rows = [part.weight.each(lambda item: item.flatten(0, 1)) for part in parts]
        biases = [part.bias.each(torch.flatten) if part.bias is not None else Constant.unnamed(torch.zeros(len(item.values)).double())
                  for part, item in zip(parts, rows)]
        factors = [part.factor if abs(part.factor - 1) > 1e-6 and part.norm is None else 1.0 for part in parts]
        rows, biases = ([item.times(factor) for item, factor in zip(items, factors)] for items in (rows, biases))
        owners = {name for item in rows for name in self.tensors.owners(item.addresses)}
        blocks = {block.begin for item in rows for block in self.graph.blocks_of(item.addresses)}
        if len(owners) == 1 and len(blocks) == 1 and all(bool((item.addresses < 0).all()) for item in rows):
            found = self.packed(place, rows, biases if bias else None, owners.pop())
            if found is not None:
                return found
        names, tensors = {}, []
        for role, item, own in zip(roles, rows, biases):
            names[role], made = self.tensors.layer(role, place, item, own if bias else None)
            tensors += made
        return names, tensors

    def packed(self, place, rows, biases, owner):
        """Queries, keys and values in one tensor, if that is a whole tensor of the module; else None."""
        weight, state = Constant.joined(rows), self.tensors.state
        if not self.tensors.covers(weight.addresses, owner):
            return None
        names = [name for name in self.tensors.whole(weight.addresses.t()) if name in self.tensors.transposed] or self.tensors.whole(weight.addresses)
        found = {"qkv_weight": self.tensors.own_or_taken(names[0] if names and isinstance(weight.factor, float) else owner, weight, names)}
        if biases:
            bias = Constant.joined(biases)
            whole, owners = self.tensors.whole(bias.addresses), self.tensors.owners(bias.addresses)
            wanted = owners[0] if len(owners) == 1 and state[owners[0]].numel() == len(bias.addresses) else self.tensors.free(joined(place, "in_proj_bias"))
            found["qkv_bias"] = self.tensors.own_or_taken(whole[0] if whole and isinstance(bias.factor, float) else wanted, bias, whole)
        return found, list(found.values())

    def identity(self, value, names, d_model, width, tensors):
        """An output projection that changes nothing, where the module has none."""
        if width != d_model:
            raise refused(value, "attention without an output projection whose heads are not as wide as its input")
        path = self.tensors.free_path(joined(shared_path(list(names.values())), "output"))
        tensors.append(self.tensors.take(joined(path, "weight"), Constant.unnamed(torch.eye(d_model).double())))
        return path
