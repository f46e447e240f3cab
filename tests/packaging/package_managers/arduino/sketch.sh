# Sketches by arduino-builder, over a small platform of an emulated Cortex-M4. Sourced with $root, the project, and $work, a folder.

arduino_platform() {
  local platform=$work/hardware/test/arm managers=$root/tests/packaging/package_managers
  mkdir -p "$platform/cores" "$platform/libraries/EEPROM" "$work/libraries" "$work/tools" && cp "$managers"/arduino/*.txt "$platform" &&
    cp -r "$managers/arduino/core" "$platform/cores" &&
    "$root/tests/packaging/names/macros" --define >"$platform/cores/core/core_macros.h" && mkdir "$platform/cores/core/ports" &&
    cp -r "$root"/ports/{*.hpp,console.cpp,bare_metal,cortex_m,arm_semihosting} "$platform/cores/core/ports" &&
    cp "$root"/ports/mps2_an386/memory.ld "$root/ports/bare_metal/sections.ld" "$platform/cores/core" &&
    rm -f "$platform"/cores/core/ports/cortex_m/{ticks,interrupts,reset}.cpp "$platform"/cores/core/ports/*/reset_count.cpp &&
    cp "$root"/tests/exchange/stubs/{EEPROM.h,memory.hpp} "$platform/libraries/EEPROM"
}
# arduino_sketch FILE.ino PREFERENCE...: $work/sketch-NAME/NAME.ino.elf, with the libraries in $work/libraries
arduino_sketch() {
  local preferences=() preference name
  name=$(basename "$1" .ino)
  for preference in "${@:2}"; do preferences+=(-prefs "$preference"); done
  mkdir -p "$work/sketch-$name"
  arduino-builder -compile -hardware "$work/hardware" -hardware /usr/share/arduino-builder -tools "$work/tools" -libraries "$work/libraries" \
    -fqbn test:arm:m4 -build-path "$work/sketch-$name" -warnings all "${preferences[@]}" "$1"
}
arduino_run() { "$root/ports/run" mps2_an386 "$work/sketch-$1/$1.ino.elf"; }
