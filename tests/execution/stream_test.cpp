#include <attune/execution/stream.hpp>

#include <attune/attune.hpp>

#include "check.hpp"
#include "own_layer.hpp"
#include "stream_cases.hpp"

namespace {

using attune::CacheShape;
using attune::Status;

constexpr int kLength = 75, kVocabulary = 11, kWidth = 12;

constexpr attune::EncoderLayerShape kBlock{
    .attention = {.seq_len = kLength, .d_model = kWidth, .num_heads = 3, .dropout = 0.1},
    .d_ff = 20,
    .activation = attune::Activation::kGelu,
    .norm = attune::NormPlacement::kBefore};
template <class Positions>
using Text = attune::Sequential<attune::Embedding<attune::EmbeddingShape{kLength, kVocabulary, kWidth}>,
                                Positions, attune::Repeat<2, attune::EncoderLayer<kBlock>>,
                                attune::LayerNorm<attune::NormShape{kLength, kWidth}>,
                                attune::Dropout<attune::DropoutShape{kLength, kWidth, 0.1}>,
                                attune::Linear<attune::LinearShape{kLength, kWidth, kVocabulary}>>;
using Learned = Text<attune::LearnedPositions<attune::PositionShape{kLength, kWidth}>>;
using Sinusoidal = Text<attune::SinusoidalPositions<attune::PositionShape{kLength, kWidth}>>;

template <class Model>
const auto& parameters_of() {
  static typename Model::Parameters parameters;
  attune::Rng rng(3);
  attune::initialize(parameters, attune::XavierUniform{}, rng);
  return parameters;
}
std::array<int, kLength> ids_of(unsigned seed) {
  std::array<int, kLength> ids;
  attune::Rng rng(seed);
  for (int& id : ids) id = static_cast<int>(rng.next() % kVocabulary);
  return ids;
}

TEST(Stream, has_the_bits_of_the_batch_with_all_keys) {
  check::expect_stream_of_batch<Learned, CacheShape{.capacity = kLength}, 7>(parameters_of<Learned>(),
                                                                             ids_of(1));
}
TEST(Stream, has_the_bits_of_a_windowed_batch_in_a_ring) {
  check::expect_stream_of_batch<Sinusoidal, CacheShape{.window = 13, .sinks = 3}, 7>(
      parameters_of<Sinusoidal>(), ids_of(2));
}

// What a step must not change where it answers no kOk.
template <class Cache>
struct Kept {
  Cache cache;
  attune::Tensor<float, 4, kVocabulary> y;
};

TEST(Stream, a_full_cache_answers_and_nothing_changes) {
  using Cache = attune::KeyValueCache<Learned, CacheShape{.capacity = 10}>;
  static Kept<Cache> now, before;
  static Cache::Scratch<> one;
  static Cache::Scratch<4> four;
  now = {};
  const auto& parameters = parameters_of<Learned>();
  const int ids[4] = {1, 2, 3, 4};
  EXPECT_EQ(Learned::step(parameters, ids, now.y, now.cache, four), Status::kOk);
  EXPECT_EQ(Learned::step(parameters, ids, now.y, now.cache, four), Status::kOk);
  before = now;
  EXPECT_EQ(Learned::step(parameters, ids, now.y, now.cache, four), Status::kCacheFull);
  EXPECT_EQ(std::memcmp(&now, &before, sizeof now), 0);
  const auto first = view(now.y).rows_at<1>(0);
  EXPECT_TRUE(now.cache.has_room(2) && !now.cache.has_room(3));
  EXPECT_EQ(Learned::step(parameters, 5, first, now.cache, one), Status::kOk);
  EXPECT_EQ(Learned::step(parameters, 6, first, now.cache, one), Status::kOk);
  before = now;
  EXPECT_EQ(Learned::step(parameters, 7, first, now.cache, one), Status::kCacheFull);
  EXPECT_EQ(std::memcmp(&now, &before, sizeof now), 0);
  now.cache.reset();
  EXPECT_EQ(Learned::step(parameters, ids, now.y, now.cache, four), Status::kOk);
  EXPECT_EQ(now.cache.tokens, 4u);
}
TEST(Stream, an_id_outside_the_vocabulary_in_a_chunk_changes_nothing) {
  using Cache = attune::KeyValueCache<Learned, CacheShape{.window = 8}>;
  static Kept<Cache> now, before;
  static Cache::Scratch<4> four;
  now = {};
  const auto& parameters = parameters_of<Learned>();
  EXPECT_EQ(Learned::step(parameters, {{1, 2, 3, 4}}, now.y, now.cache, four), Status::kOk);
  before = now;
  EXPECT_EQ(Learned::step(parameters, {{1, 2, kVocabulary, 4}}, now.y, now.cache, four),
            Status::kInvalidToken);
  EXPECT_EQ(std::memcmp(&now, &before, sizeof now), 0);
}
TEST(Stream, learned_positions_end_where_their_table_does) {
  using Cache = attune::KeyValueCache<Learned, CacheShape{.window = 8}>;
  static_assert(Cache::kMaxTokens == kLength);
  static_assert(attune::KeyValueCache<Sinusoidal, CacheShape{.window = 8}>::kMaxTokens ==
                attune::detail::kAnyNumber);
  static Cache cache;
  static Cache::Scratch<> scratch;
  static attune::Tensor<float, 1, kVocabulary> y;
  cache = {};
  for (int t = 0; t < kLength; ++t) {
    ASSERT_EQ(Learned::step(parameters_of<Learned>(), t % kVocabulary, y, cache, scratch), Status::kOk);
  }
  EXPECT_EQ(Learned::step(parameters_of<Learned>(), 0, y, cache, scratch), Status::kCacheFull);
}
// Long's rows from a Short one.
template <class Long, class Short>
void expect_to_go_on() {
  static typename Long::Input x;
  static typename Long::Output y;
  typename Long::InferenceScratch none;
  attune::Rng rng(6);
  check::fill(x, rng);
  Long::forward(typename Long::Parameters{}, x, y, none);
  check::expect_stream<Short, CacheShape{.window = 1}, 4>(typename Short::Parameters{}, x, y);
}
TEST(Stream, sines_and_rotations_continue_beyond_their_tables) {
  constexpr attune::PositionShape kShort{5, kWidth}, kLong{kLength, kWidth};
  expect_to_go_on<attune::SinusoidalPositions<kLong>, attune::SinusoidalPositions<kShort>>();
  constexpr attune::RotaryShape kShortTurn{.seq_len = 5, .num_heads = 2, .d_k = 6, .offset = 7};
  constexpr attune::RotaryShape kLongTurn{.seq_len = kLength, .num_heads = 2, .d_k = 6, .offset = 7};
  expect_to_go_on<attune::RotaryPositions<kLongTurn>, attune::RotaryPositions<kShortTurn>>();
}
TEST(Stream, a_damaged_count_of_tokens_is_refused) {
  static attune::KeyValueCache<Learned, CacheShape{.capacity = 10}> cache;
  cache.tokens = ~std::uint64_t{0};
  EXPECT_FALSE(cache.has_room(1));
  EXPECT_FALSE(cache.has_room(~std::uint64_t{0}));
}

TEST(Stream, a_used_cache_is_empty_after_reset_whatever_it_holds) {
  using Cache = attune::KeyValueCache<Sinusoidal, CacheShape{.window = 20, .sinks = 2}>;
  static Cache cache;
  static Cache::Scratch<> scratch;
  static attune::Tensor<float, 1, kVocabulary> first, again;
  const auto& parameters = parameters_of<Sinusoidal>();
  const auto ids = ids_of(5);
  cache = {};
  for (int t = 0; t < 9; ++t) {
    ASSERT_EQ(Sinusoidal::step(parameters, ids[static_cast<std::size_t>(t)], first, cache, scratch),
              Status::kOk);
  }
  std::memset(static_cast<void*>(&cache), 0xFF, sizeof cache);  // NaN everywhere
  cache.reset();
  for (int t = 0; t < 9; ++t) {
    ASSERT_EQ(Sinusoidal::step(parameters, ids[static_cast<std::size_t>(t)], again, cache, scratch),
              Status::kOk);
  }
  EXPECT_TRUE(check::same_bits(first, again));
}

// A layer of one's own, without parameters: y = 2x. And one that remembers: the sum of all tokens.
template <int kRows>
struct Twice : OwnLayer<kRows, kWidth> {
  using Own = OwnLayer<kRows, kWidth>;
  using typename Own::Parameters, typename Own::Input, typename Own::Output;
  using typename Own::Tape, typename Own::Scratch, typename Own::InferenceScratch;
  template <int tokens, CacheShape>
  using Stream = Twice<tokens>;
  static void forward(const Parameters&, attune::ConstView<Input> x, attune::View<Output> y,
                      InferenceScratch&) {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kWidth; ++j) y(i, j) = 2 * x(i, j);
    }
  }
  static void forward(const Parameters& none, attune::ConstView<Input> x, attune::View<Output> y, Tape&,
                      Scratch&) {
    InferenceScratch scratch;
    forward(none, x, y, scratch);
  }
  static void backward(const Parameters&, attune::ConstView<Input>, Tape&, attune::ConstView<Output> dy,
                       auto&& dx, Parameters&, Scratch&) {
    if constexpr (attune::kWanted<decltype(dx)>) {
      for (int i = 0; i < kRows; ++i) {
        for (int j = 0; j < kWidth; ++j) dx(i, j) = 2 * dy(i, j);
      }
    }
  }
};
struct Total : Twice<kLength> {
  template <int tokens, CacheShape>
  struct Stream {
    struct Memory {
      float total[kWidth];
    };
    struct Scratch {};
    static void step(std::uint64_t position, const auto&,
                     attune::ConstView<attune::Tensor<float, tokens, kWidth>> x,
                     attune::View<attune::Tensor<float, tokens, kWidth>> y, auto& memory, Scratch&) {
      for (int i = 0; i < tokens; ++i) {
        for (int j = 0; j < kWidth; ++j) {
          const float before = position == 0 && i == 0 ? 0 : memory.total[j];
          y(i, j) = memory.total[j] = before + x(i, j);
        }
      }
    }
  };
};

TEST(Stream, takes_user_layers) {
  using Model = attune::Sequential<attune::Residual<Twice<kLength>>, Total>;
  using Cache = attune::KeyValueCache<Model, CacheShape{.window = 5}>;
  static Cache cache;
  static Cache::Scratch<2> scratch;
  static attune::Tensor<float, 2, kWidth> x, y;
  cache = {};
  for (float& value : x.values) value = 1;
  EXPECT_EQ(attune::step(Model::Parameters{}, x, y, cache, scratch), Status::kOk);
  EXPECT_EQ(Model::step(Model::Parameters{}, x, y, cache, scratch), Status::kOk);
  EXPECT_EQ(y(0, 0), 9.0f);
  EXPECT_EQ(y(1, kWidth - 1), 12.0f);
  cache.reset();
  EXPECT_EQ(Model::step(Model::Parameters{}, x, y, cache, scratch), Status::kOk);
  EXPECT_EQ(y(1, 0), 6.0f);
}

TEST(Stream, memory_is_reported_by_class) {
  constexpr CacheShape kCache{.capacity = 20};
  constexpr auto report = attune::stream_memory<Learned, kCache, 3>();
  // Two layers of three heads: keys and values of 32 tokens of 4 features, the most squares of a key, and the
  // number of tokens.
  static_assert(report.cache == 2 * 3 * (2 * 32 * 4 + 1) * sizeof(float) + 8);
  static_assert(report.parameters == sizeof(Learned::Parameters));
  static_assert(report.scratch == sizeof(attune::StepScratch<Learned, kCache, 3>));
  static_assert(report.inputs == 3 * sizeof(int) + 3 * kVocabulary * sizeof(float));
  static_assert(report.object() == report.parameters + report.scratch + report.cache);
  static_assert(std::is_trivially_copyable_v<attune::KeyValueCache<Learned, kCache>>);
  EXPECT_EQ(report.total(), report.object() + report.inputs);
}

}  // namespace
