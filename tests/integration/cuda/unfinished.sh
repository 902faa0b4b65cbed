#!/bin/sh
# tests/integration/cuda/unfinished.sh TENON DOUBLES: a case that breaks the device ends `tenon conformance` with 71 and its
# name; its failure is printed with --quiet, too; and the line "go on" runs all cases behind it.
set -u
tenon=$(realpath "$1") doubles=$2
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failed=0

report() { # $1: the case, $2: the reason of a failure, or nothing
  [ -z "$2" ] && echo "case ok: $1" && return
  echo "case failed: $1: $2" && failed=1
}
run() { "$tenon" conformance --backend cuda --set backend.cuda.libraries="$doubles" --case relu --draws 2 --cases --quiet "$@" >out 2>err; }

go_on() {
  run || { echo "the whole run exits with $?: $(tail -n 1 err)" && return; }
  grep '^case: ' err >whole
  [ "$(wc -l <whole)" -gt 8 ] || { echo "$(wc -l <whole) cases" && return; }
  FAKECUDA_FAIL=kernel:9 run
  code=$?
  [ $code = 71 ] || { echo "exit code $code, expected 71: $(cat err)" && return; }
  grep -q '^failed: device: it broke in relu/' err || { echo "stderr does not name the case: $(cat err)" && return; }
  grep '^case: ' err >parts
  line=$(sed -n "s|^go on *tenon|\"$tenon\"|p" out)
  [ -n "$line" ] || { echo "no line that goes on: $(cat out)" && return; }
  eval "$line --cases" >out 2>err || { echo "the rest exits with $?: $(cat err)" && return; }
  grep '^case: ' err >>parts
  cmp -s whole parts || { echo "the two parts have other cases: $(diff whole parts | head -n 4)" && return; }
}
report 'a fault ends the run, and the rest runs in a new process' "$(go_on)"

unknown() {
  run --after relu/f32/77
  code=$?
  [ $code -ne 0 ] && grep -q "after 'relu/f32/77': the suite has no such case" err || echo "exit code $code: $(cat err)"
}
report '--after with an unknown case is refused' "$(unknown)"
exit $failed
