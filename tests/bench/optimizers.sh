#!/bin/sh
# tests/bench/optimizers.sh [TENON]: the time of an update of GPT-2 124M by adamw, lion and muon, beside PyTorch's and timm's
# best form, in turn, with all threads. Prints the page docs/results/optimizers.md. This is a measurement, not a test: it fails
# only if a program fails.
#   ROUNDS=5   PYTHON=python3 (with torch and timm)
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tenon=$(realpath "${1:-$root/build/tools/tenon}")
python=${PYTHON:-python3} rounds=${ROUNDS:-5} bench=$root/tests/bench
. "$bench/machine.sh"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

spread() { # median, with min and max in brackets, of a column
  awk -v column="$1" '{ print $column }' "$scratch/times" | sort -g |
    awk -v form="$2" '{ v[NR] = $1 } END { printf form " (" form " to " form ")", v[int((NR + 1) / 2)], v[1], v[NR] }'
}

measure() { # $1: name, further arguments: options of the program
  name=$1
  shift
  : >"$scratch/times"
  for _ in $(seq "$rounds"); do
    "$python" "$bench/optimizers_peer.py" "$name" >"$scratch/peer"
    "$tenon" bench "$bench/models/optimizers.ini" --steps 1 --rounds 3 --warmup 1 --ops --json --quiet --set "optimizer.type=$name" "$@" \
      >"$scratch/ours.json"
    echo "$(cut -d' ' -f1 "$scratch/peer") $("$python" "$bench/optimizers_peer.py" - "$scratch/ours.json")" |
      awk '{ print $1, $2, $1 / $2 }' >>"$scratch/times"
  done
  echo "| $name | $(spread 2 %.1f) | $(cut -d' ' -f2- "$scratch/peer") | $(spread 1 %.1f) | $(spread 3 %.2f) |"
}

cat <<END
# The update of GPT-2 124M

Milliseconds of one update of 124,439,808 parameters in f32: the launches of the update, without the gradients. A figure is the median
of $rounds rounds, with the least and the greatest in brackets; a ratio above 1 says that Tenon is faster. Under muon, embeddings and vectors are updated
by adamw. Written by \`tests/bench/optimizers.sh\`.

$(machine "$root" "$tenon" "$(nproc)" | sed 's/.*"date": "\([^"]*\)".*"cpu": "\([^"]*\)", "processors": \([0-9]*\).*"tenon": "\([^"]*\)", "commit": "\([^"]*\)".*/\1, Tenon \4 (\5), \2, \3 processors./')

| optimizer | Tenon | peer | its figure | ratio |
|---|---|---|---|---|
END
measure adamw
measure lion --set optimizer.lr=1e-4
measure muon --set "group.embeddings.match=w*" --set group.embeddings.adamw=yes
