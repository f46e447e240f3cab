// expect by clang: error: temporary whose address is used as value of local variable 'ids' will be destroyed
#include <attune/attune.hpp>

#if defined(__clang__)
#pragma clang diagnostic error "-Wdangling"
#endif

std::array<int, 3> tokens();
int first() {
  const attune::Ids<3> ids(tokens());
  return ids[0];
}
