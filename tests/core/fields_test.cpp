#include <cmath>

#include <attune/core/fields.hpp>

#include <attune/attune.hpp>

#include "check.hpp"

namespace {

/// Every kind of field.
template <template <class, int, int> class Matrix, template <class, int, int> class Vector, bool kBias>
struct Inner {
  [[no_unique_address]] Matrix<float, 4, 3> weight;
  [[no_unique_address]] Vector<float, 1, 3> bias;
  ATTUNE_FIELDS(Weight(weight), Bias(bias))
};
template <template <class, int, int> class Matrix, template <class, int, int> class Vector>
struct Inner<Matrix, Vector, false> {
  [[no_unique_address]] Matrix<float, 4, 3> weight;
  ATTUNE_FIELDS(Weight(weight))
};
template <bool kBias, template <class, int, int> class Matrix = attune::Tensor,
          template <class, int, int> class Vector = Matrix>
struct Set {
  [[no_unique_address]] Inner<Matrix, Vector, kBias> first;
  [[no_unique_address]] Inner<Matrix, Vector, true> second;
  [[no_unique_address]] Vector<float, 1, 5> factors;
  [[no_unique_address]] Vector<float, 1, 5> offsets;
  [[no_unique_address]] Vector<float, 1, 400> key;
  ATTUNE_FIELDS(Set(first), Inline(second), NormWeight(factors), NormBias(offsets), KeyBias(key))
};

/// "first.weight0 weight0 ": of each tensor its set, its name and its kind.
struct Names {
  char text[100] = {};
  int length = 0;

  void add(const char* part) {
    while (*part != '\0' && length < 99) text[length++] = *part++;
  }
};
template <class Parameters>
Names names_of(const Parameters& parameters) {
  Names names;
  attune::for_each_tensor(
      [&names](const attune::TensorPath& path, const auto&) {
        const char kind[] = {static_cast<char>('0' + static_cast<int>(path.kind)), ' ', '\0'};
        if (path.parent != nullptr) {
          names.add(path.parent->name);
          names.add(".");
        }
        names.add(path.name);
        names.add(kind);
      },
      parameters);
  return names;
}

/// A set that inherits its fields, or none.
struct Derived : Inner<attune::Tensor, attune::Tensor, true> {};
struct DerivedOfNone : attune::NoParameters {};

static_assert(std::is_trivially_copyable_v<Set<false>> && std::is_aggregate_v<Set<false>>);
static_assert(sizeof(Set<true>) == sizeof(Set<false>) + 3 * sizeof(float));
static_assert(std::is_empty_v<Inner<attune::Untrained, attune::Untrained, false>>);

}  // namespace

TEST(Fields, are_visited_in_the_order_of_the_list_with_names_and_kinds) {
  EXPECT_STREQ(names_of(Set<true>{}).text, "first.weight0 first.bias1 weight0 bias1 factors2 offsets1 key1 ");
}

TEST(Fields, under_a_condition_that_does_not_hold_have_no_bytes_and_no_name) {
  EXPECT_STREQ(names_of(Set<false>{}).text, "first.weight0 weight0 bias1 factors2 offsets1 key1 ");
}

TEST(Fields, have_the_same_names_in_every_form) {
  EXPECT_STREQ(names_of(Set<true, attune::TransposedReference, attune::Reference>{}).text,
               names_of(Set<true>{}).text);
  EXPECT_STREQ(names_of(Set<true, attune::Int8Weights, attune::Tensor>{}).text, names_of(Set<true>{}).text);
}

TEST(Fields, start_as_their_kind_does) {
  Set<true> set;
  attune::Rng rng(1);
  set.initialize(attune::LinearDefault{}, rng);
  for (const float value : set.factors.values) EXPECT_EQ(value, 1.0f);
  for (const float value : set.offsets.values) EXPECT_EQ(value, 0.0f);
  for (const float value : set.first.bias.values) EXPECT_TRUE(value != 0 && std::abs(value) <= 0.5f);
  EXPECT_TRUE(set.first.weight(0, 0) != set.second.weight(0, 0));
  float squares = 0;
  for (const float value : set.key.values) squares += value * value;
  EXPECT_TRUE(squares > 0.7f && squares < 1.3f);
}

TEST(Fields, draw_numbers_in_the_order_of_the_list) {
  Set<true> set;
  attune::Rng rng(7), again(7);
  set.initialize(attune::XavierUniform{}, rng);
  attune::Tensor<float, 4, 3> first, second;
  attune::XavierUniform{}.weight(first, again);
  attune::XavierUniform{}.weight(second, again);
  EXPECT_TRUE(check::same_bits(set.first.weight, first));
  EXPECT_TRUE(check::same_bits(set.second.weight, second));
}

TEST(Fields, are_inherited) {
  EXPECT_STREQ(names_of(Derived{}).text, "weight0 bias1 ");
  EXPECT_STREQ(names_of(DerivedOfNone{}).text, "");
}
