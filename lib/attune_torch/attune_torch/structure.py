"""Layers as attune composes them: chains, residual connections, gated networks, transformer blocks, an encoder and a decoder; with C++ types
and names."""
import itertools
from collections import Counter

from .errors import Unsupported
from .evaluate import computed_from, meet, region
from .folding import Folded, LeftOut, Scaled, Shifted, Taken, in_order
from .layer_types import PLAIN, LayerTypes, activation_of, refused
from .layers import Block, Network
from .match import NO_RESIDUAL
from .naming import Tensors, joined, shared_path
from .padding_masks import refuse_several
from .shared import inside

# Of an nn.TransformerEncoderLayer that is written out.
TORCH_NAMES = {"qkv_weight": "self_attn.in_proj_weight", "qkv_bias": "self_attn.in_proj_bias", "output": "self_attn.out_proj",
               "linear1": "linear1", "linear2": "linear2", "norm1": "norm1", "norm2": "norm2"}
# Of an nn.TransformerDecoderLayer.
DECODER_NAMES = TORCH_NAMES | {"norm3": "norm3", "memory.qkv_weight": "multihead_attn.in_proj_weight", "memory.qkv_bias": "multihead_attn.in_proj_bias",
                               "memory.output": "multihead_attn.out_proj"}
# Of an nn.MultiheadAttention; without biases it has no qkv_bias.
MULTIHEAD_NAMES = {"qkv_weight": "in_proj_weight", "qkv_bias": "in_proj_bias", "output": "out_proj"}
PRODUCT = "a product of two values that are not computed from one value, by layers"
PARTS = "a sum or a product of layers that take different parts of the input; a sum of Linears of parts is one Linear of the whole input"
NO_LAYER = "forward answers its input as it is, and there is no layer to export"
# Branches of a block.
EVERYTHING = (None, None, True)  # a window
NETWORKS = (["linear", "activation", "linear"], ["gated"])


def relative(names):
    """The path that names of tensors and modules share, and the names below it."""
    path = shared_path(list(names.values()))
    return path, {key: name[len(path) + 1 if path else 0:] for key, name in names.items()}


def depend(values):
    """Whether one of several values is computed from another."""
    return any(one is not other and computed_from(one, other) for one in values for other in values)


def uses_of(output, begin=None):
    """How many values take each value, also within groups and applications."""
    values = region(output, {begin})
    found = Counter(source for item in values for source in item.derived())
    for item in values:
        if inside(item):
            found += uses_of(*inside(item))
    return found


def are_alike(norm1, norm2, network):
    """Whether the parts of a block have one kind of norm, and both layers of its network have a bias or none."""
    gated = next((layer for layer in network if layer.kind == "gated"), None)
    if gated is not None and gated.parts["gate"].d_in != gated.parts["linear2"].d_out:
        return False
    return norm1.norm == norm2.norm and (len(network) < 3 or network[0].bias == network[2].bias)


def network_of(rows, network):
    """A Network of a block, and the names of its parts."""
    if len(network) == 1:
        return network[0].network, network[0].network_names
    first, function, second = network
    return Network(rows, first.d_in, first.d_out, activation_of(function.value), first.bias), {"linear1": first.names[0], "linear2": second.names[0]}


class Structure(LayerTypes):
    """`parts`: lists of Layers, one of them, or an encoder's and a decoder's."""

    def __init__(self, matcher, state, transposed):
        self.matcher, self.graph = matcher, matcher.graph
        self.tensors = Tensors(matcher.graph, state, transposed)
        self.changes, self.attention_names = self.tensors.changes, None
        self.uses = uses_of(matcher.output)
        self.floats = set()    # tensors that are vectors for a token or a feature, and not quantized
        self.memory = None     # the encoder's output
        self.reduced = set()   # attention whose keys and values are layers of what its queries are of
        self.tables = []       # of a sum of embeddings: what their ids are
        layers, self.source = self.chain(matcher.output)
        if not layers:
            raise Unsupported(NO_LAYER)
        layers = self.blocks(layers)
        self.parts = [layers]
        self.memory_source = None
        if self.memory is not None:
            encoder, self.memory_source = self.chain(self.memory)
            if self.memory_source is self.source:
                raise Unsupported("a decoder whose target is the encoder's source; attune's decoders have an input of their own: give forward a second input for the target")
            if not encoder:
                raise Unsupported("a decoder that attends to an input itself; give the model an encoder, as an nn.Linear before")
            self.parts = [self.blocks(encoder), layers]
        every = [inner for part in self.parts for layer in part for inner in layer.every()]
        for layer in every:
            if "" in layer.names:
                self.give_path(layer)
        for decodes in (False, True):
            self.same_names([layer for layer in every if layer.kind == "block" and bool(layer.block.cross) == decodes])
        self.check_inputs()
        self.padding = self.find_padding()
        self.tied = self.tie()
        self.leave_out(state)

    def check_inputs(self):
        """Refuses inputs that no layer takes."""
        taken = {self.source, self.memory_source, *self.tables}
        taken |= {item.sources[0] for item in taken if item is not None and item.kind == "rearranged"}
        unused = [index for index, value in enumerate(self.graph.inputs) if value not in taken]
        if not unused:
            return
        if not any(self.graph.inputs[unused[0]] in value.sources for value in self.graph.values):
            raise Unsupported(f"forward does not use input {unused[0]}; of a padding mask: export without it; padding is given at run time")
        raise Unsupported("a model with several inputs that are neither ids whose embeddings are added up, nor a source and a target")

    def find_padding(self):
        """The padding of ids by inputs, and the options of a MaskFromIds; or None."""
        every = [value for value in self.matcher.layers() if value.kind == "attention" or value.kind == "pooling" and value.reads]
        cross = [value for value in every if value.sources[0] is not value.sources[-1] and value not in self.reduced]
        encoder = [value for value in every if not cross or value not in cross and computed_from(self.memory, value)]
        source = refuse_several(encoder + cross)
        target = refuse_several([value for value in every if value not in encoder + cross])
        if source is None and target is None:
            return None
        tables = self.tables or [self.memory_source if cross else self.source]
        if source is not None and source[0] not in tables or target is not None and target[0] is not self.source:
            raise Unsupported("padding of other ids than those that the attention is about")
        options = {"padding": source[1] if source else -1, "table": tables.index(source[0]) if source else 0, "target_padding": target[1] if target else None}
        return dict(item for item in (source, target) if item is not None), options

    def tie(self):
        """Whether the embedding is the head, too; it is in the file once."""
        first, last = self.parts[-1][0], self.parts[-1][-1]
        one = lambda layer: self.tensors.captured.aliases.get(layer.tensors[0], layer.tensors)[0]  # noqa: E731
        if len(self.parts) > 1 or first.kind != "embedding" or last.kind != "linear" or one(first) != one(last):
            return False
        if last.tensors[0] != first.tensors[0]:
            self.tensors.forget(last.tensors[0])
        return True

    def leave_out(self, state):
        """What of the state_dict is not in the file."""
        tensors = self.tensors
        taken = [Taken(tensors.taken)] if tensors.taken else []
        others = {name for change in taken + self.changes for name in change.sources()}
        self.left = [name for name in state if name not in tensors.file and name not in others]
        for change in in_order(self.changes):
            tensors.file = change.apply(tensors.file)
        self.changes = in_order([*([LeftOut(self.left)] if self.left else []), *taken, *self.changes])

    def give_path(self, layer):
        """A path for a layer that is the module itself, whose tensors have none in common."""
        path = self.free_path(layer.kind)
        self.rename(layer, {name: joined(path, name) for name in layer.tensors})
        for change in self.changes:
            if isinstance(change, Folded) and change.layer is not None and joined(path, joined(change.layer, "weight")) in layer.tensors:
                change.layer = joined(path, change.layer)
        layer.names = [path if name == "" else joined(path, name) for name in layer.names]

    def free_path(self, path):
        while any(name.startswith(f"{path}.") for name in [*self.tensors.file, *self.tensors.state]):
            path += "_"
        return path

    def rename(self, layer, new):
        """Gives tensors of a layer other names in the file."""
        for name in new:
            self.tensors.rename(name, new[name])
        for change in self.changes:
            if isinstance(change, (Scaled, Shifted)):
                change.tensor = new.get(change.tensor, change.tensor)
        layer.tensors = [new.get(name, name) for name in layer.tensors]
        layer.shapes = {new.get(name, name): shape for name, shape in layer.shapes.items()}
        self.floats = {new.get(name, name) for name in self.floats}

    def same_names(self, blocks):
        """Blocks whose tensors have several kinds of names, as in a flat list of modules, get those of one kind in the file."""
        if len({repr(sorted(layer.block.names.items())) for layer in blocks}) < 2:
            return
        tables = [layer.block.names or TORCH_NAMES for layer in blocks]
        if any(layer.block.cross and not layer.block.names for layer in blocks) or len({"qkv_weight" in table for table in tables}) > 1:
            raise Unsupported(f"transformer blocks of two kinds of names in one model: {blocks[0].path}, {blocks[-1].path}")
        path = self.free_path(joined(shared_path([name for layer in blocks for name in layer.names]), "blocks"))
        for index, (layer, table) in enumerate(zip(blocks, tables)):
            own = {joined(layer.names[0], name): f"{path}.{index}.{key}" for key, name in table.items()}
            self.rename(layer, {tensor: new + tensor[len(old):] for tensor in layer.tensors for old, new in own.items()
                                if tensor == old or tensor.startswith(f"{old}.")})
            layer.names, layer.block.names = [f"{path}.{index}"], {key: key for one in tables for key in one}

    # ---- Chains ----

    def chain(self, value, stop=None, of=None):
        """The layers between `stop`, or an input, and a value, in order; and the value that they take. `of`: the sum or product that they are in."""
        found, end = [], value
        while value is not stop:
            if value.kind == "rearranged" and value.sources[0] is stop and stop.is_whole(value.data["index"].t()):
                found.append(self.plain(value, PLAIN["transpose"](value, None), kind="transpose"))
                value = stop
                continue
            if value.kind in ("input", "rearranged"):
                if stop is not None:
                    raise refused(of or (value if value.operation else end), PARTS if stop.kind == "input" else NO_RESIDUAL)
                break
            layers, value = self.step(value, stop)
            found += layers[::-1]
        found = found[::-1]
        return self.completed(found), value

    def step(self, value, stop):
        """The layers that end in a value, and the value that they take."""
        sources = value.sources
        if value.kind == "sum":
            return self.sum(value, stop)
        if value.kind == "product":
            return self.product(value)
        if value.kind == "attention":
            layer = self.plain(value, kind="core")
            if sources[0] is sources[1]:
                return [layer], sources[0]
            source = meet(*sources[:2])
            if source is None or source.kind == "input" and source is not sources[0] or stop is not None and source.number < stop.number:
                self.attend_to(value, stop)
                return [layer], sources[0]
            self.reduced.add(value)
            layer.terms = [self.chain(item, source)[0] for item in sources[1::-1] if item is not source or item is sources[1]]
            return [layer], source
        if value.kind == "reversible":
            layer = self.sample_norm(value)
            layer.inner, _ = self.chain(sources[0], value.data["inner"])
            return [layer], sources[1]
        if inside(value):
            layer = self.plain(value)
            layer.inner, _ = self.chain(*inside(value))
            return [layer], sources[0]
        return [self.single(value)], sources[0]

    def product(self, value):
        """A layer times its gate, from the value that both take; or the gate of a gated network."""
        first, second = value.sources
        source = meet(first, second)
        if source is None or first is second or source is second and second.tokens < first.tokens:
            raise refused(value, PRODUCT)
        branches = [self.chain(item, source, value)[0] for item in (first, second)]
        if any(layer.kind == "embedding" for branch in branches for layer in branch):
            raise refused(value, PRODUCT)
        order = sorted(branches, key=len)
        if [[layer.kind for layer in branch] for branch in order] == [["linear"], ["linear", "activation"]]:
            layer = self.plain(value, kind="gate")
            layer.up, layer.gate, layer.activation = order[0][0], order[1][0], activation_of(order[1][1].value)
        else:
            layer = self.plain(value, kind="product")
            layer.terms = branches if order[0] else order  # the value itself is the first factor
        return [layer], source

    def sum(self, value, stop):
        for residuals in (True, False):
            terms = self.terms_of(value, residuals)
            skip = next((item for item in terms if all(computed_from(other, item) for other in terms)), None)
            branches = [item for item in terms if item is not skip]
            if not depend(branches):
                break
        if skip is not None and branches:
            layer = self.plain(value, kind="residual")
            layer.inside = self.branches(value, branches, skip)
            return [layer], skip
        meeting = meet(*terms) if skip is None else None
        if meeting is not None and meeting.kind != "input":
            return self.branches(value, terms, meeting), meeting
        ids = [item for item in value.sources if any(part.kind == "embedding" for part in region(item))]
        if len(ids) == 2 and stop is None:
            return self.embeddings(value)
        if meeting is None:
            raise refused(value, NO_RESIDUAL)
        return self.branches(value, terms, meeting), meeting

    def terms_of(self, value, residuals):
        """What a sum adds up, also in sums that nothing else takes; with or without those that are `residuals`."""
        found = []
        for item in value.sources:
            inside = self.terms_of(item, residuals) if item.kind == "sum" and self.uses[item] == 1 else [item]
            found += inside if residuals or not depend(inside) else [item]
        return found

    def branches(self, value, terms, source):
        """The layers from a source to the sum of terms."""
        if len(terms) == 1:
            return self.chain(terms[0], source, value)[0]
        meeting = meet(*terms)
        if meeting is None:
            raise refused(value, NO_RESIDUAL)
        before = self.chain(meeting, source)[0]
        layer = self.plain(value, kind="sum")
        layer.terms = [self.chain(item, meeting, value)[0] for item in terms]
        return [*before, layer]

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
        parts = [self.embedding(item) for item in tables]
        layer, type_ = self.plain(tables[-1], kind="embeddings"), parts[0].type
        for part in parts[1:]:
            type_ = f"attune::EmbeddingSum<{type_}, {part.type}>"
        layer.type, layer.value = type_, tables
        layer.names = [name for part in parts for name in part.names]
        layer.take(*parts)
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

    def completed(self, layers):
        """Attention, and gates, with the Linear behind them as one layer."""
        found, queue = [], list(layers)
        while queue:
            layer = queue.pop(0)
            after = queue[0] if queue and queue[0].kind == "linear" else None
            if layer.kind == "core":
                features, query = layer.value.sources[0].features, layer.value.data["query"].weight.values
                if after is not None and after.d_out != features == query.shape[0] * query.shape[1]:
                    after = None  # the output projection is missing, and this is another Linear
                attention = self.attention(layer, after)
                if layer.terms:
                    attention.kind, attention.terms = "reduced", layer.terms
                found.append(attention)
            elif layer.kind == "gate":
                found += self.gated(layer, after)
            else:
                found.append(layer)
                continue
            if after is not None:
                queue.pop(0)
        return found

    def gated(self, layer, down):
        """down(f(gate(x)) * up(x)) as one layer; without `down` as a GLU."""
        parts = {"gate": layer.gate, "linear1": layer.up} | ({} if down is None else {"linear2": down})
        biases = {part.bias for part in parts.values()}
        if len(biases) > 1:
            raise refused(layer.value, "biases of a part of a gated network")
        whole = self.plain((down or layer).value, kind="gated")
        whole.network = Network(layer.value.tokens, (down or layer.gate).d_out, layer.gate.d_out, layer.activation, biases.pop(), True)
        whole.parts, whole.product = parts, layer.value
        whole.network_names = {name: part.names[0] for name, part in parts.items()}
        whole.take(*parts.values())
        return [whole] if down is not None else self.glu(whole)

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
            if layer.kind in ("attention", "reduced"):
                self.alone(layer)
            if layer.kind == "residual":
                self.around(layer, layer.inside)
            if layer.kind in ("sum", "product", "reduced"):
                self.around(layer, *layer.terms)
            if layer.kind in ("groups", "shared"):
                self.around(layer, layer.inner)
            if layer.kind == "reversible":
                layer.inner = self.blocks(layer.inner)
                layer.terms = [layer.inner]
            if layer.kind == "gated":
                found += self.glu(layer)
                at += 1
                continue
            found.append(layer)
            at += 1
        return found

    def alone(self, layer):
        """Attention that is not a part of a transformer block: its path, and the table of its names."""
        if layer.attention.memory and layer.kind != "reduced":
            raise refused(layer.core, "attention to another sequence, outside of a decoder layer")
        if layer.kind == "reduced" and layer.core.data["mask"].any():
            raise refused(layer.core, "a mask of reduced tokens")
        path, names = relative(layer.attention.names)
        layer.names = [path]
        known = self.attention_names or names
        if ("qkv_weight" in known) != ("qkv_weight" in names) or any(known.get(key, name) != name for key, name in names.items()):
            raise refused(layer.core, f"attention outside of transformer blocks with other names than before, {', '.join(names.values())} and "
                          f"{', '.join(known.values())}; give its modules the same names")
        self.attention_names = known | names

    def around(self, layer, *parts):
        """Layers inside of a layer: a residual connection's, a sum's or a product's, or a group's. What has blocks in it gets its type when theirs are known."""
        layer.terms = [self.blocks(part) for part in parts]
        layer.inner = [inner for term in layer.terms for inner in term]
        if not any(inner.kind == "block" or inner.inner for inner in layer.inner):
            layer.enclose([([inner.type for inner in term], [name for inner in term for name in inner.names]) for term in layer.terms])
            layer.inner = []

    def block_at(self, chain, at):
        """A transformer block, which has three branches in a decoder, and how many layers of the chain it takes; or None and 0."""
        for count, before in itertools.product((3, 2), (True, False)):
            layers = chain[at:at + (count if before else 2 * count)]
            if [layer.kind for layer in layers] != (["residual"] if before else ["residual", "norm"]) * count:
                continue
            branches = [layer.inside for layer in layers if layer.kind == "residual"]
            norms = [branch[0] for branch in branches] if before else layers[1::2]
            block = self.block([branch[before:] for branch in branches], norms, before, layers[-1]) if all(norm.kind == "norm" for norm in norms) else None
            if block is not None:
                return block, len(layers)
        return None, 0

    def block(self, branches, norms, before, last):
        """A block of branches without their norms: attention to itself, to the encoder if there are three, and a network; or None."""
        decodes, members = len(branches) > 2, [layer for branch in branches for layer in branch] + norms
        scales = {} if decodes else {f"scale{index}": branch[-1] for index, branch in enumerate(branches, 1) if branch and branch[-1].kind == "scale"}
        branches = [branch[:-1] if f"scale{index}" in scales else branch for index, branch in enumerate(branches, 1)]
        attentions, network = [branch[0] for branch in branches[:-1] if [layer.kind for layer in branch] == ["attention"]], branches[-1]
        if len(attentions) < len(branches) - 1 or [layer.kind for layer in network] not in NETWORKS or decodes and not attentions[1].attention.memory:
            return None
        attention, alike = attentions[0], all(are_alike(norms[0], norm, network) for norm in norms)
        if not decodes and not alike:
            return None
        if attention.attention.memory:
            raise refused(attention.core, "attention to another sequence, outside of a decoder layer")
        if decodes and attention.core.tokens > 1 and not attention.attention.causal:
            raise refused(attention.core, "a decoder layer without a causal tgt_mask")
        if not alike:
            raise refused(attention.core, "a decoder layer with norms of several kinds, or a network that has one bias alone")
        parts, own = network_of(attention.attention.members["seq_len"], network)
        names = attention.attention.names | own | {name: scale.names[0] for name, scale in scales.items()}
        names |= {f"norm{index}": norm.names[0] for index, norm in enumerate(norms, 1) if norm.names}
        cross = None
        if decodes:
            attention.attention.window, cross = EVERYTHING, attentions[1].attention  # a decoder layer is causal by itself
            names |= {f"memory.{key}": name for key, name in cross.names.items()}
        path, names = relative(names)
        layer = self.plain(last.value, "", [path], kind="block").take(*members)
        layer.path = path
        layer.block = Block(attention.attention, parts, norms[0].norm, before, names, cross)
        if layer.block.plain() and (names.items() <= DECODER_NAMES.items() if decodes else names == TORCH_NAMES):
            layer.block.names = {}
        return layer
