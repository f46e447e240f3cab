// expect: attune::Ids: ids are ints; copy others into a std::array<int, n>
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use(const unsigned char (&ids)[3]) { look_up(ids); }
