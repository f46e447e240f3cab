#include <attune/training/check_gradients.hpp>

#include <cstring>

#include <attune/attention/mask.hpp>
#include <attune/attention/multi_head_attention.hpp>
#include <attune/layers/embedding.hpp>
#include <attune/layers/linear.hpp>
#include <attune/models/sequential.hpp>

#include "check.hpp"

namespace {

using namespace attune;

enum class Mistake {
  kNone,
  kWrongParameter,
  kWrongInput,
  kOverwrites,
  kForgetsDx,
  kOtherInference,
  kAddsAgain
};

/// y = scale ∘ x, with a backward that may be wrong on purpose.
template <Mistake mistake>
struct Scale {
  using Scalar = double;
  using Input = Tensor<double, 2, 3>;
  using Output = Input;
  struct Parameters {
    Tensor<double, 1, 3> scale;
    static constexpr void visit(const auto& visitor, const TensorPath* parent, auto&&... sets) {
      visitor(TensorPath{"scale", parent}, sets.scale...);
    }
  };
  struct Tape {};
  struct Scratch {};
  struct InferenceScratch {};
  static constexpr Abilities kAbilities{.additions = Additions::kOnce};

  static void forward(const Parameters& p, ConstView<Input> x, View<Output> y, InferenceScratch&) {
    multiply(p, x, y, mistake == Mistake::kOtherInference ? 2 : 1);
  }
  static void forward(const Parameters& p, ConstView<Input> x, View<Output> y, Tape&, Scratch&) {
    multiply(p, x, y, 1);
  }
  static void backward(const Parameters& p, ConstView<Input> x, Tape&, ConstView<Output> dy, auto&& dx,
                       Parameters& gradients, Scratch&) {
    for (int j = 0; j < 3; ++j) {
      double sum = 0;
      for (int i = 0; i < 2; ++i) sum += x(i, j) * dy(i, j);
      if (mistake == Mistake::kAddsAgain) {
        sum /= 8;
        for (int i = 0; i < 7; ++i) gradients.scale(0, j) += sum;
      }
      if (mistake == Mistake::kWrongParameter && j == 2) sum += 0.5;
      gradients.scale(0, j) = mistake == Mistake::kOverwrites ? sum : gradients.scale(0, j) + sum;
    }
    if constexpr (kWanted<decltype(dx)>) {
      for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 3; ++j) {
          if (mistake == Mistake::kForgetsDx && i == 1 && j == 1) continue;
          dx(i, j) =
              p.scale(0, j) * dy(i, j) + (mistake == Mistake::kWrongInput && i == 1 && j == 0 ? 1e-6 : 0);
        }
      }
    }
  }

 private:
  static void multiply(const Parameters& p, ConstView<Input> x, View<Output> y, double factor) {
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 3; ++j) y(i, j) = factor * p.scale(0, j) * x(i, j);
    }
  }
};

template <Mistake mistake>
void expect_found(const char* tensor, int index) {
  const GradientCheck check = check_gradients<Scale<mistake>>();
  EXPECT_FALSE(check.ok());
  EXPECT_TRUE(std::strcmp(check.tensor, tensor) == 0);
  EXPECT_EQ(check.index, index);
}

}  // namespace

TEST(CheckGradients, of_a_right_layer_is_ok) {
  const GradientCheck check = check_gradients<Scale<Mistake::kNone>>();
  EXPECT_TRUE(check.ok());
  EXPECT_GT(check.largest_of_parameters, 0.1);
  EXPECT_GT(check.largest_of_input, 0.1);
}

TEST(CheckGradients, names_the_worst_element_of_a_wrong_gradient) {
  expect_found<Mistake::kWrongParameter>("scale", 2);
  expect_found<Mistake::kWrongInput>("x", 3);
  expect_found<Mistake::kForgetsDx>("x", 4);
  const GradientCheck check = check_gradients<Scale<Mistake::kWrongParameter>>();
  EXPECT_LT(check.analytic - check.numeric - 0.5, 1e-9);
  EXPECT_LT(check.numeric - check.analytic + 0.5, 1e-9);
}

TEST(CheckGradients, find_gradients_that_do_not_accumulate) {
  EXPECT_FALSE(check_gradients<Scale<Mistake::kOverwrites>>().ok());
}

TEST(CheckGradients, find_a_layer_that_adds_more_often_than_it_says) {
  const GradientCheck check = check_gradients<Scale<Mistake::kAddsAgain>>();
  EXPECT_TRUE(check.adds_again);
  EXPECT_LE(check.error, GradientCheck::kTolerance);
  EXPECT_FALSE(check.ok());
  EXPECT_FALSE(check_gradients<Scale<Mistake::kWrongInput>>().adds_again);
}

TEST(CheckGradients, find_an_inference_that_computes_something_else) {
  EXPECT_FALSE(check_gradients<Scale<Mistake::kOtherInference>>().ok());
}

TEST(CheckGradients, name_a_layer_of_a_model) {
  using Model = Sequential<Linear<LinearShape{2, 3, 3}, double>, Scale<Mistake::kWrongParameter>>;
  const GradientCheck check = check_gradients<Model>();
  EXPECT_FALSE(check.ok());
  EXPECT_TRUE(std::strstr(check.tensor, ".scale") != nullptr);
}

TEST(CheckGradients, long_names_are_cut) {
  char name[8];
  const TensorPath parent{"encoder"};
  char* const end = detail::write_name({"weight", &parent}, name, name + 7);
  EXPECT_EQ(end - name, 7);
  EXPECT_TRUE(std::strcmp(name, "encoder") == 0);
}

TEST(CheckGradients, take_a_mask) {
  using Layer = MultiHeadAttention<AttentionShape{.seq_len = 3, .d_model = 4, .num_heads = 2}, double>;
  const GradientCheck all = check_gradients<Layer>(), causal = check_gradients<Layer>({}, CausalMask{});
  EXPECT_TRUE(all.ok());
  EXPECT_TRUE(causal.ok());
  EXPECT_NE(all.largest_of_input, causal.largest_of_input);
}

TEST(CheckGradients, take_a_model_of_token_ids) {
  using Model = Sequential<Embedding<EmbeddingShape{.seq_len = 3, .vocabulary = 2, .d_model = 4}, double>,
                           Linear<LinearShape{3, 4, 2}, double>>;
  EXPECT_TRUE(check_gradients<Model>().ok());
}
