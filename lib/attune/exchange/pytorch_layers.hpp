// PyTorch's names and storage of each layer's tensors: names within modules of torch.nn, rows of packed
// tensors, transposition. pytorch_names.hpp names the layers of a whole model.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/exchange/state_dict_names.hpp>
#include <attune/layers/class_token.hpp>
#include <attune/layers/convolution.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/embedding_sum.hpp>
#include <attune/layers/feature_bias.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/layer_scale.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/positions.hpp>
#include <attune/layers/prelu.hpp>
#include <attune/layers/sequence_pooling.hpp>
#include <attune/layers/token_type.hpp>
#include <attune/models/checkpointed.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/each_group.hpp>
#include <attune/models/encoder_decoder.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/mask_from_ids.hpp>
#include <attune/models/product.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/reduced_attention.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/reversible_norm.hpp>
#include <attune/models/sequential.hpp>
#include <attune/models/shared_repeat.hpp>
#include <attune/models/sum.hpp>
#include <attune/models/tied.hpp>

namespace ATTUNE_NAMESPACE {

/// Names of the modules in an encoder layer, or in a decoder layer, relative to the layer. Absent modules
/// need no name.
struct EncoderLayerNames {
  const char* query = nullptr;    // projection of queries
  const char* key = nullptr;      // projection of keys
  const char* value = nullptr;    // projection of values
  const char* output = nullptr;   // projection of the heads' outputs
  const char* linear1 = nullptr;  // network: d_model to d_ff; in a gated network, the gated projection
  const char* linear2 = nullptr;  // network: d_ff to d_model
  const char* norm1 = nullptr;    // norm of the attention, before or after it
  const char* norm2 = nullptr;    // norm of the network; in a decoder layer, of the attention to the memory
  const char* norm3 = nullptr;    // norm of a decoder layer's network
  const char* gate = nullptr;     // gate of a gated network
  const char* query_norm = nullptr;  // norm of each head's queries
  const char* key_norm = nullptr;    // norm of each head's keys
  // Trained factor of the scores: the full name of its tensor
  const char* score_scale = nullptr;
  // Biases by relative position: the full name of their tensor, [heads, entries]
  const char* relative_bias = nullptr;
  const char* scale1 = nullptr;  // LayerScale of the attention: the full name of its tensor
  const char* scale2 = nullptr;  // LayerScale of the network
  // Full names of tensors that pack queries, keys and values in this order, in place of three linear layers.
  const char* qkv_weight = nullptr;                       // the packed weight
  const char* qkv_bias = nullptr;                         // the packed bias
  StateDictLayout linear = StateDictLayout::kTransposed;  // layout of all weights: kConv1D in GPT-2
  double epsilon = 0;                                  // of norms, if config.json gives no other; 0: unknown
  const EncoderLayerNames* attention_alone = nullptr;  // attention outside of encoder layers
  const EncoderLayerNames* memory = nullptr;           // in a decoder layer, its attention to the memory
  const EncoderLayerNames* decoder = nullptr;          // decoder layers; null: this table, with its `memory`
};

namespace detail {

/// Names in nn.MultiheadAttention, with three weights if keys or values have their own width.
inline constexpr EncoderLayerNames kMultiheadAttention{.query = "q_proj_weight",
                                                       .key = "k_proj_weight",
                                                       .value = "v_proj_weight",
                                                       .output = "out_proj",
                                                       .qkv_weight = "in_proj_weight",
                                                       .qkv_bias = "in_proj_bias"};
/// Names of layers that torch.nn lacks, and of the layers next to the attention in
/// nn.TransformerEncoderLayer.
inline constexpr EncoderLayerNames kLayersAlone{.query = "q_proj",
                                                .key = "k_proj",
                                                .value = "v_proj",
                                                .output = "out_proj",
                                                .linear1 = "linear1",
                                                .linear2 = "linear2",
                                                .norm1 = "norm1",
                                                .norm2 = "norm2",
                                                .norm3 = "norm3",
                                                .query_norm = "q_norm",
                                                .key_norm = "k_norm",
                                                .score_scale = "temperature",
                                                .relative_bias = "relative_bias",
                                                .scale1 = "ls1.gamma",
                                                .scale2 = "ls2.gamma"};
inline constexpr EncoderLayerNames kGatedAlone{.linear1 = "up", .linear2 = "down", .gate = "gate"};

template <bool other>
[[deprecated("attune: set config.json's epsilon in the norm and in EncoderLayerNames")]] constexpr void
has_another_epsilon() {}
/// Warns of a norm whose epsilon differs from the table's.
template <class Norm, const EncoderLayerNames& names>
constexpr void check_epsilon() {}
template <class Norm, const EncoderLayerNames& names>
  requires(names.epsilon > 0 &&
           (Norm::kShape.epsilon < names.epsilon || names.epsilon < Norm::kShape.epsilon))
constexpr void check_epsilon() { has_another_epsilon<(names.epsilon > 0)>(); }

/// The table, or `otherwise` if there is none.
template <const EncoderLayerNames* table, const EncoderLayerNames& otherwise>
inline constexpr const EncoderLayerNames& kNamesOr = table != nullptr ? *table : otherwise;

/// The table of attention that is not in an encoder layer, or nullptr.
template <const EncoderLayerNames* table>
inline constexpr const EncoderLayerNames* kAttentionAlone =
    table != nullptr ? table->attention_alone : nullptr;

/// Whether norms of queries and keys have tensors.
constexpr bool norms_have_tensors(const AttentionShape& shape) {
  return shape.query_key_norm != QueryKeyNorm::kNone && shape.query_key_norm != QueryKeyNorm::kUnitLength;
}
/// Whether a table has a name for each projection of an attention, and for each tensor of its options.
constexpr bool names_attention(const EncoderLayerNames& names, const AttentionShape& shape) {
  const bool packed = names.qkv_weight && (names.qkv_bias || !shape.bias);
  return (packed || (names.query && names.key && names.value)) && names.output &&
         ((names.query_norm && names.key_norm) || !norms_have_tensors(shape)) &&
         (names.score_scale || shape.score_scale == ScoreScale::kNone) &&
         (names.relative_bias || shape.relative_bias.kind == RelativePositions::kNone);
}

}  // namespace detail

/// Calls visitor(place, tensor) for each tensor of a layer's set in any form, with PyTorch's names below
/// `parent`, or the table's. Parts of a packed tensor come in order. This primary template is for your own
/// layers: it uses the set's member names, transposed weights, and tables (TableOf) as they are.
template <class Layer, const EncoderLayerNames* table = nullptr>
struct PyTorchNames {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    detail::check_epsilon<Layer, detail::kNamesOr<table, detail::kLayersAlone>>();
    // Tells matrices, tables and vectors by type. One of one row can be each of them.
    constexpr detail::SetOf<Layer, TransposedReference, detail::Extents> kStored{};
    Layer::Parameters::visit(
        [&visitor]<class Stored>(const TensorPath& path, auto&& leaf, const Stored&) {
          static_assert(
              detail::Holds<(Stored::rows == 1 ||
                             !std::is_same_v<decltype(kStored), const typename Layer::Parameters>)>,
              "attune::PyTorchModule: it is unknown which matrices of this layer PyTorch stores transposed; "
              "give it ParametersOf<Matrix, Vector>, or specialize PyTorchNames");
          using Matrix = TransposedReference<typename Stored::Scalar, Stored::rows, Stored::cols>;
          using Table = typename detail::TableForm<Matrix>::type;
          constexpr auto kRows = std::is_same_v<Stored, Table> || Stored::rows > 1 ? StateDictLayout::kTable
                                                                                   : StateDictLayout::kVector;
          constexpr auto kLayout = std::is_same_v<Stored, Matrix> ? StateDictLayout::kTransposed : kRows;
          visitor(StateDictPlace<kLayout>{path}, leaf);
        },
        parent, set, kStored);
  }
};

namespace detail {

/// Visits the tensors of a layer with this name below `parent`.
template <class Layer, const EncoderLayerNames* table = nullptr>
constexpr void visit_named(const char* name, const auto& visitor, const TensorPath* parent, auto&& set) {
  const TensorPath path{name, parent};
  PyTorchNames<Layer, table>::visit(visitor, &path, set);
}

}  // namespace detail

/// A single linear layer is nn.Linear. Within an encoder layer the table gives its layout.
template <LinearShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<Linear<shape, Scalar>, table> {
  template <StateDictLayout layout = StateDictLayout::kTransposed>
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    visitor(StateDictPlace<layout>{{"weight", parent}}, set.weight);
    if constexpr (shape.bias) visitor(StateDictPlace<StateDictLayout::kVector>{{"bias", parent}}, set.bias);
  }
  /// As a module with `name`, in a layer with these names.
  template <const EncoderLayerNames& names>
  static constexpr void visit_part(const char* name, const auto& visitor, const TensorPath* parent,
                                   auto&& set) {
    const TensorPath path{name, parent};
    visit<names.linear>(visitor, &path, set);
  }
};

namespace detail {

/// A module whose only tensor is its weight.
template <StateDictLayout layout>
struct NamesOfWeight {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    visitor(StateDictPlace<layout>{{"weight", parent}}, set.weight);
  }
};
/// An nn.Parameter: the layer's name is the tensor's.
template <StateDictLayout layout>
struct NamesOfParameter {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    visitor(StateDictPlace<layout>{parent != nullptr ? *parent : TensorPath{"weight"}}, set.weight);
  }
};

}  // namespace detail

template <EmbeddingShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<Embedding<shape, Scalar>, table> : detail::NamesOfWeight<StateDictLayout::kTable> {};

/// Two modules, `first` and `second`; in PyTorchModule each has its own name.
template <class First, class Second, const EncoderLayerNames* table>
struct PyTorchNames<EmbeddingSum<First, Second>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    detail::visit_named<First>("first", visitor, parent, set.first);
    detail::visit_named<Second>("second", visitor, parent, set.second);
  }
};

/// An nn.Embedding. Its table has the model's scalar type, as positions do.
template <TokenTypeShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<TokenType<shape, Scalar>, table> : detail::NamesOfWeight<StateDictLayout::kPositions> {};

/// An nn.Parameter: the layer's name is the tensor's. For an nn.Embedding, use "pos.weight".
template <PositionShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<LearnedPositions<shape, Scalar>, table>
    : detail::NamesOfParameter<StateDictLayout::kPositions> {};

/// An nn.Parameter, as ViT's cls_token: [1, 1, d_model], with a TensorShape (pytorch_file.hpp). Several
/// tokens are [tokens, d_model].
template <TokenShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<ClassToken<shape, Scalar>, table>
    : detail::NamesOfParameter<(shape.tokens == 1 ? StateDictLayout::kVector : StateDictLayout::kTable)> {};

/// An nn.Parameter, as timm's and DINOv2's "ls1.gamma" and CaiT's "gamma_1".
template <ScaleShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<LayerScale<shape, Scalar>, table> : detail::NamesOfParameter<StateDictLayout::kVector> {};

/// An nn.Parameter, as BERT's "cls.predictions.bias".
template <FeatureBiasShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<FeatureBias<shape, Scalar>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    const TensorPath path = parent != nullptr ? *parent : TensorPath{"bias"};
    visitor(StateDictPlace<StateDictLayout::kVector>{path}, set.bias);
  }
};

/// CCT's nn.Linear(d_model, 1) of the scores.
template <SequencePoolingShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<SequencePooling<shape, Scalar>, table>
    : PyTorchNames<typename SequencePooling<shape, Scalar>::Scores, table> {};

/// nn.PReLU.
template <PreluShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<Prelu<shape, Scalar>, table> : detail::NamesOfWeight<StateDictLayout::kVector> {};

namespace detail {

/// The place of a weight of these extents: [d_out, d_in/groups, kernel…].
template <StateDictLayout kLayout, const TensorExtents& extents>
struct ConvolutionPlace : StateDictPlace<kLayout> {
  static constexpr const TensorExtents& kExtents = extents;
};
/// nn.Conv1d and nn.Conv2d, whose weights have three and four dimensions.
template <class Layer, int rank>
struct ConvolutionNames {
  static constexpr ConvolvedImage kImage = Layer::image;
  static constexpr TensorExtents kWeight{
      rank,
      {kImage.d_out, Layer::kIn, rank == 3 ? kImage.width.kernel : kImage.height.kernel,
       kImage.width.kernel}};
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    constexpr auto kLayout = Layer::kGrouped ? StateDictLayout::kTable : StateDictLayout::kTransposed;
    visitor(ConvolutionPlace<kLayout, kWeight>{{{"weight", parent}, 0, 0, &kWeight}}, set.weight);
    if constexpr (Layer::shape.bias) {
      visitor(StateDictPlace<StateDictLayout::kVector>{{"bias", parent}}, set.bias);
    }
  }
};

}  // namespace detail

template <Conv1dShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<Conv1d<shape, Scalar>, table> : detail::ConvolutionNames<Conv1d<shape, Scalar>, 3> {};
template <Conv2dShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<Conv2d<shape, Scalar>, table> : detail::ConvolutionNames<Conv2d<shape, Scalar>, 4> {};

/// nn.MultiheadAttention: W_q, W_k and W_v in one tensor, unless kdim or vdim differs from embed_dim. PyTorch
/// has no module for grouped heads, normalized queries and keys, a trained factor of the scores or biases by
/// relative position, or biases of some projections only. Their names are `q_proj`, `k_proj`, `v_proj` and
/// `out_proj`, each an nn.Linear, `q_norm` and `k_norm`, `temperature`, and `relative_bias`.
template <AttentionShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<MultiHeadAttention<shape, Scalar>, table> {
  /// The layer.
  using Attention = MultiHeadAttention<shape, Scalar>;
  /// Whether norms of queries and keys have tensors.
  static constexpr bool kNormalizes = detail::norms_have_tensors(shape);
  /// Whether scores have a trained factor.
  static constexpr bool kScales = shape.score_scale != ScoreScale::kNone;
  /// Whether scores have biases by relative position.
  static constexpr bool kBiases = shape.relative_bias.kind != RelativePositions::kNone;
  /// Whether queries, keys and values come from tokens of the same width.
  static constexpr bool kOneWidth = shape.d_key == shape.d_model && shape.d_value == shape.d_model;

  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    visit_by<names_of<detail::kAttentionAlone<table>>()>(visitor, parent, set);
    if constexpr (shape.add_bias_kv) {
      visitor(StateDictPlace<StateDictLayout::kKey>{{"bias_k", parent}}, set.appended.bias_k);
      visitor(StateDictPlace<StateDictLayout::kKey>{{"bias_v", parent}}, set.appended.bias_v);
    }
  }
  /// The projections, norms, the factor and biases of scores, by the names of a table.
  template <const EncoderLayerNames& names>
  static constexpr void visit_by(const auto& visitor, const TensorPath* parent, auto&& set) {
    if constexpr (names.qkv_weight == nullptr) {
      visit_projection<typename Attention::QueryProjection, names>(names.query, visitor, parent, set.query);
      visit_projection<typename Attention::KeyProjection, names>(names.key, visitor, parent, set.key);
      visit_projection<typename Attention::ValueProjection, names>(names.value, visitor, parent, set.value);
    } else {
      if constexpr (kOneWidth) {
        visit_packed<names.linear>(names.qkv_weight, visitor, parent, set.query.weight, set.key.weight,
                                   set.value.weight);
      } else {
        visitor(StateDictPlace<names.linear>{{names.query, parent}}, set.query.weight);
        visitor(StateDictPlace<names.linear>{{names.key, parent}}, set.key.weight);
        visitor(StateDictPlace<names.linear>{{names.value, parent}}, set.value.weight);
      }
      if constexpr (shape.bias) {
        visit_packed<StateDictLayout::kVector>(names.qkv_bias, visitor, parent, set.query.bias, set.key.bias,
                                               set.value.bias);
      }
    }
    visit_projection<typename Attention::OutputProjection, names>(names.output, visitor, parent, set.output);
    if constexpr (kNormalizes) {
      using Norms = typename Attention::Norms;
      detail::check_epsilon<typename Norms::QueryNorm, names>();
      detail::visit_named<typename Norms::QueryNorm>(names.query_norm, visitor, parent, set.norms.query_norm);
      detail::visit_named<typename Norms::KeyNorm>(names.key_norm, visitor, parent, set.norms.key_norm);
    }
    if constexpr (kScales) {
      visitor(StateDictPlace<StateDictLayout::kVector>{{names.score_scale, parent}}, set.scores.score_scale);
    }
    if constexpr (kBiases) {
      visitor(StateDictPlace<StateDictLayout::kTable>{{names.relative_bias, parent}},
              set.relative.relative_bias);
    }
  }

 private:
  /// The names of a table.
  template <const EncoderLayerNames* alone>
  static constexpr const EncoderLayerNames& names_of() {
    constexpr bool kComplete = detail::names_attention(*alone, shape);
    static_assert(
        detail::Holds<kComplete>,
        "attune::EncoderLayerNames: attention_alone lacks a name: query, key and value, or "
        "qkv_weight and qkv_bias; output; query_norm, key_norm, score_scale and relative_bias if used");
    return kComplete ? *alone : detail::kLayersAlone;
  }
  /// Without one, the names of nn.MultiheadAttention, or of four linear layers.
  template <const EncoderLayerNames* alone>
    requires(alone == nullptr)
  static constexpr const EncoderLayerNames& names_of() {
    constexpr bool kFourLinears = shape.num_kv_heads != shape.num_heads ||
                                  shape.query_key_norm != QueryKeyNorm::kNone || kScales || kBiases ||
                                  shape.output_bias != shape.bias;
    static_assert(
        detail::Holds<(kFourLinears ||
                       (shape.num_heads * shape.d_k == shape.d_model &&
                        shape.num_heads * shape.d_v == shape.d_model && shape.d_out == shape.d_model))>,
        "attune::PyTorchModule: nn.MultiheadAttention needs num_heads * d_k, num_heads * d_v and d_out equal "
        "to d_model; for other attention use a table with attention_alone");
    return kFourLinears ? detail::kLayersAlone : detail::kMultiheadAttention;
  }
  template <class Projection, const EncoderLayerNames& names>
  static constexpr void visit_projection(const char* name, const auto& visitor, const TensorPath* parent,
                                         auto&& set) {
    PyTorchNames<Projection>::template visit_part<names>(name, visitor, parent, set);
  }
  /// Tensors of the model that form one tensor of the file, one output after the other.
  template <StateDictLayout layout>
  static constexpr void visit_packed(const char* name, const auto& visitor, const TensorPath* parent,
                                     auto&&... parts) {
    constexpr int kOutputs = (0 + ... + std::remove_cvref_t<decltype(parts)>::cols);
    int first = 0;
    const auto one = [&](auto&& part) {
      visitor(StateDictPlace<layout>{{name, parent}, first, kOutputs}, part);
      first += std::remove_cvref_t<decltype(part)>::cols;
    };
    (one(parts), ...);
  }
};

/// `linear1` and `linear2`, or the table's names: "0" and "2" of an nn.Sequential.
template <FeedForwardShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<FeedForward<shape, Scalar>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    using Network = FeedForward<shape, Scalar>;
    using In = PyTorchNames<typename Network::InLinear>;
    using Out = PyTorchNames<typename Network::OutLinear>;
    constexpr const EncoderLayerNames& kNames = detail::kNamesOr<table, detail::kLayersAlone>;
    In::template visit_part<kNames>(kNames.linear1, visitor, parent, set.linear1);
    Out::template visit_part<kNames>(kNames.linear2, visitor, parent, set.linear2);
  }
};
/// PyTorch has no such module: `gate`, `up` and `down`, each an nn.Linear, or the table's names.
template <FeedForwardShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<GatedFeedForward<shape, Scalar>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    using Network = GatedFeedForward<shape, Scalar>;
    using In = PyTorchNames<typename Network::InLinear>;
    using Out = PyTorchNames<typename Network::OutLinear>;
    constexpr const EncoderLayerNames& kNames = detail::kNamesOr<table, detail::kGatedAlone>;
    In::template visit_part<kNames>(kNames.gate, visitor, parent, set.gate);
    In::template visit_part<kNames>(kNames.linear1, visitor, parent, set.up);
    Out::template visit_part<kNames>(kNames.linear2, visitor, parent, set.down);
  }
};

namespace detail {

/// A branch of an encoder layer: the layer itself, or a Sequential of the layer and its LayerScale.
template <class Part>
struct ScaledBranch {
  using Layer = Part;
  using Scale = NoParameters;
  static constexpr auto& layer(auto&& set) { return set; }
  static constexpr void visit_scale(const auto&...) {}
};
template <class Part, ScaleShape shape, class Scalar>
struct ScaledBranch<Sequential<Part, LayerScale<shape, Scalar>>> {
  using Layer = Part;
  using Scale = LayerScale<shape, Scalar>;
  static constexpr decltype(auto) layer(auto&& set) { return set.template layer<0>(); }
  /// The LayerScale, by its full name.
  static constexpr void visit_scale(const char* name, const auto& visitor, const TensorPath* parent,
                                    auto&& set) {
    visit_named<Scale>(name, visitor, parent, set.template layer<1>());
  }
};

template <class Layer>
concept IsTransformerLayer = requires {
  typename Layer::SelfAttention;
  typename Layer::Network;
  typename Layer::Norm;
};

/// Whether a table has a name for each part that only decoder layers have.
template <class Layer>
constexpr bool names_memory(const EncoderLayerNames&) {
  return true;
}
template <class Layer>
  requires requires { typename Layer::CrossAttention; }
constexpr bool names_memory(const EncoderLayerNames& names) {
  return (names.norm3 || std::is_empty_v<typename Layer::Norm::Parameters>)&&names.memory &&
         names_attention(*names.memory, Layer::CrossAttention::kShape);
}

/// Whether a table has a name for each part of a layer.
template <class Layer>
constexpr bool names_all_of(const EncoderLayerNames& names) {
  using Attention = ScaledBranch<typename Layer::SelfAttention>;
  using Network = ScaledBranch<typename Layer::Network>;
  constexpr auto& kAttention = Attention::Layer::kShape;
  constexpr bool kGated = requires(typename Network::Layer::Parameters set) { set.gate; };
  return names_attention(names, kAttention) && names_memory<Layer>(names) && names.linear1 && names.linear2 &&
         (names.gate || !kGated) &&
         (names.scale1 || std::is_same_v<typename Attention::Scale, NoParameters>)&&(
             names.scale2 ||
             std::is_same_v<typename Network::Scale,
                            NoParameters>)&&((names.norm1 && names.norm2) ||
                                             std::is_empty_v<typename Layer::Norm::Parameters>);
}

}  // namespace detail

/// nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, made of any parts. The network's modules are
/// members of the layer, next to the attention. With a table, the layer uses its names.
template <class Layer, const EncoderLayerNames* model_table>
  requires detail::IsTransformerLayer<Layer>
struct PyTorchNames<Layer, model_table> {
  /// Whether the layer also attends to an encoder's output.
  static constexpr bool kDecoder = requires { typename Layer::CrossAttention; };
  /// The names of its parts: a decoder layer may have its own.
  static constexpr const EncoderLayerNames* table =
      kDecoder && detail::kNamesOr<model_table, detail::kLayersAlone>.decoder != nullptr
          ? model_table->decoder
          : model_table;

  /// Refuses a table that lacks a name, with one error for all visitors.
  template <bool complete>
  static constexpr bool check_table() {
    static_assert(detail::Holds<complete>,
                  "attune::EncoderLayerNames: the table lacks a name for a part of the layer: gate, "
                  "query_norm, key_norm, score_scale, relative_bias, scale1, scale2; norm3 or memory of a "
                  "decoder");
    return complete;
  }
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    constexpr const EncoderLayerNames& kNames = detail::kNamesOr<table, detail::kLayersAlone>;
    using Attention = detail::ScaledBranch<typename Layer::SelfAttention>;
    using Network = detail::ScaledBranch<typename Layer::Network>;
    if constexpr (table == nullptr) {
      detail::visit_named<typename Attention::Layer>("self_attn", visitor, parent,
                                                     Attention::layer(set.self_attention));
    } else if constexpr (!check_table<detail::names_all_of<Layer>(kNames)>()) {
      return PyTorchNames<Layer>::visit(visitor, parent, set);
    } else {
      static_assert(
          detail::Holds<!Attention::Layer::kShape.add_bias_kv>,
          "attune::EncoderLayerNames: a table has no names for the key and the value of add_bias_kv");
      detail::check_epsilon<typename Layer::Norm, kNames>();
      PyTorchNames<typename Attention::Layer>::template visit_by<kNames>(
          visitor, parent, Attention::layer(set.self_attention));
    }
    if constexpr (kDecoder) {
      if constexpr (table == nullptr || table->memory == nullptr) {
        detail::visit_named<typename Layer::CrossAttention>("multihead_attn", visitor, parent,
                                                            set.cross_attention);
      } else {
        PyTorchNames<typename Layer::CrossAttention>::template visit_by<*table->memory>(visitor, parent,
                                                                                        set.cross_attention);
      }
      detail::visit_named<typename Layer::Norm>(kNames.norm3, visitor, parent, set.norm3);
    }
    PyTorchNames<typename Network::Layer, table>::visit(visitor, parent, Network::layer(set.feed_forward));
    Attention::visit_scale(kNames.scale1, visitor, parent, set.self_attention);
    Network::visit_scale(kNames.scale2, visitor, parent, set.feed_forward);
    detail::visit_named<typename Layer::Norm>(kNames.norm1, visitor, parent, set.norm1);
    detail::visit_named<typename Layer::Norm>(kNames.norm2, visitor, parent, set.norm2);
  }
};

template <class Layer, const EncoderLayerNames* table>
struct PyTorchNames<Residual<Layer>, table> : PyTorchNames<Layer, table> {};
template <int groups, class Layer, const EncoderLayerNames* table>
struct PyTorchNames<EachGroup<groups, Layer>, table> : PyTorchNames<Layer, table> {};
template <int count, class Layer, const EncoderLayerNames* table>
struct PyTorchNames<SharedRepeat<count, Layer>, table> : PyTorchNames<Layer, table> {};
template <class Layer, const EncoderLayerNames* table>
struct PyTorchNames<Checkpointed<Layer>, table> : PyTorchNames<Layer, table> {};
template <class Model, MaskFromIdsOptions options, const EncoderLayerNames* table>
struct PyTorchNames<MaskFromIds<Model, options>, table> : PyTorchNames<Model, table> {};
template <class Layer, TapePrecision precision, const EncoderLayerNames* table>
struct PyTorchNames<detail::PackedLayer<Layer, precision>, table> : PyTorchNames<Layer, table> {};

namespace detail {

/// The norm with the factor and the bias of a ReversibleNorm.
template <class Layer>
using NormOfFeatures =
    GroupNorm<with(Layer::Norm::shape, &GroupNormShape::affine, true), typename Layer::Scalar>;

}  // namespace detail

/// The module of its model; with a factor and a bias, a module with `norm` and `model`.
template <class Model, ReversibleNormOptions options, const EncoderLayerNames* table>
struct PyTorchNames<ReversibleNorm<Model, options>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    if constexpr (options.affine) {
      detail::visit_named<detail::NormOfFeatures<ReversibleNorm<Model, options>>>("norm", visitor, parent,
                                                                                  set.norm);
      detail::visit_named<Model, table>("model", visitor, parent, set.model);
    } else {
      PyTorchNames<Model, table>::visit(visitor, parent, set.model);
    }
  }
};

/// A module with `embedding`, an nn.Embedding that is also its head, and `body`.
template <class EmbeddingLayer, class Body, const EncoderLayerNames* table>
struct PyTorchNames<Tied<EmbeddingLayer, Body>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    detail::visit_named<EmbeddingLayer, table>("embedding", visitor, parent, set.embedding);
    detail::visit_named<Body, table>("body", visitor, parent, set.body);
  }
};

/// A module with `encoder` and `decoder`.
template <class Encoder, class Decoder, const EncoderLayerNames* table>
struct PyTorchNames<EncoderDecoder<Encoder, Decoder>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    detail::visit_named<Encoder, table>("encoder", visitor, parent, set.encoder);
    detail::visit_named<Decoder, table>("decoder", visitor, parent, set.decoder);
  }
};

/// nn.ModuleList.
template <int count, class Layer, const EncoderLayerNames* table>
struct PyTorchNames<Repeat<count, Layer>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    for (int i = 0; i < count; ++i) {
      detail::visit_named<Layer, table>(detail::kNumbers[i], visitor, parent, set.layers[i]);
    }
  }
};

namespace detail {

/// Layers named by their numbers.
template <const EncoderLayerNames* table, class... Layers>
struct NumberedLayers {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    [&]<std::size_t... index>(std::index_sequence<index...>) {
      (detail::visit_named<Layers, table>(detail::kNumbers[index], visitor, parent,
                                          set.template layer<static_cast<int>(index)>()),
       ...);
    }
    (std::index_sequence_for<Layers...>{});
  }
};

}  // namespace detail

/// nn.Sequential.
template <class... Layers, const EncoderLayerNames* table>
struct PyTorchNames<Sequential<Layers...>, table> : detail::NumberedLayers<table, Layers...> {};
/// nn.ModuleList.
template <class... Layers, const EncoderLayerNames* table>
struct PyTorchNames<Sum<Layers...>, table> : detail::NumberedLayers<table, Layers...> {};
/// nn.ModuleList.
template <class Layer, class Gate, const EncoderLayerNames* table>
struct PyTorchNames<Product<Layer, Gate>, table> : detail::NumberedLayers<table, Layer, Gate> {};
/// nn.ModuleList.
template <class... Layers, const EncoderLayerNames* table>
struct PyTorchNames<ReducedAttention<Layers...>, table> : detail::NumberedLayers<table, Layers...> {};

namespace detail {

/// Calls body(set of Layer) for a PartlyTrained. A mutable set, and a visitor of factors (peft_names.hpp),
/// get the trained tensors, with Untrained for constants. Otherwise body gets both.
template <class Part>
constexpr void with_set_of_layer(const auto& visitor, const auto& body, auto& set) {
  using Set = std::remove_reference_t<decltype(set)>;
  constexpr bool kOfFactors = requires { std::remove_cvref_t<decltype(visitor)>::kOfFactors; };
  if constexpr (std::is_const_v<Set> && !kOfFactors) {
    body(Part::all(set));
  } else if constexpr (Part::kFrozen) {
    body(typename Part::Trained{});
  } else {
    using OfLayer = typename Set::OfLayer;
    body(static_cast<std::conditional_t<std::is_const_v<Set>, const OfLayer&, OfLayer&>>(set));
  }
}

}  // namespace detail

/// Frozen, BiasesAndNorms and Adapted: the module of their layer. Factors are merged into the written
/// weights. The factors themselves have their own names (peft_names.hpp, own_names.hpp).
template <class Layer, const auto& kConstants, class What, const EncoderLayerNames* table>
struct PyTorchNames<PartlyTrained<Layer, kConstants, What>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    detail::with_set_of_layer<PartlyTrained<Layer, kConstants, What>>(
        visitor, [&](auto&& of_layer) { PyTorchNames<Layer, table>::visit(visitor, parent, of_layer); }, set);
  }
};

}  // namespace ATTUNE_NAMESPACE
