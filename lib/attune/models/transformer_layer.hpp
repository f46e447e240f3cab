// What encoder and decoder layers have in common: residual branches, one after the other, each with a
// normalisation, before it or after its sum.
//
//   norm after:    s_i = x_i + f_i(x_i),          x_(i+1) = norm_i(s_i)
//   norm before:   s_i = x_i + f_i(norm_i(x_i)),  x_(i+1) = s_i
//
// x_0 is the layer's input x, the last x_i its output y. With dropout, in training, what f_i gives is
// dropped.
#pragma once

#include <attune/attention/multi_head_attention.hpp>
#include <attune/core/gradient_rows.hpp>
#include <attune/kernels/ops/residual.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/models/branches.hpp>
#include <attune/models/composition.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Where a layer normalises: after each residual sum, y = norm(x + f(x)) (Vaswani et al., 2017; PyTorch's
/// default), or before each branch, y = x + f(norm(x)) (Xiong et al., "On Layer Normalization in the
/// Transformer Architecture", 2020; PyTorch's norm_first).
enum class NormPlacement {
  kAfter,  // the sum
  kBefore  // the branch
};

/// What a layer of given parts adds to them.
struct BranchOptions {
  NormPlacement norm = NormPlacement::kAfter;  // before the branch, or after the sum
  double dropout = 0;                          // probability of a feature that a branch gives, in training
};

namespace detail {

// The masks of dropout on a layer's branches; nothing without dropout.
template <bool kDrops, int kBranches>
struct BranchMasks {
  DropoutTape of[std::size_t{kBranches}];

  template <class Visitor>
  constexpr void for_each_dropout(const Visitor& visitor) {
    for (DropoutTape& mask : of) visitor(mask);
  }
};
template <int kBranches>
struct BranchMasks<false, kBranches> {};

/// Residual branches of [rows, d_model] tokens. `Sets` says which member of a set, or of a tape, is of which
/// branch or norm: Sets::branch<i>(set), Sets::norm<i>(set).
template <BranchOptions options, class Sets, class NormLayer, class... Branches>
struct ResidualBranches {
  using Norm = NormLayer;
  using BranchSets = Sets;
  static constexpr int kBranches = static_cast<int>(sizeof...(Branches));
  static constexpr int kLast = kBranches - 1;
  static constexpr bool kNormBefore = options.norm == NormPlacement::kBefore;
  static constexpr bool kDrops = options.dropout > 0;
  template <int index>
  using Branch = typename TypeAt<index, Branches...>::type;
  using Tokens = typename NormLayer::Input;
  using Scalar = typename NormLayer::Scalar;
  static_assert(
      requires(const typename NormLayer::Parameters& parameters, ConstView<Tokens> x,
               const typename NormLayer::Tape& tape,
               View<Tokens> y) { NormLayer::recompute(parameters, x, tape, y); },
      "attune::EncoderLayer, DecoderLayer: the norm has no recompute(parameters, x, tape, y), y once more; a "
      "Residual around a norm is none");
  template <int index>
  using BranchDropout = Dropout<DropoutShape{Tokens::rows, Tokens::cols, options.dropout, 1 + index}, Scalar>;
  struct None {};

  template <class Gradients, int index>
  using BranchGradients =
      std::remove_cvref_t<decltype(Sets::template branch<index>(std::declval<Gradients&>()))>;
  // Whether backward of a branch reads what it was given.
  template <class Gradients, int index>
  static constexpr bool kBranchReads = kReadsInput<Branch<index>, BranchGradients<Gradients, index>>;
  template <class Gradients>
  static constexpr bool kReadsLayerInput = kNormBefore || kBranchReads<Gradients, 0>;
  // Whether the layer's dx may be its x.
  static constexpr bool kGradientMayBeLayerInput =
      kNormBefore ? kGradientMayBeInput<NormLayer> : kGradientMayBeInput<Branch<0>>;

  // What backward needs beside x and what the parts tape: the residual sums that norms were taken of. What
  // norms gave is computed once more. Backward uses the same storage for gradients.
  struct Tape {
    Tokens
        sums[std::size_t{kNormBefore ? kBranches - 1 : kBranches}];  // s_i; with norms before, the last is y
    [[no_unique_address]] Copies<typename NormLayer::Tape, kBranches> norms;
    [[no_unique_address]] BranchMasks<kDrops, kBranches> dropout;
  };

  // Whether a buffer of its own holds the gradient of what a norm gave.
  template <class Gradients>
  static constexpr bool kGradientsInPlace =
      !kUpdatesInSet<Gradients> && (kGradientMayBeInput<Branches> && ...);
  template <class Gradients, class Indices = std::make_integer_sequence<int, kBranches>>
  struct ScratchOf;
  template <class Gradients, int... index>
  struct ScratchOf<Gradients, std::integer_sequence<int, index...>> {
    Tokens normalised;  // what a norm gave, then its gradient
    OneOf<typename Branch<index>::template ScratchOf<BranchGradients<Gradients, index>>...> branches;
    // The gradient of a branch behind its dropout; without dropout it is that of the sum.
    [[no_unique_address]] std::conditional_t<kDrops, Tokens, None> branch;
    [[no_unique_address]] std::conditional_t<kGradientsInPlace<Gradients>, NoGradient, Tokens> gradient;
  };

  // Inference writes the first branch to y, and others, where none of them may write over what it reads, to a
  // buffer of their own.
  template <class Indices>
  struct InferenceIn;
  template <int... index>
  struct InferenceIn<std::integer_sequence<int, index...>> {
    static constexpr bool kInPlace = ((index == 0 || kOutputMayBeInput<Branch<index>>)&&...);
    Tokens tokens;
    [[no_unique_address]] std::conditional_t<kInPlace, None, Tokens> branch;
    OneOf<typename Branch<index>::InferenceScratch...> branches;

    View<Tokens> output() {
      if constexpr (kInPlace) {
        return tokens;
      } else {
        return branch;
      }
    }
  };
  using InferenceScratch = InferenceIn<std::make_integer_sequence<int, kBranches>>;

  // ---- Inference. ----

  template <int index = 0>
  ATTUNE_INLINE static void infer(const auto& parameters, ConstView<Tokens> x, View<Tokens> y,
                                  InferenceScratch& scratch, const auto& context) {
    typename NormLayer::InferenceScratch none;
    ConstView<Tokens> input = x;
    if constexpr (kNormBefore) {
      forward_in<NormLayer>(context.pieces, NoMask{}, Sets::template norm<index>(parameters), x,
                            View<Tokens>(scratch.tokens), none);
      input = scratch.tokens;
    }
    const View<Tokens> output = index == 0 ? y : scratch.output();
    Branch<index>::forward(Sets::template branch<index>(parameters), input, output, context,
                           one_of<index>(scratch.branches));
    if constexpr (index == 0) {
      add_to<Tokens>(context.pieces, x.data, y.data);
    } else {
      add_to<Tokens>(context.pieces, static_cast<const Scalar*>(output.data), y.data);
    }
    if constexpr (!kNormBefore) {
      forward_in<NormLayer>(context.pieces, NoMask{}, Sets::template norm<index>(parameters),
                            ConstView<Tokens>(y), y, none);
    }
    if constexpr (index < kLast) infer<index + 1>(parameters, y, y, scratch, context);
  }

  // ---- Training. ----

  // x_index is `x`, for norms after in scratch.normalised but for the first.
  template <int index = 0>
  ATTUNE_INLINE static void forward(const auto& parameters, ConstView<Tokens> x, View<Tokens> y, auto& tape,
                                    auto& scratch, const auto& context) {
    const auto& norm = Sets::template norm<index>(parameters);
    const View<Tokens> sum = [&]() -> View<Tokens> {
      if constexpr (kNormBefore && index == kLast) {
        return y;
      } else {
        return tape.sums[index];
      }
    }();
    ConstView<Tokens> input = x;
    if constexpr (kNormBefore) {
      forward_norm(context, norm, x, scratch.normalised, tape.norms[index]);
      input = scratch.normalised;
    }
    Branch<index>::forward(Sets::template branch<index>(parameters), input, sum, context,
                           Sets::template branch<index>(tape), one_of<index>(scratch.branches));
    if constexpr (kDrops) BranchDropout<index>::apply(sum, tape.dropout.of[index], sum, context.pieces);
    add_to<Tokens>(context.pieces, x.data, sum.data);
    if constexpr (kNormBefore) {
      if constexpr (index < kLast) forward<index + 1>(parameters, sum, y, tape, scratch, context);
    } else if constexpr (index < kLast) {
      forward_norm(context, norm, sum, scratch.normalised, tape.norms[index]);
      forward<index + 1>(parameters, scratch.normalised, y, tape, scratch, context);
    } else {
      forward_norm(context, norm, sum, y, tape.norms[index]);
    }
  }

  ATTUNE_INLINE static void backward(const auto& parameters, ConstView<Tokens> x, auto& tape,
                                     ConstView<Tokens> dy, auto dx, auto& gradients, auto& scratch,
                                     const auto& context) {
    if constexpr (kNormBefore) {
      backward_before<kLast>(parameters, x, tape, dy, dx, gradients, scratch, context);
    } else {
      backward_after<kLast>(parameters, x, tape, dy, dx, gradients, scratch, context);
    }
  }

  // ---- Parts of either. ----

  ATTUNE_INLINE static void forward_norm(const auto& context, const auto& norm, ConstView<Tokens> x,
                                         View<Tokens> y, auto&& tape) {
    typename NormLayer::Scratch none;
    forward_in<NormLayer>(context.pieces, NoMask{}, norm, x, y, tape, none);
  }
  // y once more.
  ATTUNE_INLINE static void recompute_norm(const auto& context, const auto& norm, ConstView<Tokens> x,
                                           const auto& tape, View<Tokens> y) {
    if constexpr (requires { NormLayer::recompute(norm, x, tape, y, context.pieces); }) {
      NormLayer::recompute(norm, x, tape, y, context.pieces);
    } else {
      context.pieces([&]() ATTUNE_INLINE_LAMBDA { NormLayer::recompute(norm, x, tape, y); });
    }
  }

  // The gradient of what a branch gave from that of the sum.
  template <int index>
  ATTUNE_INLINE static ConstView<Tokens> behind_dropout(ConstView<Tokens> d_sum, [[maybe_unused]] auto& tape,
                                                        [[maybe_unused]] auto& scratch,
                                                        [[maybe_unused]] const auto& context) {
    if constexpr (kDrops) {
      BranchDropout<index>::backward(tape.dropout.of[index], d_sum, scratch.branch, context.pieces);
      return scratch.branch;
    } else {
      return d_sum;
    }
  }

 private:
  // d_sum is dL/ds_index. The sum's other term, x_index, adds it to what comes through norm and branch.
  template <int index>
  ATTUNE_INLINE static void backward_before(const auto& parameters, ConstView<Tokens> x, auto& tape,
                                            ConstView<Tokens> d_sum, auto dx, auto& gradients, auto& scratch,
                                            const auto& context) {
    const auto& norm = Sets::template norm<index>(parameters);
    auto& norm_gradients = Sets::template norm<index>(gradients);
    typename NormLayer::Scratch none;
    const ConstView<Tokens> input = [&]() -> ConstView<Tokens> {
      if constexpr (index == 0) {
        return x;
      } else {
        return tape.sums[index - 1];
      }
    }();
    const View<Tokens> d_normalised =
        backward_branch<index>(parameters, norm, input, tape, d_sum, gradients, scratch, context);
    const auto d_input = [&] {
      if constexpr (index == 0) {
        return dx;
      } else {
        return View<Tokens>(tape.sums[index - 1]);
      }
    }();
    backward_in<NormLayer>(context.pieces, context.mask, norm, input, tape.norms[index],
                           ConstView<Tokens>(d_normalised), d_input, norm_gradients, none);
    if constexpr (index > 0 || kAsked<decltype(dx)>) add_to<Tokens>(context.pieces, d_sum.data, d_input.data);
    if constexpr (index > 0) {
      backward_before<index - 1>(parameters, x, tape, d_input, dx, gradients, scratch, context);
    }
  }

  // d_output is dL/dx_(index+1), behind the norm.
  template <int index>
  ATTUNE_INLINE static void backward_after(const auto& parameters, ConstView<Tokens> x, auto& tape,
                                           ConstView<Tokens> d_output, auto dx, auto& gradients,
                                           auto& scratch, const auto& context) {
    typename NormLayer::Scratch none;
    const View<Tokens> sum = tape.sums[index];  // becomes its gradient
    backward_in<NormLayer>(context.pieces, context.mask, Sets::template norm<index>(parameters),
                           ConstView<Tokens>(sum), tape.norms[index], d_output, sum,
                           Sets::template norm<index>(gradients), none);
    if constexpr (index > 0) {
      const View<Tokens> d_input =
          backward_branch<index>(parameters, Sets::template norm<index - 1>(parameters), tape.sums[index - 1],
                                 tape, sum, gradients, scratch, context);
      add_to<Tokens>(context.pieces, static_cast<const Scalar*>(sum.data), d_input.data);
      backward_after<index - 1>(parameters, x, tape, d_input, dx, gradients, scratch, context);
    } else {
      Branch<0>::backward(Sets::template branch<0>(parameters), x, Sets::template branch<0>(tape),
                          behind_dropout<0>(sum, tape, scratch, context), dx,
                          Sets::template branch<0>(gradients), one_of<0>(scratch.branches), context);
      if constexpr (kAsked<decltype(dx)>) {
        add_to<Tokens>(context.pieces, static_cast<const Scalar*>(sum.data), dx.data);
      }
    }
  }

  // Backward of a branch whose input is norm(before), computed once more where it is read. Returns the
  // gradient of that input.
  template <int index>
  ATTUNE_INLINE static View<Tokens> backward_branch(const auto& parameters, const auto& norm,
                                                    ConstView<Tokens> before, auto& tape,
                                                    ConstView<Tokens> d_sum, auto& gradients, auto& scratch,
                                                    const auto& context) {
    constexpr int kNorm = kNormBefore ? index : index - 1;
    if constexpr (kBranchReads<std::remove_cvref_t<decltype(gradients)>, index>) {
      recompute_norm(context, norm, before, tape.norms[kNorm], scratch.normalised);
    }
    const View<Tokens> d_input = [&]() -> View<Tokens> {
      if constexpr (kGradientsInPlace<std::remove_cvref_t<decltype(gradients)>>) {
        return scratch.normalised;
      } else {
        static_assert(kAsked<decltype(scratch.gradient)>,
                      "attune::EncoderLayer, DecoderLayer: backward to ParameterUpdates needs a scratch for "
                      "them; take ParameterUpdates<…>::Tape and ::Scratch");
        return scratch.gradient;
      }
    }();
    Branch<index>::backward(
        Sets::template branch<index>(parameters), ConstView<Tokens>(scratch.normalised),
        Sets::template branch<index>(tape), behind_dropout<index>(d_sum, tape, scratch, context), d_input,
        Sets::template branch<index>(gradients), one_of<index>(scratch.branches), context);
    return d_input;
  }
};

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
