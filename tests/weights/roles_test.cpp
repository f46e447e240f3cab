#include <attune/weights/roles.hpp>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/feed_forward.hpp>
#include <attune/models/decoder_layer.hpp>
#include <attune/models/encoder_layer.hpp>

#include "check.hpp"

namespace {

using attune::Role, attune::Tensor, attune::Untrained;

// A tensor in some roles, nothing in the others.
template <Role roles>
struct Some {
  template <Role role>
  struct In {
    template <class Scalar, int rows, int cols>
    using Matrix = std::conditional_t<attune::includes(roles, role), Tensor<Scalar, rows, cols>,
                                      Untrained<Scalar, rows, cols>>;
    template <class Scalar, int rows, int cols>
    using Vector = Matrix<Scalar, rows, cols>;
  };
};
template <class Layer, Role roles>
using SetOf = typename Layer::template ParametersOf<attune::ByRole<Some<roles>>::template Matrix,
                                                    attune::ByRole<Some<roles>>::template Vector>;
template <class Layer, Role roles>
constexpr int kScalars = static_cast<int>(sizeof(SetOf<Layer, roles>) / sizeof(float));

using Attention = attune::MultiHeadAttention<attune::AttentionShape{3, 4, 2}>;
using Gated = attune::SwiGlu<attune::FeedForwardShape{3, 4, 5}>;
using Encoder = attune::EncoderLayer<attune::EncoderLayerShape{{3, 4, 2}, 5}>;
using Decoder = attune::DecoderLayer<attune::DecoderLayerShape{{3, 4, 2}, 5}>;

}  // namespace

TEST(Roles, one_is_among_several) {
  static_assert(includes(Role::kQueries | Role::kValues, Role::kValues));
  static_assert(!includes(Role::kQueries | Role::kValues, Role::kKeys));
  static_assert(includes(Role::kKeys, Role::kRotatedKeys) && !includes(Role::kQueries, Role::kRotatedKeys));
  static_assert(includes(Role::kFeedForward, Role::kGate) && !includes(Role::kFeedForwardOut, Role::kGate));
  static_assert(includes(Role::kEverything, Role::kProjections) && !includes(Role::kAttention, Role::kGate));
}

TEST(Roles, are_named_by_layers) {
  static_assert(kScalars<Attention, Role::kKeys> == 4 * 4 + 4);
  static_assert(kScalars<Attention, Role::kAttention> == 4 * (4 * 4 + 4));
  static_assert(kScalars<Gated, Role::kFeedForwardIn> == 2 * (4 * 5 + 5));
  static_assert(kScalars<Gated, Role::kFeedForwardOut> == 5 * 4 + 4);
  static_assert(kScalars<attune::Linear<attune::LinearShape{3, 4, 5}>, Role::kProjections> == 4 * 5 + 5);
}

TEST(Roles, leave_no_byte_where_nothing_stands) {
  static_assert(kScalars<Encoder, Role::kQueries> == 4 * 4 + 4);
  static_assert(kScalars<Encoder, Role::kAttentionOutput | Role::kFeedForwardIn> == 4 * 4 + 4 + 4 * 5 + 5);
  static_assert(kScalars<Decoder, Role::kValues> == 2 * (4 * 4 + 4));
  static_assert(kScalars<Decoder, Role::kProjections> == 3 * 2 * 4);  // norms name no role
  static_assert(std::is_empty_v<SetOf<Attention, Role::kProjections>>);
}

TEST(Roles, do_not_change_types_of_layers_without_roles) {
  static_assert(std::is_same_v<decltype(Encoder::Parameters::norm1), decltype(Encoder::Parameters::norm2)>);
  static_assert(
      std::is_same_v<decltype(Attention::Parameters::query), Attention::QueryProjection::Parameters>);
  static_assert(
      std::is_same_v<decltype(Encoder::Parameters::self_attention), Encoder::SelfAttention::Parameters>);
}
