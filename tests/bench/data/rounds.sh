# tests/bench/data/rounds.sh: for the parts of data.sh that source it. A part gets these variables: ROOT (of the
# repository), TENON (the program), PYTHON (with the peers), ROUNDS, SCALE (percent of the size of the data), SCRATCH
# (an empty folder) and FILES (a folder for made data, which may have them from an earlier run). It measures with
# `alternate`, and prints rows with `row`.

# Runs two commands in turn, ROUNDS times; each prints lines "NAME NUMBER". $1: ours, $2: the peer's: functions or scripts
alternate() {
  rm -f "$SCRATCH"/ours.* "$SCRATCH"/peer.*
  for i in $(seq "$ROUNDS"); do
    "$1" >"$SCRATCH/ours.$i"
    "$2" >"$SCRATCH/peer.$i"
  done
}

# The figures of a name, one for each round. $1: ours or peer, $2: name
figures() {
  for i in $(seq "$ROUNDS"); do
    awk -v name="$2" '$1 == name { print $2; found = 1 } END { exit !found }' "$SCRATCH/$1.$i" ||
      { echo "rounds.sh: no '$2' from $1 in round $i" >&2; return 1; }
  done
}

# "12.3 s (11.9 to 13.0)" of numbers on standard input. $1: unit
spread() {
  sort -g | awk -v unit="$1" '
    function text(v) { return v < 1 ? sprintf("%.3f", v) : v < 10 ? sprintf("%.2f", v) : v < 100 ? sprintf("%.1f", v) : sprintf("%.0f", v) }
    { v[NR] = $1 }
    END { printf "%s%s (%s to %s)", text(v[int((NR + 1) / 2)]), unit, text(v[1]), text(v[NR]) }'
}

# A row of the page. $1: what, $2: name of the figure, $3: unit, $4: less or more, whichever is better, $5: the peer, with its
# version and settings
row() {
  figures ours "$2" >"$SCRATCH/of_ours" && figures peer "$2" >"$SCRATCH/of_peer" || exit 1
  unit=${3:+ $3}
  paste "$SCRATCH/of_ours" "$SCRATCH/of_peer" |
    awk -v less="$4" '{ print less == "less" ? $2 / $1 : $1 / $2 }' >"$SCRATCH/ratios"
  printf '| %s | %s | %s | %s | %s |\n' "$1" "$(spread "$unit" <"$SCRATCH/of_ours")" "$5" \
    "$(spread "$unit" <"$SCRATCH/of_peer")" "$(spread "" <"$SCRATCH/ratios")"
}

# A number of a JSON object on standard input. $1: its key
number_of() { sed 's/.*"'"$1"'": *\([0-9.e+-]*\).*/\1/'; }
