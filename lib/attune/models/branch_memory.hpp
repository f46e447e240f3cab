// The memory of a transformer layer in training. A policy brings the tapes of its branches from forward to
// backward.
//
// Stored: each branch has its tape. The layer's tape also holds the sums s_i and the tapes of norms. Outputs
// of norms are recomputed.
//
// Recomputed: the tape holds only the start of dropout's masks. Backward recomputes the sums from x, then the
// tape of each branch just before its backward. Only one tape exists at a time, as large as the largest of
// the branches', at the cost of one more forward per branch. The output of a norm shares memory with the
// scratch of its branch, if the branch uses one at a time.
//
// Packed: scratch is as if recomputed. The tape of each branch is packed after its forward and unpacked
// before its backward (layers/packed_rows.hpp), and so are the sums and x.
//
// Branches run one after the other, so a union of their memory reaches the bound of the planner
// (core/planner.hpp). Only recomputed tapes of norms are kept longer than they are read.
#pragma once

#include <type_traits>
#include <utility>

#include <attune/core/memory.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/packed_rows.hpp>
#include <attune/models/branches.hpp>
#include <attune/models/composition.hpp>

namespace ATTUNE_NAMESPACE::detail {

// ---- Policies: the tape of a layer and a matrix, between forward and backward. ----

struct UnpackedTapes {
  static constexpr bool kPacks = false;
  ATTUNE_INLINE static void copy(const auto& /*context*/, auto& /*to*/, auto& /*from*/) {}
};
/// As they are.
struct StoredTapes : UnpackedTapes {
  static constexpr bool kStores = true, kRecomputes = false;
  template <class Layer, class Gradients>
  using Tape = detail::TapeOf<Layer, Gradients>;
  template <class Matrix>
  using Rows = Matrix;
};
/// The start of dropout's masks; backward repeats forward.
struct RecomputedTapes : UnpackedTapes {
  static constexpr bool kStores = false, kRecomputes = true;
  template <class Layer, class Gradients>
  using Tape = MasksOf<detail::TapeOf<Layer, Gradients>>;
  struct None {};
  template <class Matrix>
  using Rows = None;
};
/// In 8 or 16 bits.
template <TapePrecision precision>
struct PackedTapes {
  static constexpr bool kStores = false, kRecomputes = false, kPacks = true;
  template <class Layer, class Gradients>
  using Tape = typename QuantizedTapeOf<Layer, Gradients, precision>::type;
  template <class Matrix>
  using Rows = PackedMatrix<precision, Matrix>;
  /// Packs a layer's tape, or unpacks it.
  ATTUNE_INLINE static void copy(const auto& context, auto& to, auto& from) { copy_tape(context, to, from); }
};
/// Whether the tape itself is kept, and not a packed one or the start of dropout's masks.
template <class Policy, class Layer, class Gradients>
concept KeepsTape =
    std::is_same_v<typename Policy::template Tape<Layer, Gradients>, detail::TapeOf<Layer, Gradients>>;
/// Copies the start of dropout's masks, as a stage, unless both tapes are one.
template <class From, class To>
ATTUNE_INLINE void copy_starts(const auto& context, From& from, To& to) {
  context.stage([&]() ATTUNE_INLINE_LAMBDA { copy_masks(from, to); });
}
template <class Tape>
ATTUNE_INLINE void copy_starts(const auto& /*context*/, Tape& /*from*/, Tape& /*to*/) {}

/// The abilities of a layer under a policy.
template <class Layer, class Policy>
inline constexpr Abilities kAbilitiesWith = with(kAbilitiesInContext<Layer>, &Abilities::output_may_be_input,
                                                 OutputMayBeInput<Layer>, &Abilities::gradient_may_be_input,
                                                 GradientMayBeInput<Layer>, &Abilities::updates_in_place,
                                                 Policy::kRecomputes&& UpdatesInPlace<Layer>,
                                                 &Abilities::recomputes_tape, false, &Abilities::lanes,
                                                 Policy::kPacks ? Lanes::kNone : kAbilities<Layer>.lanes);

template <class Stack, class Gradients, class Policy,
          class Indices = std::make_integer_sequence<int, Stack::kBranches>>
struct BranchBuffers;
/// Tape and scratch of a stack (transformer_layer.hpp) for a backward to `Gradients`.
template <class Stack, class Gradients, class TapePolicy, int... index>
struct BranchBuffers<Stack, Gradients, TapePolicy, std::integer_sequence<int, index...>> {
  using Policy = TapePolicy;
  using Tokens = typename Stack::Tokens;
  static constexpr bool kDrops = Stack::template BranchDropout<0>::kDrops;
  using Norms = Copies<typename Stack::Norm::Tape, Stack::kBranches>;
  template <int i>
  using Branch = typename Stack::template Branch<i>;
  template <int i>
  using OwnGradients = typename Stack::template BranchGradients<Gradients, i>;
  template <int i>
  using BranchTape = detail::TapeOf<typename Branch<i>::Part, OwnGradients<i>>;
  template <int i>
  using TapeOfPolicy = typename Policy::template Tape<typename Branch<i>::Part, OwnGradients<i>>;
  template <int i>
  using BranchScratch = typename Branch<i>::template ScratchOf<OwnGradients<i>>;

  // Everything of the tape except the branches' own.
  struct Sums {
    // Of dropout after the branches.
    [[no_unique_address]] TapesOfLayers<typename Stack::template BranchDropout<index>::Tape...> dropout;
    // s_i, then their gradients; with norms before branches, the last is y.
    [[no_unique_address]] Copies<typename Policy::template Rows<Tokens>, Stack::kSums> sums;
    [[no_unique_address]] MemberIf<!Policy::kRecomputes, Norms, 0> norms;
    [[no_unique_address]] MemberIf<Policy::kPacks && Stack::template kReadsInput<Gradients>,
                                   typename Policy::template Rows<Tokens>, 1>
        x;
  };
  struct Tape : Sums, Branch<index>::Member::template In<TapeOfPolicy<index>>... {
    using Buffers = BranchBuffers;

    // Dropout after the branches, then in the network, then in the attentions.
    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires(kDrops ||
                                                                     (DropsIn<TapeOfPolicy<index>> || ...)) {
      detail::for_each_dropout(visitor, this->dropout, Branch<Stack::kLast>::Member::of(*this));
      for_each_index<Stack::kLast>(
          [&]<int i>() { detail::for_each_dropout(visitor, Branch<i>::Member::of(*this)); });
    }
  };

  template <int i>
  static constexpr bool kKeepsTape = KeepsTape<Policy, typename Branch<i>::Part, OwnGradients<i>>;
  template <int i>
  static constexpr bool kNormed = Stack::template kNormed<i>;
  // The input of a branch, unless it is the layer's; and its gradient, unless it overwrites the input.
  template <int i>
  struct Input {
    [[no_unique_address]] MemberIf<!Policy::kStores && (kNormed<i> || Policy::kPacks), Tokens, 2> normalized;
    [[no_unique_address]] std::conditional_t<kNormed<i> && !Stack::template kGradientsInPlace<Gradients>,
                                             Tokens, NoGradient>
        gradient;
    // x is unpacked beside the output of the norm before the first branch, or in its place if there is none.
    [[no_unique_address]] MemberIf<Policy::kPacks && Stack::kNormBefore && i == 0, Tokens, 3> x;
  };
  // A branch that can recompute its tape reads its input before it writes to scratch, and again, as it writes
  // the gradient, once scratch is dead.
  template <class BranchScratch, class BranchInput>
  union Shared {
    BranchScratch scratch;
    BranchInput input;
  };
  template <class BranchScratch, class BranchInput>
  struct Apart {
    [[no_unique_address]] BranchScratch scratch;
    [[no_unique_address]] BranchInput input;
  };
  // Memory of a branch while it runs. The sums of later branches are not in use.
  template <int i>
  struct Work {
    [[no_unique_address]] MemberIf<!Policy::kStores, Copies<Tokens, smaller(i + 1, Stack::kSums)>, 4> sums;
    [[no_unique_address]] MemberIf<!kKeepsTape<i>, BranchTape<i>, 5> tape;
    [[no_unique_address]] MemberIf<Policy::kStores && kNormed<i>, Tokens, 6> normalized;
    [[no_unique_address]] std::conditional_t<Branch<i>::kAbilities.recomputes_tape,
                                             Shared<BranchScratch<i>, Input<i>>,
                                             Apart<BranchScratch<i>, Input<i>>>
        rest;
    // Written again, and not read.
    [[no_unique_address]] MemberIf<Policy::kRecomputes && !Branch<i>::kAbilities.recomputes_tape, Tokens, 7>
        output;
  };
  struct Scratch {
    OneOf<Work<index>...> works;
    // The gradient before a branch's dropout; without dropout, the sum's gradient is used.
    [[no_unique_address]] MemberIf<kDrops, Tokens, 8> d_branch;
    [[no_unique_address]] MemberIf<Policy::kRecomputes, Norms, 9> norms;
  };
};

/// A tape of branches.
template <class Tape>
concept TapesBranches = requires {
  typename Tape::Buffers;
};

/// Access to the memory of a pass, in a context.
template <class Stack, class Tape, class Scratch, class Call>
struct BranchAccess {
  using Buffers = typename Tape::Buffers;
  using Policy = typename Buffers::Policy;
  using Tokens = typename Stack::Tokens;
  Tape& tape;
  Scratch& scratch;
  const Call& context;

  ATTUNE_INLINE const auto& tokens() const { return tokens_of(context); }
  auto& sums() const { return first_if<Policy::kStores>(tape.sums, work<Stack::kLast>().sums); }
  auto& norms() const { return first_if<Policy::kRecomputes>(scratch.norms, tape.norms); }
  template <int index>
  Tokens& normalized() const {
    return first_if<Policy::kStores>(work<index>().normalized, work<index>().rest.input.normalized);
  }
  /// The place of the gradient of a norm's output: that output, or memory of its own.
  template <int index, bool in_place>
  View<Tokens> gradient() const {
    auto& apart = work<index>().rest.input.gradient;
    static_assert(
        Holds<(in_place || kWanted<decltype(apart)>)>,
        "attune::EncoderLayer, DecoderLayer: backward to detail::ParameterUpdates needs a scratch for "
        "them; take detail::ParameterUpdates<…>::Tape and ::Scratch");
    return existing(apart, normalized<index>());
  }
  template <int index>
  auto& branch_tape() const {
    return first_if<Buffers::template kKeepsTape<index>>(kept_tape<index>(), work<index>().tape);
  }
  template <int index>
  auto& branch_scratch() const {
    return work<index>().rest.scratch;
  }
  // The unused output of a branch that runs only to recompute its tape.
  template <int index>
  View<Tokens> output() const {
    return work<index>().output;
  }
  /// Called before a branch fills its tape, and after its backward: copies the start of dropout's masks.
  template <int index>
  ATTUNE_INLINE void begin() const {
    copy_starts(tokens(), kept_tape<index>(), branch_tape<index>());
  }
  template <int index>
  ATTUNE_INLINE void end() const {
    copy_starts(tokens(), branch_tape<index>(), kept_tape<index>());
  }
  /// Called when a branch's sum is complete.
  template <int index>
  ATTUNE_INLINE void pack() const {
    Policy::copy(context_of_tape<index>(), kept_tape<index>(), branch_tape<index>());
    if constexpr (Policy::kPacks && index < Stack::kSums) {
      CopyTape::rows(tokens(), tape.sums[index], sums()[index]);
    }
  }
  template <int index>
  ATTUNE_INLINE void unpack_branch() const {
    Policy::copy(context_of_tape<index>(), branch_tape<index>(), kept_tape<index>());
  }
  ATTUNE_INLINE void unpack_sums() const {
    tokens().template repeat<Stack::kSums>(
        [&](int i) ATTUNE_INLINE_LAMBDA { CopyTape::rows(tokens(), sums()[i], tape.sums[i]); });
  }
  /// The place of x in a backward that unpacks it.
  View<Tokens> input() const {
    auto& places = work<0>().rest.input;
    return first_if<Stack::kNormBefore>(places.x, places.normalized);
  }
  ATTUNE_INLINE void pack_input(ConstView<Tokens> x) const { CopyTape::rows(tokens(), tape.x, x); }
  ATTUNE_INLINE void unpack_input() const {
    const View<Tokens> x = input();
    CopyTape::rows(tokens(), x, tape.x);
  }

 private:
  template <int index>
  auto& work() const {
    return one_of<index>(scratch.works);
  }
  template <int index>
  auto& kept_tape() const {
    return Stack::template Branch<index>::Member::of(tape);
  }
  template <int index>
  ATTUNE_INLINE const auto& context_of_tape() const {
    return Stack::template Branch<index>::context_of_tape(context);
  }
};

}  // namespace ATTUNE_NAMESPACE::detail
