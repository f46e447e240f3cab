// A trained model in every precision of inference, one after the other.
#pragma once

#include <algorithm>
#include <memory>

#include <attune/attune.hpp>

namespace accuracy {

/// Calls body(name, weights, products) in floats; with weights in 8 bits (W8); with activations in 8 bits,
/// too (W8A8); and with attention in integers, sums of fewer than 16 terms included. Whether all weights
/// could be quantized.
template <class Model, class Body>
bool for_each_precision(const typename Model::Parameters& floats, const Body& body) {
  using Int8Set = typename Model::template ParametersOf<attune::Int8Weights, attune::Tensor>;
  using PackedSet = typename Model::template ParametersOf<attune::PackedInt8Weights, attune::Tensor>;
  const auto int8 = std::make_unique<Int8Set>();
  const auto packed = std::make_unique<PackedSet>();
  if (attune::quantize(floats, *int8) != attune::Status::kOk) return false;
  if (attune::pack(*int8, *packed) != attune::Status::kOk) return false;
  body("float", floats, attune::FloatProducts{});
  body("W8", *int8, attune::FloatProducts{});
  body("W8A8", *packed, attune::FloatProducts{});
  body("W8A8, attention", *packed, attune::Int8CacheProducts{});
  return true;
}

/// The class of the largest logit.
template <class Logits>
int largest(const Logits& logits) {
  return static_cast<int>(std::max_element(logits.values, logits.values + logits.size) - logits.values);
}

}  // namespace accuracy
