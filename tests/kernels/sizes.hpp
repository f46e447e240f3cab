// Tables of sizes that a check goes through.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <utility>

namespace check {

/// Three sizes, in the order of the check's template parameters.
using Sizes = std::array<int, 3>;

/// Calls check<a, b, c>() for every {a, b, c} of a table.
template <const auto& table, class Check>
void for_each_size(const Check& check) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (check.template operator()<table[i][0], table[i][1], table[i][2]>(), ...);
  }
  (std::make_index_sequence<std::size(table)>{});
}

}  // namespace check
