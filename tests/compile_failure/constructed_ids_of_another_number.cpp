// expect: attune::Ids: this is another number of ids; there is one for each token or row
#include <attune/core/ids.hpp>

auto use(const int (&ids)[4]) { return attune::Ids<3>(ids); }
