#include <cmath>

#include <attune/models/sampling.hpp>

#include "check.hpp"

namespace {

using attune::Rng, attune::SamplingOptions, attune::Status;

constexpr int kTokens = 5, kDraws = 5000;
using Logits = attune::Tensor<float, 1, kTokens>;
attune::SamplingScratch<kTokens> scratch;

/// How often each token is drawn.
struct Counts {
  int of[kTokens] = {};
  Counts(const Logits& logits, const SamplingOptions& options) {
    Rng rng(7);
    for (int i = 0; i < kDraws; ++i) {
      const auto next = attune::sample(logits, options, rng, scratch);
      ++of[next.ok() ? next.id : 0];
    }
  }
};

void expect_share(int count, double share) {
  EXPECT_NEAR(count, kDraws * share, 4 * std::sqrt(kDraws * 0.25));
}

Status status_of(const Logits& logits, const SamplingOptions& options) {
  Rng rng(1), untouched(1);
  const auto next = attune::sample(logits, options, rng, scratch);
  EXPECT_EQ(next.id, -1);
  EXPECT_EQ(rng.next(), untouched.next());
  return next.status;
}

}  // namespace

TEST(Sampling, draws_by_the_softmax_of_logits_over_the_temperature) {
  const Logits logits{{0, -1, -3, 1, -2}};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    const Counts counts(logits, {.temperature = temperature});
    const auto weight = [&](float x) { return attune::kernels::exponential((x - 1) / temperature); };
    float total = 0;
    for (const float x : logits.values) total += weight(x);
    for (int j = 0; j < kTokens; ++j) expect_share(counts.of[j], weight(logits.values[j]) / total);
  }
}

TEST(Sampling, draws_among_the_k_largest_and_of_equals_the_first) {
  const Counts two({{0, -1, -3, 1, -2}}, {.top_k = 2});
  const double likelier = 1 / (1 + attune::kernels::exponential(-1.0));
  expect_share(two.of[3], likelier);
  expect_share(two.of[0], 1 - likelier);
  EXPECT_EQ(two.of[1] + two.of[2] + two.of[4], 0);

  const Counts equals({{0, 0, 1, 0, 0}}, {.temperature = 1e30f, .top_k = 3});
  for (const int id : {0, 1, 2}) expect_share(equals.of[id], 1.0 / 3);
  EXPECT_EQ(equals.of[3] + equals.of[4], 0);
}

TEST(Sampling, more_than_there_are_are_all) {
  const Logits logits{{0, -1, -3, 1, -2}};
  const Counts all(logits, {}), as_many(logits, {.top_k = kTokens}), more(logits, {.top_k = 1'000'000});
  for (int j = 0; j < kTokens; ++j) {
    EXPECT_EQ(as_many.of[j], all.of[j]);
    EXPECT_EQ(more.of[j], all.of[j]);
  }
}

TEST(Sampling, temperature_zero_takes_the_first_of_the_largest_and_draws_nothing) {
  Rng rng(1), untouched(1);
  const Logits logits{{-5, 2, 0, 2, 1}};
  const auto next = attune::sample(logits, {.temperature = 0, .top_k = 4}, rng, scratch);
  EXPECT_EQ(next.id, 1);
  EXPECT_EQ(next.status, Status::kOk);
  EXPECT_EQ(rng.next(), untouched.next());
}

TEST(Sampling, a_draw_takes_one_number_of_the_generator) {
  Rng rng(3), other(3);
  const Logits logits{{0, -1, -3, 1, -2}};
  EXPECT_TRUE(attune::sample(logits, {.temperature = 1e-30f, .top_k = 1}, rng, scratch).ok());
  (void)other.next();
  EXPECT_EQ(rng.next(), other.next());
}

TEST(Sampling, extreme_logits_and_temperatures_draw_likely_tokens) {
  const float large = std::numeric_limits<float>::max(), banned = -check::kInfinity<float>;
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    const Logits far{{-large, large, banned, -large, 0}};
    EXPECT_EQ(attune::sample(far, {}, rng, scratch).id, 1);
    EXPECT_EQ(attune::sample(far, {.temperature = 1e-38f}, rng, scratch).id, 1);
    const Logits alone{{banned, banned, banned, -large, banned}};
    EXPECT_EQ(attune::sample(alone, {.temperature = large, .top_k = 2}, rng, scratch).id, 3);
  }
}

TEST(Sampling, refuses_invalid_logits_and_options) {
  const float infinity = check::kInfinity<float>, nan = check::kNan<float>;
  const Logits logits{{0, -1, -3, 1, -2}};
  EXPECT_EQ(status_of(logits, {.temperature = -1}), Status::kInvalidSampling);
  EXPECT_EQ(status_of(logits, {.temperature = nan}), Status::kInvalidSampling);
  EXPECT_EQ(status_of(logits, {.temperature = infinity}), Status::kInvalidSampling);
  EXPECT_EQ(status_of(logits, {.top_k = -1}), Status::kInvalidSampling);
  EXPECT_EQ(status_of({{0, nan, 0, 0, 0}}, {}), Status::kNotFinite);
  EXPECT_EQ(status_of({{nan, 0, 0, 0, 0}}, {.temperature = 0}), Status::kNotFinite);
  EXPECT_EQ(status_of({{0, 0, 0, infinity, 0}}, {.top_k = 2}), Status::kNotFinite);
  EXPECT_EQ(status_of({{-infinity, -infinity, -infinity, -infinity, -infinity}}, {}), Status::kNotFinite);
}

TEST(Sampling, the_same_seed_draws_the_same_tokens_on_every_target) {
  constexpr int kVocabulary = 300;
  static attune::SamplingScratch<kVocabulary> of_many;
  static attune::Tensor<float, 3, kVocabulary> logits;
  Rng rng(11);
  for (float& x : logits.values) x = 2 * rng.normal();
  std::uint32_t hash = 2166136261U;
  for (int i = 0; i < 500; ++i) {
    const auto next = attune::sample(attune::view(logits).rows_at<1>(i % 3),
                                     {.temperature = 0.9f, .top_k = i % 50}, rng, of_many);
    hash = (hash ^ static_cast<std::uint32_t>(next.id)) * 16777619U;
  }
  EXPECT_EQ(hash, 2928019867u);
}

TEST(Sampling, draws_from_doubles) {
  static attune::SamplingScratch<3, double> of_doubles;
  Rng rng(1);
  const attune::Tensor<double, 1, 3> logits{{-1e300, 1e300, 0}};
  EXPECT_EQ(attune::sample(logits, {}, rng, of_doubles).id, 1);
}
