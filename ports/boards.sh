# Boards, as their board.conf describes them. Sourced by scripts; ports/boards.py has the same for Python.

_attune_ports=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Names of all boards, one a line.
boards() {
  local conf
  for conf in "$_attune_ports"/*/board.conf; do basename "$(dirname "$conf")"; done
}

# board_folder BOARD: of a board of ports/, or of the path of one.
board_folder() { if [[ $1 == */* ]]; then echo "$1"; else echo "$_attune_ports/$1"; fi; }

# board_value BOARD KEY: nothing where board.conf has no such line.
board_value() { sed -n "s/^$2=//p" "$(board_folder "$1")/board.conf"; }

# port_of TARGET: host, browser, or the board of that name or with that processor. Fails where there is none.
port_of() {
  local board
  case $1 in host | browser) echo "$1" && return ;; esac
  for board in $(boards); do
    if [ "$board" = "$1" ] || [ "$(board_value "$board" cpu)" = "$1" ]; then echo "$board" && return; fi
  done
  return 1
}

# needs_of PORT: kinds that attune_need takes. Arm's binutils read every image, and its C++ headers are lent.
needs_of() {
  case $1 in
    host) echo build ;;
    browser) echo build browser ;;
    *) echo build arm qemu $(board_value "$1" needs) ;;
  esac
}

# has_fpu BOARD: without one there is no fused multiply-add.
has_fpu() { [[ $(board_value "$1" cpu) != @(cortex-m0|cortex-m0plus|cortex-m3|rv32imc|lx106) ]]; }
