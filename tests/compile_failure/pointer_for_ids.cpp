// expect: attune::Ids: a pointer has no size; check it with attune::checked_view, or promise the size with Ids{pointer}
#include <attune/core/ids.hpp>

void look_up(attune::Ids<3> ids);

void use(const int* ids) { look_up(ids); }
