#!/bin/sh
# tests/bench/mpi_ddp.sh [TENON]: the time of a training step of several processes, by mpirun with the communicator mpi, and of
# PyTorch's DistributedDataParallel with gloo. Both have the same model, batch and threads; they run in turn, so that a shared machine
# has a similar load for both. Prints, for each model and framework, the milliseconds of a step: min, median and max over
# all rounds, and the ratio of the medians. This is a measurement, not a test: it fails only if a program fails.
#   PROCESSES=2   THREADS=1   ROUNDS=3   STEPS=20   SKIPPED=5   MODELS="gpt_char resnet18_32"   COMMUNICATOR=mpi
#   BATCHES="gpt_char=24 resnet18_32=64" (of all processes together)   BACKEND=onednn   PYTHON=python3 (with torch)
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tenon=$(realpath "${1:-$root/build/tools/tenon}")
n=${PROCESSES:-2} threads=${THREADS:-1} steps=${STEPS:-20} skipped=${SKIPPED:-5}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Open MPI binds a process to one core, where its two threads compete; the peer is not bound.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none

batch_of() { # $1: model
  for pair in ${BATCHES:-gpt_char=24 resnet18_32=64}; do [ "${pair%%=*}" != "$1" ] || echo "${pair#*=}"; done
}
run_or_show() { # $1: file of the output, the rest: a command
  log=$1
  shift
  "$@" >"$log" 2>&1 || { cat "$log" >&2 && exit 1; }
}
# The differences between the times of steps after the skipped ones.
ours() { # $1: model, $2: batch of all processes
  rm -rf "$scratch/runs"
  run_or_show "$scratch/log" mpirun -n "$n" "$tenon" train "$root/tests/bench/models/$1.ini" --quiet --output "$scratch/runs" \
    --set "data.batch=$2" --set "data.samples=$((4 * $2))" --set run.epochs=1000 --set "run.threads=$threads" \
    --set "run.max_steps=$((skipped + steps))" --set "backend.use=${BACKEND:-onednn}" --set "distributed.communicator=${COMMUNICATOR:-mpi}"
  grep '"event": "step"' "$scratch/runs/bench_$1/metrics.jsonl" | sed 's/.*"step": \([0-9]*\), "seconds": \([0-9.]*\),.*/\1 \2/' |
    awk -v skipped="$skipped" '$1 > skipped { printf "%.2f\n", 1e3 * ($2 - before) } { before = $2 }' >>"$scratch/$1-tenon"
}
peers() { # $1: model, $2: batch of all processes
  port=$((20000 + $$ % 10000))
  for rank in $(seq 0 $((n - 1))); do
    RANK=$rank WORLD_SIZE=$n MASTER_ADDR=127.0.0.1 MASTER_PORT=$port OMP_NUM_THREADS=$threads "${PYTHON:-python3}" \
      "$root/tests/bench/ddp_peer.py" "$1" --batch $(($2 / n)) --steps "$steps" --skip "$skipped" --threads "$threads" \
      --channels-last >"$scratch/out.$rank" 2>"$scratch/err.$rank" &
    pids="${pids:-} $!"
  done
  for pid in $pids; do wait "$pid" || { cat "$scratch"/err.* >&2 && exit 1; }; done
  pids=
  cat "$scratch/out.0" >>"$scratch/$1-ddp"
}
spread() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[1], NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2, v[NR] }'; }

for _ in $(seq "${ROUNDS:-3}"); do
  for model in ${MODELS:-gpt_char resnet18_32}; do
    ours "$model" "$(batch_of "$model")"
    peers "$model" "$(batch_of "$model")"
  done
done
for model in ${MODELS:-gpt_char resnet18_32}; do
  echo "$model tenon $(spread "$scratch/$model-tenon")"
  echo "$model ddp $(spread "$scratch/$model-ddp")"
  echo "$(spread "$scratch/$model-tenon") $(spread "$scratch/$model-ddp")" | awk -v m="$model" '{ printf "%s ratio %.2f\n", m, $5 / $2 }'
done
uptime | sed 's/.*load/load/'
