// expect: attune::Ids: this is another number of ids; there is one for each token or row
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use() { look_up({{4, 0}}); }
