// A memory of examples that training replays beside new ones, against forgetting (Ravaglia et al., "A TinyML
// Platform for On-Device Continual Learning with Quantized Latent Replays", arXiv:2110.10486).
//
//   constexpr attune::ReplayShape kShape{.capacity = 50, .num_classes = 10};
//   static attune::ReplayMemory<Features, kShape> memory;
//   status = memory.add(features, label);            // offers an example; the sampling decides
//   status = memory.replay<1>(trainer, 10, rng);     // accumulates ten stored examples from layer 1 on
//   status = memory.replay(journal, 10, rng);        // the same of inputs, with a TrainingJournal
//
// Examples are inputs of a model, or latent features: the input of the layer at which training begins. They
// are stored in 8 bits, with a scale per row. With features of a frozen front, a replayed example costs no
// pass of the front. FlashReplayMemory (flash_replay_memory.hpp) keeps the examples in flash.
//
// With deadlines, an example is drawn, and then trained in slices. The draws of a step depend only on `rng`.
// Seeded by the number of steps, it draws the same after a resume, from a memory with the same examples.
//
//   attune::Rng rng{trainer.state().steps};
//   decltype(memory)::Drawn drawn;                   // stays until the pass is done
//   status = memory.draw(rng, drawn);
//   auto pass = trainer.accumulate_from_in_slices<1>(drawn.x, drawn.target, drawn.mask);
//
// Sampling is algorithm R (Vitter, "Random Sampling with a Reservoir", 1985): the n-th example replaces a
// random one with probability capacity/n, so every example seen is stored with equal probability. The random
// number of an example depends only on the seed and n, so every target stores the same examples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <attune/attention/sequence_length.hpp>
#include <attune/core/fingerprint.hpp>
#include <attune/core/rng.hpp>
#include <attune/core/status.hpp>
#include <attune/core/tensor.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/finite.hpp>
#include <attune/kernels/ops/packed_rows.hpp>
#include <attune/persistence/journal_entry.hpp>

namespace ATTUNE_NAMESPACE {

/// How a replay memory chooses its examples.
enum class ReplaySampling : std::uint8_t {
  kReservoir = 0,     // one reservoir for all examples: classes as frequent as seen
  kClassBalanced = 1  // one reservoir for each class, of capacity / num_classes examples
};

/// The size and sampling of a replay memory.
struct ReplayShape {
  int capacity;                                              // examples
  int num_classes;                                           // labels are in [0, num_classes)
  ReplaySampling sampling = ReplaySampling::kClassBalanced;  // the examples that are kept
  bool has_lengths = false;                                  // rows are tokens, and an example may have fewer
};

/// A stored example: features in 8 bits. `number` 0: none.
template <class Features>
struct ReplayEntry {
  std::uint32_t number;                       // among the examples seen by its reservoir, from 1
  std::uint16_t label;                        // its class
  std::uint16_t length;                       // valid rows
  float scales[std::size_t{Features::rows}];  // of each row
  Int8 elements[std::size_t{(Features::size + 3) / 4 * 4}];  // features divided by their row's scale
};

namespace detail {

template <class Features>
constexpr bool check_replay_features() {
  constexpr bool kFloats = requires {
    requires std::is_same_v<Features, Tensor<float, Features::rows, Features::cols>>;
  };
  static_assert(
      Holds<kFloats>,
      "attune::ReplayMemory: examples are a Tensor of floats, the Input of a model or of one of its "
      "layers");
  return kFloats;
}
/// The features of examples; others after an error.
template <class Features>
using ReplayFeatures =
    typename std::conditional_t<check_replay_features<Features>(), std::type_identity<Features>,
                                std::type_identity<Tensor<float, 1, 1>>>::type;

/// The sampling and the calls of a replay memory. `Self` has read(slot, entry) and write(slot, entry), which
/// return a Status.
template <class Self, class FeaturesType, ReplayShape shape>
class ReplaySampler {
  static_assert(Holds<(shape.capacity > 0 && shape.num_classes > 0 && shape.num_classes <= 0xFFFF)>,
                "attune::ReplayMemory: capacity and num_classes must be at least 1");
  static_assert(
      Holds<(shape.sampling == ReplaySampling::kReservoir || shape.capacity % shape.num_classes == 0)>,
      "attune::ReplayMemory: kClassBalanced needs a capacity that is a multiple of num_classes");

 public:
  using Features = ReplayFeatures<FeaturesType>;
  using Entry = ReplayEntry<Features>;
  static constexpr int kCapacity = shape.capacity;
  /// The number of reservoirs: one, or one for each class.
  static constexpr int kReservoirs = shape.sampling == ReplaySampling::kReservoir ? 1 : shape.num_classes;
  /// The number of examples that each reservoir has seen.
  using Counts = std::array<std::uint32_t, std::size_t{kReservoirs}>;
  /// A drawn example, as trainers take it. Examples with lengths have a SequenceLength as the mask.
  using Drawn = JournaledSequence<
      Features, std::array<int, 1>,
      typename std::conditional_t<shape.has_lengths, std::type_identity<SequenceLength<Features::rows>>,
                                  std::type_identity<NoMask>>::type>;
  /// The fingerprint of the stored examples' type and sampling.
  static constexpr std::uint32_t kFingerprint =
      fingerprint("ReplayMemory", Features::rows, Features::cols, shape.capacity, shape.num_classes,
                  static_cast<int>(shape.sampling), shape.has_lengths);

  /// Offers an example: features[rows, cols] with the class `label`; of a sequence, its first `length` rows.
  /// The sampling stores it or not. On an error nothing changes: kInvalidTarget, kInvalidLength, kNotFinite
  /// for a feature that is infinite or NaN, or an error of the flash.
  Status add(ConstView<Features> features, int label, int length = Features::rows) {
    if (label < 0 || label >= shape.num_classes) return Status::kInvalidTarget;
    if (length < 1 || length > Features::rows || (!shape.has_lengths && length != Features::rows))
      return Status::kInvalidLength;
    const int reservoir = reservoir_of(label);
    std::uint32_t& seen = counts_[static_cast<std::size_t>(reservoir)];
    if (seen == ~std::uint32_t{0}) return Status::kOverflow;
    Entry entry{};
    if (const Status packed = pack(features, label, length, entry); packed != Status::kOk) return packed;
    entry.number = seen + 1;
    const std::uint32_t place = place_of(reservoir, entry.number);
    if (place < kQuota) {
      const Status written = self().write(reservoir * kQuota + static_cast<int>(place), entry);
      if (written != Status::kOk) return written;
    }
    ++seen;
    return Status::kOk;
  }

  /// The number of stored examples.
  [[nodiscard]] int size() const {
    int all = 0;
    for (int reservoir = 0; reservoir < kReservoirs; ++reservoir) all += stored(reservoir);
    return all;
  }
  /// The number of stored examples is kCapacity. Further examples replace stored ones.
  [[nodiscard]] bool full() const { return size() == kCapacity; }
  /// The number of examples seen by each reservoir.
  [[nodiscard]] const Counts& counts() const { return counts_; }

  /// Draws a stored example, each with the same probability, and writes its features[rows, cols]: zeros
  /// behind its `length` rows. In place of an example that cannot be read it takes the next one.
  /// kNothingStored: the memory is empty. kUnreadable: no example can be read. Otherwise returns the flash's
  /// error.
  Status draw(Rng& rng, View<Features> features, int& label, int& length) {
    const int count = size();
    if (count == 0) return Status::kNothingStored;
    int index = static_cast<int>(below(rng.next(), static_cast<std::uint32_t>(count)));
    Entry entry;
    Status read = Status::kUnreadable;
    for (int tries = 0; tries < count && read == Status::kUnreadable; ++tries) {
      read = self().read(slot_of(index), entry);
      if (read == Status::kOk && entry.number == 0) read = Status::kUnreadable;
      index = index + 1 < count ? index + 1 : 0;
    }
    if (read != Status::kOk) return read;
    label = entry.label;
    length = entry.length;
    for (int row = 0; row < Features::rows; ++row) {
      kernels::unpack_row(Features::cols, entry.elements + row * Features::cols, entry.scales[row],
                          &features(row, 0));
    }
    return Status::kOk;
  }

  /// The same, as trainers take it.
  Status draw(Rng& rng, Drawn& drawn) {
    int length = 0;
    const Status status = draw(rng, drawn.x, drawn.target[0], length);
    if constexpr (shape.has_lengths) {
      if (status == Status::kOk) return drawn.mask.set_length(length);
    }
    return status;
  }

  /// Draws `count` stored examples, and accumulates them into the trainer's batch, from the input of layer
  /// `layer` on (Trainer::accumulate_from). 0: they are inputs of the model; a TrainingJournal in the place
  /// of the trainer then writes them byte by byte. Returns the first error of draw() or accumulate_from();
  /// examples accumulated before it stay in the batch. A Drawn is on the stack, with features as floats: for
  /// large ones, call draw() with a static one.
  template <int layer = 0, class Trainer>
  Status replay(Trainer& trainer, int count, Rng& rng) {
    constexpr bool kIsJournal = requires(const Drawn& drawn) { trainer.note_sequence(drawn); };
    static_assert(
        Holds<(layer == 0 || !kIsJournal)>,
        "attune::ReplayMemory: a journal has inputs of the model; store these, and replay from layer 0");
    Drawn drawn{};
    for (int i = 0; i < count; ++i) {
      if (const Status status = draw(rng, drawn); status != Status::kOk) return status;
      Status added = Status::kOk;
      if constexpr (kIsJournal) {
        added = trainer.accumulate(drawn).status;
      } else if constexpr (layer == 0) {
        added = trainer.accumulate(drawn.x, drawn.target, drawn.mask).status;
      } else {
        added = trainer.template accumulate_from<layer>(drawn.x, drawn.target, drawn.mask).status;
      }
      if (added != Status::kOk) return added;
    }
    return Status::kOk;
  }

 protected:
  constexpr ReplaySampler() = default;
  explicit constexpr ReplaySampler(std::uint64_t seed) : seed_(seed) {}

  static constexpr int reservoir_of(int label) {
    return shape.sampling == ReplaySampling::kReservoir ? 0 : label;
  }
  void forget_counts() { counts_ = {}; }
  /// Counts a stored example: its reservoir has seen at least its number.
  void count(const Entry& entry) {
    if (entry.number == 0) return;
    std::uint32_t& seen = counts_[static_cast<std::size_t>(reservoir_of(entry.label))];
    seen = larger(seen, entry.number);
  }
  /// Raises counts to at least these.
  void count(const Counts& counts) {
    for (std::size_t i = 0; i < counts.size(); ++i) counts_[i] = larger(counts_[i], counts[i]);
  }

 private:
  static constexpr int kQuota = kCapacity / kReservoirs;

  Self& self() { return static_cast<Self&>(*this); }
  [[nodiscard]] int stored(int reservoir) const {
    const std::uint32_t seen = counts_[static_cast<std::size_t>(reservoir)];
    return seen < static_cast<std::uint32_t>(kQuota) ? static_cast<int>(seen) : kQuota;
  }
  // The slot of stored example `index`.
  [[nodiscard]] int slot_of(int index) const {
    int reservoir = 0;
    for (; index >= stored(reservoir); ++reservoir) index -= stored(reservoir);
    return reservoir * kQuota + index;
  }
  // A random number below `end`, from 32 random bits.
  static constexpr std::uint32_t below(std::uint32_t random, std::uint32_t end) {
    return static_cast<std::uint32_t>(std::uint64_t{random} * end >> 32);
  }
  // Algorithm R: the place of the example with this number in its reservoir; kQuota or more: none.
  [[nodiscard]] std::uint32_t place_of(int reservoir, std::uint32_t number) const {
    if (number <= static_cast<std::uint32_t>(kQuota)) return number - 1;
    Rng rng(mix(seed_ + kGamma * static_cast<std::uint64_t>(reservoir + 1)));
    rng.skip(number);
    return below(rng.next(), number);
  }
  static Status pack(ConstView<Features> features, int label, int length, Entry& entry) {
    for (int row = 0; row < length; ++row) {
      if (!kernels::finite<float>(Features::cols, &features(row, 0))) return Status::kNotFinite;
      entry.scales[row] =
          kernels::pack_row(Features::cols, &features(row, 0), entry.elements + row * Features::cols);
    }
    entry.label = static_cast<std::uint16_t>(label);
    entry.length = static_cast<std::uint16_t>(length);
    return Status::kOk;
  }

  std::uint64_t seed_ = 1;
  Counts counts_{};
};

}  // namespace detail

/// Examples in RAM. A plain value: a store saves the object itself. `Features` is a Tensor of floats, the
/// Input of a model or of one of its layers.
template <class Features, ReplayShape shape>
class ReplayMemory : public detail::ReplaySampler<ReplayMemory<Features, shape>, Features, shape> {
  using Sampler = detail::ReplaySampler<ReplayMemory, Features, shape>;

 public:
  using typename Sampler::Entry;

  constexpr ReplayMemory() = default;
  /// An empty memory. Another seed stores other examples.
  explicit constexpr ReplayMemory(std::uint64_t seed) : Sampler(seed) {}

  /// Forgets all examples.
  void clear() {
    this->forget_counts();
    for (Entry& entry : entries_) entry = {};
  }

 private:
  friend Sampler;

  Status read(int slot, Entry& entry) const {
    entry = entries_[slot];
    return Status::kOk;
  }
  Status write(int slot, const Entry& entry) {
    entries_[slot] = entry;
    return Status::kOk;
  }

  Entry entries_[std::size_t{shape.capacity}]{};
};

}  // namespace ATTUNE_NAMESPACE
