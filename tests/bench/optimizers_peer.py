"""The time of an update of the parameters of GPT-2 124M, in milliseconds.

  optimizers_peer.py NAME       by PyTorch or timm, the best of its forms: adamw, lion or muon
  optimizers_peer.py - FILE     by Tenon: the launches of the update in what `tenon bench --ops --json` prints
"""
import json, re, statistics, sys, time

ROUNDS = 7


def ours(path):
    """Launches of the update are named after a parameter, or after no layer."""
    launches = json.load(open(path))["launches"]
    return sum(l["ms"][1] for l in launches if re.match(r"%|.*\.(weight|bias)$|wpe$", l["name"]))


def shapes():
    block = [(768,), (768,), (2304, 768), (2304,), (768, 768), (768,), (768,), (768,), (3072, 768), (3072,), (768, 3072), (768,)]
    return [(50257, 768), (1024, 768)] + 12 * block + [(768,), (768,)]


def candidates(name, parameters):
    import torch, timm.optim
    if name == "adamw":
        return {form: [torch.optim.AdamW(parameters, **{form: True})] for form in ("fused", "foreach")}
    if name == "lion":
        return {form: [timm.optim.Lion(parameters, foreach=form == "foreach")] for form in ("foreach", "single")}
    matrices = [p for p in parameters[2:] if p.dim() == 2]
    others = parameters[:2] + [p for p in parameters[2:] if p.dim() < 2]
    return {"Muon": [torch.optim.Muon(matrices), torch.optim.AdamW(others, fused=True)]}


def peer(name):
    import torch
    torch.set_num_threads(len(__import__("os").sched_getaffinity(0)))
    parameters = [torch.nn.Parameter(torch.randn(s) * 0.02) for s in shapes()]
    for p in parameters:
        p.grad = torch.randn_like(p) * 0.01
    best = {}
    for form, optimizers in candidates(name, parameters).items():
        times = []
        for _ in range(ROUNDS if name != "muon" else 3):
            start = time.perf_counter()
            for optimizer in optimizers:
                optimizer.step()
            times.append(1000 * (time.perf_counter() - start))
        best[form] = statistics.median(times[1:])
    form = min(best, key=best.get)
    print(f"{best[form]:.3f} PyTorch {torch.__version__}, {form}")


if sys.argv[1] == "-":
    print(f"{ours(sys.argv[2]):.3f}")
else:
    peer(sys.argv[1])
