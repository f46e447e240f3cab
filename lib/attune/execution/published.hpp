// Values that one core makes and another uses while both go on: parameters of a training in the background,
// for an inference with a deadline.
//
//   static attune::Published<Model::Parameters> published;  // .bss
//
//   // The core that trains, after a step:
//   if (auto* const place = published.place()) {
//     *place = trainer.parameters();
//     published.publish();
//   }
//
//   // The core that infers:
//   attune::infer<Model>(published.take(), x, y, scratch);
//
// Nobody waits, and no value is torn. There are two values: the writer fills one while the reader uses the
// other, and take() hands both over. Two counts do it, each written by one side: no exclusives, locks, loops.
// Both sides may be cores, threads or tasks, and either may be an interrupt handler of the other.
#pragma once

#include <cstdint>

#include <attune/execution/crew.hpp>

namespace ATTUNE_NAMESPACE {

/// The newest value for a reader on another core. `T` is any struct. Zero is a valid start: the first value
/// is then T's zeros, number 0. Both sides need memory that they see in order: not cached, or coherent.
template <class T>
class Published {
 public:
  /// Of the writer: where the next value goes. nullptr until the reader has taken the last one: go on, and
  /// ask again after the next step. The value then is newer.
  [[nodiscard]] T* place() {
    const std::uint32_t published = published_.load();
    return taken_.load() == published ? &values_[(published + 1U) % 2U] : nullptr;
  }
  /// Of the writer: the value in place() is complete. Does nothing while place() is nullptr.
  void publish() {
    if (place() != nullptr) published_.store(published_.load() + 1U);
  }

  /// Of the reader: the newest value, which stays as it is until the next take().
  [[nodiscard]] const T& take() {
    const std::uint32_t published = published_.load();
    taken_.store(published);
    return values_[published % 2U];
  }
  /// Of the reader: the number of the value of the last take(), modulo 2³².
  [[nodiscard]] std::uint32_t number() const { return taken_.load(); }

 private:
  T values_[2];
  detail::SharedWord published_, taken_;  // by the writer, by the reader: at most one apart
};

}  // namespace ATTUNE_NAMESPACE
