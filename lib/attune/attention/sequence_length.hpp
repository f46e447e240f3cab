// The true length of a sequence that is shorter than its model's: a mask that hides the padding after it.
// Layers skip the padding, so it costs no time.
//
//   SequenceLength<29> length;
//   if (length.set_length(7) != Status::kOk) …
//   trainer.accumulate(x, target, length);   // the time of 7 tokens, the bits of KeyPaddingMask
#pragma once

#include <attune/attention/mask.hpp>

namespace ATTUNE_NAMESPACE {

/// The first tokens of up to kSeqLen; initially all of them. Trainers, infer_in_slices, and forward and
/// backward of a layer skip the other tokens: a sequence of n tokens takes the time of n. The bits equal
/// KeyPaddingMask's if no loss reaches later tokens. Values of x, ids or dy there have no influence. y
/// and dx are zero there. A loss over all tokens must ignore its targets there.
///
/// In cross-attention, and as a DecoderLayer's mask of its memory, the length is the number of valid keys and
/// values; their gradients are zero after it. A DecoderLayer's other mask gives the length of its own
/// tokens.
///
/// If a layer of the model does not take a length (Abilities, execution/layer.hpp), all tokens are computed,
/// and the mask hides like KeyPaddingMask.
template <int kSeqLen>
class SequenceLength {
 public:
  /// The first `length` tokens are real. Returns Status::kInvalidLength and changes nothing unless 1 ≤ length
  /// ≤ kSeqLen.
  constexpr Status set_length(int length) {
    if (length < 1 || length > kSeqLen) return Status::kInvalidLength;
    padding_ = kSeqLen - length;
    return Status::kOk;
  }
  [[nodiscard]] constexpr int length() const { return kSeqLen - padding_; }

  template <int kv_len>
  [[nodiscard]] constexpr bool keeps_key(int key) const {
    static_assert(detail::Holds<(kv_len == kSeqLen)>,
                  "attune::SequenceLength: the length and the layer have different seq_len");
    return key < length();
  }
  template <ScoreShape shape>
  static constexpr void fits() {
    static_assert(detail::Holds<(shape.kv_len == kSeqLen)>,
                  "attune::SequenceLength: the length and the layer have different seq_len");
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int, int, Scalar* row) const {
    detail::hide_from(row, length(), kv_len);
  }
  template <int kv_len, class Scalar>
  constexpr void bias(int, int, Scalar*) const {}

 private:
  int padding_ = 0;  // zeros mean the whole length, as in a cleared static object
};

}  // namespace ATTUNE_NAMESPACE
