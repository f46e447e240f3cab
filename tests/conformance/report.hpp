// What a case says: its tensors, as the bits of their scalars. run_cases.py collects them and compares; the
// board needs neither the expected values nor a tolerance.
#pragma once

#include <bit>
#include <type_traits>

#include <attune/attune.hpp>
#include <console.hpp>

#include "../layer_memory.hpp"

namespace conformance {

inline void add_name(port::Line& line, const char* name) { line.add(name); }
inline void add_name(port::Line& line, const attune::TensorPath& path) {
  if (path.parent != nullptr) {
    add_name(line, *path.parent);
    line.add('.');
  }
  line.add(path.name);
}

/// The scalars of one tensor, or the next ones of a tensor reported piece by piece.
template <class Scalar, class... Name>
void report(const Scalar* values, int count, const Name&... name) {
  port::Line line;
  line.add("tensor ");
  (add_name(line, name), ...);
  for (int i = 0; i < count; ++i) {
    line.add(' ');
    if constexpr (sizeof(Scalar) == 4) {
      line.add(port::hex8(std::bit_cast<std::uint32_t>(values[i])));
    } else {
      line.add(port::hex16(std::bit_cast<std::uint64_t>(values[i])));
    }
  }
  line.add('\n');
}

template <class Tensor>
void report(const Tensor& tensor, const char* name) {
  report(tensor.data(), Tensor::size, name);
}

/// Every tensor of a set, as grad.<layer>.<tensor> for gradients.
template <class Set>
void report_set(const Set& set, const char* prefix) {
  attune::for_each_tensor([prefix](const attune::TensorPath& path,
                                   const auto& tensor) { report(tensor.data(), tensor.size, prefix, path); },
                          set);
}

/// A refusal by the library fails the case, with the library's words.
inline void expect_ok(attune::Status status) {
  if (status != attune::Status::kOk) port::print("error ", attune::message(status), '\n');
}

/// The same of a call, which returns a status if its layer takes ids.
void expect_accepted(const auto& call) {
  if constexpr (std::is_void_v<decltype(call())>) {
    call();
  } else {
    expect_ok(call());
  }
}

/// Fills a set from its scalars, tensor after tensor in the order of for_each_tensor.
template <class Set, class Scalar>
void load(Set& set, const Scalar* values) {
  attune::for_each_tensor(
      [&values](const attune::TensorPath&, auto& tensor) {
        for (auto& value : tensor.values) value = *values++;
      },
      set);
}

}  // namespace conformance
