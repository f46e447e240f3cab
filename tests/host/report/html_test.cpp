#include <attune/host/report/html.hpp>

#include <limits>

#include <gtest/gtest.h>

#include "well_formed.hpp"

namespace html = attune::host::html;

TEST(Html, text_is_escaped) {
  EXPECT_EQ(html::escaped("<b onclick=\"x()\">1 & 2's</b>"),
            "&lt;b onclick=&quot;x()&quot;&gt;1 &amp; 2&#39;s&lt;/b&gt;");
  EXPECT_EQ(html::escaped("8×8 – ü"), "8×8 – ü");
  EXPECT_EQ(html::escaped(std::string_view("a\0\x1b\nb", 5)), "a\xEF\xBF\xBD\xEF\xBF\xBD\nb");
}

TEST(Html, numbers_are_short) {
  EXPECT_EQ(html::number(0.5), "0.5");
  EXPECT_EQ(html::number(1.0 / 3, 3), "0.333");
  EXPECT_EQ(html::number(-0.0), "0");
  EXPECT_EQ(html::number(std::numeric_limits<double>::quiet_NaN()), "NaN");
  EXPECT_EQ(html::number(-std::numeric_limits<double>::infinity()), "−infinite");
  EXPECT_EQ(html::count(0), "0");
  EXPECT_EQ(html::count(999), "999");
  EXPECT_EQ(html::count(1000), "1,000");
  EXPECT_EQ(html::count(1234567), "1,234,567");
  EXPECT_EQ(html::percent(0.95125), "95.1 %");
  EXPECT_EQ(html::percent(std::numeric_limits<double>::quiet_NaN()), "NaN");
}

TEST(Html, parts_are_joined) { EXPECT_EQ(html::joined("a", std::string("b"), 3, std::size_t{4}), "ab34"); }

// The check of the other tests can fail.
TEST(Html, malformed_markup_is_found) {
  EXPECT_EQ(check::malformed("<!DOCTYPE html>\n<a b=\"c\"><d/>x &amp; y</a>\n"), "");
  for (const char* wrong :
       {"", "<a>", "<a></b>", "<a><b></a></b>", "<a b=c/>", "<a b=\"1\" b=\"2\"/>", "<a>1 < 2</a>",
        "<a>&</a>", "<a>&nbsp;</a>", "<a b=\"<\"/>", "<a/>text", "<a/><b/>", "<a b=\"1\""}) {
    EXPECT_NE(check::malformed(wrong), "") << wrong;
  }
}
