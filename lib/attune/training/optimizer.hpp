// The interface of an optimizer; the library's are in adam.hpp, adafactor.hpp and sgd.hpp.
//
// One step reads gradients and changes parameters and moments. The caller owns all of them. An optimizer is a
// type without state:
//
//   struct MyOptimizer {
//     using Scalar = float;
//     struct Options { Scalar learning_rate = …; };
//     template <class Parameters>
//     struct Moments { void reset(); };         // of every parameter, and a count of steps; zero at first
//     static constexpr int kMoments = …;        // moments per parameter
//     struct Coefficients { … };                // factors of one step, for every element
//
//     static Status check(const Options&);      // refuses options that could make parameters infinite
//     // Counts a step, with options that check() has passed. Gradients times gradient_scale are applied.
//     static Coefficients advance(Moments<Parameters>&, const Options&, Scalar gradient_scale);
//     // Updates `size` parameters of a tensor from their gradients and their moments, kMoments pointers.
//     static void update(const Coefficients&, TensorKind, int size, Scalar* p, const Scalar* g, Scalar*… m);
//     // Calls visitor(path, tensor of each set…, tensor of each moment…) for every tensor of the sets.
//     static void for_each_with_moments(visitor, Moments<Parameters>&, sets&…);
//   };
//
// Optional members:
//
//   static constexpr bool kByKind = true;       // the update depends on TensorKind (parameter_groups.hpp)
//   struct Counters;                            // Moments without tensors, for types that wrap an optimizer
//   using MomentPointer = …;                    // data() of a moment tensor, with `+ count`
//   using ParameterPointer = …;                 // p of update(), with `+ count`; default: Scalar*
//   template <class Model> using Masters = …;   // the model's parameters in RAM; default: Model::Parameters
//   void Moments::seed(std::uint64_t bits);     // called at every restart
//   static constexpr int kUpdateBlock = …;  // an update starts at a multiple of so many elements of a
//                                               // tensor; 0: it takes a whole tensor; default: 1
//   // Calls body(set…) with kMoments Parameters, if all parameters update alike: update() may get all as one
//   // tensor.
//   static void sets_of_moments(Moments<Parameters>&, body);
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <attune/core/fingerprint.hpp>
#include <attune/core/parameters.hpp>
#include <attune/core/status.hpp>
#include <attune/execution/context.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/simd/arithmetic.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The pointer type of an optimizer's moments.
template <class O>
struct MomentPointerOf {
  using type = typename O::Scalar*;
};
template <class O>
  requires requires { typename O::MomentPointer; }
struct MomentPointerOf<O> {
  using type = typename O::MomentPointer;
};

/// Whether an optimizer has its own storage of parameters.
template <class O>
concept HasMasters = requires {
  typename O::ParameterPointer;
};
/// The set of a model's parameters, and a pointer to some of a tensor.
template <class O>
struct ParametersFor {
  using Pointer = typename O::Scalar*;
  template <class Model>
  using Set = typename Model::Parameters;
};
template <HasMasters O>
struct ParametersFor<O> {
  using Pointer = typename O::ParameterPointer;
  template <class Model>
  using Set = typename O::template Masters<Model>;
};
template <class Model, class O>
using MastersOf = typename ParametersFor<O>::template Set<Model>;

/// An optimizer whose updates depend on the TensorKind.
template <class O>
concept UpdatesByKind = requires {
  requires O::kByKind;
};

/// The number of elements that an update takes together; 0: a whole tensor.
template <class O>
inline constexpr int kUpdateBlockIn = 1;
template <class O>
  requires requires { O::kUpdateBlock; }
inline constexpr int kUpdateBlockIn<O> = O::kUpdateBlock;
/// The same for a tensor of `size` elements.
template <class O, int size>
inline constexpr int kUpdateBlockOf = kUpdateBlockIn<O> == 0 ? size : kUpdateBlockIn<O>;

template <class O, class Parameters>
concept NamesItsStep = requires {
  typename O::Scalar;
  typename O::Options;
  typename O::Coefficients;
  typename O::template Moments<Parameters>;
};
template <class O, class Parameters>
concept ChecksOptions = NamesItsStep<O, Parameters> && requires(const typename O::Options& options) {
  { O::check(options) } -> std::same_as<Status>;
};
template <class O, class Parameters>
concept Advances = ChecksOptions<O, Parameters> &&
    requires(typename O::template Moments<Parameters>& moments, const typename O::Options& options,
             typename O::Scalar scale) {
  { O::advance(moments, options, scale) } -> std::same_as<typename O::Coefficients>;
};

}  // namespace detail

/// An optimizer of `Parameters`: see the top of this file.
template <class O, class Parameters>
concept IsOptimizer = detail::Advances<O, Parameters> &&
    requires(typename O::template Moments<Parameters>& moments, Parameters& parameters) {
  { O::kMoments } -> std::convertible_to<int>;
  moments.reset();
  O::for_each_with_moments([](const TensorPath&, auto&...) {}, moments, parameters);
} && requires(const typename O::Coefficients& c, typename O::Scalar* p, const typename O::Scalar* g,
              typename detail::MomentPointerOf<O>::type m) {
  requires(O::kMoments != 0 || requires { O::update(c, TensorKind::kWeight, 1, p, g); });
  requires(O::kMoments != 1 || requires { O::update(c, TensorKind::kWeight, 1, p, g, m); });
  requires(O::kMoments != 2 || requires { O::update(c, TensorKind::kWeight, 1, p, g, m, m); });
};

namespace detail {

/// Whether O is an optimizer. If not, one error names the missing member.
template <class O, class Parameters>
constexpr bool check_optimizer() {
  static_assert(Holds<NamesItsStep<O, Parameters>>,
                "attune::Optimizer: the type needs Scalar, Options, Coefficients and Moments<Parameters>; "
                "training/optimizer.hpp shows an optimizer's members");
  static_assert(Holds<(ChecksOptions<O, Parameters> || !NamesItsStep<O, Parameters>)>,
                "attune::Optimizer: there is no check(options) that returns a Status");
  static_assert(
      Holds<(Advances<O, Parameters> || !ChecksOptions<O, Parameters>)>,
      "attune::Optimizer: there is no advance(moments, options, gradient_scale) that returns Coefficients");
  static_assert(Holds<(IsOptimizer<O, Parameters> || !Advances<O, Parameters>)>,
                "attune::Optimizer: the type lacks kMoments, moments.reset(), for_each_with_moments(visitor, "
                "moments, sets...), or update(coefficients, kind, size, p, g, moments...)");
  return IsOptimizer<O, Parameters>;
}
template <class O, class Parameters>
concept CheckedOptimizer = check_optimizer<O, Parameters>();

/// The largest gradient that may be squared: 2⁶³ in float, half the range of exponents.
template <class Scalar>
inline constexpr Scalar kLargestGradient = [] {
  Scalar bound = 1;
  for (int i = 1; i < std::numeric_limits<Scalar>::max_exponent / 2; ++i) bound *= 2;
  return bound;
}();
/// The largest learning rate and weight decay, 2⁴⁰ in float. A larger rate times such a gradient could come
/// near the largest number.
template <class Scalar>
inline constexpr Scalar kLargestRate = kLargestGradient<Scalar>* std::numeric_limits<Scalar>::epsilon();

template <class Scalar>
[[nodiscard]] constexpr bool finite(Scalar x) {
  return x - x == 0;
}
/// Whether x is a valid learning rate or weight decay; false for NaN.
template <class Scalar>
[[nodiscard]] constexpr bool is_rate(Scalar x) {
  return x >= 0 && x <= kLargestRate<Scalar>;
}

}  // namespace detail

/// One step of an optimizer with `gradients` times `gradient_scale`. The caller makes sure that these are
/// finite and small enough to be squared (2⁶³ in float). Gradients are a set of the parameters' type; of an
/// optimizer with storage of its own, parameters are its Masters. Nothing changes unless the result is kOk.
template <class Optimizer, class Parameters, class Gradients>
Status optimizer_step(Parameters& parameters, const Gradients& gradients,
                      typename Optimizer::template Moments<Gradients>& moments,
                      const typename Optimizer::Options& options,
                      typename Optimizer::Scalar gradient_scale = 1) {
  static_assert(detail::Holds<(detail::HasMasters<Optimizer> || std::is_same_v<Parameters, Gradients>)>,
                "attune::optimizer_step: gradients and parameters have different types; use one type");
  if (const Status status = Optimizer::check(options); status != Status::kOk) return status;
  const typename Optimizer::Coefficients coefficients = Optimizer::advance(moments, options, gradient_scale);
  Optimizer::for_each_with_moments(
      [&coefficients](const TensorPath& path, auto& p, const auto& g, auto&... moment) {
        Optimizer::update(coefficients, path.kind, p.size, p.data(), g.data(), moment.data()...);
      },
      moments, parameters, gradients);
  return Status::kOk;
}

/// The base of the optimizer `Own`, with its step over whole sets.
template <class Own>
struct OptimizerStep {
  /// One step: see optimizer_step.
  template <class Optimizer = Own>
  static Status step(auto& parameters, const auto& gradients, auto& moments,
                     const typename Optimizer::Options& options,
                     typename Optimizer::Scalar gradient_scale = 1) {
    return optimizer_step<Own>(parameters, gradients, moments, options, gradient_scale);
  }
};

namespace detail {

// Optimizer::update for part of a tensor, then zeros the gradients. With packets, and so a cache, it works in
// small blocks, to zero gradients while they are in the cache. Elements that update together stay together,
// so targets with and without a cache agree.
template <class Optimizer, class... Moments>
[[gnu::noinline]] void update_and_clear(const typename Optimizer::Coefficients& coefficients, TensorKind kind,
                                        int size, typename ParametersFor<Optimizer>::Pointer p,
                                        typename Optimizer::Scalar* g, Moments... moments) {
  using Scalar = typename Optimizer::Scalar;
  constexpr int kBlock = kUpdateBlockIn<Optimizer>;
  constexpr int kInCache = kBlock > 0 ? (1024 + kBlock - 1) / kBlock * kBlock : 0;
  const int at_once = kernels::kIsScalar<kernels::Packet<Scalar>> || kBlock == 0 ? size : kInCache;
  int first = 0;
  do {  // do, not for: compilers then see that one pass runs
    const int count = smaller(at_once, size - first);
    if constexpr (requires { Optimizer::update_and_clear(coefficients, kind, count, p, g, moments...); }) {
      Optimizer::update_and_clear(coefficients, kind, count, p + first, g + first, (moments + first)...);
    } else {
      Optimizer::update(coefficients, kind, count, p + first, g + first, (moments + first)...);
      std::memset(g + first, 0, sizeof(Scalar) * static_cast<std::size_t>(count));
    }
    first += at_once;
  } while (first < size);
}

// The scalars of a set that holds nothing else.
template <class Scalar, class Set>
ATTUNE_INLINE Scalar* scalars_of(Set& set) {
  static_assert(sizeof(Set) % sizeof(Scalar) == 0);
  return reinterpret_cast<Scalar*>(&set);
}

/// Whether an optimizer's moments are sets of parameters, and all parameters update alike.
template <class Optimizer, class Parameters>
concept HasSetsOfMoments = requires(typename Optimizer::template Moments<Parameters>& moments) {
  Optimizer::sets_of_moments(moments, [](auto&...) {});
};

// update_and_clear of all tensors; of all as one tensor, if the sets hold nothing but scalars.
template <class Optimizer, class Parameters, class Gradients, class Moments, AnyContext Call>
ATTUNE_INLINE void update_and_clear_all(const typename Optimizer::Coefficients& coefficients,
                                        Parameters& parameters, Gradients& gradients, Moments& moments,
                                        const Call& context) {
  using Scalar = typename Optimizer::Scalar;
  constexpr std::size_t kScalars = sizeof(Parameters) / sizeof(Scalar);
  constexpr int kWorkOfUpdate = 16;
  if constexpr (std::is_same_v<Parameters, Gradients> && kScalars <= (std::numeric_limits<int>::max)() &&
                HasSetsOfMoments<Optimizer, Parameters>) {
    constexpr int kSize = static_cast<int>(kScalars);
    Optimizer::sets_of_moments(moments, [&]<class... Sets>(Sets&... sets) ATTUNE_INLINE_LAMBDA {
      static_assert((std::is_same_v<Sets, Parameters> && ...));
      context.template elements<kSize, kWorkOfUpdate>([&](int first, int count) ATTUNE_INLINE_LAMBDA {
        update_and_clear<Optimizer>(
            coefficients, TensorKind::kWeight, count, scalars_of<Scalar>(parameters) + first,
            scalars_of<Scalar>(gradients) + first, (scalars_of<Scalar>(sets) + first)...);
      });
    });
  } else {
    Optimizer::for_each_with_moments(
        [&](const TensorPath& path, auto& p, auto& g, auto&... moment) ATTUNE_INLINE_LAMBDA {
          constexpr int kSize = std::remove_cvref_t<decltype(p)>::size;
          constexpr int kBlock = kUpdateBlockOf<Optimizer, kSize>;
          context.template elements<(kSize + kBlock - 1) / kBlock, kWorkOfUpdate * kBlock>(
              [&](int first_group, int groups) ATTUNE_INLINE_LAMBDA {
                const int first = first_group * kBlock, count = smaller(groups * kBlock, kSize - first);
                update_and_clear<Optimizer>(coefficients, path.kind, count, p.data() + first,
                                            g.data() + first, (moment.data() + first)...);
              });
        },
        moments, parameters, gradients);
  }
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
