// Backward of several sequences at the same time, with the bits of one sequence after the other.
//
// Each sequence has a set of gradients, which starts at zero and is added to the batch's set afterwards, in
// the order of the batch. That gives the bits of one sequence after the other if a layer adds to each
// gradient once for each sequence (Additions, layer.hpp). Other layers add to the batch's set directly, and
// wait until they have added there for all earlier sequences. So such a layer may add as often as it likes.
//
//   Flag flags[batch];  // zero: flags[s] counts the layers that have added for sequence s
//   AdditionOrder<Flag> order(s > 0 ? &flags[s - 1] : nullptr, flags[s], bytes_to_batch_set);
//   if (status != Status::kOk) {
//     order.refuse();  // after an error in forward
//   } else {
//     Layer::backward(…, gradients_of_sequence, scratch, context_for<Layer>(mask, InBatchOrder(order)));
//     order.end();
//   }
//
// Start the sequences in their order, so that nobody waits for one that nobody runs. A Flag is a number that
// one thread or core writes and others read:
//
//   flag.publish(number)   everything written before is visible to a reader of the number
//   flag.wait_for(number)  returns the value once it is at least `number`
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <attune/execution/slices.hpp>

namespace ATTUNE_NAMESPACE {

/// A sequence's place in the order in which layers add to the batch's gradients.
template <class Flag>
class AdditionOrder {
 public:
  /// `before` is the flag of the sequence before, or nullptr. `to_batch` is the distance in bytes from the
  /// sequence's gradients to the batch's.
  AdditionOrder(const Flag* before, Flag& own, std::ptrdiff_t to_batch)
      : before_(before), own_(own), to_batch_(to_batch) {}

  /// Calls body(gradients) with the batch's gradients after all earlier sequences. After an error in one of
  /// them, calls it with the sequence's own gradients, which nobody reads then.
  template <class Gradients, class Body>
  void run(Gradients& gradients, const Body& body) {
    if (before_ != nullptr && !refused_ && before_->wait_for(taken_ + 1) == kRefused) refuse();
    if (refused_) {
      body(gradients);
    } else {
      body(*reinterpret_cast<Gradients*>(reinterpret_cast<std::uintptr_t>(&gradients) +
                                         static_cast<std::uintptr_t>(to_batch_)));
      own_.publish(++taken_);
    }
  }
  /// After an error in forward: this sequence and all later ones add nothing.
  void refuse() {
    refused_ = true;
    own_.publish(kRefused);
  }
  /// After backward. Nobody waits for this sequence any more.
  void end() {
    if (!refused_) own_.publish(kEnded);
  }

 private:
  static constexpr std::uint32_t kRefused = (std::numeric_limits<std::uint32_t>::max)(),
                                 kEnded = kRefused - 1;
  const Flag* before_;
  Flag& own_;
  const std::ptrdiff_t to_batch_;
  std::uint32_t taken_ = 0;
  bool refused_ = false;
};

/// The slices of backward of one of several sequences: all stages, to completion.
template <class Flag>
class InBatchOrder : public RunToCompletion {
 public:
  static constexpr bool kInBatchOrder = true;
  /// `order` must outlive this object.
  explicit InBatchOrder(AdditionOrder<Flag>& order) : order_(&order) {}
  /// The order of the sequence.
  [[nodiscard]] AdditionOrder<Flag>& order() const { return *order_; }

 private:
  AdditionOrder<Flag>* order_;
};

}  // namespace ATTUNE_NAMESPACE
