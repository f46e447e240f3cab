// expect: attune::Ids: the number of ids must equal the number of tokens or rows
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use() { look_up({{4, 0}}); }
