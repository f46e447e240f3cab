// How a PC trains the model: on windows of a text, of which every 16th stretch is kept back to see how well
// it does.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include <attune/host/parallel_trainer.hpp>

#include "model.hpp"
#include "vocabulary.hpp"

namespace stream {

inline constexpr int kSteps = 2000, kBatch = 8;

/// The ids of a text, all of whose bytes have a token.
inline std::vector<int> encode_all(std::string_view text, const Vocabulary& vocabulary) {
  std::map<std::string_view, std::vector<int>> known;
  std::vector<int> ids;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, piece_length(text));
    const auto [entry, is_new] = known.try_emplace(piece);
    if (is_new) {
      entry->second.resize(piece.size());
      entry->second.resize(static_cast<std::size_t>(vocabulary.encode_piece(piece, entry->second.data())));
    }
    ids.insert(ids.end(), entry->second.begin(), entry->second.end());
    text.remove_prefix(piece.size());
  }
  return ids;
}

/// Tokens of a text, in stretches that are for training but for the last of each kEvery.
struct Corpus {
  static constexpr std::size_t kStretch = 1024, kEvery = 16;
  static constexpr std::size_t kMin = kStretch * kEvery;
  std::vector<int> ids;

  [[nodiscard]] static bool held_out(std::size_t token) { return token / kStretch % kEvery == kEvery - 1; }

  /// The place of a window of kTokens and the one behind them, all of them for training.
  std::size_t draw(attune::Rng& rng) const {
    for (;;) {
      const std::size_t first = rng.next() % (ids.size() - kTokens);
      if (!held_out(first) && !held_out(first + kTokens)) return first;
    }
  }
};

struct HeldOutLoss {
  double nats = 0;
  std::size_t tokens = 0, bytes = 0;
};

class Training {
 public:
  using Trainer = attune::host::ParallelTrainer<Model, attune::CrossEntropy<>, attune::AdamW, kBatch>;

  explicit Training(Corpus corpus, int steps)
      : corpus_(std::move(corpus)),
        learning_rate_{.peak = 6e-3f,
                       .total_steps = static_cast<std::uint32_t>(steps),
                       .warmup_steps = static_cast<std::uint32_t>(steps) / 20} {
    trainer_.initialize(attune::XavierUniform{}, attune::Rng(1));
  }

  Trainer::Result step(int number) {
    for (std::size_t i = 0; i < kBatch; ++i) {
      const std::size_t first = corpus_.draw(rng_);
      for (std::size_t t = 0; t < kTokens; ++t) {
        inputs_[i * kTokens + t] = corpus_.ids[first + t];
        targets_[i * kTokens + t] = corpus_.ids[first + t + 1];
      }
    }
    return trainer_.step(
        inputs_, targets_,
        {.learning_rate = learning_rate_(static_cast<std::uint32_t>(number)), .weight_decay = 0.05f},
        attune::GradientClipping{1.0f}, attune::CausalMask{});
  }

  /// On windows of the stretches that were held out.
  HeldOutLoss held_out(const Vocabulary& vocabulary) {
    const auto logits = std::make_unique<Model::Output>();
    HeldOutLoss loss;
    for (std::size_t first = 0; first + kTokens < corpus_.ids.size(); first += kTokens) {
      if (!Corpus::held_out(first) || !Corpus::held_out(first + kTokens)) continue;
      const attune::Ids<kTokens> x(&corpus_.ids[first]), y(&corpus_.ids[first + 1]);
      if (trainer_.predict(x, *logits, attune::CausalMask{}) != attune::Status::kOk) continue;
      loss.nats += static_cast<double>(attune::CrossEntropy<>::forward(*logits, y, *logits).loss) * kTokens;
      loss.tokens += kTokens;
      for (const int id : y) loss.bytes += vocabulary.tokens[static_cast<std::size_t>(id)].length;
    }
    return loss;
  }

  [[nodiscard]] const Model::Parameters& parameters() const { return trainer_.parameters(); }

 private:
  Corpus corpus_;
  attune::CosineSchedule learning_rate_;
  attune::Rng rng_{2};
  Trainer trainer_;
  int inputs_[kBatch * kTokens], targets_[kBatch * kTokens];
};

}  // namespace stream
