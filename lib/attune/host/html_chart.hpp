// A curve as a picture for a page: SVG with axes, and a value under the pointer. Needs a heap; never included
// by attune.hpp.
#pragma once

#include <algorithm>
#include <vector>

#include <attune/host/html.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::host::html {

struct Point {
  double x;
  double y;
};

struct ChartOptions {
  std::string name = "curve";  // for those who do not see it
  std::string x_name = "step";
  bool percent = false;  // y is a share
  bool may_log = false;  // a logarithmic axis where y is positive and spans a factor of ten
  int marked = -1;       // the index of a point with a ring
};

namespace detail {

/// Whether a point can stand in a chart: finite, and so far from overflow that a sum of points is, too.
[[nodiscard]] inline bool drawable(const Point& point) {
  return std::abs(point.x) < 1e300 && std::abs(point.y) < 1e300;
}

}  // namespace detail

/// At most `most` points: the mean of each of as many equal stretches. What is not finite is left out.
[[nodiscard]] inline std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most) {
  std::vector<Point> result;
  const std::size_t stretches = std::min(most, points.size());
  for (std::size_t i = 0; i < stretches; ++i) {
    const std::size_t begin = points.size() * i / stretches, end = points.size() * (i + 1) / stretches;
    Point mean{0, 0};
    double finite = 0;
    for (std::size_t k = begin; k < end; ++k) {
      if (!detail::drawable(points[k])) continue;
      mean.x += points[k].x;
      mean.y += points[k].y;
      ++finite;
    }
    if (finite > 0) result.push_back({mean.x / finite, mean.y / finite});
  }
  return result;
}

/// Round numbers that cover [low, high], about `wanted` of them: multiples of 1, 2 or 5 times a power of ten.
/// Ends that differ by rounding only count as one value, from which it goes a little upwards. Both below
/// 1e300 in magnitude.
[[nodiscard]] inline std::vector<double> ticks(double low, double high, int wanted) {
  const double size = std::max(std::abs(low), std::abs(high));
  if (!(high - low > std::max(size * 1e-9, 1e-300))) high = low + (size > 1e-290 ? size * 0.1 : 1);
  const double rough = (high - low) / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double ratio = rough / power;
  const double step = power * (ratio <= 1.001 ? 1 : ratio <= 2.001 ? 2 : ratio <= 5.001 ? 5 : 10);
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  std::vector<double> result;
  // Counted in an int: a double of 2⁵³ and above does not grow by 1.
  for (int i = 0; i <= static_cast<int>(last - first); ++i) result.push_back((first + i) * step);
  return result;
}

namespace detail {

// Where a value stands between the ends of an axis, and the values with a line.
struct Axis {
  double low;
  double high;
  bool logarithmic;
  std::vector<double> lines;

  [[nodiscard]] double at(double value) const {
    if (logarithmic) return (std::log(value) - std::log(low)) / (std::log(high) - std::log(low));
    return (value - low) / (high - low);
  }
};

inline Axis axis_of(double low, double high, bool logarithmic, int wanted) {
  if (!logarithmic) {
    std::vector<double> lines = ticks(low, high, wanted);
    return {lines.front(), lines.back(), false, std::move(lines)};
  }
  Axis axis{low, high, true, {}};
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int decades = static_cast<int>(std::floor(std::log10(high))) - first;
  const bool many = high / low > 1e3;
  for (int decade = 0; decade <= decades; decade += 1 + decades / 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, first + decade);
      if (value >= low && value <= high && (factor == 1 || !many)) axis.lines.push_back(value);
    }
  }
  return axis;
}

}  // namespace detail

/// An <svg> of one curve, as wide as where it stands. Points in rising x; what is not finite is left out.
[[nodiscard]] inline std::string chart(const std::vector<Point>& all_points, const ChartOptions& options) {
  std::vector<Point> points;
  for (const Point& point : all_points) {
    if (detail::drawable(point)) points.push_back(point);
  }
  if (points.empty()) return "<p class=\"soft\">no values</p>\n";
  constexpr double kWidth = 440, kHeight = 250, kLeft = 52, kRight = 12, kTop = 12, kBottom = 40;
  const auto by_y = [](const Point& a, const Point& b) { return a.y < b.y; };
  const auto [lowest, highest] = std::minmax_element(points.begin(), points.end(), by_y);
  const bool logarithmic = options.may_log && lowest->y > 0 && highest->y / lowest->y > 10;
  detail::Axis y_axis = detail::axis_of(lowest->y, highest->y, logarithmic, 5);
  if (options.percent && highest->y <= 1) {
    if (y_axis.low >= 1) y_axis = detail::axis_of(0, 1, false, 5);  // nothing but 100 %
    y_axis.high = std::min(y_axis.high, 1.0);
  }
  const detail::Axis x_axis = detail::axis_of(points.front().x, points.back().x, false, 5);
  const double x_high = points.back().x > x_axis.low ? points.back().x : x_axis.high;
  const auto x = [&](double value) {
    return kLeft + (kWidth - kLeft - kRight) * (value - x_axis.low) / (x_high - x_axis.low);
  };
  const auto y = [&](double value) {
    return kHeight - kBottom - (kHeight - kTop - kBottom) * y_axis.at(value);
  };
  const auto text_of = [&](double value, int digits) {
    return options.percent ? number(value * 100, digits) + " %" : number(value, digits);
  };

  std::string svg = joined("<svg class=\"chart\" viewBox=\"0 0 440 250\" role=\"img\" aria-label=\"",
                           escaped(options.name), "\">\n");
  const auto line = [&svg](const char* kind, double x1, double y1, double x2, double y2) {
    append(svg, "<line class=\"", kind, "\" x1=\"", number(x1, 5), "\" y1=\"", number(y1, 5), "\" x2=\"",
           number(x2, 5), "\" y2=\"", number(y2, 5), "\"/>\n");
  };
  const auto text = [&svg](const char* anchor, double at_x, double at_y, const std::string& what) {
    append(svg, "<text text-anchor=\"", anchor, "\" x=\"", number(at_x, 5), "\" y=\"", number(at_y, 5), "\">",
           escaped(what), "</text>\n");
  };
  for (const double value : y_axis.lines) {
    if (value > y_axis.high * (1 + 1e-9)) continue;
    line("grid", kLeft, y(value), kWidth - kRight, y(value));
    text("end", kLeft - 6, y(value) + 4, text_of(value, 3));
  }
  for (const double value : x_axis.lines) {
    if (value > points.back().x) continue;
    line("tick", x(value), kHeight - kBottom, x(value), kHeight - kBottom + 4);
    text("middle", std::min(x(value), kWidth - 16), kHeight - kBottom + 18, number(value));
  }
  line("axis", kLeft, kHeight - kBottom, kWidth - kRight, kHeight - kBottom);
  text("middle", (kLeft + kWidth - kRight) / 2, kHeight - 5,
       options.x_name + (logarithmic ? " (logarithmic scale)" : ""));

  svg += "<polyline class=\"curve\" points=\"";
  for (const Point& point : points) append(svg, number(x(point.x), 5), ",", number(y(point.y), 5), " ");
  svg.back() = '"';
  svg += "/>\n";
  if (points.size() == 1) {
    append(svg, "<circle class=\"dot\" r=\"3\" cx=\"", number(x(points[0].x), 5), "\" cy=\"",
           number(y(points[0].y), 5), "\"/>\n");
  }
  if (options.marked >= 0 && options.marked < static_cast<int>(all_points.size())) {
    const Point& marked = all_points[static_cast<std::size_t>(options.marked)];
    if (detail::drawable(marked)) {
      append(svg, "<circle class=\"ring\" r=\"5\" cx=\"", number(x(marked.x), 5), "\" cy=\"",
             number(y(marked.y), 5), "\"/>\n");
    }
  }
  // Invisible columns, each as wide as half the way to its neighbours, that say what stands there.
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double begin = i == 0 ? kLeft : (x(points[i - 1].x) + x(points[i].x)) / 2;
    const double end = i + 1 == points.size() ? kWidth - kRight : (x(points[i].x) + x(points[i + 1].x)) / 2;
    append(svg, "<rect class=\"hit\" x=\"", number(begin, 5), "\" y=\"12\" width=\"", number(end - begin, 4),
           "\" height=\"198\"><title>", escaped(options.x_name), " ", number(points[i].x), ": ",
           text_of(points[i].y, 6), "</title></rect>\n");
  }
  return svg + "</svg>\n";
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::host::html
