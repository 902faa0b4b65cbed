#!/bin/sh
# tests/bench/data.sh [OPTION]... [PART...]: measures sources and loaders of data beside the usual tools, on one machine in turn,
# and writes the page of results. Parts are the scripts of tests/bench/data: csv, shards, tokens, images; without a name,
# all that are there. Sections of other parts on the page are kept.
#
#   --build DIR      build folder of Tenon (build)
#   --python PY      a Python with the packages of the peers (python3)
#   --rounds N       measurements of each side (5)
#   --scale PERCENT  size of the data, relative to that of the page (100)
#   --files DIR      folder for data that are made once and kept (a temporary one)
#   --parts DIR      folder of the scripts (tests/bench/data)
#   --output FILE    the page (docs/results/data.md)
#
# This is a measurement, not a test: it fails only if a program fails.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/machine.sh"
build=$root/build python=python3 rounds=5 scale=100 files= parts=$here/data output=$root/docs/results/data.md wanted=
while [ $# -gt 0 ]; do
  case $1 in
  --*) [ $# -gt 1 ] || usage "$1 needs a value" ;;
  esac
  case $1 in
  --build) build=$2 ;;
  --python) python=$2 ;;
  --rounds) rounds=$2 ;;
  --scale) scale=$2 ;;
  --files) files=$2 ;;
  --parts) parts=$2 ;;
  --output) output=$2 ;;
  --*) usage "unknown option $1" ;;
  *)
    [ -e "$parts/$1.sh" ] || usage "there is no part '$1' in $parts"
    wanted="$wanted $1"
    shift
    continue
    ;;
  esac
  shift 2
done
tenon=$build/tools/tenon
[ -x "$tenon" ] || usage "there is no $tenon: build Tenon, or set --build"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
if [ -z "$wanted" ]; then
  for part in csv shards tokens images; do
    [ ! -e "$parts/$part.sh" ] || wanted="$wanted $part"
  done
fi

# "Intel Xeon, 2 processors, 7 GiB, Linux 6.1.0" from the members of machine.sh
describe_machine() {
  machine "$root" "$tenon" "$(nproc)" | sed 's/.*"date": "\([^"]*\)".*"cpu": "\([^"]*\)", "processors": \([0-9]*\).*"memory_mib": \([0-9]*\), "kernel": "\([^"]*\)".*"tenon": "\([^"]*\)", "commit": "\([^"]*\)".*/\1, Tenon \6 (\7), \2, \3 processors, \4 MiB, Linux \5/'
}

# The section of a part. $1: part
write_section() {
  mkdir -p "$scratch/$1" "${files:-$scratch/files}"
  ROOT=$root TENON=$(realpath "$tenon") PYTHON=$python ROUNDS=$rounds SCALE=$scale SCRATCH=$scratch/$1 \
    FILES=$(realpath "${files:-$scratch/files}") sh "$parts/$1.sh" >"$scratch/rows"
  printf '## %s\n\n' "$1"
  sed -n '1,/^[^#]/s/^#  *//p' "$parts/$1.sh" | sed "1s/^tests.bench.data.$1.sh: //"
  printf '\n%s, %s rounds, load %s.\n\n' "$(describe_machine)" "$rounds" "$(cut -d' ' -f1 /proc/loadavg)"
  echo "| what | Tenon | peer | its figure | ratio |"
  echo "|---|---|---|---|---|"
  cat "$scratch/rows"
  echo
}

write_head() {
  cat <<END
# Reading data beside the usual tools

Written by \`tests/bench/data.sh\`, which runs Tenon and its peer in turn on the same machine. A figure is the median of the
rounds, with the least and the greatest in brackets. A ratio compares figures of one round; above 1 Tenon is better: faster,
or smaller where the figure is memory. Each section says where and when it was measured.

END
}

# Replaces a section of the page, or adds it. $1: part
put_section() {
  sections=$scratch/sections
  rm -rf "$sections"
  mkdir "$sections"
  [ ! -e "$output" ] || awk -v folder="$sections" '/^## / { file = folder "/" $2 } file { print >file }' "$output"
  cp "$scratch/section" "$sections/$1"
  { write_head && cat "$sections"/*; } | cat -s | sed '${/^$/d}' >"$scratch/page"
  cp "$scratch/page" "$output"
}

for part in $wanted; do
  echo "data.sh: $part" >&2
  write_section "$part" >"$scratch/section"
  put_section "$part"
done
