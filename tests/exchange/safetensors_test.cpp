#include <attune/exchange/safetensors.hpp>

#include "check.hpp"

namespace {

using attune::SafetensorsEntry, attune::SafetensorsHeader, attune::Status;
using Text = std::string_view;

struct Outcome {
  int tensors = 0;
  SafetensorsEntry last;
  Status status = Status::kOk;
  Text metadata;
};
constexpr Outcome read(Text text, std::uint64_t body_size) {
  Outcome outcome;
  SafetensorsHeader header(text, body_size);
  while (header.next(outcome.last)) ++outcome.tensors;
  outcome.status = header.status();
  outcome.metadata = header.metadata();
  return outcome;
}
constexpr Status status_of(Text text, std::uint64_t body_size = 24) { return read(text, body_size).status; }

// A header of one tensor of 24 bytes.
constexpr Text kOne = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})";
static_assert(read(kOne, 24).status == Status::kOk && read(kOne, 24).tensors == 1);

}  // namespace

TEST(Safetensors, header_has_names_types_shapes_and_places) {
  SafetensorsHeader header(
      R"({"b.0":{"dtype":"F16","shape":[1,2,3],"data_offsets":[4,16]},"a":{"dtype":"I32","shape":[],"data_offsets":[0,4]}})",
      16);
  SafetensorsEntry entry;
  ASSERT_TRUE(header.next(entry));
  EXPECT_TRUE(entry.name == "b.0");
  EXPECT_TRUE(entry.type == attune::ElementType::kF16);
  EXPECT_EQ(entry.rank, 3);
  EXPECT_EQ(static_cast<int>(entry.shape[1]), 2);
  EXPECT_EQ(static_cast<int>(entry.begin), 4);
  EXPECT_EQ(static_cast<int>(entry.end), 16);
  ASSERT_TRUE(header.next(entry));
  EXPECT_TRUE(entry.name == "a");
  EXPECT_TRUE(entry.type == attune::ElementType::kOther);
  EXPECT_EQ(entry.rank, 0);
  EXPECT_FALSE(header.next(entry));
  EXPECT_EQ(header.status(), Status::kOk);
  EXPECT_FALSE(header.next(entry));
}

TEST(Safetensors, spaces_and_the_order_of_keys_do_not_matter) {
  EXPECT_EQ(
      status_of("{ \"a\" :\n{\"data_offsets\" : [ 0 , 24 ], \"shape\": [2, 3 ],\t\"dtype\":\"F32\" } }   "),
      Status::kOk);
  EXPECT_EQ(status_of("{}", 0), Status::kOk);
  EXPECT_EQ(status_of("{}    ", 0), Status::kOk);
}

TEST(Safetensors, metadata_is_kept_as_text) {
  constexpr Text kText =
      R"({"__metadata__":{"format":"pt","note":"a \"} , é"},"a":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}})";
  const Outcome outcome = read(kText, 24);
  EXPECT_EQ(outcome.status, Status::kOk);
  EXPECT_EQ(outcome.tensors, 1);
  EXPECT_TRUE(outcome.metadata == R"({"format":"pt","note":"a \"} , é"})");
  EXPECT_TRUE(read(R"({"__metadata__":{}})", 0).metadata == "{}");
  EXPECT_TRUE(read(kOne, 24).metadata.empty());
  EXPECT_EQ(status_of(R"({"__metadata__":{"a":1}})", 0), Status::kInvalidHeader);
  EXPECT_EQ(status_of(R"({"__metadata__":{"a":"b)", 0), Status::kInvalidHeader);
  EXPECT_EQ(status_of(R"({"__metadata__":{"a":"b\)", 0), Status::kInvalidHeader);
  EXPECT_EQ(status_of(R"({"__metadata__":{},"__metadata__":{}})", 0), Status::kInvalidHeader);
}

TEST(Safetensors, header_cut_short_anywhere_is_refused) {
  for (std::size_t size = 0; size < kOne.size(); ++size) {
    EXPECT_EQ(status_of(Text(kOne.data(), size)), Status::kInvalidHeader);
  }
}

TEST(Safetensors, malformed_headers_are_refused) {
  for (const Text text : {
           Text(" {}"),
           Text("[]"),
           Text("{}x"),
           Text("{,}"),
           Text("{\"a\"}"),
           Text("{a:{}}"),
           Text(R"({"a":{}})"),
           Text(R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[0,24]},})"),
           Text(R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[0,24],}})"),
           Text(R"({"a":{"dtype":"F32","shape":[6,],"data_offsets":[0,24]}})"),
           Text(R"({"a":{"dtype":"F32","shape":[06],"data_offsets":[0,24]}})"),
           Text(R"({"a":{"dtype":"F32","shape":[6.0],"data_offsets":[0,24]}})"),
           Text(R"({"a":{"dtype":"F32","shape":[-6],"data_offsets":[0,24]}})"),
           Text(R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[0,24,24]}})"),
           Text(R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[24]}})"),
           Text(R"({"a":{"dtype":"F32","shape":[6]}})"),
           Text(R"({"a":{"dtype":"F32","dtype":"F32","shape":[6],"data_offsets":[0,24]}})"),
           Text(R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[0,24],"more":"F32"}})"),
       }) {
    SCOPED_TRACE(text.data());
    EXPECT_EQ(status_of(text), Status::kInvalidHeader);
  }
}

TEST(Safetensors, escaped_names_are_refused) {
  EXPECT_EQ(status_of(R"({"a\u0062":{"dtype":"F32","shape":[6],"data_offsets":[0,24]}})"),
            Status::kEscapedName);
  EXPECT_EQ(status_of("{\"a\n\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,24]}}"),
            Status::kEscapedName);
}

TEST(Safetensors, sizes_are_shape_times_type) {
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F32","shape":[2,4],"data_offsets":[0,24]}})"), Status::kInvalidSize);
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F64","shape":[2,3],"data_offsets":[0,24]}})"), Status::kInvalidSize);
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[24,0]}})"), Status::kInvalidSize);
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,24]}})"), Status::kInvalidSize);
}

TEST(Safetensors, a_dimension_of_0_takes_no_bytes) {
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})", 0), Status::kOk);
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F32","shape":[3,0,2],"data_offsets":[0,0]}})", 0), Status::kOk);
  constexpr Text kBetween =
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"e":{"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},"b":{"dtype":"U8","shape":[5],"data_offsets":[4,9]}})";
  EXPECT_EQ(status_of(kBetween, 9), Status::kOk);
  EXPECT_EQ(read(kBetween, 9).tensors, 3);
  EXPECT_EQ(status_of(kBetween, 10), Status::kTrailingBytes);
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F32","shape":[0],"data_offsets":[1,1]}})", 0), Status::kCutShort);
}

TEST(Safetensors, every_tensor_is_visited_once_in_any_order) {
  constexpr Text kHeader =
      R"({"e":{"dtype":"F32","shape":[0],"data_offsets":[4,4]},"b":{"dtype":"U8","shape":[5],"data_offsets":[4,9]},"f":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"g":{"dtype":"F32","shape":[0],"data_offsets":[9,9]}})";
  char visited[8] = {};
  int count = 0;
  attune::detail::for_each_tensor_in_file({kHeader, Text("123456789"), Status::kOk},
                                          [&](const SafetensorsEntry& entry) {
                                            if (count < 7) visited[count] = entry.name[0];
                                            ++count;
                                          });
  EXPECT_TRUE(Text(visited) == "efgab");
}

TEST(Safetensors, types_of_newer_versions_have_no_size_here) {
  // Twelve numbers of four bits.
  constexpr Text kFour = R"({"a":{"dtype":"F4","shape":[3,4],"data_offsets":[0,6]}})";
  EXPECT_EQ(status_of(kFour, 6), Status::kOk);
  EXPECT_TRUE(read(kFour, 6).last.type == attune::ElementType::kOther);
  EXPECT_EQ(status_of(kFour, 5), Status::kCutShort);
  EXPECT_EQ(status_of(kFour, 7), Status::kTrailingBytes);
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F4","shape":[3,4],"data_offsets":[6,0]}})", 6), Status::kInvalidSize);
  EXPECT_EQ(status_of(R"({"a":{"dtype":"","shape":[6],"data_offsets":[0,24]}})"), Status::kInvalidType);
}

TEST(Safetensors, header_padded_with_nul_is_named) {
  EXPECT_EQ(status_of(Text("{}\0\0\0\0\0\0", 8), 0), Status::kNulPadding);
  EXPECT_EQ(status_of(Text("{} \0 \0", 6), 0), Status::kNulPadding);
  EXPECT_EQ(status_of(Text("{}\0x", 4), 0), Status::kInvalidHeader);
  EXPECT_EQ(status_of(Text("{\0}", 3), 0), Status::kInvalidHeader);
}

TEST(Safetensors, ranks_above_8_are_refused) {
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,6],"data_offsets":[0,24]}})"),
            Status::kOk);
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,6],"data_offsets":[0,24]}})"),
            Status::kInvalidRank);
}

TEST(Safetensors, arithmetic_that_overflows_is_refused) {
  // 2⁶² + 6 floats, which are 24 bytes in 64 bits; as a product, too.
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F32","shape":[4611686018427387910],"data_offsets":[0,24]}})"),
            Status::kOverflow);
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,24]}})"),
            Status::kOverflow);
  // 2⁶⁴ + 6, which is 6 in 64 bits.
  EXPECT_EQ(status_of(R"({"a":{"dtype":"F32","shape":[18446744073709551622],"data_offsets":[0,24]}})"),
            Status::kOverflow);
  EXPECT_EQ(
      status_of(
          R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[18446744073709551592,18446744073709551615]}})"),
      Status::kInvalidSize);
  EXPECT_EQ(
      status_of(
          R"({"a":{"dtype":"F32","shape":[6],"data_offsets":[18446744073709551591,18446744073709551615]}})"),
      Status::kCutShort);
}

TEST(Safetensors, tensors_end_where_the_file_does) {
  EXPECT_EQ(status_of(kOne, 23), Status::kCutShort);
  EXPECT_EQ(status_of(kOne, 25), Status::kTrailingBytes);
  EXPECT_EQ(status_of("{}", 1), Status::kTrailingBytes);
}

TEST(Safetensors, holes_and_overlap_are_refused) {
  constexpr Text kHole =
      R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[8],"data_offsets":[9,17]}})";
  constexpr Text kFirstHole =
      R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[1,9]},"b":{"dtype":"U8","shape":[8],"data_offsets":[9,17]}})";
  constexpr Text kOverlap =
      R"({"a":{"dtype":"U8","shape":[9],"data_offsets":[0,9]},"b":{"dtype":"U8","shape":[9],"data_offsets":[8,17]}})";
  constexpr Text kTwice =
      R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"b":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})";
  // As much overlap as hole.
  constexpr Text kBoth =
      R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]},"c":{"dtype":"U8","shape":[4],"data_offsets":[8,12]}})";
  constexpr Text kInside =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"c":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[3],"data_offsets":[5,8]}})";
  EXPECT_EQ(status_of(kHole, 17), Status::kHole);
  EXPECT_EQ(status_of(kFirstHole, 17), Status::kHole);
  EXPECT_EQ(status_of(kOverlap, 17), Status::kOverlap);
  EXPECT_EQ(status_of(kTwice, 8), Status::kOverlap);
  EXPECT_EQ(status_of(kBoth, 12), Status::kOverlap);
  EXPECT_EQ(status_of(kInside, 8), Status::kOverlap);
}

TEST(Safetensors, tensors_may_come_in_any_order) {
  EXPECT_EQ(
      status_of(
          R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[9,12]},"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"c":{"dtype":"U8","shape":[5],"data_offsets":[4,9]}})",
          12),
      Status::kOk);
}

TEST(Safetensors, the_tensor_that_is_refused_is_named) {
  const Outcome outcome = read(
      R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"bad":{"dtype":"U8","shape":[4],"data_offsets":[3,4]}})",
      4);
  EXPECT_EQ(outcome.status, Status::kInvalidSize);
  EXPECT_EQ(outcome.tensors, 1);
  EXPECT_TRUE(outcome.last.name == "bad");
}

TEST(Safetensors, file_is_length_header_and_body) {
  constexpr char kFile[] = "\x03\0\0\0\0\0\0\0{} xy";
  const attune::SafetensorsFile parts = attune::split_safetensors({kFile, 13});
  EXPECT_EQ(parts.status, Status::kOk);
  EXPECT_TRUE(parts.header == "{} ");
  EXPECT_TRUE(parts.body == "xy");
  for (std::size_t size = 0; size < 11; ++size) {
    EXPECT_EQ(attune::split_safetensors({kFile, size}).status, Status::kCutShort);
  }
  EXPECT_TRUE(attune::split_safetensors({kFile, 11}).body.empty());
}

TEST(Safetensors, header_has_no_more_than_100_000_000_bytes) {
  constexpr char kAsLong[] = "\x00\xE1\xF5\x05\0\0\0\0{}", kLonger[] = "\x01\xE1\xF5\x05\0\0\0\0{}",
                 kEndless[] = "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF{}";
  EXPECT_EQ(attune::split_safetensors({kAsLong, 10}).status, Status::kCutShort);
  EXPECT_EQ(attune::split_safetensors({kLonger, 10}).status, Status::kHeaderTooLong);
  EXPECT_EQ(attune::split_safetensors({kEndless, 10}).status, Status::kHeaderTooLong);
}
