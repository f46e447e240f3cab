// What is sent back from a device: every tensor of the file, with its shape, with what was learned.
#include <attune/exchange/pytorch_file.hpp>

#include <attune/exchange/hugging_face_names.hpp>
#include <attune/exchange/quantize_safetensors.hpp>
#include <attune/exchange/write_safetensors.hpp>
#include <attune/models/tied.hpp>
#include <attune/weights/quantize.hpp>

#include "check.hpp"
#include "memory_file.hpp"

namespace {

using namespace attune;
using check::MemoryFile;

// A head that is the embedding: E[3, 2].
using Body = Linear<LinearShape{.rows = 2, .d_in = 2, .d_out = 2, .bias = false}>;
using Model = Tied<Embedding<EmbeddingShape{.seq_len = 2, .vocabulary = 3, .d_model = 2}>, Body>;
using Named = PyTorchModule<Model, "embed", "body">;
using Names = PyTorchFile<Named, TensorAlias<"lm_head.weight", "embed.weight">>;

constexpr std::string_view kTiedHeader =
    R"({"body.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
    R"("embed.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[16,40]},)"
    R"("lm_head.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[40,64]}})";
MemoryFile tied_file(float last_of_alias = 10) {
  MemoryFile file;
  file.start<float>(kTiedHeader, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 5, 6, 7, 8, 9, last_of_alias});
  return file;
}
float number_at(const MemoryFile& file, std::size_t from_the_end) {
  float number;
  std::memcpy(&number, file.bytes + file.size_ - 4 * from_the_end, 4);
  return number;
}

}  // namespace

TEST(PyTorchFile, an_alias_is_written_with_the_learned_values) {
  const MemoryFile file = tied_file();
  Model::Parameters parameters;
  ASSERT_EQ(read_safetensors<Names>(file, parameters), Status::kOk);
  MemoryFile unchanged, written, rewritten;
  ASSERT_EQ(write_safetensors<Names>(parameters, unchanged), Status::kOk);
  EXPECT_TRUE(unchanged.text() == file.text());
  parameters.embedding.weight(2, 1) = 11;
  ASSERT_EQ(write_safetensors<Names>(parameters, written), Status::kOk);
  ASSERT_EQ(rewrite_safetensors<Names>(file, parameters, rewritten), Status::kOk);
  EXPECT_TRUE(rewritten.text() == written.text());
  EXPECT_EQ(number_at(written, 1), 11.0f);
  EXPECT_EQ(number_at(written, 7), 11.0f);
}

TEST(PyTorchFile, a_head_with_the_bytes_of_the_embedding_is_known_as_its_alias) {
  using Part = PyTorchPart<Named>;
  Model::Parameters parameters;
  MemoryFile rewritten;
  ASSERT_EQ(read_safetensors<Part>(tied_file(), parameters), Status::kOk);
  parameters.embedding.weight(2, 1) = 11;
  ASSERT_EQ(rewrite_safetensors<Part>(tied_file(), parameters, rewritten), Status::kOk);
  EXPECT_EQ(number_at(rewritten, 1), 11.0f);
  EXPECT_EQ(number_at(rewritten, 7), 11.0f);
  // A head of its own stays as it is.
  MemoryFile untied;
  ASSERT_EQ(rewrite_safetensors<Part>(tied_file(12), parameters, untied), Status::kOk);
  EXPECT_EQ(number_at(untied, 1), 12.0f);
  EXPECT_EQ(number_at(untied, 7), 11.0f);
}

TEST(PyTorchFile, an_alias_with_other_values_is_refused_and_a_missing_one_is_ignored) {
  Model::Parameters parameters;
  const MemoryFile untied = tied_file(12);
  const SafetensorsResult result = read_safetensors<Names>(untied, parameters);
  EXPECT_EQ(result.status, Status::kOtherAlias);
  EXPECT_TRUE(result.tensor == "lm_head.weight");
  MemoryFile without;
  without.start<float>(R"({"body.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                       R"("embed.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[16,40]}})",
                       {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  ASSERT_EQ(read_safetensors<Names>(without, parameters), Status::kOk);
  EXPECT_EQ(parameters.embedding.weight(2, 1), 10.0f);
}

namespace {

// Patches of 7 × 7 pixels by a convolution, and positions with a dimension more.
using Patches = Sequential<Linear<LinearShape{.rows = 3, .d_in = 4, .d_out = 2, .bias = false}>,
                           LearnedPositions<PositionShape{3, 2}>>;
using PatchNames =
    PyTorchFile<PyTorchPart<PyTorchModule<Patches, "patches", "pos">, "vit">, TensorShape<"vit.pos", 1, 3, 2>,
                TensorShape<"vit.patches.weight", 2, 1, 2, 2>>;
constexpr std::string_view kPatchHeader =
    R"({"vit.patches.weight":{"dtype":"F32","shape":[2,1,2,2],"data_offsets":[0,32]},)"
    R"("vit.pos":{"dtype":"F32","shape":[1,3,2],"data_offsets":[32,56]}})";

}  // namespace

TEST(PyTorchFile, shapes_of_the_file_are_written) {
  MemoryFile file, written;
  file.start<float>(kPatchHeader, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14});
  Patches::Parameters parameters;
  ASSERT_EQ(read_safetensors<PatchNames>(file, parameters), Status::kOk);
  ASSERT_EQ(write_safetensors<PatchNames>(parameters, written), Status::kOk);
  EXPECT_TRUE(written.text() == file.text());
}

TEST(PyTorchFile, a_dimension_of_one_may_be_anywhere_in_positions_and_vectors) {
  using TokensFirst = PyTorchFile<PyTorchModule<Sequential<LearnedPositions<PositionShape{3, 2}>,
                                                           attune::LayerScale<attune::ScaleShape{3, 2}>>,
                                                "pos", "scale">,
                                  TensorShape<"pos", 3, 1, 2>, TensorShape<"scale", 2, 1, 1>>;
  MemoryFile file, written;
  file.start<float>(R"({"pos":{"dtype":"F32","shape":[3,1,2],"data_offsets":[0,24]},)"
                    R"("scale":{"dtype":"F32","shape":[2,1,1],"data_offsets":[24,32]}})",
                    {1, 2, 3, 4, 5, 6, 7, 8});
  TokensFirst::Model::Parameters parameters;
  ASSERT_EQ(read_safetensors<TokensFirst>(file, parameters), Status::kOk);
  EXPECT_EQ(parameters.layer<0>().weight(2, 0), 5.0f);
  ASSERT_EQ(write_safetensors<TokensFirst>(parameters, written), Status::kOk);
  EXPECT_TRUE(written.text() == file.text());
}

TEST(PyTorchFile, fewer_positions_than_the_file_has_are_its_first) {
  using Shorter = Sequential<Linear<LinearShape{.rows = 2, .d_in = 4, .d_out = 2, .bias = false}>,
                             LearnedPositions<PositionShape{2, 2}>>;
  using ShorterNames = PyTorchModule<Shorter, "vit.patches", "vit.pos">;
  MemoryFile file, rewritten;
  file.start<float>(kPatchHeader, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14});
  Shorter::Parameters parameters;
  ASSERT_EQ(read_safetensors<ShorterNames>(file, parameters), Status::kOk);
  EXPECT_EQ(parameters.layer<1>().weight(1, 1), 12.0f);
  Shorter::ParametersOf<TransposedReference, Reference> in_place{};
  ASSERT_EQ(refer_to_safetensors<ShorterNames>(file, in_place), Status::kOk);
  EXPECT_EQ(view(in_place.layer<1>().weight)(1, 1), 12.0f);
  parameters.layer<1>().weight(1, 1) = 20;
  ASSERT_EQ(rewrite_safetensors<ShorterNames>(file, parameters, rewritten), Status::kOk);
  EXPECT_EQ(number_at(rewritten, 3), 20.0f);
  EXPECT_EQ(number_at(rewritten, 1), 14.0f);
  EXPECT_EQ(rewritten.size(), file.size());
}

namespace {

using Small = Linear<LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
using SmallPart = PyTorchPart<PyTorchModule<Small>>;

/// F16 weights, BF16 biases, and a tensor of another module.
MemoryFile file_of_halves() {
  MemoryFile file;
  file.start<std::uint16_t>(R"({"weight":{"dtype":"F16","shape":[3,2],"data_offsets":[0,12]},)"
                            R"("bias":{"dtype":"BF16","shape":[3],"data_offsets":[12,18]},)"
                            R"("other":{"dtype":"F16","shape":[1],"data_offsets":[18,20]}})",
                            {0x3C00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x40E0, 0x4100, 0x4110, 0x1234});
  return file;
}

}  // namespace

TEST(RewriteSafetensors, sixteen_bit_floats_are_written_in_their_own_types) {
  const MemoryFile file = file_of_halves();
  Small::Parameters parameters;
  ASSERT_EQ(read_safetensors<SmallPart>(file, parameters), Status::kOk);
  EXPECT_EQ(parameters.bias(0, 1), 8.0f);
  MemoryFile unchanged, changed;
  ASSERT_EQ(rewrite_safetensors<SmallPart>(file, parameters, unchanged), Status::kOk);
  EXPECT_TRUE(unchanged.text() == file.text());
  parameters.weight(1, 2) = 1.0f + 1.0f / 1024 + 1.0f / 4096;  // rounded to 1 + 2⁻¹⁰
  ASSERT_EQ(rewrite_safetensors<SmallPart>(file, parameters, changed), Status::kOk);
  EXPECT_EQ(changed.size(), file.size());
  std::uint16_t last;
  std::memcpy(&last, changed.bytes + changed.size() - 10, 2);
  EXPECT_EQ(last, 0x3C01);

  // What F16 does not have is refused by name, and nothing is written.
  parameters.weight(1, 2) = 70000;
  MemoryFile nothing;
  const SafetensorsResult refused = rewrite_safetensors<SmallPart>(file, parameters, nothing);
  EXPECT_EQ(refused.status, Status::kNotFinite);
  EXPECT_TRUE(refused.tensor == "weight");
  EXPECT_EQ(nothing.size(), 0u);
}

TEST(RewriteSafetensors, sixteen_bit_floats_become_the_models_scalar_on_request) {
  const MemoryFile file = file_of_halves();
  Small::Parameters parameters, read;
  ASSERT_EQ(read_safetensors<SmallPart>(file, parameters), Status::kOk);
  parameters.weight(1, 2) = 70000;
  MemoryFile floats;
  ASSERT_EQ(rewrite_safetensors<SmallPart>(file, parameters, floats, WrittenTypes::kOfModel), Status::kOk);
  EXPECT_TRUE(floats.contains(R"("weight":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]})"));
  EXPECT_TRUE(floats.contains(R"("other":{"dtype":"F16","shape":[1],"data_offsets":[36,38]})"));
  ASSERT_EQ(read_safetensors<SmallPart>(floats, read), Status::kOk);
  EXPECT_TRUE(check::same_bits(read, parameters));
}

TEST(RewriteSafetensors, integers_with_scales_become_floats_with_the_names_and_shapes_of_the_original) {
  using Part = PyTorchPart<Named>;
  using Own = Model::ParametersOf<Int8Weights, Tensor>;
  const MemoryFile file = tied_file();
  MemoryFile quantized, written;
  ASSERT_EQ(
      quantize_safetensors(file, ElementType::kI8, quantized, [](std::string_view, QuantizationError) {}),
      Status::kOk);
  EXPECT_TRUE(quantized.contains("lm_head.weight.scale"));
  Model::Parameters parameters;
  ASSERT_EQ(read_safetensors<Part>(quantized, parameters), Status::kOk);
  parameters.embedding.weight(2, 1) = 11;
  ASSERT_EQ(rewrite_safetensors<Part>(quantized, parameters, written), Status::kOk);
  EXPECT_FALSE(written.contains(".scale"));
  EXPECT_FALSE(written.contains("I8"));
  Model::Parameters read;
  ASSERT_EQ(read_safetensors<Names>(written, read), Status::kOk);
  EXPECT_TRUE(check::same_bits(read, parameters));
  EXPECT_EQ(number_at(written, 1), 11.0f);

  // So do weights of other modules: E alone is the model here.
  using Front = Embedding<EmbeddingShape{.seq_len = 2, .vocabulary = 3, .d_model = 2}>;
  Front::Parameters front;
  using FrontNames = PyTorchPart<PyTorchModule<Front, "embed">>;
  ASSERT_EQ(read_safetensors<FrontNames>(quantized, front), Status::kOk);
  written.size_ = 0;
  ASSERT_EQ(rewrite_safetensors<FrontNames>(quantized, front, written), Status::kOk);
  EXPECT_FALSE(written.contains(".scale"));
  ASSERT_EQ(read_safetensors<Names>(written, read), Status::kOk);
  Own own;
  Model::Parameters original;
  ASSERT_EQ(read_safetensors<Names>(file, original), Status::kOk);
  ASSERT_EQ(quantize(original, own), Status::kOk);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) EXPECT_EQ(read.body.weight(i, j), own.body.weight(i, j));
  }
}

TEST(RewriteSafetensors, refusals_name_the_tensor) {
  MemoryFile file, nothing;
  file.start<float>(R"({"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},)"
                    R"("bias":{"dtype":"F32","shape":[2],"data_offsets":[24,32]}})",
                    {1, 2, 3, 4, 5, 6, 7, 8});
  Small::Parameters parameters{};
  const auto expect = [](SafetensorsResult result, Status status, std::string_view tensor) {
    EXPECT_EQ(result.status, status);
    EXPECT_TRUE(result.tensor == tensor);
  };
  expect(rewrite_safetensors<SmallPart>(file, parameters, nothing), Status::kInvalidShape, "bias");
  expect(read_safetensors<SmallPart>(file, parameters), Status::kInvalidShape, "bias");
  Linear<LinearShape{.rows = 1, .d_in = 3, .d_out = 3}>::Parameters other{};
  expect(write_safetensors<SmallPart>(other, nothing), Status::kInvalidShape, "weight");
  Small::ParametersOf<Int8Reference, Reference> in_place{};
  const MemoryFile halves = file_of_halves();
  expect(refer_to_safetensors<SmallPart>(halves, in_place), Status::kInvalidType, "weight");
  EXPECT_EQ(nothing.size(), 0u);
}
