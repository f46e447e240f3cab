#include <attune/core/gradient_rows.hpp>

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

TEST(AddRows, has_none_of_what_is_not_trained) {
  int calls = 0;
  attune::add_rows(attune::Untrained<float, 5, 3>{}, [&](int, const auto&) { ++calls; });
  EXPECT_EQ(calls, 0);
}

TEST(UpdatesInSet, is_where_backward_updates) {
  struct OfItsOwn {};
  static_assert(!attune::detail::kUpdatesInSet<OfItsOwn>);
  struct Updating {
    using Form = attune::Form<attune::Untrained, attune::detail::UpdatedAtOnce>;
  };
  static_assert(attune::detail::kUpdatesInSet<Updating>);
}
