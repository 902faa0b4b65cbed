#!/bin/sh
# tests/style/layering.sh ROOT: the includes that each part of the tree may have.
#
#     include <- core <- backends, plugins <- tools, tests
#
# In core a room uses only the rooms above it in ROOMS, and core/ops, which is written like a plugin, none at
# all. Backends, plugins, tools and the examples see include/tenon and their own folder. No file of core names
# an item of a plugin. Prints one line for each violation on stderr and exits with 1 if there is any.
set -eu
cd "$1"
ROOMS="base formats config tokenizer gguf plugin graph ops model onnx compile exec tensor conformance data run distributed step records train infer export bench commands compare sweep"

folders=
for folder in include core backends plugins tools docs/plugins/examples; do
  [ ! -d $folder ] || folders="$folders $folder"
done
# shellcheck disable=SC2086
files=$(find $folders -name '*.[ch]' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' -o -name '*.in' | sort | tr '\n' ' ')

# ---- includes ----------------------------------------------------------------------------------------------

# shellcheck disable=SC2016
includes='
BEGIN {
  n = split(rooms, order, " ")
  for (i = 1; i <= n; i++) rank[order[i]] = i
  # The standard headers that a public header may include.
  split("assert ctype errno float inttypes limits math stdalign stdarg stdatomic stdbool stddef stdint stdio " \
        "stdlib string time", c11, " ")
  for (i in c11) standard[c11[i] ".h"] = 1
  split(files, list, " ")
  for (i in list) exists[list[i]] = 1
}

function refuse(why) {
  printf "%s:%d: includes %s: %s\n", FILENAME, FNR, path, why
  bad = 1
}

# The part of the tree that a file belongs to: "backends/cpu", "core/graph", "tools".
function home_of(file,    parts) {
  return split(file, parts, "/") > 2 && parts[1] != "tools" ? parts[1] "/" parts[2] : parts[1]
}

# A text that the build makes of files of the same folder (tools/embed).
function is_text(path) { return path ~ /^[a-z_]+\.inc$/ }

function is_ours(path) { return path ~ /^(tenon|core|backends|plugins|tools|tests|docs)\// }

function check_header() {
  if (angle && !is_ours(path)) {
    if (!(path in standard)) refuse("a public header stands on C11 alone")
  } else if (path !~ /^tenon\//) {
    refuse("a public header includes only tenon/ headers")
  } else if (FILENAME !~ /^include\/tenon\/plugin\// && path ~ /^tenon\/plugin\//) {
    refuse("a header for callers includes no header for implementers")
  }
}

function check_core(    room, other, parts) {
  if (is_text(path) || path ~ /^tenon\// || (angle && !is_ours(path))) return
  split(FILENAME, parts, "/")
  room = parts[2]
  if (parts[3] == "") return # the root of core puts the rooms together
  if (!(room in rank)) return refuse("core/" room " is no room; the rooms are " rooms)
  if (path !~ /^core\//) return refuse("core includes tenon/ headers and its rooms by their whole path")
  split(path, parts, "/")
  other = parts[2]
  if (room == "ops" && other != "ops") return refuse("core/ops stands on tenon/ headers alone")
  if (!(other in rank) || rank[other] > rank[room])
    refuse("core/" room " may use only itself and the rooms above it in: " rooms)
}

# Backends, plugins, tools: the public headers and files of the same home, named by their whole path. Backends
# also see backends/shared.
function check_guest(    home) {
  if (is_text(path) || path ~ /^tenon\// || (angle && !is_ours(path))) return
  home = home_of(FILENAME)
  if (path == home "/items.h") return # written by the build: tools/list-items
  if (path in exists && (index(path, home "/") == 1 || (home ~ /^backends\// && path ~ /^backends\/shared\//))) return
  refuse(home " includes tenon/ headers and, by their whole path, its own files" \
         (home ~ /^backends\// && home != "backends/shared" ? " and those of backends/shared" : ""))
}

/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
  angle = $0 ~ /include[ \t]*</
  path = $0
  sub(/^[^<"]*[<"]/, "", path)
  sub(/[>"].*$/, "", path)
  if (FILENAME ~ /^include\//) check_header()
  else if (FILENAME ~ /^core\//) check_core()
  else if (FILENAME ~ /^docs\//) { if (!(path ~ /^tenon\// || (angle && !is_ours(path)))) refuse("an example is one file") }
  else check_guest()
}
END { exit bad }'

# ---- names -------------------------------------------------------------------------------------------------

# Names of items are read from the descriptors, TN_ITEM(type, TN_KIND, "name", ...). Layers and kernels that are
# called like an op do not count: core may emit ops, and core/ops has their names.
# shellcheck disable=SC2016
names='
BEGIN {
  # Words of a room that some plugin has taken for a name, too.
  allowed["core/base cpu"] = "a controller of cgroups"
  allowed["core/compile random"] = "a class of ops"
  allowed["core/config bf16"] = "a type of elements"
  allowed["core/config fp16"] = "what others call f16"
  allowed["core/config fp32"] = "what others call f32"
  allowed["core/graph text"] = "a kind of token"
  allowed["core/conformance constant"] = "an initializer"
  allowed["core/model constant"] = "an initializer"
  allowed["core/distributed step"] = "a program"
  allowed["core/records step"] = "a program"
  allowed["core/run step"] = "a program"
  allowed["core/run linear"] = "a shape of warm-up"
  allowed["core/step step"] = "a program"
  allowed["core/train step"] = "a program"
  allowed["core/commands tokens"] = "a member of a result"
  allowed["core/commands text"] = "a type of options"
  allowed["core/graph param"] = "a kind of state"
  allowed["core/step param"] = "a kind of state, and a region"
  allowed["core/step buffer"] = "a kind of state"
  allowed["core/infer value"] = "an argument"
  allowed["core/export value"] = "an attribute of an operator, an option of an op"
  allowed["core/export constant"] = "a kind of value, a mode of an operator"
  allowed["core/tokenizer split"] = "a key of tokenizer.json"
  # An importer writes lines of the model language, with the names of layers.
  names_items["core/onnx"] = "docs/decisions/0082-import-of-onnx.md"
}

function home_of(file,    parts) {
  split(file, parts, "/")
  return parts[1] "/" parts[2]
}

function start_file() {
  in_comment = 0
  item = ""
}

# The line without comments.
function code_of(line,    out, at) {
  out = ""
  while (line != "") {
    if (in_comment) {
      at = index(line, "*/")
      if (!at) return out
      line = substr(line, at + 2)
      in_comment = 0
    } else {
      at = index(line, "/*")
      if (!at) return out line
      out = out substr(line, 1, at - 1)
      line = substr(line, at + 2)
      in_comment = 1
    }
  }
  return out
}

# Descriptors may be broken into lines, so the text after TN_ITEM is gathered up to the name.
function gather(code) {
  if (item == "" && match(code, /TN_ITEM(_PLAIN)?\(/)) item = substr(code, RSTART)
  else if (item != "") item = item code
  if (item !~ /"[^"]*"/) return ""
  split(item, quoted, "\"")
  kind = quoted[1]
  item = ""
  return quoted[2]
}

FNR == 1 { start_file() }
{ code = code_of($0) }

FILENAME ~ /^core\/ops\// {
  name = gather(code)
  if (name != "") is_op[name] = 1
  if (match(code, /^[A-Z][A-Z_0-9]*\([a-z_0-9]+,/)) { # a macro that makes an op: SMOOTH(tanh, ...)
    name = code
    sub(/^[A-Z_0-9]*\(/, "", name)
    sub(/,.*/, "", name)
    is_op[name] = 1
  }
  next
}
FILENAME ~ /^(plugins|backends)\// {
  name = gather(code)
  if (name != "" && kind !~ /TN_KERNEL/) taken[name] = FILENAME
  next
}
FILENAME ~ /^core\// {
  gsub(/\\"|\047"\047/, "", code) # quotes that open nothing
  n = split(code, quoted, "\"")
  for (i = 2; i <= n; i += 2) {
    literal = quoted[i]
    sub(/\(.*/, "", literal)
    if (literal != "") { lines[++n_lines] = FILENAME ":" FNR; said[n_lines] = literal }
  }
}
END {
  for (i = 1; i <= n_lines; i++) {
    name = said[i]
    if (!(name in taken) || name in is_op || (home_of(lines[i]) " " name) in allowed ||
        home_of(lines[i]) in names_items) continue
    printf "%s: names \"%s\", an item of %s: core knows kinds, never members\n", lines[i], name, taken[name]
    bad = 1
  }
  exit bad
}'

status=0
# shellcheck disable=SC2086
awk -v rooms="$ROOMS" -v files="$files" "$includes" $files >&2 || status=1
# shellcheck disable=SC2086
awk "$names" $files >&2 || status=1
[ $status = 0 ] && echo "case ok: includes and names of items"
exit $status
