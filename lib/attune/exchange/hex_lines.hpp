// Sends a file as lines of text, for a serial port or a log: hexadecimal digits with an offset and a CRC.
//
//   attune::HexLines lines([](const char* text, std::size_t length) { uart_write(text, length); });
//   attune::Status status = attune::write_safetensors<Names>(trainer.parameters(), lines);
//   lines.end();
//
//   bytes 00000000 48656c6c6f2c20776f726c64… 3610a686       offset, 1 to 32 bytes, CRC
//   bytes end 00000c74 9f07a1b3                             size and CRC of the file
//
// A line's CRC starts from its offset, in place of the CRC of earlier bytes. `hex_lines.py LOG FILE` (cmake/,
// installed beside attune-config.cmake) reassembles the file and reports errors in a log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <attune/persistence/crc32.hpp>

namespace ATTUNE_NAMESPACE {

/// A sink for writers of files. `sink(text, length)` gets whole lines without a terminating 0.
template <class Sink>
class HexLines {
 public:
  static constexpr std::size_t kBytesOfLine = 32;  ///< Bytes of the file per line.

  /// Sends lines to `sink`.
  explicit HexLines(Sink sink) : sink_(sink) {
    static_assert(detail::Holds<std::is_invocable_v<Sink&, const char*, std::size_t>>,
                  "attune::HexLines: a sink is called as sink(const char* text, std::size_t length)");
  }
  HexLines(const HexLines&) = delete;
  HexLines& operator=(const HexLines&) = delete;
  ~HexLines() = default;

  /// Takes the next bytes of the file.
  void operator()(const char* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (length_ == 0) begin_line();
      add_digits(static_cast<unsigned char>(bytes[i]), 2);
      line_crc_ = crc32(bytes + i, 1, line_crc_);
      crc_ = crc32(bytes + i, 1, crc_);
      ++offset_;
      if (length_ == kPrefix + 2 * kBytesOfLine) end_line(line_crc_);
    }
  }
  /// Ends the file. A file without an end counts as truncated.
  void end() {
    if (length_ > 0) end_line(line_crc_);
    add("bytes end ");
    add_digits(offset_, 8);
    end_line(crc_);
    offset_ = crc_ = 0;
  }

 private:
  static constexpr std::size_t kPrefix = 6 + 8 + 1;  // "bytes ", an offset, a space

  void begin_line() {
    add("bytes ");
    add_digits(offset_, 8);
    add(" ");
    line_crc_ = offset_;
  }
  void end_line(std::uint32_t crc) {
    add(" ");
    add_digits(crc, 8);
    add("\n");
    sink_(static_cast<const char*>(text_), length_);
    length_ = 0;
  }
  void add(const char* text) {
    while (*text != '\0') text_[length_++] = *text++;
  }
  [[gnu::noinline]] void add_digits(std::uint32_t number, int digits) {
    while (digits-- > 0) text_[length_++] = "0123456789abcdef"[number >> 4 * digits & 15u];
  }

  Sink sink_;
  std::uint32_t offset_ = 0;    // of the next byte
  std::uint32_t crc_ = 0;       // of all bytes so far
  std::uint32_t line_crc_ = 0;  // of the line
  std::size_t length_ = 0;      // of the text
  char text_[kPrefix + 2 * kBytesOfLine + 1 + 8 + 1];
};

}  // namespace ATTUNE_NAMESPACE
