#!/bin/sh
# tests/bench/data_test.sh TENON: the frame of data.sh, with a part whose figures are known: the median, the least and the
# greatest of three rounds, ratios of the rounds, and a page that keeps the sections of other parts.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tenon=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/parts"
cat >"$scratch/parts/known.sh" <<END
# tests/bench/data/known.sh: known figures.
# A second line.
set -eu
. "$here/data/rounds.sh"
ours() { echo "time \$((i * 2))"; echo "rate \$((i * 100))"; }
peer() { echo "time 8"; echo "rate 50"; }
alternate ours peer
row "to wait" time s less "nothing 1.0"
row "to do" rate "" more "nothing 1.0"
END
printf '# A page\n\n## aside\n\nkept\n\n## known\n\nold\n' >"$scratch/page.md"
sh "$here/data.sh" --build "$(dirname "$tenon")/.." --parts "$scratch/parts" --rounds 3 --output "$scratch/page.md" known 2>/dev/null

expect() {
  grep -qxF -- "$1" "$scratch/page.md" || { echo "data_test.sh: the page has no line '$1':" >&2; cat "$scratch/page.md" >&2; exit 1; }
}
expect '| to wait | 4.00 s (2.00 to 6.00) | nothing 1.0 | 8.00 s (8.00 to 8.00) | 2.00 (1.33 to 4.00) |'
expect '| to do | 200 (100 to 300) | nothing 1.0 | 50.0 (50.0 to 50.0) | 4.00 (2.00 to 6.00) |'
expect 'known figures.'
expect 'A second line.'
expect kept
if grep -qx old "$scratch/page.md"; then echo "data_test.sh: the old section is still there" >&2; exit 1; fi
if sh "$here/data.sh" --build "$(dirname "$tenon")/.." --parts "$scratch/parts" missing 2>"$scratch/error"; then exit 1; fi
grep -q "there is no part 'missing'" "$scratch/error"
