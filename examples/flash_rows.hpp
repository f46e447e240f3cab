// The rows of the one tensor of a file in flash, as base_files.hpp writes them.
#pragma once

#include <span>

#include <attune/exchange/model_file.hpp>

template <class Row, attune::ModelFile File>
std::span<const Row> flash_rows() {
  constexpr std::size_t kBody = 8 + sizeof File::kHeader - 1;
  const std::string_view file = attune::bytes_of<File>();
  return {reinterpret_cast<const Row*>(file.data() + kBody), (file.size() - kBody) / sizeof(Row)};
}
