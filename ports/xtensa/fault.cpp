// What an exception leaves behind, as text, then exit with kFaultExitCode.
#include "../console.hpp"
#include "../port.hpp"

extern "C" [[noreturn, gnu::used]] void report_fault(std::uint32_t cause, std::uint32_t pc,
                                                     std::uint32_t address) {
  port::print("\nfault: exception on ", port::name(), '\n');
  port::print("  exccause ", port::hex8(cause), "  pc ", port::hex8(pc), "  excvaddr ", port::hex8(address),
              '\n');
  port::exit(port::kFaultExitCode);
}
