// What a training starts from: drawn parameters, given ones, or some of either.
#pragma once

#include <type_traits>

#include <attune/core/initialise.hpp>
#include <attune/core/rng.hpp>
#include <attune/core/status.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// The part of a trainer that is its beginning: Trainer and ParallelTrainer have it. Self has
/// own_parameters(), and restart(rng), which forgets all that was trained.
template <class Self, class Parameters>
class StartsTraining {
 public:
  /// Draws initial parameters from `rng`, which moves on, then where the masks of dropout start, and forgets
  /// all training: gradients, moments and counters become zero.
  template <class Initialiser>
  void initialise(const Initialiser& initialiser, Rng& rng) {
    attune::initialise(self().own_parameters(), initialiser, rng);
    self().restart(rng);
  }
  template <class Initialiser>
  void initialise(const Initialiser& initialiser, Rng&& rng) {
    initialise(initialiser, rng);
  }
  /// Starts from parameters of which a part is given, and the rest new: drawn as by initialise(). `give(set)`
  /// then writes what is given, from wherever it stands, as copy_parameters(kBody, set.layer<0>()): there is
  /// no second copy.
  template <class Initialiser, class Give>
    requires std::is_invocable_r_v<void, const Give&, Parameters&>
  void start_from(const Give& give, const Initialiser& initialiser, Rng& rng) {
    attune::initialise(self().own_parameters(), initialiser, rng);
    give(self().own_parameters());
    self().restart(rng);
  }
  template <class Initialiser, class Give>
    requires std::is_invocable_r_v<void, const Give&, Parameters&>
  void start_from(const Give& give, const Initialiser& initialiser, Rng&& rng) {
    start_from(give, initialiser, rng);
  }
  /// Starts from given parameters, as of a model trained elsewhere, and forgets all training. Dropout starts
  /// from `rng`, which moves on.
  void load(const Parameters& parameters, Rng& rng) {
    self().own_parameters() = parameters;
    self().restart(rng);
  }
  void load(const Parameters& parameters, Rng&& rng = Rng{0}) { load(parameters, rng); }
  /// Starts from parameters that `read(set)` fills in, without a copy of them: a file's. When it answers
  /// another Status than kOk it has changed none, as read_safetensors and read_flat, and training goes on as
  /// it was.
  template <class Read>
    requires std::is_invocable_r_v<Status, const Read&, Parameters&>
  [[nodiscard]] Status load(const Read& read, Rng&& rng = Rng{0}) {
    const Status status = read(self().own_parameters());
    if (status == Status::kOk) self().restart(rng);
    return status;
  }

 private:
  Self& self() { return static_cast<Self&>(*this); }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
