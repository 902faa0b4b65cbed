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
  "$datadir/doc/tenon/reference/layers.md" "$datadir/doc/tenon/plugins/README.md" "$datadir/doc/tenon/plugins/examples/serf.c" \
  "$datadir/doc/tenon/examples/digits.ini" "$datadir/doc/tenon/examples/c/train_and_infer.c" "$datadir/doc/tenon/architecture.md"; do
  if [ -s "$at/$file" ]; then report ok "$file"; else report failed "$file is not installed"; fi
done

# The installation lies in another folder than its prefix: the program finds library and plugins there, and pkg-config the headers.
unset LD_LIBRARY_PATH
if "$at/$bindir/tenon" doctor 2>&1 | grep -q "$at/$libdir/tenon/plugins"; then
  report ok "the program finds its library and plugins in a moved installation"
else
  "$at/$bindir/tenon" doctor
  report failed "the program finds its library and plugins in a moved installation"
fi
flags=$(PKG_CONFIG_PATH=$at/$libdir/pkgconfig pkg-config --cflags --libs tenon)
if cc -o "$into/program" "$doc/examples/c/predict.c" $flags -lm >"$into/log" 2>&1; then
  report ok "a program compiles with a moved installation"
else
  cat "$into/log"
  report failed "a program compiles with a moved installation: $flags"
fi

# A program that finds the library by a path from the current folder finds the plugins, too: all it lacks are the weights.
# It is built without AddressSanitizer, even where the library has it. ThreadSanitizer has to be loaded first.
said=$(cd "$at" && ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 LD_LIBRARY_PATH=$libdir "$into/program" "$doc/examples/digits.ini" no_weights picture.jpg 2>&1)
case $said:$(ldd "$at/$libdir/libtenon.so") in
*libtsan*) echo "case skipped: plugins are found beside a library on a relative path: the library has ThreadSanitizer" ;;
*"no plugin folder"*) report failed "plugins are found beside a library on a relative path: $said" ;;
*no_weights*) report ok "plugins are found beside a library on a relative path" ;;
*) report failed "plugins are found beside a library on a relative path: $said" ;;
esac
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
