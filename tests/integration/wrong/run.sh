#!/bin/sh
# tests/integration/wrong/run.sh TENON: every *.ini beside this file is wrong in one way. Its first lines
# say what the program makes of it, as a user would call it:
#
#   # exit: 65                         the exit code
#   # run: config check FILE           the command, where it is another than this one
#   # says: wrong.ini:14: [run] ...    must stand in the text printed to stderr (as often as needed)
#
#   # mistakes: 3                    the number of lines that name a mistake, where it is not 1: one mistake must
#                                    not be told in several ways
#
# A file without "# exit:" is part of another case. One line a case: "case ok: NAME" or "case failed: NAME".
set -uf
tenon=$(realpath "$1")
cd "$(dirname "$0")" || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
unset TENON_TEST_UNSET
failed=0

# The command of a case, in $scratch/says what it must say.
run_case() {
  file=$1
  line=$(sed -n 's/^# run: //p' "$file")
  set -- $(printf '%s' "${line:-config check FILE}" | sed "s/FILE/$file/g")
  if [ "$1" = train ] && [ "$line" = "${line%--output*}" ]; then set -- "$@" --output "$scratch/runs"; fi
  "$tenon" "$@" >"$scratch/stdout" 2>"$scratch/stderr"
}

for file in $(ls); do
  case $file in *.ini) ;; *) continue ;; esac
  want=$(sed -n 's/^# exit: //p' "$file")
  [ -n "$want" ] || continue
  run_case "$file"
  code=$?
  why=
  [ "$code" = "$want" ] || why="exit code $code, expected $want"
  sed -n 's/^# says: //p' "$file" >"$scratch/says"
  [ -s "$scratch/says" ] || why="it says nothing about what to expect"
  while IFS= read -r text; do
    grep -qF -- "$text" "$scratch/stderr" || why="${why:+$why; }expected: $text"
  done <"$scratch/says"
  mistakes=$(sed -n 's/^# mistakes: //p' "$file")
  told=$(grep -c '^tenon' "$scratch/stderr")
  warned=$(grep -c '^tenon: warning: ' "$scratch/stderr")
  [ $((told - warned)) = "${mistakes:-1}" ] || why="${why:+$why; }$((told - warned)) mistakes, expected ${mistakes:-1}"
  if [ -z "$why" ]; then
    echo "case ok: ${file%.ini}"
  else
    echo "case failed: ${file%.ini}: $why"
    sed 's/^/  it said: /' "$scratch/stderr"
    failed=1
  fi
done
exit $failed
