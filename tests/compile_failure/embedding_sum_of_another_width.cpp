// expect: attune::EmbeddingSum: both tables need the same seq_len, d_model and scalar
#include <attune/attune.hpp>

using Words = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>;
using Types = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 2, .d_model = 6}>;
attune::Sequential<attune::EmbeddingSum<Words, Types>> model;
