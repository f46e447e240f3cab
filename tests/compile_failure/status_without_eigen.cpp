// No mistake: what only reports compiles where nothing computes, without Eigen.
#include <attune/core/memory.hpp>
#include <attune/core/status.hpp>

#if defined(EIGEN_WORLD_VERSION)
#error "status.hpp or memory.hpp includes Eigen"
#endif

constexpr const char* kSentence = attune::message(attune::Status::kOk);
