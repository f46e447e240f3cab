#include <attune/exchange/state_dict.hpp>

#include <attune/exchange/pytorch_names.hpp>

#include "check.hpp"

namespace {

using namespace attune;
using Layer = Linear<LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
using Attention = MultiHeadAttention<AttentionShape{.seq_len = 5, .d_model = 6, .num_heads = 2}>;
using Vector = StateDictPlace<StateDictLayout::kVector>;
using Weight = StateDictPlace<StateDictLayout::kTransposed>;

// The weight before the bias, each where `weight_rows` and so on say.
template <detail::Name weight_name, detail::Name bias_name, int bias_row, int bias_rows>
struct NamesOf {
  using Model = Layer;
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    visitor(Weight{{weight_name.text, parent}}, set.weight);
    visitor(Vector{{bias_name.text, parent}, bias_row, bias_rows}, set.bias);
  }
};
template <class Names>
inline constexpr detail::StateDict<Names> kTensors{};

static_assert(kTensors<NamesOf<"w", "b", 0, 0>>.parts_cover_tensors);
static_assert(kTensors<NamesOf<"w", "b", 0, 3>>.parts_cover_tensors);
// Rows that no part has, at the end and at the beginning; a part of what has other columns.
static_assert(!kTensors<NamesOf<"w", "b", 0, 4>>.parts_cover_tensors);
static_assert(!kTensors<NamesOf<"w", "b", 1, 4>>.parts_cover_tensors);
static_assert(!kTensors<NamesOf<"w", "b", 3, 6>>.parts_cover_tensors);

static_assert(kTensors<NamesOf<"w", "b", 0, 0>>.names_are_usable());
static_assert(!kTensors<NamesOf<"same", "same", 0, 0>>.names_are_usable());
static_assert(!kTensors<NamesOf<"w\"", "b", 0, 0>>.names_are_usable());
static_assert(!kTensors<NamesOf<"w", "b\\", 0, 0>>.names_are_usable());
static_assert(!kTensors<NamesOf<"w", "b\n", 0, 0>>.names_are_usable());

}  // namespace

TEST(StateDict, is_sorted_by_name_and_found_in) {
  constexpr auto& kSorted = detail::kStateDict<NamesOf<"z.weight", "bias", 0, 0>>;
  EXPECT_EQ(kSorted.kTensors, 2);
  EXPECT_TRUE(kSorted.name(0) == "bias");
  EXPECT_TRUE(kSorted.name(1) == "z.weight");
  EXPECT_EQ(kSorted.parts[0].tensor, 1);
  EXPECT_EQ(kSorted.parts[1].tensor, 0);
  EXPECT_EQ(kSorted.tensors[1].rows, 3);
  EXPECT_EQ(kSorted.tensors[1].cols, 2);
  EXPECT_EQ(kSorted.find("bias"), 0);
  EXPECT_EQ(kSorted.find("z.weight"), 1);
  for (const char* name : {"", "a", "bia", "biases", "z", "z.weights", "zz"})
    EXPECT_EQ(kSorted.find(name), -1);
}

TEST(StateDict, parts_of_packed_tensors_follow_each_other) {
  constexpr auto& kPacked = detail::kStateDict<PyTorchModule<Attention>>;
  // W_q, W_k, W_v, b_q, b_k, b_v, W_o, b_o in in_proj_bias, in_proj_weight, out_proj.bias, out_proj.weight.
  constexpr int kTensor[8] = {1, 1, 1, 0, 0, 0, 3, 2}, kFirst[8] = {0, 36, 72, 0, 6, 12, 0, 0};
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(kPacked.parts[i].tensor, kTensor[i]);
    EXPECT_EQ(kPacked.parts[i].first, kFirst[i]);
  }
}
