// MaskFromIds: the bits of a padding mask that the caller gives, gradients, every plan, streams, refused ids.
#include <attune/models/mask_from_ids.hpp>

#include <cstring>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/attention/window_mask.hpp>
#include <attune/layers/embedding_sum.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/models/checkpointed.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/quantized_tape.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>
#include <attune/models/tied.hpp>
#include <attune/training/adam.hpp>
#include <attune/training/cross_entropy.hpp>
#include <attune/training/lockstep.hpp>
#include <attune/training/trainer.hpp>
#include <attune/training/training_in_slices.hpp>
#include <attune/training/update_in_backward.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"

namespace {

using namespace attune;

constexpr int kTokens = 6, kWidth = 8, kPadding = 2, kVocabulary = 9;
using Tokens = std::array<int, kTokens>;
constexpr EncoderLayerShape kBlock{.attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2},
                                   .d_ff = 12};
constexpr EncoderLayerShape kCausalBlock{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2, .window = {.right = 0}}, .d_ff = 12};
template <class Scalar>
using Words =
    Embedding<EmbeddingShape{.seq_len = kTokens, .vocabulary = kVocabulary, .d_model = kWidth}, Scalar>;
template <class Scalar, EncoderLayerShape block = kBlock>
using Blocks = Sequential<Words<Scalar>, Repeat<2, EncoderLayer<block, Scalar>>>;
template <class Scalar, EncoderLayerShape block = kBlock>
using Masked = MaskFromIds<Blocks<Scalar, block>, MaskFromIdsOptions{.padding = kPadding}>;
template <class Layer>
using Classifier = Sequential<Layer, Pooling<PoolingShape{.seq_len = kTokens, .d_model = kWidth}>,
                              Linear<LinearShape{1, kWidth, 3}>>;

constexpr Tokens kAtTheEnd{5, 1, 8, 3, kPadding, kPadding}, kInBetween{5, kPadding, 8, kPadding, 3, 1},
    kWithout{5, 1, 8, 3, 4, 0};

/// A model of ids with its memory, parameters and dL/dy drawn from a seed.
template <class LayerType>
struct Problem {
  using Layer = LayerType;
  typename Layer::Parameters parameters, gradients{};
  typename Layer::Input x{};
  typename Layer::Output y, dy;
  typename Layer::Tape tape{};
  typename Layer::Scratch scratch;
  typename Layer::InferenceScratch inference;

  explicit Problem(std::uint64_t seed) {
    Rng rng(seed);
    check::fill_set(parameters, rng);
    check::fill(y, rng);
    check::fill(dy, rng);
  }
};

KeyPaddingMask<kTokens> mask_of(const Tokens& ids) {
  KeyPaddingMask<kTokens> mask;
  bool valid[kTokens];
  for (int i = 0; i < kTokens; ++i) valid[i] = ids[std::size_t(i)] != kPadding;
  mask.set_valid(valid);
  return mask;
}

}  // namespace

TEST(MaskFromIds, has_the_bits_of_a_key_padding_mask) {
  for (const Tokens& ids : {kAtTheEnd, kInBetween, kWithout}) {
    Problem<Masked<float>> own(3);
    Problem<Blocks<float>> given(3);
    own.x = given.x = ids;
    const auto mask = mask_of(ids);
    EXPECT_EQ(attune::forward<Masked<float>>(own.parameters, ids, own.y, own.tape, own.scratch), Status::kOk);
    EXPECT_EQ(attune::forward<Blocks<float>>(given.parameters, ids, given.y, given.tape, given.scratch, mask),
              Status::kOk);
    EXPECT_TRUE(check::same_bits(own.y, given.y));
    attune::backward<Masked<float>>(own.parameters, ids, own.tape, own.dy, NoGradient{}, own.gradients,
                                    own.scratch);
    attune::backward<Blocks<float>>(given.parameters, ids, given.tape, given.dy, NoGradient{},
                                    given.gradients, given.scratch, mask);
    EXPECT_TRUE(check::same_bits(own.gradients, given.gradients));
    EXPECT_EQ(attune::infer<Masked<float>>(own.parameters, ids, own.y, own.inference), Status::kOk);
    EXPECT_TRUE(check::same_bits(own.y, given.y));
    EXPECT_EQ(
        attune::infer<Masked<float>>(own.parameters, ids, own.y, own.inference, NoMask{}, Int8Products{}),
        Status::kOk);
    EXPECT_EQ(
        attune::infer<Blocks<float>>(given.parameters, ids, given.y, given.inference, mask, Int8Products{}),
        Status::kOk);
    EXPECT_TRUE(check::same_bits(own.y, given.y));
  }
}

TEST(MaskFromIds, tokens_do_not_see_padding) {
  Problem<Masked<float>> a(4);
  EXPECT_EQ(attune::infer<Masked<float>>(a.parameters, kInBetween, a.y, a.inference), Status::kOk);
  const auto before = a.y;
  for (int j = 0; j < kWidth; ++j) a.parameters.layer<0>().weight(kPadding, j) = check::kNan<float>;
  EXPECT_EQ(attune::infer<Masked<float>>(a.parameters, kInBetween, a.y, a.inference), Status::kOk);
  for (int i = 0; i < kTokens; ++i) {
    for (int j = 0; j < kWidth && kInBetween[std::size_t(i)] != kPadding; ++j)
      EXPECT_TRUE(check::same_bits(a.y(i, j), before(i, j)));
  }
}

TEST(MaskFromIds, adds_to_the_mask_of_a_call) {
  Problem<Masked<float>> own(5);
  Problem<Blocks<float>> given(5);
  const auto both = CausalMask{} && mask_of(kInBetween);
  EXPECT_EQ(attune::infer<Masked<float>>(own.parameters, kInBetween, own.y, own.inference, CausalMask{}),
            Status::kOk);
  EXPECT_EQ(attune::infer<Blocks<float>>(given.parameters, kInBetween, given.y, given.inference, both),
            Status::kOk);
  EXPECT_TRUE(check::same_bits(own.y, given.y));
}

TEST(MaskFromIds, has_the_gradients_of_finite_differences) {
  for (const Tokens& ids : {kAtTheEnd, kInBetween}) {
    using Layer = Masked<double>;
    Problem<Layer> a(6);
    const auto loss = [&] {
      EXPECT_EQ(attune::forward<Layer>(a.parameters, ids, a.y, a.tape, a.scratch), Status::kOk);
      double sum = 0;
      for (int i = 0; i < a.y.size; ++i) sum += a.y.values[i] * a.dy.values[i];
      return sum;
    };
    loss();
    attune::backward<Layer>(a.parameters, ids, a.tape, a.dy, NoGradient{}, a.gradients, a.scratch);
    EXPECT_GT(check::expect_set_gradients(loss, a.parameters, a.gradients), 0);
  }
}

TEST(MaskFromIds, refuses_ids_of_which_a_token_would_see_padding_alone) {
  Tokens nothing;
  nothing.fill(kPadding);
  Problem<Masked<float>> a(7);
  const auto before = a.y;
  EXPECT_EQ(attune::infer<Masked<float>>(a.parameters, nothing, a.y, a.inference), Status::kPaddingToken);
  EXPECT_EQ(attune::forward<Masked<float>>(a.parameters, nothing, a.y, a.tape, a.scratch),
            Status::kPaddingToken);
  EXPECT_TRUE(check::same_bits(a.y, before));
  Tokens late = kWithout;
  late[0] = kPadding;
  EXPECT_EQ(attune::infer<Masked<float>>(a.parameters, late, a.y, a.inference), Status::kOk);
  using Causal = Masked<float, kCausalBlock>;
  Problem<Causal> b(7);
  EXPECT_EQ(attune::infer<Causal>(b.parameters, late, b.y, b.inference), Status::kPaddingToken);
  EXPECT_EQ(attune::infer<Causal>(b.parameters, kInBetween, b.y, b.inference), Status::kOk);
  late[0] = kVocabulary;
  EXPECT_EQ(attune::infer<Causal>(b.parameters, late, b.y, b.inference), Status::kInvalidToken);
}

TEST(MaskFromIds, looks_at_the_keys_that_options_and_the_mask_of_a_call_leave) {
  Tokens late = kWithout;
  late[0] = kPadding;
  Problem<Masked<float>> a(7);
  const auto infer = [&a](const Tokens& ids, const auto& mask) {
    return attune::infer<Masked<float>>(a.parameters, ids, a.y, a.inference, mask);
  };
  EXPECT_EQ(infer(late, CausalMask{}), Status::kPaddingToken);
  EXPECT_EQ(infer(late, CausalMask{1}), Status::kOk);
  EXPECT_EQ(infer(kInBetween, CausalMask{}), Status::kOk);
  EXPECT_EQ(infer(kInBetween, SlidingWindowMask{.left = 0, .right = 0}), Status::kPaddingToken);
  EXPECT_EQ(infer(kAtTheEnd, SlidingWindowMask{.left = 2, .right = 0}), Status::kOk);
  QueryPaddingMask<kTokens> no_first_query;
  no_first_query.set_valid({false, true, true, true, true, true});
  EXPECT_EQ(infer(late, CausalMask{} && no_first_query), Status::kOk);

  constexpr auto kWith = [](int offset, bool appended) {
    EncoderLayerShape block = kCausalBlock;
    block.attention.offset = offset;
    block.attention.add_zero_attn = appended;
    return block;
  };
  using Later = Masked<float, kWith(1, false)>;
  Problem<Later> b(7);
  EXPECT_EQ(attune::infer<Later>(b.parameters, late, b.y, b.inference), Status::kOk);
  using Appended = Masked<float, kWith(0, true)>;
  Problem<Appended> c(7);
  EXPECT_EQ(attune::infer<Appended>(c.parameters, late, c.y, c.inference), Status::kOk);
}

TEST(MaskFromIds, takes_the_ids_of_one_table) {
  using Types = Embedding<EmbeddingShape{.seq_len = kTokens, .vocabulary = 3, .d_model = kWidth}>;
  using Inside = Sequential<EmbeddingSum<Types, Words<float>>, EncoderLayer<kBlock>>;
  using Own = MaskFromIds<Inside, MaskFromIdsOptions{.padding = kPadding, .table = 1}>;
  Problem<Own> own(8);
  Problem<Inside> given(8);
  for (int i = 0; i < kTokens; ++i) {
    own.x[std::size_t(i)] = i % 3;  // 2 is no padding here
    own.x[std::size_t(kTokens + i)] = kInBetween[std::size_t(i)];
  }
  EXPECT_EQ(attune::infer<Own>(own.parameters, own.x, own.y, own.inference), Status::kOk);
  EXPECT_EQ(attune::infer<Inside>(given.parameters, own.x, given.y, given.inference, mask_of(kInBetween)),
            Status::kOk);
  EXPECT_TRUE(check::same_bits(own.y, given.y));
}

TEST(MaskFromIds, masks_source_and_target_of_an_encoder_and_a_decoder) {
  constexpr DecoderLayerShape kDecoder{.attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2},
                                       .d_ff = 12};
  using Both = EncoderDecoder<Sequential<Words<float>, EncoderLayer<kBlock>>,
                              Sequential<Words<float>, DecoderLayer<kDecoder>>>;
  using Own = MaskFromIds<Both, MaskFromIdsOptions{.padding = kPadding, .target_padding = 4}>;
  using Source = MaskFromIds<Both, MaskFromIdsOptions{.padding = kPadding}>;
  Problem<Own> own(9);
  Problem<Both> given(9);
  const Tokens target{1, 4, 2, 4, 4, 6};
  for (std::size_t i = 0; i < kTokens; ++i) {
    own.x[i] = kInBetween[i];
    own.x[kTokens + i] = target[i];
  }
  KeyPaddingMask<kTokens> of_target;
  of_target.set_valid({true, false, true, false, false, true});
  const auto masks = EncoderDecoderMask{mask_of(kInBetween), CausalMask{} && of_target};
  EXPECT_EQ(attune::forward<Own>(own.parameters, own.x, own.y, own.tape, own.scratch), Status::kOk);
  EXPECT_EQ(attune::forward<Both>(given.parameters, own.x, given.y, given.tape, given.scratch, masks),
            Status::kOk);
  EXPECT_TRUE(check::same_bits(own.y, given.y));
  attune::backward<Own>(own.parameters, own.x, own.tape, own.dy, NoGradient{}, own.gradients, own.scratch);
  attune::backward<Both>(given.parameters, own.x, given.tape, given.dy, NoGradient{}, given.gradients,
                         given.scratch, masks);
  EXPECT_TRUE(check::same_bits(own.gradients, given.gradients));
  EXPECT_EQ(attune::infer<Source>(own.parameters, own.x, own.y, own.inference), Status::kOk);
  EXPECT_EQ(attune::infer<Both>(given.parameters, own.x, given.y, given.inference,
                                EncoderDecoderMask{mask_of(kInBetween)}),
            Status::kOk);
  EXPECT_TRUE(check::same_bits(own.y, given.y));
  own.x[kTokens] = 4;
  EXPECT_EQ(attune::infer<Own>(own.parameters, own.x, own.y, own.inference), Status::kPaddingToken);
  for (std::size_t i = 0; i < kTokens; ++i) own.x[i] = kPadding;
  EXPECT_EQ(attune::infer<Source>(own.parameters, own.x, own.y, own.inference), Status::kPaddingToken);
}

namespace {

// Parameters after a few steps on drawn ids.
template <class Model, class Plan, int batch = 3>
const typename Model::Parameters& trained() {
  static Trainer<Model, CrossEntropy<>, AdamW, batch, Plan> trainer;
  trainer.initialize(XavierUniform{}, Rng{5});
  Rng rng(3);
  for (int step = 0; step < 3; ++step) {
    std::array<Tokens, std::size_t{batch}> ids;
    std::array<int, std::size_t{batch}> labels;
    for (std::size_t i = 0; i < batch; ++i) {
      for (int& id : ids[i]) id = static_cast<int>(rng.next() / 4 % kVocabulary);
      if (ids[i][0] == kPadding) ids[i][0] = 0;
      labels[i] = static_cast<int>(i) % 3;
    }
    EXPECT_TRUE(trainer.step(ids, labels, {.learning_rate = 0.01f}).ok());
  }
  return trainer.parameters();
}

}  // namespace

TEST(MaskFromIds, trains_to_the_same_bits_in_every_plan) {
  using Model = Classifier<Masked<float>>;
  const auto& plain = trained<Model, BySequence>();
  EXPECT_TRUE(check::same_bits(trained<Model, Lockstep>(), plain));
  const auto& recomputed = trained<Classifier<Checkpointed<Masked<float>>>, BySequence>();
  static_assert(sizeof recomputed == sizeof plain);
  EXPECT_EQ(std::memcmp(&recomputed, &plain, sizeof plain), 0);
  EXPECT_TRUE(check::same_bits(trained<Model, UpdateInBackward, 1>(), trained<Model, BySequence, 1>()));
}

TEST(MaskFromIds, trains_in_slices_to_the_same_bits) {
  using Model = Classifier<Masked<float>>;
  static Trainer<Model, CrossEntropy<>> at_once, in_slices;
  at_once.initialize(XavierUniform{}, Rng{5});
  in_slices.initialize(XavierUniform{}, Rng{5});
  static const int label = 1;
  Tokens nothing;
  nothing.fill(kPadding);
  EXPECT_EQ(at_once.accumulate(nothing, label).status, Status::kPaddingToken);
  auto refused = in_slices.template accumulate_in_slices<1>(nothing, label);
  while (refused.advance()) {
  }
  EXPECT_EQ(refused.result().status, Status::kPaddingToken);
  EXPECT_TRUE(at_once.accumulate(kInBetween, label).ok());
  auto pass = in_slices.template accumulate_in_slices<1>(kInBetween, label);
  while (pass.advance()) {
  }
  EXPECT_TRUE(pass.result().ok());
  EXPECT_TRUE(check::same_bits(at_once.gradients(), in_slices.gradients()));
}

TEST(MaskFromIds, streams_as_the_model_inside) {
  using Model = Masked<float, kCausalBlock>;
  using Cache = KeyValueCache<Model, CacheShape{.capacity = kTokens}>;
  Problem<Model> a(11);
  EXPECT_EQ(attune::infer<Model>(a.parameters, kWithout, a.y, a.inference), Status::kOk);
  static Cache cache;
  static Cache::Scratch<> scratch;
  Tensor<float, 1, kWidth> y;
  for (int i = 0; i < kTokens; ++i) {
    EXPECT_EQ(Model::step(a.parameters, kPadding, y, cache, scratch), Status::kPaddingToken);
    EXPECT_EQ(Model::step(a.parameters, kWithout[std::size_t(i)], y, cache, scratch), Status::kOk);
    for (int j = 0; j < kWidth; ++j) EXPECT_TRUE(check::same_bits(y(0, j), a.y(i, j)));
  }
}

TEST(MaskFromIds, takes_no_memory) {
  static_assert(sizeof(Masked<float>::InferenceScratch) == sizeof(Blocks<float>::InferenceScratch));
  static_assert(sizeof(Masked<float>::Tape) == sizeof(Blocks<float>::Tape));
  static_assert(sizeof(Masked<float>::Scratch) == sizeof(Blocks<float>::Scratch));
  static_assert(
      std::is_same_v<QuantizedTape<Masked<float>>,
                     MaskFromIds<QuantizedTape<Blocks<float>>, MaskFromIdsOptions{.padding = kPadding}>>);
}
