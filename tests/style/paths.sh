#!/bin/sh
# tests/style/paths.sh ROOT: names of files and folders in text are those of the tree.
#
#   1. A C file whose first comment begins with a path begins with its own.
#   2. Every path in back quotes of a document, and every path in a comment of C, that begins with a folder of the
#      top level exists. `*` and `NAME` in capitals stand for any name.
#
# Prints a line for each violation on stderr and exits with 1 if there is any.
set -eu
cd "$1"
tree=$(mktemp)
trap 'rm -f "$tree"' EXIT
find include core backends plugins tools tests docs \( -name '.*' -prune \) -o -print 2>/dev/null | LC_ALL=C sort >"$tree"
files=$(grep -E '\.([ch]|cuh?|md)$' "$tree" | grep -v '^docs/results/'; ls README.md CONTRIBUTING.md 2>/dev/null || true)

# shellcheck disable=SC2086
LC_ALL=C awk '
FILENAME == ARGV[1] { exists[$0] = 1; next }

function refuse(path, why) {
  printf "%s:%d: %s: %s\n", FILENAME, FNR, path, why
  bad = 1
}

# Public headers call themselves tenon/NAME.h, as they are included.
FNR == 1 && FILENAME ~ /\.([ch]|cuh?)$/ && match($0, /^\/\* [a-z_0-9\/]+\/[a-z_0-9]+\.(c|h|cu|cuh):/) {
  path = substr($0, 4, RLENGTH - 4)
  if (path != FILENAME && "include/" path != FILENAME) refuse(path, "the first comment names another file, expected " FILENAME)
  next
}

{
  rest = $0
  quote = FILENAME ~ /\.md$/ ? "`" : ""
  while (match(rest, quote "(include|core|backends|plugins|tools|tests|docs)/[A-Za-z0-9_.*\/-]*[A-Za-z0-9_*\/]")) {
    path = substr(rest, RSTART + length(quote), RLENGTH - length(quote))
    before = RSTART > 1 ? substr(rest, RSTART - 1, 1) : " "
    rest = substr(rest, RSTART + RLENGTH)
    sub(/\/$/, "", path)
    if (before ~ /[A-Za-z0-9_.\/$}-]/ || path ~ /\*|[A-Z][A-Z]/ || path in exists) continue
    if (quote == "" && !(FILENAME ~ /\.([ch]|cuh?)$/ && $0 ~ /^[ \t]*(\/\*|\*)/)) continue
    refuse(path, "no such file or folder")
  }
}
END { exit bad }' "$tree" $files >&2
echo "case ok: paths"
