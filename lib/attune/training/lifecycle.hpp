// What a training starts from: drawn parameters, given ones, some of either, or a training's state.
#pragma once

#include <type_traits>

#include <attune/core/initialize.hpp>
#include <attune/core/rng.hpp>
#include <attune/core/status.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// The part of a trainer that is its beginning: Trainer and ParallelTrainer have it. Self has own_state(),
/// restart(rng), which forgets all that was trained, and begin_at_state(), which forgets what was
/// accumulated.
template <class Self, class State>
class TrainingLifecycle {
 public:
  using Parameters = typename State::Parameters;

  /// All that the training is behind its last step, as a value (state.hpp). Sequences accumulated since then
  /// are not in it.
  [[nodiscard]] const State& state() const { return static_cast<const Self&>(*this).own_state(); }
  /// Goes on from a state, to the bits of the training that it is of, on any trainer. What was accumulated is
  /// forgotten; numbers are not looked at, so keep states behind a checksum, as a FlashStore does. Nothing
  /// has changed where the Status is not kOk: see State::check().
  Status resume(const State& state) {
    if (const Status status = state.check(); status != Status::kOk) return status;
    if (&state != &self().own_state()) self().own_state() = state;
    self().begin_at_state();
    return Status::kOk;
  }
  /// The same, read into the trainer itself, without another State in RAM: `read` is called with a State& and
  /// answers a Status, as a store's load() does. Where that is not kOk, or the state is not one to go on
  /// from, the trainer is as `read` left it: where that wrote nothing, behind its last step, unless an update
  /// was under way in context. Else, and then, it has to be initialized, or loaded with the parameters in
  /// state(): until then it answers kNotInitialized.
  template <class Read>
    requires std::is_invocable_r_v<Status, const Read&, State&>
  [[nodiscard]] Status resume(const Read& read) {
    Status status = read(self().own_state());
    if (status == Status::kOk) status = self().own_state().claim();
    self().begin_at_state();
    return status;
  }

  /// Draws initial parameters from `rng`, which moves on, then where the masks of dropout start, and forgets
  /// all training: gradients, moments and counters become zero.
  template <class Initializer>
  void initialize(const Initializer& initializer, Rng& rng) {
    attune::initialize(own_parameters(), initializer, rng);
    self().restart(rng);
  }
  template <class Initializer>
  void initialize(const Initializer& initializer, Rng&& rng) {
    initialize(initializer, rng);
  }
  /// Starts from parameters of which a part is given, and the rest new: drawn as by initialize(). `give(set)`
  /// then writes what is given, from wherever it stands, as copy_parameters(kBody, set.layer<0>()): there is
  /// no second copy.
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
  /// Starts from given parameters, as of a model trained elsewhere, and forgets all training. Dropout starts
  /// from `rng`, which moves on.
  void load(const Parameters& parameters, Rng& rng) {
    own_parameters() = parameters;
    self().restart(rng);
  }
  void load(const Parameters& parameters, Rng&& rng = Rng{0}) { load(parameters, rng); }
  /// Starts from parameters that `read(set)` fills in, without a copy of them: a file's. When it answers
  /// another Status than kOk it has changed none, as read_safetensors and read_flat, and training goes on as
  /// it was.
  template <class Read>
    requires std::is_invocable_r_v<Status, const Read&, Parameters&>
  [[nodiscard]] Status load(const Read& read, Rng&& rng = Rng{0}) {
    const Status status = read(own_parameters());
    if (status == Status::kOk) self().restart(rng);
    return status;
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
  Parameters& own_parameters() { return self().own_state().parameters; }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
