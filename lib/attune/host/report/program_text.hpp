// The memory of a training step as text: for each Sequential and Repeat of a model, its values as rows and
// its steps as columns. Needs a heap; never included by attune.hpp.
//
//   std::cout << attune::host::program_text<Trainer>();
//
//   Sequential: 1,536 bytes of scratch, 1,536 at the same time
//         bytes  memory             >0 >1 >2 <2 <1 <0
//           768  scratch + 0         #  #  .  .  .  .  output of 0 Linear
//         1,024  tape                .  #  #  #  #  .  tape of 1 EncoderLayer
//
// A column is a layer's forward (>) or backward (<). A value lives in the steps with #. Values that live at
// the same time have different places in scratch.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <attune/models/each_group.hpp>
#include <attune/models/mask_from_ids.hpp>
#include <attune/models/product.hpp>
#include <attune/models/reduced_attention.hpp>
#include <attune/models/repeat.hpp>
#include <attune/models/residual.hpp>
#include <attune/models/reversible_norm.hpp>
#include <attune/models/sequential.hpp>
#include <attune/models/shared_repeat.hpp>
#include <attune/models/sum.hpp>
#include <attune/training/trainer.hpp>

namespace ATTUNE_NAMESPACE::host {

namespace detail {

using attune::detail::ValueMemory;

/// The name of a layer's class, without namespace and arguments.
template <class Layer>
[[nodiscard]] std::string class_name() {
  return std::string(attune::detail::class_name<Layer>());
}
/// Digits in groups of three, at the end of `width` characters.
[[nodiscard]] inline std::string grouped(std::size_t number, std::size_t width = 0) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits.size() < width ? std::string(width - digits.size(), ' ') + digits : digits;
}

template <class Plan>
class ProgramTable {
 public:
  ProgramTable(const Plan& plan, const std::vector<std::string>& layers) : plan_(plan), layers_(layers) {}

  [[nodiscard]] std::string text(const std::string& name) const {
    const auto& places = plan_.places;
    std::string text = name + ": scratch takes " + grouped(places.arena) + " bytes, and at most " +
                       grouped(places.bound) +
                       " are in use at the same time\n      bytes  memory             ";
    for (int step = 0; step < plan_.program.step_count; ++step) {
      const auto& of = plan_.program.steps[step];
      text += (step < plan_.program.forward_steps ? " >" : " <") + std::to_string(of.layer);
    }
    text += '\n';
    for (int value = 0; value < plan_.program.value_count; ++value) {
      const auto& of = plan_.program.values[value];
      if (of.memory != ValueMemory::kCaller && of.bytes > 0 && own_life(value).used()) text += row(value);
    }
    return text;
  }

 private:
  // The steps of a value, also of one in the memory of another.
  [[nodiscard]] attune::detail::Lifetime own_life(int value) const {
    attune::detail::Lifetime life;
    for (int step = 0; step < plan_.program.step_count; ++step) {
      for (int i = plan_.program.steps[step].first; i < plan_.program.steps[step].end; ++i) {
        if (plan_.program.operands[i].value == value) life.add(step);
      }
    }
    return life;
  }
  [[nodiscard]] std::string memory(int value) const {
    if (plan_.places.memory[value] == ValueMemory::kArena) {
      return "scratch + " + grouped(plan_.places.offset[value]);
    }
    return "tape";
  }
  [[nodiscard]] std::string row(int value) const {
    const auto& of = plan_.program.values[value];
    const attune::detail::Lifetime life = own_life(value);
    std::string text = grouped(of.bytes * static_cast<std::size_t>(of.copies), 11) + "  " + memory(value);
    text.resize(32, ' ');
    for (int step = 0; step < plan_.program.step_count; ++step) {
      const std::size_t width = std::to_string(plan_.program.steps[step].layer).size() + 2;
      text += std::string(width - 1, ' ') + (life.meets({step, step}) ? '#' : '.');
    }
    return text + "  " + of.name + " of " + layers_[static_cast<std::size_t>(of.layer)] + '\n';
  }

  const Plan& plan_;
  const std::vector<std::string>& layers_;
};

template <class Layer>
struct ProgramsOf {
  template <class Gradients>
  static void append(std::string&) {}
};
// The programs of each layer.
template <class Gradients, class... Layers>
void append_each(std::string& text) {
  [&]<int... index>(std::integer_sequence<int, index...>) {
    (ProgramsOf<Layers>::template append<
         std::remove_cvref_t<decltype(std::declval<Gradients&>().template layer<index>())>>(text),
     ...);
  }
  (std::make_integer_sequence<int, static_cast<int>(sizeof...(Layers))>{});
}
template <class... Layers>
struct ProgramsOf<Sum<Layers...>> {
  template <class Gradients>
  static void append(std::string& text) {
    append_each<Gradients, Layers...>(text);
  }
};
template <class Layer, class Gate>
struct ProgramsOf<Product<Layer, Gate>> {
  template <class Gradients>
  static void append(std::string& text) {
    append_each<Gradients, Layer, Gate>(text);
  }
};
template <class... Layers>
struct ProgramsOf<ReducedAttention<Layers...>> {
  template <class Gradients>
  static void append(std::string& text) {
    append_each<Gradients, Layers...>(text);
  }
};
template <class... Layers>
struct ProgramsOf<Sequential<Layers...>> {
  template <class Gradients>
  static void append(std::string& text) {
    using Scratch = attune::detail::ScratchOf<Sequential<Layers...>, Gradients>;
    std::vector<std::string> names;
    (names.push_back(std::to_string(names.size()) + " " + class_name<Layers>()), ...);
    text += ProgramTable(Scratch::kPlan, names).text("Sequential");
    append_each<Gradients, Layers...>(text);
  }
};
template <int count, class Layer>
struct ProgramsOf<Repeat<count, Layer>> {
  template <class Gradients>
  static void append(std::string& text) {
    using Scratch = attune::detail::ScratchOf<Repeat<count, Layer>, Gradients>;
    const std::vector<std::string> names{"each " + class_name<Layer>()};
    text += ProgramTable(Scratch::kPlan, names).text("Repeat");
    ProgramsOf<Layer>::template append<typename Gradients::Each>(text);
  }
};
template <int count, class Layer>
struct ProgramsOf<SharedRepeat<count, Layer>> {
  template <class Gradients>
  static void append(std::string& text) {
    constexpr bool kCollects = attune::detail::CollectsGradients<SharedRepeat<count, Layer>, Gradients>;
    using Each = std::conditional_t<kCollects, typename Layer::Parameters, Gradients>;
    ProgramsOf<Repeat<count, Layer>>::template append<attune::detail::SetOfEach<Each>>(text);
  }
};
template <class Layer>
struct ProgramsOf<Residual<Layer>> : ProgramsOf<Layer> {};
template <int groups, class Layer>
struct ProgramsOf<EachGroup<groups, Layer>> : ProgramsOf<Layer> {};
template <class Model, ReversibleNormOptions options>
struct ProgramsOf<ReversibleNorm<Model, options>> {
  template <class Gradients>
  static void append(std::string& text) {
    using OfModel = std::remove_cvref_t<decltype(std::declval<Gradients&>().model)>;
    ProgramsOf<Model>::template append<OfModel>(text);
  }
};

template <class Model, MaskFromIdsOptions options>
struct ProgramsOf<MaskFromIds<Model, options>> : ProgramsOf<Model> {};

template <class Trainer>
struct ProgramsOfTrainer;
template <class Model, class Loss, class Optimizer, int batch, class Plan>
struct ProgramsOfTrainer<Trainer<Model, Loss, Optimizer, batch, Plan>> {
  using Gradients = typename attune::detail::PlanWith<Plan, Optimizer>::template GradientSet<Model>;
  static std::string text() {
    std::string text;
    ProgramsOf<Model>::template append<Gradients>(text);
    return text;
  }
};

}  // namespace detail

/// The values and steps of a trainer's Sequential and Repeat models, with sizes, places and lifetimes. Empty
/// for a model of another kind.
template <class Trainer>
[[nodiscard]] std::string program_text() {
  return detail::ProgramsOfTrainer<Trainer>::text();
}

}  // namespace ATTUNE_NAMESPACE::host
