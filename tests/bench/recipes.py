#!/usr/bin/env python3
"""Prints docs/results/recipes.md, of what the tests of tests/integration/recipes have found.

  recipes.py BUILD

BUILD is the folder of a build. Runs its recipes_test for each kind in each way; a fact that does not hold ends the script. Needs no package.
"""
import json, os, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BUILD = os.path.abspath(sys.argv[1])
TEST = os.path.join(BUILD, "tests/integration/recipes/recipes_test")
CACHE = os.path.join(BUILD, "tests/integration/cuda")  # compiled kernels of the double
GOLDENS = {"optimizers": "optimizers/golden.json", "losses": "losses/steps.json", "schedules": "schedules/golden.json"}
WAYS = {"cpu": "cpu", "onednn": "onednn", "cuda": "cuda", "two": "two devices", "divided": "divided"}


def facts(kind):
    """{case: {way: {fact: value}}}"""
    found = {}
    for way in WAYS:
        with tempfile.NamedTemporaryFile() as report:
            done = subprocess.run([TEST, kind, way], capture_output=True, text=True,
                                  env=dict(os.environ, RECIPES_REPORT=report.name, FAKECUDA_CACHE=CACHE))
            if done.returncode != 0:
                sys.exit(f"{kind} {way}\n{done.stdout}{done.stderr}")
            for line in map(json.loads, report):
                at = found.setdefault(line.pop("case"), {}).setdefault(line.pop("way"), {})
                at.update({name: value for name, value in line.items() if name != "kind"})
    return found


def greatest(cases, way):
    """The greatest difference of the cases that ran so."""
    found = [case[way]["difference"] for case in cases if "difference" in case.get(way, {})]
    return f"{max(found):.0e}" if found else "-"


def skipped(cases):
    """Of each way, or one number where they agree."""
    found = [f"{case[way]['skipped']:.0f}" for case in cases for way in WAYS if "skipped" in case.get(way, {})]
    return found[0] if len(set(found)) == 1 else ", ".join(found)


def launches(cases):
    found = {case[way]["launches"] for case in cases[:1] for way in ("cpu", "onednn", "cuda") if way in case}
    return " to ".join(f"{number:.0f}" for number in sorted({min(found), max(found)}))


def row(words, cases, more=()):
    return "| " + " | ".join([*words, *(greatest(cases, way) for way in WAYS), skipped(cases), *more]) + " |"


def table(heads, rows, more=()):
    heads = [*heads, *WAYS.values(), "skipped", *more]
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads), *rows])


def golden(kind):
    return json.load(open(os.path.join(ROOT, "tests/golden", GOLDENS[kind])))


def optimizers(found):
    types = {}
    for key, case in golden("optimizers").items():
        types.setdefault(key.split()[0], []).append((key, case["peer"]))
    rows = []
    for name, keys in sorted(types.items()):
        cases = [found[key] for key, _ in keys]
        rows.append(row([f"`{name}`", keys[0][1], str(len(keys))], cases, [launches(cases)]))
    return len(types), len(found), table(["optimizer", "peer", "cases"], rows, ["launches"])


def losses(found):
    rows = []
    for key, case in golden("losses").items():
        kind, _, loss = key.rpartition(": ")
        rows.append(row([f"`{loss}`", kind or "parts", case["peer"]], [found[key]]))
    return len(rows), table(["loss", "targets", "peer"], rows)


def schedules(found):
    rows = []
    for key, case in golden("schedules").items():
        name, _, options = key.partition(" ")
        rows.append(row([f"`{name}`", f"`{options}`" if options else "", case["peer"]], [found[key]]))
    return len(rows), table(["schedule", "options", "peer"], rows)


with ThreadPoolExecutor() as pool:
    found = dict(zip(GOLDENS, pool.map(facts, GOLDENS)))
types, cases, of_optimizers = optimizers(found["optimizers"])
n_losses, of_losses = losses(found["losses"])
n_schedules, of_schedules = schedules(found["schedules"])
print(f"""# Optimizers, losses and schedules beside their peers

{types} optimizers in {cases} cases, {n_losses} cases of losses, {n_schedules} of schedules. Written by `tests/bench/recipes.py`, of what the tests
`recipes: KIND WAY` find ([tests/integration/recipes](../../tests/integration/recipes/recipes_test.c)); they fail where one of
these does not hold.

| column | |
|---|---|
| peer | the class or function that the goldens are of, with the version of its package; *formula*: that of the script in tests/golden, in PyTorch |
| cpu, onednn | the greatest difference of a parameter after ten steps in f32, as a part of 1 + its magnitude; at most 1e-6 |
| cuda | the same on the double of CUDA's libraries, which runs the kernels on the processor |
| two devices | the same, with half of each batch on each device |
| divided | the same, with the state of the optimizer divided among them |
| skipped | the updates of a training in fp16 that loss scaling skips, in each way; none of its last epoch. A training in bf16, too, ends with finite weights |
| launches | of an update of two parameters, on one device: one where the optimizer is elementwise |

*-*: not compared, since the optimizer sees whole parameters, the loss compares all rows of a device, or products are rounded to bf16.

## Optimizers

Ten updates by given gradients; of several cases the greatest difference. The cases are the names in `tests/golden/optimizers/golden.json`.

{of_optimizers}

## Losses

Ten steps of a layer of scores. Targets are parts of each class, class numbers, several class numbers, or a sequence of them.

{of_losses}

## Schedules

Ten steps in five epochs. The learning rate of each step is compared, too, also in fp16, where steps that are skipped count. A
schedule adds no launch.

{of_schedules}""")
