// expect: attune: a layer that takes token ids must be the first of a Sequential; it cannot follow another
#include <attune/attune.hpp>

attune::Residual<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>> layer;
