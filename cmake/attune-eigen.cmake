# attune_find_eigen(problem)
# Eigen3::Eigen, if the project that asks has no target of that name yet: of ATTUNE_EIGEN_DIR, a plain folder with Eigen/Core
# in it, or of an installation of Eigen 3.4 or 5. `problem` is empty, or says what is missing.
function(attune_find_eigen problem)
  set(${problem} "" PARENT_SCOPE)
  if(TARGET Eigen3::Eigen)
    return()
  endif()
  if(ATTUNE_EIGEN_DIR)
    cmake_path(ABSOLUTE_PATH ATTUNE_EIGEN_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE folder)
    if(NOT EXISTS ${folder}/Eigen/Core)
      set(${problem} "ATTUNE_EIGEN_DIR is '${ATTUNE_EIGEN_DIR}', and there is no Eigen/Core in that folder." PARENT_SCOPE)
      return()
    endif()
    add_library(Eigen3::Eigen INTERFACE IMPORTED)
    target_include_directories(Eigen3::Eigen SYSTEM INTERFACE ${folder})
    return()
  endif()
  # Asked for a version, an Eigen of another major version says no: the first one on the path answers for itself.
  find_package(Eigen3 QUIET NO_MODULE)
  if(NOT TARGET Eigen3::Eigen)
    set(${problem} "attune needs Eigen 3.4 or 5. On Debian and Ubuntu: apt-get install libeigen3-dev. On macOS: brew install \
eigen. From elsewhere: set CMAKE_PREFIX_PATH to where it is installed, or ATTUNE_EIGEN_DIR to a folder with Eigen/Core."
      PARENT_SCOPE)
  elseif(Eigen3_VERSION VERSION_LESS 3.4)
    set(${problem} "attune needs Eigen 3.4 or 5, and in ${Eigen3_DIR} is ${Eigen3_VERSION}: set CMAKE_PREFIX_PATH to where a newer \
one is installed, or ATTUNE_EIGEN_DIR to a folder with Eigen/Core." PARENT_SCOPE)
  endif()
endfunction()
