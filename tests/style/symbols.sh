#!/bin/sh
# tests/style/symbols.sh LIBTENON PLUGIN...: libtenon exports names that begin with tn_ and nothing else; a
# plugin exports its entry and nothing else, so that names of two plugins never meet in the linker. AddressSanitizer's
# marks do not count.
set -u
library=$1
shift
status=0

exports() { nm -D --defined-only "$1" | awk '$3 !~ /^__(odr_)?asan|^__sanitizer|^__start_|^__stop_/ { print $3 }'; }

report() { # $1: file, $2: names that should not be there
  name=$(basename "$1")
  if [ -z "$2" ]; then
    echo "case ok: exports of $name"
  else
    echo "case failed: exports of $name: $2"
    status=1
  fi
}

report "$library" "$(exports "$library" | grep -v '^tn_')"
for plugin in "$@"; do
  report "$plugin" "$(exports "$plugin" | grep -vx 'tn_plugin_v[0-9]*'; [ "$(exports "$plugin" | wc -l)" = 1 ] || echo "not one entry")"
done
exit $status
