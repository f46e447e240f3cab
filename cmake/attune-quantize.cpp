// Writes a .safetensors file with its weights in 8 or 16 bits, and says what that costs. attune_add_model()
// has it built by the machine that builds, and run; by hand:
//   c++ -std=c++20 -ffp-contract=off -I lib -I /usr/include/eigen3 cmake/attune-quantize.cpp -o
//   attune-quantize
//   ./attune-quantize int8|bf16|fp16 FILE.safetensors QUANTIZED.safetensors [weight=NAME|float=NAME]...
// What is a weight is told by names and shapes (attune::is_weight); weight= and float= say otherwise.
#include <attune/exchange/quantize_safetensors.hpp>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

namespace {

/// weight=NAME and float=NAME of the command line.
struct Roles {
  char** first;
  char** last;

  /// 'w', 'f', or '\0' of a tensor that is not told.
  char of(std::string_view name) const {
    for (char** role = first; role != last; ++role) {
      const std::string_view text(*role);
      if (text.substr(text.find('=') + 1) == name) return text.front();
    }
    return '\0';
  }
  /// The first that is no role, or of no tensor of the file; nullptr where all are.
  const char* wrong(std::string_view file) const {
    const attune::SafetensorsFile parts = attune::split_safetensors(file);
    for (char** role = first; role != last; ++role) {
      const std::string_view text(*role);
      bool there = false;
      attune::SafetensorsHeader entries(parts.header, parts.body.size());
      for (attune::SafetensorsEntry entry; entries.next(entry);) {
        there = there || text == "weight=" + std::string(entry.name) ||
                text == "float=" + std::string(entry.name);
      }
      if (!there) return *role;
    }
    return nullptr;
  }
};

int fail(const char* what, const char* why) {
  std::fprintf(stderr, "attune-quantize: %s: %s\n", what, why);
  return 1;
}

attune::ElementType type_of(const char* name) {
  if (std::strcmp(name, "int8") == 0) return attune::ElementType::kI8;
  if (std::strcmp(name, "bf16") == 0) return attune::ElementType::kBF16;
  if (std::strcmp(name, "fp16") == 0) return attune::ElementType::kF16;
  return attune::ElementType::kOther;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || type_of(argv[1]) == attune::ElementType::kOther) {
    std::fputs(
        "usage: attune-quantize int8|bf16|fp16 FILE.safetensors QUANTIZED.safetensors "
        "[weight=NAME|float=NAME]...\n",
        stderr);
    return 2;
  }
  std::ifstream in(argv[2], std::ios::binary);
  if (!in) return fail(argv[2], "cannot be read");
  const std::string file{std::istreambuf_iterator<char>(in), {}};

  std::string quantized, errors;
  const auto sink = [&quantized](const char* bytes, std::size_t count) { quantized.append(bytes, count); };
  const auto report = [&errors](std::string_view name, attune::QuantizationError error) {
    char line[80];
    std::snprintf(line, sizeof line, "  %8.5f %%  %8.5f %%  ", 100 * error.largest, 100 * error.rms);
    errors += line;
    errors += name;
    errors += '\n';
  };
  const Roles roles{argv + 4, argv + argc};
  if (const char* wrong = roles.wrong(file)) return fail(wrong, "the file has no such tensor");
  const auto is_weight = [&roles](const attune::SafetensorsEntry& entry) {
    const char role = roles.of(entry.name);
    return role == '\0' ? attune::is_weight(entry) : role == 'w';
  };
  const attune::SafetensorsResult result =
      attune::quantize_safetensors(std::string_view(file), type_of(argv[1]), sink, report, is_weight);
  if (result != attune::Status::kOk) {
    return fail((std::string(argv[2]) + ": " + std::string(result.tensor)).c_str(), message(result));
  }

  std::ofstream out(argv[3], std::ios::binary);
  out.write(quantized.data(), static_cast<std::streamsize>(quantized.size()));
  out.close();
  if (!out) return fail(argv[3], "cannot be written");
  std::printf("%s as %s: %zu bytes instead of %zu\n   largest        rms  error of\n%s", argv[2], argv[1],
              quantized.size(), file.size(), errors.c_str());
  return 0;
}
