// A session of training and prediction whose calls, and all that comes from outside, are read from bytes.
#pragma once

#include <array>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <attune/attune.hpp>

namespace fuzz {

using attune::Status;

/// Ends the program with what was expected, and the input that did otherwise.
[[noreturn]] void fail(const char* expectation, Status status);

inline void expect(bool holds, const char* expectation, Status status = Status::kOk) {
  if (!holds) fail(expectation, status);
}

/// What was decided of an input, from its bytes; zeros after the last.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : next_(data), end_(data + size) {}

  std::uint8_t byte() { return next_ == end_ ? std::uint8_t{0} : *next_++; }
  bool done() const { return next_ == end_; }
  int below(int count) { return byte() % count; }

  /// An ordinary number, or one of those that break programs.
  float number() {
    using Limits = std::numeric_limits<float>;
    constexpr float kSpecial[] = {Limits::quiet_NaN(),
                                  Limits::infinity(),
                                  -Limits::infinity(),
                                  Limits::max(),
                                  -Limits::max(),
                                  Limits::min(),
                                  Limits::denorm_min(),
                                  -0.0f,
                                  0.0f,
                                  1e19f,
                                  -1e19f,
                                  1e-30f};
    const int drawn = byte();
    return drawn < 12 ? kSpecial[drawn] : static_cast<float>(drawn - 134) / 64;
  }
  /// An id below `count` three times of four, and then any.
  int id(int count) {
    constexpr int kWrong[] = {-1, INT_MIN, INT_MAX, -100};
    const int drawn = byte();
    if (drawn < 192) return drawn % count;
    return drawn < 224 ? kWrong[drawn % 4] : count + drawn % 3;
  }

 private:
  const std::uint8_t* next_;
  const std::uint8_t* end_;
};

/// How often each status was the answer.
inline std::uint64_t answers[256];

/// The status of what a call answered: a Status, or a result that has one, or nothing.
inline Status status_of(Status status) {
  ++answers[static_cast<std::uint8_t>(status)];
  return status;
}
template <class Result>
  requires(requires(const Result& result) { result.status; })
Status status_of(const Result& result) { return status_of(result.status); }
template <class Call>
  requires(std::is_invocable_v<Call>)
Status status_of(const Call& call) {
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
    return Status::kOk;
  } else {
    return status_of(call());
  }
}

/// Whether a status refuses options, not what a batch came to.
inline bool about_options(Status status) {
  return status == Status::kInvalidLearningRate || status == Status::kInvalidBeta ||
         status == Status::kInvalidEpsilon || status == Status::kInvalidWeightDecay ||
         status == Status::kInvalidMomentum || status == Status::kInvalidMaxNorm;
}

/// Options of AdamW and Sgd.
template <class Options>
Options options_from(Bytes& bytes) {
  Options options;
  options.learning_rate = bytes.below(4) == 0 ? bytes.number() : 0.01f;
  if (bytes.below(4) != 0) return options;
  options.weight_decay = bytes.number();
  if constexpr (requires { options.beta1; }) {
    if (bytes.below(2) == 0) options.beta1 = static_cast<double>(bytes.number());
    if (bytes.below(2) == 0) options.beta2 = static_cast<double>(bytes.number());
    if (bytes.below(2) == 0) options.epsilon = bytes.number();
  } else {
    if (bytes.below(2) == 0) options.momentum = bytes.number();
    if (bytes.below(2) == 0) options.dampening = bytes.number();
  }
  return options;
}

/// What a session knows of its model: `Trainer`, `Input` and `Target` of one sequence, how many ids of each
/// kind there are (0: numbers), its length and batch.
template <class Setup>
class Session {
  using Trainer = typename Setup::Trainer;
  using Input = typename Setup::Input;
  using Target = typename Setup::Target;
  using Mask = attune::KeyPaddingMask<Setup::kSeqLen>;
  static constexpr bool kAccumulates = requires(Trainer & trainer) { trainer.discard(); };

 public:
  explicit Session(Bytes& bytes) : bytes_(bytes) {}

  void run() {
    trainer_.initialize(attune::LinearDefault{}, attune::Rng{bytes_.byte()});
    std::memcpy(before_.data(), &trainer_.parameters(), sizeof before_);
    while (!bytes_.done()) {
      switch (bytes_.below(kAccumulates ? 7 : 3)) {
        case 0:
          step();
          break;
        case 1:
          predict();
          break;
        case 2:
          change_mask();
          break;
        case 3:
          if constexpr (kAccumulates) update();
          break;
        case 4:
          if constexpr (kAccumulates) trainer_.discard();
          accumulated_ = 0;
          break;
        default:
          if constexpr (kAccumulates) accumulate();
      }
      expect(std::memcmp(before_.data(), &trainer_.parameters(), sizeof before_) == 0,
             "a call that is no step changes nothing");
    }
  }

 private:
  template <class Storage>
  void draw(Storage& storage, int ids) {
    if constexpr (requires { storage.values; }) {
      const bool ordinary = bytes_.below(2) == 0;
      for (auto& value : storage.values) value = ordinary ? 0.25f : bytes_.number();
    } else {
      for (int& value : storage) value = bytes_.id(ids);
    }
  }
  // Whether one of `size` ids is neither below `ids` nor the ignored one.
  template <class Storage>
  static bool wrong(const Storage& storage, int first, int size, int ids, int ignored = 0) {
    if constexpr (!requires { storage.values; }) {
      for (int i = first; i < first + size; ++i) {
        const int value = storage[static_cast<std::size_t>(i)];
        if (value != ignored && (value < 0 || value >= ids)) return true;
      }
    }
    return false;
  }
  template <class Inputs, class Targets>
  static Status refusal(const Inputs& inputs, const Targets& targets, int sequences) {
    constexpr int kIgnored = -100;
    for (int i = 0; i < sequences; ++i) {
      constexpr int kIds = Setup::kSeqLen, kTargets = Setup::kTargets;
      if (wrong(inputs, i * kIds, kIds, Setup::kVocabulary)) return Status::kInvalidToken;
      if (wrong(targets, i * kTargets, kTargets, Setup::kClasses, kIgnored)) return Status::kInvalidTarget;
    }
    return Status::kOk;
  }
  template <class Call>
  auto with_mask(const Call& call) {
    switch (bytes_.below(4)) {
      case 0:
        return call(mask_);
      case 1:
        return call(attune::CausalMask{} && mask_);
      default:
        return call(attune::NoMask{});
    }
  }
  // Gradients are looked at before they are applied, where there are any (not with UpdateInBackward); what a
  // learning rate of 1e38 makes of them is not.
  void changed_by(Status status, const typename Setup::Options& options) {
    // UpdateInBackward finds such gradients after others have been applied.
    if (status != Status::kOk && (kAccumulates || status != Status::kNotFinite)) return;
    std::memcpy(before_.data(), &trainer_.parameters(), sizeof before_);
    for (const float parameter : before_) {
      expect(std::isfinite(parameter), "parameters stay finite");
    }
  }

  void accumulate() {
    Input x;
    Target target;
    draw(x, Setup::kVocabulary);
    draw(target, Setup::kClasses);
    const Status status =
        with_mask([&](const auto& mask) { return status_of(trainer_.accumulate(x, target, mask)); });
    const Status expected = accumulated_ == Setup::kBatch ? Status::kFullBatch : refusal(x, target, 1);
    expect(status == expected || (expected == Status::kOk && status == Status::kNotFinite),
           "accumulate() refuses what is wrong, and nothing else", status);
    if (status == Status::kOk) ++accumulated_;
  }
  void update() {
    const auto options = options_from<typename Setup::Options>(bytes_);
    const attune::GradientClipping clipping{bytes_.below(3) == 0 ? bytes_.number() : 1.0f};
    const Status status = bytes_.below(2) == 0 ? status_of(trainer_.update(options))
                                               : status_of(trainer_.update(options, clipping));
    if (accumulated_ != Setup::kBatch) {
      expect(status == Status::kIncompleteBatch, "update() needs a whole batch", status);
    } else if (!about_options(status)) {
      accumulated_ = 0;
    }
    changed_by(status, options);
  }
  void step() {
    typename Trainer::BatchInput inputs;
    typename Trainer::BatchTarget targets;
    draw(inputs, Setup::kVocabulary);
    draw(targets, Setup::kClasses);
    const auto options = options_from<typename Setup::Options>(bytes_);
    const Status status = with_mask(
        [&](const auto& mask) { return status_of(trainer_.step(inputs, targets, options, {}, mask)); });
    const Status expected = refusal(inputs, targets, Setup::kBatch);
    if (kAccumulates || status == Status::kOk) {
      expect(expected == Status::kOk || status == expected, "step() refuses wrong ids", status);
    }
    expect(expected != Status::kOk || (status != Status::kInvalidToken && status != Status::kInvalidTarget),
           "step() takes ids in order", status);
    if (status == Status::kOk) {
      expect(options.learning_rate >= 0 && options.weight_decay >= 0, "step() refuses options that are none");
    }
    accumulated_ = 0;
    changed_by(status, options);
  }
  void predict() {
    Input x;
    typename Setup::Model::Output y;
    draw(x, Setup::kVocabulary);
    const Status status =
        with_mask([&](const auto& mask) { return status_of([&] { return trainer_.predict(x, y, mask); }); });
    expect((status == Status::kInvalidToken) == wrong(x, 0, Setup::kSeqLen, Setup::kVocabulary),
           "predict() refuses wrong tokens, and nothing else", status);
  }
  void change_mask() {
    if (bytes_.below(2) == 0) {
      constexpr int kFar[] = {INT_MIN, INT_MAX, -1, Setup::kSeqLen + 1};
      const int length = bytes_.below(2) == 0 ? kFar[bytes_.below(4)] : bytes_.below(Setup::kSeqLen + 1);
      const bool possible = length >= 1 && length <= Setup::kSeqLen;
      expect((status_of(mask_.set_length(length)) == Status::kOk) == possible,
             "a mask refuses impossible lengths");
    } else {
      bool valid[Setup::kSeqLen];
      for (bool& one : valid) one = bytes_.below(2) == 0;
      mask_.set_valid(valid);
    }
  }

  static inline Trainer trainer_;
  static inline std::array<float, sizeof(typename Trainer::Parameters) / sizeof(float)>
      before_;  // parameters
  Bytes& bytes_;
  Mask mask_;
  int accumulated_ = 0;
};

}  // namespace fuzz
