// expect: attune::Ids: the number of ids is known only at run time; check it with attune::checked_view
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use(std::span<const int> ids) { look_up(ids); }
