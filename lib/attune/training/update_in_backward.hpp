// Training without stored gradients: backward updates each parameter as soon as its gradient is known.
//
//   attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;
//
// A batch of one needs no place to add up gradients. Backward passes them to the optimizer a few rows of a
// tensor at a time. RAM holds these rows instead of all gradients, and each parameter is fetched once for
// both uses. The bits equal a step with gradients.
//
// There is no clipping by the norm, which needs all gradients before the first update. The library's layers
// use each parameter once in backward, and read it before its update. Your own layer states this with
// updates_in_backward in its kAbilities. Otherwise its gradients stay in scratch, and its parameters are
// updated after its backward.
//
// A gradient may not overwrite the input of linear layers, attention and networks, which they read once more.
// Between such layers, and between encoder layers with norms after branches, the plan needs a matrix of
// tokens for it; factors of a rank above 8 need one more x·A. If that exceeds the gradients, the plan keeps
// gradients and equals BySequence. It never takes more RAM.
//
// Parameters and moments stay finite. An error found before backward changes nothing: refused options, ids or
// targets, an input that is not finite or too large to be squared, a loss that is not finite. Gradients are
// known only in backward. The first rows with a gradient that is not finite, or too large to be squared, and
// all rows after them, are not applied. The step then returns kNotFinite and is counted. Parameters that
// backward reached before, in later layers and in the rows above, are already updated. The cause is an
// overflow in backward, or an input next to a mask, which is not checked.
#pragma once

#include <attune/execution/layer_calls.hpp>
#include <attune/execution/pass.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/squares.hpp>
#include <attune/training/batch_update.hpp>
#include <attune/training/forward_loss.hpp>
#include <attune/training/loss.hpp>
#include <attune/training/moment_sets.hpp>
#include <attune/training/optimizer.hpp>
#include <attune/training/plan.hpp>
#include <attune/training/shared_buffers.hpp>
#include <attune/training/state.hpp>
#include <attune/training/step_result.hpp>
#include <attune/weights/gradient_rows.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The number of rows updated at a time: whole register tiles of a product, and whole groups of `together`
/// elements (optimizer.hpp), a power of two, so that their gcd is one.
constexpr int updated_rows(int together, int rows, int cols) {
  if (together == 0) return rows;
  return smaller(rows, larger(kMinUpdatedRows, together / smaller(together, cols & -cols)));
}

// Stands for gradients that are applied at once, in the types of tape and scratch, for any optimizer.
template <class Scalar, int rows, int cols>
struct UpdatedAtOnce : detail::Extents<Scalar, rows, cols> {
  static constexpr bool kUpdatesAtOnce = true;
};

/// The number of scalars in the rows of gradients that exist at one time. One function for all `together`:
/// its instantiation for a large model takes the compiler a while.
template <class Model>
constexpr int updated_scalars(int together) {
  static_assert(Holds<HasSets<Model>>,
                "attune::UpdateInBackward: the model and its layers need ParametersOf<Matrix, Vector>, for "
                "sets with updates instead of gradients");
  int most = 1;
  if constexpr (HasSets<Model>) {
    SetOf<Model, UpdatedAtOnce, UpdatedAtOnce> extents{};
    for_each_tensor(
        [&most, together](const TensorPath&, auto tensor) {
          most = larger(most, updated_rows(together, tensor.rows, tensor.cols) * tensor.cols);
        },
        extents);
  }
  return at_least_one(most);
}

// Parameters and moments: of one tensor, or of the whole set.
template <class Optimizer>
struct UpdatedMemory {
  typename ParametersFor<Optimizer>::Pointer parameters{nullptr};
  typename MomentPointerOf<Optimizer>::type moments[std::size_t{larger(Optimizer::kMoments, 1)}]{};

  ATTUNE_INLINE friend UpdatedMemory operator+(UpdatedMemory memory, int count) {
    memory.parameters = memory.parameters + count;
    for (int k = 0; k < Optimizer::kMoments; ++k) memory.moments[k] = memory.moments[k] + count;
    return memory;
  }
};
// Whether an index is valid in the sets of parameters and of moments: nothing lies between tensors, or
// moments are sets of parameters.
template <class Optimizer, class Parameters>
inline constexpr bool kOneLayout =
    kUpdateBlockIn<Optimizer> == 1 && !HasMasters<Optimizer> &&
    (sizeof(typename Optimizer::Scalar) * std::size_t{kEndOfMoments<Parameters>.scalars} ==
         sizeof(Parameters) ||
     Optimizer::kMoments == 0 || HasSetsOfMoments<Optimizer, Parameters>);

// Shared data of the updates of one step.
template <class Optimizer, bool one_layout>
struct UpdateContext {
  using Scalar = typename Optimizer::Scalar;
  static constexpr int kMoments = Optimizer::kMoments;

  typename Optimizer::Coefficients coefficients;
  Scalar* rows;  // memory for updated_scalars()
  [[no_unique_address]] MemberIf<one_layout, UpdatedMemory<Optimizer>, 16> all;
  Scalar bound;    // for the sum of squares
  Scalar squares;  // Σg² so far; once it is NaN or reaches the bound, it stays so

  // The place of a tensor in a set that begins at `begin`.
  int place_of(void* begin, auto& parameter, auto&... moment) requires(one_layout) {
    all.parameters = static_cast<Scalar*>(begin);
    const auto first = static_cast<int>(parameter.data() - all.parameters);
    [[maybe_unused]] int k = 0;
    ((all.moments[k++] = moment.data() - first), ...);
    return first;
  }
  static UpdatedMemory<Optimizer> place_of(void*, auto& parameter, auto&... moment) requires(!one_layout) {
    return {parameter.data(), {moment.data()...}};
  }
  // Updates `size` parameters from `first` on; their gradients are in `rows`.
  [[gnu::noinline]] void update(TensorKind kind, int first, int size) requires(one_layout) {
    update(kind, all + first, size);
  }
  ATTUNE_INLINE void update(TensorKind kind, const UpdatedMemory<Optimizer>& memory, int size) {
    squares += kernels::sum_of_squares(size, static_cast<const Scalar*>(rows));
    if (!(squares < bound)) return;
    [&]<std::size_t... kMoment>(std::index_sequence<kMoment...>) {
      Optimizer::update(coefficients, kind, size, memory.parameters, rows, memory.moments[kMoment]...);
    }
    (std::make_index_sequence<static_cast<std::size_t>(kMoments)>{});
  }
};

// The kind of a tensor, for optimizers that do not use it.
struct AnyKind {
  constexpr AnyKind() = default;
  constexpr AnyKind(TensorKind) {}
  constexpr operator TensorKind() const { return TensorKind::kWeight; }
};

// Stands for a tensor's gradient: adding to it updates the tensor. It is its own view.
template <class Optimizer, bool one_layout>
struct Updates {
  // The place of a tensor: its index in the sets, or its memory.
  using Place = std::conditional_t<one_layout, int, UpdatedMemory<Optimizer>>;
  template <class Scalar, int kRows, int kCols>
  struct Leaf {
    static constexpr bool kUpdatesAtOnce = true;

    Place first;  // of the tensor's first scalar
    UpdateContext<Optimizer, one_layout>* context;
    [[no_unique_address]] std::conditional_t<UpdatesByKind<Optimizer>, TensorKind, AnyKind> kind;

    friend const Leaf& view(const Leaf& leaf) { return leaf; }
    template <int kCount>
    [[nodiscard]] Leaf<Scalar, kCount, kCols> rows_at(int row) const {
      return {first + row * kCols, context, kind};
    }

    template <class A, class B, class Terms = kernels::DenseTerms>
    friend void add_product(const A& a, const B& b, const Leaf& leaf, const Terms& terms = {}) {
      leaf.update_rows([&]<class Rows>(int row, const Rows& gradient) ATTUNE_INLINE_LAMBDA {
        terms.gemm(a.template rows_at<Rows::rows>(row), b, gradient);
      });
    }
    template <class Gradient>
    friend void add_column_sums(const Gradient& dy, const Leaf& leaf) {
      static_assert(kRows == 1);
      add_rows(leaf, [&](int, const auto& sums) ATTUNE_INLINE_LAMBDA { add_column_sums(dy, sums); });
    }
    template <class Add>
    friend void add_rows(const Leaf& leaf, const Add& add) {
      leaf.update_rows([&](int row, const auto& gradient) ATTUNE_INLINE_LAMBDA {
        for (int i = 0; i < gradient.rows * gradient.cols; ++i) gradient.data[i] = 0;
        add(row, gradient);
      });
    }

   private:
    // gradient(row, rows) writes the gradients of some rows from `row` on; they then update the tensor.
    void update_rows(const auto& gradient) const {
      const auto rows = [&]<int kCount>(int row) ATTUNE_INLINE_LAMBDA {
        gradient(row, MatrixView<Scalar, kCount, kCols>(context->rows));
        context->update(kind, first + row * kCols, kCount * kCols);
      };
      in_blocks<kRows, updated_rows(kUpdateBlockIn<Optimizer>, kRows, kCols)>(rows);
    }
  };
};

// The plan without gradients, for any model and optimizers with kUpdateBlock = together.
template <int together>
struct NoGradientsKept : BySequence {
  static_assert((together & (together - 1)) == 0, "kUpdateBlock is a power of two, or 0");
  template <class Model>
  using Gradients = Tensor<typename Model::Scalar, 1, updated_scalars<Model>(together)>;  // a few rows
  /// The set that tape and scratch are made for.
  template <class Model>
  using GradientSet = SetOf<Model, UpdatedAtOnce, UpdatedAtOnce>;
};

/// RAM of a plan besides parameters and moments.
template <class Model, class Plan>
inline constexpr std::size_t kWorkingBytes =
    sizeof(typename Plan::template Gradients<Model>) +
    sizeof(TrainerBuffers<Model, typename Plan::template GradientSet<Model>>);
// Whether a plan without gradients takes less RAM. For a model without sets, its error says why it is none.
template <class Model, class Plan>
concept SavesGradients = !HasSets<Model> || (kWorkingBytes<Model, Plan> < kWorkingBytes<Model, BySequence>);

// UpdateInBackward for optimizers with kUpdateBlock = together.
template <int together>
struct UpdateTogetherInBackward : BySequence {
  /// The plan for a model: this one, or BySequence if that takes less RAM.
  template <class Model>
  using For = std::conditional_t<SavesGradients<Model, NoGradientsKept<together>>, NoGradientsKept<together>,
                                 BySequence>;
  template <class Model>
  using Gradients = typename For<Model>::template Gradients<Model>;
  /// The set that tape and scratch are made for.
  template <class Model>
  using GradientSet = typename For<Model>::template GradientSet<Model>;
};

}  // namespace detail

/// The plan of a Trainer with a batch of one: keeps no gradients in RAM, if that saves RAM.
struct UpdateInBackward : detail::UpdateTogetherInBackward<1> {
  /// The plan for an optimizer.
  template <class Optimizer>
  using With = detail::UpdateTogetherInBackward<detail::kUpdateBlockIn<Optimizer>>;
};

namespace detail {

/// Stands for the gradients in a layer's backward, for one step:
///
///   ParameterUpdates<Layer, AdamW> updates(parameters, moments, options, rows);
///   Layer::backward(parameters, x, tape, dy, dx, updates.leaves, scratch);
///
/// `tape` and `scratch` are a Tape and a Scratch of this class. Optimizer::check() must have accepted the
/// `options`. Gradients times `gradient_scale` are applied, and `rows` is overwritten. If ok() is false after
/// backward, some gradients were not applied: see the top of this file.
template <class Model, class Optimizer>
class ParameterUpdates : NotCopied {
 public:
  using Scalar = typename Model::Scalar;
  using Parameters = MastersOf<Model, Optimizer>;
  using Moments = typename Optimizer::template Moments<typename Model::Parameters>;
  static constexpr bool kOne = kOneLayout<Optimizer, typename Model::Parameters>;
  /// The plan: memory for gradients of the largest tensor's rows.
  using Plan = NoGradientsKept<kUpdateBlockIn<Optimizer>>;
  using Rows = typename Plan::template Gradients<Model>;
  using Tape = TapeOf<Model, typename Plan::template GradientSet<Model>>;
  using Scratch = ScratchOf<Model, typename Plan::template GradientSet<Model>>;

  /// Begins a step of the optimizer: see above.
  ParameterUpdates(Parameters& parameters, Moments& moments, const typename Optimizer::Options& options,
                   Rows& rows, Scalar gradient_scale = 1)
      : context_{.coefficients = Optimizer::advance(moments, options, gradient_scale),
                 .rows = rows.data(),
                 .all = {},
                 .bound = kLargestGradient<Scalar> / gradient_scale,
                 .squares = 0} {
    context_.bound *= context_.bound;
    Optimizer::for_each_with_moments(
        [&](const TensorPath& path, auto& leaf, auto& parameter, auto&... moment) {
          leaf = {context_.place_of(&parameters, parameter, moment...), &context_, path.kind};
        },
        moments, leaves, parameters);
  }

  /// Whether all gradients were finite and not too large.
  [[nodiscard]] bool ok() const { return context_.squares < context_.bound; }
  /// √Σg² of the gradients so far.
  [[nodiscard]] Scalar gradient_norm() const { return kernels::square_root(context_.squares); }

  /// Stands for the gradients in backward.
  typename Model::template ParametersOf<Updates<Optimizer, kOne>::template Leaf> leaves;

 private:
  UpdateContext<Optimizer, kOne> context_;
};

/// A step of a trainer, with its plan's `executor`, its `rows`, and its `work` (shared_buffers.hpp).
template <class Model, class Optimizer, TrainingPrecision precision, class Mask, class Loss>
ATTUNE_INLINE StepResult<typename Model::Scalar> step_in_backward(
    TrainingState<Model, Optimizer, precision>& state, auto& executor, auto& rows, auto& work,
    ConstView<typename Model::Input> x, const auto& target, const typename Optimizer::Options& options,
    const Mask& mask, const Loss& loss) {
  using Scalar = typename Model::Scalar;
  using Output = typename Model::Output;
  using Result = StepResult<Scalar>;
  if (work.lock().under_way()) return Result::refused(Status::kUnderWay);  // another trainer's pass
  auto& tape = work.memory().tape;
  auto& scratch = work.memory().scratch.training;
  const View<Output> output(work.memory().output);
  if (const Status status = load_weights(state, executor); status != Status::kOk) {
    return Result::refused(status);
  }
  if constexpr (!kMasks<Mask> && !TakesIds<Model>) {
    if (!finite(kernels::sum_of_squares(Model::Input::size, x.data)))
      return Result::refused(Status::kNotFinite);
  }
  state.masks.apply_to(tape, 0);
  const auto& weights = executor.weights(state.parameters);
  const auto context = context_in_plan<Model, std::remove_cvref_t<decltype(executor)>>(mask);
  LossSum<Scalar> sum;
  const Status status =
      forward_loss<Model>(context, weights, x, output, target, loss, sum, Unused{}, tape, scratch);
  if (status != Status::kOk) return Result::refused(status);
  const auto gradient = BatchGradient<Scalar>::template of<Loss, Optimizer>(0, options, NoClipping{}, sum);
  if (gradient.status != Status::kOk) return Result::refused(gradient.status);

  ParameterUpdates<Model, Optimizer> updates(state.parameters, state.moments, options, rows, gradient.scale);
  backward_in<Model>(context, weights, x, tape, ConstView<Output>(output), NoGradient{}, updates.leaves,
                     scratch);
  executor.invalidate();
  count_step(state, 1);
  if (!updates.ok()) return Result::refused(Status::kNotFinite);
  return {sum.sum * gradient.scale, Status::kOk, updates.gradient_norm() * gradient.scale};
}

}  // namespace detail

}  // namespace ATTUNE_NAMESPACE
