# What there is: examples, targets, and what a target is. A part of examples/run.

examples() {
  local source name
  for source in "$root"/examples/*/*.cpp; do
    name=$(basename "$source" .cpp)
    [ "$source" != "$root/examples/$name/$name.cpp" ] || echo "$name"
  done
}

is_no_board() { [ "$1" = host ] || [ "$1" = browser ]; }

# targets_of NAME: those that an example is for; nothing where it is for all.
targets_of() { sed -n "s/^set($1_targets \(.*\))\$/\1/p" "$root/examples/CMakeLists.txt"; }

# clock_of NAME: of an example that works by the clock, an instruction takes 2^N ns of an emulated board's time.
clock_of() { sed -n "s/^set($1_icount \(.*\))\$/\1/p" "$root/examples/CMakeLists.txt"; }

methods_of() { sed -n "s/^set($1_methods \(.*\))\$/\1/p" "$root/examples/CMakeLists.txt"; }

# files_of NAME: what its base.cpp makes beside the model.
files_of() { sed -n "s/^set($1_files \(.*\))\$/\1/p" "$root/examples/CMakeLists.txt"; }

shapes_of() { sed -n "s/^set($1_shapes \(.*\))\$/\1/p" "$root/examples/CMakeLists.txt"; }

describe_targets() {
  echo "host"
  local board emulator
  for board in $(boards); do
    emulator=$(board_value "$board" emulator)
    case ${emulator:-qemu-system-arm} in qemu-*) emulator=QEMU ;; esac
    echo "$board ($(board_value "$board" cpu) in $emulator)"
  done
  echo "browser (WebAssembly in Chromium)"
}

list() {
  local name
  echo "examples:"
  for name in $(examples); do echo "  $name $(shapes_of "$name") $(methods_of "$name")"; done | sed 's/ *$//'
  echo "targets:"
  describe_targets | sed 's/^/  /'
}

# can_run BOARD: whether what it needs is there or can be installed. Says so where it cannot.
can_run() { (attune_need $(needs_of "$1")) || { echo "examples/run: $1 is left out" >&2; return 1; }; }
