# tests/bench/data/csv.sh: a CSV file of 1 GB with columns of numbers and of words. `read` is the time from opening the file
# to the first batch, with means and categories learnt; `epoch` the time of shuffled batches of 1024 rows over all rows.
# The peers give NumPy arrays in the same form: numbers filled by their means and standardized, categories as numbers.
set -eu
. "$ROOT/tests/bench/data/rounds.sh"
here=$ROOT/tests/bench/data
table=$FILES/table_$SCALE.csv
[ -e "$table" ] || "$PYTHON" "$here/csv_table.py" "$table" "$((10 * SCALE))"
workers=$(nproc)

ours() {
  batches=$(($(wc -l <"$table") / 1024))
  "$TENON" bench "$here/csv.ini" --mode load --steps "$batches" --rounds 1 --json --quiet --set "data.file=$table" \
    --set "data.workers=$workers" >"$SCRATCH/bench.json"
  echo "first $(number_of first_batch_s <"$SCRATCH/bench.json")"
  echo "epoch $(sed 's/.*"ms": \[\([0-9.e+-]*\).*/\1/' "$SCRATCH/bench.json" | awk -v n="$batches" '{ print $1 * n / 1000 }')"
  echo "memory $(number_of peak_rss_mib <"$SCRATCH/bench.json")"
}

for reader in pandas-c pandas-pyarrow polars; do
  peer() { "$PYTHON" "$here/csv_peer.py" "$reader" "$table"; }
  name="$("$PYTHON" "$here/csv_peer.py" "$reader" versions), read_csv"
  case $reader in
  pandas-*) name="$name(engine=${reader#pandas-})" ;;
  esac
  alternate ours peer
  row "read" first s less "$name"
  row "epoch" epoch s less "$name"
  row "memory at the peak" memory MiB less "$name"
done
