#!/usr/bin/env python3
"""Whether MLflow's client reads a store of the observer mlflow as metrics.jsonl of the run has it.

    tenon train FILE.ini --set run.observers=mlflow --set observer.mlflow.every=1
    check_mlflow.py mlruns RUN
"""
import json
import os
import sys

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
from mlflow.tracking import MlflowClient  # noqa: E402

store, run_folder = sys.argv[1:]
client = MlflowClient(tracking_uri="file://" + os.path.abspath(store))
experiment = client.get_experiment_by_name("tenon")
assert experiment is not None, "the client finds no experiment 'tenon'"
runs = client.search_runs([experiment.experiment_id])
run = next(r for r in runs if r.data.tags["tenon.folder"].endswith(run_folder.rstrip("/")))
assert run.info.status == "FINISHED", run.info.status

checked = 0
lines = [json.loads(line) for line in open(os.path.join(run_folder, "metrics.jsonl"))]
for event, group in (("step", "train"), ("epoch", "valid")):
    for name in next(line for line in lines if line["event"] == event)[group]:
        history = client.get_metric_history(run.info.run_id, f"{group}/{name}")
        expected = [(line["step"], line[group][name]) for line in lines if line["event"] == event]
        found = sorted((m.step, m.value) for m in history)
        assert found == sorted(expected), (name, found[:3], expected[:3])
        checked += len(found)

section, parameters = "", 0
for line in open(os.path.join(run_folder, "config.ini")):
    if line.startswith("["):
        section = line[1:line.index("]")]
    elif not line.startswith(" ") and " = " in line:
        key, value = line.rstrip("\n").split(" = ", 1)
        assert run.data.params[f"{section}.{key}"] == value, (section, key)
        parameters += 1
print(f"{checked} values of metrics and {parameters} parameters are equal")
