// Conv1d and Conv2d: derivatives, padding that is not read, streams and files. In models:
// tests/models/convolution_models_test.cpp.
#include <algorithm>

#include <attune/layers/convolution.hpp>

#include <attune/attune.hpp>

#include "check.hpp"
#include "exchange/expect_tensors.hpp"
#include "exchange/memory_file.hpp"
#include "gradient_suite.hpp"
#include "problem.hpp"
#include "stream_cases.hpp"

namespace {

using attune::Conv1d;
using attune::Conv1dShape;
using attune::Conv2d;
using attune::Conv2dShape;

constexpr Conv1dShape kSame{.seq_len = 11, .d_in = 3, .d_out = 4, .kernel = 3, .padding = 1};
constexpr Conv1dShape kStrided{
    .seq_len = 13, .d_in = 2, .d_out = 5, .kernel = 4, .stride = 3, .padding = 2, .bias = false};
constexpr Conv1dShape kGrouped{.seq_len = 9, .d_in = 6, .d_out = 4, .kernel = 2, .padding = 1, .groups = 2};
constexpr Conv1dShape kDepthwise{
    .seq_len = 10, .d_in = 5, .d_out = 5, .kernel = 3, .stride = 2, .padding = 1, .groups = 5};
constexpr Conv1dShape kCausal{.seq_len = 12, .d_in = 3, .d_out = 4, .kernel = 4, .causal = true};
constexpr Conv1dShape kCausalDepthwise{
    .seq_len = 12, .d_in = 3, .d_out = 3, .kernel = 3, .groups = 3, .bias = false, .causal = true};
constexpr Conv1dShape kDilated{
    .seq_len = 12, .d_in = 3, .d_out = 4, .kernel = 3, .padding = 2, .dilation = 3};
constexpr Conv1dShape kDilatedCausal{
    .seq_len = 12, .d_in = 3, .d_out = 3, .kernel = 3, .groups = 3, .causal = true, .dilation = 2};
constexpr Conv1dShape kEven{
    .seq_len = 9, .d_in = 2, .d_out = 3, .kernel = 4, .padding = 1, .extra_padding = 1};
constexpr Conv1dShape kInFront{
    .seq_len = 8, .d_in = 4, .d_out = 4, .kernel = 5, .padding = 3, .groups = 4, .extra_padding = -2};
constexpr Conv2dShape kEvenImage{.height = 4,
                                 .width = 5,
                                 .d_in = 2,
                                 .d_out = 3,
                                 .kernel_height = 3,
                                 .kernel_width = 2,
                                 .padding_height = 2,
                                 .extra_padding_height = -1,
                                 .extra_padding_width = 1};
constexpr Conv2dShape kDilatedImage{.height = 5,
                                    .width = 6,
                                    .d_in = 2,
                                    .d_out = 3,
                                    .kernel_height = 2,
                                    .kernel_width = 3,
                                    .stride_height = 2,
                                    .padding_width = 1,
                                    .dilation_height = 3,
                                    .dilation_width = 2};
constexpr Conv2dShape kImage{.height = 4,
                             .width = 5,
                             .d_in = 2,
                             .d_out = 3,
                             .kernel_height = 3,
                             .kernel_width = 2,
                             .stride_height = 2,
                             .padding_height = 1,
                             .padding_width = 1};
constexpr Conv2dShape kDepthwiseImage{.height = 4,
                                      .width = 3,
                                      .d_in = 3,
                                      .d_out = 3,
                                      .kernel_height = 3,
                                      .kernel_width = 3,
                                      .padding_height = 1,
                                      .padding_width = 1,
                                      .groups = 3,
                                      .bias = false};

// With a length, and as padding of any kind: y and dx of valid tokens and gradients are the same whatever
// stands at the others.
template <class Layer, class Mask>
void expect_reads_no(const Mask& mask, const auto& is_valid) {
  static check::Problem<Layer> zeros(2), nans(2);
  zeros = check::Problem<Layer>(2);
  nans = check::Problem<Layer>(2);
  for (int i = 0; i < Layer::Input::rows; ++i) {
    if (is_valid(i)) continue;
    for (int j = 0; j < Layer::Input::cols; ++j) {
      zeros.x(i, j) = 0;
      nans.x(i, j) = std::numeric_limits<float>::quiet_NaN();
    }
    if constexpr (Layer::Output::rows == Layer::Input::rows) {
      for (int j = 0; j < Layer::Output::cols; ++j) zeros.dy(i, j) = nans.dy(i, j) = 0;
    }
  }
  zeros.forward();  // zero is what padding is
  nans.forward(mask);
  zeros.backward();
  nans.backward(mask);
  for (int i = 0; i < Layer::Output::rows; ++i) {
    if (Layer::Output::rows == Layer::Input::rows && !is_valid(i)) continue;
    for (int j = 0; j < Layer::Output::cols; ++j) EXPECT_EQ(zeros.y(i, j), nans.y(i, j));
  }
  for (int i = 0; i < Layer::Input::rows; ++i) {
    if (!is_valid(i)) continue;
    for (int j = 0; j < Layer::Input::cols; ++j) EXPECT_EQ(zeros.dx(i, j), nans.dx(i, j));
  }
  double difference = 0;
  attune::for_each_tensor([&](const attune::TensorPath&, const auto& one,
                              const auto& other) { difference += check::max_difference(one, other); },
                          zeros.gradients, nans.gradients);
  EXPECT_EQ(difference, 0.0);
}
template <class Layer>
void expect_no_padding() {
  constexpr int kSeqLen = Layer::Input::rows;
  for (const int length : {1, 4, 8, kSeqLen}) {
    attune::SequenceLength<kSeqLen> of_length;
    EXPECT_EQ(of_length.set_length(length), attune::Status::kOk);
    expect_reads_no<Layer>(of_length, [&](int i) { return i < length; });
  }
  attune::KeyPaddingMask<kSeqLen> padding{};
  bool valid[std::size_t{kSeqLen}];
  for (int i = 0; i < kSeqLen; ++i) valid[i] = i % 3 != 1;
  padding.set_valid(valid);
  expect_reads_no<Layer>(padding, [](int i) { return i % 3 != 1; });
}

template <Conv1dShape shape>
void expect_streamed() {
  using Layer = attune::Sequential<Conv1d<shape>>;
  static check::Problem<Layer> a(5);
  a.forward();
  check::expect_stream<Layer, attune::CacheShape{.window = 1}, 2>(a.parameters, a.x, a.y);
  check::expect_stream<Layer, attune::CacheShape{.capacity = 64}, 5>(a.parameters, a.x, a.y);
}

}  // namespace

TEST(Convolution, has_the_gradients_of_finite_differences) {
  check::check_layer_gradients<Conv1d<kSame, double>>(-1, 1);
  check::check_layer_gradients<Conv1d<kStrided, double>>(-1, 1);
  check::check_layer_gradients<Conv1d<kGrouped, double>>(-1, 1);
  check::check_layer_gradients<Conv1d<kDepthwise, double>>(-1, 1);
  check::check_layer_gradients<Conv1d<kCausal, double>>(-1, 1);
  check::check_layer_gradients<Conv1d<kDilated, double>>(-1, 1);
  check::check_layer_gradients<Conv1d<kDilatedCausal, double>>(-1, 1);
  check::check_layer_gradients<Conv1d<kEven, double>>(-1, 1);
  check::check_layer_gradients<Conv1d<kInFront, double>>(-1, 1);
  check::check_layer_gradients<Conv2d<kEvenImage, double>>(-1, 1);
  check::check_layer_gradients<Conv2d<kDilatedImage, double>>(-1, 1);
  check::check_layer_gradients<Conv2d<kImage, double>>(-1, 1);
  check::check_layer_gradients<Conv2d<kDepthwiseImage, double>>(-1, 1);
}

TEST(Convolution, reads_no_padding) {
  expect_no_padding<Conv1d<kSame>>();
  expect_no_padding<Conv1d<kStrided>>();
  expect_no_padding<Conv1d<kGrouped>>();
  expect_no_padding<Conv1d<kDepthwise>>();
  expect_no_padding<Conv1d<kCausal>>();
  expect_no_padding<Conv1d<kDilated>>();
  expect_no_padding<Conv1d<kEven>>();
}

TEST(Convolution, streams_where_it_is_causal) {
  expect_streamed<kCausal>();
  expect_streamed<kCausalDepthwise>();
  expect_streamed<kDilatedCausal>();
}

TEST(Convolution, begins_a_new_stream_after_a_reset) {
  using Layer = attune::Sequential<Conv1d<kCausal>>;
  static attune::KeyValueCache<Layer, attune::CacheShape{.window = 1}> cache;
  static decltype(cache)::Scratch<> scratch;
  check::Problem<Layer> a(5);
  for (int stream = 0; stream < 2; ++stream) {
    cache.reset();  // the tokens of the stream before stay in memory
    a.forward();
    for (int i = 0; i < kCausal.seq_len; ++i) {
      attune::Tensor<float, 1, kCausal.d_out> y;
      EXPECT_EQ(attune::step(a.parameters, attune::view(a.x).rows_at<1>(i), y, cache, scratch),
                attune::Status::kOk);
      for (int j = 0; j < kCausal.d_out; ++j) EXPECT_EQ(y(0, j), a.y(i, j));
    }
  }
}

TEST(Convolution, keeps_kernel_minus_one_tokens_of_a_stream) {
  using Cache = attune::KeyValueCache<attune::Sequential<Conv1d<kCausal>>, attune::CacheShape{.window = 1}>;
  static_assert(sizeof(Cache::memory) == 3 * 3 * sizeof(float));
  static_assert(Cache::kMaxTokens == std::numeric_limits<std::uint64_t>::max());
}

TEST(Convolution, of_stride_and_kernel_one_is_a_linear_layer) {
  using Layer = Conv1d<Conv1dShape{.seq_len = 9, .d_in = 5, .d_out = 7, .kernel = 1}>;
  using Linear = attune::Linear<attune::LinearShape{.rows = 9, .d_in = 5, .d_out = 7}>;
  check::Problem<Layer> a(1);
  check::Problem<Linear> b(1);
  a.forward();
  b.forward();
  EXPECT_TRUE(check::same_bits(a.y, b.y));
  a.backward();
  b.backward();
  EXPECT_TRUE(check::same_bits(a.dx, b.dx));
  EXPECT_TRUE(check::same_bits(a.gradients.bias, b.gradients.bias));
}

TEST(Convolution, starts_within_the_bounds_of_its_fan_in) {
  const auto expect_within = [](const auto& set, float bound) {
    float largest = 0;
    for (const float value : set.weight.values) largest = std::max(largest, value < 0 ? -value : value);
    EXPECT_LE(largest, bound);
    EXPECT_GT(largest, 0.8f * bound);
    largest = 0;
    for (const float value : set.bias.values) largest = std::max(largest, value < 0 ? -value : value);
    EXPECT_LE(largest, bound);
    EXPECT_GT(largest, 0.2f * bound);
  };
  attune::Rng rng(1);
  Conv1d<Conv1dShape{.seq_len = 4, .d_in = 4, .d_out = 8, .kernel = 4}>::Parameters dense;
  attune::initialize(dense, attune::LinearDefault{}, rng);
  expect_within(dense, 0.25f);  // 1/√(4·4)
  Conv1d<Conv1dShape{.seq_len = 4, .d_in = 16, .d_out = 16, .kernel = 4, .groups = 16}>::Parameters depthwise;
  attune::initialize(depthwise, attune::LinearDefault{}, rng);
  expect_within(depthwise, 0.5f);  // 1/√4
}

TEST(Convolution, reads_pytorchs_weight_by_output_input_and_tap) {
  static check::MemoryFile file;
  file.start<float>(R"({"conv.weight":{"dtype":"F32","shape":[2,2,3],"data_offsets":[0,48]}})",
                    {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  using Layer =
      Conv1d<Conv1dShape{.seq_len = 3, .d_in = 2, .d_out = 2, .kernel = 3, .padding = 1, .bias = false}>;
  Layer::Parameters parameters;
  EXPECT_EQ((attune::read_safetensors<attune::PyTorchModule<Layer, "conv">>(file, parameters)),
            attune::Status::kOk);
  Layer::Input x{};
  x(1, 1) = 1;
  Layer::Output y;
  Layer::InferenceScratch scratch;
  Layer::forward(parameters, x, y, scratch);
  const Layer::Output expected{{6, 12, 5, 11, 4, 10}};
  EXPECT_TRUE(check::same_bits(y, expected));
}

TEST(Convolution, has_names_in_pytorch) {
  check::expect_tensors<attune::PyTorchModule<Conv1d<kSame>, "conv">>("conv.bias[4] conv.weight[4,9]");
  check::expect_tensors<attune::PyTorchModule<Conv1d<kGrouped>, "conv">>("conv.bias[4] conv.weight[4,6]");
}

TEST(Convolution, writes_pytorchs_shapes) {
  const auto expect_shape = []<class Layer>(std::type_identity<Layer>, std::initializer_list<int> expected) {
    static typename Layer::Parameters parameters, read;
    attune::Rng rng(1);
    check::fill_set(parameters, rng);
    using Names = attune::PyTorchModule<Layer, "conv">;
    constexpr auto& kTensors = attune::detail::kStateDict<Names>;
    const auto extents = kTensors.tensors[kTensors.find("conv.weight")].extents();
    EXPECT_EQ(extents.rank, static_cast<int>(expected.size()));
    for (int i = 0; i < extents.rank; ++i) EXPECT_EQ(extents.extents[i], expected.begin()[i]);
    static check::MemoryFile file;
    file = {};
    EXPECT_EQ(attune::write_safetensors<Names>(parameters, file), attune::Status::kOk);
    EXPECT_EQ(attune::read_safetensors<Names>(file, read), attune::Status::kOk);
    EXPECT_TRUE(check::same_bits(read, parameters));
  };
  expect_shape(std::type_identity<Conv1d<kSame>>{}, {4, 3, 3});
  expect_shape(std::type_identity<Conv1d<kGrouped>>{}, {4, 3, 2});
  expect_shape(std::type_identity<Conv2d<kImage>>{}, {3, 2, 3, 2});
}

TEST(Convolution, reads_pytorchs_weight_in_place) {
  using Layer = Conv1d<kSame>;
  static constexpr auto kStored = [] {
    attune::Tensor<float, 4, 9> weight{};
    for (int i = 0; i < weight.size; ++i) weight.values[i] = static_cast<float>(i * 7 % 11 - 5);
    return weight;
  }();
  static constexpr attune::Tensor<float, 1, 4> kBias{{1, -1, 2, 0}};
  static constexpr Layer::ParametersOf<attune::TransposedReference, attune::Reference> kInFlash{
      .weight = {kStored.data()}, .bias = {kBias.data()}};
  Layer::Parameters parameters{.weight = {}, .bias = kBias};
  for (int i = 0; i < 9; ++i) {
    for (int j = 0; j < 4; ++j) parameters.weight(i, j) = kStored(j, i);
  }
  check::Problem<Layer> a(1);
  a.parameters = parameters;
  a.forward();
  Layer::Output y;
  Layer::forward(kInFlash, a.x, y, a.inference);
  EXPECT_TRUE(check::same_bits(a.y, y));
}
