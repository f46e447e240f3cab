// PyTorch's names of a model's tensors, as in a state_dict: the module's layers, then the names within each
// (pytorch_layers.hpp). All of it is known at compile time.
//
//   class Digits(nn.Module):                          using Digits = attune::Sequential<
//     self.embed = nn.Linear(8, 16)                       attune::Linear<kEmbed>,
//     self.pos = nn.Parameter(torch.zeros(8, 16))         attune::LearnedPositions<kTokens>,
//     self.encoder = nn.TransformerEncoder(layer, 2)      attune::Repeat<2, attune::EncoderLayer<kLayer>>,
//     self.norm = nn.LayerNorm(16)                        attune::LayerNorm<kNorm>,
//                                                         attune::Pooling<kPooling>,
//     self.head = nn.Linear(16, 10)                       attune::Linear<kHead>>;
//
//   using Names = attune::PyTorchModule<Digits, "embed", "pos", "encoder.layers", "norm", "head">;
//
// Give one name for each layer with parameters, in their order, also those inside a nested Sequential, Sum,
// Product, ReducedAttention, Residual or EachGroup. An EncoderDecoder has the encoder's names, then the
// decoder's: an nn.Transformer is PyTorchModule<Model, "encoder.layers", "encoder.norm", "decoder.layers",
// "decoder.norm">. Without names, a Sequential is an nn.Sequential ("0", "1"), as are the layers of a Sum,
// Product or ReducedAttention, and any other model is the module itself. Names inside PyTorch's modules
// (`self_attn.in_proj_weight`, `linear1.bias`) are built in. Other encoder layers need a table
// (hugging_face_names.hpp). Frozen layers have names, too: writing includes their constants, and reading
// skips them.
//
// read_safetensors.hpp, write_safetensors.hpp and model_file.hpp use these names.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <attune/exchange/pytorch_layers.hpp>
#include <attune/exchange/state_dict_names.hpp>

namespace ATTUNE_NAMESPACE {

namespace detail {

/// Whether a layer, or one inside it, has tensors in a state_dict, trained or constant.
template <class Layer>
inline constexpr bool kHasTensors = !std::is_empty_v<typename Layer::Parameters> ||
                                    any_part<Layer>([]<class Part>() { return kHasTensors<Part>; });

/// The layers of a model that each need a name.
template <class Layer, const EncoderLayerNames* table>
struct NamedLayers {
  static constexpr int kCount = kHasTensors<Layer> ? 1 : 0;

  static constexpr void visit(const auto& visitor, const TensorPath* parent, const char* const*& name,
                              auto&& set) {
    if constexpr (kCount > 0) {
      const TensorPath path{*name++, parent};
      PyTorchNames<Layer, table>::visit(visitor, &path, set);
    }
  }
};
/// Layer after layer.
template <const EncoderLayerNames* table, class... Layers>
struct NamedInOrder {
  static constexpr int kCount = (0 + ... + NamedLayers<Layers, table>::kCount);

  static constexpr void visit(const auto& visitor, const TensorPath* parent, const char* const*& name,
                              auto&& set) {
    [&]<std::size_t... index>(std::index_sequence<index...>) {
      (NamedLayers<Layers, table>::visit(visitor, parent, name,
                                         set.template layer<static_cast<int>(index)>()),
       ...);
    }
    (std::index_sequence_for<Layers...>{});
  }
};
template <class... Layers, const EncoderLayerNames* table>
struct NamedLayers<Sequential<Layers...>, table> : NamedInOrder<table, Layers...> {};
template <class... Layers, const EncoderLayerNames* table>
struct NamedLayers<Sum<Layers...>, table> : NamedInOrder<table, Layers...> {};
template <class Layer, class Gate, const EncoderLayerNames* table>
struct NamedLayers<Product<Layer, Gate>, table> : NamedInOrder<table, Layer, Gate> {};
template <class... Layers, const EncoderLayerNames* table>
struct NamedLayers<ReducedAttention<Layers...>, table> : NamedInOrder<table, Layers...> {};
template <class Layer, const EncoderLayerNames* table>
struct NamedLayers<Residual<Layer>, table> : NamedLayers<Layer, table> {};
template <int groups, class Layer, const EncoderLayerNames* table>
struct NamedLayers<EachGroup<groups, Layer>, table> : NamedLayers<Layer, table> {};
template <int count, class Layer, const EncoderLayerNames* table>
struct NamedLayers<SharedRepeat<count, Layer>, table> : NamedLayers<Layer, table> {};
template <class Model, MaskFromIdsOptions options, const EncoderLayerNames* table>
struct NamedLayers<MaskFromIds<Model, options>, table> : NamedLayers<Model, table> {};
/// The factor and the bias, if there are any, then the model's layers.
template <class Model, ReversibleNormOptions options, const EncoderLayerNames* table>
struct NamedLayers<ReversibleNorm<Model, options>, table> {
  static constexpr int kCount = (options.affine ? 1 : 0) + NamedLayers<Model, table>::kCount;

  static constexpr void visit(const auto& visitor, const TensorPath* parent, const char* const*& name,
                              auto&& set) {
    if constexpr (options.affine) {
      const TensorPath path{*name++, parent};
      PyTorchNames<NormOfFeatures<ReversibleNorm<Model, options>>>::visit(visitor, &path, set.norm);
    }
    NamedLayers<Model, table>::visit(visitor, parent, name, set.model);
  }
};
/// A table after the other.
template <class First, class Second, const EncoderLayerNames* table>
struct NamedLayers<EmbeddingSum<First, Second>, table> {
  static constexpr int kCount = NamedLayers<First, table>::kCount + NamedLayers<Second, table>::kCount;

  static constexpr void visit(const auto& visitor, const TensorPath* parent, const char* const*& name,
                              auto&& set) {
    NamedLayers<First, table>::visit(visitor, parent, name, set.first);
    NamedLayers<Second, table>::visit(visitor, parent, name, set.second);
  }
};
/// The embedding, which is also the head, then the body's layers.
template <class EmbeddingLayer, class Body, const EncoderLayerNames* table>
struct NamedLayers<Tied<EmbeddingLayer, Body>, table> {
  static constexpr int kCount = 1 + NamedLayers<Body, table>::kCount;

  static constexpr void visit(const auto& visitor, const TensorPath* parent, const char* const*& name,
                              auto&& set) {
    NamedLayers<EmbeddingLayer, table>::visit(visitor, parent, name, set.embedding);
    NamedLayers<Body, table>::visit(visitor, parent, name, set.body);
  }
};
/// The encoder's layers, then the decoder's.
template <class Encoder, class Decoder, const EncoderLayerNames* table>
struct NamedLayers<EncoderDecoder<Encoder, Decoder>, table> {
  static constexpr int kCount = NamedLayers<Encoder, table>::kCount + NamedLayers<Decoder, table>::kCount;

  static constexpr void visit(const auto& visitor, const TensorPath* parent, const char* const*& name,
                              auto&& set) {
    NamedLayers<Encoder, table>::visit(visitor, parent, name, set.encoder);
    NamedLayers<Decoder, table>::visit(visitor, parent, name, set.decoder);
  }
};
template <class Layer, const auto& kConstants, class What, const EncoderLayerNames* table>
struct NamedLayers<PartlyTrained<Layer, kConstants, What>, table> {
  static constexpr int kCount = NamedLayers<Layer, table>::kCount;

  static constexpr void visit(const auto& visitor, const TensorPath* parent, const char* const*& name,
                              auto&& set) {
    with_set_of_layer<PartlyTrained<Layer, kConstants, What>>(
        visitor, [&](auto&& of_layer) { NamedLayers<Layer, table>::visit(visitor, parent, name, of_layer); },
        set);
  }
};

template <class Model, const EncoderLayerNames* table, Name... names>
constexpr bool check_module() {
  constexpr bool kNonEmpty = ((names.text[0] != '\0') && ...);
  static_assert(Holds<kNonEmpty>, "attune::PyTorchModule: a name is empty");
  constexpr bool kOneEach = sizeof...(names) == 0 || NamedLayers<Model, table>::kCount == sizeof...(names);
  static_assert(Holds<kOneEach>,
                "attune::PyTorchModule: give one name for each layer with parameters, in order, also "
                "inside nested models such as Sequential and Sum");
  return kNonEmpty && kOneEach;
}

}  // namespace detail

/// The names of a model with a table for its encoder layers: PyTorchModule for modules outside torch.nn.
template <detail::CheckedModel ModelType, const EncoderLayerNames* table, detail::Name... names>
struct ModuleWithLayers {
  using Model = ModelType;
  static constexpr bool kWholeFile = true;

  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    if constexpr (sizeof...(names) == 0 || !kFits) {
      PyTorchNames<Model, table>::visit(visitor, parent, set);
    } else {
      const char* const all[] = {names.text...};
      const char* const* next = all;
      detail::NamedLayers<Model, table>::visit(visitor, parent, next, set);
    }
  }

 private:
  // If names do not fit, others take their place after the one error.
  static constexpr bool kFits = detail::check_module<Model, table, names...>();
};

/// The names of a model: see the top of this file.
template <class Model, detail::Name... names>
using PyTorchModule = ModuleWithLayers<Model, nullptr, names...>;

namespace detail {

// If Module is a model, names take its place after the one error.
template <class Module, bool kNames = check_names<Module>()>
struct NamesOfModule {
  using type = Module;
};
template <class Model>
struct NamesOfModule<Model, false> {
  using type = PyTorchModule<Model>;
};

}  // namespace detail

/// The names of a model that is part of a file, after an optional prefix. Other tensors of the file are
/// ignored.
template <class Module, detail::Name... prefix>
  requires(sizeof...(prefix) <= 1)
class PyTorchPart {
  using Names = typename detail::NamesOfModule<Module>::type;

 public:
  /// The model that the names are for.
  using Model = typename Names::Model;
  /// The file may have more tensors.
  static constexpr bool kWholeFile = false;
  static_assert(detail::Holds<(!requires { Names::kFileTensors; })>,
                "attune::PyTorchPart: put PyTorchFile around PyTorchPart, with the file's full names");

  /// Calls visitor(place, tensor) for each tensor of the model's set.
  static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&& set) {
    if constexpr (sizeof...(prefix) == 0) {
      Names::visit(visitor, parent, set);
    } else {
      const TensorPath path{prefix.text..., parent};
      Names::visit(visitor, &path, set);
    }
  }
};

namespace detail {

template <class Tuned, class Names>
struct NamesForModel;
template <class Tuned, class Model, const EncoderLayerNames* table, Name... names>
struct NamesForModel<Tuned, ModuleWithLayers<Model, table, names...>> {
  using type = ModuleWithLayers<Tuned, table, names...>;
};
template <class Tuned, class Module, Name... prefix>
struct NamesForModel<Tuned, PyTorchPart<Module, prefix...>> {
  using type = PyTorchPart<typename NamesForModel<Tuned, Module>::type, prefix...>;
};

}  // namespace detail

/// The names of a model for `Tuned`, the same model with constant parts: Adapted, BiasesAndNorms,
/// LinearProbe. Writing then includes the constants.
template <class Tuned, class Names>
using NamesFor = typename detail::NamesForModel<Tuned, Names>::type;

}  // namespace ATTUNE_NAMESPACE
