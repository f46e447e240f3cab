// An Eigen older than the library was written for.
// expect: attune needs Eigen 3.4 or newer
#include <Eigen/Core>

#undef EIGEN_MAJOR_VERSION
#define EIGEN_MAJOR_VERSION 3
#include <attune/kernels/simd/arithmetic.hpp>
