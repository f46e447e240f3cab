// C = A·B of square matrices against the processor's peak, Eigen, OpenBLAS and libxsmm.
//
// The operands are row-major and stored [n, n] in all three variants: nn is A·B, nt is A·Bᵀ, tn is Aᵀ·B.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include <Eigen/Core>

#include <attune/kernels/ops/gemm.hpp>
#include <attune/kernels/ops/int8_gemm.hpp>

#include "peak.hpp"
#include "timing.hpp"

#if ATTUNE_BENCH_OPENBLAS
#include <cblas.h>
extern "C" void openblas_set_num_threads(int);
#endif
#if ATTUNE_BENCH_LIBXSMM
#include <libxsmm.h>
#endif

namespace {

enum class Variant { kNN, kNT, kTN };

constexpr const char* name(Variant variant) {
  return variant == Variant::kNN ? "nn" : variant == Variant::kNT ? "nt" : "tn";
}

constexpr int kLargest = 512;
alignas(64) float operands[3][kLargest * kLargest];
float* const a = operands[0];
float* const b = operands[1];
float* const c = operands[2];

template <int n, Variant variant>
void attune_product() {
  const attune::MatrixView<const float, n, n> left(a), right(b);
  const attune::MatrixView<float, n, n> to(c);
  if constexpr (variant == Variant::kNN) attune::kernels::gemm(left, right, to);
  if constexpr (variant == Variant::kNT) attune::kernels::gemm(left, right.transpose(), to);
  if constexpr (variant == Variant::kTN) attune::kernels::gemm(left.transpose(), right, to);
}

template <int n, Variant variant>
[[gnu::noinline]] void eigen_product() {
  using Matrix = Eigen::Matrix<float, n, n, Eigen::RowMajor>;
  const Eigen::Map<const Matrix, Eigen::Aligned64> left(a), right(b);
  Eigen::Map<Matrix, Eigen::Aligned64> to(c);
  if constexpr (variant == Variant::kNN) to.noalias() = left * right;
  if constexpr (variant == Variant::kNT) to.noalias() = left * right.transpose();
  if constexpr (variant == Variant::kTN) to.noalias() = left.transpose() * right;
}

#if ATTUNE_BENCH_OPENBLAS
template <int n, Variant variant>
void openblas_product() {
  cblas_sgemm(CblasRowMajor, variant == Variant::kTN ? CblasTrans : CblasNoTrans,
              variant == Variant::kNT ? CblasTrans : CblasNoTrans, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
}
#endif

#if ATTUNE_BENCH_LIBXSMM
// libxsmm is column-major: Cᵀ = Bᵀ·Aᵀ is the same memory with the operands exchanged. Its generated kernels
// can transpose the second operand (tn here) and not the first (nt): that one goes through its own
// transposition first, a generated kernel where it has one.
template <int n, Variant variant>
class LibxsmmProduct {
 public:
  LibxsmmProduct() {
    const float alpha = 1.0f, beta = 0.0f;
    const int flags = variant == Variant::kTN ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
    multiply_ = libxsmm_smmdispatch(n, n, n, nullptr, nullptr, nullptr, &alpha, &beta, &flags, nullptr);
    libxsmm_descriptor_blob blob;
    transpose_ = libxsmm_dispatch_trans(libxsmm_trans_descriptor_init(&blob, sizeof(float), n, n, n));
  }
  [[nodiscard]] bool supported() const { return multiply_ != nullptr; }
  void operator()() const {
    if constexpr (variant == Variant::kNT) {
      transpose();
      multiply_(transposed, a, c);
    } else {
      multiply_(b, a, c);
    }
  }

 private:
  void transpose() const {
    constexpr unsigned kStride = n;
    if (transpose_ != nullptr) {
      transpose_(b, &kStride, transposed, &kStride);
    } else {
      libxsmm_otrans(transposed, b, sizeof(float), n, n, n, n);
    }
  }

  alignas(64) static inline float transposed[n * n];
  libxsmm_smmfunction multiply_;
  libxsmm_xtransfunction transpose_;
};
#endif

template <int n, Variant variant>
class Comparison {
 public:
  void run() {
    const int peak = race_.add([] { bench::peak_work(); });
    const int ours = add([] { attune_product<n, variant>(); });
    const int eigen = add([] { eigen_product<n, variant>(); });
#if ATTUNE_BENCH_OPENBLAS
    const int openblas = add([] { openblas_product<n, variant>(); });
#endif
#if ATTUNE_BENCH_LIBXSMM
    const LibxsmmProduct<n, variant> kernel;
    const int libxsmm = kernel.supported() ? add(kernel) : -1;
#endif
    race_.run();

    constexpr double kFlops = 2.0 * n * n * n;
    figure("peak_fraction", race_.ratio(peak, ours) * kFlops / bench::kPeakFlops);
#if ATTUNE_BENCH_OPENBLAS
    figure("vs_openblas", race_.ratio(openblas, ours));
#endif
#if ATTUNE_BENCH_LIBXSMM
    if (libxsmm >= 0) figure("vs_libxsmm", race_.ratio(libxsmm, ours));
#endif
    figure("vs_eigen", race_.ratio(eigen, ours));
  }

 private:
  // A contender whose result differs from the first one's has no speed.
  template <class Work>
  int add(Work work) {
    std::fill(c, c + n * n, NAN);
    work();
    if (result_.empty()) result_.assign(c, c + n * n);
    for (int i = 0; i < n * n; ++i) {
      if (!(std::fabs(c[i] - result_[static_cast<std::size_t>(i)]) <= 1e-5f * n)) {
        std::fprintf(stderr, "products: contenders disagree on %s, n = %d\n", name(variant), n);
        std::exit(1);
      }
    }
    return race_.add(work);
  }

  static void figure(const char* what, double value) {
    bench::figure(std::string("gemm.") + name(variant) + "." + std::to_string(n) + "." + what, value);
  }

  bench::Race race_;
  std::vector<float> result_;
};

// Rows of floats times packed integers, quantizing, scales and bias included, against the same in floats.
template <int rows, int k, int n>
void compare_packed() {
  using namespace attune::kernels;
  using Packed = PackedInt8<k, n>;
  alignas(64) static std::int8_t bytes[Packed::kBytes];
  Packed::clear(bytes);
  for (int i = 0; i < k; ++i) {
    for (int j = 0; j < n; ++j) Packed::set(bytes, i, j, (i * 37 + j * 11) % 255 - 127);
  }
  const attune::MatrixView<const float, rows, k> x(a);
  const attune::MatrixView<const float, k, n> weights(b);
  const attune::MatrixView<float, rows, n> y(c);
  const PackedInt8View<k, n, k, n, false> packed{bytes, b};
  bench::Race race;
  const int floats = race.add([=] { gemm(x, weights, y, AddBias<float>{b}); });
  const int integers = race.add([=] { gemm(x, packed, y, AddBias<float>{b}); });
  race.run();
  bench::figure(
      "packed_int8." + std::to_string(rows) + "x" + std::to_string(k) + "x" + std::to_string(n) + ".vs_float",
      race.ratio(floats, integers));
}

template <int... sizes>
void compare() {
  (Comparison<sizes, Variant::kNN>().run(), ...);
  (Comparison<sizes, Variant::kNT>().run(), ...);
  (Comparison<sizes, Variant::kTN>().run(), ...);
}

}  // namespace

int main() {
  for (int i = 0; i < kLargest * kLargest; ++i) {
    a[i] = static_cast<float>(i * 7919 % 1000) / 1000.0f - 0.5f;
    b[i] = static_cast<float>(i * 4729 % 1009) / 1009.0f - 0.5f;
  }
#if ATTUNE_BENCH_OPENBLAS
  openblas_set_num_threads(1);
#else
  bench::absent("openblas");
#endif
#if ATTUNE_BENCH_LIBXSMM
  libxsmm_init();
#else
  bench::absent("libxsmm");
#endif
  compare<8, 16, 32, 64, 128, 256, 512>();
  compare_packed<64, 64, 64>();
  compare_packed<99, 64, 256>();
  compare_packed<99, 256, 64>();
  compare_packed<1, 64, 256>();
}
