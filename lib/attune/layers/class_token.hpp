// Trained tokens in front of a sequence. The output of one is the answer for the whole sequence (Devlin et
// al., "BERT", 2019; Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021, as ViT's cls_token). Others
// are registers (Darcet et al., "Vision Transformers Need Registers", 2024), which DropTokens removes
// (drop_tokens.hpp).
//
//   y = [w; x] of k tokens w;      dw += the first k rows of dy,  dx = the others
//
//   using Class = attune::ClassToken<attune::TokenShape{.seq_len = 16, .d_model = 32}>;
//   using Positions = attune::LearnedPositions<attune::PositionShape{.seq_len = 17, .d_model = 32}>;
//   using First = attune::Pooling<attune::PoolingShape{17, 32, attune::PoolingKind::kFirst}>;
//   using Model = attune::Sequential<Patches, Class, Positions, Encoder, First, Head>;
#pragma once

#include <cstring>

#include <attune/core/initialize.hpp>
#include <attune/execution/layer.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/layers/tapeless.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions of `ClassToken` and `DropTokens`.
struct TokenShape {
  int seq_len;     // tokens of x
  int d_model;     // features of a token
  int tokens = 1;  // tokens in front: y has as many more; of DropTokens, fewer
};

/// y[tokens + seq_len, d_model] of x[seq_len, d_model]. No tape. A mask of the model counts these tokens as
/// the first valid ones.
template <TokenShape shape, class ScalarType = float>
struct ClassToken : detail::Tapeless<ClassToken<shape, ScalarType>>, detail::InputUnread {
  static_assert(detail::Holds<(shape.seq_len > 0 && shape.d_model > 0 && shape.tokens > 0)>,
                "attune::ClassToken: seq_len, d_model and tokens must be positive; set the first two in "
                "TokenShape");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = ClassToken<shape, Other>;
  template <int tokens, CacheShape>
  using Stream = detail::NeedsWholeSequence<tokens>;
  static constexpr std::uint32_t kFingerprint = fingerprint("ClassToken");
  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using Output = Tensor<Scalar, shape.tokens + shape.seq_len, shape.d_model>;
  static constexpr Abilities kAbilities{.takes_context = true, .additions = Additions::kOnce};
  using Base = detail::Tapeless<ClassToken>;
  using Base::forward, Base::backward;

  /// The tokens' features; initially zero.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] Vector<Scalar, shape.tokens, shape.d_model> weight;
    ATTUNE_FIELDS(Bias(weight))
  };
  using Parameters = ParametersOf<Tensor>;

  /// `y` may not overlap `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, const Call& context = {}) {
    context.stage([&] {
      std::memcpy(y.data, parameters.weight.data(), sizeof(Scalar) * kInFront);
      std::memcpy(y.data + kInFront, x.data, sizeof(Input));
    });
  }
  /// Overwrites dx[seq_len, d_model], from dy[tokens + seq_len, d_model]; adds to the gradients. `dx` may not
  /// overlap `dy`.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set&, ConstView<Input>, ConstView<Output> dy, Dx&& dx,
                       [[maybe_unused]] Gradients& gradients, const Call& context = {}) {
    context.stage([&] {
      add_rows(view(gradients.weight), [&](int first, const auto& rows) ATTUNE_INLINE_LAMBDA {
        const int count = detail::smaller(rows.rows, shape.tokens - first);
        kernels::add_to(count * shape.d_model, dy.data + first * shape.d_model, rows.data);
      });
      detail::if_wanted<Input>(
          dx, [&](View<Input> to) { std::memcpy(to.data, dy.data + kInFront, sizeof(Input)); });
    });
  }

 private:
  static constexpr int kInFront = shape.tokens * shape.d_model;  // scalars
};

/// The same, by the name of several tokens.
template <TokenShape shape, class Scalar = float>
using PrefixTokens = ClassToken<shape, Scalar>;

}  // namespace ATTUNE_NAMESPACE
