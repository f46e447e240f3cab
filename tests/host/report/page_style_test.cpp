#include <attune/host/report/page_style.hpp>

#include <gtest/gtest.h>

#include "well_formed.hpp"

TEST(PageStyle, loads_nothing_and_ends_no_element) {
  const std::string style = attune::host::kPageStyle;
  for (const char* never : {"url(", "@import", "http", "<", "&"}) {
    EXPECT_EQ(style.find(never), std::string::npos) << never;
  }
  EXPECT_EQ(check::occurrences(style, "{"), check::occurrences(style, "}"));
}

TEST(PageStyle, every_color_has_a_dark_one) {
  const std::string style = attune::host::kPageStyle;
  const std::size_t dark = style.find("prefers-color-scheme: dark");
  ASSERT_NE(dark, std::string::npos);
  for (const char* color : {"--page:", "--card:", "--line:", "--ink:", "--soft:", "--accent:", "--good:",
                            "--bad:", "--m0:", "--m1:", "--m2:", "--m3:", "--m4:", "--m5:", "--m6:"}) {
    EXPECT_LT(style.find(color), dark) << color;
    EXPECT_NE(style.find(color, dark), std::string::npos) << color;
  }
}
