"""The folder of an exported model: C++ that a person would have written, the weights as they are, and samples to check it."""
import copy
import re
import warnings
from pathlib import Path

import torch
from torch import nn

from . import memory, tensors
from .building import filled
from .cpp_names import refuse_name
from .errors import ExportWarning, Unsupported
from .capture import answer, capture, in_evaluation
from .evaluate import evaluate
from .folding import metadata_of
from .layers import Layer, around, layer_type
from .match import Matcher
from .normal import Graph, Value
from .structure import DECODER_NAMES, MULTIHEAD_NAMES, NO_LAYER, TORCH_NAMES, Structure

LAYERS = "Layers"
HEADER_LINE = " of PyTorch, as a type of attune."
# The members of attune::EncoderLayerNames.
NAMES_IN_ORDER = ("query", "key", "value", "output", "linear1", "linear2", "norm1", "norm2", "norm3", "gate", "query_norm", "key_norm",
                  "score_scale", "relative_bias", "scale1", "scale2", "qkv_weight", "qkv_bias")


def wrapped(line, width=110):
    """C++ of at most `width` columns, where there are commas to break at."""
    lines, indent = [], " " * (len(line) - len(line.lstrip()) + 4)
    while len(line) > width:
        at = max(line.rfind(mark, 0, width) for mark in (", .", ", attune", ', "'))
        if at < len(indent):
            break
        lines.append(line[:at + 1])
        line = indent + line[at + 2:]
    return "\n".join([*lines, line])


def matched(captured, output):
    """The matcher of a capture. Raises Unsupported of everything that attune has no layer for."""
    found = Matcher(Graph(captured, output))
    if found.refusals and found.graph.other:
        other = Matcher(Graph(captured, output, channels_first=True))
        found = found if other.refusals else other
    texts = list(dict.fromkeys(text for _, text in sorted(found.refusals, key=lambda pair: pair[0])))
    if len(texts) > 1:
        raise Unsupported(f"{len(texts)} steps of forward are in the way, in their order:\n" + "\n".join(
            f"{number}. {text}" for number, text in enumerate(texts, 1)))
    if texts:
        raise Unsupported(texts[0])
    found.graph.forget()
    return found


def in_double(module, inputs, count, kwargs, steps, found):
    """Whether a module that computes in double has these numbers: then it is rounding that makes the difference, as with large weights."""
    wide = [item.double() if item.is_floating_point() else item for item in inputs]
    try:
        expected = answer(copy.deepcopy(module).double(), wide[:count], dict(zip(kwargs, wide[count:])), steps)
    except Exception:  # noqa: BLE001: it cannot be copied, or has a type of its own
        return False
    return expected.dtype == torch.float64 and float((found - expected).abs().max()) <= 1e-4 * max(1.0, float(expected.abs().max()))


def repeated(layers):
    """The types and the names of layers, with equal blocks as one Repeat."""
    groups = []
    for layer in layers:
        path, _, number = layer.names[0].rpartition(".") if layer.kind == "block" else ("", "", "")
        if groups and number == str(len(groups[-1])) and (groups[-1][0].type, groups[-1][0].names) == (layer.type, [f"{path}.0"]):
            groups[-1].append(layer)
        else:
            groups.append([layer])
    types = [f"attune::Repeat<{len(group)}, {group[0].type}>" if len(group) > 1 else group[0].type for group in groups]
    return types, [name.removesuffix(".0") if len(group) > 1 else name for group in groups for name in group[0].names]


def sequential(types, indent="    "):
    return "attune::Sequential<\n" + ",\n".join(indent + type_ for type_ in types) + ">"


def entries_of(table):
    return ",\n    ".join(f'.{key} = "{table[key]}"' for key in NAMES_IN_ORDER if key in table)


def kind_of(layer):
    return re.sub(r"^attune::|<.*$", "", layer.type, flags=re.S)


class Exported:
    """A recognized model: its types and names. `structure` is None until there is one."""

    def __init__(self, module, args, kwargs, hints):
        self.answer = answer(module, args, kwargs)
        if not bool(torch.isfinite(self.answer).all()):
            raise Unsupported("numbers that are NaN or infinite on sample_input, which is to have real inputs")
        if self.answer.shape[:1] != [*args, *kwargs.values()][0].shape[:1]:
            raise Unsupported(f"an output {list(self.answer.shape)} whose first dimension is not the batch; export a module whose forward returns it as "
                              "[batch, tokens, features]")
        captured, output = capture(module, args, kwargs, hints)
        if not captured.operations:
            raise Unsupported(NO_LAYER)
        self.matcher = matched(captured, output)
        self.graph, self.captured = self.matcher.graph, captured
        turned = tensors.conv1d_weights(module)
        state = {name: value.detach().t() if name in turned else value.detach() for name, value in module.state_dict().items()}
        self.structure = Structure(self.matcher, state, turned)
        self.changes, self.state, self.parts = self.structure.changes, self.structure.tensors.file, self.structure.parts
        self.layers = [layer for part in self.parts for layer in part]
        self.inputs = [*args, *kwargs.values()]
        if self.structure.padding:
            self.inputs = self.with_padding(self.inputs)
            self.answer = answer(module, self.inputs[:len(args)], dict(zip(kwargs, self.inputs[len(args):])), steps=True)
        if not any(inner.tensors for layer in self.layers for inner in layer.every()):
            raise Unsupported("a model without parameters, which has nothing to put into flash")
        self.declarations, self.keys, self.tables, self.decoders = [], {}, [], []  # tables of the names in encoder layers, and in decoder layers
        for layer in [inner for layer in self.layers for inner in layer.every()]:
            if layer.kind == "block":
                self.declare(layer)
            elif layer.inner:
                layer.enclose([repeated(term) for term in layer.terms], *["\n        "] * 2)
        self.tied = self.structure.tied
        self.check_tensors(module)
        values = [item for layer in self.layers for item in (layer.value if isinstance(layer.value, list) else [layer.value])]
        self.known = self.computed([item[:8] for item in self.inputs], {*values, *self.graph.inputs})
        self.check_numbers(module, args, kwargs)

    def with_padding(self, inputs, some=True):
        """The samples. Every other one has padding, at its end or within it, but not at its beginning. Without `some`, none has padding."""
        padding, found = self.structure.padding[0], []
        for value, x in zip(self.graph.inputs, inputs):
            if value in padding:
                x, tokens, pad = x.clone(), x.shape[1], padding[value]
                other = x[x != pad][:1] if bool((x != pad).any()) else torch.tensor([int(pad == 0)])
                first = slice(0, 1 if some else tokens)
                x[:, first] = torch.where(x[:, first] == pad, other, x[:, first])
            if value in padding and some:
                x[::4, (3 * tokens + 3) // 4:], x[2::4, tokens // 2] = pad, pad
            found.append(x)
        return found

    def computed(self, inputs, kept=()):
        """Values and layers for other inputs, in double: the output, and those that are kept."""
        known = {}
        for value, first, x in zip(self.graph.inputs, self.captured.inputs, inputs):
            known[value] = x.double().reshape(len(x), -1)[:, value.layout[0] - int(first.flatten()[0])]
        evaluate(self.matcher.output, known, kept)
        return known

    def output_of(self, known, shape):
        """The layers' output in the shape of the module's."""
        result = known[self.matcher.output]
        return (result.transpose(1, 2) if self.matcher.transposed else result).reshape(len(result), *shape[1:])

    def check_numbers(self, module, args, kwargs):
        """Compares the layers with the module on the sample, and on inputs that were not recorded: floats of twice the scale, ids of the whole
        range with padding at the end."""
        draw = torch.Generator().manual_seed(99)
        given, others = [item[:8] for item in self.inputs], []
        for item in given:
            if item.is_floating_point():
                others.append(2 * item.std(unbiased=False).clamp(min=0.5) * torch.randn(item.shape, generator=draw) + item.mean())
            else:
                others.append(torch.randint(min(int(item.min()), 1), int(item.max()) + 1, item.shape, generator=draw))
                others[-1][::2, (3 * item.shape[1] + 3) // 4:] = min(int(item.min()), 0)
        padding = self.structure.padding is not None
        sets = [(given, padding), (self.with_padding(others), True), (self.with_padding(others, False), False)] if padding else [(given, False), (others, False)]
        for inputs, steps in sets:
            try:
                expected = (self.answer[:8] if inputs is given else answer(module, inputs[:len(args)], dict(zip(kwargs, inputs[len(args):])), steps)).double()
            except Unsupported:
                continue  # not for these inputs, as of ids that no table has
            found = self.matcher.finished(self.output_of(self.known if inputs is given else self.computed(inputs), expected.shape))
            far = float((found - expected).abs().max())
            if not far <= 1e-4 * max(1.0, float(expected.abs().max())) and not in_double(module, inputs, len(args), kwargs, steps, found):
                what = "sample_input" if inputs is given else "inputs that are not sample_input"
                raise Unsupported(f"layers that differ from the module on {what}, by {far:.3g} of {float(expected.abs().max()):.3g}: forward computes something that "
                                  "its operations do not show, as by NumPy or a cache")

    def first_name(self, name):
        """Of the names of a tied tensor, the first."""
        return self.captured.aliases.get(name, [name])[0]

    def declare(self, layer):
        """The type of a block, once for equal ones, and the table of its names."""
        key = layer.block.shape_key()
        if key not in self.keys:
            name = "Block" if not self.keys else f"Block{len(self.keys) + 1}"
            lines, type_ = layer.block.declare(name)
            self.declarations += lines
            self.keys[key] = type_
        layer.type = self.keys[key]
        tables = self.decoders if layer.block.cross else self.tables
        if layer.block.names not in tables:
            tables.append(layer.block.names)

    def without_home(self):
        """Tensors of the file, or rows of them, that no tensor of the module has: what they learn has no place to return to."""
        return list(self.structure.tensors.homeless)

    def remarks(self):
        """Sentences for people: what is left out, and what has no place to return to."""
        size = lambda named: sum(value.numel() * value.element_size() for value in named)  # noqa: E731
        left = [self.structure.tensors.state[name] for name in self.structure.left]
        found = [*self.matcher.notes, f"The file has {size(self.state.values()):,} bytes of tensors that layers read" + (
            f"; {len(left)} tensors of {size(left):,} bytes, which none reads, stay out." if left else ".")]
        if self.without_home():
            found.append(f"What these learn has no place in the module: {', '.join(self.without_home())}.")
        return found

    def __repr__(self):
        return f"<attune_torch.Exported: {len(self.layers)} layers, {len(self.state)} tensors>"

    def check_tensors(self, module):
        odd = next((name for name in self.state if not re.fullmatch(r'[ !#-\[\]-~]+', name) or ";" in name), None)
        if odd:
            raise Unsupported(f"{odd!r} cannot be a name in C++, which is ASCII without quotes, backslashes, semicolons and control "
                              "characters: rename the module")
        used = [self.first_name(name) for layer in (self.layers[:-1] if self.tied else self.layers) for name in layer.tensors]
        twice = next((name for name in used if used.count(name) > 1), None)
        if twice:
            raise Unsupported(f"{twice} is a tensor of two layers; attune ties a head to the embedding before it, and repeats layers in a row")
        self.aliases = [(other, name) for name in self.state if name in self.captured.aliases for other in self.captured.aliases[name]
                        if other != name and other in module.state_dict()]
        self.check_read(module)

    def check_read(self, module):
        """Refuses a parameter that the output is computed from, and that no layer has: its value changes nothing now, and training would."""
        found = set(self.structure.tensors.file)
        for change in self.changes:
            found |= change.sources()
        found |= {alias for name in found for alias in self.captured.aliases.get(name, ())}
        for name in sorted(self.captured.parameters & self.graph.read - found):
            raise Unsupported(f"{name}, {list(module.state_dict()[name].shape)}, takes part in forward, and no layer of attune has it: its value changes nothing "
                              "now, and what it learns would be lost. Make it a buffer (register_buffer) or freeze it (requires_grad_(False)), "
                              "or leave it out of forward")

    def roles(self):
        """What QUANTIZE is told of tensors: those that stay floats, and weights whose names look like positions'."""
        names = [name for layer in (self.layers[:-1] if self.tied else self.layers) for name in layer.tensors]
        floats = self.structure.floats
        weights = [name for name in names if name not in floats and self.state[name].dim() > 1 and re.search("pos|wpe", name)]
        return "".join([f"weight={name}\n" for name in weights] + [f"float={name}\n" for name in names if name in floats])

    # ---- C++ ----

    def masked(self, layers):
        """The layers, with those down to the last attention in one that hides padding, if forward makes a mask of it."""
        if self.structure.padding is None or self.structure.padding[1]["padding"] < 0:
            return layers
        options = dict(self.structure.padding[1], target_padding=None)
        means = [layer for layer in layers if layer.kind == "pooling" and layer.value.reads]
        last = max(index for index, layer in enumerate(layers) if layer in means or any(part.kind == "block" for part in layer.every()) or "MultiHeadAttention" in layer.type)
        inner = layers[:last + 1]
        other = next((layer for layer in inner if layer not in means and re.search("Conv|Pool|GroupNorm|ReversibleNorm", layer.type)), None)
        if other is not None:
            raise Unsupported(f"{kind_of(other)} {other.path} before attention that hides padding: attune leaves padding out of it, and PyTorch does not")
        types, names = repeated(inner)
        whole = Layer(around("MaskFromIds", sequential(types, "        "), **options), names, [], "masked", inner[-1].value, inner[-1].path)
        return [whole.take(*inner), *layers[last + 1:]]

    def names_type(self, model, names):
        quoted = "".join(f', "{name}"' for name in names)
        if self.table():
            return f"attune::HuggingFaceModule<kBlockNames, {model}{quoted}>"
        return f"attune::PyTorchModule<{model}{quoted}>"

    def file_type(self, layers, names, aliases):
        extra = [f'attune::TensorShape<"{tensor}", {", ".join(map(str, shape))}>'
                 for layer in layers for tensor, shape in layer.shapes.items()]
        if aliases:
            extra += [f'attune::TensorAlias<"{alias}", "{name}">' for alias, name in self.aliases]
        return f"attune::PyTorchFile<{', '.join([names, *extra])}>" if extra else names

    def table(self):
        """C++ of the names in blocks, and in attention outside of them, where they are not those of torch.nn."""
        blocks, decoder, alone = *(tables[0] if tables else None for tables in (self.tables, self.decoders)), self.structure.attention_names or {}
        if alone.items() <= MULTIHEAD_NAMES.items():
            alone = {}
        if not blocks and not decoder and not alone:
            return []
        declare = lambda name, *entries: "inline constexpr attune::EncoderLayerNames " + name + "{\n    " + ",\n    ".join(filter(None, entries)) + "};"  # noqa: E731
        lines, entries = [], [entries_of(blocks or TORCH_NAMES) if blocks is not None else ""]
        if alone:
            lines.append(declare("kAttentionNames", entries_of(alone)))
            entries.append(".attention_alone = &kAttentionNames")
        if decoder is not None:
            decoder, start = decoder or DECODER_NAMES, "memory."
            lines += [declare("kMemoryNames", entries_of({name[len(start):]: text for name, text in decoder.items() if name.startswith(start)})),
                      declare("kDecoderNames", entries_of(decoder), ".memory = &kMemoryNames")]
            entries.append(".decoder = &kDecoderNames")
        return [*lines, declare("kBlockNames", *entries)]

    def header(self, name, class_name):
        whole = self.tied or len(self.parts) > 1  # is masked as one
        lists = [repeated(part[1:-1] if self.tied else part if whole else self.masked(part)) for part in self.parts]
        types, names, padding = [own for own, _ in lists], [name for _, own in lists for name in own], self.structure.padding
        if self.tied:
            embedding = self.layers[0]
            model = f"attune::Tied<\n    {embedding.type},\n    {sequential(types[0], '        ')}>"
            names = embedding.names + names
        elif len(types) > 1:
            model = "attune::EncoderDecoder<" + ",".join(f"\n    {sequential(part, '        ')}" for part in types) + ">"
        else:
            model = sequential(types[0])
        if whole and padding:
            model = around("MaskFromIds", model, **padding[1])
        head = self.layers[-1]
        if self.tied and head.bias:
            model = sequential([model, layer_type("FeatureBias", rows=head.value.tokens, d_model=head.d_out)])
            names.append(head.tensors[1])
        lines = [f"// {class_name}{HEADER_LINE} Its weights are model.safetensors, under the same names.",
                 *self.input_comment(),
                 "#pragma once", "", "#include <attune/attune.hpp>", "", f"namespace {name} {{", "",
                 *self.declarations, *([""] if self.declarations else []), f"using Model = {model};", "", *self.table(),
                 f"using Names = {self.file_type(self.layers, self.names_type('Model', names), True)};", "",
                 f"}}  // namespace {name}", ""]
        return "\n".join(wrapped(line) for line in "\n".join(lines).split("\n"))

    def check_source(self, name):
        """The checking program: the layers one by one, for check.hpp; of an encoder and a decoder, the encoder's."""
        layers = self.one_by_one()
        names = self.names_type(LAYERS, [item for layer in layers for item in layer.names])
        return filled(
            "check.cpp", name=name, layers=sequential([layer.type for layer in layers]), names=self.file_type(layers, f"attune::PyTorchPart<{names}>", False),
            paths=", ".join(f'"{layer.path or kind_of(layer)}"' for layer in layers), rest="decoder" if len(self.parts) > 1 else "output",
            roles="kQueries | attune::Role::kValues" if self.declarations else "kEverything")

    def length_example(self, name):
        """For the README: how to give a length, of a model whose attention takes the input's tokens; or what becomes of padding among ids."""
        if self.structure.padding:
            return filled("padding.md")
        tokens = self.device_input().shape[1]
        parts = [getattr(part, "block", part) for layer in self.layers for part in (layer.every() if layer.kind == "shared" else [layer])
                 if part.kind in ("block", "attention")]
        plain = parts and len(self.inputs) == 1 and all(part.attention.members["seq_len"] == tokens for part in parts)
        plain = plain and not any(re.search("EachGroup|ReducedAttention|TransposeGrid|RepeatLastToken", layer.type) for layer in self.layers)
        return filled("length.md", name=name, tokens=tokens) if plain and tokens > 1 else ""

    def one_by_one(self):
        """The layers that the check runs by themselves."""
        return self.masked(self.parts[0][:-1] if self.tied else self.parts[0])

    def device_input(self):
        """The samples as the device takes them, [batch, tokens, features] or ids."""
        sources = [self.structure.memory_source, self.structure.source] if len(self.parts) > 1 else self.structure.tables or [self.structure.source]
        found = []
        for source, x in zip(sources, self.inputs):
            rows = evaluate(source, self.known)
            found.append(rows.flatten(1).to(torch.int32) if not x.is_floating_point() else rows.float())
        if len(found) > 1:
            return torch.cat(found, 1)
        return found[0] if self.inputs[0].is_floating_point() else found[0][:, None]

    def input_comment(self):
        """What a row of the device's input is, where it is not PyTorch's."""
        source, x = self.structure.source, self.inputs[0]
        if len(self.parts) > 1:
            return ["// The input is the source, then the target."]
        if self.structure.tables:
            return ["// The input has all ids of " + ", then all of ".join(self.layers[0].names) + "."]
        if source.kind == "rearranged":
            return ["// A row of the input is a patch, in the order [channels, height, width]."] if source.data.get("patches") else \
                [f"// The input is as forward rearranges it, {list(source.layout.shape[1:])}."]
        if x.dim() > 3 or x.dim() == 3 and not torch.equal(source.layout, self.captured.inputs[0][:1]):
            return ["// A row of the input has the channels of a " + ("time step." if x.dim() == 3 else "pixel, row by row of the image.")]
        return []

    def input_line(self):
        """Python that makes the rows of the device's input of a batch `x`, for the README; it is run here. Empty where they are `x`."""
        x, rows = self.inputs[0][:8], self.device_input()
        if len(self.inputs) > 1 or not x.is_floating_point():
            return ""
        tokens, width = rows.shape[1:]
        found = ["x", "x[:, None]", "x.flatten(1)[:, None]", "x.flatten(2).transpose(1, 2)", "x.transpose(1, 2)", f"x.reshape(len(x), {tokens}, {width})"]
        sizes = [size for size in range(1, x.shape[-1] + 1) if x.shape[-1] % size == 0]
        if x.dim() == 4:
            found += [f"torch.nn.functional.unfold(x, {pair}, stride={pair}).transpose(1, 2)" for pair in
                      ((a, b) for b in sizes for a in range(1, x.shape[2] + 1) if a * b * x.shape[1] == width)]
            found += [f"x.unfold(2, {a}, {a}).unfold(3, {b}, {b}).permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)" for b in sizes
                      for a in range(1, x.shape[2] + 1) if a * b * x.shape[1] == width]
        if x.dim() == 3:
            found += [f"x.unfold(2, {size}, {size}).permute(0, 2, {order}).flatten(2)" for size in sizes for order in ("1, 3", "3, 1") if size * x.shape[1] == width]
        for text in found:
            try:
                made = eval(text, {"torch": torch, "x": x})
            except (RuntimeError, IndexError):
                continue
            if made.shape == rows.shape and torch.equal(made.float(), rows):
                return filled("input.md", line=text) if text not in ("x", "x[:, None]") else ""
        return ""

    def samples(self):
        """Inputs, outputs and every layer's output, of at most eight samples."""
        output, known = self.answer[:8], self.known[self.matcher.output]
        if self.matcher.last is not None:
            output = known
        elif self.matcher.transposed:
            output = output.reshape(known.transpose(1, 2).shape).transpose(1, 2)
        found = {"input": self.device_input(), "output": output.reshape(known.shape)}
        for index, layer in enumerate(self.one_by_one()):
            found[f"layer.{index:03d}"] = self.output_of_layer(layer)
        return {name: value.float() if value.is_floating_point() else value for name, value in found.items()}

    def output_of_layer(self, layer):
        """What a layer answers; of a sum of embeddings, the sum."""
        if not isinstance(layer.value, list):
            return self.known[layer.value]
        if layer.kind == "linear":  # of two
            weight, bias, source = layer.value
            return self.known[source] @ weight.values + (0 if bias is None else bias.values)
        tables = [item for item in layer.value if item.kind == "embedding"]
        result = sum(self.known[item] for item in tables)
        for item in layer.value[len(tables):]:
            result = evaluate(Value(item.kind, [self.graph.output], item.layout, item.data), {self.graph.output: result})
        return result


OWN_FILE, OWN_LINE = "CMakeLists.txt", "# The model "  # by which a folder is known as written here


def refuse_folder(folder):
    """Raises ValueError of a folder with files that were not written here."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give a folder")
    others = sorted(path.name for path in folder.glob("*") if not path.name.startswith("."))
    known = (folder / OWN_FILE).read_text(errors="replace").startswith(OWN_LINE) if OWN_FILE in others else False
    if others and not known:
        raise ValueError(f"{folder} has files that attune_torch.export did not write: {', '.join(others[:3])}{', …' * (len(others) > 3)}; give a "
                         "folder that is new or empty, or one that it wrote")


def refuse_module(module):
    """Raises ValueError or Unsupported of what is no model whose forward can be recorded."""
    if not isinstance(module, nn.Module):
        what = "a state_dict has weights alone: make the model, and call load_state_dict" if isinstance(module, dict) else \
            "a function becomes a module as the forward of a class"
        raise ValueError(f"the model is a {type(module).__name__}, and is to be a torch.nn.Module; {what}")
    for path, inside in module.named_modules():
        if isinstance(inside, torch.jit.ScriptModule):
            raise Unsupported(f"{path or 'the model'} is a module of torch.jit, whose forward cannot be recorded: export the module that "
                              "it was made from, and load_state_dict its weights")


def refuse_numbers(module):
    """Raises Unsupported of tensors that are not numbers of 32 bits, and finite."""
    parameters = {name for name, _ in module.named_parameters()}
    trained = {name for name, item in module.named_parameters() if item.requires_grad}
    for name, value in module.state_dict().items():
        if not isinstance(value, torch.Tensor) or value.is_quantized:
            raise Unsupported(f"{name} is no tensor of floats, as in a quantized module: export the module in floats, and give its firmware QUANTIZE int8")
        if isinstance(value, nn.parameter.UninitializedTensorMixin) or value.is_meta:
            raise Unsupported(f"{name} has no numbers: initialize the module, or load its weights, before it is exported")
        if value.is_complex() and name not in parameters:
            continue  # angles of rotary positions, which attune computes: the buffer stays in the module
        if value.layout != torch.strided or value.dtype not in tensors.NAMES:
            kind = str(value.dtype if value.layout == torch.strided else value.layout).removeprefix("torch.")
            raise Unsupported(f"{name} is a tensor of {kind}, which .safetensors files do not have; register_buffer(…, persistent=False) leaves "
                              "a buffer out of the state_dict")
        if name in parameters and value.is_floating_point() and value.dtype != torch.float32:
            raise Unsupported(f"parameters that are not floats of 32 bits; call module.float() before: {name}")
        # A mask in a buffer, or in a frozen parameter, may be infinite.
        if value.is_floating_point() and not bool(torch.isfinite(value).all() if name in trained else (value == value).all()):
            raise Unsupported(f"{name} has numbers that are NaN or infinite, as after a training that diverged")


def refuse_without_batch(module, args, kwargs):
    """Raises Unsupported of rows of features that influence each other: they are the tokens of one sample."""
    inputs = [*args, *kwargs.values()]
    if any(item.dim() != 2 or not item.is_floating_point() or len(item) < 2 for item in inputs):
        return
    with in_evaluation(module), torch.no_grad():
        try:
            whole = module(*args, **kwargs)
        except Exception:  # noqa: BLE001: the recording says what it is
            return
        try:
            alone = module(*(item[:1] for item in args), **{name: item[:1] for name, item in kwargs.items()})
        except Exception:  # noqa: BLE001
            alone = None
            if isinstance(whole, torch.Tensor) and whole.shape[:1] == inputs[0].shape[:1]:
                return  # forward has the number of samples in it
    if not isinstance(whole, torch.Tensor) or isinstance(alone, torch.Tensor) and alone.shape == whole[:1].shape and torch.allclose(alone, whole[:1], rtol=1e-4, atol=1e-4):
        return
    raise Unsupported(f"sample_input {list(inputs[0].shape)} has no batch: forward of its first row alone is not the first row of forward. "
                      "Pass sample_input.unsqueeze(0)")


@memory.kept()
def export(module, sample_input, folder, hints=None):
    """Writes a folder with `module` as a type of attune, its weights and samples. `sample_input` is a batch, [batch, tokens,
    features], [batch, features], or ids of tokens [batch, tokens]; the model is recorded on it, so take real ones. A tuple or a
    dict has the inputs of a model with several ids for each token, as BERT's words and token types. `hints` has functions by
    modules' paths, called as hint(module, *inputs): what the module computes, written with operations that attune has. Raises
    Unsupported, before anything is written, and says what attune has no layer for, and where in `forward` it is."""
    folder = Path(folder)
    name = re.sub(r"\W+", "_", folder.resolve().name, flags=re.ASCII)
    refuse_name(name)
    refuse_folder(folder)
    refuse_module(module)
    refuse_numbers(module)
    args = (sample_input,) if isinstance(sample_input, torch.Tensor) else sample_input if isinstance(sample_input, (list, tuple)) else ()
    kwargs = sample_input if isinstance(sample_input, dict) else {}
    inputs = [*args, *kwargs.values()]
    if any(isinstance(item, torch.Tensor) and item.numel() == 0 for item in inputs):
        raise ValueError("sample_input has no numbers; the model is recorded on it, so take a batch of one or more")
    if not inputs or any(not isinstance(item, torch.Tensor) or item.dim() < 2 for item in inputs):
        raise ValueError("sample_input is a tensor with a batch: [batch, tokens, features], [batch, features] or ids [batch, tokens]; or "
                         "a tuple or a dict of such, for a model with several ids for each token")
    if not all(bool(torch.isfinite(item).all()) for item in inputs):
        raise ValueError("sample_input has numbers that are NaN or infinite; the model is recorded on it, so take real inputs")
    if any(item.dtype == torch.bool for item in inputs):
        raise Unsupported("a mask as an input, as of padding; export module(x) without it, with a default in forward: padding=None. On the device, "
                          "SequenceLength or another mask is an argument of each call")
    refuse_without_batch(module, args, kwargs)
    found = Exported(module, args, kwargs, hints or {})
    class_name, samples = module._get_name(), found.samples()
    words = {"name": name, "folder": folder.resolve().name, "library": name.lower(), "class_name": class_name, "samples": len(samples["input"]),
             "input": found.input_line(), "length": found.length_example(name), "parameters": f"{sum(p.numel() for p in module.parameters()):,}"}
    texts = {f"{name}.hpp": found.header(name, class_name), "check.cpp": found.check_source(name), "model.safetensors.roles": found.roles(),
             **{file: filled(file, **words) for file in (OWN_FILE, "README.md")}}
    folder.mkdir(parents=True, exist_ok=True)
    older = folder / "model.hpp"  # the header of an earlier export, which would still compile
    if older.is_file() and HEADER_LINE in older.read_text(errors="replace").partition("\n")[0]:
        older.unlink()
    for file, text in texts.items():
        (folder / file).write_text(text)
    tensors.write(folder / "model.safetensors", found.state, metadata_of(found.changes))
    tensors.write(folder / "check.safetensors", samples)
    for text in [text for change in found.changes for text in change.warnings]:
        warnings.warn(text, ExportWarning, stacklevel=2)
    return found
