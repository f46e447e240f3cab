// What models of layers are made of: sequential.hpp, repeat.hpp, residual.hpp.
#pragma once

#include <algorithm>
#include <iterator>

#include <attune/core/batch.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/core/initialise.hpp>
#include <attune/attention/mask.hpp>
#include <attune/training/plan.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

// A tuple that is a plain value and has no byte for what is empty. (Empty members are not stored: two of one
// type would need two addresses.)
template <class...>
struct Members {};
template <class Only>
struct Members<Only> {
  Only first;
};
template <class Only>
  requires std::is_empty_v<Only>
struct Members<Only> {
  using Empty = Only;
};
template <class First, class Second, class... Rest>
struct Members<First, Second, Rest...> {
  First first;
  [[no_unique_address]] Members<Second, Rest...> rest;
};
template <class First, class Second, class... Rest>
  requires std::is_empty_v<First>
struct Members<First, Second, Rest...> {
  using Empty = First;
  [[no_unique_address]] Members<Second, Rest...> rest;
};

/// Member number `index`: a reference, or a value of its empty type.
template <int index, class Set>
constexpr decltype(auto) member(Set& members) {
  if constexpr (index > 0) {
    return member<index - 1>(members.rest);
  } else if constexpr (requires { members.first; }) {
    return (members.first);
  } else {
    return typename Set::Empty{};
  }
}

template <int index, class First, class... Rest>
struct TypeAt : TypeAt<index - 1, Rest...> {};
template <class First, class... Rest>
struct TypeAt<0, First, Rest...> {
  using type = First;
};

// Layers that follow each other: an error names both, with their shapes.
template <class Layer, class Next, int output_rows, int output_cols, int input_rows, int input_cols>
struct OutputFitsInput {
  static_assert(
      output_rows == input_rows && output_cols == input_cols,
      "attune: the output of a layer does not fit the input of the next; OutputFitsInput<layer, next, "
      "output rows, output cols, input rows, input cols> names them");
  static constexpr bool value = true;
};
template <class Layer, class Next = Layer>
inline constexpr bool kFits = [] {
  static_assert(
      !kTakesIds<Next>,
      "attune: a layer that takes token ids must be the first one of a Sequential; no layer's output "
      "are ids, so it fits neither behind another nor in a Repeat or a Residual");
  if constexpr (!kTakesIds<Next>) {
    return OutputFitsInput<Layer, Next, Layer::Output::rows, Layer::Output::cols, Next::Input::rows,
                           Next::Input::cols>::value;
  }
}();

// Layer::forward(…), with the mask if the layer takes one.
template <class Layer, class Mask, class... Arguments>
ATTUNE_INLINE Outcome<Layer> forward_through(const Mask& mask, Arguments&&... arguments) {
  if constexpr (requires { Layer::forward(std::forward<Arguments>(arguments)..., mask); }) {
    return Layer::forward(std::forward<Arguments>(arguments)..., mask);
  } else {
    static_assert(
        requires { Layer::forward(std::forward<Arguments>(arguments)...); },
        "attune: a layer of a model has forward(parameters, x, y, scratch[, mask]) and forward(parameters, "
        "x, y, tape, scratch[, mask]); one with a second input, as DecoderLayer, is called by hand");
    return Layer::forward(std::forward<Arguments>(arguments)...);
  }
}

// first(), and then rest() unless first refuses its input. What first answers.
template <class First, class Rest>
ATTUNE_INLINE auto in_turn(const First& first, const Rest& rest) {
  if constexpr (std::is_void_v<decltype(first())>) {
    first();
    rest();
  } else {
    const Status status = first();
    if (status == Status::kOk) rest();
    return status;
  }
}

// The same layer of another scalar; a layer that nobody asks for one needs no WithScalar.
template <class Layer, class Other>
struct WithScalarOf {
  using type = typename Layer::template WithScalar<Other>;
};

// A layer's set with other things in the place of tensors (parameters.hpp).
template <class Layer, template <class, int, int> class Matrix, template <class, int, int> class Vector>
struct SetOfLayer {
  using type = typename Layer::Parameters;
};
template <class Layer, template <class, int, int> class Matrix, template <class, int, int> class Vector>
  requires requires { typename Layer::template ParametersOf<Matrix, Vector>; }
struct SetOfLayer<Layer, Matrix, Vector> {
  using type = typename Layer::template ParametersOf<Matrix, Vector>;
};
template <class Layer, template <class, int, int> class Matrix, template <class, int, int> class Vector>
using SetOf = typename SetOfLayer<Layer, Matrix, Vector>::type;
/// Whether a layer, and each one in it, has sets of anything else than tensors.
template <class Layer>
inline constexpr bool kHasSets = std::is_empty_v<SetOf<Layer, Untrained, Untrained>>;

// What a layer tapes and uses for a backward to such gradients, and whether that reads its input.
template <class Layer, class Gradients>
struct Kept {
  using Tape = typename Layer::Tape;
  using Scratch = typename Layer::Scratch;
};
template <class Layer, class Gradients>
  requires requires { typename Layer::template TapeOf<Gradients>; }
struct Kept<Layer, Gradients> {
  using Tape = typename Layer::template TapeOf<Gradients>;
  using Scratch = typename Layer::template ScratchOf<Gradients>;
};
template <class Layer, class Gradients>
using TapeOf = typename Kept<Layer, Gradients>::Tape;
template <class Layer, class Gradients>
using ScratchOf = typename Kept<Layer, Gradients>::Scratch;
template <class Layer, class Gradients>
inline constexpr bool kReadsInput = [] {
  if constexpr (requires { Layer::template kReadsInput<Gradients>; }) {
    return Layer::template kReadsInput<Gradients>;
  } else {
    return true;
  }
}();

/// Whether a layer's parameters are constants (frozen.hpp).
template <class Layer>
inline constexpr bool kFrozen = requires {
  requires Layer::kFrozen;
};

inline constexpr const char* kNumbers[] = {"0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",
                                           "8",  "9",  "10", "11", "12", "13", "14", "15",
                                           "16", "17", "18", "19", "20", "21", "22", "23"};
inline constexpr int kMostLayers = static_cast<int>(std::size(kNumbers));

// An array that has no byte where its elements are empty.
template <class Element, int count>
struct Copies {
  Element elements[count];
  constexpr Element& operator[](int i) { return elements[i]; }
  constexpr const Element& operator[](int i) const { return elements[i]; }
};
template <class Element, int count>
  requires std::is_empty_v<Element>
struct Copies<Element, count> {
  constexpr Element operator[](int) const { return {}; }
};

// Storage for things of several types, one at a time.
template <class...>
union OneOf {};
template <class First, class... Rest>
union OneOf<First, Rest...> {
  First first;
  OneOf<Rest...> rest;
};
template <int index, class Union>
constexpr auto& one_of(Union& storage) {
  if constexpr (index > 0) {
    return one_of<index - 1>(storage.rest);
  } else {
    return storage.first;
  }
}

// The gradients, or in inference the activations, on both sides of a layer: each boundary uses the buffer
// that its neighbours do not.
template <class Scalar, int size, int boundaries>
struct Turns {
  Tensor<Scalar, 1, size> buffers[boundaries < 2 ? boundaries : 2];
  template <class Matrix>
  MatrixView<Scalar, Matrix::rows, Matrix::cols> at(int boundary) {
    return MatrixView<Scalar, Matrix::rows, Matrix::cols>(buffers[boundary % 2].data());
  }
};
template <class Scalar, int size>
struct Turns<Scalar, size, 0> {};

template <class Input>
using ConstView = typename Stacked<Input, 1>::One;
template <class Matrix>
using MutableView = MatrixView<typename Matrix::Scalar, Matrix::rows, Matrix::cols>;

// Where dx goes. Ids have no gradient, and what takes them no backward with dx.
template <class Layer>
struct InputGradientOf {
  using View = MutableView<typename Layer::Input>;
};
template <class Layer>
  requires kTakesIds<Layer>
struct InputGradientOf<Layer> {
  struct View;
};

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
