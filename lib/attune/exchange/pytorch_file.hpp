// Properties of a file's tensors besides names: aliases of other tensors, and shapes with more dimensions
// than the model's.
//
//   using Names = attune::PyTorchFile<
//       attune::HuggingFaceModule<attune::kLlamaLayer, Llama, "model.embed_tokens", "model.layers",
//       "model.norm">, attune::TensorAlias<"lm_head.weight", "model.embed_tokens.weight">>;
//   using Names = attune::PyTorchFile<
//       attune::PyTorchModule<Vit, "patches", "pos", "encoder.layers", "head">,
//       attune::TensorShape<"pos", 1, 17, 32>, attune::TensorShape<"patches.weight", 32, 1, 7, 7>>;
//
// write_safetensors() writes aliases and shapes, so that load_state_dict(strict=True) accepts the file.
// Reading accepts files with and without an alias. rewrite_safetensors() takes shapes from its file.
#pragma once

#include <attune/exchange/pytorch_names.hpp>
#include <attune/exchange/state_dict.hpp>

namespace ATTUNE_NAMESPACE {

/// A tensor of a file with the values of another, such as a model's head tied to its embedding.
template <detail::Name alias, detail::Name of>
struct TensorAlias {
  static constexpr auto kAlias = alias;  ///< Its name in the file.
  static constexpr auto kOf = of;        ///< The name of the tensor with its values.
  /// The same as one value.
  static constexpr detail::FileTensor kTensor{kAlias.text, kOf.text, {}};
};

/// The shape of a tensor in a file. The numbers and their order are the model's.
template <detail::Name name, int... extents>
struct TensorShape {
  static_assert(detail::Holds<(sizeof...(extents) > 0 && sizeof...(extents) <= detail::TensorExtents::kMax &&
                               ((extents > 0) && ...))>,
                "attune::TensorShape: a shape must have 1 to 8 positive dimensions");
  static constexpr auto kName = name;  ///< The name in the file.
  /// The same as one value.
  static constexpr detail::FileTensor kTensor{kName.text, {}, {sizeof...(extents), {extents...}}};
};

/// Names of a model, with TensorAlias and TensorShape by the full names of the file. It wraps a PyTorchPart,
/// not the reverse.
template <detail::CheckedNames Names, class... Tensors>
struct PyTorchFile {
  using Model = typename Names::Model;
  static constexpr bool kWholeFile = Names::kWholeFile;
  /// Aliases and shapes of the file.
  static constexpr detail::FileTensor kFileTensors[] = {Tensors::kTensor...};

  /// Calls visitor(place, tensor) for each tensor of the model's set.
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    Names::visit(visitor, parent, set);
  }
};

namespace detail {

template <class Tuned, class Names, class... Tensors>
struct NamesForModel<Tuned, PyTorchFile<Names, Tensors...>> {
  using type = PyTorchFile<typename NamesForModel<Tuned, Names>::type, Tensors...>;
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
