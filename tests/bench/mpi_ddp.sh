#!/bin/sh
# tests/bench/mpi_ddp.sh [TENON]: the time of a training step of several processes: `tenon bench` by mpirun with the communicator mpi,
# and PyTorch's DistributedDataParallel with gloo (ddp_peer.py). Both have the same model, batch and threads, random data that is made
# before the first step, and wait for each step. They run in turn, in the other order in every second round, so that a shared machine
# has a similar load for both. Writes OUTPUT/mpi.json and the page OUTPUT/mpi.md, and prints the page. This is a
# measurement, not a test: it fails only if a program fails.
#   PYTHON=python3 (with torch)   ROUNDS=5   STEPS=20   SKIPPED=5   PROCESSES=2   THREADS=1   MODELS="gpt_char resnet18_32"
#   BATCHES="gpt_char=24 resnet18_32=64" (of all processes together)   BACKEND=onednn   COMMUNICATOR=mpi
#   VARIANTS=eager (or compile, or both: the ratio is that of the fastest)   OUTPUT=docs/results
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/bench/machine.sh"
tenon=$(realpath "${1:-$root/build/tools/tenon}")
python=${PYTHON:-python3} variants=${VARIANTS:-eager} output=${OUTPUT:-$root/docs/results} models=${MODELS:-gpt_char resnet18_32}
n=${PROCESSES:-2} threads=${THREADS:-1} rounds=${ROUNDS:-5} steps=${STEPS:-20} skipped=${SKIPPED:-5}
backend=${BACKEND:-onednn} communicator=${COMMUNICATOR:-mpi} required=1.5
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# Open MPI binds a process to one core, where its two threads compete; the peer is not bound.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none \
  OMPI_MCA_rmaps_base_oversubscribe=1

batch_of() { # $1: model
  for pair in ${BATCHES:-gpt_char=24 resnet18_32=64}; do [ "${pair%%=*}" != "$1" ] || echo "${pair#*=}"; done
}
load() { cut -d' ' -f1 /proc/loadavg; }
# Seconds of all processors that were busy, and of these the ones of this script's programs, which a subshell does not know.
busy_s() { awk -v hz="$(getconf CLK_TCK)" '/^cpu / { print ($2 + $3 + $4 + $7 + $8 + $9) / hz }' /proc/stat; }
count_own() {
  times >"$scratch/times"
  own_s=$(tr 'ms' '  ' <"$scratch/times" | awk '{ s += 60 * ($1 + $3) + $2 + $4 } END { print s }')
}

fail() { # $1: the program, the rest: files with what it printed
  echo "mpi_ddp.sh: $1 failed; it printed:" >&2
  shift
  cat "$@" >&2
  exit 1
}

# ---- one measurement: prints min, median and max of a step in milliseconds ----

ours() { # $1: model, $2: batch of all processes
  mpirun -n "$n" "$tenon" bench "$root/tests/bench/models/$1.ini" --mode train --json --quiet --batch "$2" --steps 1 --rounds "$steps" \
    --warmup "$skipped" --threads "$threads" --set "backend.use=$backend" --set "distributed.communicator=$communicator" \
    >"$scratch/out" 2>"$scratch/err" || fail "tenon bench $1" "$scratch/out" "$scratch/err"
  sed 's/.*"measured": {[^}]*"exposed_percent": \([0-9.e+-]*\).*/\1/' "$scratch/out" >"$scratch/exposed"
  sed 's/.*"ms": \[\([^]]*\)\].*/\1/' "$scratch/out" | tr -d ',' >"$scratch/spread"
}
peers() { # $1: model, $2: batch of all processes, $3: variant
  port=$((20000 + $$ % 10000)) pids=
  for rank in $(seq 0 $((n - 1))); do
    RANK=$rank WORLD_SIZE=$n MASTER_ADDR=127.0.0.1 MASTER_PORT=$port OMP_NUM_THREADS=$threads "$python" \
      "$root/tests/bench/ddp_peer.py" "$1" --batch $(($2 / n)) --steps "$steps" --skip "$skipped" --threads "$threads" \
      --channels-last --variant "$3" >"$scratch/out.$rank" 2>"$scratch/err.$rank" &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid" || fail "ddp_peer.py $1 --variant $3" "$scratch"/err.*; done
  sort -g "$scratch/out.0" | awk '{ v[NR] = $1 } END { print v[1], v[int(NR / 2) + 1], v[NR] }' >"$scratch/spread"
}

# Appends "MODEL ROUND WHO MIN MEDIAN MAX EXPOSED OTHERS LOAD". Others: percent of the processors that other programs used meanwhile.
measure() { # $1: model, $2: round, $3: tenon or a variant of the peer
  count_own
  before=$(load) start_s=$(date +%s.%N) busy_before=$(busy_s) own_before=$own_s
  echo - >"$scratch/exposed"
  if [ "$3" = tenon ]; then ours "$1" "$(batch_of "$1")"; else peers "$1" "$(batch_of "$1")" "$3"; fi
  count_own
  others=$(echo "$start_s $(date +%s.%N) $busy_before $(busy_s) $own_before $own_s $(nproc)" |
    awk '{ o = 100 * ($4 - $3 - $6 + $5) / (($2 - $1) * $7); printf "%.0f", (o > 0 ? o : 0) }')
  echo "$1 $2 $3 $(cat "$scratch/spread") $(cat "$scratch/exposed") $others $before" >>"$scratch/rounds"
  echo "$1, round $2 of $rounds: $3: $(cat "$scratch/spread") ms; other programs: $others % of the processors" >&2
}

# ---- the result ----

# Of the file of the rounds: the JSON, or the tables of the page.
report() { # $1: json or page
  batches=
  for model in $models; do batches="$batches $model=$(batch_of "$model")"; done
  awk -v form="$1" -v models="$models" -v variants="$variants" -v rounds="$rounds" -v batches="$batches" -v required="$required" '
    function sorted(list, count,   i, k, x) {
      for (i = 2; i <= count; i++) for (k = i; k > 1 && list[k] < list[k - 1]; k--) { x = list[k]; list[k] = list[k - 1]; list[k - 1] = x }
    }
    function median(list, count) { sorted(list, count); return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2 }
    function spread_of(m, who,   r, list, low, high) { # sets a, b, c: the least, the median of the medians, the greatest
      for (r = 1; r <= rounds; r++) {
        list[r] = mid[m, r, who]
        if (r == 1 || least[m, r, who] < low) low = least[m, r, who]
        if (r == 1 || most[m, r, who] > high) high = most[m, r, who]
      }
      a = low; b = median(list, rounds); c = high
    }
    function best(m,   i, fastest) { # the variant with the least median
      for (i = 1; i <= n_variants; i++) { spread_of(m, variant[i]); if (i == 1 || b < fastest) { fastest = b; choice = variant[i] } }
      return choice
    }
    { least[$1, $2, $3] = $4 + 0; mid[$1, $2, $3] = $5 + 0; most[$1, $2, $3] = $6 + 0; exposed[$1, $2, $3] = $7; others[$1, $2, $3] = $8; load[$1, $2, $3] = $9 }
    function three(m, r, who) { return sprintf("[%.4g, %.4g, %.4g]", least[m, r, who], mid[m, r, who], most[m, r, who]) }
    function write_json(m,   r, i, who, list, ours) {
      peer = best(m); spread_of(m, "tenon"); ours = b
      printf "  {\"model\": \"%s\", \"batch\": %s, \"required\": %s, \"tenon\": [%.4g, %.4g, %.4g]", m, batch[m], required, a, b, c
      for (i = 1; i <= n_variants; i++) { spread_of(m, variant[i]); printf ", \"ddp_%s\": [%.4g, %.4g, %.4g]", variant[i], a, b, c }
      spread_of(m, peer)
      for (r = 1; r <= rounds; r++) list[r] = mid[m, r, peer] / mid[m, r, "tenon"]
      sorted(list, rounds)
      printf ",\n   \"peer\": \"%s\", \"ratio_of_medians\": %.3f, \"ratio_by_round\": [%.3f, %.3f, %.3f],\n   \"rounds\": [", peer, b / ours, list[1], median(list, rounds), list[rounds]
      for (r = 1; r <= rounds; r++) {
        printf "%s\n    {\"ratio\": %.3f, \"tenon\": %s, \"exposed_percent\": %.2f, \"others_percent\": %s, \"load\": %s", (r > 1 ? "," : ""), mid[m, r, peer] / mid[m, r, "tenon"], three(m, r, "tenon"), exposed[m, r, "tenon"], others[m, r, "tenon"], load[m, r, "tenon"]
        for (i = 1; i <= n_variants; i++) { who = variant[i]; printf ", \"ddp_%s\": %s, \"ddp_%s_others_percent\": %s", who, three(m, r, who), who, others[m, r, who] }
        printf "}"
      }
      printf "]}"
    }
    function write_row(m,   r, list, ours, text) {
      peer = best(m); spread_of(m, "tenon"); ours = b
      text = sprintf("%s | %s | %.4g / %.4g / %.4g", m, batch[m], a, b, c)
      spread_of(m, peer)
      for (r = 1; r <= rounds; r++) list[r] = mid[m, r, peer] / mid[m, r, "tenon"]
      sorted(list, rounds)
      printf "| %s | %s | %.4g / %.4g / %.4g | %.2f | %.2f / %.2f / %.2f | %s |\n", text, peer, a, b, c, b / ours, list[1], median(list, rounds), list[rounds], required
    }
    function write_rounds(m,   r, peer) {
      peer = best(m)
      for (r = 1; r <= rounds; r++)
        printf "| %s | %d | %.4g / %.4g / %.4g | %.4g / %.4g / %.4g | %.2f | %.1f | %s, %s | %s |\n", m, r, least[m, r, "tenon"], mid[m, r, "tenon"], most[m, r, "tenon"], least[m, r, peer], mid[m, r, peer], most[m, r, peer], mid[m, r, peer] / mid[m, r, "tenon"], exposed[m, r, "tenon"], others[m, r, "tenon"], others[m, r, peer], load[m, r, "tenon"]
    }
    END {
      n_models = split(models, model, " "); n_variants = split(variants, variant, " ")
      for (i = split(batches, pair, " "); i > 0; i--) { split(pair[i], part, "="); batch[part[1]] = part[2] }
      for (k = 1; k <= n_models && form == "json"; k++) { if (k > 1) printf ",\n"; write_json(model[k]) }
      for (k = 1; k <= n_models && form == "page"; k++) write_row(model[k])
      for (k = 1; k <= n_models && form == "rounds"; k++) write_rounds(model[k])
    }' "$scratch/rounds"
}
others_of_all() { awk '{ v[NR] = $8 } END { low = high = v[1]; for (i in v) { s += v[i]; if (v[i] < low) low = v[i]; if (v[i] > high) high = v[i] } printf "%.0f %% on average, %.0f to %.0f %%", s / NR, low, high }' "$scratch/rounds"; }

write_json() {
  printf '{%s,\n "torch": "%s", "mpi": "%s", "backend": "%s", "communicator": "%s", "processes": %s, "steps": %s, "skipped": %s,\n "works": [\n' \
    "$(machine "$root" "$tenon" "$threads")" "$torch" "$mpi" "$backend" "$communicator" "$n" "$steps" "$skipped"
  report json
  printf '\n ]}\n'
}
write_page() {
  cat <<END
# Several processes beside PyTorch

Made by \`tests/bench/mpi_ddp.sh\`, which also writes mpi.json; do not edit.

$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1), $(nproc) processors ($(machine "$root" "$tenon" "$threads" | sed 's/.*"isa": "\([^"]*\)".*/\1/')), Linux $(uname -r). Tenon $("$tenon" --version | cut -d' ' -f2) ($(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)), $(date -u +%Y-%m-%d);
PyTorch $torch; $mpi. $n processes with $threads thread$([ "$threads" = 1 ] || echo s) each: \`tenon bench\` by mpirun with backend $backend and the communicator $communicator,
and DistributedDataParallel with gloo (\`tests/bench/ddp_peer.py\`: channels_last for pictures, fused AdamW, gradients as views of
buckets of 25 MiB; variants: $variants).

Both train on random data that is made before the first step, so no loader is measured on either side, and both wait for each
step. A round is $steps steps of each after $skipped that are not counted, in turn, in the other order in every second round.
Milliseconds of a step are least / median / greatest: of all rounds the least, the median of the rounds' medians, and the greatest.
A ratio is the time of the peer divided by that of Tenon.

Programs other than the measured ones used $(others_of_all) of the processors meanwhile.
Where that is more than a few percent, only the ratios compare, and the processes of both wait for whichever of them the others
slow down.

| model | batch of all | Tenon, ms | peer | peer, ms | ratio of medians | ratio by round | required |
|---|---|---|---|---|---|---|---|
$(report page)

Of each round; exposed is the share of Tenon's step that waits for collectives; others is the share of the processors that other
programs used, beside Tenon and beside the peer; load is the load average before Tenon's part.

| model | round | Tenon, ms | peer, ms | ratio | exposed % | others % | load |
|---|---|---|---|---|---|---|---|
$(report rounds)
END
}

torch=$("$python" -c 'import torch; print(torch.__version__)')
mpi=$(mpirun --version | head -n 1 | sed 's/^mpirun *//; s/[()]//g')
for round in $(seq "$rounds"); do
  for model in $models; do
    [ $((round % 2)) = 1 ] && order="tenon $variants" || order="$variants tenon"
    for who in $order; do measure "$model" "$round" "$who"; done
  done
done
write_json >"$scratch/mpi.json"
write_page >"$scratch/mpi.md"
cp "$scratch/mpi.json" "$scratch/mpi.md" "$output"
cat "$output/mpi.md"
