// Trainers that take turns in one buffers train to the bits of trainers with their own.
#include <algorithm>

#include <attune/training/shared_buffers.hpp>

#include <attune/attention/mask.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/trainer.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr EncoderLayerShape kEncoder{
    .attention = {.seq_len = 4, .d_model = 4, .num_heads = 2, .dropout = 0.25}, .d_ff = 5};
using Dropping = EncoderLayer<kEncoder>;
using Plain = MultiHeadAttention<AttentionShape{.seq_len = 6, .d_model = 4, .num_heads = 1}>;
using Straight = Sequential<Linear<LinearShape{2, 3, 3}>>;

SharedBuffers<Dropping, Plain, Straight> buffers;
template <class Model, int batch = 2, class Plan = BySequence>
using Sharing = Trainer<Model, MeanSquaredError, AdamW, batch, InSharedBuffers<buffers, Plan>>;
template <class Model, int batch = 2>
using Alone = Trainer<Model, MeanSquaredError, AdamW, batch>;

// Costs what the largest needs, and whose turn it is; the trainers have the rest.
constexpr std::size_t kLargest = std::max(Alone<Dropping>::memory().tape + Alone<Dropping>::memory().scratch,
                                          Alone<Plain>::memory().tape + Alone<Plain>::memory().scratch);
static_assert(sizeof buffers <= kLargest + 4 * sizeof(void*));
static_assert(Sharing<Plain>::memory().tape == 0 && Sharing<Plain>::memory().scratch == 0);
static_assert(Sharing<Plain>::memory().object() == sizeof(Sharing<Plain>));
static_assert(sizeof(Sharing<Plain>) + Alone<Plain>::memory().tape + Alone<Plain>::memory().scratch <=
              sizeof(Alone<Plain>) + 8);

Sharing<Dropping> dropping;
Sharing<Plain> plain;
Sharing<Straight, 1, UpdateInBackward> straight;
Alone<Dropping> dropping_alone;
Alone<Plain> plain_alone;
Trainer<Straight, MeanSquaredError, AdamW, 1, UpdateInBackward> straight_alone;

template <class Model>
struct Example {
  typename Model::Input x;
  typename Model::Output target;
  explicit Example(Rng& rng) : x{}, target{} {
    check::fill(x, rng);
    check::fill(target, rng);
  }
};

struct Trainers {
  Trainers() {
    Rng a{1}, b{1};
    dropping.initialize(XavierUniform{}, a);
    dropping_alone.initialize(XavierUniform{}, b);
    EXPECT_EQ(a.next(), b.next());
    plain.initialize(XavierUniform{}, a);
    plain_alone.initialize(XavierUniform{}, b);
    straight.initialize(XavierUniform{}, a);
    straight_alone.initialize(XavierUniform{}, b);
  }
  static void expect_alike() {
    EXPECT_TRUE(hash_bits(dropping.state()) == hash_bits(dropping_alone.state()));
    EXPECT_TRUE(hash_bits(plain.state()) == hash_bits(plain_alone.state()));
    EXPECT_TRUE(hash_bits(straight.state()) == hash_bits(straight_alone.state()));
  }
};

TEST(SharedBuffers, is_shared_sequence_by_sequence) {
  const Trainers all;
  Rng rng(2);
  for (int step = 0; step < 3; ++step) {
    for (int sequence = 0; sequence < 2; ++sequence) {
      const Example<Dropping> a(rng);
      const Example<Plain> b(rng);
      const Example<Straight> c(rng);
      EXPECT_EQ(dropping.accumulate(a.x, a.target).loss, dropping_alone.accumulate(a.x, a.target).loss);
      EXPECT_EQ(plain.accumulate(b.x, b.target, CausalMask{}).loss,
                plain_alone.accumulate(b.x, b.target, CausalMask{}).loss);
      EXPECT_EQ(straight.step(c.x, c.target, {}).loss, straight_alone.step(c.x, c.target, {}).loss);
      Plain::Output y, expected;
      EXPECT_EQ(plain.predict(b.x, y), Status::kOk);
      EXPECT_EQ(plain_alone.predict(b.x, expected), Status::kOk);
      EXPECT_TRUE(check::same_bits(y, expected));
      EXPECT_TRUE(check::same_bits(plain.tape().weights, plain_alone.tape().weights));
      Dropping::Output z, inferred;
      EXPECT_EQ(dropping.predict(a.x, z), Status::kOk);
      Dropping::forward(dropping.parameters(), a.x, inferred, buffers.scratch<Dropping>());
      EXPECT_TRUE(check::same_bits(z, inferred));
    }
    EXPECT_TRUE(dropping.update({}).ok() && dropping_alone.update({}).ok());
    EXPECT_TRUE(plain.update({}).ok() && plain_alone.update({}).ok());
    all.expect_alike();
  }
  // Back from a state, and from a batch that is given up.
  const auto state = dropping.state();
  const Example<Dropping> a(rng);
  EXPECT_EQ(dropping.accumulate(a.x, a.target).status, Status::kOk);
  dropping.discard();
  EXPECT_EQ(dropping.resume(state), Status::kOk);
  for (int sequence = 0; sequence < 2; ++sequence) {
    EXPECT_EQ(dropping.accumulate(a.x, a.target).loss, dropping_alone.accumulate(a.x, a.target).loss);
  }
  EXPECT_TRUE(dropping.update({}).ok() && dropping_alone.update({}).ok());
  all.expect_alike();
}

TEST(SharedBuffers, is_passed_on_at_the_end_of_a_pass) {
  const Trainers all;
  Rng rng(3);
  const Example<Dropping> a(rng);
  const Example<Plain> b(rng);
  const Example<Straight> c(rng);
  EXPECT_FALSE(buffers.under_way());
  auto pass = dropping.accumulate_in_slices<50>(a.x, a.target);
  while (pass.advance() && !pass.done()) {
    EXPECT_TRUE(buffers.under_way());
    EXPECT_EQ(plain.accumulate(b.x, b.target).status, Status::kUnderWay);
    EXPECT_EQ(straight.step(c.x, c.target, {}).status, Status::kUnderWay);
    Plain::Output y;
    EXPECT_EQ(plain.predict(b.x, y), Status::kUnderWay);
    auto other = plain.accumulate_in_slices(b.x, b.target);
    EXPECT_FALSE(other.advance());
    plain.discard();  // of its own, not of the other's pass
    EXPECT_EQ(plain.resume(plain.state()), Status::kOk);
  }
  EXPECT_FALSE(buffers.under_way());
  EXPECT_EQ(pass.result().status, Status::kOk);
  EXPECT_EQ(dropping_alone.accumulate(a.x, a.target).loss, pass.result().loss);
  EXPECT_TRUE(dropping.update_incomplete({}).ok() && dropping_alone.update_incomplete({}).ok());
  all.expect_alike();
}

TEST(SharedBuffers, lets_one_restart_while_another_is_under_way) {
  [[maybe_unused]] const Trainers all;
  Rng rng(4);
  const Example<Plain> b(rng);
  auto pass = plain.accumulate_in_slices<50>(b.x, b.target);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(pass.advance());
  Rng seeds{9}, same{9};
  dropping.initialize(XavierUniform{}, seeds);
  dropping_alone.initialize(XavierUniform{}, same);
  while (pass.advance()) {
  }
  EXPECT_EQ(pass.result().loss, plain_alone.accumulate(b.x, b.target).loss);
  EXPECT_TRUE(check::same_bits(plain.gradients(), plain_alone.gradients()));
  const Example<Dropping> a(rng);
  EXPECT_EQ(dropping.accumulate(a.x, a.target).loss, dropping_alone.accumulate(a.x, a.target).loss);
}

}  // namespace
