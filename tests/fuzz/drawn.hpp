// What every drawn program does (tests/fuzz/draw writes them): it trains one model under several plans, runs
// it in several ways, and compares all that promises the same bits. Results also go to the output, where
// `draw` compares compilers and boards.
//
//   # 17 streaming 1a2b3c4d        a result: the program's seed, the way, a hash
//   FAILED 17 lockstep: …          it has other bits than it promises
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include <attune/attune.hpp>

#include "console.hpp"

#ifdef ATTUNE_DRAWN_ON_HOST
#include <attune/host/parallel_trainer.hpp>
#endif

namespace drawn {

using namespace attune;  // NOLINT: for the programs

inline constexpr int kSteps = 3;
inline int failed = 0, compared = 0;

/// The memory of what a program uses at the moment, in four places: one object takes the place of the one
/// before. The first has room for a trainer.
inline constexpr std::size_t kUnit = std::size_t{1} << 18, kUnits[] = {0, 9, 10, 11, 12};
alignas(64) inline unsigned char room[12 * kUnit];

template <class Object, int place = 0>
Object& fresh() {
  static_assert(sizeof(Object) <= (kUnits[place + 1] - kUnits[place]) * kUnit);
  static_assert(std::is_trivially_destructible_v<Object>);
  unsigned char* const to = room + kUnits[place] * kUnit;
  std::memset(to, 0, sizeof(Object));
  return *new (to) Object();
}

/// What a run ends with.
struct Outcome {
  std::uint32_t hash = fingerprint();
  Status status = Status::kOk;

  template <class Value>
  void add(Value value) {
    static_assert(sizeof value == 4);
    hash = detail::fnv1a(std::bit_cast<std::uint32_t>(value), 4, hash);
  }
  void add(const float* values, int count) {
    for (int i = 0; i < count; ++i) add(values[i]);
  }
  void add(Status result) {
    if (result == Status::kOk) return;
    status = result;
    add(static_cast<std::uint32_t>(result));
  }
  bool operator==(const Outcome&) const = default;
};

/// Prints what a run ended with.
inline void say(int seed, const char* way, const Outcome& outcome) {
  port::print("# ", seed, ' ', way, ' ', port::hex8(outcome.hash), '\n');
}
/// Compares a run with the one whose bits it promises. A run that ended with an error has no bits.
inline void expect_same(int seed, const char* way, const Outcome& outcome, const Outcome& promised) {
  ++compared;
  if (promised.status != Status::kOk && outcome.status != Status::kOk) return;
  if (outcome == promised) return;
  ++failed;
  port::print("FAILED ", seed, ' ', way, ": ", port::hex8(outcome.hash), " status ",
              static_cast<int>(outcome.status), ", promised ", port::hex8(promised.hash), " status ",
              static_cast<int>(promised.status), '\n');
}

/// Draws a matrix, or ids below `bound`.
template <class Values>
void draw(Values& values, Rng& rng, [[maybe_unused]] int bound) {
  if constexpr (requires { values.values; }) {
    for (float& value : values.values) value = rng.uniform(-1.5f, 1.5f);
  } else {
    for (int& id : values) id = static_cast<int>(rng.next() % static_cast<std::uint32_t>(bound));
  }
}
/// Sets constants of a model, which may have fewer bits, from drawn floats.
template <class Layer, class Constants>
void draw_constants(Constants& constants, std::uint64_t seed) {
  if constexpr (std::is_same_v<Constants, typename Layer::Parameters>) {
    Rng rng(seed);
    initialize(constants, XavierUniform{}, rng);
  } else {
    auto& floats = fresh<typename Layer::Parameters, 3>();
    draw_constants<Layer>(floats, seed);
    const Status status = quantize(floats, constants);
    if (status != Status::kOk) port::print("no constants\n");
  }
}

/// The masks of a program.
template <int rows>
KeyPaddingMask<rows> padding(int length) {
  KeyPaddingMask<rows> mask;
  if (mask.set_length(length) != Status::kOk) port::print("no length\n");
  return mask;
}
template <int rows>
SequenceLength<rows> length(int length) {
  SequenceLength<rows> mask;
  if (mask.set_length(length) != Status::kOk) port::print("no length\n");
  return mask;
}

/// What all ways of a program have in common.
template <class Model, int batch>
struct Case {
  int seed;
  int ids, classes;  // bounds of token ids and of targets

  template <class Trainer>
  void begin(Trainer& trainer) const {
    trainer.initialize(XavierUniform{}, Rng{static_cast<std::uint64_t>(seed)});
  }
  template <class Values>
  void draw_at(Values& values, int step, int what) const {
    Rng rng(static_cast<std::uint64_t>(seed) * 64 + static_cast<std::uint64_t>(step * 2 + what));
    draw(values, rng, what == 0 ? ids : classes);
  }
};

/// Steps of a trainer.
template <class Trainer, class Case, class Options, class Clipping, class Mask, class Loss>
Outcome train_with(Trainer& trainer, const Case& drawn, const Options& options, const Clipping& clipping,
                   const Mask& mask, const Loss& loss) {
  Outcome outcome;
  auto& x = fresh<typename Trainer::BatchInput, 1>();
  auto& target = fresh<typename Trainer::BatchTarget, 2>();
  drawn.begin(trainer);
  for (int step = 0; step < kSteps && outcome.status == Status::kOk; ++step) {
    drawn.draw_at(x, step, 0);
    drawn.draw_at(target, step, 1);
    const auto result = trainer.step(x, target, options, clipping, mask, loss);
    outcome.add(result.status);
    outcome.add(result.loss);
    outcome.add(hash_bits(trainer.parameters()));
  }
  return outcome;
}
/// The same, of a new trainer in `room`.
template <class Trainer, class... Arguments>
Outcome train(const Arguments&... arguments) {
  return train_with(fresh<Trainer>(), arguments...);
}

/// The same in slices; for a batch of one.
template <class Trainer, class Case, class Options, class Clipping, class Mask, class Loss>
Outcome train_in_slices(const Case& drawn, const Options& options, const Clipping& clipping, const Mask& mask,
                        const Loss& loss) {
  Outcome outcome;
  Trainer& trainer = fresh<Trainer>();
  auto& x = fresh<typename Trainer::BatchInput, 1>();
  auto& target = fresh<typename Trainer::BatchTarget, 2>();
  drawn.begin(trainer);
  for (int step = 0; step < kSteps && outcome.status == Status::kOk; ++step) {
    drawn.draw_at(x, step, 0);
    drawn.draw_at(target, step, 1);
    auto pass = trainer.template accumulate_in_slices<200>(x, target, mask, loss);
    while (pass.advance()) {
    }
    if (!pass.result().ok()) {
      outcome.add(pass.result().status);
      continue;
    }
    auto update = trainer.template update_in_slices<200>(options, clipping);
    while (update.advance()) {
    }
    outcome.add(update.result().status);
    outcome.add(update.result().loss);
    outcome.add(hash_bits(trainer.parameters()));
  }
  return outcome;
}

#ifdef ATTUNE_DRAWN_ON_HOST
/// The same on threads.
template <class Trainer, class... Arguments>
Outcome train_on_threads(int threads, const Arguments&... arguments) {
  const auto trainer = std::make_unique<Trainer>(host::ParallelOptions{.threads = threads});
  return train_with(*trainer, arguments...);
}
#endif

/// The output of a model with drawn parameters, in the products of `Products`.
template <class Model, class Products = FloatProducts, class Case, class Mask>
Outcome infer_drawn(const Case& drawn, const Mask& mask) {
  Outcome outcome;
  auto& parameters = fresh<typename Model::Parameters>();
  Rng rng(static_cast<std::uint64_t>(drawn.seed));
  if constexpr (!std::is_empty_v<typename Model::Parameters>) initialize(parameters, XavierUniform{}, rng);
  auto& x = fresh<typename Model::Input, 1>();
  drawn.draw_at(x, 0, 0);
  auto& y = fresh<typename Model::Output, 2>();
  auto& scratch = fresh<typename Model::InferenceScratch, 3>();
  if constexpr (std::is_void_v<decltype(infer<Model>(parameters, x, y, scratch, mask, Products{}))>) {
    infer<Model>(parameters, x, y, scratch, mask, Products{});
  } else {
    outcome.add(infer<Model>(parameters, x, y, scratch, mask, Products{}));
  }
  outcome.add(y.values, y.size);
  return outcome;
}

/// The same token by token, `tokens` at a time as far as they go.
template <class Model, CacheShape cache_shape, int tokens, class Case>
Outcome stream_drawn(const Case& drawn) {
  using Cache = KeyValueCache<Model, cache_shape>;
  struct All {
    typename Model::Input x;
    typename Cache::template Scratch<1> one;
    typename Cache::template Scratch<tokens> several;
  };
  Outcome outcome;
  auto& parameters = fresh<typename Model::Parameters>();
  Rng rng(static_cast<std::uint64_t>(drawn.seed));
  if constexpr (!std::is_empty_v<typename Model::Parameters>) initialize(parameters, XavierUniform{}, rng);
  auto& all = fresh<All, 1>();
  drawn.draw_at(all.x, 0, 0);
  auto& cache = fresh<Cache, 2>();
  const auto step = [&]<int count>(int at, std::integral_constant<int, count>, auto& scratch) {
    Tensor<float, count, Model::Output::cols> y;
    if constexpr (requires { all.x.values; }) {
      Tensor<float, count, Model::Input::cols> x;
      std::memcpy(x.values, &all.x(at, 0), sizeof x.values);
      outcome.add(Model::step(parameters, x, y, cache, scratch));
    } else {
      std::array<int, std::size_t{count}> x;
      std::memcpy(x.data(), &all.x[static_cast<std::size_t>(at)], sizeof x);
      outcome.add(Model::step(parameters, x, y, cache, scratch));
    }
    for (const float value : y.values) outcome.add(value);
  };
  int at = 0;
  for (; at + tokens <= Model::Output::rows; at += tokens)
    step(at, std::integral_constant<int, tokens>{}, all.several);
  for (; at < Model::Output::rows; ++at) step(at, std::integral_constant<int, 1>{}, all.one);
  return outcome;
}

}  // namespace drawn
