# Installs the headers and the package that find_package(attune) reads. Nothing in it depends on the processor, so one
# installation serves the host and every cross build.
include(CMakePackageConfigHelpers)

set(attune_package_folder share/cmake/attune)

install(DIRECTORY lib/attune DESTINATION include FILES_MATCHING PATTERN "*.hpp")
install(TARGETS attune EXPORT attune-targets)
install(EXPORT attune-targets NAMESPACE attune:: DESTINATION ${attune_package_folder})

configure_package_config_file(cmake/attune-config.cmake.in ${PROJECT_BINARY_DIR}/attune-config.cmake
  INSTALL_DESTINATION ${attune_package_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attune-config-version.cmake
  COMPATIBILITY SameMajorVersion ARCH_INDEPENDENT)
install(
  FILES ${PROJECT_BINARY_DIR}/attune-config.cmake ${PROJECT_BINARY_DIR}/attune-config-version.cmake
        cmake/attune-arithmetic.cmake cmake/attune-dispatch.cmake cmake/attune-dispatch-link.cmake cmake/attune-eigen.cmake
        cmake/attune-model.cmake cmake/attune-model-header.cmake cmake/attune-model-library.cmake cmake/attune-quantize.cpp cmake/attune-replay.cmake
        cmake/attune-stack.cmake
        cmake/stack_bound.py cmake/hex_lines.py
  DESTINATION ${attune_package_folder})

install(DIRECTORY cmake/attune-model-library DESTINATION ${attune_package_folder})

# For pkg-config; a folder of Eigen that is not installed is named in it, all else can be moved.
if(ATTUNE_ARITHMETIC STREQUAL "fused")
  set(attune_pc_fused 1)
else()
  set(attune_pc_fused 0)
endif()
set(attune_pc_flags "-I\${includedir} -ffp-contract=off -DATTUNE_FUSED=\${fused}")
if(ATTUNE_EIGEN_DIR)
  cmake_path(ABSOLUTE_PATH ATTUNE_EIGEN_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE attune_eigen)
  set(attune_pc_requirements "Cflags: ${attune_pc_flags} -isystem ${attune_eigen}")
else()
  set(attune_pc_requirements "Requires: eigen3 >= 3.4\nCflags: ${attune_pc_flags}")
endif()
configure_file(cmake/attune.pc.in ${PROJECT_BINARY_DIR}/attune.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/attune.pc DESTINATION share/pkgconfig)
