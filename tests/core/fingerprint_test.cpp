#include <attune/core/fingerprint.hpp>

#include "check.hpp"

namespace {

using attune::fingerprint;

enum class Color { kRed, kGreen };
struct WithOne {
  static constexpr std::uint32_t kFingerprint = 7;
};
struct Without {};

}  // namespace

// FNV-1a of the bytes, little-endian: of none its offset basis.
TEST(Fingerprint, is_the_same_on_every_compiler) {
  static_assert(fingerprint() == 2166136261u);
  static_assert(fingerprint("a") == fingerprint(std::string_view("a")));
  static_assert(fingerprint(1) == 0x3E801244u);
  static_assert(fingerprint(1.0) == 0x8C6A9878u);
}

TEST(Fingerprint, distinguishes_values_types_and_order) {
  EXPECT_NE(fingerprint(1, 2), fingerprint(2, 1));
  EXPECT_NE(fingerprint(1), fingerprint(1.0));
  EXPECT_NE(fingerprint(0), fingerprint());
  EXPECT_NE(fingerprint(0), fingerprint(0, 0));
  EXPECT_NE(fingerprint("ab", "c"), fingerprint("a", "bc"));
  EXPECT_NE(fingerprint(1e-5), fingerprint(1e-6));
  EXPECT_NE(fingerprint(Color::kRed), fingerprint(Color::kGreen));
  EXPECT_EQ(fingerprint(true), fingerprint(1));  // of one value
  EXPECT_EQ(fingerprint(0.5f), fingerprint(0.5));
}

TEST(Fingerprint, of_a_type_is_its_own_or_0) {
  EXPECT_EQ(attune::kFingerprintOf<WithOne>, 7u);
  EXPECT_EQ(attune::kFingerprintOf<Without>, 0u);
}
