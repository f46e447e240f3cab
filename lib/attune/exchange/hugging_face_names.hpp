// Hugging Face's names of encoders: tables for pytorch_names.hpp. They cover BERT, ViT, DistilBERT, GPT-2 and
// Llama (transformers 4: modeling_bert.py, modeling_vit.py, modeling_distilbert.py, modeling_gpt2.py,
// modeling_llama.py), and timm's ViT (vision_transformer.py). A table of your own is `constexpr
// EncoderLayerNames kNames{.query = "att.q", …}`; an nn.Sequential has linear1 = "mlp.0" and linear2 =
// "mlp.2". `epsilon` is the default of config.json, and a norm with another one warns. For Llama 3's 1e-5,
// copy the table with that `epsilon`.
//
//   using Names = attune::PyTorchPart<
//       attune::HuggingFaceModule<attune::kBertLayer, Encoder, "embeddings.word_embeddings",
//                                 "embeddings.token_type_embeddings",
//                                 "embeddings.position_embeddings.weight", "embeddings.LayerNorm",
//                                 "encoder.layer">,
//       "bert">;
//
// Their checkpoints contain more than an encoder (a pooler, heads of pre-training), so the model is a
// PyTorchPart. BERT's token types are a TokenType layer, or ids of their own in an EmbeddingSum. ViT's class
// token is a ClassToken, and its patches are a Linear of [channels, height, width]. Write other missing
// layers yourself.
#pragma once

#include <attune/exchange/pytorch_names.hpp>

namespace ATTUNE_NAMESPACE {

/// BERT, below "encoder.layer": normalized after each part, GELU.
inline constexpr EncoderLayerNames kBertLayer{.query = "attention.self.query",
                                              .key = "attention.self.key",
                                              .value = "attention.self.value",
                                              .output = "attention.output.dense",
                                              .linear1 = "intermediate.dense",
                                              .linear2 = "output.dense",
                                              .norm1 = "attention.output.LayerNorm",
                                              .norm2 = "output.LayerNorm",
                                              .epsilon = 1e-12};
/// ViT, below "encoder.layer": normalized before each part, GELU.
inline constexpr EncoderLayerNames kVitLayer{.query = "attention.attention.query",
                                             .key = "attention.attention.key",
                                             .value = "attention.attention.value",
                                             .output = "attention.output.dense",
                                             .linear1 = "intermediate.dense",
                                             .linear2 = "output.dense",
                                             .norm1 = "layernorm_before",
                                             .norm2 = "layernorm_after",
                                             .epsilon = 1e-12};
/// DistilBERT, below "transformer.layer": normalized after each part, GELU.
inline constexpr EncoderLayerNames kDistilBertLayer{.query = "attention.q_lin",
                                                    .key = "attention.k_lin",
                                                    .value = "attention.v_lin",
                                                    .output = "attention.out_lin",
                                                    .linear1 = "ffn.lin1",
                                                    .linear2 = "ffn.lin2",
                                                    .norm1 = "sa_layer_norm",
                                                    .norm2 = "output_layer_norm",
                                                    .epsilon = 1e-12};

/// timm's ViT, below "blocks": normalized before each part, GELU, W_q, W_k and W_v in one tensor.
inline constexpr EncoderLayerNames kTimmVitLayer{.output = "attn.proj",
                                                 .linear1 = "mlp.fc1",
                                                 .linear2 = "mlp.fc2",
                                                 .norm1 = "norm1",
                                                 .norm2 = "norm2",
                                                 .query_norm = "attn.q_norm",
                                                 .key_norm = "attn.k_norm",
                                                 .scale1 = "ls1.gamma",
                                                 .scale2 = "ls2.gamma",
                                                 .qkv_weight = "attn.qkv.weight",
                                                 .qkv_bias = "attn.qkv.bias",
                                                 .epsilon = 1e-6};
/// GPT-2, below "h": normalized before each part, GELU by tanh, a causal mask. Weights are [in, out], with
/// W_q, W_k and W_v side by side. Such files are copied, not used in place.
inline constexpr EncoderLayerNames kGpt2Layer{.output = "attn.c_proj",
                                              .linear1 = "mlp.c_fc",
                                              .linear2 = "mlp.c_proj",
                                              .norm1 = "ln_1",
                                              .norm2 = "ln_2",
                                              .qkv_weight = "attn.c_attn.weight",
                                              .qkv_bias = "attn.c_attn.bias",
                                              .linear = StateDictLayout::kConv1D,
                                              .epsilon = 1e-5};

/// Llama, below "model.layers": RmsNorm before each part, SwiGlu, rotary positions in halves. Also for Qwen
/// 2, with biases of queries, keys and values (AttentionShape::output_bias = false), and for Qwen 3, with
/// normalized queries and keys. With a tied head:
///
///   HuggingFaceModule<kLlamaLayer, Tied<…>, "model.embed_tokens", "model.layers", "model.norm">
inline constexpr EncoderLayerNames kLlamaLayer{.query = "self_attn.q_proj",
                                               .key = "self_attn.k_proj",
                                               .value = "self_attn.v_proj",
                                               .output = "self_attn.o_proj",
                                               .linear1 = "mlp.up_proj",
                                               .linear2 = "mlp.down_proj",
                                               .norm1 = "input_layernorm",
                                               .norm2 = "post_attention_layernorm",
                                               .gate = "mlp.gate_proj",
                                               .query_norm = "self_attn.q_norm",
                                               .key_norm = "self_attn.k_norm",
                                               .epsilon = 1e-6};

/// PyTorchModule for a model whose encoder layers use the names of a table.
template <const EncoderLayerNames& table, class Model, detail::Name... names>
using HuggingFaceModule = ModuleWithLayers<Model, &table, names...>;

}  // namespace ATTUNE_NAMESPACE
