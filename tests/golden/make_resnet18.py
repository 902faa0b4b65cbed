#!/usr/bin/env python3
"""Writes tests/golden/resnet18/golden.json: logits and losses of torchvision's ResNet-18 at 224x224.

  make_resnet18.py TENON OUT            the golden
  make_resnet18.py TENON --reverse      no golden: the other direction, from torchvision's own weights

The golden starts from Tenon's initial weights (see make_curves.py), with every bn2.weight set to 0.1. With
torchvision's initial weights and batch 8 the losses depend on rounding: after 5 steps PyTorch in f32 differs from
PyTorch in f64 by up to 1e-2, and by as much from PyTorch in another memory format. Small residual branches reduce the
difference to 1e-6 (torchvision's zero_init_residual uses 0; Goyal et al., 2017). The pictures are a hash of the index,
which tests/integration/peers/resnet18_test.c computes, too.

--reverse writes torchvision's own initialization as safetensors (45 MB, so it is not stored), passes it to
`tenon predict --weights` and to `tenon train` with weights.file, and prints the differences. Needs torch,
torchvision, safetensors, numpy.
"""
import json, os, subprocess, sys, tempfile
import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from safetensors.torch import load_file, save_file

HERE = os.path.dirname(os.path.abspath(__file__))
INI = os.path.join(HERE, "..", "..", "docs", "examples", "imagenet_resnet18.ini")
BATCH, STEPS, SHOWN = 8, 5, 2
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
TRANSFORMS = "to_float, normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])"


def tenon_json(tenon, *args):
    return json.loads(subprocess.run([tenon, *args, "--json"], check=True, capture_output=True, text=True).stdout)


def pictures():
    h = np.arange(BATCH * 3 * 224 * 224, dtype=np.uint64) * np.uint64(2654435761) & np.uint64(0xFFFFFFFF)
    h ^= h >> np.uint64(15)
    h = h * np.uint64(2246822519) & np.uint64(0xFFFFFFFF)
    h ^= h >> np.uint64(13)
    return (h >> np.uint64(16)).astype(np.uint8).reshape(BATCH, 3, 224, 224)


def labels():
    return np.arange(BATCH, dtype=np.int32) * 37 % 1000


def tensors():
    column = lambda v: torch.tensor(v).view(3, 1, 1)
    return (torch.tensor(pictures()).float() / 255 - column(MEAN)) / column(STD), torch.tensor(labels()).long()


def logits(net, x):
    with torch.no_grad():
        return net.eval()(x[:SHOWN])


def losses(net, x, y):
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    values = []
    for _ in range(STEPS):
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        values.append(loss.item())
    return values


def write_idx(path, array):
    with open(path, "wb") as f:
        f.write(bytes([0, 0, 0x0C if array.dtype == np.int32 else 0x08, array.ndim]))
        f.write(np.array(array.shape, ">i4").tobytes() + array.astype(array.dtype.newbyteorder(">")).tobytes())


def train(tenon, folder, *sets):
    """Trains with the same batch in every step; returns the folder of the run."""
    images, numbers = os.path.join(folder, "images"), os.path.join(folder, "labels")
    write_idx(images, np.concatenate([pictures()] * STEPS))
    write_idx(numbers, np.concatenate([labels()] * STEPS))
    sets += ("data.source=idx", "data.folder=", "data.images=" + images, "data.labels=" + numbers, "data.classes=1000",
             "data.shuffle=no", f"data.batch={BATCH}", f"data.valid.epoch={BATCH}",
             "data.train.transforms=" + TRANSFORMS, "data.valid.transforms=" + TRANSFORMS)
    return tenon_json(tenon, "train", INI, "--output", folder, *[a for s in sets for a in ("--set", s)])["run"]


def set_branches(net, weight):
    for name, module in net.named_modules():
        if name.endswith(".bn2"):
            torch.nn.init.constant_(module.weight, weight)


def write_golden(tenon, out):
    net, (x, y) = torchvision.models.resnet18(), tensors()
    with tempfile.TemporaryDirectory() as folder:
        run = train(tenon, folder, "run.epochs=0", "run.seed=1")
        missing, unexpected = net.load_state_dict(
            load_file(os.path.join(run, "checkpoints", "last", "model.safetensors")), strict=False)
    assert not unexpected and all(m.endswith("num_batches_tracked") for m in missing), (missing, unexpected)
    set_branches(net, 0.1)
    before = logits(net, x)
    golden = {"peer": "torch " + torch.__version__ + ", torchvision " + torchvision.__version__,
              "logits": before.flatten().tolist(), "losses": losses(net, x, y)}
    golden["logits_after"] = logits(net, x).flatten().tolist()
    with open(os.path.join(out, "golden.json"), "w") as f:
        json.dump({k: v if k == "peer" else [float(f"{e:.9g}") for e in v] for k, v in golden.items()}, f)
        f.write("\n")


def compare_reverse(tenon, branch):
    torch.manual_seed(7)
    net, (x, y) = torchvision.models.resnet18(), tensors()
    if branch is not None:
        set_branches(net, branch)
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        save_file({k: v.contiguous() for k, v in net.state_dict().items()}, path("w.safetensors"))
        np.save(path("x.npy"), x[:SHOWN].numpy())
        tenon_json(tenon, "predict", INI, "--weights", path("w.safetensors"), "--input", path("x.npy"), "--output",
                   path("y.npy"))
        print("logits: largest difference", np.abs(np.load(path("y.npy")) - logits(net, x).numpy()).max())
        run = train(tenon, folder, "weights.file=" + path("w.safetensors"), "optimizer.lr=0.01",
                    "optimizer.weight_decay=0", f"run.max_steps={STEPS}", "run.epochs=1")
        events = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
    ours = [e["train"]["loss"] for e in events if e["event"] == "step"]
    theirs, exact = losses(net_copy(net), x, y), losses(net_copy(net).double(), x.double(), y)
    for name, a, b in (("tenon - torch", ours, theirs), ("tenon - torch f64", ours, exact),
                       ("torch - torch f64", theirs, exact)):
        print(f"losses, relative, {name}:", ["%.1e" % (abs(u - v) / v) for u, v in zip(a, b)])


def net_copy(net):
    copy = torchvision.models.resnet18()
    copy.load_state_dict(net.state_dict())
    return copy


def main():
    tenon, out = sys.argv[1:3]
    torch.set_num_threads(2)
    if out != "--reverse":
        write_golden(tenon, out)
        return
    for branch in (None, 0.0, 0.1):
        print("bn2.weight as torchvision makes it" if branch is None else f"bn2.weight = {branch}")
        compare_reverse(tenon, branch)


main()
