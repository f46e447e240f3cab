// Tables that a PC fills at start-up have the bits of those that the compiler makes.
#include <attune/attention/rotary_positions.hpp>
#include <attune/layers/positions.hpp>

#include "check.hpp"

namespace {

namespace detail = attune::detail;

template <int kFrequencies, class Check>
void for_some_positions(int positions, const detail::Frequencies<kFrequencies>& frequencies,
                        const Check& check) {
  detail::AnglesOfPosition<kFrequencies> angles = {};
  for (int position = 0; position < positions; position += position < 40 ? 1 : 97) {
    angles.move_to(static_cast<std::uint64_t>(position), frequencies);
    for (int i = 0; i < kFrequencies; ++i) check(position, i, angles.of[i]);
  }
}

}  // namespace

TEST(SinusoidalPositions, of_many_tokens_have_the_bits_of_a_short_table) {
  using Short = attune::SinusoidalPositions<attune::PositionShape{.seq_len = 8, .d_model = 256}>;
  using Long = attune::SinusoidalPositions<attune::PositionShape{.seq_len = 1024, .d_model = 256}>;
  static_assert(Short::kAngles <= detail::kMaxConstantAngles && Long::kAngles > detail::kMaxConstantAngles);
  for (int t = 0; t < 8; ++t) {
    for (int j = 0; j < 256; ++j) EXPECT_EQ(Long::kVectors(t, j), Short::kVectors(t, j));
  }
  static constexpr auto kFrequencies = detail::frequencies<128>(10'000, 256);
  for_some_positions(1024, kFrequencies, [](int position, int i, const detail::CosineSine& angle) {
    EXPECT_EQ(Long::kVectors(position, 2 * i), static_cast<float>(angle.sine));
    EXPECT_EQ(Long::kVectors(position, 2 * i + 1), static_cast<float>(angle.cosine));
  });
}

TEST(RotaryPositions, of_many_tokens_have_the_bits_of_a_short_table) {
  constexpr attune::RotaryShape kShape{.seq_len = 4096, .num_heads = 1, .d_k = 128};
  using Short = attune::RotaryPositions<attune::RotaryShape{.seq_len = 8, .num_heads = 1, .d_k = 128}>;
  using Long = attune::RotaryPositions<kShape>;
  static_assert(Short::kAngles <= detail::kMaxConstantAngles && Long::kAngles > detail::kMaxConstantAngles);
  for (int t = 0; t < 8; ++t) {
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(Long::kTable.cosine(t, i), Short::kTable.cosine(t, i));
      EXPECT_EQ(Long::kTable.sine(t, i), Short::kTable.sine(t, i));
    }
  }
  static constexpr auto kFrequencies = detail::frequencies<64>(10'000, 128);
  for_some_positions(4096, kFrequencies, [](int position, int i, const detail::CosineSine& angle) {
    EXPECT_EQ(Long::kTable.cosine(position, i), static_cast<float>(angle.cosine));
    EXPECT_EQ(Long::kTable.sine(position, i), static_cast<float>(angle.sine));
  });
}
