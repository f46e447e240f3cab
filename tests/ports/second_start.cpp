// Starts the second core, resets the first one, and starts the second one again out of its program.
#include <attune/attune.hpp>
#include <console.hpp>
#include <port.hpp>
#include <second_core.hpp>
#include <ticks.hpp>

namespace {

constinit attune::TwoCores<port::SecondCore> cores{};
int calls[2];

}  // namespace

int main() {
  cores.start();
  cores.for_each(20, [](int member, int) { ++calls[member]; });
  if (port::reset_count() == 0) port::reset();
  const bool ok = calls[0] == 10 && calls[1] == 10;
  port::print(ok ? "both cores after a reset\n" : "FAILED\n");
  return ok ? 0 : 1;
}
