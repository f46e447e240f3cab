# What there is: examples, targets, and what a target is. A part of examples/run.

declare -A facts  # by `NAME KEY`

# read_facts: those of examples/facts.cmake
read_facts() {
  local name key value
  attune_need build
  while read -r name key value; do facts["$name $key"]=$value; done < <(cmake -P "$root/examples/facts.cmake" 2>&1)
}

# fact NAME KEY: of an example; nothing where it has none
fact() { echo "${facts[$1 $2]:-}"; }

examples() { { printf '%s\n' "${!facts[@]}" | sed -n 's/ shapes$//p' && own_runs; } | sort; }

# Those with a `run` of their own.
own_runs() { (cd "$root/examples" && for run in */run; do echo "${run%/run}"; done); }

is_no_board() { [ "$1" = host ] || [ "$1" = browser ]; }

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
  read_facts
  echo "examples:"
  for name in $(examples); do echo "  $name $(fact "$name" shapes) $(fact "$name" methods)"; done | sed 's/ *$//'
  echo "targets:"
  describe_targets | sed 's/^/  /'
}

# searches: whether the example gives its data to fit, with options that fit has.
searches() {
  local given
  [ -f "$root/examples/$name/fit.py" ] && [[ ${targets[*]:-host} == host && ${precision:-float} == float && -z $functions ]] || return 1
  for given in ${options[@]+"${options[@]}"}; do [[ " --data --seed --speaker --steps " == *" $given "* ]] || return 1; done
}

# overview: without arguments, the examples with a line about each, and their time.
overview() {
  local name
  read_facts
  cat <<'END'
examples/run NAME builds an example and runs it on this machine, then on an emulated board, and compares the bits. It installs
missing tools, and names them. The first build for each target takes a minute or two; the times below come on top.

END
  for name in $(examples); do printf '  %-12s %s: %s\n' "$name" "$(fact "$name" about)" "$(fact "$name" takes)"; done
  cat <<'END'

Begin with:  examples/run argmax_copy
Options:     examples/run --help
Targets:     examples/run --list
END
}

# announce: the targets of this run, and its time without options
announce() {
  local port where=()
  for port in "${wanted[@]}"; do
    if is_no_board "$port"; then where+=("$port"); else where+=("$port (emulated)"); fi
  done
  printf 'examples/run: %s on %s%s\n' "$name${shape:+ $shape}${method:+, $method}" "$(printf '%s\n' "${where[@]}" | paste -sd ';' | sed 's/;/, then /g')" \
    "${1:+, about $1; the first build of each takes a minute or two}" >&2
}

# can_run BOARD: whether what it needs is there or can be installed. Says so where it cannot.
can_run() { (attune_need $(needs_of "$1")) || { echo "examples/run: $1 is left out" >&2; return 1; }; }
