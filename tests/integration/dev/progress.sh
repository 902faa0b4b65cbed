#!/bin/sh
# tests/integration/dev/progress.sh ROOT: `tools/dev` says what it does while slow commands run. meson and ninja are
# scripts here that take seconds, as the real ones take minutes.
set -u
root=$1
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0

mkdir "$scratch/bin"
cat >"$scratch/bin/meson" <<'END'
#!/bin/sh
sleep 2
[ "$1" = setup ] || exit 0
mkdir -p "$2" && : >"$2/build.ninja"
END
cat >"$scratch/bin/ninja" <<'END'
#!/bin/sh
for i in 1 2 3 4; do
  echo "[$i/4] Compiling C object part_$i.c.o"
  sleep 1
done
[ ! -e "$(dirname "$0")/fail" ] || { echo "part_4.c: error: a mistake"; exit 1; }
END
chmod +x "$scratch/bin/meson" "$scratch/bin/ninja"

check() {
  if grep -qE "$2" "$scratch/said"; then
    echo "case ok: $1"
  else
    echo "case failed: $1"
    sed 's/^/  it said: /' "$scratch/said"
    failed=1
  fi
}

EVERY=1 BUILD=$scratch/build PATH=$scratch/bin:$PATH "$root/tools/dev" build >"$scratch/said" 2>&1
check "configuring is announced" '^tools/dev: configuring '
check "compiling is announced" '^tools/dev: compiling '
check "objects are counted" '^tools/dev: compiling .*: [23] of 4, [0-9]+ s$'
check "the end is announced" '^built: '
lines=$(wc -l <"$scratch/said")
if [ "$lines" -le 12 ]; then echo "case ok: few lines"; else echo "case failed: $lines lines" && failed=1; fi

: >"$scratch/bin/fail"
EVERY=1 BUILD=$scratch/build PATH=$scratch/bin:$PATH "$root/tools/dev" build >"$scratch/said" 2>&1
[ $? = 70 ] || { echo "case failed: the exit code of a build that fails"; failed=1; }
check "the compiler's message is printed" '^part_4.c: error: a mistake$'
exit $failed
