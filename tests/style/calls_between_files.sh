#!/bin/sh
# tests/style/calls_between_files.sh BUILD: the calls between source files, read from the symbols of their objects.
#
# An object that needs a symbol uses the file that defines it; includes do not show that, since a file can declare
# a function itself. Three rules hold for core, backends, plugins and tools:
#
#   1. files use each other in no circle, apart from those in HARMLESS;
#   2. rooms use each other in no circle: a room is a folder, and a file beside folders is a room of its own;
#   3. a room of core uses only rooms above it in ROOMS (of tests/style/layering.sh).
#
# BUILD is a build folder of Meson, completely built. Prints a line for each violation on stderr and exits with 1 if
# there is any.
set -eu
build=$1
ROOMS=$(sed -n 's/^ROOMS="\(.*\)"/\1/p' "$(dirname "$0")/layering.sh")
# Files of one line may use each other: recursion over a language, or a device whose parts are one state machine.
HARMLESS="
core/model/lines/block.c core/model/lines/layer.c core/model/lines/lines.c core/model/lines/scan.c core/model/lines/value.c
"

list=$(mktemp)
trap 'rm -f "$list" "$list.objects"' EXIT
# One line for each object: OBJECT SOURCE, the source relative to the root of the repository.
awk -F'"' '
  $2 == "file" { file = $4; sub(/^(\.\.\/)+/, "", file) }
  $2 == "output" && file ~ /\.c$/ && file ~ /^(core|backends|plugins|tools)\// && $4 !~ /^tests\// { print $4, file }
' "$build/compile_commands.json" >"$list"
[ -s "$list" ] || { echo "calls_between_files.sh: $build/compile_commands.json names no source of this project" >&2; exit 1; }

# "file SOURCE" before the symbols of an object, as "U NAME", or "T NAME" of a definition. One nm reads all objects.
symbols() {
  while read -r object _; do [ ! -e "$build/$object" ] || echo "$build/$object"; done <"$list" >"$list.objects"
  xargs nm -A -P <"$list.objects" | awk -v build="$build/" '
    NR == FNR { source[build $1 ":"] = $2; next }
    $1 != object { object = $1; print "file", source[object] }
    { print $3, $2 }
  ' "$list" -
}

# shellcheck disable=SC2016
symbols | awk -v rooms="$ROOMS" -v harmless="$HARMLESS" '
BEGIN {
  n = split(rooms, order, " ")
  for (i = 1; i <= n; i++) rank[order[i]] = i
  n_harmless = split(harmless, group, "\n")
}
$1 == "file" { file = $2; if (!(file in known)) { known[file] = 1; files[++n_files] = file } next }
$1 == "U" { needs[file, $2] = 1; next }
$1 ~ /^[TDBRVWC]$/ { definer[$2] = file }

function room_of(file,    parts, n, folder) {
  n = split(file, parts, "/")
  folder = file
  sub(/\/[^\/]*$/, "", folder)
  return (folder in has_folders) ? file : folder
}

function note_folders(    i, parts, n, j, folder) {
  for (i = 1; i <= n_files; i++) {
    n = split(files[i], parts, "/")
    folder = parts[1]
    for (j = 2; j < n; j++) { has_folders[folder] = 1; folder = folder "/" parts[j] }
  }
}

function connect(level, from, to, symbol) {
  if (from == to || (level, from, to) in edge) return
  edge[level, from, to] = symbol
  uses[level, from] = uses[level, from] " " to
  if (!((level, from) in is_node)) { is_node[level, from] = 1; nodes[level, ++n_nodes[level]] = from }
  if (!((level, to) in is_node)) { is_node[level, to] = 1; nodes[level, ++n_nodes[level]] = to }
}

function is_harmless(from, to,    i) {
  for (i = 1; i <= n_harmless; i++)
    if (index(" " group[i] " ", " " from " ") && index(" " group[i] " ", " " to " ")) return 1
  return 0
}

function check_order(from, to, symbol,    a, b) {
  if (from !~ /^core\// || to !~ /^core\//) return
  split(from, a, "/")
  split(to, b, "/")
  if (!(a[2] in rank) || !(b[2] in rank) || rank[b[2]] <= rank[a[2]]) return
  printf "%s: uses %s of %s: core/%s may use only itself and the rooms above it in: %s\n", from, symbol, to, a[2], rooms
  bad = 1
}

# Depth first; a file that is met again while it is on the path closes a circle, which is printed once.
function visit(level, node,    list, n, i, next_node) {
  state[level, node] = 1
  path[++depth] = node
  n = split(uses[level, node], list, " ")
  for (i = 1; i <= n; i++) {
    next_node = list[i]
    if (state[level, next_node] == 1) print_circle(level, next_node)
    else if (state[level, next_node] != 2) visit(level, next_node)
  }
  depth--
  state[level, node] = 2
}

function print_circle(level, start,    i, text, to) {
  i = depth
  while (path[i] != start) i--
  text = ""
  for (; i <= depth; i++) {
    to = i < depth ? path[i + 1] : start
    text = text path[i] " -> " edge[level, path[i], to] " of "
  }
  printf "%s: a circle of calls between %s: %s%s\n", start, level, text, start
  bad = 1
}

END {
  note_folders()
  for (key in needs) {
    split(key, pair, SUBSEP)
    if (!(pair[2] in definer)) continue
    from = pair[1]
    to = definer[pair[2]]
    check_order(from, to, pair[2])
    if (!is_harmless(from, to)) connect("files", from, to, pair[2])
    if (!is_harmless(from, to)) connect("rooms", room_of(from), room_of(to), pair[2])
  }
  for (level in n_nodes)
    for (k = 1; k <= n_nodes[level]; k++)
      if (!((level, nodes[level, k]) in state)) { depth = 0; visit(level, nodes[level, k]) }
  exit bad
}' >&2
echo "case ok: calls between files"
