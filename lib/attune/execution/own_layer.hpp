// Slices, valid lengths and updates in backward for your own layers.
//
// If tokens do not meet in a layer, its Stream of one token can run on one token at a time. This happens in
// three cases: in slices, for a sequence shorter than the layer, and in backward with a mask, which skips
// tokens with dy zero. Sums over tokens are added to the gradients in token order. The bits equal a layer's
// that adds each token's term to its gradient in that order.
//
// If parameters are updated at once (training/update_in_backward.hpp), a layer without the ability
// updates_in_backward adds to its own gradients, in scratch. They are passed on after its backward, so the
// layer may read its parameters at any time.
#pragma once

#include <type_traits>

#include <attune/core/memory.hpp>
#include <attune/core/parameters.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/ops/zero_skipping.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// Work per token (slices.hpp): every element and every parameter once.
template <class Layer>
inline constexpr int kWorkOfToken = 4 * (Layer::Input::cols + Layer::Output::cols) +
                                    static_cast<int>(kBytes<typename Layer::Parameters> /
                                                     sizeof(typename Layer::Scalar));

/// Runs forward on the tokens of a context. `memory` is empty: a scratch for inference; a tape and a scratch
/// for training.
template <class Layer>
void forward_by_token(const auto& context, const auto& parameters, ConstView<typename Layer::Input> x,
                      View<typename Layer::Output> y, const auto&... memory) {
  using One = OfLength<Layer, 1>;
  context.template each_token<Layer::Input::rows, kWorkOfToken<Layer>>([&](int i) {
    const auto from = x.template rows_at<1>(i);
    const auto to = y.template rows_at<1>(i);
    if constexpr (sizeof...(memory) == 1) {
      typename One::InferenceScratch scratch;
      One::forward(parameters, from, to, scratch);
    } else {
      typename One::Tape tape;
      typename One::Scratch scratch;
      One::forward(parameters, from, to, tape, scratch);
    }
  });
}
/// Runs backward on the tokens of a context. With a mask, a token with dy zero gets dx zero and adds nothing.
template <class Layer, AnyContext Call>
void backward_by_token(const Call& context, const auto& parameters, ConstView<typename Layer::Input> x,
                       const auto&, ConstView<typename Layer::Output> dy, auto&& dx, auto& gradients,
                       const auto&) {
  using One = OfLength<Layer, 1>;
  const auto all = sink<typename Layer::Input>(dx);
  context.template each_token<Layer::Input::rows, kWorkOfToken<Layer>>([&](int i) {
    if (Call::kSkipsZeros && kernels::is_zero_row(Layer::Output::cols, &dy(i, 0))) {
      for (int j = 0; j < Layer::Input::cols; ++j) all(i, j) = typename Layer::Scalar(0);
      return;
    }
    typename One::Tape tape;
    typename One::Scratch scratch;
    One::backward(parameters, x.template rows_at<1>(i), tape, dy.template rows_at<1>(i),
                  all.template rows_at<1>(i), gradients, scratch);
  });
}

// ---- The layer's own gradients. ----

// A tensor in place of a gradient that is used at once; else the gradient itself. Factors of low rank, and
// storage by role, have their own place (weights/low_rank.hpp, weights/roles.hpp).
template <class Leaf, class Scalar, int rows, int cols>
struct CollectedLeaf {
  using Storage = std::conditional_t<IsTrained<Leaf>, Tensor<Scalar, rows, cols>, Leaf>;
  using Sink = std::conditional_t<IsTrained<Leaf>, GradientReference<Scalar, rows, cols>, Leaf>;

  static void clear(auto& storage) { storage.set_zero(); }
  // The sink that adds to `storage`, instead of `updated`.
  static Sink sink(auto& storage, const auto& /*updated*/) { return {storage.data()}; }
  static void pass_on(const auto& storage, const auto& updated) {
    add_rows(view(updated), [&storage](int first, const auto& to) {
      for (int i = 0; i < to.rows; ++i) {
        for (int j = 0; j < to.cols; ++j) to(i, j) += storage(first + i, j);
      }
    });
  }
};
template <class Leaf>
using StorageOfLeaf = typename Leaf::Storage;
template <class Leaf>
using SinkOfLeaf = typename Leaf::Sink;
template <class Form, template <class> class PartOf,
          class Asked = typename Form::template Matrix<float, 0, 0>>
struct Collected {
  template <class Scalar, int rows, int cols>
  using Matrix =
      PartOf<CollectedLeaf<typename Form::template Matrix<Scalar, rows, cols>, Scalar, rows, cols>>;
  template <class Scalar, int rows, int cols>
  using Vector =
      PartOf<CollectedLeaf<typename Form::template Vector<Scalar, rows, cols>, Scalar, rows, cols>>;
};

/// Whether storage by role (weights/roles.hpp) updates a parameter at once in any role.
template <class Asked>
inline constexpr bool kUpdatesInRole = false;
/// Whether a set of gradients updates any parameter at once. If so, backward computes dx before the gradients
/// of parameters, and may not write dx over x, which it reads again.
template <class Gradients>
concept UpdatesInSet = UpdatesAnyAtOnce<typename FormOf<std::remove_cvref_t<Gradients>>::type> ||
    kUpdatesInRole<typename FormOf<std::remove_cvref_t<Gradients>>::type::template Matrix<float, 0, 0>>;

/// Whether a backward to such gradients needs its own gradients, because the layer does not declare its order
/// of reads.
template <class Layer, class Gradients>
concept CollectsGradients =
    !(std::is_empty_v<typename Layer::Parameters> || kAbilities<Layer>.updates_in_backward ||
      requires { typename Layer::template ScratchOf<Gradients>; }) &&
    UpdatesInSet<Gradients>;
template <class Layer, class Gradients>
  requires CollectsGradients<Layer, Gradients>
struct LayerMemory<Layer, Gradients> {
  using Tape = typename Layer::Tape;
  struct Scratch {
    using Form = Collected<typename FormOf<std::remove_cvref_t<Gradients>>::type, StorageOfLeaf>;
    [[no_unique_address]] typename Layer::Scratch layer;
    [[no_unique_address]] SetOf<Layer, Form::template Matrix, Form::template Vector> collected;
  };
};

template <class Scratch>
concept Collects = requires(Scratch& scratch) {
  scratch.collected;
};
/// The layer's own scratch; returns any other argument unchanged.
template <class Argument>
ATTUNE_INLINE constexpr Argument& without_collected(Argument& argument) {
  return argument;
}
ATTUNE_INLINE constexpr auto& without_collected(Collects auto& scratch) { return scratch.layer; }

/// Calls backward with zeroed gradients and the layer's own scratch, then passes these gradients on.
template <class Layer>
void collect(const auto& backward, const auto& parameters, const auto& x, auto& tape, const auto& dy,
             auto&& dx, auto& gradients, Collects auto& scratch) {
  auto& collected = scratch.collected;
  const auto for_each_leaf = [&](const auto& body, auto&... sinks) {
    for_each_tensor(
        [&body](const TensorPath&, auto& storage, const auto& updated, auto&... sink) {
          using Storage = std::remove_cvref_t<decltype(storage)>;
          using Updated = std::remove_cvref_t<decltype(updated)>;
          body(CollectedLeaf<Updated, typename Storage::Scalar, Storage::rows, Storage::cols>{}, storage,
               updated, sink...);
        },
        collected, gradients, sinks...);
  };
  for_each_leaf([](auto of, auto& storage, const auto&) { of.clear(storage); });
  using Own = std::remove_cvref_t<decltype(collected)>;
  if constexpr (std::is_same_v<Own, typename Layer::Parameters>) {
    backward(parameters, x, tape, dy, dx, collected, scratch.layer);
  } else {
    using Form = Collected<typename FormOf<std::remove_cvref_t<decltype(gradients)>>::type, SinkOfLeaf>;
    SetOf<Layer, Form::template Matrix, Form::template Vector> sinks{};
    for_each_leaf(
        [](auto of, auto& storage, const auto& updated, auto& sink) { sink = of.sink(storage, updated); },
        sinks);
    backward(parameters, x, tape, dy, dx, sinks, scratch.layer);
  }
  for_each_leaf([](auto of, auto& storage, const auto& updated) { of.pass_on(storage, updated); });
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
