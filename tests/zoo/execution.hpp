// Executions: the ways to train a model of the zoo. Its key decides the bits of an execution: two with the
// same key promise the same ones.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <new>

#include "zoo.hpp"

namespace zoo {

/// How the steps of a training are computed.
enum class Way {
  kStep = 0,         // Trainer::step
  kAccumulated = 1,  // accumulate() and update()
  kSlices = 2,       // both in slices
  kInBackward = 3,   // UpdateInBackward
  kLockstep = 4,
  kInSharedBuffers = 5,  // whose memory is overwritten between two steps
  kThreads = 6,          // host::ParallelTrainer (zoo/threads.hpp)
  kTwin = 7,             // another model of the same bits
  kCrew = 8              // CrewTrainer (zoo/threads.hpp)
};

struct Key {
  Precision precision = Precision::kFloats;
  Masking masking = Masking::kNone;  // kLength has the bits of kPadding
  int batch = 1;                     // a larger one is clipped
};
struct Execution {
  Key key;
  Way way = Way::kStep;
  bool resumed = false;  // after the first step another trainer resumes from the state
};

inline constexpr int kSteps = 3, kManySequences = 18, kSliceOfWork = 50;

/// The end of an execution: a hash of every loss, and of all parameters and moments after every step.
struct Outcome {
  std::uint32_t hash = 2166136261u;
  Status status = Status::kOk;

  void check(Status result) {
    if (status == Status::kOk) status = result;
  }
  void add(std::uint32_t bits) { hash = attune::detail::fnv1a(bits, 4, hash); }
  void add(float value) { add(std::bit_cast<std::uint32_t>(value)); }
};

/// The memory of an execution, in the place of the one before it. A board may have less.
#ifndef ATTUNE_ZOO_ROOM
#define ATTUNE_ZOO_ROOM (std::size_t{8} << 20)
#endif
alignas(64) inline unsigned char room[ATTUNE_ZOO_ROOM];

template <class Object>
inline constexpr bool kFits = sizeof(Object) <= sizeof room;
template <class Object>
Object& fresh() {
  static_assert(kFits<Object> && alignof(Object) <= 64);
  std::memset(room, 0, sizeof(Object));
  return *new (room) Object();
}

/// The number of tokens of a sequence in a step.
template <class Entry>
constexpr int length_of(int step, int sequence) {
  return 1 + (step * 5 + sequence * 3 + 2) % Entry::kTokens;
}

/// The mask of a sequence; of its source and its target in a model that translates.
template <class Entry, Masking masking>
auto mask_of(int step, int sequence) {
  if constexpr (masking == Masking::kNone) {
    return NoMask{};
  } else if constexpr (masking == Masking::kCausal) {
    return Entry::causal();
  } else {
    using Length = SequenceLength<Entry::kTokens>;
    std::conditional_t<masking == Masking::kLength, Length, KeyPaddingMask<Entry::kTokens>> mask;
    (void)mask.set_length(length_of<Entry>(step, sequence));
    if constexpr (Entry::kTranslates) {
      return EncoderDecoderMask{mask, CausalMask{} && mask};
    } else {
      return Entry::padded(mask);
    }
  }
}
/// The masks of a batch: one for all, or one for each sequence.
template <class Entry, Masking masking, int batch>
auto masks_of(int step) {
  if constexpr (batch == 1 || masking == Masking::kNone || masking == Masking::kCausal) {
    return mask_of<Entry, masking>(step, 0);
  } else {
    std::array<decltype(mask_of<Entry, masking>(0, 0)), std::size_t{batch}> masks;
    for (int i = 0; i < batch; ++i) masks[static_cast<std::size_t>(i)] = mask_of<Entry, masking>(step, i);
    return masks;
  }
}

inline constexpr float kHiddenNumbers[] = {std::numeric_limits<float>::quiet_NaN(),
                                           std::numeric_limits<float>::infinity(), -3e38f};

/// Draws inputs or targets of stacked sequences. Targets of padding are ignored. Padding has no influence: it
/// is made of kHiddenNumbers, and behind a SequenceLength, which nothing may read, of ids outside of the
/// vocabulary.
template <class Entry, Masking masking, bool targets, class Values>
void draw(Values& values, int step, int batch) {
  constexpr bool kIds = !requires { values.values; };
  constexpr bool kHides = masking == Masking::kPadding || masking == Masking::kLength;
  constexpr int kBound = targets ? Entry::kClasses : Entry::kVocabulary;
  Rng rng(static_cast<std::uint64_t>(100 + 2 * step + targets));
  const auto fill = [&](auto* first, int count, int cols) {
    for (int i = 0; i < count; ++i) {
      const int sequence = i / (count / batch), token = i % (count / batch) / cols % Entry::kTokens;
      const bool hidden = kHides && token >= length_of<Entry>(step, sequence);
      if constexpr (kIds) {
        first[i] = static_cast<int>(rng.next() % std::uint32_t{kBound});
        if (hidden && targets) first[i] = -100;
        if (hidden && !targets && masking == Masking::kLength) first[i] = -1;
      } else {
        first[i] = rng.uniform(-1.5f, 1.5f);
        if (hidden && Entry::kIgnoresPadding) first[i] = kHiddenNumbers[i % 3];
      }
    }
  };
  if constexpr (kIds) {
    fill(values.data(), static_cast<int>(values.size()), 1);
  } else {
    fill(values.values, Values::size, Values::cols);
  }
}

/// The model of an execution.
template <class Entry, Execution execution>
struct ModelIn {
  using type = typename Entry::Model;
};
template <class Entry, Execution execution>
  requires(execution.key.precision == Precision::kRoundedTape)
struct ModelIn<Entry, execution> {
  using type = QuantizedTape<typename Entry::Model>;
};
template <class Entry, Execution execution>
  requires(execution.way == Way::kTwin)
struct ModelIn<Entry, execution> {
  using type = typename Entry::Twin;
};

template <class Model>
inline SharedBuffers<Model> buffers;

/// The plan of an execution. UpdateInBackward keeps no gradients, even where that takes more RAM.
template <class Entry, Execution execution>
constexpr auto plan_of() {
  const auto in_precision = []<class Plan>(Plan plan) {
    if constexpr (execution.key.precision == Precision::kIntegers) {
      return Int8TrainingWith<Plan>{};
    } else {
      return plan;
    }
  };
  if constexpr (execution.way == Way::kInBackward) {
    return in_precision(
        attune::detail::NoGradientsKept<attune::detail::kUpdateBlockIn<typename Entry::Optimizer>>{});
  } else if constexpr (execution.way == Way::kLockstep) {
    return Lockstep{};
  } else if constexpr (execution.way == Way::kInSharedBuffers) {
    return in_precision(InSharedBuffers<buffers<typename ModelIn<Entry, execution>::type>>{});
  } else {
    return in_precision(BySequence{});
  }
}

/// Adds a sequence, in slices of `work`; 0: at once.
template <int work, class Trainer>
void accumulate(Trainer& trainer, const auto& x, const auto& target, const auto& mask, Outcome& outcome) {
  if constexpr (work == 0) {
    outcome.check(trainer.accumulate(x, target, mask).status);
  } else {
    auto pass = trainer.template accumulate_in_slices<work>(x, target, mask);
    while (pass.advance()) {
    }
    outcome.check(pass.result().status);
  }
}
template <int work, class Trainer>
auto update(Trainer& trainer, const auto& options, const auto& clipping) {
  if constexpr (work == 0) {
    return trainer.update(options, clipping);
  } else {
    auto pass = trainer.template update_in_slices<work>(options, clipping);
    while (pass.advance()) {
    }
    return pass.result();
  }
}

/// One step of a trainer.
template <class Entry, Execution execution, class Trainer>
auto step(Trainer& trainer, const auto& inputs, const auto& targets, int number, Outcome& outcome) {
  constexpr Masking kMasking = execution.key.masking;
  constexpr int kBatch = execution.key.batch;
  const auto clipping = [] {
    if constexpr (kBatch == 1) {
      return NoClipping{};
    } else {
      return GradientClipping{0.5f};
    }
  }();
  constexpr Way kWay = execution.way;
  if constexpr (kWay == Way::kAccumulated || kWay == Way::kSlices) {
    constexpr int kWork = kWay == Way::kAccumulated ? 0 : kSliceOfWork;
    using Loss = typename Entry::Loss;
    using Output = typename Entry::Model::Output;
    for (int i = 0; i < kBatch; ++i) {
      const auto x = attune::detail::InputsOf<typename Entry::Model, kBatch>::at(inputs, i);
      const auto target = attune::detail::TargetsOf<Loss, Output, kBatch>::at(targets, i);
      accumulate<kWork>(trainer, x, target, mask_of<Entry, kMasking>(number, i), outcome);
    }
    return update<kWork>(trainer, Entry::kOptions, clipping);
  } else {
    return trainer.step(inputs, targets, Entry::kOptions, clipping,
                        masks_of<Entry, kMasking, kBatch>(number));
  }
}

/// What a step takes.
template <class Trainer>
struct Data {
  typename Trainer::BatchInput x;
  typename Trainer::BatchTarget target;
};

/// The steps of a trainer. `next` gives the trainer of the steps after the first.
template <class Entry, Execution execution, class Trainer>
Outcome train(Data<Trainer>& data, Trainer& first, const auto& next) {
  Outcome outcome;
  Entry::fill_constants();
  if constexpr (execution.way == Way::kTwin) Entry::fill_twin_constants();
  first.initialize(XavierUniform{}, Rng{42});
  Trainer* trainer = &first;
  for (int number = 0; number < kSteps; ++number) {
    draw<Entry, execution.key.masking, false>(data.x, number, execution.key.batch);
    draw<Entry, execution.key.masking, true>(data.target, number, execution.key.batch);
    const auto result = step<Entry, execution>(*trainer, data.x, data.target, number, outcome);
    outcome.check(result.status);
    outcome.add(result.loss);
    outcome.add(hash_bits(trainer->state()));
    if constexpr (execution.way == Way::kInSharedBuffers) {
      using Model = typename ModelIn<Entry, execution>::type;
      auto& scratch = buffers<Model>.template scratch<Model>();
      std::memset(static_cast<void*>(&scratch), 0xFF, sizeof scratch);
    }
    if (number == 0 && execution.resumed) {
      trainer = &next();  // which has done other things
      trainer->initialize(XavierUniform{}, Rng{7});
      (void)step<Entry, execution>(*trainer, data.x, data.target, number, outcome);
      outcome.check(trainer->resume(first.state()));
    }
  }
  return outcome;
}

/// A trainer for an execution.
template <class Entry, Execution execution>
using TrainerOf =
    Trainer<typename ModelIn<Entry, execution>::type, typename Entry::Loss, typename Entry::Optimizer,
            execution.key.batch, decltype(plan_of<Entry, execution>())>;

/// All memory of an execution on one core.
template <class Entry, Execution execution>
struct Memory {
  using Trainer = TrainerOf<Entry, execution>;
  Data<Trainer> data;
  Trainer first;
  std::conditional_t<execution.resumed, Trainer, NoParameters> second;
};
template <class Entry, Execution execution>
Outcome train() {
  using Trainer = TrainerOf<Entry, execution>;
  auto& memory = fresh<Memory<Entry, execution>>();
  return train<Entry, execution>(memory.data, memory.first, [&]() -> Trainer& {
    if constexpr (execution.resumed) {
      return memory.second;
    } else {
      return memory.first;
    }
  });
}

}  // namespace zoo
