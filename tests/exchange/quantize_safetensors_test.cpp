// Files with weights of 8 and 16 bits: what is referred to in place has the bits of what quantize() makes.
#include <attune/exchange/quantize_safetensors.hpp>

#include <attune/layers/embedding.hpp>
#include <attune/models/encoder_layer.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"
#include "exchange/memory_file.hpp"

namespace {

using namespace attune;

using File = check::MemoryFileOf<8192>;
File file, quantized;

constexpr EncoderLayerShape kEncoder{.attention = {.seq_len = 5, .d_model = 6, .num_heads = 3}, .d_ff = 7};
using Model = Sequential<Embedding<EmbeddingShape{.seq_len = 5, .vocabulary = 4, .d_model = 6}>,
                         LearnedPositions<PositionShape{5, 6}>, Repeat<1, EncoderLayer<kEncoder>>,
                         Linear<LinearShape{5, 6, 2}>>;
using Names = PyTorchModule<Model, "embed", "pos", "encoder.layers", "head">;

Model::Parameters parameters;

void write_model() {
  Rng rng(1);
  check::fill_set(parameters, rng);
  file.size_ = quantized.size_ = 0;
  ASSERT_EQ((write_safetensors<Names>(parameters, file, {.metadata = R"({"format":"pt"})"})), Status::kOk);
  ASSERT_TRUE(file.size() < sizeof file.bytes);
}

template <class Set>
Model::Output forward(const Set& set) {
  static Model::InferenceScratch scratch;
  Model::Output y;
  EXPECT_EQ(Model::forward(set, Model::Input{3, 0, 2, 3, 1}, y, scratch), Status::kOk);
  return y;
}

const auto no_report = [](std::string_view, QuantizationError) {};

template <template <class, int, int> class Weights, template <class, int, int> class Reference>
void expect_in_place(ElementType type) {
  static Model::ParametersOf<Weights, Tensor> own;
  static Model::Parameters copied;
  Model::ParametersOf<Reference, attune::Reference> in_place{};
  write_model();
  ASSERT_EQ(quantize(parameters, own), Status::kOk);
  ASSERT_EQ(quantize_safetensors(file, type, quantized, no_report), Status::kOk);
  ASSERT_TRUE(quantized.size() < file.size());
  EXPECT_TRUE(safetensors_layout<Names>(quantized).metadata == R"({"format":"pt"})");

  ASSERT_EQ(refer_to_safetensors<Names>(quantized, in_place), Status::kOk);
  EXPECT_TRUE(check::same_bits(forward(in_place), forward(own)));
  ASSERT_EQ(read_safetensors<Names>(quantized, copied), Status::kOk);
  attune::for_each_tensor(
      [](const TensorPath&, const auto& tensor, const auto& expected) {
        for (int i = 0; i < tensor.rows; ++i) {
          for (int j = 0; j < tensor.cols; ++j) EXPECT_EQ(tensor(i, j), expected(i, j));
        }
      },
      copied, own);

  file.size_ = 0;
  ASSERT_EQ(write_safetensors<Names>(copied, file), Status::kOk);
  std::size_t size = 0, equal = 0;
  const auto compare = [&](const char* text, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, ++size) {
      if (size < file.size() && text[i] == file.bytes[size]) ++equal;
    }
  };
  ASSERT_EQ(write_safetensors<Names>(in_place, compare), Status::kOk);
  EXPECT_EQ(size, file.size());
  EXPECT_EQ(equal, file.size());
}

}  // namespace

TEST(QuantizeSafetensors, files_in_place_have_the_bits_of_quantized_parameters_and_are_written_widened) {
  expect_in_place<Int8Weights, Int8Reference>(ElementType::kI8);
  expect_in_place<Bfloat16Weights, Bfloat16Reference>(ElementType::kBF16);
  expect_in_place<Float16Weights, Float16Reference>(ElementType::kF16);
}

TEST(QuantizeSafetensors, reports_the_error_of_every_weight) {
  write_model();
  int weights = 0;
  double largest = 0;
  ASSERT_EQ(quantize_safetensors(file, ElementType::kI8, quantized,
                                 [&](std::string_view name, QuantizationError error) {
                                   ++weights;
                                   EXPECT_TRUE(name.ends_with("weight"));
                                   EXPECT_GT(error.rms, 0.0);
                                   if (error.largest > largest) largest = error.largest;
                                 }),
            Status::kOk);
  EXPECT_EQ(weights, 6);  // embed, in_proj, out_proj, linear1, linear2, head
  EXPECT_GT(largest, 0.5 / 127 / 2);
  EXPECT_LT(largest, 0.5001 / 127);
}

TEST(QuantizeSafetensors, weights_are_distinguished_from_positions_tokens_and_biases) {
  const auto expect = [](bool weight, std::string_view name, int rank, std::uint64_t rows) {
    SafetensorsEntry entry;
    entry.name = name;
    entry.rank = rank;
    for (std::uint64_t& extent : entry.shape) extent = 1;
    entry.shape[rank - 2] = rows;
    entry.shape[rank - 1] = 16;
    SCOPED_TRACE(name.data());
    EXPECT_EQ(is_weight(entry), weight);
  };
  expect(true, "weight", 2, 8);
  expect(true, "head.weight", 2, 1);
  expect(true, "self_attn.in_proj_weight", 2, 48);
  expect(true, "layers.0.kernel", 2, 8);
  expect(true, "pos_ffn.w_1.weight", 2, 8);
  expect(true, "decompose.weight", 2, 8);
  expect(true, "post.weight", 2, 8);
  expect(true, "mlp.fc_post.weight", 2, 8);
  expect(true, "pose_head.weight", 2, 8);
  expect(true, "embeddings.word_embeddings.weight", 2, 8);
  expect(false, "self_attn.bias_k", 3, 1);
  expect(false, "bias", 2, 1);
  expect(false, "vit.embeddings.cls_token", 3, 1);
  expect(false, "vit.embeddings.position_embeddings", 3, 17);
  expect(false, "embeddings.position_embeddings.weight", 2, 17);
  expect(false, "pos", 2, 8);
  expect(false, "source_pos", 3, 8);
  expect(false, "positional_encoding", 2, 8);
  expect(false, "pos_embed", 3, 17);
  expect(false, "model.embed_positions.weight", 2, 17);
  expect(false, "transformer.wpe.weight", 2, 17);
}

namespace {

using Appending =
    MultiHeadAttention<AttentionShape{.seq_len = 5, .d_model = 6, .num_heads = 3, .add_bias_kv = true}>;

}  // namespace

TEST(QuantizeSafetensors, an_appended_key_and_value_stay_floats) {
  using NamesOfAppending = PyTorchModule<Appending>;
  Appending::Parameters own;
  Rng rng(1);
  check::fill_set(own, rng);
  file.size_ = quantized.size_ = 0;
  ASSERT_EQ(write_safetensors<NamesOfAppending>(own, file), Status::kOk);
  ASSERT_EQ(quantize_safetensors(file, ElementType::kI8, quantized, no_report), Status::kOk);
  Appending::ParametersOf<Int8Reference, Reference> in_place{};
  ASSERT_EQ(refer_to_safetensors<NamesOfAppending>(quantized, in_place), Status::kOk);
  EXPECT_EQ(view(in_place.appended.bias_k)(0, 3), own.appended.bias_k(0, 3));
  EXPECT_EQ(view(in_place.appended.bias_v)(0, 5), own.appended.bias_v(0, 5));
}

TEST(QuantizeSafetensors, weights_can_be_named) {
  write_model();
  int weights = 0;
  const auto report = [&](std::string_view name, QuantizationError) {
    ++weights;
    EXPECT_TRUE(name == "pos");
  };
  ASSERT_EQ(quantize_safetensors(file, ElementType::kF16, quantized, report,
                                 [](const SafetensorsEntry& entry) { return entry.name == "pos"; }),
            Status::kOk);
  EXPECT_EQ(weights, 1);
}

TEST(QuantizeSafetensors, references_of_another_type_than_the_file_are_refused) {
  Model::ParametersOf<Bfloat16Reference, Reference> in_place{};
  write_model();
  ASSERT_EQ(quantize_safetensors(file, ElementType::kI8, quantized, no_report), Status::kOk);
  EXPECT_EQ(refer_to_safetensors<Names>(quantized, in_place), Status::kInvalidType);
  EXPECT_EQ(refer_to_safetensors<Names>(file, in_place), Status::kInvalidType);
  Model::ParametersOf<TransposedReference, Reference> floats{};
  EXPECT_EQ(refer_to_safetensors<Names>(quantized, floats), Status::kInvalidType);
}

TEST(QuantizeSafetensors, unsupported_tensors_are_refused_and_nothing_is_written) {
  const auto expect_refused = [](ElementType type, Status status, std::string_view tensor = {}) {
    const SafetensorsResult result = quantize_safetensors(file, type, quantized, no_report);
    EXPECT_EQ(result.status, status);
    EXPECT_TRUE(result.tensor == tensor);
    EXPECT_EQ(quantized.size(), 0u);
  };
  write_model();
  expect_refused(ElementType::kF32, Status::kInvalidType);
  parameters.layer<3>().weight(2, 1) = 70000;
  file.size_ = 0;
  ASSERT_EQ((write_safetensors<Names>(parameters, file)), Status::kOk);
  expect_refused(ElementType::kF16, Status::kNotFinite, "head.weight");
  parameters.layer<3>().weight(2, 1) = check::kNan<float>;
  file.size_ = 0;
  ASSERT_EQ((write_safetensors<Names>(parameters, file)), Status::kOk);
  expect_refused(ElementType::kI8, Status::kNotFinite, "head.weight");
  file.size_ -= 1;
  expect_refused(ElementType::kI8, Status::kCutShort);
}

TEST(QuantizeSafetensors, integers_stay_as_they_are) {
  file.start(
      R"({"label":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]},"weight":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]}})");
  const float weight[] = {1, -2};
  file("12345678", 8);
  file(reinterpret_cast<const char*>(weight), sizeof weight);
  quantized.size_ = 0;
  ASSERT_EQ(quantize_safetensors(file, ElementType::kF16, quantized, no_report), Status::kOk);
  const SafetensorsFile parts = split_safetensors(std::string_view(quantized.data(), quantized.size()));
  EXPECT_EQ(parts.header.size() % 8, 0u);
  constexpr std::string_view kHeader =
      R"({"weight":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]},"label":{"dtype":"I32","shape":[1,2],"data_offsets":[4,12]}})";
  ASSERT_TRUE(parts.header.size() >= kHeader.size());
  EXPECT_TRUE(std::string_view(parts.header.data(), kHeader.size()) == kHeader);  // starts_with() could throw
  EXPECT_TRUE(parts.body == std::string_view("\x00\x3C\x00\xC0\x31\x32\x33\x34\x35\x36\x37\x38", 12));
}

namespace {

using Small = Linear<LinearShape{.rows = 1, .d_in = 2, .d_out = 3, .bias = false}>;
using SmallNames = PyTorchModule<Small>;

Status layout_of(std::string_view header, std::size_t size) {
  return safetensors_layout<SmallNames>(header, size).status;
}

}  // namespace

TEST(QuantizeSafetensors, tensors_without_elements_and_of_newer_types_stay_as_they_are) {
  file.start<float>(
      R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"e":{"dtype":"F32","shape":[0,3],"data_offsets":[16,16]},"f":{"dtype":"F4","shape":[2,4],"data_offsets":[16,20]}})",
      {1, 2, 3, 4, 5});
  for (const ElementType type : {ElementType::kI8, ElementType::kBF16}) {
    quantized.size_ = 0;
    ASSERT_EQ(quantize_safetensors(file, type, quantized, no_report), Status::kOk);
    int tensors = 0;
    const SafetensorsFile parts = split_safetensors(quantized.text());
    SafetensorsHeader entries(parts.header, parts.body.size());
    for (SafetensorsEntry entry; entries.next(entry); ++tensors) {
      if (entry.name == "e") EXPECT_TRUE(entry.rank == 2 && entry.shape[0] == 0 && entry.shape[1] == 3);
      if (entry.name != "f") continue;
      EXPECT_TRUE(entry.type_name == "F4");
      EXPECT_TRUE(std::string_view(parts.body.data() + entry.begin, 4) ==
                  std::string_view(file.text().data() + file.size() - 4, 4));
    }
    EXPECT_EQ(entries.status(), Status::kOk);
    EXPECT_EQ(tensors, type == ElementType::kI8 ? 4 : 3);
  }
}

TEST(QuantizeSafetensors, integers_without_their_scales_are_refused) {
  EXPECT_EQ(
      layout_of(
          R"({"weight.scale":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"I8","shape":[3,2],"data_offsets":[12,18]}})",
          18),
      Status::kOk);
  EXPECT_EQ(layout_of(R"({"weight":{"dtype":"I8","shape":[3,2],"data_offsets":[0,6]}})", 6),
            Status::kInvalidType);
  EXPECT_EQ(
      layout_of(
          R"({"weight.scale":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"weight":{"dtype":"I8","shape":[3,2],"data_offsets":[8,14]}})",
          14),
      Status::kInvalidShape);
  EXPECT_EQ(
      layout_of(
          R"({"weight.scale":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},"weight":{"dtype":"I8","shape":[3,2],"data_offsets":[6,12]}})",
          12),
      Status::kInvalidType);
  // Scales of what has none.
  EXPECT_EQ(
      layout_of(
          R"({"weight.scale":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})",
          36),
      Status::kInvalidType);
  EXPECT_EQ(
      layout_of(
          R"({"bias.scale":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})",
          36),
      Status::kUnknownTensor);
}
