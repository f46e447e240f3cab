// expect: attune::Ids: only run time knows how many ids these are; check them with attune::checked_view
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use(std::span<const int> ids) { look_up(ids); }
