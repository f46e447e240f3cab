// expect: attune::UpdateInBackward: backward of one of the layers may read parameters behind their gradients
#include <attune/attune.hpp>

using Model =
    attune::Tied<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>,
                 attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>>;
attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, 1, attune::UpdateInBackward> trainer;
