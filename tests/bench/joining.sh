#!/bin/sh
# tests/bench/joining.sh [TENON [LAUNCHES]]: starts trainings by `tenon launch -n 4`, alone and beside a program of another
# user that listens on as many ports as it can (squatter.py), in turns of 10. Prints the median times of both, and what the
# other program has received: connections, bytes, tokens. Root only, since the other program has another user. All run in a
# network namespace of their own, where no other program connects.
# This is a measurement, not a test: it fails only if a training fails, or something of a job was received.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tenon=$(realpath "${1:-$root/build/tools/tenon}")
launches=${2:-100}
[ "$(id -u)" = 0 ] || { echo "joining.sh: needs root: the listener has another user" >&2 && exit 77; }
if [ -z "${JOINING_ALONE:-}" ]; then
  export JOINING_ALONE=yes
  exec unshare --net sh -c 'ip link set lo up && exec sh "$0" "$@"' "$0" "$@"
fi
scratch=$(mktemp -d)
squatter=
trap '[ -z "$squatter" ] || kill "$squatter"; rm -rf "$scratch"' EXIT
cd "$scratch"
sed -e 's/^source = .*/source = random\nshape = 1, 28, 28\nclasses = 10\nsamples = 64/' -e '/^folder/d' -e '/^transforms/d' \
  "$root/docs/examples/mnist_mlp.ini" >mlp.ini

# Trainings of one turn; $1: the file for their times in ms.
train() {
  for i in 1 2 3 4 5 6 7 8 9 10; do
    start=$(date +%s%N)
    timeout 120 "$tenon" launch -n 4 mlp.ini --quiet --set run.output= --set run.fast_dev_run=yes \
      --set run.observers=-progress --set run.threads=1 >log 2>&1 || { cat log && exit 1; }
    echo "$((($(date +%s%N) - start) / 10000))" | sed 's/\(..\)$/.\1/' >>"$1"
  done
}

median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

train warm
: >received
for turn in $(seq $((launches / 10))); do
  train alone
  mkfifo "ready$turn"
  python3 "$root/tests/bench/squatter.py" "turn$turn" >"ready$turn" &
  squatter=$!
  read -r word <"ready$turn"
  [ "$word" = ready ]
  train beside
  kill "$squatter"
  wait "$squatter" || true
  squatter=
  cat "turn$turn" >>received
done
echo "start and end of a training of 4 processes, median of $(wc -l <alone): $(median alone) ms alone, $(median beside) ms beside"
awk '{ c += $2; b += $3; if ($4 > m) m = $4; t += $5 }
  END { printf "%d ports, %d connections, %d bytes, at most %d on one, %d tokens\n", $1, c, b, m, t; exit b > 0 }' received
