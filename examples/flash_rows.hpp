// Files in flash: the rows of the one tensor of a file, as base_files.hpp writes them, and a file's CRC.
#pragma once

#include <span>

#include <attune/exchange/model_file.hpp>
#include <attune/persistence/crc32.hpp>

template <class Row, attune::ModelFile File>
std::span<const Row> flash_rows() {
  constexpr std::size_t kBody = 8 + sizeof File::kHeader - 1;
  const std::string_view file = attune::bytes_of<File>();
  return {reinterpret_cast<const Row*>(file.data() + kBody), (file.size() - kBody) / sizeof(Row)};
}

template <attune::ModelFile File>
std::uint32_t flash_crc() {
  const std::string_view file = attune::bytes_of<File>();
  return attune::crc32(file.data(), file.size());
}
