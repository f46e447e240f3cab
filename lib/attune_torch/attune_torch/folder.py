"""The folder of an exported model: C++ that a person would have written, the weights as they are, and samples to check it."""
import math
import re
import warnings
from pathlib import Path

import torch
from torch import nn

from . import tensors
from .cpp_names import refuse_name
from .errors import ExportWarning, Unsupported
from .folding import Scaled, metadata_of
from .recognition import MULTIHEAD_NAMES, TORCH_NAMES, close, recognize
from .recording import in_evaluation, record

LAYERS = "Layers"
HEADER_LINE = " of PyTorch, as a type of attune."
# The members of attune::EncoderLayerNames.
NAMES_IN_ORDER = ("query", "key", "value", "output", "linear1", "linear2", "norm1", "norm2", "gate", "query_norm", "key_norm",
                  "scale1", "scale2", "qkv_weight", "qkv_bias")


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


class Exported:
    """A recognized model: its types and names."""

    def __init__(self, module, args, kwargs, hints):
        self.recording, self.output = record(module, args, kwargs, hints)
        self.recognizer, self.layers, self.output = recognize(self.recording, self.output)
        turned = tensors.conv1d_weights(module)
        self.state = {name: value.detach().t() if name in turned else value.detach() for name, value in module.state_dict().items()}
        self.changes = [*self.recognizer.folds.values(), *(Scaled(tensor, math.prod(factors.values())) for tensor, factors in self.recognizer.factors.items())]
        for change in self.changes:
            self.state = change.apply(self.state)
        if not self.layers:
            raise Unsupported("forward answers its input as it is, and there is no layer to export")
        if not any(layer.tensors for layer in self.layers):
            raise Unsupported("a model without parameters, which has nothing to put into flash")
        self.declarations, self.keys = [], {}
        self.tables = []
        # Of an encoder and a decoder: both, else one list.
        self.parts = getattr(self.layers[0], "parts", [self.layers]) if self.layers else [[]]
        for layer in [layer for part in self.parts for layer in part]:
            if getattr(layer, "kind", "") == "block":
                self.declare(layer)
        self.tied = self.tie()
        self.check_tensors()

    def declare(self, layer):
        """The type of a block, once for equal ones, and the table of its names."""
        key = layer.block.shape_key()
        if key not in self.keys:
            name = "Block" if not self.keys else f"Block{len(self.keys) + 1}"
            lines, type_ = layer.block.declare(name)
            self.declarations += lines
            self.keys[key] = type_
        layer.type = self.keys[key]
        if layer.block.names not in self.tables:
            self.tables.append(layer.block.names)
        if len(self.tables) > 1:
            raise Unsupported("transformer blocks of two kinds of names in one model: " + layer.path)

    def tie(self):
        """The embedding that is the head, too."""
        first, last = self.layers[0], self.layers[-1]
        if getattr(first, "kind", "") != "embedding" or getattr(last, "kind", "") != "linear" or last.weight is not first.table:
            return False
        if last.bias:
            raise Unsupported("a head that is tied to the embedding and has a bias: " + last.path)
        if first.table.path in self.recognizer.factors:
            raise Unsupported("an embedding times a constant, and a head that is tied to it; make the factors of features a parameter, "
                              f"nn.Parameter(torch.full(({first.table.shape[-1]},), …)), which becomes a LayerScale: {first.path}")
        return True

    def __repr__(self):
        return f"<attune_torch.Exported: {len(self.layers)} layers, {len(self.state)} tensors>"

    def check_tensors(self):
        odd = next((name for name in self.state if not re.fullmatch(r'[ !#-\[\]-~]+', name) or ";" in name), None)
        if odd:
            raise Unsupported(f"{odd!r} cannot be a name in C++, which is ASCII without quotes, backslashes, semicolons and control "
                              "characters: rename the module")
        if any(name == "" for layer in self.layers for name in layer.names):
            raise Unsupported("the module is one layer by itself, whose tensors have no path; export nn.Sequential(module)")
        of_layers = [name for layer in (self.layers[:-1] if self.tied else self.layers) for name in layer.tensors]
        used, groups = set(of_layers), {}
        for name, value in self.recording.tensors.items():
            groups.setdefault(id(value), []).append(name)
        first = {name: names[0] for names in groups.values() for name in names}
        of_layers = [first.get(name, name) for name in of_layers]
        twice = next((name for name in of_layers if of_layers.count(name) > 1), None)
        if twice:
            raise Unsupported(f"{twice} is a tensor of two layers; attune ties a head to the embedding before it, and nothing else")
        missing = used - set(self.state)
        if missing:
            raise Unsupported("not in the state_dict: " + ", ".join(sorted(missing)))
        wrong = [name for name in used if self.state[name].dtype != torch.float32]
        if wrong:
            raise Unsupported("parameters that are not floats of 32 bits; call module.float() before: " + wrong[0])
        self.check_read(used)
        self.aliases = [(other, name) for names in groups.values() for name in names if name in used for other in names if other != name]
        self.part = bool(set(self.state) - used - {alias for alias, _ in self.aliases})

    def check_read(self, used):
        """Refuses a parameter that the output is computed from, and that no layer has: its value changes nothing now, and training would."""
        shared = {id(self.recording.tensors[name]) for name in used if name in self.recording.tensors}
        folded = [change.norm for change in self.changes if hasattr(change, "norm")]
        for name, parameter in self.recording.module.named_parameters():
            if name in self.recording.read and parameter.requires_grad and id(parameter) not in shared and name.rpartition(".")[0] not in folded:
                raise Unsupported(f"{name}, {list(parameter.shape)}, takes part in forward, and no layer of attune has it: its value changes nothing now, "
                                  "and what it learns would be lost. Make it a buffer (register_buffer) or freeze it (requires_grad_(False)), "
                                  "or leave it out of forward")

    def roles(self):
        """What QUANTIZE is told of tensors: those that stay floats, and weights whose names look like positions'."""
        names = [name for layer in self.layers for name in layer.tensors] + [alias for alias, _ in self.aliases]
        floats = self.recognizer.floats
        weights = [name for name in names if name not in floats and self.state[name].dim() > 1 and re.search("pos|wpe", name)]
        return "".join([f"weight={name}\n" for name in weights] + [f"float={name}\n" for name in names if name in floats])

    # ---- C++ ----

    @staticmethod
    def repeated(layers):
        """Layers with equal blocks as one Repeat: (type, names)."""
        found, at = [], 0
        while at < len(layers):
            layer, count = layers[at], 1
            match = re.fullmatch(r"(.*)\.0", layer.names[0]) if getattr(layer, "kind", "") == "block" else None
            if match:
                while at + count < len(layers) and layers[at + count].type == layer.type and \
                        layers[at + count].names == [f"{match[1]}.{count}"]:
                    count += 1
            if count > 1:
                found.append((f"attune::Repeat<{count}, {layer.type}>", [match[1]]))
            else:
                found.append((layer.type, layer.names))
            at += count
        return found

    @staticmethod
    def sequential(types, indent="    "):
        return "attune::Sequential<\n" + ",\n".join(indent + type_ for type_ in types) + ">"

    def names_type(self, model, names):
        quoted = "".join(f', "{name}"' for name in names)
        if self.table():
            return f"attune::HuggingFaceModule<kBlockNames, {model}{quoted}>"
        return f"attune::PyTorchModule<{model}{quoted}>"

    def file_type(self, layers, names, part, aliases):
        if part:
            names = f"attune::PyTorchPart<{names}>"
        extra = [f'attune::TensorShape<"{tensor}", {", ".join(map(str, shape))}>'
                 for layer in layers for tensor, shape in layer.shapes.items()]
        if aliases:
            extra += [f'attune::TensorAlias<"{alias}", "{name}">' for alias, name in self.aliases]
        return f"attune::PyTorchFile<{', '.join([names, *extra])}>" if extra else names

    def table(self):
        """C++ of the names in blocks, and in attention outside of them, where they are not those of torch.nn."""
        blocks, alone = self.tables[0] if self.tables else {}, self.recognizer.attention_names or {}
        if alone.items() <= MULTIHEAD_NAMES.items():
            alone = {}
        if not blocks and not alone:
            return []
        if alone and self.tables and not blocks:
            blocks = TORCH_NAMES
            if any(layer.block.memory_len for part in self.parts for layer in part if getattr(layer, "kind", "") == "block"):
                raise Unsupported("attention with names of its own beside an nn.TransformerDecoderLayer; write it as an nn.MultiheadAttention")
        lines = [f"inline constexpr attune::EncoderLayerNames kAttentionNames{{\n    {self.entries(alone)}}};"] if alone else []
        entries = [self.entries(blocks)] * bool(blocks) + [".attention_alone = &kAttentionNames"] * bool(alone)
        return [*lines, "inline constexpr attune::EncoderLayerNames kBlockNames{\n    " + ",\n    ".join(entries) + "};"]

    @staticmethod
    def entries(table):
        return ",\n    ".join(f'.{key} = "{table[key]}"' for key in NAMES_IN_ORDER if key in table)

    def header(self, name, class_name):
        lists = [self.repeated(part[1:-1] if self.tied else part) for part in self.parts]
        names = [item for pairs in lists for _, items in pairs for item in items]
        types = [[type_ for type_, _ in pairs] for pairs in lists]
        if self.tied:
            embedding = self.layers[0]
            model = f"attune::Tied<\n    {embedding.type},\n    {self.sequential(types[0], '        ')}>"
            names = embedding.names + names
        elif len(types) > 1:
            model = "attune::EncoderDecoder<" + ",".join(f"\n    {self.sequential(part, '        ')}" for part in types) + ">"
        else:
            model = self.sequential(types[0])
        lines = [f"// {class_name}{HEADER_LINE} Its weights are model.safetensors, under the same names.",
                 *self.input_comment(),
                 "#pragma once", "", "#include <attune/attune.hpp>", "", f"namespace {name} {{", "",
                 *self.declarations, *([""] if self.declarations else []), f"using Model = {model};", "", *self.table(),
                 f"using Names = {self.file_type(self.layers, self.names_type('Model', names), self.part, True)};", "",
                 f"}}  // namespace {name}", ""]
        return "\n".join(wrapped(line) for line in "\n".join(lines).split("\n"))

    def check_source(self, name, tolerance):
        """The checking program: the layers one by one, for check.hpp; of an encoder and a decoder, the encoder's."""
        layers = self.one_by_one()
        flat = self.sequential([layer.type for layer in layers])
        names = [item for layer in layers for item in layer.names]
        paths = ", ".join(f'"{layer.path or self.kind_of(layer)}"' for layer in layers)
        return "\n".join([
            "// Compares the model with PyTorch, layer by layer: python3 -m attune_torch check.",
            f"#include <{name}_file.hpp>", f"#include <{name}_samples.hpp>", f'#include "{name}.hpp"', "", "namespace {", "",
            f"using namespace {name};", f"using File = {name}_file;", f"using Samples = {name}_samples;", "using Whole = Model;",
            "using WholeNames = Names;", f"using Layers = {flat};",
            f"using LayerNames = {self.file_type(layers, f'attune::PyTorchPart<{self.names_type(LAYERS, names)}>', False, False)};",
            f"constexpr const char* kPaths[] = {{{paths}}};",
            f'constexpr const char* kRest = "{"decoder" if len(self.parts) > 1 else "output"}";  // not one by one',
            f"constexpr float kTolerance = ATTUNE_CHECK_INT8 ? {tolerance[1]}f : {tolerance[0]}f;  // of a layer's largest output",
            "constexpr attune::Role kLoraRoles = attune::Role::" + ("kQueries | attune::Role::kValues" if self.declarations else "kEverything") + ";",
            "", "}  // namespace", "", "#include <attune_torch/check.hpp>", ""])

    def length_example(self, name):
        """For the README, of a model whose attention takes the input's tokens: how to give a length."""
        tokens, of = self.device_input().shape[1], self.recognizer
        parts = [getattr(layer, "block", layer) for layer in self.layers if getattr(layer, "kind", "") in ("block", "attention")]
        plain = parts and not of.pair and not of.ids and all(part.attention.seq_len == tokens for part in parts)
        return LENGTH.format(name=name, tokens=tokens) if plain and tokens > 1 else ""

    @staticmethod
    def kind_of(layer):
        return re.sub(r"^attune::|<.*$", "", layer.type, flags=re.S)

    def one_by_one(self):
        """The layers that the check runs by themselves."""
        return self.parts[0][:-1] if self.tied else self.parts[0]

    def device_input(self):
        """The samples as the device takes them, [batch, tokens, features] or ids."""
        of = self.recognizer
        if of.pair:
            return torch.cat([of.tokens(item) for item in of.pair] if of.pair[0].value.is_floating_point() else
                             [item.value for item in of.pair], 1)
        if of.ids:
            return torch.cat([item.value for item in of.ids], 1)
        return of.tokens(self.recording.inputs[0]) if of.patches is None else of.patches

    def input_comment(self):
        """What a row of the device's input is, where it is not PyTorch's."""
        x = self.recording.inputs[0]
        if self.recognizer.pair:
            return ["// The input is the source, then the target."]
        if self.recognizer.ids:
            return ["// The input has all ids of " + ", then all of ".join(self.layers[0].names) + "."]
        if self.recognizer.patches is not None:
            return [f"// {self.recognizer.rows}."]
        if self.recognizer.axes.get(x.index) == 1 and x.value.dim() > 2:
            return ["// A row of the input has the channels of a " + ("time step." if x.value.dim() == 3 else "pixel, row by row of the image.")]
        return []

    def samples(self):
        """Inputs, outputs and every layer's output, of at most eight samples."""
        count = min(8, self.recording.inputs[0].shape[0])
        x = self.device_input()[:count]
        found = {"input": x.float() if x.is_floating_point() else x.to(torch.int32),
                 "output": self.recognizer.tokens(self.output)[:count].float()}
        for index, layer in enumerate(self.one_by_one()):
            found[f"layer.{index:03d}"] = layer.output[:count].float()
        return found


OWN_FILE, OWN_LINE = "CMakeLists.txt", "# The model {name}, for a firmware of yours:"  # by which a folder is known as written here
CMAKE = OWN_LINE + '''
#
#   add_subdirectory({folder})
#   add_executable(firmware main.cpp)                    # #include <{name}.hpp>, <{name}_file.hpp>
#   target_link_libraries(firmware PRIVATE attune::attune)
#   {name}_add_to(firmware)                              # or {name}_add_to(firmware QUANTIZE int8)
#
# For a firmware in C, or to compile the model once: target_link_libraries(firmware PRIVATE {library}), #include "{library}.h".
#
# By itself it builds the program that compares it with PyTorch: cmake -B build -DATTUNE_DIR=<attune's folder>.
cmake_minimum_required(VERSION 3.25)
project({name} LANGUAGES CXX)

set({name}_FOLDER ${{CMAKE_CURRENT_LIST_DIR}} CACHE INTERNAL "")
function({name}_add_to target)
  attune_add_model(${{target}} NAME {name}_file FILE ${{{name}_FOLDER}}/model.safetensors ${{ARGN}})
  target_include_directories(${{target}} PRIVATE ${{{name}_FOLDER}})
endfunction()

set({name}_TRAINS nothing CACHE STRING "What the library in C trains: nothing, everything, lora, biases or head")
if(PROJECT_IS_TOP_LEVEL)
  set(ATTUNE_DIR "" CACHE PATH "The folder of attune's sources")
  set(ATTUNE_BUILD_PORTS ON)
  set(ATTUNE_BUILD_EXAMPLES OFF)
  set(ATTUNE_BUILD_TESTS OFF)
  add_subdirectory(${{ATTUNE_DIR}} attune)
  attune_add_program(check_float SOURCES check.cpp)
  {name}_add_to(check_float)
  target_compile_definitions(check_float PRIVATE ATTUNE_CHECK_INT8=0 ATTUNE_CHECK_PLANS=1)
  attune_add_program(check_int8 SOURCES check.cpp)
  {name}_add_to(check_int8 QUANTIZE int8)
  target_compile_definitions(check_int8 PRIVATE ATTUNE_CHECK_INT8=1 ATTUNE_CHECK_PLANS=0)
  foreach(program check_float check_int8)
    attune_add_model(${{program}} NAME {name}_samples FILE check.safetensors)
    target_include_directories(${{program}} PRIVATE ${{ATTUNE_DIR}}/lib/attune_torch)
  endforeach()
endif()
attune_add_model_library({library} FOLDER ${{{name}_FOLDER}} TRAINS ${{{name}_TRAINS}})
'''


README = '''# {name}

`{class_name}` of PyTorch as a type of attune, with {parameters} parameters. Written by `attune_torch.export`.

| file | contents |
|---|---|
| `{name}.hpp` | the model's type, and PyTorch's names of its tensors |
| `model.safetensors` | its state_dict |
| `model.safetensors.roles` | for `QUANTIZE`: tensors whose names do not tell whether they are weights |
| `check.safetensors` | {samples} samples: inputs, outputs, and every layer's output |
| `CMakeLists.txt` | `{name}_add_to(target)` for your firmware; by itself, the program that compares |

```sh
python3 -m attune_torch check {folder}                   # on this machine
python3 -m attune_torch check {folder} --on mps2_an386   # and on an emulated Cortex-M4
```

In a firmware:

```cpp
#include <{name}.hpp>
#include <{name}_file.hpp>

static {name}::Model::InferenceScratch scratch;

void predict(const {name}::Model::Input& x, {name}::Model::Output& y) {{
  attune::infer<{name}::Model>(attune::kInFlash<{name}::Names, {name}_file>, x, y, scratch);
}}
```
{length}
## RAM and flash

`check` fills in this table.

<!-- sizes -->
<!-- end -->
'''


LENGTH = '''
Sequences shorter than {tokens} tokens give their length; what stands behind it has no influence:

```cpp
attune::Status predict_first(const {name}::Model::Input& x, int tokens, {name}::Model::Output& y) {{
  attune::SequenceLength<{tokens}> length;
  if (const attune::Status status = length.set_length(tokens); status != attune::Status::kOk) return status;
  attune::infer<{name}::Model>(attune::kInFlash<{name}::Names, {name}_file>, x, y, scratch, length);
  return attune::Status::kOk;
}}
```
'''


def refuse_folder(folder):
    """Raises ValueError of a folder with files that were not written here."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give a folder")
    others = sorted(path.name for path in folder.glob("*") if not path.name.startswith("."))
    known = (folder / OWN_FILE).read_text(errors="replace").startswith(OWN_LINE.split("{")[0]) if OWN_FILE in others else False
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
    for name, value in module.state_dict().items():
        if not isinstance(value, torch.Tensor) or value.is_quantized:
            raise Unsupported(f"{name} is no tensor of floats, as in a quantized module: export the module in floats, and give its firmware QUANTIZE int8")
        if isinstance(value, nn.parameter.UninitializedTensorMixin) or value.is_meta or value.numel() == 0:
            raise Unsupported(f"{name} has no numbers: initialize the module, or load its weights, before it is exported; leave an empty buffer out")
        if value.layout != torch.strided or value.dtype not in tensors.NAMES:
            kind = str(value.dtype if value.layout == torch.strided else value.layout).removeprefix("torch.")
            raise Unsupported(f"{name} is a tensor of {kind}, which .safetensors files do not have; register_buffer(…, persistent=False) leaves "
                              "a buffer out of the state_dict")
        if name in parameters and value.is_floating_point() and value.dtype != torch.float32:
            raise Unsupported(f"parameters that are not floats of 32 bits; call module.float() before: {name}")
        # A mask in a buffer may be infinite.
        if value.is_floating_point() and not bool(torch.isfinite(value).all() if name in parameters else (value == value).all()):
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
    if not isinstance(whole, torch.Tensor) or isinstance(alone, torch.Tensor) and close(alone, whole[:1]):
        return
    raise Unsupported(f"sample_input {list(inputs[0].shape)} has no batch: forward of its first row alone is not the first row of forward. "
                      "Pass sample_input.unsqueeze(0)")


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
    class_name = module._get_name()
    texts = {OWN_FILE: CMAKE.format(name=name, folder=folder.resolve().name, library=name.lower()), f"{name}.hpp": found.header(name, class_name),
             "check.cpp": found.check_source(name, (1e-4, 0.1)), "model.safetensors.roles": found.roles(),
             "README.md": README.format(name=name, folder=folder.resolve().name, length=found.length_example(name), class_name=class_name, samples=found.samples()["input"].shape[0],
                                        parameters=f"{sum(p.numel() for p in module.parameters()):,}")}
    folder.mkdir(parents=True, exist_ok=True)
    older = folder / "model.hpp"  # the header of an earlier export, which would still compile
    if older.is_file() and HEADER_LINE in older.read_text(errors="replace").partition("\n")[0]:
        older.unlink()
    for file, text in texts.items():
        (folder / file).write_text(text)
    tensors.write(folder / "model.safetensors", found.state, metadata_of(found.changes))
    tensors.write(folder / "check.safetensors", found.samples())
    for text in [text for change in found.changes for text in change.warnings]:
        warnings.warn(text, ExportWarning, stacklevel=2)
    return found
