// Writes a set of tensors as a C++ header: an array of constants that from_flat (exchange/flat.hpp) reads at
// compile time. Hexadecimal numbers preserve every bit.
//
//   attune::write_cpp_header(trainer.parameters(), {.name_space = "digits", .name = "kTrained"},
//                            [](const char* text, std::size_t length) { uart_write(text, length); });
//
// writes, with a comment for each tensor,
//
//   namespace digits {
//   inline constexpr float kTrained[4321] = {0x1.8p-1f, …};
//   }
//
// It runs on the device that trained: a few hundred bytes of stack, no heap, no stdio.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <attune/core/parameters.hpp>

namespace ATTUNE_NAMESPACE {

/// Options of write_cpp_header.
struct CppHeaderOptions {
  std::string_view name_space = "model";  // may be nested: "firmware::model"
  std::string_view name = "kParameters";  // of the constant
};

namespace detail {

/// Sends text to a sink, line by line.
template <class Sink>
class HeaderText {
 public:
  explicit HeaderText(Sink& sink) : sink_(sink) {}

  [[gnu::noinline]] void add(std::string_view text) {
    for (const char character : text) {
      text_[length_++] = character;
      if (character == '\n' || length_ == sizeof text_) flush();
    }
  }
  [[gnu::noinline]] void add(std::uint32_t number) {
    char digits[10];
    std::size_t first = sizeof digits;
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
    } while ((number /= 10) != 0);
    add(std::string_view(digits + first, sizeof digits - first));
  }
  [[gnu::noinline]] void line(std::initializer_list<std::string_view> parts = {}) {
    for (const std::string_view part : parts) add(part);
    add("\n");
  }

  /// "query.weight" of {"weight", of "query"}.
  [[gnu::noinline]] void add(const TensorPath& path) {
    int depth = 0;
    for (const TensorPath* part = &path; part != nullptr; part = part->parent) ++depth;
    for (; depth > 0; --depth) {  // no recursion, to bound the stack of firmware
      const TensorPath* part = &path;
      for (int i = 1; i < depth; ++i) part = part->parent;
      if (part->name != nullptr) add(part->name);
      if (depth > 1) add(".");
    }
  }

  /// A literal with exactly this value. A NaN loses its sign and payload.
  template <class Scalar>
  [[gnu::noinline]] void add_literal(Scalar value) {
    constexpr bool kFloat = sizeof(Scalar) == 4;
    using Bits = std::conditional_t<kFloat, std::uint32_t, std::uint64_t>;
    constexpr int kMantissaBits = kFloat ? 23 : 52;
    constexpr int kDigits = (kMantissaBits + 3) / 4;
    constexpr int kLargestExponent = kFloat ? 127 : 1023;
    const Bits bits = std::bit_cast<Bits>(value);
    const auto biased = static_cast<int>(bits << 1 >> (kMantissaBits + 1));
    Bits fraction = bits & ((Bits{1} << kMantissaBits) - 1);
    const bool zero = bits << 1 == 0;
    const bool finite = biased <= 2 * kLargestExponent;
    if (bits >> (sizeof bits * 8 - 1) != 0 && (finite || fraction == 0)) add("-");
    if (!finite) {
      add(kFloat ? "std::numeric_limits<float>::" : "std::numeric_limits<double>::");
      return add(fraction == 0 ? "infinity()" : "quiet_NaN()");
    }
    add(biased == 0 ? "0x0" : "0x1");
    fraction <<= 4 * kDigits - kMantissaBits;
    for (int digit = kDigits - 1; fraction != 0; --digit) {
      if (digit == kDigits - 1) add(".");
      const auto nibble = static_cast<std::size_t>(fraction >> (4 * digit));
      add(std::string_view(&"0123456789abcdef"[nibble], 1));  // substr() could throw
      fraction &= (Bits{1} << (4 * digit)) - 1;
    }
    const int exponent = zero ? 0 : (biased == 0 ? 1 : biased) - kLargestExponent;
    add(exponent < 0 ? "p-" : "p+");
    add(static_cast<std::uint32_t>(exponent < 0 ? -exponent : exponent));
    if constexpr (kFloat) add("f");
  }

  [[gnu::noinline]] void begin_array(const CppHeaderOptions& options, std::size_t scalar_bytes, int count) {
    line({"// constexpr auto parameters = attune::from_flat<Model::Parameters>(", options.name_space,
          "::", options.name, ");"});
    line({"#pragma once\n\n#include <limits>\n\nnamespace ", options.name_space, " {\n"});
    add(scalar_bytes == 4 ? "inline constexpr float " : "inline constexpr double ");
    add(options.name);
    add("[");
    add(static_cast<std::uint32_t>(count));
    line({"] = {"});
  }
  /// The scalars of a tensor, after a line with its name and shape.
  template <class Scalar>
  [[gnu::noinline]] void add_tensor(const TensorPath& path, int rows, int cols, const Scalar* values) {
    add("    // ");
    add(path);
    add(" [");
    add(static_cast<std::uint32_t>(rows));
    add(", ");
    add(static_cast<std::uint32_t>(cols));
    line({"]"});
    for (int i = 0; i < rows * cols; ++i) {
      add(length_ == 0 ? "    " : " ");
      add_literal(NumberOf<Scalar>(values[i]));
      add(",");
      if (length_ > 76) line();
    }
    if (length_ > 0) line();
  }

 private:
  void flush() {
    sink_(static_cast<const char*>(text_), length_);
    length_ = 0;
  }

  Sink& sink_;
  std::size_t length_ = 0;
  char text_[120];
};

}  // namespace detail

/// Writes a set as a header. `sink(text, length)` gets text without a terminating 0. Slices are whole lines
/// of at most 120 characters; only lines with names in them can be longer and are split.
template <class Set, class Sink>
void write_cpp_header(const Set& set, const CppHeaderOptions& options, Sink&& sink) {
  static_assert(detail::Holds<!std::is_empty_v<Set>>,
                "attune::write_cpp_header: the model has no parameters to write");
  detail::HeaderText<std::remove_reference_t<Sink>> text(sink);
  bool first = true;
  for_each_tensor(
      [&](const TensorPath& path, const auto& tensor) __attribute__((noinline)) {
        using Scalar = typename std::remove_cvref_t<decltype(tensor)>::Scalar;
        if (first) text.begin_array(options, sizeof(Scalar), count_scalars(set));
        first = false;
        text.add_tensor(path, tensor.rows, tensor.cols, tensor.data());
      },
      set);
  text.line({"};\n\n}  // namespace ", options.name_space});
}

}  // namespace ATTUNE_NAMESPACE
