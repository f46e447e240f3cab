#include <attune/host/report/html_maps.hpp>

#include <limits>

#include <gtest/gtest.h>

#include "well_formed.hpp"

namespace html = attune::host::html;

TEST(HtmlMaps, a_cell_for_every_value) {
  const std::string svg = html::map(2, 3, {0, 0.25, 1, 0.5, 2, -1}, {.full = 1});
  EXPECT_EQ(check::malformed(svg), "");
  EXPECT_EQ(check::occurrences(svg, "<rect "), 6);
  EXPECT_NE(svg.find("viewBox=\"0 0 30 20\""), std::string::npos);
  EXPECT_NE(
      svg.find("<rect x=\"10\" y=\"0\" width=\"10\" height=\"10\" fill-opacity=\"0.25\"><title>query 0, "
               "key 1: 0.25</title></rect>"),
      std::string::npos)
      << svg;
  // Out of range is drawn as the end of the range, and said as it is.
  EXPECT_NE(svg.find("fill-opacity=\"1\"><title>query 1, key 1: 2</title>"), std::string::npos);
  EXPECT_NE(svg.find("fill-opacity=\"0\"><title>query 1, key 2: -1</title>"), std::string::npos);
}

TEST(HtmlMaps, nan_has_no_color) {
  const std::string svg = html::map(1, 1, {std::numeric_limits<double>::quiet_NaN()});
  EXPECT_NE(svg.find("fill-opacity=\"0\"><title>query 0, key 0: NaN"), std::string::npos);
}

TEST(HtmlMaps, a_large_map_stays_small) {
  const std::vector<double> diagonal = [] {
    std::vector<double> values(100 * 100);
    for (std::size_t i = 0; i < 100; ++i) values[i * 100 + i] = 1;
    return values;
  }();
  const std::string svg = html::map(100, 100, diagonal);
  EXPECT_EQ(check::malformed(svg), "");
  EXPECT_EQ(check::occurrences(svg, "<rect "), 100);
}

TEST(HtmlMaps, confusion_has_the_counts_and_the_share_that_was_right) {
  const std::string table = html::confusion_table({"cat", "<dog>", "none"}, {30, 10, 0, 1, 7, 0, 0, 0, 0});
  EXPECT_EQ(check::malformed(table), "");
  EXPECT_NE(table.find(">30</td>"), std::string::npos);
  EXPECT_NE(table.find("class=\"miss\" style=\"--shade:0.35\">10</td>"), std::string::npos) << table;
  EXPECT_NE(table.find("75.0 %"), std::string::npos);
  EXPECT_NE(table.find("87.5 %"), std::string::npos);
  EXPECT_NE(table.find("<th scope=\"row\">&lt;dog&gt;</th>"), std::string::npos);
  EXPECT_NE(table.find("<td>–</td>"), std::string::npos);  // no example of the last class
}

TEST(HtmlMaps, memory_is_a_bar_of_its_classes_and_a_table) {
  const std::string text = html::memory_map(
      {{"training & all", {.parameters = 1000, .gradients = 1000, .moments = 2000, .tape = 4000}},
       {"flash", {.parameters = 1000}}});
  EXPECT_EQ(check::malformed("<div>" + text + "</div>"), "");
  EXPECT_NE(text.find("training &amp; all <b>8,000</b> bytes"), std::string::npos) << text;
  // In the scale of the largest.
  EXPECT_EQ(check::occurrences(text, "class=\"m0\" style=\"width:12.5%\" title=\"parameters: 1,000 bytes\""),
            2);
  EXPECT_EQ(check::occurrences(text, "class=\"m3\" style=\"width:50%\" title=\"tape: 4,000 bytes\""), 1);
  EXPECT_EQ(text.find("scratch"), std::string::npos);  // nobody has any
  EXPECT_NE(text.find("<td><b>8,000</b></td><td><b>1,000</b></td>"), std::string::npos) << text;
}
