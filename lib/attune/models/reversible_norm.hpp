// Reversible instance normalization (RevIN) of time series (Kim et al., "Reversible Instance Normalization
// for Accurate Time-Series Forecasting against Distribution Shift", 2022): a model sees each feature without
// its mean and deviation over the sequence, and gives them back to its output.
//
//   n = (x − μ)/σ,   o = f(n ∘ w + b),   p = (o − b)/(w + ε²),   y = μ + σ ∘ p
//
// μ and σ² are the mean and the variance + ε of each feature over all valid tokens of x. w and b are
// optional. With subtract_last, the last valid token takes the place of μ in these equations; σ stays.
//
//   do = dy ∘ σ/(w + ε²),   dm = (∂f)ᵀ·do,   dw += Σ_tokens dm ∘ n − Σ do ∘ p,   db += Σ_tokens dm − Σ do
//   dx = (∂n)ᵀ·(dm ∘ w) + (Σ dy + n ∘ Σ dy ∘ p)/tokens      with subtract_last, Σ dy goes to the last token
#pragma once

#include <attune/layers/group_norm.hpp>
#include <attune/models/branch_memory.hpp>
#include <attune/models/composition.hpp>

namespace ATTUNE_NAMESPACE {

/// Options of `ReversibleNorm`.
struct ReversibleNormOptions {
  double epsilon = 1e-5;       // added to the variances
  bool affine = false;         // whether each feature has a trained factor and a bias while it is normalized
  bool subtract_last = false;  // whether features lose their last value in place of their mean
};

namespace detail {

// Whether a feature of the output can take its mean from a feature of the input.
template <class Model>
concept KeepsFeatures = TakesIds<Model> ||(Model::Input::cols == Model::Output::cols);
template <class Model>
constexpr bool check_reversible_norm() {
  static_assert(Holds<!TakesIds<Model>>,
                "attune::ReversibleNorm: the model takes token ids, which have no mean; give it a model of "
                "matrices");
  static_assert(Holds<KeepsFeatures<Model>>,
                "attune::ReversibleNorm: the model's output needs the features of its input, whose mean and "
                "deviation it gets; for other outputs, put a GroupNorm of one feature each in front");
  return true;
}
// One group for each feature of the model's input.
template <class Model, ReversibleNormOptions options>
constexpr GroupNormShape norm_of_features() {
  if constexpr (TakesIds<Model>) {
    return {1, 1, 1};
  } else {
    return {Model::Input::rows, Model::Input::cols, Model::Input::cols, options.epsilon, false};
  }
}
template <class Model>
concept Reversible = CheckedLayer<Model> && check_reversible_norm<Model>();

}  // namespace detail

/// A model of normalized features, whose output gets their mean and deviation back: RevIN. The output may
/// have any number of rows, such as a forecast. Leaves padding out of the statistics. The model's input is
/// recomputed in backward.
template <class ModelType, ReversibleNormOptions options = ReversibleNormOptions{}>
  requires detail::Reversible<ModelType>
struct ReversibleNorm : detail::Passes<ReversibleNorm<ModelType, options>> {
  using Model = ModelType;
  using Scalar = typename Model::Scalar;
  using Output = typename Model::Output;
  template <class Other>
  using WithScalar = ReversibleNorm<typename detail::WithScalarOf<Model, Other>::type, options>;
  /// The statistics of each feature.
  using Norm = GroupNorm<detail::norm_of_features<Model, options>(), Scalar>;
  using Input = typename Norm::Input;
  using Parts = LayerList<Norm, Model>;
  template <int tokens, CacheShape>
  using Stream = detail::NeedsWholeSequence<tokens>;
  static constexpr std::uint32_t kFingerprint = [] {
    const auto state = fingerprint("ReversibleNorm", options.epsilon, options.affine, kFingerprintOf<Model>);
    return options.subtract_last ? fingerprint(state, "subtract_last") : state;
  }();

  /// w and b, if there are any; and the model's set.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    /// w and b; nothing without options.affine.
    [[no_unique_address]] NormParameters<Scalar, Norm::shape.d_model, options.affine, options.affine, Vector>
        norm;
    /// The model's set.
    [[no_unique_address]] detail::SetOf<Model, Matrix, Vector> model;
    ATTUNE_FIELDS(Set(norm), Set(model))
  };
  using Parameters = ParametersOf<Tensor>;
  static constexpr Abilities kAbilities = detail::with(
      detail::kAbilitiesOfAll<Norm, Model>, &Abilities::additions,
      options.affine ? detail::kAdditionsOfAll<Model> : detail::kAbilitiesOfAll<Norm, Model>.additions);

 private:
  using Features = typename Norm::Features;
  template <class Gradients>
  using OfModel = std::remove_cvref_t<decltype(std::declval<Gradients&>().model)>;

 public:
  /// The model's tape and output, and the statistics. Backward needs x.
  template <class Gradients>
  struct TapeOf {
    [[no_unique_address]] detail::TapeOf<Model, OfModel<Gradients>> model;
    typename Norm::Tape statistics;
    Output output;  // of the model

    template <class Visitor>
    constexpr void for_each_dropout(const Visitor& visitor) requires detail::DropsIn<decltype(model)> {
      model.for_each_dropout(visitor);
    }
  };
  using Tape = TapeOf<Parameters>;
  /// The model's scratch and input, and gradients.
  template <class Gradients>
  struct ScratchOf {
    [[no_unique_address]] detail::ScratchOf<Model, OfModel<Gradients>> model;
    Input normalized;
    Output d_output;
    typename Norm::Scratch sums;
    [[no_unique_address]] detail::MemberIf<options.affine, Input, 0> d_normalized;
    [[no_unique_address]] detail::MemberIf<options.affine, typename Norm::Scratch, 1> d_affine;  // db and dw
  };
  using Scratch = ScratchOf<Parameters>;
  /// The model's scratch and input, and the statistics.
  struct InferenceScratch {
    [[no_unique_address]] typename Model::InferenceScratch model;
    Input normalized;
    typename Norm::Tape statistics;
  };

  /// Neither `y` nor `dx` may overlap `x`, nor `dx` `dy`.
  using detail::Passes<ReversibleNorm>::forward, detail::Passes<ReversibleNorm>::backward;

 private:
  friend detail::Passes<ReversibleNorm>;
  ATTUNE_INLINE static void run(const auto& context, const auto& parameters, const auto& x, const auto& y,
                                auto& scratch, auto&... tape) {
    typename Norm::Tape& statistics = detail::on_tape(scratch, tape...).statistics;
    const View<Output> output = detail::on_tape(y, tape.output...);  // the model's
    Norm::forward(kNone, x, scratch.normalized, statistics, context);
    if constexpr (options.subtract_last || options.affine) {
      write_input(parameters, x, statistics, scratch.normalized, context);
    }
    context.inside([&]() ATTUNE_INLINE_LAMBDA {
      detail::forward_in<Model>(context, parameters.model, scratch.normalized, output, tape.model...,
                                scratch.model);
    });
    give_back(parameters, x, statistics, output, y, context);
  }
  ATTUNE_INLINE static void run_backward(const auto& context, const auto& parameters, const auto& x,
                                         auto& tape, const auto& dy, const auto& dx, auto& gradients,
                                         auto& scratch) {
    const typename Norm::Tape& statistics = tape.statistics;
    each<Output>(context, [&]<class P>(int at, int j) ATTUNE_INLINE_LAMBDA {
      const P deviated = kernels::divide(load<P>(dy, at), load<P>(statistics.inverse, j));
      kernels::store(scratch.d_output.data() + at, without_factor(deviated, parameters, j));
    });
    write_input(parameters, x, statistics, scratch.normalized, context);
    const auto d_model = detail::sink<Input>(detail::first_if<options.affine>(scratch.d_normalized, dx));
    context.inside([&]() ATTUNE_INLINE_LAMBDA {
      detail::backward_in<Model>(context, parameters.model, scratch.normalized, tape.model, scratch.d_output,
                                 d_model, gradients.model, scratch.model);
    });
    if constexpr (options.affine) backward_scale(parameters, x, tape, scratch, context);
    if constexpr (kWanted<decltype(dx)>) {
      NoParameters none;
      if constexpr (options.subtract_last) {
        context.stage([&] { backward_center(d_model, scratch.sums.gradients, context); });
      }
      detail::backward_in<Norm>(context, kNone, x, statistics, d_model, dx, none, scratch.sums);
      context.stage([&] {
        sum<Output>(scratch.sums.gradients, context, elements(dy));
        sum<Output>(scratch.sums.products, context, [&]<class P>(int at, int j) ATTUNE_INLINE_LAMBDA {
          return kernels::multiply(load<P>(dy, at), plain<P>(parameters, tape.output, at, j));
        });
        add_statistics(x, statistics, dx, scratch, context);
      });
    }
    if constexpr (options.affine) {
      context.stage([&] {
        add_vector(gradients.norm.weight, scratch.d_affine.products);
        add_vector(gradients.norm.bias, scratch.d_affine.gradients);
      });
    }
  }

  static constexpr NoParameters kNone{};
  static constexpr int kFeatures = Norm::shape.d_model;

  template <class P>
  ATTUNE_INLINE static P load(const auto& matrix, int at) {
    return kernels::load<P>(dense_view(matrix).data + at);
  }
  // The last valid token; −1 if there is none.
  static int last_of(const auto& context) {
    int last = Input::rows - 1;
    while (last >= 0 && !context.template is_valid<Input::rows>(last)) --last;
    return last;
  }
  // The centers of the features: their means, or their numbers in the last token, if any is valid.
  static const Scalar* centers_of(ConstView<Input> x, const typename Norm::Tape& statistics,
                                  const auto& context) {
    const int last = options.subtract_last ? last_of(context) : -1;
    return last >= 0 ? x.data + last * kFeatures : statistics.mean.data();
  }
  // n of element `at`, of feature j; around the mean, (x − μ)/σ.
  template <class P>
  ATTUNE_INLINE static P centered(ConstView<Input> x, const Scalar* centers,
                                  const typename Norm::Tape& statistics, int at, int j) {
    return kernels::multiply(kernels::subtract(load<P>(x, at), kernels::load<P>(centers + j)),
                             load<P>(statistics.inverse, j));
  }
  // Divided by w + ε².
  template <class P>
  ATTUNE_INLINE static P without_factor(const P& value, [[maybe_unused]] const auto& parameters,
                                        [[maybe_unused]] int j) {
    if constexpr (options.affine) {
      constexpr auto kSquare = static_cast<kernels::Real<Scalar>>(options.epsilon * options.epsilon);
      const P factor = load<P>(parameters.norm.weight, j);
      return kernels::divide(value, kernels::add(factor, kernels::broadcast<P>(Scalar(kSquare))));
    } else {
      return value;
    }
  }
  // p of element `at` of the model's output, of feature j.
  template <class P>
  ATTUNE_INLINE static P plain(const auto& parameters, const auto& output, int at, int j) {
    P value = load<P>(output, at);
    if constexpr (options.affine) value = kernels::subtract(value, load<P>(parameters.norm.bias, j));
    return without_factor(value, parameters, j);
  }

  // body<P>(at, j) for packets of the elements of the valid rows.
  template <class Matrix, class Body>
  ATTUNE_INLINE static void each(const auto& context, const Body& body) {
    context.in_any_order().template each_token<Matrix::rows, 8 * kFeatures>([&](int i) ATTUNE_INLINE_LAMBDA {
      kernels::for_each_packet<Scalar>(kFeatures, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        body.template operator()<P>(i * kFeatures + j, j);
      });
    });
  }
  // Whether row i of a matrix counts in sums: it is not padding, where its rows are tokens.
  template <class Matrix>
  ATTUNE_INLINE static bool counts(const auto& context, int i) {
    if constexpr (Matrix::rows == Input::rows) {
      return context.template is_valid<Matrix::rows>(i);
    } else {
      return true;
    }
  }
  // The terms of a sum of elements.
  static auto elements(const auto& matrix) {
    return [&matrix]<class P>(int at, int) ATTUNE_INLINE_LAMBDA { return load<P>(matrix, at); };
  }
  // sums(j) += Σ term(at, j) over rows, in rising order.
  template <class Matrix>
  static void add_terms(Features& sums, const auto& context, const auto& term) {
    kernels::for_each_packet<Scalar>(kFeatures, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      P total = load<P>(sums, j);
      for (int i = 0; i < Matrix::rows; ++i) {
        if (counts<Matrix>(context, i)) {
          total = kernels::add(total, term.template operator()<P>(i * kFeatures + j, j));
        }
      }
      kernels::store(sums.data() + j, total);
    });
  }
  template <class Matrix>
  static void sum(Features& sums, const auto& context, const auto& term) {
    sums.set_zero();
    add_terms<Matrix>(sums, context, term);
  }

  // The model's input, n ∘ w + b.
  static void write_input([[maybe_unused]] const auto& parameters, ConstView<Input> x,
                          const typename Norm::Tape& statistics, Input& normalized, const auto& context) {
    const Scalar* const centers = centers_of(x, statistics, context);
    each<Input>(context, [&]<class P>(int at, int j) ATTUNE_INLINE_LAMBDA {
      P value = centered<P>(x, centers, statistics, at, j);
      if constexpr (options.affine) {
        value = kernels::multiply_add(value, load<P>(parameters.norm.weight, j),
                                      load<P>(parameters.norm.bias, j));
      }
      kernels::store(normalized.data() + at, value);
    });
  }
  // dn of the mean from dn of the last token, which is subtracted from every token.
  static void backward_center(View<Input> gradient, Features& sums, const auto& context) {
    sum<Input>(sums, context, elements(gradient));
    const int last = last_of(context);
    if (last < 0) return;
    Scalar* const row = gradient.data + last * kFeatures;
    kernels::for_each_packet<Scalar>(kFeatures, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
      kernels::store(row + j, kernels::subtract(kernels::load<P>(row + j), load<P>(sums, j)));
    });
  }
  // y = μ + σ ∘ p. `y` may be `output`.
  ATTUNE_INLINE static void give_back(const auto& parameters, ConstView<Input> x,
                                      const typename Norm::Tape& statistics, ConstView<Output> output,
                                      View<Output> y, const auto& context) {
    const Scalar* const centers = centers_of(x, statistics, context);
    each<Output>(context, [&]<class P>(int at, int j) ATTUNE_INLINE_LAMBDA {
      const P deviated = kernels::divide(plain<P>(parameters, output, at, j), load<P>(statistics.inverse, j));
      kernels::store(y.data + at, kernels::add(deviated, kernels::load<P>(centers + j)));
    });
  }
  // dw and db, and dm ∘ w in place.
  static void backward_scale(const auto& parameters, ConstView<Input> x, const auto& tape, auto& scratch,
                             const auto& context) {
    Input& dm = scratch.d_normalized;
    const Scalar* const centers = centers_of(x, tape.statistics, context);
    context.stage([&] {
      Features& d_weight = scratch.d_affine.products;
      Features& d_bias = scratch.d_affine.gradients;
      sum<Input>(d_weight, context, [&]<class P>(int at, int j) ATTUNE_INLINE_LAMBDA {
        return kernels::multiply(load<P>(dm, at), centered<P>(x, centers, tape.statistics, at, j));
      });
      add_terms<Output>(d_weight, context, [&]<class P>(int at, int j) ATTUNE_INLINE_LAMBDA {
        return kernels::negate(
            kernels::multiply(load<P>(scratch.d_output, at), plain<P>(parameters, tape.output, at, j)));
      });
      sum<Input>(d_bias, context, elements(dm));
      add_terms<Output>(d_bias, context, [&]<class P>(int at, int) ATTUNE_INLINE_LAMBDA {
        return kernels::negate(load<P>(scratch.d_output, at));
      });
    });
    each<Input>(context, [&]<class P>(int at, int j) ATTUNE_INLINE_LAMBDA {
      kernels::store(dm.data() + at, kernels::multiply(load<P>(dm, at), load<P>(parameters.norm.weight, j)));
    });
  }
  static void add_vector(auto& gradient, const Features& sums) {
    add_rows(view(gradient), [&](int, const auto& row)
                                 ATTUNE_INLINE_LAMBDA { kernels::add_to(kFeatures, sums.data(), row.data); });
  }
  // dx += (Σ dy + (x − μ)/σ ∘ Σ dy ∘ p)/tokens; with subtract_last, Σ dy goes to the last token.
  static void add_statistics(ConstView<Input> x, const typename Norm::Tape& statistics, View<Input> dx,
                             const auto& scratch, const auto& context) {
    int tokens = 0;
    for (int i = 0; i < Input::rows; ++i) tokens += context.template is_valid<Input::rows>(i);
    const auto count = Scalar(static_cast<kernels::Real<Scalar>>(tokens > 0 ? tokens : 1));
    for (int i = 0; i < Input::rows; ++i) {
      if (!context.template is_valid<Input::rows>(i)) continue;
      kernels::for_each_packet<Scalar>(kFeatures, [&]<class P>(int j) ATTUNE_INLINE_LAMBDA {
        const int at = i * kFeatures + j;
        const P sum = kernels::multiply_add(
            centered<P>(x, statistics.mean.data(), statistics, at, j), load<P>(scratch.sums.products, j),
            options.subtract_last ? kernels::broadcast<P>(Scalar(0)) : load<P>(scratch.sums.gradients, j));
        kernels::store(dx.data + at, kernels::add(kernels::load<P>(dx.data + at),
                                                  kernels::divide(sum, kernels::broadcast<P>(count))));
      });
    }
    if constexpr (options.subtract_last) {
      const int last = last_of(context);
      if (last >= 0) kernels::add_to(kFeatures, scratch.sums.gradients.data(), dx.data + last * kFeatures);
    }
  }
};

}  // namespace ATTUNE_NAMESPACE
