#!/bin/sh
# tests/bench/zoo.sh [OPTION]... MODEL...: milliseconds of models of the zoo, by Tenon and by PyTorch, onnxruntime and OpenVINO, in
# turn: inference of one sample and of 16, and a training step of 16. Prints a row of a table for each: the median of
# the rounds of Tenon, of each peer, and the ratio to the best peer. This is a measurement, not a test.
#
#   --python PY       a Python with the packages of compare_zoo.py, onnxruntime and openvino (python3)
#   --build DIR       build folder of Tenon (build)
#   --threads N       threads of every framework (all processors)
#   --rounds N        processes of each framework for each number (3)
#   --steps N         steps of a process with a batch of 16 (10); four times as many with one sample
#   --peers LIST      variants of zoo_peer.py that are measured
#   --report FILE     also writes the table to FILE, as docs/results/zoo_times.md
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/machine.sh"
python=python3 build=$root/build threads=$(nproc) rounds=3 steps=10 peers="eager channels_last compile onnxruntime openvino"
models='' report=/dev/null
while [ $# -gt 0 ]; do
  case $1 in
  --*) [ $# -gt 1 ] || usage "$1 needs a value" ;;
  esac
  case $1 in
  --python) python=$2 ;;
  --build) build=$2 ;;
  --threads) threads=$2 ;;
  --rounds) rounds=$2 ;;
  --steps) steps=$2 ;;
  --peers) peers=$2 ;;
  --report) report=$2 ;;
  --*) usage "unknown option $1" ;;
  *)
    models="$models $1"
    shift
    continue
    ;;
  esac
  shift 2
done
[ -n "$models" ] || usage "expected names of models"
tenon=$build/tools/tenon
[ -x "$tenon" ] || usage "there is no $tenon: build Tenon, or set --build"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMP_NUM_THREADS="$threads"

median() { sort -g "$1" | awk '{ v[NR] = $1 } END { if (NR) printf "%.2f", v[int((NR + 1) / 2)] }'; }

# A model with the optimizer of zoo_peer.py in place of its recipe.
with_peers_optimizer() {
  awk '/^\[/ { left_out = /^\[(optimizer|group|schedule)/ } !left_out'
  printf '\n[optimizer]\ntype = sgd\nlr = 1e-4\nmomentum = 0.9\n'
}

# $1: model, $2: mode, $3: batch. A peer that cannot run the model is left out.
measure() {
  rm -f "$scratch"/*.ms
  steps_now=$steps
  [ "$3" != 1 ] || steps_now=$((steps * 4)) # A step of one sample is short, and its times vary more.
  for _ in $(seq "$rounds"); do
    "$tenon" bench "$scratch/$1.ini" --mode "$2" --batch "$3" --steps "$steps_now" --rounds 1 --threads "$threads" --json \
      --quiet --set data.source=random 2>"$scratch/error" | sed -n 's/.*"ms": \[[^,]*, \([0-9.]*\),.*/\1/p' >>"$scratch/tenon.ms"
    for peer in $peers; do
      case $2,$peer in train,onnxruntime | train,openvino) continue ;; esac
      "$python" "$here/zoo_peer.py" "$1" --mode "$2" --batch "$3" --variant "$peer" --threads "$threads" --steps "$steps_now" 2>"$scratch/error" |
        sed -n 's/.*"ms": \([0-9.]*\).*/\1/p' >>"$scratch/$peer.ms"
    done
  done
}

row() {
  ours=$(median "$scratch/tenon.ms")
  printf '| %s | %s %s | %s |' "$1" "$2" "$3" "$ours"
  for peer in $peers; do
    [ -s "$scratch/$peer.ms" ] && median "$scratch/$peer.ms" >"$scratch/$peer.median" || : >"$scratch/$peer.median"
    printf ' %s |' "$(cat "$scratch/$peer.median")"
  done
  best=$(for peer in $peers; do cat "$scratch/$peer.median" && echo; done | sed '/^$/d' | sort -g | head -n 1)
  echo "$ours $best" | awk '{ if (NF == 2) printf " %.2f |\n", $1 / $2; else print " |" }'
}

# The first lines of the page.
head_of_page() {
  cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
  versions=$("$python" -c 'import onnxruntime, openvino, torch
print(f"PyTorch {torch.__version__}, onnxruntime {onnxruntime.__version__}, OpenVINO {openvino.__version__.split(chr(45))[0]}")')
  printf '# Times of the zoo\n\n<!-- Written by `tests/bench/zoo.sh --report`. -->\n\n'
  printf '%s, Tenon %s (%s), %s, %s processors. %s.\n' "$(date -u +%Y-%m-%d)" "$("$tenon" --version | cut -d' ' -f2)" \
    "$(git -C "$root" rev-parse --short HEAD)" "$cpu" "$(nproc)" "$versions"
  printf 'Milliseconds of inference, and of a training step with SGD and momentum, in f32: medians of %s processes of %s steps (four times as many with one sample) with %s threads. ' \
    "$rounds" "$steps" "$threads"
  printf '`ratio` is that of Tenon to the best peer; below 1 Tenon is faster.\n\n'
}

table() {
  printf '| model | work and batch | Tenon |'
  for peer in $peers; do printf ' %s |' "$peer"; done
  printf ' ratio |\n|---|---|---|'
  for peer in $peers; do printf -- '---|'; done
  printf -- '---|\n'
  for model in $models; do
    "$tenon" init "zoo:$model" --output "$scratch/recipe.ini" >"$scratch/said"
    with_peers_optimizer <"$scratch/recipe.ini" >"$scratch/$model.ini"
    rm "$scratch/recipe.ini"
    for work in "infer 1" "infer 16" "train 16"; do
      # shellcheck disable=SC2086 # two words
      measure "$model" $work
      # shellcheck disable=SC2086
      row "$model" $work
    done
  done
}

{ head_of_page && table; } | tee "$report"
