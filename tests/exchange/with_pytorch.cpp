// The attune end of tests/exchange/with_pytorch: with_pytorch FOLDER MODEL reads MODEL.safetensors and the
// raw numbers of MODEL.input in a folder, both from PyTorch, and leaves
//
//   MODEL.output                 what the model makes of the input: in place and, in the same bits, from a
//   copy MODEL.in_place.safetensors   the tensors without a change, written from where they stand
//   MODEL.copied.safetensors     and from the copy
//   MODEL.trained.safetensors    and after a number was added to each
//   MODEL.rewritten.safetensors      these as the file, in its own types
//   MODEL.quantized.safetensors      the file rewritten from one whose weights were 8-bit integers
//
// A file of a narrower type than the model's, or with weights of a Conv1D, is read into the copy alone.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <attune/attune.hpp>

namespace {

using namespace attune;

// ---- The models. ----

constexpr int kSeqLen = 8, kModelWidth = 16;
constexpr EncoderLayerShape kEncoder{
    .attention = {.seq_len = kSeqLen, .d_model = kModelWidth, .num_heads = 2},
    .d_ff = 24,
    .activation = Activation::kGelu,
    .norm = NormPlacement::kBefore};

using Digits = Sequential<Linear<LinearShape{kSeqLen, 5, kModelWidth}>,
                          LearnedPositions<PositionShape{kSeqLen, kModelWidth}>,
                          Repeat<2, EncoderLayer<kEncoder>>, LayerNorm<NormShape{kSeqLen, kModelWidth}>,
                          Pooling<PoolingShape{.seq_len = kSeqLen, .d_model = kModelWidth}>,
                          Linear<LinearShape{1, kModelWidth, 10}>>;
template <class Model>
using DigitsNames = PyTorchModule<Model, "embed", "pos", "encoder.layers", "encoder.norm", "head">;

// Of token ids.
constexpr EncoderLayerShape kTokenEncoder{.attention = {.seq_len = 7, .d_model = 12, .num_heads = 3},
                                          .d_ff = 10};
using Tokens = Sequential<Embedding<EmbeddingShape{.seq_len = 7, .vocabulary = 11, .d_model = 12}>,
                          Repeat<2, EncoderLayer<kTokenEncoder>>,
                          Pooling<PoolingShape{.seq_len = 7, .d_model = 12}>, Linear<LinearShape{1, 12, 3}>>;

// Whose head is its embedding.
using Tied = attune::Tied<Embedding<EmbeddingShape{.seq_len = 7, .vocabulary = 11, .d_model = 12}>,
                          Repeat<2, EncoderLayer<kTokenEncoder>>>;
using TiedNames = PyTorchFile<PyTorchModule<Tied, "embedding", "encoder.layers">,
                              TensorAlias<"head.weight", "embedding.weight">>;

// Of patches, with positions of [1, 8, 16] and a weight of [16, 1, 7, 7].
constexpr int kPatch = 7 * 7;
using Vit =
    Sequential<Linear<LinearShape{kSeqLen, kPatch, kModelWidth}>,
               LearnedPositions<PositionShape{kSeqLen, kModelWidth}>, Repeat<2, EncoderLayer<kEncoder>>,
               Pooling<PoolingShape{.seq_len = kSeqLen, .d_model = kModelWidth}>,
               Linear<LinearShape{1, kModelWidth, 10}>>;
using VitNames = PyTorchFile<PyTorchModule<Vit, "patches", "pos", "encoder.layers", "head">,
                             TensorShape<"pos", 1, kSeqLen, kModelWidth>,
                             TensorShape<"patches.weight", kModelWidth, 1, 7, 7>>;

// A block of GPT-2, without its mask.
using Gpt2 = EncoderLayer<EncoderLayerShape{.attention = {.seq_len = 7, .d_model = 12, .num_heads = 3},
                                            .d_ff = 20,
                                            .activation = Activation::kGeluTanh,
                                            .norm = NormPlacement::kBefore}>;

// As one input: queries, keys and values, each as a row of its own.
struct CrossAttention {
  using Attention = MultiHeadAttention<AttentionShape{
      .seq_len = 3, .d_model = 8, .num_heads = 2, .kv_len = 4, .d_key = 5, .d_value = 7}>;
  using Scalar = float;
  using Input = Tensor<float, 1, 3 * 8 + 4 * 5 + 4 * 7>;
  using Output = Attention::Output;
  template <template <class, int, int> class Matrix, template <class, int, int> class Vector = Matrix>
  using ParametersOf = Attention::ParametersOf<Matrix, Vector>;
  using Parameters = ParametersOf<Tensor>;

  static void infer(const auto& parameters, const Input& x, Output& y) {
    static Attention::InferenceScratch scratch;
    const float* key = x.data() + 3 * 8;
    Attention::forward(parameters, ConstView<Attention::Input>(x.data()), ConstView<Attention::KeyInput>(key),
                       ConstView<Attention::ValueInput>(key + 4 * 5), y, scratch);
  }
};

// nn.Transformer: the source, then the target.
constexpr int kSource = 5, kTarget = 4, kWidth = 8;
template <NormPlacement placement>
using Translator = EncoderDecoder<
    Sequential<Repeat<2, EncoderLayer<EncoderLayerShape{
                             .attention = {.seq_len = kSource, .d_model = kWidth, .num_heads = 2},
                             .d_ff = 12,
                             .norm = placement}>>,
               LayerNorm<NormShape{kSource, kWidth}>>,
    Sequential<Repeat<2, DecoderLayer<DecoderLayerShape{
                             .attention = {.seq_len = kTarget, .d_model = kWidth, .num_heads = 2},
                             .d_ff = 12,
                             .memory_len = kSource,
                             .norm = placement}>>,
               LayerNorm<NormShape{kTarget, kWidth}>>>;
template <NormPlacement placement>
using TranslatorNames =
    PyTorchModule<Translator<placement>, "encoder.layers", "encoder.norm", "decoder.layers", "decoder.norm">;

}  // namespace

template <>
struct attune::PyTorchNames<CrossAttention> : PyTorchNames<CrossAttention::Attention> {};
namespace {

// ---- Reading, running, writing. ----

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

auto writer_of(std::ofstream& file) {
  return [&file](const char* bytes, std::size_t count) {
    file.write(bytes, static_cast<std::streamsize>(count));
  };
}
template <class Names, class Set>
void rewrite(std::string_view from, const Set& set, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  const SafetensorsResult result = rewrite_safetensors<Names>(from, set, writer_of(file));
  if (result != Status::kOk) std::printf("%s: %s\n", path.c_str(), message(result));
}
template <class Names, class Set>
void write(const Set& set, const std::string& path, std::string_view metadata) {
  std::ofstream file(path, std::ios::binary);
  (void)write_safetensors<Names>(set, writer_of(file), {.metadata = metadata});
}

template <class Model>
Status infer(const auto& parameters, const typename Model::Input& x, typename Model::Output& y) {
  if constexpr (requires { Model::infer(parameters, x, y); }) {
    Model::infer(parameters, x, y);
    return Status::kOk;
  } else {
    static typename Model::InferenceScratch scratch;
    if constexpr (!std::is_void_v<decltype(Model::forward(parameters, x, y, scratch))>) {
      return Model::forward(parameters, x, y, scratch);
    } else {
      Model::forward(parameters, x, y, scratch);
      return Status::kOk;
    }
  }
}

template <class Names>
int run(const std::string& path) {
  using Model = typename Names::Model;
  static typename Model::Parameters copied;
  static typename Model::template ParametersOf<TransposedReference, Reference> in_place;
  static typename Model::Input x;
  static typename Model::Output y, of_copy;
  const std::string bytes = contents(path + ".safetensors"), input = contents(path + ".input");
  const std::string_view file = bytes;
  const auto layout = safetensors_layout<Names>(file);
  Status status = read_safetensors<Names>(file, copied);
  constexpr bool kConv1D = detail::kStateDict<Names>.has_conv1d();
  bool narrower = kConv1D;
  for (const ElementType type : layout.type) {
    narrower = narrower || type == ElementType::kF16 || type == ElementType::kBF16;
  }
  if constexpr (!kConv1D) {
    if (status == Status::kOk && !narrower) status = refer_to_safetensors<Names>(file, in_place);
  }
  if (status != Status::kOk || input.size() != sizeof x) {
    std::printf("%s: %s %.*s\n", path.c_str(), message(status), static_cast<int>(layout.tensor.size()),
                layout.tensor.data());
    return 1;
  }
  std::memcpy(&x, input.data(), sizeof x);
  status = infer<Model>(copied, x, of_copy);
  if (!narrower && status == Status::kOk) {
    status = infer<Model>(in_place, x, y);
    if (std::memcmp(&y, &of_copy, sizeof y) != 0) {
      std::printf("%s: other bits in place than from a copy\n", path.c_str());
      return 1;
    }
    write<Names>(in_place, path + ".in_place.safetensors", layout.metadata);
  }
  if (status != Status::kOk) {
    std::printf("%s: %s\n", path.c_str(), message(status));
    return 1;
  }
  std::ofstream(path + ".output", std::ios::binary)
      .write(reinterpret_cast<const char*>(&of_copy), sizeof of_copy);
  write<Names>(copied, path + ".copied.safetensors", layout.metadata);
  Names::visit(
      [](const auto&, auto& tensor) {
        for (auto& value : tensor.values) value += 0.5f;
      },
      nullptr, copied);
  write<Names>(copied, path + ".trained.safetensors", layout.metadata);
  rewrite<Names>(file, copied, path + ".rewritten.safetensors");
  std::string quantized;
  const auto append = [&quantized](const char* text, std::size_t count) { quantized.append(text, count); };
  (void)quantize_safetensors(file, ElementType::kI8, append, [](std::string_view, QuantizationError) {});
  (void)read_safetensors<Names>(std::string_view(quantized), copied);
  rewrite<Names>(std::string_view(quantized), copied, path + ".quantized.safetensors");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const std::string model = arguments[2], path = std::string(arguments[1]) + "/" + model;
  if (model == "digits" || model == "digits_half" || model == "digits_bfloat16") {
    return run<DigitsNames<Digits>>(path);
  }
  if (model == "digits_double") return run<DigitsNames<Digits::WithScalar<double>>>(path);
  if (model == "tokens") return run<PyTorchModule<Tokens, "embedding", "encoder.layers", "head">>(path);
  if (model == "tied") return run<TiedNames>(path);
  if (model == "vit") return run<VitNames>(path);
  if (model == "gpt2") return run<HuggingFaceModule<kGpt2Layer, Gpt2>>(path);
  if (model == "attention") return run<PyTorchModule<CrossAttention>>(path);
  if (model == "translator") return run<TranslatorNames<NormPlacement::kAfter>>(path);
  if (model == "translator_pre") return run<TranslatorNames<NormPlacement::kBefore>>(path);
  return 2;
}
