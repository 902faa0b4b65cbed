#!/bin/sh
# tests/bench/weights.sh [BUILD]: what the comparison of weights with their checksum costs. A checkpoint of ResNet-50
# (102 MB) is read by sessions (weights.c) and by `tenon predict`, from the checkpoint's folder, whose state.json records
# the checksum, and from a folder with the same file alone, which is not compared. Smallest of the rounds.
# This is a measurement, not a test: it fails only if a program fails.
#   ROUNDS=15   BACKEND=auto   MODEL=FILE.ini (docs/examples/imagenet_resnet50.ini)   SHAPE="3, 224, 224"
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${1:-$root/build}")
tenon=$build/tools/tenon rounds=${ROUNDS:-15} model=${MODEL:-$root/docs/examples/imagenet_resnet50.ini}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# random data instead of the files
sed -e "s/^source = .*/source = random\nshape = ${SHAPE:-3, 224, 224}\nclasses = ${CLASSES:-1000}\nsamples = 4/" -e '/^folder/d' \
  -e '/^transforms/d' -e '/^             normalize/d' -e 's/^batch = .*/batch = 2/' -e 's/^name = .*/name = weights/' \
  "$model" >"$scratch/model.ini"
cd "$scratch"
"$tenon" train model.ini --quiet --set "backend.use=${BACKEND:-auto}" --set run.max_steps=1 --set run.observers=-progress
mkdir alone
ln runs/weights/checkpoints/last/model.safetensors alone/model.safetensors
"$build/tests/bench/bench_weights" model.ini alone runs/weights/checkpoints/last "$rounds"

# one picture of zeros: a header of 118 bytes behind the first 10
printf '\223NUMPY\001\000v\000%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1, ${SHAPE:-3, 224, 224}), }" >zeros.npy
count=$(echo "${SHAPE:-3, 224, 224}" | awk -F, '{ n = 4; for (i = 1; i <= NF; i++) n *= $i; print n }')
head -c "$count" /dev/zero >>zeros.npy

milliseconds() { # of `tenon predict` with these weights: the smallest of the rounds
  : >ms
  for _ in $(seq "$rounds"); do
    start=$(date +%s%N)
    "$tenon" predict model.ini --weights "$1" --input zeros.npy --quiet >/dev/null
    echo "$((($(date +%s%N) - start) / 1000))" >>ms
  done
  sort -n ms | head -1
}
plain=$(milliseconds alone)
compared=$(milliseconds runs/weights/checkpoints/last)
awk -v a="$plain" -v b="$compared" 'BEGIN { printf "tenon predict: %.1f ms, %.1f ms compared, ratio %.3f\n", a / 1e3, b / 1e3, b / a }'
uptime | sed 's/.*load/load/'
