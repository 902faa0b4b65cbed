#!/bin/sh
# tests/bench/cpu.sh [OPTION]... [WORK...]: measures Tenon and its peers on the same cores, one after the other in
# each round, for the works of works.txt or those that are named.
#
#   --peers DIR       folder with torch_peer.py and ort_peer.py; without it, only Tenon is measured. layers_peer.py
#                     beside this script is PyTorch's for the models that it names.
#   --python PY       a Python with the packages of the peers (python3)
#   --build DIR       build folder of Tenon (build)
#   --backend NAMES   value of [backend] use: the first available one is used ("onednn, cpu")
#   --threads N       threads of every framework (all processors)
#   --beside N        N busy processes run during all measurements (0)
#   --rounds N        processes of each framework per work (5)
#   --effort PERCENT  steps per round, relative to works.txt (100)
#   --choices FILE    reads PyTorch's fastest variant from an earlier result, or from the FILE.lines of an interrupted
#                     one, instead of measuring all variants
#   --output FILE     result (cpu.json); FILE.lines has the measurements so far
#   --add yes         keeps the other works of the output
#   --works FILE      another table of works
#
# results.c defines the figures. DIR/tests/bench/bench_page writes the page of the result.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/machine.sh"
peers= python=python3 build=$root/build backend="onednn, cpu" threads=$(nproc) rounds=5 effort=100 choices= beside=0
output=cpu.json add=no works=$here/works.txt wanted=
while [ $# -gt 0 ]; do
  case $1 in
  --*) [ $# -gt 1 ] || usage "$1 needs a value" ;;
  esac
  case $1 in
  --peers) peers=$2 ;;
  --python) python=$2 ;;
  --build) build=$2 ;;
  --backend) backend=$2 ;;
  --threads) threads=$2 ;;
  --beside) beside=$2 ;;
  --rounds) rounds=$2 ;;
  --effort) effort=$2 ;;
  --choices) choices=$2 ;;
  --output) output=$2 ;;
  --add) add=$2 ;;
  --works) works=$2 ;;
  --*) usage "unknown option $1" ;;
  *)
    grep -q "^$1 " "$works" || usage "there is no work '$1' in $works"
    wanted="$wanted $1 "
    shift
    continue
    ;;
  esac
  shift 2
done
tenon=$build/tools/tenon
results=$build/tests/bench/bench_results
for program in "$tenon" "$results"; do
  [ -x "$program" ] || usage "there is no $program: build Tenon with its tests, or set --build"
done
lines=$output.lines
scratch=$(mktemp -d)
others=
finish() {
  # shellcheck disable=SC2086
  [ -z "$others" ] || kill $others
  rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT TERM
export OMP_NUM_THREADS="$threads"

say() { printf '%s\n' "$*" >&2; }
milliseconds() { echo "$((($2 - $1) / 1000))" | awk '{ printf "%.3f", $1 / 1000 }'; }

# A line of FILE.lines. $1: phase, $2: framework, $3: options of the peer, $4: result, a JSON object
record() {
  printf '{"work": "%s", "phase": "%s", "who": "%s", "args": "%s", "load": %s, "result": %s}\n' \
    "$work" "$1" "$2" "$3" "$(cut -d' ' -f1 /proc/loadavg)" "$4" >>"$lines"
}

# Records the reason for which a framework was not measured: its last line on stderr. $1: framework
skip() {
  reason=$(tail -n 1 "$scratch/err" | tr -d '\\"' | tr '\t' ' ')
  grep -q "^{\"work\": \"$work\", \"phase\": \"skipped\", \"who\": \"$1\"" "$lines" && return 0 # already recorded
  say "$work: $1 is skipped: ${reason:-no result}"
  record skipped "$1" "" "{\"reason\": \"${reason:-no result}\"}"
}

# ---- Tenon ----

run_tenon() {
  set -- bench "$here/models/$model.ini" --mode "$1" --batch "$batch" --steps "$steps" --rounds "$inner" --warmup 2 \
    --threads "$threads" --set "backend.use=$backend" --set "precision.policy=$dtype" --quiet --json
  start=$(date +%s%N)
  "$tenon" "$@" >"$scratch/out" 2>"$scratch/err" || { skip tenon; return 0; }
  end=$(date +%s%N)
  result=$(cat "$scratch/out")
  # the time of the process, which ends two steps later
  [ "$mode" != start ] || result=$(printf '%s' "$result" | sed "s/\"ms\": \[[^]]*\]/\"ms\": [$(milliseconds "$start" "$end")]/")
  record round tenon "" "$result"
}

# ---- peers ----

torch_arguments() {
  arguments="--model $model --mode $1 --batch $batch --dtype $dtype --steps $steps"
  [ "$optimizer" = - ] || arguments="$arguments --optimizer $optimizer"
}

torch_script() {
  grep -q "^MODELS = .*\"$model\"" "$here/layers_peer.py" && echo "$here/layers_peer.py" || echo "$peers/torch_peer.py"
}

# The settings of PyTorch, in addition to its variants.
torch_settings() {
  echo "--threads $threads"
  [ "$tries" = small ] || return 0
  echo "--threads $threads --fused"
  [ "$threads" = 1 ] || printf '%s\n' "--threads 1" "--threads 1 --fused"
}

# Runs all variants of PyTorch once. Sets `choice` to the options of the fastest, or to the empty string.
choose_torch() {
  choice=
  [ -z "$choices" ] || choice=$("$results" choice "$choices" "$work") || true
  [ -z "$choice" ] || return 0
  torch_settings >"$scratch/settings"
  while read -r setting; do
    torch_arguments train
    [ "$mode" != infer ] || torch_arguments infer
    # shellcheck disable=SC2086
    "$python" "$(torch_script)" best $arguments $setting --rounds 3 >"$scratch/out" 2>"$scratch/err" </dev/null || true
    grep '^{' "$scratch/err" >"$scratch/variants" || { skip torch; continue; }
    while read -r result; do
      variant=$(printf '%s' "$result" | sed -n 's/.*"variant": "\([^"]*\)".*/\1/p')
      record choice torch "$setting --variant $variant" "$result"
    done <"$scratch/variants"
  done <"$scratch/settings"
  choice=$("$results" choice "$lines" "$work") || true
}

run_torch() {
  [ -n "$choice" ] || return 0
  torch_arguments "$1"
  # shellcheck disable=SC2086
  if "$python" "$(torch_script)" one $arguments $choice --rounds "$inner" --warmup 2 >"$scratch/out" 2>"$scratch/err"; then
    record round torch "$choice" "$(grep '^{' "$scratch/out" | tail -n 1)"
  else
    skip torch
  fi
}

# ONNX Runtime and OpenVINO.
run_served() {
  [ "$mode" = infer ] || return 0
  "$python" "$peers/ort_peer.py" --model "$model" --batch "$batch" --dtype "$dtype" --threads "$threads" --steps "$steps" \
    --rounds "$inner" >"$scratch/out" 2>"$scratch/err" || true
  grep '^{' "$scratch/out" >"$scratch/served" || skip "onnxruntime and openvino"
  while read -r result; do
    record round "$(printf '%s' "$result" | sed -n 's/.*"peer": "\([a-z]*\).*/\1/p')" "" "$result"
  done <"$scratch/served"
}

# ---- all ----

start_others() {
  for other in $(seq "$beside"); do
    (while :; do :; done) </dev/null >/dev/null 2>&1 &
    others="$others $!"
  done
}

measure() {
  choice= as=$mode
  if [ "$mode" = start ]; then
    as=train choice="--threads $threads --variant eager"
  elif [ -n "$peers" ]; then
    choose_torch
  fi
  for round in $(seq "$rounds"); do
    say "$work: round $round of $rounds, load $(cut -d' ' -f1-3 /proc/loadavg)"
    run_tenon "$as"
    [ -n "$peers" ] || continue
    run_torch "$as"
    run_served
  done
}

# The machine and its load. $1: before or after
facts() {
  printf '{"facts": "%s", "load": [%s], "rounds": %s, "beside": %s, %s}\n' "$1" "$(cut -d' ' -f1-3 /proc/loadavg | tr ' ' ',')" \
    "$rounds" "$beside" "$(machine "$root" "$tenon" "$threads")" >>"$lines"
}

[ -n "$peers" ] || say "cpu.sh: no --peers: only Tenon is measured"
[ "$add" = yes ] && [ -e "$lines" ] || : >"$lines"
facts before
start_others
grep -v '^ *\(#\|$\)' "$works" >"$scratch/works"
while read -r work model mode batch dtype steps inner tries optimizer must aim <&3; do
  case "$wanted" in '' | *" $work "*) ;; *) continue ;; esac
  steps=$(((steps * effort + 99) / 100))
  grep -v "^{\"work\": \"$work\"" "$lines" >"$scratch/kept" || true # drop the lines of an earlier run
  cp "$scratch/kept" "$lines"
  printf '{"work": "%s", "phase": "work", "model": "%s", "mode": "%s", "batch": %s, "dtype": "%s", "must": "%s", "aim": "%s"}\n' \
    "$work" "$model" "$mode" "$batch" "$dtype" "$must" "$aim" >>"$lines"
  measure
done 3<"$scratch/works"
facts after
"$results" collect "$lines" "$output"
"$results" table "$output"
