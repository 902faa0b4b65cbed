#!/bin/sh
# tests/bench/loader.sh DATA [TENON]: measures pictures per second of the loader and of torchvision's. They run in
# turn, so that a shared machine has a similar load for both. DATA has train/ with a folder of pictures per class:
# CIFAR-10 for the recipes cifar224 and cifar32, photographs for imagenet. Prints per recipe, as min, median and max
# of the rounds, the rates
#   first   of the first batches of the first epoch, where every picture is read and decoded
#   later   after the pictures that fit into memory are decoded
# and their ratios to the peer's rate of the same round. This is a measurement, not a test: it fails only if a program
# fails.
#   RECIPES="cifar224 cifar32"   ROUNDS=5   STEPS=40   WORKERS=2   PYTHON=python3 (with torch and torchvision)
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
data=$(realpath "$1")
tenon=$(realpath "${2:-$root/build/tools/tenon}")
python=${PYTHON:-python3}
workers=${WORKERS:-2}
rounds=${ROUNDS:-5}
steps=${STEPS:-40}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

field() { sed 's/.*"'"$1"'": \([0-9.e+-]*\).*/\1/'; }
spread() { # min, median, max of a column
  awk -v column="$1" '{ print $column }' "$2" | sort -g |
    awk -v form="$3" '{ v[NR] = $1 } END { printf form " " form " " form, v[1], v[int((NR + 1) / 2)], v[NR] }'
}

for recipe in ${RECIPES:-cifar224 cifar32}; do
  : >"$scratch/rates"
  for _ in $(seq "$rounds"); do
    "$python" "$root/tests/bench/loader_peer.py" "$data/train" "$recipe" --workers "$workers" --steps "$steps" >"$scratch/peer" 2>/dev/null
    "$tenon" bench "$root/tests/bench/loader_$recipe.ini" --mode load --steps "$steps" --rounds 9 --json --quiet \
      --set "data.folder=$data" --set "data.workers=$workers" >"$scratch/ours"
    peer=$(field per_s <"$scratch/peer") first=$(field first_per_s <"$scratch/ours") later=$(field per_s <"$scratch/ours")
    echo "$peer $first $later" | awk '{ print $1, $2, $3, $2 / $1, $3 / $1 }' >>"$scratch/rates"
  done
  sed 's/.*"peer": "\([^"]*\)".*/\1/' "$scratch/peer" | tr '\n' ' '
  echo "$recipe, $workers workers, $rounds rounds: min median max"
  echo "  peer          $(spread 1 "$scratch/rates" %.0f) a second"
  echo "  first         $(spread 2 "$scratch/rates" %.0f) a second, ratio $(spread 4 "$scratch/rates" %.2f)"
  echo "  later         $(spread 3 "$scratch/rates" %.0f) a second, ratio $(spread 5 "$scratch/rates" %.2f)"
done
uptime | sed 's/.*load/load/'
