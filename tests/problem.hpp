// Layers with all of their memory, parameters, inputs and dL/dy drawn from a seed.
#pragma once

#include <cstdint>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/execution/pass.hpp>

#include "check.hpp"

namespace check {

/// A layer of one input.
template <class LayerType>
struct Problem {
  using Layer = LayerType;
  typename Layer::Parameters parameters, gradients{};
  typename Layer::Input x, dx;
  typename Layer::Output y, dy;
  typename Layer::Tape tape{};
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;

  /// x is drawn from [low, high).
  explicit Problem(std::uint64_t seed, double low = -1, double high = 1) {
    attune::Rng rng(seed);
    fill_set(parameters, rng);
    fill(x, rng, low, high);
    fill(dy, rng);
  }
  void forward(const auto&... mask) { attune::forward<Layer>(parameters, x, y, tape, scratch, mask...); }
  void infer(const auto&... mask) { attune::infer<Layer>(parameters, x, y, inference, mask...); }
  void backward(const auto&... mask) {
    attune::backward<Layer>(parameters, x, tape, dy, dx, gradients, scratch, mask...);
  }
  /// Expects the same bits with x in place of y and of dx.
  void expect_in_place() {
    forward();
    typename Layer::Input in_place = x;
    Layer::forward(parameters, in_place, in_place, inference);
    EXPECT_TRUE(same_bits(y, in_place));
    backward();
    typename Layer::Parameters again{};
    in_place = x;
    Layer::backward(parameters, in_place, tape, dy, in_place, again, scratch);
    EXPECT_TRUE(same_bits(dx, in_place));
    EXPECT_TRUE(std::is_empty_v<typename Layer::Parameters> || same_bits(gradients, again));
  }
};

/// Attention of queries, keys and values.
template <attune::AttentionShape shape, class Scalar = float>
struct AttentionProblem {
  using Layer = attune::MultiHeadAttention<shape, Scalar>;
  typename Layer::Parameters parameters, gradients;
  typename Layer::Input query, d_query;
  typename Layer::KeyInput key, d_key;
  typename Layer::ValueInput value, d_value;
  typename Layer::Output y, dy;
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;

  void draw(std::uint64_t seed) {
    attune::Rng rng(seed);
    fill_set(parameters, rng);
    fill(query, rng);
    fill(key, rng);
    fill(value, rng);
    fill(dy, rng);
    gradients = {};
    attune::draw_seeds(tape, rng);
  }
  void forward(const auto&... mask) {
    attune::forward<Layer>(parameters, query, key, value, y, tape, scratch, mask...);
  }
  void infer(const auto&... mask) {
    attune::infer<Layer>(parameters, query, key, value, y, inference, mask...);
  }
  void backward(const auto&... mask) {
    attune::backward<Layer>(parameters, query, key, value, tape, dy, d_query, d_key, d_value, gradients,
                            scratch, mask...);
  }
};

}  // namespace check
