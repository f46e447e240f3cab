// What every package has to bring: the headers, Eigen, C++20, and the arithmetic.
#include <string_view>

#include <attune/kernels/policy.hpp>

#if !__has_include(<attune/attune.hpp>)
#error "the headers are not all there"
#endif
#if !__has_include(<Eigen/Core>)
#error "Eigen is not there"
#endif
static_assert(std::string_view(attune::kArithmeticName) == "unfused");

int main() {
  // One rounding for each operation: x·x − 1 is 2⁻¹², and 2⁻¹² + 2⁻²⁶ where the compiler fused the two.
  volatile float x = 1.0f + 1.0f / 8192, one = 1.0f;
  const float a = x, b = one;
  return a * a - b == 1.0f / 4096 ? 0 : 1;
}
