#!/bin/sh
# tests/bench/mpi_ddp_test.sh TENON: mpi_ddp.sh writes the result and the page, with a stand-in for PyTorch whose steps take 4000, 5000 and
# 6000 s in its faster variant.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cat >"$scratch/python" <<'END'
#!/bin/sh
case "$*" in
-c*) echo 9.8.7 ;;
*compile*) [ "$RANK" != 0 ] || printf '%s\n' 6000000 4000000 5000000 ;;
*) [ "$RANK" != 0 ] || printf '%s\n' 9000000 9000000 9000000 ;;
esac
END
chmod +x "$scratch/python"
PYTHON=$scratch/python OUTPUT=$scratch ROUNDS=2 STEPS=3 SKIPPED=1 MODELS=gpt_char BACKEND=cpu VARIANTS="eager compile" \
  BATCHES="gpt_char=2" sh "$here/mpi_ddp.sh" "$1" >"$scratch/page"
expect() { # $1: file, $2: pattern
  grep -q -- "$2" "$scratch/$1" || { echo "no '$2' in:" && cat "$scratch/$1" && exit 1; }
}
cmp "$scratch/page" "$scratch/mpi.md"
expect mpi.md '| gpt_char | 2 | .* | compile | 4e+06 / 5e+06 / 6e+06 | .* | 1.5 |$'
expect mpi.md '^| gpt_char | 2 | .* | 4e+06 / 5e+06 / 6e+06 |' # the second round
expect mpi.md 'PyTorch 9.8.7'
expect mpi.json '"ddp_eager": \[9e+06, 9e+06, 9e+06\], "ddp_compile": \[4e+06, 5e+06, 6e+06\]'
expect mpi.json '"peer": "compile", "ratio_of_medians": [1-9]'
expect mpi.json '"processes": 2, "steps": 3, "skipped": 1'
! command -v python3 >/dev/null || python3 -m json.tool "$scratch/mpi.json" >/dev/null
