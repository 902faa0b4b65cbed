#!/bin/sh
# tests/bench/generate.sh RUN SIZE [TENON]: tokens per second of `tenon generate` and of a loop in PyTorch that keeps keys
# and values (generate_peer.py), in turn. RUN is a run folder of the model, SIZE its name there: char or gpt2. Prints
# min, median and max of the rounds, and of the ratios. This is a measurement, not a test: it fails only if a program
# fails.
#   ROUNDS=5   TOKENS=56   PYTHON=python3 (with torch)   PEER="--threads 1 --compile"   TENON_OPTIONS="--set ..."
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
run=$(realpath "$1") size=$2
tenon=$(realpath "${3:-$root/build/tools/tenon}")
python=${PYTHON:-python3} tokens=${TOKENS:-56} rounds=${ROUNDS:-5}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

field() { sed 's/.*"'"$1"'": \([0-9.e+-]*\).*/\1/'; }
spread() { # min, median, max of a column
  awk -v column="$1" '{ print $column }' "$scratch/rates" | sort -g |
    awk -v form="$2" '{ v[NR] = $1 } END { printf form " " form " " form "\n", v[1], v[int((NR + 1) / 2)], v[NR] }'
}

: >"$scratch/rates"
for _ in $(seq "$rounds"); do
  # shellcheck disable=SC2086 # options
  "$python" "$root/tests/bench/generate_peer.py" "$size" --tokens "$tokens" ${PEER:-} >"$scratch/peer" 2>/dev/null
  # shellcheck disable=SC2086
  "$tenon" generate "$run" --prompt-tokens "1 2 3 4 5 6" --tokens "$tokens" --json --quiet ${TENON_OPTIONS:-} >"$scratch/ours"
  peer=$(field tokens_per_s <"$scratch/peer") ours=$(field tokens_per_s <"$scratch/ours")
  echo "$peer $ours" | awk '{ print $1, $2, $2 / $1 }' >>"$scratch/rates"
done
sed 's/.*"peer": "\([^"]*\)".*/\1/' "$scratch/peer" | tr '\n' ' '
echo "$size, $tokens tokens, $rounds rounds: min median max"
echo "  peer    $(spread 1 %.1f) a second"
echo "  tenon   $(spread 2 %.1f) a second, ratio $(spread 3 %.2f)"
uptime | sed 's/.*load/load/'
