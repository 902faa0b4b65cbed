#!/bin/sh
# tests/bench/overlap.sh FOLDER [TENON]: the communication that a step of ResNet-50 exposes, 128 images of 224 x 224 on
# each rank, as `tenon plan` predicts it and `tenon bench` measures it in a rehearsal of the described device; and the
# steps predicted for up to 1,024 ranks. Writes FOLDER/overlap.json, and prints the tables of docs/results/overlap.md
# and scaling.md. This is a measurement, not a test: it fails only if a program fails.
#   DEVICE=tests/devices/made_up_h200.json   POLICIES="fp32 bf16 fp16"   RANKS="8 16 32 64 128 256 512 1024"   PYTHON=python3
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$1"
folder=$(realpath "$1")
tenon=$(realpath "${2:-$root/build/tools/tenon}")
device=$(realpath "${DEVICE:-$root/tests/devices/made_up_h200.json}")
python=${PYTHON:-python3}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp "$root/docs/examples/imagenet_resnet50.ini" "$scratch/model.ini"
cd "$scratch"

# shellcheck disable=SC2086 # options
plan() { # ranks options
  "$tenon" plan model.ini --quiet --json --device "$device" --ranks "$1" --set data.batch=$((128 * $1)) \
    --set data.device_transforms=no $2
}
# shellcheck disable=SC2086
rehearse() { # options
  "$tenon" bench model.ini --quiet --json --device "$device" --ranks 8 --batch 1024 --rounds 1 --steps 5 $1
}

# ---- predicted and measured, on 8 ranks ----
for policy in ${POLICIES:-fp32 bf16 fp16}; do
  for link in nvlink pcie ethernet; do
    for reduce in f32 f16; do
      options="--set precision.policy=$policy --set distributed.link=$link --set distributed.reduce_dtype=$reduce"
      plan 8 "$options" >plan.json
      plan 8 "$options --set distributed.bucket=25MiB" >fixed.json
      rehearse "$options" >bench.json
      rehearse "$options --set backend.sim.jitter=0.1" >jitter.json
      "$python" - "$policy" "$link" "$reduce" >>overlap.jsonl <<'PAGE'
import json, sys
plan, fixed, bench, jitter = (json.load(open(name + ".json")) for name in ("plan", "fixed", "bench", "jitter"))
short = lambda o: {key: round(o[key], 5) for key in ("step_ms", "communication_ms", "exposed_ms", "exposed_percent")}
print(json.dumps({"policy": sys.argv[1], "link": sys.argv[2], "reduce_dtype": sys.argv[3], "ranks": 8,
                  "buckets": len(plan["buckets"]), "plan": short(plan["overlap"]),
                  "plan_25MiB": short(fixed["overlap"]), "measured": short(bench["overlap"]["measured"]),
                  "jitter": short(jitter["overlap"]["worst"])}))
PAGE
    done
  done
done

# ---- predicted, to 1,024 ranks ----
for reduce in f32 f16; do
  for between in 12.5:15 50:5 400:5; do
    for ranks in 1 ${RANKS:-8 16 32 64 128 256 512 1024}; do
      plan "$ranks" "--set precision.policy=bf16 --set distributed.reduce_dtype=$reduce --set distributed.link=nvlink
        --set distributed.host_ranks=8 --set distributed.host_link=$between" >plan.json
      "$python" - "$ranks" "$between" "$reduce" >>scaling.jsonl <<'PAGE'
import json, sys
plan = json.load(open("plan.json"))
o = plan.get("overlap", {"communication_ms": 0, "exposed_ms": 0})
print(json.dumps({"ranks": int(sys.argv[1]), "host_link": sys.argv[2], "reduce_dtype": sys.argv[3],
                  "policy": "bf16", "step_ms": round(plan["cost_ms"], 5), "buckets": len(plan["buckets"]),
                  "communication_ms": round(o["communication_ms"], 5), "exposed_ms": round(o["exposed_ms"], 5)}))
PAGE
    done
  done
done

"$python" - "$folder/overlap.json" "$("$tenon" --version | cut -d' ' -f2)" \
  "$(git -C "$root" rev-parse --short HEAD 2>/dev/null || true)" "$(basename "$device")" <<'PAGE'
import json, sys
overlap, scaling = ([json.loads(line) for line in open(name + ".jsonl")] for name in ("overlap", "scaling"))
with open(sys.argv[1], "w") as file:
    json.dump({"tenon": sys.argv[2], "commit": sys.argv[3], "device": sys.argv[4], "batch_per_rank": 128,
               "overlap": overlap, "scaling": scaling}, file, indent=1)
    file.write("\n")
print("| policy | link | sums in | step ms | communication | exposed | of a step | hidden | measured | 10 % jitter | 25 MiB |")
print("|---|---|---|---|---|---|---|---|---|---|---|")
for r in overlap:
    p = r["plan"]
    print("| %s | %s | %s | %.2f | %.2f ms | %.3f ms | %.2f %% | %.1f %% | %.2f %% | %.2f %% | %.2f %% |" % (
        r["policy"], r["link"], r["reduce_dtype"], p["step_ms"], p["communication_ms"], p["exposed_ms"],
        p["exposed_percent"], 100 * (1 - p["exposed_ms"] / p["communication_ms"]), r["measured"]["exposed_percent"],
        r["jitter"]["exposed_percent"], r["plan_25MiB"]["exposed_percent"]))
print()
for reduce in ("f32", "f16"):
    links = sorted({r["host_link"] for r in scaling}, key=lambda text: float(text.split(":")[0]))
    rows = {(r["ranks"], r["host_link"]): r for r in scaling if r["reduce_dtype"] == reduce}
    print("| ranks | " + " | ".join("%s: step ms | exposed | efficiency" % link for link in links) + " |")
    print("|---" * (1 + 3 * len(links)) + "|")
    for ranks in sorted({key[0] for key in rows}):
        cells = []
        for link in links:
            r = rows[ranks, link]
            cells.append("%.2f | %.2f | %.1f %%" % (r["step_ms"], r["exposed_ms"],
                                                   100 * rows[1, link]["step_ms"] / r["step_ms"]))
        print("| %d | %s |" % (ranks, " | ".join(cells)))
    print()
PAGE
