// Text and numbers for a page of HTML. Needs a heap; never included by attune.hpp.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>

#include <attune/kernels/policy.hpp>

namespace ATTUNE_NAMESPACE::host::html {

/// UTF-8 `text`, escaped for use between tags and in attributes. Control characters, which HTML forbids,
/// become U+FFFD.
[[nodiscard]] inline std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default: {
        const auto code = static_cast<unsigned char>(c);
        const bool control = (code < 0x20 && c != '\n' && c != '\t') || code == 0x7F;
        control ? result += "\xEF\xBF\xBD" : result += c;
      }
    }
  }
  return result;
}

/// Up to `digits` significant digits, without trailing zeros; "NaN" and "infinite" for these values.
[[nodiscard]] inline std::string number(double value, int digits = 6) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "infinite" : "−infinite";
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value == 0 ? 0.0 : value);
  return text;
}

/// 12345 as 12,345.
[[nodiscard]] inline std::string count(std::size_t value) {
  const std::string digits = std::to_string(value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

/// Appends parts in order: text as it is, integers in decimal.
template <class... Parts>
void append(std::string& to, const Parts&... parts) {
  const auto add = [&to](const auto& part) {
    if constexpr (std::is_convertible_v<decltype(part), std::string_view>) {
      to += std::string_view(part);
    } else {
      using Part = std::remove_cvref_t<decltype(part)>;
      static_assert(std::is_integral_v<Part> && sizeof(Part) > 1, "text or an integer");
      to += std::to_string(part);
    }
  };
  (add(parts), ...);
}
template <class... Parts>
[[nodiscard]] std::string joined(const Parts&... parts) {
  std::string text;
  append(text, parts...);
  return text;
}

/// 0.95125 as 95.1 %.
[[nodiscard]] inline std::string percent(double share) {
  if (!std::isfinite(share)) return number(share);
  char text[40];
  std::snprintf(text, sizeof text, "%.1f %%", share * 100);
  return text;
}

}  // namespace ATTUNE_NAMESPACE::host::html
