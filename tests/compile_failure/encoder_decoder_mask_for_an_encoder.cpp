// expect: attune::EncoderDecoderMask: attention outside of an EncoderDecoder takes one mask; move those
// kilobytes: 32  the way from the call to the layer
#include "encoder_decoder.hpp"

void masked(attune::Trainer<Encoder>& trainer, const Encoder::Input& x) {
  (void)trainer.accumulate(x, x, attune::EncoderDecoderMask<>{});
}
