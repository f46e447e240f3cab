// expect: attune::Ids: the number of ids must equal the number of tokens or rows
#include <attune/core/ids.hpp>

auto use(const int (&ids)[4]) { return attune::Ids<3>(ids); }
