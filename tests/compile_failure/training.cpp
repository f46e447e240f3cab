// Misuse of attune/training that must not compile, a case each: tests/compile_failure/run compiles them one by one.

// case: anomaly_energy_of_tokens
// error: attune::energy: logits must be [1, classes]
attune::Tensor<float, 2, 3> logits{};
const float energy = attune::energy(logits);

// case: stochastic_bfloat16_of_doubles
// error: attune::StochasticBfloat16: bf16 weights need a model in float
using Masters = attune::StochasticBfloat16<attune::Adam<attune::AdamVariant{}, double>>;
constexpr auto kFingerprint = Masters::kFingerprint;

// case: bfloat16_without_a_first_moment
// error: attune::Adam: without a first moment, the second is kept in scalars or in 8 bits
using Rounded = attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kBfloat16,
                                                 .first_moment = attune::FirstMoment::kNone}>;
constexpr auto kFingerprint = Rounded::kFingerprint;

// case: class_weights_for_other_classes
// error: attune::WeightedCrossEntropy: the number of weights must equal the number of classes
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
constexpr attune::WeightedCrossEntropy<3> kLoss{{{1, 2, 3}}};
attune::Trainer<Layer, attune::WeightedCrossEntropy<3>> trainer;
Layer::Input x;
const std::array<int, 2> targets{0, 1};

int main() { return trainer.step(x, targets, {}, attune::NoClipping{}, attune::NoMask{}, kLoss).ok(); }

// case: class_weights_forgotten
// error: attune::Trainer: this loss has class weights; pass it to every call: step(inputs, targets, options
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
attune::Trainer<Layer, attune::WeightedCrossEntropy<4>> trainer;
Layer::Input x;
const std::array<int, 2> targets{0, 1};

int main() { return trainer.step(x, targets, {}).ok(); }

// case: closed_form_head_of_fewer_classes
// error: attune::ClosedFormHead: the base has more classes than the head; give the head all of them
using Device = attune::ClosedFormHead<8, 3>;
using Base = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 8, .d_out = 5}>;
attune::Status f(const Device& device, const Base::Parameters& base, Device::Head::Parameters& head,
                 Device::Scratch& scratch) {
  return device.solve(base, Device{}, head, scratch);
}

// case: closed_form_head_of_other_features
// error: attune::ClosedFormHead: the base's weight must be [num_features, classes]
using Device = attune::ClosedFormHead<8, 3>;
using Base = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 3}>;
attune::Status f(const Device& device, const Base::Parameters& base, Device::Head::Parameters& head,
                 Device::Scratch& scratch) {
  return device.solve(base, Device{}, head, scratch);
}

// case: closed_form_trainer_without_a_head
// error: attune::ClosedFormTrainer: the model must end with a Linear of one row with a bias
// errors: 2  the constraint of the class that takes it is told, too
using Head = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 3}>;
using Model = attune::Sequential<Head, attune::Relu<1, 3>>;
static Model::Parameters base;
attune::ClosedFormTrainer<attune::LinearProbe<Model, base>, attune::Relu<1, 3>> trainer;

// case: closed_form_trainer_of_other_features
// kilobytes: 20  the constraint prints both models
// error: attune::ClosedFormTrainer: give LinearProbe<Model, kConstants> and LinearProbeFeatures<Model, kConstants> of one model
// errors: 2  the constraint of the class that takes it is told, too
using First = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 5}>;
using Model =
    attune::Sequential<First, attune::Linear<attune::LinearShape{.rows = 1, .d_in = 5, .d_out = 3}>>;
static Model::Parameters base;
attune::ClosedFormTrainer<attune::LinearProbe<Model, base>, attune::LinearProbe<Model, base>> trainer;

// case: closed_form_trainer_of_a_whole_model
// kilobytes: 20  the constraint prints both models
// error: attune::ClosedFormTrainer: give LinearProbe<Model, kConstants> and LinearProbeFeatures<Model, kConstants> of one model
// errors: 2  the constraint of the class that takes it is told, too
using First = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 5}>;
using Model =
    attune::Sequential<First, attune::Linear<attune::LinearShape{.rows = 1, .d_in = 5, .d_out = 3}>>;
static Model::Parameters base;
attune::ClosedFormTrainer<Model, attune::LinearProbeFeatures<Model, base>> trainer;

// case: empty_batch
// error: attune::Trainer: batch must be at least 1
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 0> trainer;

// case: entropy_of_other_targets
// error: attune::Entropy: logits, target and gradient must have one shape, [rows, classes]
attune::Tensor<float, 1, 3> logits{}, dy{};
attune::Tensor<float, 1, 2> target{};
const float loss = attune::Entropy::forward(logits, target, dy);

// case: gradients_of_floats_checked
// error: attune::check_gradients: finite differences need double; make the layer's Scalar a template
// parameter and check that of double
#include <attune/layers/linear.hpp>
#include <attune/training/check_gradients.hpp>

using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 2}>;

bool use() { return attune::check_gradients<Layer>().ok(); }

// case: groups_around_master_weights
// error: attune::ParameterGroups: weights in bf16 go around the groups: StochasticBfloat16<ParameterGroups<...>>
using Groups = attune::ParameterGroups<attune::StochasticBfloat16<attune::AdamW>>;
constexpr auto kFingerprint = Groups::kFingerprint;

// case: half_sum_of_cross_entropy
// error: attune::CrossEntropy: reduction must be kMean or kSum; for neither use forward_rows
#include <attune/training/cross_entropy.hpp>

using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.reduction = attune::Reduction::kHalfSum}>;
constexpr bool kUse = Loss::kMeanOverBatch;

// case: int8_moments_of_doubles
// error: attune::Adam: 8- and 16-bit moments need float parameters
using Int8 = attune::Adam<attune::AdamVariant{.moments = attune::MomentPrecision::kInt8}, double>;
constexpr auto kFingerprint = Int8::kFingerprint;

// case: int8_momentum_that_is_none
// error: attune::Sgd: 8- and 16-bit momentum needs float parameters
using Int8 = attune::Sgd<attune::Momentum::kNone, float, attune::MomentPrecision::kInt8>;
constexpr auto kFingerprint = Int8::kFingerprint;

// case: int8_training_with_lockstep
// error: attune::Int8TrainingWith, WeightsIn, GradientsIn: the plan inside must compute one sequence at a time
using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 16, .d_out = 16}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 17,
                attune::Int8TrainingWith<attune::Lockstep>>
    trainer;

// case: label_balance_of_one_class
// error: attune::LabelBalance: at least two classes are required
constexpr attune::LabelBalance<1> kBalance{};

// case: loss_of_another_shape
// error: attune: output, target and gradient of a loss must have one shape
#include <attune/training/loss.hpp>

attune::Tensor<float, 2, 4> y{}, dy{};
attune::Tensor<float, 4, 2> target{};
float loss = attune::MeanSquaredError::forward(y, target, dy);

// case: loss_that_answers_a_number
// error: attune::Loss: sum(y, target, dy) must return a LossSum of the model's scalar
// errors: 2  the constraint of the class that takes it is told, too
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
struct Loss {
  static constexpr bool kMeanOverBatch = true;
  static float sum(attune::ConstView<Layer::Output>, attune::ConstView<Layer::Output>,
                   attune::View<Layer::Output>) {
    return 0;
  }
};

attune::Trainer<Layer, Loss> trainer;

// case: loss_without_a_kind_of_reduction
// error: attune::Loss: the type has no kMeanOverBatch (whether a batch's loss is a mean); training/loss.hpp
// errors: 2  the constraint of the class that takes it is told, too
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
struct Loss {};

attune::Trainer<Layer, Loss> trainer;

// case: loss_without_a_sum
// error: attune::Loss: there is no sum(y, target, dy)
// errors: 2  the constraint of the class that takes it is told, too
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
struct Loss {
  static constexpr bool kMeanOverBatch = true;
};

attune::Trainer<Layer, Loss> trainer;

// case: masks_fewer_than_sequences
// error: attune::Trainer: pass one mask for the batch, or one for each sequence in a std::array or std::span
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2> trainer;
decltype(trainer)::BatchInput x;
decltype(trainer)::BatchTarget target;
std::array<attune::KeyPaddingMask<4>, 3> masks;

int main() { return trainer.step(x, target, {}, attune::NoClipping{}, masks).ok(); }

// case: noise_exponent_beside_smoothing
// error: attune::CrossEntropy: noise_exponent and label_smoothing are mutually exclusive; choose one
using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.label_smoothing = 0.1, .noise_exponent = 0.7}>;
constexpr bool kMean = Loss::kMeanOverBatch;

// case: noise_exponent_too_small
// error: attune::CrossEntropy: noise_exponent must be 0 or in [0.01, 1]; 0.7 suits many wrong labels, 0 is cross-entropy
using Loss = attune::CrossEntropy<attune::CrossEntropyOptions{.noise_exponent = 1e-3}>;
constexpr bool kMean = Loss::kMeanOverBatch;

// case: optimizer_before_the_loss
// error: attune::Loss: this is an optimizer; the loss comes before it: Trainer<Model, Loss, Optimizer>
// errors: 2  the constraint of the class that takes it is told, too
using Model = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 2}>;
attune::Trainer<Model, attune::AdamW, attune::CrossEntropy<>> trainer;

// case: optimizer_of_another_scalar
// error: attune::Trainer: model and optimizer have different scalars; give both the same (Adam<{}, double>)
constexpr attune::AttentionShape kShape{.seq_len = 4, .d_model = 8, .num_heads = 2};
using Layer = attune::MultiHeadAttention<kShape>;

attune::Trainer<Layer, attune::MeanSquaredError, attune::Adam<attune::AdamVariant{}, double>> trainer;

// case: optimizer_without_an_update
// error: attune::Optimizer: the type lacks kMoments, moments.reset(), for_each_with_moments(visitor
// errors: 2  the constraint of the class that takes it is told, too
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
struct Optimizer : attune::AdamW {
  static void update();
};

attune::Trainer<Layer, attune::MeanSquaredError, Optimizer> trainer;

// case: optimizer_without_options
// error: attune::Optimizer: the type needs Scalar, Options, Coefficients and Moments<Parameters>
// errors: 2  the constraint of the class that takes it is told, too
using Layer = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 3, .d_out = 4}>;
struct Optimizer {
  using Scalar = float;
};

attune::Trainer<Layer, attune::MeanSquaredError, Optimizer> trainer;

// case: perturbation_that_rounds_away
// error: attune::ForwardOnlyTrainer: the perturbation's size must be in [1e-6, 1] for float, [1e-14, 1] for double; parameters lose a smaller one to rounding, and 1e-3 is usual
#include "journal.hpp"

static attune::ForwardOnlyTrainer<Model, attune::MeanSquaredError, 1, attune::Perturbation{1e-7}> trainer;

// case: plan_that_is_none
// error: attune::Trainer: the fifth template argument is not a memory plan: use BySequence, Lockstep
// errors: 2  the constraint of the class that takes it is told, too
using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 2, .d_out = 2}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 1, attune::NoClipping> trainer;

// case: quantile_of_all
// error: attune::Quantile: share must be in (0, 1)
constexpr auto kSize = sizeof(attune::Quantile<attune::QuantileOptions{.share = 1}>);

// case: step_with_gradients_of_another_set
// error: attune::optimizer_step: gradients and parameters have different types; use one type
using Parameters = attune::Linear<attune::LinearShape{2, 8, 8}>::Parameters;
using Others = attune::Linear<attune::LinearShape{2, 4, 4}>::Parameters;

attune::Status step(Parameters& parameters, const Others& gradients,
                    attune::AdamW::Moments<Others>& moments) {
  return attune::AdamW::step(parameters, gradients, moments, {});
}

// case: trainer_initialized_with_a_number
// error: attune: initialize() takes an initializer and an Rng: initialize(attune::XavierUniform{}, attune::Rng(42))
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
attune::Trainer<Layer> trainer;

void start() { trainer.initialize(attune::XavierUniform{}, 42); }

// case: trainer_initialized_without_an_initializer
// error: attune: initialize() takes an initializer and an Rng: initialize(attune::XavierUniform{}, attune::Rng(42))
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
attune::Trainer<Layer> trainer;

void start() { trainer.initialize(); }

// case: trainer_with_a_number_for_options
// error: attune: options have names, such as {.learning_rate = 1e-3f}
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
attune::Trainer<Layer> trainer;

auto step(const Layer::Input& x, const Layer::Output& target) { return trainer.step(x, target, 1e-3f); }

// case: update_with_a_number_for_options
// error: attune: options have names, such as {.learning_rate = 1e-3f}
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2> trainer;
bool update() { return trainer.update(1e-3f).ok(); }

// case: update_of_fewer_sequences_with_a_number_for_options
// error: attune: options have names, such as {.learning_rate = 1e-3f}
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 2> trainer;
bool update() { return trainer.update_incomplete(1e-3, attune::GradientClipping{1}).ok(); }

// case: update_without_backward_with_a_number_for_options
// error: attune: options have names, such as {.learning_rate = 1e-3f}
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
attune::ForwardOnlyTrainer<Layer> trainer;
bool update() { return trainer.update(1e-3f).change.size > 0; }

// case: update_in_closed_form_with_a_number_for_options
// error: attune: options have names, such as {.learning_rate = 1e-3f}
using First = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 4, .d_out = 5}>;
using Model =
    attune::Sequential<First, attune::Linear<attune::LinearShape{.rows = 1, .d_in = 5, .d_out = 3}>>;
static Model::Parameters base;
attune::ClosedFormTrainer<attune::LinearProbe<Model, base>, attune::LinearProbeFeatures<Model, base>> trainer;
bool update() { return trainer.update(1).ok(); }

// case: crew_trainer_with_a_number_for_options
// error: attune: options have names, such as {.learning_rate = 1e-3f}
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
attune::CrewTrainer<attune::OneCore, Layer> trainer;
attune::OneCore core;
auto step(const Layer::Input& x, const Layer::Output& target) { return trainer.step(core, x, target, 1e-3f); }

// case: step_without_labels_with_a_number_for_options
// error: attune: options have names, such as {.learning_rate = 1e-3f}
using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 8, .d_out = 3}>;
attune::InfoMaxTrainer<Layer, attune::AdamW, 2> trainer;
bool step(const Layer::Input& x) {
  return trainer
      .learn(
          2, [&](int, const auto& learn) { return learn(x, attune::kUnlabeled); }, 1e-3f)
      .ok();
}

// case: trainer_with_nothing_to_train
// error: attune::Trainer: the model has no trainable parameters; leave a part out of Frozen
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 8}>;
constexpr Layer::Parameters kLayer{};
attune::Trainer<attune::Sequential<attune::Frozen<Layer, kLayer>, attune::Relu<4, 8>>> trainer;

// case: unlabeled_head_with_too_many_classes
// error: attune::UnlabeledHead: at most 32767 classes
constexpr auto kSize = sizeof(attune::UnlabeledHead<1, 32768, 1>);

// case: unlabeled_head_of_fewer_classes
// error: attune::UnlabeledHead: the base must be the parameters of a Linear with a bias, with the features and
attune::UnlabeledHead<4, 3, 5> learning;
attune::Linear<attune::LinearShape{1, 4, 2}>::Parameters base;
attune::Linear<attune::LinearShape{1, 4, 3}>::Parameters head;
bool learn() {
  return learning
      .learn(
          base, 5, [](int, attune::Tensor<float, 1, 4>&) { return attune::Status::kOk; }, head)
      .ok();
}

// case: unlabeled_head_with_features_without_a_status
// error: attune::UnlabeledHead: features(int i, Features& to) writes the features of example i, and returns a Status
attune::UnlabeledHead<4, 3, 5> learning;
attune::Linear<attune::LinearShape{1, 4, 3}>::Parameters base, head;
bool learn() {
  return learning
      .learn(
          base, 5, [](int, attune::Tensor<float, 1, 4>&) {}, head)
      .ok();
}

// case: unlabeled_head_near_a_head_without_bias
// error: attune::UnlabeledHead: the base must be the parameters of a Linear with a bias, with the features and
attune::UnlabeledHead<4, 3, 5> learning;
attune::Linear<attune::LinearShape{1, 4, 3, false}>::Parameters base;
attune::Linear<attune::LinearShape{1, 4, 3}>::Parameters head;
bool learn() {
  return learning
      .learn(
          base, 5, [](int, attune::Tensor<float, 1, 4>&) { return attune::Status::kOk; }, head)
      .ok();
}

// case: info_max_of_each_token
// error: attune::InfoMaxTrainer: the model must end with one row of logits
using Layer = attune::Linear<attune::LinearShape{.rows = 4, .d_in = 8, .d_out = 3}>;
attune::InfoMaxTrainer<Layer, attune::AdamW, 2> trainer;
bool step(const Layer::Input& x) {
  return trainer.learn(2, [&](int, const auto& learn) { return learn(x, attune::kUnlabeled); }).ok();
}

// case: takes_that_return_nothing
// error: attune: takes(int i, const auto& learn) returns the Status of learn(x, label), or of learn(x, label,
using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 8, .d_out = 3}>;
attune::InfoMaxTrainer<Layer, attune::AdamW, 2> trainer;
bool step(const Layer::Input& x) {
  return trainer.learn(2, [&](int, const auto& learn) { (void)learn(x, attune::kUnlabeled); }).ok();
}

// case: takes_that_do_not_ask
// error: attune: takes(int i, const auto& learn) returns the Status of learn(x, label), or of learn(x, label,
using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 8, .d_out = 3}>;
attune::InfoMaxTrainer<Layer, attune::AdamW, 2> trainer;
bool step(const Layer::Input& x) {
  return trainer.learn(2, [&](int) { return x; }).ok();
}

// case: info_max_with_updates_in_backward
// error: attune::InfoMaxTrainer: a step adds up gradients, which UpdateInBackward does not keep; use BySequence
using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 8, .d_out = 3}>;
attune::InfoMaxTrainer<Layer, attune::AdamW, 1, attune::UpdateInBackward> trainer;
bool step(const Layer::Input& x) {
  return trainer.learn(1, [&](int, const auto& learn) { return learn(x, attune::kUnlabeled); }).ok();
}

// case: unlabeled_head_without_room
// error: attune::UnlabeledHead: room for at least one example is required
constexpr auto kSize = sizeof(attune::UnlabeledHead<8, 3, 0>);

// case: update_in_backward_of_a_layer_without_sets
// error: attune::UpdateInBackward: the model and its layers need ParametersOf<Matrix, Vector>, for sets with
#include "layer_without_sets.hpp"

attune::Trainer<ByHand, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;

// case: update_in_backward_over_a_batch
// error: attune::Trainer: UpdateInBackward keeps no gradients to add up; use a batch of 1
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
using Trainer = attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 4, attune::UpdateInBackward>;
Trainer trainer;

bool use(const Trainer::BatchInput& x, const Trainer::BatchTarget& target) {
  return trainer.step(x, target).ok();
}

// case: update_in_backward_with_clipping
// error: attune::Trainer: UpdateInBackward has no gradients to clip; pass NoClipping{}
using Layer = attune::MultiHeadAttention<attune::AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;
attune::Trainer<Layer, attune::MeanSquaredError, attune::AdamW, 1, attune::UpdateInBackward> trainer;
Layer::Input x;
Layer::Output target;

int main() { return trainer.step(x, target, {}, attune::GradientClipping{1.0f}).ok(); }

// case: shared_buffers_of_other_models
// error: attune::SharedBuffers: this SharedBuffers does not list the model
using Model = attune::Linear<attune::LinearShape{2, 3, 3}>;
using Other = attune::Linear<attune::LinearShape{2, 3, 4}>;
attune::SharedBuffers<Model> buffers;
attune::Trainer<Other, attune::MeanSquaredError, attune::AdamW, 1, attune::InSharedBuffers<buffers>> trainer;
auto result = trainer.accumulate(Other::Input{}, Other::Output{});

// case: shared_buffers_too_small_for_updates_in_backward
// error: attune::SharedBuffers: updates in backward need one more matrix of tokens than the largest model; use
// kilobytes: 15  the way from the call to the layer
using Encoder = attune::Repeat<2, attune::EncoderLayer<attune::EncoderLayerShape{
                                      .attention = {.seq_len = 4, .d_model = 8, .num_heads = 2}, .d_ff = 8}>>;
attune::SharedBuffers<Encoder> buffers;
attune::Trainer<Encoder, attune::MeanSquaredError, attune::AdamW, 1,
                attune::InSharedBuffers<buffers, attune::UpdateInBackward>>
    trainer;

attune::Status train(const Encoder::Input& x, const Encoder::Output& y) {
  return trainer.step(x, y, {}).status;
}

// case: working_weights_of_another_model
// error: attune::WeightsIn: the weights are those of another model or plan; declare WorkingWeights<Model>
using Model = attune::Linear<attune::LinearShape{2, 3, 3}>;
using Other = attune::Linear<attune::LinearShape{2, 3, 4}>;
attune::WorkingWeights<Model> weights;
attune::Trainer<Other, attune::MeanSquaredError, attune::AdamW, 1, attune::WeightsIn<weights>> trainer;

// case: working_weights_in_floats_for_training_in_integers
// error: attune::WeightsIn: the weights are those of another model or plan; declare WorkingWeights<Model>
using Model = attune::Linear<attune::LinearShape{1, 16, 16}>;
attune::WorkingWeights<Model> weights;
attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1,
                attune::WeightsIn<weights, attune::Int8Training>>
    trainer;

// case: integers_around_working_weights
// error: attune::Int8TrainingWith: the plan inside has weights of its own; for a place of the integers, use
using Model = attune::Linear<attune::LinearShape{1, 16, 16}>;
attune::WorkingWeights<Model> weights;
attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1,
                attune::Int8TrainingWith<attune::WeightsIn<weights>>>
    trainer;

// case: copy_of_a_trainer_with_placed_parts
// error: attune::Trainer: placed weights and gradients belong to one trainer, not to its copies; copy its state()
using Model = attune::Linear<attune::LinearShape{2, 3, 3}>;
attune::WorkingWeights<Model> weights;
attune::PlacedGradients<Model> gradients;
using Plan = attune::WeightsIn<weights, attune::GradientsIn<gradients>>;
attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 2, Plan> trainer, backup;

int main() {
  backup = trainer;
  trainer = backup;
}

// case: placed_gradients_of_another_model
// error: attune::GradientsIn: the gradients are those of another model; declare PlacedGradients<Model>
using Model = attune::Linear<attune::LinearShape{2, 3, 3}>;
using Other = attune::Linear<attune::LinearShape{2, 3, 4}>;
attune::PlacedGradients<Model> gradients;
attune::Trainer<Other, attune::MeanSquaredError, attune::AdamW, 2, attune::GradientsIn<gradients>> trainer;

// case: placed_gradients_that_are_not_kept
// error: attune::GradientsIn: UpdateInBackward keeps no gradients to place
using Model = attune::Linear<attune::LinearShape{2, 3, 3}>;
attune::PlacedGradients<Model> gradients;
attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1,
                attune::GradientsIn<gradients, attune::UpdateInBackward>>
    trainer;

// case: crew_trainer_in_lockstep
// error: attune::CrewTrainer: the plan must be BySequence or Int8Training
// errors: 2  the constraint of the class that takes it is told, too
using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 16, .d_out = 16}>;
attune::CrewTrainer<attune::OneCore, Layer, attune::MeanSquaredError, attune::AdamW, 17, attune::Lockstep>
    trainer;

// case: crew_trainer_without_a_crew
// error: attune: the first template argument is not a Crew: use OneCore, TwoCores<Core>, or host::Threads<members>
// errors: 2  the constraint of the class that takes it is told, too
using Layer = attune::Linear<attune::LinearShape{.rows = 1, .d_in = 16, .d_out = 16}>;
attune::CrewTrainer<int, Layer> trainer;

// case: predict_with_a_number_as_mask
// error: attune: this argument is not a mask; masks have hide and bias (execution/attention_mask.hpp)
// kilobytes: 12  the way from the call to the context
using Model = attune::Linear<attune::LinearShape{.rows = 2, .d_in = 4, .d_out = 4}>;
static attune::Trainer<Model> trainer;
static attune::ForwardOnlyTrainer<Model> forward_only;
static attune::OneCore core;
static attune::CrewTrainer<attune::OneCore, Model> crew;
static attune::CrewInference<attune::OneCore, Model> inference;
void f(const Model::Parameters& parameters, const Model::Input& x, Model::Output& y) {
  (void)trainer.predict(x, y, 3);
  (void)forward_only.predict(x, y, 3);
  (void)crew.predict(core, x, y, 3);
  inference.infer(core, parameters, x, y, 3);
}
