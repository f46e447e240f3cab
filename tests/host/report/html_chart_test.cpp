#include <attune/host/report/html_chart.hpp>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "well_formed.hpp"

namespace html = attune::host::html;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();

// The corners of the curve.
std::vector<html::Point> corners(const std::string& svg) {
  std::vector<html::Point> result;
  const std::size_t begin = svg.find("points=\"") + 8;
  std::string text = svg.substr(begin, svg.find('"', begin) - begin);
  char* at = text.data();
  while (*at != '\0') {
    html::Point point{};
    point.x = std::strtod(at, &at);
    point.y = std::strtod(at + 1, &at);
    result.push_back(point);
    while (*at == ' ') ++at;
  }
  return result;
}

}  // namespace

TEST(HtmlChart, the_curve_lies_between_its_axes) {
  const std::string svg = html::chart({{0, 0}, {50, 2}, {100, 1}}, {});
  EXPECT_EQ(check::malformed(svg), "");
  const auto points = corners(svg);
  ASSERT_EQ(points.size(), 3u);
  EXPECT_EQ(points[0].x, 52);  // the left edge
  EXPECT_EQ(points[2].x, 428);
  EXPECT_EQ(points[1].x, 240);
  EXPECT_EQ(points[0].y, 210);  // 0 is the bottom, 2 the top, 1 in the middle
  EXPECT_EQ(points[1].y, 12);
  EXPECT_EQ(points[2].y, 111);
}

TEST(HtmlChart, labels_every_point_with_its_value) {
  const std::string svg = html::chart({{1, 0.25}, {2, 0.125}}, {.name = "a & b", .x_name = "<step>"});
  EXPECT_EQ(check::malformed(svg), "");
  EXPECT_NE(svg.find("<title>&lt;step&gt; 1: 0.25</title>"), std::string::npos);
  EXPECT_NE(svg.find("<title>&lt;step&gt; 2: 0.125</title>"), std::string::npos);
  EXPECT_NE(svg.find("aria-label=\"a &amp; b\""), std::string::npos);
  const std::string shares = html::chart({{1, 0.25}, {2, 0.5}}, {.percent = true});
  EXPECT_NE(shares.find("<title>step 2: 50 %</title>"), std::string::npos);
}

TEST(HtmlChart, values_over_a_decade_may_use_a_logarithmic_axis) {
  const std::vector<html::Point> points{{0, 100}, {1, 10}, {2, 1}};
  const auto equal_steps = corners(html::chart(points, {.may_log = true}));
  EXPECT_NEAR(equal_steps[1].y - equal_steps[0].y, equal_steps[2].y - equal_steps[1].y, 0.1);
  EXPECT_NE(html::chart(points, {.may_log = true}).find("logarithmic"), std::string::npos);
  EXPECT_EQ(html::chart(points, {}).find("logarithmic"), std::string::npos);
  EXPECT_EQ(html::chart({{0, 100}, {1, 0}}, {.may_log = true}).find("logarithmic"), std::string::npos);
}

TEST(HtmlChart, draws_any_series) {
  for (const std::vector<html::Point>& points : {std::vector<html::Point>{},
                                                 {{1, 1}},
                                                 {{1, 0}, {2, 0}},
                                                 {{1, kNan}},
                                                 {{1, 1}, {2, kNan}, {3, 3}},
                                                 {{1, -1e30}, {2, 1e30}},
                                                 {{1, 5}, {1, 5}},
                                                 {{1, 0.3}, {2, 0.1 + 0.2}},
                                                 {{1, 0.7}, {2, std::nextafter(0.7, 1.0)}},
                                                 {{1, 1}, {2, 1}},
                                                 {{1e20, 1e20}, {1e20, 1e20}},
                                                 {{1e20, 1e20}, {std::nextafter(1e20, 2e20), 2e20}},
                                                 {{1, -1e308}, {2, 1e308}},
                                                 {{1, kSmallest}, {2, 1}},
                                                 {{1, 0}, {2, kSmallest}}}) {
    for (const int way : {0, 1, 2}) {
      const std::string svg = html::chart(points, {.percent = way == 2, .may_log = way == 1, .marked = 1});
      EXPECT_EQ(check::malformed(svg), "") << svg;
      EXPECT_LT(svg.size(), 5000u);
      EXPECT_EQ(svg.find("NaN"), std::string::npos) << svg;
      EXPECT_EQ(svg.find("infinite"), std::string::npos) << svg;
    }
  }
  EXPECT_NE(html::chart({}, {}).find("no values"), std::string::npos);
}

TEST(HtmlChart, marks_a_point) {
  EXPECT_EQ(check::occurrences(html::chart({{1, 1}, {2, 2}}, {}), "class=\"ring\""), 0);
  const std::string svg = html::chart({{1, 1}, {2, 2}}, {.marked = 1});
  EXPECT_NE(svg.find("<circle class=\"ring\" r=\"5\" cx=\"428\" cy=\"12\"/>"), std::string::npos) << svg;
}

TEST(HtmlChart, thinning_takes_means) {
  const auto thin = html::thinned({{1, 1}, {2, 3}, {3, 5}, {4, kNan}}, 2);
  ASSERT_EQ(thin.size(), 2u);
  EXPECT_EQ(thin[0].x, 1.5);
  EXPECT_EQ(thin[0].y, 2);
  EXPECT_EQ(thin[1].x, 3);
  EXPECT_EQ(thin[1].y, 5);
  EXPECT_EQ(html::thinned({{1, 1}, {2, 3}}, 150).size(), 2u);
}

TEST(HtmlChart, ticks_are_round_and_cover_all) {
  EXPECT_EQ(html::ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(html::ticks(3, 1799, 4), (std::vector<double>{0, 500, 1000, 1500, 2000}));
  const std::vector<double> same = html::ticks(7, 7, 5);
  EXPECT_LE(same.front(), 7);
  EXPECT_GE(same.back(), 7);
}

TEST(HtmlChart, values_equal_up_to_rounding_share_their_ticks) {
  EXPECT_EQ(html::ticks(0.3, 0.1 + 0.2, 5), html::ticks(0.3, 0.3, 5));
  EXPECT_EQ(html::ticks(-0.7, std::nextafter(-0.7, 0.0), 5), html::ticks(-0.7, -0.7, 5));
  const std::vector<double> far = html::ticks(1e20, std::nextafter(1e20, 2e20), 5);
  EXPECT_LE(far.size(), 11u);
  EXPECT_LE(far.front(), 1e20);
  EXPECT_GT(far.back(), 1e20);
}
