// The tensors of a state_dict, one by one.
#pragma once

#include <string_view>

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

/// "down.weight[7,6] norm.*[6]": tensors in the order of their names. `*` is a bias and a weight with as many
/// rows.
template <class Names>
void expect_tensors(std::string_view expected) {
  constexpr auto& kTensors = attune::detail::kStateDict<Names>;
  int count = 0;
  const auto expect = [&](std::string_view module, std::string_view last, int rows, int cols) {
    const int i = count++;
    if (i >= kTensors.kTensors) return;
    const std::string_view name = kTensors.name(i);
    EXPECT_TRUE(name.size() == module.size() + last.size() && name.starts_with(module) &&
                name.ends_with(last))
        << i;
    EXPECT_EQ(kTensors.tensors[i].rows, rows) << i;
    EXPECT_EQ(is_vector(kTensors.tensors[i].layout) ? 0 : kTensors.tensors[i].cols, cols) << i;
    EXPECT_EQ(kTensors.find(name), i);
  };
  while (!expected.empty()) {
    const std::size_t open = expected.find('['), close = expected.find(']');
    std::string_view name = expected.substr(0, open);
    int sizes[2] = {}, at = 0;
    for (const char character : expected.substr(open + 1, close - open - 1)) {
      if (character == ',') {
        ++at;
      } else {
        sizes[at] = 10 * sizes[at] + character - '0';
      }
    }
    expected = close + 2 < expected.size() ? expected.substr(close + 2) : std::string_view();
    if (name.ends_with('*')) {
      name.remove_suffix(1);
      expect(name, "bias", sizes[0], 0);
      expect(name, "weight", sizes[0], sizes[1]);
    } else {
      expect(name, "", sizes[0], sizes[1]);
    }
  }
  EXPECT_EQ(count, kTensors.kTensors);
}

}  // namespace check
