// Encoder and decoder layers are one residual stack: consecutive branches, each with a normalization before
// it or after its sum.
//
//   norm after:    s_i = x_i + f_i(x_i),          x_(i+1) = norm_i(s_i)
//   norm before:   s_i = x_i + f_i(norm_i(x_i)),  x_(i+1) = s_i
//
// x_0 is the layer's input x, and the last x_i its output y. In training, dropout applies to the output of
// f_i. branches.hpp has the branches, branch_memory.hpp their memory in training.
#pragma once

#include <cstdint>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/core/memory.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/residual.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/models/branch_memory.hpp>
#include <attune/models/branches.hpp>
#include <attune/models/composition.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE {

/// The position of a layer's norms. After each residual sum, y = norm(x + f(x)) (Vaswani et al., 2017;
/// PyTorch's default). Before each branch, y = x + f(norm(x)) (Xiong et al., "On Layer Normalization in the
/// Transformer Architecture", 2020; PyTorch's norm_first).
enum class NormPlacement {
  kAfter = 0,  // after the sum
  kBefore = 1  // before the branch
};

/// Options of a layer besides its parts.
struct BranchOptions {
  NormPlacement norm = NormPlacement::kAfter;  // before the branch, or after the sum
  double dropout = 0;                          // probability that a feature of a branch's output is dropped
                                               // in training
};

namespace detail {

/// norm1, norm2, norm3 of a set.
template <int index>
  requires(index == 0)
ATTUNE_INLINE constexpr auto& norm_of(auto& set) { return set.norm1; }
template <int index>
  requires(index == 1)
ATTUNE_INLINE constexpr auto& norm_of(auto& set) { return set.norm2; }
template <int index>
  requires(index == 2)
ATTUNE_INLINE constexpr auto& norm_of(auto& set) { return set.norm3; }

/// y from x, in inference.
template <NormPlacement placement, class NormLayer, class... Branches>
struct StackInference {
  static constexpr int kLast = static_cast<int>(sizeof...(Branches)) - 1;
  static constexpr bool kNormBefore = placement == NormPlacement::kBefore;
  using Tokens = typename NormLayer::Input;
  /// Whether y may be x. All branches then write to `tokens`, which has their input if norms are before them.
  static constexpr bool kOutputMayBeInput = !kNormBefore || (Branches::kAbilities.output_may_be_input && ...);

  // Otherwise the first branch writes to y. The others write to their own buffer, unless all of them may
  // overwrite their input.
  struct Scratch {
    Tokens tokens;
    [[no_unique_address]] MemberIf<
        !kOutputMayBeInput && (last_true({!Branches::kAbilities.output_may_be_input...}) > 0), Tokens, 21>
        branch;
    OneOf<typename Branches::InferenceScratch...> branches;

    View<Tokens> output() { return existing(branch, tokens); }
  };

  template <int index = 0>
  ATTUNE_INLINE static void run(const auto& parameters, ConstView<Tokens> x, View<Tokens> y, Scratch& scratch,
                                const auto& context) {
    using Branch = typename TypeAt<index, Branches...>::type;
    typename NormLayer::InferenceScratch none;
    ConstView<Tokens> tokens_in = x;
    if constexpr (kNormBefore) {
      forward_in<NormLayer>(tokens_of(context), norm_of<index>(parameters), x, View<Tokens>(scratch.tokens),
                            none);
      tokens_in = scratch.tokens;
    }
    const View<Tokens> output = index == 0 && !kOutputMayBeInput ? y : scratch.output();
    tokens_of(context).inside([&]() ATTUNE_INLINE_LAMBDA {
      Branch::forward(Branch::Member::of(parameters), tokens_in, output, context,
                      one_of<index>(scratch.branches));
    });
    add<Tokens>(tokens_of(context), x, output, y);
    if constexpr (!kNormBefore) {
      forward_in<NormLayer>(tokens_of(context), norm_of<index>(parameters), ConstView<Tokens>(y), y, none);
    }
    if constexpr (index < kLast) run<index + 1>(parameters, y, y, scratch, context);
  }
};

template <class NormLayer, class... Parts>
constexpr bool check_stack() {
  static_assert(check_sequence<Parts...>());
  using Tokens = typename NormLayer::Input;
  static_assert(
      Holds<(requires(const typename NormLayer::Parameters& parameters, ConstView<Tokens> x,
                      const typename NormLayer::Tape& tape,
                      View<Tokens> y) { NormLayer::recompute(parameters, x, tape, y); })>,
      "attune::EncoderLayer, DecoderLayer: the norm needs recompute(parameters, x, tape, y); a Residual "
      "around a norm does not have it");
  return true;
}

/// The context of a stack: of its tokens alone, or also of a memory (models/decoder_layer.hpp).
template <class Call>
concept StackContext = requires(const Call& context) {
  context.tokens;
}
|| AnyContext<Call>;

/// Residual branches of [rows, d_model] tokens: the common base of encoder and decoder layers. A derived
/// layer declares its parameters (a Member per branch, and norm1, norm2, …).
template <BranchOptions options, class NormLayer, class... Branches>
struct ResidualStack {
  using Norm = NormLayer;
  static constexpr int kBranches = static_cast<int>(sizeof...(Branches));
  static constexpr int kLast = kBranches - 1;
  static constexpr bool kNormBefore = options.norm == NormPlacement::kBefore;
  static constexpr int kSums = kNormBefore ? kLast : kBranches;  // besides y
  // Whether a branch's input is a norm's output.
  template <int index>
  static constexpr bool kNormed = kNormBefore || index > 0;
  template <int index>
  using Branch = typename TypeAt<index, Branches...>::type;
  using Tokens = typename NormLayer::Input;
  using Scalar = typename NormLayer::Scalar;
  template <int index>
  using BranchDropout = Dropout<DropoutShape{Tokens::rows, Tokens::cols, options.dropout, 1 + index}, Scalar>;
  static_assert(check_stack<NormLayer, typename Branches::Part..., NormLayer, typename Branch<0>::Part>());

  // ---- Optional members of a layer (execution/layer.hpp). ----

  using Parts = LayerList<typename Branches::Part..., NormLayer>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("ResidualStack", options.norm, options.dropout, kFingerprintOf<typename Branches::Part>...,
                  kFingerprintOf<NormLayer>);
  template <class Gradients, int index>
  using BranchGradients =
      std::remove_cvref_t<decltype(Branch<index>::Member::of(std::declval<Gradients&>()))>;
  // Whether backward of a branch reads its input.
  template <class Gradients, int index>
  static constexpr bool kBranchReads =
      detail::ReadsInput<typename Branch<index>::Part, BranchGradients<Gradients, index>>;
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = kNormBefore || kBranchReads<Gradients, 0>;
  using Inference = StackInference<options.norm, NormLayer, Branches...>;
  static constexpr Abilities kAbilities{
      .mask = MaskUse::kScores,
      .takes_context = true,
      .takes_length = (Branches::kAbilities.takes_length && ... && TakesLength<NormLayer>),
      .output_may_be_input = Inference::kOutputMayBeInput,
      .gradient_may_be_input =
          GradientMayBeInput<std::conditional_t<kNormBefore, NormLayer, typename Branch<0>::Part>>,
      .updates_in_place = kNormBefore && UpdatesInPlace<NormLayer>,
      .lanes = smallest(
          {kLanesOf<NormLayer> == Lanes::kAll ? Lanes::kAll : Lanes::kNone, Branches::kAbilities.lanes...}),
      .additions = kAdditionsOfAll<typename Branches::Part..., NormLayer>};
  // Whether the gradient of a norm's output overwrites that output.
  template <class Gradients>
  static constexpr bool kGradientsInPlace =
      !UpdatesInSet<Gradients> && (GradientMayBeInput<typename Branches::Part> && ...);

  // ---- Memory. ----

  using InferenceScratch = typename Inference::Scratch;
  /// Memory for backward, besides x if the policy stores or recomputes tapes.
  template <class Gradients, class Policy = StoredTapes>
  struct TapeOf : BranchBuffers<ResidualStack, Gradients, Policy>::Tape {};
  template <class Gradients, class Policy = StoredTapes>
  struct ScratchOf : BranchBuffers<ResidualStack, Gradients, Policy>::Scratch {};

  /// Token by token (execution/stream.hpp), causal. Attention to a memory needs remember() first; without it
  /// a step returns kNothingRemembered. A step takes the memory's mask after its scratch. The query index in
  /// a mask is the position, so make a mask for the cache's capacity instead of seq_len.
  template <int tokens, CacheShape cache>
  struct Stream {
    using Memory = detail::Members<typename Branches::template StreamMemory<cache>...>;
    static constexpr std::uint64_t kMaxTokens = smallest({Branches::template kMaxTokens<cache>...});
    template <int... index>
    static StackInference<options.norm, OfLength<NormLayer, tokens>,
                          typename Branches::template Streamed<index, cache, tokens, kMaxTokens>...>
        stack(std::integer_sequence<int, index...>);
    using Stack = decltype(stack(std::make_integer_sequence<int, kBranches>{}));
    static constexpr bool kOutputMayBeInput = Stack::kOutputMayBeInput;
    using Scratch = typename Stack::Scratch;
    // The branch that attends to a memory.
    static constexpr int kCrossAttentionBranch =
        first_true({std::is_same_v<typename Branches::Member, CrossAttentionMember>...});
    static constexpr bool kHasMemory = kCrossAttentionBranch < kBranches;

    /// Returns kOk once remember() has been called.
    static Status ready(const Memory& memory) requires(kHasMemory) {
      return MemoryStream<typename Branch<kCrossAttentionBranch>::Part>::ready(
          member<kCrossAttentionBranch>(memory));
    }
    /// Writes keys and values of a memory, for all steps until the next.
    static void remember(const auto& parameters, const auto& remembered,
                         Memory& memory) requires(kHasMemory) {
      using Attends = Branch<kCrossAttentionBranch>;
      MemoryStream<typename Attends::Part>::remember(Attends::Member::of(parameters), remembered,
                                                     member<kCrossAttentionBranch>(memory));
    }
    template <AttentionMask MemoryMask = NoMask>
      requires(kHasMemory || !kMasks<MemoryMask>)
    static void step(std::uint64_t position, const auto& parameters,
                     ConstView<typename OfTokens<Tokens, tokens>::type> x,
                     View<typename OfTokens<Tokens, tokens>::type> y, Memory& memory, Scratch& scratch,
                     const MemoryMask& memory_mask = {}) {
      Stack::run(parameters, x, y, scratch,
                 StreamContext<Memory, MemoryMask>{position, memory, memory_mask, {}});
    }
  };

  // ---- Passes. ----

  /// Inference: y[seq_len, d_model] of x[seq_len, d_model]; the mask is attention's. `y` may be `x` if
  /// kAbilities allow it.
  template <class Set, StackContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Tokens> x, View<Tokens> y, InferenceScratch& scratch,
                      const Call& context = {}) {
    Inference::run(parameters, x, y, scratch, context);
  }
  /// Training: the same, with dropout; the tape keeps what backward needs. `y` may not overlap `x`.
  template <class Set, TapesBranches AnyTape, class AnyScratch, StackContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Tokens> x, View<Tokens> y, AnyTape& tape,
                      AnyScratch& scratch, const Call& context = {}) {
    const auto pass = pass_of(parameters, x, tape, scratch, context);
    pass.memory.pack_input(x);
    pass.template forward<kBranches>(y);
  }
  /// dx[seq_len, d_model] from dy[seq_len, d_model], overwritten; gradients accumulate. Uses up the tape.
  /// `dx` may be `dy`. Values that a mask hides have no influence.
  template <class Set, TapesBranches AnyTape, class Dx, class Gradients, class AnyScratch,
            StackContext Call = Context<>>
  ATTUNE_INLINE static void backward(const Set& parameters, ConstView<Tokens> x, AnyTape& tape,
                                     ConstView<Tokens> dy, Dx&& dx, Gradients& gradients, AnyScratch& scratch,
                                     const Call& context = {}) {
    auto pass = pass_of(parameters, x, tape, scratch, context);
    using Policy = typename AnyTape::Buffers::Policy;
    if constexpr (Policy::kPacks) {
      pass.memory.unpack_sums();
      pass.x = pass.memory.input();
    } else if constexpr (Policy::kRecomputes) {
      tokens_of(context).inside([&]() ATTUNE_INLINE_LAMBDA {
        pass.template forward<kSums>(pass.memory.template normalized<kLast>());  // y is not read
      });
    }
    pass.template backward_sum<kLast>(dy, detail::sink<Tokens>(dx), gradients);
  }

 private:
  // The index of the norm whose output is a branch's input.
  template <int index>
  static constexpr int kNormOf = kNormBefore ? index : index - 1;

  // A pass in training.
  template <class Set, class Memory>
  struct Pass {
    using Policy = typename Memory::Policy;
    const Set& parameters;
    ConstView<Tokens> x;
    Memory memory;

    ATTUNE_INLINE const auto& context() const { return memory.context; }
    ATTUNE_INLINE const auto& tokens() const { return memory.tokens(); }
    template <int index>
    ATTUNE_INLINE const auto& branch_parameters() const {
      return Branch<index>::Member::of(parameters);
    }

    // The input of the norm before a branch, or its gradient: x_index with norms before branches, otherwise
    // s_(index - 1). `first` is x_0, or its gradient.
    template <int index>
    ATTUNE_INLINE View<Tokens> before_norm(auto) const {
      return memory.sums()[index - 1];
    }
    template <int index>
    ATTUNE_INLINE auto before_norm(auto first) const requires(index == 0) {
      return first;
    }
    template <int norm>
    ATTUNE_INLINE void forward_norm(ConstView<Tokens> tokens_in, View<Tokens> y) const {
      typename NormLayer::Scratch none;
      auto&& tape = memory.norms()[norm];
      forward_in<NormLayer>(tokens(), norm_of<norm>(parameters), tokens_in, y, tape, none);
    }
    // The input of a branch: x, or the output of a norm, computed now.
    template <int index>
    ATTUNE_INLINE ConstView<Tokens> branch_input() const {
      return x;
    }
    template <int index>
    ATTUNE_INLINE ConstView<Tokens> branch_input() const requires(kNormed<index>) {
      const View<Tokens> normalized = memory.template normalized<index>();
      forward_norm<kNormOf<index>>(before_norm<index>(x), normalized);
      return normalized;
    }
    // The same, recomputed from the norm's tape.
    template <int index>
    ATTUNE_INLINE ConstView<Tokens> recomputed_input() const {
      return x;
    }
    template <int index>
    ATTUNE_INLINE ConstView<Tokens> recomputed_input() const requires(kNormed<index>) {
      const auto& norm = norm_of<kNormOf<index>>(parameters);
      const ConstView<Tokens> before = before_norm<index>(x);
      const auto& tape = memory.norms()[kNormOf<index>];
      const View<Tokens> y = memory.template normalized<index>();
      if constexpr (detail::kAbilities<NormLayer>.takes_context) {
        NormLayer::recompute(norm, before, tape, y, tokens().unmasked());
      } else {
        tokens().stage([&]() ATTUNE_INLINE_LAMBDA { NormLayer::recompute(norm, before, tape, y); });
      }
      return y;
    }
    // The place of s_index. With norms before branches, the last is y.
    template <int index>
    ATTUNE_INLINE View<Tokens> sum_at(View<Tokens>) const {
      return memory.sums()[index];
    }
    template <int index>
    ATTUNE_INLINE View<Tokens> sum_at(View<Tokens> y) const requires(kNormBefore&& index == kLast) {
      return y;
    }

    // Computes s_0 to s_(end - 1), and y with norms after sums.
    template <int end>
    ATTUNE_INLINE void forward(View<Tokens> y) const {
      compute_sums<end>(y);
      if constexpr (!kNormBefore) forward_norm<kLast>(memory.sums()[kLast], y);
    }
    template <int end, int index = 0>
    ATTUNE_INLINE void compute_sums(View<Tokens> y) const {
      memory.template begin<index>();
      const View<Tokens> sum = sum_at<index>(y);
      const ConstView<Tokens> tokens_in = branch_input<index>();
      tokens().inside([&]() ATTUNE_INLINE_LAMBDA {
        Branch<index>::forward(branch_parameters<index>(), tokens_in, sum, context(),
                               memory.template branch_tape<index>(), memory.template branch_scratch<index>());
      });
      BranchDropout<index>::apply(sum, member<index>(memory.tape.dropout), sum, tokens());
      // x_index: with norms after sums the branch's input, which its scratch may have overwritten.
      const ConstView<Tokens> other = kNormBefore       ? ConstView<Tokens>(before_norm<index>(x))
                                      : Policy::kStores ? tokens_in
                                                        : recomputed_input<index>();
      add_to<Tokens>(tokens(), other, sum);
      memory.template pack<index>();
      if constexpr (index + 1 < end) compute_sums<end, index + 1>(y);
    }

    // Backward of the branch and norm with number `index`, from d_output, the gradient of their output, down
    // to dx. The sum's other term, x_index, adds its gradient to the branch's.
    template <int index>
    ATTUNE_INLINE void backward_sum(ConstView<Tokens> d_output, auto dx, auto& gradients) const {
      const auto backward_norm = [&](ConstView<Tokens> tokens_in, ConstView<Tokens> d_norm,
                                     auto to) ATTUNE_INLINE_LAMBDA {
        typename NormLayer::Scratch none;
        auto&& tape = memory.norms()[index];
        backward_in<NormLayer>(tokens(), norm_of<index>(parameters), tokens_in, tape, d_norm, to,
                               norm_of<index>(gradients), none);
      };
      const auto continue_with = [&](auto d_input, ConstView<Tokens> d_sum) ATTUNE_INLINE_LAMBDA {
        add_to<Tokens>(tokens(), d_sum, d_input);
        if constexpr (index > 0) backward_sum<index - 1>(d_input, dx, gradients);
      };
      if constexpr (kNormBefore) {
        const auto d_input = before_norm<index>(dx);
        const View<Tokens> d_normed = backward_branch<index>(d_output, NoGradient{}, gradients);
        if constexpr (Policy::kPacks && index == 0 &&
                      !kBranchReads<std::remove_cvref_t<decltype(gradients)>, 0>) {
          memory.unpack_input();
        }
        backward_norm(before_norm<index>(x), d_normed, d_input);
        continue_with(d_input, d_output);
      } else {
        const View<Tokens> sum = memory.sums()[index];  // becomes its gradient
        backward_norm(sum, d_output, sum);
        continue_with(backward_branch<index>(sum, dx, gradients), sum);
      }
    }

    // Returns the place of the gradient of the branch's input: dx for the layer's x.
    template <int index>
    ATTUNE_INLINE auto backward_branch(ConstView<Tokens> d_sum, auto dx, auto& gradients) const {
      using Gradients = std::remove_cvref_t<decltype(gradients)>;
      // With a norm after the last branch, forward has just left that branch's tape.
      if constexpr (Policy::kRecomputes && (kNormBefore || index < kLast)) recompute_tape<index>();
      memory.template unpack_branch<index>();
      const auto d_input = [&] {
        if constexpr (kNormed<index>) {
          return memory.template gradient<index, kGradientsInPlace<Gradients>>();
        } else {
          return dx;
        }
      }();
      const auto tokens_in = [&]() ATTUNE_INLINE_LAMBDA -> ConstView<Tokens> {
        if constexpr (kBranchReads<Gradients, index>) {
          if constexpr (Policy::kPacks && index == 0) memory.unpack_input();
          return recomputed_input<index>();
        } else {
          return x;  // unused
        }
      };
      const ConstView<Tokens> d_branch = before_dropout<index>(d_sum);
      auto& own_gradients = Branch<index>::Member::of(gradients);
      auto& tape = memory.template branch_tape<index>();
      auto& scratch = memory.template branch_scratch<index>();
      tokens().inside([&]() ATTUNE_INLINE_LAMBDA {
        if constexpr (!Policy::kStores && Branch<index>::kAbilities.recomputes_tape) {
          Branch<index>::backward_from(branch_parameters<index>(), tokens_in, tape, d_branch, d_input,
                                       own_gradients, scratch, context());
        } else {
          Branch<index>::backward(branch_parameters<index>(), tokens_in(), tape, d_branch, d_input,
                                  own_gradients, scratch, context());
        }
      });
      memory.template end<index>();
      return d_input;
    }
    template <int index>
    ATTUNE_INLINE void recompute_tape() const {
      auto& tape = memory.template branch_tape<index>();
      auto& scratch = memory.template branch_scratch<index>();
      memory.template begin<index>();
      const ConstView<Tokens> tokens_in = branch_input<index>();
      tokens().inside([&]() ATTUNE_INLINE_LAMBDA {
        if constexpr (Branch<index>::kAbilities.recomputes_tape) {
          Branch<index>::Part::recompute_tape(branch_parameters<index>(), tokens_in, tape, scratch, tokens());
        } else {
          Branch<index>::forward(branch_parameters<index>(), tokens_in, memory.template output<index>(),
                                 context(), tape, scratch);
        }
      });
    }
    // The gradient of a branch's output, from the sum's gradient.
    template <int index>
    ATTUNE_INLINE ConstView<Tokens> before_dropout(ConstView<Tokens> d_sum) const {
      if constexpr (BranchDropout<index>::kDrops) {
        auto& d_branch = memory.scratch.d_branch;
        BranchDropout<index>::backward(member<index>(memory.tape.dropout), d_sum, d_branch, tokens());
        return d_branch;
      } else {
        return d_sum;
      }
    }
  };
  template <class Set, class AnyTape, class AnyScratch, class Call>
  ATTUNE_INLINE static auto pass_of(const Set& parameters, ConstView<Tokens> x, AnyTape& tape,
                                    AnyScratch& scratch, const Call& context) {
    using Memory = BranchAccess<ResidualStack, AnyTape, AnyScratch, Call>;
    return Pass<Set, Memory>{parameters, x, Memory{tape, scratch, context}};
  }
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
