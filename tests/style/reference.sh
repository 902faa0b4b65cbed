#!/bin/sh
# tests/style/reference.sh ROOT TENON: docs/reference and include/tenon/op_functions.h are what this build's
# `tenon reference` writes; every item has an example; and features have a line under the names that people look for. A build without all backends and
# communicators cannot compare the pages that list them.
set -u
root=$1 tenon=$2
new=$(mktemp -d) || exit 1
trap 'rm -rf "$new"' EXIT
status=0

report() { # $1: ok or failed, $2: name
  echo "case $1: $2"
  [ "$1" = ok ] || status=1
}

"$tenon" reference "$new" || exit 1
"$root/tools/write-coverage" >"$new/coverage.md" || exit 1
partial=
for item in cuda onednn mpi; do "$tenon" inspect $item >/dev/null 2>&1 || partial="$partial $item"; done

for page in $(cd "$new" && ls); do
  case "$page:$partial" in
  README.md:?* | backends.md:*cuda* | backends.md:*onednn* | communicators.md:*mpi*) echo "case skipped: $page: this build lacks$partial" && continue ;;
  esac
  if cmp -s "$new/$page" "$root/docs/reference/$page"; then
    report ok "docs/reference/$page is current"
  else
    diff "$root/docs/reference/$page" "$new/$page" 2>&1 | head -5 >&2
    report failed "docs/reference/$page is not current: run tools/dev reference"
  fi
done
for page in $(cd "$root/docs/reference" && ls); do
  [ -e "$new/$page" ] || report failed "docs/reference/$page is no page of the reference: run tools/dev reference"
done

# ---- functions ----

header=include/tenon/op_functions.h
"$tenon" reference --header core >"$new/op_functions.h" || exit 1
if cmp -s "$new/op_functions.h" "$root/$header"; then
  report ok "$header is current"
else
  diff "$root/$header" "$new/op_functions.h" | head -5 >&2
  report failed "$header is not current: run tools/dev reference"
fi

# ---- examples ----

lacking=$(cd "$new" && awk '
  function done() { if (item != "" && !has) print file ": " item }
  FNR == 1 { done(); item = ""; file = FILENAME }
  /^## / { done(); item = substr($0, 4); has = 0 }
  /^```ini/ { has = 1 }
  END { done() }' layers.md losses.md metrics.md optimizers.md schedules.md sources.md transforms.md initializers.md \
  precision.md observers.md backends.md communicators.md)
if [ -z "$lacking" ]; then
  report ok "every item has an example"
else
  report failed "items without an example (tn_layer_kind.example and others): $lacking"
fi

# ---- features, as "page: words" that one line of the page has ----

while IFS=: read -r page words; do
  if grep -q -e "$words" "$new/$page.md"; then
    report ok "$page.md has a line for '$words'"
  else
    report failed "$page.md has no line for '$words'"
  fi
done <<'END'
sections:`patience`.*early stopping
sections:`best_mode`
sections:`ema`.*(EMA)
sections:`swa_from`.*(SWA)
sections:`clip`.*gradient clipping
sections:`clip_value`.*gradient clipping
sections:`skip`
sections:`rename`
sections:`transpose`
sections:`freeze`.*epoch
sections:`observers`
sections:`deterministic`
losses:`label_smoothing`
schedules:^## one_cycle
schedules:^## plateau
schedules:^## exponential
schedules:^## polynomial
schedules:^## multistep
schedules:^## cosine_restarts
transforms:^## mixup
transforms:^## cutmix
transforms:^## color_jitter
transforms:^## random_erasing
transforms:^## rand_augment
transforms:^## trivial_augment
transforms:^## grayscale
transforms:^## random_rotation
transforms:^## gaussian_blur
sources:`split`.*validation
observers:^## tensorboard
commands:--input
commands:--top
commands:--csv
commands:^## tenon report
commands:^## tenon generate
commands:--temperature
commands:--top-p
sections:`profile`
sections:`limit_train`
sections:`limit_valid`
sections:`overfit`
sections:`balance`
sections:`report`
metrics:^## perplexity
commands:^## tenon data
commands:^## tenon find-lr
commands:--trace
sections:`corrupt`
commands:^## tenon runs
commands:^## tenon init
commands:^## tenon new-plugin
commands:^## tenon checkpoint
commands:^## tenon completion
commands:^## tenon man
commands:--classes.*F1
commands:^## Exit codes
END
exit $status
