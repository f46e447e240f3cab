// The fields of a set of tensors, listed once.
//
//   template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
//   struct ParametersOf {
//     [[no_unique_address]] Matrix<Scalar, d_in, d_out> weight;
//     [[no_unique_address]] Vector<Scalar, 1, d_out> bias;
//     ATTUNE_FIELDS(Weight(weight), Bias(bias))
//   };
//
// The list names each member's kind, and defines visit(visitor, path, sets…) and initialize(initializer, rng)
// of the set, in the order of the list. A missing or repeated member is a compile error.
//
//   kind               TensorKind   initial values
//   Weight(field)      kWeight      by the initializer
//   Bias(field)        kBias        by the initializer for the set's `weight`, else 0
//   NormWeight(field)  kNorm        1
//   NormBias(field)    kBias        0
//   KeyBias(field)     kBias        N(0, 1/cols), as in PyTorch, by every initializer
//   Set(field)                      a set: its tensors are "field.…"
//   Inline(field)                   a set: its tensors are named like members
//   Layers(field)                   sets of layers (models/composition.hpp): their tensors are "0.…", "1.…"
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include <attune/kernels/policy.hpp>

// Without inlining, as compilers prefer at -Os, visits build unused paths on the stack.
#if ATTUNE_FOR_SIZE
#define ATTUNE_INLINE_VISIT ATTUNE_INLINE
#else
#define ATTUNE_INLINE_VISIT
#endif

namespace ATTUNE_NAMESPACE {

class Rng;

namespace detail {

/// Number of names in a list, "Weight(w), Bias(b)"; -1 if one occurs twice.
consteval int count_listed(std::string_view list) {
  int count = 0;
  for (auto name = list.find('('); name != list.npos; name = list.find('(', name + 1), ++count) {
    const auto in_parentheses = list.substr(name, list.find(')', name) - name + 1);
    if (list.find(in_parentheses, name + 1) != list.npos) return -1;
  }
  return count;
}

template <std::size_t>
struct AnyMember {
  template <class Member>
  constexpr operator Member() const;
};
/// Whether a set has as many members as there are indices, or more.
template <class Set, std::size_t... indices>
consteval bool has_members(std::index_sequence<indices...>) {
  return requires { Set{AnyMember<indices>{}...}; };
}

/// Checks that a list of `listed` names has all members of a set.
template <int listed, class Set>
constexpr bool check_fields() {
  static_assert(Holds<(listed >= 0)>, "attune: ATTUNE_FIELDS lists a member twice");
  static_assert(Holds<(listed < 0 || std::is_empty_v<Set> ||
                       !has_members<Set>(std::make_index_sequence<static_cast<std::size_t>(listed + 1)>{}))>,
                "attune: a member is missing from ATTUNE_FIELDS");
  return true;
}

template <class First, class...>
struct FirstOf {
  using type = std::remove_cvref_t<First>;
};

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE

/// Lists the fields of a set of tensors, each with its kind (core/fields.hpp): ATTUNE_FIELDS(Weight(w),
/// Bias(b)).
#define ATTUNE_FIELDS(...)                                                                                \
  ATTUNE_VISITED_FIELDS(__VA_ARGS__)                                                                      \
  template <class Initializer>                                                                            \
  void initialize([[maybe_unused]] const Initializer& initializer, [[maybe_unused]] ::attune::Rng& rng) { \
    ATTUNE_EACH_FIELD(ATTUNE_INITIALIZE_, __VA_ARGS__)                                                    \
  }
/// The same for a set with its own initial values: it defines initialize(initializer, rng) itself.
#define ATTUNE_VISITED_FIELDS(...)                                                                     \
  template <class Set> /* checked once per set, not once per visitor */                                \
  static constexpr bool kListsFields =                                                                 \
      ::attune::detail::check_fields<::attune::detail::count_listed(#__VA_ARGS__), Set>();             \
  template <class Visitor, class... Sets>                                                              \
  ATTUNE_INLINE_VISIT static constexpr void visit([[maybe_unused]] const Visitor& visitor,             \
                                                  [[maybe_unused]] const ::attune::TensorPath* parent, \
                                                  [[maybe_unused]] Sets&&... sets) {                   \
    static_assert(kListsFields<typename ::attune::detail::FirstOf<Sets...>::type>);                    \
    ATTUNE_EACH_FIELD(ATTUNE_VISIT_, __VA_ARGS__)                                                      \
  }

// Pastes `prefix` to each of at most 27 arguments.
#define ATTUNE_EACH_FIELD(prefix, ...) __VA_OPT__(ATTUNE_SCAN(ATTUNE_NEXT_FIELD(prefix, __VA_ARGS__)))
#define ATTUNE_NEXT_FIELD(prefix, field, ...) \
  prefix##field __VA_OPT__(ATTUNE_AND_NEXT ATTUNE_PARENTHESES(prefix, __VA_ARGS__))
#define ATTUNE_PARENTHESES ()
#define ATTUNE_AND_NEXT() ATTUNE_NEXT_FIELD
#define ATTUNE_SCAN(...) ATTUNE_SCAN_9(ATTUNE_SCAN_9(ATTUNE_SCAN_9(__VA_ARGS__)))
#define ATTUNE_SCAN_9(...) ATTUNE_SCAN_3(ATTUNE_SCAN_3(ATTUNE_SCAN_3(__VA_ARGS__)))
#define ATTUNE_SCAN_3(...) ATTUNE_SCAN_1(ATTUNE_SCAN_1(ATTUNE_SCAN_1(__VA_ARGS__)))
#define ATTUNE_SCAN_1(...) __VA_ARGS__

#define ATTUNE_VISIT_TENSOR(field, kind) \
  visitor(::attune::TensorPath{#field, parent, ::attune::TensorKind::kind}, sets.field...);
#define ATTUNE_VISIT_Weight(field) ATTUNE_VISIT_TENSOR(field, kWeight)
#define ATTUNE_VISIT_Bias(field) ATTUNE_VISIT_TENSOR(field, kBias)
#define ATTUNE_VISIT_NormWeight(field) ATTUNE_VISIT_TENSOR(field, kNorm)
#define ATTUNE_VISIT_NormBias(field) ATTUNE_VISIT_TENSOR(field, kBias)
#define ATTUNE_VISIT_KeyBias(field) ATTUNE_VISIT_TENSOR(field, kBias)
#define ATTUNE_VISIT_Set(field)                                  \
  {                                                              \
    const ::attune::TensorPath of_##field{#field, parent};       \
    decltype(field)::visit(visitor, &of_##field, sets.field...); \
  }
#define ATTUNE_VISIT_Inline(field) decltype(field)::visit(visitor, parent, sets.field...);
#define ATTUNE_VISIT_Layers(field) \
  ::attune::detail::SetsOfLayers<decltype(field)>::visit(visitor, parent, sets.field...);

#define ATTUNE_INITIALIZE_Weight(field) initializer.weight(field, rng);
#define ATTUNE_INITIALIZE_Bias(field) ::attune::detail::initialize_bias(*this, field, initializer, rng);
#define ATTUNE_INITIALIZE_NormWeight(field) ::attune::detail::fill(field, 1);
#define ATTUNE_INITIALIZE_NormBias(field) ::attune::detail::fill(field, 0);
#define ATTUNE_INITIALIZE_KeyBias(field) ::attune::detail::fill_normal_over(field, 1, field.cols, rng);
#define ATTUNE_INITIALIZE_Set(field) ::attune::initialize(field, initializer, rng);
#define ATTUNE_INITIALIZE_Inline(field) ::attune::initialize(field, initializer, rng);
#define ATTUNE_INITIALIZE_Layers(field) \
  ::attune::detail::SetsOfLayers<decltype(field)>::initialize(field, initializer, rng);
