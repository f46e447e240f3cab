#include <attune/host/report/program_text.hpp>

#include <attune/layers/activation.hpp>
#include <attune/layers/linear.hpp>
#include <attune/layers/pooling.hpp>
#include <attune/training/update_in_backward.hpp>

#include "check.hpp"
#include "zoo.hpp"

namespace {

using Square = attune::Linear<attune::LinearShape{4, 8, 8}>;
using Model = attune::Sequential<Square, attune::Relu<4, 8>, attune::Repeat<2, Square>,
                                 attune::Pooling<attune::PoolingShape{4, 8}>>;
template <class Plan>
std::string text_of() {
  return attune::host::program_text<
      attune::Trainer<Model, attune::MeanSquaredError, attune::AdamW, 1, Plan>>();
}

// Looks at every program of a trainer. Returns their number.
template <class Of, class Plan>
int expect_scratch_in_use() {
  const std::string text =
      attune::host::program_text<attune::Trainer<Of, attune::MeanSquaredError, attune::AdamW, 1, Plan>>();
  const std::string before = "scratch takes ", between = " bytes, and at most ";
  int programs = 0;
  for (std::size_t at = text.find(before); at < text.size(); at = text.find(before, at + 1)) {
    const std::size_t number = at + before.size(), end = text.find(between, number);
    const std::string bytes = text.substr(number, end - number) + ' ';
    EXPECT_EQ(text.substr(end + between.size(), bytes.size()), bytes) << text;
    ++programs;
  }
  return programs;
}
template <class... Models>
int expect_scratch_in_use_of(zoo::List<Models...>) {
  return ((expect_scratch_in_use<typename Models::Model, attune::BySequence>() +
           expect_scratch_in_use<typename Models::Model, attune::UpdateInBackward>()) +
          ...);
}

}  // namespace

TEST(ProgramText, has_no_scratch_that_is_never_in_use) {
  using Models = zoo::List<zoo::EncoderAfter, zoo::Repeated, zoo::Recomputed, zoo::Shared, zoo::Llama,
                           zoo::Words, zoo::Convolution, zoo::Adapters, zoo::OwnLayer>;
  EXPECT_EQ(expect_scratch_in_use_of(Models{}), 20);
  EXPECT_GT((expect_scratch_in_use<attune::QuantizedTape<zoo::Repeated::Model>, attune::BySequence>()), 1);
}

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
