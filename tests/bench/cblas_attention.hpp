// Multi-head self-attention as one would write it straight over a BLAS: the competitor for batches of tiny
// sequences. Projections are single products over all rows of the batch, attention is small products sequence
// by sequence and head by head, softmax uses libm's expf, and AdamW is a plain loop.
#pragma once

#include <vector>

namespace bench {

class CblasAttention {
 public:
  CblasAttention(int batch, int seq_len, int d_model, int num_heads);

  /// W_q, b_q, W_k, b_k, W_v, b_v, W_o, b_o; a W is [d_model, d_model], row-major, y = x·W + b.
  std::vector<float>& parameters() { return parameters_; }

  /// Forward, mean squared error, backward, AdamW; x and target are [batch·seq_len, d_model]. Returns the
  /// loss.
  float step(const float* x, const float* target, float learning_rate);

 private:
  enum Projection { kQuery, kKey, kValue, kOutput, kProjections };
  [[nodiscard]] int offset(int projection) const { return projection * (d_model_ * d_model_ + d_model_); }

  void forward(const float* x);
  float loss(const float* target);
  void backward(const float* x);
  void update(float learning_rate);

  // y = x·W + b;  dW = xᵀ·dy, db = Σ dy;  dx = dy·Wᵀ
  void project(int projection, const float* x, float* y) const;
  void project_parameters_backward(int projection, const float* x, const float* dy);
  void project_input_backward(int projection, const float* dy, float* dx) const;

  int batch_, seq_len_, d_model_, num_heads_, rows_;
  int steps_ = 0;
  std::vector<float> parameters_, gradients_, first_moments_, second_moments_;
  std::vector<float> query_, key_, value_, weights_, context_, y_;        // forward
  std::vector<float> d_query_, d_key_, d_value_, d_weights_, d_context_;  // backward; y_ becomes dy
};

}  // namespace bench
