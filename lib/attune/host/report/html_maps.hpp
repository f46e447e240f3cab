// Matrices and memory as pictures for a page. Needs a heap; never included by attune.hpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <attune/core/memory.hpp>
#include <attune/host/report/html.hpp>

namespace ATTUNE_NAMESPACE::host::html {

struct MapOptions {
  std::string name = "matrix";  // text alternative
  std::string row_name = "query";
  std::string col_name = "key";
  double full = 1;  // value of the full color; 0 has no color
};

/// An <svg> of values[rows, cols] as cells, as wide as its container. Up to 4096 cells show their values
/// under the pointer.
[[nodiscard]] inline std::string map(int rows, int cols, const std::vector<double>& values,
                                     const MapOptions& options = {}) {
  const bool small = rows * cols <= 4096;
  std::string svg = joined("<svg class=\"map\" viewBox=\"0 0 ", cols * 10, " ", rows * 10,
                           "\" role=\"img\" aria-label=\"", escaped(options.name), "\">\n");
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < cols; ++j) {
      const double value = values[static_cast<std::size_t>(i * cols + j)];
      const double share = options.full > 0 ? std::clamp(value / options.full, 0.0, 1.0) : 0.0;
      if (!small && share < 0.005) continue;
      append(svg, "<rect x=\"", j * 10, "\" y=\"", i * 10, "\" width=\"10\" height=\"10\" fill-opacity=\"",
             number(std::isnan(value) ? 0 : share, 3), "\"");
      if (small) {
        append(svg, "><title>", escaped(options.row_name), " ", i, ", ", escaped(options.col_name), " ", j,
               ": ", number(value, 3), "</title></rect>\n");
      } else {
        svg += "/>\n";
      }
    }
  }
  return svg + "</svg>\n";
}

/// A <table> of counts[classes, classes], with a row for each true class and a column for each prediction.
/// Shades are fractions of a row.
[[nodiscard]] inline std::string confusion_table(const std::vector<std::string>& names,
                                                 const std::vector<std::int64_t>& counts) {
  const std::size_t classes = names.size();
  std::string table = "<table class=\"confusion\">\n<tr><th></th>";
  for (const std::string& name : names) append(table, "<th scope=\"col\">", escaped(name), "</th>");
  table += "<th scope=\"col\">right</th></tr>\n";
  for (std::size_t i = 0; i < classes; ++i) {
    std::int64_t total = 0;
    for (std::size_t j = 0; j < classes; ++j) total += counts[i * classes + j];
    const double all = total > 0 ? static_cast<double>(total) : 1;
    append(table, "<tr><th scope=\"row\">", escaped(names[i]), "</th>");
    for (std::size_t j = 0; j < classes; ++j) {
      const std::int64_t number_of = counts[i * classes + j];
      const double share = static_cast<double>(number_of) / all;
      // Mistakes are few but interesting, so their shades start at a fifth.
      const double shade = number_of == 0 ? 0 : i == j ? 0.1 + 0.45 * share : 0.2 + 0.6 * share;
      append(table, "<td class=\"", i == j ? "hit" : "miss", number_of == 0 ? " none" : "",
             "\" style=\"--shade:", number(shade, 3), "\">", number_of, "</td>");
    }
    append(table, "<td>", (total > 0 ? percent(static_cast<double>(counts[i * classes + i]) / all) : "–"),
           "</td></tr>\n");
  }
  return table + "</table>\n";
}

/// A device's memory, by class.
struct Memory {
  std::string name;  // "RAM of training"
  MemoryReport bytes;
};

/// A bar for each memory, all on one scale, and a <table> of the bytes.
[[nodiscard]] inline std::string memory_map(const std::vector<Memory>& memories) {
  struct Class {
    const char* name;
    std::size_t MemoryReport::*bytes;
  };
  static constexpr Class kClasses[] = {{"parameters", &MemoryReport::parameters},
                                       {"gradients", &MemoryReport::gradients},
                                       {"moments", &MemoryReport::moments},
                                       {"tape", &MemoryReport::tape},
                                       {"scratch", &MemoryReport::scratch},
                                       {"inputs", &MemoryReport::inputs},
                                       {"state", &MemoryReport::state}};
  std::size_t largest = 1;
  for (const Memory& memory : memories) largest = (std::max)(largest, memory.bytes.total());

  std::string text;
  for (const Memory& memory : memories) {
    append(text, "<div class=\"barname\">", escaped(memory.name), " <b>", count(memory.bytes.total()),
           "</b> bytes</div>\n<div class=\"bar\">");
    int number_of = 0;
    for (const Class& of : kClasses) {
      const std::size_t bytes = memory.bytes.*of.bytes;
      const std::string color = joined("m", number_of++);
      if (bytes == 0) continue;
      append(text, "<span class=\"", color, "\" style=\"width:",
             number(100.0 * static_cast<double>(bytes) / static_cast<double>(largest), 5), "%\" title=\"",
             of.name, ": ", count(bytes), " bytes\"></span>");
    }
    text += "</div>\n";
  }
  text += "<div class=\"wide\"><table class=\"bytes\">\n<tr><th scope=\"col\">bytes</th>";
  for (const Memory& memory : memories) append(text, "<th scope=\"col\">", escaped(memory.name), "</th>");
  text += "</tr>\n";
  int number_of = 0;
  for (const Class& of : kClasses) {
    const std::string color = joined("m", number_of++);
    bool used = false;
    for (const Memory& memory : memories) used = used || memory.bytes.*of.bytes > 0;
    if (!used) continue;
    append(text, "<tr><th scope=\"row\"><span class=\"key ", color, "\"></span>", of.name, "</th>");
    for (const Memory& memory : memories) append(text, "<td>", count(memory.bytes.*of.bytes), "</td>");
    text += "</tr>\n";
  }
  text += "<tr><th scope=\"row\">total</th>";
  for (const Memory& memory : memories) append(text, "<td><b>", count(memory.bytes.total()), "</b></td>");
  return text + "</tr>\n</table></div>\n";
}

}  // namespace ATTUNE_NAMESPACE::host::html
