#include <attune/host/whole_file.hpp>

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

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

TEST(WholeFile, damage_is_found_at_any_position) {
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

TEST(WholeFile, a_failed_write_keeps_the_old_file) {
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

TEST(WholeFile, a_failed_write_leaves_no_temporary_file) {
  const check::TemporaryFolder folder;
  const std::string file = folder.file("state");
  // A full disk.
  std::filesystem::create_symlink("/dev/full", file + ".new");
  EXPECT_EQ(save_whole_file(file, 7, {bytes_of("new")}), Status::kFileFault);
  EXPECT_FALSE(std::filesystem::is_symlink(file + ".new"));
  // What cannot be replaced.
  std::filesystem::create_directories(file + "/in it");
  EXPECT_EQ(save_whole_file(file, 7, {bytes_of("new")}), Status::kFileFault);
  EXPECT_FALSE(std::filesystem::exists(file + ".new"));
}

TEST(WholeFile, signals_do_not_end_reading) {
  const check::TemporaryFolder folder;
  const std::string file = folder.file("state"), pipe = folder.file("pipe");
  ASSERT_EQ(save_whole_file(file, 7, {bytes_of("some bytes")}), Status::kOk);
  std::ifstream in(file, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  struct sigaction action {
  }, before{};
  action.sa_handler = [](int) {};  // without SA_RESTART: calls that wait end
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  // The reader waits for the pipe to be opened, then for each byte.
  std::thread writer([&, reader = ::pthread_self()] {
    const auto interrupt = [&] {
      for (int i = 0; i < 200; ++i) {
        ::pthread_kill(reader, SIGUSR1);
        std::this_thread::yield();
      }
    };
    interrupt();
    std::ofstream out(pipe, std::ios::binary);
    for (const char byte : whole) {
      interrupt();
      out << byte << std::flush;
    }
  });
  std::vector<std::byte> bytes;
  const Status status = load_whole_file(pipe, 7, bytes);
  std::fstream(pipe).close();  // a writer that nobody reads does not wait
  writer.join();
  ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
  EXPECT_EQ(status, Status::kOk);
  EXPECT_EQ(text_of(bytes), "some bytes");
}
