// Names of low-rank adapters in Hugging Face's PEFT (peft 0.14, peft/utils/save_and_load.py), as in
// adapter_model.safetensors:
//
//   using Model = attune::Sequential<attune::Adapted<Body, kBody, attune::LowRank{.rank = 4}>, Head>;
//   using Names = attune::PyTorchModule<Model, "body", "head">;
//   status = attune::write_safetensors<attune::PeftNames<Names>>(trainer.parameters(), sink);
//   status = attune::read_safetensors<attune::PeftNames<Names>>(adapter, parameters);
//
//   base_model.model.body.layers.0.self_attn.q_proj.lora_A.weight   [r, in]
//   base_model.model.body.layers.0.self_attn.q_proj.lora_B.weight   [out, r]
//   base_model.model.head.weight                                    [out, in]: of modules_to_save
//
// Of a convolution, lora_A is [r, in, kernel…] and lora_B is [out, r, 1…].
// Other trained tensors have their own names after the prefix, and constants have none. adapter_config.json
// holds α and the roles; host/adapter_config.hpp compares them with the model.
#pragma once

#include <attune/exchange/pytorch_names.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The shapes of factors of low rank in a file: of the weights of linear layers, or of convolutions.
template <class Place, int rank>
struct AdapterShapes {
  static constexpr const TensorExtents *kA = nullptr, *kB = nullptr;
};
template <StateDictLayout layout, const TensorExtents& weight, int rank>
struct AdapterShapes<ConvolutionPlace<layout, weight>, rank> {
  static constexpr TensorExtents kOfA = [] {
    TensorExtents shape = weight;
    shape.extents[0] = rank;
    return shape;
  }();
  static constexpr TensorExtents kOfB{weight.rank, {weight.extents[0], rank, 1, 1}};
  static constexpr const TensorExtents *kA = &kOfA, *kB = &kOfB;
};

/// Calls visitor(place, tensor) for trained tensors, with factors of low rank as two weights of layers.
template <class Visitor>
struct AdapterVisitor {
  static constexpr bool kOfFactors = true;
  const Visitor& visitor;

  template <class Place>
  constexpr void operator()(const Place& place, auto&& leaf) const {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    if constexpr (IsLowRank<Leaf>) {
      constexpr auto kWeight = StateDictLayout::kTransposed;
      const TensorPath a{"lora_A", place.path.parent}, b{"lora_B", place.path.parent};
      using Shapes = AdapterShapes<Place, Leaf::kLowRank.rank>;
      visitor(StateDictPlace<kWeight>{{"weight", &a}, 0, 0, Shapes::kA}, leaf.a);
      visitor(StateDictPlace<kWeight>{{"weight", &b}, 0, 0, Shapes::kB}, leaf.b);
    } else if constexpr (IsTrained<Leaf>) {
      visitor(place, leaf);
    }
  }
};

/// Calls visitor(place, factors) for factors of low rank.
template <class Names>
constexpr void for_each_adapter(const auto& visitor) {
  const auto one = [&](const auto& place, auto&& leaf) {
    if constexpr (IsLowRank<std::remove_cvref_t<decltype(leaf)>>) visitor(place, leaf);
  };
  Names::visit(one, nullptr, SetOf<typename Names::Model, detail::Extents, detail::Extents>{});
}
template <class Names>
constexpr bool adapts_packed_tensors() {
  bool any = false;
  for_each_adapter<Names>([&any](const auto& place, const auto&) { any = any || place.rows != 0; });
  return any;
}

}  // namespace detail

/// PEFT's names of trained tensors, from a module's names (pytorch_names.hpp).
template <detail::CheckedNames NamesOfModule>
struct PeftNames {
  /// The names of the module without PEFT.
  using Module = NamesOfModule;
  using Model = typename Module::Model;
  static constexpr bool kWholeFile = Module::kWholeFile;
  static_assert(detail::Holds<!detail::adapts_packed_tensors<Module>()>,
                "attune::PeftNames: PEFT cannot store factors for parts of a packed tensor (in_proj_weight, "
                "qkv); write merged weights, or use OwnNames");

  /// Calls visitor(place, tensor) for each trained tensor.
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    const TensorPath base{"base_model", parent}, model{"model", &base};
    Module::visit(detail::AdapterVisitor<std::remove_cvref_t<decltype(visitor)>>{visitor}, &model, set);
  }
};

}  // namespace ATTUNE_NAMESPACE
