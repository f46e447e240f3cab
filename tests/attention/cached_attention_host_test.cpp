// Ten thousand tokens of a stream, each against one batch of all of them.
#include <attune/attention/cached_attention.hpp>

#include <attune/attune.hpp>

#include "check.hpp"
#include "stream_cases.hpp"

namespace {

using attune::CacheShape;

constexpr int kLength = 10'000;
// Positions from a table of 64: those behind it are computed as they come.
template <int length>
using Layer = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = length, .d_model = 4, .num_heads = 1, .rotary_dim = 2}>;

template <CacheShape cache>
void expect_bits_of_ten_thousand() {
  static Layer<kLength>::Parameters parameters;
  static Layer<kLength>::Input x;
  attune::Rng rng(2);
  check::fill_set(parameters, rng);
  check::fill(x, rng, -2, 2);
  check::expect_stream<Layer<64>, cache, 33>(parameters, x,
                                             check::batch_of<Layer<kLength>, cache>(parameters, x));
}

TEST(CachedAttentionOnAHost, has_the_bits_of_a_batch_of_ten_thousand_tokens) {
  expect_bits_of_ten_thousand<CacheShape{.capacity = kLength}>();
}
TEST(CachedAttentionOnAHost, has_the_bits_of_a_windowed_batch_of_ten_thousand_tokens) {
  expect_bits_of_ten_thousand<CacheShape{.window = 300, .sinks = 20}>();
}

}  // namespace
