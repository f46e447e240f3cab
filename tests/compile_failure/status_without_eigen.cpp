// No mistake: what only reports compiles where nothing computes, without Eigen.
#define ATTUNE_TEST_ALONE  // nothing of the library is precompiled for it
#include <attune/core/memory.hpp>
#include <attune/core/status.hpp>

#if defined(EIGEN_WORLD_VERSION)
#error "status.hpp or memory.hpp includes Eigen"
#endif

constexpr const char* kSentence = attune::message(attune::Status::kOk);
