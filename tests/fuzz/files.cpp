// Damaged .safetensors files: valid ones with bytes changed, moved, cut out and put in. Built with
// AddressSanitizer and UndefinedBehaviorSanitizer; each file stands in memory of exactly its size.
//   attune_fuzz_files [--runs N] [--seed S] [--first I]
// Run I of a seed is always the same; what fails names both. What is taken must lie within the file without
// overlap, and be the same in place as copied; what is refused must change nothing. Ends with how often each
// status was the answer, and `N passed, N failed`: one for each, which must occur.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <attune/exchange/read_safetensors.hpp>
#include <attune/exchange/write_safetensors.hpp>
#include <attune/layers/linear.hpp>

#include "command_line.hpp"

namespace {

using attune::Status;

using Model = attune::Sequential<attune::Linear<attune::LinearShape{1, 2, 3}>,
                                 attune::MultiHeadAttention<attune::AttentionShape{1, 3, 1}>>;
using Names = attune::PyTorchModule<Model, "in", "attention">;
using Part = attune::PyTorchPart<Names, "model">;
using InPlace = Model::ParametersOf<attune::TransposedReference, attune::Reference>;
using Layout = attune::SafetensorsLayout<Names>;

std::uint64_t seed = 1, run = 0;
std::uint64_t answers[256] = {};

void expect(bool holds, const char* expectation) {
  if (holds) return;
  std::printf("FAILED %s. Again: --seed %llu --first %llu --runs 1\n", expectation,
              static_cast<unsigned long long>(seed), static_cast<unsigned long long>(run));
  std::exit(1);
}

template <class Module>
std::string valid_file(std::string_view metadata) {
  Model::Parameters parameters{};
  float next = 0;
  attune::for_each_tensor(
      [&next](const attune::TensorPath&, auto& tensor) {
        for (float& value : tensor.values) value = next++;
      },
      parameters);
  std::string file;
  (void)attune::write_safetensors<Module>(
      parameters, [&file](const char* bytes, std::size_t count) { file.append(bytes, count); }, {metadata});
  return file;
}

// ---- What a file is done to. ----

class Damage {
 public:
  explicit Damage(attune::Rng& rng) : rng_(rng) {}

  std::size_t below(std::size_t count) { return count == 0 ? 0 : rng_.next() % count; }

  void operator()(std::string& file) {
    for (std::size_t times = 1 + below(3); times > 0; --times) once(file);
    if (below(8) != 0) set_length(file);
  }

 private:
  void once(std::string& file) {
    static constexpr std::string_view kTokens[] = {
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\\",
        " ",
        "0",
        "1",
        "-",
        "F16",
        "BF16",
        "F64",
        "I32",
        "I8",
        "18446744073709551615",
        "[0,0]",
        "\n",
        "\\u0041",
        "[1,1,1,1,1,1,1,1,3]",
        "__metadata__",
        "4611686018427387910",
        "\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"};
    const std::size_t header = 8 + header_size(file), at = below(header), size = below(24);
    switch (below(12)) {
      case 0:  // a bit
        if (!file.empty()) file[below(file.size())] ^= static_cast<char>(1u << below(8));
        break;
      case 1:  // a digit of the header
        change_digit(file, header);
        break;
      case 2:
        if (at < file.size()) file.erase(at, size);
        break;
      case 3:
        if (at <= file.size()) file.insert(at, kTokens[below(std::size(kTokens))]);
        break;
      case 4:  // a piece once more, elsewhere
        if (at < file.size() && file.size() > 8)
          file.insert(8 + below(file.size() - 8), file.substr(at, size));
        break;
      case 5:
        file.resize(below(file.size() + 1));
        break;
      case 6:
        file.append(size, ' ');
        break;
      case 7:
        replace(file, kTokens[12 + below(5)]);
        break;
      case 8:
        copy_between(file, "data_offsets\":[", "]", below(header), below(header));
        break;
      case 9:
        copy_between(file, ",\"", "\":{", below(header), below(header));
        break;
      case 10:
        swap_extents(file, below(header));
        break;
      default:
        drop_tensor(file, below(header));
    }
    if (file.size() < 8 && below(2) == 0) file.resize(8);
  }

  // The length at the beginning becomes what it is by the last brace, so that damage behind it is reached.
  void set_length(std::string& file) {
    const std::size_t brace = file.rfind("]}}");
    if (file.size() < 8 || brace == std::string::npos || brace < 8) return;
    const std::uint64_t length = brace + 3 - 8 + spaces(file, brace + 3);
    for (int i = 0; i < 8; ++i) file[static_cast<std::size_t>(i)] = static_cast<char>(length >> (8 * i));
  }
  static std::size_t spaces(const std::string& file, std::size_t from) {
    std::size_t count = 0;
    while (from + count < file.size() && file[from + count] == ' ') ++count;
    return count;
  }
  static std::size_t header_size(const std::string& file) {
    if (file.size() < 9) return 0;
    const auto length = attune::detail::little_endian<std::uint64_t>(file.data());
    return length < file.size() - 8 ? static_cast<std::size_t>(length) : file.size() - 8;
  }
  void change_digit(std::string& file, std::size_t end) {
    for (int tries = 0; tries < 20 && end > 8; ++tries) {
      char& character = file[8 + below(end - 8)];
      if (character < '0' || character > '9') continue;
      character = static_cast<char>('0' + below(10));
      return;
    }
  }
  void replace(std::string& file, std::string_view by) {
    const std::size_t at = file.find("F32", below(file.size() + 1));
    if (at != std::string::npos) file.replace(at, 3, by);
  }
  // What stands between two texts, at one place, becomes what stands there at another: offsets, names.
  static void copy_between(std::string& file, std::string_view before, std::string_view after,
                           std::size_t from, std::size_t to) {
    from = file.find(before, from), to = file.find(before, to);
    if (from == std::string::npos || to == std::string::npos) return;
    const std::size_t from_end = file.find(after, from), to_end = file.find(after, to);
    if (from_end == std::string::npos || to_end == std::string::npos) return;
    const std::string copied = file.substr(from, from_end - from);
    file.replace(to, to_end - to, copied);
  }
  static void swap_extents(std::string& file, std::size_t from) {
    const std::size_t shape = file.find("shape\":[", from), comma = file.find(',', shape);
    if (shape == std::string::npos || comma == std::string::npos || comma + 1 >= file.size()) return;
    std::swap(file[comma - 1], file[comma + 1]);
  }
  static void drop_tensor(std::string& file, std::size_t from) {
    const std::size_t first = file.find(",\"", from), end = file.find("]}", first);
    if (first != std::string::npos && end != std::string::npos) file.erase(first, end + 2 - first);
  }

  attune::Rng& rng_;
};

// ---- What must hold. ----

template <class Module>
void check_layout(const attune::SafetensorsLayout<Module>& layout, std::size_t file_size) {
  constexpr auto& kTensors = attune::detail::kStateDict<Module>;
  std::vector<bool> taken(file_size);
  std::size_t total = layout.body;
  for (int i = 0; i < layout.kTensors; ++i) {
    const auto bytes =
        static_cast<std::size_t>(kTensors.tensors[i].size() * attune::detail::bytes_of(layout.type[i]));
    const std::size_t first = layout.body + layout.begin[i];
    expect(first <= file_size && bytes <= file_size - first, "a tensor lies within the file");
    for (std::size_t at = first; at < first + bytes; ++at) {
      expect(!taken[at], "no byte is of two tensors");
      taken[at] = true;
    }
    total += bytes;
  }
  expect(!Module::kWholeFile || total == file_size, "no byte is of no tensor");
}

template <class Module>
Status try_file(std::string_view file) {
  static Model::Parameters parameters;
  std::memset(&parameters, 0x55, sizeof parameters);
  const Model::Parameters before = parameters;
  InPlace in_place{};
  const auto layout = attune::safetensors_layout<Module>(file);
  const Status status = attune::read_safetensors<Module>(file, parameters);
  expect(status == layout.status, "all readers agree");
  const bool changed = std::memcmp(&before, &parameters, sizeof before) != 0;
  expect(status == Status::kOk || !changed, "what is refused changes nothing");
  if (status == Status::kOk) check_layout(layout, file.size());
  const Status referred = attune::refer_to_safetensors<Module>(file, in_place);
  if (referred != Status::kOk) return referred;
  expect(status == Status::kOk, "what is used in place can be copied");
  InPlace::visit(
      [](const attune::TensorPath&, const auto& stands, const auto& copied) {
        for (int i = 0; i < stands.rows; ++i) {
          for (int j = 0; j < stands.cols; ++j) {
            expect(std::memcmp(&view(stands)(i, j), &copied(i, j), sizeof(float)) == 0,
                   "numbers in place are those that are copied");
          }
        }
      },
      static_cast<const attune::TensorPath*>(nullptr), in_place, parameters);
  return referred;
}

}  // namespace

int main(int count, char** arguments) {
  std::uint64_t runs = 1000000;
  read_options(count, arguments, runs, seed, run);
  const std::string files[] = {valid_file<Names>(""), valid_file<Names>(R"({"format":"pt","a":"\"}"})"),
                               valid_file<Part>("")};
  for (const std::uint64_t end = run + runs; run < end; ++run) {
    attune::Rng rng(seed << 40 ^ run);
    Damage damage(rng);
    const std::size_t which = damage.below(std::size(files));
    std::string file = files[which];
    damage(file);
    const std::vector<char> exact(file.begin(), file.end());
    const std::string_view bytes(exact.data(), exact.size());
    const Status status = which == 2 ? try_file<Part>(bytes) : try_file<Names>(bytes);
    ++answers[static_cast<int>(status)];
  }
  // Fewer files need not come across everything that is refused.
  constexpr std::uint64_t kEnough = 100000;
  int passed = 0, failed = 0;
  for (const Status status :
       {Status::kOk, Status::kCutShort, Status::kTrailingBytes, Status::kHeaderTooLong,
        Status::kInvalidHeader, Status::kEscapedName, Status::kDuplicateTensor, Status::kInvalidRank,
        Status::kInvalidType, Status::kInvalidSize, Status::kOverflow, Status::kOverlap, Status::kHole,
        Status::kMisaligned, Status::kUnknownTensor, Status::kMissingTensor, Status::kInvalidShape}) {
    const std::uint64_t times = answers[static_cast<int>(status)];
    std::printf("%llu times: %s\n", static_cast<unsigned long long>(times), attune::message(status));
    ++(times > 0 || runs < kEnough ? passed : failed);
  }
  return close(passed, failed);
}
