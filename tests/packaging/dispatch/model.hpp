// What main.cpp and model.cpp share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <Eigen/Core>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/exchange/state_dict.hpp>
#include <attune/training/trainer.hpp>

using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 8, .d_model = 20, .num_heads = 2}>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 4>;

struct Aligned {
  char first;
  Eigen::Matrix4f eigen;
  Trainer trainer;
};

/// The layout of types that this file sees.
inline std::string layout() {
  std::string text;
  for (const std::size_t number :
       {sizeof(Trainer), alignof(Trainer), sizeof(Layer::Parameters), sizeof(Layer::Tape),
        sizeof(Layer::Scratch), sizeof(Layer::InferenceScratch), sizeof(Trainer::BatchInput), sizeof(Aligned),
        alignof(Aligned), std::size_t{EIGEN_DEFAULT_ALIGN_BYTES >= 16}})
    text += std::to_string(number) + ' ';
  return text;
}

/// An interface, of which the code is in model.cpp.
struct Model {
  virtual ~Model() = default;
  virtual float step() = 0;
  [[nodiscard]] virtual std::uint32_t hash() const = 0;
  [[nodiscard]] virtual const Trainer& trainer() const = 0;
};
std::unique_ptr<Model> make_model();
std::uint32_t hash_on_threads();

namespace room {
std::string layout_of_model();
Eigen::VectorXf numbers();  ///< from the heap, which the caller gives back
void refuse(const std::string& what);
}  // namespace room

extern "C" const char* compiled_for(int which, ...);

// file.cpp
bool file_agrees();
[[gnu::visibility("hidden")]] int of_the_library();
