// A file as lines of text, for a serial port or a log: hexadecimal digits with an offset and a CRC.
//
//   attune::HexLines lines([](const char* text, std::size_t length) { uart_write(text, length); });
//   attune::Status status = attune::write_safetensors<Names>(trainer.parameters(), lines);
//   lines.end();
//
//   bytes 00000000 48656c6c6f2c20776f726c64… 3610a686       offset, 1 to 32 bytes, CRC
//   bytes end 00000c74 9f07a1b3                             size and CRC of the file
//
// A line's CRC begins with its offset in the place of the CRC of earlier bytes. `hex_lines.py LOG FILE`
// (cmake/, installed beside attune-config.cmake) puts the file together and says what is wrong with a log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <attune/exchange/crc32.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// A sink for writers of files. `sink(text, length)` gets whole lines, not ended by 0.
template <class Sink>
class HexLines {
 public:
  static constexpr std::size_t kBytesOfLine = 32;

  explicit HexLines(Sink sink) : sink_(sink) {
    static_assert(std::is_invocable_v<Sink&, const char*, std::size_t>,
                  "attune::HexLines: a sink is called as sink(const char* text, std::size_t length)");
  }
  HexLines(const HexLines&) = delete;
  HexLines& operator=(const HexLines&) = delete;
  ~HexLines() = default;

  /// The next bytes of the file.
  void operator()(const char* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      line_[filled_++] = bytes[i];
      if (filled_ == kBytesOfLine) flush();
    }
  }
  /// Ends the file: without it the file counts as cut short.
  void end() {
    flush();
    add("bytes end ");
    add(offset_);
    add(" ");
    add(crc_);
    add("\n");
    sink_(static_cast<const char*>(text_), length_);
    length_ = offset_ = crc_ = 0;
  }

 private:
  void flush() {
    if (filled_ == 0) return;
    add("bytes ");
    add(offset_);
    add(" ");
    for (std::size_t i = 0; i < filled_; ++i) add_digits(static_cast<unsigned char>(line_[i]), 2);
    add(" ");
    add(crc32(line_, filled_, offset_));
    add("\n");
    sink_(static_cast<const char*>(text_), length_);
    crc_ = crc32(line_, filled_, crc_);
    offset_ += static_cast<std::uint32_t>(filled_);
    length_ = 0;
    filled_ = 0;
  }
  void add(const char* text) {
    while (*text != '\0') text_[length_++] = *text++;
  }
  void add(std::uint32_t number) { add_digits(number, 8); }
  void add_digits(std::uint32_t number, int digits) {
    while (digits-- > 0) text_[length_++] = "0123456789abcdef"[number >> 4 * digits & 15u];
  }

  Sink sink_;
  std::uint32_t offset_ = 0;  // of the line in the file
  std::uint32_t crc_ = 0;     // of the lines before
  std::uint32_t length_ = 0;  // of the text
  std::size_t filled_ = 0;    // of the line
  char line_[kBytesOfLine];
  char text_[6 + 8 + 1 + 2 * kBytesOfLine + 1 + 8 + 1];
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
