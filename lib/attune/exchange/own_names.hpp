// The library's own names for the trained tensors of a model, without constants. The file holds only learned
// parameters, next to the file of the base.
//
//   using Model = attune::Sequential<attune::Adapted<Body, kBody, attune::LowRank{.rank = 4}>, Head>;
//   using Names = attune::OwnNames<Model>;
//   // "0.2.0.self_attention.query.weight.lora_A" and so on, as in for_each_tensor
//   attune::Status status = attune::write_safetensors<Names>(trainer.parameters(), sink);
//   status = attune::read_safetensors<Names>(bytes, parameters);
#pragma once

#include <attune/exchange/state_dict_names.hpp>

namespace ATTUNE_NAMESPACE {

/// Names for read_safetensors, write_safetensors and rewrite_safetensors. Each tensor of Parameters is [rows,
/// cols].
template <detail::CheckedModel ModelType>
struct OwnNames {
  using Model = ModelType;
  static constexpr bool kWholeFile = true;

  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    Model::Parameters::visit(
        [&visitor](const TensorPath& path, auto&& leaf) {
          if constexpr (detail::IsTrained<decltype(leaf)>) {
            visitor(StateDictPlace<StateDictLayout::kTable>{path}, leaf);
          }
        },
        parent, set);
  }
};

}  // namespace ATTUNE_NAMESPACE
