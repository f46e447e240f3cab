// The tensors of a state_dict, one by one.
#pragma once

#include <initializer_list>

#include <attune/exchange/state_dict.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>

#include "check.hpp"

namespace check {

/// Layers whose sizes all differ.
inline constexpr attune::EncoderLayerShape kEncoder{.attention = {.seq_len = 5, .d_model = 6, .num_heads = 3},
                                                    .d_ff = 7};
inline constexpr attune::DecoderLayerShape kDecoder{
    .attention = {.seq_len = 4, .d_model = 6, .num_heads = 3}, .d_ff = 7, .memory_len = 5};

// [rows, cols], or [rows] where cols is 0, in the order of names.
struct Named {
  std::string_view name;
  int rows;
  int cols = 0;
};
template <class Names>
void expect_tensors(std::initializer_list<Named> expected) {
  constexpr auto& kTensors = attune::detail::kStateDict<Names>;
  ASSERT_EQ(kTensors.kTensors, static_cast<int>(expected.size()));
  for (int i = 0; i < kTensors.kTensors; ++i) {
    const Named& tensor = expected.begin()[i];
    SCOPED_TRACE(tensor.name.data());
    EXPECT_TRUE(kTensors.name(i) == tensor.name);
    EXPECT_EQ(kTensors.tensors[i].rows, tensor.rows);
    EXPECT_EQ(is_vector(kTensors.tensors[i].layout) ? 0 : kTensors.tensors[i].cols, tensor.cols);
    EXPECT_EQ(kTensors.find(tensor.name), i);
  }
}

}  // namespace check
