"""Checkpoints of Hugging Face in small: config.json as transformers writes it, and weights under the documented names."""
import json

import torch

from attune_torch import families, tensors

BERT = {"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 2, "num_hidden_layers": 2, "vocab_size": 19,
        "max_position_embeddings": 10, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "position_embedding_type": "absolute", "model_type": "bert"}
VIT = {"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 2, "num_hidden_layers": 2, "image_size": 8,
       "patch_size": 4, "num_channels": 3, "qkv_bias": True, "hidden_act": "gelu", "layer_norm_eps": 1e-12}
LLAMA = {"hidden_size": 16, "intermediate_size": 20, "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
         "vocab_size": 21, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "rope_theta": 500000.0, "hidden_act": "silu",
         "tie_word_embeddings": False}
LABELS = {"id2label": {"0": "no", "1": "yes", "2": "maybe"}}
CONFIGS = {
    "bert": BERT | LABELS | {"architectures": ["BertForSequenceClassification"]},
    "bert_tokens": BERT | LABELS | {"architectures": ["BertForTokenClassification"], "hidden_act": "quick_gelu"},
    "bert_alone": BERT | {"architectures": ["BertModel"]},
    "distilbert": {"architectures": ["DistilBertForSequenceClassification"], "dim": 8, "hidden_dim": 12, "n_heads": 2, "n_layers": 2,
                   "vocab_size": 19, "max_position_embeddings": 10, "activation": "gelu", "model_type": "distilbert"},
    "vit": VIT | LABELS | {"architectures": ["ViTForImageClassification"]},
    "deit": VIT | LABELS | {"architectures": ["DeiTForImageClassification"], "qkv_bias": False},
    "timm": {"architecture": "vit_tiny_patch4_8", "num_classes": 3, "num_features": 8, "global_pool": "token",
             "model_args": {"embed_dim": 8, "depth": 2, "num_heads": 2, "mlp_ratio": 1.5, "init_values": 1e-5},
             "pretrained_cfg": {"input_size": [3, 8, 8]}},
    "timm_mean": {"architecture": "deit_small_patch4_8", "num_classes": 3, "global_pool": "avg",
                  "model_args": {"embed_dim": 8, "depth": 1, "num_heads": 2, "class_token": False}},
    "gpt2": {"architectures": ["GPT2LMHeadModel"], "n_embd": 8, "n_head": 2, "n_layer": 2, "n_positions": 12, "vocab_size": 17,
             "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5, "model_type": "gpt2"},
    "llama": LLAMA | {"architectures": ["LlamaForCausalLM"], "attention_bias": False, "mlp_bias": False},
    "llama3": LLAMA | {"architectures": ["LlamaForCausalLM"],
                       "rope_scaling": {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                        "original_max_position_embeddings": 16}},
    "qwen2": LLAMA | {"architectures": ["Qwen2ForCausalLM"], "tie_word_embeddings": True, "use_sliding_window": False,
                      "sliding_window": 4},
}
# Of each, documented names and their shapes.
DOCUMENTED = {
    "bert": {"bert.embeddings.token_type_embeddings.weight": [2, 8], "bert.encoder.layer.1.attention.self.query.weight": [8, 8],
             "bert.encoder.layer.0.attention.output.LayerNorm.bias": [8], "bert.encoder.layer.0.intermediate.dense.weight": [12, 8],
             "bert.encoder.layer.0.output.dense.weight": [8, 12], "bert.pooler.dense.weight": [8, 8], "classifier.bias": [3]},
    "bert_tokens": {"bert.embeddings.LayerNorm.weight": [8], "classifier.weight": [3, 8]},
    "bert_alone": {"embeddings.word_embeddings.weight": [19, 8], "encoder.layer.0.attention.self.key.bias": [8], "pooler.dense.bias": [8]},
    "distilbert": {"distilbert.transformer.layer.0.attention.q_lin.weight": [8, 8], "distilbert.transformer.layer.1.ffn.lin1.weight": [12, 8],
                   "distilbert.transformer.layer.1.sa_layer_norm.weight": [8], "pre_classifier.weight": [8, 8], "classifier.weight": [2, 8]},
    "vit": {"vit.embeddings.cls_token": [1, 1, 8], "vit.embeddings.position_embeddings": [1, 5, 8],
            "vit.embeddings.patch_embeddings.projection.weight": [8, 3, 4, 4], "vit.encoder.layer.0.attention.attention.key.bias": [8],
            "vit.encoder.layer.0.layernorm_before.weight": [8], "vit.layernorm.bias": [8], "classifier.weight": [3, 8]},
    "deit": {"deit.embeddings.distillation_token": [1, 1, 8], "deit.embeddings.position_embeddings": [1, 6, 8]},
    "timm": {"cls_token": [1, 1, 8], "pos_embed": [1, 5, 8], "patch_embed.proj.weight": [8, 3, 4, 4], "blocks.0.attn.qkv.weight": [24, 8],
             "blocks.1.ls1.gamma": [8], "blocks.0.mlp.fc1.bias": [12], "norm.weight": [8], "head.weight": [3, 8]},
    "timm_mean": {"pos_embed": [1, 4, 8], "blocks.0.attn.proj.bias": [8], "fc_norm.bias": [8]},
    "gpt2": {"transformer.wte.weight": [17, 8], "transformer.wpe.weight": [12, 8], "transformer.h.0.attn.c_attn.weight": [8, 24],
             "transformer.h.1.mlp.c_fc.weight": [8, 32], "transformer.h.1.mlp.c_proj.weight": [32, 8], "transformer.ln_f.bias": [8]},
    "llama": {"model.layers.0.self_attn.k_proj.weight": [8, 16], "model.layers.1.mlp.gate_proj.weight": [20, 16],
              "model.layers.0.post_attention_layernorm.weight": [16], "lm_head.weight": [21, 16]},
    "llama3": {"model.layers.0.self_attn.q_proj.weight": [16, 16]},
    "qwen2": {"model.layers.0.self_attn.v_proj.bias": [8], "model.embed_tokens.weight": [21, 16]},
}


def write(folder, name, change=None, drop=(), extra=(), shards=1):
    """A checkpoint with drawn weights."""
    config = CONFIGS[name] | (change or {})
    torch.manual_seed(7)
    state = families.module_of(CONFIGS[name])[1].state_dict()
    if CONFIGS[name].get("tie_word_embeddings", name == "gpt2"):
        del state["lm_head.weight"]
    state = {key: 0.2 * torch.randn(value.shape) + (1.0 if key.lower().endswith("norm.weight") else 0.0) for key, value in state.items()
             if key not in drop}
    state |= {key: torch.zeros(2) for key in extra}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if shards == 1:
        tensors.write(folder / "model.safetensors", state)
        return state
    places = {key: f"model-{index % shards + 1:05d}-of-{shards:05d}.safetensors" for index, key in enumerate(state)}
    for file in set(places.values()):
        tensors.write(folder / file, {key: state[key] for key in state if places[key] == file})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return state
