// expect: attune: a layer that takes token ids must be the first of a Sequential; it cannot follow another
#include <attune/attune.hpp>

using Model =
    attune::Sequential<attune::Linear<attune::LinearShape{4, 8, 8}>,
                       attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>>;
Model::Parameters parameters;
