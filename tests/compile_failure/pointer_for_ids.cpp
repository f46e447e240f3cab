// expect: attune::Ids: a pointer does not say how many ids stand there; check their number with attune::checked_view, or vouch for it with Ids{pointer}
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use(const int* ids) { look_up(ids); }
