#!/usr/bin/env bash
# Brings a fresh machine to the point where attune builds. Sourced by scripts, and a command for other programs:
#   source cmake/bootstrap.sh && attune_need build arm qemu
#   cmake/bootstrap.sh build arm qemu
# Kinds:
#   build   C++ compiler, CMake 3.25, Ninja, Eigen 3.4
#   gcc     g++ itself, whatever the compiler of `build` is
#   arm     arm-none-eabi-g++ with newlib and the C++ headers
#   qemu    qemu-system-arm
#   qemu-user  qemu-x86_64, which runs programs of this system on older processors
#   aarch64 aarch64-linux-gnu-g++, qemu-aarch64 and GoogleTest's sources
#   riscv   riscv64-unknown-elf-g++ with picolibc, headers of C++ for it, and qemu-system-riscv32
#   xtensa  xtensa-lx106-elf-g++ with picolibc, and qemu-system-xtensa
#   python  Python 3
#   tests   GoogleTest and Python 3
#   clang   clang++, and lld, a linker that takes a sixth of the time
#   format  clang-format
#   torch   PyTorch and NumPy for python3, or for Debian's own /usr/bin/python3
#   onnx    ONNX for Debian's own /usr/bin/python3
#   bible   the King James Bible and the program that prints it, a text to learn from
#   npm     Node.js and npm
#   rp2040js Node.js, and from npm an emulator of the Raspberry Pi Pico, in build/npm
#   browser em++ (Emscripten) and Chromium
#   docs    Doxygen and the theme of the site
#   clang++-N, g++-N  that version of a compiler
#   arduino arduino-builder
#   meson   Meson
#   git, mmdebstrap, pkg-config, pgrep, codespell  these commands
#   yaml    PyYAML for Debian's own /usr/bin/python3
#   zephyr  pykwalify and kconfiglib, which read what a module of Zephyr says of itself
#   xmllint xmllint
#   json    nlohmann-json
#   rsvg    rsvg-convert, and Pillow for Debian's own /usr/bin/python3
#   tags    Universal Ctags, and libclang for Debian's own /usr/bin/python3
#   mpi     mpirun and mpicxx; attune_mpirun N COMMAND... then starts ranks on this machine
# What is missing is named, then installed where apt-get is; elsewhere the list is printed and the shell exits with 1.
# With everything in place it costs a few milliseconds.

_attune_has() { command -v "$1" >/dev/null 2>&1; }

# First of the compilers that CMake would choose.
_attune_has_compiler() { [ -n "${CXX:-}" ] || _attune_has c++ || _attune_has g++ || _attune_has clang++; }

_attune_has_cmake() {
  local version major minor
  version=$(cmake --version 2>/dev/null) || return 1
  version=${version#cmake version }
  IFS=. read -r major minor _ <<<"${version%%[!0-9.]*}"
  [ "$major" -gt 3 ] || { [ "$major" -eq 3 ] && [ "$minor" -ge 25 ]; }
}

# Only a first look, at the usual places: CMake has the last word, also on the version.
_attune_has_eigen() {
  [ -z "${CMAKE_PREFIX_PATH:-}${Eigen3_ROOT:-}${Eigen3_DIR:-}" ] || return 0
  local prefix
  for prefix in /usr/local /usr /opt/homebrew /opt/local; do
    [ ! -f "$prefix/include/eigen3/Eigen/Core" ] || return 0
  done
  return 1
}

# The compiler finds newlib's headers and libstdc++'s.
_attune_has_arm_headers() {
  _attune_has arm-none-eabi-g++ && arm-none-eabi-g++ -E -x c++ -include cstdint /dev/null >/dev/null 2>&1
}

_attune_has_arm_libraries() {
  local library
  library=$(arm-none-eabi-g++ -print-file-name=libc.a 2>/dev/null) && [ -f "$library" ]
}

# Debian's compiler for RISC-V has no headers of C++: those for Arm with newlib do.
_attune_has_riscv_libraries() {
  local specs
  specs=$(riscv64-unknown-elf-g++ -print-file-name=picolibc.specs 2>/dev/null) && [ -f "$specs" ]
}

_attune_has_xtensa_libraries() {
  local library
  library=$(xtensa-lx106-elf-g++ -print-file-name=libc.a 2>/dev/null) && [ -f "$library" ]
}

_attune_has_gtest() {
  local prefix
  for prefix in /usr/local /usr /opt/homebrew /opt/local; do
    [ ! -f "$prefix/include/gtest/gtest.h" ] || return 0
  done
  [ -n "${CMAKE_PREFIX_PATH:-}${GTest_ROOT:-}${GTest_DIR:-}" ]
}

_attune_has_json() { [ -f /usr/include/nlohmann/json.hpp ] || [ -f /usr/local/include/nlohmann/json.hpp ]; }

_attune_has_clang() {
  _attune_has clang++ && return
  compgen -c clang++- >/dev/null
}

_attune_has_torch() {
  local python
  for python in python3 /usr/bin/python3; do
    ! "$python" -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ("torch", "numpy"))))' 2>/dev/null ||
      return 0
  done
  return 1
}

# attune_cmake FOLDER ARGUMENT...: cmake, which works in a build folder, when nobody else does. A folder that these arguments
# have configured is not configured again, unless presets, the environment or installed packages have changed since.
attune_cmake() {
  if _attune_has flock; then
    mkdir -p "$1"
    (flock 9 && _attune_cmake "$@") 9<"$1"
  else
    _attune_cmake "$@"
  fi
}

_attune_cmake() {
  [[ $2 == --preset ]] || { cmake "${@:2}"; return; }
  local by="${*:2} ${CC-} ${CXX-} ${CFLAGS-} ${CXXFLAGS-} ${LDFLAGS-} ${CMAKE_PREFIX_PATH-} $PATH" file
  for file in CMakePresets.json "$1/CMakeCache.txt" "$1/build.ninja" /var/lib/dpkg/status; do
    [ "$1/configured" -nt "$file" ] && [ -e "$file" ] || by+=' (anew)'
  done
  [ "$(cat "$1/configured" 2>/dev/null)" != "$by" ] || return 0
  rm -f "$1/configured" && cmake "${@:2}" && printf '%s\n' "${by%% (anew)*}" >"$1/configured"
}

_attune_has_mpi() { _attune_has mpirun && _attune_has mpicxx; }

_attune_has_chromium() { _attune_has chromium-headless-shell || _attune_has chromium || _attune_has google-chrome; }

# attune_mpirun N COMMAND...: in place of the shell, N ranks on this machine, which may have fewer processors, and be a
# container with no other user than root. In the environment, for not every mpirun has options for it.
attune_mpirun() {
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl_vader_single_copy_mechanism=none
  export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
  if [ "$(id -u)" -eq 0 ]; then
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1
  fi
  exec mpirun -n "$@"
}

# Where modules of npm are installed.
_attune_npm=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/build/npm

# _attune_lacks COMMAND... -- NAME PACKAGE...: if the command fails, NAME is missing, and apt-get has it in the packages.
_attune_lacks() {
  local command=()
  while [ "$1" != -- ]; do command+=("$1") && shift; done
  [[ " ${packages[*]} " != *" $3 "* ]] && ! "${command[@]}" || return 0
  missing+=("$2") packages+=("${@:3}")
}

# _attune_lacks_python MODULE PACKAGE...: Debian's modules are its own Python's.
_attune_lacks_python() {
  _attune_lacks /usr/bin/python3 -c "import $1" -- "$@" 2>/dev/null
}

# Adds to `missing` (for people), `packages` (for apt-get) and `modules` (for npm) what a kind lacks.
_attune_check_kind() {
  case $1 in
    build)
      _attune_lacks _attune_has_compiler -- "a C++20 compiler" g++
      _attune_lacks _attune_has_cmake -- "CMake 3.25 or newer" cmake
      _attune_lacks _attune_has ninja -- Ninja ninja-build
      _attune_lacks _attune_has_eigen -- "Eigen 3.4" libeigen3-dev
      ;;
    gcc) _attune_lacks _attune_has g++ -- g++ g++ ;;
    arm)
      _attune_lacks _attune_has arm-none-eabi-g++ -- arm-none-eabi-g++ gcc-arm-none-eabi
      _attune_lacks _attune_has_arm_libraries -- "newlib for arm-none-eabi" libnewlib-arm-none-eabi
      _attune_lacks _attune_has_arm_headers -- "libstdc++ for arm-none-eabi" libstdc++-arm-none-eabi-newlib
      ;;
    qemu) _attune_lacks _attune_has qemu-system-arm -- qemu-system-arm qemu-system-arm ;;
    qemu-user) _attune_lacks _attune_has qemu-x86_64 -- qemu-x86_64 qemu-user ;;
    aarch64)
      _attune_lacks _attune_has aarch64-linux-gnu-g++ -- aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
      _attune_lacks _attune_has qemu-aarch64 -- qemu-aarch64 qemu-user
      _attune_lacks [ -d /usr/src/googletest ] -- "GoogleTest's sources" googletest
      ;;
    riscv)
      _attune_lacks _attune_has riscv64-unknown-elf-g++ -- riscv64-unknown-elf-g++ gcc-riscv64-unknown-elf
      _attune_lacks _attune_has_riscv_libraries -- "picolibc for RISC-V" picolibc-riscv64-unknown-elf
      _attune_lacks _attune_has qemu-system-riscv32 -- qemu-system-riscv32 qemu-system-misc
      ;;
    xtensa)
      _attune_lacks _attune_has xtensa-lx106-elf-g++ -- xtensa-lx106-elf-g++ gcc-xtensa-lx106
      _attune_lacks _attune_has_xtensa_libraries -- "picolibc for Xtensa" picolibc-xtensa-lx106-elf
      _attune_lacks _attune_has qemu-system-xtensa -- qemu-system-xtensa qemu-system-misc
      ;;
    python) _attune_lacks _attune_has python3 -- "Python 3" python3 ;;
    tests)
      _attune_lacks _attune_has_gtest -- GoogleTest libgtest-dev
      _attune_check_kind python
      ;;
    clang) _attune_lacks _attune_has_clang -- clang++ clang lld ;;
    format) _attune_lacks _attune_has clang-format -- clang-format clang-format ;;
    torch) _attune_lacks _attune_has_torch -- PyTorch python3-torch python3-numpy ;;
    docs)
      _attune_lacks _attune_has doxygen -- Doxygen doxygen
      _attune_lacks [ -d /usr/share/doxygen-awesome-css ] -- "a theme for it" doxygen-awesome-css
      ;;
    bible) _attune_lacks _attune_has bible -- "the program bible, with its text" bible-kjv ;;
    npm)
      _attune_lacks _attune_has node -- Node.js nodejs
      _attune_lacks _attune_has npm -- npm npm
      ;;
    rp2040js)
      _attune_check_kind npm
      [ -d "$_attune_npm/node_modules/rp2040js" ] || { missing+=("rp2040js"); modules+=("rp2040js@1.4.1"); }
      ;;
    browser)
      _attune_lacks _attune_has em++ -- Emscripten emscripten
      _attune_lacks _attune_has_chromium -- Chromium chromium-headless-shell
      ;;
    json) _attune_lacks _attune_has_json -- nlohmann-json nlohmann-json3-dev ;;
    mpi) _attune_lacks _attune_has_mpi -- MPI libopenmpi-dev openmpi-bin ;;
    clang++-[0-9]* | g++-[0-9]*) _attune_lacks _attune_has "$1" -- "$1" "${1/clang++/clang}" ;;
    *) _attune_check_small_kind "$1" ;;
  esac
}

# Kinds that only tests of packages ask for.
_attune_check_small_kind() {
  case $1 in
    arduino) _attune_lacks _attune_has arduino-builder -- arduino-builder arduino-builder ;;
    git) _attune_lacks _attune_has git -- Git git ;;
    mmdebstrap) _attune_lacks _attune_has mmdebstrap -- mmdebstrap mmdebstrap ;;
    meson) _attune_lacks _attune_has meson -- Meson meson ;;
    pkg-config) _attune_lacks _attune_has pkg-config -- pkg-config pkg-config ;;
    pgrep) _attune_lacks _attune_has pgrep -- pgrep procps ;;
    codespell) _attune_lacks _attune_has codespell -- codespell codespell ;;
    xmllint) _attune_lacks _attune_has xmllint -- xmllint libxml2-utils ;;
    yaml) _attune_lacks_python yaml python3-yaml ;;
    rsvg)
      _attune_lacks _attune_has rsvg-convert -- rsvg-convert librsvg2-bin
      _attune_lacks_python PIL python3-pil
      ;;
    tags)
      _attune_lacks _attune_has ctags -- "Universal Ctags" universal-ctags
      _attune_lacks_python clang.cindex python3-clang-14
      ;;
    onnx) _attune_lacks_python onnx python3-onnx ;;
    zephyr)
      _attune_lacks_python pykwalify.core python3-pykwalify python3-ruamel.yaml python3-dateutil
      _attune_lacks_python kconfiglib python3-kconfiglib
      ;;
    *)
      echo "attune_need: unknown kind '$1'; the first lines of cmake/bootstrap.sh list all kinds" >&2
      exit 2
      ;;
  esac
}

_attune_check() {
  missing=() packages=() modules=()
  local kind
  for kind in "$@"; do _attune_check_kind "$kind"; done
}

_attune_list() {
  local text
  printf -v text '%s, ' "$@"
  echo "${text%, }"
}

# Runs a command in silence, and shows what it said if it fails.
_attune_quietly() {
  local output
  output=$("$@" 2>&1 </dev/null) || {
    local code=$?
    printf '%s\n' "$output" >&2
    return $code
  }
}

_attune_install() {
  local as_root=(env DEBIAN_FRONTEND=noninteractive)
  if [ "$(id -u)" -ne 0 ]; then
    _attune_has sudo || { echo "attune: installing takes root, and there is no sudo" >&2; return 1; }
    as_root=(sudo "${as_root[@]}")
  fi
  # An unreachable third-party source must not stop an installation that does not need it.
  _attune_quietly "${as_root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 update ||
    echo "attune: apt-get update failed; trying with the package lists as they are" >&2
  _attune_quietly "${as_root[@]}" apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "$@"
}

attune_need() {
  local missing packages modules
  _attune_check "$@"
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ ${#packages[@]} -gt 0 ] && ! _attune_has apt-get; then
    echo "attune needs: $(_attune_list "${missing[@]}"). Please install; Debian calls them: ${packages[*]}" >&2
    exit 1
  fi
  echo "attune needs: $(_attune_list "${missing[@]}"); installing${packages[*]:+ with apt-get: ${packages[*]}}${modules[*]:+ with npm: ${modules[*]}}" >&2
  if [ ${#packages[@]} -gt 0 ] && ! _attune_install "${packages[@]}"; then
    echo "attune: apt-get could not install: ${packages[*]}" >&2
    exit 1
  fi
  if [ ${#modules[@]} -gt 0 ] &&
    ! _attune_quietly npm install --prefix "$_attune_npm" --no-audit --no-fund --ignore-scripts "${modules[@]}"; then
    echo "attune: npm could not install: ${modules[*]}" >&2
    exit 1
  fi
  hash -r
  _attune_check "$@"
  if [ ${#missing[@]} -gt 0 ]; then
    echo "attune: still missing after the installation: $(_attune_list "${missing[@]}")" >&2
    exit 1
  fi
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then attune_need "$@"; fi
