#include <attune/exchange/write_safetensors.hpp>

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
  write_safetensors<PyTorchModule<Model>>(kParameters, file);
  expect_file<float>(
      file,
      R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})");
  EXPECT_LE(static_cast<int>(file.largest_piece), 64);
}

TEST(WriteSafetensors, metadata_comes_first_and_spaces_last) {
  Bytes file;
  write_safetensors<PyTorchModule<Model>>(kParameters, file, {.metadata = R"({"format":"pt"})"});
  expect_file<float>(
      file,
      R"({"__metadata__":{"format":"pt"},"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})"
      " ");
}

TEST(WriteSafetensors, type_is_the_models) {
  using Double = Model::WithScalar<double>;
  constexpr Double::Parameters kDoubles{{{1, 3, 5, 2, 4, 6}}, {{7, 8, 9}}};
  Bytes file;
  write_safetensors<PyTorchModule<Double>>(kDoubles, file);
  expect_file<double>(
      file,
      R"({"bias":{"dtype":"F64","shape":[3],"data_offsets":[0,24]},"weight":{"dtype":"F64","shape":[3,2],"data_offsets":[24,72]}})");
}

TEST(WriteSafetensors, any_form_gives_the_same_file) {
  constexpr float kTransposed[6] = {1, 2, 3, 4, 5, 6}, kBias[3] = {7, 8, 9};
  const Model::ParametersOf<TransposedReference, Reference> in_place_set{{kTransposed}, {kBias}};
  Bytes own, in_place;
  write_safetensors<PyTorchModule<Model>>(kParameters, own);
  write_safetensors<PyTorchModule<Model>>(in_place_set, in_place);
  EXPECT_TRUE(own.text(0, own.size) == in_place.text(0, in_place.size));
}
