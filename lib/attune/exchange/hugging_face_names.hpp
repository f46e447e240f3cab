// The names that Hugging Face's transformers give to encoders: tables for pytorch_names.hpp, of BERT, ViT,
// DistilBERT and Llama (transformers 4, modeling_bert.py, modeling_vit.py, modeling_distilbert.py,
// modeling_llama.py).
//
//   using Names = attune::PyTorchPart<
//       attune::HuggingFaceModule<attune::kBertLayer, Encoder, "embeddings.word_embeddings",
//                                 "embeddings.position_embeddings.weight", "embeddings.LayerNorm",
//                                 "encoder.layer">,
//       "bert">;
//
// Their checkpoints have more than a model's encoder (a pooler, the heads of pre-training), so that it is a
// PyTorchPart. What this library has no layer for is a layer of one's own, or added to what it has: BERT's
// token types (with one type only, row 0 of `token_type_embeddings` is added to every position) and ViT's
// class token. ViT's patches are a Linear of [channels, height, width]; BERT's and ViT's epsilon is 10⁻¹².
#pragma once

#include <attune/exchange/pytorch_names.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// BERT, below "encoder.layer": normalized after each part, GELU.
inline constexpr EncoderLayerNames kBertLayer{.query = "attention.self.query",
                                              .key = "attention.self.key",
                                              .value = "attention.self.value",
                                              .output = "attention.output.dense",
                                              .linear1 = "intermediate.dense",
                                              .linear2 = "output.dense",
                                              .norm1 = "attention.output.LayerNorm",
                                              .norm2 = "output.LayerNorm"};
/// ViT, below "encoder.layer": normalized before each part, GELU.
inline constexpr EncoderLayerNames kVitLayer{.query = "attention.attention.query",
                                             .key = "attention.attention.key",
                                             .value = "attention.attention.value",
                                             .output = "attention.output.dense",
                                             .linear1 = "intermediate.dense",
                                             .linear2 = "output.dense",
                                             .norm1 = "layernorm_before",
                                             .norm2 = "layernorm_after"};
/// DistilBERT, below "transformer.layer": normalized after each part, GELU.
inline constexpr EncoderLayerNames kDistilBertLayer{.query = "attention.q_lin",
                                                    .key = "attention.k_lin",
                                                    .value = "attention.v_lin",
                                                    .output = "attention.out_lin",
                                                    .linear1 = "ffn.lin1",
                                                    .linear2 = "ffn.lin2",
                                                    .norm1 = "sa_layer_norm",
                                                    .norm2 = "output_layer_norm"};

/// Llama, below "model.layers": RmsNorm before each part, SwiGlu, rotary positions in halves; Qwen 3, which
/// normalizes queries and keys, too. With a tied head:
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
                                               .key_norm = "self_attn.k_norm"};

/// PyTorchModule for a model whose encoder layers have the names of such a table.
template <const EncoderLayerNames& table, class Model, detail::Name... names>
using HuggingFaceModule = ModuleWithLayers<Model, &table, names...>;

}  // namespace attune::inline ATTUNE_ARITHMETIC
