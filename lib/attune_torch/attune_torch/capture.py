"""A forward pass as operations of aten on numbers with addresses.

Each number that a forward pass touches has an address: positive if it is computed from the input, negative if it is a constant (a parameter,
a buffer, or made inside forward), and 0 is the number zero. A shadow beside each storage holds the addresses, so views, aliases and writing
in place need no rules: a tensor's addresses are the shadow, seen with the tensor's own sizes, strides and offset. Operations that only move
numbers (cat, index, pad, …) run again on the addresses. Operations that compute are recorded; what they compute from constants alone is
a new constant. Everything is seen below Python, in a TorchDispatchMode.
"""
import bisect
import linecache
import math
import sys
import traceback
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from .errors import Unsupported

HERE, TORCH = str(Path(__file__).parent), str(Path(torch.__file__).parent)
# Operations that move numbers, and their arguments that are numbers. Other tensors among the arguments are indices, and have to be constants.
MOVES = {name: numbers for names, numbers in (
    ("clone cat stack index index_select gather repeat roll flip im2col tril triu embedding masked_select _to_copy zero_ unfold take", (0,)),
    ("reflection_pad1d replication_pad1d channel_shuffle pixel_shuffle _pin_memory lift_fresh_copy split_with_sizes_copy", (0,)),
    ("copy_ fill_ slice_scatter select_scatter", (0, 1)), ("constant_pad_nd index_put_ _index_put_impl_ masked_fill_ masked_fill", (0, 2)),
    ("scatter scatter_ index_copy index_copy_", (0, 3)), ("where", (1, 2))) for name in names.split()}
# Those that are something else on addresses, which are integers.
MOVED = {
    **dict.fromkeys(("_to_copy", "clone", "lift_fresh_copy"), lambda x, *_, **__: x), **dict.fromkeys(("fill_", "copy_"), lambda x, y, *_: y.expand(x.shape)),
    **dict.fromkeys(("masked_fill", "masked_fill_"), lambda x, mask, number: torch.where(mask.bool(), number, x)), "zero_": torch.zeros_like,
    "constant_pad_nd": lambda x, pads, value=0: torch.constant_pad_nd(x, pads, int(value)),
    **{name: lambda x, *given, own=getattr(torch.ops.aten, name): own(x.double(), *given).long() for name in ("im2col", "reflection_pad1d", "replication_pad1d")}}
MASKS = {"masked_fill", "masked_fill_", "where"}  # moves of constants; of computed numbers they are recorded
METADATA = {"as_strided_", "t_", "transpose_", "squeeze_", "unsqueeze_", "detach_", "requires_grad_"}  # write no number
FILLS = {"bernoulli_", "normal_", "uniform_", "random_", "exponential_"}  # the old numbers have no influence
NO_RECURRENT_LAYERS = "attune has no recurrent layers (GRU, LSTM, RNN, and their cells); attention or a causal nn.Conv1d can take their place: "
FEW = 256  # numbers at most whose computation is remembered
SAMPLES = 2  # that a pass is captured of; a batch of three is captured as it is, since forward may have its size in it
DECISIONS = {"_local_scalar_dense": "item", "is_nonzero": "__bool__", "equal": "equal"}


def hint_for(path):
    """A line of a message: how to export a module that computes in another way."""
    if not path:
        return ""  # a hint for the whole model would be the model
    return f"\n  hint: if attune has what it computes, write it so beside the model: export(…, hints={{{path!r}: lambda module, x: …}})"


def tensors_in(arguments):
    """The tensors in tuples, lists and dicts."""
    return [item for item in tree_flatten(arguments)[0] if isinstance(item, torch.Tensor)]


def real(item):
    """A complex tensor as pairs of numbers in its last dimension; others as they are."""
    return torch.view_as_real(item.detach()) if isinstance(item, torch.Tensor) and item.is_complex() else item


class HintsError(ValueError):
    """Hints for modules that are not there, or not called."""


class NodeByNode(nn.Module):
    """A graph that runs node by node, and says itself where it is."""
    position = ("", "")  # of the node that runs: module path, and words for people


@dataclass
class Operation:
    """`arguments` and `outputs` have addresses in place of tensors."""
    name: str
    arguments: tuple
    options: dict
    outputs: list
    types: list
    path: str
    line: str
    hint: str = ""
    words: str = ""  # of an operation that has forgotten its addresses

    def describe(self):
        if self.words:
            return self.words
        shapes = ", ".join(str(list(item.shape)) for item in tensors_in((self.arguments, self.options)) if (item > 0).any())
        where = f" in {self.path}" if self.path else ""
        line = f"\n  {self.line}" if self.line else ""
        return f"{self.name.lstrip('_')}{where} of {shapes or 'constants'}{line}{self.hint}"

    def forget(self):
        """Frees the addresses."""
        self.words, self.arguments, self.options, self.outputs = self.describe(), (), {}, []


@dataclass
class Block:
    """Numbers of one constant. `name`: in the state_dict, or the names that it is computed from, joined by ' & '."""
    begin: int
    name: str
    shape: tuple
    values: torch.Tensor
    computed: bool = False
    terms: tuple = ()  # of a sum of two constants, or of a constant with a number: their addresses and factors
    shift: float = 0.0  # the number that is added to the one term
    recipe: tuple = ()  # of few numbers that are computed: the operation, and its arguments with addresses in place of tensors

    def has(self, addresses):
        """Which addresses are its own."""
        return (addresses <= -self.begin) & (addresses > -self.begin - len(self.values))


class Where:
    """The modules whose forward runs, by hooks."""

    def __init__(self, module):
        self.module, self.paths, self.stack = module, {inside: path for path, inside in module.named_modules()}, []

    def __enter__(self):
        def enter(module, _):
            self.stack.append(self.paths.get(module, ""))
            if isinstance(module, (nn.RNNBase, nn.RNNCellBase)):
                path, line, _ = self.place()
                raise Unsupported(f"{NO_RECURRENT_LAYERS}{type(module).__name__}{f' in {path}' if path else ''}" + (f"\n  {line}" if line else ""))

        hooks = torch.nn.modules.module
        self.hooks = [hooks.register_module_forward_pre_hook(enter),
                      hooks.register_module_forward_hook(lambda module, *_: self.stack.__delitem__(-1))]
        return self

    def __exit__(self, *error):
        for hook in self.hooks:
            hook.remove()

    def path(self):
        return self.stack[-1] if self.stack else ""

    def place(self):
        """Module path, line of forward, and hint of the operation that runs."""
        if isinstance(self.module, NodeByNode):
            return (*self.module.position, "")
        frame = sys._getframe(2)
        while frame and not (frame.f_code.co_filename == __file__ and frame.f_code.co_name == "run"):
            if not frame.f_code.co_filename.startswith((HERE, TORCH, "<")):
                text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
                return self.path(), f"{frame.f_code.co_filename}:{frame.f_lineno}: {text}", hint_for(self.path())
            frame = frame.f_back
        return self.path(), "", hint_for(self.path())


def storage_of(tensor):
    return (tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()).data_ptr()


def size_of(tensor):
    return (tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()).nbytes() // tensor.element_size()


def resized(name, args, seen, target):
    """The addresses of a constant that is interpolated to the size that it has, as positions of an image; or None."""
    scales = [item for item in tree_flatten(args[2:])[0] if type(item) is float]
    same = name.startswith("upsample_") and args[0].shape == target.shape and set(scales) <= {1.0} and torch.equal(args[0], target)
    return seen[0][0].clone() if same else None


class Capture(TorchDispatchMode):
    """`Capture(module, inputs).run(call)` answers the addresses of the output."""

    def __init__(self, module, inputs):
        super().__init__()
        self.where, self.shadows, self.alive = Where(module), {}, []
        self.operations, self.decisions, self.blocks, self.begins, self.numbers = [], [], [], [], {}
        self.constants, self.derived, self.paused = 0, 0, False
        self.names = {}  # of a storage's first tensor in the state_dict, all names
        state = module.state_dict(keep_vars=True)
        self.stored = set(state)
        self.in_training = {path for path, inside in module.named_modules() if inside.training}
        for name, tensor in [*state.items(), *((name, item) for name, item in module.named_buffers() if name not in state and item.layout == torch.strided)]:
            tensor = real(tensor)
            first = self.names.setdefault((storage_of(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride()), [])
            if not first:
                self.shadow(tensor, name)
            first.append(name)
        self.aliases = {name: names for names in self.names.values() for name in names}
        self.parameters = {alias for name, item in module.named_parameters()
                           if item.requires_grad or isinstance(module, NodeByNode) for alias in self.aliases.get(name, [name])}
        self.given, self.inputs = inputs, []
        for tensor in inputs:
            self.alive.append(tensor)
            self.inputs.append(self.fresh(tensor, True))
            self.shadows[storage_of(tensor)] = torch.zeros(size_of(tensor), dtype=torch.int64)
            self.addresses(tensor).copy_(self.inputs[-1])

    # ---- Addresses ----

    def fresh(self, tensor, derived, name=None, computed=False, terms=(), shift=0.0, recipe=()):
        """New addresses for the numbers of a tensor, in its own order: a constant's offset in its block is the index of its number."""
        count = tensor.numel()
        if derived:
            self.derived += count
            return torch.arange(self.derived - count + 1, self.derived + 1).view(tensor.shape)
        begin = self.constants + 1
        self.constants += count
        self.blocks.append(Block(begin, name, tuple(tensor.shape), tensor.detach().reshape(-1).clone(), computed, terms, shift, recipe))
        self.begins.append(begin)
        return torch.arange(-begin, -begin - count, -1).view(tensor.shape)

    def number(self, value):
        """The address of a number of Python."""
        value = float(value)
        if value == 0:
            return torch.tensor(0)
        if value not in self.numbers:
            self.numbers[value] = self.fresh(torch.tensor(value, dtype=torch.float64), False)
        return self.numbers[value]

    def shadow(self, tensor, name=None):
        key = storage_of(tensor)
        new = key not in self.shadows
        if new:
            self.alive.append(tensor.detach())
            if tensor.is_contiguous() and tensor.numel() == size_of(tensor):
                self.shadows[key] = self.fresh(tensor, False, name).flatten()
                return self.shadows[key]
            self.shadows[key] = torch.zeros(size_of(tensor), dtype=torch.int64)
        if new or name is not None:
            places = torch.arange(size_of(tensor)).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset()).flatten()
            free = self.shadows[key][places] == 0  # two parameters may share a storage
            if free.any():
                self.shadows[key][places[free]] = self.fresh(tensor, False, name).flatten()[free]
        return self.shadows[key]

    def addresses(self, tensor):
        if not tensor.numel():
            return torch.zeros(tensor.shape, dtype=torch.int64)
        return self.shadow(tensor).as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def block_of(self, address):
        """The block of a constant's address."""
        return self.blocks[bisect.bisect(self.begins, -int(address)) - 1]

    def origin(self, seen):
        """The names of parameters and buffers that a constant is computed from, joined."""
        found = {}
        for item in filter(torch.numel, tensors_in(seen)):
            for address in {int(item.min()), int(item.max()), *([] if item.numel() > 64 else item.flatten().tolist())}:
                if address < 0 and self.block_of(address).name:
                    found.update(dict.fromkeys(self.block_of(address).name.split(" & ")))
        return " & ".join(found) or None

    def unchanged(self, name, args, seen, target):
        """The addresses of a constant to which something that is no parameter has added 0, or which it has multiplied by 1; or None. What zeros are
        multiplied by is told by the other operand alone: training would change them."""
        for index in (0, 1) if name in ("add", "mul") else (0,):
            own, other = args[index], args[1 - index]
            if not isinstance(own, torch.Tensor) or isinstance(other, torch.Tensor) and self.origin(seen[0][1 - index]):
                continue
            own = own.expand_as(target) if target.dim() else own
            if torch.equal(own, target) and bool(((own != 0) | (torch.as_tensor(other) == (name in ("mul", "div")))).all()):
                return seen[0][index].expand(target.shape).clone()
        return None

    # ---- Operations ----

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        if self.paused:
            return result
        name = function._schema.name.split("::")[1]
        if name in ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"):
            result.zero_()  # the same numbers in every run
        is_complex = any(item.is_complex() for item in tensors_in((args, kwargs, result)))
        args, kwargs, result, of_torch = *tree_map(real, (args, kwargs, result)), result
        before, outputs = tensors_in((args, kwargs)), tensors_in(result)
        written = [value for argument, value in zip(function._schema.arguments, args)
                   if argument.alias_info is not None and argument.alias_info.is_write and isinstance(value, torch.Tensor)]
        keys = {storage_of(item) for item in before}
        if name in METADATA or not written and outputs and all(storage_of(item) in keys for item in outputs):
            return of_torch  # a view
        self.alive += outputs
        seen = tree_map(lambda item: self.addresses(item) if isinstance(item, torch.Tensor) else item, (args, kwargs))
        derived = not name.endswith("_like") and not name.startswith("new_") and name not in FILLS and any(bool((item > 0).any()) for item in tensors_in(seen))
        if name in DECISIONS and derived:
            self.decisions.append(self.operation(DECISIONS[name], *seen, [], []))
        if is_complex and name not in ("clone", "detach"):
            self.of_complex(name, args, seen, outputs, written, derived)
        elif "scaled_dot_product" in name and derived:
            named = [argument.name for argument in function._schema.arguments]
            self.of_attention(name, {**dict(zip(named, args)), **kwargs}, {**dict(zip(named, seen[0])), **seen[1]}, outputs)
        else:
            self.give(name, args, kwargs, seen, written or outputs, written, derived)
        return of_torch

    def of_complex(self, name, args, seen, outputs, written, derived):
        """A complex constant, or the product of a value and one, as of rotary positions."""
        if not derived and not written:
            return self.give("complex", args, {}, seen, outputs, written, False)
        constant = [not bool((item > 0).any()) for item in seen[0]] if name == "mul" and not written else []
        if sorted(constant) != [False, True] or any(item.shape[-1:] != (2,) for item in args):
            raise Unsupported(f"complex numbers other than rotary positions: {self.operation(name, *seen, [], []).describe()}")
        (turn, x), angles = (seen[0] if constant[0] else seen[0][::-1]), args[constant.index(True)]
        across = torch.stack([-angles[..., 1], angles[..., 1]], -1)
        across = self.fresh(across, False, self.origin(turn), True)
        parts = [self.fresh(outputs[0], True) for _ in range(2)]
        for out, arguments in zip(parts, ((x, turn[..., :1].expand(turn.shape)), (x.flip(-1), across))):
            self.operations.append(self.operation("mul", arguments, {}, [out], [outputs[0].dtype]))
        self.give("add", args, {}, (tuple(parts), {}), outputs, written, True)

    def of_attention(self, name, given, seen, outputs):
        """Attention that is one operation, as in PyTorch 2: what it computes is captured in its place."""
        query, key, value = (given[part] for part in ("query", "key", "value"))
        if given.get("dropout_p"):
            operands = tuple(seen[part] for part in ("query", "key", "value"))
            raise Unsupported(f"attention whose dropout is active in evaluation: {self.operation(name, operands, {}, [], []).describe()}\n"
                              "  dropout_p=self.dropout if self.training else 0.0")
        scale, mask = given.get("scale"), given.get("attn_mask") if given.get("attn_mask") is not None else given.get("attn_bias")
        with self:  # of operations that have kernels: the others are not taken apart here
            query, key, value = (item.index_select(-3, torch.arange(query.shape[-3]) * item.shape[-3] // query.shape[-3]).flatten(0, -3)
                                 if item.dim() > 3 else item for item in (query, key, value))
            scores = torch.bmm(query, key.transpose(1, 2)).mul(query.shape[-1] ** -0.5 if scale is None else scale).view(*outputs[0].shape[:-1], -1)
            if given.get("is_causal"):
                scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
            if mask is not None:
                scores = scores.masked_fill(mask.logical_not(), -math.inf) if mask.dtype == torch.bool else scores.add(mask)
            result = torch.bmm(torch._softmax(scores, -1, False).flatten(0, -3), value)
        self.place(outputs[0], self.addresses(result).reshape(outputs[0].shape))
        rest = [self.fresh(item, True) for item in outputs[1:]]
        self.operations.append(self.operation(name, tuple(seen[part] for part in ("query", "key", "value")), {}, rest, [item.dtype for item in outputs[1:]]))
        for target, new in zip(outputs[1:], rest):
            self.place(target, new)

    def operation(self, name, arguments, options, outputs, types):
        return Operation(name, arguments, options, outputs, types, *self.where.place())

    def give(self, name, args, kwargs, seen, targets, written, derived):
        """Gives the results of an operation their addresses, and records it if it computes."""
        if not targets:
            return
        if name in ("index_put_", "_index_put_impl_") and derived and args[2].numel() == 1 and not args[3:4] == (True,):
            name, seen = "masked_fill_", ((seen[0][0], self.mask(args), seen[0][2]), {})
        moved = self.move(name, args, kwargs, seen, targets[0], derived)
        if moved is not None:
            news = [moved]
        elif derived:
            news = [self.fresh(item, True) for item in targets]
            self.operations.append(self.operation(name.rstrip("_") if written else name, *seen, news, [item.dtype for item in targets]))
        else:
            plain = name in ("add", "sub", "mul", "div") and not written
            same = (None if kwargs else self.unchanged(name, args, seen, targets[0])) if plain else resized(name, args, seen, targets[0])
            terms, shift = self.terms(name, args, seen[0], targets[0].shape) if plain and not kwargs else ((), 0.0)
            few = not written and len(targets) == 1 and targets[0].numel() <= FEW and targets[0].is_floating_point()
            recipe = (name, *seen) if few else ()
            news = [same] if same is not None else [self.fresh(item, False, self.origin(seen), True, terms, shift, recipe) for item in targets]
        for target, new in zip(targets, news):
            self.place(target, new, written)

    def place(self, target, new, written=()):
        """Gives a tensor its addresses."""
        key = storage_of(target)
        if not written and target.is_contiguous() and target.numel() == size_of(target):
            self.shadows[key] = new.expand(target.shape).reshape(-1).clone()  # memory of its own: the other's may be forgotten
            return
        # What was recorded before keeps the old addresses.
        self.shadows[key] = self.shadow(target).clone() if written else torch.zeros(size_of(target), dtype=torch.int64)
        self.addresses(target).copy_(new)

    def terms(self, name, args, seen, shape):
        """Addresses and factors of parameters whose sum a constant is, and the number that is added to one."""
        named = [isinstance(item, torch.Tensor) and self.origin(item) is not None for item in seen]
        if name == "add" and all(named):
            return tuple((item.expand(shape), 1.0) for item in seen), 0.0
        numbers = [float(item) for item, own in zip(args, named) if not own and (not isinstance(item, torch.Tensor) or item.numel() == 1)]
        if sum(named) != 1 or len(numbers) != 1 or name in ("div", "sub") and named[1] or not numbers[0]:
            return (), 0.0
        factor, shift = {"add": (1.0, numbers[0]), "sub": (1.0, -numbers[0]), "mul": (numbers[0], 0.0), "div": (1 / numbers[0], 0.0)}[name]
        return ((seen[named.index(True)].expand(shape), factor),), shift

    def mask(self, args):
        mask = torch.zeros(args[0].shape, dtype=torch.bool)
        mask[tuple(slice(None) if item is None else item for item in args[1])] = True
        return self.fresh(mask, False)

    def move(self, name, args, kwargs, seen, target, derived):
        """The addresses of what an operation moves; None if it computes."""
        if name not in MOVES or name in MASKS and derived or kwargs.get("accumulate") or "reduce" in kwargs or name.lstrip("_").startswith("index_put") and True in args[3:4]:
            return None
        given = args[name == "copy_"]
        if name in ("_to_copy", "copy_") and given.is_floating_point() and given.dtype != target.dtype and target.dtype not in (torch.float32, torch.float64):
            return None  # rounds
        data, moved = MOVES[name], []
        for index, value in enumerate(args):
            if index in data:
                value = self.number(value) if isinstance(value, (int, float, bool)) else seen[0][index]
            elif any(bool((self.addresses(item) > 0).any()) for item in tensors_in(value)):
                return None  # an index that is computed from the input
            moved.append(value)
        if name == "where" and len(moved) < 3:
            return None
        if name.lstrip("_").startswith("index_put") or name in ("scatter_", "index_copy_"):
            moved[0] = moved[0].clone()
        options = {key: value for key, value in kwargs.items() if key not in ("dtype", "device", "memory_format", "layout", "pin_memory")}
        return MOVED.get(name, getattr(torch.ops.aten, name))(*moved, **options)

    # ---- The pass ----

    @contextmanager
    def hinted(self, hints):
        """With hints in place of their modules' forward; both are called, and compared."""
        modules, used = dict(self.where.module.named_modules()), set()
        unknown = sorted(set(hints) - set(modules))
        if unknown:
            raise HintsError(f"hints: there is no module '{unknown[0]}'; paths are as in named_modules()")

        def called(path, forward, *args, **kwargs):
            used.add(path)
            self.paused = True
            expected = forward(*[item.clone() if isinstance(item, torch.Tensor) else item for item in args], **kwargs)
            self.paused = False
            found = hints[path](modules[path], *args, **kwargs)
            self.compare(path, expected, found)
            return found

        with ExitStack() as stack:
            for path in hints:
                stack.enter_context(exchanged(modules[path], "forward", partial(called, path, modules[path].forward)))
            yield
        unused = sorted(set(hints) - used)
        if unused:
            raise HintsError(f"hints: forward does not call '{unused[0]}'")

    def compare(self, path, expected, found):
        for name, one in (("the module", expected), ("its hint", found)):
            if not isinstance(one, torch.Tensor):
                raise Unsupported(f"{path}: {name} answers a {type(one).__name__}; a hint is for a module that answers one tensor")
        self.paused = True
        far = float((expected - found).abs().max()) if expected.shape == found.shape else math.inf
        largest = float(expected.abs().max())
        self.paused = False
        if not far <= 1e-4 * max(1.0, largest):
            raise Unsupported(f"the hint of {path or 'the model'} is wrong: the module answers {list(expected.shape)}, its hint "
                              f"{list(found.shape)}, and they differ by {far:.3g}")

    def run(self, call, hints):
        """The addresses of the one tensor that `call` answers to the inputs."""
        inference = exchanged(torch._C, "_InferenceMode", lambda mode=True: nullcontext())  # whose tensors have no versions
        with torch.enable_grad(), inference, step_by_step(), plain_constructor(), self.where, self.hinted(hints), self:
            output = the_output(call(*self.given))
        addresses = self.addresses(output.detach()).clone()
        self.shadows, self.alive = {}, []
        return addresses

    def signatures(self):
        """Of each operation what stays the same for other inputs: name, numbers of Python, shapes, and words for people."""
        return [(one.name, [item for item in tree_flatten((one.arguments, one.options))[0] if isinstance(item, (int, float))],
                 [item.shape for item in one.outputs], one.describe()) for one in self.operations]

    def refuse_other(self, other, others, output):
        """Raises Unsupported if a pass with other inputs has other operations, numbers of Python, or constants that are read."""
        own = self.signatures()
        differs = next((mine for mine, one in zip(own, others) if mine[:3] != one[:3]), None)
        if len(own) != len(others):
            differs = differs or max(own, others, key=len)[-1]
        if differs:
            raise Unsupported(f"forward computes something else for other inputs: {differs[3]}")
        read = torch.zeros(self.constants + 1, dtype=torch.bool)
        for item in filter(torch.numel, tensors_in([output, *((one.arguments, one.options) for one in self.operations)])):
            low, high = map(int, item.aminmax())
            if low < 0 and high - low + 1 == item.numel() and high < 0:  # a whole tensor, in any order
                read[-high:1 - low] = True
            elif low < 0:
                read[(-item).clamp(min=0)] = True
        for mine, others in zip(self.blocks, other.blocks):
            same = mine.values.shape == others.values.shape and (mine.values == others.values) | mine.values.isnan() & others.values.isnan()
            if same is False or bool((~same & read[mine.begin:mine.begin + len(same)]).any()):
                raise Unsupported("a constant that differs from run to run, as by dropout that is active in evaluation (F.dropout without "
                                  "training=self.training), that is taken out of the input outside of torch, as by NumPy, or that depends on the number "
                                  f"of samples, where the batch is not the first dimension: {mine.name or 'a tensor'} {list(mine.shape)}")

    def values(self):
        """The numbers of constants in double, by −address; [0] is zero."""
        return torch.cat([torch.zeros(1).double(), *(block.values.double() for block in self.blocks)])


@contextmanager
def exchanged(owner, name, value):
    """With another attribute of a module, a class or an object; then it has its own again."""
    own = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def plain_constructor():
    """With torch.Tensor(…) as a function: in a mode, the constructor of PyTorch 1.13 fails."""
    own, made = torch.Tensor.__new__, {torch.float32: torch.FloatTensor, torch.float64: torch.DoubleTensor}
    return exchanged(torch.Tensor, "__new__", lambda kind, *args, **kwargs: made[torch.get_default_dtype()](
        *args) if kind is torch.Tensor and not kwargs else own(kind, *args, **kwargs))


# ---- The module itself ----

@contextmanager
def in_evaluation(module):
    """With a module in evaluation; then each module inside has its own mode again."""
    modes = [(inside, inside.training) for inside in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for inside, training in modes:
            inside.training = training


def step_by_step():
    """Without torch.nn's encoder layers as one operation, which it is without gradients, and whose rows of padding are others."""
    return exchanged(torch, "is_grad_enabled", lambda: True)


@contextmanager
def trained(module):
    """With every parameter trained: the passes of frozen ones are other operations."""
    frozen = [item for item in module.parameters() if item.is_floating_point() and not item.requires_grad and not isinstance(module, NodeByNode)]
    for item in frozen:
        item.requires_grad_(True)
    try:
        yield
    finally:
        for item in frozen:
            item.requires_grad_(False)


def failure(problem):
    """An exception of somebody's code as words: its type, its text, and the innermost line that is neither PyTorch's nor of this package."""
    lines = [f"\n  {frame.filename}:{frame.lineno}: {frame.line}" for frame in traceback.extract_tb(problem.__traceback__)
             if not frame.filename.startswith((HERE, TORCH, "<"))]
    return f"{type(problem).__name__}: {problem}{lines[-1] if lines else ''}"


def the_output(output):
    """The one tensor that forward answers: itself, the logits of a Hugging Face output, or the only one of a tuple or a dict."""
    logits = getattr(output, "logits", None)
    if isinstance(output, torch.Tensor) or isinstance(logits, torch.Tensor):
        return output if isinstance(output, torch.Tensor) else logits
    pairs = output.items() if isinstance(output, dict) else enumerate(output) if isinstance(output, (list, tuple)) else ()
    found = {key: item for key, item in pairs if item is not None}
    if len(found) == 1:
        return the_output(next(iter(found.values())))
    if not found:
        raise Unsupported(f"forward answers no tensor, but {'nothing' if output is None else f'a {type(output).__name__}'}")
    words = ", ".join(f"[{key!r}] {list(item.shape) if isinstance(item, torch.Tensor) else f'a {type(item).__name__}'}" for key, item in found.items())
    raise Unsupported(f"forward answers {len(found)} values, and a model of attune has one output: {words}\n"
                      f"  choose one: export a module whose forward returns self.model(x)[{next(iter(found))!r}]")


def answer(module, args, kwargs, steps=False):
    """What the module answers; `steps`: step by step. Raises Unsupported if forward itself fails."""
    where = Where(module)
    for mode in (torch.no_grad, torch.enable_grad):  # some of PyTorch's fast paths without gradients fail where the others do not
        try:
            with in_evaluation(module), trained(module) if steps else nullcontext(), step_by_step() if steps else nullcontext(), mode(), where:
                own = [item.clone() for item in args], {name: item.clone() for name, item in kwargs.items()}  # forward may write into them
                return the_output(module(*own[0], **own[1])).detach()
        except Unsupported:
            raise
        except Exception as problem:  # noqa: BLE001: whatever the model raises
            failed = problem
            path = where.path()
            where.stack.clear()
    shapes = ", ".join(f"{list(item.shape)} of {str(item.dtype).removeprefix('torch.')}" for item in (*args, *kwargs.values()))
    inside = f" in {path}" if path else ""
    raise Unsupported(f"forward itself fails{inside} on sample_input, {shapes}: {failure(failed)}") from failed


def capture(module, args, kwargs, hints):
    """A Capture of module(*args, **kwargs), and the addresses of its output: of some samples, or of all where forward has their number in it. The
    pass runs again with other inputs; operations and constants have to stay."""
    inputs, count = [*args, *kwargs.values()], len([*args, *kwargs.values()][0])
    if count > SAMPLES + 1:
        try:
            answer(module, [item[:SAMPLES] for item in args], {name: item[:SAMPLES] for name, item in kwargs.items()})
            count = SAMPLES
        except Unsupported:
            pass

    def call(*given):
        return module(*given[:len(args)], **dict(zip(kwargs, given[len(args):])))

    copies = [item[:count].detach().clone(memory_format=torch.contiguous_format) for item in inputs]
    others = [(item.roll(1, 0) * 0.9 if item.is_floating_point() else item.roll(1, 0).flip(-1)).contiguous() for item in copies]
    other, captured = Capture(module, others), Capture(module, copies)
    with in_evaluation(module), trained(module):
        try:
            other.run(call, hints)
            signatures, other.operations = other.signatures(), []  # their addresses take room
            output = captured.run(call, hints)
        except (Unsupported, HintsError):
            raise
        except Exception as problem:  # noqa: BLE001: whatever the model raises
            raise Unsupported(f"forward cannot be captured: {failure(problem)}") from problem
    captured.refuse_other(other, signatures, output)
    return captured, output
