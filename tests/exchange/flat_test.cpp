#include <attune/exchange/flat.hpp>

#include <array>

#include <attune/layers/linear.hpp>

#include "check.hpp"

namespace {

using attune::Status;
using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
using Parameters = Model::Parameters;
using References = Model::ParametersOf<attune::Reference, attune::Reference>;

constexpr float kValues[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
constexpr std::array<float, 9> kArray{1, 2, 3, 4, 5, 6, 7, 8, 9};

constexpr Parameters kParameters = attune::from_flat<Parameters>(kValues);
static_assert(kParameters.weight(1, 0) == 4 && kParameters.bias(0, 2) == 9);
static_assert(attune::from_flat<Parameters>(kArray).bias(0, 0) == 7);

constexpr References kReferences = attune::from_flat<References>(kValues);
static_assert(kReferences.bias.first == kValues + 6);

constexpr std::array<float, 9> written_at_compile_time() {
  std::array<float, 9> values{};
  return attune::write_flat(kParameters, values) == Status::kOk ? values : std::array<float, 9>{};
}
static_assert(written_at_compile_time() == kArray);

}  // namespace

TEST(Flat, is_all_tensors_in_the_order_of_their_visit) {
  Parameters parameters{};
  EXPECT_EQ(attune::read_flat(kValues, parameters), Status::kOk);
  EXPECT_EQ(parameters.weight(0, 0), 1.0f);
  EXPECT_EQ(parameters.weight(1, 2), 6.0f);
  EXPECT_EQ(parameters.bias(0, 0), 7.0f);
  float values[9] = {};
  EXPECT_EQ(attune::write_flat(parameters, values), Status::kOk);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(values[i], kValues[i]);
}

TEST(Flat, takes_spans_of_any_extent) {
  float values[9] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
  Parameters parameters{};
  EXPECT_EQ(attune::read_flat(std::span(&values[0], 9), parameters), Status::kOk);
  EXPECT_EQ(parameters.weight(0, 0), 9.0f);
  EXPECT_EQ(attune::write_flat(kParameters, std::span(&values[0], 9)), Status::kOk);
  EXPECT_EQ(values[8], 9.0f);
}

TEST(Flat, with_another_count_changes_nothing) {
  float values[10] = {};
  Parameters parameters = kParameters;
  for (const std::size_t count : {0u, 8u, 10u}) {
    EXPECT_EQ(attune::read_flat(std::span(&values[0], count), parameters), Status::kInvalidLength);
    EXPECT_EQ(attune::write_flat(kParameters, std::span(&values[0], count)), Status::kInvalidLength);
  }
  EXPECT_EQ(attune::hash_bits(parameters), attune::hash_bits(kParameters));
  for (const float value : values) EXPECT_EQ(value, 0.0f);
}

TEST(Flat, can_be_referenced_in_place) {
  constexpr float kSample[2] = {1, -1};
  Model::Output of_copy, of_references;
  Model::InferenceScratch scratch;
  Model::forward(kParameters, kSample, of_copy, scratch);
  Model::forward(kReferences, kSample, of_references, scratch);
  for (int j = 0; j < 3; ++j) EXPECT_EQ(of_references(0, j), of_copy(0, j));
  EXPECT_EQ(of_copy(0, 0), 1.0f - 4.0f + 7.0f);
}
