#!/bin/sh
# tests/style/picture.sh ROOT: docs/architecture.svg is the picture that tools/draw-architecture draws of this tree.
set -u
if "$1/tools/draw-architecture" | cmp -s - "$1/docs/architecture.svg"; then
  echo "case ok: docs/architecture.svg shows the tree"
else
  echo "docs/architecture.svg shows another tree: run tools/draw-architecture >docs/architecture.svg" >&2
  echo "case failed: docs/architecture.svg shows the tree"
  exit 1
fi
