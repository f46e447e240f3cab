#include <attune/models/trainable.hpp>

#include <attune/kernels/simd/lanes.hpp>

#include "check.hpp"

namespace {

using attune::LowRank, attune::Reference, attune::Role, attune::Tensor, attune::Untrained;
namespace detail = attune::detail;

constexpr LowRank kLowRank{.rank = 2, .roles = Role::kQueries};
using Factors = attune::LowRankFactors<kLowRank, float, 4, 3>;
using Constants = attune::Form<Tensor, Tensor>;
template <class Forms, Role role>
using Matrix = typename Forms::template In<role>::template Matrix<float, 4, 3>;
template <class Forms, Role role>
using Vector = typename Forms::template In<role>::template Vector<float, 1, 3>;

// In the place of a gradient.
template <class Scalar, int kRows, int kCols>
struct Sink : attune::detail::Extents<Scalar, kRows, kCols> {
  static constexpr bool kUpdatesAtOnce = true;
};

}  // namespace

TEST(WhatIsTrained, is_said_by_role) {
  using What = detail::TrainLowRank<kLowRank>;
  static_assert(std::is_same_v<Matrix<What, Role::kQueries>, Factors>);
  static_assert(std::is_same_v<Matrix<What, Role::kKeys>, Untrained<float, 4, 3>>);
  static_assert(std::is_same_v<Vector<What, Role::kQueries>, Untrained<float, 1, 3>>);
  static_assert(std::is_same_v<Vector<detail::TrainVectors, Role::kQueries>, Tensor<float, 1, 3>>);
  static_assert(std::is_same_v<Vector<detail::TrainVectors, Role::kKeys>, Untrained<float, 1, 3>>);
  static_assert(detail::kRankOf<What> == 2 && detail::kRankOf<detail::TrainVectors> == 0);
}

TEST(WhatIsTrained, trained_tensors_live_in_the_parameters) {
  using All = detail::EffectiveWeights<Constants, detail::TrainLowRank<kLowRank>, 5>;
  using Base = Reference<float, 4, 3>;
  static_assert(std::is_same_v<Matrix<All, Role::kQueries>, attune::LowRankWeight<Base, Factors, 5>>);
  static_assert(std::is_same_v<Matrix<All, Role::kValues>, Base>);
  static_assert(std::is_same_v<Vector<All, Role::kQueries>, Reference<float, 1, 3>>);

  const Tensor<float, 4, 3> constant{{1, 2, 3}};
  const Untrained<float, 4, 3> own;
  EXPECT_EQ(detail::effective_weight<5>(constant, own, static_cast<float*>(nullptr)).data(), constant.data());
}

TEST(WhatIsTrained, constants_are_scalars_next_to_lanes) {
  using Scalar = attune::kernels::Lanes<float>;
  using All = detail::EffectiveWeights<Constants, detail::TrainNothing, 5>::In<Role::kProjections>;
  using Weight = All::Matrix<Scalar, 4, 3>;
  static_assert(std::is_same_v<Weight, attune::WeightOfLanes<Scalar, Reference<float, 4, 3>>>);
  static_assert(std::is_same_v<attune::detail::TableForm<Weight>::type, Tensor<Scalar, 4, 3>>);
  static_assert(std::is_same_v<All::Vector<Scalar, 1, 3>, Tensor<Scalar, 1, 3>>);
}

TEST(WhatIsTrained, has_gradients_in_the_form_that_takes_them) {
  using What = detail::TrainLowRank<kLowRank>;
  using Tensors = detail::WeightGradientSinks<What, detail::Rebind<What, Tensor, Tensor>, 5>;
  using Sinks = detail::WeightGradientSinks<What, detail::Rebind<What, Sink, Sink>, 5>;
  using Nothing = detail::WeightGradientSinks<What, detail::Rebind<What, Untrained, Untrained>, 5>;
  static_assert(std::is_same_v<Matrix<Tensors, Role::kQueries>, attune::LowRankGradient<Factors, 5>>);
  static_assert(!detail::UpdatesAtOnce<Matrix<Tensors, Role::kQueries>>);
  static_assert(detail::UpdatesAtOnce<Matrix<Sinks, Role::kQueries>>);
  static_assert(std::is_same_v<Matrix<Sinks, Role::kKeys>, Untrained<float, 4, 3>>);
  static_assert(std::is_same_v<Matrix<Nothing, Role::kQueries>, Untrained<float, 4, 3>>);
  using Vectors = detail::TrainVectors;
  static_assert(
      std::is_same_v<Vector<detail::WeightGradientSinks<Vectors, detail::Rebind<Vectors, Sink, Sink>, 5>,
                            Role::kQueries>,
                     Sink<float, 1, 3>>);
}
