#!/usr/bin/env python3
"""Writes what PyTorch computes for the models of docs/examples/models: tests/golden/models/NAME.json.

  make_models.py TENON [NAME...]

TENON is the program; `tenon train` with run.epochs=0 writes the initial weights, which are pure functions of the seed.
The script computes the same model in f64: the output for a batch, the losses of STEPS steps of SGD, the gradients of the
first step (the momentum behind it), and the parameters behind the last. Floats of the batch are a formula of their
index, random numbers inside a model those of include/tenon/random.h. A golden has at most SHOWN elements of a tensor. Needs torch, numpy, safetensors.
"""
import json, math, os, subprocess, sys, tempfile
import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "..", "..", "docs", "examples", "models")
BATCH, STEPS, SEED, SHOWN, MOMENTUM = 2, 3, 1, 12, 0.9
WORD, LONG = (1 << 32) - 1, (1 << 64) - 1


# ---- Tenon's random numbers: include/tenon/random.h and attributes.h ----

def mix(a, b):
    z = (a + 0x9E3779B97F4A7C15 * (b + 1)) & LONG
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & LONG
    z = (z ^ z >> 27) * 0x94D049BB133111EB & LONG
    return z ^ z >> 31


def stream(path, op):
    """The key of the random numbers of an op: FNV-1a of its path, mixed with the seed."""
    h = 0xCBF29CE484222325
    for byte in (path + "/" + op).encode():
        h = (h ^ byte) * 0x100000001B3 & LONG
    return mix(SEED, h)


def words(key, iteration, n):
    """Philox 4x32-10: n words of the counters 0, 1, ..."""
    at, iteration = np.arange((n + 3) // 4, dtype=np.uint64), iteration or 0
    c = [at & WORD, at >> 32, np.full_like(at, iteration & WORD), np.full_like(at, iteration >> 32)]
    k0, k1 = key & WORD, key >> 32
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [p1 >> 32 ^ c[1] ^ np.uint64(k0), p1 & WORD, p0 >> 32 ^ c[3] ^ np.uint64(k1), p0 & WORD]
        k0, k1 = (k0 + 0x9E3779B9) & WORD, (k1 + 0xBB67AE85) & WORD
    return np.stack(c, 1).flatten()[:n]


def uniform(path, iteration, *dims):
    w = words(stream(path, "random_uniform"), iteration, math.prod(dims))
    return torch.tensor((w >> 8).astype(np.float64) * 2.0 ** -24).view(dims)


def normal(path, iteration, *dims):
    n = math.prod(dims)
    u = (words(stream(path, "random_normal"), iteration, n + n % 2) >> 8).astype(np.float64) * 2.0 ** -24
    radius, angle = np.sqrt(-2 * np.log1p(-u[0::2])), 2 * math.pi * u[1::2]
    z = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).flatten()[:n]
    return torch.tensor(z).view(dims)


# ---- data ----

def floats(*dims):
    """Numbers of [-1, 1): tests/golden/models_test.c has the same formula."""
    h = np.arange(math.prod(dims), dtype=np.uint64) * 2654435761 & WORD
    h ^= h >> 15
    h = h * 2246822519 & WORD
    h ^= h >> 13
    return torch.tensor((h >> 8).astype(np.float64) * 2.0 ** -23 - 1).view(dims)


def whole(below, *dims, low=0):
    return low + ((floats(*dims) + 1) / 2 * (below - low)).floor().long()


# ---- the models: x and y are inputs and targets, p the parameters, step the iteration, None outside of training ----

def linear(p, name, x):
    return F.linear(x, p[name + ".weight"], p.get(name + ".bias"))


def attend(q, k, v, heads, kv_heads=None, **options):
    split = lambda t, n: t.unflatten(-1, (n, -1)).transpose(1, 2)
    y = F.scaled_dot_product_attention(split(q, heads), split(k, kv_heads or heads), split(v, kv_heads or heads),
                                       enable_gqa=kv_heads is not None, **options)
    return y.transpose(1, 2).flatten(2)


def bert(p, x, y, step):
    q, k, v = linear(p, "qkv", F.embedding(x["tokens"], p["emb.weight"])).chunk(3, -1)
    mask = x["mask"].bool()[:, None, None]
    out = linear(p, "fc", attend(q, k, v, 4, attn_mask=mask)[:, 0])
    return out, F.cross_entropy(out, y["label"])


def ddpm(p, x, y, step):
    t = uniform("t", step, BATCH, 1, 1, 1) * 1000
    noise = normal("noise", step, BATCH, 3, 32, 32)
    a = torch.cos(t / 1000 * 1.5708) ** 2
    h = F.conv2d(a.sqrt() * x["image"] + (1 - a).sqrt() * noise, p["conv1.weight"], p["conv1.bias"], padding=1)
    h = F.silu(F.group_norm(h, 8, p["norm.weight"], p["norm.bias"]))
    out = F.conv2d(h, p["out.weight"], p["out.bias"], padding=1)
    return out, F.mse_loss(out, noise)


def dlrm(p, x, y, step):
    every = torch.cat([linear(p, "bottom", x["dense"])[:, None], F.embedding(x["ids"], p["tables.weight"])], 1)
    row, column = torch.tril_indices(27, 27, -1)
    out = linear(p, "top", (every @ every.transpose(1, 2))[:, row, column])
    return out, F.binary_cross_entropy_with_logits(out[:, 0], y["click"].double())


def turn(x, heads):
    """Rotary positions as in Hugging Face's LLaMA."""
    x = x.unflatten(-1, (heads, -1))
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[1]).double()[:, None] * 10000.0 ** (-torch.arange(half).double() / half)
    cos, sin = torch.cat([angle.cos()] * 2, -1)[:, None], torch.cat([angle.sin()] * 2, -1)[:, None]
    return (x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin).flatten(2)


def llama(p, x, y, step):
    norm = lambda name, v: F.rms_norm(v, v.shape[-1:], p[name + ".weight"], torch.finfo(torch.float32).eps)
    h = F.embedding(x["tokens"], p["model.embed_tokens.weight"])
    for layer in ("model.layers.0.", "model.layers.1."):
        n = norm(layer + "input_layernorm", h)
        q, k, v = (linear(p, f"{layer}self_attn.{c}_proj", n) for c in "qkv")
        h = h + linear(p, layer + "self_attn.o_proj", attend(turn(q, 8), turn(k, 2), v, 8, 2, is_causal=True))
        n = norm(layer + "post_attention_layernorm", h)
        gate, up = linear(p, layer + "mlp.gate_proj", n), linear(p, layer + "mlp.up_proj", n)
        h = h + linear(p, layer + "mlp.down_proj", F.silu(gate) * up)
    out = linear(p, "lm_head", norm("model.norm", h))
    return out, F.cross_entropy(out.flatten(0, 1), y["next"].flatten())


def lstm(p, x, y, step):
    rnn = torch.nn.LSTM(64, 32, 2, batch_first=True, bidirectional=True, dtype=torch.float64)
    e = F.embedding(x["tokens"], p["emb.weight"])
    packed = torch.nn.utils.rnn.pack_padded_sequence(e, x["length"], batch_first=True, enforce_sorted=False)
    own = {k.removeprefix("rnn."): v for k, v in p.items() if k.startswith("rnn.")}
    padded, _ = torch.nn.utils.rnn.pad_packed_sequence(torch.func.functional_call(rnn, own, (packed,))[0], batch_first=True)
    out = linear(p, "fc", padded[torch.arange(BATCH), x["length"] - 1])
    return out, F.cross_entropy(out, y["label"])


def lstm_projected(p, x, y, step):
    rnn = torch.nn.LSTM(6, 16, batch_first=True, bidirectional=True, proj_size=8, dtype=torch.float64)
    own = {}
    for line, end in (("there", ""), ("back", "_reverse")):
        own.update({f"{kind}_{part}_l0{end}": p[f"{line}.{part}.{kind}"] for part in ("ih", "hh") for kind in ("weight", "bias")})
        own[f"weight_hr_l0{end}"] = p[line + ".hr.weight"]
    packed = torch.nn.utils.rnn.pack_padded_sequence(x["x"], x["length"], batch_first=True, enforce_sorted=False)
    every, (h, _) = torch.func.functional_call(rnn, own, (packed,))
    every = torch.nn.utils.rnn.pad_packed_sequence(every, batch_first=True, total_length=12)[0]
    out = linear(p, "fc", torch.cat([h[0], h[1], every.sum(1) / 12], 1))
    return out, F.cross_entropy(out, y["label"])


def unet(p, x, y, step):
    def down(name, v):
        for i in "12":
            v = F.conv2d(v, p[f"{name}.conv{i}.weight"], p[f"{name}.conv{i}.bias"], padding=1)
            v = F.relu(F.group_norm(v, 8, p[f"{name}.norm{i}.weight"], p[f"{name}.norm{i}.bias"]))
        return v

    up = lambda name, v: F.conv_transpose2d(v, p[name + ".weight"], p[name + ".bias"], stride=2)
    d1 = down("d1", x["image"])
    d2 = down("d2", F.max_pool2d(d1, 2))
    u2 = down("u2", torch.cat([up("up2", down("mid", F.max_pool2d(d2, 2))), d2], 1))
    u1 = down("u1", torch.cat([up("up1", u2), d1], 1))
    out = F.conv2d(u1, p["head.weight"], p["head.bias"])
    return out, F.cross_entropy(out, y["mask"])


def vae(p, x, y, step):
    h = F.relu(linear(p, "e", x["image"]))
    mu, lv = linear(p, "mu", h), linear(p, "lv", h)
    out = linear(p, "out", mu + (lv / 2).exp() * normal("z@1", step, BATCH, 16))
    rebuilt = F.binary_cross_entropy_with_logits(out, x["image"], reduction="sum") / BATCH
    return out, rebuilt + (-0.5 * (1 + lv - mu * mu - lv.exp()).sum(1)).mean()


def ctc(out, y, steps, length):
    return F.ctc_loss(out.log_softmax(-1).transpose(0, 1), y["text"], steps, length, zero_infinity=False)


def speech(p, x, y, step):
    h = F.gelu(F.conv1d(x["mel"], p["c1.weight"], p["c1.bias"], stride=2, padding=1))
    h = F.gelu(F.conv1d(h, p["c2.weight"], p["c2.bias"], padding=1))
    out = linear(p, "fc", h.transpose(1, 2))
    return out, ctc(out, y, torch.full([BATCH], 100), torch.full([BATCH], 40))


def conformer(p, x, y, step):
    norm = lambda name, v: F.layer_norm(v, v.shape[-1:], p[name + ".weight"], p[name + ".bias"])
    feed = lambda name, v: v + 0.5 * linear(p, name + ".down", F.silu(linear(p, name + ".up", norm(name + ".norm", v))))
    conv = lambda name, v, **options: F.conv1d(v, p[name + ".weight"], p.get(name + ".bias"), **options)
    h = linear(p, "input", x["mel"].transpose(1, 2))
    for layer in ("layers.0.", "layers.1."):
        h = feed(layer + "ff1", h)
        q, k, v = (linear(p, layer + c, norm(layer + "norm_att", h)) for c in "qkv")
        h = h + linear(p, layer + "out", attend(turn(q, 4), turn(k, 4), v, 4))
        c = F.glu(conv(layer + "pointwise1", norm(layer + "norm_conv", h).transpose(1, 2)), 1)
        c = conv(layer + "depthwise", c, padding=3, groups=32)
        bn = layer + "batch_norm."
        c = F.batch_norm(c, p.get(bn + "running_mean"), p.get(bn + "running_var"), p[bn + "weight"], p[bn + "bias"], step is not None)
        h = h + conv(layer + "pointwise2", F.silu(c)).transpose(1, 2)
        h = norm(layer + "norm", feed(layer + "ff2", h))
    out = linear(p, "fc", h)
    return out, ctc(out, y, x["steps"], y["length"])


B = BATCH
MODELS = {
    bert: ({"tokens": whole(100, B, 32), "mask": whole(2, B, 32)}, {"label": whole(2, B)}, 0.1),
    ddpm: ({"image": floats(B, 3, 32, 32)}, {}, 0.1),
    dlrm: ({"dense": floats(B, 13), "ids": whole(10000, B, 26)}, {"click": whole(2, B)}, 0.001),
    llama: ({"tokens": whole(256, B, 64)}, {"next": whole(256, B, 64) + 1 & 255}, 0.1),
    lstm: ({"tokens": whole(1000, B, 32), "length": torch.tensor([7, 32])}, {"label": whole(5, B)}, 0.1),
    lstm_projected: ({"x": floats(B, 12, 6), "length": torch.tensor([5, 12])}, {"label": whole(5, B)}, 0.1),
    unet: ({"image": floats(B, 3, 32, 32)}, {"mask": whole(2, B, 32, 32)}, 0.1),
    speech: ({"mel": floats(B, 80, 200)}, {"text": whole(32, B, 40, low=1)}, 0.01),
    conformer: ({"mel": floats(B, 40, 20), "steps": torch.tensor([17, 20])},
                {"text": whole(16, B, 6, low=1), "length": torch.tensor([6, 4])}, 0.1),
    vae: ({"image": floats(B, 784)}, {}, 0.001),
}


def mean_iou(out, y):
    """The mean over samples and the classes that each has: torchmetrics leaves out the others, too."""
    is_class = lambda v: v.flatten(1)[:, None] == torch.arange(out.shape[1])[:, None]
    found, meant = is_class(out.argmax(1)), is_class(y["mask"])
    both, either = (found & meant).sum(2), (found | meant).sum(2)
    return (both / either)[either > 0].mean().item()


METRICS = {unet: mean_iou}


# ---- goldens ----

def initial_weights(tenon, name):
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([tenon, "train", os.path.join(EXAMPLES, name + ".ini"), "--quiet", "--output", folder, "--json",
                              "--set", f"run.seed={SEED}", "--set", "run.epochs=0"], check=True, capture_output=True, text=True)
        return load_file(os.path.join(json.loads(run.stdout)["run"], "checkpoints", "last", "model.safetensors"))


def shown(x):
    """At most SHOWN elements of those that are not 0, evenly spaced; the largest one and the sum, without signs."""
    x = x.detach().flatten()
    at = x.nonzero().flatten()
    at = at[torch.arange(min(len(at), SHOWN)) * len(at) // max(min(len(at), SHOWN), 1)]
    short = lambda v: float(f"{v:.8g}")
    return {"count": len(x), "largest": short(x.abs().max()), "sum": short(x.abs().sum()), "at": at.tolist(),
            "values": [short(v) for v in x[at].tolist()]}


def golden(tenon, model):
    inputs, targets, rate = MODELS[model]
    p = {k: v.double().requires_grad_(".running_" not in k) for k, v in initial_weights(tenon, model.__name__).items()}
    trained = {k: v for k, v in sorted(p.items()) if v.requires_grad}
    optimizer = torch.optim.SGD(trained.values(), lr=rate, momentum=MOMENTUM)
    result = {"peer": "torch " + torch.__version__, "lr": rate, "output": shown(model(p, inputs, targets, None)[0]), "losses": [],
              "fields": {k: v.flatten().tolist() for k, v in (inputs | targets).items() if v.dtype == torch.int64}}
    for step in range(STEPS):
        optimizer.zero_grad()
        out, loss = model(p, inputs, targets, step)
        loss.backward()
        if model in METRICS:
            name = METRICS[model].__name__
            result.setdefault("metrics", {}).setdefault(name, []).append(METRICS[model](out, targets))
        if step == 0:
            result["gradients"] = {k: shown(v.grad) for k, v in trained.items()}
        optimizer.step()
        result["losses"].append(float(f"{loss.item():.9g}"))
    return result | {"parameters": {k: shown(v) for k, v in sorted(p.items())}}


def main():
    torch.set_num_threads(1)
    os.makedirs(os.path.join(HERE, "models"), exist_ok=True)
    for model in MODELS:
        if sys.argv[2:] and model.__name__ not in sys.argv[2:]:
            continue
        with open(os.path.join(HERE, "models", model.__name__ + ".json"), "w") as f:
            lines = [f' "{k}": {json.dumps(v)}' for k, v in golden(os.path.abspath(sys.argv[1]), model).items()]
            f.write("{\n" + ",\n".join(lines) + "\n}\n")


main()
