#!/bin/sh
# tests/style/drawn_ops.sh ROOT: every op has a line in tests/golden/drawn, which compares it with PyTorch or says why not.
set -eu
cd "$1"
ops=$(sed -n 's/^## //p' docs/reference/ops.md | sort)
lines=$(cat tests/golden/drawn/*.py tests/golden/draw_goldens.py 2>/dev/null | sed -n 's/^    "\([a-z0-9_]*\)": .*/\1/p' | sort)
missing=
for op in $ops; do
  case "
$lines
" in *"
$op
"*) ;; *) missing="$missing $op" ;; esac
done
if [ -z "$ops" ] || [ -n "$missing" ]; then
  echo "case FAILED: tests/golden/drawn has no line for:$missing"
  exit 1
fi
echo "case ok: $(echo "$ops" | wc -l) ops have a line in tests/golden/drawn"
