// Misuse of attune/exchange that must not compile, a case each: tests/compile_failure/run compiles them one by one.

// case: adapters_of_a_packed_tensor
// error: attune::PeftNames: PEFT cannot store factors for parts of a packed tensor (in_proj_weight, qkv)
// kilobytes: 12  the way from the writer to the names
// errors by gcc: 2  the parts would share one name, too
// errors by clang: 3  the parts would share one name, too
constexpr attune::AttentionShape kShape{.seq_len = 2, .d_model = 4, .num_heads = 2};
using Attention = attune::MultiHeadAttention<kShape>;
constexpr Attention::Parameters kConstants{};
using Model = attune::Adapted<Attention, kConstants, attune::LowRank{.rank = 1}>;
attune::Status send(const Model::Parameters& parameters) {
  return attune::write_safetensors<attune::PeftNames<attune::PyTorchModule<Model>>>(
      parameters, [](const char*, std::size_t) {});
}

// case: alias_of_no_tensor
// error: attune::PyTorchFile: a TensorAlias or TensorShape names no tensor of the model, or has the wrong
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Names =
    attune::PyTorchFile<attune::PyTorchModule<Model, "head">, attune::TensorAlias<"tied", "body.weight">>;
Model::Parameters parameters;
attune::Status status = attune::read_safetensors<Names>(std::string_view(), parameters);

// case: attention_alone_with_a_gap
// error: attune::EncoderLayerNames: attention_alone lacks a name
// kilobytes: 18  the way from the call to the layer
inline constexpr attune::EncoderLayerNames kAttention{.query = "q", .key = "k", .output = "out"};
inline constexpr attune::EncoderLayerNames kNames{.attention_alone = &kAttention};
using Model = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
static_assert(attune::SafetensorsLayout<attune::HuggingFaceModule<kNames, Model>>::kTensors == 8);

// case: epsilon_of_another_family
// error: attune: set config.json's epsilon in the norm and in EncoderLayerNames
// kilobytes: 13  the way from the trainer to the names
#pragma GCC diagnostic error "-Wdeprecated-declarations"
#define EPSILON 1e-5
#include <attune/attune.hpp>

using Model = attune::RmsNorm<attune::NormShape{.rows = 2, .d_model = 4, .epsilon = EPSILON}>;
using Names = attune::HuggingFaceModule<attune::kLlamaLayer, attune::Sequential<Model>, "model.norm">;
attune::Status send(const attune::Sequential<Model>::Parameters& parameters) {
  return attune::write_safetensors<Names>(parameters, [](const char*, std::size_t) {});
}

// case: file_by_its_path
// error: attune: pass the file's bytes, not its path, as a std::vector, a std::span or a std::string_view
// errors: 3  three mistakes
// a expect by gcc: read_safetensors<Names>(const char [18], expect by gcc: read_safetensors<Names>(const
// char*&, expect by gcc: read_safetensors<Names>(const std::string&,
#include <string>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Names = attune::PyTorchModule<Model>;

attune::Status read(Model::Parameters& parameters) {
  return attune::read_safetensors<Names>("model.safetensors", parameters);
}
attune::Status read(const char* path, Model::Parameters& parameters) {
  return attune::read_safetensors<Names>(path, parameters);
}
attune::Status read(const std::string& path, Model::Parameters& parameters) {
  return attune::read_safetensors<Names>(path, parameters);
}

// case: file_inside_a_part
// error: attune::PyTorchPart: put PyTorchFile around PyTorchPart, with the file's full names
// errors: 3  the function that does not take it is told, too
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using File = attune::PyTorchFile<attune::PyTorchModule<Model>, attune::TensorShape<"weight", 3, 2, 1>>;
Model::Parameters parameters;
attune::Status status =
    attune::read_safetensors<attune::PyTorchPart<File, "vit">>(std::string_view(), parameters);

// case: file_of_floats
// error: attune: a file is an array of char, unsigned char or std::byte
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
attune::Status read(const float (&file)[100], Model::Parameters& parameters) {
  return attune::read_safetensors<attune::PyTorchModule<Model>>(file, parameters);
}

// case: flat_array_of_another_model
// error: attune::from_flat: the array and the parameters have different sizes; the array belongs to another model or shape
using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
constexpr float kValues[10] = {};
constexpr auto kParameters = attune::from_flat<Model::Parameters>(kValues);

// case: flat_array_of_another_scalar
// error: attune: the flat array and the parameters have different scalar types
// errors: 2  a matrix and a bias of this scalar
// kilobytes: 12  the way from the call to the layer
using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
auto use(std::span<const double> values, Model::Parameters& parameters) {
  return attune::read_flat(values, parameters);
}

// case: flat_span_of_dynamic_size
// error: attune::from_flat: the number of values is known only at run time; use read_flat
using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
auto use(std::span<const float> values) { return attune::from_flat<Model::Parameters>(values); }

// case: model_file_askew
// error: attune::kInFlash: this tensor is misaligned; save the file again with safetensors, or copy it with
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}}  )",
    36)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;

// case: model_file_copied_from_the_linker
// error: attune::kCopied: the compiler must see the file; use attune_add_model() with ARRAY or QUANTIZE
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})",
    36)
constexpr auto& kWeights = attune::kCopied<attune::PyTorchModule<Model>, File>;

// case: model_file_damaged
// error: attune: the file is damaged or not a safetensors file; the type names the fault and the tensor at
// error: Status::kTrailingBytes
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})",
    40)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;

// case: model_file_of_a_quantized_key
// error: attune: this tensor must be F64, F32, F16 or BF16, or an I8 weight with its row scales in
// error by gcc: TensorNamed<attune::v2_0_unfused::detail::Name<7>{"bias_k"}>
using Model = attune::MultiHeadAttention<attune::AttentionShape{
    .seq_len = 1, .d_model = 2, .num_heads = 1, .bias = false, .add_bias_kv = true}>;
extern "C" const float model_file[96];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"bias_k.scale":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"bias_v":{"dtype":"F32","shape":[1,1,2],"data_offsets":[4,12]},"in_proj_weight":{"dtype":"F32","shape":[6,2],"data_offsets":[12,60]},"out_proj.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[60,76]},"bias_k":{"dtype":"I8","shape":[1,1,2],"data_offsets":[76,78]}}    )";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 78;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;

// case: model_file_of_another_model
// error: attune: the file has a tensor that the model lacks: use the model's file, other names in
// error by gcc: TensorNamed<attune::v2_0_unfused::detail::Name<6>{"scale"}>
// error by clang: TensorNamed<'s', 'c', 'a', 'l', 'e'>
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"scale":{"dtype":"F32","shape":[3],"data_offsets":[12,24]}})",
    24)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;

// case: model_file_of_another_shape
// error: attune: this tensor has different shapes in the file and in the model
// error: InFile<2, 3>
// error: InModel<3, 2>
// error by gcc: TensorNamed<attune::v2_0_unfused::detail::Name<7>{"weight"}>
// error by clang: TensorNamed<'w', 'e', 'i', 'g', 'h', 't'>
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[12,36]}})",
    36)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;

// case: model_file_of_another_shape_copied
// error: attune: this tensor has different shapes in the file and in the model
// error: InFile<4>
// error: InModel<3>
#include "model_file.hpp"

MODEL_FILE(R"({"bias":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 16)
constexpr auto& kWeights = attune::kCopied<attune::PyTorchModule<Model>, File>;

// case: model_file_of_conv1d_in_flash
// error: attune::kInFlash, refer_to_safetensors: Conv1D weights are [in, out] in the file, packed by
constexpr attune::EncoderLayerShape kShape{.attention = {.seq_len = 1, .d_model = 1, .num_heads = 1},
                                           .d_ff = 1};
using Block = attune::EncoderLayer<kShape>;
auto refer(std::string_view file,
           Block::ParametersOf<attune::TransposedReference, attune::Reference>& in_place) {
  return attune::refer_to_safetensors<attune::HuggingFaceModule<attune::kGpt2Layer, Block>>(file, in_place);
}

// case: model_file_of_halves_in_flash
// error: attune::kInFlash: this tensor has the first type and needs the second; name it in WEIGHTS or FLOATS
// error: ElementType::kF16
// error: ElementType::kF32
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F16","shape":[3],"data_offsets":[0,6]},"weight":{"dtype":"F16","shape":[3,2],"data_offsets":[6,18]}})",
    18)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;

// case: model_file_of_integers
// error: attune: this tensor must be F64, F32, F16 or BF16, or an I8 weight with its row scales in
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"I32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"F32","shape":[3,2],"data_offsets":[12,36]}})",
    36)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;

// case: model_file_of_weights_of_two_types
// error: attune::kInFlash: this tensor has the first type and needs the second; name it in WEIGHTS or FLOATS
// error by gcc: TensorOfAnotherType<attune::v2_0_unfused::detail::TensorNamed<attune::v2_0_unfused::detail::Name<9>{"1.weight"}>, attune::v2_0_unfused::ElementType::kF32, attune::v2_0_unfused::ElementType::kF16>
using Model = attune::Sequential<attune::Linear<attune::LinearShape{1, 2, 2, false}>,
                                 attune::Linear<attune::LinearShape{1, 2, 2, false}>>;
extern "C" const float model_file[96];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"1.weight":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},"0.weight":{"dtype":"F16","shape":[2,2],"data_offsets":[16,24]}})";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 24;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;

// case: model_file_without_a_tensor
// error: attune: the file lacks this tensor: use the model's file, or other names in PyTorchModule
// error by gcc: TensorNamed<attune::v2_0_unfused::detail::Name<7>{"weight"}>
// error by clang: TensorNamed<'w', 'e', 'i', 'g', 'h', 't'>
#include "model_file.hpp"

MODEL_FILE(R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", 12)
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;

// case: model_file_without_scales
// error: attune: this tensor must be F64, F32, F16 or BF16, or an I8 weight with its row scales in
// error by gcc: TensorNamed<attune::v2_0_unfused::detail::Name<7>{"weight"}>
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
extern "C" const float model_file[96];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight":{"dtype":"I8","shape":[3,2],"data_offsets":[12,18]}} )";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 18;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::PyTorchModule<Model>, File>;

// case: names_that_are_none
// error: attune: pass names, not a model: PyTorchModule<Model
// error: attune: this type is not a model; pass the layer, not its parameters or its trainer
// error: attune: this is not a set of parameters; pass trainer.parameters(), or call trainer.load()
// error: attune::write_safetensors: a sink is called as sink(const char* bytes, std::size_t count)
// errors: 8  four mistakes, each with the function or class that does not take it
// kilobytes: 11  the way from the call to the layer
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Names = attune::PyTorchModule<Model>;
using Trainer = attune::Trainer<Model, attune::MeanSquaredError>;
template <class Of>
attune::Status read(std::string_view file, Model::Parameters& parameters) {
  return attune::read_safetensors<Of>(file, parameters);
}
template attune::Status read<Model>(std::string_view, Model::Parameters&);

using OfASet = attune::OwnNames<Model::Parameters>;

attune::Status write(const Trainer& trainer) {
  return attune::write_safetensors<Names>(trainer, [](const char*, std::size_t) {});
}
attune::Status write(const Model::Parameters& parameters, int& port) {
  return attune::write_safetensors<Names>(parameters, port);
}

// case: pytorch_names_of_fewer_layers
// error: attune::PyTorchModule: give one name for each layer with parameters, in order, also inside
// it, in their order
using Model = attune::Sequential<attune::Linear<attune::LinearShape{1, 2, 3}>,
                                 attune::Linear<attune::LinearShape{1, 3, 2}>>;
using Names = attune::PyTorchModule<Model, "embed">;
static_assert(attune::SafetensorsLayout<Names>::kTensors == 4);

// case: pytorch_names_of_matrices_of_ones_own
// error: attune::PyTorchModule: it is unknown which matrices of this layer PyTorch stores transposed; give
// known; give it ParametersOf<Matrix, Vector>, or specialize
struct Mixing {
  using Scalar = float;
  struct Parameters {
    attune::Tensor<float, 4, 4> weight;
    static constexpr void visit(const auto& visitor, const attune::TensorPath* parent, auto&&... sets) {
      visitor(attune::TensorPath{"weight", parent}, sets.weight...);
    }
  };
};
static_assert(attune::SafetensorsLayout<attune::PyTorchModule<Mixing>>::kTensors == 1);

// case: pytorch_names_of_other_attention
// error: attune::PyTorchModule: nn.MultiheadAttention needs num_heads * d_k, num_heads * d_v and d_out equal
// kilobytes: 15  the way from the call to the layer
// to d_model
using Model =
    attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2, .d_v = 3}>;
static_assert(attune::SafetensorsLayout<attune::PyTorchModule<Model>>::kTensors == 4);

// case: pytorch_names_twice
// error: attune::PyTorchModule: two tensors have the same name, or a name has a character that JSON escapes
using Model = attune::Sequential<attune::Linear<attune::LinearShape{1, 2, 3}>,
                                 attune::Linear<attune::LinearShape{1, 3, 2}>>;
using Names = attune::PyTorchModule<Model, "head", "head">;
Model::Parameters parameters;
const attune::Status status = attune::read_safetensors<Names>(std::string_view("{}"), parameters);

// case: pytorch_part_of_a_model
// error: attune: pass names, not a model: PyTorchModule<Model
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Part = attune::PyTorchPart<Model, "body">;
static_assert(attune::SafetensorsLayout<Part>::kTensors == 2);

// case: references_to_a_temporary_array
// error: attune: the values do not outlive the references to them; store them in a variable
using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 3}>;
auto use() { return attune::from_flat<Model::ParametersOf<attune::Reference>>(std::array<float, 9>{}); }

// case: references_to_a_temporary_file
// error: attune::refer_to_safetensors: the file is a temporary and does not outlive the parameters; store it
// a name
#include <vector>

using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
std::vector<char> load();

attune::Status refer(Model::ParametersOf<attune::TransposedReference, attune::Reference>& set) {
  return attune::refer_to_safetensors<attune::PyTorchModule<Model>>(load(), set);
}

// case: references_to_transposed_weights
// error: attune::refer_to_safetensors: PyTorch stores linear weights transposed; use
// kilobytes: 10  the way from the call to the layer
// take ParametersOf<TransposedReference, Reference>
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
attune::Status refer(std::string_view file, Model::ParametersOf<attune::Reference>& parameters) {
  return attune::refer_to_safetensors<attune::PyTorchModule<Model>>(file, parameters);
}

// case: shape_of_other_numbers
// error: attune::PyTorchFile: a TensorAlias or TensorShape names no tensor of the model, or has the wrong
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;
using Names = attune::PyTorchFile<attune::PyTorchModule<Model>, attune::TensorShape<"weight", 3, 1, 3>>;
Model::Parameters parameters;
attune::Status status = attune::read_safetensors<Names>(std::string_view(), parameters);

// case: sink_that_answers
// error: attune::write_safetensors: a sink returns void; store errors in the sink
using Model = attune::Linear<attune::LinearShape{1, 2, 3}>;

attune::Status write(const Model::Parameters& parameters) {
  return attune::write_safetensors<attune::PyTorchModule<Model>>(
      parameters, [](const char*, std::size_t) { return false; });
}

// case: table_of_names_with_a_gap
// error: attune::EncoderLayerNames: the table lacks a name for a part of the layer: gate, query_norm
// kilobytes: 22  the way from the call to the layer
constexpr attune::EncoderLayerShape kBlock{.attention = {.seq_len = 4, .d_model = 8, .num_heads = 2},
                                           .d_ff = 8};
using Block = attune::EncoderLayer<kBlock>;
constexpr attune::EncoderLayerNames kNames{.query = "q", .key = "k", .value = "v"};
attune::Status f(const Block::Parameters& parameters) {
  return attune::write_safetensors<attune::HuggingFaceModule<kNames, Block, "block">>(
      parameters, [](const char*, std::size_t) {});
}

// case: table_of_names_without_a_decoder_s_memory
// error: attune::EncoderLayerNames: the table lacks a name for a part of the layer: gate, query_norm
// kilobytes: 25  the way from the call to the layer
constexpr attune::DecoderLayerShape kBlock{.attention = {.seq_len = 4, .d_model = 8, .num_heads = 2},
                                           .d_ff = 8};
using Block = attune::DecoderLayer<kBlock>;
constexpr attune::EncoderLayerNames kNames{.query = "q",
                                           .key = "k",
                                           .value = "v",
                                           .output = "o",
                                           .linear1 = "1",
                                           .linear2 = "2",
                                           .norm1 = "3",
                                           .norm2 = "4",
                                           .norm3 = "5"};
attune::Status f(const Block::Parameters& parameters) {
  return attune::write_safetensors<attune::HuggingFaceModule<kNames, Block, "block">>(
      parameters, [](const char*, std::size_t) {});
}

// case: model_file_of_int8_packed
// error: attune::kQuantized, kPackedInt8: the compiler quantizes files of floats only; call pack() at
// errors: 2  the copy of such a file is none, either
#include "model_file.hpp"

MODEL_FILE(
    R"({"bias":{"dtype":"F32","shape":[3],"data_offsets":[0,12]},"weight.scale":{"dtype":"F32","shape":[3],"data_offsets":[12,24]},"weight":{"dtype":"I8","shape":[3,2],"data_offsets":[24,30]}})",
    30)
constexpr auto& kWeights = attune::kPackedInt8<attune::PyTorchModule<Model>, File>;

// case: quantized_file_of_own_names_in_flash
// error: attune::kInFlash: biases or norms of the file are quantized; leave files by OwnNames in floats
using Model = attune::LayerNorm<attune::NormShape{1, 4}>;
extern "C" const float model_file[64];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"bias":{"dtype":"I8","shape":[1,4],"data_offsets":[8,12]},"bias.scale":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"weight":{"dtype":"I8","shape":[1,4],"data_offsets":[12,16]},"weight.scale":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}  )";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 16;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::OwnNames<Model>, File>;

// case: quantized_file_of_own_names_with_biases
// error: attune::kInFlash: weights of a file by OwnNames are [in, out]; leave it in floats, and use kQuantized or kPackedInt8
using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 4}>;
extern "C" const float model_file[64];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"bias":{"dtype":"F32","shape":[1,4],"data_offsets":[8,24]},"weight":{"dtype":"I8","shape":[2,4],"data_offsets":[24,32]},"weight.scale":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 32;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::OwnNames<Model>, File>;

// case: quantized_file_of_own_names_without_biases
// error: attune::kInFlash, refer_to_safetensors: weights of a file by OwnNames are [in, out]; leave it in floats
// kilobytes: 16  the message is in the visitor of a set, which GCC prints with all that calls it
using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 4, .bias = false}>;
extern "C" const float model_file[64];
struct File {
  using Scalar = float;
  static constexpr char kHeader[] =
      R"({"weight":{"dtype":"I8","shape":[4,4],"data_offsets":[16,32]},"weight.scale":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}} )";
  static constexpr std::size_t kSize = 8 + sizeof kHeader - 1 + 32;
  static constexpr const float* kData = model_file;
};
constexpr auto& kWeights = attune::kInFlash<attune::OwnNames<Model>, File>;
