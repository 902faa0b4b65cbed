#!/usr/bin/env python3
"""Writes the behaviour of torch.amp.GradScaler if gradients overflow at given steps: tests/golden/scaler/*.json.
Each file has the options of the scaler, the steps that overflow, and for each step the scale and whether the step
was skipped.

  make_scaler.py OUT

Needs torch.
"""
import json, os, sys
import torch

CASES = {
    # Growth; single and consecutive overflows; one in the step in which the scale would grow, one in the step after.
    "mixed": dict(init_scale=8.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=4, steps=40,
                  spikes=[2, 3, 11, 19, 24, 25, 26, 33]),
    # Factors that are not powers of two, and a scale that grows with every finite step.
    "restless": dict(init_scale=3.0, growth_factor=1.5, backoff_factor=0.3, growth_interval=1, steps=24,
                     spikes=[0, 5, 9, 10, 14, 18, 22]),
}


def run(case):
    scaler = torch.amp.GradScaler("cpu", **{k: v for k, v in case.items() if k not in ("steps", "spikes")})
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.0)
    taken = []
    optimizer.register_step_post_hook(lambda *_: taken.append(True))
    scales, skipped = [], []
    for step in range(case["steps"]):
        taken.clear()
        optimizer.zero_grad()
        loss = (weight * (float("inf") if step in case["spikes"] else 1.0)).sum()
        scales.append(scaler.get_scale())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        skipped.append(0 if taken else 1)
    return dict(case, scales=scales, skipped=skipped)


for name, case in CASES.items():
    with open(os.path.join(sys.argv[1], name + ".json"), "w") as out:
        out.write("{\n" + ",\n".join(f' "{key}": {json.dumps(value)}' for key, value in run(case).items()) + "\n}\n")
