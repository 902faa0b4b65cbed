# tests/bench/data/tokens.sh: `encode`: 10 MB of many languages, C, HTML, emoji and drawn characters, line by line on one
# processor, by a byte-level BPE of GPT-2's kind with 8000 tokens, which is trained for this. Both write the same number of ids.
# `windows`: batches of 12 windows of 1024 tokens of a file of 100 million u16, in random order, with their targets; the peer
# takes windows at random places of a memory-mapped NumPy array, as the loader of nanoGPT does, and joins them as int64.
set -eu
. "$ROOT/tests/bench/data/rounds.sh"
here=$ROOT/tests/bench/data
text=$FILES/text_$SCALE.txt tokenizer=$FILES/text_$SCALE.json ids=$FILES/ids_$SCALE.bin
[ -e "$tokenizer" ] || "$PYTHON" "$here/tokens_files.py" "$((100000 * SCALE))" "$text" "$tokenizer" "$ids"
line='
'

ours() {
  taskset -c 0 "$TENON" tokenize "$text" --tokenizer "$tokenizer" --separator "$line" --output "$SCRATCH/text.bin" --json \
    >"$SCRATCH/tokenize.json"
  echo "encode $(number_of mb_per_s <"$SCRATCH/tokenize.json")"
  echo "tokens $(number_of tokens <"$SCRATCH/tokenize.json")"
  "$TENON" bench "$here/tokens.ini" --mode load --steps 2000 --rounds 3 --json --quiet --set "data.files=$ids" >"$SCRATCH/bench.json"
  echo "windows $(number_of per_s <"$SCRATCH/bench.json")"
}
peer() { taskset -c 0 "$PYTHON" "$here/tokens_peer.py" "$text" "$tokenizer" "$ids"; }

alternate ours peer
[ "$(figures ours tokens)" = "$(figures peer tokens)" ] || { echo "tokens.sh: the numbers of tokens differ" >&2; exit 1; }
row encode encode MB/s more "$("$PYTHON" "$here/tokens_peer.py" versions encode)"
row windows windows "windows/s" more "$("$PYTHON" "$here/tokens_peer.py" versions windows)"
