// The model's parameters as PyTorch has them, in the files of train.py and of examples/run: read in flash,
// and written on the device that trained.
#pragma once

#include <port.hpp>

#include "model.hpp"

namespace digits {

/// What train.py saves where it compares: the state_dict, and what PyTorch says to the first test images.
template <int images>
struct ModelWithLogits {
  using Scalar = Model::Scalar;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    Model::ParametersOf<Matrix, Vector> model;
    Vector<Scalar, images, kClasses> logits;
  };
  using Parameters = ParametersOf<attune::Tensor>;
};

using StateDict = attune::PyTorchModule<Model, "embed", "pos", "encoder.layers", "head">;

/// How many images the tensor `logits` of a model file is about; 0 without one.
template <class File>
inline constexpr int kComparedImages = [] {
  constexpr std::string_view kHeader(File::kHeader);
  attune::SafetensorsHeader header(kHeader, File::kSize - 8 - kHeader.size());
  attune::SafetensorsEntry entry;
  while (header.next(entry)) {
    if (entry.name == "logits") return static_cast<int>(entry.shape[0]);
  }
  return 0;
}();

}  // namespace digits

template <int images>
struct attune::PyTorchNames<digits::ModelWithLogits<images>> {
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    digits::StateDict::visit(visitor, parent, set.model);
    visitor(StateDictPlace<StateDictLayout::kTable>{{"logits", parent}}, set.logits);
  }
};

namespace digits {

/// The parameters of a model file, where they stand in flash, and its logits [n, 10], n ≥ 0. A file with
/// other tensors than these does not compile.
template <class File>
inline constexpr auto kParametersInFlash = [] {
  if constexpr (kComparedImages<File> == 0) {
    return attune::kInFlash<StateDict, File>;
  } else {
    return attune::kInFlash<attune::PyTorchModule<ModelWithLogits<kComparedImages<File>>>, File>.model;
  }
}();
template <class File>
inline constexpr const float* kLogitsInFlash = [] {
  if constexpr (kComparedImages<File> == 0) {
    return static_cast<const float*>(nullptr);
  } else {
    return attune::kInFlash<attune::PyTorchModule<ModelWithLogits<kComparedImages<File>>>, File>.logits.first;
  }
}();

/// The parameters of a model file, among whatever else it has.
using StateDictInFile = attune::PyTorchPart<StateDict>;

/// Prints the file that write(sink) writes as lines of text, which examples/run puts together. A file that
/// was refused has no end. Its text is no part of the caller's frame.
template <class Write>
[[gnu::noinline]] void print_file(const Write& write) {
  attune::HexLines lines([](const char* text, std::size_t length) { port::write(text, length); });
  if (write(lines) == attune::Status::kOk) lines.end();
}

/// The state_dict in such lines.
inline void print_state_dict(const auto& parameters) {
  print_file([&parameters](auto& sink) {
    return attune::write_safetensors<StateDict>(parameters, sink, {.metadata = R"({"format":"pt"})"});
  });
}

}  // namespace digits
