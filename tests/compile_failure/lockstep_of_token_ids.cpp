// expect: attune::Lockstep: token ids have no lanes; leave the plan at Streaming
#include <attune/attune.hpp>

using Model =
    attune::Sequential<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>,
                       attune::Linear<attune::LinearShape{4, 8, 8}>>;
attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 64, attune::Lockstep> trainer;
