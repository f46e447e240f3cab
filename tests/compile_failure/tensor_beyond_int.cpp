// expect: attune::Tensor: rows * cols must be below 2^31
#include <attune/attune.hpp>

constexpr attune::AttentionShape kShape{.seq_len = 40'000, .d_model = 8, .num_heads = 2};
attune::MultiHeadAttention<kShape>::Tape tape;
