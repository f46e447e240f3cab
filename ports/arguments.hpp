// Options that a program was started with, e.g. `--steps 100`, over port::command_line.
#pragma once

#include <string_view>

namespace port {

// The whole number after the word `name`; `fallback` where the command line has no such option or no number
// follows it.
int argument(std::string_view name, int fallback);

}  // namespace port
