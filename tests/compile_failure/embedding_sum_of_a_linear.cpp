// expect: attune::EmbeddingSum: it adds two Embeddings, or an EmbeddingSum and an Embedding
#include <attune/attune.hpp>

using Words = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>;
using Types = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 2, .d_out = 8}>;
attune::Sequential<attune::EmbeddingSum<Words, Types>> model;
