// Inference with a model of the zoo, in the ways that promise the same bits.
#pragma once

#include <algorithm>

#include "zoo/execution.hpp"

namespace zoo {

/// How an output is computed.
enum class Inference {
  kWhole = 0,
  kSlices = 1,
  kPredict = 2,          // by a trainer
  kPredictInSlices = 3,  // the same in slices
  kTokens = 4,           // in a stream, one after the other
  kSeveralTokens = 5     // in a stream, four together, then one after the other
};

template <Key key>
using ProductsOf =
    std::conditional_t<key.precision == Precision::kInt8Inference, Int8CacheProducts, FloatProducts>;

/// The next tokens of an input.
template <int count, int rows, int cols>
auto tokens_at(const Tensor<float, rows, cols>& x, int first) {
  return MatrixView<const float, count, cols>(x.data() + first * cols);
}
template <int count, std::size_t size>
auto tokens_at(const std::array<int, size>& ids, int first) {
  return Ids<count>(ids.data() + first);
}

/// Streams a sequence, `tokens` at a time as far as they go.
template <class Entry, Key key, int tokens>
Status stream(const auto& parameters, const auto& x, auto& y) {
  using Model = typename Entry::Model;
  constexpr CachePrecision kNumbers =
      key.precision == Precision::kInt8Inference ? CachePrecision::kInt8 : CachePrecision::kScalar;
  using Cache = KeyValueCache<Model, CacheShape{.capacity = Entry::kTokens, .precision = kNumbers}>;
  static Cache cache;
  static union {
    typename Cache::template Scratch<1> one;
    typename Cache::template Scratch<tokens> several;
  } scratch;
  cache = {};
  Status status = Status::kOk;
  for (int at = 0; at < Entry::kTokens && status == Status::kOk;) {
    if (at + tokens <= Entry::kTokens) {
      const auto rows = view(y).template rows_at<tokens>(at);
      status = attune::step(parameters, tokens_at<tokens>(x, at), rows, cache, scratch.several);
      at += tokens;
    } else {
      status =
          attune::step(parameters, tokens_at<1>(x, at), view(y).template rows_at<1>(at), cache, scratch.one);
      ++at;
    }
  }
  return status;
}

/// The answer of an inference. A model of numbers gives none.
Status answer_of(const auto& infer) {
  if constexpr (std::is_void_v<decltype(infer())>) {
    infer();
    return Status::kOk;
  } else {
    return infer();
  }
}

/// One output.
template <class Entry, Key key, Inference way>
Status infer_once(auto& trainer, const auto& x, auto& y, const auto& mask) {
  using Model = typename Entry::Model;
  static typename Model::InferenceScratch scratch;
  if constexpr (way == Inference::kPredict) {
    return trainer.predict(x, y, mask);
  } else if constexpr (way == Inference::kTokens || way == Inference::kSeveralTokens) {
    constexpr int kBlock = way == Inference::kTokens ? 1 : std::min(4, Entry::kTokens);
    return stream<Entry, key, kBlock>(trainer.parameters(), x, y);
  } else if constexpr (way == Inference::kWhole) {
    return answer_of(
        [&] { return infer<Model>(trainer.parameters(), x, y, scratch, mask, ProductsOf<key>{}); });
  } else {
    auto pass = [&] {
      if constexpr (way == Inference::kPredictInSlices) {
        return trainer.template predict_in_slices<kSliceOfWork>(x, y, mask);
      } else {
        return infer_in_slices<Model, kSliceOfWork>(trainer.parameters(), x, y, scratch, mask,
                                                    ProductsOf<key>{});
      }
    }();
    while (pass.advance()) {
    }
    return pass.status();
  }
}

/// Three outputs of a model that was not trained, each by once(trainer, x, y, mask). Rows of padding do not
/// count.
template <class Entry, Key key>
Outcome infer_each(const auto& once) {
  using Model = typename Entry::Model;
  Outcome outcome;
  static typename Model::Input x;
  static typename Model::Output y;
  Entry::fill_constants();
  auto& trainer = fresh<Trainer<Model, typename Entry::Loss, typename Entry::Optimizer>>();
  trainer.initialize(XavierUniform{}, Rng{42});
  for (int number = 0; number < kSteps; ++number) {
    draw<Entry, key.masking, false>(x, number, 1);
    outcome.check(once(trainer, x, y, mask_of<Entry, key.masking>(number, 0)));
    const bool hides = key.masking == Masking::kPadding || key.masking == Masking::kLength;
    const int rows = hides && y.rows == Entry::kTokens ? length_of<Entry>(number, 0) : y.rows;
    for (int i = 0; i < rows * y.cols; ++i) outcome.add(y.values[i]);
  }
  return outcome;
}
template <class Entry, Key key, Inference way>
Outcome infer_each() {
  return infer_each<Entry, key>([](auto& trainer, const auto& x, auto& y, const auto& mask) {
    return infer_once<Entry, key, way>(trainer, x, y, mask);
  });
}

}  // namespace zoo
