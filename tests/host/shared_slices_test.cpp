#include <attune/host/shared_slices.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include <attune/attention/mask.hpp>
#include <attune/attention/sequence_length.hpp>
#include <attune/layers/activation.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/layers/positions.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/sequential.hpp>
#include <attune/models/tied.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"
#include "lengths.hpp"

namespace {

using namespace attune;
using host::SharedPass, host::SharedSlices, host::ThreadPool;

constexpr int kThreadCounts[] = {1, 2, 3, 5, 16};

// Threads that share out whatever there is.
struct Threads {
  ThreadPool pool;
  SharedPass pass;
  explicit Threads(int threads) : pool(threads), pass(pool, 1) {}
};

// What slices do, in plain integers: each row and element is one thread's, and slices are one after the
// other.
struct Done {
  std::array<int, 103> rows{};
  std::array<int, 1000> elements{};
  int single = 0, sum = 0;
};

template <class Slices>
void sequence(Done& done, const Slices& slices) {
  const Context context(NoMask{}, slices);
  context.stage([&] { ++done.single; });
  context.template rows<103, 100>([&]<int count>(int first) {
    for (int i = first; i < first + count; ++i) done.rows[static_cast<std::size_t>(i)] += done.single;
  });
  context.template elements<1000, 100>([&](int first, int count) {
    for (int i = first; i < first + count; ++i) {
      done.elements[static_cast<std::size_t>(i)] += done.rows[static_cast<std::size_t>(i % 103)];
    }
  });
  context.stage([&] {
    for (const int n : done.elements) done.sum += n;
  });
}

TEST(SharedSlices, do_every_row_and_element_once_after_earlier_slices) {
  for (const int count : kThreadCounts) {
    Threads threads(count);
    for (int round = 0; round < 100; ++round) {
      Done done, expected;
      sequence(expected, RunToCompletion{});
      EXPECT_EQ(threads.pass.run(&done, [&](const SharedSlices& slices) { sequence(done, slices); }),
                Status::kOk);
      EXPECT_EQ(done.rows, expected.rows);
      EXPECT_EQ(done.elements, expected.elements);
      EXPECT_EQ(done.sum, 1000);
    }
  }
}

TEST(SharedSlices, cover_only_the_first_tokens) {
  Threads threads(3);
  for (int length = 1; length <= 103; ++length) {
    std::array<std::atomic<int>, 103> rows{}, at_once{};
    std::array<std::atomic<int>, 206> elements{};
    int none = 0;
    (void)threads.pass.run(&none, [&](const SharedSlices& all) {
      const detail::FirstTokens<103> tokens{length};
      const auto context = detail::context_of(NoMask{}, all, tokens, tokens);
      context.tokens<103, 1>([&]<int count>(auto first) {
        for (int i = 0; i < rows_in<count>(first); ++i) ++rows[static_cast<std::size_t>(first + i)];
      });
      context.tokens_at_once<103, 10, 1>([&]<int count>(auto first) {
        static_assert(count <= 10);
        for (int i = 0; i < rows_in<count>(first); ++i) ++at_once[static_cast<std::size_t>(first + i)];
      });
      context.token_elements<103, 2, 1>([&](int first, int count) {
        for (int i = first; i < first + count; ++i) ++elements[static_cast<std::size_t>(i)];
      });
    });
    for (int i = 0; i < 103; ++i) {
      const auto row = static_cast<std::size_t>(i);
      EXPECT_LE(rows[row], 1);
      EXPECT_LE(at_once[row], 1);
      EXPECT_GE(rows[row] + at_once[row], i < length ? 2 : 0);
      EXPECT_LE(rows[row] + at_once[row], i < length + 10 ? 2 : 0);
    }
    for (int i = 0; i < 206; ++i) EXPECT_EQ(elements[static_cast<std::size_t>(i)], i < 2 * length ? 1 : 0);
  }
}

TEST(SharedSlices, are_done_by_several_threads_each_in_scratch_of_its_own) {
  Threads threads(4);
  std::array<std::thread::id, 4> of_thread;
  std::array<int, 4> scratch{};
  std::atomic<int> arrived = 0;
  (void)threads.pass.run(scratch.data(), [&](const SharedSlices& slices) {
    Context(NoMask{}, slices)
        .template rows<16, 1>([&]<int>(int first) {  // nobody leaves before all are there
          ++arrived;
          while (arrived < 4) std::this_thread::yield();
          int* own = slices.own(scratch.data());
          *own += 1;
          of_thread[static_cast<std::size_t>(first / 4)] = std::this_thread::get_id();
        });
  });
  EXPECT_EQ(scratch, (std::array{1, 1, 1, 1}));
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_TRUE(of_thread[i] != of_thread[j]);
  }
}

TEST(SharedSlices, little_work_stays_on_one_thread) {
  ThreadPool pool(4);
  SharedPass pass(pool, 1000);
  const auto threads_of = [&](auto work, int most) {
    std::array<int, 4> scratch{};
    std::atomic<int> arrived = 0;
    (void)pass.run(scratch.data(), [&](const SharedSlices& slices) {
      Context(NoMask{}, slices).template rows<16, decltype(work)::value>([&]<int>(int) {
        if (++*slices.own(scratch.data()) == 1) ++arrived;
        while (arrived < most) std::this_thread::yield();
        std::this_thread::sleep_for(std::chrono::microseconds(300));  // others would come by
      });
    });
    return static_cast<int>(4 - std::count(scratch.begin(), scratch.end(), 0));
  };
  EXPECT_EQ(threads_of(std::integral_constant<int, 124>{}, 1), 1);  // 1984 in all: less than two shares
  EXPECT_EQ(threads_of(std::integral_constant<int, 125>{}, 2), 2);
}

TEST(SharedSlices, that_refuse_their_input_end_the_pass_on_all_threads) {
  for (const int count : kThreadCounts) {
    Threads threads(count);
    int none = 0;
    for (const Status status : {Status::kInvalidToken, Status::kOk}) {
      int behind = 0;
      std::atomic<int> answers = 0;
      const Status refused = threads.pass.run(&none, [&](const SharedSlices& slices) {
        slices.stage([] {});
        const Status answer = slices.answer([&] {
          std::this_thread::sleep_for(std::chrono::microseconds(500));  // others wait for it
          return status;
        });
        if (answer != status) ++answers;
        if (answer == Status::kOk) slices.stage([&] { ++behind; });
      });
      EXPECT_EQ(refused, status);
      EXPECT_EQ(answers, 0);
      EXPECT_EQ(behind, status == Status::kOk ? 1 : 0);
    }
  }
}

// ---- Layers. ----

constexpr int kTokens = 21, kWidth = 8;

template <class Model>
struct Compared {
  typename Model::Input x{};
  typename Model::Output y, expected;
  typename Model::InferenceScratch alone;
  std::array<typename Model::InferenceScratch, 16> scratch;

  static void forget(auto& room) { std::memset(static_cast<void*>(&room), 0xFF, sizeof room); }  // NaN

  // forward(y, scratch, slices) in one go and on threads.
  void expect_same(const auto& forward) {
    forget(expected), forget(alone);
    forward(View<typename Model::Output>(expected), alone, RunToCompletion{});
    for (const int count : kThreadCounts) {
      Threads threads(count);
      for (int round = 0; round < 4; ++round) {
        forget(y), forget(scratch);
        (void)threads.pass.run(scratch.data(), [&](const SharedSlices& slices) {
          forward(View<typename Model::Output>(y), scratch[0], slices);
        });
        EXPECT_TRUE(check::same_bits(y, expected));
      }
    }
  }
};
template <class Model, class Set, class Mask = NoMask>
void expect_same_bits(const Set& parameters, const auto& fill, const Mask& mask = {}) {
  static const auto compared = std::make_unique<Compared<Model>>();
  fill(compared->x);
  compared->expect_same([&](auto y, auto& scratch, const auto& slices) {
    (void)detail::forward_pass<Model>(context_for<Model>(mask, slices), parameters,
                                      ConstView<typename Model::Input>(compared->x), y, scratch);
  });
}
template <class Model>
const typename Model::Parameters& drawn_parameters() {
  static const auto parameters = [] {
    auto set = std::make_unique<typename Model::Parameters>();
    Rng rng(3);
    check::fill_set(*set, rng);
    return set;
  }();
  return *parameters;
}
SequenceLength<kTokens> of_length(int length) { return check::of_length<SequenceLength<kTokens>>(length); }
// NaN behind `length`.
auto features(int length) {
  return [length](auto& x) {
    Rng rng(5);
    check::fill(x, rng);
    check::fill_behind(x, length, check::kNan<float>);
  };
}

using Encoder = EncoderLayer<EncoderLayerShape{
    .attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2, .keep_weights = false},
    .d_ff = 12,
    .activation = Activation::kGelu}>;
using Classifier =
    Sequential<Linear<LinearShape{kTokens, 5, kWidth}>, SinusoidalPositions<PositionShape{kTokens, kWidth}>,
               Repeat<2, Encoder>, Residual<Gelu<kTokens, kWidth>>, Pooling<PoolingShape{kTokens, kWidth}>,
               Linear<LinearShape{1, kWidth, 3}>>;

TEST(SharedSlices, classifiers_have_the_bits_of_one_thread) {
  expect_same_bits<Classifier>(drawn_parameters<Classifier>(), features(kTokens));
  for (const int length : {1, 8, 20}) {
    expect_same_bits<Classifier>(drawn_parameters<Classifier>(), features(length), of_length(length));
  }
}

TEST(SharedSlices, weights_of_8_bits_have_the_bits_of_one_thread) {
  using Network = SwiGlu<FeedForwardShape{kTokens, kWidth, 12}>;
  static Network::ParametersOf<Int8Weights, Tensor> quantized;
  EXPECT_EQ(quantize(drawn_parameters<Network>(), quantized), Status::kOk);
  expect_same_bits<Network>(quantized, features(kTokens));
}

Encoder::Parameters constants;  // filled before the model is used

TEST(SharedSlices, adapted_layers_have_the_bits_of_one_thread) {
  using Model = Adapted<Encoder, constants, LowRank{.rank = 2, .roles = Role::kEverything}>;
  Rng rng(7);
  check::fill_set(constants, rng);
  expect_same_bits<Model>(drawn_parameters<Model>(), features(kTokens));
}

// Llama's block: keys in groups, rotated and normalized, gated networks, ids in and logits out.
using Block =
    EncoderLayerOf<MultiHeadAttention<AttentionShape{.seq_len = kTokens,
                                                     .d_model = kWidth,
                                                     .num_heads = 4,
                                                     .num_kv_heads = 2,
                                                     .bias = false,
                                                     .scaling = Scaling::kInverseFourthRootDkEach,
                                                     .rotary_dim = 2,
                                                     .softcap = 5,
                                                     .query_key_norm = QueryKeyNorm::kLayerNorm}>,
                   SwiGlu<FeedForwardShape{kTokens, kWidth, 12}>, RmsNorm<NormShape{kTokens, kWidth}>,
                   BranchOptions{.norm = NormPlacement::kBefore}>;
using Language = Tied<Embedding<EmbeddingShape{kTokens, 7, kWidth}>,
                      Sequential<Repeat<2, Block>, RmsNorm<NormShape{kTokens, kWidth}>>>;

TEST(SharedSlices, language_models_have_the_bits_of_one_thread) {
  for (const int length : {kTokens, 4}) {  // an id that is none refuses all: nothing is written
    expect_same_bits<Language>(
        drawn_parameters<Language>(),
        [length](auto& x) {
          for (int i = 0; i < kTokens; ++i) x[static_cast<std::size_t>(i)] = i < length ? i % 7 : -1;
        },
        CausalMask{});
  }
}

TEST(SharedSlices, decoder_layers_have_the_bits_of_one_thread) {
  using Decoder =
      DecoderLayer<DecoderLayerShape{.attention = {.seq_len = kTokens, .d_model = kWidth, .num_heads = 2},
                                     .d_ff = 12,
                                     .memory_len = kTokens}>;
  static Decoder::Input x;
  static Decoder::Memory memory;
  static const auto compared = std::make_unique<Compared<Decoder>>();
  for (const int length : {kTokens, 9}) {
    features(kTokens - length / 2)(x);
    features(length)(memory);
    compared->expect_same([&](auto y, auto& scratch, const auto& slices) {
      const auto mask = CausalMask{} && of_length(kTokens - length / 2);
      const auto memory_mask = of_length(length);
      const auto context = decoder_context_for<Decoder>(mask, memory_mask, slices);
      Decoder::forward(drawn_parameters<Decoder>(), x, memory, y, scratch, context);
      detail::clear_behind_in(context.tokens, y);
    });
  }
}

}  // namespace
