// Models with constant parts: the type says which parameters are trained.
//
//   constexpr Backbone::Parameters kBackbone = …;                                            // flash
//   using Model = Sequential<Frozen<Backbone, kBackbone>, Linear<LinearShape{1, 16, 10}>>;   // the head
//   using Tuned = BiasesAndNorms<Whole, kWhole>;                                             // a part of all
//   using LoRA = Adapted<Whole, kWhole, LowRank{.rank = 4}>;              // LoRA (weights/low_rank.hpp)
//
// A Trainer of such a model has parameters, gradients, moments and a tape for the trained part only, and the
// firmware contains no other backward code. Constants stay in place, in any storage (weights/weights.hpp):
// tensors, or references into a file in flash. They may also be a static that is filled at run time, before
// the model is first used: the type holds its address, not its values.
#pragma once

#include <attune/models/composition.hpp>
#include <attune/models/trainable.hpp>
#include <attune/weights/quantized_weights.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// The largest number of rows among the input, output and memory of a layer and of its listed layers.
template <class Layer>
constexpr int most_tokens() {
  int most = Layer::Output::rows;
  if constexpr (TakesIds<Layer>) {
    most = larger(most, static_cast<int>(std::tuple_size_v<typename Layer::Input>));
  } else {
    most = larger(most, Layer::Input::rows);
  }
  if constexpr (requires { Layer::KeyInput::rows; }) most = larger(most, Layer::KeyInput::rows);
  if constexpr (requires { Layer::Memory::rows; }) most = larger(most, Layer::Memory::rows);
  for_each_part<Layer>([&]<class Part>() { most = larger(most, most_tokens<Part>()); });
  return most;
}

}  // namespace detail

/// `Layer` with constant parameters, except for the trained ones. If anything is trained, a call keeps a
/// pointer on the stack for every tensor of Layer. Factors of low rank need two or three pointers, and as
/// many again for gradients in backward.
///
/// A layer without trained parameters at the front of a Sequential runs inference only: no tape, no dropout.
/// After a trained layer it passes dx on, and applies the dropout of its shape.
template <detail::CheckedLayer Layer, const auto& kConstants, class What>
  requires detail::CheckedConstants<Layer, kConstants>
struct PartlyTrained : detail::Steps<PartlyTrained<Layer, kConstants, What>>,
                       detail::Passes<PartlyTrained<Layer, kConstants, What>> {
  using Scalar = typename Layer::Scalar;
  using Input = typename Layer::Input;
  using Output = typename Layer::Output;
  using Parts = LayerList<Layer>;
  /// All of Layer's parameters, including the initial values of trained ones.
  static constexpr const auto& constants() { return kConstants; }
  static constexpr std::uint32_t kFingerprint = fingerprint(
      "constant", kFingerprintOf<Layer>, detail::fingerprint_of_tensors<Layer>(), kFingerprintOf<What>);
  /// The same with the scalar of Lockstep's lanes; constants stay as they are.
  template <class Other>
  using WithScalar = PartlyTrained<typename detail::WithScalarOf<Layer, Other>::type, kConstants, What>;
  /// The trained part with this storage; nothing for the rest.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector>
  using TrainedOf = detail::SetOf<Layer, ByRole<detail::Rebind<What, Matrix, Vector>>::template Matrix,
                                  ByRole<detail::Rebind<What, Matrix, Vector>>::template Vector>;
  /// The trained part as tensors; nothing for the rest.
  using Trained = TrainedOf<Tensor, Tensor>;
  /// Whether nothing is trained.
  static constexpr bool kFrozen = std::is_same_v<What, detail::TrainNothing>;
  static constexpr Abilities kAbilities =
      detail::with(detail::kAbilitiesOfAll<Layer>, &Abilities::lanes,
                   detail::kLanesOf<Layer> == Lanes::kAll ? Lanes::kAll : Lanes::kNone,
                   &Abilities::output_may_be_input, detail::ReplacesInput<Layer>, &Abilities::additions,
                   detail::kAdditionsOfAll<Layer>);  // gradients are references

 private:
  static_assert(detail::check_trained<Layer, What, Trained>());
  static constexpr int kRank = detail::kRankOf<What>;
  static constexpr int kTokens = detail::most_tokens<Layer>();
  using Form = typename detail::FormOf<std::remove_cvref_t<decltype(kConstants)>>::type;
  using Tensors = detail::Rebind<What, Tensor, Tensor>;  // the trained part
  template <class Forms>
  using SetIn = detail::SetOfLayer<Layer, ByRole<Forms>::template Matrix, ByRole<Forms>::template Vector>;
  // References to all of Layer's parameters, with the trained part in `Own`.
  template <class Own>
  using AllWith = typename SetIn<detail::EffectiveWeights<Form, Own, kTokens>>::type;
  using All = AllWith<Tensors>;
  // The sinks of factors' gradients.
  template <class Own, class Gradients>
  using SinksOf = SetIn<detail::WeightGradientSinks<Own, Gradients, kTokens>>;

  template <int tokens>
  struct Room {  // for x·A of one weight
    Tensor<Scalar, tokens, kRank> values;
    Scalar* first() { return values.data(); }
  };
  template <int tokens>
    requires(kRank == 0)
  struct Room<tokens> {
    static Scalar* first() { return nullptr; }
  };
  struct NoCopies {};
  template <class OfLayer, int rooms = 1>
  struct ScratchWith {
    [[no_unique_address]] OfLayer layer;
    [[no_unique_address]] Room<rooms * kTokens> room;
    [[no_unique_address]] std::conditional_t<detail::InLanes<Scalar>, All, NoCopies> all;
  };

 public:
  /// The trained part, or a reference to it.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector>
  struct TrainedSet : TrainedOf<Matrix, Vector> {
    using Form = attune::Form<Matrix, Vector>;
    using Forms = detail::Rebind<What, Matrix, Vector>;  // by role
    /// Its tensors, under the layer's names.
    using OfLayer = TrainedOf<Matrix, Vector>;
    // The sink of Layer's backward: the set itself, if its tensors belong to Layer.
    using Gradients =
        typename std::conditional_t<(kRank > 0), SinksOf<Tensors, Forms>, std::type_identity<OfLayer>>::type;

    template <class Visitor, class... Sets>
    static constexpr void visit(const Visitor& visitor, const TensorPath* parent, Sets&&... sets) {
      OfLayer::visit(
          [&visitor]<class First, class... Rest>(const TensorPath& path, First&& first, Rest&&... rest) {
            using Leaf = std::remove_cvref_t<First>;
            if constexpr (detail::IsLowRank<Leaf> && (detail::IsLowRank<std::remove_cvref_t<Rest>> && ...)) {
              Leaf::visit(visitor, &path, first, rest...);
            } else {
              visitor(path, first, rest...);
            }
          },
          parent, sets...);
    }
    /// Tensors of Layer start as copies of kConstants, whatever the initializer. Factors start as A ~ N(0,
    /// 1/in), so that x·A is about as large as x, and B = 0: the layer starts as the constant one.
    template <class Initializer>
    void initialize(const Initializer&, Rng& rng) {
      for_each_tensor(
          [&rng](const TensorPath&, auto& trained, const auto& initial) {
            if constexpr (detail::IsLowRank<std::remove_cvref_t<decltype(trained)>>) {
              detail::fill_normal_over(trained.a, 1, trained.rows, rng);
              trained.b.set_zero();
            } else {
              detail::copy_elements(initial, trained);
            }
          },
          static_cast<OfLayer&>(*this), kConstants);
    }
  };
  /// The set of trained parameters. They stay tensors beside constants of 8 and 16 bits: updates add to them.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf =
      typename std::conditional_t<kFrozen, std::type_identity<NoParameters>,
                                  std::conditional_t<detail::IsQuantizedForm<Matrix<float, 1, 1>>,
                                                     std::type_identity<TrainedSet<Tensor, Tensor>>,
                                                     std::type_identity<TrainedSet<Matrix, Vector>>>>::type;
  using Parameters = ParametersOf<Tensor>;

 private:
  template <class Set>
  using GradientsOf = typename std::conditional_t<kFrozen, TrainedSet<Tensor, Tensor>, Set>::Gradients;

 public:
  template <class Set>
  static constexpr bool kReadsInput = detail::ReadsInput<Layer, GradientsOf<Set>>;
  template <class Set>
  using TapeOf = detail::TapeOf<Layer, GradientsOf<Set>>;
  template <class Set>
  using ScratchOf = ScratchWith<detail::ScratchOf<Layer, GradientsOf<Set>>,
                                detail::UpdatesInSet<GradientsOf<Set>> ? detail::kRoomsOfUpdates<kRank> : 1>;
  using Tape = TapeOf<Parameters>;
  using Scratch = ScratchOf<Parameters>;
  using InferenceScratch = ScratchWith<typename Layer::InferenceScratch>;

  /// Token by token (execution/stream.hpp), if the layer supports it.
  template <int tokens, CacheShape cache>
  struct Stream : detail::StreamOf<Layer, tokens, cache> {
    using Base = detail::StreamOf<Layer, tokens, cache>;
    struct Scratch {
      [[no_unique_address]] typename Base::Scratch layer;
      [[no_unique_address]] Room<tokens> room;
    };
    static detail::ForwardResult<Layer> step(std::uint64_t position, const auto& trained,
                                             ConstView<detail::StepInput<Layer, tokens>> x,
                                             View<detail::StepOutput<Layer, tokens>> y, auto& memory,
                                             Scratch& scratch, const auto&... more) {
      static_assert(detail::Holds<(kRank == 0 || tokens <= kTokens)>,
                    "attune::Adapted: a step takes at most as many tokens as the adapted layer");
      return Base::step(position, all(trained, scratch.room.first()), x, y, memory, scratch.layer, more...);
    }
    template <class Tokens>
    static void remember(const auto& trained, const Tokens& remembered, auto& memory) {
      Room<Tokens::rows> room;
      Base::remember(all(trained, room.first()), remembered, memory);
    }
  };

  /// `y` may be `x` in inference if the layer allows it. `dx` may overlap neither `dy` nor `x`. If nothing is
  /// trained and dx is not requested, the tape advances to the next sequence's dropout masks.
  using detail::Passes<PartlyTrained>::forward, detail::Passes<PartlyTrained>::backward;

  /// References to all of Layer's parameters, trained and constant. With factors of low rank, products need
  /// `room` for x·A; reading elements of the weights needs none.
  template <class Set = Parameters>
  static constexpr decltype(auto) all([[maybe_unused]] const Set& trained,
                                      [[maybe_unused]] Scalar* room = nullptr) {
    if constexpr (kFrozen) {
      return (kConstants);
    } else {
      return references(trained, room);
    }
  }
  /// Writes all of Layer's parameters, as the layer without constants has them. Factors are merged: W +
  /// (α/r)·A·B.
  template <class Set = Parameters>
  static constexpr void merge(const Set& trained, typename Layer::Parameters& merged) {
    copy_parameters(all(trained), merged);
  }

 private:
  friend detail::Passes<PartlyTrained>;
  ATTUNE_INLINE static detail::ForwardResult<Layer> run(const auto& context, const auto& trained,
                                                        const auto& x, const auto& y, auto& scratch,
                                                        auto&... tape) {
    return detail::forward_in<Layer>(context, all_in(scratch, trained, context), x, y, tape...,
                                     scratch.layer);
  }
  template <class Call>
  ATTUNE_INLINE static void run_backward(const Call& context, const auto& trained, const auto& x, auto& tape,
                                         const auto& dy, const auto& dx, auto& gradients, auto& scratch) {
    if constexpr (kFrozen && !kWanted<decltype(dx)> &&
                  !(detail::GivesMemoryGradient<Call> && detail::attends_to_memory<Layer>())) {
      detail::skip_unreached(context, tape);
    } else {
      static_assert(detail::Holds<(!kFrozen || detail::HasSets<Layer>)>,
                    "attune::Frozen: after a trained layer, this layer and its parts need "
                    "ParametersOf<Matrix, Vector>, for sets without gradients");
      auto&& of_tensors = gradients_of(trained, gradients, context.own(scratch.room.first()));
      detail::backward_in<Layer>(context, all_in(scratch, trained, context), x, tape, dy, dx, of_tensors,
                                 scratch.layer);
    }
  }
  template <class Set, class Gradients>
  static constexpr decltype(auto) gradients_of([[maybe_unused]] const Set& trained,
                                               [[maybe_unused]] Gradients& gradients,
                                               [[maybe_unused]] Scalar* room) {
    if constexpr (kFrozen) {
      return Trained{};
    } else if constexpr (kRank == 0) {
      return static_cast<typename Gradients::OfLayer&>(gradients);
    } else {
      return sinks(trained, gradients, room);
    }
  }
  // In these two the set is a variable of the whole function: GCC before 14 copies one of a block when it
  // returns it, which takes the set's bytes of the stack once more.
  template <class Set, class Gradients>
  static constexpr auto sinks(const Set& trained, Gradients& gradients, Scalar* room) {
    typename SinksOf<typename Set::Forms, typename Gradients::Forms>::type all{};
    for_each_tensor(
        [room](const TensorPath&, auto& leaf, const auto& own, auto& gradient) {
          leaf = detail::weight_gradient_sink<kTokens>(own, gradient, room);
        },
        all, static_cast<const typename Set::OfLayer&>(trained),
        static_cast<typename Gradients::OfLayer&>(gradients));
    return all;
  }
  template <class Set>
  static constexpr auto references(const Set& trained, Scalar* room) {
    AllWith<typename Set::Forms> all{};
    refer(trained, room, all);
    return all;
  }
  template <class Set, class All>
  static constexpr void refer(const Set& trained, Scalar* room, All& all) {
    detail::visit_leaves(
        [room](const TensorPath&, auto& leaf, const auto& constant, const auto& own) {
          if constexpr (detail::IsCopied<std::remove_cvref_t<decltype(leaf)>>) {
            detail::copy_elements(constant, leaf);
          } else {
            leaf = detail::effective_weight<kTokens>(constant, own, room);
          }
        },
        all, kConstants, static_cast<const typename Set::OfLayer&>(trained));
  }
  static constexpr decltype(auto) all_in(auto& scratch, const auto& trained, const auto& context) {
    Scalar* const room = context.own(scratch.room.first());
    if constexpr (!detail::InLanes<Scalar>) {
      return all(trained, room);
    } else {
      refer(detail::first_if<kFrozen>(TrainedSet<Tensor, Tensor>{}, trained), room, scratch.all);
      return (scratch.all);
    }
  }
};

namespace detail {

template <class Leaf, int size>
struct ReferenceTo {
  using type = decltype(reference_to(std::declval<const Leaf&>()));
};
// Answers SetOfMember, which asks whether storage differs by role; there is nothing to refer to.
template <class Leaf>
struct ReferenceTo<Leaf, 0> {
  using type = Leaf;
};

template <class Form>
struct ReferencesTo {
  template <class Scalar, int rows, int cols>
  using Matrix = typename ReferenceTo<typename Form::template Matrix<Scalar, rows, cols>, rows * cols>::type;
  template <class Scalar, int rows, int cols>
  using Vector = typename ReferenceTo<typename Form::template Vector<Scalar, rows, cols>, rows * cols>::type;
};

}  // namespace detail

/// References to a set of `Layer`, for constants that are part of a larger model's constants.
///
///   constexpr auto kFront = attune::references_to<Front>(kWhole.layer<0>());
///   using Model = Sequential<Frozen<Front, kFront>, …>;
template <detail::CheckedLayer Layer, class Set>
[[nodiscard]] constexpr auto references_to(const Set& set) {
  using Forms = detail::ReferencesTo<typename detail::FormOf<Set>::type>;
  detail::SetOf<Layer, Forms::template Matrix, Forms::template Vector> references{};
  detail::visit_leaves(
      [](const TensorPath&, auto& reference, const auto& constant) { reference = reference_to(constant); },
      references, set);
  return references;
}
/// Does not compile: the parameters are a temporary.
template <class Layer, class Set>
constexpr auto references_to(const Set&& set) {
  static_assert(detail::Holds<(sizeof(Set) == 0)>,
                "attune::references_to: the parameters are a temporary and do not outlive the references; "
                "store them in a variable");
  return references_to<Layer>(set);
}

/// `Layer` with constant parameters.
template <class Layer, const auto& kConstants>
using Frozen = PartlyTrained<Layer, kConstants, detail::TrainNothing>;

/// `Layer` with trained biases and normalizations, which start as in `kConstants`. Weights stay constant, and
/// so do biases of keys without rotation. The method is BitFit (Ben Zaken et al., "BitFit: Simple
/// Parameter-efficient Fine-tuning for Transformer-based Masked Language-models", 2022), with the weights of
/// normalizations in addition.
template <class Layer, const auto& kConstants>
using BiasesAndNorms = PartlyTrained<Layer, kConstants, detail::TrainVectors>;

/// `Layer` with constant parameters in any storage. Weights in the roles of `low_rank` get trained products
/// of low rank (weights/low_rank.hpp). It starts as the constant layer.
template <class Layer, const auto& kConstants, LowRank low_rank>
using Adapted = PartlyTrained<Layer, kConstants, detail::TrainLowRank<detail::checked_low_rank<low_rank>()>>;

}  // namespace ATTUNE_NAMESPACE
