// A model, and MODEL_FILE(header, bytes): a file for it that has such a header and so many bytes of data.
#pragma once

#include <attune/attune.hpp>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
extern "C" const float model_file[48];

#define MODEL_FILE(header, bytes)                                          \
  struct File {                                                            \
    using Scalar = float;                                                  \
    static constexpr char kHeader[] = header;                              \
    static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + (bytes); \
    static constexpr const float* kData = model_file;                      \
  };
