// A stream of a model against one batch of the same tokens, bit by bit.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <attune/attune.hpp>

#include "check.hpp"

namespace check {

/// What a cache of this shape leaves of the keys of a sequence, said as a mask.
template <attune::CacheShape shape>
struct KeptKeys {
  template <int kv_len, class Scalar>
  void hide(int, int query, Scalar* row) const {
    for (int key = 0; key < kv_len; ++key) {
      const bool kept = shape.window == 0 || key < shape.sinks || key > query - shape.window;
      if (key > query || !kept) row[key] = -kInfinity<Scalar>;
    }
  }
  template <int kv_len, class Scalar>
  void bias(int, int, Scalar*) const {}
};

/// The tokens of a sequence from `first` on, as the input of a step.
template <int tokens, class Scalar, int rows, int cols>
auto tokens_at(const attune::Tensor<Scalar, rows, cols>& x, int first) {
  return attune::MatrixView<const Scalar, tokens, cols>(x.data() + first * cols);
}
template <int tokens, std::size_t size>
auto tokens_at(const std::array<int, size>& ids, int first) {
  return attune::Ids<tokens>(ids.data() + first);
}

/// Chunks of `chunk` tokens and single ones in turn give the rows of `expected`, of a sequence x.
template <class Model, attune::CacheShape shape, int chunk, class Set, class Input, class Output>
void expect_stream(const Set& parameters, const Input& x, const Output& expected) {
  using Scalar = typename Output::Scalar;
  using Cache = attune::KeyValueCache<Model, shape>;
  static Cache cache;
  static union {
    typename Cache::template Scratch<> one;
    typename Cache::template Scratch<chunk> many;
  } scratch;
  static attune::Tensor<Scalar, chunk, Output::cols> y;
  cache = {};
  bool in_chunk = true;
  for (int t = 0, count; t < Output::rows; t += count) {
    in_chunk = !in_chunk && t + chunk <= Output::rows;
    count = in_chunk ? chunk : 1;
    const attune::Status status =
        in_chunk ? attune::step(parameters, tokens_at<chunk>(x, t), y, cache, scratch.many)
                 : attune::step(parameters, tokens_at<1>(x, t), view(y).template rows_at<1>(0), cache,
                                scratch.one);
    ASSERT_EQ(status, attune::Status::kOk);
    const auto bytes = sizeof(Scalar) * static_cast<std::size_t>(count * Output::cols);
    ASSERT_EQ(std::memcmp(y.data(), expected.data() + t * Output::cols, bytes), 0);
  }
  EXPECT_EQ(cache.tokens, std::uint64_t{Output::rows});
}
// One for all shapes of caches: boards have little RAM.
template <class Model>
struct BatchBuffers {
  static inline typename Model::Output y;
  static inline typename Model::InferenceScratch scratch;
};
/// The products of a batch with the bits of such a stream.
template <attune::CacheShape shape>
using ProductsOf = std::conditional_t<shape.precision == attune::CachePrecision::kInt8,
                                      attune::Int8CacheProducts, attune::FloatProducts>;
/// What Model's batch forward gives, until it is asked once more.
template <class Model, attune::CacheShape shape, class Set>
const typename Model::Output& batch_of(const Set& parameters, const typename Model::Input& x) {
  (void)attune::infer<Model>(parameters, x, BatchBuffers<Model>::y, BatchBuffers<Model>::scratch, KeptKeys<shape>{},
                             ProductsOf<shape>{});
  return BatchBuffers<Model>::y;
}
template <class Model, attune::CacheShape shape, int chunk, class Set>
void expect_stream_of_batch(const Set& parameters, const typename Model::Input& x) {
  expect_stream<Model, shape, chunk>(parameters, x, batch_of<Model, shape>(parameters, x));
}

}  // namespace check
