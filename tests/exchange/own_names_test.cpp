#include <attune/exchange/own_names.hpp>

#include <attune/exchange/read_safetensors.hpp>
#include <attune/exchange/write_safetensors.hpp>
#include <attune/models/frozen.hpp>

#include "check.hpp"

namespace {

using namespace attune;

struct Bytes {
  char bytes[1024];
  std::size_t size = 0;
  void operator()(const char* text, std::size_t count) {
    for (std::size_t i = 0; i < count && size < sizeof bytes; ++i) bytes[size++] = text[i];
  }
  [[nodiscard]] std::string_view text() const { return {bytes, size}; }
};

using Body = Linear<LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
using Head = Linear<LinearShape{.rows = 1, .d_in = 3, .d_out = 1, .bias = false}>;
constexpr Body::Parameters kBody{{{1, 3, 5, 2, 4, 6}}, {{7, 8, 9}}};
using Tuned = Adapted<Body, kBody, LowRank{.rank = 1, .roles = Role::kProjections, .alpha = 0.5}>;
using Model = Sequential<Tuned, Head>;

Model::Parameters trained() {
  Model::Parameters set{};
  set.layer<0>().weight.a = {{1, 2}};
  set.layer<0>().weight.b = {{2, 4, 6}};
  set.layer<1>().weight = {{0.5f, 1, 1.5f}};
  return set;
}

}  // namespace

TEST(OwnNames, cover_only_trained_tensors_and_come_back) {
  const Model::Parameters set = trained();
  Bytes file;
  ASSERT_EQ(write_safetensors<OwnNames<Model>>(set, file), Status::kOk);
  constexpr std::string_view kHeader =
      R"({"0.weight.lora_A":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},"0.weight.lora_B":{"dtype":"F32","shape":[1,3],"data_offsets":[8,20]},"1.weight":{"dtype":"F32","shape":[3,1],"data_offsets":[20,32]}})";
  EXPECT_TRUE(file.text().find(kHeader) == 8);
  Model::Parameters read{};
  ASSERT_EQ(read_safetensors<OwnNames<Model>>(file.text(), read), Status::kOk);
  EXPECT_TRUE(check::same_bits(read, set));
  using Wider = Adapted<Body, kBody, LowRank{.rank = 2, .roles = Role::kProjections}>;
  Sequential<Wider, Head>::Parameters other{};
  EXPECT_EQ((read_safetensors<OwnNames<Sequential<Wider, Head>>>(file.text(), other)), Status::kInvalidShape);
}

TEST(PyTorchNames, adapted_weights_use_the_names_of_merged_weights) {
  using Whole = Sequential<Body, Head>;
  const Model::Parameters set = trained();
  Whole::Parameters merged;
  Tuned::merge(set.layer<0>(), merged.layer<0>());
  merged.layer<1>() = set.layer<1>();
  EXPECT_TRUE(check::same_bits(merged.layer<0>().weight, Tensor<float, 2, 3>{{2, 5, 8, 4, 8, 12}}));
  Bytes file, of_merged;
  ASSERT_EQ((write_safetensors<PyTorchModule<Model, "body", "head">>(set, file)), Status::kOk);
  ASSERT_EQ((write_safetensors<PyTorchModule<Whole, "body", "head">>(merged, of_merged)), Status::kOk);
  EXPECT_TRUE(file.text() == of_merged.text());

  // What is read of such a file is what is trained under those names: the head.
  Model::Parameters read{};
  ASSERT_EQ((read_safetensors<PyTorchModule<Model, "body", "head">>(file.text(), read)), Status::kOk);
  EXPECT_TRUE(check::same_bits(read.layer<1>(), set.layer<1>()));
  EXPECT_EQ(read.layer<0>().weight.a(0, 0), 0.0f);
}
