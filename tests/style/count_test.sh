#!/bin/sh
# tests/style/count_test.sh COUNT_TESTS: what tools/count-tests says of made-up logs of meson.
set -u
count=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0

# program RESULT LINE...: a program of the log, with its output.
program() {
  printf '=== 1/9 ===\ntest:         tenon:unit / some program\nresult:       %s\n--- stdout ---\n' "$1" >>"$log"
  shift
  printf '%s\n' "$@" >>"$log"
}
# says NAME CODE TEXT: the log gives the exit code and the text, whose lines are parted by |. The next log is empty.
says() {
  said=$("$count" "$log")
  code=$?
  said=$(printf '%s' "$said" | tr '\n' '|')
  : >"$log"
  [ "$code:$said" = "$2:$3" ] && echo "case ok: $1" && return
  echo "case failed: $1 (expected '$2:$3', heard '$code:$said')"
  status=1
}

program 'exit status 0' 'case ok: a' '[       OK ] b' 'nothing'
says "programs that pass" 0 "2 passed, 0 failed"

program 'exit status 0' 'case ok: a'
program 'exit status 77' 'skipped: there is no file'
says "a program that is skipped is no failure" 0 \
  "skipped:|  tenon:unit / some program: there is no file|1 passed, 0 failed, 1 skipped"

program 'exit status 77'
program 'exit status 0' 'case ok: a'
says "a program that is skipped without a word" 0 "skipped:|  tenon:unit / some program|1 passed, 0 failed, 1 skipped"

program 'exit status 77' 'case skipped: c (no tool)' '[  SKIPPED ] d'
says "a program that names its skipped cases" 0 "skipped:|  c (no tool)|  d|0 passed, 0 failed, 2 skipped"

program 'exit status 1' '[       OK ] a' '[  FAILED  ] b' '[  FAILED  ] 1 test(s), listed below:' '[  FAILED  ] b'
says "a case that fails counts once" 1 "1 passed, 1 failed"

program 'exit status 3' 'case ok: a'
program 'exit status 77' 'skipped: there is no file'
program 'exit status 1' 'case failed: b'
says "a program that fails without a name, beside one with" 1 \
  "skipped:|  tenon:unit / some program: there is no file|1 passed, 2 failed, 1 skipped"

program 'killed by signal 11 SIGSEGV' 'case ok: a'
program '(exit status 134 or signal 6 SIGABRT)'
says "programs that end by a signal" 1 "1 passed, 2 failed"
exit $status
