#!/bin/sh
# tests/style/abi_test.sh: tests/style/abi.sh lets a made-up tree pass, and refuses it with the file and line of a
# struct or member that the list lacks.
set -u
here=$(dirname "$0")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
status=0

plant_tree() { # the rest: more lines of the header
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/include/tenon/plugin" "$tree/core/plugin"
  printf '%s\n' 'typedef struct tn_view {' '  int32_t rank, dims[8]; /* ; of { each' '                          * } axis */' \
    '  void *(*get)(void *handle, int32_t at);' '  const int32_t (*pairs)[2];' '} tn_view;' \
    >"$tree/include/tenon/plugin/view.h"
  printf '%s\n' 'FROZEN(tn_view, 56, 8);' 'AT(tn_view, rank, 0);' 'AT(tn_view, dims, 4);' 'AT(tn_view, get, 40);' \
    'AT(tn_view, pairs, 48);' >"$tree/core/plugin/abi_asserts.c"
}

report() { # $1: name, $2: expected text, "" for a tree that passes
  said=$(sh "$here/abi.sh" "$tree" 2>&1)
  code=$?
  if [ -z "$2" ] && [ $code = 0 ]; then
    echo "case ok: $1"
  elif [ -n "$2" ] && [ $code != 0 ] && printf '%s\n' "$said" | grep -qF "$2" &&
    [ "$(printf '%s\n' "$said" | wc -l)" = 2 ]; then
    echo "case ok: $1"
  else
    echo "case failed: $1 (said '$said')"
    status=1
  fi
}

plant_tree
report "a tree in order passes" ""

plant_tree
printf '%s\n' 'struct tn_pair {' '};' >>"$tree/include/tenon/plugin/view.h"
report "a struct that is not pinned is refused" "include/tenon/plugin/view.h:7: tn_pair is not in core/plugin/abi_asserts.c"

plant_tree
sed -i 's/rank, dims/rank, padded, dims/' "$tree/include/tenon/plugin/view.h"
report "a member that fills padding is refused" "include/tenon/plugin/view.h:2: tn_view.padded is not in"

plant_tree
sed -i 's/^} tn_view/  void (*drop)(void *handle, int32_t n);\n&/' "$tree/include/tenon/plugin/view.h"
report "a callback that is not pinned is refused" "include/tenon/plugin/view.h:6: tn_view.drop is not in"

exit $status
