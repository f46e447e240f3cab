// A trained token in front of a sequence; its output is the answer for the whole sequence (Devlin et al.,
// "BERT", 2019; Dosovitskiy et al., "An Image is Worth 16x16 Words", 2021, as ViT's cls_token).
//
//   y₀ = w,  yᵢ₊₁ = xᵢ;      dw += dy₀,  dxᵢ = dyᵢ₊₁
//
//   using Class = attune::ClassToken<attune::TokenShape{.seq_len = 16, .d_model = 32}>;
//   using Positions = attune::LearnedPositions<attune::PositionShape{.seq_len = 17, .d_model = 32}>;
//   using First = attune::Pooling<attune::PoolingShape{17, 32, attune::PoolingKind::kFirst}>;
//   using Model = attune::Sequential<Patches, Class, Positions, Encoder, First, Head>;
#pragma once

#include <cstring>

#include <attune/core/initialize.hpp>
#include <attune/execution/layer.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE {

/// Dimensions of `ClassToken`.
struct TokenShape {
  int seq_len;  // tokens of x; y has one more
  int d_model;  // features of a token
};

/// y[seq_len + 1, d_model] of x[seq_len, d_model]. No tape. A mask of the model counts the class token as the
/// first valid token.
template <TokenShape shape, class ScalarType = float>
struct ClassToken {
  static_assert(shape.seq_len > 0 && shape.d_model > 0,
                "attune::ClassToken: seq_len and d_model must be positive; set both in TokenShape");

  using Scalar = ScalarType;
  template <class Other>
  using WithScalar = ClassToken<shape, Other>;
  template <int tokens, CacheShape>
  struct Stream : detail::NoStream {
    static_assert(tokens < 0,
                  "attune: ClassToken needs the whole sequence, so it does not run token by token; leave it "
                  "out, and use the output at the last token");
  };
  static constexpr std::uint32_t kFingerprint = fingerprint("ClassToken");
  using Input = Tensor<Scalar, shape.seq_len, shape.d_model>;
  using Output = Tensor<Scalar, shape.seq_len + 1, shape.d_model>;
  template <class Gradients>
  static constexpr bool kReadsInput = false;
  static constexpr Abilities kAbilities{.takes_context = true, .additions = Additions::kOnce};
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};

  /// The token's features; initially zero.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] Vector<Scalar, 1, shape.d_model> weight;
    ATTUNE_FIELDS(Bias(weight))
  };
  using Parameters = ParametersOf<Tensor>;

  /// Inference. `y` may not overlap `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, InferenceScratch&,
                      const Call& context = {}) {
    context.stage([&] {
      std::memcpy(y.data, parameters.weight.data(), sizeof(Scalar) * shape.d_model);
      std::memcpy(y.data + shape.d_model, x.data, sizeof(Input));
    });
  }
  /// Training. `y` may not overlap `x`.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static void forward(const Set& parameters, ConstView<Input> x, View<Output> y, Tape&, Scratch&,
                      const Call& context = {}) {
    InferenceScratch none;
    forward(parameters, x, y, none, context);
  }
  /// Overwrites dx[seq_len, d_model], from dy[seq_len + 1, d_model]; adds to the gradients. `dx` may not
  /// overlap `dy`.
  template <class Set = Parameters, class Dx, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set&, ConstView<Input>, const Tape&, ConstView<Output> dy, Dx&& dx,
                       [[maybe_unused]] Gradients& gradients, Scratch&, const Call& context = {}) {
    context.stage([&] {
      if constexpr (detail::kTrained<decltype(gradients.weight)>) {
        add_rows(view(gradients.weight), [&](int, const auto& row) ATTUNE_INLINE_LAMBDA {
          kernels::add_to(shape.d_model, dy.data, row.data);
        });
      }
      if constexpr (kAsked<Dx>) {
        std::memcpy(detail::sink<Input>(dx).data, dy.data + shape.d_model, sizeof(Input));
      }
    });
  }
};

}  // namespace ATTUNE_NAMESPACE
