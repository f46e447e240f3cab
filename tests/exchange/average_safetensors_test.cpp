#include <attune/exchange/average_safetensors.hpp>

#include <cstring>
#include <limits>

#include "check.hpp"

namespace {

using attune::Status;
using attune::TrainedFile;

// A file in static memory.
struct File {
  char bytes[600];
  std::size_t size = 0;

  void operator()(const char* from, std::size_t count) {
    for (std::size_t i = 0; i < count && size < sizeof bytes; ++i) bytes[size++] = from[i];
  }
  template <class... Scalar>
  File& make(std::string_view header, Scalar... values) {
    size = 0;
    const char length[8] = {static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
    (*this)(length, 8);
    (*this)(header.data(), header.size());
    const auto add = [this](auto value) {
      char raw[sizeof value];
      std::memcpy(raw, &value, sizeof value);
      (*this)(raw, sizeof value);
    };
    (add(values), ...);
    return *this;
  }
  [[nodiscard]] std::string_view text() const { return {bytes, size}; }
  template <class Scalar>
  [[nodiscard]] Scalar last(std::size_t from_end) const {
    Scalar value;
    std::memcpy(&value, bytes + size - (from_end + 1) * sizeof value, sizeof value);
    return value;
  }
};
File first, second, third, mean;

constexpr std::string_view kHeader =
    R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})";
constexpr std::string_view kInAnotherOrder = R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                             R"("w":{"dtype":"F32","shape":[1,2],"data_offsets":[4,12]}})";

template <std::size_t count>
attune::AveragedFiles average(const TrainedFile (&files)[count]) {
  mean.size = 0;
  return attune::average_safetensors(files, mean);
}
// The second file is refused, and nothing written.
void expect_refused(Status status, std::uint64_t examples = 1) {
  const auto result = average({{first.text(), 1}, {second.text(), examples}});
  EXPECT_EQ(result.status, status);
  EXPECT_EQ(result.file, 1u);
  EXPECT_EQ(mean.size, 0u);
}

}  // namespace

TEST(AverageSafetensors, weighs_files_by_their_examples) {
  first.make(kHeader, 1.0f, -2.0f, 8.0f);
  second.make(kInAnotherOrder, 16.0f, 5.0f, 2.0f);
  ASSERT_EQ(average({{first.text(), 3}, {second.text(), 1}}).status, Status::kOk);
  EXPECT_EQ(std::string_view(mean.bytes + 8, kHeader.size()), kHeader);
  EXPECT_EQ(mean.size, first.size);
  EXPECT_EQ(mean.last<float>(2), 2.0f);
  EXPECT_EQ(mean.last<float>(1), -1.0f);
  EXPECT_EQ(mean.last<float>(0), 10.0f);
}

TEST(AverageSafetensors, of_equal_files_is_the_file) {
  first.make(kHeader, 0.1f, -3.3333333e-39f, 3.4e38f);
  ASSERT_EQ(average({{first.text(), 7}, {first.text(), 100'000'001}, {first.text(), 13}}).status,
            Status::kOk);
  EXPECT_EQ(mean.text(), first.text());
}

TEST(AverageSafetensors, sums_in_double_in_the_order_of_the_files) {
  // 2⁶⁰ − 2⁶⁰ + 1 keeps the 1, where 1 + 2⁶⁰ − 2⁶⁰ loses it; the sum of floats would lose 2⁻³⁰.
  first.make(kHeader, 0x1p60f, 1.0f, 0.0f);
  second.make(kHeader, -0x1p60f, 0x1p-30f, 0.0f);
  third.make(kHeader, 1.0f, -1.0f, 0.0f);
  ASSERT_EQ(average({{first.text(), 1}, {second.text(), 1}, {third.text(), 1}}).status, Status::kOk);
  EXPECT_EQ(mean.last<float>(2), static_cast<float>(1.0 / 3));
  EXPECT_EQ(mean.last<float>(1), static_cast<float>(0x1p-30 / 3));
  ASSERT_EQ(average({{third.text(), 1}, {first.text(), 1}, {second.text(), 1}}).status, Status::kOk);
  EXPECT_EQ(mean.last<float>(2), 0.0f);
}

TEST(AverageSafetensors, takes_doubles) {
  constexpr std::string_view kDouble = R"({"w":{"dtype":"F64","shape":[],"data_offsets":[0,8]}})";
  first.make(kDouble, 1.0 / 3);
  second.make(kDouble, 2.0 / 3);
  ASSERT_EQ(average({{first.text(), 1}, {second.text(), 1}}).status, Status::kOk);
  EXPECT_EQ(mean.last<double>(0), (1.0 / 3 + 2.0 / 3) / 2);
}

TEST(AverageSafetensors, refuses_files_of_another_model) {
  first.make(kHeader, 1.0f, 1.0f, 1.0f);
  second.make(R"({"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
              R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
              1.0f, 1.0f, 1.0f);
  expect_refused(Status::kInvalidShape);
  second.make(R"({"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
              R"("c":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
              1.0f, 1.0f, 1.0f);
  expect_refused(Status::kUnknownTensor);
  second.make(R"({"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}})", 1.0f, 1.0f);
  expect_refused(Status::kMissingTensor);
  second.make(R"({"w":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]},)"
              R"("w":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]}})",
              1.0f, 1.0f, 1.0f, 1.0f);
  expect_refused(Status::kDuplicateTensor);
  second.make(R"({"w":{"dtype":"I32","shape":[1,2],"data_offsets":[0,8]},)"
              R"("b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
              1, 1, 1.0f);
  expect_refused(Status::kInvalidType);
  second.make(kHeader, 1.0f, 1.0f);
  expect_refused(Status::kCutShort);
}

TEST(AverageSafetensors, refuses_nan_and_zero_examples) {
  first.make(kHeader, 1.0f, 1.0f, 1.0f);
  second.make(kHeader, 1.0f, check::kNan<float>, 1.0f);
  expect_refused(Status::kNotFinite);
  second.make(kHeader, 1.0f, 1.0f, std::numeric_limits<float>::infinity());
  expect_refused(Status::kNotFinite);
  second.make(kHeader, 1.0f, 1.0f, 1.0f);
  expect_refused(Status::kInvalidLength, 0);
  expect_refused(Status::kInvalidLength, std::uint64_t{1} << 53);
  EXPECT_EQ(attune::average_safetensors({}, mean).status, Status::kInvalidLength);
  second.make(R"({"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})", 1.0f);
  const auto result = average({{second.text(), 1}});
  EXPECT_EQ(result.status, Status::kInvalidType);
  EXPECT_EQ(result.file, 0u);
}
