#!/usr/bin/env python3
"""Writes scores and targets, and what scikit-learn's metrics say of them: tests/golden/metrics.

  make_metrics.py OUT

OUT is the folder of the .npy files, of the weights that leave scores as they are, and of golden.json, a section of which
is a configuration's fields and the value of each metric. Needs numpy, safetensors and scikit-learn.
"""
import json, os, sys
import numpy as np
from safetensors.numpy import save_file
from sklearn import metrics as m

out = sys.argv[1]
os.makedirs(out, exist_ok=True)
rng = np.random.default_rng(7)
N, C = 203, 4


def save(name, array):
    np.save(os.path.join(out, name), array)
    return array


# two decimals, so that many scores are equal
scores = save("scores.npy", np.round(rng.normal(size=(N, C)), 2).astype(np.float32))
label = save("label.npy", np.argmax(scores + rng.normal(size=(N, C)), 1).astype(np.uint8))
labels = save("labels.npy", (scores + rng.normal(size=(N, C)) > 0.7).astype(np.uint8))
# a mean of 200 standard deviations, where sums of squares in f32 would lose the variance
years = save("years.npy", (2000 + 10 * rng.normal(size=(N, C))).astype(np.float32))
guess = save("guess.npy", (years + 4 * rng.normal(size=(N, C))).astype(np.float32))
maps = save("maps.npy", rng.normal(size=(29, 3, 4)).astype(np.float32))
mask = save("mask.npy", np.where(rng.random((29, 4)) < 0.1, 255, rng.integers(0, 3, (29, 4))).astype(np.uint8))
save_file({"fc.weight": np.eye(C, dtype=np.float32)}, os.path.join(out, "same.safetensors"))

best, yes = scores.argmax(1), scores > 0
logits = scores.astype(np.float64)
p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
golden = {"classes": {}, "labels": {}, "one": {}, "numbers": {}, "maps": {}}
for name, f in {"f1": m.f1_score, "precision": m.precision_score, "recall": m.recall_score}.items():
    for average in "macro", "micro":
        golden["classes"][f"{name}({average})"] = f(label, best, average=average)
        golden["labels"][f"{name}({average})"] = f(labels, yes, average=average)
    golden["classes"][f"{name}(class=2)"] = f(label == 2, best == 2)
    golden["labels"][f"{name}(threshold=0.5)"] = f(labels, scores > 0.5, average="macro")
    golden["one"][name] = f(labels[:, 1], yes[:, 1])
golden["classes"]["accuracy"] = m.accuracy_score(label, best)
golden["classes"]["perplexity"] = np.exp(m.log_loss(label, p))
golden["classes"]["auroc"] = m.roc_auc_score(label, p, multi_class="ovr")
golden["classes"]["average_precision"] = m.average_precision_score(np.eye(C)[label], p, average="macro")
golden["labels"]["auroc"] = m.roc_auc_score(labels, scores)
golden["labels"]["average_precision"] = m.average_precision_score(labels, scores)
golden["one"]["auroc"] = m.roc_auc_score(labels[:, 1], scores[:, 1])
golden["one"]["average_precision"] = m.average_precision_score(labels[:, 1], scores[:, 1])
years, guess = years.astype(np.float64), guess.astype(np.float64)
golden["numbers"] = {"mae": m.mean_absolute_error(years, guess), "rmse": np.sqrt(m.mean_squared_error(years, guess)),
                     "mape": m.mean_absolute_percentage_error(years, guess), "r2": m.r2_score(years, guess)}


def mean_over_samples_and_classes(score):
    values = []
    for found, meant in zip(maps.argmax(1), mask):
        known = meant != 255
        present = [k for k in range(3) if (found[known] == k).any() or (meant[known] == k).any()]
        values += list(score(meant[known], found[known], labels=present, average=None)) if present else []
    return np.mean(values)


golden["maps"] = {"dice(ignore=255)": mean_over_samples_and_classes(m.f1_score),
                  "mean_iou(ignore=255)": mean_over_samples_and_classes(m.jaccard_score)}
with open(os.path.join(out, "golden.json"), "w") as file:
    json.dump(golden, file, indent=1)
    file.write("\n")
