#include <attune/exchange/state_dict_names.hpp>

#include "exchange/expect_tensors.hpp"

namespace {

using namespace attune;

// A model of a table and two biases, which a file has in one tensor.
struct Small {
  using Scalar = float;
  struct Parameters {
    Tensor<Scalar, 4, 3> table;
    Tensor<Scalar, 1, 2> first;
    Tensor<Scalar, 1, 3> second;
  };
};
struct Names {
  using Model = Small;
  static constexpr bool kWholeFile = true;
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    const TensorPath both{"both", parent};
    visitor(StateDictPlace<StateDictLayout::kTable>{{"table", parent}}, set.table);
    visitor(StateDictPlace<StateDictLayout::kVector>{both, 0, 5}, set.first);
    visitor(StateDictPlace<StateDictLayout::kVector>{both, 2, 5}, set.second);
  }
};

}  // namespace

TEST(StateDictNames, user_names_need_a_model_and_a_visit) {
  static_assert(detail::CheckedNames<Names> && detail::CheckedModel<Small>);
  check::expect_tensors<Names>("both[5] table[4,3]");
}

TEST(StateDictNames, vectors_are_biases_norms_and_appended_keys) {
  EXPECT_TRUE(is_vector(StateDictLayout::kVector) && is_vector(StateDictLayout::kKey));
  EXPECT_TRUE(!is_vector(StateDictLayout::kTable) && !is_vector(StateDictLayout::kTransposed));
}
