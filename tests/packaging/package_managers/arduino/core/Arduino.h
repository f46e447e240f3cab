// Of a core what sketches see first: its macros. Those that programs use are here as cores have them; core_macros.h, by
// tests/packaging/names/macros, has all others of the common cores, and nobody can use them.
#pragma once

#include <cstddef>
#include <cstdint>

#define A0 14
#define A1 15
#define B0 0
#define B1 1
#define DEFAULT 1
#define F(text) (text)
#define INPUT 0x0
#define PI 3.1415926535897932384626433832795
#define abs(x) ((x) > 0 ? (x) : -(x))
#define bit(b) (1UL << (b))
#define bitRead(value, bit) (((value) >> (bit)) & 0x01)
#define constrain(x, low, high) ((x) < (low) ? (low) : ((x) > (high) ? (high) : (x)))
#define degrees(rad) ((rad)*57.295779513082320876798154814105)
#define lowByte(w) ((uint8_t)((w)&0xff))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define min(a, b) ((a) < (b) ? (a) : (b))
#define radians(deg) ((deg)*0.017453292519943295769236907684886)
#define round(x) ((x) >= 0 ? (long)((x) + 0.5) : (long)((x)-0.5))
#define sq(x) ((x) * (x))

// A type and a macro of one name, as ArduinoCore-API has them.
typedef uint16_t word;
inline uint16_t makeWord(uint16_t w) { return w; }
inline uint16_t makeWord(uint8_t high, uint8_t low) { return static_cast<uint16_t>(high << 8 | low); }
#define word(...) makeWord(__VA_ARGS__)

// As the SAMD core, whose serial port is one of several.
#define Serial SerialUSB
#define SerialUSB SerialUSB

struct SerialPort {
  void begin(long) {}
  explicit operator bool() const { return true; }
  void print(const char* text);
  void println(const char* text);
  void println(long number);
};
extern SerialPort Serial;

void delay(unsigned long milliseconds);
void setup();
void loop();

#include "core_macros.h"
