#!/bin/sh
# tests/integration/docs/coverage.sh TENON FOLDER: every line of the lists of names (tools/write-coverage says how they are written)
# plans. The list of transforms is one list of [data]. Rows of equal inputs are blocks of one model, since a model names all its mistakes; a row with a key of its own, as
# "loss = mse", is a model.
set -u
tenon=$(realpath "$1") lists=$(realpath "$2")
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

# name, inputs and line of each row that has a line, behind the number of its model: equal inputs have the same.
awk -F ' *[|] *' '
  FILENAME ~ /transforms/ || FNR == 1 || /^#/ || NF == 0 || $3 == "" || $3 ~ /^[-=] / { next }
  {
    inputs = $2 == "" ? "x: f32[8]" : $2
    own = $3 ~ /^(loss|metrics|layers) = /
    key = own ? inputs SUBSEP FNR SUBSEP FILENAME : inputs
    if (!(key in model)) model[key] = ++n
    file = "model" model[key] ".ini"
    gsub(/\\n */, "\n    ", $3)
    if (!(file in begun)) printf "[model]\ninputs = %s\n", inputs >file
    if (own) print $3 ($3 ~ /^layers/ ? "" : "\nlayers = out: linear(8)") >file
    else if (!(file in begun)) print "layers =" >file
    begun[file] = 1
    if (own) next
    row++
    names = inputs
    gsub(/: *[a-z0-9]+\[[^]]*\]/, "", names)
    printf "    row%d: row%d <- %s\n", row, row, names >file
    blocks[file] = blocks[file] sprintf("\n# %s\n[block row%d]\ninputs = %s\nlayers =\n    %s\n", $1, row, names, $3)
  }
  END { for (file in blocks) printf "%s", blocks[file] >file }' "$lists"/*.txt

# All transforms follow each other.
{
  printf '[data]\nsource = random\nfields = image: u8[3, 32, 32], boxes: f32[4, 4], labels: i32[4]\ntargets = label: i32[] 0..9\ntransforms =\n'
  awk -F ' *[|] *' 'FNR == 1 || /^#/ || NF == 0 || $3 == "" || $3 ~ /^[-=] / { next }
    { gsub(/\\n */, "\n    ", $3); printf "# %s\n    %s\n", $1, $3 }' "$lists"/*transforms.txt
  printf '[model]\ninputs = image: f32[3, 32, 32]\ntargets = label: i32[]\nlayers =\n    flatten\n    out: linear(10)\nloss = cross_entropy\n'
} >model_of_transforms.ini

status=0
for ini in model*.ini; do
  if "$tenon" plan "$ini" >said 2>&1; then
    echo "case ok: $(grep -c '^# ' "$ini") rows of '$(sed -n 's/^inputs = //p;T;q' "$ini")'"
  else
    echo "case failed: $(sed -n 's/^inputs = //p;T;q' "$ini")"
    head -n 20 said
    # the names of the rows that the messages are about
    sed -n "s/^.*$ini:\([0-9]*\):.*/\1/p" said | sort -un | while read -r line; do head -n "$line" "$ini" | grep '^# ' | tail -n 1; done
    status=1
  fi
done
exit $status
