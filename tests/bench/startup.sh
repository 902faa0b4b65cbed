#!/bin/sh
# tests/bench/startup.sh [TENON]: measures the start of the program; medians of 20 in milliseconds:
#   plan         `tenon plan` of ResNet-18, the whole process
#   first step   from the start of the process to the end of the first training step of the MLP on random
#                data; `step` is the time that the program reports, which begins when it opens the configuration
# This is a measurement, not a test: it fails only if the program fails.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tenon=$(realpath "${1:-$root/build/tools/tenon}")
rounds=20
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# mnist_mlp.ini with random data instead of the files
sed -e 's/^source = .*/source = random\nshape = 1, 28, 28\nclasses = 10\nsamples = 640/' -e '/^folder/d' -e '/^transforms/d' \
  "$root/docs/examples/mnist_mlp.ini" >mlp.ini

milliseconds() { echo "$((($2 - $1) / 10000))" | sed 's/\(..\)$/.\1/; s/^\./0./'; }
median() { sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"; }

for i in $(seq $rounds); do
  start=$(date +%s%N)
  "$tenon" plan "$root/docs/examples/imagenet_resnet18.ini" >plan.txt
  milliseconds "$start" "$(date +%s%N)" >>plan.ms
  start=$(date +%s%N)
  "$tenon" train mlp.ini --quiet --set run.output= --set run.fast_dev_run=yes --set run.observers=-progress --json >step.json
  milliseconds "$start" "$(date +%s%N)" >>process.ms
  sed 's/.*"first_step_s": \([0-9.e-]*\).*/\1/' step.json | awk '{ printf "%.2f\n", $1 * 1000 }' >>step.ms
done
echo "plan        $(median plan.ms) ms"
echo "first step  $(median process.ms) ms for the whole process, with a batch of validation; step $(median step.ms) ms"
