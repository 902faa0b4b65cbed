#!/bin/sh
# tests/integration/docs/outputs.sh TENON PAGE: the outputs that a page shows are those of its commands.
#
# The first `ini` block of the page is written to step.ini. Each line of a `console` block that begins with "$ " is run
# beside it, and must print the lines below it, up to the next such line.
set -u
tenon=$(realpath "$1") page=$(realpath "$2")
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
mkdir bin && ln -s "$tenon" bin/tenon
export PATH="$scratch/bin:$PATH"

awk '
  /^```/ { kind = kind == "" ? substr($0, 4) : ""; if (kind == "") { had_ini = had_ini || was == "ini" } was = kind; next }
  kind == "ini" && !had_ini { print > "step.ini" }
  kind == "console" && /^\$ / { n++; print substr($0, 3) > ("command." n); next }
  kind == "console" { print > ("expected." n) }
' "$page"

failed=0 n=0
while [ -e "command.$((n + 1))" ]; do
  n=$((n + 1))
  [ -e "expected.$n" ] || : >"expected.$n"
  sh "command.$n" >said 2>errors
  if diff "expected.$n" said >difference; then
    echo "case ok: $(cat "command.$n")"
  else
    echo "case failed: $(cat "command.$n") prints something else than the page (<)"
    cat difference errors
    failed=1
  fi
done
if [ $n = 0 ]; then
  echo "case failed: $page has no console block"
  exit 1
fi
exit $failed
