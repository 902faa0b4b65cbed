#!/bin/sh
# tests/integration/dev/progress.sh ROOT BUILD: `tools/dev` says what it does while slow commands run, and runs no more of
# them than it needs. meson and ninja are scripts here, which stay until tools/dev has said what they wait for, as the real
# ones take minutes; they write their arguments to a file. BUILD: the folder of the real ones.
set -u
root=$1 real=$2
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0

mkdir "$scratch/bin"
# await WORDS: until tools/dev has said them. The limit of 10 minutes ends a hang and nothing else.
cat >"$scratch/bin/await" <<'END'
#!/bin/sh
[ "${PROMPT:-no}" = no ] || exit 0
looks=0
until grep -q "$1" "$(dirname "$0")/../said" || [ $looks -ge 6000 ]; do
  sleep 0.1
  looks=$((looks + 1))
done
END
cat >"$scratch/bin/meson" <<'END'
#!/bin/sh
echo "meson $*" >>"$(dirname "$0")/calls"
if [ "$1" = test ]; then
  number=$(grep -c '^meson test' "$(dirname "$0")/calls")
  mkdir -p "$3/meson-logs"
  cat "$(dirname "$0")/tests_$number" | tee "$3/meson-logs/testlog.txt"
  ! grep -q FAIL "$(dirname "$0")/tests_$number"
  exit
fi
await 'configuring .*: [0-9]* s$'
[ "$1" = setup ] && [ "$2" != --reconfigure ] || exit 0
mkdir -p "$2" && : >"$2/build.ninja"
END
cat >"$scratch/bin/ninja" <<'END'
#!/bin/sh
echo "ninja $*" >>"$(dirname "$0")/calls"
for i in 1 2 3 4; do
  echo "[$i/4] Compiling C object part_$i.c.o"
  [ $i != 3 ] || await 'compiling .*: 3 of 4, [0-9]* s$'
done
[ ! -e "$(dirname "$0")/fail" ] || { echo "part_4.c: error: a mistake"; exit 1; }
END
chmod +x "$scratch/bin/await" "$scratch/bin/meson" "$scratch/bin/ninja"

check() {
  if grep -qE "$2" "$scratch/said"; then
    echo "case ok: $1"
  else
    echo "case failed: $1"
    sed 's/^/  it said: /' "$scratch/said"
    failed=1
  fi
}

began=$(date +%s)
EVERY=1 BUILD=$scratch/build PATH=$scratch/bin:$PATH "$root/tools/dev" build >"$scratch/said" 2>&1
took=$(($(date +%s) - began))
check "configuring is announced" '^tools/dev: configuring '
check "compiling is announced" '^tools/dev: compiling '
check "objects are counted" '^tools/dev: compiling .*: 3 of 4, [0-9]+ s$'
check "the end is announced" '^built: '
# one a second, and those that say what begins and ends: however long it takes, since tools/dev sleeps between them
lines=$(wc -l <"$scratch/said")
if [ "$lines" -le $((took + 5)) ]; then echo "case ok: few lines"; else echo "case failed: $lines lines in $took s" && failed=1; fi

: >"$scratch/bin/fail"
PROMPT=yes EVERY=1 BUILD=$scratch/build PATH=$scratch/bin:$PATH "$root/tools/dev" build >"$scratch/said" 2>&1
[ $? = 70 ] || { echo "case failed: the exit code of a build that fails"; failed=1; }
check "the compiler's message is printed" '^part_4.c: error: a mistake$'
rm "$scratch/bin/fail"

# Runs `tools/dev $*` on the folder that is configured, and compares what it calls.
expect() {
  title=$1 calls=$2
  shift 2
  : >"$scratch/bin/calls"
  PROMPT=yes EVERY=1 BUILD=$scratch/build PACKAGES=$scratch/packages GPU=$scratch/gpu PATH=$scratch/bin:$PATH "$root/tools/dev" "$@" \
    >"$scratch/said" 2>&1
  echo "exit code $?" >>"$scratch/said"
  if [ "$(sed "s|$scratch/||g" "$scratch/bin/calls")" = "$calls" ]; then
    echo "case ok: $title"
  else
    echo "case failed: $title: expected $calls"
    cat "$scratch/bin/calls" "$scratch/said"
    failed=1
  fi
}

mkdir "$scratch/build/tools"
printf '#!/bin/sh\necho "trained: $*"\n' >"$scratch/build/tools/tenon"
chmod +x "$scratch/build/tools/tenon"
expect "a demo builds what it runs" "ninja -C build program" demo
check "a demo trains" '^trained: train docs/examples/digits.ini$'

ninja -C "$real" -t commands program >"$scratch/said"
check "its commands link the program" ' -o tools/tenon '
check "its commands link the backend cpu" ' -o backends/cpu/tenon-cpu\.so '
if grep -q 'tests/\|nvcc' "$scratch/said"; then echo "case failed: a demo compiles tests" && failed=1; else echo "case ok: a demo compiles no test"; fi

# A part that was left out is looked for again when packages have changed, by a meson that forgets what it has found.
echo 'TN_LEFT_OUT("mpi", "not found")' >"$scratch/build/left_out.h"
touch -d '1 hour ago' "$scratch/packages"
expect "the same packages: not configured again" "ninja -C build" build
touch -d '1 hour' "$scratch/packages"
expect "other packages: configured again" "meson configure build --clearcache
meson setup --reconfigure build
ninja -C build" build
: >"$scratch/build/left_out.h"
expect "nothing left out: not configured again" "ninja -C build" build

# ---- tests ----

cat >"$scratch/bin/tests_1" <<'END'
1/3 tenon:unit / base arena                        OK               0.02s
2/3 tenon:integration / processes_ ssh             FAIL            71.20s   exit status 1
3/3 tenon:unit / loader                            TIMEOUT       1800.03s   killed by signal 15 SIGTERM

Summary of Failures:

2/3 tenon:integration / processes_ ssh             FAIL            71.20s   exit status 1
3/3 tenon:unit / loader                            TIMEOUT       1800.03s   killed by signal 15 SIGTERM
END
head -1 "$scratch/bin/tests_1" >"$scratch/bin/tests_2"
expect "repeat: the whole suite, as often and with as many programs at once as asked" "ninja -C build
meson test -C build --no-rebuild --num-processes 3 --no-suite peers --no-suite whole
meson test -C build --no-rebuild --num-processes 3 --no-suite peers --no-suite whole" repeat 2 3
check "repeat: a run with its time and the tests that failed" \
  '^run 1 of 2: [0-9]+ s, failed: processes_ ssh, loader \(.*/meson-logs/repeat-1.txt\)$'
check "repeat: a run without a failure" '^run 2 of 2: [0-9]+ s$'
check "repeat: the sum" '^1 of 2 runs failed$'
check "repeat: the exit code of a failure" '^exit code 1$'
cp "$scratch/bin/tests_2" "$scratch/bin/tests_1"
expect "repeat: once" "ninja -C build
meson test -C build --no-rebuild --num-processes 8 --no-suite peers --no-suite whole" repeat 1
check "repeat: the exit code without a failure" '^exit code 0$'
expect "quick: two suites" "ninja -C build
meson test -C build --no-rebuild --num-processes $(($(nproc) + 2)) --print-errorlogs --suite unit --suite style" test quick
expect "two suites that are named" "ninja -C build
meson test -C build --no-rebuild --num-processes $(($(nproc) + 2)) --print-errorlogs --suite peers --suite integration" \
  test peers integration

rm -r "$scratch/build"
expect "no GPU: no kernel is compiled ahead" "meson setup build -Dnvcc_arch=none
ninja -C build" build
rm -r "$scratch/build"
: >"$scratch/gpu"
expect "a GPU: kernels are compiled ahead" "meson setup build
ninja -C build" build
exit $failed
