"""memory_peer.py MODEL WAY: one model's training step in PyTorch on the CPU, one thread: JSON with the bytes that autograd keeps between
forward and backward and the seconds of a step. WAY: none, or blocks, which computes each block again in backward
(torch.utils.checkpoint). MODEL: resnet50 (batch 4, 224 x 224) or gpt2 (124M, batch 1, 512 tokens)."""
import json
import sys
import time

import torch
from torch.utils.checkpoint import checkpoint

torch.set_num_threads(1)
torch.manual_seed(0)
model_name, way = sys.argv[1:3]


def wrap(block):
    plain = block.forward
    block.forward = lambda *a, **k: checkpoint(plain, *a, use_reentrant=False, **k)


if model_name == "resnet50":
    from torchvision.models import resnet50

    model = resnet50()
    blocks = [b for layer in (model.layer1, model.layer2, model.layer3, model.layer4) for b in layer]
    inputs, targets = torch.randn(4, 3, 224, 224), torch.randint(0, 1000, (4,))
    output = lambda: model(inputs)
else:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, use_cache=False))
    blocks = model.transformer.h
    inputs, targets = torch.randint(0, 50257, (1, 512)), torch.randint(0, 50257, (512,))
    output = lambda: model(inputs).logits[0]
if way == "blocks":
    for block in blocks:
        wrap(block)

parameters = {p.untyped_storage().data_ptr() for p in model.parameters()}
kept = {}


def keep(tensor):
    storage = tensor.untyped_storage()
    if storage.data_ptr() not in parameters:
        kept[storage.data_ptr()] = storage.nbytes()
    return tensor


def step(count):
    if count:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda t: t):
            loss = torch.nn.functional.cross_entropy(output(), targets)
    else:
        loss = torch.nn.functional.cross_entropy(output(), targets)
    loss.backward()
    model.zero_grad(set_to_none=True)


step(True)
times = []
for _ in range(3):
    start = time.process_time()
    step(False)
    times.append(time.process_time() - start)
print(json.dumps({"kept_bytes": sum(kept.values()), "step_s": sorted(times)[1]}))
