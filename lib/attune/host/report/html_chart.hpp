// A curve as an SVG picture for a page, with axes, and the value under the pointer. Needs a heap; never
// included by attune.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <attune/host/report/html.hpp>

namespace ATTUNE_NAMESPACE::host::html {

struct Point {
  double x;
  double y;
};

struct ChartOptions {
  std::string name = "curve";  // text alternative
  std::string x_name = "step";
  bool percent = false;  // y is a fraction
  bool may_log = false;  // a logarithmic axis if y is positive and spans a factor of ten
  int marked = -1;       // the index of a point with a ring
};

namespace detail {

/// Whether a chart can show a point: it is finite, and small enough that a sum of points is finite.
[[nodiscard]] inline bool drawable(const Point& point) {
  return (std::abs)(point.x) < 1e300 && (std::abs)(point.y) < 1e300;
}

}  // namespace detail

/// At most `most` points, each the mean of an equal stretch. Skips values that are not finite.
[[nodiscard]] inline std::vector<Point> thinned(const std::vector<Point>& points, std::size_t most) {
  std::vector<Point> result;
  const std::size_t stretches = (std::min)(most, points.size());
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

/// About `wanted` round numbers that cover [low, high]: multiples of 1, 2 or 5 times a power of ten. Ends
/// that differ only by rounding count as one value, and the range then extends slightly upwards. Both must be
/// below 1e300 in magnitude.
[[nodiscard]] inline std::vector<double> ticks(double low, double high, int wanted) {
  const double size = (std::max)((std::abs)(low), (std::abs)(high));
  if (!(high - low > (std::max)(size * 1e-9, 1e-300))) high = low + (size > 1e-290 ? size * 0.1 : 1);
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

// An axis: the position of a value between its ends, and the values with a line.
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

/// An <svg> under construction: the positions of values, and the picture so far.
struct Plot {
  static constexpr double kWidth = 440, kHeight = 250;  // in pixels of the view box
  static constexpr double kLeft = 52, kRight = kWidth - 12, kTop = 12, kBottom = kHeight - 40;

  Axis x_axis, y_axis;
  double last_x;  // of the last point
  bool percent;
  std::string svg;

  [[nodiscard]] double x(double value) const {
    const double high = last_x > x_axis.low ? last_x : x_axis.high;
    return kLeft + (kRight - kLeft) * (value - x_axis.low) / (high - x_axis.low);
  }
  [[nodiscard]] double y(double value) const { return kBottom - (kBottom - kTop) * y_axis.at(value); }
  [[nodiscard]] std::string label(double value, int digits) const {
    return percent ? number(value * 100, digits) + " %" : number(value, digits);
  }
  void line(const char* kind, double x1, double y1, double x2, double y2) {
    append(svg, "<line class=\"", kind, "\" x1=\"", number(x1, 5), "\" y1=\"", number(y1, 5), "\" x2=\"",
           number(x2, 5), "\" y2=\"", number(y2, 5), "\"/>\n");
  }
  void text(const char* anchor, double at_x, double at_y, const std::string& content) {
    append(svg, "<text text-anchor=\"", anchor, "\" x=\"", number(at_x, 5), "\" y=\"", number(at_y, 5), "\">",
           escaped(content), "</text>\n");
  }
  void circle(const char* kind, const char* radius, const Point& point) {
    append(svg, "<circle class=\"", kind, "\" r=\"", radius, "\" cx=\"", number(x(point.x), 5), "\" cy=\"",
           number(y(point.y), 5), "\"/>\n");
  }
};

/// Axes for at least one point, in rising x.
inline Plot plot_of(const std::vector<Point>& points, const ChartOptions& options) {
  const auto by_y = [](const Point& a, const Point& b) { return a.y < b.y; };
  const auto [lowest, highest] = std::minmax_element(points.begin(), points.end(), by_y);
  const bool logarithmic = options.may_log && lowest->y > 0 && highest->y / lowest->y > 10;
  Axis y_axis = axis_of(lowest->y, highest->y, logarithmic, 5);
  if (options.percent && highest->y <= 1) {
    if (y_axis.low >= 1) y_axis = axis_of(0, 1, false, 5);  // all values are 100 %
    y_axis.high = (std::min)(y_axis.high, 1.0);
  }
  return {axis_of(points.front().x, points.back().x, false, 5), std::move(y_axis), points.back().x,
          options.percent,
          joined("<svg class=\"chart\" viewBox=\"0 0 440 250\" role=\"img\" aria-label=\"",
                 escaped(options.name), "\">\n")};
}

inline void draw_axes(Plot& plot, const std::string& x_name) {
  for (const double value : plot.y_axis.lines) {
    if (value > plot.y_axis.high * (1 + 1e-9)) continue;
    plot.line("grid", Plot::kLeft, plot.y(value), Plot::kRight, plot.y(value));
    plot.text("end", Plot::kLeft - 6, plot.y(value) + 4, plot.label(value, 3));
  }
  for (const double value : plot.x_axis.lines) {
    if (value > plot.last_x) continue;
    plot.line("tick", plot.x(value), Plot::kBottom, plot.x(value), Plot::kBottom + 4);
    plot.text("middle", (std::min)(plot.x(value), Plot::kWidth - 16), Plot::kBottom + 18, number(value));
  }
  plot.line("axis", Plot::kLeft, Plot::kBottom, Plot::kRight, Plot::kBottom);
  plot.text("middle", (Plot::kLeft + Plot::kRight) / 2, Plot::kHeight - 5,
            x_name + (plot.y_axis.logarithmic ? " (logarithmic scale)" : ""));
}

inline void draw_curve(Plot& plot, const std::vector<Point>& points) {
  plot.svg += "<polyline class=\"curve\" points=\"";
  for (const Point& point : points) {
    append(plot.svg, number(plot.x(point.x), 5), ",", number(plot.y(point.y), 5), " ");
  }
  plot.svg.back() = '"';
  plot.svg += "/>\n";
  if (points.size() == 1) plot.circle("dot", "3", points[0]);
}

/// Invisible columns, each reaching halfway to its neighbors, with the values as their titles.
inline void draw_titles(Plot& plot, const std::vector<Point>& points, const std::string& x_name) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double begin = i == 0 ? Plot::kLeft : (plot.x(points[i - 1].x) + plot.x(points[i].x)) / 2;
    const double end =
        i + 1 == points.size() ? Plot::kRight : (plot.x(points[i].x) + plot.x(points[i + 1].x)) / 2;
    append(plot.svg, "<rect class=\"hit\" x=\"", number(begin, 5), "\" y=\"12\" width=\"",
           number(end - begin, 4), "\" height=\"198\"><title>", escaped(x_name), " ", number(points[i].x),
           ": ", plot.label(points[i].y, 6), "</title></rect>\n");
  }
}

}  // namespace detail

/// An <svg> of one curve, as wide as its container. Points in rising x; skips points that are not finite.
[[nodiscard]] inline std::string chart(const std::vector<Point>& all_points, const ChartOptions& options) {
  std::vector<Point> points;
  for (const Point& point : all_points) {
    if (detail::drawable(point)) points.push_back(point);
  }
  if (points.empty()) return "<p class=\"soft\">no values</p>\n";
  detail::Plot plot = detail::plot_of(points, options);
  detail::draw_axes(plot, options.x_name);
  detail::draw_curve(plot, points);
  if (options.marked >= 0 && options.marked < static_cast<int>(all_points.size())) {
    const Point& marked = all_points[static_cast<std::size_t>(options.marked)];
    if (detail::drawable(marked)) plot.circle("ring", "5", marked);
  }
  detail::draw_titles(plot, points, options.x_name);
  return plot.svg + "</svg>\n";
}

}  // namespace ATTUNE_NAMESPACE::host::html
