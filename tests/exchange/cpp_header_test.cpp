#include <attune/exchange/cpp_header.hpp>

#include <string_view>

#include <attune/layers/linear.hpp>

#include "check.hpp"

namespace {

using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 2}>;

struct Outer {
  Model::Parameters query;

  static void visit(const auto& visitor, const attune::TensorPath* parent, auto&&... sets) {
    const attune::TensorPath path{"query", parent};
    Model::Parameters::visit(visitor, &path, sets.query...);
  }
};

struct Text {
  char characters[4096];
  std::size_t length = 0;
  int slices = 0;
  bool whole_lines = true;

  void operator()(const char* text, std::size_t size) {
    for (std::size_t i = 0; i < size && length < sizeof characters; ++i) characters[length++] = text[i];
    whole_lines = whole_lines && size > 0 && text[size - 1] == '\n';
    ++slices;
  }
  [[nodiscard]] std::string_view view() const { return {characters, length}; }
};
Text text;

template <class Parameters>
std::string_view header_of(const Parameters& parameters, const attune::CppHeaderOptions& options = {}) {
  text = {};
  attune::write_cpp_header(parameters, options, text);
  return text.view();
}
template <class Scalar>
std::string_view literal_of(Scalar value) {
  text = {};
  attune::detail::HeaderText<Text> line(text);
  line.add_literal(value);
  line.line();
  return {text.view().data(), text.length - 1};
}

}  // namespace

TEST(CppHeader, is_an_array_that_from_flat_reads) {
  const Model::Parameters parameters{.weight = {{1, -0.5f, 0.1f, 0}}, .bias = {{3, -2}}};
  const std::string_view expected =
      R"(// constexpr auto parameters = attune::from_flat<Model::Parameters>(firmware::model::kTrained);
#pragma once

#include <limits>

namespace firmware::model {

inline constexpr float kTrained[6] = {
    // weight [2, 2]
    0x1p+0f, -0x1p-1f, 0x1.99999ap-4f, 0x0p+0f,
    // bias [1, 2]
    0x1.8p+1f, -0x1p+1f,
};

}  // namespace firmware::model
)";
  EXPECT_TRUE(header_of(parameters, {.name_space = "firmware::model", .name = "kTrained"}) == expected);
  EXPECT_TRUE(text.whole_lines);
}

TEST(CppHeader, has_lines_of_some_literals) {
  using Wide = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 9, .d_out = 9}>;
  Wide::Parameters parameters{};
  for (float& value : parameters.weight.values) value = -std::numeric_limits<float>::max();
  const std::string_view header = header_of(parameters);
  EXPECT_TRUE(text.whole_lines);
  std::size_t longest = 0, literals = 0;
  for (std::size_t begin = 0, end; (end = header.find('\n', begin)) != std::string_view::npos;
       begin = end + 1)
    longest = end - begin > longest ? end - begin : longest;
  for (std::size_t at = 0; (at = header.find("-0x1.fffffep+127f,", at)) != std::string_view::npos; ++at)
    ++literals;
  EXPECT_LE(longest, 110u);
  EXPECT_EQ(literals, 81u);
}

TEST(CppHeader, names_tensors_by_their_path) {
  const std::string_view header = header_of(Outer{});
  EXPECT_NE(header.find("    // query.weight [2, 2]\n"), std::string_view::npos);
}

TEST(CppHeader, literals_are_exact) {
  using Floats = std::numeric_limits<float>;
  using Doubles = std::numeric_limits<double>;
  EXPECT_TRUE(literal_of(0.1f) == "0x1.99999ap-4f");
  EXPECT_TRUE(literal_of(-0.0f) == "-0x0p+0f");
  EXPECT_TRUE(literal_of(0.0) == "0x0p+0");
  EXPECT_TRUE(literal_of(Floats::max()) == "0x1.fffffep+127f");
  EXPECT_TRUE(literal_of(Floats::min()) == "0x1p-126f");
  EXPECT_TRUE(literal_of(Floats::denorm_min()) == "0x0.000002p-126f");
  EXPECT_TRUE(literal_of(0.1) == "0x1.999999999999ap-4");
  EXPECT_TRUE(literal_of(Doubles::denorm_min()) == "0x0.0000000000001p-1022");
  EXPECT_TRUE(literal_of(-Doubles::max()) == "-0x1.fffffffffffffp+1023");
  EXPECT_TRUE(literal_of(-Floats::infinity()) == "-std::numeric_limits<float>::infinity()");
  EXPECT_TRUE(literal_of(Doubles::quiet_NaN()) == "std::numeric_limits<double>::quiet_NaN()");
}
