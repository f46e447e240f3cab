// What a text is to be like, and how it begins, from the command line.
#pragma once

#include <algorithm>
#include <string_view>

#include <arguments.hpp>
#include <attune/models/sampling.hpp>
#include <port.hpp>

#include "model.hpp"
#include "vocabulary.hpp"

namespace stream {

/// Bytes, from two hexadecimal digits each behind `--prompt`: they pass wherever an option does.
class Prompt {
 public:
  static constexpr std::size_t kLongest = 64;

  Prompt() {
    char buffer[256];
    port::command_line(buffer, sizeof buffer);
    std::string_view digits(buffer);
    constexpr std::string_view kName = "--prompt ";
    const std::size_t at = digits.find(kName);
    if (at == std::string_view::npos) return;
    digits.remove_prefix(at + kName.size());
    length_ = 0;
    for (; digits.size() >= 2 && digits[0] != ' ' && length_ < kLongest; digits.remove_prefix(2)) {
      bytes_[length_++] = static_cast<char>(16 * value_of(digits[0]) + value_of(digits[1]));
    }
  }

  [[nodiscard]] std::string_view text() const { return {bytes_, length_}; }

 private:
  static int value_of(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

  static constexpr std::string_view kUsual = "And the king said";
  char bytes_[kLongest] = {};
  std::size_t length_ = kUsual.copy(bytes_, kLongest);
};

struct Options {
  Prompt prompt;
  int tokens = std::max(port::argument("--tokens", kTokens), 1);
  std::uint64_t seed = static_cast<std::uint64_t>(port::argument("--seed", 1));
  attune::SamplingOptions sampling{
      .temperature = static_cast<float>(port::argument("--temperature", 700)) / 1000,
      .top_k = port::argument("--top-k", 40),
  };
};

}  // namespace stream
