// A computation in slices, so that a main loop can work in between: read a sensor, predict, save.
//
// A layer is written once, as a sequence of stages (execution/context.hpp). RunToCompletion runs all of them
// and costs nothing. OneSlice resumes at the address where the last slice stopped. It skips a complete stage
// by one comparison, and a complete layer by one more; it runs portions until its work is done, and skips the
// rest. So resuming costs O(depth × siblings), independent of progress.
//
// Rules for a layer: data passed between stages lives in tape or scratch, never in a variable. The sequence
// of stages depends on types alone. In forward, rows and elements of a stage are independent; several threads
// may share a stage (crew_slices.hpp), and data written for more than one row are own(). In backward,
// rows and elements run in order, and may add to the same sums; rows and elements of context.in_any_order()
// are independent, and several threads share them.
//
// Members of Slices:
//
//   stage(body)                          a stage, as a whole
//   answer(body)                         a stage that returns a Status
//   inside(body)                         a layer within: a stage made of stages
//   repeat<n>(body)                      body(i) for i in [0, n), each a stage made of stages
//   rows<most, at_once, work>(used, body)      body<count>(first) over rows, at most `at_once` together
//   elements<most, work>(used, body)     body(first, count) over elements
//   own(pointer)                         memory in scratch that every portion fills anew
//   kRunsToCompletion                    all stages run, each in one portion
//   kStopsWithin                         a pass may stop between two portions
//   kInBatchOrder                        sequences run backward at the same time (batch_order.hpp)
//
// `used` rows or elements out of `most` are computed: a std::integral_constant if all of them are, else an
// int. `work` counts multiply-accumulates per row or element, or the equivalent time. One is about two and a
// half instructions on a Cortex-M4.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <attune/core/status.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/matrix_view.hpp>
#include <attune/kernels/storage.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// Calls body<rows>(first) for kRows rows in blocks of at most kMax, as far as the blocks contain used rows.
template <int kRows, int kMax, class Body, class Used = std::integral_constant<int, kRows>>
ATTUNE_INLINE void in_blocks(const Body& body, Used used = {}) {
  constexpr int kPortion = smaller(kRows, kMax), kRest = kRows % kPortion;
  for (int first = 0; first < kRows - kRest && first < used; first += kPortion) {
    body.template operator()<kPortion>(first);
  }
  if constexpr (kRest > 0) {
    if (kRows - kRest < used) body.template operator()<kRest>(kRows - kRest);
  }
}

// The members of slices that run a sequence from beginning to end.
struct WholeSequence {
  static constexpr bool kRunsToCompletion = false;
  static constexpr bool kStopsWithin = false;
  static constexpr bool kInBatchOrder = false;
  /// Runs a body that consists of stages, and returns its result.
  ATTUNE_INLINE static decltype(auto) inside(auto&& body) { return body(); }
  /// Runs body(i) for i from 0 to times - 1; each call consists of stages.
  template <int times, class Body>
  ATTUNE_INLINE static void repeat(Body&& body) {
    for (int i = 0; i < times; ++i) body(i);
  }
  /// Memory for data that only one portion reads: the scratch itself.
  template <class Scalar>
  ATTUNE_INLINE static Scalar* own(Scalar* scratch) {
    return scratch;
  }
};

}  // namespace detail

/// Runs all stages to completion.
struct RunToCompletion : detail::WholeSequence {
  static constexpr bool kRunsToCompletion = true;

  /// Runs a stage.
  ATTUNE_INLINE static void stage(auto&& body) { body(); }
  /// Runs a stage that returns a Status.
  ATTUNE_INLINE static Status answer(auto&& body) { return body(); }
  template <int most, int at_once, int work, class Body>
  ATTUNE_INLINE static void rows(std::integral_constant<int, most>, Body&& body) {
    detail::in_blocks<most, at_once>(body);
  }
  /// With an int as the number of rows, passes a RowRange: no other row is computed.
  template <int most, int at_once, int work, class Body>
  ATTUNE_INLINE static void rows(int used, Body&& body) {
    detail::in_blocks<most, at_once>(
        [&]<int count>(int first) ATTUNE_INLINE_LAMBDA {
          body.template operator()<count>(RowRange{first, detail::smaller(count, used - first)});
        },
        used);
  }
  template <int most, int work, class Body>
  ATTUNE_INLINE static void elements(int used, Body&& body) {
    body(0, used);
  }
};

/// The work of a slice, unless a single row is more: below 50,000 instructions on a Cortex-M with an FPU.
inline constexpr int kSliceWork = 8192;

/// The address at which a pass in slices has stopped: for each level of nesting, the number of complete
/// stages, and the progress in the next stage. A plain value: forgetting it discards the pass.
struct SliceAddress {
  /// Deeper layers count as stages of the last level.
  static constexpr int kLevels = 8;
  std::uint16_t done[kLevels] = {};  // complete stages of each level
  int rows = 0;                      // complete rows or elements of the next stage
};

namespace detail {

/// Walks through one slice from an address on. `before_` counts down the complete stages of a level; the
/// stage at zero runs. After the slice has ended the count is negative. A complete level is one stage of the
/// level around it.
class SliceWalk {
 public:
  /// Starts at the address, with `work` to do, and moves the address forward. The address must outlive the
  /// walk.
  constexpr SliceWalk(SliceAddress& address, int work)
      : address_(address), before_(address.done[0]), work_(work), left_(work) {}

  // Stages call these functions, which are not inlined: a model has dozens of stages.

  /// Whether to run the stage that the walk has reached.
  ATTUNE_INLINE bool is_next() { return before_-- == 0; }
  /// Whether the slice has room for a portion of such work. The first portion always fits; if another does
  /// not, the slice ends.
  [[gnu::noinline]] bool has_room(int work) {
    if (left_ == work_ || work <= left_) return true;
    stop();
    return false;
  }
  /// Whether to run a stage of one portion.
  [[gnu::noinline]] bool begin(int work) { return is_next() && has_room(work); }
  /// The number of complete rows of the stage.
  [[nodiscard]] int first_row() const { return address_.rows; }
  /// Records that a portion has run, up to row `end` of `count`.
  [[gnu::noinline]] void end_portion(int end, int count, int work) {
    left_ -= work;
    if (end >= count) {
      address_.rows = 0;
      complete_stage();
    } else {
      address_.rows = end;
      stop();
    }
  }
  /// Begins the stages of a layer within. Returns whether to run any of them. Behind the last level they
  /// count as stages of that level.
  [[gnu::noinline]] bool enter() {
    if (is_last_level()) {
      ++deeper_;
      return true;
    }
    if (!is_next()) return false;
    open();
    return true;
  }
  /// Ends what enter() or enter_repeated() began. Returns whether all of it is complete and the slice goes
  /// on.
  [[gnu::noinline]] bool leave() {
    if (deeper_ > 0) {
      --deeper_;
      return true;
    }
    const bool is_complete = complete();
    if (is_complete) address_.done[level_] = 0;
    --level_;
    if (is_complete) {
      complete_stage();
    } else {
      stop();
    }
    return before_ == 0;
  }
  /// Counts `times` stages. Returns the index of the next one; outside [0, times) if none is next.
  [[gnu::noinline]] int begin_repeat(int times) {
    if (is_last_level()) return 0;
    const int next = before_;
    before_ -= times;
    return next;
  }
  /// Begins one of these stages, which is made of stages.
  [[gnu::noinline]] void enter_repeated() {
    if (is_last_level()) {
      ++deeper_;
    } else {
      open();
    }
  }
  /// Ends the slice within a repeat.
  void stop() { before_ = kStopped; }
  /// Whether all stages of the level are complete.
  [[nodiscard]] bool complete() const { return before_ >= kEnded; }

 private:
  static constexpr int kEnded = -1;          // after a complete stage
  static constexpr int kStopped = -1 << 30;  // before a stage, or within it

  [[nodiscard]] bool is_last_level() const { return level_ + 1 == SliceAddress::kLevels; }
  void open() { before_ = address_.done[++level_]; }
  void complete_stage() {
    ++address_.done[level_];
    before_ = left_ > 0 ? 0 : kEnded;
  }

  SliceAddress& address_;
  int before_;  // stages of the level to skip
  int work_;
  int left_;
  int level_ = 0;
  int deeper_ = 0;  // open layers behind the last level
};

}  // namespace detail

/// The next slice of a pass: starts at the address of a walk, and ends when its work is done.
template <int most_work = kSliceWork>
class OneSlice : public detail::WholeSequence {
  static_assert(detail::Holds<(most_work > 0)>, "attune::OneSlice: the work of a slice must be positive");

 public:
  static constexpr bool kStopsWithin = true;

  /// Layers copy this object; all copies refer to one walk.
  constexpr explicit OneSlice(detail::SliceWalk& walk) : walk_(&walk) {}

  /// Runs a stage, if it is its turn. Its work is unknown, so it takes a whole slice.
  ATTUNE_INLINE void stage(auto&& body) const {
    if (!walk_->begin(most_work)) return;
    body();
    walk_->end_portion(1, 1, most_work);
  }
  /// The same for a body that returns a Status; kOk if it is not its turn.
  ATTUNE_INLINE Status answer(auto&& body) const {
    Status status = Status::kOk;
    stage([&]() ATTUNE_INLINE_LAMBDA { status = body(); });
    return status;
  }
  /// Runs a layer within as one stage. Returns its result, or a zero if it is not its turn.
  ATTUNE_INLINE auto inside(auto&& body) const {
    if (!walk_->enter()) return decltype(body())();
    const Leaving leaving{*walk_};
    return body();
  }
  /// Runs body(i) for i from 0 to times - 1, each a stage made of stages.
  template <int times, class Body>
  ATTUNE_INLINE void repeat(Body&& body) const {
    int i = walk_->begin_repeat(times);
    if (i < 0 || i >= times) return;
    bool more = true;
    for (; more && i < times; ++i) {
      walk_->enter_repeated();
      body(i);
      more = walk_->leave();
    }
    if (i < times) walk_->stop();
  }
  /// Runs at least the first `used` rows, and the rest of the last portion.
  template <int most, int at_once, int work, class Used, class Body>
  ATTUNE_INLINE void rows(Used used, Body&& body) const {
    if (!walk_->is_next()) return;
    constexpr int kBlock = detail::smaller(most, at_once), kLast = most % kBlock;
    const int first = walk_->first_row();
    if (kLast == 0 || first < most - kLast) {
      run_in_block<kBlock, work>(first - first % kBlock, first, used, body);
    } else if constexpr (kLast > 0) {
      run_in_block<kLast, work>(most - kLast, first, used, body);
    }
  }
  template <int most, int work, class Used, class Body>
  ATTUNE_INLINE void elements(Used used, Body&& body) const {
    constexpr int kPortion = together<64>(most, work);
    if (!walk_->is_next()) return;
    const int first = walk_->first_row(), some = detail::smaller<int>(kPortion, used - first);
    if (!walk_->has_room(some * work)) return;
    body(first, some);
    walk_->end_portion(first + some, used, some * work);
  }

 private:
  // The number of rows in a slice: whole register tiles and packets if they fit.
  template <int tile>
  static constexpr int together(int count, int work) {
    const int fitting = detail::clamp(most_work / detail::larger(work, 1), 1, count);
    return fitting < count && fitting > tile ? fitting - fitting % tile : fitting;
  }
  // The same number of portions, of equal size if there is one: then the body is compiled once.
  static constexpr int evenly(int count, int most_rows) {
    const int portions = (count + most_rows - 1) / most_rows, even = count / portions;
    return even * portions == count && (most_rows % 8 != 0 || even % 8 == 0) ? even : most_rows;
  }
  // Runs a portion of a block of `rows` rows that begins at `from`.
  template <int rows, int work, class Body>
  ATTUNE_INLINE void run_in_block(int from, int first, int used, const Body& body) const {
    constexpr int kPortion = evenly(rows, together<8>(rows, work)), kRest = rows % kPortion;
    if (kRest == 0 || first - from < rows - kRest) {
      run_portion<kPortion, work>(first, used, body);
    } else if constexpr (kRest > 0) {
      run_portion<kRest, work>(first, used, body);
    }
  }
  struct Leaving {
    detail::SliceWalk& walk;
    ATTUNE_INLINE ~Leaving() { walk.leave(); }
  };
  template <int count, int work, class Body>
  ATTUNE_INLINE void run_portion(int first, int used, const Body& body) const {
    if (!walk_->has_room(count * work)) return;
    body.template operator()<count>(first);
    walk_->end_portion(first + count, used, count * work);
  }

  detail::SliceWalk* walk_;
};

namespace detail {

// Arguments of a pass in slices must be named objects that outlive it.
template <class Source>
constexpr void check_stays() {
  static_assert(Holds<(std::is_lvalue_reference_v<Source> ||
                       !(OwnsStorage<Source> || std::is_arithmetic_v<std::remove_cvref_t<Source>>))>,
                "attune: a pass in slices reads its data until it ends, and this is a temporary; store it in "
                "a variable");
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
