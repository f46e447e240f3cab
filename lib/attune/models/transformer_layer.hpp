// What encoder and decoder layers have in common.
#pragma once

#include <attune/layers/dropout.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/kernels/residual.hpp>
#include <attune/layers/layer_norm.hpp>
#include <attune/attention/multi_head_attention.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

/// Where a layer normalises: after each residual sum, y = norm(x + f(x)) (Vaswani et al., 2017; PyTorch's
/// default), or before each branch, y = x + f(norm(x)) (Xiong et al., "On Layer Normalization in the
/// Transformer Architecture", 2020; PyTorch's norm_first).
enum class NormPlacement { kAfter, kBefore };

namespace detail {

// The masks on a layer's branches; nothing without dropout.
template <bool kDrops, int kBranches>
struct BranchMasks {
  DropoutTape of[kBranches];

  template <class Visitor>
  constexpr void for_each_dropout(const Visitor& visitor) {
    for (DropoutTape& mask : of) visitor(mask);
  }
};
template <int kBranches>
struct BranchMasks<false, kBranches> {};

// Dropout on the branches of a layer: what is between a branch and its residual sum.
template <DropoutShape shape, class Scalar, int kBranches>
struct Branches {
  template <int kBranch>
  using DropoutOf = Dropout<DropoutShape{shape.rows, shape.d_model, shape.probability, 1 + kBranch}, Scalar>;
  static constexpr bool kDrops = shape.probability > 0;
  using Tokens = Tensor<Scalar, shape.rows, shape.d_model>;
  using View = MatrixView<Scalar, shape.rows, shape.d_model>;
  using ConstView = MatrixView<const Scalar, shape.rows, shape.d_model>;
  using Tape = BranchMasks<kDrops, kBranches>;
  struct None {};
  // The gradient of a branch behind its dropout; without dropout it is that of the sum.
  using Scratch = std::conditional_t<kDrops, Tokens, None>;

  // branch ← x + dropout(branch).
  template <int kBranch>
  static void add(const Scalar* x, Scalar* branch, [[maybe_unused]] const Tape& tape) {
    if constexpr (kDrops) {
      DropoutOf<kBranch>::apply(View(branch), tape.of[kBranch], View(branch));
    }
    kernels::add_to(Tokens::size, x, branch);
  }

  // The gradient of the branch from that of the sum, dy.
  template <int kBranch>
  static ConstView backward(ConstView dy, [[maybe_unused]] Tape& tape, [[maybe_unused]] Scratch& scratch) {
    if constexpr (kDrops) {
      DropoutOf<kBranch>::backward(tape.of[kBranch], dy, scratch);
      return scratch;
    } else {
      return dy;
    }
  }
};

// What initialises the linear layers beside attention.
template <class Initialiser>
[[nodiscard]] constexpr auto linear_initialiser(const Initialiser& initialiser) {
  if constexpr (std::is_same_v<Initialiser, MultiheadAttentionDefault>) {
    return LinearDefault{};
  } else {
    return initialiser;
  }
}

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
