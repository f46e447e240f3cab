// expect: it fits neither behind another nor in a Repeat or a Residual
#include <attune/attune.hpp>

attune::Residual<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>> layer;
