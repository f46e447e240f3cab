// Residual branches (transformer_layer.hpp) of which nothing is taped: backward has x, computes the sums
// s_0 … once more, then each branch's tape when it comes to that branch. So there is one tape at a time, the
// largest of the branches', and a branch is run forward once more than where its layer is taped as a whole.
//
// What a norm gave stands in the scratch of its branch, where the branch has use for either at a time: it is
// there when the branch begins, and is computed once more when the branch asks for it.
#pragma once

#include <attune/models/transformer_layer.hpp>

namespace attune::inline ATTUNE_ARITHMETIC::detail {

/// A layer of residual branches, as `Layer::Branches` says them, without a tape.
template <class Layer>
struct RecomputedBranches : Layer {
  using Branches = typename Layer::Branches;
  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  using Tokens = typename Branches::Tokens;
  using Norm = typename Branches::Norm;
  using Parameters = typename Layer::Parameters;
  using InferenceScratch = typename Layer::InferenceScratch;
  template <class Gradients>
  static constexpr bool kReadsInput = true;

 private:
  static constexpr int kBranches = Branches::kBranches, kLast = kBranches - 1;
  static constexpr bool kNormBefore = Branches::kNormBefore;
  using Sets = typename Branches::BranchSets;
  template <int index>
  using Branch = typename Branches::template Branch<index>;
  template <class Gradients, int index>
  using TapeOfBranch =
      typename Branch<index>::template TapeOf<typename Branches::template BranchGradients<Gradients, index>>;
  template <class Gradients, int index>
  using ScratchOfBranch = typename Branch<index>::template ScratchOf<
      typename Branches::template BranchGradients<Gradients, index>>;

  // What a branch takes while it runs.
  template <class Tape, class Scratch, bool kTogether>
  struct Work {
    [[no_unique_address]] Tape tape;
    union {
      Scratch scratch;
      Tokens normalised;
    };
  };
  template <class Tape, class Scratch>
  struct Work<Tape, Scratch, false> {
    [[no_unique_address]] Tape tape;
    [[no_unique_address]] Scratch scratch;
    Tokens normalised;
    Tokens output;  // of a branch that cannot leave it out
  };
  template <class Gradients, class Indices>
  struct Parts;
  template <class Gradients, int... index>
  struct Parts<Gradients, std::integer_sequence<int, index...>> {
    using Masks = Members<MasksOf<TapeOfBranch<Gradients, index>>...>;
    using Works = OneOf<
        Work<TapeOfBranch<Gradients, index>, ScratchOfBranch<Gradients, index>, Branch<index>::kRetapes>...>;
  };
  template <class Gradients>
  using PartsOf = Parts<Gradients, std::make_integer_sequence<int, kBranches>>;

 public:
  /// Where the masks of dropout start.
  template <class Gradients>
  struct TapeOf {
    [[no_unique_address]] typename PartsOf<Gradients>::Masks branches;
    [[no_unique_address]] BranchMasks<Branches::kDrops, kBranches> dropout;

    // In the order of the layer's tape.
    template <class Visitor>
    constexpr void for_each_dropout(
        const Visitor& visitor) requires kDropsIn<attune::detail::TapeOf<Layer, Gradients>> {
      if constexpr (Branches::kDrops) dropout.for_each_dropout(visitor);
      visit_from<kLast>(visitor);
    }

   private:
    template <int index, class Visitor>
    constexpr void visit_from(const Visitor& visitor) {
      if constexpr (kDropsIn<MasksOf<TapeOfBranch<Gradients, index>>>) {
        member<index>(branches).for_each_dropout(visitor);
      }
      if constexpr (index > 0) visit_from<index - 1>(visitor);
    }
  };
  using Tape = TapeOf<Parameters>;
  template <class Gradients>
  struct ScratchOf {
    Tokens sums[std::size_t{kNormBefore ? kLast : kBranches}];  // s_i, then their gradients
    [[no_unique_address]] Copies<typename Norm::Tape, kBranches> norms;
    typename PartsOf<Gradients>::Works works;
    [[no_unique_address]] std::conditional_t<Branches::kDrops, Tokens, typename Branches::None> branch;
    [[no_unique_address]] std::conditional_t<Branches::template kGradientsInPlace<Gradients>, NoGradient,
                                             Tokens>
        gradient;
  };
  using Scratch = ScratchOf<Parameters>;

  /// Inference: the layer's.
  template <class Set = Parameters, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch& scratch,
                      const Mask& mask = {}, const Pieces& pieces = {}) {
    Layer::forward(parameters, x, y, scratch, mask, pieces);
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, class Kept, AttentionMask Mask = NoMask, AnyPieces Pieces = InOneGo>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, TapeOf<Kept>& tape,
                      ScratchOf<Kept>& scratch, const Mask& mask = {}, const Pieces& pieces = {}) {
    const typename Layer::template Context<Mask, Pieces> context{mask, pieces};
    compute_sums<kBranches>(parameters, x, y, tape, scratch, context);
    if constexpr (!kNormBefore) {
      Branches::forward_norm(context, Sets::template norm<kLast>(parameters), scratch.sums[kLast], y,
                             scratch.norms[kLast]);
    }
  }
  /// dx[rows, d_model] from dy[rows, d_model], overwritten; gradients accumulate. x, parameters and mask are
  /// forward's. `dx` may be `dy`, or, but not with ParameterUpdates, `x` where it may be the layer's.
  template <class Set = Parameters, class Kept, class Dx, class Gradients, AttentionMask Mask = NoMask,
            AnyPieces Pieces = InOneGo>
  static void backward(const Set& parameters, ConstView<Input> x, TapeOf<Kept>& tape, ConstView<Output> dy,
                       Dx&& dx, Gradients& gradients, ScratchOf<Kept>& scratch, const Mask& mask = {},
                       const Pieces& pieces = {}) {
    const typename Layer::template Context<Mask, Pieces> context{mask, pieces};
    const auto to = sink<Input>(dx);
    if constexpr (kNormBefore) {
      compute_sums<kLast>(parameters, x, NoGradient{}, tape, scratch, context);
    } else {
      compute_sums<kBranches>(parameters, x, NoGradient{}, tape, scratch, context);
      const View<Tokens> nobody_asks = one_of<kLast>(scratch.works).normalised;
      Branches::forward_norm(context, Sets::template norm<kLast>(parameters), scratch.sums[kLast],
                             nobody_asks, scratch.norms[kLast]);
    }
    backward_sum<kLast>(parameters, x, tape, dy, to, gradients, scratch, context);
  }

 private:
  // x_index: the layer's x, a sum, or what a norm gave.
  template <int index>
  static constexpr bool kNormed = kNormBefore || index > 0;  // whether a branch's input is what a norm gave
  static constexpr int norm_before(int index) { return kNormBefore ? index : index - 1; }
  template <int index>
  static ConstView<Tokens> input_of_norm(ConstView<Tokens> x, auto& scratch) {
    if constexpr (kNormBefore && index == 0) {
      return x;
    } else {
      return scratch.sums[index - 1];
    }
  }
  template <int index>
  ATTUNE_INLINE static ConstView<Tokens> input_of_branch(const auto& parameters, ConstView<Tokens> x,
                                                         auto& scratch, const auto& context) {
    if constexpr (kNormed<index>) {
      constexpr int kNorm = norm_before(index);
      const View<Tokens> normalised = one_of<index>(scratch.works).normalised;
      Branches::forward_norm(context, Sets::template norm<kNorm>(parameters),
                             input_of_norm<index>(x, scratch), normalised, scratch.norms[kNorm]);
      return normalised;
    } else {
      return x;
    }
  }
  template <int index>
  ATTUNE_INLINE static ConstView<Tokens> input_once_more(const auto& parameters, ConstView<Tokens> x,
                                                         auto& scratch, const auto& context) {
    if constexpr (kNormed<index>) {
      constexpr int kNorm = norm_before(index);
      const View<Tokens> normalised = one_of<index>(scratch.works).normalised;
      Branches::recompute_norm(context, Sets::template norm<kNorm>(parameters),
                               input_of_norm<index>(x, scratch), scratch.norms[kNorm], normalised);
      return normalised;
    } else {
      return x;
    }
  }
  template <int index>
  ATTUNE_INLINE static auto& begin_branch(auto& tape, auto& scratch, const auto& context) {
    auto& work = one_of<index>(scratch.works);
    context.pieces([&]() ATTUNE_INLINE_LAMBDA {
      auto&& masks = member<index>(tape.branches);
      copy_masks(masks, work.tape);
    });
    return work;
  }

  // s_index and those behind it, up to `end`.
  template <int end, int index = 0>
  ATTUNE_INLINE static void compute_sums(const auto& parameters, ConstView<Tokens> x, auto y, auto& tape,
                                         auto& scratch, const auto& context) {
    auto& work = begin_branch<index>(tape, scratch, context);
    const View<Tokens> sum = [&]() -> View<Tokens> {
      if constexpr (kNormBefore && index == kLast) {
        return y;
      } else {
        return scratch.sums[index];
      }
    }();
    Branch<index>::forward(Sets::template branch<index>(parameters),
                           input_of_branch<index>(parameters, x, scratch, context), sum, context, work.tape,
                           work.scratch);
    if constexpr (Branches::kDrops) {
      Branches::template BranchDropout<index>::apply(sum, tape.dropout.of[index], sum, context.pieces);
    }
    const ConstView<Tokens> other = [&]() -> ConstView<Tokens> {
      if constexpr (kNormBefore) {
        return input_of_norm<index>(x, scratch);
      } else {
        return input_once_more<index>(parameters, x, scratch, context);
      }
    }();
    add_to<Tokens>(context.pieces, other.data, sum.data);
    if constexpr (index + 1 < end) compute_sums<end, index + 1>(parameters, x, y, tape, scratch, context);
  }

  // From d_output, the gradient of what branch and norm number `index` gave, to dx. A sum's other term,
  // x_index, adds its gradient to what comes through the branch.
  template <int index>
  ATTUNE_INLINE static void backward_sum(const auto& parameters, ConstView<Tokens> x, auto& tape,
                                         ConstView<Tokens> d_output, auto dx, auto& gradients, auto& scratch,
                                         const auto& context) {
    const auto backward_norm = [&](ConstView<Tokens> input, ConstView<Tokens> d_norm, auto to) {
      typename Norm::Scratch none;
      backward_in<Norm>(context.pieces, context.mask, Sets::template norm<index>(parameters), input,
                        scratch.norms[index], d_norm, to, Sets::template norm<index>(gradients), none);
    };
    const auto d_input = [&] {
      if constexpr (index == 0) {
        return dx;
      } else {
        return View<Tokens>(scratch.sums[index - 1]);
      }
    }();
    if constexpr (kNormBefore) {
      const View<Tokens> d_normed =
          backward_branch<index>(parameters, x, tape, d_output, NoGradient{}, gradients, scratch, context);
      backward_norm(input_of_norm<index>(x, scratch), d_normed, d_input);
      if constexpr (kAsked<decltype(d_input)>) add_to<Tokens>(context.pieces, d_output.data, d_input.data);
      if constexpr (index > 0) {
        backward_sum<index - 1>(parameters, x, tape, d_input, dx, gradients, scratch, context);
      }
    } else {
      const View<Tokens> sum = scratch.sums[index];  // becomes its gradient
      backward_norm(sum, d_output, sum);
      const auto d_branch =
          backward_branch<index>(parameters, x, tape, sum, d_input, gradients, scratch, context);
      if constexpr (kAsked<decltype(d_branch)>)
        add_to<Tokens>(context.pieces, static_cast<const Scalar*>(sum.data), d_branch.data);
      if constexpr (index > 0) {
        backward_sum<index - 1>(parameters, x, tape, d_branch, dx, gradients, scratch, context);
      }
    }
  }

  // Returns where the gradient of the branch's input is: of the layer's x in dx, else where the norm's output
  // was.
  template <int index>
  ATTUNE_INLINE static auto backward_branch(const auto& parameters, ConstView<Tokens> x, auto& tape,
                                            ConstView<Tokens> d_sum, auto dx, auto& gradients, auto& scratch,
                                            const auto& context) {
    using Gradients = std::remove_cvref_t<decltype(gradients)>;
    const auto& own = Sets::template branch<index>(parameters);
    auto&& of_branch = Sets::template branch<index>(gradients);
    auto& work = one_of<index>(scratch.works);
    if constexpr (kNormBefore || index < kLast) {  // else forward has just left it
      begin_branch<index>(tape, scratch, context);
      const auto input = input_of_branch<index>(parameters, x, scratch, context);
      if constexpr (Branch<index>::kRetapes) {
        Branch<index>::retape(own, input, work.tape, work.scratch, context.mask, context.pieces);
      } else {
        Branch<index>::forward(own, input, View<Tokens>(work.output), context, work.tape, work.scratch);
      }
    }
    const auto d_input = [&] {
      if constexpr (!kNormed<index>) {
        return dx;
      } else if constexpr (Branches::template kGradientsInPlace<Gradients>) {
        return View<Tokens>(work.normalised);
      } else {
        return View<Tokens>(scratch.gradient);
      }
    }();
    const auto dy = Branches::template behind_dropout<index>(d_sum, tape, scratch, context);
    const auto input = [&]() ATTUNE_INLINE_LAMBDA -> ConstView<Tokens> {
      if constexpr (!Branches::template kBranchReads<Gradients, index>) {
        return x;  // whatever it is
      } else {
        return input_once_more<index>(parameters, x, scratch, context);
      }
    };
    if constexpr (Branch<index>::kRetapes) {
      Branch<index>::backward_from(own, input, work.tape, dy, d_input, of_branch, work.scratch, context.mask,
                                   context.pieces);
    } else {
      Branch<index>::backward(own, input(), work.tape, dy, d_input, of_branch, work.scratch, context);
    }
    context.pieces([&]() ATTUNE_INLINE_LAMBDA {
      auto&& masks = member<index>(tape.branches);
      copy_masks(work.tape, masks);
    });
    return d_input;
  }
};

}  // namespace attune::inline ATTUNE_ARITHMETIC::detail
