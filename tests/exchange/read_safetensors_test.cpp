#include <attune/exchange/read_safetensors.hpp>

#include <span>

#include <attune/exchange/write_safetensors.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/models/encoder_layer.hpp>

#include "check.hpp"
#include "exchange/memory_file.hpp"

namespace {

using namespace attune;

using File = check::MemoryFileOf<8192>;
File file, written;

constexpr EncoderLayerShape kEncoder{.attention = {.seq_len = 5, .d_model = 6, .num_heads = 3}, .d_ff = 7};
using Model =
    Sequential<Linear<LinearShape{5, 3, 6}>, LearnedPositions<PositionShape{5, 6}>,
               Repeat<2, EncoderLayer<kEncoder>>, LayerNorm<NormShape{5, 6}>, Linear<LinearShape{5, 6, 2}>>;
using Names = PyTorchModule<Model, "embed", "pos", "encoder.layers", "encoder.norm", "head">;
using InPlace = Model::ParametersOf<TransposedReference, Reference>;

template <class Set>
void expect_same_logits(const Model::Parameters& expected, const Set& set) {
  Model::Input x;
  Rng rng(3);
  check::fill(x, rng);
  static Model::InferenceScratch scratch;
  Model::Output y, of_set;
  Model::forward(expected, x, y, scratch);
  Model::forward(set, x, of_set, scratch);
  EXPECT_TRUE(check::same_bits(y, of_set));
}

// A file by hand, [out, in]: W = {1, 3, 5; 2, 4, 6}.
using Small = Linear<LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
using SmallNames = PyTorchModule<Small>;
constexpr std::string_view kPadded =
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}} )";
constexpr std::string_view kHeader(kPadded.data(), kPadded.size() - 1);
constexpr float kBody[9] = {7, 8, 9, 1, 2, 3, 4, 5, 6};
static_assert((8 + kHeader.size()) % 8 == 0);

void start_small(std::string_view header = kHeader) {
  file.start(header);
  file(reinterpret_cast<const char*>(kBody), sizeof kBody);
}
Status read_small(std::string_view header, int body_size = 36) {
  return safetensors_layout<SmallNames>(header, static_cast<std::size_t>(body_size)).status;
}

}  // namespace

TEST(ReadSafetensors, packed_and_transposed_tensors_find_their_places) {
  Small::Parameters parameters{};
  start_small();
  ASSERT_EQ(read_safetensors<SmallNames>(file, parameters), Status::kOk);
  EXPECT_EQ(parameters.weight(0, 0), 1.0f);
  EXPECT_EQ(parameters.weight(1, 0), 2.0f);
  EXPECT_EQ(parameters.weight(0, 2), 5.0f);
  EXPECT_EQ(parameters.bias(0, 2), 9.0f);
  // Packed: rows of W_q, W_k and W_v.
  using Attention = MultiHeadAttention<AttentionShape{.seq_len = 1, .d_model = 1, .num_heads = 1}>;
  file.start(
      R"({"in_proj_bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"in_proj_weight":{"dtype":"F32","shape":[3,1],"data_offsets":[12,24]},"out_proj.bias":{"dtype":"F32","shape":[1],"data_offsets":[24,28]},"out_proj.weight":{"dtype":"F32","shape":[1,1],"data_offsets":[28,32]}})");
  file(reinterpret_cast<const char*>(kBody), 32);
  Attention::Parameters attention{};
  ASSERT_EQ(read_safetensors<PyTorchModule<Attention>>(file, attention), Status::kOk);
  EXPECT_EQ(attention.query.weight(0, 0), 1.0f);
  EXPECT_EQ(attention.key.weight(0, 0), 2.0f);
  EXPECT_EQ(attention.value.weight(0, 0), 3.0f);
  EXPECT_EQ(attention.query.bias(0, 0), 7.0f);
  EXPECT_EQ(attention.value.bias(0, 0), 9.0f);
  EXPECT_EQ(attention.output.bias(0, 0), 4.0f);
  EXPECT_EQ(attention.output.weight(0, 0), 5.0f);
}

TEST(ReadSafetensors, round_trips_byte_for_byte) {
  static Model::Parameters parameters, copied;
  static Model::ParametersOf<TransposedTensor> transposed;
  Rng rng(1);
  check::fill_set(parameters, rng);
  file.size_ = written.size_ = 0;
  EXPECT_EQ((write_safetensors<Names>(parameters, file, {.metadata = R"({"format":"pt"})"})), Status::kOk);
  ASSERT_TRUE(file.size() < sizeof file.bytes);

  const auto layout = safetensors_layout<Names>(file);
  EXPECT_EQ(layout.status, Status::kOk);
  EXPECT_TRUE(layout.metadata == R"({"format":"pt"})");
  ASSERT_EQ(read_safetensors<Names>(file, copied), Status::kOk);
  EXPECT_TRUE(check::same_bits(copied, parameters));
  ASSERT_EQ(read_safetensors<Names>(file, transposed), Status::kOk);
  expect_same_logits(parameters, transposed);

  EXPECT_EQ((write_safetensors<Names>(transposed, written, {.metadata = layout.metadata})), Status::kOk);
  ASSERT_EQ(written.size(), file.size());
  EXPECT_EQ(std::memcmp(written.bytes, file.bytes, file.size()), 0);
}

TEST(ReadSafetensors, tensors_are_used_in_place) {
  static Model::Parameters parameters;
  InPlace in_place{};
  Rng rng(2);
  check::fill_set(parameters, rng);
  file.size_ = written.size_ = 0;
  EXPECT_EQ((write_safetensors<Names>(parameters, file)), Status::kOk);
  ASSERT_EQ(refer_to_safetensors<Names>(file, in_place), Status::kOk);
  expect_same_logits(parameters, in_place);
  EXPECT_EQ((write_safetensors<Names>(in_place, written)), Status::kOk);
  ASSERT_EQ(written.size(), file.size());
  EXPECT_EQ(std::memcmp(written.bytes, file.bytes, file.size()), 0);
}

TEST(ReadSafetensors, file_is_any_array_of_bytes) {
  start_small();
  Small::Parameters parameters{};
  const auto* first = reinterpret_cast<const unsigned char*>(file.data());
  EXPECT_EQ(read_safetensors<SmallNames>(std::span(first, file.size()), parameters), Status::kOk);
  EXPECT_EQ(read_safetensors<SmallNames>(std::as_bytes(std::span(first, file.size())), parameters),
            Status::kOk);
  EXPECT_EQ(parameters.bias(0, 0), 7.0f);
}

namespace {

using SmallInPlace = Small::ParametersOf<TransposedReference, Reference>;
constexpr char kHalves[] =
    "\x78\0\0\0\0\0\0\0"
    R"({"bias":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},"weight":{"dtype":"BF16","shape":[3,2],"data_offsets":[6,18]}} )"
    "\x00\x3C\x00\x40\x00\x42"
    "\x80\x3F\x00\x40\x40\x40\x80\x40\xA0\x40\xC0\x40";

}  // namespace

TEST(ReadSafetensors, other_types_are_converted_but_not_referred_to) {
  using Double = Small::WithScalar<double>;
  Double::Parameters wide{};
  const std::string_view halves(kHalves, sizeof kHalves - 1);
  EXPECT_EQ(read_safetensors<PyTorchModule<Double>>(halves, wide), Status::kOk);
  EXPECT_EQ(wide.weight(1, 2), 6.0);
  SmallInPlace in_place{};
  EXPECT_EQ(refer_to_safetensors<SmallNames>(halves, in_place), Status::kInvalidType);
  EXPECT_TRUE(in_place.bias.first == nullptr);

  Small::Parameters parameters{};
  file.size_ = 0;
  EXPECT_EQ((write_safetensors<PyTorchModule<Double>>(wide, file)), Status::kOk);
  EXPECT_EQ(read_safetensors<SmallNames>(file, parameters), Status::kOk);
  EXPECT_EQ(parameters.weight(1, 2), 6.0f);

  EXPECT_EQ(
      read_small(
          R"({"bias":{"dtype":"I32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})"),
      Status::kInvalidType);
}

TEST(ReadSafetensors, misaligned_tensors_are_copied_but_not_referenced) {
  start_small(kPadded);
  Small::Parameters parameters{};
  SmallInPlace in_place{};
  EXPECT_EQ(read_safetensors<SmallNames>(file, parameters), Status::kOk);
  EXPECT_EQ(refer_to_safetensors<SmallNames>(file, in_place), Status::kMisaligned);
  // A file that does not begin at a multiple of 4.
  start_small();
  EXPECT_EQ(refer_to_safetensors<SmallNames>(file, in_place), Status::kOk);
  in_place = {};
  for (std::size_t i = file.size(); i > 0; --i) file.bytes[i] = file.bytes[i - 1];
  EXPECT_EQ(refer_to_safetensors<SmallNames>(std::span(file.bytes + 1, file.size()), in_place),
            Status::kMisaligned);
  EXPECT_TRUE(in_place.weight.first == nullptr);
}

TEST(ReadSafetensors, tensors_match_the_model) {
  const auto status_of = [](std::string_view header, int body_size, std::string_view tensor) {
    const auto layout = safetensors_layout<SmallNames>(header, static_cast<std::size_t>(body_size));
    EXPECT_TRUE(layout.tensor == tensor);
    return layout.status;
  };
  EXPECT_EQ(status_of(kHeader, 36, ""), Status::kOk);
  EXPECT_EQ(status_of(R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", 12, "weight"),
            Status::kMissingTensor);
  EXPECT_EQ(status_of("{}", 0, "bias"), Status::kMissingTensor);
  EXPECT_EQ(status_of(R"({"biases":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", 12, "biases"),
            Status::kUnknownTensor);
  EXPECT_EQ(
      status_of(
          R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[12,36]}})",
          36, "weight"),
      Status::kInvalidShape);
  EXPECT_EQ(status_of(R"({"bias":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})", 8, "bias"),
            Status::kInvalidShape);
  EXPECT_EQ(
      status_of(
          R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"bias":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}})",
          24, "bias"),
      Status::kDuplicateTensor);
  EXPECT_EQ(status_of(R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8, "bias"),
            Status::kInvalidSize);
}

TEST(ReadSafetensors, refused_file_changes_nothing) {
  Small::Parameters parameters{};
  check::fill_set(
      parameters, *[] {
        static Rng rng(4);
        return &rng;
      }());
  const Small::Parameters before = parameters;
  start_small();
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(read_safetensors<SmallNames>(std::span(file.bytes, size), parameters), Status::kOk);
  }
  EXPECT_TRUE(check::same_bits(parameters, before));
}

TEST(ReadSafetensors, part_of_a_module_leaves_the_rest_of_the_file_alone) {
  constexpr std::string_view kMore =
      R"({"head.bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"head.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]},"steps":{"dtype":"I64","shape":[],"data_offsets":[36,44]}})";
  using Part = PyTorchPart<SmallNames, "head">;
  EXPECT_EQ(safetensors_layout<Part>(kMore, 44).status, Status::kOk);
  EXPECT_EQ(safetensors_layout<SmallNames>(kMore, 44).status, Status::kUnknownTensor);
  constexpr std::string_view kNewer =
      R"({"head.bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"head.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]},"table":{"dtype":"F4","shape":[4,4],"data_offsets":[36,44]},"empty":{"dtype":"F32","shape":[0,3],"data_offsets":[44,44]}})";
  EXPECT_EQ(safetensors_layout<Part>(kNewer, 44).status, Status::kOk);
  EXPECT_EQ(safetensors_layout<SmallNames>(kNewer, 44).status, Status::kUnknownTensor);
  constexpr std::string_view kNewerBias =
      R"({"head.bias":{"dtype":"F4","shape":[3],"data_offsets":[0,2]},"head.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[2,26]}})";
  EXPECT_EQ(safetensors_layout<Part>(kNewerBias, 26).status, Status::kInvalidType);
  EXPECT_TRUE(safetensors_layout<Part>(kNewerBias, 26).tensor == "head.bias");
  constexpr std::string_view kEmptyBias =
      R"({"head.bias":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"head.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]}})";
  EXPECT_EQ(safetensors_layout<Part>(kEmptyBias, 24).status, Status::kInvalidShape);
  using Other = PyTorchPart<SmallNames, "tail">;
  EXPECT_EQ(safetensors_layout<Other>(kMore, 44).status, Status::kMissingTensor);
  EXPECT_EQ(safetensors_layout<Part>(kMore, 45).status, Status::kTrailingBytes);
}

TEST(ReadSafetensors, dimensions_of_one_and_of_patches_are_taken_and_others_are_not) {
  const auto shape = [](std::string_view bias, std::string_view weight) {
    file.size_ = 0;
    file.add(R"({"bias":{"dtype":"F32","shape":[)");
    file.add(bias);
    file.add(R"(],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[)");
    file.add(weight);
    file.add(R"(],"data_offsets":[12,36]}})");
    return read_small({file.bytes, file.size_});
  };
  EXPECT_EQ(shape("3", "3,2"), Status::kOk);
  EXPECT_EQ(shape("1,1,3", "3,2,1,1"), Status::kOk);
  EXPECT_EQ(shape("1,3", "3,1,2"), Status::kOk);
  EXPECT_EQ(shape("3,1,1", "3,2"), Status::kOk);
  for (const std::string_view weight : {"2,3", "6", "1,3,2", "3,2,1,2"}) {
    EXPECT_NE(shape("3", weight), Status::kOk);
  }
  for (const std::string_view bias : {"1", "2,1", "1,2,1", "", "3,3", "3,1,3"}) {
    EXPECT_NE(shape(bias, "3,2"), Status::kOk);
  }
}
