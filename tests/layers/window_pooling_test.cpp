// MaxPool1d and MaxPool2d, and places outside of the sequence: values, derivatives, equal maxima, and
// padding that is left out.
#include <attune/layers/window_pooling.hpp>

#include <attune/attention/mask.hpp>
#include <attune/attention/sequence_length.hpp>

#include "check.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"

namespace {

using namespace attune;

constexpr Pool1dShape kWindows{.seq_len = 7, .d_model = 5, .kernel = 3, .stride = 2, .padding = 1};
constexpr Pool2dShape kImage{.height = 4,
                             .width = 5,
                             .d_model = 3,
                             .kernel_height = 3,
                             .kernel_width = 2,
                             .stride_height = 2,
                             .stride_width = 1,
                             .padding_height = 1,
                             .padding_width = 1};
constexpr Pool1dShape kAlone{.seq_len = 5, .d_model = 1, .kernel = 3, .stride = 2, .padding = 1};

// y of x, and dx of dy.
template <class Layer>
void expect_pooled(const typename Layer::Input& x, const typename Layer::Output& dy,
                   const typename Layer::Output& y, const typename Layer::Input& dx, const auto&... mask) {
  check::Problem<Layer> a(1);
  a.x = x;
  a.dy = dy;
  a.infer(mask...);
  EXPECT_TRUE(check::same_bits(a.y, y));
  a.forward(mask...);
  EXPECT_TRUE(check::same_bits(a.y, y));
  a.backward(mask...);
  EXPECT_TRUE(check::same_bits(a.dx, dx));
}

}  // namespace

TEST(WindowPooling, gives_the_gradient_to_the_first_of_equal_maxima) {
  expect_pooled<MaxPool1d<Pool1dShape{.seq_len = 4, .d_model = 1, .kernel = 3, .stride = 1}>>(
      {{2, 5, 5, 5}}, {{1, 2}}, {{5, 5}}, {{0, 3, 0, 0}});
}

TEST(WindowPooling, takes_no_maximum_outside_of_the_sequence) {
  expect_pooled<MaxPool1d<kAlone>>({{-3, -2, -4, -1, -5}}, {{1, 2, 3}}, {{-2, -1, -1}}, {{0, 1, 0, 5, 0}});
}

TEST(WindowPooling, reaches_over_the_end_on_request) {
  constexpr Pool1dShape kOver{
      .seq_len = 4, .d_model = 1, .kernel = 3, .stride = 2, .padding = 1, .ceil = true};
  expect_pooled<MaxPool1d<kOver>>({{1, 3, 2, -5}}, {{1, 10, 100}}, {{3, 3, -5}}, {{0, 11, 0, 100}});
  expect_pooled<AvgPool1d<kOver>>({{6, 3, 9, -6}}, {{3, 6, 2}}, {{3, 2, -3}}, {{1, 3, 2, 3}});
  // A window that would begin behind the sequence is none.
  static_assert(
      AvgPool1d<Pool1dShape{
          .seq_len = 4, .d_model = 1, .kernel = 2, .stride = 3, .padding = 1, .ceil = true}>::Output::rows ==
      2);
}

TEST(WindowPooling, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<MaxPool1d<kWindows, double>>(-1, 1);
  check::check_layer_gradients<MaxPool2d<kImage, double>>(-1, 1);
  check::check_layer_gradients<AvgPool2d<kImage, double>>(-1, 1);
  SequenceLength<7> length;
  (void)length.set_length(4);
  check::check_layer_gradients<MaxPool1d<kWindows, double>>(-1, 1, length);
  check::check_layer_gradients<AvgPool1d<kWindows, double>>(-1, 1, length);
}

TEST(WindowPooling, leaves_out_padding) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  KeyPaddingMask<5> padding;
  padding.set_valid({true, false, false, false, true});
  expect_pooled<MaxPool1d<kAlone>>({{-3, kNan, kNan, kNan, -5}}, {{1, 2, 3}}, {{-3, 0, -5}},
                                   {{1, 0, 0, 0, 3}}, padding);
  SequenceLength<5> length;
  (void)length.set_length(2);
  expect_pooled<MaxPool1d<kAlone>>({{-3, -4, kNan, kNan, kNan}}, {{1, 2, 3}}, {{-3, -4, 0}},
                                   {{1, 2, 0, 0, 0}}, length);
}

TEST(WindowPooling, keeps_a_nan) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  check::Problem<MaxPool1d<kAlone>> a(1);
  a.x = {{1, kNan, 2, 3, 4}};
  a.forward();
  EXPECT_TRUE(check::is_nan(a.y(0, 0)) && check::is_nan(a.y(1, 0)));
  EXPECT_EQ(a.y(2, 0), 4.0f);
}

TEST(WindowPooling, takes_no_byte) {
  static_assert(std::is_empty_v<MaxPool1d<kWindows>::Tape> && std::is_empty_v<MaxPool1d<kWindows>::Scratch>);
}
