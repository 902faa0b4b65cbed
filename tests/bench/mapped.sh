#!/bin/sh
# tests/bench/mapped.sh [TENON]: opens a safetensors file of 1.2 GB for a prediction, mapped and copied, on cpu and
# onednn, and shows the memory of two processes that hold it at the same time (/proc/PID/smaps_rollup).
# This is a measurement, not a test: it fails only if a program fails, or if the predictions differ.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tenon=$(realpath "${1:-$root/build/tools/tenon}")
rounds=5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

cat >net.ini <<INI
[run]
name = net
output =
[weights]
file = net.safetensors
[model]
inputs = tokens: i32[16]
layers =
    emb:  embedding(250000, 1024)
          mean(axis=1)
    up:   linear(24576, bias=no)
          relu
    down: linear(1000, bias=no)
INI
cc -O2 -I"$root/include" -o hold "$root/tests/bench/mapped.c" -L"$(dirname "$tenon")/.." -ltenon \
  -Wl,-rpath,"$(realpath "$(dirname "$tenon")/..")"
./hold save net.ini net.safetensors
ls -l net.safetensors | awk '{ printf "file %.1f MB\n\n", $5 / 1e6 }'

median() { sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"; }
for backend in cpu onednn,cpu; do
  for map in no yes; do
    : >open.ms
    for i in $(seq $rounds); do ./hold time net.ini $backend $map >>open.ms; done
    ./hold predict net.ini $backend $map >"$backend-$map.out"
    echo "$backend, map = $map: opened in $(median open.ms) ms"
    # two processes at once
    for i in 1 2; do
      mkfifo "end$i" "ready$i"
      ./hold hold net.ini $backend $map <"end$i" >"ready$i" &
      eval "p$i=$!"
      eval "exec $((i + 2))>end$i"
      read -r _ <"ready$i"
    done
    for p in "$p1" "$p2"; do
      awk -v p="$p" '/^Rss|^Pss:|^Shared|^Private/ { n[$1] += $2 } END { printf "  process: RSS %.0f MB, PSS %.0f MB, shared %.0f MB, private %.0f MB\n", n["Rss:"] / 1e3, n["Pss:"] / 1e3, (n["Shared_Clean:"] + n["Shared_Dirty:"]) / 1e3, (n["Private_Clean:"] + n["Private_Dirty:"]) / 1e3 }' "/proc/$p/smaps_rollup"
    done
    exec 3>&- 4>&-
    wait
    rm end1 end2 ready1 ready2
  done
  cmp "$backend-no.out" "$backend-yes.out"
done
