// A firmware with an interrupt that nothing handles.
#include <cstdint>

int main() {
  const auto set = [](std::uintptr_t address) {
    *reinterpret_cast<volatile std::uint32_t*>(address) = 1U << 6;
  };
  set(0xE000E100);  // enabled
  set(0xE000E200);  // pending
  asm volatile("dsb\n isb");
  return 0;
}
