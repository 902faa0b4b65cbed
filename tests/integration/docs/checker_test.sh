#!/bin/sh
# tests/integration/docs/checker_test.sh ROOT TENON [CC...]: blocks.sh lets true blocks pass, and refuses false ones with
# their places, and pages without blocks.
set -u
root=$(realpath "$1") tenon=$(realpath "$2")
shift 2
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
status=0

report() { # $1: ok or failed, $2: name
  echo "case $1: $2"
  [ "$1" = ok ] || { cat "$tree/said" && status=1; }
}

says() { # $1: the line that was printed
  if grep -qxF -e "$1" "$tree/said"; then report ok "$1"; else report failed "expected '$1'"; fi
}

mkdir -p "$tree/docs/plugins"
for shared in tests tools include docs/examples; do ln -s "$root/$shared" "$tree/$shared"; done
ln -s "$root/docs/plugins/examples" "$tree/docs/plugins/examples"
cp "$root/docs/architecture.md" "$tree/docs/guide.md" # a page without blocks
ln -s guide.md "$tree/docs/architecture.md"
printf 'Text.\n' >"$tree/CONTRIBUTING.md"

cat >"$tree/README.md" <<'END'
```ini
[run]
epochs = 3
```
```ini
[run]
epoches = 3
```
<!-- not run: an example of a mistake -->
```ini
[run]
epoches = 4
```
    [optimizer]
    lr = many

    tenon plan model.ini --dump-after join   # a remark
    tenon plan model.ini --dump-behind join
    tools/dev build
    tools/dev bild

`tenon bench FILE.ini --steps N` and `tenon bench --setps 3`.
```sh
tenon plan model.ini | grep launches
```
```sh
tenon config explain run.epochs
false
```
```console
tenon train missing.ini \
  --weihgts x
```
END
if sh "$here/blocks.sh" "$tree" "$tenon" "$@" >"$tree/said" 2>&1; then report failed "a page with mistakes passes"; fi
says "case ok: README.md:1: ini"
says "case failed: README.md:5: ini"
says "case skipped: README.md:10: ini: an example of a mistake"
says "case failed: README.md:14: ini"
says "case ok: README.md:17: tenon plan model.ini --dump-after join"
says "case failed: README.md:17: tenon plan model.ini --dump-behind join"
says "case ok: README.md:17: tools/dev build"
says "case failed: README.md:17: tools/dev bild"
says "case ok: README.md:22: tenon bench FILE.ini --steps 1"
says "case failed: README.md:22: tenon bench --setps 3"
says "case ok: README.md:23: run"
says "case failed: README.md:26: run"
says "case failed: README.md:30: tenon train missing.ini --weihgts x"

printf 'Text.\n' >"$tree/README.md"
if sh "$here/blocks.sh" "$tree" "$tenon" "$@" >"$tree/said" 2>&1; then report failed "pages without blocks pass"; fi
says "case failed: nothing was checked"
exit $status
