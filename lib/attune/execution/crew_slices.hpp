// One sequence on all members of a crew (crew.hpp), which share the slices of its layers (slices.hpp).
//
//   static attune::TwoCores<SecondCore> cores;
//   static attune::CrewPass<decltype(cores)> pass;
//   static EncoderLayer::InferenceScratch scratch[2];
//   pass.run(cores, scratch, [&](const auto& slices) {
//     EncoderLayer::forward(parameters, x, y, scratch[0], Context(CausalMask{}, slices));
//   });
//
// Every member goes through the same sequence of slices. The rows or elements of a slice are divided into one
// share per member; small slices have fewer shares, or one. A share begins once all slices before it are
// done. The bits depend neither on the member of a share nor on the number of shares.
//
// All members fill one tape and one scratch. Data for more than one row (own()) goes to the same place in the
// member's own scratch.
#pragma once

#include <cstddef>
#include <cstdint>

#include <attune/core/status.hpp>
#include <attune/execution/crew.hpp>
#include <attune/execution/slices.hpp>
#include <attune/kernels/algorithm.hpp>

namespace ATTUNE_NAMESPACE {

/// The progress of a member in a pass.
struct CrewWalk {
  /// At the first slice. scratch[0] is common to all members.
  template <class Scratch>
  CrewWalk(int of_member, Scratch* scratch)
      : member(of_member),
        to_own(static_cast<std::ptrdiff_t>(reinterpret_cast<std::uintptr_t>(scratch + of_member) -
                                           reinterpret_cast<std::uintptr_t>(scratch))) {}

  int member;             // its number
  std::ptrdiff_t to_own;  // from the common scratch to the member's, in bytes
  int slices = 0;         // slices passed
  int shares = 0;         // shares in them
  bool alone = false;     // whether other threads missed the last slice (host::SharedPass)
};

/// The slices of a sequence, for one of its members. A Pass is a CrewPass, or host::SharedPass.
template <class Pass>
class CrewSlices : public detail::WholeSequence {
 public:
  /// Layers copy this object; all copies refer to one walk.
  CrewSlices(Pass& pass, CrewWalk& walk) : CrewSlices(pass, walk, false) {}

  /// The position of a pointer into the common scratch, in the member's own scratch.
  template <class Scalar>
  Scalar* own(Scalar* scratch) const {
    return reinterpret_cast<Scalar*>(reinterpret_cast<std::uintptr_t>(scratch) +
                                     static_cast<std::uintptr_t>(walk_->to_own));
  }

  /// The same, if the rows and elements of a slice are one share.
  [[nodiscard]] CrewSlices in_order() const { return {*pass_, *walk_, true}; }
  /// The same, if they are several.
  [[nodiscard]] CrewSlices in_any_order() const { return {*pass_, *walk_, false}; }

  /// Runs a body as one stage, on one member.
  void stage(auto&& body) const {
    pass_->compute(*walk_, 1, [&](int) { body(); });
  }
  /// The same for a body with a result; all members get it.
  Status answer(auto&& body) const {
    pass_->compute(*walk_, 1, [&](int) {
      const Status status = body();
      if (status != Status::kOk) pass_->refuse(status);
    });
    pass_->wait_for(*walk_);
    return pass_->refused();
  }
  /// At least the first `used` rows, and the rest of a block.
  template <int most, int at_once, int work, class Body>
  void rows(int used, Body&& body) const {
    constexpr int kBlock = detail::smaller(block_of(most), at_once), kRest = most % kBlock;
    constexpr int kMany = detail::larger(kBlock, detail::smaller(most / 2, at_once) / kBlock * kBlock);
    const int blocks = (used + kBlock - 1) / kBlock;
    const int shares = shares_of(std::int64_t{work} * used, blocks);
    pass_->compute(*walk_, shares, [&](int share) {
      int first = part(blocks, share, shares) * kBlock;
      const int end = part(blocks, share + 1, shares) * kBlock, whole = detail::smaller(end, most - kRest);
      if constexpr (kMany > kBlock) {
        for (; first + kMany <= whole; first += kMany) body.template operator()<kMany>(first);
      }
      for (; first < whole; first += kBlock) body.template operator()<kBlock>(first);
      if constexpr (kRest > 0) {
        if (first < end) body.template operator()<kRest>(first);
      }
    });
  }
  template <int most, int work, class Body>
  void elements(int used, Body&& body) const {
    constexpr int kBlock = Pass::kElements;
    const int blocks = (used + kBlock - 1) / kBlock;
    const int shares = shares_of(std::int64_t{work} * used, blocks);
    pass_->compute(*walk_, shares, [&](int share) {
      const int first = part(blocks, share, shares) * kBlock;
      body(first, detail::smaller(part(blocks, share + 1, shares) * kBlock, used) - first);
    });
  }

 private:
  CrewSlices(Pass& pass, CrewWalk& walk, bool in_order) : pass_(&pass), walk_(&walk), in_order_(in_order) {}

  [[nodiscard]] int shares_of(std::int64_t work, int most) const {
    return in_order_ ? 1 : pass_->shares_of(work, most);
  }
  // Rows computed together: a sixteenth of `rows`, which balances a few members, but at least a register
  // tile.
  static constexpr int block_of(int rows) {
    return detail::smaller(rows, detail::larger(1, (rows + 63) / 64) * 4);
  }
  // The start of part `index` of `parts`: count · index / parts, without a longer product.
  static int part(int count, int index, int parts) {
    return count / parts * index + count % parts * index / parts;
  }
  Pass* pass_;
  CrewWalk* walk_;
  bool in_order_;
};

/// State shared by the members of a pass. Each member takes its own shares and waits for the others.
template <detail::CheckedCrew Members>
class CrewPass {
 public:
  /// The least work of a share (slices.hpp). Less does not pay for waiting for another core.
  static constexpr int kWorkOfShare = 64;
  static constexpr int kElements = 8;   // whole portions of the unrolled loops of a Cortex-M
  using Slices = CrewSlices<CrewPass>;  // of one member

  /// Calls forward(slices) on every member. Returns when all slices are done: Status::kOk, or the error that
  /// ended them early. `forward` fills scratch[0]; scratch[i] belongs to member i.
  template <class Scratch, class Forward>
  Status run(Members& crew, Scratch* scratch, const Forward& forward) {
    for (auto& flag : passed_) flag.reset();
    refuse(Status::kOk);
    crew.for_each(kMembers, [&](int, int member) {
      CrewWalk walk(member, scratch);
      forward(Slices(*this, walk));
    });
    return refused();
  }

 private:
  friend Slices;
  static constexpr int kMembers = Members::kMembers;

  // The error that ended the pass early; otherwise kOk.
  [[nodiscard]] Status refused() const { return static_cast<Status>(refused_.load()); }
  void refuse(Status status) { refused_.store(static_cast<std::uint32_t>(status)); }
  [[nodiscard]] static int shares_of(std::int64_t work, int most) {
    return work < 2 * kWorkOfShare ? 1 : detail::smaller(most, kMembers);
  }
  // Calls body(share) for the member's share, once all other members have passed all earlier slices.
  void compute(CrewWalk& walk, int shares, const auto& body) {
    if (walk.member < shares) {
      wait_for_others(walk);
      body(walk.member);
    }
    pass_slice(walk);
  }
  // These two are not inlined: a model has dozens of slices.
  [[gnu::noinline]] void pass_slice(CrewWalk& walk) {
    passed_[walk.member].publish(static_cast<std::uint32_t>(++walk.slices));
  }
  // Returns when the last slice, of one share, is done.
  void wait_for(const CrewWalk& walk) {
    if (walk.member != 0) (void)passed_[0].wait_for(static_cast<std::uint32_t>(walk.slices));
  }
  [[gnu::noinline]] void wait_for_others(const CrewWalk& walk) {
    for (int other = 0; other < kMembers; ++other) {
      if (other != walk.member) (void)passed_[other].wait_for(static_cast<std::uint32_t>(walk.slices));
    }
  }

  typename Members::Flag passed_[std::size_t{kMembers}];  // slices that a member has passed
  detail::SharedWord refused_;                            // a Status
};

}  // namespace ATTUNE_NAMESPACE
