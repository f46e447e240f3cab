// Forward and backward of a feed-forward network and of self-attention in integers
// (training/int8_training.hpp), written to the file that is named: tensors as `NAME ROWS COLS\n` and floats,
// for int8_against_numpy.
#include <cstdio>
#include <memory>
#include <string>
#include <tuple>

#include <attune/attune.hpp>

namespace {

using namespace attune;

constexpr int kTokens = 99, kWidth = 40;  // sums over tokens, of which 32 columns are packed together
using Network = FeedForward<FeedForwardShape{.rows = kTokens, .d_model = kWidth, .d_ff = 70}>;
using Attention = MultiHeadAttention<AttentionShape{.seq_len = kTokens, .d_model = kWidth, .num_heads = 2}>;
std::FILE* file;

void write(const char* name, const auto& matrix) {
  std::fprintf(file, "%s %d %d\n", name, matrix.rows, matrix.cols);
  for (int i = 0; i < matrix.rows; ++i) {
    for (int j = 0; j < matrix.cols; ++j) {
      const float value = matrix(i, j);
      std::fwrite(&value, sizeof value, 1, file);
    }
  }
}
// Also the integers, as floats, and their scales.
template <class Floats, class Packed>
void write_linear(const std::string& name, const Floats& floats, const Packed& packed) {
  write((name + ".weight").c_str(), floats.weight);
  write((name + ".bias").c_str(), floats.bias);
  using Weight = std::remove_cvref_t<decltype(floats.weight)>;
  constexpr int kIn = Weight::rows, kOut = Weight::cols;
  Tensor<float, kIn, kOut> integers;
  Tensor<float, 1, kOut> scales;
  for (int j = 0; j < kOut; ++j) {
    scales(0, j) = packed.weight.stored.scale()[j];
    for (int i = 0; i < kIn; ++i) integers(i, j) = packed.weight.stored.at(j, i).value;
  }
  write((name + ".integers").c_str(), integers);
  write((name + ".scales").c_str(), scales);
}

// The rows of some tokens are zero, large, and small.
void draw(auto& matrix, Rng& rng) {
  for (int i = 0; i < matrix.rows; ++i) {
    const float size = i == 7 ? 0.0f : i == 20 ? 1e4f : i == 21 ? 1e-6f : 1.0f;
    for (int j = 0; j < matrix.cols; ++j) matrix(i, j) = size * rng.uniform(-1, 1);
  }
}

template <class Layer>
struct Run {
  typename Layer::Parameters floats, gradients;
  typename Layer::template ParametersOf<PackedInt8Weights, Tensor> packed;
  typename Layer::Input x, dx;
  typename Layer::Output y, dy;
  typename Layer::Tape tape;
  typename Layer::Scratch scratch;

  explicit Run(std::uint64_t seed) {
    Rng rng(seed);
    initialize(floats, XavierUniform{}, rng);
    for_each_tensor(
        [&rng](const TensorPath&, auto& tensor) {
          if constexpr (std::remove_cvref_t<decltype(tensor)>::rows == 1) draw(tensor, rng);
        },
        floats);
    draw(x, rng);
    draw(dy, rng);
    (void)quantize(floats, packed);
  }
  void forward() { attune::forward<Layer>(packed, x, y, tape, scratch, NoMask{}, Int8Products{}); }
  void backward() {
    attune::backward<Layer>(packed, x, tape, dy, dx, gradients, scratch, NoMask{}, Int8Products{});
  }
};

}  // namespace

int main(int, char** arguments) {
  file = std::fopen(arguments[1], "wb");
  if (file == nullptr) return 1;

  const auto network = std::make_unique<Run<Network>>(1);
  network->forward();
  network->backward();
  write_linear("network.1", network->floats.linear1, network->packed.linear1);
  write_linear("network.2", network->floats.linear2, network->packed.linear2);
  write("network.x", network->x);
  write("network.y", network->y);
  write("network.dy", network->dy);
  write("network.dx", network->dx);
  write("network.1.dw", network->gradients.linear1.weight);
  write("network.2.dw", network->gradients.linear2.weight);

  const auto attention = std::make_unique<Run<Attention>>(2);
  const auto& [query, key, value, outputs, weights] =
      std::tie(attention->tape.query, attention->tape.key, attention->tape.value, attention->tape.outputs,
               attention->tape.weights);
  attention->forward();
  write_linear("attention.query", attention->floats.query, attention->packed.query);
  write_linear("attention.key", attention->floats.key, attention->packed.key);
  write_linear("attention.value", attention->floats.value, attention->packed.value);
  write_linear("attention.output", attention->floats.output, attention->packed.output);
  write("attention.x", attention->x);
  write("attention.y", attention->y);
  write("attention.dy", attention->dy);
  write("attention.q", query);
  write("attention.k", key);
  write("attention.v", value);
  write("attention.p", weights);  // of one head below the other
  write("attention.o", outputs);
  attention->backward();  // writes gradients over the tape
  write("attention.dq", query);
  write("attention.dk", key);
  write("attention.dv", value);
  write("attention.ds", weights);
  write("attention.dx", attention->dx);
  write("attention.query.dw", attention->gradients.query.weight);
  write("attention.key.dw", attention->gradients.key.weight);
  write("attention.value.dw", attention->gradients.value.weight);
  write("attention.output.dw", attention->gradients.output.weight);
  return std::fclose(file);
}
