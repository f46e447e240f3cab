// Averages .safetensors files from several devices, weighted by each device's number of examples: the
// server's part of Federated Averaging (McMahan et al., "Communication-Efficient Learning of Deep Networks
// from Decentralized Data", 2017, algorithm 1).
//
//   const attune::TrainedFile files[] = {{first, 120}, {second, 80}};   // bytes of files, examples
//   const auto [status, file] = attune::average_safetensors(files, sink);
//
// It needs no model. The files must have the same tensors, in any order. Uses no heap and no stdio.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <attune/core/status.hpp>
#include <attune/exchange/safetensors.hpp>
#include <attune/exchange/write_safetensors.hpp>

namespace ATTUNE_NAMESPACE {

/// A file to average, and its weight.
struct TrainedFile {
  std::string_view bytes;  // contents of the file
  std::uint64_t examples;  // training examples: its weight
};

/// The result. On an error, `file` is the index of the refused file.
struct [[nodiscard]] AveragedFiles {
  Status status;
  std::size_t file;  // index of the refused file
};

namespace detail {

class SafetensorsAverage {
 public:
  explicit SafetensorsAverage(const std::span<const TrainedFile>& files) : files_(files) {}

  [[nodiscard]] AveragedFiles check() {
    constexpr std::uint64_t kMax = std::uint64_t{1} << 53;  // 2⁵³: doubles represent all integers up to it
    if (files_.empty()) return {Status::kInvalidLength, 0};
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (files_[i].examples == 0 || files_[i].examples > kMax - examples_)
        return {Status::kInvalidLength, i};
      examples_ += files_[i].examples;
      if (const Status status = check(i); status != Status::kOk) return {status, i};
    }
    return {Status::kOk, 0};
  }

  /// Writes the mean with the first file's header, order and metadata.
  template <class Sink>
  void write(Sink& sink) const {
    ByteWriter<Sink> out(sink);
    const SafetensorsFile first = split_safetensors(files_[0].bytes);
    out.add_little_endian(static_cast<std::uint64_t>(first.header.size()));
    out.add(first.header);
    for_each_tensor_in_file(first, [&](const SafetensorsEntry& entry) {
      for (std::uint64_t from = 0; from < elements_of(entry); from += kBlock) add_means(entry, from, out);
    });
    out.flush();
  }

 private:
  static constexpr std::uint64_t kBlock = 128;

  struct Found {
    SafetensorsEntry entry;
    int count;  // entries that meet the condition
  };
  template <class Condition>
  static Found find(const SafetensorsFile& file, const Condition& condition) {
    SafetensorsHeader entries(file.header, file.body.size());
    Found found{{}, 0};
    SafetensorsEntry entry;
    while (entries.next(entry)) {
      if (!condition(entry)) continue;
      found.entry = entry;
      ++found.count;
    }
    return found;
  }
  static Found find(const SafetensorsFile& file, std::string_view name) {
    return find(file, [name](const SafetensorsEntry& entry) { return entry.name == name; });
  }

  /// Checks a file by itself and against the first one.
  Status check(std::size_t index) const {
    const SafetensorsFile file = split_safetensors(files_[index].bytes);
    if (file.status != Status::kOk) return file.status;
    const SafetensorsFile first = split_safetensors(files_[0].bytes);
    SafetensorsHeader entries(file.header, file.body.size());
    SafetensorsEntry entry;
    Status status = Status::kOk;
    int tensors = 0;
    while (status == Status::kOk && entries.next(entry)) {
      ++tensors;
      const Found expected = find(first, entry.name);
      if (expected.count == 0) {
        status = Status::kUnknownTensor;
      } else if (find(file, entry.name).count > 1) {
        status = Status::kDuplicateTensor;
      } else if (entry.type != expected.entry.type ||
                 (entry.type != ElementType::kF32 && entry.type != ElementType::kF64)) {
        status = Status::kInvalidType;
      } else if (!same_shape(entry, expected.entry)) {
        status = Status::kInvalidShape;
      } else if (!all_finite(file, entry)) {
        status = Status::kNotFinite;
      }
    }
    if (status != Status::kOk) return status;
    if (entries.status() != Status::kOk) return entries.status();
    const int wanted = find(first, [](const SafetensorsEntry&) { return true; }).count;
    return tensors == wanted ? Status::kOk : Status::kMissingTensor;
  }
  static bool same_shape(const SafetensorsEntry& a, const SafetensorsEntry& b) {
    bool same = a.rank == b.rank;
    for (int i = 0; same && i < a.rank; ++i) same = a.shape[i] == b.shape[i];
    return same;
  }
  // Whether all values are small enough to keep sums over all examples finite.
  [[nodiscard]] static bool all_finite(const SafetensorsFile& file, const SafetensorsEntry& entry) {
    constexpr double kLargest = 1e290;
    for (std::uint64_t i = 0; i < elements_of(entry); ++i) {
      const double value = number_at(file, entry, i);
      if (!(value >= -kLargest && value <= kLargest)) return false;
    }
    return true;
  }

  /// Σ examples·value / Σ examples, in double, file by file; rounded again if the file has floats. Takes
  /// several elements at once, because each pass reads every file's header.
  void add_means(const SafetensorsEntry& entry, std::uint64_t from, auto& out) const {
    const std::uint64_t rest = elements_of(entry) - from, count = rest < kBlock ? rest : kBlock;
    double sums[kBlock] = {};
    for (const TrainedFile& trained : files_) {
      const SafetensorsFile file = split_safetensors(trained.bytes);
      const SafetensorsEntry here = find(file, entry.name).entry;
      for (std::uint64_t i = 0; i < count; ++i)
        sums[i] += static_cast<double>(trained.examples) * number_at(file, here, from + i);
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const double mean = sums[i] / static_cast<double>(examples_);
      out.add_element(entry.type, mean);
    }
  }

  std::span<const TrainedFile> files_;
  std::uint64_t examples_ = 0;
};

}  // namespace detail

/// Writes a file of means Σₖ nₖ·wₖ / Σₖ nₖ over the files' values w and examples n. Sums are in double, in
/// the order of the files, and rounded to the file's type, so every target gets the same bits. The mean of
/// equal float files with less than 2²⁹ examples is that file. Header and metadata are the first file's.
/// sink(const char* bytes, std::size_t count) gets slices of at most 64 bytes.
///
/// On an error nothing is written: kInvalidLength without files or examples, or with 2⁵³ of them;
/// kUnknownTensor, kMissingTensor and kInvalidShape against the first file; kInvalidType for types other than
/// F32 and F64, or other than the first file's; kNotFinite for numbers that are not finite or exceed 1e290;
/// and the errors of damaged files.
template <class Sink>
AveragedFiles average_safetensors(const std::span<const TrainedFile>& files, Sink&& sink) {
  detail::SafetensorsAverage average(files);
  const AveragedFiles checked = average.check();
  if (checked.status == Status::kOk) average.write(sink);
  return checked;
}

}  // namespace ATTUNE_NAMESPACE
