// expect: attune: a layer would inherit its base's Stream: give it its own, or `using SteppedAs` of its own
#include <attune/attune.hpp>

using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{
    .attention = {.seq_len = 4, .d_model = 4, .num_heads = 2}, .d_ff = 8}>;
struct Doubled : Encoder {
  template <class... Arguments>
  static void forward(const Arguments&...) {}
};

attune::KeyValueCache<Doubled, attune::CacheShape{.capacity = 4}> cache;
