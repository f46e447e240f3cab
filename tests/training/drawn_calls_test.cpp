// Drawn sequences of calls have the same bits on every target: whole and partial batches, refused input and
// options, lengths, states that another trainer resumes, trainers in closed form and without labels.
#include <attune/training/trainer.hpp>

#include <array>
#include <cstring>
#include <limits>
#include <new>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/attention/sequence_length.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/linear_probe.hpp>
#include <attune/models/mask_from_ids.hpp>
#include <attune/models/reversible_norm.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/adam.hpp>
#include <attune/training/closed_form_trainer.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/sgd.hpp>
#include <attune/training/unlabeled_trainer.hpp>

#include "check.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 4, kWidth = 4, kClasses = 3, kBatch = 2, kTakes = 6, kCalls = 60;
constexpr AttentionShape kLsa{.seq_len = kTokens,
                              .d_model = kWidth,
                              .num_heads = 2,
                              .dropout = 0.2,
                              .window = {.own_key = OwnKey::kHidden},
                              .query_key_norm = QueryKeyNorm::kUnitLength,
                              .score_scale = ScoreScale::kClampedExponential};
using Mean = Pooling<PoolingShape{.seq_len = kTokens, .d_model = kWidth}>;
using Head = Linear<LinearShape{.rows = 1, .d_in = kWidth, .d_out = kClasses}>;
using OfSeries = Sequential<
    ReversibleNorm<MultiHeadAttention<kLsa>, ReversibleNormOptions{.affine = true, .subtract_last = true}>,
    Mean, Head>;
constexpr int kVocabulary = 5;
using OfIds = Sequential<
    MaskFromIds<Sequential<
        Embedding<EmbeddingShape{.seq_len = kTokens, .vocabulary = kVocabulary, .d_model = kWidth}>,
        EncoderLayer<EncoderLayerShape{
            .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 1, .keep_weights = false},
            .d_ff = 5}>>>,
    Mean, Head>;
using Adam8 = Adam<AdamVariant{.moments = MomentPrecision::kInt8Stochastic}>;

OfSeries::Parameters base;
using Probe = LinearProbe<OfSeries, base>;
using Features = LinearProbeFeatures<OfSeries, base>;

/// A session: what comes from outside, and a hash of all answers.
class Session {
 public:
  explicit Session(std::uint64_t seed) : rng_(seed) {}

  int below(int count) { return static_cast<int>(rng_.next() >> 8) % count; }
  /// Rows of features, or ids of a sequence or of several. Some are what no model takes.
  template <class Input>
  void fill(Input& x) {
    if constexpr (requires { x.values; }) {
      for (float& value : x.values) value = rng_.uniform(-1.5f, 1.5f);
      if (below(8) == 0) x(below(kTokens), 1) = std::numeric_limits<float>::quiet_NaN();
    } else if constexpr (requires { x[0][0]; }) {
      for (auto& ids : x) fill(ids);
    } else {
      for (int& id : x) id = below(kVocabulary);
      if (below(8) == 0) x[1] = kVocabulary;
      if (below(8) == 0) x.fill(0);  // padding alone
    }
  }
  int label() { return below(10) == 0 ? kClasses : below(kClasses); }
  SequenceLength<kTokens> length() {
    SequenceLength<kTokens> length;
    add(length.set_length(below(kTokens + 2)));
    return length;
  }
  float rate() { return below(8) == 0 ? std::numeric_limits<float>::quiet_NaN() : 0.05f; }

  void add(std::uint32_t bits) { hash_ = detail::fnv1a(bits, 4, hash_); }
  void add(Status status) { add(static_cast<std::uint32_t>(status)); }
  // NaN has many bits.
  void add(float value) { add(value == value ? std::bit_cast<std::uint32_t>(value) : 0x7FC00000u); }
  void add(const auto& result) requires requires { result.status; }
  {
    add(result.status);
    if constexpr (requires { result.loss; }) add(result.loss);
    if constexpr (requires { result.agreement; }) {
      add(static_cast<std::uint32_t>(result.objection) + 16 * static_cast<std::uint32_t>(result.rounds));
      add(result.clear), add(result.agreement), add(result.imbalance);
    }
  }
  [[nodiscard]] std::uint32_t hash() const { return hash_; }

 private:
  Rng rng_;
  std::uint32_t hash_ = 2166136261u;
};

/// What all trainers can: a prediction, or to go on with the other one.
template <class Model, class Trainer>
void predict(Session& session, Trainer& trainer) {
  typename Model::Input x;
  typename Model::Output y{};
  session.fill(x);
  const Status status = trainer.predict(x, y, session.length());
  session.add(status);
  if (status == Status::kOk) session.add(hash_bits(y));
}
template <class Trainer>
void change_places(Session& session, std::array<Trainer, 2>& trainers, std::size_t& at) {
  session.add(trainers[1 - at].resume(trainers[at].state()));
  at = 1 - at;
}

/// The trainers of a test, in the place of those before them: a board may have 16 KiB.
alignas(16) unsigned char room[6400];

/// The hash of a session of drawn calls. One of two trainers is at work.
template <class Model, class Trainer, class Call>
std::uint32_t hash_of_calls(std::uint64_t seed, const Call& call) {
  static_assert(sizeof(std::array<Trainer, 2>) <= sizeof room);
  std::memset(room, 0, sizeof room);
  auto& trainers = *new (room) std::array<Trainer, 2>();
  Session session(seed);
  std::size_t at = 0;
  trainers[at].initialize(XavierUniform{}, Rng{5});
  for (int number = 0; number < kCalls; ++number) {
    switch (session.below(8)) {
      case 0:
        predict<Model>(session, trainers[at]);
        break;
      case 1:
        change_places(session, trainers, at);
        break;
      default:
        call(session, trainers[at]);
    }
    session.add(hash_bits(trainers[at].state()));
  }
  return session.hash();
}
template <class Model>
void call_trainer(Session& session, auto& trainer) {
  using Trainer = std::remove_cvref_t<decltype(trainer)>;
  switch (session.below(6)) {
    case 0:
      return session.add(trainer.update({.learning_rate = session.rate()}, GradientClipping{0.5f}));
    case 1:
      return session.add(trainer.update_incomplete({.learning_rate = session.rate()}));
    case 2: {
      typename Trainer::BatchInput x;
      typename Trainer::BatchTarget labels;
      session.fill(x);
      for (int& label : labels) label = session.label();
      return session.add(trainer.step(x, labels, {.learning_rate = session.rate()}));
    }
    case 3:
      if (session.below(3) == 0) trainer.discard();
      return;
    default: {
      typename Model::Input x;
      session.fill(x);
      const int label = session.label();
      session.add(trainer.accumulate(x, label, session.length()));
    }
  }
}
/// Takes, of which some have labels or lengths, and a few are refused.
auto draw_takes(Session& session) {
  const int wrong = session.below(4 * kTakes), seed = session.below(1000),
            length = 1 + session.below(kTokens);
  return [=](int i, const auto& learn) {
    Session take(static_cast<std::uint64_t>(seed + i));
    OfSeries::Input x;
    for (float& value : x.values) value = static_cast<float>(take.below(200) - 100) / 60;
    for (int token = 0; token < kTokens; ++token) x(token, i % kClasses) += 1;
    if (i == wrong) return Status::kFlashFault;
    if (i % 3 != 0) return learn(x, kUnlabeled);
    SequenceLength<kTokens> of_take;
    (void)of_take.set_length(length);
    return learn(x, i % 2 == 0 ? i % kClasses : kUnlabeled, of_take);
  };
}
void set_base() {
  Rng rng(3);
  initialize(base, XavierUniform{}, rng);
}

}  // namespace

TEST(DrawnCalls, of_a_trainer_have_the_same_bits_on_all_targets) {
  using ThisTrainer = Trainer<OfSeries, CrossEntropy<>, Adam8, kBatch>;
  EXPECT_EQ((hash_of_calls<OfSeries, ThisTrainer>(1, [](auto&... on) { call_trainer<OfSeries>(on...); })),
            check::by_policy(0x9E505B05u, 0x25EC9884u));
}

TEST(DrawnCalls, of_a_trainer_of_ids_have_the_same_bits_on_all_targets) {
  using ThisTrainer = Trainer<OfIds, CrossEntropy<>, Sgd<Momentum::kNesterov>, kBatch>;
  EXPECT_EQ((hash_of_calls<OfIds, ThisTrainer>(2, [](auto&... on) { call_trainer<OfIds>(on...); })),
            check::by_policy(0x8E658546u, 0x22394332u));
}

TEST(DrawnCalls, of_trainers_in_closed_form_have_the_same_bits_on_all_targets) {
  set_base();
  using Trainers = ClosedFormTrainer<Probe, Features>;
  const auto call = [](Session& session, auto& trainer) {
    if (session.below(4) == 0) {
      return session.add(trainer.update({.ridge = static_cast<float>(session.below(5) - 1)}));
    }
    OfSeries::Input x;
    session.fill(x);
    const int label = session.label();
    session.add(trainer.accumulate(x, label, session.length()));
  };
  EXPECT_EQ((hash_of_calls<OfSeries, Trainers>(3, call)), check::by_policy(0x2D5386B7u, 0x92217083u));
}

TEST(DrawnCalls, without_labels_have_the_same_bits_on_all_targets) {
  set_base();
  using ByGradients = InfoMaxTrainer<OfSeries, AdamW, kTakes>;
  using Heads = UnlabeledHeadTrainer<Probe, Features, kTakes>;
  const auto learn = [](Session& session, auto& trainer) {
    const int count = session.below(kTakes + 2);
    session.add(trainer.learn(count, draw_takes(session), {.learning_rate = session.rate()}));
  };
  EXPECT_EQ((hash_of_calls<OfSeries, ByGradients>(4, learn)), check::by_policy(0x6E4F3D3Fu, 0xB23EB045u));
  const auto learn_head = [](Session& session, auto& trainer) {
    const int count = session.below(kTakes + 2), rounds = session.below(4);
    session.add(trainer.learn(
        count, draw_takes(session),
        {.guard = {.least_clear = 0, .largest_imbalance = 1, .least_agreement = 0.2f}, .rounds = rounds}));
  };
  EXPECT_EQ((hash_of_calls<OfSeries, Heads>(5, learn_head)), check::by_policy(0x547B9555u, 0xDCE5678Au));
}
