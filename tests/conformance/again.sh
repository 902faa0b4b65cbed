#!/bin/sh
# tests/conformance/again.sh TENON FOLDER: `tenon conformance PLUGIN.so` prints one line for each case that fails,
# and the line as a filter repeats the failure. FOLDER holds faulty plugins.
set -u
tenon=$(realpath "$1")
cd "$2" || exit 1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0

check() {
  "$tenon" conformance "./$1.so" --quiet --draws "$2" >"$scratch/out" 2>"$scratch/err"
  [ $? = 70 ] || echo "expected exit code 70: $(cat "$scratch/err")"
  fails=$(grep -c '^failed  ' "$scratch/out")
  lines=$(grep -c '^again  ' "$scratch/out")
  [ "$fails" -gt 0 ] && [ "$fails" = "$lines" ] || echo "$fails failed, but $lines lines repeat one"
  grep '^again  ' "$scratch/out" | head -n 4 | sed "s|^again *tenon|$tenon|" >"$scratch/again"
  while IFS= read -r line; do
    name=$(printf '%s' "$line" | sed -n 's/.*--case //p')
    eval "$line" >"$scratch/twice" 2>&1
    [ $? = 70 ] && grep -qF "failed       $name" "$scratch/twice" || echo "finds nothing: $line"
  done <"$scratch/again"
}

for plugin in wrong_sum wrong_border wrong_gradient wrong_declines wrong_layer wrong_optimizer wrong_source; do
  why=$(check "$plugin" 8)
  if [ -z "$why" ]; then
    echo "case ok: $plugin is found again"
  else
    echo "case failed: $plugin is found again: $why"
    failed=1
  fi
done
exit $failed
