// Instructions of OpenBLAS's products on 64-bit Arm, under the emulator that counts attune's (device.cpp).
//   device_openblas LIBRARY
#include <console.hpp>
#include <instructions.hpp>

#include <dlfcn.h>
#include <cstdio>

namespace {

enum Order { kRowMajor = 101 };
enum Transpose { kNoTranspose = 111, kTranspose = 112 };
using Sgemm = void (*)(Order, Transpose, Transpose, int, int, int, float, const float*, int, const float*,
                       int, float, float*, int);

constexpr int kLargest = 64;
alignas(64) float a[kLargest * kLargest], b[kLargest * kLargest], c[kLargest * kLargest];

void measure(Sgemm sgemm, const char* variant, Transpose of_a, Transpose of_b, int n) {
  const auto multiply = [&] { sgemm(kRowMajor, of_a, of_b, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n); };
  multiply();  // what it does only once
  port::begin_counting();
  multiply();
  port::end_counting();
  port::print("gemm.", variant, '.', n, ".instructions_per_mac ", n * n * n, '\n');
}

}  // namespace

int main(int count, char** words) {
  void* const library = count == 2 ? dlopen(words[1], RTLD_NOW) : nullptr;
  const auto sgemm = library == nullptr ? nullptr : reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
  if (sgemm == nullptr) {
    std::fprintf(stderr, "device_openblas: %s\n", count == 2 ? dlerror() : "usage: device_openblas LIBRARY");
    return 2;
  }
  for (int i = 0; i < kLargest * kLargest; ++i) {
    a[i] = static_cast<float>(i % 17) / 16;
    b[i] = static_cast<float>(i % 13) / 16;
  }
  for (const int n : {8, 16, 32, 64}) {
    measure(sgemm, "nn", kNoTranspose, kNoTranspose, n);
    measure(sgemm, "nt", kNoTranspose, kTranspose, n);
    measure(sgemm, "tn", kTranspose, kNoTranspose, n);
  }
  return 0;
}
