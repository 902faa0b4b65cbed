#!/bin/sh
# tests/style/abi.sh TREE: core/plugin/abi_asserts.c is what tools/pin-abi writes for the public headers, so every struct
# of them is pinned, and every one of its members: also one that fills padding, which changes no size.
set -u
tree=$1
list=core/plugin/abi_asserts.c
written=$(mktemp)
trap 'rm -f "$written"' EXIT
sh "$(dirname "$0")/../../tools/pin-abi" "$tree" >"$written" || exit 1
if cmp -s "$written" "$tree/$list"; then
  echo "case ok: every public struct is pinned"
else
  diff "$tree/$list" "$written" | sed -n "s#^[<>]#$list: &#p" >&2
  echo "$list: the headers say otherwise (>): if the change of the interface is meant, raise its version, and run tools/pin-abi" >&2
  echo "case failed: every public struct is pinned"
  exit 1
fi
