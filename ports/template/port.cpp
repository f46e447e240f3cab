// The functions of port.hpp on a board without a debugger: text goes out of a serial port, time comes from
// SysTick. Without this file they are answered over semihosting. Start-up, fault reports and stack
// measurement are the family's.
//
// As it stands, UART 0 and the clock of the Arm MPS2 board. What to change is marked with (1), (2) and (3).
#include "../port.hpp"

namespace {

using Register = volatile std::uint32_t;

Register& at(std::uintptr_t address) { return *reinterpret_cast<Register*>(address); }

// (1) The processor's clock. After reset most chips run from a slow internal oscillator: this is that one's
// frequency, until your own code has switched to another.
constexpr std::uint32_t kClockHertz = 25'000'000;

// (2) The serial port: set it up for 115,200 baud on the first byte, then wait for room and send. Some chips
// need the clock of the peripheral and the function of its pin switched on first.
constexpr std::uintptr_t kUart = 0x40004000;
constexpr std::uintptr_t kData = kUart + 0x0, kState = kUart + 0x4, kControl = kUart + 0x8,
                         kDivider = kUart + 0x10;

void send(char byte) {
  constexpr std::uint32_t kTransmitEnable = 1, kTransmitFull = 1;
  if (at(kControl) != kTransmitEnable) {
    at(kDivider) = kClockHertz / 115'200;
    at(kControl) = kTransmitEnable;
  }
  while ((at(kState) & kTransmitFull) != 0) {
  }
  at(kData) = static_cast<unsigned char>(byte);
}

// SysTick counts down from kReload once a millisecond and is the same on every Cortex-M.
constexpr std::uintptr_t kTickControl = 0xE000E010, kTickReload = 0xE000E014, kTickValue = 0xE000E018;
constexpr std::uint32_t kReload = kClockHertz / 1000 - 1;
volatile std::uint32_t milliseconds = 0;

}  // namespace

// In the vector table; without one of its own a board takes this interrupt for a fault.
extern "C" void systick_handler() { milliseconds = milliseconds + 1; }

namespace port {

void write(const char* text, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) send(text[i]);
}

// Starts the clock when it is first asked.
std::uint64_t microseconds() {
  if (at(kTickControl) == 0) {
    constexpr std::uint32_t kProcessorClock = 1U << 2, kInterrupt = 1U << 1, kEnable = 1U;
    at(kTickReload) = kReload;
    at(kTickValue) = 0;
    at(kTickControl) = kProcessorClock | kInterrupt | kEnable;
  }
  std::uint32_t whole, rest;
  do {  // again if the millisecond changed in between
    whole = milliseconds;
    rest = at(kTickValue);
  } while (whole != milliseconds);
  return std::uint64_t{whole} * 1000U + (kReload - rest) / (kClockHertz / 1'000'000U);
}

// Nobody is there to type options or to watch a bar grow.
void command_line(char* text, std::size_t) { text[0] = '\0'; }
bool is_terminal() { return false; }

// (3) The end of the program, for whoever reads the serial port: ports/template/run waits for this line.
void exit(int code) {
  char line[] = "exit 000\n";
  line[5] = static_cast<char>('0' + code / 100 % 10);
  line[6] = static_cast<char>('0' + code / 10 % 10);
  line[7] = static_cast<char>('0' + code % 10);
  write(line, sizeof line - 1);
  for (;;) asm volatile("wfi");
}

std::size_t heap_calls() { return 0; }

}  // namespace port
