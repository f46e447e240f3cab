// Backward of several sequences at the same time, with the bits of one sequence after the other. Threads or
// cores have one sequence each. They add to the batch's gradients in the order of the batch, in one of two
// ways (Additions in layer.hpp has the rules for a layer):
//
// AdditionOrder: each sequence has a set of gradients, which starts at zero and is added to the batch's set
// afterwards, in the order of the batch. That gives the bits of one sequence after the other if a layer adds
// to each gradient once for each sequence. Other layers add to the batch's set directly, and wait until they
// have added there for all earlier sequences. So such a layer may add as often as it likes.
//
// RelayOrder: there is one set of gradients. A stage of a layer that adds once waits for the same stage of
// the sequence before. A layer that adds more often waits as a whole: several of its stages may add to one
// tensor, and the next sequence would add between them. So does every layer behind a length, which decides
// how many stages it has. Layers without parameters wait for nobody.
//
//   Flag flags[batch];  // zero: flags[s] counts the turns of sequence s
//   AdditionOrder<Flag> order(s > 0 ? &flags[s - 1] : nullptr, flags[s], bytes_to_batch_set);
//   if (status != Status::kOk) {
//     order.refuse();  // after an error in forward
//   } else {
//     Layer::backward(…, gradients_of_sequence, scratch, context_for<Layer>(mask, InBatchOrder(order)));
//     order.end();
//   }
//
// Start the sequences in their order, so that nobody waits for one that nobody runs. A Flag is a number that
// one thread or core writes and others read (crew.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include <attune/core/status.hpp>
#include <attune/execution/slices.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The turns of a sequence, each after the same turn of the sequence before.
template <class Flag>
class Turns {
 public:
  /// After an error in forward: this sequence and all later ones add nothing.
  void refuse() {
    refused_ = true;
    own_.publish(kRefused);
  }
  /// After backward. Nobody waits for this sequence any more.
  void end() {
    if (!refused_) own_.publish(kEnded);
  }

 protected:
  Turns(const Flag* before, Flag& own) : before_(before), own_(own) {}
  // These two are not inlined: a model has dozens of stages.

  // Returns whether it is this sequence's turn; false after an error in an earlier sequence.
  [[gnu::noinline]] bool begin_turn() {
    if (before_ != nullptr && !refused_ && before_->wait_for(taken_ + 1) == kRefused) refuse();
    return !refused_;
  }
  [[gnu::noinline]] void end_turn() { own_.publish(++taken_); }

 private:
  static constexpr std::uint32_t kRefused = (std::numeric_limits<std::int32_t>::max)(), kEnded = kRefused - 1;
  const Flag* before_;
  Flag& own_;
  std::uint32_t taken_ = 0;
  bool refused_ = false;
};

}  // namespace detail

/// A sequence's place in the order in which layers add to the batch's gradients.
template <class Flag>
class AdditionOrder : public detail::Turns<Flag> {
 public:
  /// Whether each stage of a layer that adds once is a turn.
  static constexpr bool kStagesAreTurns = false;
  /// `before` is the flag of the sequence before, or nullptr. `to_batch` is the distance in bytes from the
  /// sequence's gradients to the batch's.
  AdditionOrder(const Flag* before, Flag& own, std::ptrdiff_t to_batch)
      : detail::Turns<Flag>(before, own), to_batch_(to_batch) {}

  /// Calls body(gradients) with the batch's gradients after all earlier sequences. After an error in one of
  /// them, calls it with the sequence's own gradients, which nobody reads then.
  template <class Gradients, class Body>
  void run(Gradients& gradients, const Body& body) {
    if (!this->begin_turn()) return body(gradients);
    body(*reinterpret_cast<Gradients*>(reinterpret_cast<std::uintptr_t>(&gradients) +
                                       static_cast<std::uintptr_t>(to_batch_)));
    this->end_turn();
  }
  /// The slices of a layer that adds once: it adds to the sequence's gradients.
  static RunToCompletion slices_of_one_addition() { return {}; }

 private:
  const std::ptrdiff_t to_batch_;
};

/// A sequence's place in a relay: all sequences add to one set of gradients.
template <class Flag>
class RelayOrder : public detail::Turns<Flag> {
 public:
  /// Whether each stage of a layer that adds once is a turn.
  static constexpr bool kStagesAreTurns = true;
  /// `before` is the flag of the sequence before, or nullptr.
  RelayOrder(const Flag* before, Flag& own) : detail::Turns<Flag>(before, own) {}

  /// The slices of a layer that adds once: each stage is a turn.
  class Slices : public detail::WholeSequence {
   public:
    /// `order` must outlive this object.
    explicit Slices(RelayOrder& order) : order_(&order) {}

    /// A stage is a turn.
    void stage(auto&& body) const {
      order_->run(*order_, [&](RelayOrder&) { body(); });
    }
    /// So is one with a status.
    Status answer(auto&& body) const {
      Status status = Status::kOk;
      stage([&] { status = body(); });
      return status;
    }
    template <int most, int at_once, int work, class Used, class Body>
    void rows(Used used, Body&& body) const {
      stage([&] { RunToCompletion::rows<most, at_once, work>(used, body); });
    }
    template <int most, int work, class Body>
    void elements(int used, Body&& body) const {
      stage([&] { body(0, used); });
    }

   private:
    RelayOrder* order_;
  };

  /// Calls body(gradients) after the same call for the sequence before; not after an error in an earlier
  /// sequence.
  void run(auto& gradients, const auto& body) {
    if (!this->begin_turn()) return;
    body(gradients);
    this->end_turn();
  }
  /// For a layer that adds once to each gradient.
  Slices slices_of_one_addition() { return Slices(*this); }
};

/// The slices of backward of one of several sequences: all stages, to completion.
template <class Order>
class InBatchOrder : public RunToCompletion {
 public:
  static constexpr bool kInBatchOrder = true;
  /// `order` must outlive this object.
  explicit InBatchOrder(Order& order) : order_(&order) {}
  /// The order of the sequence.
  [[nodiscard]] Order& order() const { return *order_; }

 private:
  Order* order_;
};

}  // namespace ATTUNE_NAMESPACE
