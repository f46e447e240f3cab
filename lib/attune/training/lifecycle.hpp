// The start of a training: random parameters, given parameters, a mix of both, or a saved state.
#pragma once

#include <type_traits>

#include <attune/core/initialize.hpp>
#include <attune/core/rng.hpp>
#include <attune/core/status.hpp>
#include <attune/kernels/matrix_view.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/training/state.hpp>
#include <attune/training/step_result.hpp>
#include <attune/weights/weights.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// An Rng, also a temporary one.
template <class Generator>
concept GivesRng = std::is_same_v<std::remove_reference_t<Generator>, Rng>;

/// A number in place of options is a compile error.
template <class Scalar>
constexpr StepResult<Scalar> number_for_options(PlainNumber auto number) {
  static_assert(Holds<!PlainNumber<decltype(number)>>,
                "attune: options have names, such as {.learning_rate = 1e-3f}");
  return {};
}

}  // namespace detail

/// The common start of all trainers. Self has a state_, or own_state(self). If it accumulates sequences, it
/// has begin_at_state(), which forgets them. With dropout in training, it has own_tape(), whose masks start
/// from the state.
template <class Self, class State>
class TrainingLifecycle {
 public:
  using Parameters = typename State::Parameters;

  /// The whole training after its last step, as a value (state.hpp). Excludes sequences accumulated since
  /// then.
  [[nodiscard]] const State& state() const { return Self::own_state(static_cast<const Self&>(*this)); }
  /// The parameters after the last step.
  [[nodiscard]] const Parameters& parameters() const { return state().parameters; }
  /// Resumes from a state, bit-identically to the training that saved it, on any trainer. Forgets accumulated
  /// sequences. The values are not checked, so protect states with a checksum, as a FlashStore does. On an
  /// error nothing changes: see State::check().
  Status resume(const State& state) {
    if (const Status status = state.check(); status != Status::kOk) return status;
    if (&state != &own()) own() = state;
    begin();
    return Status::kOk;
  }
  /// Resumes from a state that is read into the trainer itself, without a second State in RAM. `read` takes a
  /// State& and returns a Status, as a store's load() does. On an error, or if check() refuses the state, the
  /// trainer stays as `read` left it. If `read` wrote nothing and no update was under way in slices, the
  /// trainer stands after its last step. Otherwise initialize it, or load the parameters in state(); until
  /// then it returns kNotInitialized.
  template <class Read>
    requires std::is_invocable_r_v<Status, const Read&, State&> Status resume(const Read& read) {
      Status status = read(own());
      if (status == Status::kOk) status = own().claim();
      begin();
      return status;
    }

  /// Draws initial parameters, then the start of dropout's masks, from `rng`, which advances. Forgets all
  /// training: gradients, moments and counters become zero.
  template <class Initializer, detail::GivesRng Generator>
  void initialize(const Initializer& initializer, Generator&& rng) {
    attune::initialize(own().parameters, initializer, rng);
    restart(rng);
  }
  /// A call without an initializer or an Rng is a compile error.
  template <class... Arguments>
    requires(sizeof...(Arguments) < 2 || (std::is_arithmetic_v<Arguments> || ...))
  void initialize(const Arguments&...) {
    static_assert(detail::Holds<(sizeof...(Arguments) > 1 && !(std::is_arithmetic_v<Arguments> || ...))>,
                  "attune: initialize() takes an initializer and an Rng: "
                  "initialize(attune::XavierUniform{}, attune::Rng(42))");
  }
  /// Starts from parameters that are partly given; the rest is drawn as by initialize(). `give(set)` then
  /// writes the given part from any source, such as copy_parameters(kBody, set.layer<0>()), without a second
  /// copy.
  template <class Initializer, class Give, detail::GivesRng Generator>
    requires std::is_invocable_r_v<void, const Give&, Parameters&>
  void start_from(const Give& give, const Initializer& initializer, Generator&& rng) {
    attune::initialize(own().parameters, initializer, rng);
    give(own().parameters);
    restart(rng);
  }
  /// Starts from given parameters, such as those trained elsewhere, and forgets all training. Dropout starts
  /// from `rng`, which advances.
  template <detail::GivesRng Generator = Rng>
  void load(const Parameters& parameters, Generator&& rng = Rng{0}) {
    own().parameters = parameters;
    restart(rng);
  }
  /// The same from floats, if the trainer's parameters are in 16 bits: rounds to nearest.
  template <class Floats, detail::GivesRng Generator = Rng>
    requires(std::is_same_v<Floats, typename State::Gradients> && !std::is_same_v<Floats, Parameters>)
  void load(const Floats& parameters, Generator&& rng = Rng{0}) {
    copy_parameters(parameters, own().parameters);
    restart(rng);
  }
  /// Starts from parameters that `read(set)` fills in place, such as from a file. If it returns an error, it
  /// must have changed nothing, as read_safetensors and read_flat guarantee; training then continues
  /// unchanged.
  template <class Read>
    requires std::is_invocable_r_v<Status, const Read&, Parameters&> Status load(const Read& read,
                                                                                 Rng&& rng = Rng{0}) {
      const Status status = read(own().parameters);
      if (status == Status::kOk) restart(rng);
      return status;
    }

 private:
  static auto& own_state(auto& self) { return self.state_; }
  State& own() { return Self::own_state(static_cast<Self&>(*this)); }
  void begin() {
    detail::clear_padding(own());
    static_cast<Self&>(*this).begin_at_state();
  }
  // Forgets all training. The state keeps `rng`, from which masks start.
  void restart(Rng& rng) {
    Self& self = static_cast<Self&>(*this);
    detail::restart(own(), rng);
    self.begin_at_state();
    detail::for_each_dropout([&rng](const DropoutTape&) { (void)(rng.next(), rng.next()); }, self.own_tape());
  }
  static void begin_at_state() {}
  static NoParameters own_tape() { return {}; }
};

}  // namespace ATTUNE_NAMESPACE
