// Attention weights from a model's tape, for all attention layers in the model. Needs a heap; never included
// by attune.hpp.
#pragma once

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include <attune/kernels/policy.hpp>
#include <attune/models/composition.hpp>

namespace ATTUNE_NAMESPACE::host {

/// The weights of one head, P[queries, keys]. `layer` is the layer's place in the model, such as "layer 2,
/// block 0"; empty if the model is the attention layer.
struct AttentionMap {
  std::string layer;            // the name of the layer
  int head;                     // of a layer, from 0
  int queries;                  // rows
  int keys;                     // columns
  std::vector<double> weights;  // [queries, keys], row-major
};

namespace detail {

// "outer, inner 3"; without a number if it is negative.
inline std::string joined(const std::string& outer, const char* inner, int number = -1) {
  std::string name = outer;
  if (!outer.empty()) name += ", ";
  name += inner;
  if (number >= 0) name += std::to_string(number);
  return name;
}

template <class Tape>
void collect_attention(const Tape& tape, const std::string& name, std::vector<AttentionMap>& maps);

// The tapes of a Sequential's layers; empty tapes are skipped.
template <class... Tapes>
void collect_attention_of(const attune::detail::Members<Tapes...>& members, int index,
                          const std::string& name, std::vector<AttentionMap>& maps) {
  if constexpr (requires { members.first; }) {
    collect_attention(members.first, joined(name, "layer ", index), maps);
  }
  if constexpr (requires { members.rest; }) collect_attention_of(members.rest, index + 1, name, maps);
}
// The tapes of a Repeat's layers.
template <class Tape, int count>
void collect_attention_of(const attune::detail::Copies<Tape, count>& tapes, int, const std::string& name,
                          std::vector<AttentionMap>& maps) {
  for (int i = 0; i < count; ++i) {
    collect_attention(tapes[i], count == 1 ? name : joined(name, "block ", i), maps);
  }
}

template <class Tape>
void collect_attention(const Tape& tape, const std::string& name, std::vector<AttentionMap>& maps) {
  if constexpr (requires {
                  tape.weights.rows;  // kept
                  tape.head_weights(0);
                }) {
    using Weights = decltype(tape.head_weights(0));
    const int heads = tape.weights.rows / Weights::rows;
    for (int head = 0; head < heads; ++head) {
      const Weights weights = tape.head_weights(head);
      AttentionMap& map = maps.emplace_back(AttentionMap{name, head, Weights::rows, Weights::cols, {}});
      for (int i = 0; i < Weights::rows; ++i) {
        for (int j = 0; j < Weights::cols; ++j) map.weights.push_back(static_cast<double>(weights(i, j)));
      }
    }
  } else if constexpr (requires { tape.cross_attention; }) {
    collect_attention(tape.self_attention, joined(name, "self-attention"), maps);
    collect_attention(tape.cross_attention, joined(name, "cross-attention"), maps);
  } else if constexpr (requires { tape.self_attention; }) {
    collect_attention(tape.self_attention, name, maps);
  } else if constexpr (requires { tape.layers; }) {
    collect_attention_of(tape.layers, 0, name, maps);
  }
}

}  // namespace detail

/// Every head of every attention layer whose forward wrote `tape`. No backward may have used up the tape;
/// after predict(), a Trainer's tape is suitable.
template <class Tape>
[[nodiscard]] std::vector<AttentionMap> attention_maps(const Tape& tape) {
  std::vector<AttentionMap> maps;
  detail::collect_attention(tape, "", maps);
  return maps;
}

}  // namespace ATTUNE_NAMESPACE::host
