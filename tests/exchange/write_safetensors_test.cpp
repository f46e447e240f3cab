#include <attune/exchange/write_safetensors.hpp>

#include <initializer_list>

#include <attune/exchange/read_safetensors.hpp>
#include <attune/models/frozen.hpp>

#include "check.hpp"

namespace {

using namespace attune;

struct Bytes {
  char bytes[512];
  std::size_t size = 0, largest_piece = 0;
  void operator()(const char* text, std::size_t count) {
    largest_piece = count > largest_piece ? count : largest_piece;
    for (std::size_t i = 0; i < count && size < sizeof bytes; ++i) bytes[size++] = text[i];
  }
  [[nodiscard]] std::string_view text(std::size_t first, std::size_t count) const {
    return {bytes + first, count};
  }
};

using Model = Linear<LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
constexpr Model::Parameters kParameters{{{1, 3, 5, 2, 4, 6}}, {{7, 8, 9}}};

// `header` is of a length that is a multiple of 8, and 36 or 72 bytes follow.
template <class Scalar>
void expect_file(const Bytes& file, std::string_view header) {
  ASSERT_EQ(header.size() % 8, 0u);
  ASSERT_EQ(file.size, 8 + header.size() + 9 * sizeof(Scalar));
  EXPECT_EQ(static_cast<std::size_t>(static_cast<unsigned char>(file.bytes[0])), header.size());
  for (int i = 1; i < 8; ++i) EXPECT_EQ(static_cast<int>(file.bytes[i]), 0);
  EXPECT_TRUE(file.text(8, header.size()) == header);
  constexpr Scalar kBody[9] = {7, 8, 9, 1, 2, 3, 4, 5, 6};
  EXPECT_EQ(std::memcmp(file.bytes + 8 + header.size(), kBody, sizeof kBody), 0);
}

}  // namespace

TEST(WriteSafetensors, file_is_as_the_reference_writes_it) {
  Bytes file;
  EXPECT_EQ((write_safetensors<PyTorchModule<Model>>(kParameters, file)), Status::kOk);
  expect_file<float>(
      file,
      R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})");
  EXPECT_LE(static_cast<int>(file.largest_piece), 64);
}

TEST(WriteSafetensors, appended_keys_have_the_shape_that_pytorch_gives_them) {
  using Attention = MultiHeadAttention<AttentionShape{
      .seq_len = 1, .d_model = 2, .num_heads = 1, .bias = false, .add_bias_kv = true}>;
  using Names = PyTorchModule<Attention>;
  Attention::Parameters parameters, read;
  Rng rng(3);
  check::fill_set(parameters, rng);
  Bytes file;
  EXPECT_EQ(write_safetensors<Names>(parameters, file), Status::kOk);
  EXPECT_TRUE(file.text(8, 66) == R"({"bias_k":{"dtype":"F32","shape":[1,1,2],"data_offsets":[0,8]},"bi)");
  EXPECT_EQ(read_safetensors<Names>(file.text(0, file.size), read), Status::kOk);
  EXPECT_TRUE(check::same_bits(read, parameters));
}

TEST(WriteSafetensors, metadata_comes_first_and_spaces_last) {
  Bytes file;
  EXPECT_EQ((write_safetensors<PyTorchModule<Model>>(kParameters, file, {.metadata = R"({"format":"pt"})"})),
            Status::kOk);
  expect_file<float>(
      file,
      R"({"__metadata__":{"format":"pt"},"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})"
      " ");
}

TEST(WriteSafetensors, master_weights_in_bf16_come_back_from_floats_and_from_bf16) {
  using Names = PyTorchModule<Model>;
  using Masters = Model::ParametersOf<Bfloat16Tensor, Tensor>;
  Masters weights{}, read{};
  copy_parameters(kParameters, weights);
  weights.weight(1, 2) = -0.1f;  // rounded
  Bytes floats, halves;
  EXPECT_EQ((write_safetensors<Names>(weights, floats)), Status::kOk);
  EXPECT_EQ((write_safetensors<Names, ElementType::kBF16>(weights, halves)), Status::kOk);
  EXPECT_TRUE(halves.text(8, halves.size - 8)
                  .starts_with(R"({"bias":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]},"w)"));
  EXPECT_EQ(floats.size - halves.size, 9 * 2u);
  EXPECT_EQ((read_safetensors<Names>(floats.text(0, floats.size), read)), Status::kOk);
  EXPECT_TRUE(check::same_bits(read, weights));
  read = {};
  EXPECT_EQ((read_safetensors<Names>(halves.text(0, halves.size), read)), Status::kOk);
  EXPECT_TRUE(check::same_bits(read, weights));
  // Floats are rounded to nearest.
  Model::Parameters unrounded = kParameters;
  unrounded.weight(1, 2) = -0.1f;
  Bytes of_unrounded;
  EXPECT_EQ((write_safetensors<Names>(unrounded, of_unrounded)), Status::kOk);
  EXPECT_EQ((read_safetensors<Names>(of_unrounded.text(0, of_unrounded.size), read)), Status::kOk);
  EXPECT_TRUE(check::same_bits(read, weights));
}

TEST(WriteSafetensors, types_that_cannot_hold_the_numbers_write_nothing) {
  using Names = PyTorchModule<Model>;
  Model::Parameters large = kParameters;
  large.weight(0, 1) = 7e4f;
  Bytes file;
  const SafetensorsResult result = write_safetensors<Names, ElementType::kF16>(large, file);
  EXPECT_EQ(result, Status::kNotFinite);
  EXPECT_TRUE(result.tensor == "weight");
  EXPECT_EQ(file.size, 0u);
}

TEST(WriteSafetensors, type_is_the_models) {
  using Double = Model::WithScalar<double>;
  constexpr Double::Parameters kDoubles{{{1, 3, 5, 2, 4, 6}}, {{7, 8, 9}}};
  Bytes file;
  EXPECT_EQ((write_safetensors<PyTorchModule<Double>>(kDoubles, file)), Status::kOk);
  expect_file<double>(
      file,
      R"({"bias":{"dtype":"F64","shape":[3],"data_offsets":[0,24]},"weight":{"dtype":"F64","shape":[3,2],"data_offsets":[24,72]}})");
}

TEST(WriteSafetensors, any_weight_storage_gives_the_same_file) {
  constexpr float kTransposed[6] = {1, 2, 3, 4, 5, 6}, kBias[3] = {7, 8, 9};
  const Model::ParametersOf<TransposedReference, Reference> in_place_set{{kTransposed}, {kBias}};
  Bytes own, in_place;
  EXPECT_EQ((write_safetensors<PyTorchModule<Model>>(kParameters, own)), Status::kOk);
  EXPECT_EQ((write_safetensors<PyTorchModule<Model>>(in_place_set, in_place)), Status::kOk);
  EXPECT_TRUE(own.text(0, own.size) == in_place.text(0, in_place.size));
}

namespace {

// The length of a header, which is a multiple of 8, the header and floats.
Bytes file_of(std::string_view header, std::initializer_list<float> body) {
  Bytes file;
  const char length[8] = {static_cast<char>(header.size()), static_cast<char>(header.size() >> 8)};
  file(length, 8);
  file(header.data(), header.size());
  file(reinterpret_cast<const char*>(body.begin()), body.size() * sizeof(float));
  return file;
}
std::string_view text_of(const Bytes& file) { return file.text(0, file.size); }

// What is not the model's in front, between and behind; an order and shapes of its own.
constexpr std::string_view kOwnOrder =
    R"({ "m.weight": {"shape": [3, 2, 1], "dtype": "F32", "data_offsets": [8, 32]}, "seen": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]},)"
    R"("m.bias":{"dtype":"F32","shape":[1,1,3],"data_offsets":[36,48]},"x":{"dtype":"U8","shape":[4],"data_offsets":[32,36]},)"
    R"("last":{"dtype":"F32","shape":[1,1],"data_offsets":[48,52]},"__metadata__":{"by":"hand"}}    )";
using Part = PyTorchPart<PyTorchModule<Model>, "m">;

}  // namespace

TEST(RewriteSafetensors, changes_only_the_values_of_the_model) {
  const Bytes file = file_of(kOwnOrder, {-1, -2, 1, 2, 3, 4, 5, 6, -3, 7, 8, 9, -4});
  Model::Parameters parameters{};
  ASSERT_EQ(read_safetensors<Part>(text_of(file), parameters), Status::kOk);
  EXPECT_EQ(std::memcmp(&parameters, &kParameters, sizeof parameters), 0);
  Bytes unchanged, changed;
  ASSERT_EQ(rewrite_safetensors<Part>(text_of(file), parameters, unchanged), Status::kOk);
  EXPECT_TRUE(text_of(unchanged) == text_of(file));
  EXPECT_LE(static_cast<int>(unchanged.largest_piece), 64);

  parameters.bias(0, 1) = 10;
  parameters.weight(1, 2) = 11;
  ASSERT_EQ(rewrite_safetensors<Part>(text_of(file), parameters, changed), Status::kOk);
  const Bytes expected = file_of(kOwnOrder, {-1, -2, 1, 2, 3, 4, 5, 11, -3, 7, 10, 9, -4});
  EXPECT_TRUE(text_of(changed) == text_of(expected));
}

TEST(RewriteSafetensors, writes_nothing_for_a_refused_file) {
  const Bytes file = file_of(kOwnOrder, {-1, -2, 1, 2, 3, 4, 5, 6, -3, 7, 8, 9});
  Bytes nothing;
  EXPECT_EQ(rewrite_safetensors<Part>(text_of(file), kParameters, nothing), Status::kCutShort);
  EXPECT_EQ(rewrite_safetensors<Part>(std::string_view(), kParameters, nothing), Status::kCutShort);
  EXPECT_EQ(nothing.size, 0u);
}

TEST(RewriteSafetensors, numbers_of_a_wider_model_are_rounded_to_the_files_type) {
  constexpr Model::WithScalar<double>::Parameters kDoubles{{{1, 3, 5, 2, 4, 6 + 1e-12}}, {{7, 8, 9}}};
  const Bytes file = file_of(kOwnOrder, {-1, -2, 1, 2, 3, 4, 5, 6, -3, 7, 8, 9, -4});
  using Doubles = PyTorchPart<PyTorchModule<Model::WithScalar<double>>, "m">;
  Bytes rewritten;
  EXPECT_EQ(rewrite_safetensors<Doubles>(text_of(file), kDoubles, rewritten), Status::kOk);
  EXPECT_TRUE(text_of(rewritten) == text_of(file));
}

namespace {

using Head = Linear<LinearShape{.rows = 1, .d_in = 3, .d_out = 1, .bias = false}>;
using Whole = Sequential<Model, Head>;
template <class First>
using Names = PyTorchModule<Sequential<First, Head>, "front", "head">;

}  // namespace

TEST(WriteSafetensors, constants_of_a_model_are_written_and_reading_leaves_them) {
  using Frozen = attune::Frozen<Model, kParameters>;
  using Tuned = BiasesAndNorms<Model, kParameters>;
  Whole::Parameters whole;
  whole.layer<0>() = kParameters;
  whole.layer<1>().weight = {{0.5f, 1, 1.5f}};
  Sequential<Frozen, Head>::Parameters head;
  head.layer<1>() = whole.layer<1>();
  Sequential<Tuned, Head>::Parameters tuned;
  tuned.layer<0>().bias = kParameters.bias;
  tuned.layer<1>() = whole.layer<1>();
  Bytes of_whole, head_file, of_tuned;
  EXPECT_EQ((write_safetensors<Names<Model>>(whole, of_whole)), Status::kOk);
  EXPECT_EQ((write_safetensors<Names<Frozen>>(head, head_file)), Status::kOk);
  EXPECT_EQ((write_safetensors<Names<Tuned>>(tuned, of_tuned)), Status::kOk);
  EXPECT_TRUE(text_of(head_file) == text_of(of_whole));
  EXPECT_TRUE(text_of(of_tuned) == text_of(of_whole));

  whole.layer<0>().weight(0, 0) = 20;  // which is constant in the others
  whole.layer<0>().bias(0, 0) = 21;
  whole.layer<1>().weight(0, 0) = 22;
  Bytes other;
  EXPECT_EQ((write_safetensors<Names<Model>>(whole, other)), Status::kOk);
  ASSERT_EQ(read_safetensors<Names<Frozen>>(text_of(other), head), Status::kOk);
  ASSERT_EQ(read_safetensors<Names<Tuned>>(text_of(other), tuned), Status::kOk);
  EXPECT_EQ(head.layer<1>().weight(0, 0), 22.0f);
  EXPECT_EQ(tuned.layer<0>().bias(0, 0), 21.0f);
  EXPECT_EQ(tuned.layer<1>().weight(0, 0), 22.0f);
}

TEST(WriteSafetensors, a_set_of_another_model_is_neither_written_nor_read) {
  using Other = Linear<LinearShape{.rows = 1, .d_in = 3, .d_out = 2}>;
  Other::Parameters other{};
  Other::ParametersOf<TransposedReference, Reference> in_place{};
  Bytes file, nothing;
  EXPECT_EQ(write_safetensors<PyTorchModule<Model>>(other, nothing), Status::kInvalidShape);
  EXPECT_EQ(write_safetensors<PyTorchModule<Model>>(kParameters, file), Status::kOk);
  EXPECT_EQ(read_safetensors<PyTorchModule<Model>>(text_of(file), other), Status::kInvalidShape);
  EXPECT_EQ(refer_to_safetensors<PyTorchModule<Model>>(text_of(file), in_place), Status::kInvalidShape);
  EXPECT_EQ(rewrite_safetensors<PyTorchModule<Model>>(text_of(file), other, nothing), Status::kInvalidShape);
  EXPECT_EQ(nothing.size, 0u);
  // Another instance of the same model, for other lengths, has the same set.
  using Longer = Linear<LinearShape{.rows = 5, .d_in = 2, .d_out = 3}>;
  Longer::Parameters longer{};
  EXPECT_EQ(read_safetensors<PyTorchModule<Model>>(text_of(file), longer), Status::kOk);
}
