#!/bin/sh
# tests/style/abi_test.sh: tests/style/abi.sh lets a made-up tree pass, and refuses it where a struct or a member is not
# pinned, or is pinned at another place.
set -u
here=$(dirname "$0")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
status=0

plant_tree() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/include/tenon/plugin" "$tree/core/plugin"
  printf '%s\n' '#include <stdint.h>' 'typedef struct tn_view {' '  int32_t rank, dims[8]; /* ; of { each' \
    '                          * } axis */' '  void *(*get)(void *handle, int32_t at);' '  const int32_t (*pairs)[2];' \
    '} tn_view;' >"$tree/include/tenon/plugin/view.h"
  sh "$here/../../tools/pin-abi" "$tree" >"$tree/core/plugin/abi_asserts.c"
}

report() { # $1: name, $2: expected text, "" for a tree that passes
  said=$(sh "$here/abi.sh" "$tree" 2>&1)
  code=$?
  if [ -z "$2" ] && [ $code = 0 ]; then
    echo "case ok: $1"
  elif [ -n "$2" ] && [ $code != 0 ] && printf '%s\n' "$said" | grep -qF "$2"; then
    echo "case ok: $1"
  else
    echo "case failed: $1 (said '$said')"
    status=1
  fi
}

plant_tree
if [ "$(grep -c '^AT(tn_view, pairs, 48);' "$tree/core/plugin/abi_asserts.c")" = 1 ] && grep -qF \
  'PLAIN(tn_view, 56, 8); AT(tn_view, rank, 0); AT(tn_view, dims, 4); AT(tn_view, get, 40);' "$tree/core/plugin/abi_asserts.c"; then
  echo "case ok: every member is found"
else
  echo "case failed: every member is found"
  status=1
fi
report "a tree in order passes" ""

plant_tree
printf '%s\n' 'struct tn_pair {' '  int8_t low, high;' '};' 'typedef struct tn_pair tn_pair;' >>"$tree/include/tenon/plugin/view.h"
report "a struct that is not pinned is refused" "> PLAIN(tn_pair, 2, 1); AT(tn_pair, low, 0); AT(tn_pair, high, 1);"

plant_tree
sed -i 's/rank, dims\[8\];/&\n  int8_t small;/; s/const int32_t (/int8_t least;\n  &/' "$tree/include/tenon/plugin/view.h"
sh "$here/../../tools/pin-abi" "$tree" >"$tree/core/plugin/abi_asserts.c"
sed -i 's/int8_t least;/int8_t least, padded;/' "$tree/include/tenon/plugin/view.h"
report "a member that fills padding is refused" "AT(tn_view, padded, 49);"

plant_tree
sed -i 's/^} tn_view/  void (*drop)(void *handle, int32_t n);\n&/' "$tree/include/tenon/plugin/view.h"
report "a callback that is not pinned is refused" "AT(tn_view, drop, 56);"

plant_tree
sed -i 's/int32_t rank, dims/int64_t rank;\n  int32_t dims/' "$tree/include/tenon/plugin/view.h"
report "a member that has moved is refused" "AT(tn_view, dims, 8);"

exit $status
