// UpdateInBackward takes no more RAM than BySequence, whatever is trained.
#include <attune/training/update_in_backward.hpp>

#include <attune/layers/linear.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using namespace attune;

using Encoder =
    EncoderLayer<EncoderLayerShape{.attention = {.seq_len = 16, .d_model = 8, .num_heads = 2}, .d_ff = 8}>;
using Body = Sequential<Linear<LinearShape{.rows = 16, .d_in = 4, .d_out = 8}>, Encoder>;
constexpr Body::Parameters kBody{};
using LowRanks = Adapted<Body, kBody, LowRank{.rank = 1}>;
using Vectors = BiasesAndNorms<Body, kBody>;

template <class Model, class Plan>
using With = Trainer<Model, MeanSquaredError, AdamW, 1, Plan>;
template <class Model>
constexpr std::size_t kSaved = sizeof(With<Model, BySequence>) - sizeof(With<Model, UpdateInBackward>);

static_assert(kSaved<Body> > 0 && sizeof(With<Body, UpdateInBackward>) < sizeof(With<Body, BySequence>));
static_assert(kSaved<LowRanks> == 0);
static_assert(kSaved<Vectors> > 0);
static_assert(With<LowRanks, UpdateInBackward>::memory().object() ==
              sizeof(With<LowRanks, UpdateInBackward>));

}  // namespace

TEST(LeastMemory, of_a_few_parameters_is_that_with_their_gradients) {
  static With<LowRanks, BySequence> plain;
  static With<LowRanks, UpdateInBackward> least;
  plain.initialize(XavierUniform{}, Rng{1});
  least.initialize(XavierUniform{}, Rng{1});
  Rng rng(2);
  Body::Input x;
  Body::Output target;
  check::fill(x, rng);
  check::fill(target, rng);
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(plain.step(x, target, {}).loss, least.step(x, target, {}).loss);
  }
  EXPECT_TRUE(check::same_bits(plain.parameters(), least.parameters()));
}
