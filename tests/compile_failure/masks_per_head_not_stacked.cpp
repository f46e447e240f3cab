// expect: attune::additive_mask_per_head: rows must be num_heads * seq_len, heads stacked
#include <attune/attune.hpp>

attune::Tensor<float, 5, 4> bias{};
auto mask = attune::additive_mask_per_head<2>(bias);
