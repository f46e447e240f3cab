// The functions of port.hpp on a board without a debugger: text goes out of a serial port. Without this file
// they are answered over semihosting. Start-up, fault reports, stack measurement and, unless microseconds()
// is here as well, time from SysTick are the family's.
//
// As it stands, UART 0 of the Arm MPS2 board. What to change is marked with (1), (2) and (3).
#include "port.hpp"

namespace {

using Register = volatile std::uint32_t;

Register& at(std::uintptr_t address) { return *reinterpret_cast<Register*>(address); }

// (1) The processor's clock, of board.conf. After reset most chips run from a slow internal oscillator: that
// one's frequency, until your own code has switched to another.
constexpr std::uint32_t kClockHertz = ATTUNE_CLOCK_HERTZ;

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

}  // namespace

namespace port {

void write(const char* text, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) send(text[i]);
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
