#include "cblas_attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include <cblas.h>

extern "C" void openblas_set_num_threads(int);

namespace bench {
namespace {

void softmax(float* row, int size) {
  const float max = *std::max_element(row, row + size);
  float sum = 0;
  for (int i = 0; i < size; ++i) sum += row[i] = std::exp(row[i] - max);
  for (int i = 0; i < size; ++i) row[i] /= sum;
}

void softmax_backward(const float* p, float* dp, int size) {
  float dot = 0;
  for (int i = 0; i < size; ++i) dot += p[i] * dp[i];
  for (int i = 0; i < size; ++i) dp[i] = p[i] * (dp[i] - dot);
}

}  // namespace

CblasAttention::CblasAttention(int batch, int seq_len, int d_model, int num_heads)
    : batch_(batch), seq_len_(seq_len), d_model_(d_model), num_heads_(num_heads), rows_(batch * seq_len) {
  openblas_set_num_threads(1);
  for (auto* values : {&parameters_, &gradients_, &first_moments_, &second_moments_}) {
    values->resize(static_cast<std::size_t>(offset(kProjections)));
  }
  for (auto* values : {&query_, &key_, &value_, &context_, &y_, &d_query_, &d_key_, &d_value_, &d_context_}) {
    values->resize(static_cast<std::size_t>(rows_ * d_model));
  }
  weights_.resize(static_cast<std::size_t>(batch * num_heads * seq_len * seq_len));
  d_weights_.resize(static_cast<std::size_t>(seq_len * seq_len));
}

float CblasAttention::step(const float* x, const float* target, float learning_rate) {
  forward(x);
  const float result = loss(target);
  backward(x);
  update(learning_rate);
  return result;
}

void CblasAttention::project(int projection, const float* x, float* y) const {
  const float* weight = parameters_.data() + offset(projection);
  const float* bias = weight + d_model_ * d_model_;
  for (int i = 0; i < rows_; ++i) std::copy(bias, bias + d_model_, y + i * d_model_);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, rows_, d_model_, d_model_, 1.0f, x, d_model_, weight,
              d_model_, 1.0f, y, d_model_);
}

void CblasAttention::project_parameters_backward(int projection, const float* x, const float* dy) {
  float* d_weight = gradients_.data() + offset(projection);
  float* d_bias = d_weight + d_model_ * d_model_;
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, d_model_, d_model_, rows_, 1.0f, x, d_model_, dy,
              d_model_, 0.0f, d_weight, d_model_);
  std::fill(d_bias, d_bias + d_model_, 0.0f);
  for (int i = 0; i < rows_; ++i) {
    for (int j = 0; j < d_model_; ++j) d_bias[j] += dy[i * d_model_ + j];
  }
}

void CblasAttention::project_input_backward(int projection, const float* dy, float* dx) const {
  const float* weight = parameters_.data() + offset(projection);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, rows_, d_model_, d_model_, 1.0f, dy, d_model_, weight,
              d_model_, 0.0f, dx, d_model_);
}

void CblasAttention::forward(const float* x) {
  project(kQuery, x, query_.data());
  project(kKey, x, key_.data());
  project(kValue, x, value_.data());
  const int d_k = d_model_ / num_heads_;
  const float scale = 1.0f / std::sqrt(static_cast<float>(d_k));
  for (int sequence = 0; sequence < batch_; ++sequence) {
    for (int head = 0; head < num_heads_; ++head) {
      const int at = sequence * seq_len_ * d_model_ + head * d_k;
      float* p = weights_.data() + (sequence * num_heads_ + head) * seq_len_ * seq_len_;
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, seq_len_, seq_len_, d_k, scale, &query_[at],
                  d_model_, &key_[at], d_model_, 0.0f, p, seq_len_);
      for (int i = 0; i < seq_len_; ++i) softmax(p + i * seq_len_, seq_len_);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, seq_len_, d_k, seq_len_, 1.0f, p, seq_len_,
                  &value_[at], d_model_, 0.0f, &context_[at], d_model_);
    }
  }
  project(kOutput, context_.data(), y_.data());
}

float CblasAttention::loss(const float* target) {
  const int size = rows_ * d_model_;
  const float factor = 2.0f / static_cast<float>(size);
  float total = 0;
  for (int i = 0; i < size; ++i) {
    const float error = y_[i] - target[i];
    total += error * error;
    y_[i] = factor * error;
  }
  return total / static_cast<float>(size);
}

void CblasAttention::backward(const float* x) {
  project_parameters_backward(kOutput, context_.data(), y_.data());
  project_input_backward(kOutput, y_.data(), d_context_.data());
  const int d_k = d_model_ / num_heads_;
  const float scale = 1.0f / std::sqrt(static_cast<float>(d_k));
  float* dp = d_weights_.data();
  for (int sequence = 0; sequence < batch_; ++sequence) {
    for (int head = 0; head < num_heads_; ++head) {
      const int at = sequence * seq_len_ * d_model_ + head * d_k;
      const float* p = weights_.data() + (sequence * num_heads_ + head) * seq_len_ * seq_len_;
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, seq_len_, d_k, seq_len_, 1.0f, p, seq_len_,
                  &d_context_[at], d_model_, 0.0f, &d_value_[at], d_model_);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, seq_len_, seq_len_, d_k, 1.0f, &d_context_[at],
                  d_model_, &value_[at], d_model_, 0.0f, dp, seq_len_);
      for (int i = 0; i < seq_len_; ++i) softmax_backward(p + i * seq_len_, dp + i * seq_len_, seq_len_);
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, seq_len_, d_k, seq_len_, scale, dp, seq_len_,
                  &key_[at], d_model_, 0.0f, &d_query_[at], d_model_);
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, seq_len_, d_k, seq_len_, scale, dp, seq_len_,
                  &query_[at], d_model_, 0.0f, &d_key_[at], d_model_);
    }
  }
  project_parameters_backward(kQuery, x, d_query_.data());
  project_parameters_backward(kKey, x, d_key_.data());
  project_parameters_backward(kValue, x, d_value_.data());
}

void CblasAttention::update(float learning_rate) {
  constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-8f, kDecay = 0.01f;
  ++steps_;
  const float correction1 = 1.0f - std::pow(kBeta1, static_cast<float>(steps_));
  const float correction2 = std::sqrt(1.0f - std::pow(kBeta2, static_cast<float>(steps_)));
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const float g = gradients_[i];
    first_moments_[i] = kBeta1 * first_moments_[i] + (1.0f - kBeta1) * g;
    second_moments_[i] = kBeta2 * second_moments_[i] + (1.0f - kBeta2) * g * g;
    parameters_[i] -= learning_rate * kDecay * parameters_[i];
    parameters_[i] -= learning_rate / correction1 * first_moments_[i] /
                      (std::sqrt(second_moments_[i]) / correction2 + kEpsilon);
  }
}

}  // namespace bench
