// What every test includes. On the host: GoogleTest. On a board, which has no heap and no exceptions, the
// macros of GoogleTest that the tests use, over ports/console.hpp; check.cpp runs them. So one source tests
// both.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include <attune/core/parameters.hpp>
#include <attune/core/rng.hpp>
#include <attune/core/tensor.hpp>

namespace check {

/// The cases that a test goes through, from few to all. Each is code of its own, which takes long to compile,
/// for a board even longer. A quick build (ATTUNE_QUICK_TESTS) leaves out cases that combine what other cases
/// check one by one, and on a board what is the same on every machine, such as derivatives in double compared
/// with differences; leave_case() counts these. `tests/run --on TARGET` has every case of a target.
enum TestDepth : int { kQuickBoard, kBoard, kQuickHost, kFullHost };
/// kDepth below is this program's.
#if ATTUNE_TEST_QUICK
inline constexpr bool kQuickBuild = true;
#else
inline constexpr bool kQuickBuild = false;
#endif

}  // namespace check

#if !ATTUNE_TEST_ON_BOARD

#include <gtest/gtest.h>

namespace check {

inline constexpr TestDepth kDepth = kQuickBuild ? kQuickHost : kFullHost;
inline void leave_case() {}

}  // namespace check

#else

#include "console.hpp"
#include "port.hpp"

namespace check {

inline constexpr TestDepth kDepth = kQuickBuild ? kQuickBoard : kBoard;
inline int cases_left = 0;
inline void leave_case() { ++cases_left; }

/// One test, linked into a list before main.
struct Test {
  const char* suite;
  const char* name;
  void (*body)();
  Test* next = nullptr;

  static inline Test* first = nullptr;
  static inline Test** end = &first;
  static inline bool failed = false;

  Test(const char* of_suite, const char* of_name, void (*of_body)())
      : suite(of_suite), name(of_name), body(of_body) {
    *end = this;
    end = &next;
  }
};

/// What SCOPED_TRACE says, innermost first.
struct Trace {
  static inline const Trace* innermost = nullptr;
  const char* text;
  const Trace* outer;
  explicit Trace(const char* of_text) : text(of_text), outer(innermost) { innermost = this; }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  ~Trace() { innermost = outer; }
};

/// A double in scientific notation; not for speed.
inline void print_number(double value) {
  if (!(value - value == 0) || value == 0) return port::print(port::fixed(static_cast<float>(value), 1));
  double size = value < 0 ? -value : value;
  int exponent = 0;
  for (; size >= 10; size /= 10) ++exponent;
  for (; size < 1; size *= 10) --exponent;
  port::print(value < 0 ? "-" : "", port::fixed(static_cast<float>(size), 6), 'e', exponent);
}

template <class Value>
void print_value(const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    port::print(value ? "true" : "false");
  } else if constexpr (std::is_floating_point_v<Value>) {
    print_number(static_cast<double>(value));
  } else if constexpr (std::is_enum_v<Value>) {
    port::print(static_cast<int>(value));
  } else if constexpr (std::is_integral_v<Value> || std::is_convertible_v<Value, const char*>) {
    port::print(value);
  } else {
    port::print("(object)");
  }
}

/// A failing check: prints where, what and whatever is streamed into it.
struct Failure {
  Failure(const char* file, int line, const char* what) {
    Test::failed = true;
    port::print(file, ':', line, ": ", what);
  }
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;
  ~Failure() {
    for (const Trace* trace = Trace::innermost; trace != nullptr; trace = trace->outer)
      port::print("; in ", trace->text);
    port::print('\n');
  }
  template <class Value>
  const Failure& operator<<(const Value& value) const {
    port::print("; ");
    print_value(value);
    return *this;
  }
};
struct ReturnVoid {
  void operator=(const Failure&) const {
  }  // NOLINT: lets `return ReturnVoid() = Failure() << …` end a void function
};

struct Equal {
  static bool holds(const auto& a, const auto& b) { return a == b; }
};
struct NotEqual {
  static bool holds(const auto& a, const auto& b) { return !(a == b); }
};
struct Less {
  static bool holds(const auto& a, const auto& b) { return a < b; }
};
struct LessOrEqual {
  static bool holds(const auto& a, const auto& b) { return a <= b; }
};
struct Greater {
  static bool holds(const auto& a, const auto& b) { return b < a; }
};
struct GreaterOrEqual {
  static bool holds(const auto& a, const auto& b) { return b <= a; }
};

/// Whether the check fails; prints both values when it does.
template <class Comparison, class A, class B>
[[gnu::noinline]] bool differs(const A& a, const B& b) {
  if (Comparison::holds(a, b)) return false;
  port::print("  left ");
  print_value(a);
  port::print(", right ");
  print_value(b);
  port::print('\n');
  return true;
}
[[gnu::noinline]] inline bool far(double a, double b, double tolerance) {
  return (a <= b ? b - a <= tolerance : a - b <= tolerance) ? false : differs<Equal>(a, b);
}

}  // namespace check

#define TEST(suite, name)                                                            \
  static void suite##_##name##_test();                                               \
  static ::check::Test suite##_##name##_entry(#suite, #name, suite##_##name##_test); \
  static void suite##_##name##_test()
#define ATTUNE_CHECK(fails, what, action) \
  switch (0)                              \
  case 0:                                 \
  default:                                \
    if (!(fails))                         \
      ;                                   \
    else                                  \
      action ::check::Failure(__FILE__, __LINE__, what)
#define ATTUNE_COMPARE(comparison, sign, a, b, action) \
  ATTUNE_CHECK((::check::differs<::check::comparison>(a, b)), #a sign #b, action)
#define EXPECT_TRUE(condition) ATTUNE_CHECK(!(condition), #condition " is false", )
#define EXPECT_FALSE(condition) ATTUNE_CHECK(condition, #condition " is true", )
#define ASSERT_TRUE(condition) \
  ATTUNE_CHECK(!(condition), #condition " is false", return ::check::ReturnVoid() =)
#define EXPECT_EQ(a, b) ATTUNE_COMPARE(Equal, " == ", a, b, )
#define EXPECT_NE(a, b) ATTUNE_COMPARE(NotEqual, " != ", a, b, )
#define EXPECT_LT(a, b) ATTUNE_COMPARE(Less, " < ", a, b, )
#define EXPECT_LE(a, b) ATTUNE_COMPARE(LessOrEqual, " <= ", a, b, )
#define EXPECT_GT(a, b) ATTUNE_COMPARE(Greater, " > ", a, b, )
#define EXPECT_GE(a, b) ATTUNE_COMPARE(GreaterOrEqual, " >= ", a, b, )
#define ASSERT_EQ(a, b) ATTUNE_COMPARE(Equal, " == ", a, b, return ::check::ReturnVoid() =)
#define EXPECT_NEAR(a, b, tolerance)                                                                         \
  ATTUNE_CHECK(::check::far(static_cast<double>(a), static_cast<double>(b), static_cast<double>(tolerance)), \
               #a " ~ " #b, )
#define EXPECT_STREQ(a, b) ATTUNE_CHECK(std::strcmp(a, b) != 0, #a " reads " #b, )
#define SCOPED_TRACE(text) const ::check::Trace attune_trace(text)

#endif

namespace check {

/// NaN and infinity of a Scalar.
template <class Scalar>
inline constexpr Scalar kNan = std::numeric_limits<Scalar>::quiet_NaN();
template <class Scalar>
inline constexpr Scalar kInfinity = std::numeric_limits<Scalar>::infinity();

template <class Scalar>
[[nodiscard]] bool is_nan(Scalar value) {
  return value != value;
}

/// Uniform numbers in [low, high).
template <class Scalar, int kRows, int kCols>
void fill(attune::Tensor<Scalar, kRows, kCols>& tensor, attune::Rng& rng, double low = -1, double high = 1) {
  for (Scalar& value : tensor.values)
    value = rng.uniform(static_cast<Scalar>(low), static_cast<Scalar>(high));
}
template <class Set>
void fill_set(Set& set, attune::Rng& rng, double low = -1, double high = 1) {
  attune::for_each_tensor([&](const attune::TensorPath&, auto& tensor) { fill(tensor, rng, low, high); },
                          set);
}

/// Equal bits, −0 and NaN included. For plain storage without padding.
template <class Value>
[[nodiscard]] bool same_bits(const Value& a, const Value& b) {
  static_assert(std::is_trivially_copyable_v<Value>);
  return std::memcmp(&a, &b, sizeof(Value)) == 0;
}

/// FNV-1a over the bits of numbers, to pin them on every target.
class BitHash {
 public:
  template <class Scalar>
  void add(Scalar value) {
    unsigned char bytes[sizeof(Scalar)];
    std::memcpy(bytes, &value, sizeof value);
    for (const unsigned char byte : bytes) state_ = (state_ ^ byte) * 16777619u;
  }
  [[nodiscard]] std::uint32_t value() const { return state_; }

 private:
  std::uint32_t state_ = 2166136261u;
};

/// The one of two golden numbers that belongs to the arithmetic policy.
[[nodiscard]] constexpr std::uint32_t by_policy([[maybe_unused]] std::uint32_t unfused,
                                                [[maybe_unused]] std::uint32_t fused) {
  return ATTUNE_FUSED ? fused : unfused;
}

/// The largest |a − b|; infinity when either has a NaN where the other has none.
template <class A, class B>
[[nodiscard]] double max_difference(const A& a, const B& b) {
  static_assert(A::rows == B::rows && A::cols == B::cols);
  double largest = 0;
  for (int i = 0; i < A::rows; ++i) {
    for (int j = 0; j < A::cols; ++j) {
      const double x = static_cast<double>(a(i, j)), y = static_cast<double>(b(i, j));
      const double difference = x < y ? y - x : x - y;
      if (!(difference <= largest)) largest = is_nan(difference) ? kInfinity<double> : difference;
    }
  }
  return largest;
}

/// Σ a ∘ b: a loss whose gradient with respect to a is b.
template <class A, class B>
[[nodiscard]] typename A::Scalar dot(const A& a, const B& b) {
  typename A::Scalar total = 0;
  for (int i = 0; i < A::rows; ++i) {
    for (int j = 0; j < A::cols; ++j) total += a(i, j) * b(i, j);
  }
  return total;
}

}  // namespace check
