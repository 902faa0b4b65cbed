#!/usr/bin/env python3
"""Writes the training curves of PyTorch with which those of Tenon are compared. PyTorch starts from the same initial
weights and reads the same samples in the same order.

  make_curves.py TENON DATA OUT [NAME...]

TENON is the program, DATA a folder with mnist/, text/tinyshakespeare.txt and cifar10-jpeg.tar.gz, OUT the folder of
the .json files (tests/golden/curves). NAMEs select curves. tests/golden/curves/NAME.ini defines the training; this
script defines the same training for PyTorch. Tenon's initial weights and its shuffle are pure functions of the seed,
so they are not stored: `tenon train` with run.epochs=0 writes the weights, and this script computes the shuffle as
defined in include/tenon/random.h and core/data/shuffle.c.

Each curve is trained twice: "losses", and "twin" from initial weights that are one unit in the last place larger. The
difference of the two shows how far implementations may differ that round differently. Needs torch, torchvision,
safetensors, numpy, pillow.
"""
import gzip, json, math, os, subprocess, sys, tarfile, tempfile
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
STEPS = 500
SEED = 1


# ---- Tenon's shuffle ----

WORD, LONG = (1 << 32) - 1, (1 << 64) - 1


def mix(a, b):
    """SplitMix64's finalizer."""
    z = (a + 0x9E3779B97F4A7C15 * (b + 1)) & LONG
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & LONG
    z = (z ^ z >> 27) * 0x94D049BB133111EB & LONG
    return z ^ z >> 31


def philox(key, hi, lo):
    """The first word of Philox 4x32-10."""
    k, c = [key & WORD, key >> 32], [lo & WORD, lo >> 32, hi & WORD, hi >> 32]
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [q >> 32 ^ c[1] ^ k[0], q & WORD, p >> 32 ^ c[3] ^ k[1], p & WORD]
        k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
    return c[0]


def permuted(key, n, i):
    """The position of i in a permutation of 0 .. n - 1: a Feistel network of six rounds, repeated until below n."""
    half = 1
    while 1 << 2 * half < n:
        half += 1
    while True:
        left, right = i >> half, i & (1 << half) - 1
        for turn in range(6):
            left, right = right, left ^ philox(key, turn, right) & (1 << half) - 1
        i = left << half | right
        if i < n:
            return i


def batches(n, batch):
    """The indices of the samples of each step of the first epoch; the data have n samples."""
    key = mix(mix(SEED, 0), LONG)
    return [[permuted(key, n, step * batch + i) for i in range(batch)] for step in range(STEPS)]


# ---- functions for all curves ----


def initial_weights(tenon, twin, name, *sets):
    """The initial state dict, or that of the twin."""
    folder = tempfile.mkdtemp()
    args = [tenon, "train", os.path.join(HERE, "curves", name + ".ini"), "--json", "--output", folder]
    for s in ("run.epochs=0", *sets):
        args += ["--set", s]
    run = json.loads(subprocess.run(args, check=True, capture_output=True, text=True).stdout)["run"]
    from safetensors.torch import load_file

    weights = load_file(os.path.join(run, "checkpoints", "last", "model.safetensors"))
    return {k: torch.nextafter(w, torch.tensor(math.inf)) if twin else w for k, w in weights.items()}


def cosine(step, warmup=0, floor=0.0):
    """The factor of the learning rate: a linear warm-up, then half a cosine to the last step."""
    done = min(max((step - warmup) / (STEPS - warmup), 0), 1)
    ramp = (step + 1) / (warmup + 1) if step < warmup else 1.0
    return ramp * (floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done)))


def train(net, opt, lr, factor, samples, clip=None):
    """The losses over the batches of `samples`, an iterable of (inputs, targets)."""
    losses = []
    net.train()
    for step, (x, y) in enumerate(samples):
        for group in opt.param_groups:
            group["lr"] = lr * factor(step)
        loss = F.cross_entropy(net(x).flatten(0, -2), y.flatten())
        opt.zero_grad()
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        opt.step()
        losses.append(loss.item())
    return losses


# ---- LeNet on MNIST ----


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def idx(path, header):
    with gzip.open(path) as f:
        return torch.frombuffer(bytearray(f.read()[header:]), dtype=torch.uint8)


def mnist_lenet(tenon, data, twin):
    folder = os.path.join(data, "mnist")
    net = LeNet()
    net.load_state_dict(initial_weights(tenon, twin, "mnist_lenet", "data.folder=" + folder), strict=True)
    images = idx(os.path.join(folder, "train-images-idx3-ubyte.gz"), 16).view(-1, 1, 28, 28)
    labels = idx(os.path.join(folder, "train-labels-idx1-ubyte.gz"), 8).long()
    opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
    samples = (((images[b].float() / 255 - 0.1307) / 0.3081, labels[b]) for b in batches(len(labels), 64))
    return train(net, opt, 0.01, cosine, samples)


# ---- a transformer on Shakespeare ----


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (p.view(b, t, self.heads, d // self.heads).transpose(1, 2) for p in self.qkv(self.ln_1(x)).split(d, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.proj(y)
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class CharTransformer(nn.Module):
    def __init__(self, vocabulary=65, tokens=64, d=128, heads=4, depth=4):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, d), nn.Embedding(tokens, d)
        self.h = nn.Sequential(*[Attention(d, heads) for _ in range(depth)])
        self.ln_f, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)

    def forward(self, ids):
        return self.head(self.ln_f(self.h(self.wte(ids) + self.wpe(torch.arange(ids.shape[1])))))


def shakespeare_char(tenon, data, twin, tokens=64):
    path = os.path.join(data, "text", "tinyshakespeare.txt")
    net = CharTransformer()
    net.load_state_dict(initial_weights(tenon, twin, "shakespeare_char", "data.file=" + path), strict=True)
    text = open(path, encoding="utf-8").read()
    number = {c: i for i, c in enumerate(sorted(set(text)))}
    ids = torch.tensor([number[c] for c in text])
    # Nine tenths of the text are for training, in adjacent windows. Each window needs one more character.
    windows = (int(len(ids) * 0.9) - 1) // tokens
    no_decay = [p for n, p in net.named_parameters() if n.endswith(".bias") or "ln_" in n]
    chosen = set(map(id, no_decay))
    groups = [{"params": [p for p in net.parameters() if id(p) not in chosen]}, {"params": no_decay, "weight_decay": 0.0}]
    opt = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.1)
    spans = (torch.stack([ids[w * tokens:(w + 1) * tokens + 1] for w in b]) for b in batches(windows, 12))
    samples = ((s[:, :-1], s[:, 1:]) for s in spans)
    return train(net, opt, 1e-3, lambda step: cosine(step, warmup=100, floor=0.1), samples, clip=1.0)


# ---- ResNet-18 on CIFAR-10 ----


def cifar10_resnet18(tenon, data, twin):
    import torchvision
    from PIL import Image

    folder = tempfile.mkdtemp()
    with tarfile.open(os.path.join(data, "cifar10-jpeg.tar.gz")) as tar:
        tar.extractall(folder)
    net = torchvision.models.resnet18(num_classes=10)
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    weights = initial_weights(tenon, twin, "cifar10_resnet18", "data.folder=" + folder)
    missing, unexpected = net.load_state_dict(weights, strict=False)
    assert not unexpected and all(m.endswith("num_batches_tracked") for m in missing), (missing, unexpected)
    files = torchvision.datasets.ImageFolder(os.path.join(folder, "train")).samples
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in ([0.4914, 0.4822, 0.4465], [0.2470, 0.2435, 0.2616]))

    def image(path):
        pixels = torch.from_numpy(np.array(Image.open(path).convert("RGB"))).permute(2, 0, 1)
        return (pixels.float() / 255 - mean) / std

    opt = torch.optim.SGD(net.parameters(), lr=0.0125, momentum=0.9, weight_decay=5e-4)
    samples = ((torch.stack([image(files[i][0]) for i in b]), torch.tensor([files[i][1] for i in b]))
               for b in batches(len(files), 16))
    return train(net, opt, 0.0125, lambda step: cosine(step, warmup=200), samples)


def main():
    tenon, data, out = sys.argv[1:4]
    for curve in (mnist_lenet, shakespeare_char, cifar10_resnet18):
        if sys.argv[4:] and curve.__name__ not in sys.argv[4:]:
            continue
        golden = {"peer": "torch " + torch.__version__}
        for key, twin in (("losses", False), ("twin", True)):
            golden[key] = [round(v, 7) for v in curve(tenon, data, twin)]
        with open(os.path.join(out, curve.__name__ + ".json"), "w") as f:
            json.dump(golden, f)
            f.write("\n")


if __name__ == "__main__":
    main()
