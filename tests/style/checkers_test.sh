#!/bin/sh
# tests/style/checkers_test.sh: the checkers let a made-up tree pass, and refuse it with the file and line of
# every single violation that is put into it.
set -u
here=$(dirname "$0")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
status=0

# put FILE LINE...: a file of the tree.
put() {
  file=$tree/$1
  shift
  mkdir -p "$(dirname "$file")"
  printf '%s\n' "$@" >"$file"
}

plant_tree() {
  rm -rf "${tree:?}"/*
  put include/tenon/base.h '#include <stdint.h>' 'TN_EXPORT int tn_twice(int x);'
  put include/tenon/plugin/op.h '#include "tenon/base.h"'
  put core/base/env.h '#include "tenon/base.h"'
  put core/ops/relu.c '#include "tenon/plugin/op.h"' '#include "core/ops/ops.h"' \
    'const tn_op relu = {.item = TN_ITEM_PLAIN(tn_op, TN_OP, "relu", "max(x, 0)")};' 'POINTWISE(tanh, "tanh x")'
  put core/ops/ops.h ''
  put core/graph/graph.c '#include <jansson.h>' '#include "core/base/env.h"' \
    'const char *ops[] = {"relu", "tanh"}; /* not "sgd" */'
  put core/exec/device.h ''
  put core/exec/device_state.h '#include "core/exec/device.h"'
  put core/exec/device.c '/* core/exec/device.c: the devices of a run. */' '#include "core/exec/device_state.h"' 'static int query(void) { return 0; }' \
    'int tn_twice(int x) {' '  TN_THREAD_STATE;' '  return 2 * x;' '}'
  put core/linked.c '#include "core/exec/device.h"' '#include "linked_plugins.h"'
  put backends/far/far.h '#include "tenon/base.h"'
  put backends/far/kernels/relu.c '#include "backends/far/far.h"' '#include "backends/far/kernels/near.h"' \
    '#include "backends/shared/half.h"'
  put backends/far/plugin.c '#include "backends/far/items.h"'
  put backends/shared/half.h '#include "tenon/base.h"'
  put backends/shared/pointwise/ir.h '#include "backends/shared/half.h"' '#include "tenon/plugin/op.h"'
  put backends/far/kernels/near.h ''
  put backends/far/kernels/relu.h ''
  put plugins/optimizers/sgd.c '#include <math.h>' '#include "tenon/plugin/op.h"' \
    'const tn_optimizer sgd = {.item = TN_ITEM(tn_optimizer, TN_OPTIMIZER,' '    "sgd", "w - lr g", S, options)};'
  put plugins/layers/relu.c 'const tn_layer_kind relu = {.item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "relu", "")};'
  put tools/cli/cli.h ''
  put tools/main.c '#include "tools/cli/cli.h"' '#include "tenon/base.h"'
  put docs/plugins/examples/serf.c '#include <tenon/plugin/op.h>'
}

report() { # $1: ok or failed, $2: name
  echo "case $1: $2"
  [ "$1" = ok ] || status=1
}

# refuses NAME TEXT FILE LINE...: with this file in the tree $checker fails and says TEXT.
refuses() {
  name=$1 text=$2
  shift 2
  plant_tree
  put "$@"
  if said=$(sh "$here/$checker.sh" "$tree" 2>&1); then
    report failed "$name (it passes)"
  elif ! printf '%s\n' "$said" | grep -qF "$text" || [ "$(printf '%s\n' "$said" | wc -l)" != 1 ]; then
    report failed "$name (expected '$text', heard '$said')"
  else
    report ok "$name"
  fi
}

for checker in layering forbidden_calls include_circles paths statics thread_state words; do
  plant_tree
  if said=$(sh "$here/$checker.sh" "$tree" 2>&1); then
    report ok "$checker: a tree in order passes"
  else
    report failed "$checker: a tree in order passes (heard '$said')"
  fi
done

checker=layering
refuses "a room may not use one below it" "core/graph/up.c:2: includes core/exec/device.h: core/graph may use only" \
  core/graph/up.c '#include "core/base/env.h"' '#include "core/exec/device.h"'
refuses "angle brackets hide nothing" "core/graph/up.c:1: includes core/exec/device.h" \
  core/graph/up.c '# include <core/exec/device.h>'
refuses "a folder that is no room is refused" "core/misc/misc.c:1: includes core/base/env.h: core/misc is no room" \
  core/misc/misc.c '#include "core/base/env.h"'
refuses "a room names its headers by their whole path" "core/graph/near.c:1: includes graph.h: core includes" \
  core/graph/near.c '#include "graph.h"'
refuses "core does not include a plugin" "core/train/lr.c:1: includes plugins/optimizers/sgd.h: core includes" \
  core/train/lr.c '#include "plugins/optimizers/sgd.h"'
refuses "ops stand on public headers" "core/ops/conv.c:1: includes core/base/env.h: core/ops stands on" \
  core/ops/conv.c '#include "core/base/env.h"'
refuses "a backend does not include core" "backends/far/device.c:1: includes core/base/env.h: backends/far includes" \
  backends/far/device.c '#include "core/base/env.h"'
refuses "a backend does not include another backend" "backends/near/near.c:1: includes backends/far/far.h: backends/near" \
  backends/near/near.c '#include "backends/far/far.h"'
refuses "a backend names its headers by their whole path" "backends/far/device.c:1: includes far.h: backends/far" \
  backends/far/device.c '#include "far.h"'
refuses "what backends share includes no backend" "backends/shared/ir.h:1: includes backends/far/far.h: backends/shared" \
  backends/shared/ir.h '#include "backends/far/far.h"'
refuses "a backend includes only shared files that exist" \
  "backends/far/device.c:2: includes backends/shared/cost.h: backends/far includes" \
  backends/far/device.c '#include "backends/shared/pointwise/ir.h"' '#include "backends/shared/cost.h"'
refuses "a backend does not reach another one through the shared folder" \
  "backends/near/near.c:1: includes backends/shared/../far/far.h: backends/near" \
  backends/near/near.c '#include "backends/shared/../far/far.h"'
refuses "shared code names its headers by their whole path" "backends/shared/cost.h:1: includes half.h: backends/shared" \
  backends/shared/cost.h '#include "half.h"'
refuses "shared code does not include core" "backends/shared/cost.h:1: includes core/base/env.h: backends/shared" \
  backends/shared/cost.h '#include "core/base/env.h"'
refuses "core does not include shared code of backends" "core/graph/up.c:1: includes backends/shared/half.h: core includes" \
  core/graph/up.c '#include <backends/shared/half.h>'
refuses "a plugin does not include what backends share" "plugins/layers/half.h:1: includes backends/shared/half.h: plugins" \
  plugins/layers/half.h '#include "backends/shared/half.h"'
refuses "a backend does not include the items of another" "backends/near/plugin.c:1: includes backends/far/items.h" \
  backends/near/plugin.c '#include "backends/far/items.h"'
refuses "a plugin does not include a backend" "plugins/layers/layers.c:3: includes backends/far/far.h" \
  plugins/layers/layers.c '' '' '#include "backends/far/far.h"'
refuses "the program does not include core" "tools/plan.c:1: includes core/exec/device.h: tools includes" \
  tools/plan.c '#include "core/exec/device.h"'
refuses "an example is one file" "docs/plugins/examples/tiger.c:1: includes tiger.h: an example is one file" \
  docs/plugins/examples/tiger.c '#include "tiger.h"'
refuses "a public header does not include core" "include/tenon/env.h:1: includes core/base/env.h" \
  include/tenon/env.h '#include "core/base/env.h"'
refuses "a public header needs no library" "include/tenon/env.h:1: includes jansson.h: a public header stands on C11" \
  include/tenon/env.h '#include <jansson.h>'
refuses "callers do not need what implementers need" "include/tenon/env.h:1: includes tenon/plugin/op.h" \
  include/tenon/env.h '#include "tenon/plugin/op.h"'
refuses "core names no item of a plugin" "core/train/lr.c:1: names \"sgd\", an item of plugins/optimizers/sgd.c" \
  core/train/lr.c 'const char *fallback = "sgd";'
refuses "core calls no item of a plugin by text" "core/train/lr.c:1: names \"sgd\", an item of plugins" \
  core/train/lr.c 'parse("say \"it\"", "sgd(lr=0.1)");'

checker=forbidden_calls
refuses "core does not print" "core/graph/say.c:2: uses printf: errors are values" \
  core/graph/say.c '/* printf("no") is' ' fine in a comment */ printf("%d", 1);'
refuses "plugins do not end the process" "plugins/layers/end.c:1: uses abort: errors are values" \
  plugins/layers/end.c 'if (x) abort();'
refuses "backends do not write to stderr" "backends/far/say.c:1: uses stderr: errors are values" \
  backends/far/say.c 'fprintf(stderr, "far");'
refuses "observers leave stdout alone" "plugins/observers/say.c:2: uses stdout: errors are values" \
  plugins/observers/say.c 'fprintf(stderr, "fine");' 'fprintf(stdout, "the result is the program'\''s");'

refuses "files close in new programs" "core/graph/read.c:1: opens a file without \"e\"" core/graph/read.c \
  'FILE *f = fopen(path, "r");' 'FILE *g = fopen(path, "re");'
refuses "sockets close in new programs" "plugins/layers/far.c:1: opens a descriptor without CLOEXEC" \
  plugins/layers/far.c 'int s = socket(family, SOCK_STREAM, 0);' 'int t = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);'
refuses "threads of core block signals" "core/graph/thread.c:1: uses pthread_create" core/graph/thread.c \
  'pthread_create(&thread, NULL, run, arg);'

checker=include_circles
refuses "two files do not include each other's headers" \
  "a circle of includes: backends/far/kernels/near.c -> backends/far/kernels/relu.c -> backends/far/kernels/near" \
  backends/far/kernels/near.c '#include "backends/far/kernels/near.h"' '#include "backends/far/kernels/relu.h"'
refuses "headers include each other in no circle" \
  "a circle of includes: backends/shared/half.h -> backends/shared/pointwise/ir.h -> backends/shared/half" \
  backends/shared/half.h '#include "backends/shared/pointwise/ir.h"'

checker=thread_state
refuses "exported functions begin with the default state" "core/exec/device.c:1: tn_twice has neither TN_ENTER nor" \
  core/exec/device.c 'int tn_twice(int x) {' '  return 2 * x;' '}'
refuses "exported functions are found" "tn_twice: its definition was not found" core/exec/device.c 'int tn_twice(int x);'

checker=paths
refuses "a file's first comment names the file" "core/graph/up.c:1: core/graph/down.c: the first comment names another" \
  core/graph/up.c '/* core/graph/down.c: graphs. */'
refuses "a document names files that exist" "docs/rooms.md:2: core/graph/gone.c: no such file or folder" \
  docs/rooms.md 'The graph is in' '`core/graph/gone.c` and in `core/graph/graph.c`, says `core/graph/*.c`.'
refuses "a comment names files that exist" "core/graph/up.c:2: core/gone/gone.h: no such file or folder" \
  core/graph/up.c '/* Graphs' ' * are in core/gone/gone.h. */'

checker=drawn_ops
refuses "an op without a line is refused" "tests/golden/drawn has no line for: relu" docs/reference/ops.md '## relu'

checker=statics
refuses "a static function has a name of its own" "plugins/layers/twin.c:2: static function query has the name of one at core/" \
  plugins/layers/twin.c '' 'static int query(void) { return 1; }'

checker=links
serf='[serf](docs/plugins/examples/serf.c)'
refuses "a tree without links is not checked" "there is no link to check" README.md 'Text.'
refuses "a link leads to a file" "README.md:2: docs/none.md: there is no docs/none.md" README.md "$serf" '[a](docs/none.md)'
refuses "a link starts at the folder of its page" "docs/guide/a.md:1: docs/plugins: there is no docs/guide/docs/plugins" \
  docs/guide/a.md '[a](docs/plugins), [b](../plugins/examples/serf.c)'
refuses "an anchor is a heading" "README.md:3: #two: README.md has no such heading" \
  README.md '# One: `two`' '[a](#one-two)' '[b](#two)'
refuses "a page in running text exists" "README.md:2: docs/none.md: there is no such page" README.md "$serf" 'See docs/none.md.'
checker=words
refuses "a comment has a thing in the code as its subject" "core/graph/say.c:2: \"whoever\": name the thing" \
  core/graph/say.c '/* The buffer belongs' ' * to whoever made it. */'
refuses "a phrase is found across the end of a line" "core/graph/say.c:1: \"what lies\": begin with the noun" \
  core/graph/say.c '/* The pass copies what' ' * lies in the arena. */'
refuses "a message is read, too" "core/graph/say.c:1: \"is none\": say it positively" \
  core/graph/say.c 'const char *text = "the device that is none";'
refuses "a document is read" "docs/rooms.md:1: \"nobody\": name the thing" docs/rooms.md 'The lock that nobody takes.'
refuses "a script is read" "tests/run.sh:2: \"hears\": code does not feel" tests/run.sh 'echo nobody' '# the log hears of it'

# A library whose objects call each other in a circle, and one whose room calls a room below it in the list.
# links NAME TEXT FILE LINE...: like refuses, with the tree built.
links() {
  name=$1 text=$2
  shift 2
  plant_tree
  rm -rf "$tree/core/ops" "$tree/core/linked.c" "$tree/core/graph/graph.c" "$tree/core/exec" "$tree/backends" "$tree/plugins" "$tree/tools"
  put core/base/env.c 'int tn_env(void); int tn_env(void) { return 1; }'
  put core/graph/text.c 'int tn_env(void); int tn_text(void); int tn_text(void) { return tn_env(); }'
  put core/graph/print.c 'int tn_text(void); int tn_print(void); int tn_print(void) { return tn_text(); }'
  [ $# = 0 ] || put "$@"
  mkdir -p "$tree/build"
  echo '[' >"$tree/build/compile_commands.json"
  for source in $(cd "$tree" && find core -name '*.c'); do
    object=$(echo "$source" | tr / _).o
    cc -c -o "$tree/build/$object" "$tree/$source" || return 0
    printf '  {\n    "file": "../%s",\n    "output": "%s"\n  },\n' "$source" "$object" >>"$tree/build/compile_commands.json"
  done
  said=$(sh "$here/calls_between_files.sh" "$tree/build" 2>&1) && passes=yes || passes=no
  case $passes-$said in
  yes-*) [ -z "$text" ] && report ok "$name" || report failed "$name (it passes)" ;;
  no-*"$text"*) [ -n "$text" ] && report ok "$name" || report failed "$name (heard '$said')" ;;
  *) report failed "$name (expected '$text', heard '$said')" ;;
  esac
}

links "calls: a tree in order passes" ""
links "calls: two files in a circle" "a circle of calls between files: core/" \
  core/graph/text.c 'int tn_print(void); int tn_text(void); int tn_text(void) { return tn_print(); }'
links "calls: a room uses one below it" "core/base/env.c: uses tn_text of core/graph/text.c: core/base may use only" \
  core/base/env.c 'int tn_text(void); int tn_env(void); int tn_env(void) { return tn_text(); }'
exit $status
