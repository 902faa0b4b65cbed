#!/bin/sh
# tests/style/forbidden_calls.sh ROOT: the library and its plugins never print and never end the process. Observers may
# write to stderr: some of them exist for that. pack_images.c is a program that the build runs. Descriptors close in
# programs that the application starts. Threads of core begin with all signals blocked.
set -eu
cd "$1"
files=$(find core plugins backends -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' | grep -v /pack_images.c | sort)
# shellcheck disable=SC2016,SC2086
awk '
FNR == 1 { in_comment = 0 }
{
  line = $0
  if (line ~ /[^A-Za-z0-9_](fopen|gzopen)\(.*, "[rwa][^"e]*"\)/)
    told("opens a file without \"e\": programs that the application starts inherit its descriptor")
  gsub(/\\"|\047"\047/, "", line)
  gsub(/"[^"]*"/, "\"\"", line)
  if (in_comment && sub(/^.*\*\//, "", line)) in_comment = 0
  if (in_comment) next
  gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
  if (sub(/\/\*.*$/, "", line)) in_comment = 1
  line = " " line
  if (match(line, /[^A-Za-z0-9_.>](printf|vprintf|puts|putchar|perror|abort|exit|_exit|_Exit|quick_exit|__builtin_trap)[ ]*\(/))
    found(substr(line, RSTART + 1, RLENGTH - 2))
  if (FILENAME ~ /^core\// && FILENAME !~ /thread_state/ && line ~ /[^A-Za-z0-9_]pthread_create[ ]*\(/)
    told("uses pthread_create: expected tn_thread_start, which blocks signals")
  if (line ~ /[^A-Za-z0-9_](open|openat|socket|accept|accept4|pipe|pipe2|dup|eventfd|mkstemp)[ ]*\(/ && line !~ /CLOEXEC/ && line !~ /->/)
    told("opens a descriptor without CLOEXEC: programs that the application starts inherit it")
  if (match(line, /[^A-Za-z0-9_](stdout|stderr)[^A-Za-z0-9_]/) && !(FILENAME ~ /^plugins\/observers\// && line !~ /stdout/))
    found(substr(line, RSTART + 1, RLENGTH - 2))
}
function found(what) { told("uses " what ": errors are values, and the log belongs to the host") }
function told(text) {
  printf "%s:%d: %s\n", FILENAME, FNR, text
  bad = 1
}
END { exit bad }' $files >&2
echo "case ok: nothing prints or ends the process"
