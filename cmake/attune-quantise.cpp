// Writes a .safetensors file with its weights in 8 or 16 bits, and says what that costs. attune_add_model()
// has it built by the machine that builds, and run; by hand:
//   c++ -std=c++20 -ffp-contract=off -I lib -I /usr/include/eigen3 cmake/attune-quantise.cpp -o
//   attune-quantise
//   ./attune-quantise int8|bf16|fp16 FILE.safetensors QUANTISED.safetensors
#include <attune/exchange/quantise_safetensors.hpp>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

namespace {

int fail(const char* what, const char* why) {
  std::fprintf(stderr, "attune-quantise: %s: %s\n", what, why);
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
  if (argc != 4 || type_of(argv[1]) == attune::ElementType::kOther) {
    std::fputs("usage: attune-quantise int8|bf16|fp16 FILE.safetensors QUANTISED.safetensors\n", stderr);
    return 2;
  }
  std::ifstream in(argv[2], std::ios::binary);
  if (!in) return fail(argv[2], "cannot be read");
  const std::string file{std::istreambuf_iterator<char>(in), {}};

  std::string quantised, errors;
  const auto sink = [&quantised](const char* bytes, std::size_t count) { quantised.append(bytes, count); };
  const auto report = [&errors](std::string_view name, attune::QuantisationError error) {
    char line[80];
    std::snprintf(line, sizeof line, "  %8.5f %%  %8.5f %%  ", 100 * error.largest, 100 * error.rms);
    errors += line;
    errors += name;
    errors += '\n';
  };
  const attune::Status status = attune::quantise_safetensors(std::string_view(file), type_of(argv[1]), sink, report);
  if (status != attune::Status::kOk) return fail(argv[2], message(status));

  std::ofstream out(argv[3], std::ios::binary);
  out.write(quantised.data(), static_cast<std::streamsize>(quantised.size()));
  out.close();
  if (!out) return fail(argv[3], "cannot be written");
  std::printf("%s as %s: %zu bytes instead of %zu\n   largest        rms  error of\n%s", argv[2], argv[1],
              quantised.size(), file.size(), errors.c_str());
  return 0;
}
