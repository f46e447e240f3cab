// Misuse of attune/core that must not compile, a case each: tests/compile_failure/run compiles them one by one.

// case: array_of_ids_of_another_number
// error: attune::Ids: the number of ids must equal the number of tokens or rows
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use(const std::array<int, 2>& ids) { look_up(ids); }

// case: braced_ids_of_another_number
// error: attune::Ids: the number of ids must equal the number of tokens or rows
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use() { look_up({{4, 0}}); }

// case: checked_view_of_a_column_major_matrix
// error: attune::checked_view: an Eigen matrix must be row-major; Eigen's default is not
#include <Eigen/Core>

#include <attune/core/checked_view.hpp>
#include <attune/core/tensor.hpp>

auto use(const Eigen::MatrixXf& samples) {
  return attune::checked_view<attune::Tensor<float, 2, 3>>(samples).status;
}

// case: checked_view_of_a_temporary
// error: attune::checked_view: the temporary does not outlive its view; store it in a variable
#include <attune/core/checked_view.hpp>
#include <attune/core/tensor.hpp>

auto use() { return attune::checked_view<attune::Tensor<float, 2, 3>>(std::array<float, 6>{}).status; }

// case: checked_view_of_rows
// error: attune::checked_view: the argument is a range of rows; pass the numbers, std::span(&rows[0][0], count)
#include <attune/core/checked_view.hpp>
#include <attune/core/tensor.hpp>

auto use(std::span<const std::array<float, 3>> rows) {
  return attune::checked_view<attune::Tensor<float, 2, 3>>(rows).status;
}

// case: constructed_ids_of_another_number
// error: attune::Ids: the number of ids must equal the number of tokens or rows
#include <attune/core/ids.hpp>

auto use(const int (&ids)[4]) { return attune::Ids<3>(ids); }

// case: empty_tensor
// error: attune::Tensor: rows and cols must be positive; give the layer positive sizes
#include <attune/core/tensor.hpp>

attune::Tensor<float, 0, 4> tensor;

// case: epsilon_of_another_family_said
#pragma GCC diagnostic error "-Wdeprecated-declarations"
#define EPSILON 1e-5
#include <attune/attune.hpp>

using Model = attune::RmsNorm<attune::NormShape{.rows = 2, .d_model = 4, .epsilon = EPSILON}>;
constexpr attune::EncoderLayerNames kLlama3 = [] {
  auto names = attune::kLlamaLayer;
  names.epsilon = EPSILON;
  return names;
}();
using Names = attune::HuggingFaceModule<kLlama3, attune::Sequential<Model>, "model.norm">;
attune::Status send(const attune::Sequential<Model>::Parameters& parameters) {
  return attune::write_safetensors<Names>(parameters, [](const char*, std::size_t) {});
}

// case: field_that_is_listed_twice
// error: attune: ATTUNE_FIELDS lists a member twice
struct Parameters {
  attune::Tensor<float, 2, 3> weight;
  attune::Tensor<float, 1, 3> bias;
  ATTUNE_FIELDS(Weight(weight), Weight(weight))
};
const int scalars = attune::count_scalars(Parameters{});

// case: field_that_is_not_listed
// error: attune: a member is missing from ATTUNE_FIELDS
struct Parameters {
  attune::Tensor<float, 2, 3> weight;
  attune::Tensor<float, 1, 3> bias;
  ATTUNE_FIELDS(Weight(weight))
};
const int scalars = attune::count_scalars(Parameters{});

// case: ids_of_a_temporary_array
// error by clang: error: temporary whose address is used as value of local variable 'ids' will be destroyed
#if defined(__clang__)
#pragma clang diagnostic error "-Wdangling"
#endif

std::array<int, 3> tokens();
int first() {
  const attune::Ids<3> ids(tokens());
  return ids[0];
}

// case: ids_of_an_enumerator
// error: attune::Ids: an id is an int; convert an enumerator with static_cast<int>
#include <attune/core/ids.hpp>

enum class Gesture { kLeft, kRight };
void look_up(attune::Ids<1> ids);

void use() { look_up(Gesture::kRight); }

// case: ids_of_one_number
// error: attune::Ids: one id is required for each token, or each sequence of a batch; accumulate() takes a single sequence
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use() { look_up(1); }

// case: ids_of_another_number
// error: attune::Ids: the number of ids must equal the number of tokens or rows
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use(const int (&ids)[4]) { look_up(ids); }

// case: ids_of_bytes
// error: attune::Ids: ids are ints; copy others into a std::array<int, n>
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use(const unsigned char (&ids)[3]) { look_up(ids); }

// case: ids_of_dynamic_number
// error: attune::Ids: the number of ids is known only at run time; check it with attune::checked_view
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use(std::span<const int> ids) { look_up(ids); }

// case: ignored_checked_view
// error: nodiscard
#pragma GCC diagnostic error "-Wunused-result"
#include <attune/core/checked_view.hpp>
#include <attune/core/tensor.hpp>

void use(std::span<float> samples) { attune::checked_view<attune::Tensor<float, 2, 3>>(samples); }

// case: ignored_status
// error: nodiscard
#pragma GCC diagnostic error "-Wunused-result"

void use(attune::KeyPaddingMask<4>& mask) { mask.set_length(5); }

// case: ignored_status_of_a_prediction
// error: nodiscard
#pragma GCC diagnostic error "-Wunused-result"

using Model =
    attune::Sequential<attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 9, .d_model = 8}>,
                       attune::Linear<attune::LinearShape{4, 8, 8}>>;
void predict(attune::Trainer<Model>& trainer, const Model::Input& ids, Model::Output& y) {
  trainer.predict(ids, y);
}

// case: ignored_status_of_a_step
// error: nodiscard
#pragma GCC diagnostic error "-Wunused-result"
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
using Cache = attune::KeyValueCache<Layer, attune::CacheShape{.window = 8}>;

void use(const Layer::Parameters& parameters, const attune::Tensor<float, 1, 8>& x,
         attune::Tensor<float, 1, 8>& y, Cache& cache, Cache::Scratch<>& scratch) {
  Layer::step(parameters, x, y, cache, scratch);
}

// case: integer_tensor
// error: attune::Tensor: the scalar must be float or double
#include <attune/core/tensor.hpp>

attune::Tensor<int, 2, 4> tensor;

// case: mask_in_the_place_of_the_clipping
// error: attune::Trainer: the fourth argument is not a clipping rule; call step(inputs, targets, options
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2> trainer;
decltype(trainer)::BatchInput x;
decltype(trainer)::BatchTarget target;

int main() { return trainer.step(x, target, {}, attune::CausalMask{}).ok(); }

// case: number_for_a_matrix
// error: attune::MatrixView: a number cannot be a matrix; if it is a class, the loss must take classes, as CrossEntropy does
#include <attune/core/tensor.hpp>

void look_at(attune::ConstView<attune::Tensor<float, 1, 3>> matrix);

void use() { look_at(1); }

// case: pointer_for_ids
// error: attune::Ids: a pointer has no size; check it with attune::checked_view, or promise the size with Ids{pointer}
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use(const int* ids) { look_up(ids); }

// case: positive_control
// The other cases differ from this by their mistake alone.
#include <Eigen/Core>

constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2>;

void use(const Layer::Parameters& parameters, Trainer& trainer) {
  Eigen::Matrix<float, 4, 8, Eigen::RowMajor> x, y;
  Layer::InferenceScratch scratch;
  attune::KeyPaddingMask<4> mask;
  attune::infer<Layer>(parameters, x, y, scratch, attune::CausalMask{} && mask);
  Trainer::BatchInput inputs;
  Trainer::BatchTarget targets;
  const float loss = trainer.step(inputs, targets, {.learning_rate = 1e-3f}, attune::NoClipping{}, mask).loss;
  (void)loss;
}

// case: references_to_a_temporary_set
// error: attune::references_to: the parameters are a temporary and do not outlive the references
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
auto references = attune::references_to<Layer>(Layer::Parameters{});

// case: refused_loss_read_as_a_number
// error: StepResult
// first by clang: 212  clang names the trainer to which the result's scalar belongs
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2> trainer;
decltype(trainer)::BatchInput x;
decltype(trainer)::BatchTarget target;

float loss = trainer.step(x, target, {});

// case: status_without_eigen
// No mistake: what only reports compiles where nothing computes, without Eigen.
#define ATTUNE_TEST_ALONE  // nothing of the library is precompiled for it
#include <attune/core/memory.hpp>
#include <attune/core/status.hpp>

#if defined(EIGEN_WORLD_VERSION)
#error "status.hpp or memory.hpp includes Eigen"
#endif

constexpr const char* kSentence = attune::message(attune::Status::kOk);

// case: step_of_another_number_of_tokens
// error: attune::Ids: the number of ids must equal the number of tokens or rows
using Layer = attune::Embedding<attune::EmbeddingShape{.seq_len = 4, .vocabulary = 8, .d_model = 2}>;
using Cache = attune::KeyValueCache<Layer, attune::CacheShape{.window = 8}>;

attune::Status use(const Layer::Parameters& parameters, attune::Tensor<float, 3, 2>& y, Cache& cache,
                   Cache::Scratch<3>& scratch) {
  return attune::step(parameters, {{1, 2, 3, 4}}, y, cache, scratch);
}

// case: tensor_beyond_int
// error: attune::Tensor: rows * cols must be below 2^31
constexpr attune::AttentionShape kShape{.seq_len = 40'000, .d_model = 8, .num_heads = 2};
attune::MultiHeadAttention<kShape>::Tape tape;

// case: trainer_for_its_parameters
// error: attune: this is a trainer, not parameters; pass trainer.parameters()
// kilobytes: 13  the way from the call to the layer
using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 2}>;
using Cache = attune::KeyValueCache<Model, attune::CacheShape{.capacity = 4}>;
attune::Status f(const attune::Trainer<Model>& trainer, const Model::Input& x, Model::Output& y, Cache& cache,
                 Cache::Scratch<>& scratch) {
  return attune::step<attune::Trainer<Model>, Model, Cache::kShape, 1>(trainer, x, y, cache, scratch);
}

// case: what_is_no_mask
// error: attune: this argument is not a mask; masks have hide and bias
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;

void use(const Layer::Parameters& parameters, const Layer::Input& x, Layer::Output& y,
         Layer::InferenceScratch& scratch) {
  attune::infer<Layer>(parameters, x, y, scratch, 3);
}
