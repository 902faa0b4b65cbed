# tests/bench/data/shards.sh: tar archives of JPEGs, as WebDataset writes them, as shuffled batches of 128 pictures. `small` are
# the pictures of CIFAR-10 (32 x 32); `large` are pictures of 400 x 300, which become 224 x 224. Both decode and resize on as many
# workers as there are processors. The peer shuffles in a buffer of 1000 samples, and gives tensors of PyTorch.
set -eu
. "$ROOT/tests/bench/data/rounds.sh"
here=$ROOT/tests/bench/data
workers=$(nproc)
cifar=$ROOT/../shared/data/cifar10-jpeg.tar.gz

version=$("$PYTHON" "$here/shards_peer.py" versions)
for size in small large; do
  archives=$FILES/shards_${size}_$SCALE
  [ -e "$archives" ] || "$PYTHON" "$here/shards_make.py" "$size" "$archives" "$SCALE" "$cifar"
  steps=$(cat "$archives/batches")
  ours() {
    "$TENON" bench "$here/shards_$size.ini" --mode load --steps "$steps" --rounds 1 --json --quiet \
      --set "data.files=$archives/{0..7}.tar" --set "data.workers=$workers" --set data.cache=off >"$SCRATCH/bench.json"
    echo "first $(number_of first_batch_s <"$SCRATCH/bench.json")"
    echo "rate $(sed 's/.*"ms": \[\([0-9.e+-]*\).*/\1/' "$SCRATCH/bench.json" | awk '{ print 128 / $1 * 1000 }')"
  }
  peer() { "$PYTHON" "$here/shards_peer.py" "$size" "$archives" "$workers" "$steps"; }
  alternate ours peer
  row "$size: to the first batch" first s less "$version"
  row "$size: pictures a second" rate "" more "$version"
done
