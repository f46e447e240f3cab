// What an optimizer is: adam.hpp and sgd.hpp have the library's.
//
// One step reads gradients and changes parameters and moments; the caller owns all of them. An optimizer is a
// type without state:
//
//   struct MyOptimizer {
//     using Scalar = float;
//     struct Options { Scalar learning_rate = …; };
//     template <class Parameters>
//     struct Moments { void reset(); };         // of every parameter, and what counts steps; zero at first
//     static constexpr int kMoments = …;        // how many tensors of moments a parameter has
//     struct Coefficients { … };                // what one step multiplies every element by
//
//     static Status check(const Options&);      // refuses what could make parameters infinite
//     // Counts a step, with options that check() has passed. Gradients times gradient_scale are applied.
//     static Coefficients advance(Moments<Parameters>&, const Options&, Scalar gradient_scale);
//     // `size` parameters of a tensor, their gradients, and kMoments times their moments.
//     static void update(const Coefficients&, TensorKind, int size, Scalar* p, const Scalar* g, Scalar*… m);
//     // visitor(path, tensor of each set…, tensor of each moment…) for every tensor of the sets.
//     static void for_each_with_moments(visitor, Moments<Parameters>&, sets&…);
//   };
//
// One whose update depends on the kind of a tensor says kByKind = true (parameter_groups.hpp). What Moments
// have beside tensors is also there alone, as Counters, for who wraps an optimizer. Where data() of a tensor
// of moments is something else than a Scalar*, MomentPointer is its type. Where Moments have seed(bits),
// restarts call it. One whose elements of a tensor are not updated one by one says kUpdatedTogether: how many
// of them, counted from the tensor's first, an update takes whole, or 0 where it takes all of a tensor. Their
// moments may be anything that moves on by `+ count`. One that changes every parameter alike may have
// sets_of_moments(Moments<Parameters>&), a tuple of references to kMoments Parameters: its update() may then
// get all tensors as one.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>

#include <attune/core/fingerprint.hpp>
#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>
#include <attune/execution/context.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace attune::inline ATTUNE_ARITHMETIC {

namespace detail {

/// What points to the moments of an optimizer.
template <class O>
struct MomentPointerOf {
  using type = typename O::Scalar*;
};
template <class O>
  requires requires { typename O::MomentPointer; }
struct MomentPointerOf<O> {
  using type = typename O::MomentPointer;
};

/// How many elements of a tensor an update takes whole; 0: all.
template <class O>
inline constexpr int kTogetherIn = 1;
template <class O>
  requires requires { O::kUpdatedTogether; }
inline constexpr int kTogetherIn<O> = O::kUpdatedTogether;
/// The same of a tensor of such a size.
template <class O, int size>
inline constexpr int kTogetherOf = kTogetherIn<O> == 0 ? size : kTogetherIn<O>;

}  // namespace detail

/// An optimizer of such parameters: see the top of this file.
template <class O, class Parameters>
concept IsOptimizer = requires(const typename O::Options& options,
                               typename O::template Moments<Parameters>& moments,
                               const typename O::Coefficients& coefficients, typename O::Scalar scale,
                               Parameters& parameters) {
  { O::kMoments } -> std::convertible_to<int>;
  { O::check(options) } -> std::same_as<Status>;
  { O::advance(moments, options, scale) } -> std::same_as<typename O::Coefficients>;
  moments.reset();
  O::for_each_with_moments([](const TensorPath&, auto&...) {}, moments, parameters);
}
&&requires(const typename O::Coefficients& c, typename O::Scalar* p, const typename O::Scalar* g,
           typename detail::MomentPointerOf<O>::type m) {
  requires(O::kMoments != 0 || requires { O::update(c, TensorKind::kWeight, 1, p, g); });
  requires(O::kMoments != 1 || requires { O::update(c, TensorKind::kWeight, 1, p, g, m); });
  requires(O::kMoments != 2 || requires { O::update(c, TensorKind::kWeight, 1, p, g, m, m); });
};

namespace detail {

/// Whether O is an optimizer; where it is none, one error says what is missing.
template <class O, class Parameters>
constexpr bool check_optimizer() {
  if constexpr (!requires {
                  typename O::Scalar;
                  typename O::Options;
                  typename O::Coefficients;
                  typename O::template Moments<Parameters>;
                }) {
    static_assert(sizeof(O) == 0,
                  "attune::Optimizer: the type does not name Scalar, Options, Coefficients and "
                  "Moments<Parameters>; training/optimizer.hpp shows what an optimizer has");
  } else if constexpr (!requires(const typename O::Options& options) {
                         { O::check(options) } -> std::same_as<Status>;
                       }) {
    static_assert(sizeof(O) == 0, "attune::Optimizer: there is no check(options) that answers a Status");
  } else if constexpr (!requires(typename O::template Moments<Parameters> & moments,
                                 const typename O::Options& options, typename O::Scalar scale) {
                         { O::advance(moments, options, scale) } -> std::same_as<typename O::Coefficients>;
                       }) {
    static_assert(sizeof(O) == 0,
                  "attune::Optimizer: there is no advance(moments, options, gradient_scale) that answers "
                  "Coefficients");
  } else if constexpr (!IsOptimizer<O, Parameters>) {
    static_assert(sizeof(O) == 0,
                  "attune::Optimizer: there is no kMoments, moments.reset(), for_each_with_moments(visitor, "
                  "moments, sets...), or update(coefficients, kind, size, p, g, moments...) with kMoments "
                  "pointers at the end");
  }
  return IsOptimizer<O, Parameters>;
}
template <class O, class Parameters>
concept CheckedOptimizer = check_optimizer<O, Parameters>();

/// Gradients above it are not squared: 2⁶³ in float, half of what may be.
template <class Scalar>
inline constexpr Scalar kLargestGradient = [] {
  Scalar bound = 1;
  for (int i = 1; i < std::numeric_limits<Scalar>::max_exponent / 2; ++i) bound *= 2;
  return bound;
}();
/// A larger learning rate, times such a gradient, could come near what parameters cannot hold: 2⁴⁰ in float.
/// The same bounds weight decay.
template <class Scalar>
inline constexpr Scalar kLargestRate = kLargestGradient<Scalar>* std::numeric_limits<Scalar>::epsilon();

template <class Scalar>
[[nodiscard]] constexpr bool finite(Scalar x) {
  return x - x == 0;
}
/// Of a learning rate or a weight decay; false for NaN.
template <class Scalar>
[[nodiscard]] constexpr bool is_rate(Scalar x) {
  return x >= 0 && x <= kLargestRate<Scalar>;
}

}  // namespace detail

/// One step of an optimizer. `gradients` times `gradient_scale` is what is applied: finite, and no larger
/// than can be squared (2⁶³ in float), which is the caller's to see to. Nothing changes unless the result is
/// kOk.
template <class Optimizer, class Parameters>
Status optimizer_step(Parameters& parameters, const Parameters& gradients,
                      typename Optimizer::template Moments<Parameters>& moments,
                      const typename Optimizer::Options& options,
                      typename Optimizer::Scalar gradient_scale = 1) {
  if (const Status status = Optimizer::check(options); status != Status::kOk) return status;
  const typename Optimizer::Coefficients coefficients = Optimizer::advance(moments, options, gradient_scale);
  Optimizer::for_each_with_moments(
      [&coefficients](const TensorPath& path, auto& p, const auto& g, auto&... moment) {
        Optimizer::update(coefficients, path.kind, p.size, p.data(), g.data(), moment.data()...);
      },
      moments, parameters, gradients);
  return Status::kOk;
}

namespace detail {

// Optimizer::update of a part of a tensor; then the gradients are zero. Where there are packets, and so a
// cache, a few at a time, so that they are zeroed where the update has brought them.
template <class Optimizer, class... Moments>
[[gnu::noinline]] void update_and_clear(const typename Optimizer::Coefficients& coefficients, TensorKind kind,
                                        int size, typename Optimizer::Scalar* p,
                                        typename Optimizer::Scalar* g, Moments... moments) {
  using Scalar = typename Optimizer::Scalar;
  const int at_once =
      kernels::kIsScalar<kernels::Packet<Scalar>> || kTogetherIn<Optimizer> == 0 ? size : 1024;
  int first = 0;
  do {  // once, as compilers see of a for only where they unroll
    const int count = (std::min)(at_once, size - first);
    if constexpr (requires { Optimizer::update_and_clear(coefficients, kind, count, p, g, moments...); }) {
      Optimizer::update_and_clear(coefficients, kind, count, p + first, g + first, (moments + first)...);
    } else {
      Optimizer::update(coefficients, kind, count, p + first, g + first, (moments + first)...);
      std::memset(g + first, 0, sizeof(Scalar) * static_cast<std::size_t>(count));
    }
    first += at_once;
  } while (first < size);
}

// All scalars of a set: it has nothing else.
template <class Scalar, class Set>
ATTUNE_INLINE Scalar* scalars_of(Set& set) {
  static_assert(sizeof(Set) % sizeof(Scalar) == 0);
  return reinterpret_cast<Scalar*>(&set);
}

// update_and_clear of all tensors, which are one where nothing but scalars stands in the sets.
template <class Optimizer, class Parameters, class Gradients, class Moments, AnyContext Call>
ATTUNE_INLINE void update_and_clear_all(const typename Optimizer::Coefficients& coefficients,
                                        Parameters& parameters, Gradients& gradients, Moments& moments,
                                        const Call& context) {
  using Scalar = typename Optimizer::Scalar;
  constexpr std::size_t kScalars = sizeof(Parameters) / sizeof(Scalar);
  constexpr int kWorkOfUpdate = 16;
  if constexpr (std::is_same_v<Parameters, Gradients> && kScalars <= (std::numeric_limits<int>::max)() &&
                requires { Optimizer::sets_of_moments(moments); }) {
    constexpr int kSize = static_cast<int>(kScalars);
    std::apply(
        [&]<class... Sets>(Sets&... sets) ATTUNE_INLINE_LAMBDA {
          static_assert((std::is_same_v<Sets, Parameters> && ...));
          context.template elements<kSize, kWorkOfUpdate>([&](int first, int count) ATTUNE_INLINE_LAMBDA {
            update_and_clear<Optimizer>(
                coefficients, TensorKind::kWeight, count, scalars_of<Scalar>(parameters) + first,
                scalars_of<Scalar>(gradients) + first, (scalars_of<Scalar>(sets) + first)...);
          });
        },
        Optimizer::sets_of_moments(moments));
  } else {
    Optimizer::for_each_with_moments(
        [&](const TensorPath& path, auto& p, auto& g, auto&... moment) ATTUNE_INLINE_LAMBDA {
          constexpr int kSize = std::remove_cvref_t<decltype(p)>::size;
          constexpr int kTogether = kTogetherOf<Optimizer, kSize>;
          context.template elements<(kSize + kTogether - 1) / kTogether, kWorkOfUpdate * kTogether>(
              [&](int first_group, int groups) ATTUNE_INLINE_LAMBDA {
                const int first = first_group * kTogether,
                          count = (std::min)(groups * kTogether, kSize - first);
                update_and_clear<Optimizer>(coefficients, path.kind, count, p.data() + first,
                                            g.data() + first, (moment.data() + first)...);
              });
        },
        moments, parameters, gradients);
  }
}

}  // namespace detail

}  // namespace attune::inline ATTUNE_ARITHMETIC
