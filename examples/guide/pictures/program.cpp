// The values and steps of the model on the memory page, for the picture: lines of program_text, each behind
// the word `program`.
#include <cstdio>
#include <sstream>
#include <string>

#include <attune/attune.hpp>
#include <attune/host/report/program_text.hpp>

int main() {
  constexpr attune::EncoderLayerShape kBlock{.attention = {.seq_len = 16, .d_model = 32, .num_heads = 4},
                                             .d_ff = 64};
  using Classifier = attune::Sequential<
      attune::Linear<attune::LinearShape{16, 8, 32}>, attune::Repeat<2, attune::EncoderLayer<kBlock>>,
      attune::Pooling<attune::PoolingShape{16, 32}>, attune::Linear<attune::LinearShape{1, 32, 4}>>;
  std::istringstream lines(attune::host::program_text<attune::Trainer<Classifier, attune::CrossEntropy<>>>());
  for (std::string line; std::getline(lines, line);) std::printf("program %s\n", line.c_str());
}
