// What programs share that train on a PC and write what a device has in flash (NAME/base.cpp).
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include <port.hpp>

namespace base_files {

/// The word behind `name` on the command line; empty without one.
inline std::string word_after(std::string_view name) {
  char line[4096];
  port::command_line(line, sizeof line);
  const std::string text = std::string(" ") + line + " ", key = " " + std::string(name) + " ";
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return {};
  const std::size_t first = at + key.size();
  return text.substr(first, text.find(' ', first) - first);
}

inline bool write(const std::string& path, const std::string& bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return false;
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  return (std::fclose(file) == 0) && written;
}

/// A .safetensors file of one tensor, [rows.size(), bytes of a row], which begins at a multiple of 8;
/// flash_rows.hpp finds it there.
template <class Rows>
std::string file_of(const std::string& name, const Rows& rows) {
  const std::size_t bytes = rows.size() * sizeof rows[0];
  std::string header = "{\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(rows.size()) + "," +
                       std::to_string(sizeof rows[0]) + "],\"data_offsets\":[0," + std::to_string(bytes) +
                       "]}}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return file + header + std::string(reinterpret_cast<const char*>(rows.data()), bytes);
}

}  // namespace base_files
