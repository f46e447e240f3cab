#include <attune/exchange/model_file.hpp>
#include <attune/exchange/own_names.hpp>

#include <cstring>

#include <attune/layers/linear.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/frozen.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>
#include <attune/training/adam.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/trainer.hpp>
#include <attune/weights/packed_weights.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"

// Of the files that model_files.py writes, by tests/CMakeLists.txt.
#include <doubles_weights.hpp>
#include <halves_array.hpp>
#include <halves_bf16.hpp>
#include <own_array.hpp>
#include <own_weights.hpp>
#include <transformer_array.hpp>
#include <transformer_bf16.hpp>
#include <transformer_fp16.hpp>
#include <transformer_int8.hpp>
#include <transformer_packed.hpp>
#include <transformer_weights.hpp>

namespace {

using namespace attune;

constexpr EncoderLayerShape kEncoder{.attention = {.seq_len = 3, .d_model = 4, .num_heads = 2}, .d_ff = 6};
using Embed = Linear<LinearShape{3, 2, 4}>;
using Head = Linear<LinearShape{3, 4, 2}>;
using Model = Sequential<Embed, Repeat<2, EncoderLayer<kEncoder>>, Head>;
using Names = PyTorchModule<Model, "embed", "encoder.layers", "head">;
constexpr auto& kWeights = kInFlash<Names, transformer_weights>;

using Body = Sequential<Embed, Repeat<2, EncoderLayer<kEncoder>>>;
using BodyNames = PyTorchPart<PyTorchModule<Body, "embed", "encoder.layers">>;

using Small = Linear<LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
using SmallNames = PyTorchModule<Small>;

// The header's text ends where the tensors begin, and "embed.bias" is the first of them.
constexpr std::size_t kBody = 8 + sizeof transformer_weights::kHeader - 1;
static_assert(kWeights.layer<0>().bias.first == transformer_weights::kData + kBody / sizeof(float));
static_assert(kWeights.layer<0>().weight.first == kWeights.layer<0>().bias.first + 4);
static_assert(kCopied<Names, transformer_array>.layer<0>().bias(0, 0) ==
              *kInFlash<Names, transformer_array>.layer<0>().bias.first);

Model::Input input_of(std::uint64_t seed) {
  Model::Input x;
  Rng rng(seed);
  check::fill(x, rng);
  return x;
}
template <class Set>
Model::Output forward(const Set& set) {
  static Model::InferenceScratch scratch;
  Model::Output y;
  Model::forward(set, input_of(3), y, scratch);
  return y;
}

}  // namespace

TEST(ModelFile, file_is_part_of_the_program_byte_for_byte) {
  const std::string_view file = bytes_of<transformer_weights>();
  const std::string_view header(transformer_weights::kHeader, sizeof transformer_weights::kHeader - 1);
  ASSERT_EQ(file.size(), transformer_weights::kSize);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.data()) % 16, 0u);
  EXPECT_TRUE(split_safetensors(file).header == header);
  EXPECT_TRUE(safetensors_layout<Names>(file).metadata.find("é") != std::string_view::npos);
  // By the assembler and as an array.
  EXPECT_TRUE(bytes_of<transformer_array>() == file);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes_of<transformer_array>().data()) % 16, 0u);
}

TEST(ModelFile, parameters_in_flash_and_copied_ones_compute_the_same_bits) {
  static Model::Parameters parameters;
  ASSERT_EQ(read_safetensors<Names>(bytes_of<transformer_weights>(), parameters), Status::kOk);
  const Model::Output expected = forward(parameters);
  EXPECT_NE(expected(0, 0), expected(1, 1));
  EXPECT_TRUE(check::same_bits(forward(kWeights), expected));
  EXPECT_TRUE(check::same_bits(forward(kInFlash<Names, transformer_array>), expected));
  EXPECT_TRUE(check::same_bits(forward(kCopied<Names, transformer_array>), expected));
}

namespace {

template <class Layer>
using TrainerOf = Trainer<Layer, MeanSquaredError, AdamW>;

// The loss after some steps on one sequence, which fell.
template <class TrainerType>
float train(TrainerType& trainer) {
  Model::Output target;
  Rng rng(5);
  check::fill(target, rng);
  trainer.initialize(XavierUniform{}, Rng{6});
  const Model::Input x = input_of(3);
  const auto step = [&] { return trainer.step(x, target, {.learning_rate = 0.01f}); };
  const float first = step().loss;
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(step().ok());
  const float last = step().loss;
  EXPECT_LT(last, first);
  return last;
}

}  // namespace

TEST(ModelFile, a_head_is_trained_after_a_body_in_flash) {
  using InFlash = Sequential<Frozen<Body, kInFlash<BodyNames, transformer_weights>>, Head>;
  using Copied = Sequential<Frozen<Body, kCopied<BodyNames, transformer_array>>, Head>;
  static TrainerOf<InFlash> in_flash;
  static TrainerOf<Copied> copied;
  EXPECT_EQ(train(in_flash), train(copied));
}

TEST(ModelFile, biases_and_norms_are_trained_over_weights_in_flash) {
  static TrainerOf<BiasesAndNorms<Model, kWeights>> in_flash;
  static TrainerOf<BiasesAndNorms<Model, kCopied<Names, transformer_array>>> copied;
  EXPECT_EQ(train(in_flash), train(copied));
}

TEST(ModelFile, halves_are_widened_by_the_compiler) {
  constexpr auto& kHalves = kCopied<SmallNames, halves_array>;
  static_assert(kHalves.bias(0, 0) == -123.0f / 128 && kHalves.bias(0, 2) == -3.0f / 128);
  Small::Parameters read{};
  ASSERT_EQ(read_safetensors<SmallNames>(bytes_of<halves_array>(), read), Status::kOk);
  EXPECT_TRUE(check::same_bits(read, kHalves));
}

TEST(ModelFile, doubles_are_used_in_place) {
  using Double = Small::WithScalar<double>;
  constexpr auto& kDoubles = kInFlash<PyTorchModule<Double>, doubles_weights>;
  static_assert(std::is_same_v<doubles_weights::Scalar, double>);
  // The two files have the same numbers.
  constexpr auto& kHalves = kCopied<SmallNames, halves_array>;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      EXPECT_EQ(view(kDoubles.weight)(i, j), double{kHalves.weight(i, j)});
    }
  }
}

namespace {

// A file that the build quantized, and what quantize() makes of the same parameters.
template <class File, template <class, int, int> class Weights>
void expect_quantized() {
  static Model::Parameters parameters;
  static Model::ParametersOf<Weights, Tensor> own;
  ASSERT_EQ(read_safetensors<Names>(bytes_of<transformer_weights>(), parameters), Status::kOk);
  ASSERT_EQ(quantize(parameters, own), Status::kOk);
  EXPECT_TRUE(check::same_bits(forward(kInFlash<Names, File>), forward(own)));
  EXPECT_LT(File::kSize - sizeof File::kHeader,
            transformer_weights::kSize - sizeof transformer_weights::kHeader);
}

using Quantized = std::remove_cvref_t<decltype(kInFlash<Names, transformer_int8>)>;
static_assert(std::is_same_v<Quantized, Model::ParametersOf<Int8Reference, Reference>>);
static_assert(kInFlash<Names, transformer_int8>.layer<2>().weight.stored.base == transformer_int8::kData);

}  // namespace

TEST(ModelFile, weights_quantized_by_the_build_are_used_in_place) {
  expect_quantized<transformer_int8, Int8Weights>();
  expect_quantized<transformer_bf16, Bfloat16Weights>();
  expect_quantized<transformer_fp16, Float16Weights>();
}

TEST(ModelFile, a_head_learns_over_weights_quantized_by_the_build) {
  static TrainerOf<Sequential<Frozen<Body, kInFlash<BodyNames, transformer_int8>>, Head>> head;
  EXPECT_GT(train(head), 0.0f);
}

TEST(ModelFile, files_of_halves_are_used_in_place) {
  // By the compiler, which widens biases, and by the build, which changes no bit of the weights.
  constexpr auto& kArray = kInFlash<SmallNames, halves_array>;
  constexpr auto& kBuilt = kInFlash<SmallNames, halves_bf16>;
  static_assert(
      std::is_same_v<std::remove_cvref_t<decltype(kArray)>, Small::ParametersOf<Bfloat16Reference, Tensor>>);
  static_assert(kArray.weight.stored.base == halves_array::kData && kArray.bias(0, 2) == -3.0f / 128);
  constexpr auto& kHalves = kCopied<SmallNames, halves_array>;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      EXPECT_EQ(kArray.weight(i, j), kHalves.weight(i, j));
      EXPECT_EQ(kBuilt.weight(i, j), kHalves.weight(i, j));
    }
  }
  EXPECT_TRUE(check::same_bits(kArray.bias, kHalves.bias));
  // And at run time.
  Small::ParametersOf<Bfloat16Reference, Tensor> referred{};
  const std::string_view file = bytes_of<halves_array>();
  ASSERT_EQ(refer_to_safetensors<SmallNames>(file, referred), Status::kOk);
  EXPECT_TRUE(check::same_bits(referred.bias, kHalves.bias));
  EXPECT_EQ(referred.weight(1, 2), kHalves.weight(1, 2));
}

// A base that attune trained, and wrote under its own names: weights are [in, out], biases [1, out].
using Own = OwnNames<Model>;
constexpr auto& kOwn = kInFlash<Own, own_weights>;
static_assert(std::is_same_v<std::remove_cvref_t<decltype(kOwn)>, Model::ParametersOf<Reference>>);

TEST(ModelFile, of_own_names_is_used_in_place) {
  static Model::Parameters copied;
  ASSERT_EQ(read_safetensors<Own>(bytes_of<own_weights>(), copied), Status::kOk);
  EXPECT_TRUE(check::same_bits(forward(kOwn), forward(copied)));
  const auto file = reinterpret_cast<std::uintptr_t>(own_weights::kData);
  const auto tensor = reinterpret_cast<std::uintptr_t>(view(kOwn.layer<2>().weight).data);
  EXPECT_LT(tensor - file, own_weights::kSize);
}
template <template <class, int, int> class Weights>
void expect_quantized_as_at_start_up() {
  constexpr auto& kByCompiler = kQuantized<Own, own_array, Weights>;
  static std::remove_cvref_t<decltype(kByCompiler)> at_start_up;
  static_assert(
      std::is_same_v<std::remove_cvref_t<decltype(kByCompiler)>, Model::ParametersOf<Weights, Tensor>>);
  ASSERT_EQ(quantize(kOwn, at_start_up), Status::kOk);
  EXPECT_EQ(std::memcmp(&kByCompiler, &at_start_up, sizeof at_start_up), 0);
  EXPECT_TRUE(check::same_bits(forward(kByCompiler), forward(at_start_up)));
}
TEST(ModelFile, of_own_names_is_quantized_by_the_compiler) {
  expect_quantized_as_at_start_up<Int8Weights>();
  expect_quantized_as_at_start_up<Bfloat16Weights>();
  expect_quantized_as_at_start_up<Float16Weights>();
  expect_quantized_as_at_start_up<PackedInt8Weights>();
}
TEST(ModelFile, of_pytorch_names_is_quantized_by_the_compiler_as_by_the_build) {
  EXPECT_TRUE(check::same_bits(forward(kQuantized<Names, transformer_array, Int8Weights>),
                               forward(kInFlash<Names, transformer_int8>)));
}

TEST(ModelFile, weights_packed_by_the_compiler_equal_those_packed_at_startup) {
  constexpr auto& kPacked = kPackedInt8<Names, transformer_packed>;
  using Set = std::remove_const_t<std::remove_reference_t<decltype(kPacked)>>;
  static Set at_start_up;
  ASSERT_EQ(quantize(kWeights, at_start_up), Status::kOk);
  EXPECT_EQ(std::memcmp(&kPacked, &at_start_up, sizeof(Set)), 0);
  static Set of_int8;
  ASSERT_EQ(pack(kInFlash<Names, transformer_int8>, of_int8), Status::kOk);
  EXPECT_EQ(std::memcmp(&kPacked, &of_int8, sizeof(Set)), 0);
  EXPECT_TRUE(check::same_bits(forward(kPacked), forward(at_start_up)));
  EXPECT_FALSE(check::same_bits(forward(kPacked), forward(kWeights)));

  using Tuned = Adapted<Model, kPacked, LowRank{.rank = 2}>;
  static Tuned::Output y;
  static Tuned::Parameters adapters;
  static Tuned::InferenceScratch scratch;
  Rng rng(1);
  adapters.initialize(XavierUniform{}, rng);
  infer<Tuned>(adapters, input_of(3), y, scratch);
  EXPECT_TRUE(check::same_bits(y, forward(kPacked)));
}
