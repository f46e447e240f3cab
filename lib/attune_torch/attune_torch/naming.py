"""Tensors of the file: their names, and where in the state_dict their numbers are. An address in a layer is a name and an offset, so slices,
permutations and stacks of parameters find their way back (folding.Taken)."""
import torch

from .errors import Unsupported
from .folding import Part, Scaled, Shifted


def shared_path(names):
    """The path of modules that names have in common."""
    found = []
    for step in zip(*[name.split(".") for name in names]):
        if len(set(step)) > 1:
            break
        found.append(step[0])
    return ".".join(found)


def joined(path, leaf):
    return f"{path}.{leaf}" if path else leaf


class Tensors:
    """`file` has what layers read, by the names that they have in C++."""

    def __init__(self, graph, state, transposed):
        self.changes = []  # of the file's tensors
        self.graph, self.captured, self.state, self.transposed = graph, graph.captured, state, transposed
        self.file, self.taken, self.homeless = {}, {}, {}  # `homeless`: names of tensors with rows that no tensor of the module has

    # ---- Names of whole tensors ----

    def block_of(self, addresses):
        """The one block that addresses belong to, and their offsets in it; None twice if there are several, or numbers without one."""
        flat = -addresses.reshape(-1)
        blocks = self.graph.blocks_of(addresses)
        if len(blocks) != 1 or not bool((flat > 0).all()):
            return None, None
        return blocks[0], flat - blocks[0].begin

    def whole(self, addresses):
        """All names of the tensor of the state_dict that addresses are, in its order; or an empty list."""
        count = addresses.numel()
        first, last = (int(addresses[(at,) * addresses.dim()]) if count else 0 for at in (0, -1))
        block = self.captured.block_of(first) if first < 0 and last == first + 1 - count else None  # most others are told by their ends
        if block is None or block.computed or block.name not in self.state or count != block.values.numel() or first != -block.begin or not torch.equal(
                addresses.reshape(-1), torch.arange(first, first - count, -1)):
            return []
        return [name for name in self.captured.aliases[block.name] if name in self.state]

    def owners(self, addresses):
        """The names of the tensors of the state_dict that addresses are parts of."""
        return [block.name for block in self.graph.blocks_of(addresses) if block.name in self.state and not block.computed]

    def begins_with(self, first, second):
        """Whether a Linear's weight is in front of another's in the tensor that has both."""
        return bool(first.data["weight"].addresses.max() > second.data["weight"].addresses.max())

    def forget(self, name):
        self.changes[:] = [change for change in self.changes if getattr(change, "tensor", None) != name]
        for table in (self.file, self.taken, self.homeless):
            table.pop(name, None)

    # ---- Names in the file ----

    def free(self, name):
        """The name, with a number behind its path if another tensor has it."""
        path, _, leaf = name.rpartition(".")
        found, count = name, 1
        while found in self.file or found in self.state:
            count += 1
            found = f"{path}_{count}.{leaf}" if path else f"{leaf}_{count}"
        return found

    def free_path(self, path):
        """The path of a layer, with a number behind it if another one has it."""
        return self.free(joined(path, "weight")).removesuffix(".weight")

    def use(self, name, value):
        self.file[name] = value
        return name

    def changed(self, name, constant):
        """What forward does to a tensor. One that the module does not have, or whose rows have factors, is there with it."""
        if self.taken.get(name, (None, True))[1] and isinstance(constant.factor, float):
            self.changes += [Shifted(name, constant.shift)] if constant.shift else []
            self.changes += [Scaled(name, constant.factor)] if constant.factor != 1 else []
        return name

    def own_or_taken(self, name, constant, own):
        """A tensor of the module, where the name is one of its `own`, or one that is made of parts of others."""
        return self.changed(self.use(name, self.state[name]) if name in own and isinstance(constant.factor, float) else self.take(name, constant), constant)

    def take(self, name, constant):
        """A tensor that is made of parts of others, [rows, …]."""
        addresses = constant.addresses
        trained = addresses[addresses < 0]
        if len(trained.unique()) < len(trained) and self.captured.parameters & set(self.owners(addresses)):
            raise Unsupported(f"{self.owners(addresses)[0]} is in several places of a layer, whose numbers would be trained one by one; make it a parameter of "
                              f"{list(addresses.shape)}")
        rows = addresses.reshape(len(addresses), -1) if addresses.dim() else addresses.reshape(1, 1)
        factors = torch.ones(len(rows)).double() if isinstance(constant.factor, float) else constant.factor
        parts = []
        for row, own in zip(rows, factors.tolist()):
            part = self.part_of(row, own)
            if parts and parts[-1].takes(part):
                parts[-1].extend(part)
            else:
                parts.append(part)
        if any(part.source is None for part in parts):
            self.homeless[name] = True
        self.taken[name] = (list(addresses.shape), parts if any(part.source is not None for part in parts) else [])
        scale = factors.reshape(-1, *[1] * (addresses.dim() - 1)) if addresses.dim() else factors[0]
        own = self.graph.numbers[-addresses.clamp(max=0)] * scale
        return self.use(name, torch.where(addresses < 0, own, constant.values).float().contiguous())

    def part_of(self, row, factor):
        """A row as offsets of one tensor, or as one that no tensor has."""
        block, offsets = self.block_of(row)
        if block is None or block.computed or block.name not in self.state:
            return Part(None, [], [], 1.0, 1)
        return Part(block.name, [int(offsets[0])], (offsets - offsets[0]).tolist(), factor, 1)

    def vector(self, constant, wanted):
        """The name of a tensor without a leaf, as positions; and the shape that the file has if it is another one than the model's."""
        names = self.whole(constant.addresses)
        if names and self.state[names[0]].dim():  # else a number, which is a vector in the file
            return self.own_or_taken(names[0], constant, names), tuple(self.state[names[0]].shape)
        owners = self.owners(constant.addresses)
        name = owners[0] if len(owners) == 1 and bool((constant.addresses < 0).all()) and owners[0] not in self.file else self.free(wanted)
        return self.own_or_taken(name, constant, ()), tuple(constant.addresses.shape)

    def layer(self, role, place, weight, bias):
        """The path of a layer in the file, and the names of its weight and bias. `role` and `place` name tensors that have no names of their own."""
        turned = [name for name in self.whole(weight.addresses.t()) if name in self.transposed] if self.transposed and weight.addresses.dim() == 2 else []
        names = turned or [name for name in self.whole(weight.addresses) if weight.addresses.dim() < 2 or self.state[name].shape[:1] == weight.addresses.shape[:1]]
        biased = bias is not None
        beside = self.whole(bias.addresses) if biased else []
        paths = [name.removesuffix(".weight") for name in names if name.endswith(".weight")]
        path = next((path for path in paths if not biased or joined(path, "bias") in beside), None)
        path = self.path_for(role, place, weight) if path is None else path
        tensors = [("weight", weight, names), ("bias", bias, beside)] if biased else [("weight", weight, names)]
        return path, [self.own_or_taken(joined(path, leaf), constant, own) for leaf, constant, own in tensors]

    def path_for(self, role, place, weight):
        """A path for a layer whose tensors are not called weight and bias beside each other."""
        owners = self.owners(weight.addresses)
        path = joined(place, role)
        if len(owners) == 1 and self.covers(weight.addresses, owners[0]):
            name = owners[0]
            path = role if name == "weight" else name.removesuffix(".weight")
            own = joined(path, "weight")
            if own not in self.file and (own == name or own not in self.state):
                return path
        elif len(owners) == 1:
            path = joined(owners[0].removesuffix(".weight") if owners[0].endswith(".weight") else owners[0].rpartition(".")[0], role)
        elif owners:
            path = joined(shared_path(owners), role)
        return self.free_path(path)

    def covers(self, addresses, name):
        """Whether addresses are all numbers of a tensor, in any order."""
        return addresses.numel() == self.state[name].numel() == len(addresses.unique()) and bool((addresses < 0).all())

    def rename(self, name, new):
        """Another name in the file for a tensor."""
        value = self.file.pop(name)
        self.file[new] = value
        for table in (self.homeless, self.taken):
            if name in table:
                table[new] = table.pop(name)
        if new in self.taken:
            return
        rows, width = len(value), value[0].numel()
        turned = name in self.transposed
        part = Part(name, list(range(0, rows if turned else value.numel(), 1 if turned else width)), list(range(0, value.numel(), rows) if turned else range(width)),
                    1.0, rows)
        self.taken[new] = (list(value.shape), [part])
