#!/usr/bin/env python3
"""Writes scores and targets, and what scikit-learn, pycocotools and jiwer say of them: tests/golden/metrics.

  make_metrics.py OUT

OUT is the folder of the .npy files, of the weights that leave scores as they are, and of golden.json, a section of which
is a configuration's fields and the value of each metric. Needs numpy, safetensors, scikit-learn,
pycocotools and jiwer.
"""
import json, os, sys
import numpy as np
from safetensors.numpy import save_file
from sklearn import metrics as m
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
import jiwer

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
for name, f in {"f1": m.f1_score, "precision": m.precision_score, "recall": m.recall_score, "jaccard": m.jaccard_score}.items():
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
known = mask != 255
golden["maps"]["jaccard(ignore=255, axis=1)"] = m.jaccard_score(mask[known], maps.argmax(1)[known], average="macro")
golden["maps"]["f1(ignore=255, axis=1)"] = m.f1_score(mask[known], maps.argmax(1)[known], average="macro")

# ---- boxes ----
rng = np.random.default_rng(8)
M, FOUND, MEANT = 37, 12, 4
side = np.array([20, 60, 150])[rng.integers(0, 3, (M, MEANT))]
corner = rng.uniform(0, 200, (M, MEANT, 2))
size = side[..., None] * rng.uniform(0.7, 1.3, (M, MEANT, 2))
true_boxes = save("true_boxes.npy", np.concatenate([corner, corner + size], 2).astype(np.float32))
true_labels = save("true_labels.npy", np.where(rng.random((M, MEANT)) < 0.2, -100, rng.integers(0, 3, (M, MEANT))).astype(np.int32))
near = rng.integers(0, MEANT, (M, FOUND))
boxes = np.take_along_axis(true_boxes, near[..., None], 1)
boxes = boxes + rng.normal(size=boxes.shape) * 0.07 * np.tile(boxes[..., 2:] - boxes[..., :2], 2)
boxes = save("boxes.npy", boxes.astype(np.float32))
found = np.where(rng.random((M, FOUND)) < 0.3, rng.integers(-1, 3, (M, FOUND)), np.take_along_axis(true_labels, near, 1))
found = save("found_labels.npy", found.astype(np.int32))
# one decimal, so that many scores are equal
certain = save("box_scores.npy", np.round(rng.random((M, FOUND)), 1).astype(np.float32))


def corner_and_size(box):
    left, top, right, bottom = (float(x) for x in box)
    return [left, top, right - left, bottom - top]


truth, results = [], []
for i in range(M):
    for box, label in zip(true_boxes[i], true_labels[i]):
        x = corner_and_size(box)
        if label >= 0:
            truth.append({"id": len(truth) + 1, "image_id": i, "category_id": int(label), "bbox": x, "area": x[2] * x[3],
                          "iscrowd": 0})
    results += [{"image_id": i, "category_id": int(label), "bbox": corner_and_size(box), "score": float(score)}
                for box, label, score in zip(boxes[i], found[i], certain[i]) if label >= 0]
coco = COCO()
coco.dataset = {"images": [{"id": i} for i in range(M)], "annotations": truth, "categories": [{"id": k} for k in range(3)]}
coco.createIndex()
evaluation = COCOeval(coco, coco.loadRes(results), "bbox")
evaluation.params.maxDets = [1, 2, 100]
evaluation.evaluate()
evaluation.accumulate()


def mean_precision(iou=slice(None), area=0, boxes=2):
    values = evaluation.eval["precision"][iou, :, :, area, boxes]
    return values[values > -1].mean()


golden["boxes"] = {"coco_map": mean_precision(), "coco_map(0.5)": mean_precision(0), "coco_map(iou=0.75)": mean_precision(5),
                   "coco_map(area=small)": mean_precision(area=1), "coco_map(area=medium)": mean_precision(area=2),
                   "coco_map(area=large)": mean_precision(area=3), "coco_map(boxes=2)": mean_precision(boxes=1)}

# ---- words: blank, space, a, b ----
W, STEPS, LENGTH = 31, 14, 8
letters = np.array(["", " ", "a", "b"])
text = rng.choice([1, 2, 3], (W, LENGTH), p=[0.3, 0.35, 0.35]).astype(np.int32)
text[:, 0] = 2
length = rng.integers(1, LENGTH + 1, W).astype(np.int32)
steps = rng.integers(0, STEPS + 1, W).astype(np.int32)
speech = save("speech.npy", rng.normal(size=(W, STEPS, 4)).astype(np.float32))
save("text.npy", text), save("length.npy", length), save("steps.npy", steps)


def collapse(path):
    return [c for c, before in zip(path, [-1, *path]) if c != 0 and c != before]


def words(ids):
    return " ".join("".join(letters[ids]).split())


heard = [collapse(list(path[:n])) for path, n in zip(speech.argmax(2), steps)]
meant = [list(t[:n]) for t, n in zip(text, length)]
tokens = lambda ids: " ".join(f"t{k}" for k in ids)
golden["words"] = {"word_error_rate(space=1)": jiwer.wer([words(t) for t in meant], [words(h) for h in heard]),
                   "word_error_rate": jiwer.wer([tokens(t) for t in meant], [tokens(h) for h in heard])}
steps_text = save("steps_text.npy", np.where(rng.random((W, STEPS)) < 0.2, -100, rng.integers(0, 4, (W, STEPS))).astype(np.int32))
pairs = [(t[t >= 0], h[t >= 0]) for t, h in zip(steps_text, speech.argmax(2))]
golden["steps"] = {"word_error_rate(blank=-1)": jiwer.wer([tokens(t) for t, _ in pairs], [tokens(h) for _, h in pairs]),
                   "accuracy": m.accuracy_score(steps_text[steps_text >= 0], speech.argmax(2)[steps_text >= 0])}
with open(os.path.join(out, "golden.json"), "w") as file:
    json.dump(golden, file, indent=1)
    file.write("\n")
