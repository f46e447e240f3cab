// Several ids for each token, and the sum of their rows: BERT's words and token types (Devlin et al., 2019).
//
//   y_i = W_(a_i) + V_(b_i),      dW_k += Σ of dy_i over the i with a_i = k,  dV_k over those with b_i = k
//
//   using Words = attune::Embedding<attune::EmbeddingShape{.seq_len = 16, .vocabulary = 500, .d_model = 32}>;
//   using Types = attune::Embedding<attune::EmbeddingShape{.seq_len = 16, .vocabulary = 2, .d_model = 32}>;
//   using Model = attune::Sequential<attune::EmbeddingSum<Words, Types>, Positions, Encoder, Head>;
//   int ids[2][16];  // words, then types
//
// A third table is EmbeddingSum<EmbeddingSum<Words, Types>, Languages>.
#pragma once

#include <array>
#include <type_traits>

#include <attune/core/initialize.hpp>
#include <attune/layers/embedding.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// In place of a layer that is none, the other one: after the one error, the class compiles.
template <class Layer, class Other>
using EmbeddingOr = std::conditional_t<SaysIdsPerToken<Layer>, Layer, Other>;

template <class First, class Second>
constexpr bool check_embeddings() {
  static_assert(Holds<(SaysIdsPerToken<First> && SaysIdsPerToken<Second>)>,
                "attune::EmbeddingSum: it adds two Embeddings, or an EmbeddingSum and an Embedding");
  if constexpr (SaysIdsPerToken<First> && SaysIdsPerToken<Second>) {
    static_assert(Holds<std::is_same_v<typename First::Output, typename Second::Output>>,
                  "attune::EmbeddingSum: both tables need the same seq_len, d_model and scalar");
  }
  return true;
}

}  // namespace detail

/// y[seq_len, d_model], the sum of two embeddings. The input has all ids of the first one, then all of the
/// second: int[2][seq_len], or any array of as many. An invalid id returns kInvalidToken, and nothing is
/// written. A step of a stream takes the ids of its tokens in this order.
template <class FirstTable, class SecondTable>
struct EmbeddingSum {
  static_assert(detail::check_embeddings<FirstTable, SecondTable>());

  /// The embedding of the first ids.
  using First = detail::EmbeddingOr<FirstTable, SecondTable>;
  /// The embedding of the ids after these.
  using Second = detail::EmbeddingOr<SecondTable, FirstTable>;
  using Scalar = typename First::Scalar;
  template <class Other>
  using WithScalar =
      EmbeddingSum<typename First::template WithScalar<Other>, typename Second::template WithScalar<Other>>;
  template <int tokens, CacheShape>
  using Stream = EmbeddingSum<detail::OfLength<First, tokens>, detail::OfLength<Second, tokens>>;
  static constexpr std::uint32_t kFingerprint =
      fingerprint("EmbeddingSum", First::kFingerprint, Second::kFingerprint);
  using Output = typename First::Output;
  /// Number of ids of a token.
  static constexpr int kIdsPerToken = First::kIdsPerToken + Second::kIdsPerToken;
  using Input = std::array<int, std::size_t{kIdsPerToken * Output::rows}>;
  static constexpr Abilities kAbilities = First::kAbilities;
  struct Tape {};
  /// A row of a table.
  using Scratch = typename First::Scratch;
  using InferenceScratch = Scratch;

  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    [[no_unique_address]] detail::SetOf<First, Matrix, Vector> first;    ///< Of First.
    [[no_unique_address]] detail::SetOf<Second, Matrix, Vector> second;  ///< Of Second.
    ATTUNE_FIELDS(Set(first), Set(second))
  };
  using Parameters = ParametersOf<Tensor>;

  /// y[seq_len, d_model] of all ids. An id outside its table returns Status::kInvalidToken, and nothing is
  /// written. In slices, the slice that reads the ids returns the error.
  template <class Set = Parameters, AnyContext Call = Context<>>
  static Status forward(const Set& parameters, ConstView<Input> ids, View<Output> y,
                        InferenceScratch& scratch, const Call& context = {}) {
    return context.answer([&]() ATTUNE_INLINE_LAMBDA {
      const auto tokens = context.template count<Output::rows>();
      if (!valid(ids, tokens)) return Status::kInvalidToken;
      write(parameters, ids, y, scratch, tokens);
      return Status::kOk;
    });
  }
  template <class Set = Parameters, AnyContext Call = Context<>>
  static Status forward(const Set& parameters, ConstView<Input> ids, View<Output> y, Tape&, Scratch& scratch,
                        const Call& context = {}) {
    return forward(parameters, ids, y, scratch, context);
  }
  /// gradients += dL/dW of both tables, from dy[seq_len, d_model]; nothing for ids that forward refuses.
  template <class Set = Parameters, class Gradients, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<Input> ids, const Tape&, ConstView<Output> dy,
                       NoGradient, Gradients& gradients, Scratch& scratch, const Call& context = {}) {
    if (!valid(ids, context.template count<Output::rows>())) return;
    First::backward(parameters.first, of_first(ids), {}, dy, NoGradient{}, gradients.first, scratch, context);
    Second::backward(parameters.second, of_second(ids), {}, dy, NoGradient{}, gradients.second, scratch,
                     context);
  }

  /// Whether the ids of the first `tokens` tokens are rows of their tables.
  static bool valid(ConstView<Input> ids, auto tokens) {
    return First::valid(of_first(ids), tokens) && Second::valid(of_second(ids), tokens);
  }
  /// Overwrites y[tokens, d_model] with the sums of valid ids.
  static void write(const auto& parameters, ConstView<Input> ids, View<Output> y, Scratch& scratch,
                    auto tokens) {
    First::write(parameters.first, of_first(ids), y, scratch, tokens);
    Second::add(parameters.second, of_second(ids), y, scratch, tokens);
  }
  /// Adds these sums to y[tokens, d_model].
  static void add(const auto& parameters, ConstView<Input> ids, View<Output> y, Scratch& scratch,
                  auto tokens) {
    First::add(parameters.first, of_first(ids), y, scratch, tokens);
    Second::add(parameters.second, of_second(ids), y, scratch, tokens);
  }

 private:
  static ConstView<typename First::Input> of_first(ConstView<Input> ids) {
    return ConstView<typename First::Input>(ids.data());
  }
  static ConstView<typename Second::Input> of_second(ConstView<Input> ids) {
    return ConstView<typename Second::Input>(ids.data() + First::kIdsPerToken * Output::rows);
  }
};

namespace detail {

template <class First, class Second>
struct Vocabulary<EmbeddingSum<First, Second>> {
  static constexpr int of(int table) {
    constexpr int kFirst = EmbeddingSum<First, Second>::First::kIdsPerToken;
    return table < kFirst ? Vocabulary<First>::of(table) : Vocabulary<Second>::of(table - kFirst);
  }
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
