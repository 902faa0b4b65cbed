#!/bin/sh
# tests/bench/cpu_test.sh TENON RESULTS PAGE: runs cpu.sh and writes its page, with a stub of PyTorch that prints fixed
# times and without the packages of the other peers.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$(dirname "$1")/.." && pwd)
page=$(realpath "$3")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# A stub of python: PyTorch takes 1 s per step, compiled 0.5 s; the packages for inference are missing.
cat >python <<'PYTHON'
#!/bin/sh
case $* in
*ort_peer.py*) echo "ModuleNotFoundError: No module named 'onnx'" >&2; exit 1 ;;
*" best "*)
  echo '{"peer": "torch 9", "variant": "eager", "ms": [999.0, 1000.0, 1001.0], "first_step_s": 2.0}' >&2
  echo '{"peer": "torch 9", "variant": "compile", "ms": [499.0, 500.0, 501.0], "first_step_s": 9.0}' >&2 ;;
*"--variant compile"*) echo '{"peer": "torch 9", "variant": "compile", "ms": [499.0, 500.0, 501.0], "peak_rss_mib": 100, "first_step_s": 9.0}' ;;
*) echo '{"peer": "torch 9", "variant": "eager", "ms": [999.0, 1000.0, 1001.0], "peak_rss_mib": 100, "first_step_s": 2.0}' ;;
esac
PYTHON
chmod +x python
cat >works.txt <<'WORKS'
# a comment
train mlp train 8 fp32 1 3 small sgd 1.5 1e9
start mlp start 8 fp32 1 1 plain sgd 60000ms 1ms
infer mlp infer 8 bf16 1 1 plain -   -   -
gone  none train 8 fp32 1 1 plain sgd 1 2
WORKS
run() { "$here/cpu.sh" --build "$build" --works works.txt --backend cpu "$@" >out 2>err; }
fails() { echo "case failed: $1" && cat out err && exit 1; }

run --rounds 2 --threads 1 --python ./python --peers /peers || fails "the whole table"
grep -q '^train .* torch 9 .* must ' out || fails "a ratio between must and aim"
grep -q '^start .* torch 9 .* 2000 .* must ' out || fails "a time from the start of the process"
grep -q 'skipped: onnxruntime and openvino: ModuleNotFoundError' out || fails "a peer that is absent"
grep -q 'skipped: tenon: ' out || fails "a work that Tenon cannot do"
grep -q '"args": "--threads 1 --variant compile"' cpu.json || fails "the fastest variant is the peer"
echo "case ok: all works, with a peer that is absent"

"$page" cpu.json . || fails "a page"
grep -q '^| train | cpu | 2 | .* | torch 9 | 500 ' cpu.md || fails "a row of the page"
grep -q '</svg>' cpu.svg || fails "a plot"
echo "case ok: a page with a plot"

run --rounds 1 --threads 1 --add yes infer || fails "one work without peers"
grep -q '^infer ' out && grep -q '^train .* torch 9 ' out || fails "the other works are kept"
echo "case ok: one work again, beside the others"

run --rounds 1 --choices cpu.json --output again.json --python ./python --peers /peers train || fails "choices"
grep -q '"phase": "choice"' again.json.lines && fails "no variant is tried again"
grep -q '"args": "--threads 1 --variant compile"' again.json || fails "the choice of an earlier result"
echo "case ok: choices of an earlier result"

run --rounds 1 --threads 1 --beside 1 --output busy.json train || fails "a busy process beside"
grep -q '"beside": 1' busy.json || fails "the number of busy processes"
"$page" busy.json . && grep -q 'ran beside all measurements: 1' busy.md || fails "the page names the busy process"
grep -l -a -e 'busy.json' /proc/[0-9]*/cmdline >left 2>/dev/null && fails "the busy process is left behind"
echo "case ok: beside a busy process"

run --none x && fails "a wrong option passed"
grep -q 'unknown option --none' err || fails "a wrong option"
run nothing && fails "a wrong work passed"
grep -q "there is no work 'nothing'" err || fails "a wrong work"
echo "case ok: wrong arguments"
