"""Hugging Face checkpoints: a folder with config.json and weights becomes a module with the documented names.

The modules compute what transformers' own do in evaluation, without masks: BERT and DistilBERT (Devlin et al., 2019; Sanh
et al., 2019), ViT and DeiT (Dosovitskiy et al., 2021; Touvron et al., 2021), GPT-2 (Radford et al., 2019), Llama and Qwen2
(Touvron et al., 2023; Yang et al., 2024). timm's ViT and DeiT, whose checkpoints stand in such folders, too, have LayerScale.
"""
import json
import operator
import re
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from . import tensors
from .activations import ACTIVATIONS
from .errors import Unsupported
from .layers import llama3_scaling, rotary_frequencies

FUNCTIONS = {name: known.formula for known in ACTIVATIONS.values() for name in known.hugging_face}
# Buffers of older checkpoints, which are computed.
COMPUTED = re.compile(r"(^|\.)(position_ids|inv_freq|attn\.bias|attn\.masked_bias)$")


def activation(config, key="hidden_act"):
    name = config.get(key, "gelu")
    if not isinstance(name, str) or name not in FUNCTIONS:
        raise Unsupported(f"config.json: {key} is '{name}'; there are {', '.join(sorted(FUNCTIONS))}")
    return FUNCTIONS[name]


def attend(q, k, v, heads, causal=False):
    """Scaled dot-product attention of [batch, tokens, features], keys and values of as many heads or of fewer."""
    head = q.shape[-1] // heads

    def split(x):
        x = x.view(*x.shape[:2], -1, head).transpose(1, 2)
        return x.repeat_interleave(heads // x.shape[1], 1)
    scores = split(q) @ split(k).transpose(2, 3) / head ** 0.5
    if causal:
        later = torch.triu(torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device), 1)
        scores = scores.masked_fill(later, float("-inf"))
    return (scores.softmax(-1) @ split(v)).transpose(1, 2).flatten(2)


class Conv1D(nn.Module):
    """A linear layer whose weight is [in, out], as GPT-2's."""

    def __init__(self, d_in, d_out, bias):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(d_in, d_out)), nn.Parameter(torch.empty(d_out))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], -1)


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class Parts(nn.Module):
    """A module whose parts have the paths of a checkpoint: `names`, by their roles here."""

    def __init__(self, names):
        super().__init__()
        self.names = names

    def put(self, **parts):
        for role, part in parts.items():
            *path, leaf = self.names[role].split(".")
            owner = self
            for name in path:
                owner = owner._modules.setdefault(name, nn.Module())
            setattr(owner, leaf, part)

    def __getitem__(self, role):
        return operator.attrgetter(self.names[role])(self)


# ---- Blocks ----

def roles(qkv, *others):
    """Names of a block's parts. `qkv`: of queries, keys and values, or of the one that has all three."""
    own = ("query", "key", "value") if len(qkv) > 1 else ("qkv",)
    return dict(zip((*own, "output", "norm1", "norm2", "linear1", "linear2", "gate"), (*qkv, *others)))


BERT = roles(["attention.self.query", "attention.self.key", "attention.self.value"], "attention.output.dense", "attention.output.LayerNorm",
             "output.LayerNorm", "intermediate.dense", "output.dense")
DISTILBERT = roles(["attention.q_lin", "attention.k_lin", "attention.v_lin"], "attention.out_lin", "sa_layer_norm", "output_layer_norm", "ffn.lin1", "ffn.lin2")
VIT = roles(["attention.attention.query", "attention.attention.key", "attention.attention.value"], "attention.output.dense", "layernorm_before",
            "layernorm_after", "intermediate.dense", "output.dense")
TIMM = roles(["attn.qkv"], "attn.proj", "norm1", "norm2", "mlp.fc1", "mlp.fc2")
GPT2 = roles(["attn.c_attn"], "attn.c_proj", "ln_1", "ln_2", "mlp.c_fc", "mlp.c_proj")
LLAMA = roles(["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], "self_attn.o_proj", "input_layernorm", "post_attention_layernorm", "mlp.up_proj",
              "mlp.down_proj", "mlp.gate_proj")


class Block(Parts):
    """A transformer block with norms `before` its branches or behind their sums. `norm` makes one. `heads` are of `head` features, with `shared` of
    keys and values. `rotary`: base and scaling. `scale`: the initial factors of a LayerScale."""

    def __init__(self, names, width, heads, inner, norm, function=F.gelu, before=True, causal=False, linear=nn.Linear, qkv_bias=True, output_bias=True,
                 bias=True, head=None, shared=None, rotary=None, scale=None):
        super().__init__(names | ({"scale1": "ls1.gamma", "scale2": "ls2.gamma"} if scale else {}))
        self.heads, self.head, self.function, self.before, self.causal, self.rotary = heads, head or width // heads, function, before, causal, rotary
        queries, keys = heads * self.head, (shared or heads) * self.head
        linears = {"query": (width, queries, qkv_bias), "key": (width, keys, qkv_bias), "value": (width, keys, qkv_bias),
                   "qkv": (width, queries + 2 * keys, qkv_bias), "output": (queries, width, output_bias), "linear1": (width, inner, bias),
                   "linear2": (inner, width, bias), "gate": (width, inner, bias)}
        self.put(**{role: linear(*linears[role]) for role in names if role in linears}, norm1=norm(), norm2=norm())
        if scale:
            self.put(**{role: nn.Parameter(torch.full((width,), float(scale))) for role in ("scale1", "scale2")})

    def rotate(self, x):
        """Rotary positions of halves (Su et al., 2021)."""
        x = x.view(*x.shape[:2], -1, self.head)
        angles = (torch.arange(x.shape[1])[:, None, None] * rotary_frequencies(self.head, *self.rotary)).float()
        a, b = x.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1).flatten(2)

    def attended(self, x):
        q, k, v = self["qkv"](x).chunk(3, -1) if "qkv" in self.names else (self[role](x) for role in ("query", "key", "value"))
        q, k = (self.rotate(q), self.rotate(k)) if self.rotary else (q, k)
        return self["output"](attend(q, k, v, self.heads, self.causal))

    def fed_forward(self, x):
        return self["linear2"](F.silu(self["gate"](x)) * self["linear1"](x) if "gate" in self.names else self.function(self["linear1"](x)))

    def forward(self, x):
        for branch, norm, scale in ((self.attended, "norm1", "scale1"), (self.fed_forward, "norm2", "scale2")):
            if self.before:
                y = branch(self[norm](x))
                x = x + (y * self[scale] if scale in self.names else y)
            else:
                x = self[norm](branch(x) + x)
        return x


# ---- Models of ids ----

# A config's names of: width, vocabulary, positions, heads, features inside of a block, and blocks.
SIZES = ("hidden_size", "vocab_size", "max_position_embeddings", "num_attention_heads", "intermediate_size", "num_hidden_layers")
DISTILBERT_SIZES = ("dim", "vocab_size", "max_position_embeddings", "n_heads", "hidden_dim", "n_layers")
GPT2_SIZES = ("n_embd", "vocab_size", "n_positions", "n_head", "n_inner", "n_layer")


class Words(Parts):
    """Embeddings, blocks, and what follows, as far as there are `names` of them; `block` names a block's parts, and `options` are a block's. `norm`: of a
    width. `classes`: of the head, whose features are words else. `pooled`: the function of the first token's pooler."""

    def __init__(self, config, names, block, norm, sizes=SIZES, classes=None, pooled=None, **options):
        super().__init__(names)
        optional = {"n_inner"} if "positions" in names else {"max_position_embeddings"}
        width, words, positions, heads, inner, count = (config.get(name) if name in optional else config[name] for name in sizes)
        self.pooled = pooled
        parts = {"words": lambda: nn.Embedding(words, width), "positions": lambda: nn.Embedding(positions, width),
                 "types": lambda: nn.Embedding(config.get("type_vocab_size", 2), width), "norm": lambda: norm(width),
                 "layers": lambda: nn.ModuleList([Block(block, width, heads, inner or 4 * width, partial(norm, width), **options) for _ in range(count)]),
                 "last_norm": lambda: norm(width), "pooler": lambda: nn.Linear(width, width), "head": lambda: nn.Linear(width, classes or words, bias=classes is not None)}
        self.put(**{role: make() for role, make in parts.items() if role in names})

    def forward(self, ids, types=None):
        x = self["words"](ids)
        if "types" in self.names:
            x = x + self["types"](torch.zeros_like(ids[:1]) if types is None else types)
        if "positions" in self.names:
            x = x + self["positions"](torch.arange(ids.shape[1]))
        if "norm" in self.names:
            x = self["norm"](x)
        for layer in self["layers"]:
            x = layer(x)
        if "last_norm" in self.names:
            x = self["last_norm"](x)
        if self.pooled:
            x = self.pooled(self["pooler"](x[:, 0]))
        return self["head"](x) if "head" in self.names else x

    def tie(self, tied):
        if tied:
            self["head"].weight = self["words"].weight


class Bert(Words):
    def __init__(self, config, classes=None, tokenwise=False, prefix="bert."):
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise Unsupported(f"config.json: position_embedding_type is '{config['position_embedding_type']}'; attune has 'absolute'")
        names = {"words": "embeddings.word_embeddings", "positions": "embeddings.position_embeddings", "types": "embeddings.token_type_embeddings",
                 "norm": "embeddings.LayerNorm", "layers": "encoder.layer"} | ({} if tokenwise else {"pooler": "pooler.dense"})
        super().__init__(config, {role: prefix + name for role, name in names.items()} | ({"head": "classifier"} if classes else {}), BERT,
                         partial(nn.LayerNorm, eps=config.get("layer_norm_eps", 1e-12)), classes=classes, function=activation(config), before=False,
                         pooled=torch.tanh if classes and not tokenwise else None)


class DistilBert(Words):
    def __init__(self, config, classes):
        names = {"words": "distilbert.embeddings.word_embeddings", "positions": "distilbert.embeddings.position_embeddings",
                 "norm": "distilbert.embeddings.LayerNorm", "layers": "distilbert.transformer.layer", "pooler": "pre_classifier", "head": "classifier"}
        super().__init__(config, names, DISTILBERT, partial(nn.LayerNorm, eps=1e-12), DISTILBERT_SIZES, classes, F.relu,
                         function=activation(config, "activation"), before=False)


class Gpt2(Words):
    def __init__(self, config):
        for option in ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"):
            if config.get(option):
                raise Unsupported(f"config.json: {option}, which attune does not have")
        names = {"words": "transformer.wte", "positions": "transformer.wpe", "layers": "transformer.h", "last_norm": "transformer.ln_f", "head": "lm_head"}
        super().__init__(config, names, GPT2, partial(nn.LayerNorm, eps=config.get("layer_norm_epsilon", 1e-5)), GPT2_SIZES, causal=True, linear=Conv1D,
                         function=activation({"hidden_act": config.get("activation_function", "gelu_new")}))
        self.tie(config.get("tie_word_embeddings", True))


class Llama(Words):
    """Llama, and Qwen2, whose queries, keys and values have biases."""

    def __init__(self, config, qkv_bias):
        scaling = config.get("rope_scaling")
        if scaling and (scaling.get("rope_type") or scaling.get("type")) != "llama3":
            raise Unsupported(f"config.json: rope_scaling {json.dumps(scaling)}; attune has Llama 3's")
        if config.get("hidden_act", "silu") not in ("silu", "swish"):
            raise Unsupported(f"config.json: hidden_act is '{config['hidden_act']}'; a gated network of attune has silu")
        names = {"words": "model.embed_tokens", "layers": "model.layers", "last_norm": "model.norm", "head": "lm_head"}
        super().__init__(config, names, LLAMA, partial(RMSNorm, eps=config.get("rms_norm_eps", 1e-6)), causal=True, qkv_bias=qkv_bias,
                         output_bias=config.get("attention_bias", False), bias=config.get("mlp_bias", False), head=config.get("head_dim"),
                         shared=config.get("num_key_value_heads"), rotary=(config.get("rope_theta", 10000.0), llama3_scaling(scaling) if scaling else ()))
        self.rope_scaling = scaling
        self.tie(config.get("tie_word_embeddings", False))


# ---- Models of images ----

class Images(Parts):
    """Patches, `tokens` in front, and positions: of all, or of patches alone (`first` is False). Without a token, the mean is normalized."""

    def __init__(self, names, tokens, width, channels, size, patch, blocks, eps, classes, first=True):
        super().__init__(names)
        self.tokens, self.channels, self.size, self.first = tokens, channels, size, first
        self.put(**{token: nn.Parameter(torch.zeros(1, 1, width)) for token in tokens}, patches=nn.Conv2d(channels, width, patch, stride=patch),
                 positions=nn.Parameter(torch.zeros(1, (size // patch) ** 2 + len(tokens) * first, width)), layers=nn.ModuleList(blocks),
                 norm=nn.LayerNorm(width, eps), head=nn.Linear(width, classes))

    def forward(self, image):
        x = self["patches"](image).flatten(2).transpose(1, 2)
        x = x if self.first else x + self["positions"]
        for token in self.tokens[::-1]:
            x = torch.cat([self[token].expand(x.shape[0], -1, -1), x], dim=1)
        x = x + self["positions"] if self.first else x
        for layer in self["layers"]:
            x = layer(x)
        return self["head"](self["norm"](x)[:, 0] if self.tokens else self["norm"](x.mean(1)))


class Vit(Images):
    """ViT, and DeiT, which has one more token."""

    def __init__(self, config, classes, name):
        width, size, patch, eps = config["hidden_size"], config["image_size"], config["patch_size"], config.get("layer_norm_eps", 1e-12)
        if not isinstance(size, int) or not isinstance(patch, int):
            raise Unsupported("config.json: image_size and patch_size that are not single numbers")
        tokens = ["cls_token"] + (["distillation_token"] if name == "deit" else [])
        names = {token: f"embeddings.{token}" for token in tokens} | {
            "patches": "embeddings.patch_embeddings.projection", "positions": "embeddings.position_embeddings", "layers": "encoder.layer", "norm": "layernorm"}
        blocks = [Block(VIT, width, config["num_attention_heads"], config["intermediate_size"], partial(nn.LayerNorm, width, eps), activation(config),
                        qkv_bias=config.get("qkv_bias", True)) for _ in range(config["num_hidden_layers"])]
        super().__init__({role: f"{name}.{own}" for role, own in names.items()} | {"head": "classifier"}, tokens, width, config.get("num_channels", 3), size,
                         patch, blocks, eps, classes)


class TimmVit(Images):
    """timm's VisionTransformer. Its config.json has a name with sizes, and model_args where they are others."""

    SIZES = {"tiny": (192, 12, 3), "small": (384, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}
    ARCHITECTURE = re.compile(r"(?:vit|deit)_(tiny|small|base|large)_patch(\d+)_(\d+)(?:\..*)?")
    ARGUMENTS = {"img_size", "patch_size", "embed_dim", "depth", "num_heads", "mlp_ratio", "qkv_bias", "init_values", "class_token",
                 "no_embed_class", "in_chans", "num_classes", "global_pool"}

    def __init__(self, config):
        known, given = self.ARCHITECTURE.fullmatch(config["architecture"]), config.get("model_args", {})
        if not known or set(given) - self.ARGUMENTS:
            raise Unsupported(f"config.json: architecture {config['architecture']} of timm with {', '.join(sorted(given)) or 'no'} "
                              "model_args; there are vit and deit of sizes tiny, small, base and large, with "
                              f"{', '.join(sorted(self.ARGUMENTS))}")
        width, depth, heads = (given.get(name, own) for name, own in zip(("embed_dim", "depth", "num_heads"), self.SIZES[known[1]]))
        token, pool = given.get("class_token", True), given.get("global_pool", config.get("global_pool", "token"))
        if pool != ("token" if token else "avg"):
            raise Unsupported(f"config.json: global_pool '{pool}' {'beside' if token else 'without'} a class token; attune "
                              "has 'token' with one, and 'avg' without")
        names = {"cls_token": "cls_token", "patches": "patch_embed.proj", "positions": "pos_embed", "layers": "blocks", "norm": "norm" if token else "fc_norm",
                 "head": "head"}
        blocks = [Block(TIMM, width, heads, int(width * given.get("mlp_ratio", 4)), partial(nn.LayerNorm, width, 1e-6), qkv_bias=given.get("qkv_bias", True),
                        scale=given.get("init_values")) for _ in range(depth)]
        super().__init__(names, ["cls_token"] * token, width, given.get("in_chans", 3), given.get("img_size", int(known[3])),
                         given.get("patch_size", int(known[2])), blocks, 1e-6, given.get("num_classes", config.get("num_classes", 1000)),
                         not given.get("no_embed_class", False))


# ---- Checkpoints ----

def classes_of(config):
    return len(config["id2label"]) if "id2label" in config else config.get("num_labels", 2)


FAMILIES = {
    "BertModel": lambda config: Bert(config, prefix=""),
    "BertForSequenceClassification": lambda config: Bert(config, classes_of(config)),
    "BertForTokenClassification": lambda config: Bert(config, classes_of(config), tokenwise=True),
    "DistilBertForSequenceClassification": lambda config: DistilBert(config, classes_of(config)),
    "ViTForImageClassification": lambda config: Vit(config, classes_of(config), "vit"),
    "DeiTForImageClassification": lambda config: Vit(config, classes_of(config), "deit"),
    "GPT2LMHeadModel": Gpt2,
    "LlamaForCausalLM": lambda config: Llama(config, config.get("attention_bias", False)),
    "Qwen2ForCausalLM": lambda config: Llama(config, True),
}


def module_of(config, where="config.json"):
    """The module that a config.json describes."""
    if not isinstance(config, dict):
        raise ValueError(f"{where} is no config of a model")
    named = config.get("architecture") or config.get("architectures")
    named = named[0] if isinstance(named, list) and named else named
    family = TimmVit if "architecture" in config else FAMILIES.get(named) if isinstance(named, str) else None
    if family is None:
        raise Unsupported(f"{where}: architecture {named}; there are {', '.join(FAMILIES)}, and timm's ViT")
    try:
        return named, family(config)
    except KeyError as missing:
        raise ValueError(f"{where} has no {missing}, which {named} needs") from None
    except (Unsupported, ValueError):
        raise
    except Exception as problem:  # noqa: BLE001: whatever a layer raises of its sizes
        raise ValueError(f"{where} has an entry that is not one of {named}: {type(problem).__name__}: {problem}") from problem


def json_of(path):
    """What a file of JSON has. Raises ValueError, with the file's name."""
    try:
        return json.loads(path.read_text())
    except ValueError as problem:
        raise ValueError(f"{path} is no JSON: {problem}") from problem


def stored(folder):
    """The tensors of a checkpoint: .safetensors, in one file or in several, or pytorch_model.bin."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        found = json_of(index)
        places = found.get("weight_map") if isinstance(found, dict) else None
        if not isinstance(places, dict) or not all(isinstance(file, str) for file in places.values()):
            raise ValueError(f"{index} has no weight_map, of tensors to files")
        files = sorted(set(places.values()))
        return {name: value for file in files for name, value in tensors.read(folder / file).items()}
    if (folder / "model.safetensors").is_file():
        return tensors.read(folder / "model.safetensors")
    if (folder / "pytorch_model.bin").is_file():
        try:
            state = torch.load(folder / "pytorch_model.bin", map_location="cpu")
        except Exception as problem:  # noqa: BLE001: whatever pickle raises
            raise ValueError(f"{folder}/pytorch_model.bin cannot be read: {type(problem).__name__}: {problem}") from problem
        if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
            raise ValueError(f"{folder}/pytorch_model.bin is no state_dict")
        return state
    raise ValueError(f"{folder} has neither model.safetensors nor pytorch_model.bin")


def from_checkpoint(folder, tokens=None, seed=1, token_types=False):
    """A module and a sample input of a folder with config.json and weights. `tokens`: the length of a language model's
    sequence. `token_types`: BERT takes a type for each token, too; else every token has type 0."""
    folder = Path(folder)
    config = json_of(folder / "config.json")
    named, module = module_of(config, f"{folder}/config.json")
    state = {name: value.float() for name, value in stored(folder).items() if not COMPUTED.search(name)}
    own = module.state_dict(keep_vars=True)
    aliases = {name for name, value in own.items() if name not in state and any(value is own[key] for key in own.keys() & state.keys())}
    missing = set(own) - set(state) - aliases
    if missing:
        raise ValueError(f"{folder}: the checkpoint has no {', '.join(sorted(missing)[:3])}")
    unknown = set(state) - set(own)
    if unknown:
        raise Unsupported(f"{folder}: {named} has no tensor {', '.join(sorted(unknown)[:3])}")
    for name, value in own.items():
        if name in state and state[name].shape != value.shape:
            raise ValueError(f"{folder}: {name} is {list(state[name].shape)}, and of config.json {list(value.shape)}")
    module.load_state_dict(state, strict=not aliases)
    module.eval()
    draw = torch.Generator().manual_seed(seed)
    if isinstance(module, Images):
        return module, torch.randn(3, module.channels, module.size, module.size, generator=draw)
    most = config.get("max_position_embeddings", config.get("n_positions"))
    if not isinstance(most, int):
        raise ValueError(f"{folder}/config.json does not say how many tokens {named} takes, in max_position_embeddings")
    if tokens is None:
        raise ValueError(f"{named} takes sequences of up to {most} tokens; give --tokens N, the length on the device")
    if not 0 < tokens <= most:
        raise ValueError(f"--tokens {tokens}: {named} takes 1 to {most}")
    window = config.get("sliding_window") if config.get("use_sliding_window", named.startswith("Llama")) else None
    if window and window < tokens:
        raise Unsupported(f"config.json: sliding_window {window} of {tokens} tokens, which the exporter does not know")
    ids = torch.randint(0, config["vocab_size"], (3, tokens), generator=draw)
    if not token_types:
        return module, ids
    if not isinstance(module, Bert):
        raise ValueError(f"{named} has no token types")
    return module, (ids, torch.randint(0, config.get("type_vocab_size", 2), ids.shape, generator=draw))
