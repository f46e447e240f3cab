// expect: nodiscard
#pragma GCC diagnostic error "-Wunused-result"
#include <attune/attune.hpp>

using Model =
    attune::Sequential<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>,
                       attune::Linear<attune::LinearShape{4, 8, 8}>>;
void predict(attune::Trainer<Model>& trainer, const Model::Input& ids, Model::Output& y) {
  trainer.predict(ids, y);
}
