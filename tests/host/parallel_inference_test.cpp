#include <attune/host/parallel_inference.hpp>

#include <attune/attention/sequence_length.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"

namespace {

using attune::Status;

// Of work for several threads, and several blocks of queries that read the same transposed keys.
constexpr int kTokens = 40, kWidth = 48;
using Model = attune::Sequential<
    attune::Embedding<attune::EmbeddingShape{kTokens, 9, kWidth}>,
    attune::EncoderLayer<attune::EncoderLayerShape{
        .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2}, .d_ff = 64}>>;

TEST(ParallelInference, has_the_bits_of_one_thread) {
  static Model::Parameters parameters;
  static Model::InferenceScratch scratch;
  static Model::Output expected, y;
  attune::Rng rng(1);
  check::fill_set(parameters, rng);
  attune::SequenceLength<kTokens> mask;
  for (const int threads : {0, 1, 2, 3, 5}) {
    attune::host::ParallelInference<Model> inference(threads);
    EXPECT_EQ(inference.threads(), threads > 0 ? threads : attune::host::available_threads());
    for (const int length : {kTokens, 13, 1}) {
      EXPECT_EQ(mask.set_length(length), Status::kOk);
      Model::Input ids;
      for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] = static_cast<int>(i) < length ? static_cast<int>(i % 9) : -1;
      EXPECT_EQ(attune::infer<Model>(parameters, ids, expected, scratch, mask), Status::kOk);
      check::fill(y, rng);
      EXPECT_EQ(inference.forward(parameters, ids, y, mask), Status::kOk);
      EXPECT_TRUE(check::same_bits(y, expected));
      if (length == kTokens) continue;
      const Model::Output before = y;
      EXPECT_EQ(inference.forward(parameters, ids, y), Status::kInvalidToken);  // those behind the length
      EXPECT_TRUE(check::same_bits(y, before));
    }
  }
}

}  // namespace
