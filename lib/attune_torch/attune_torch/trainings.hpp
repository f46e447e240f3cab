// What a model has to train, for check.hpp and fit.hpp.
#pragma once

#include <type_traits>

#include <attune/attune.hpp>

namespace attune_torch {

/// Whether `Model` has tensors that a training of a part (models/trainable.hpp) moves.
template <class Model, class What>
constexpr bool kTrains = !std::is_empty_v<attune::detail::SetOf<
    Model, attune::ByRole<attune::detail::Rebind<What, attune::Tensor, attune::Tensor>>::template Matrix,
    attune::ByRole<attune::detail::Rebind<What, attune::Tensor, attune::Tensor>>::template Vector>>;

}  // namespace attune_torch
