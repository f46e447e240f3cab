// The memory of a transformer layer in training. Tapes of its branches are kept from forward to backward, or
// recomputed in backward.
//
// Kept: each branch has its tape. The layer's tape also holds the sums s_i and the tapes of norms. Outputs of
// norms are recomputed.
//
// Recomputed: the tape holds only the start of dropout's masks. Backward recomputes the sums from x, then the
// tape of each branch just before its backward. Only one tape exists at a time, as large as the largest of
// the branches', at the cost of one more forward per branch. The output of a norm shares memory with the
// scratch of its branch, if the branch uses one at a time.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/execution/layer.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/models/composition.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

/// Masks of dropout after the branches; nothing without dropout.
template <class Stack>
using BranchMasks = KeptMasks<Stack::kDrops ? Stack::kBranches : 0>;

// Members of both kinds of scratch.
template <class Stack, class Gradients>
struct BranchGradientScratch {
  struct None {};
  // The gradient before a branch's dropout; without dropout, the sum's gradient is used.
  [[no_unique_address]] std::conditional_t<Stack::kDrops, typename Stack::Tokens, None> branch;
  // The gradient of a norm's output, unless it overwrites the output.
  [[no_unique_address]] std::conditional_t<Stack::template kGradientsInPlace<Gradients>, NoGradient,
                                           typename Stack::Tokens>
      gradient;
};

template <class Stack, class Gradients, class Indices = std::make_integer_sequence<int, Stack::kBranches>>
struct BranchMemory;
/// Tape and scratch of a stack (transformer_layer.hpp) for a backward to `Gradients`.
template <class Stack, class Gradients, int... index>
struct BranchMemory<Stack, Gradients, std::integer_sequence<int, index...>> {
  using Tokens = typename Stack::Tokens;
  static constexpr int kSums = Stack::kNormBefore ? Stack::kLast : Stack::kBranches;
  using Norms = Copies<typename Stack::Norm::Tape, Stack::kBranches>;
  template <int i>
  using Branch = typename Stack::template Branch<i>;
  template <int i>
  using BranchTape =
      typename Branch<i>::template TapeOf<typename Stack::template BranchGradients<Gradients, i>>;
  template <int i>
  using BranchScratch =
      typename Branch<i>::template ScratchOf<typename Stack::template BranchGradients<Gradients, i>>;
  static constexpr bool kDrops = Stack::kDrops || (kDropsIn<BranchTape<index>> || ...);

  // ---- Kept. ----

  struct KeptSums {
    Tokens sums[std::size_t{kSums}];  // s_i, then their gradients; with norms before branches, the last is y
    [[no_unique_address]] Norms norms;
    [[no_unique_address]] BranchMasks<Stack> dropout;
  };
  struct KeptTape : KeptSums, Branch<index>::Member::template In<BranchTape<index>>... {
    static constexpr bool kRecomputes = false;

    // Dropout after the branches, then in the network, then in the attentions.
    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires(kDrops) {
      detail::for_each_dropout(visitor, this->dropout, Branch<Stack::kLast>::Member::of(*this));
      (visit_attention<index>(visitor), ...);
    }

   private:
    template <int i>
    constexpr void visit_attention(const auto& visitor) {
      if constexpr (i < Stack::kLast) detail::for_each_dropout(visitor, Branch<i>::Member::of(*this));
    }
  };
  struct KeptScratch {
    Tokens normalized;  // a norm's output, then its gradient
    OneOf<BranchScratch<index>...> branches;
    [[no_unique_address]] BranchGradientScratch<Stack, Gradients> gradients;
  };

  // ---- Recomputed. ----

  // Memory of a branch while it runs.
  template <class Tape, class Scratch, bool shares_memory>
  struct Work {
    [[no_unique_address]] Tape tape;
    union {
      Scratch scratch;
      Tokens normalized;
    };
  };
  template <class Tape, class Scratch>
  struct Work<Tape, Scratch, false> {
    [[no_unique_address]] Tape tape;
    [[no_unique_address]] Scratch scratch;
    Tokens normalized;
    Tokens output;  // output of a branch that always writes one
  };
  struct RecomputedTape {
    static constexpr bool kRecomputes = true;
    [[no_unique_address]] Members<MasksOf<BranchTape<index>>...> branches;
    [[no_unique_address]] BranchMasks<Stack> dropout;

    // In the order of a kept tape.
    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires(kDrops) {
      detail::for_each_dropout(visitor, dropout);
      visit_branch<Stack::kLast>(visitor);
      (visit_attention<index>(visitor), ...);
    }

   private:
    template <int i>
    constexpr void visit_branch(const auto& visitor) {
      if constexpr (kDropsIn<MasksOf<BranchTape<i>>>) member<i>(branches).for_each_dropout(visitor);
    }
    template <int i>
    constexpr void visit_attention(const auto& visitor) {
      if constexpr (i < Stack::kLast) visit_branch<i>(visitor);
    }
  };
  struct RecomputedScratch {
    Tokens sums[std::size_t{kSums}];  // s_i, then their gradients
    [[no_unique_address]] Norms norms;
    OneOf<Work<BranchTape<index>, BranchScratch<index>, Branch<index>::kRecomputesTape>...> works;
    [[no_unique_address]] BranchGradientScratch<Stack, Gradients> gradients;
  };
};

/// A tape of branches.
template <class Tape>
concept TapesBranches = requires {
  { Tape::kRecomputes } -> std::convertible_to<bool>;
};

/// Access to the memory of a pass with kept tapes.
template <class Stack, class Tape, class Scratch>
struct KeptRoom {
  static constexpr bool kRecomputes = false;
  Tape& tape;
  Scratch& scratch;

  auto& sums() const { return tape.sums; }
  auto& norms() const { return tape.norms; }
  template <int>
  View<typename Stack::Tokens> normalized() const {
    return scratch.normalized;
  }
  template <int index>
  auto& branch_tape() const {
    return Stack::template Branch<index>::Member::of(tape);
  }
  template <int index>
  auto& branch_scratch() const {
    return one_of<index>(scratch.branches);
  }
  /// Called before a branch fills its tape, and after its backward.
  template <int>
  ATTUNE_INLINE static void begin(const auto&) {}
  template <int>
  ATTUNE_INLINE static void end(const auto&) {}
};
/// Access to the memory of a pass with recomputed tapes.
template <class Stack, class Tape, class Scratch>
struct RecomputedRoom {
  static constexpr bool kRecomputes = true;
  Tape& tape;
  Scratch& scratch;

  auto& sums() const { return scratch.sums; }
  auto& norms() const { return scratch.norms; }
  template <int index>
  View<typename Stack::Tokens> normalized() const {
    return one_of<index>(scratch.works).normalized;
  }
  template <int index>
  auto& branch_tape() const {
    return one_of<index>(scratch.works).tape;
  }
  template <int index>
  auto& branch_scratch() const {
    return one_of<index>(scratch.works).scratch;
  }
  // The unused output of a branch that runs only to recompute its tape.
  template <int index>
  View<typename Stack::Tokens> output() const {
    return one_of<index>(scratch.works).output;
  }
  template <int index>
  ATTUNE_INLINE void begin(const auto& context) const {
    tokens_of(context).stage([&]() ATTUNE_INLINE_LAMBDA {
      auto&& masks = member<index>(tape.branches);
      copy_masks(masks, branch_tape<index>());
    });
  }
  template <int index>
  ATTUNE_INLINE void end(const auto& context) const {
    tokens_of(context).stage([&]() ATTUNE_INLINE_LAMBDA {
      auto&& masks = member<index>(tape.branches);
      copy_masks(branch_tape<index>(), masks);
    });
  }
};
template <class Stack, class Tape, class Scratch>
ATTUNE_INLINE auto room_of(Tape& tape, Scratch& scratch) {
  if constexpr (Tape::kRecomputes) {
    return RecomputedRoom<Stack, Tape, Scratch>{tape, scratch};
  } else {
    return KeptRoom<Stack, Tape, Scratch>{tape, scratch};
  }
}

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
