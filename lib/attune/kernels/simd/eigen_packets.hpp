// Eigen's packets. The rest of Eigen/Core takes longer to compile than these, so a program that uses Eigen's
// matrices includes it itself, before or after.
#pragma once

// Eigen's warnings are not a user's, whether its folder comes with -isystem or -I: included headers inherit
// this.
#if defined(__GNUC__)
#pragma GCC system_header
#endif

#include <Eigen/src/Core/util/Macros.h>

// Eigen 3.4 lets its headers be included one by one, in the order of Eigen/Core; later versions do not.
#if EIGEN_VERSION_AT_LEAST(3, 4, 90) || !EIGEN_VERSION_AT_LEAST(3, 4, 0) || defined(EIGEN_CORE_H) ||        \
    !(EIGEN_ARCH_i386_OR_x86_64 || EIGEN_ARCH_ARM_OR_ARM64 || defined(__riscv)) || defined(EIGEN_CUDACC) || \
    defined(EIGEN_HIPCC) || defined(EIGEN_USE_SYCL) || defined(EIGEN_USE_MKL) || defined(EIGEN_USE_BLAS) || \
    defined(_OPENMP) || defined(_MSC_VER)
#include <Eigen/Core>
#else

#include <Eigen/src/Core/util/DisableStupidWarnings.h>

#include <Eigen/src/Core/util/ConfigureVectorization.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <climits>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <tuple>
#include <type_traits>
#if !defined(__GLIBCXX__)  // libstdc++ has Eigen's std::equal_to here already, and <functional> takes long to
                           // compile
#include <functional>
#endif

namespace Eigen {
using std::ptrdiff_t;
using std::size_t;
}  // namespace Eigen

// An order.
// clang-format off
#include <Eigen/src/Core/util/Constants.h>
#include <Eigen/src/Core/util/Meta.h>
#include <Eigen/src/Core/util/ForwardDeclarations.h>
#include <Eigen/src/Core/util/StaticAssert.h>
#include <Eigen/src/Core/util/XprHelper.h>
#include <Eigen/src/Core/util/Memory.h>
#include <Eigen/src/Core/util/IntegralConstant.h>
#include <Eigen/src/Core/util/SymbolicIndex.h>
#include <Eigen/src/Core/NumTraits.h>
#include <Eigen/src/Core/MathFunctions.h>
#include <Eigen/src/Core/GenericPacketMath.h>
#include <Eigen/src/Core/MathFunctionsImpl.h>
#include <Eigen/src/Core/arch/Default/ConjHelper.h>
#include <Eigen/src/Core/arch/Default/Half.h>
#include <Eigen/src/Core/arch/Default/BFloat16.h>
#include <Eigen/src/Core/arch/Default/TypeCasting.h>
#include <Eigen/src/Core/arch/Default/GenericPacketMathFunctionsFwd.h>
#if defined(EIGEN_VECTORIZE_SSE)
#include <Eigen/src/Core/arch/SSE/PacketMath.h>
#endif
#if defined(EIGEN_VECTORIZE_AVX)
#include <Eigen/src/Core/arch/AVX/PacketMath.h>
#endif
#if defined(EIGEN_VECTORIZE_AVX512)
#include <Eigen/src/Core/arch/AVX512/PacketMath.h>
#endif
#if defined(EIGEN_VECTORIZE_NEON)
#include <Eigen/src/Core/arch/NEON/PacketMath.h>
#endif
#include <Eigen/src/Core/arch/Default/Settings.h>
// clang-format on

#include <Eigen/src/Core/util/ReenableStupidWarnings.h>

#endif
