"""Hugging Face checkpoints: a folder with config.json and weights becomes a module with the documented names.

The modules compute what transformers' own do in evaluation, without masks: BERT and DistilBERT (Devlin et al., 2019; Sanh
et al., 2019), ViT and DeiT (Dosovitskiy et al., 2021; Touvron et al., 2021), GPT-2 (Radford et al., 2019), Llama and Qwen2
(Touvron et al., 2023; Yang et al., 2024). timm's ViT and DeiT, whose checkpoints stand in such folders, too, have LayerScale.
"""
import json
import re
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


def holder(**children):
    """A module that only holds others, under the names of the checkpoint."""
    module = nn.Module()
    for name, child in children.items():
        setattr(module, name, child)
    return module


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

    def __init__(self, d_out, d_in):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.empty(d_in, d_out)), nn.Parameter(torch.empty(d_out))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], -1)


# ---- BERT ----

class BertLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner, eps = config["hidden_size"], config["intermediate_size"], config.get("layer_norm_eps", 1e-12)
        self.heads, self.activation = config["num_attention_heads"], activation(config)
        self.attention = holder(
            self=holder(query=nn.Linear(width, width), key=nn.Linear(width, width), value=nn.Linear(width, width)),
            output=holder(dense=nn.Linear(width, width), LayerNorm=nn.LayerNorm(width, eps)))
        self.intermediate = holder(dense=nn.Linear(width, inner))
        self.output = holder(dense=nn.Linear(inner, width), LayerNorm=nn.LayerNorm(width, eps))

    def forward(self, x):
        of, out = self.attention.self, self.attention.output
        x = out.LayerNorm(out.dense(attend(of.query(x), of.key(x), of.value(x), self.heads)) + x)
        return self.output.LayerNorm(self.output.dense(self.activation(self.intermediate.dense(x))) + x)


class Bert(nn.Module):
    def __init__(self, config, classes=0, tokenwise=False, prefix="bert"):
        super().__init__()
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise Unsupported(f"config.json: position_embedding_type is '{config['position_embedding_type']}'; attune has 'absolute'")
        width, eps = config["hidden_size"], config.get("layer_norm_eps", 1e-12)
        parts = dict(
            embeddings=holder(word_embeddings=nn.Embedding(config["vocab_size"], width),
                              position_embeddings=nn.Embedding(config["max_position_embeddings"], width),
                              token_type_embeddings=nn.Embedding(config.get("type_vocab_size", 2), width),
                              LayerNorm=nn.LayerNorm(width, eps)),
            encoder=holder(layer=nn.ModuleList([BertLayer(config) for _ in range(config["num_hidden_layers"])])))
        self.tokenwise, self.prefix = tokenwise or not classes, prefix
        if not self.tokenwise or not classes:
            parts["pooler"] = holder(dense=nn.Linear(width, width))
        if prefix:
            self.bert = holder(**parts)
        else:
            for name, part in parts.items():
                setattr(self, name, part)
        self.classifier = nn.Linear(width, classes) if classes else None

    def forward(self, ids, types=None):
        bert = self.bert if self.prefix else self
        types = torch.zeros_like(ids[:1]) if types is None else types
        x = bert.embeddings.word_embeddings(ids) + bert.embeddings.token_type_embeddings(types)
        x = x + bert.embeddings.position_embeddings(torch.arange(ids.shape[1]))
        x = bert.embeddings.LayerNorm(x)
        for layer in bert.encoder.layer:
            x = layer(x)
        if not self.tokenwise:
            x = torch.tanh(bert.pooler.dense(x[:, 0]))
        return self.classifier(x) if self.classifier is not None else x


class DistilBertLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner = config["dim"], config["hidden_dim"]
        self.heads, self.activation = config["n_heads"], activation(config, "activation")
        self.attention = holder(q_lin=nn.Linear(width, width), k_lin=nn.Linear(width, width), v_lin=nn.Linear(width, width),
                                out_lin=nn.Linear(width, width))
        self.sa_layer_norm, self.output_layer_norm = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.ffn = holder(lin1=nn.Linear(width, inner), lin2=nn.Linear(inner, width))

    def forward(self, x):
        of = self.attention
        x = self.sa_layer_norm(of.out_lin(attend(of.q_lin(x), of.k_lin(x), of.v_lin(x), self.heads)) + x)
        return self.output_layer_norm(self.ffn.lin2(self.activation(self.ffn.lin1(x))) + x)


class DistilBert(nn.Module):
    def __init__(self, config, classes):
        super().__init__()
        width = config["dim"]
        self.distilbert = holder(
            embeddings=holder(word_embeddings=nn.Embedding(config["vocab_size"], width),
                              position_embeddings=nn.Embedding(config["max_position_embeddings"], width),
                              LayerNorm=nn.LayerNorm(width, 1e-12)),
            transformer=holder(layer=nn.ModuleList([DistilBertLayer(config) for _ in range(config["n_layers"])])))
        self.pre_classifier, self.classifier = nn.Linear(width, width), nn.Linear(width, classes)

    def forward(self, ids):
        embeddings = self.distilbert.embeddings
        x = embeddings.word_embeddings(ids) + embeddings.position_embeddings(torch.arange(ids.shape[1]))
        x = embeddings.LayerNorm(x)
        for layer in self.distilbert.transformer.layer:
            x = layer(x)
        return self.classifier(F.relu(self.pre_classifier(x[:, 0])))


# ---- ViT ----

class VitLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner, eps = config["hidden_size"], config["intermediate_size"], config.get("layer_norm_eps", 1e-12)
        bias = config.get("qkv_bias", True)
        self.heads, self.activation = config["num_attention_heads"], activation(config)
        self.attention = holder(
            attention=holder(query=nn.Linear(width, width, bias), key=nn.Linear(width, width, bias),
                             value=nn.Linear(width, width, bias)),
            output=holder(dense=nn.Linear(width, width)))
        self.intermediate, self.output = holder(dense=nn.Linear(width, inner)), holder(dense=nn.Linear(inner, width))
        self.layernorm_before, self.layernorm_after = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)

    def forward(self, x):
        of, y = self.attention.attention, self.layernorm_before(x)
        x = self.attention.output.dense(attend(of.query(y), of.key(y), of.value(y), self.heads)) + x
        return self.output.dense(self.activation(self.intermediate.dense(self.layernorm_after(x)))) + x


class Vit(nn.Module):
    """ViT, and DeiT, which has one more token."""

    def __init__(self, config, classes, name):
        super().__init__()
        width, size, patch = config["hidden_size"], config["image_size"], config["patch_size"]
        if not isinstance(size, int) or not isinstance(patch, int):
            raise Unsupported("config.json: image_size and patch_size that are not single numbers")
        tokens = ["cls_token"] + (["distillation_token"] if name == "deit" else [])
        embeddings = holder(
            **{token: nn.Parameter(torch.zeros(1, 1, width)) for token in tokens},
            position_embeddings=nn.Parameter(torch.zeros(1, (size // patch) ** 2 + len(tokens), width)),
            patch_embeddings=holder(projection=nn.Conv2d(config.get("num_channels", 3), width, patch, stride=patch)))
        layers = nn.ModuleList([VitLayer(config) for _ in range(config["num_hidden_layers"])])
        self.name, self.tokens = name, tokens[::-1]
        setattr(self, name, holder(embeddings=embeddings, encoder=holder(layer=layers),
                                   layernorm=nn.LayerNorm(width, config.get("layer_norm_eps", 1e-12))))
        self.classifier = nn.Linear(width, classes)

    def forward(self, image):
        of = getattr(self, self.name)
        x = of.embeddings.patch_embeddings.projection(image).flatten(2).transpose(1, 2)
        for token in self.tokens:
            x = torch.cat([getattr(of.embeddings, token).expand(x.shape[0], -1, -1), x], dim=1)
        x = x + of.embeddings.position_embeddings
        for layer in of.encoder.layer:
            x = layer(x)
        return self.classifier(of.layernorm(x)[:, 0])


class TimmLayer(nn.Module):
    def __init__(self, width, heads, inner, bias, scale):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-6), nn.LayerNorm(width, 1e-6)
        self.attn = holder(qkv=nn.Linear(width, 3 * width, bias), proj=nn.Linear(width, width))
        self.mlp = holder(fc1=nn.Linear(width, inner), fc2=nn.Linear(inner, width))
        self.ls1, self.ls2 = (holder(gamma=nn.Parameter(torch.full((width,), float(scale)))) if scale else None for _ in range(2))

    def forward(self, x):
        y = self.attn.proj(attend(*self.attn.qkv(self.norm1(x)).chunk(3, -1), self.heads))
        x = x + (y * self.ls1.gamma if self.ls1 is not None else y)
        y = self.mlp.fc2(F.gelu(self.mlp.fc1(self.norm2(x))))
        return x + (y * self.ls2.gamma if self.ls2 is not None else y)


class TimmVit(nn.Module):
    """timm's VisionTransformer. Its config.json has a name with sizes, and model_args where they are others."""

    SIZES = {"tiny": (192, 12, 3), "small": (384, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}
    ARCHITECTURE = re.compile(r"(?:vit|deit)_(tiny|small|base|large)_patch(\d+)_(\d+)(?:\..*)?")
    ARGUMENTS = {"img_size", "patch_size", "embed_dim", "depth", "num_heads", "mlp_ratio", "qkv_bias", "init_values", "class_token",
                 "no_embed_class", "in_chans", "num_classes", "global_pool"}

    def __init__(self, config):
        super().__init__()
        known = self.ARCHITECTURE.fullmatch(config["architecture"])
        given = config.get("model_args", {})
        if not known or set(given) - self.ARGUMENTS:
            raise Unsupported(f"config.json: architecture {config['architecture']} of timm with {', '.join(sorted(given)) or 'no'} "
                              "model_args; there are vit and deit of sizes tiny, small, base and large, with "
                              f"{', '.join(sorted(self.ARGUMENTS))}")
        width, depth, heads = self.SIZES[known[1]]
        width, depth, heads = given.get("embed_dim", width), given.get("depth", depth), given.get("num_heads", heads)
        patch, self.size = given.get("patch_size", int(known[2])), given.get("img_size", int(known[3]))
        self.channels = given.get("in_chans", 3)
        self.class_token, self.first = given.get("class_token", True), not given.get("no_embed_class", False)
        self.pool = given.get("global_pool", config.get("global_pool", "token"))
        if self.pool != ("token" if self.class_token else "avg"):
            raise Unsupported(f"config.json: global_pool '{self.pool}' {'beside' if self.class_token else 'without'} a class token; attune "
                              "has 'token' with one, and 'avg' without")
        count = (self.size // patch) ** 2
        self.patch_embed = holder(proj=nn.Conv2d(self.channels, width, patch, stride=patch))
        if self.class_token:
            self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, count + (self.class_token and self.first), width))
        self.blocks = nn.Sequential(*[TimmLayer(width, heads, int(width * given.get("mlp_ratio", 4)), given.get("qkv_bias", True),
                                                given.get("init_values")) for _ in range(depth)])
        # Without a class token, timm puts the norm behind the mean.
        setattr(self, "norm" if self.class_token else "fc_norm", nn.LayerNorm(width, 1e-6))
        self.head = nn.Linear(width, given.get("num_classes", config.get("num_classes", 1000)))

    def forward(self, image):
        x = self.patch_embed.proj(image).flatten(2).transpose(1, 2)
        x = x if self.first else x + self.pos_embed
        if self.class_token:
            x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = self.blocks(x + self.pos_embed if self.first else x)
        return self.head(self.norm(x)[:, 0] if self.class_token else self.fc_norm(x.mean(1)))


# ---- Causal language models ----

class Gpt2Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, eps = config["n_embd"], config.get("layer_norm_epsilon", 1e-5)
        inner = config.get("n_inner") or 4 * width
        self.heads, self.activation = config["n_head"], activation({"hidden_act": config.get("activation_function", "gelu_new")})
        self.ln_1, self.ln_2 = nn.LayerNorm(width, eps), nn.LayerNorm(width, eps)
        self.attn = holder(c_attn=Conv1D(3 * width, width), c_proj=Conv1D(width, width))
        self.mlp = holder(c_fc=Conv1D(inner, width), c_proj=Conv1D(width, inner))

    def forward(self, x):
        q, k, v = self.attn.c_attn(self.ln_1(x)).chunk(3, -1)
        x = x + self.attn.c_proj(attend(q, k, v, self.heads, causal=True))
        return x + self.mlp.c_proj(self.activation(self.mlp.c_fc(self.ln_2(x))))


class Gpt2(nn.Module):
    def __init__(self, config):
        super().__init__()
        for option in ("scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"):
            if config.get(option):
                raise Unsupported(f"config.json: {option}, which attune does not have")
        width = config["n_embd"]
        self.transformer = holder(wte=nn.Embedding(config["vocab_size"], width), wpe=nn.Embedding(config["n_positions"], width),
                                  h=nn.ModuleList([Gpt2Layer(config) for _ in range(config["n_layer"])]),
                                  ln_f=nn.LayerNorm(width, config.get("layer_norm_epsilon", 1e-5)))
        self.lm_head = nn.Linear(width, config["vocab_size"], bias=False)
        if config.get("tie_word_embeddings", True):
            self.lm_head.weight = self.transformer.wte.weight

    def forward(self, ids):
        x = self.transformer.wte(ids) + self.transformer.wpe(torch.arange(ids.shape[1]))
        for layer in self.transformer.h:
            x = layer(x)
        return self.lm_head(self.transformer.ln_f(x))


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class LlamaLayer(nn.Module):
    def __init__(self, config, bias):
        super().__init__()
        width, inner, eps = config["hidden_size"], config["intermediate_size"], config.get("rms_norm_eps", 1e-6)
        self.heads = config["num_attention_heads"]
        self.head = config.get("head_dim") or width // self.heads
        self.theta, shared = config.get("rope_theta", 10000.0), config.get("num_key_value_heads") or self.heads
        self.scaling = llama3_scaling(config["rope_scaling"]) if config.get("rope_scaling") else ()
        if config.get("hidden_act", "silu") not in ("silu", "swish"):
            raise Unsupported(f"config.json: hidden_act is '{config['hidden_act']}'; a gated network of attune has silu")
        self.self_attn = holder(q_proj=nn.Linear(width, self.heads * self.head, bias), k_proj=nn.Linear(width, shared * self.head, bias),
                                v_proj=nn.Linear(width, shared * self.head, bias),
                                o_proj=nn.Linear(self.heads * self.head, width, config.get("attention_bias", False)))
        gate = config.get("mlp_bias", False)
        self.mlp = holder(gate_proj=nn.Linear(width, inner, gate), up_proj=nn.Linear(width, inner, gate),
                          down_proj=nn.Linear(inner, width, gate))
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(width, eps), RMSNorm(width, eps)

    def rotate(self, x):
        """Rotary positions of halves (Su et al., 2021)."""
        x = x.view(*x.shape[:2], -1, self.head)
        angles = (torch.arange(x.shape[1])[:, None, None] * rotary_frequencies(self.head, self.theta, self.scaling)).float()
        a, b = x.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1).flatten(2)

    def forward(self, x):
        of, y = self.self_attn, self.input_layernorm(x)
        x = x + of.o_proj(attend(self.rotate(of.q_proj(y)), self.rotate(of.k_proj(y)), of.v_proj(y), self.heads, causal=True))
        y, of = self.post_attention_layernorm(x), self.mlp
        return x + of.down_proj(F.silu(of.gate_proj(y)) * of.up_proj(y))


class Llama(nn.Module):
    """Llama, and Qwen2, whose queries, keys and values have biases."""

    def __init__(self, config, bias):
        super().__init__()
        self.rope_scaling = config.get("rope_scaling")
        if self.rope_scaling and (self.rope_scaling.get("rope_type") or self.rope_scaling.get("type")) != "llama3":
            raise Unsupported(f"config.json: rope_scaling {json.dumps(self.rope_scaling)}; attune has Llama 3's")
        self.model = holder(embed_tokens=nn.Embedding(config["vocab_size"], config["hidden_size"]),
                            layers=nn.ModuleList([LlamaLayer(config, bias) for _ in range(config["num_hidden_layers"])]),
                            norm=RMSNorm(config["hidden_size"], config.get("rms_norm_eps", 1e-6)))
        self.rope_theta = config.get("rope_theta", 10000.0)
        self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)
        if config.get("tie_word_embeddings", False):
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, ids):
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x)
        return self.lm_head(self.model.norm(x))


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
    aliases = {name for name, value in module.state_dict(keep_vars=True).items()
               if name not in state and any(value is other for key, other in module.state_dict(keep_vars=True).items() if key in state)}
    missing = set(module.state_dict()) - set(state) - aliases
    if missing:
        raise ValueError(f"{folder}: the checkpoint has no {', '.join(sorted(missing)[:3])}")
    unknown = set(state) - set(module.state_dict())
    if unknown:
        raise Unsupported(f"{folder}: {named} has no tensor {', '.join(sorted(unknown)[:3])}")
    for name, value in module.state_dict().items():
        if name in state and state[name].shape != value.shape:
            raise ValueError(f"{folder}: {name} is {list(state[name].shape)}, and of config.json {list(value.shape)}")
    module.load_state_dict(state, strict=not aliases)
    module.eval()
    draw = torch.Generator().manual_seed(seed)
    if isinstance(module, TimmVit):
        return module, torch.randn(3, module.channels, module.size, module.size, generator=draw)
    if "image_size" in config:
        return module, torch.randn(3, config.get("num_channels", 3), config["image_size"], config["image_size"], generator=draw)
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
