// Shared code of models made of layers: sequential.hpp, repeat.hpp, residual.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include <attune/core/fingerprint.hpp>
#include <attune/core/initialize.hpp>
#include <attune/core/memory.hpp>
#include <attune/execution/layer.hpp>
#include <attune/execution/layer_calls.hpp>
#include <attune/execution/pass.hpp>
#include <attune/kernels/algorithm.hpp>
#include <attune/kernels/ops/residual.hpp>
#include <attune/layers/dropout.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

// A tuple that is a plain value, without bytes for empty members. (Empty members are not stored: two of one
// type would need two addresses.)
template <class...>
struct Members {};
template <class Only>
struct Members<Only> {
  Only first;
};
template <class Only>
  requires std::is_empty_v<Only>
struct Members<Only> {
  using Empty = Only;
};
template <class First, class Second, class... Rest>
struct Members<First, Second, Rest...> {
  First first;
  [[no_unique_address]] Members<Second, Rest...> rest;
};
template <class First, class Second, class... Rest>
  requires std::is_empty_v<First>
struct Members<First, Second, Rest...> {
  using Empty = First;
  [[no_unique_address]] Members<Second, Rest...> rest;
};

/// Member number `index`: a reference, or a value of its empty type, with the constness of the set.
template <int index, class Set>
constexpr decltype(auto) member(Set& members) {
  if constexpr (index > 0) {
    return member<index - 1>(members.rest);
  } else if constexpr (requires { members.first; }) {
    return (members.first);
  } else {
    using Empty = typename Set::Empty;
    return std::conditional_t<std::is_const_v<Set>, const Empty, Empty>{};
  }
}

/// Its address, or null if it is empty.
template <int index, class Set>
constexpr const void* address_of_member(const Set& members) {
  if constexpr (std::is_reference_v<decltype(member<index>(members))>) {
    return &member<index>(members);
  } else {
    return nullptr;
  }
}

/// Calls body<i>() for i from 0 to count - 1.
template <int count>
constexpr void for_each_index(const auto& body) {
  [&]<int... index>(std::integer_sequence<int, index...>) { (body.template operator()<index>(), ...); }
  (std::make_integer_sequence<int, count>{});
}
/// The index of the first true value; the number of values without one.
constexpr int first_true(std::initializer_list<bool> values) {
  int first = 0;
  for (const bool value : values) {
    if (value) break;
    ++first;
  }
  return first;
}
/// The index of the last true value; -1 without one.
constexpr int last_true(std::initializer_list<bool> values) {
  int last = static_cast<int>(values.size()) - 1;
  while (last >= 0 && !values.begin()[last]) --last;
  return last;
}
/// Both passes of a layer made of layers. `Self` has run(context, parameters, x, y, scratch[, tape]), with a
/// tape in training, and run_backward(context, parameters, x, tape, dy, dx, gradients, scratch).
template <class Self>
struct Passes {
  /// Inference.
  template <class Layer = Self, class Set = typename Layer::Parameters, AnyContext Call = Context<>>
  static ForwardResult<Layer> forward(const Set& parameters, ConstView<typename Layer::Input> x,
                                      View<typename Layer::Output> y,
                                      typename Layer::InferenceScratch& scratch, const Call& context = {}) {
    return Layer::run(context, parameters, x, y, scratch);
  }
  /// Training, with tape and scratch for any gradients. `y` may not overlap `x`.
  template <class Layer = Self, class Set = typename Layer::Parameters, class Tape, class Scratch,
            AnyContext Call = Context<>>
    requires(!AttentionMask<Scratch> && !AnyContext<Scratch>)
  static ForwardResult<Layer> forward(const Set& parameters, ConstView<typename Layer::Input> x,
                                      View<typename Layer::Output> y, Tape& tape, Scratch& scratch,
                                      const Call& context = {}) {
    return Layer::run(context, parameters, x, y, scratch, tape);
  }
  /// dx from dy, overwritten, or NoGradient; gradients accumulate. Uses up the tape. Parameters, mask and x
  /// are forward's.
  template <class Layer = Self, class Set = typename Layer::Parameters, class Tape, class Dx, class Gradients,
            class Scratch, AnyContext Call = Context<>>
  static void backward(const Set& parameters, ConstView<typename Layer::Input> x, Tape& tape,
                       ConstView<typename Layer::Output> dy, Dx&& dx, Gradients& gradients, Scratch& scratch,
                       const Call& context = {}) {
    Layer::run_backward(context, parameters, x, tape, dy, sink<typename Layer::Input>(dx), gradients,
                        scratch);
  }
};

/// The place of a value between the passes: on the tape, or `otherwise` in inference.
ATTUNE_INLINE auto& on_tape(auto& otherwise) { return otherwise; }
ATTUNE_INLINE auto& on_tape(auto&, auto& tape) { return tape; }

/// The tapes of different layers.
template <class... Tapes>
struct TapesOfLayers : Members<Tapes...> {
  constexpr void for_each_dropout(const auto& visitor) requires(DropsIn<Tapes> || ...) {
    for_each_index<sizeof...(Tapes)>(
        [&]<int index>() { detail::for_each_dropout(visitor, member<index>(*this)); });
  }
};

/// The tapes of equal layers.
template <class Tape, int count>
struct TapesOfCopies : Copies<Tape, count> {
  constexpr void for_each_dropout(const auto& visitor) requires DropsIn<Tape> {
    for (Tape& tape : this->elements) tape.for_each_dropout(visitor);
  }
};

/// The tape of a layer made of layers: `layers` has theirs.
template <class Tapes>
struct TapeOfParts {
  [[no_unique_address]] Tapes layers;

  constexpr void for_each_dropout(const auto& visitor) requires DropsIn<Tapes> {
    layers.for_each_dropout(visitor);
  }
};

template <int index, class First, class... Rest>
struct TypeAt : TypeAt<index - 1, Rest...> {};
template <class First, class... Rest>
struct TypeAt<0, First, Rest...> {
  using type = First;
};

// Consecutive layers; an error names both, with their shapes.
template <class Layer, class Next, int output_rows, int output_cols, int input_rows, int input_cols>
constexpr bool output_fits_input() {
  static_assert(Holds<(output_rows == input_rows && output_cols == input_cols)>,
                "attune: the output of a layer does not fit the input of the next; see "
                "output_fits_input<layer, next, output rows, output cols, input rows, input cols>");
  return true;
}
template <class Layer, class Next = Layer>
constexpr bool check_next() {
  static_assert(Holds<!TakesIds<Next>>,
                "attune: a layer that takes token ids must be the first of a Sequential; it cannot follow "
                "another layer or stand in a Repeat or Residual");
  static_assert(Holds<(std::is_same_v<typename Layer::Scalar, typename Next::Scalar>)>,
                "attune: a layer and the next have different scalar types, which are float unless you chose "
                "another; see check_next<layer, next>");
  if constexpr (!TakesIds<Next>) {
    output_fits_input<Layer, Next, Layer::Output::rows, Layer::Output::cols, Next::Input::rows,
                      Next::Input::cols>();
  }
  return true;
}
// A sequence of parts; each output is the next part's input.
template <class Last>
constexpr bool check_sequence() {
  return true;
}
template <class First, class Next, class... Rest>
constexpr bool check_sequence() {
  return check_next<First, Next>() && check_sequence<Next, Rest...>();
}

/// Whether a layer, or one inside it, is a DecoderLayer whose memory comes from the model around it, and is
/// not a `Known` one.
template <class Layer, class Known = void>
constexpr bool attends_to_memory() {
  if constexpr (requires { Layer::kAttendsToMemory; }) {
    return Layer::kAttendsToMemory && !std::is_same_v<typename Layer::Memory, Known>;
  } else {
    return any_part<Layer>([]<class Part>() { return attends_to_memory<Part, Known>(); });
  }
}
/// Whether a Sequential runs such layers without a tape, because they are Frozen and at its front.
template <class Layer>
constexpr bool infers_memory() {
  if constexpr (requires { Layer::kInfersMemory; }) {
    return Layer::kInfersMemory;
  } else {
    return any_part<Layer>([]<class Part>() { return infers_memory<Part>(); });
  }
}
/// Whether backward in this context computes the gradient of that memory.
template <class Call>
concept GivesMemoryGradient = kWanted<decltype(Call::Mask::d_memory)>;

/// A step of a layer within a stream. `more`, the mask of a memory, is for layers that attend to one.
template <class Layer, CacheShape cache, int tokens>
ATTUNE_INLINE ForwardResult<Layer> step_in(std::uint64_t position, const auto& parameters, const auto& x,
                                           const auto& y, auto& memory, auto& scratch, const auto&... more) {
  using Stream = StreamOf<Layer, tokens, cache>;
  if constexpr (attends_to_memory<Layer>()) {
    return Stream::step(position, parameters, x, y, memory, scratch, more...);
  } else {
    return Stream::step(position, parameters, x, y, memory, scratch);
  }
}

/// sum = x + y for tokens, in context. `sum` may be x or y.
template <class Matrix>
ATTUNE_INLINE void add(const auto& context, ConstView<Matrix> x, ConstView<Matrix> y, View<Matrix> sum) {
  context.in_any_order().template token_elements<Matrix::rows, Matrix::cols, 2>(
      [&](int first, int count)
          ATTUNE_INLINE_LAMBDA { kernels::add(count, x.data + first, y.data + first, sum.data + first); });
}
/// y += x for tokens, in context.
template <class Matrix>
ATTUNE_INLINE void add_to(const auto& context, ConstView<Matrix> x, View<Matrix> y) {
  add<Matrix>(context, y, x, y);
}
/// A gradient that is not wanted has no sum.
template <class Matrix>
ATTUNE_INLINE void add_to(const auto&, const auto&, NoGradient) {}

inline constexpr const char* kNumbers[] = {"0",  "1",  "2",  "3",  "4",  "5",  "6",  "7",
                                           "8",  "9",  "10", "11", "12", "13", "14", "15",
                                           "16", "17", "18", "19", "20", "21", "22", "23"};
inline constexpr int kMaxLayers = static_cast<int>(std::size(kNumbers));

// The sets of layers in Members or in Copies: "0.…", "1.…".
template <class Layers>
struct SetsOfLayers;
template <class... Sets>
struct SetsOfLayers<Members<Sets...>> {
  template <class... Others>
  static constexpr void visit(const auto& visitor, const TensorPath* parent, Others&... sets) {
    for_each_index<sizeof...(Sets)>([&]<int index>() {
      const TensorPath path{kNumbers[index], parent};
      TypeAt<index, Sets...>::type::visit(visitor, &path, member<index>(sets)...);
    });
  }
  static void initialize(Members<Sets...>& sets, const auto& initializer, Rng& rng) {
    for_each_index<sizeof...(Sets)>([&]<int index>() {
      auto&& set = member<index>(sets);
      attune::initialize(set, initializer, rng);
    });
  }
};
template <class Set, int count>
struct SetsOfLayers<Copies<Set, count>> {
  template <class... Others>
  static constexpr void visit(const auto& visitor, const TensorPath* parent, Others&... sets) {
#pragma GCC unroll 1  // a loop even for two layers, so that a third one adds no code
    for (int i = 0; i < count; ++i) visit_one(visitor, TensorPath{kNumbers[i], parent}, sets[i]...);
  }
  template <class... Others>
  [[gnu::noinline]] static constexpr void visit_one(const auto& visitor, const TensorPath& path,
                                                    Others&&... sets) {
    Set::visit(visitor, &path, sets...);
  }
  static void initialize(Copies<Set, count>& sets, const auto& initializer, Rng& rng) {
#pragma GCC unroll 1
    for (int i = 0; i < count; ++i) {
      auto&& set = sets[i];
      attune::initialize(set, initializer, rng);
    }
  }
};
// Storage for one of several types at a time.
template <class...>
union OneOf {};
template <class First, class... Rest>
union OneOf<First, Rest...> {
  First first;
  OneOf<Rest...> rest;
};
template <int index, class Union>
constexpr auto& one_of(Union& storage) {
  if constexpr (index > 0) {
    return one_of<index - 1>(storage.rest);
  } else {
    return storage.first;
  }
}

/// Different layers in a model.
template <class... Layers>
struct LayerSets {
  static constexpr int kLayers = static_cast<int>(sizeof...(Layers));
  template <int index>
  using Layer = typename TypeAt<index, Layers...>::type;

  /// `layer<i>()` is the set of layer i, named "i" in the names of tensors.
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  struct ParametersOf {
    /// The sets of the layers, in order.
    [[no_unique_address]] Members<SetOf<Layers, Matrix, Vector>...> members;

    /// The set of layer i.
    template <int index>
    constexpr decltype(auto) layer() {
      return member<index>(members);
    }
    /// The set of layer i.
    template <int index>
    constexpr decltype(auto) layer() const {
      return member<index>(members);
    }
    ATTUNE_FIELDS(Layers(members))
  };

  /// The memory of layers side by side, for a backward to such gradients: their tapes, the scratch of one of
  /// them, and whether any reads x.
  template <class Gradients, class = std::make_integer_sequence<int, kLayers>>
  struct MemoryOf;
  template <class Gradients, int... index>
  struct MemoryOf<Gradients, std::integer_sequence<int, index...>> {
    template <int at>
    using Of = std::remove_cvref_t<decltype(std::declval<Gradients&>().template layer<at>())>;
    using Tapes = TapesOfLayers<TapeOf<Layers, Of<index>>...>;
    using Scratches = OneOf<ScratchOf<Layers, Of<index>>...>;
    static constexpr bool kReads = (ReadsInput<Layers, Of<index>> || ...);
  };

  /// Forward of a layer, as one stage. `scratches` has a part for each layer; `tape` is the layer's, if any.
  template <int index>
  ATTUNE_INLINE static void forward(const auto& context, const auto& parameters, const auto& x, const auto& y,
                                    auto& scratches, auto&&... tape) {
    context.inside([&]() ATTUNE_INLINE_LAMBDA {
      forward_in<Layer<index>>(context, parameters.template layer<index>(), x, y, tape...,
                               one_of<index>(scratches));
    });
  }
  /// Backward of a layer, as one stage. `tapes`, `scratches` and `gradients` have a part for each layer.
  template <int index>
  ATTUNE_INLINE static void backward(const auto& context, const auto& parameters, const auto& x, auto& tapes,
                                     const auto& dy, const auto& dx, auto& gradients, auto& scratches) {
    context.inside([&]() ATTUNE_INLINE_LAMBDA {
      auto&& tape = member<index>(tapes);
      auto&& own = gradients.template layer<index>();
      backward_in<Layer<index>>(context, parameters.template layer<index>(), x, tape, dy, dx, own,
                                one_of<index>(scratches));
    });
  }

  /// The base of their Stream: their memories, and a step of one of them.
  template <int tokens, CacheShape cache>
  struct Streams {
    using Memory = Members<StreamMemoryOf<Layers, cache>...>;
    using Scratches = OneOf<typename StreamOf<Layers, tokens, cache>::Scratch...>;
    static constexpr std::uint64_t kMaxTokens = smallest({detail::kMaxTokens<Layers, cache>...});
    template <int index>
    ATTUNE_INLINE static ForwardResult<Layer<index>> step_of(std::uint64_t position, const auto& parameters,
                                                             const auto& x, const auto& y, Memory& memory,
                                                             auto& scratch, const auto&... more) {
      auto&& own = member<index>(memory);
      return step_in<Layer<index>, cache, tokens>(position, parameters.template layer<index>(), x, y, own,
                                                  scratch, more...);
    }
    /// Writes keys and values of a memory for the layers that attend to one.
    static void remember(const auto& parameters, const auto& remembered, Memory& memory) {
      for_each_index<kLayers>([&]<int index>() {
        if constexpr (attends_to_memory<Layer<index>>()) {
          StreamOf<Layer<index>, tokens, cache>::remember(parameters.template layer<index>(), remembered,
                                                          member<index>(memory));
        }
      });
    }
  };
};

/// Whether gradients that are used at once are collected first (execution/own_layer.hpp), because a parameter
/// has several additions: it is used after the last one only.
template <class Layer, class Gradients>
concept CollectsAdditions = !std::is_empty_v<typename Layer::Parameters> && UpdatesInSet<Gradients>;
/// As a stage: dropout of a layer that backward does not reach goes on to the next sequence's masks.
template <class Tape>
ATTUNE_INLINE void skip_unreached(const auto& context, Tape&& tape) {
  if constexpr (DropsIn<std::remove_reference_t<Tape>>) {
    context.stage([&]() ATTUNE_INLINE_LAMBDA { skip_masks(tape, 1); });
  }
}

// Whether a layer's output has the shape of its input.
template <class Layer>
concept SameShape = std::is_same_v<typename Layer::Input, typename Layer::Output>;
// Whether it may take the memory of its input in inference.
template <class Layer>
concept ReplacesInput = SameShape<Layer> && OutputMayBeInput<Layer>;

}  // namespace detail

/// The fingerprint of a stream's memory, from the fingerprints that its layers declare.
template <class... Parts>
inline constexpr std::uint32_t kFingerprintOf<detail::Members<Parts...>> =
    fingerprint(kFingerprintOf<Parts>...);
template <class Element, int count>
inline constexpr std::uint32_t kFingerprintOf<detail::Copies<Element, count>> = kFingerprintOf<Element>;

}  // namespace ATTUNE_NAMESPACE
