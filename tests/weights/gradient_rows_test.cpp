#include <attune/weights/gradient_rows.hpp>

#include <attune/training/adam.hpp>
#include <attune/training/update_in_backward.hpp>

#include "check.hpp"

namespace {

using Gradient = attune::Tensor<float, 5, 3>;

}  // namespace

TEST(AddRows, gives_all_rows_of_a_tensor_at_once) {
  Gradient gradient{};
  gradient(4, 2) = 1;
  int calls = 0;
  attune::add_rows(attune::view(gradient), [&](int first, const auto& rows) {
    ++calls;
    EXPECT_EQ(first, 0);
    static_assert(std::remove_cvref_t<decltype(rows)>::rows == 5);
    rows(4, 2) += 2;
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(gradient(4, 2), 3.0f);
}

TEST(AddRows, skips_constant_tensors) {
  int calls = 0;
  attune::add_rows(attune::Untrained<float, 5, 3>{}, [&](int, const auto&) { ++calls; });
  EXPECT_EQ(calls, 0);
}

TEST(UpdatesInSet, is_where_backward_updates) {
  struct OfItsOwn {};
  static_assert(!attune::detail::UpdatesInSet<OfItsOwn>);
  struct Updating {
    using Form = attune::Form<attune::Untrained, attune::detail::UpdatedAtOnce>;
  };
  static_assert(attune::detail::UpdatesInSet<Updating>);
}

namespace {

template <attune::Role updated>
struct UpdatedInOneRole {
  template <attune::Role role>
  struct In {
    template <class Scalar, int rows, int cols>
    using Matrix = std::conditional_t<role == updated, attune::detail::UpdatedAtOnce<Scalar, rows, cols>,
                                      attune::Untrained<Scalar, rows, cols>>;
    template <class Scalar, int rows, int cols>
    using Vector = attune::Untrained<Scalar, rows, cols>;
  };
};
template <attune::Role role>
struct SetByRole {
  using Forms = attune::ByRole<UpdatedInOneRole<role>>;
  using Form = attune::Form<Forms::template Matrix, Forms::template Vector>;
};

}  // namespace

TEST(UpdatesInSet, is_where_backward_updates_in_some_role) {
  static_assert(attune::detail::UpdatesInSet<SetByRole<attune::Role::kValues>>);
  static_assert(attune::detail::UpdatesInSet<SetByRole<attune::Role::kGate>>);
  static_assert(!attune::detail::UpdatesInSet<SetByRole<attune::Role{}>>);
}

TEST(UpdateInPlace, makes_dx_of_x_and_adds_the_gradient) {
  attune::Rng rng(3);
  attune::Tensor<float, 4, 5> x, dx;
  attune::Tensor<float, 4, 3> dy;
  Gradient weight, gradient{}, expected{};
  check::fill(x, rng);
  check::fill(dy, rng);
  check::fill(weight, rng);
  attune::multiply_transposed(view(dy), weight, view(dx));
  attune::add_product(view(x).transpose(), view(dy), view(expected));
  attune::update_in_place(view(x), view(dy), weight, view(gradient), attune::kernels::DenseTerms{});
  EXPECT_TRUE(check::same_bits(gradient, expected));
  EXPECT_TRUE(check::same_bits(x, dx));
}
