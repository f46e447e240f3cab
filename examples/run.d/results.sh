# A part of examples/run: result lines, counts and costs in words, and whether targets ended with the same.

# Bytes of a board's flash that its program takes.
flash() { arm-none-eabi-size "$root/build/$(preset_of "$1")/examples/${program_of[$1]}.elf" | awk 'NR == 2 { print $1 + $2 }'; }

# counted LINE: what the emulator counted, `key instructions [cycles]` in the order of the keys that are '-' in a result line;
# of slices, the most and the sum; of tokens, behind which may come a window, the mean.
counted() {
  local keys
  keys=$(sed -E 's/ /\n/g' <<<"$1" | sed -n 's/_instructions=-$//p')
  if [[ $1 == *' instructions_per_token=- '* ]]; then
    awk -v windows="$(grep -c '^window$' <<<"$keys")" '/^region/ { n++; of[n] = $2; cycles[n] = $3 }
      END {
        tokens = n - windows
        for (i = 1; i <= tokens; ++i) { sum += of[i]; all += cycles[i] }
        if (tokens > 0) printf "token %.0f %s\n", sum / tokens, cycles[1] == "" ? "" : sprintf("%.0f", all / tokens)
        if (windows && n) print "window", of[n], cycles[n]
      }' "$counts"
  elif [[ $keys == longest_slice* ]]; then
    awk -v sums="$(grep -c '^slices$' <<<"$keys")" '/^region/ {
        if ($2 > most) most = $2
        if ($3 > longest) longest = $3
        sum += $2; cycles += $3
      }
      END {
        if (most) print "longest_slice", most, longest
        if (most && sums) printf "slices %.0f %s\n", sum, longest == "" ? "" : sprintf("%.0f", cycles)
      }' "$counts"
  else
    paste -d ' ' <(echo "$keys") <(sed -n 's/^region //p' "$counts") | grep -E '^[a-z_]+ [0-9]'
  fi
}

# complete PORT: the result line of its program with what it cannot tell itself.
complete() {
  local line=${results[$1]} key instructions cycles estimated=''
  if ! is_no_board "$1"; then
    while read -r key instructions cycles; do
      line=${line/ ${key}_instructions=- / ${key}_instructions=$instructions }
      [ "$key" != token ] || line=${line/ instructions_per_token=- / instructions_per_token=$instructions }
      [ -z "$cycles" ] || estimated+=" ${key}_cycles=$cycles"
    done < <(counted "$line")
    line+="$estimated flash_bytes=$(flash "$1")"
  fi
  results[$1]=$line
}

# clock_in_mhz PORT: that estimates are told for.
clock_in_mhz() { [ -n "$clock" ] && echo "$clock" || awk "BEGIN { print $(board_value "$1" clock) / 1e6 }"; }

# cost PORT KEY [INSTRUCTIONS]: instructions of a step, an inference, a slice or a token, and what they are estimated at.
cost() {
  local instructions cycles mhz
  instructions=${3:-$(field "$2_instructions" "${results[$1]}")} cycles=$(field "$2_cycles" "${results[$1]}")
  printf '%s' "$instructions"
  [ -n "$cycles" ] || return 0
  mhz=$(clock_in_mhz "$1")
  awk "BEGIN { printf \" (estimated: %d cycles, %.2f ms at %s MHz)\", $cycles, $cycles / $mhz / 1000, \"$mhz\" }"
}

# tell PORT: in words, what a completed result line says of flash and instructions.
tell() {
  local line=${results[$1]} step inference slice token window
  if [ "$1" = browser ]; then echo "the page: $page_of_browser" && return; fi
  step=$(field step_instructions "$line") inference=$(field inference_instructions "$line")
  slice=$(field longest_slice_instructions "$line") token=$(field instructions_per_token "$line")
  [ "$1" = host ] || echo "flash of the firmware on $1: $(field flash_bytes "$line") bytes, code and constants"
  if [[ ${slice:--} != - ]]; then
    echo "instructions on $1: $(cost "$1" longest_slice) of the longest slice of training or inference"
  elif [[ ${token:--} != - ]]; then
    window=$(field window_instructions "$line")
    echo "instructions on $1: $(cost "$1" token "$token") of a token, the mean${window:+; $(cost "$1" window) of a window in one go}"
  elif [[ ${inference:--} != - ]]; then
    echo "instructions on $1: ${step:+$(cost "$1" step) of one training step, }$(cost "$1" inference) of one inference"
  elif [ "$1" = host ]; then
    echo "instructions on host: not counted on this machine, whose kernel does not (perf_event_open)"
  elif [ -x "$root/ports/$1/run" ]; then
    echo "instructions on $1: not counted by ports/$1/run"
  else
    echo "instructions on $1: not counted, which takes a C compiler and a QEMU, 7.2 or newer, with plugins"
  fi
}

# placements: a training step with each part of the trainer in the memory of --memory's first NAME, by what the emulator counted.
placements() {
  awk -v parts=" $(fact "$name" parts) " '
    /^region/ { ++region }
    region == 1 && /^region/ { cycles = $3 }
    region == 1 && /^memory/ {
      moves = NF > 5 ? $6 : $5
      if (more == "") { more = $4; unit = NF > 5 ? "line" : "word" }
      if (index(parts, " " $2 " ")) { part[++count] = $2; bytes[count] = $3; moved[count] = moves }
      cycles -= $4 * moves
    }
    END {
      if (cycles == "" || more == "") exit
      printf "a training step without slow memory: %d cycles (estimated); with %d cycles more for each %s in one of its parts:\n", cycles, more, unit
      printf "  %-10s %8s %12s %12s %14s %8s\n", "part", "bytes", unit "s moved", unit "s a byte", "cycles more", "of step"
      for (i = 1; i <= count; ++i)
        printf "  %-10s %8d %12d %12.1f %14d %+7.1f%%\n", part[i], bytes[i], moved[i], moved[i] / bytes[i], more * moved[i], 100 * more * moved[i] / cycles
    }' "$counts"
}

# profile PORT LINE: the functions of what is counted; LINE is its result line before it was completed.
profile() {
  local keys slices=$counts
  mapfile -t keys < <(counted "$2" | cut -d ' ' -f 1)
  if [ "${keys[*]}" = longest_slice ]; then
    slices=$folder/longest_slice
    awk '/^region/ { number += 1 }
      NR == FNR { if ($1 == "region" && $2 > most) { most = $2; longest = number } next }
      FNR == 1 { number = 1 }
      number == longest' "$counts" "$counts" >"$slices"
  fi
  "$root/ports/profile" --clock "$(clock_in_mhz "$1")" "$slices" "${keys[@]}"
}

# field NAME RESULT_LINE
field() { sed -n "s/.* $1=\([^ ]*\).*/\1/p" <<<"$2"; }

# result_after STEPS: the result line of the first target after as many steps as another one took.
declare -A results_after
result_after() {
  if [ -z "${results_after[$1]:-}" ]; then
    execute "${ports[0]}" "$(preset_of "${ports[0]}")" --steps "$1" "${arguments[@]}" >/dev/null
    results_after[$1]=$(result_line)
  fi
  result=${results_after[$1]}
}

# same WHAT KEY PORT DETAIL: whether the first target's $result and a port's have the same hash. Says so.
same() {
  local ours theirs
  ours=$(field "$2" "$result") theirs=$(field "$2" "${results[$3]}")
  if [ -z "$ours" ] || [ -z "$theirs" ]; then
    echo "${ports[0]} and $3 cannot be compared: a result line lacks $2"
    return 1
  elif [ "$ours" = "$theirs" ]; then
    echo "${ports[0]} and $3 ended with the same $1, bit for bit ($ours$4)"
  else
    echo "${ports[0]} and $3 ended with different $1 ($ours and $theirs$4)"
    return 1
  fi
}

# Whether all targets ended with the parameters of the first one, and where there are logits, with those; what trains nothing, with
# the same logits, and the same text if it writes one.
compare() {
  local first=${ports[0]} port result steps images same=true
  if [ -z "$(field parameters_hash "${results[$first]}")" ]; then
    result=${results[$first]}
    for port in "${ports[@]:1}"; do
      [ -z "$(field text_hash "$result")" ] || same text text_hash "$port" '' || same=false
      same logits logits_hash "$port" '' || same=false
    done
    $same
    return
  fi
  steps=$(field steps "${results[$first]}")
  results_after[${steps:-all}]=${results[$first]}
  for port in "${ports[@]:1}"; do
    steps=$(field steps "${results[$port]}") images=$(field images "${results[$port]}")
    result=${results[$first]}
    [ -z "$steps" ] || result_after "$steps"  # what only infers has the parameters of the first
    same parameters parameters_hash "$port" "${steps:+ after $steps steps}" || same=false
    [ -z "$images" ] || same logits logits_hash "$port" " of $images images" || same=false
  done
  $same
}

# sweep: the same command line for each method, precision and speaker that it is for, and the results side by side: means
# over speakers. Ends the program.
sweep() {
  local -a of_methods=("$method") of_speakers=("$speaker") of_precisions=("$precision")
  local one_method one_speaker one_precision lines='' output code=0
  [ "$method" != all ] || of_methods=("${methods[@]}")
  [ "$speaker" != all ] || of_speakers=(0 1 2 3 4 5)
  [ "$precision" != all ] || of_precisions=("${precisions[@]}")
  for one_speaker in "${of_speakers[@]}"; do
    for one_method in "${of_methods[@]}"; do
      for one_precision in "${of_precisions[@]}"; do
        output=$("$0" "${command_line[@]}" --method "$one_method" --speaker "$one_speaker" \
          ${one_precision:+--precision "$one_precision"} | tee >(cat >&2)) || code=1
        lines+=$(grep '^result ' <<<"$output" || true)$'\n'
      done
    done
  done
  side_by_side <<<"$lines"
  exit "$code"
}

# side_by_side: a table of result lines: for each target, method and precision the means of accuracies over speakers, and what one step
# costs, in seconds at the clock of --clock or the board's; in millions of cycles where this machine searched for a board (fit).
side_by_side() {
  local board clocks=''
  for board in $(boards | grep -vx virt); do clocks+="$board $(clock_in_mhz "$board") "; done
  awk -v clocks="$clocks" '
    BEGIN { for (i = split(clocks, clock, " "); i > 0; i -= 2) mhz[clock[i - 1]] = clock[i] }
    function mean(key) { return sprintf("%6.1f", 100 * sum[row, key] / count[row]) }
    $1 == "result" {
      for (i = 2; i <= NF; ++i) { at = index($i, "="); value[substr($i, 1, at - 1)] = substr($i, at + 1) }
      row = value["target"] SUBSEP value["method"] SUBSEP value["precision"]
      if (!(row in count)) rows[++number] = row
      ++count[row]
      for (key in value) { sum[row, key] += value[key]; last[row, key] = value[key] }
      delete value
    }
    END {
      printf "%-11s %-20s %-9s %8s  %15s  %15s %8s %8s %9s %13s %9s\n", "target", "method", "precision", "speakers", "own: before, %",
        "others, %", "trained", "RAM", "flash", "instructions", "estimate"
      for (i = 1; i <= number; ++i) {
        row = rows[i]
        split(row, name, SUBSEP)
        step = last[row, "step_instructions"]
        cycles = last[row, "step_cycles"]
        printf "%-11s %-20s %-9s %8d  %s → %s  %s → %s %8d %8d %9s %13s %9s\n", name[1], name[2], name[3], count[row],
          mean("own_before"), mean("own_after"), mean("others_before"), mean("others_after"),
          last[row, "trained_parameters"], last[row, "ram_bytes"],
          last[row, "flash_bytes"] == "" ? "-" : last[row, "flash_bytes"], step == "" ? "-" : step,
          cycles == "" ? "-" : name[1] in mhz ? sprintf("%.2f s", cycles / mhz[name[1]] / 1e6) : sprintf("%.1f M", cycles / 1e6)
      }
    }'
}
