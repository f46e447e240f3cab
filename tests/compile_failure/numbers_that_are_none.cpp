// Options beyond what they can be, infinity among them.
// expect: attune::LowRank: alpha must be in [1e-30, 1e30]
// expect: attune::MultiHeadAttention: offset must not be negative, nor above 2^30
// expect: attune::RotaryPositions: base must be above 1, and at most 1e300
// expect: attune::SinusoidalPositions: base must be above 1, and at most 1e300
// expect: attune::Huber: delta must be at least 1e-30
// expect: attune::LayerNorm, RmsNorm: epsilon must not be negative, nor above 1e30
// expect: attune::KeyValueCache: a cache keeps at most 2^28 tokens and 2^28 sinks
// errors: 7  seven mistakes
// kilobytes: 10  seven mistakes
#include <attune/attune.hpp>

using namespace attune;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Attention = MultiHeadAttention<AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
constexpr Attention::Parameters kAttention{};
Adapted<Attention, kAttention, LowRank{.rank = 2, .alpha = 0}>::Parameters parameters;
MultiHeadAttention<AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .offset = 1 << 30 | 1}>::Input
    x;
using Rotated = RotaryPositions<RotaryShape{.seq_len = 4, .num_heads = 2, .d_k = 4, .base = kInfinity}>;
Rotated::Input rotated;
SinusoidalPositions<PositionShape{.seq_len = 4, .d_model = 8, .base = kInfinity}>::Input tokens;
constexpr bool kMean = Huber<HuberOptions{.delta = 1e-60}>::kMeanOverBatch;
LayerNorm<NormShape{.rows = 4, .d_model = 8, .epsilon = kInfinity}>::Input normalized;
KeyValueCache<Attention, CacheShape{.window = 1 << 28 | 1}> cache;
