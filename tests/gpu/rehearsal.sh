#!/bin/sh
# tests/gpu/rehearsal.sh PACK BUILD DOUBLES: the tests for a machine with a GPU, on doubles, in a bare copy of the packed folder:
# parts A to D end, four files come back, and a step that hangs, a case that faults or hangs, and a library that is missing cost
# that step. The peers are tried where python3 has PyTorch.
set -u
pack=$(realpath "$1") build=$(realpath "$2") doubles=$(realpath "$3")
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0

report() { # $1: the case, $2: the reason of a failure, or nothing
  if [ -z "$2" ]; then echo "case ok: $1"; else echo "case failed: $1: $2" && failed=1; fi
}

# A copy of the folder at another place, and a call of a part in it, with the doubles by a relative path. $1: the copy; the rest:
# part, seconds.
copy() { cp -R "$scratch/packed" "$scratch/$1"; }
call() {
  name=$1
  shift
  (cd / && env -i PATH="$PATH" HOME="$scratch" TMPDIR="$scratch" FAKECUDA_CACHE="${FAKECUDA_CACHE:-}" FAKECUDA_FAIL="${FAULT:-}" \
    OUT="$scratch/$name.out" "$scratch/$name/run" --double ".${AT:-$doubles}" --short "$@") >"$scratch/$name.said" 2>&1
}
state() { awk -F '\t' -v step="$2" '$1 == step { print $2 }' "$scratch/$1.out/summary.tsv"; }
expect() { # $1: the copy, $2: step, $3: its state
  [ "$(state "$1" "$2")" = "$3" ] || echo "$2 is '$(state "$1" "$2")', expected '$3': $(cat "$scratch/$1.said") "
}

"$pack" "$build" "$scratch/packed" >"$scratch/said" 2>&1 || { report 'pack' "$(cat "$scratch/said")" && exit 1; }
report 'pack' ''

wrong() {
  for words in '--double /no/folder A 10' '--fast A 10' 'E 10' 'A soon'; do
    # shellcheck disable=SC2086
    OUT=$scratch/wrong.out "$scratch/packed/run" $words >"$scratch/said" 2>&1
    code=$?
    [ $code = 2 ] && grep -q 'expected\|PART SECONDS' "$scratch/said" || echo "'$words': exit code $code: $(cat "$scratch/said")"
  done
}
report 'wrong words are refused' "$(wrong)"

parts() {
  copy whole
  for part in A B D; do
    call whole $part 3000 || echo "part $part exits with $?: $(cat "$scratch/whole.said")"
    cp "$scratch/whole.said" "$scratch/whole.$part"
    [ "$(wc -l <"$scratch/whole.said")" -eq 10 ] || echo "part $part prints no ten lines: $(cat "$scratch/whole.said")"
    files=$(ls -A "$scratch/whole.out" | tr '\n' ' ')
    [ "$files" = 'cache.tgz device.json logs.tgz summary.tsv ' ] || echo "part $part writes $files"
  done
}
report 'parts A, B and D end, with ten lines and four files' "$(parts)"

# In the ten lines of part A.
peers() {
  line='^ratio *$'
  if python3 -c 'import torch' 2>/dev/null; then line='^ratio *mlp [0-9.]*$'; fi
  grep -q "$line" "$scratch/whole.A" || echo "no line '$line': $(cat "$scratch/whole.A")"
  grep -q '^ms a step *mlp [0-9]' "$scratch/whole.A" || echo "no time of a step: $(cat "$scratch/whole.A")"
}
report 'PyTorch beside Tenon' "$(peers)"

# The double gets a program in front that sleeps in one command.
hang() {
  copy hung
  mv "$scratch/hung/tools/tenon" "$scratch/hung/tools/tenon.own"
  printf '#!/bin/sh\n[ "$1" != train ] || exec sleep 3000\nexec "$0.own" "$@"\n' >"$scratch/hung/tools/tenon"
  chmod +x "$scratch/hung/tools/tenon"
  sed -i 's/^  step smoke [^ ]* /  step smoke 3 /' "$scratch/hung/run"
  call hung A 3000
  code=$?
  [ $code = 1 ] || echo "exit code $code, expected 1: $(cat "$scratch/hung.said")"
  expect hung smoke hung
  expect hung mlp_fp32 ok
  expect hung cmp_digits_fp16 ok
  took=$(awk -F '\t' '$1 == "smoke" { print $3 }' "$scratch/hung.out/summary.tsv")
  [ "$took" -lt 3000 ] || echo "smoke takes $took s, as long as the program sleeps; its limit is 3 s"
  cp -R "$scratch/hung" "$scratch/stopped"
  sed -i 's/^  step smoke 3/  step smoke 60/' "$scratch/stopped/run"
  call stopped A 30 || echo "a part that ends before a step exits with $?: $(cat "$scratch/stopped.said")"
  expect stopped smoke 'no time'
  expect stopped mlp_fp32 'no time'
}
report 'a step that hangs costs its limit alone' "$(hang)"

fault() {
  copy fault
  FAULT=kernel:9
  call fault B 120
  FAULT=
  expect fault conformance_1 'failed (71)'
  [ -n "$(state fault conformance_2)" ] || echo "it does not go on: $(cat "$scratch/fault.said")"
}
report 'a case that faults is followed by a new process' "$(fault)"

# $1: the copy, $2: a case's seconds, $3: seconds without a word, $4: the state. Each process meets a kernel that hangs.
case_hang() {
  copy "$1"
  sed -i "s/--timeout 20 /--timeout $2 /; s/ quiet=30$/ quiet=$3/; /bench lenet_infer/d" "$scratch/$1/run"
  FAULT=kernel:20=hang
  call "$1" B 120
  FAULT=
  expect "$1" conformance_1 "$4"
  [ -n "$(state "$1" conformance_2)" ] || echo "it does not go on: $(cat "$scratch/$1.said")"
  cut -f 4 "$scratch/$1.out/summary.tsv" | grep -q "relu/" || echo "the case is not named: $(cat "$scratch/$1.out/summary.tsv")"
}
report 'a case that hangs is followed by a new process' "$(case_hang slow 20 100 'failed (71)')"
report 'so is one whose process is deaf' "$(case_hang deaf 100 8 hung)"

missing() {
  copy missing
  mkdir "$scratch/some" && find "$doubles" -maxdepth 1 -name '*.so*' ! -type d -exec cp -P {} "$scratch/some/" \; && rm "$scratch"/some/libcuda.so*
  AT=$scratch/some
  call missing A 3000
  AT=
  case $(state missing mlp_fp32) in failed*) ;; *) echo "mlp_fp32 is '$(state missing mlp_fp32)'" ;; esac
  tar xzOf "$scratch/missing.out/logs.tgz" ./mlp_fp32.err.log | grep -q libcuda.so.1 || echo 'no log names libcuda.so.1'
}
report 'a library that is missing is named, and the part ends' "$(missing)"

# A variant that breaks the device while it is measured: part C leaves it out, and says so.
avoided() {
  copy variant
  FAULT=task:1
  call variant A 3000
  FAULT=
  case $(state variant mlp_fp32) in failed*) ;; *) echo "mlp_fp32 is '$(state variant mlp_fp32)'" ;; esac
  cp "$scratch/variant.out/cache.tgz" "$scratch/variant/"
  call variant C 3000 || echo "exit code $?: $(cat "$scratch/variant.said")"
  expect variant mlp_fp32_again ok
  grep -q '^declined .*; [1-9][0-9]* variants avoided$' "$scratch/variant.said" || echo "no variant is avoided: $(cat "$scratch/variant.said")"
}
report 'part C leaves out a variant that breaks the device' "$(avoided)"

again() {
  cp "$scratch/hung.out/cache.tgz" "$scratch/hung/"
  rm -f "$scratch/hung/tools/tenon" && mv "$scratch/hung/tools/tenon.own" "$scratch/hung/tools/tenon"
  call hung C 3000 || echo "exit code $?: $(cat "$scratch/hung.said")"
  expect hung smoke_again ok
}
report 'part C repeats the failed step' "$(again)"
exit $failed
