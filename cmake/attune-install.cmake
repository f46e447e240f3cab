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
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(
  FILES ${PROJECT_BINARY_DIR}/attune-config.cmake ${PROJECT_BINARY_DIR}/attune-config-version.cmake
        cmake/attune-arithmetic.cmake cmake/attune-dispatch.cmake cmake/attune-dispatch-link.cmake cmake/attune-model.cmake cmake/attune-model-header.cmake cmake/attune-quantise.cpp
        cmake/attune-stack.cmake cmake/stack_bound.py
  DESTINATION ${attune_package_folder})
