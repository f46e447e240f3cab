#include <attune/core/memory.hpp>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

constexpr attune::AttentionShape kShape{.seq_len = 16, .d_model = 32, .num_heads = 4};
using Layer = attune::MultiHeadAttention<kShape>;
using AdamWTrainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 4>;
using SgdTrainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::Sgd<>>;
using Wide = attune::MultiHeadAttention<kShape, double>;
using WideTrainer =
    attune::Trainer<Wide, attune::MeanSquaredError, attune::Adam<attune::AdamVariant{}, double>>;

constexpr std::size_t kParameters = 4 * (32 * 32 + 32) * sizeof(float);
constexpr std::size_t kIo = 2 * 16 * 32 * sizeof(float);

constexpr attune::MemoryReport kReport = AdamWTrainer::memory();
static_assert(kReport.object() == sizeof(AdamWTrainer));
static_assert(kReport.parameters == kParameters && kReport.gradients == kParameters);
static_assert(kReport.moments >= 2 * kParameters && kReport.moments <= 2 * kParameters + 16);
static_assert(kReport.tape >= sizeof(Layer::Tape) && kReport.scratch >= 0);
static_assert(kReport.inputs == 4 * kIo);
static_assert(kReport.state <= 32);
static_assert(kReport.total() == sizeof(AdamWTrainer) + 4 * kIo);
static_assert(AdamWTrainer::memory(attune::Feeding::kOneByOne).inputs == kIo);
static_assert(AdamWTrainer::memory(attune::Feeding::kOneByOne).object() == sizeof(AdamWTrainer));

static_assert(SgdTrainer::memory().object() == sizeof(SgdTrainer));
static_assert(SgdTrainer::memory().moments == 0);
static_assert(WideTrainer::memory().object() == sizeof(WideTrainer));
static_assert(WideTrainer::memory().parameters == 2 * kParameters);

constexpr attune::MemoryReport kInference = attune::inference_memory<Layer>();
static_assert(kInference.parameters == kParameters && kInference.gradients == 0 && kInference.moments == 0);
static_assert(kInference.tape == 0 && kInference.inputs == kIo);
static_assert(kInference.scratch == sizeof(Layer::InferenceScratch));
static_assert(kInference.total() < kReport.total());

}  // namespace

TEST(Memory, report_adds_up) {
  constexpr attune::MemoryReport kSum{
      .parameters = 1, .gradients = 2, .moments = 4, .tape = 8, .scratch = 16, .inputs = 32, .state = 64};
  static_assert(kSum.object() == 1 + 2 + 4 + 8 + 16 + 64);
  EXPECT_EQ(kSum.total(), 127u);
}

TEST(Memory, training_fits_where_the_report_says) { EXPECT_EQ(kReport.object(), sizeof(AdamWTrainer)); }
