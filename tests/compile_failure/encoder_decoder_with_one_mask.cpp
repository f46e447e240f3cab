// expect: attune::EncoderDecoder: one mask is ambiguous; pass EncoderDecoderMask{source, target}
// kilobytes: 31  the way from the call to the layer
#include "encoder_decoder.hpp"

using Model = attune::EncoderDecoder<Encoder, Decoder>;
void masked(attune::Trainer<Model>& trainer, const Model::Input& x, const Model::Output& target) {
  (void)trainer.accumulate(x, target, attune::CausalMask{});
}
