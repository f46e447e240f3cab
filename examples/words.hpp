// Options that are words or paths, beside the numbers of arguments.hpp: for examples on a PC.
#pragma once

#include <arguments.hpp>
#include <port.hpp>

#include <string>
#include <string_view>

/// The word behind `name` on the command line; empty without one.
inline std::string word_after(std::string_view name) {
  char line[4096];
  port::command_line(line, sizeof line);
  std::string text(" "), key(" ");
  text.append(line).append(" ");
  key.append(name).append(" ");
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return {};
  const std::size_t first = at + key.size();
  return text.substr(first, text.find(' ', first) - first);
}
