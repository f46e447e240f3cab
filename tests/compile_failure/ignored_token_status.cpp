// expect: nodiscard
#pragma GCC diagnostic error "-Wunused-result"
#include <attune/layers/embedding.hpp>

using Layer = attune::Embedding<attune::EmbeddingShape{.seq_len = 2, .vocabulary = 4, .d_model = 3}>;
void look_up(const Layer::Parameters& parameters, Layer::Output& y) {
  Layer::forward(parameters, {{1, 2}}, y);
}
