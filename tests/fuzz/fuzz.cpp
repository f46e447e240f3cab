// Calls of the public functions in any order, with whatever can come from outside: ids, labels, lengths,
// options, and numbers that are none. Built with AddressSanitizer and UndefinedBehaviorSanitizer.
//   attune_fuzz [--runs N] [--seed S] [--first I]
// Run I of a seed is always the same; what fails names both. fuzz_one() is libFuzzer's LLVMFuzzerTestOneInput
// under another name. Ends with how often each status was the answer, and `N passed, N failed`: one for each,
// which must occur.
#include <cstdio>
#include <cstdlib>

#include "command_line.hpp"
#include "sessions.hpp"

namespace fuzz {
namespace {

constexpr int kSeqLen = 3, kModelWidth = 4;
constexpr attune::AttentionShape kAttention{.seq_len = kSeqLen, .d_model = kModelWidth, .num_heads = 2};

// Token ids in, one class out; a batch of two, AdamW.
struct Classifier {
  static constexpr int kSeqLen = fuzz::kSeqLen, kVocabulary = 5, kClasses = 3, kTargets = 1, kBatch = 2;
  using Model = attune::Sequential<
      attune::Embedding<attune::EmbeddingShape{
          .seq_len = kSeqLen, .vocabulary = kVocabulary, .d_model = kModelWidth}>,
      attune::MultiHeadAttention<kAttention>,
      attune::Pooling<attune::PoolingShape{.seq_len = kSeqLen, .d_model = kModelWidth}>,
      attune::Linear<attune::LinearShape{.rows = 1, .d_in = kModelWidth, .d_out = kClasses}>>;
  using Trainer = attune::Trainer<Model, attune::CrossEntropy<>, attune::AdamW, kBatch>;
  using Options = attune::AdamW::Options;
  using Input = Model::Input;
  using Target = std::array<int, 1>;
};

// Numbers in and out, by SGD with momentum, and in the same way with updates in backward.
struct Regression {
  static constexpr int kSeqLen = fuzz::kSeqLen, kVocabulary = 0, kClasses = 0, kTargets = 0, kBatch = 2;
  using Model = attune::MultiHeadAttention<kAttention>;
  using Optimizer = attune::Sgd<attune::Momentum::kClassic>;
  using Trainer = attune::Trainer<Model, attune::MeanSquaredError, Optimizer, kBatch>;
  using Options = Optimizer::Options;
  using Input = Model::Input;
  using Target = Model::Output;
};
struct InBackward : Regression {
  static constexpr int kBatch = 1;
  using Trainer =
      attune::Trainer<Model, attune::MeanSquaredError, Optimizer, kBatch, attune::UpdateInBackward>;
};

std::uint64_t seed = 1, run = 0;

}  // namespace

void fail(const char* expectation, Status status) {
  std::printf("FAILED %s, and: %s. Again: --seed %llu --first %llu --runs 1\n", expectation,
              attune::message(status), static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(run));
  std::exit(1);
}

/// One session, of the kind that the first byte says.
int fuzz_one(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  switch (bytes.below(3)) {
    case 0:
      Session<Classifier>(bytes).run();
      break;
    case 1:
      Session<Regression>(bytes).run();
      break;
    default:
      Session<InBackward>(bytes).run();
  }
  return 0;
}

}  // namespace fuzz

using fuzz::Status;

int main(int count, char** arguments) {
  std::uint64_t runs = 1000000;
  read_options(count, arguments, runs, fuzz::seed, fuzz::run);
  for (const std::uint64_t end = fuzz::run + runs; fuzz::run < end; ++fuzz::run) {
    attune::Rng rng(fuzz::seed << 40 ^ fuzz::run);
    std::uint8_t data[128];
    for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(rng.next() >> 24);
    (void)fuzz::fuzz_one(data, 16 + data[127] % 112);
  }
  // Fewer sessions need not come across everything that is refused.
  constexpr std::uint64_t kEnough = 100000;
  int passed = 0, failed = 0;
  for (const Status status :
       {Status::kOk, Status::kInvalidLength, Status::kIncompleteBatch, Status::kFullBatch,
        Status::kInvalidLearningRate, Status::kInvalidBeta, Status::kInvalidEpsilon,
        Status::kInvalidWeightDecay, Status::kInvalidMomentum, Status::kInvalidMaxNorm,
        Status::kInvalidTarget, Status::kInvalidToken, Status::kNotFinite}) {
    const std::uint64_t times = fuzz::answers[static_cast<int>(status)];
    std::printf("%llu times: %s\n", static_cast<unsigned long long>(times), attune::message(status));
    ++(times > 0 || runs < kEnough ? passed : failed);
  }
  return close(passed, failed);
}
