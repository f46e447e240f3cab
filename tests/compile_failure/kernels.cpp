// Misuse of attune/kernels that must not compile, a case each: tests/compile_failure/run compiles them one by one.

// case: array_of_another_scalar
// error: attune::MatrixView: the matrix and the layer have different scalar types; the layer's is float unless you chose another
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(const double (&rows)[2][3]) { read(rows); }

// case: array_of_another_shape
// error: attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, columns features, and an array without a shape has rows * cols numbers
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(const float (&rows)[3][2]) { read(rows); }

// case: array_of_another_size
// error: attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, columns features, and an array without a shape has rows * cols numbers
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(const std::array<float, 5>& numbers) { read(numbers); }

// case: associative_math
// Clang has no macro for it; SelfTest finds the change of results there.
// options by gcc: -O2 -fassociative-math -fno-signed-zeros -fno-trapping-math
// error by gcc: attune: -fassociative-math reorders sums and changes the results of training; compile without it and -funsafe-math-optimizations
#include <attune/attune.hpp>

// case: column_major_eigen_matrix
// error: attune::MatrixView: the matrix is column-major; declare it with Eigen::RowMajor, or copy it into a Tensor
#include <Eigen/Core>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, Layer::Output& y, Layer::InferenceScratch& scratch) {
  Eigen::Matrix<float, 4, 8> x;
  Layer::forward(parameters, x, y, scratch);
}

// case: eigen_expression
// error: attune::MatrixView: an expression of Eigen has no numbers in memory; call eval(), or copy it into a matrix
#include <Eigen/Core>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, Layer::Output& y, Layer::InferenceScratch& scratch) {
  Eigen::Matrix<float, 4, 8, Eigen::RowMajor> x;
  Layer::forward(parameters, x * 2, y, scratch);
}

// case: constant_written_to
// error: attune::MatrixView: the destination is const; pass a matrix that can change
#include <attune/kernels/matrix_view.hpp>

void write(attune::MatrixView<float, 2, 3> y);

void use(const float (&rows)[2][3]) { write(rows); }

// case: constructed_view_of_another_size
// error: attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, columns features, and an array without a shape has rows * cols numbers
#include <attune/kernels/matrix_view.hpp>

auto use(const float (&numbers)[5]) { return attune::MatrixView<const float, 2, 3>(numbers); }

// case: double_matrix_into_float_layer
// error: attune::MatrixView: the matrix and the layer have different scalar types; the layer's is float unless you chose another
#include <Eigen/Core>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, Layer::Output& y, Layer::InferenceScratch& scratch) {
  Eigen::Matrix<double, 4, 8, Eigen::RowMajor> x;
  Layer::forward(parameters, x, y, scratch);
}

// case: eigen_matrix_of_another_shape
// error: attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, columns features, and an array without a shape has rows * cols numbers
#include <Eigen/Core>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, Layer::Output& y, Layer::InferenceScratch& scratch) {
  Eigen::Matrix<float, 8, 4, Eigen::RowMajor> x;
  Layer::forward(parameters, x, y, scratch);
}

// case: eigen_matrix_of_dynamic_size
// error: attune::MatrixView: the size is known only at run time; check it with attune::checked_view, or fix it at compile time
#include <Eigen/Core>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, const Eigen::MatrixXf& x, Layer::Output& y,
         Layer::InferenceScratch& scratch) {
  Layer::forward(parameters, x, y, scratch);
}

// case: fast_math
// options: -O2 -ffast-math
// error: attune: -ffast-math changes the results of training; compile without it
#include <attune/attune.hpp>

// case: finite_math
// options: -ffinite-math-only
// error: attune: -ffinite-math-only breaks masks and NaN; compile without it
#include <attune/attune.hpp>

// case: gemm_that_does_not_chain
// error: attune::kernels::gemm: shapes do not chain; C[M, N] = A[M, K] * B[K, N]
#include <attune/core/tensor.hpp>
#include <attune/kernels/ops/gemm.hpp>

void use(attune::Tensor<float, 2, 3>& a, attune::Tensor<float, 2, 4>& b, attune::Tensor<float, 2, 4>& c) {
  attune::kernels::gemm(attune::view(a), attune::view(b), attune::view(c));
}

// case: model_unit_of_another_size
// error: attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, columns
// and an array without a shape has rows * cols numbers
#include <attune/layers/linear.hpp>
#include <attune/training/model_unit_definition.hpp>
#include <attune/training/trainer.hpp>

struct Keyword {
  using Target = float;
  static constexpr int kInputs = 3, kTargets = 2, kOutputs = 2;
};
static attune::Trainer<attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 2}>> trainer;
ATTUNE_MODEL_UNIT(Keyword, trainer);

// case: no_signed_zeros
// Clang has no macro for it; SelfTest finds the change of results there.
// options by gcc: -fno-signed-zeros
// error by gcc: attune: -fno-signed-zeros changes the results of training; compile without it
#include <attune/attune.hpp>

// case: packed_weights_in_lockstep
// error: attune: packed int8 weights need a model in float, one sequence at a time; use Int8Weights for
// errors: 2  the product of forward, and that of backward
// kilobytes: 40  the way from the trainer to the product, twice
using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 16, .d_out = 16}>;
static Layer::ParametersOf<attune::PackedInt8Weights, attune::Tensor> base;
using Model = attune::Adapted<Layer, base, attune::LowRank{.rank = 2, .roles = attune::Role::kProjections}>;
using Trainer = attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 17, attune::Lockstep>;
auto step(Trainer& trainer, const Trainer::BatchInput& x, const Trainer::BatchTarget& target) {
  return trainer.step(x, target, {});
}

// case: pointer_for_a_view
// error: attune::MatrixView: a pointer has no size; check it with attune::checked_view, or promise the size with MatrixView{pointer}
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(const float* numbers) { read(numbers); }

// case: reciprocal_math
// Clang has no macro for it; SelfTest finds the change of results there.
// options by gcc: -O2 -freciprocal-math
// error by gcc: attune: -freciprocal-math rounds quotients twice and changes the results of training; compile without it
#include <attune/attune.hpp>

// case: single_precision_constant
// Clang ignores the option.
// options by gcc: -fsingle-precision-constant
// error by gcc: attune: -fsingle-precision-constant changes the results of training; compile without it
#include <attune/attune.hpp>

// case: span_of_dynamic_size
// error: attune::MatrixView: the size is known only at run time; check it with attune::checked_view, or fix it at compile time
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(std::span<const float> numbers) { read(numbers); }

// case: step_into_a_temporary
// error: attune::MatrixView: the destination is a temporary; store it in a variable
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
using Cache = attune::KeyValueCache<Layer, attune::CacheShape{.window = 8}>;

attune::Status use(const Layer::Parameters& parameters, const attune::Tensor<float, 1, 8>& x, Cache& cache,
                   Cache::Scratch<>& scratch) {
  return Layer::step(parameters, x, attune::Tensor<float, 1, 8>{}, cache, scratch);
}

// case: strided_eigen_block
// error: attune::MatrixView: the matrix is strided; copy it into a Tensor or a dense matrix
#include <Eigen/Core>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, Layer::Output& y, Layer::InferenceScratch& scratch) {
  Eigen::Matrix<float, 4, 16, Eigen::RowMajor> wide;
  const auto x = wide.leftCols<8>();
  Layer::forward(parameters, x, y, scratch);
}

// case: strided_view
// error: attune::MatrixView: the matrix is strided; copy it into a Tensor or a dense matrix
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(attune::MatrixView<float, 2, 6> wide) { read(wide.columns<3>(0)); }

// case: strided_view_read_as_one_array
// error: attune: this needs a dense matrix; copy the strided view into a Tensor
#include <attune/kernels/matrix_view.hpp>

const float* use(attune::MatrixView<float, 2, 6> wide) { return attune::dense_view(wide.columns<3>(0)).data; }

// case: temporary_written_to
// error: attune::MatrixView: the destination is a temporary; store it in a variable
#include <attune/kernels/matrix_view.hpp>

void write(attune::MatrixView<float, 2, 3> y);

void use() { write(std::array<float, 6>{}); }

// case: tensor_of_another_shape
// error: attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, columns features, and an array without a shape has rows * cols numbers
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

void use(const Layer::Parameters& parameters, Layer::Output& y, Layer::InferenceScratch& scratch) {
  attune::Tensor<float, 8, 4> x;
  Layer::forward(parameters, x, y, scratch);
}

// case: too_many_columns
// error: attune::MatrixView: too many columns requested
#include <attune/core/tensor.hpp>

attune::Tensor<float, 2, 3> tensor{};
auto columns = attune::view(tensor).columns<4>(0);

// case: unsafe_math_optimizations
// Clang has no macro for it; SelfTest finds the change of results there.
// options by gcc: -O2 -funsafe-math-optimizations
// error by gcc: compile without it and -funsafe-math-optimizations
#include <attune/attune.hpp>

// case: view_of_another_shape
// error: attune::MatrixView: the matrix and the layer have different shapes; rows are tokens, columns features, and an array without a shape has rows * cols numbers
#include <attune/kernels/matrix_view.hpp>

void read(attune::MatrixView<const float, 2, 3> x);

void use(attune::MatrixView<float, 3, 2> x) { read(x); }

// case: x87_arithmetic
// Clang does not have the option for x86-64.
// options by gcc: -mfpmath=387
// error by gcc: attune: this FPU keeps floats in extra precision, so results differ; on x86 compile with -msse2 -mfpmath=sse
#include <attune/attune.hpp>

// case: int8_products_continued
// error: attune::kernels::Int8Products: a part of the terms has its own scales, so integer sums cannot be continued; multiply all terms in one call, or add blocks with NextBlock
attune::Tensor<float, 4, 20> a;
attune::Tensor<float, 20, 5> b;
attune::Tensor<float, 4, 5> c;

void multiply_block() {
  attune::kernels::Int8Products::gemm(view(a), view(b), view(c), attune::kernels::Continue{});
}
