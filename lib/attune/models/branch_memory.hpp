// The memory of a transformer layer in training. Tapes of its branches are kept from forward to backward,
// recomputed in backward, or packed in between.
//
// Kept: each branch has its tape. The layer's tape also holds the sums s_i and the tapes of norms. Outputs of
// norms are recomputed.
//
// Recomputed: the tape holds only the start of dropout's masks. Backward recomputes the sums from x, then the
// tape of each branch just before its backward. Only one tape exists at a time, as large as the largest of
// the branches', at the cost of one more forward per branch. The output of a norm shares memory with the
// scratch of its branch, if the branch uses one at a time.
//
// Packed: scratch is as if recomputed. The tape of each branch is packed after its forward and unpacked
// before its backward (layers/packed_rows.hpp), and so are the sums and x.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/execution/layer.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/packed_rows.hpp>
#include <attune/models/composition.hpp>

namespace ATTUNE_NAMESPACE::detail {

/// The tapes of branches between forward and backward.
enum class BranchTapes { kKept, kRecomputed, kPacked };

/// Masks of dropout after the branches; nothing without dropout.
template <class Stack>
using BranchMasks = KeptMasks<Stack::kDrops ? Stack::kBranches : 0>;

/// The gradient before a branch's dropout; nothing without dropout, as the sum's gradient is used.
template <class Stack>
using DroppedGradient = std::conditional_t<Stack::kDrops, typename Stack::Tokens, NoGradient>;

// The scratch of a branch, and the gradient of its input, a norm's output. A branch that can recompute its
// tape writes the gradient once its scratch is dead.
template <class Scratch, class Gradient, bool shares_memory>
struct ScratchAndGradient {
  [[no_unique_address]] Scratch scratch;
  [[no_unique_address]] Gradient gradient;
};
template <class Scratch, class Gradient>
struct ScratchAndGradient<Scratch, Gradient, true> {
  union {
    Scratch scratch;
    Gradient gradient;
  };
};

template <class Stack, class Gradients, class Indices = std::make_integer_sequence<int, Stack::kBranches>>
struct BranchBuffers;
/// Tape and scratch of a stack (transformer_layer.hpp) for a backward to `Gradients`.
template <class Stack, class Gradients, int... index>
struct BranchBuffers<Stack, Gradients, std::integer_sequence<int, index...>> {
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
  // The gradient of a branch's input, unless the input is the layer's or is overwritten.
  template <int i>
  using OwnGradient =
      std::conditional_t<(Stack::kNormBefore || i > 0) && !Stack::template kGradientsInPlace<Gradients>,
                         Tokens, NoGradient>;

  // ---- Kept. ----

  struct KeptSums {
    Tokens sums[std::size_t{kSums}];  // s_i, then their gradients; with norms before branches, the last is y
    [[no_unique_address]] Norms norms;
    [[no_unique_address]] BranchMasks<Stack> dropout;
  };
  struct KeptTape : KeptSums, Branch<index>::Member::template In<BranchTape<index>>... {
    static constexpr BranchTapes kBranchTapes = BranchTapes::kKept;

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
    OneOf<ScratchAndGradient<BranchScratch<index>, OwnGradient<index>, Branch<index>::kRecomputesTape>...>
        branches;
    [[no_unique_address]] DroppedGradient<Stack> d_branch;
  };

  // ---- Recomputed. ----

  // The input of a branch, and its gradient.
  template <int i>
  struct NormOutput {
    Tokens normalized;
    [[no_unique_address]] OwnGradient<i> gradient;
  };
  struct NormOutputAndInput : NormOutput<0> {
    Tokens x;
  };
  // Memory of a branch while it runs.
  template <class Tape, class Scratch, class Input, bool shares_memory>
  struct Work {
    [[no_unique_address]] Tape tape;
    union {
      Scratch scratch;
      Input input;
    };
  };
  template <class Tape, class Scratch, class Input>
  struct Work<Tape, Scratch, Input, false> {
    [[no_unique_address]] Tape tape;
    [[no_unique_address]] Scratch scratch;
    Input input;
    Tokens output;  // output of a branch that always writes one
  };
  // A tape of each branch, and the masks of dropout after them.
  template <class... Tapes>
  struct BranchesAndMasks {
    [[no_unique_address]] Members<Tapes...> branches;
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
      if constexpr (kDropsIn<BranchTape<i>>) member<i>(branches).for_each_dropout(visitor);
    }
    template <int i>
    constexpr void visit_attention(const auto& visitor) {
      if constexpr (i < Stack::kLast) visit_branch<i>(visitor);
    }
  };
  struct RecomputedTape : BranchesAndMasks<MasksOf<BranchTape<index>>...> {
    static constexpr BranchTapes kBranchTapes = BranchTapes::kRecomputed;
  };
  template <class... Inputs>
  struct WorkScratch {
    Tokens sums[std::size_t{kSums}];  // s_i, then their gradients
    OneOf<Work<BranchTape<index>, BranchScratch<index>, Inputs, Branch<index>::kRecomputesTape>...> works;
    [[no_unique_address]] DroppedGradient<Stack> d_branch;
  };
  struct RecomputedScratch : WorkScratch<NormOutput<index>...> {
    [[no_unique_address]] Norms norms;
  };

  // ---- Packed. ----

  template <TapePrecision precision>
  struct QuantizedTape : BranchesAndMasks<typename Branch<index>::template QuantizedTapeOf<
                             typename Stack::template BranchGradients<Gradients, index>, precision>...> {
    static constexpr BranchTapes kBranchTapes = BranchTapes::kPacked;
    struct None {};
    using Packed = PackedMatrix<precision, Tokens>;
    Packed sums[std::size_t{kSums}];
    [[no_unique_address]] Norms norms;
    [[no_unique_address]] std::conditional_t<Stack::template kReadsLayerInput<Gradients>, Packed, None> x;
  };
  // x is unpacked beside the output of the norm before the first branch, or in its place if there is none.
  template <int i>
  using PackedInput = std::conditional_t<i == 0 && Stack::kNormBefore, NormOutputAndInput, NormOutput<i>>;
  struct PackedScratch : WorkScratch<PackedInput<index>...> {};
};

/// A tape of branches.
template <class Tape>
concept TapesBranches = requires {
  { Tape::kBranchTapes } -> std::convertible_to<BranchTapes>;
};

/// Access to the memory of a pass with kept tapes.
template <class Stack, class Tape, class Scratch>
struct StoredTapeAccess {
  static constexpr BranchTapes kBranchTapes = BranchTapes::kKept;
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
    return one_of<index>(scratch.branches).scratch;
  }
  template <int index>
  auto& gradient() const {
    return one_of<index>(scratch.branches).gradient;
  }
  /// Called before a branch fills its tape, when its sum is complete, and after its backward.
  template <int>
  ATTUNE_INLINE static void begin(const auto&) {}
  template <int>
  ATTUNE_INLINE static void keep(const auto&) {}
  template <int>
  ATTUNE_INLINE static void end(const auto&) {}
};
/// Access to the memory of a pass with recomputed tapes.
template <class Stack, class Tape, class Scratch>
struct RecomputedTapeAccess {
  static constexpr BranchTapes kBranchTapes = BranchTapes::kRecomputed;
  Tape& tape;
  Scratch& scratch;

  auto& sums() const { return scratch.sums; }
  auto& norms() const { return scratch.norms; }
  template <int index>
  View<typename Stack::Tokens> normalized() const {
    return one_of<index>(scratch.works).input.normalized;
  }
  template <int index>
  auto& gradient() const {
    return one_of<index>(scratch.works).input.gradient;
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
  template <int>
  ATTUNE_INLINE static void keep(const auto&) {}
  template <int index>
  ATTUNE_INLINE void end(const auto& context) const {
    tokens_of(context).stage([&]() ATTUNE_INLINE_LAMBDA {
      auto&& masks = member<index>(tape.branches);
      copy_masks(branch_tape<index>(), masks);
    });
  }
};
/// Access to the memory of a pass with packed tapes.
template <class Stack, class Tape, class Scratch>
struct QuantizedTapeAccess : RecomputedTapeAccess<Stack, Tape, Scratch> {
  static constexpr BranchTapes kBranchTapes = BranchTapes::kPacked;
  using Tokens = typename Stack::Tokens;
  using RecomputedTapeAccess<Stack, Tape, Scratch>::tape;
  using RecomputedTapeAccess<Stack, Tape, Scratch>::scratch;
  static constexpr int kSums = Stack::kNormBefore ? Stack::kLast : Stack::kBranches;

  auto& norms() const { return tape.norms; }
  template <int index>
  ATTUNE_INLINE void keep(const auto& context) const {
    auto&& branch = member<index>(tape.branches);
    copy_tape(Stack::template Branch<index>::context_of_tape(context), branch,
              this->template branch_tape<index>());
    if constexpr (index < kSums) CopyTape::rows(tokens_of(context), tape.sums[index], scratch.sums[index]);
  }
  template <int index>
  ATTUNE_INLINE void unpack_branch(const auto& context) const {
    auto&& branch = member<index>(tape.branches);
    copy_tape(Stack::template Branch<index>::context_of_tape(context), this->template branch_tape<index>(),
              branch);
  }
  ATTUNE_INLINE void unpack_sums(const auto& context) const {
    tokens_of(context).template repeat<kSums>([&](int i) ATTUNE_INLINE_LAMBDA {
      CopyTape::rows(tokens_of(context), scratch.sums[i], tape.sums[i]);
    });
  }
  /// The place of x in backward.
  View<Tokens> input() const {
    auto& places = one_of<0>(scratch.works).input;
    if constexpr (Stack::kNormBefore) {
      return places.x;
    } else {
      return places.normalized;
    }
  }
  ATTUNE_INLINE void pack_input(const auto& context, ConstView<Tokens> x) const {
    if constexpr (!std::is_empty_v<decltype(tape.x)>) CopyTape::rows(tokens_of(context), tape.x, x);
  }
  ATTUNE_INLINE void unpack_input(const auto& context) const {
    const View<Tokens> x = input();
    CopyTape::rows(tokens_of(context), x, tape.x);
  }
};
template <class Stack, class Tape, class Scratch>
ATTUNE_INLINE auto tape_access(Tape& tape, Scratch& scratch) {
  if constexpr (Tape::kBranchTapes == BranchTapes::kKept) {
    return StoredTapeAccess<Stack, Tape, Scratch>{tape, scratch};
  } else if constexpr (Tape::kBranchTapes == BranchTapes::kRecomputed) {
    return RecomputedTapeAccess<Stack, Tape, Scratch>{tape, scratch};
  } else {
    return QuantizedTapeAccess<Stack, Tape, Scratch>{{tape, scratch}};
  }
}

}  // namespace ATTUNE_NAMESPACE::detail
