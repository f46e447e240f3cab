#include <cstdio>

int main(int argc, char** argv) {
#if defined(__AVX512F__)
  const char* const unit = "avx512";
#elif defined(__AVX2__)
  const char* const unit = "avx2";
#else
  const char* const unit = "sse2";
#endif
  std::printf("%s %d %s\n", unit, argc, argc > 1 ? argv[1] : "");
}
