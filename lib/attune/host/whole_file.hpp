// Crash-safe files: after a crash at any time, the old file or the new one is there. Each file is written
// next to the old one, flushed to the disk, and renamed into place (for a link, into the place of the link).
// Needs POSIX and a heap; never included by attune.hpp.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <attune/core/status.hpp>
#include <attune/persistence/crc32.hpp>

namespace ATTUNE_NAMESPACE::host {

namespace detail {

struct FileHead {
  static constexpr std::uint32_t kMagic = 0x31'46'54'41;  // ATF1
  std::uint32_t magic;
  std::uint32_t fingerprint;
  std::uint64_t size;  // bytes after the head
  std::uint32_t crc;   // of them
  std::uint32_t unused;
};

/// The result of a system call, repeated if a signal interrupts it.
template <class Call>
auto uninterrupted(const Call& call) {
  auto answer = call();
  while (answer < 0 && errno == EINTR) answer = call();
  return answer;
}

class FileDescriptor {
 public:
  FileDescriptor(const std::string& path, int flags)
      : number_(uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); })) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  [[nodiscard]] bool write(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t written = uninterrupted([&] { return ::write(number_, bytes.data(), bytes.size()); });
      if (written <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return true;
  }
  [[nodiscard]] bool read(std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = uninterrupted([&] { return ::read(number_, bytes.data(), bytes.size()); });
      if (count <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
  }
  [[nodiscard]] bool flush() const {
    return uninterrupted([&] { return ::fsync(number_); }) == 0;
  }

 private:
  int number_;
};

}  // namespace detail

/// Writes a file from the concatenated `parts`. `fingerprint` identifies their meaning. Returns kFileFault if
/// the disk is full, or the folder missing or not writable. The old file then stays as it was, with nothing
/// next to it; only if flushing the folder failed, the new file is there. Signals do no harm.
inline Status save_whole_file(const std::string& path, std::uint32_t fingerprint,
                              std::initializer_list<std::span<const std::byte>> parts) {
  detail::FileHead head{
      .magic = detail::FileHead::kMagic, .fingerprint = fingerprint, .size = 0, .crc = 0, .unused = 0};
  for (const auto part : parts) {
    head.size += part.size();
    head.crc = crc32(part.data(), part.size(), head.crc);
  }
  const std::string beside = path + ".new";
  const bool written = [&] {
    const detail::FileDescriptor file(beside, O_WRONLY | O_CREAT | O_TRUNC);
    bool all = file.is_open() && file.write(std::as_bytes(std::span(&head, 1)));
    for (const auto part : parts) all = all && file.write(part);
    return all && file.flush();
  }();
  if (!written || std::rename(beside.c_str(), path.c_str()) != 0) {
    static_cast<void>(::unlink(beside.c_str()));
    return Status::kFileFault;
  }
  // The name is on the disk once its folder is flushed.
  const std::size_t slash = path.find_last_of('/');
  const detail::FileDescriptor folder(slash == std::string::npos ? "." : path.substr(0, slash + 1), O_RDONLY);
  return folder.is_open() && folder.flush() ? Status::kOk : Status::kFileFault;
}

/// Reads a file into `bytes`. Returns kNothingStored if there is none, kOtherState for another fingerprint,
/// kUnreadable for a damaged file or another format. `bytes` is then empty.
inline Status load_whole_file(const std::string& path, std::uint32_t fingerprint,
                              std::vector<std::byte>& bytes) {
  bytes.clear();
  const detail::FileDescriptor file(path, O_RDONLY);
  if (!file.is_open()) return ::access(path.c_str(), F_OK) == 0 ? Status::kFileFault : Status::kNothingStored;
  detail::FileHead head;
  if (!file.read(std::as_writable_bytes(std::span(&head, 1))) || head.magic != detail::FileHead::kMagic) {
    return Status::kUnreadable;
  }
  if (head.fingerprint != fingerprint) return Status::kOtherState;
  // Reads up to the end of the file: a damaged size must not allocate more memory than that.
  std::uint32_t crc = 0;
  std::vector<std::byte> read;
  while (read.size() < head.size) {
    constexpr std::uint64_t kPiece = 1 << 20;
    const std::size_t before = read.size(),
                      piece = static_cast<std::size_t>((std::min)(kPiece, head.size - before));
    read.resize(before + piece);
    if (!file.read(std::span(read).subspan(before))) return Status::kUnreadable;
    crc = crc32(read.data() + before, piece, crc);
  }
  if (crc != head.crc) return Status::kUnreadable;
  bytes = std::move(read);
  return Status::kOk;
}

}  // namespace ATTUNE_NAMESPACE::host
