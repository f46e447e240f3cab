// What PyTorch calls the tensors of each layer and model of the library, and how it stores them: names within
// modules of torch.nn, rows of packed tensors, transposition. pytorch_names.hpp gives names to the layers of
// a whole model.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/exchange/state_dict_names.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/checkpointed.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/models/tied.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// The modules of an encoder layer whose attention is four linear layers, as seen from the layer. What a
/// layer does not have may stay without a name.
struct EncoderLayerNames {
  const char* query;                 // of the projection of queries
  const char* key;                   // of keys
  const char* value;                 // of values
  const char* output;                // of the heads' outputs
  const char* linear1;               // of the network: d_model to d_ff; of a gated one what is gated
  const char* linear2;               // of the network: d_ff to d_model
  const char* norm1;                 // of the attention, before or after it
  const char* norm2;                 // of the network
  const char* gate = nullptr;        // of a gated network
  const char* query_norm = nullptr;  // of each head's queries
  const char* key_norm = nullptr;    // of each head's keys
};

/// Calls visitor(place, tensor) for each tensor of a layer's set, of any form: PyTorch's names below
/// `parent`, or those of the table where one is given. Parts of a packed tensor come in the order of their
/// rows. This one is of layers of one's own: members of the set are named as in the set, weights are stored
/// as their transposes, tables (TableOf) as they are.
template <class Layer, const EncoderLayerNames* table = nullptr>
struct PyTorchNames {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    constexpr detail::SetOf<Layer, TransposedReference, Reference> kStored{};
    Layer::Parameters::visit(
        [&visitor]<class Stored>(const TensorPath& path, auto&& leaf, const Stored&) {
          static_assert(
              Stored::rows == 1 || !std::is_same_v<decltype(kStored), const typename Layer::Parameters>,
              "attune::PyTorchModule: which of this layer's matrices PyTorch stores as their "
              "transposes is not known; give it ParametersOf<Matrix, Vector>, or specialize "
              "PyTorchNames for it");
          if constexpr (Stored::rows == 1) {
            visitor(StateDictPlace<StateDictLayout::kVector>{path}, leaf);
          } else if constexpr (requires(const Stored& stored) { stored.data(); }) {
            visitor(StateDictPlace<StateDictLayout::kTable>{path}, leaf);
          } else {
            visitor(StateDictPlace<StateDictLayout::kTransposed>{path}, leaf);
          }
        },
        parent, set, kStored);
  }
};

template <LinearShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<Linear<shape, Scalar>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    visitor(StateDictPlace<StateDictLayout::kTransposed>{{"weight", parent}}, set.weight);
    if constexpr (shape.bias) visitor(StateDictPlace<StateDictLayout::kVector>{{"bias", parent}}, set.bias);
  }
};

template <EmbeddingShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<Embedding<shape, Scalar>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    visitor(StateDictPlace<StateDictLayout::kTable>{{"weight", parent}}, set.weight);
  }
};

/// An nn.Parameter: the name of the layer is that of the tensor. Of an nn.Embedding it is "pos.weight".
template <PositionShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<LearnedPositions<shape, Scalar>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    const TensorPath path = parent != nullptr ? *parent : TensorPath{"weight"};
    visitor(StateDictPlace<StateDictLayout::kPositions>{path}, set.weight);
  }
};

/// nn.MultiheadAttention: W_q, W_k and W_v in one tensor unless kdim or vdim is another than embed_dim. With
/// grouped heads, or normalized queries and keys, PyTorch has no module for it: `q_proj`, `k_proj`, `v_proj`
/// and `out_proj`, each an nn.Linear, and `q_norm` and `k_norm`.
template <AttentionShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<MultiHeadAttention<shape, Scalar>, table> {
  /// The layer.
  using Attention = MultiHeadAttention<shape, Scalar>;
  /// Whether heads normalize queries and keys.
  static constexpr bool kNormalizes = shape.query_key_norm != QueryKeyNorm::kNone;
  /// Whether its projections are four linear layers, not one packed one.
  static constexpr bool kFourLinears = shape.num_kv_heads != shape.num_heads || kNormalizes;
  static_assert(kFourLinears ||
                    (shape.num_heads * shape.d_k == shape.d_model &&
                     shape.num_heads * shape.d_v == shape.d_model && shape.d_out == shape.d_model),
                "attune::PyTorchModule: nn.MultiheadAttention has num_heads * d_k, num_heads * d_v and d_out "
                "equal to d_model; other attention is a module of one's own, with PyTorchNames of one's own");

  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    if constexpr (kFourLinears) {
      visit_linears({"q_proj", "k_proj", "v_proj", "out_proj", "", "", "", "", "", "q_norm", "k_norm"},
                    visitor, parent, set);
    } else {
      visit_packed(visitor, parent, set);
    }
    if constexpr (shape.add_bias_kv) {
      visitor(StateDictPlace<StateDictLayout::kKey>{{"bias_k", parent}}, set.appended.bias_k);
      visitor(StateDictPlace<StateDictLayout::kKey>{{"bias_v", parent}}, set.appended.bias_v);
    }
  }
  /// Four linear layers by the names of a table, and what normalizes.
  static constexpr void visit_linears(const EncoderLayerNames& names, const auto& visitor,
                                      const TensorPath* parent, auto&& set) {
    const auto part = [&]<class Part>(const char* name, auto&& of_part) {
      const TensorPath path{name, parent};
      PyTorchNames<Part>::visit(visitor, &path, of_part);
    };
    part.template operator()<typename Attention::QueryProjection>(names.query, set.query);
    part.template operator()<typename Attention::KeyProjection>(names.key, set.key);
    part.template operator()<typename Attention::ValueProjection>(names.value, set.value);
    part.template operator()<typename Attention::OutputProjection>(names.output, set.output);
    if constexpr (kNormalizes) {
      part.template operator()<typename Attention::Norms::QueryNorm>(names.query_norm, set.norms.query_norm);
      part.template operator()<typename Attention::Norms::KeyNorm>(names.key_norm, set.norms.key_norm);
    }
  }

 private:
  static constexpr void visit_packed(const auto& visitor, const TensorPath* parent, auto&& set) {
    constexpr int d_model = shape.d_model;
    constexpr auto kWeight = StateDictLayout::kTransposed;
    if constexpr (shape.d_key == d_model && shape.d_value == d_model) {
      const TensorPath packed{"in_proj_weight", parent};
      visitor(StateDictPlace<kWeight>{packed, 0, 3 * d_model}, set.query.weight);
      visitor(StateDictPlace<kWeight>{packed, d_model, 3 * d_model}, set.key.weight);
      visitor(StateDictPlace<kWeight>{packed, 2 * d_model, 3 * d_model}, set.value.weight);
    } else {
      visitor(StateDictPlace<kWeight>{{"q_proj_weight", parent}}, set.query.weight);
      visitor(StateDictPlace<kWeight>{{"k_proj_weight", parent}}, set.key.weight);
      visitor(StateDictPlace<kWeight>{{"v_proj_weight", parent}}, set.value.weight);
    }
    if constexpr (shape.bias) {
      constexpr auto kVector = StateDictLayout::kVector;
      const TensorPath packed{"in_proj_bias", parent};
      visitor(StateDictPlace<kVector>{packed, 0, 3 * d_model}, set.query.bias);
      visitor(StateDictPlace<kVector>{packed, d_model, 3 * d_model}, set.key.bias);
      visitor(StateDictPlace<kVector>{packed, 2 * d_model, 3 * d_model}, set.value.bias);
    }
    const TensorPath output{"out_proj", parent};
    PyTorchNames<typename MultiHeadAttention<shape, Scalar>::OutputProjection>::visit(visitor, &output,
                                                                                      set.output);
  }
};

template <FeedForwardShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<FeedForward<shape, Scalar>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    using Network = detail::OneProjection<shape, Scalar>;
    const TensorPath linear1{"linear1", parent}, linear2{"linear2", parent};
    PyTorchNames<typename Network::InLinear>::visit(visitor, &linear1, set.linear1);
    PyTorchNames<typename Network::OutLinear>::visit(visitor, &linear2, set.linear2);
  }
};
/// PyTorch has no module for it: `gate`, `up` and `down`, each an nn.Linear.
template <FeedForwardShape shape, class Scalar, const EncoderLayerNames* table>
struct PyTorchNames<GatedFeedForward<shape, Scalar>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    using Network = detail::GatedProjections<shape, Scalar>;
    const TensorPath gate{"gate", parent}, up{"up", parent}, down{"down", parent};
    PyTorchNames<typename Network::InLinear>::visit(visitor, &gate, set.gate);
    PyTorchNames<typename Network::InLinear>::visit(visitor, &up, set.up);
    PyTorchNames<typename Network::OutLinear>::visit(visitor, &down, set.down);
  }
};

namespace detail {

template <class Layer>
concept IsTransformerLayer = requires {
  typename Layer::SelfAttention;
  typename Layer::Network;
  typename Layer::Norm;
};
template <class Layer, const EncoderLayerNames* table>
concept IsNamedByTable = IsTransformerLayer<Layer> &&(table != nullptr);
// The linear layers of a network whose names a table has.
template <class Network>
struct NamedNetwork {
  static_assert(std::is_void_v<Network>,
                "attune::EncoderLayerNames: a table is of encoder layers with a FeedForward, or a gated one");
};
template <FeedForwardShape shape, class Scalar>
struct NamedNetwork<FeedForward<shape, Scalar>> {
  static constexpr bool kGated = false;
  using In = typename OneProjection<shape, Scalar>::InLinear;
  using Out = typename OneProjection<shape, Scalar>::OutLinear;
  static constexpr auto& in(auto& set) { return set.linear1; }
  static constexpr auto& out(auto& set) { return set.linear2; }
};
template <FeedForwardShape shape, class Scalar>
struct NamedNetwork<GatedFeedForward<shape, Scalar>> {
  static constexpr bool kGated = true;
  using In = typename GatedProjections<shape, Scalar>::InLinear;
  using Out = typename GatedProjections<shape, Scalar>::OutLinear;
  static constexpr auto& in(auto& set) { return set.up; }
  static constexpr auto& out(auto& set) { return set.down; }
};

}  // namespace detail

/// nn.TransformerEncoderLayer, of any parts; those of the network stand beside the attention.
template <class Layer, const EncoderLayerNames* table>
  requires detail::IsTransformerLayer<Layer>
struct PyTorchNames<Layer, table> {
  using Norm = PyTorchNames<typename Layer::Norm>;
  /// Whether the layer attends to an encoder's output, too.
  static constexpr bool kDecoder = requires { typename Layer::CrossAttention; };

  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    const TensorPath self{"self_attn", parent}, norm1{"norm1", parent}, norm2{"norm2", parent};
    PyTorchNames<typename Layer::SelfAttention>::visit(visitor, &self, set.self_attention);
    if constexpr (kDecoder) {  // nn.TransformerDecoderLayer
      const TensorPath cross{"multihead_attn", parent}, norm3{"norm3", parent};
      PyTorchNames<typename Layer::CrossAttention>::visit(visitor, &cross, set.cross_attention);
      Norm::visit(visitor, &norm3, set.norm3);
    }
    PyTorchNames<typename Layer::Network>::visit(visitor, parent, set.feed_forward);
    Norm::visit(visitor, &norm1, set.norm1);
    Norm::visit(visitor, &norm2, set.norm2);
  }
};
/// An encoder layer by a table.
template <class Layer, const EncoderLayerNames* table>
  requires detail::IsNamedByTable<Layer, table>
struct PyTorchNames<Layer, table> {
  static_assert(
      !requires { typename Layer::CrossAttention; },
      "attune::EncoderLayerNames: a table is of encoder layers");
  using Network = detail::NamedNetwork<typename Layer::Network>;
  static_assert(!Layer::SelfAttention::kShape.add_bias_kv,
                "attune::EncoderLayerNames: a table has no names for the key and the value of add_bias_kv");
  static_assert(
      table->query && table->key && table->value && table->output && table->linear1 && table->linear2 &&
          (table->gate || !Network::kGated) &&
          ((table->query_norm && table->key_norm) ||
           !PyTorchNames<typename Layer::SelfAttention>::kNormalizes) &&
          ((table->norm1 && table->norm2) || std::is_empty_v<typename Layer::Norm::Parameters>),
      "attune::EncoderLayerNames: the layer has a part that the table has no name for; gated networks have "
      "a gate, and normalized queries and keys query_norm and key_norm");

  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    const auto part = [&]<class Part>(const char* name, auto&& of_part) {
      const TensorPath path{name, parent};
      PyTorchNames<Part>::visit(visitor, &path, of_part);
    };
    PyTorchNames<typename Layer::SelfAttention>::visit_linears(*table, visitor, parent, set.self_attention);
    part.template operator()<typename Network::In>(table->linear1, Network::in(set.feed_forward));
    part.template operator()<typename Network::Out>(table->linear2, Network::out(set.feed_forward));
    if constexpr (Network::kGated)
      part.template operator()<typename Network::In>(table->gate, set.feed_forward.gate);
    part.template operator()<typename Layer::Norm>(table->norm1, set.norm1);
    part.template operator()<typename Layer::Norm>(table->norm2, set.norm2);
  }
};

template <class Layer, const EncoderLayerNames* table>
struct PyTorchNames<Residual<Layer>, table> : PyTorchNames<Layer, table> {};
template <class Layer, const EncoderLayerNames* table>
struct PyTorchNames<Checkpointed<Layer>, table> : PyTorchNames<Layer, table> {};

/// A module with `embedding`, an nn.Embedding that is its head as well, and `body`.
template <class EmbeddingLayer, class Body, const EncoderLayerNames* table>
struct PyTorchNames<Tied<EmbeddingLayer, Body>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    const TensorPath embedding{"embedding", parent}, body{"body", parent};
    PyTorchNames<EmbeddingLayer, table>::visit(visitor, &embedding, set.embedding);
    PyTorchNames<Body, table>::visit(visitor, &body, set.body);
  }
};

/// nn.ModuleList.
template <int count, class Layer, const EncoderLayerNames* table>
struct PyTorchNames<Repeat<count, Layer>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    for (int i = 0; i < count; ++i) {
      const TensorPath path{detail::kNumbers[i], parent};
      PyTorchNames<Layer, table>::visit(visitor, &path, set.layers[i]);
    }
  }
};

/// nn.Sequential.
template <class... Layers, const EncoderLayerNames* table>
struct PyTorchNames<Sequential<Layers...>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    [&]<std::size_t... index>(std::index_sequence<index...>) {
      const auto one = [&]<class Layer, std::size_t number>() {
        const TensorPath path{detail::kNumbers[number], parent};
        PyTorchNames<Layer, table>::visit(visitor, &path, set.template layer<static_cast<int>(number)>());
      };
      (one.template operator()<Layers, index>(), ...);
    }
    (std::index_sequence_for<Layers...>{});
  }
};

namespace detail {

/// Calls body(set of Layer) for one of PartlyTrained: for a set that may be changed with what is trained,
/// and Untrained in the place of constants; else with both.
template <class Part>
constexpr void with_set_of_layer(const auto& body, auto& set) {
  if constexpr (std::is_const_v<std::remove_reference_t<decltype(set)>>) {
    body(Part::all(set));
  } else if constexpr (Part::kFrozen) {
    body(typename Part::Trained{});
  } else {
    body(static_cast<typename std::remove_reference_t<decltype(set)>::OfLayer&>(set));
  }
}

}  // namespace detail

/// Frozen, BiasesAndNorms and Adapted: the module of their layer. What is trained of it by factors is written
/// as the weights that they come to; the factors themselves have names of their own (own_names.hpp).
template <class Layer, const auto& kConstants, class What, const EncoderLayerNames* table>
struct PyTorchNames<PartlyTrained<Layer, kConstants, What>, table> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    detail::with_set_of_layer<PartlyTrained<Layer, kConstants, What>>(
        [&](auto&& of_layer) { PyTorchNames<Layer, table>::visit(visitor, parent, of_layer); }, set);
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
