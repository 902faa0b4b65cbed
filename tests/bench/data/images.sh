# tests/bench/data/images.sh: 2000 JPEG files of 500 x 375 pixels in ten folders, as random crops of 224 x 224, mirrored and
# normalized, in batches of 64 with a worker for each processor. `first`: the first batches of the first epoch; `epoch`: all
# later ones, without the memory of decoded pictures (cache = off).
set -eu
. "$ROOT/tests/bench/data/rounds.sh"
photos=$FILES/photos_$SCALE workers=$(nproc)
[ -e "$photos" ] || "$PYTHON" "$ROOT/tests/bench/data/images_files.py" "$photos" "$((20 * SCALE))"
steps=$((20 * SCALE / 64 / 2))

ours() {
  "$TENON" bench "$ROOT/tests/bench/loader_imagenet.ini" --mode load --steps "$steps" --rounds 3 --json --quiet \
    --set "data.folder=$photos" --set "data.workers=$workers" --set data.batch=64 >"$SCRATCH/bench.json"
  echo "first $(number_of first_per_s <"$SCRATCH/bench.json")"
  echo "epoch $(number_of per_s <"$SCRATCH/bench.json")"
}
peer() {
  "$PYTHON" "$ROOT/tests/bench/loader_peer.py" "$photos/train" imagenet --v2 --workers "$workers" --batch 64 --steps "$steps" \
    --rounds 3 2>"$SCRATCH/warnings" >"$SCRATCH/peer.json"
  echo "first $(number_of per_s <"$SCRATCH/peer.json")"
  echo "epoch $(number_of per_s <"$SCRATCH/peer.json")"
}

alternate ours peer
name="$(sed 's/.*"peer": "\([^"]*\)".*/\1/' "$SCRATCH/peer.json"), DataLoader, transforms.v2"
row first first pictures/s more "$name"
row epoch epoch pictures/s more "$name"
