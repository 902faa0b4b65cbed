#!/bin/sh
# tests/bench/cifar10_resnet9.sh DATA [TENON]: the time of a training step of docs/examples/cifar10_resnet9.ini and of its
# peer in PyTorch, with loading and augmentation. They run in turn, so that a shared machine has a similar load for all.
# DATA is CIFAR-10 as JPEG files in train/ and test/. Prints milliseconds a step, as min, median and max of the rounds:
#   wall   between the steps that count
#   cpu    of all threads and processes, in user and system mode: the difference of a long and a short run
# This is a measurement, not a test: it fails only if a program fails.
#   ROUNDS=3   STEPS=40   SKIPPED=15 (steps before the first that counts)   THREADS=2   PYTHON=python3 (with torch, torchvision)
#   LOADERS="folder memory": loaders of the peer   VARIANT=channels_last: variant of the peer
#   PRECISIONS="fp32 bf16": precisions of Tenon; the peer computes in fp32
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
data=$(realpath "$1")
tenon=$(realpath "${2:-$root/build/tools/tenon}")
threads=${THREADS:-2}
skipped=${SKIPPED:-15}
steps=${STEPS:-40}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/ms"

# Milliseconds a step after the skipped ones, from lines of JSON with the seconds since the start.
wall_ms() {
  grep '"event": "step"' "$1" | sed 's/.*"step": \([0-9]*\), "seconds": \([0-9.]*\),.*/\1 \2/' |
    awk -v skipped="$skipped" '$1 == skipped { from = $2 } $1 > skipped { to = $2; n++ } END { printf "%.1f\n", 1e3 * (to - from) / n }'
}
# Sets `cpu` to the seconds of processor time of all commands so far. In the shell itself, since a subshell counts its own commands only.
read_cpu() {
  times >"$scratch/times"
  cpu=$(sed -n '2s/[ms]/ /gp' "$scratch/times" | awk '{ print 60 * $1 + $2 + 60 * $3 + $4 }')
}
ours() { # $1: precision, $2: steps
  rm -rf "$scratch/runs"
  "$tenon" train "$root/docs/examples/cifar10_resnet9.ini" --quiet --output "$scratch/runs" --set "data.folder=$data" \
    --set "run.threads=$threads" --set "run.max_steps=$2" --set data.valid.epoch=128 --set optimizer.lr=0.01 \
    --set "precision.policy=$1" >/dev/null
  mv "$scratch/runs/cifar10_resnet9/metrics.jsonl" "$scratch/lines"
}
peers() { # $1: loader, $2: steps
  "${PYTHON:-python3}" "$root/tests/bench/cifar10_resnet9_peer.py" "$data" --loader "$1" --threads "$threads" \
    --variant "${VARIANT:-channels_last}" --max-steps "$2" >"$scratch/lines" 2>"$scratch/err" || { cat "$scratch/err" >&2 && exit 1; }
}
measure() { # $1: ours or peers, $2: its precision or loader
  read_cpu && start=$cpu
  "$1" "$2" "$skipped"
  read_cpu && middle=$cpu
  "$1" "$2" $((skipped + steps))
  read_cpu
  wall_ms "$scratch/lines" >>"$scratch/ms/$1-$2-wall"
  echo "$start $middle $cpu $steps" | awk '{ printf "%.1f\n", 1e3 * ($3 - 2 * $2 + $1) / $4 }' >>"$scratch/ms/$1-$2-cpu"
}
spread() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[1], NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[NR] }'; }

for _ in $(seq "${ROUNDS:-3}"); do
  for precision in ${PRECISIONS:-fp32 bf16}; do measure ours "$precision"; done
  for loader in ${LOADERS:-folder memory}; do measure peers "$loader"; done
done
for run in "$scratch"/ms/*; do
  echo "$(basename "$run") $(spread "$run")"
done
uptime | sed 's/.*load/load/'
