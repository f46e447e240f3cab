// The interface of names of a model's tensors in a state_dict. It is a type with the Model, and with
// visit(visitor, path, set), which calls visitor(place, tensor) for each tensor of a set in any form.
// pytorch_names.hpp has PyTorch's names, own_names.hpp the library's.
#pragma once

#include <cstddef>
#include <type_traits>

#include <attune/core/parameters.hpp>
#include <attune/execution/layer.hpp>

namespace ATTUNE_NAMESPACE {

/// The layout of a tensor in a state_dict.
enum class StateDictLayout {
  kVector = 0,      // [cols]: biases and norms
  kKey = 1,         // [1, 1, cols]: an appended key or value
  kTable = 2,       // embeddings, [rows, cols]
  kPositions = 3,   // [rows, cols]: the first rows of a table of positions that may have more
  kTransposed = 4,  // [cols, rows]: weights of linear layers
  kConv1D = 5,      // [rows, cols]: weights of Hugging Face's Conv1D
};

/// Whether it is a vector, with contiguous numbers.
constexpr bool is_vector(StateDictLayout layout) {
  return layout == StateDictLayout::kVector || layout == StateDictLayout::kKey;
}
/// Whether the model stores it transposed, by the outputs of a linear layer.
constexpr bool is_transposed(StateDictLayout layout) {
  return is_vector(layout) || layout == StateDictLayout::kTransposed;
}
/// Whether the model can use it in place with 8 or 16 bits.
constexpr bool may_be_narrow(StateDictLayout layout) {
  return layout == StateDictLayout::kTable || layout == StateDictLayout::kTransposed;
}

namespace detail {

/// The shape of a tensor in a file.
struct TensorExtents {
  static constexpr int kMax = 8;

  int rank = 0;
  int extents[kMax] = {};  // of the first `rank` dimensions
};

}  // namespace detail

/// The place of a tensor: rows from `first_row` on, in a tensor with `rows` rows. (Rows of a vector are its
/// elements, rows of a Conv1D its columns.) With 0 rows, it is the whole tensor.
template <StateDictLayout kLayout>
struct StateDictPlace {
  /// The layout of the tensor in the file.
  static constexpr StateDictLayout layout = kLayout;
  TensorPath path;                               // its name in the file
  int first_row = 0;                             // start of its own rows
  int rows = 0;                                  // of the tensor that contains it; 0: it is the whole tensor
  const detail::TensorExtents* shape = nullptr;  // in a written file, static; null: rows and columns
};

namespace detail {

/// A name as a template argument.
template <std::size_t size>
struct Name {
  char text[size];
  constexpr Name(const char (&of)[size]) {  // NOLINT: PyTorchModule<Model, "embed">
    for (std::size_t i = 0; i < size; ++i) text[i] = of[i];
  }
};

template <class Model>
constexpr bool check_model() {
  constexpr bool kModel = requires { typename Model::Parameters; };
  static_assert(Holds<kModel>,
                "attune: this type is not a model; pass the layer, not its parameters or its trainer");
  return kModel;
}

template <class Names>
constexpr bool check_names() {
  constexpr bool kNames = requires {
    typename Names::Model;
    Names::kWholeFile;
  };
  static_assert(Holds<kNames>,
                "attune: pass names, not a model: PyTorchModule<Model, …>, PyTorchPart, HuggingFaceModule, "
                "or OwnNames<Model>");
  return kNames;
}

// Names can visit a set without visit(), so this tells a set only from a trainer and a model.
template <class Set>
constexpr bool check_set() {
  constexpr bool kSet = std::is_class_v<Set> && !requires(Set & owner) { owner.parameters(); }
  &&!requires { typename Set::Parameters; };
  static_assert(Holds<kSet>,
                "attune: this is not a set of parameters; pass trainer.parameters(), or call trainer.load()");
  return kSet;
}

/// A type with Parameters. A wrong type is one error, also for the concepts below.
template <class Model>
concept CheckedModel = check_model<Model>();
/// Names of a model. A model is an error.
template <class Names>
concept CheckedNames = check_names<Names>();
/// Parameters of any form.
template <class Set>
concept CheckedSet = check_set<Set>();

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
