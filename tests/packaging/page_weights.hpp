// A file for a small model of digits, all zeros, as attune_add_model would have made it: for the program of
// examples/guide/pytorch.md.
#pragma once

#include <attune/attune.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

constexpr attune::EncoderLayerShape kBlock{.attention = {.seq_len = 8, .d_model = 4, .num_heads = 2},
                                           .d_ff = 8};
using Digits = attune::Sequential<attune::Linear<attune::LinearShape{.rows = 8, .d_in = 8, .d_out = 4}>,
                                  attune::LearnedPositions<attune::PositionShape{.seq_len = 8, .d_model = 4}>,
                                  attune::Repeat<1, attune::EncoderLayer<kBlock>>,
                                  attune::Pooling<attune::PoolingShape{.seq_len = 8, .d_model = 4}>,
                                  attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 10}>>;
struct digits_header {
  static constexpr char kHeader[] =
      R"({"embed.bias":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"embed.weight":{"dtype":"F32")"
      R"(,"shape":[4,8],"data_offsets":[16,144]},"encoder.layers.0.linear1.bias":{"dtype":"F32","shape":[8])"
      R"(,"data_offsets":[144,176]},"encoder.layers.0.linear1.weight":{"dtype":"F32","shape":[8,4])"
      R"(,"data_offsets":[176,304]},"encoder.layers.0.linear2.bias":{"dtype":"F32","shape":[4])"
      R"(,"data_offsets":[304,320]},"encoder.layers.0.linear2.weight":{"dtype":"F32","shape":[4,8])"
      R"(,"data_offsets":[320,448]},"encoder.layers.0.norm1.bias":{"dtype":"F32","shape":[4])"
      R"(,"data_offsets":[448,464]},"encoder.layers.0.norm1.weight":{"dtype":"F32","shape":[4])"
      R"(,"data_offsets":[464,480]},"encoder.layers.0.norm2.bias":{"dtype":"F32","shape":[4])"
      R"(,"data_offsets":[480,496]},"encoder.layers.0.norm2.weight":{"dtype":"F32","shape":[4])"
      R"(,"data_offsets":[496,512]},"encoder.layers.0.self_attn.in_proj_bias":{"dtype":"F32","shape":[12])"
      R"(,"data_offsets":[512,560]},"encoder.layers.0.self_attn.in_proj_weight":{"dtype":"F32","shape":[12,4])"
      R"(,"data_offsets":[560,752]},"encoder.layers.0.self_attn.out_proj.bias":{"dtype":"F32","shape":[4])"
      R"(,"data_offsets":[752,768]},"encoder.layers.0.self_attn.out_proj.weight":{"dtype":"F32","shape":[4,4])"
      R"(,"data_offsets":[768,832]},"head.bias":{"dtype":"F32","shape":[10],"data_offsets":[832,872]})"
      R"(,"head.weight":{"dtype":"F32","shape":[10,4],"data_offsets":[872,1032]},"pos":{"dtype":"F32")"
      R"(,"shape":[8,4],"data_offsets":[1032,1160]}}       )";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 1160;
};
constexpr auto digits_file() {
  std::array<char, digits_header::kSize> bytes{};
  for (int i = 0; i < 8; ++i)
    bytes[std::size_t(i)] = char((sizeof digits_header::kHeader - 1) >> 8 * i & 0xFF);
  std::copy_n(digits_header::kHeader, sizeof digits_header::kHeader - 1, bytes.begin() + 8);
  return std::bit_cast<std::array<float, digits_header::kSize / 4>>(bytes);
}
alignas(16) constexpr auto digits_array = digits_file();
struct digits_weights : digits_header {
  using Scalar = float;
  static constexpr const float* kData = digits_array.data();
};
inline std::size_t sent;
inline void uart_write(const char*, std::size_t count) { sent += count; }
