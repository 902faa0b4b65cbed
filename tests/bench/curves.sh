#!/bin/sh
# tests/bench/curves.sh [OPTION]... [MODEL...]: trains the models of tests/golden/curves, or those that are named, with
# Tenon's CPU backends and precisions, and collects their loss curves and those of PyTorch.
#
#   --data DIR     folder with mnist/, text/tinyshakespeare.txt and cifar10-jpeg.tar.gz (../shared/data)
#   --build DIR    build folder of Tenon (build)
#   --runs NAMES   some of cpu, onednn and bf16; the output keeps its other runs (all)
#   --steps N      steps, at most the 500 of the configurations (500)
#   --threads N    threads (all processors)
#   --output FILE  result, updated after each run (curves.json)
#
# DIR/tests/bench/bench_curves writes the page of the result.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$here/machine.sh"
data=$root/../shared/data build=$root/build runs="cpu onednn bf16" steps= threads=$(nproc) output=curves.json models=
while [ $# -gt 0 ]; do
  case $1 in
  --*) [ $# -gt 1 ] || usage "$1 needs a value" ;;
  esac
  case $1 in
  --data) data=$2 ;;
  --build) build=$2 ;;
  --runs) runs=$2 ;;
  --steps) steps=$2 ;;
  --threads) threads=$2 ;;
  --output) output=$2 ;;
  --*) usage "unknown option $1" ;;
  *)
    [ -e "$root/tests/golden/curves/$1.ini" ] || usage "there is no model '$1' in tests/golden/curves"
    models="$models $1"
    shift
    continue
    ;;
  esac
  shift 2
done
tenon=$build/tools/tenon
curves=$build/tests/bench/bench_curves
for program in "$tenon" "$curves"; do
  [ -x "$program" ] || usage "there is no $program: build Tenon with its tests, or set --build"
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The setting with the location of a model's samples.
samples() {
  case $1 in
  mnist_lenet) echo "data.folder=$data/mnist" ;;
  shakespeare_char) echo "data.file=$data/text/tinyshakespeare.txt" ;;
  cifar10_resnet18)
    [ -d "$scratch/cifar10" ] || { mkdir "$scratch/cifar10" && tar -xzf "$data/cifar10-jpeg.tar.gz" -C "$scratch/cifar10"; }
    echo "data.folder=$scratch/cifar10"
    ;;
  esac
}

# $1: model, $2: name of the run on the page, $3: backends, $4: precision
train() {
  echo "$1: $2" >&2
  set -- "$@" "$(samples "$1")"
  "$tenon" train "$root/tests/golden/curves/$1.ini" --quiet --output "$scratch/runs" --set "run.threads=$threads" \
    ${steps:+--set "run.max_steps=$steps"} --set "backend.use=$3" --set "precision.policy=$4" --set "$5" >&2
  printf '{"model": "%s", "run": "%s", %s, "command": "tenon train tests/golden/curves/%s.ini --set backend.use=%s --set precision.policy=%s"}' \
    "$1" "$2" "$(machine "$root" "$tenon" "$threads")" "$1" "'$3'" "$4" |
    "$curves" add "$output" "$scratch/runs/$1/metrics.jsonl"
  rm -rf "$scratch/runs"
}

[ -n "$models" ] || models="mnist_lenet shakespeare_char cifar10_resnet18"
for model in $models; do
  printf '{"model": "%s", "run": "PyTorch"}' "$model" | "$curves" add "$output" "$root/tests/golden/curves/$model.json"
  for run in $runs; do
    case $run in
    cpu) train "$model" "cpu" cpu fp32 ;;
    onednn) train "$model" "onednn" "onednn, cpu" fp32 ;;
    bf16) train "$model" "onednn, bf16" "onednn, cpu" bf16 ;;
    *) usage "there is no run '$run', expected cpu, onednn or bf16" ;;
    esac
  done
done
