// Instruction counts on an emulated board: each piece of work runs once between the marks that
// ports/instruction_counter.c counts between, and its key is printed with what the count is to be divided by.
#include <attune/attune.hpp>
#include <console.hpp>
#include <instructions.hpp>
#include <port.hpp>

namespace {

using port::begin_counting;
using port::end_counting;

constexpr int kLargest = 64, kRowLargest = 64 * 172;  // scalars of the products' operands
alignas(16) float storage[3][kRowLargest];
constexpr float *a = storage[0], *b = storage[1], *c = storage[2];

void fill(float* values, int size, attune::Rng& rng) {
  for (int i = 0; i < size; ++i) values[i] = rng.uniform(-1.0f, 1.0f);
}

void fill_operands() {
  attune::Rng rng(1);
  fill(a, kLargest * kLargest, rng);
  fill(b, kLargest * kLargest, rng);
}

// A wrong counter is worse than none: five instructions must count as five.
void measure_nothing() {
  begin_counting();
  asm volatile("nop\n nop\n nop\n nop\n nop");
  end_counting();
  port::print("check.five_instructions 1\n");
}

template <class Work>
[[gnu::always_inline]] inline void measure_product(const char* variant, int n, Work work) {
  begin_counting();
  work();
  end_counting();
  port::print("gemm.", variant, '.', n, ".instructions_per_mac ", n * n * n, '\n');
}

template <int n>
using Operand = attune::MatrixView<const float, n, n>;
template <int n>
using Result = attune::MatrixView<float, n, n>;

template <int... n>
void measure_products() {
  using attune::kernels::gemm;
  (measure_product("nn", n, [] { gemm(Operand<n>(a), Operand<n>(b), Result<n>(c)); }), ...);
  (measure_product("nt", n, [] { gemm(Operand<n>(a), Operand<n>(b).transpose(), Result<n>(c)); }), ...);
  (measure_product("tn", n, [] { gemm(Operand<n>(a).transpose(), Operand<n>(b), Result<n>(c)); }), ...);
}

// The same with B in 8 bits, stored as weights are: forward, and back to dx.
template <int... n>
void measure_quantized_products() {
  using attune::kernels::gemm, attune::kernels::QuantizedView, attune::kernels::ScalesOf;
  static attune::Int8 narrow[kLargest * kLargest];
  for (int i = 0; i < kLargest * kLargest; ++i) narrow[i] = attune::quantize_int8(b[i], 1.0f / 127);
  (measure_product("int8_forward", n,
                   [] {
                     gemm(Operand<n>(a),
                          QuantizedView<attune::Int8, float, n, n, 1, n, ScalesOf::kColumns>{narrow, b},
                          Result<n>(c));
                   }),
   ...);
  (measure_product("int8_dx", n,
                   [] {
                     gemm(Operand<n>(a),
                          QuantizedView<attune::Int8, float, n, n, n, 1, ScalesOf::kRows>{narrow, b},
                          Result<n>(c));
                   }),
   ...);
}

// rows × k times k × n in integers, quantizing, scales and bias included: forward, and back to dx.
template <int rows, int k, int n>
void measure_packed_product() {
  using namespace attune::kernels;
  using Packed = PackedInt8<k, n>;
  alignas(16) static std::int8_t bytes[Packed::kBytes];
  static float x[rows * k], y[rows * n], scale_and_bias[n];
  attune::Rng rng(2);
  fill(x, rows * k, rng);
  fill(scale_and_bias, n, rng);
  Packed::clear(bytes);
  for (int i = 0; i < k; ++i) {
    for (int j = 0; j < n; ++j) Packed::set(bytes, i, j, static_cast<int>(rng.uniform(-127.0f, 127.0f)));
  }
  const PackedInt8View<k, n, k, n, false> weights{bytes, scale_and_bias};
  const auto key = [](const char* way) {
    port::print("packed_int8.", way, '.', rows, 'x', k, 'x', n, ".instructions_per_mac ", rows * k * n, '\n');
  };
  begin_counting();
  gemm(attune::MatrixView<const float, rows, k>(x), weights, attune::MatrixView<float, rows, n>(y),
       AddBias<float>{scale_and_bias});
  end_counting();
  key("forward");
  begin_counting();
  gemm(attune::MatrixView<const float, rows, n>(y), weights.transpose(),
       attune::MatrixView<float, rows, k>(x));
  end_counting();
  key("dx");
}

// One row times weights as layers have them, and back to dx: y = x·W, and x·Wᵀ of W stored [n, k].
template <int k, int n, class B>
void measure_row(const char* variant, const B& weights) {
  const attune::MatrixView<const float, 1, k> x(a);
  const attune::MatrixView<float, 1, n> y(c);
  begin_counting();
  attune::kernels::gemm(x, weights, y);
  end_counting();
  port::print("row.", variant, '.', k, 'x', n, ".instructions_per_mac ", k * n, '\n');
}

template <int k, int n>
void measure_rows() {
  using attune::kernels::QuantizedView, attune::kernels::ScalesOf;
  measure_row<k, n>("nn", attune::MatrixView<const float, k, n>(b));
  measure_row<k, n>("nt", attune::MatrixView<const float, n, k>(b).transpose());
  using attune::Int8, attune::Bfloat16, attune::Float16;
  const auto* bytes = reinterpret_cast<const Int8*>(b);
  measure_row<k, n>("int8_nt", QuantizedView<Int8, float, k, n, 1, k, ScalesOf::kColumns>{bytes, a});
  measure_row<k, n>("int8_nn", QuantizedView<Int8, float, k, n, n, 1, ScalesOf::kRows>{bytes, a});
  const auto* bfloats = reinterpret_cast<const Bfloat16*>(b);
  measure_row<k, n>("bfloat16_nt",
                    QuantizedView<Bfloat16, float, k, n, 1, k, ScalesOf::kNothing>{bfloats, nullptr});
  measure_row<k, n>("bfloat16_nn",
                    QuantizedView<Bfloat16, float, k, n, n, 1, ScalesOf::kNothing>{bfloats, nullptr});
  const auto* halves = reinterpret_cast<const Float16*>(b);
  measure_row<k, n>("float16_nt",
                    QuantizedView<Float16, float, k, n, 1, k, ScalesOf::kNothing>{halves, nullptr});
  measure_row<k, n>("float16_nn",
                    QuantizedView<Float16, float, k, n, n, 1, ScalesOf::kNothing>{halves, nullptr});
}

// The gradient of weights that few rows meet: dW += xᵀ·dy.
template <int rows>
void measure_weight_gradient() {
  constexpr int n = kLargest;
  const attune::MatrixView<const float, rows, n> x(a), dy(b);
  const attune::MatrixView<float, n, n> dw(c);
  begin_counting();
  attune::kernels::gemm(x.transpose(), dy, dw, attune::kernels::Accumulate{});
  end_counting();
  port::print("dw.", rows, 'x', n, 'x', n, ".instructions_per_mac ", rows * n * n, '\n');
}

constexpr attune::AttentionShape kShape{.seq_len = 16, .d_model = 32, .num_heads = 4};

// Rows as long as those of the step below.
[[gnu::noinline]] void measure_softmax() {
  constexpr int kLength = kShape.seq_len;
  using Softmax = attune::Softmax<kLength, kLength>;
  const attune::MatrixView<float, kLength, kLength> weights(a), gradients(b);
  begin_counting();
  Softmax::forward(weights, weights);
  end_counting();
  port::print("softmax.forward.instructions_per_element ", kLength * kLength, '\n');
  begin_counting();
  Softmax::backward(weights, gradients, gradients);
  end_counting();
  port::print("softmax.backward.instructions_per_element ", kLength * kLength, '\n');
}

// Exact GELU of normal inputs: values, and values with derivatives.
void measure_gelu(float deviation, const char* name) {
  using attune::Activation;
  constexpr int kSize = 1024;
  float *const x = storage[0], *const y = storage[1];
  attune::Rng rng(3);
  for (int i = 0; i < kSize; ++i) x[i] = deviation * rng.normal();
  begin_counting();
  attune::kernels::activate<Activation::kGelu>(kSize, x, y);
  end_counting();
  port::print("gelu.forward.", name, ".instructions_per_element ", kSize, '\n');
  begin_counting();
  attune::kernels::activate_with_slopes<Activation::kGelu>(kSize, x, y);
  end_counting();
  port::print("gelu.training.", name, ".instructions_per_element ", kSize, '\n');
  for (int i = 0; i < kSize; ++i) x[i] = deviation * rng.normal();
  begin_counting();
  attune::kernels::activate_backward<Activation::kGelu>(kSize, x, y, y);
  end_counting();
  port::print("gelu.backward.", name, ".instructions_per_element ", kSize, '\n');
}

using Layer = attune::MultiHeadAttention<kShape>;

// What Trainer does with one sequence and at the end of a batch. Nobody asks for dx there.
Layer::Parameters parameters, gradients;
Layer::Tape tape;
Layer::Scratch scratch;
Layer::Input x;
Layer::Output y, target;

[[gnu::noinline]] void measure_step() {
  attune::Rng rng(1);
  attune::initialize(parameters, attune::XavierUniform{}, rng);
  fill(x.data(), x.size, rng);
  fill(target.data(), target.size, rng);

  begin_counting();
  Layer::forward(parameters, x, y, tape, scratch);
  end_counting();
  port::print("step.16x32x4.forward.instructions 1\n");
  begin_counting();
  (void)attune::MeanSquaredError::forward(y, target, y);
  Layer::backward(parameters, x, tape, y, attune::NoGradient{}, gradients, scratch);
  end_counting();
  port::print("step.16x32x4.backward.instructions 1\n");
}

template <class Optimizer>
void measure_update(const char* name) {
  static typename Optimizer::template Moments<Layer::Parameters> moments;
  begin_counting();
  const attune::Status status = Optimizer::step(parameters, gradients, moments, {});
  end_counting();
  if (status != attune::Status::kOk) port::exit(1);
  port::print(name, ".instructions_per_parameter ", attune::count_scalars(parameters), '\n');
}

// Weights and biases, as a step of Int8Training does.
void measure_quantization() {
  static Layer::ParametersOf<attune::PackedInt8Weights, attune::Tensor> packed;
  begin_counting();
  const attune::Status status = attune::quantize(parameters, packed);
  end_counting();
  if (status != attune::Status::kOk) port::exit(1);
  port::print("quantize.instructions_per_parameter ", attune::count_scalars(parameters), '\n');
}

}  // namespace

int main() {
  measure_nothing();
  fill_operands();
  measure_products<8, 16, 32, 64>();
  measure_quantized_products<8, 16, 32, 64>();
  measure_packed_product<32, 32, 32>();
  measure_packed_product<64, 64, 64>();
  measure_packed_product<99, 64, 256>();
  measure_packed_product<1, 64, 256>();
  measure_packed_product<3, 64, 256>();
  measure_rows<64, 64>();
  measure_rows<64, 172>();
  measure_weight_gradient<1>();
  measure_weight_gradient<2>();
  measure_weight_gradient<3>();
  measure_rows<172, 64>();
  measure_softmax();
  measure_step();
  measure_update<attune::AdamW>("adamw");
  measure_update<attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kInt8}>>("adamw_int8");
  measure_update<attune::Sgd<>>("sgd");
  measure_quantization();
  measure_gelu(0.5f, "deviation0.5");
  measure_gelu(1, "deviation1");
  measure_gelu(2, "deviation2");
  measure_gelu(4, "deviation4");
  return 0;
}
