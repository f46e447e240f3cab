#include <array>
#include <cfenv>
#include <cstddef>
#include <stdexcept>
#include <string>

#include <attune/attune.hpp>

#include <check.hpp>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if ATTUNE_CHECKED

namespace {

using namespace attune;

using Layer = Linear<LinearShape{.rows = 2, .d_in = 3, .d_out = 3}>;
using Attention = MultiHeadAttention<AttentionShape{.seq_len = 4, .d_model = 8, .num_heads = 2}>;

/// What the check says that fails in `call`; nothing where none does.
template <class Call>
std::string failed_check(Call&& call) {
  auto* const before = on_failed_check;
  on_failed_check = [](const char* what) { throw std::logic_error(what); };
  std::string said;
  try {
    call();
  } catch (const std::logic_error& failed) {
    said = failed.what();
  }
  on_failed_check = before;
  return said;
}

/// Memory for calls of Layer.
struct Memory {
  Layer::Parameters parameters{};
  Layer::Input x{};
  Layer::Output y{};
  Layer::Tape tape{};
  Layer::Scratch scratch{};
  Layer::InferenceScratch inference_scratch{};
};

TEST(Checked, an_element_outside_of_a_matrix_fails) {
  Tensor<float, 2, 3> matrix{};
  const MatrixView<const float, 2, 3> view = matrix;
  EXPECT_EQ(failed_check([&] { (void)view(1, 2); }), "");
  EXPECT_EQ(failed_check([&] { (void)view(2, 0); }),
            "attune: MatrixView: an element is outside of the matrix");
  EXPECT_EQ(failed_check([&] { (void)view(0, -1); }),
            "attune: MatrixView: an element is outside of the matrix");
  EXPECT_EQ(failed_check([&] { (void)matrix(0, 3); }), "attune: Tensor: an element is outside of it");
}

TEST(Checked, rows_and_columns_outside_of_a_matrix_fail) {
  Tensor<float, 4, 6> matrix{};
  const MatrixView<float, 4, 6> view = matrix;
  EXPECT_EQ(failed_check([&] { (void)view.rows_at<2>(2); }), "");
  EXPECT_EQ(failed_check([&] { (void)view.rows_at<2>(3); }),
            "attune: MatrixView: rows are outside of the matrix");
  EXPECT_EQ(failed_check([&] { (void)view.columns<3>(4); }),
            "attune: MatrixView: columns are outside of the matrix");
  EXPECT_EQ(failed_check([&] { (void)view.rows_at<4>(RowRange{2, 2}); }), "");
  EXPECT_EQ(failed_check([&] {
              (void)view.rows_at<4>(RowRange{2, 3});
            }),
            "attune: MatrixView: rows are outside of the matrix");
}

TEST(Checked, an_id_index_out_of_range_fails) {
  const std::array<int, 3> numbers{1, 2, 3};
  const Ids<3> ids = numbers;
  EXPECT_EQ(failed_check([&] { (void)ids[2]; }), "");
  EXPECT_EQ(failed_check([&] { (void)ids[3]; }), "attune: Ids: index out of range");
}

TEST(Checked, output_over_input_fails) {
  Memory memory;
  const auto forward = [&](View<Layer::Output> y) {
    infer<Layer>(memory.parameters, memory.x, y, memory.inference_scratch);
  };
  EXPECT_EQ(failed_check([&] { forward(memory.y); }), "");
  EXPECT_EQ(failed_check([&] { forward(memory.x); }),
            "attune: a layer's inputs and outputs overlap; use separate memory");
}

TEST(Checked, a_shifted_output_fails_even_if_the_layer_works_in_place) {
  using Relu = ActivationLayer<Activation::kRelu, 2, 3>;
  float numbers[9] = {};
  Relu::InferenceScratch scratch;
  const NoParameters none{};
  const auto forward = [&](int from, int to) {
    infer<Relu>(none, ConstView<Relu::Input>(numbers + from), View<Relu::Output>(numbers + to), scratch);
  };
  EXPECT_EQ(failed_check([&] { forward(0, 0); }), "");
  EXPECT_EQ(failed_check([&] { forward(0, 3); }),
            "attune: a layer's inputs and outputs overlap; use separate memory");
}

TEST(Checked, output_over_an_input_that_backward_reads_fails) {
  using Norm = LayerNorm<NormShape{2, 3}>;
  static Norm::Parameters parameters{};
  Norm::Input x{};
  Norm::Tape tape;
  Norm::Scratch scratch;
  Norm::InferenceScratch inference_scratch;
  EXPECT_EQ(failed_check([&] { infer<Norm>(parameters, x, x, inference_scratch); }), "");
  EXPECT_EQ(failed_check([&] { forward<Norm>(parameters, x, x, tape, scratch); }),
            "attune: a layer's inputs and outputs overlap; use separate memory");
}

TEST(Checked, gradient_of_the_input_over_that_of_the_output_fails) {
  Memory memory;
  Layer::Parameters gradients{};
  Tensor<float, 2, 3> dx{};
  const auto backward_to = [&](View<Layer::Input> to) {
    backward<Layer>(memory.parameters, memory.x, memory.tape, memory.y, to, gradients, memory.scratch);
  };
  EXPECT_EQ(failed_check([&] { backward_to(dx); }), "");
  EXPECT_EQ(failed_check([&] { backward_to(memory.y); }),
            "attune: a layer's inputs and outputs overlap; use separate memory");
}

TEST(Checked, using_a_checked_view_of_too_few_numbers_fails) {
  Memory memory;
  const std::array<float, 5> too_few{};
  const auto x = checked_view<Layer::Input>(std::span(too_few.data(), too_few.size()));
  EXPECT_FALSE(x.ok());
  EXPECT_EQ(
      failed_check([&] { infer<Layer>(memory.parameters, x.view, memory.y, memory.inference_scratch); }),
      "attune: a view of nothing; look at CheckedView::status");
}

TEST(Checked, misaligned_numbers_fail) {
  Memory memory;
  alignas(float) std::byte bytes[sizeof(Layer::Input) + sizeof(float)] = {};
  const auto* const askew = reinterpret_cast<const float*>(bytes + 1);
  EXPECT_EQ(failed_check([&] {
              infer<Layer>(memory.parameters, ConstView<Layer::Input>(askew), memory.y,
                           memory.inference_scratch);
            }),
            "attune: a view of misaligned numbers");
}

TEST(Checked, an_id_that_forward_refuses_fails_in_backward) {
  using Words = Embedding<EmbeddingShape{.seq_len = 2, .vocabulary = 5, .d_model = 3}>;
  Words::Parameters gradients{};
  Words::Scratch scratch;
  const Words::Output dy{};
  const std::array<int, 2> ids{4, 5};
  EXPECT_EQ(failed_check([&] { Words::add_to_rows(ids, dy, 0, view(gradients.weight), scratch, 2); }),
            "attune: Embedding: backward of an id that forward refuses");
}

TEST(Checked, a_cache_that_was_never_cleared_fails) {
  constexpr CacheShape kCache{.capacity = 4};
  static KeyValueCache<Attention, kCache> cache;
  static KeyValueCache<Attention, kCache>::Scratch<> scratch;
  static Attention::Parameters parameters;
  Tensor<float, 1, 8> x{}, y{};
  const auto step = [&] { return Attention::step(parameters, x, y, cache, scratch); };
  EXPECT_EQ(failed_check([&] { EXPECT_TRUE(step() == Status::kOk); }), "");
  cache.tokens = 5;
  EXPECT_EQ(failed_check([&] { (void)step(); }),
            "attune: KeyValueCache: the position is invalid; call reset() first");
  cache.reset();
  EXPECT_EQ(failed_check([&] { (void)Attention::step(parameters, x, x, cache, scratch); }),
            "attune: a layer's inputs and outputs overlap; use separate memory");
}

// A library that is loaded after the start may set the modes of the thread that loads it.
TEST(Checked, a_thread_with_another_rounding_fails_in_the_next_update_and_save) {
  constexpr const char* kMessage =
      "attune: this thread flushes subnormal numbers to zero, or does not round to nearest; restore the "
      "processor's default floating-point mode";
  static Trainer<Layer, MeanSquaredError, AdamW, 2> trainer;
  static Trainer<Layer, MeanSquaredError, AdamW, 1, UpdateInBackward> in_backward;
  static ForwardOnlyTrainer<Layer> forward_only;
  const Layer::Input x{};
  const Layer::Output target{};
  trainer.initialize(XavierUniform{}, Rng{1});
  in_backward.initialize(XavierUniform{}, Rng{1});
  forward_only.initialize(XavierUniform{}, Rng{1});
  ASSERT_TRUE(trainer.accumulate(x, target).ok());
  const auto update = [&] { (void)trainer.update_incomplete({.learning_rate = 0.1f}); };
  const auto save = [&] { (void)trainer.state().check(); };
  const auto expect = [&](const std::string& message) {
    EXPECT_EQ(failed_check(update), message);
    EXPECT_EQ(failed_check(save), message);
    EXPECT_EQ(failed_check([&] { (void)trainer.accumulate(x, target); }), message);
    EXPECT_EQ(failed_check([&] { (void)in_backward.step(x, target); }), message);
    EXPECT_EQ(failed_check([&] { (void)forward_only.replay({forward_only.state().steps, 0.1f}); }), message);
  };
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    expect(kMessage);
    std::fesetround(FE_TONEAREST);
  }
#if defined(__SSE2__)
  for (const unsigned flushed : {1u << 15, 1u << 6}) {  // results, and operands
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | flushed);
    expect(kMessage);
    _mm_setcsr(before);
  }
#endif
  EXPECT_EQ(failed_check(update), "");
  EXPECT_EQ(failed_check(save), "");
}

TEST(Checked, more_rows_than_a_matrix_has_fail) {
  Tensor<float, 4, 6> matrix{};
  using Part = PartView<MatrixView<float, 4, 6>, int, std::integral_constant<int, 6>>;
  EXPECT_EQ(failed_check([&] { (void)Part(matrix, 4, {}); }), "");
  EXPECT_EQ(failed_check([&] { (void)Part(matrix, 5, {}); }),
            "attune: PartView: more rows or columns than the matrix has");
}

}  // namespace

#endif
