// A token of stories.hpp's model in plain loops, as programs of a few hundred lines have it: what a stream is
// measured against. Weights are stored [out, in], caches [position, features].
#pragma once

namespace bench {

struct HandWrittenLayer {
  const float *query, *key, *value, *output, *gate, *up, *down, *norm1, *norm2;
  float *keys, *values;
};
struct HandWritten {
  const float *embedding, *norm;
  const HandWrittenLayer* layers;
};
void hand_written_token(const HandWritten& model, int token, int position, float* logits);

}  // namespace bench
