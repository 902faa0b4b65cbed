#!/bin/sh
# tests/style/statics.sh ROOT: a static function of core, backends, plugins or tools has a name of its own, so that
# a line of a backtrace and a search name one function. The file's noun in front does it: pool_query, loader_open.
# Prints a line for each name that several files define on stderr and exits with 1 if there is any.
set -eu
cd "$1"
folders=
for folder in core backends plugins tools; do
  [ ! -d $folder ] || folders="$folders $folder"
done
# shellcheck disable=SC2016,SC2086
find $folders -name '*.c' -o -name '*.cu' | LC_ALL=C sort | xargs awk '
/^static / && match($0, /[A-Za-z_0-9]+\(/) && $0 !~ /^static [^(]*=/ {
  name = substr($0, RSTART, RLENGTH - 1)
  if (name == "__attribute__" || name ~ /^[A-Z0-9_]+$/ || (name in where && index(where[name], FILENAME ":") == 1)) next
  if (name in where) {
    printf "%s:%d: static function %s has the name of one at %s: put the noun of the file in front\n", FILENAME, FNR, name, where[name]
    bad = 1
  } else where[name] = FILENAME ":" FNR
}
END { exit bad }' >&2
echo "case ok: names of static functions"
