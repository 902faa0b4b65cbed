#!/bin/sh
# tests/style/links.sh ROOT: links of documents lead somewhere. In README.md, CONTRIBUTING.md and docs/**/*.md
#
#   1. every relative link names a file or folder, and its anchor is a heading of that page;
#   2. every page that running text names by its path from the root, as docs/guide/runs.md, exists.
#
# Prints a line for each violation on stderr; exits with 1 if there is a violation, or no link at all.
set -eu
cd "$1"
tree=$(mktemp)
trap 'rm -f "$tree"' EXIT
find . \( -name '.?*' -prune \) -o -print | sed 's|^\./||' | LC_ALL=C sort >"$tree"
pages=$(ls README.md CONTRIBUTING.md 2>/dev/null || true; grep '^docs/.*\.md$' "$tree" || true)

# shellcheck disable=SC2086
LC_ALL=C awk '
FILENAME == ARGV[1] { exists[$0] = 1; next }

function refuse(link, why) {
  printf "%s:%d: %s: %s\n", FILENAME, FNR, link, why >"/dev/stderr"
  bad = 1
}

# As GitHub makes them: the text of links, small letters, without marks, blanks as hyphens, -1 for the second.
function anchor(heading,    n) {
  while (match(heading, /\]\([^)]*\)/)) heading = substr(heading, 1, RSTART - 1) substr(heading, RSTART + RLENGTH)
  heading = tolower(heading)
  gsub(/[^a-z0-9 _-]/, "", heading)
  gsub(/ /, "-", heading)
  n = seen[FILENAME, heading]++
  return n ? heading "-" n : heading
}

# "docs/guide" and "../plugins/op.md" give "docs/plugins/op.md".
function join(folder, path,    parts, n, i, kept, joined) {
  n = split(folder == "" ? path : folder "/" path, parts, "/")
  for (i = 1; i <= n; i++) {
    if (parts[i] == "" || parts[i] == ".") continue
    if (parts[i] == "..") kept--
    else kept_parts[++kept] = parts[i]
  }
  for (i = 1; i <= kept; i++) joined = joined (i > 1 ? "/" : "") kept_parts[i]
  return joined
}

function check_link(link,    path, mark, target) {
  if (link ~ /^[a-z]+:/) return
  n_links++
  mark = index(link, "#")
  path = mark ? substr(link, 1, mark - 1) : link
  target = path == "" ? FILENAME : join(folder, path)
  if (!(target in exists)) refuse(link, "there is no " target)
  else if (mark && !((target, substr(link, mark + 1)) in anchors)) refuse(link, target " has no such heading")
}

function check_text(text) {
  while (match(text, /docs\/[A-Za-z0-9_.\/-]*\.(md|ini|txt|c)/)) {
    if (!(substr(text, RSTART, RLENGTH) in exists) && substr(text, RSTART - 1, 1) !~ /[A-Za-z0-9_.\/]/)
      refuse(substr(text, RSTART, RLENGTH), "there is no such page")
    text = substr(text, RSTART + RLENGTH)
  }
}

FNR == 1 {
  in_code = 0
  folder = FILENAME
  if (!sub(/\/[^\/]*$/, "", folder)) folder = ""
}
/^[ \t]*(```|~~~)/ { in_code = !in_code; next }
in_code || /^    / { next }
pass == 1 { if (sub(/^#+ +/, "")) anchors[FILENAME, anchor($0)] = 1; next }
{
  text = $0
  gsub(/`[^`]*`/, "", text)
  while (match(text, /\]\([^) ]+\)/)) {
    check_link(substr(text, RSTART + 2, RLENGTH - 3))
    text = substr(text, 1, RSTART - 1) substr(text, RSTART + RLENGTH)
  }
  check_text(text)
}
END {
  if (!n_links) print "there is no link to check" >"/dev/stderr"
  exit bad || !n_links
}' "$tree" pass=1 $pages pass=2 $pages
echo "case ok: links"
