// AvgPool1d and AvgPool2d: values, derivatives, and padding that is left out.
#include <attune/layers/average_pooling.hpp>

#include <attune/attune.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr Pool1dShape kWindows{.seq_len = 7, .d_model = 5, .kernel = 3, .stride = 2};
constexpr Pool2dShape kImage{
    .height = 5, .width = 4, .d_model = 3, .kernel_height = 2, .kernel_width = 3, .stride_width = 1};

}  // namespace

TEST(AveragePooling, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<AvgPool1d<kWindows, double>>(-1, 1);
  check::check_layer_gradients<AvgPool2d<kImage, double>>(-1, 1);
  SequenceLength<7> length;
  (void)length.set_length(4);
  check::check_layer_gradients<AvgPool1d<kWindows, double>>(-1, 1, length);
}

TEST(AveragePooling, leaves_out_padding) {
  using Layer = AvgPool1d<Pool1dShape{.seq_len = 6, .d_model = 1, .kernel = 2}>;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Layer::Input x{{1, kNan, 3, 5, kNan, kNan}}, dx;
  Layer::Output y, dy{{1, 2, 3}};
  Layer::InferenceScratch scratch;
  Layer::Tape tape;
  Layer::Scratch training;
  NoParameters none;
  KeyPaddingMask<6> padding;
  padding.set_valid({true, false, true, true, false, false});
  infer<Layer>({}, x, y, scratch, padding);
  EXPECT_TRUE(check::same_bits(y, Layer::Output{{1, 4, 0}}));
  backward<Layer>({}, x, tape, dy, dx, none, training, padding);
  EXPECT_TRUE(check::same_bits(dx, Layer::Input{{1, 0, 1, 1, 0, 0}}));
  SequenceLength<6> length;
  (void)length.set_length(1);
  infer<Layer>({}, x, y, scratch, length);
  EXPECT_TRUE(check::same_bits(y, Layer::Output{{1, 0, 0}}));
}

TEST(AveragePooling, takes_no_byte) {
  static_assert(std::is_empty_v<AvgPool1d<kWindows>::Tape> && std::is_empty_v<AvgPool1d<kWindows>::Scratch>);
}
