#include <attune/core/status.hpp>

#include "check.hpp"

TEST(Status, every_one_has_a_message_of_its_own) {
  constexpr int kLast = static_cast<int>(attune::Status::kPaddingToken);
  for (int a = 0; a <= kLast; ++a) {
    const char* text = attune::message(static_cast<attune::Status>(a));
    EXPECT_GT(std::strlen(text), 1u);
    EXPECT_NE(std::strcmp(text, "unknown status"), 0);
    for (int b = 0; b < a; ++b)
      EXPECT_NE(std::strcmp(text, attune::message(static_cast<attune::Status>(b))), 0);
  }
}

TEST(Status, ok_is_zero) {
  static_assert(attune::Status{} == attune::Status::kOk);
  EXPECT_STREQ(attune::message(attune::Status::kOk), "ok");
}

TEST(Status, a_number_from_outside_has_a_message_too) {
  EXPECT_STREQ(attune::message(static_cast<attune::Status>(250)), "unknown status");
}

TEST(Status, wrong_arithmetic_names_the_floats_of_a_pico) {
  const std::string_view text = message(attune::Status::kWrongArithmetic);
  EXPECT_NE(text.find("pico_set_float_implementation(app compiler)"), std::string_view::npos) << text;
}
