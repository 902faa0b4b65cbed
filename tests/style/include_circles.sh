#!/bin/sh
# tests/style/include_circles.sh ROOT: includes go in no circle between files of core, backends, plugins and tools,
# where a.c and a.h count as one file.
#
# One include is allowed: a.c may include a header that itself includes a.h, such as the struct behind the handle of
# a.h, which several sources share. tests/style/calls_between_files.sh refuses calls that go back. Prints a line for each
# circle on stderr and exits with 1 if there is any.
set -eu
cd "$1"
folders=
for folder in core backends plugins tools; do [ ! -d $folder ] || folders="$folders $folder"; done
# shellcheck disable=SC2086
files=$(find $folders -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' | LC_ALL=C sort | tr '\n' ' ')

# shellcheck disable=SC2016,SC2086
awk -v files="$files" '
BEGIN {
  n = split(files, list, " ")
  for (i = 1; i <= n; i++) exists[list[i]] = 1
}

/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
  path = $0
  sub(/^[^<"]*[<"]/, "", path)
  sub(/[>"].*$/, "", path)
  if (path in exists) included[FILENAME] = included[FILENAME] " " path
}

function stem_of(file) {
  sub(/\.[a-z]+$/, "", file)
  return file
}

# Whether a header includes another one, or includes one that does.
function stands_on(header, other,    list, n, i) {
  if ((header, other) in stands) return stands[header, other]
  stands[header, other] = 0 # until it is known, so that a circle of headers ends
  n = split(included[header], list, " ")
  for (i = 1; i <= n; i++)
    if (list[i] == other || stands_on(list[i], other)) return stands[header, other] = 1
  return 0
}

function connect(file, header,    from, to) {
  from = stem_of(file)
  to = stem_of(header)
  if (from == to || (from, to) in edge) return
  if (file !~ /\.(h|cuh)$/ && (stands_on(header, from ".h") || stands_on(header, from ".cuh"))) return
  edge[from, to] = file
  uses[from] = uses[from] " " to
}

# Depth first; a stem that is met again while it is on the path closes a circle, which is printed once.
function visit(node,    list, n, i) {
  state[node] = 1
  path_of[++depth] = node
  n = split(uses[node], list, " ")
  for (i = 1; i <= n; i++) {
    if (state[list[i]] == 1) print_circle(list[i])
    else if (state[list[i]] != 2) visit(list[i])
  }
  depth--
  state[node] = 2
}

function print_circle(start,    i, text) {
  i = depth
  while (path_of[i] != start) i--
  text = ""
  for (; i <= depth; i++) text = text edge[path_of[i], i < depth ? path_of[i + 1] : start] " -> "
  printf "%s: a circle of includes: %s%s\n", start, text, start
  bad = 1
}

END {
  for (i = 1; i <= n; i++) {
    m = split(included[list[i]], headers, " ")
    for (j = 1; j <= m; j++) connect(list[i], headers[j])
  }
  for (i = 1; i <= n; i++)
    if (!(stem_of(list[i]) in state)) visit(stem_of(list[i]))
  exit bad
}' $files >&2
echo "case ok: circles of includes"
