# Counts of a suite that is a script. Sourced, with $root set:
#   root=…; source "$root/tests/checks.sh"
#   check "what holds" COMMAND...
# At its end, and where it crashes, the suite says `N passed, N failed[, N skipped]` and exits with 1 if a check failed.
# $work is a folder that is removed then; commands of cmake/bootstrap.sh and ports/boards.sh are there.

set -uo pipefail
source "$root/cmake/bootstrap.sh"
source "$root/ports/boards.sh"

passed=0 failed=0 skipped=0
work=$(mktemp -d)

_close() {
  local code=$?
  rm -rf "$work"
  if [ "$code" -ne 0 ] && [ "$failed" -eq 0 ]; then
    failed=1
    echo "FAILED the suite itself ended with code $code"
  fi
  if [ "$skipped" -gt 0 ]; then echo "$passed passed, $failed failed, $skipped skipped"; else echo "$passed passed, $failed failed"; fi
  [ "$failed" -eq 0 ] || exit 1
  exit 0
}
trap _close EXIT

# verdict WHAT CODE [OUTPUT]: counts a check whose command ended with CODE; shows the output of one that failed.
verdict() {
  if [ "$2" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED $1"
    [ -z "${3:-}" ] || tail -n 15 <<<"$3"
  fi
}

# check WHAT COMMAND...: the command succeeds.
check() {
  local _said _code=0
  _said=$("${@:2}" 2>&1) || _code=$?
  verdict "$1" "$_code" "$_said"
}

# expect WHAT COMMAND...: the same in this shell, where the command may set variables, and in silence.
expect() {
  local _code=0
  "${@:2}" >/dev/null 2>&1 || _code=$?
  verdict "$1" "$_code"
}

# skip COUNT WHY
skip() {
  skipped=$((skipped + $1))
  echo "skipped: $2"
}

# refuses_saying TEXT COMMAND...: the command fails and says the text, whose lines may be broken anywhere.
refuses_saying() { local said && ! said=$("${@:2}" 2>&1) && tr -s ' \n' ' ' <<<"$said" | grep -F -- "$1"; }
