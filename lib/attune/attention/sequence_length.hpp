// The true length of a sequence that is shorter than its model: a mask that hides what lies behind, and says
// so, which costs no time then.
//
//   SequenceLength<29> length;
//   if (length.set_length(7) != Status::kOk) …
//   trainer.accumulate(x, target, length);   // the time of 7 tokens, the bits of KeyPaddingMask
#pragma once

#include <attune/attention/mask.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// The first tokens of up to kSeqLen; all of them until told otherwise. Trainers, infer_in_slices and the
/// forward and backward of a layer that is called with it compute no others: a sequence of n tokens takes the
/// time of n, and has the bits that it has with KeyPaddingMask where no loss reaches the tokens behind. What
/// x, or ids, hold there has no influence, nor has dy. y and dx are zero there, and targets of a loss over
/// all tokens are to be ignored there.
///
/// As the mask of cross-attention, or a DecoderLayer's of its memory, it is the length of keys and values,
/// whose gradients are zero behind it; a DecoderLayer's other mask says that of its tokens.
///
/// Where a layer of the model does not take a length (Abilities, execution/layer.hpp) all tokens are
/// computed, and the mask hides as KeyPaddingMask.
template <int kSeqLen>
class SequenceLength {
 public:
  /// The first `length` tokens are real. Status::kInvalidLength, and nothing changed, unless 1 ≤ length ≤
  /// kSeqLen.
  constexpr Status set_length(int length) {
    if (length < 1 || length > kSeqLen) return Status::kInvalidLength;
    padding_ = kSeqLen - length;
    return Status::kOk;
  }
  [[nodiscard]] constexpr int length() const { return kSeqLen - padding_; }

  template <int kv_len>
  [[nodiscard]] constexpr bool keeps_key(int key) const {
    static_assert(kv_len == kSeqLen, "attune::SequenceLength: made for another seq_len than the layer's");
    return key < length();
  }
  template <ScoreShape shape>
  static constexpr void fits() {
    static_assert(shape.kv_len == kSeqLen,
                  "attune::SequenceLength: made for another seq_len than the layer's");
  }
  template <int kv_len, class Scalar>
  constexpr void hide(int, int, Scalar* row) const {
    detail::hide_from(row, length(), kv_len);
  }
  template <int kv_len, class Scalar>
  constexpr void bias(int, int, Scalar*) const {}

 private:
  int padding_ = 0;  // zeros, where a static one is cleared alone, are the whole length
};

}  // namespace attune::inline ATTUNE_ARITHMETIC
