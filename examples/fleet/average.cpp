// What devices have learned, as one file: the mean of .safetensors files, weighted by the examples that each
// of them learned from (attune/exchange/average_safetensors.hpp).
//
//   average A.safetensors=120 B.safetensors=80 --to C.safetensors
//
// Sums are in double, in the order of the command line. By hand:
//   c++ -std=c++20 -ffp-contract=off -I lib -I /usr/include/eigen3 examples/fleet/average.cpp -o average
#include <attune/exchange/average_safetensors.hpp>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

int fail(const std::string& what, const char* why) {
  std::fprintf(stderr, "average: %s: %s\n", what.c_str(), why);
  return 1;
}

struct Trained {
  std::string path, bytes;
  std::uint64_t examples;
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<Trained> devices;
  std::string to;
  bool understood = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--to" && i + 1 < argc) {
      to = argv[++i];
      continue;
    }
    const std::size_t equals = word.rfind('=');
    const char* const end = word.data() + word.size();
    std::uint64_t examples = 0;
    understood = understood && equals != std::string::npos && equals > 0;
    if (!understood) break;
    const auto [stopped, error] = std::from_chars(word.data() + equals + 1, end, examples);
    understood = error == std::errc() && stopped == end;
    devices.push_back({word.substr(0, equals), {}, examples});
  }
  if (!understood || devices.empty() || to.empty()) {
    std::fputs("usage: average FILE.safetensors=EXAMPLES... --to MEAN.safetensors\n", stderr);
    return 2;
  }

  std::vector<attune::TrainedFile> files;
  std::uint64_t examples = 0;
  for (Trained& device : devices) {
    std::ifstream in(device.path, std::ios::binary);
    if (!in) return fail(device.path, "cannot be read");
    device.bytes.assign(std::istreambuf_iterator<char>(in), {});
    files.push_back({device.bytes, device.examples});
    examples += device.examples;
  }
  std::string mean;
  const auto [status, refused] = attune::average_safetensors(
      files, [&mean](const char* bytes, std::size_t count) { mean.append(bytes, count); });
  if (status != attune::Status::kOk) return fail(devices[refused].path, message(status));

  std::ofstream out(to, std::ios::binary);
  out.write(mean.data(), static_cast<std::streamsize>(mean.size()));
  out.close();
  if (!out) return fail(to, "cannot be written");
  std::printf("%s: the mean of %zu files, of %llu examples\n", to.c_str(), files.size(),
              static_cast<unsigned long long>(examples));
  return 0;
}
