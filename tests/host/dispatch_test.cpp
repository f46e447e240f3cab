#include <attune/host/dispatch.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace dispatch = attune::dispatch;
using dispatch::Processor;

namespace {

constexpr dispatch::CodeOfProcessor of(Processor processor) { return {processor, nullptr, nullptr, nullptr}; }
constexpr dispatch::CodeOfProcessor kAll[] = {of(Processor::kSse2), of(Processor::kAvx2),
                                              of(Processor::kAvx512)};
constexpr dispatch::CodeOfProcessor kFused[] = {of(Processor::kAvx2), of(Processor::kAvx512)};

// What a Haswell and a Skylake-X say, in the bits that are asked for.
constexpr dispatch::ProcessorFeatures kHaswell{
    .ecx_1 = 0x7ffafbff, .ebx_7 = 0x000027ab, .ecx_80000001 = 0x21, .xcr0 = 0x07};
constexpr dispatch::ProcessorFeatures kSkylakeX{
    .ecx_1 = 0x7ffefbff, .ebx_7 = 0xd39ffffb, .ecx_80000001 = 0x121, .xcr0 = 0xe7};

}  // namespace

TEST(Dispatch, takes_the_best_code_that_the_machine_runs) {
  EXPECT_EQ(dispatch::choose(kAll, Processor::kSse2, nullptr), &kAll[0]);
  EXPECT_EQ(dispatch::choose(kAll, Processor::kAvx2, nullptr), &kAll[1]);
  EXPECT_EQ(dispatch::choose(kAll, Processor::kAvx512, ""), &kAll[2]);
  EXPECT_EQ(dispatch::choose(kFused, Processor::kAvx2, nullptr), &kFused[0]);
}

TEST(Dispatch, takes_the_requested_level) {
  EXPECT_EQ(dispatch::choose(kAll, Processor::kAvx512, "sse2"), &kAll[0]);
  EXPECT_EQ(dispatch::choose(kAll, Processor::kAvx512, "avx2"), &kAll[1]);
  EXPECT_EQ(dispatch::choose(kAll, Processor::kAvx512, "avx512"), &kAll[2]);
}

TEST(Dispatch, has_no_code_if_no_level_runs) {
  EXPECT_EQ(dispatch::choose(kFused, Processor::kSse2, nullptr), nullptr);
  EXPECT_EQ(dispatch::choose(kFused, Processor::kAvx512, "sse2"), nullptr);
  EXPECT_EQ(dispatch::choose(kAll, Processor::kAvx2, "avx512"), nullptr);
  EXPECT_EQ(dispatch::choose(kAll, Processor::kAvx512, "AVX2"), nullptr);
}

TEST(Dispatch, identifies_processors_by_their_features) {
  EXPECT_EQ(dispatch::ProcessorFeatures{}.best(), Processor::kSse2);
  EXPECT_EQ(kHaswell.best(), Processor::kAvx2);
  EXPECT_EQ(kSkylakeX.best(), Processor::kAvx512);
}

// Without one of its parts a level is not there: FMA; AVX2; LZCNT; AVX-512's VL; registers that are saved.
TEST(Dispatch, requires_every_feature_of_a_level) {
  const auto without = [](dispatch::ProcessorFeatures features, unsigned dispatch::ProcessorFeatures::*word,
                          int bit) {
    features.*word &= ~(1U << bit);
    return features.best();
  };
  using Features = dispatch::ProcessorFeatures;
  EXPECT_EQ(without(kSkylakeX, &Features::ecx_1, 12), Processor::kSse2);
  EXPECT_EQ(without(kSkylakeX, &Features::ecx_1, 27), Processor::kSse2);
  EXPECT_EQ(without(kSkylakeX, &Features::ebx_7, 5), Processor::kSse2);
  EXPECT_EQ(without(kSkylakeX, &Features::ecx_80000001, 5), Processor::kSse2);
  EXPECT_EQ(without(kSkylakeX, &Features::xcr0, 2), Processor::kSse2);
  EXPECT_EQ(without(kSkylakeX, &Features::ebx_7, 31), Processor::kAvx2);
  EXPECT_EQ(without(kSkylakeX, &Features::xcr0, 6), Processor::kAvx2);
}

#if defined(__linux__)
TEST(Dispatch, agrees_with_the_kernel_about_this_machine) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && line.rfind("flags", 0) != 0) {
  }
  std::istringstream words(line);
  std::vector<std::string> flags;
  for (std::string word; words >> word;) flags.push_back(word);
  const auto has = [&](const char* flag) {
    return std::find(flags.begin(), flags.end(), flag) != flags.end();
  };
  const Processor best = dispatch::ProcessorFeatures::read().best();
  EXPECT_EQ(best >= Processor::kAvx2, has("avx2") && has("fma") && has("bmi2") && has("f16c") && has("movbe"));
  EXPECT_EQ(best == Processor::kAvx512, best >= Processor::kAvx2 && has("avx512vl") && has("avx512dq") &&
                                           has("avx512bw") && has("avx512cd"));
}
#endif

TEST(DispatchDeathTest, ends_the_program_if_no_level_runs) {
  const auto wish = [] {
    ::setenv("ATTUNE_PROCESSOR", "avx3", 1);
    (void)dispatch::choose(kFused);
  };
  EXPECT_EXIT(wish(), testing::ExitedWithCode(2),
              "code for avx2 avx512; the machine is .*, and ATTUNE_PROCESSOR is 'avx3'");
}
