#!/bin/sh
# tests/integration/docs/installed.sh ROOT BUILD MESON PREFIX BINDIR DATADIR MANDIR INCLUDEDIR LIBDIR: `meson install` with
# DESTDIR puts program, headers, pages, examples, the manual page and completions where they are looked for; the
# installed examples are accepted by the installed program, and links of the installed pages lead to installed pages.
set -u
root=$1 build=$2 meson=$3 prefix=$4 bindir=$5 datadir=$6 mandir=$7 includedir=$8 libdir=$9
into=$(mktemp -d) || exit 1
trap 'rm -rf "$into"' EXIT
status=0

report() { # $1: ok or failed, $2: name
  echo "case $1: $2"
  [ "$1" = ok ] || status=1
}

"$meson" install -C "$build" --no-rebuild --destdir "$into" >"$into/log" 2>&1 || { cat "$into/log" && exit 1; }
at=$into$prefix
doc=$at/$datadir/doc/tenon

for file in "$bindir/tenon" "$includedir/tenon/run.h" "$includedir/tenon/plugin/plugin.h" "$libdir/pkgconfig/tenon.pc" \
  "$mandir/man1/tenon.1" "$datadir/bash-completion/completions/tenon.bash" "$datadir/zsh/site-functions/_tenon" \
  "$datadir/fish/vendor_completions.d/tenon.fish" "$datadir/doc/tenon/guide/tools.md" "$datadir/doc/tenon/reference/README.md" \
  "$datadir/doc/tenon/reference/layers.md" "$datadir/doc/tenon/plugins/README.md" "$datadir/doc/tenon/plugins/examples/mish.c" \
  "$datadir/doc/tenon/examples/digits.ini" "$datadir/doc/tenon/examples/c/train_and_infer.c" "$datadir/doc/tenon/architecture.md"; do
  if [ -s "$at/$file" ]; then report ok "$file"; else report failed "$file is not installed"; fi
done

LD_LIBRARY_PATH=$at/$libdir
export LD_LIBRARY_PATH
for ini in "$doc"/examples/*.ini; do
  if "$at/$bindir/tenon" config show "$ini" >"$into/log" 2>&1; then
    report ok "the installed program reads $(basename "$ini")"
  else
    cat "$into/log"
    report failed "the installed program reads $(basename "$ini")"
  fi
done

# links.sh reads a tree that has the pages in docs; those that lead to the sources are not installed
mkdir "$into/pages"
cp -r "$doc" "$into/pages/docs"
sh "$root/tests/style/links.sh" "$into/pages" 2>&1 |
  grep -vE 'there is no (backends|core|include|plugins|tests|tools|README.md|CONTRIBUTING.md)|^case' >"$into/log"
if [ -s "$into/log" ]; then
  cat "$into/log"
  report failed "links of installed pages"
else
  report ok "links of installed pages"
fi
exit $status
