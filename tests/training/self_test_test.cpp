#include <attune/training/self_test.hpp>

#include "check.hpp"

namespace {

using attune::Status;

attune::SelfTest self_test;
attune::Int8SelfTest int8_self_test;

#if defined(__x86_64__)
// MXCSR: rounding in bits 13 and 14, flush to zero in bit 15.
constexpr unsigned kTowardZero = 3u << 13, kFlushToZero = 1u << 15;
unsigned mode() { return _mm_getcsr(); }
void set_mode(unsigned mode) { _mm_setcsr(mode); }
#define ATTUNE_TEST_HAS_MODES 1
#elif defined(__arm__) && defined(__ARM_FP)
// FPSCR: rounding in bits 22 and 23, flush to zero in bit 24.
constexpr unsigned kTowardZero = 3u << 22, kFlushToZero = 1u << 24;
unsigned mode() {
  unsigned fpscr;
  asm volatile("vmrs %0,fpscr" : "=r"(fpscr)::"memory");
  return fpscr;
}
void set_mode(unsigned mode) { asm volatile("vmsr fpscr,%0" ::"r"(mode) : "memory"); }
#define ATTUNE_TEST_HAS_MODES 1
#elif defined(__riscv_flen)
// fcsr: rounding in bits 5 to 7. Nothing flushes to zero.
constexpr unsigned kTowardZero = 1u << 5;
unsigned mode() {
  unsigned fcsr;
  asm volatile("frcsr %0" : "=r"(fcsr)::"memory");
  return fcsr;
}
void set_mode(unsigned mode) { asm volatile("fscsr %0" ::"r"(mode) : "memory"); }
#define ATTUNE_TEST_HAS_MODES 1
#endif

#if ATTUNE_TEST_HAS_MODES
// In a function of its own, so that no arithmetic moves out of the mode.
template <class Test>
[[gnu::noinline]] Status run_with(unsigned bits, Test& test) {
  const unsigned before = mode();
  set_mode(before | bits);
  const Status status = test.run();
  set_mode(before);
  return status;
}
#endif

}  // namespace

TEST(SelfTest, of_integers_passes) {
  EXPECT_EQ(int8_self_test.run(), Status::kOk);
  EXPECT_EQ(int8_self_test.run(), Status::kOk);
}
TEST(SelfTest, passes) {
  EXPECT_EQ(self_test.run(), Status::kOk);
  EXPECT_EQ(self_test.run(), Status::kOk);
}

#if ATTUNE_TEST_HAS_MODES
TEST(SelfTest, finds_a_processor_that_rounds_toward_zero) {
  EXPECT_EQ(run_with(kTowardZero, self_test), Status::kWrongArithmetic);
  EXPECT_EQ(run_with(kTowardZero, int8_self_test), Status::kWrongArithmetic);
  EXPECT_EQ(self_test.run(), Status::kOk);
}

#if !ATTUNE_MVE && !ATTUNE_NEON && !defined(__riscv)
TEST(SelfTest, finds_a_processor_that_flushes_subnormals) {
  EXPECT_EQ(run_with(kFlushToZero, self_test), Status::kWrongArithmetic);
  EXPECT_EQ(self_test.run(), Status::kOk);
}
#endif
#endif
