// What slices do, in plain integers: each row and element is one thread's, and slices are one after the
// other.
#pragma once

#include <array>

#include <attune/execution/pass.hpp>

#include "check.hpp"

namespace check {

struct SlicesDone {
  std::array<int, 103> rows{};
  std::array<int, 1000> elements{};
  int single = 0, sum = 0;

  void fill(const auto& slices) {
    const attune::NoMask mask;
    const attune::Context context(mask, slices);
    context.stage([&] { ++single; });
    context.template rows<103, 100>([&]<int count>(int first) {
      for (int i = first; i < first + count; ++i) rows[static_cast<std::size_t>(i)] += single;
    });
    context.template elements<1000, 100>([&](int first, int count) {
      for (int i = first; i < first + count; ++i) {
        elements[static_cast<std::size_t>(i)] += rows[static_cast<std::size_t>(i % 103)];
      }
    });
    context.stage([&] {
      for (const int n : elements) sum += n;
    });
  }
};

}  // namespace check
