#include <attune/host/whole_file.hpp>

#include <filesystem>
#include <fstream>

#include "check.hpp"
#include "host/temporary_folder.hpp"

namespace {

using attune::Status;
using attune::host::load_whole_file;
using attune::host::save_whole_file;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }
std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST(WholeFile, is_read_as_it_was_written_and_the_last_one_counts) {
  const check::TemporaryFolder folder;
  const std::string file = folder.file("state");
  std::vector<std::byte> bytes(3);
  EXPECT_EQ(load_whole_file(file, 7, bytes), Status::kNothingStored);
  EXPECT_TRUE(bytes.empty());
  ASSERT_EQ(save_whole_file(file, 7, {bytes_of("one"), {}, bytes_of("two")}), Status::kOk);
  ASSERT_EQ(load_whole_file(file, 7, bytes), Status::kOk);
  EXPECT_EQ(text_of(bytes), "onetwo");
  EXPECT_EQ(load_whole_file(file, 8, bytes), Status::kOtherState);
  const std::string large(3'000'000, 'x');
  ASSERT_EQ(save_whole_file(file, 7, {bytes_of(large)}), Status::kOk);
  ASSERT_EQ(load_whole_file(file, 7, bytes), Status::kOk);
  EXPECT_EQ(text_of(bytes), large);
  ASSERT_EQ(save_whole_file(file, 7, {}), Status::kOk);
  ASSERT_EQ(load_whole_file(file, 7, bytes), Status::kOk);
  EXPECT_TRUE(bytes.empty());
  EXPECT_FALSE(std::filesystem::exists(file + ".new"));
}

TEST(WholeFile, damage_is_found_wherever_it_is) {
  const check::TemporaryFolder folder;
  const std::string file = folder.file("state");
  ASSERT_EQ(save_whole_file(file, 7, {bytes_of("some bytes")}), Status::kOk);
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  std::vector<std::byte> bytes;
  const auto write = [&](const std::string& text) { std::ofstream(file, std::ios::binary) << text; };
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write(whole.substr(0, size));
    EXPECT_EQ(load_whole_file(file, 7, bytes), Status::kUnreadable) << size;
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    if (i >= 20 && i < 24) continue;  // not used
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ 1 << bit);
      write(damaged);
      EXPECT_NE(load_whole_file(file, 7, bytes), Status::kOk) << i;
      EXPECT_TRUE(bytes.empty());
    }
  }
}

TEST(WholeFile, what_cannot_be_written_leaves_the_old_file) {
  const check::TemporaryFolder folder;
  EXPECT_EQ(save_whole_file(folder.file("no/such/folder"), 7, {}), Status::kFileFault);
  const std::string file = folder.file("state");
  ASSERT_EQ(save_whole_file(file, 7, {bytes_of("old")}), Status::kOk);
  std::filesystem::create_directory(file + ".new");  // in the way
  EXPECT_EQ(save_whole_file(file, 7, {bytes_of("new")}), Status::kFileFault);
  std::vector<std::byte> bytes;
  ASSERT_EQ(load_whole_file(file, 7, bytes), Status::kOk);
  EXPECT_EQ(text_of(bytes), "old");
}
