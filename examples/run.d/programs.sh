# A part of examples/run: builds programs and runs them, and what they have in flash.

# Runs a command with its output in a log, and shows the log if it fails.
quietly() {
  if ! "$@" >"$log" 2>&1 </dev/null; then
    cat "$log" >&2
    return 1
  fi
}

# configure PRESET
# Without the tests, which need more than the examples do; `cmake --preset` turns them on again.
configure() {
  cd "$root"
  if [ ! -f "build/$1/build.ninja" ] || [ ! -f "build/$1/examples/left_out.txt" ]; then
    echo "configuring build/$1" >&2
    quietly attune_cmake "build/$1" --preset "$1" -DATTUNE_BUILD_TESTS=OFF
  fi
}

# What the compiler says of a file with --weights that is another model's: which tensor, its shape there, and the model's.
say_what_is_refused() {
  local why what
  why=$(grep -oE -m 1 'attune(::[A-Za-z]+)?: [^"]*' "$log") || return 1
  what=$(grep -oE -m 1 '[A-Za-z]+<attune::([a-z0-9_]+::)?detail::TensorNamed<.*>' "$log" |
    sed -E "s/attune::([a-z0-9_]+::)?detail:://g; s/Name<[0-9]+>\{(\"[^\"]*\")\}/\1/; s/', '//g; s/ >/>/g")
  printf '%s\n' "examples/run: $weights is not of $program" "  $what" "  $why" "  --shape takes: ${shapes[*]}" >&2
}

# build PRESET PROGRAM
build() {
  attune_cmake "build/$1" --build --preset "$1" --target "$2" >"$log" 2>&1 </dev/null && return
  if [ -z "$weights" ] || ! say_what_is_refused; then cat "$log" >&2; fi
  return 1
}

# What people see of a program's output: no exported parameters, and not its result line, which is completed first. What
# is no line yet, progress that overwrites its own, passes after a tenth of a second.
shown() {
  local text='' more code
  while true; do
    code=0
    IFS= read -r -t 0.1 more || code=$?
    text+=$more
    if [[ $text != 'result '* && $text != 'bytes '* ]]; then
      printf '%s' "$text"
      [ "$code" -ne 0 ] || echo
      text=''
    elif [ "$code" -eq 0 ]; then
      text=''
    fi
    [ "$code" -eq 0 ] || [ "$code" -gt 128 ] || break  # 1 is the end, 128 and more the tenth of a second
  done
}

# make_base: has the host train what $program is to have in flash, unless that has been done with the same program, data and
# options. Sets $base_files, with which their names begin. Data that are not given are what the example's default_data writes, if it has one.
make_base() {
  local base=${program%_"$method"}_base kept file data
  if [ -x "$root/examples/$name/default_data" ] && [[ " ${base_arguments[*]:-} " != *' --data '* ]]; then
    data=$root/build/trained/${name}_data
    mkdir -p "$(dirname "$data")"
    "$root/examples/$name/default_data" >"$folder/data" && put_weights "$folder/data" "$data" || return
    base_arguments+=(--data "$data")
  fi
  attune_need build
  configure host && build host "$base" || return
  kept=$root/build/trained/$base-$(cksum <<<"${base_arguments[*]:-}" | tr ' ' -)
  if [ ! "$kept" -nt "$root/build/host/examples/$base" ]; then
    mkdir -p "$(dirname "$kept")"
    ATTUNE_ARGUMENTS="--out $kept ${base_arguments[*]:-}" "$root/build/host/examples/$base" || return
    touch "$kept"
  fi
  base_files=$kept
  [ ! -f "$kept.txt" ] || cat "$kept.txt"
  put_weights "$kept.safetensors"
  for file in $(fact "$name" files); do
    put_weights "${kept}_$file.safetensors" "${trained%.safetensors}_$file.safetensors" || return
  done
}

# memories_of PORT: what ports/run is to charge and to count, each part alone behind the first memory's cache
memories_of() {
  has_placed_parts "$1" || return 0
  local part all=$memory first=${memory%%,*} cache=
  [[ $first != *:* ]] || cache=:${first#*:}
  for part in $(fact "$name" parts); do [[ ",$memory" == *",$part="* ]] || all+=,$part=0$cache; done
  echo "$all"
}

# execute PORT PRESET ARGUMENT...: runs the built program of a port, with its output in $log and counts of instructions in
# $counts.
execute() {
  local port=$1 program=${program_of[$1]} command terminal=false
  [ ! -t 1 ] || terminal=true
  : >"$counts"
  if [ "$port" = browser ]; then
    command=("$root/ports/browser/run" "$page_of_browser" --shape "$shape" "${@:3}" --steps 99999999)  # of two the first
  elif [ "$port" = host ]; then
    command=(env "ATTUNE_ARGUMENTS=${*:3}" ${page:+"ATTUNE_PAGE=$page"} ${keep:+"ATTUNE_RUN=$keep"} "$root/build/$2/examples/$program")
    [ -z "$ranks" ] || command=(bash -c 'source "$0/cmake/bootstrap.sh" && attune_mpirun "$@"' "$root" "$ranks" "${command[@]}")
    # The output passes through a pipe, so the program has to be told about the terminal behind it.
    ! $terminal || command=(env ATTUNE_TERMINAL=1 "${command[@]}")
  else
    command=(env "ATTUNE_COUNTS=$counts" ATTUNE_CYCLES=1 "ATTUNE_FUNCTIONS=$functions" "ATTUNE_ICOUNT=$(fact "$name" icount)" "ATTUNE_MEMORY=$(memories_of "$port")" "$root/ports/run" "$port" "$root/build/$2/examples/$program.elf" "${@:3}")
    ! $terminal || command+=(--terminal)
  fi
  if $on_pc; then  # Ctrl-C is the program's: what it then says still passes
    "${command[@]}" | (trap '' INT && tee "$log" | shown)
  else
    "${command[@]}" | tee "$log" | shown
  fi
}

result_line() { tr '\r' '\n' <"$log" | grep '^result ' | tail -n 1; }

preset_of() { if is_no_board "$1"; then echo "$1"; else board_value "$1" preset; fi; }

# Whether a port has no room to train $program, but infers with what another one learned.
infers_on() {
  ! is_no_board "$1" && [ -f "$root/examples/$name/inference.cpp" ] || return 1
  attune_need $(needs_of "$1")
  configure "$(preset_of "$1")"
  grep -q "^$program: " "$root/build/$(preset_of "$1")/examples/left_out.txt"
}

# has_placed_parts PORT: with --memory, whether it has another memory for them
has_placed_parts() { [ -n "$memory" ] && ! is_no_board "$1" && [ -n "$(board_value "$1" memories)" ]; }

# The program of every target, in the order of their turns: those that train before those that infer, with the host before
# them if nothing else trains. With --weights all do the same.
order_targets() {
  local port trains=() infers=()
  for port in "${wanted[@]}"; do
    if [ -n "$weights" ]; then
      program_of[$port]=${program}_$use_of_weights trains+=("$port")
    elif infers_on "$port"; then
      program_of[$port]=${program}_inference infers+=("$port")
    else
      program_of[$port]=$program$suffix trains+=("$port")
      if [ "$cores" != 1 ] && ! is_no_board "$port" && [ "$(board_value "$port" cores)" = "$cores" ]; then
        program_of[$port]+=_cores$cores
      fi
      if has_placed_parts "$port"; then program_of[$port]+=_placed; fi
    fi
  done
  if [ ${#infers[@]} -gt 0 ]; then
    exporting=true
    [ ${#trains[@]} -gt 0 ] || trains=(host)
    program_of[${trains[0]}]=$program$suffix
  fi
  wanted=("${trains[@]}" ${infers[@]+"${infers[@]}"})
}

# put_weights FILE [TO]: where programs look for it. An unchanged file keeps its time.
declare -A placed=()
put_weights() {
  local to=${2:-$trained}
  mkdir -p "$(dirname "$to")"
  placed[$to]=$1
  hold_files && release_files
}

# hold_files: until release_files, no other run changes these files or builds programs with them. Puts what another run has
# replaced since.
hold_files() {
  local to
  [ ${#placed[@]} -gt 0 ] || return 0
  exec 8>"$trained.lock"
  ! _attune_has flock || flock 8
  for to in "${!placed[@]}"; do
    cmp -s "${placed[$to]}" "$to" || cp -- "${placed[$to]}" "$to" || return
  done
}
release_files() { exec 8>&-; }

# Takes the file that the last program printed to $trained, and to --export.
take_exported() {
  attune_need python
  python3 "$root/cmake/hex_lines.py" "$log" "$exported" || return 1
  [ -n "$weights" ] || put_weights "$exported"
  [ -n "$export_file" ] || return 0
  mkdir -p "$(dirname "$export_file")"
  case $export_file in
    *.hpp) quietly cmake "-DFILE=$exported" "-DNAME=${name}_weights" "-DHEADER=$export_file" -P "$root/cmake/attune-model-header.cmake" ;;
    *) cat "$exported" >"$export_file" ;;
  esac || return 1
  echo "wrote $export_file, $(wc -c <"$export_file" | tr -d ' ') bytes" >&2
}

# Takes the journal that the last program printed to --journal.
take_journal() {
  attune_need python
  python3 "$root/cmake/hex_lines.py" "$log" "$journal" || return 1
  echo "wrote $journal, $(wc -c <"$journal" | tr -d ' ') bytes" >&2
}

# say_what_is_ignored PORT OPTION...: a board without a command line takes no options
say_what_is_ignored() {
  if [ $# -gt 1 ] && ! is_no_board "$1" && [ "$(board_value "$1" arguments)" = no ]; then
    echo "examples/run: $1 has no command line: ${*:2} is ignored" >&2
  fi
}

# run_on PORT: builds and runs its program, leaving its result line in results[PORT]. A board that it does not fit is an
# error, or with --on all is named and passed over.
run_on() {
  local code=0
  hold_files && run_held "$1" || code=$?
  release_files
  return "$code"
}
run_held() {
  local port=$1 program=${program_of[$1]} preset code=0 reason options=("${arguments[@]}")
  preset=$(preset_of "$port")
  attune_need $(needs_of "$port")
  echo "== $program on $port" >&2
  configure "$preset" || return 1
  local fitting=${program%_further}
  if reason=$(grep "^${fitting%"$suffix"}: " "$root/build/$preset/examples/left_out.txt"); then
    echo "$port has no room for $reason" >&2
    $everything
    return
  fi
  # A build that was configured when there was no MPI has no such program.
  if [ -n "$ranks" ] && ! grep -q "^build $program:" "$root/build/$preset/build.ninja" 2>/dev/null &&
    ! grep -q "examples/$program:" "$root/build/$preset/build.ninja"; then
    quietly attune_cmake "build/$preset" --preset "$preset"
  fi
  [ "$port" != browser ] || program=${name}_page
  if ! build "$preset" "$program"; then
    echo "examples/run: $program does not build for $port" >&2
    return 1
  fi
  ! $exporting || options+=(--export 1)
  say_what_is_ignored "$port" "${options[@]}"
  execute "$port" "$preset" "${options[@]}" || code=$?
  if [ "$code" -ne 0 ]; then
    echo "examples/run: $program on $port exited with code $code" >&2
    [ "$code" -ne 124 ] || echo "examples/run: that is the time limit, ${ATTUNE_TIMEOUT:-1800} s (ATTUNE_TIMEOUT)" >&2
    return 1
  fi
  results[$port]=$(result_line) || true
  if [ -z "${results[$port]}" ]; then
    echo "examples/run: $program on $port printed no result line" >&2
    return 1
  fi
  reason=${results[$port]}
  complete "$port"
  tell "$port"
  ! has_placed_parts "$port" || placements
  [ -z "$functions" ] || is_no_board "$port" || profile "$port" "$reason"
  echo "${results[$port]}"
  if $exporting; then
    take_exported || return 1
    exporting=false
  fi
  [ -z "$journal" ] || take_journal || return 1
  ports+=("$port")
}
