#include "arguments.hpp"

#include <algorithm>

#include "port.hpp"

namespace port {

int argument(std::string_view name, int fallback) {
  char buffer[256];
  command_line(buffer, sizeof buffer);
  std::string_view rest(buffer);
  const auto next_word = [&rest] {
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    const std::string_view word(rest.data(), std::min(rest.find(' '), rest.size()));  // substr() could throw
    rest.remove_prefix(word.size());
    return word;
  };

  for (std::string_view word = next_word(); !word.empty(); word = next_word()) {
    if (word != name) continue;
    const std::string_view digits = next_word();
    int number = 0;
    for (const char digit : digits) {
      if (digit < '0' || digit > '9' || number > 99'999'999) return fallback;
      number = 10 * number + (digit - '0');
    }
    return digits.empty() ? fallback : number;
  }
  return fallback;
}

}  // namespace port
