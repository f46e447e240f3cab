// The trained tensors of a layer, and their storage in parameters, in gradients, and in other sets
// (models/frozen.hpp).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <attune/execution/layer.hpp>
#include <attune/weights/low_rank.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// Training rules: the storage of a layer's tensors in Parameters, by role (weights/roles.hpp). Key biases are
// excluded unless keys are rotated. Their gradient is zero in exact arithmetic, since softmax ignores a
// common shift, and optimizers would amplify its rounding errors.

struct TrainNothing {
  template <Role>
  using In = Form<Untrained, Untrained>;
};
struct TrainVectors {
  template <Role role>
  struct In {
    template <class Scalar, int rows, int cols>
    using Matrix = Untrained<Scalar, rows, cols>;
    template <class Scalar, int rows, int cols>
    using Vector =
        std::conditional_t<role == Role::kKeys, Untrained<Scalar, rows, cols>, Tensor<Scalar, rows, cols>>;
  };
};
struct TrainEverything {
  template <Role>
  using In = Form<Tensor, Tensor>;
};
template <LowRank low_rank>
constexpr LowRank checked_low_rank() {
  static_assert(Holds<(low_rank.rank > 0)>, "attune::LowRank: the rank must be positive");
  static_assert(Holds<(low_rank.alpha >= 1e-30 && low_rank.alpha <= 1e30)>,
                "attune::LowRank: alpha must be in [1e-30, 1e30]");
  return at_least_one(low_rank, &LowRank::rank);
}
template <LowRank low_rank>
struct TrainLowRank {
  static constexpr int kRank = low_rank.rank;
  static constexpr std::uint32_t kFingerprint = fingerprint(low_rank.alpha);
  using Vectors = std::conditional_t<low_rank.biases_and_norms, TrainVectors, TrainNothing>;
  template <Role role>
  struct In {
    template <class Scalar, int rows, int cols>
    using Matrix =
        std::conditional_t<includes(low_rank.roles, role), LowRankFactors<low_rank, Scalar, rows, cols>,
                           Untrained<Scalar, rows, cols>>;
    template <class Scalar, int rows, int cols>
    using Vector = typename Vectors::template In<role>::template Vector<Scalar, rows, cols>;
  };
};
template <class What>
inline constexpr int kRankOf = 0;
template <class What>
  requires requires { What::kRank; }
inline constexpr int kRankOf<What> = What::kRank;
/// Whether a layer has factors, of an Adapted layer in it.
template <class Layer>
constexpr bool has_factors() {
  bool found = false;
  if constexpr (HasSets<Layer>) {
    visit_leaves([&found](const TensorPath& path,
                          auto&&) { found = found || std::string_view(path.name) == "lora_A"; },
                 SetOf<Layer, Extents, Extents>{});
  }
  return found;
}
template <class Layer, class What, class Trained>
constexpr bool check_trained() {
  constexpr bool kLowRank = kRankOf < What >> 0;
  constexpr bool kVectorsAlone = std::is_same_v<What, TrainVectors>;
  static_assert(Holds<(!kVectorsAlone || HasSets<Layer>)>,
                "attune::BiasesAndNorms: the layer and its parts need ParametersOf<Matrix, Vector>, for sets "
                "without weights");
  static_assert(Holds<(!kVectorsAlone || !std::is_empty_v<Trained>)>,
                "attune::BiasesAndNorms: the layer has no bias and no normalization to train; use Frozen");
  static_assert(
      Holds<(std::is_same_v<What, TrainNothing> || !has_factors<Layer>())>,
      "attune::BiasesAndNorms, Adapted: the layer contains an Adapted layer; merge() its factors first");
  static_assert(Holds<(!kLowRank || HasSets<Layer>)>,
                "attune::Adapted: the layer and its parts need ParametersOf<Matrix, Vector>, for sets with "
                "factors instead of weights");
  static_assert(Holds<(!kLowRank || !std::is_empty_v<Trained>)>,
                "attune::Adapted: no weight of the layer has one of these roles; name others in LowRank");

  return true;
}

/// Whether constants fit a layer: the same tensors in any storage, and tables of positions with at least as
/// many rows.
template <class Layer, const auto& kConstants>
constexpr bool are_constants_of() {
  using Own = SetOf<Layer, Extents, Extents>;
  if constexpr (!requires { visit_leaves(AnyVisitor{}, kConstants); }) {
    return false;
  } else if constexpr (!HasSets<Layer>) {
    return true;  // the layer accepts any constants
  } else {
    struct Shape {
      int rows, cols;
    };
    constexpr std::size_t kCount = [] {
      std::size_t count = 0;
      visit_leaves([&count](const TensorPath&, const auto&) { ++count; }, Own{});
      return count;
    }();
    std::array<Shape, kCount + 1> shapes{};
    std::size_t index = 0;
    visit_leaves(
        [&]<class Leaf>(const TensorPath&, const Leaf&) {
          shapes[index++] = {Leaf::rows, Leaf::cols};
        },
        Own{});
    bool fits = true;
    index = 0;
    visit_leaves(
        [&]<class Leaf>(const TensorPath&, const Leaf&) {
          fits =
              fits && index < kCount && Leaf::rows >= shapes[index].rows && Leaf::cols == shapes[index].cols;
          ++index;
        },
        kConstants);
    return fits && index == kCount;
  }
}
template <class Layer, const auto& kConstants>
constexpr bool check_constants() {
  static_assert(Holds<are_constants_of<Layer, kConstants>()>,
                "attune::Frozen, BiasesAndNorms, Adapted: the constants do not match the layer: they differ "
                "in tensors or shapes");
  return true;
}
template <class Layer, const auto& kConstants>
concept CheckedConstants = check_constants<Layer, kConstants>();

// A reference to a constant weight.
template <class Scalar, class Constant>
constexpr auto weight_of(const Constant& constant) {
  if constexpr (InLanes<Scalar>) {
    return WeightOfLanes<Scalar, decltype(reference_to(constant))>{reference_to(constant)};
  } else {
    return reference_to(constant);
  }
}
// A tensor in the layer's parameters: the constant, the trained one in RAM, or both.
template <int tokens, class Constant, class Own, class Scalar>
constexpr auto effective_weight([[maybe_unused]] const Constant& constant, [[maybe_unused]] const Own& own,
                                [[maybe_unused]] Scalar* room) {
  if constexpr (!IsTrained<Own>) {
    return weight_of<Scalar>(constant);
  } else if constexpr (IsLowRank<Own>) {
    using Base = decltype(weight_of<Scalar>(constant));
    return LowRankWeight<Base, Own, tokens>{weight_of<Scalar>(constant), &own, room};
  } else {
    return reference_to(own);
  }
}
// Constants that no product reads have copies in lanes, made for each call.
template <class Leaf>
concept IsCopied = std::is_same_v<Leaf, Tensor<typename Leaf::Scalar, Leaf::rows, Leaf::cols>>;
// The gradient of such a tensor, given the `gradient` of the trained one.
template <int tokens, class Own, class Gradient, class Scalar>
constexpr auto weight_gradient_sink(const Own& own, Gradient& gradient, [[maybe_unused]] Scalar* room) {
  if constexpr (!IsTrained<Own>) {
    return own;
  } else if constexpr (IsLowRank<Own>) {
    if constexpr (IsTrained<decltype(gradient.a)>) {
      return LowRankGradient<Own, tokens, Gradient>{&own, &gradient, room};
    } else {
      return Untrained<Scalar, Own::rows, Own::cols>{};
    }
  } else if constexpr (std::is_same_v<Own, Gradient>) {
    return detail::GradientReference<Scalar, Own::rows, Own::cols>{gradient.data()};
  } else {
    return gradient;
  }
}

// Other storage of the trained part.
template <class Own, template <class, int, int> class Other>
struct RebindTensor {
  using type = Own;
};
template <class Scalar, int rows, int cols, template <class, int, int> class Other>
struct RebindTensor<Tensor<Scalar, rows, cols>, Other> {
  using type = Other<Scalar, rows, cols>;
};
template <LowRank low_rank, class Scalar, int rows, int cols, template <class, int, int> class Other>
struct RebindTensor<LowRankFactors<low_rank, Scalar, rows, cols>, Other> {
  using type = LowRankFactors<low_rank, Scalar, rows, cols, Other>;
};
template <class What, template <class, int, int> class OfMatrix, template <class, int, int> class OfVector>
struct Rebind {
  template <Role role>
  struct In {
    using Own = typename What::template In<role>;
    template <class Scalar, int rows, int cols>
    using Matrix = typename RebindTensor<typename Own::template Matrix<Scalar, rows, cols>, OfMatrix>::type;
    template <class Scalar, int rows, int cols>
    using Vector = typename RebindTensor<typename Own::template Vector<Scalar, rows, cols>, OfVector>::type;
  };
};
template <class Form, class What, int tokens>
struct EffectiveWeights {
  template <Role role>
  struct In {
    using Own = typename What::template In<role>;
    template <class Constant, class Leaf, class Scalar>
    using Of = decltype(effective_weight<tokens>(std::declval<const Constant&>(), std::declval<const Leaf&>(),
                                                 std::declval<Scalar*>()));
    template <class Scalar, int rows, int cols>
    using Matrix = Of<typename Form::template Matrix<kernels::Real<Scalar>, rows, cols>,
                      typename Own::template Matrix<Scalar, rows, cols>, Scalar>;
    template <class Scalar, int rows, int cols>
    using Vector = typename std::conditional_t<
        InLanes<Scalar> && !IsTrained<typename Own::template Vector<Scalar, rows, cols>>,
        std::type_identity<Tensor<Scalar, rows, cols>>,
        std::type_identity<Of<typename Form::template Vector<kernels::Real<Scalar>, rows, cols>,
                              typename Own::template Vector<Scalar, rows, cols>, Scalar>>>::type;
  };
};
template <class What, class Forms, int tokens>
struct WeightGradientSinks {
  template <Role role>
  struct In {
    using Own = typename What::template In<role>;
    using Gradients = typename Forms::template In<role>;
    template <class Leaf, class Gradient, class Scalar>
    using Of = decltype(weight_gradient_sink<tokens>(std::declval<const Leaf&>(), std::declval<Gradient&>(),
                                                     std::declval<Scalar*>()));
    template <class Scalar, int rows, int cols>
    using Matrix = Of<typename Own::template Matrix<Scalar, rows, cols>,
                      typename Gradients::template Matrix<Scalar, rows, cols>, Scalar>;
    template <class Scalar, int rows, int cols>
    using Vector = Of<typename Own::template Vector<Scalar, rows, cols>,
                      typename Gradients::template Vector<Scalar, rows, cols>, Scalar>;
  };
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
