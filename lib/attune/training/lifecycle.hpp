// The start of a training: random parameters, given parameters, a mix of both, or a saved state.
#pragma once

#include <type_traits>

#include <attune/core/initialize.hpp>
#include <attune/core/rng.hpp>
#include <attune/core/status.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

/// The common start of Trainer and ParallelTrainer. Self has own_state(), restart(rng), which forgets all
/// training, and begin_at_state(), which forgets accumulated sequences.
template <class Self, class State>
class TrainingLifecycle {
 public:
  using Parameters = typename State::Parameters;

  /// The whole training after its last step, as a value (state.hpp). Excludes sequences accumulated since
  /// then.
  [[nodiscard]] const State& state() const { return static_cast<const Self&>(*this).own_state(); }
  /// Resumes from a state, bit-identically to the training that saved it, on any trainer. Forgets accumulated
  /// sequences. The values are not checked, so protect states with a checksum, as a FlashStore does. On an
  /// error nothing changes: see State::check().
  Status resume(const State& state) {
    if (const Status status = state.check(); status != Status::kOk) return status;
    if (&state != &self().own_state()) self().own_state() = state;
    self().begin_at_state();
    return Status::kOk;
  }
  /// Resumes from a state that is read into the trainer itself, without a second State in RAM. `read` takes a
  /// State& and returns a Status, as a store's load() does. On an error, or if check() refuses the state, the
  /// trainer stays as `read` left it. If `read` wrote nothing and no update was under way in slices, the
  /// trainer stands after its last step. Otherwise initialize it, or load the parameters in state(); until
  /// then it returns kNotInitialized.
  template <class Read>
    requires std::is_invocable_r_v<Status, const Read&, State&> Status resume(const Read& read) {
      Status status = read(self().own_state());
      if (status == Status::kOk) status = self().own_state().claim();
      self().begin_at_state();
      return status;
    }

  /// Draws initial parameters, then the start of dropout's masks, from `rng`, which advances. Forgets all
  /// training: gradients, moments and counters become zero.
  template <class Initializer>
  void initialize(const Initializer& initializer, Rng& rng) {
    attune::initialize(own_parameters(), initializer, rng);
    self().restart(rng);
  }
  template <class Initializer>
  void initialize(const Initializer& initializer, Rng&& rng) {
    initialize(initializer, rng);
  }
  /// Starts from parameters that are partly given; the rest is drawn as by initialize(). `give(set)` then
  /// writes the given part from any source, such as copy_parameters(kBody, set.layer<0>()), without a second
  /// copy.
  template <class Initializer, class Give>
    requires std::is_invocable_r_v<void, const Give&, Parameters&>
  void start_from(const Give& give, const Initializer& initializer, Rng& rng) {
    attune::initialize(own_parameters(), initializer, rng);
    give(own_parameters());
    self().restart(rng);
  }
  template <class Initializer, class Give>
    requires std::is_invocable_r_v<void, const Give&, Parameters&>
  void start_from(const Give& give, const Initializer& initializer, Rng&& rng) {
    start_from(give, initializer, rng);
  }
  /// Starts from given parameters, such as those trained elsewhere, and forgets all training. Dropout starts
  /// from `rng`, which advances.
  void load(const Parameters& parameters, Rng& rng) {
    own_parameters() = parameters;
    self().restart(rng);
  }
  void load(const Parameters& parameters, Rng&& rng = Rng{0}) { load(parameters, rng); }
  /// The same from floats, if the trainer's parameters are in 16 bits: rounds to nearest.
  template <class Floats, class Generator = Rng>
    requires(std::is_same_v<Floats, typename State::Gradients> && !std::is_same_v<Floats, Parameters>)
  void load(const Floats& parameters, Generator&& rng = Rng{0}) {
    copy_parameters(parameters, own_parameters());
    self().restart(rng);
  }
  /// Starts from parameters that `read(set)` fills in place, such as from a file. If it returns an error, it
  /// must have changed nothing, as read_safetensors and read_flat guarantee; training then continues
  /// unchanged.
  template <class Read>
    requires std::is_invocable_r_v<Status, const Read&, Parameters&> Status load(const Read& read,
                                                                                 Rng&& rng = Rng{0}) {
      const Status status = read(own_parameters());
      if (status == Status::kOk) self().restart(rng);
      return status;
    }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  Parameters& own_parameters() { return self().own_state().parameters; }
};

}  // namespace ATTUNE_NAMESPACE
