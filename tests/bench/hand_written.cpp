#include "hand_written.hpp"

#include <cmath>

namespace bench {

namespace {

constexpr int kVocabulary = 512, kWidth = 64, kLayers = 5, kHeads = 8, kKvHeads = 4, kHidden = 172;
constexpr int kHeadWidth = kWidth / kHeads, kKvWidth = kKvHeads * kHeadWidth, kLength = 512;

void normalize(const float* x, const float* weight, float* y) {
  float sum = 0;
  for (int i = 0; i < kWidth; ++i) sum += x[i] * x[i];
  const float scale = 1 / std::sqrt(sum / kWidth + 1e-5f);
  for (int i = 0; i < kWidth; ++i) y[i] = x[i] * scale * weight[i];
}

void multiply(const float* x, const float* weight, int in, int out, float* y) {
  for (int i = 0; i < out; ++i) {
    float sum = 0;
    for (int k = 0; k < in; ++k) sum += weight[i * in + k] * x[k];
    y[i] = sum;
  }
}

void rotate(float* x, int size, int position) {
  for (int i = 0; i < size; i += 2) {
    const float angle =
        static_cast<float>(position) / std::pow(10000.0f, static_cast<float>(i % kHeadWidth) / kHeadWidth);
    const float c = std::cos(angle), s = std::sin(angle), a = x[i], b = x[i + 1];
    x[i] = a * c - b * s;
    x[i + 1] = a * s + b * c;
  }
}

void attend(const float* query, const float* keys, const float* values, int position, float* context) {
  float weights[kLength];
  float largest = -INFINITY, total = 0;
  for (int t = 0; t <= position; ++t) {
    float score = 0;
    for (int i = 0; i < kHeadWidth; ++i) score += query[i] * keys[t * kKvWidth + i];
    weights[t] = score / std::sqrt(static_cast<float>(kHeadWidth));
    if (weights[t] > largest) largest = weights[t];
  }
  for (int t = 0; t <= position; ++t) {
    weights[t] = std::exp(weights[t] - largest);
    total += weights[t];
  }
  for (int i = 0; i < kHeadWidth; ++i) context[i] = 0;
  for (int t = 0; t <= position; ++t) {
    for (int i = 0; i < kHeadWidth; ++i) context[i] += weights[t] / total * values[t * kKvWidth + i];
  }
}

}  // namespace

void hand_written_token(const HandWritten& model, int token, int position, float* logits) {
  float x[kWidth], normed[kWidth], query[kWidth], context[kWidth], branch[kWidth];
  float gate[kHidden], up[kHidden];
  for (int i = 0; i < kWidth; ++i) x[i] = model.embedding[token * kWidth + i];
  for (int l = 0; l < kLayers; ++l) {
    const HandWrittenLayer& layer = model.layers[l];
    float* key = layer.keys + position * kKvWidth;
    normalize(x, layer.norm1, normed);
    multiply(normed, layer.query, kWidth, kWidth, query);
    multiply(normed, layer.key, kWidth, kKvWidth, key);
    multiply(normed, layer.value, kWidth, kKvWidth, layer.values + position * kKvWidth);
    rotate(query, kWidth, position);
    rotate(key, kKvWidth, position);
    for (int head = 0; head < kHeads; ++head) {
      const int of_keys = head / (kHeads / kKvHeads) * kHeadWidth;
      attend(query + head * kHeadWidth, layer.keys + of_keys, layer.values + of_keys, position,
             context + head * kHeadWidth);
    }
    multiply(context, layer.output, kWidth, kWidth, branch);
    for (int i = 0; i < kWidth; ++i) x[i] += branch[i];
    normalize(x, layer.norm2, normed);
    multiply(normed, layer.gate, kWidth, kHidden, gate);
    multiply(normed, layer.up, kWidth, kHidden, up);
    for (int i = 0; i < kHidden; ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    multiply(gate, layer.down, kHidden, kWidth, branch);
    for (int i = 0; i < kWidth; ++i) x[i] += branch[i];
  }
  normalize(x, model.norm, normed);
  multiply(normed, model.embedding, kWidth, kVocabulary, logits);
}

}  // namespace bench
