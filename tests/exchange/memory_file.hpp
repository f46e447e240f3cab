// A .safetensors file in memory, written by hand or as a sink.
#pragma once

#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <string_view>

namespace check {

template <std::size_t capacity>
struct MemoryFileOf {
  alignas(8) char bytes[capacity];
  std::size_t size_ = 0;

  void operator()(const char* text, std::size_t count) {
    for (std::size_t i = 0; i < count && size_ < sizeof bytes; ++i) bytes[size_++] = text[i];
  }
  /// The length of a header, spaces at its end, and elements.
  template <class Element>
  void start(std::string_view header, std::initializer_list<Element> body) {
    const std::size_t spaces = 7 - (header.size() + 7) % 8;
    start(header.size() + spaces);
    add(header);
    add(std::string_view("       ", spaces));
    add(body);
  }
  /// The length of a header as it is.
  void start(std::string_view header) {
    start(header.size());
    add(header);
  }
  void start(std::size_t header_bytes) {
    size_ = 0;
    const char length[8] = {static_cast<char>(header_bytes & 0xFF), static_cast<char>(header_bytes >> 8)};
    (*this)(length, 8);
  }
  void add(std::string_view text) { (*this)(text.data(), text.size()); }
  template <class Element>
  void add(std::initializer_list<Element> elements) {
    (*this)(reinterpret_cast<const char*>(elements.begin()), elements.size() * sizeof(Element));
  }
  [[nodiscard]] const char* data() const { return bytes; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::string_view text() const { return {bytes, size_}; }
  [[nodiscard]] bool contains(std::string_view part) const {
    return text().find(part) != std::string_view::npos;
  }
};
using MemoryFile = MemoryFileOf<2048>;

}  // namespace check
