// Attention to fewer tokens. Keys and values come from a layer of the same input: a strided convolution (Wang
// et al., "Pyramid Vision Transformer", 2021), a pooling, or a Linear over tokens (Wang et al., "Linformer:
// Self-Attention with Linear Complexity", 2020).
//
//   m = r(x),   y = attention(q(x), m, m);      dm = d_key + d_value,   dx = (∂q/∂x)ᵀ·d_query + (∂r/∂x)ᵀ·dm
//
// q is x itself, or a layer such as a convolution (Wu et al., "CvT: Introducing Convolutions to Vision
// Transformers", 2021).
//
//   using Reduction = attune::Sequential<attune::Conv2d<attune::Conv2dShape{
//       .height = 8, .width = 8, .d_in = 32, .d_out = 32, .kernel_height = 2, .kernel_width = 2,
//       .stride_height = 2, .stride_width = 2}>, attune::LayerNorm<attune::NormShape{16, 32}>>;
//   using Attention = attune::ReducedAttention<Reduction, attune::MultiHeadAttention<attune::AttentionShape{
//       .seq_len = 64, .d_model = 32, .num_heads = 2, .kv_len = 16}>>;
//
// There are seq_len · kv_len scores for each head, in place of seq_len².
#pragma once

#include <cstdint>
#include <type_traits>

#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/dropout.hpp>
#include <attune/layers/identity.hpp>
#include <attune/models/composition.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The queries themselves.
template <class Attention>
using SameQueries = Identity<Attention::Input::rows, Attention::Input::cols, typename Attention::Scalar>;

template <class Reduction, class Attention, class Queries>
constexpr bool check_reduced_attention() {
  constexpr bool kAttends = requires {
    typename Attention::KeyInput;
    typename Attention::ValueInput;
  };
  static_assert(Holds<kAttends>,
                "attune::ReducedAttention: the second layer must be a MultiHeadAttention; its kv_len is the "
                "number of reduced tokens");
  if constexpr (kAttends) {
    constexpr bool kTakesIds = TakesIds<Reduction> || TakesIds<Queries>;
    static_assert(Holds<!kTakesIds>,
                  "attune::ReducedAttention: a layer takes token ids; put the embedding in front");
    static_assert(
        Holds<(std::is_same_v<typename Queries::Output, typename Attention::Input>)>,
        "attune::ReducedAttention: the third layer's output needs seq_len rows and d_model columns, as "
        "the attention's queries");
    static_assert(
        Holds<(kTakesIds || std::is_same_v<typename Reduction::Input, typename Queries::Input>)>,
        "attune::ReducedAttention: the reduction's input must be the third layer's; without one, it needs "
        "seq_len rows and d_model columns, as the attention's queries");
    static_assert(
        Holds<(std::is_same_v<typename Reduction::Output, typename Attention::KeyInput> &&
               std::is_same_v<typename Reduction::Output, typename Attention::ValueInput>)>,
        "attune::ReducedAttention: the reduction's output has other rows or columns than the attention's "
        "kv_len, d_key and d_value; set them in AttentionShape");
  }
  return kAttends;
}
template <class Reduction, class Attention, class Queries>
concept Reduces = check_reduced_attention<Reduction, Attention, Queries>();

/// Refuses a mask and a length: a reduced token is made of several tokens, and no mask of tokens hides it.
template <class Call>
constexpr void check_whole_sequence() {
  static_assert(
      Holds<!(Call::kHasLength || kMasks<typename Call::Mask>)>,
      "attune::ReducedAttention: a mask or a length of tokens does not hide reduced tokens; leave it out");
}

}  // namespace detail

/// Multi-head attention of q(x)[seq_len, d_model] to r(x)[kv_len, d_key]; q(x) is x without a third layer.
/// Takes no mask and no length.
template <detail::CheckedLayer ReductionType, class AttentionType,
          detail::CheckedLayer QueriesType = detail::SameQueries<AttentionType>>
  requires detail::Reduces<ReductionType, AttentionType, QueriesType>
struct ReducedAttention : detail::Steps<ReducedAttention<ReductionType, AttentionType, QueriesType>>,
                          detail::Passes<ReducedAttention<ReductionType, AttentionType, QueriesType>> {
  /// The layer whose output gives keys and values.
  using Reduction = ReductionType;
  /// The attention to that output.
  using Attention = AttentionType;
  /// The layer whose output gives queries; by default an Identity.
  using Queries = QueriesType;
  using Scalar = typename Attention::Scalar;
  using Input = typename Queries::Input;
  using Output = typename Attention::Output;
  /// r(x).
  using Memory = typename Attention::KeyInput;
  template <class Other>
  using WithScalar = ReducedAttention<typename detail::WithScalarOf<Reduction, Other>::type,
                                      typename detail::WithScalarOf<Attention, Other>::type,
                                      typename detail::WithScalarOf<Queries, Other>::type>;
  using Parts = LayerList<Reduction, Attention, Queries>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("ReducedAttention", kFingerprintOf<Reduction>, kFingerprintOf<Attention>,
                  detail::OnlyIf{!detail::kIsIdentity<Queries>}, kFingerprintOf<Queries>);

  /// `layer<0>()` is the reduction's set, `layer<1>()` the attention's, `layer<2>()` the queries', named "0",
  /// "1" and "2" in the names of tensors.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf =
      typename detail::LayerSets<Reduction, Attention, Queries>::template ParametersOf<Matrix, Vector>;
  using Parameters = ParametersOf<Tensor>;
  static constexpr Abilities kAbilities{.mask = MaskUse::kPadding,  // to refuse one
                                        .takes_context = true,
                                        .additions = detail::kAdditionsOfAll<Reduction, Attention, Queries>};
  template <int tokens, CacheShape>
  using Stream = detail::NeedsWholeSequence<tokens>;

 private:
  using Sets = detail::LayerSets<Reduction, Attention, Queries>;
  static constexpr bool kOfInput = detail::kIsIdentity<Queries>;
  template <class Gradients>
  using MemoryOf = typename Sets::template MemoryOf<Gradients>;

 public:
  /// Whether backward reads x.
  template <class Gradients>
  static constexpr bool kReadsInput = MemoryOf<Gradients>::kReads;
  /// The tapes, r(x) and q(x).
  template <class Gradients>
  struct TapeOf : detail::TapeOfParts<typename MemoryOf<Gradients>::Tapes> {
    Memory memory;
    [[no_unique_address]] detail::OutputMemory<Queries> queries;
  };
  using Tape = TapeOf<Parameters>;
  /// Gradients of r(x) and of q(x), then the dx of a layer, and the scratch of a layer.
  template <class Gradients>
  struct ScratchOf {
    Memory d_memory;
    // The gradient of q(x), unless it overwrites q(x), which backward reads again with UpdateInBackward.
    [[no_unique_address]] std::conditional_t<
        kOfInput || detail::GradientReplacesInput<Attention, typename MemoryOf<Gradients>::template Of<1>>,
        NoGradient, typename Queries::Output>
        d_query;
    detail::OneOf<Memory, Input> gradient;
    typename MemoryOf<Gradients>::Scratches layers;
  };
  using Scratch = ScratchOf<Parameters>;
  /// r(x), q(x), and the scratch of a layer.
  struct InferenceScratch {
    Memory memory;
    [[no_unique_address]] detail::OutputMemory<Queries> queries;
    detail::OneOf<typename Reduction::InferenceScratch, typename Attention::InferenceScratch,
                  typename Queries::InferenceScratch>
        layers;
  };

  /// Neither `y` nor `dx` may overlap `x`, nor `dx` `dy`.
  using detail::Passes<ReducedAttention>::forward, detail::Passes<ReducedAttention>::backward;

 private:
  friend detail::Passes<ReducedAttention>;
  ATTUNE_INLINE static void run(const auto& context, const auto& parameters, const auto& x, const auto& y,
                                auto& scratch, auto&... tape) {
    detail::check_whole_sequence<std::remove_cvref_t<decltype(context)>>();
    const auto& whole = context.unmasked();
    auto& kept = detail::on_tape(scratch, tape...);  // r(x) and q(x)
    Sets::template forward<0>(whole, parameters, x, View<Memory>(kept.memory), scratch.layers,
                              detail::member<0>(tape.layers)...);
    if constexpr (!kOfInput) {
      Sets::template forward<2>(whole, parameters, x, View<typename Attention::Input>(kept.queries.values),
                                scratch.layers, detail::member<2>(tape.layers)...);
    }
    whole.inside([&]() ATTUNE_INLINE_LAMBDA {
      Attention::forward(parameters.template layer<1>(), detail::output_of<Queries>(x, kept.queries),
                         kept.memory, kept.memory, y, detail::member<1>(tape.layers)...,
                         detail::one_of<1>(scratch.layers), whole);
    });
  }
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, const auto& x,
                                         auto& tape, const auto& dy, const auto& dx, auto& gradients,
                                         auto& scratch) {
    detail::check_whole_sequence<std::remove_cvref_t<decltype(context)>>();
    const auto& whole = context.unmasked();
    constexpr auto kReaches = []<int index>() {
      using Own = decltype(std::declval<decltype(gradients)>().template layer<index>());
      return kWanted<decltype(dx)> || !std::is_empty_v<std::remove_cvref_t<Own>>;
    };
    constexpr bool kReduces = kReaches.template operator()<0>();
    constexpr bool kAsks = !kOfInput && kReaches.template operator()<2>();
    const auto d_memory = detail::first_if<kReduces>(View<Memory>(scratch.d_memory), NoGradient{});
    const auto d_value =
        detail::first_if<kReduces>(View<Memory>(detail::one_of<0>(scratch.gradient)), NoGradient{});
    const auto d_query = [&] {
      if constexpr (kOfInput) {
        return dx;
      } else if constexpr (!kAsks) {
        return NoGradient{};
      } else {
        return View<typename Attention::Input>(detail::existing(scratch.d_query, tape.queries.values));
      }
    }();
    whole.inside([&]() ATTUNE_INLINE_LAMBDA {
      auto&& attention_tape = detail::member<1>(tape.layers);
      auto&& attention_gradients = gradients.template layer<1>();
      Attention::backward(parameters.template layer<1>(), detail::output_of<Queries>(x, tape.queries),
                          tape.memory, tape.memory, attention_tape, dy, d_query, d_memory, d_value,
                          attention_gradients, detail::one_of<1>(scratch.layers), whole);
    });
    detail::add_to<Memory>(whole, d_value, d_memory);
    const auto backward_layer = [&]<int index, bool reached>(const auto& d_output,
                                                             const auto& d_input) ATTUNE_INLINE_LAMBDA {
      if constexpr (reached) {
        using Given = ConstView<typename Sets::template Layer<index>::Output>;
        Sets::template backward<index>(whole, parameters, x, tape.layers, Given(d_output), d_input, gradients,
                                       scratch.layers);
      } else {
        detail::skip_unreached(whole, detail::member<index>(tape.layers));
      }
    };
    // The dx of the layer that runs last, in the memory of d_value.
    const auto term = detail::first_if<kWanted<decltype(dx)>>(
        View<Input>(detail::one_of<1>(scratch.gradient)), NoGradient{});
    backward_layer.template operator()<0, kReduces>(d_memory, detail::first_if<kOfInput>(term, dx));
    backward_layer.template operator()<2, kAsks>(d_query, term);
    detail::add_to<Input>(whole, term, dx);
  }
};

}  // namespace ATTUNE_NAMESPACE
