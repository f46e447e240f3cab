#include <attune/host/report/program_text.hpp>

#include <attune/layers/activation.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/training/update_in_backward.hpp>

#include "check.hpp"

namespace {

using Square = attune::Linear<attune::LinearShape{4, 8, 8}>;
using Model = attune::Sequential<Square, attune::Relu<4, 8>, attune::Repeat<2, Square>,
                                 attune::Pooling<attune::PoolingShape{4, 8}>>;
template <class Plan>
std::string text_of() {
  return attune::host::program_text<
      attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1, Plan>>();
}

}  // namespace

TEST(ProgramText, shows_each_value_with_its_place_and_its_steps) {
  const std::string expected =
      "Sequential: scratch takes 256 bytes, and at most 256 are in use at the same time\n"
      "      bytes  memory              >0 >1 >2 >3 <3 <2 <1 <0\n";
  const std::string text = text_of<attune::BySequence>();
  EXPECT_EQ(text.substr(0, expected.size()), expected) << text;
  for (const char* row : {"  .  #  #  #  #  #  #  .  output of 1 ActivationLayer\n",
                          "        128  tape                 .  .  .  .  .  .  #  #  gradient of 0 Linear\n",
                          "Repeat: scratch takes 0 bytes, and at most 0 are in use at the same time\n",
                          "        128  tape                 #  #  #  .  output of each Linear\n"}) {
    EXPECT_NE(text.find(row), std::string::npos) << row << text;
  }
}

TEST(ProgramText, is_of_the_trainers_plan) {
  const std::string text = text_of<attune::UpdateInBackward>();
  EXPECT_NE(text.find("128  scratch + 0          .  .  #  #  gradient of each Linear\n"), std::string::npos)
      << text;
}

TEST(ProgramText, has_no_text_for_a_single_layer) {
  EXPECT_EQ(attune::host::program_text<attune::Trainer<Square>>(), "");
}
