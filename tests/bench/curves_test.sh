#!/bin/sh
# tests/bench/curves_test.sh DATA TENON CURVES: runs curves.sh for a few steps of a model and writes its page.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$(dirname "$2")/.." && pwd)
curves=$(realpath "$3")
[ -e "$1/mnist" ] || { echo "skipped: there is no $1/mnist" && exit 77; }
data=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
run() { "$here/curves.sh" --build "$build" --data "$data" "$@" >out 2>err; }
fails() { echo "case failed: $1" && cat out err && exit 1; }

run --steps 3 --runs "cpu bf16" mnist_lenet || fails "two runs"
run --steps 2 --runs cpu mnist_lenet || fails "one of them again"
[ "$(grep -c '"run": ' curves.json)" = 3 ] || fails "a run takes the place of the one of its name"
grep -q 'backend.use=.onednn, cpu. --set precision.policy=bf16' curves.json || fails "the command"
echo "case ok: a run again, beside the others"

"$curves" page curves.json . || fails "a page"
grep -q '^| PyTorch | 500 | ' curves.md || fails "the peer's row"
grep -q '^| PyTorch, twin | 500 | ' curves.md || fails "the twin's row"
grep -q '^| cpu | 2 | ' curves.md || fails "a row"
grep -q '](curves_mnist_lenet.svg)' curves.md || fails "a picture on the page"
[ "$(grep -c '<polyline' curves_mnist_lenet.svg)" = 9 ] || fails "lines of three runs: above, below, in the legend"
echo "case ok: a page with a plot"

run --none x && fails "a wrong option passed"
grep -q 'unknown option --none' err || fails "a wrong option"
run nothing && fails "a wrong model passed"
grep -q "there is no model 'nothing'" err || fails "a wrong model"
run --runs cuda mnist_lenet && fails "a wrong run passed"
grep -q "there is no run 'cuda'" err || fails "a wrong run"
echo "case ok: wrong arguments"
