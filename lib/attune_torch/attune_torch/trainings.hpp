// What a model has to train, for check.hpp and fit.hpp, and how a trainer is called, for fit.hpp and
// takes.hpp.
#pragma once

#include <type_traits>

#include <attune/attune.hpp>

namespace attune_torch {

/// Whether `Model` has tensors that a training of a part (models/trainable.hpp) moves.
template <class Model, class What>
constexpr bool kTrains = !std::is_empty_v<attune::detail::SetOf<
    Model, attune::ByRole<attune::detail::Rebind<What, attune::Tensor, attune::Tensor>>::template Matrix,
    attune::ByRole<attune::detail::Rebind<What, attune::Tensor, attune::Tensor>>::template Vector>>;

/// Whether a trainer learns from all takes at once, some or all of them without labels.
template <class Trainer>
concept LearnsTakes = requires(Trainer& trainer) {
  trainer.learn(1, 0);
};

/// A trainer's options with the one number that a search varies: the ridge of a head in closed form, else the
/// learning rate.
template <class Trainer>
constexpr typename Trainer::Options options_with(float number) {
  typename Trainer::Options options{};
  if constexpr (requires { options.ridge; }) {
    options.ridge = number;
  } else if constexpr (requires { options.head.ridge; }) {
    options.head.ridge = number;
  } else {
    options.learning_rate = number;
  }
  return options;
}

}  // namespace attune_torch
