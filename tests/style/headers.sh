#!/bin/sh
# tests/style/headers.sh c|c++ INCLUDE COMPILER...: every public header compiles alone, and twice, as strict C11
# or as C++17. A header includes all that it needs.
set -u
language=$1 include=$2
shift 2
status=0

case $language in
c) std=c11 ;;
c++)
  std=c++17
  command -v "$1" >/dev/null || {
    echo "case skipped: headers as C++17 (there is no $1)"
    exit 77
  }
  ;;
esac

# Reads a translation unit from stdin. $1: name of the case, the rest: the compiler.
compile() {
  name=$1
  shift
  if "$@" -x "$language" -std="$std" -pedantic -Wall -Wextra -Werror -fsyntax-only -I "$include" -; then
    echo "case ok: $name as $std"
  else
    echo "case failed: $name as $std"
    status=1
  fi
}

for header in $(cd "$include" && find tenon -name '*.h' | sort); do
  compile "$header" "$@" <<END
#include "$header"
#include "$header"
END
done

# The macros of a descriptor are part of the headers as well.
compile "a plugin" "$@" <<'END'
#include "tenon/plugin/schedule.h"
#include "tenon/plugin/source.h"

struct half_options {
  double after;
};
static const tn_option options[] = {TN_OPT(struct half_options, after, TN_OPT_FLOAT, "0.5", "[0, 1]", "when"),
                                    TN_OPT_END};
static double factor(const void *given, const tn_schedule_at *at) {
  const struct half_options *o = (const struct half_options *)given;
  return (double)at->step < o->after * (double)at->steps ? 1.0 : 0.5;
}
static const tn_schedule half = {
    TN_ITEM(tn_schedule, TN_SCHEDULE, "half", "half of it", struct half_options, options), factor, NULL, NULL, NULL};
static const tn_schedule one = {TN_ITEM_PLAIN(tn_schedule, TN_SCHEDULE, "one", "all of it"), factor, NULL, NULL, NULL};

TN_PLUGIN(half, "1.0", "MIT", &half.item, &one.item)
END
exit $status
