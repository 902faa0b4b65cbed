/* tests/integration/cli/nets.h: small networks of each kind, two epochs of which take a second. */
#ifndef TN_TESTS_INTEGRATION_CLI_NETS_H
#define TN_TESTS_INTEGRATION_CLI_NETS_H

#include "configs.h"

__attribute__((unused)) static const char lenet_ini[] =
    "[run]\nname = run\n[data]\nsource = digits\nepoch = 96\nbatch = 8\nworkers = 1\n"
    "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
    "[data.valid]\nbatch = 20\nepoch = 50\n" LENET;

__attribute__((unused)) static const char resnet_ini[] =
    "[run]\nname = run\n[data]\nsource = random\nshape = 3, 12, 12\nclasses = 5\nsamples = 72\nbatch = 6\n"
    "[model]\ninputs = image: f32[3, 12, 12]\nlayers =\n"
    "    conv1: conv2d(8, kernel=3, padding=1, bias=no)\n"
    "    bn1:   batch_norm\n"
    "           relu\n"
    "    layer1: basic(8)\n"
    "    layer2: basic(16, stride=2), basic(16)\n"
    "           global_avg_pool\n"
    "           dropout(0.1)\n"
    "    fc:    linear(5)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[block basic]\nargs = planes, stride=1\nlayers =\n"
    "    conv1: conv2d(planes, kernel=3, stride=stride, padding=1, bias=no)\n"
    "    bn1:   batch_norm\n"
    "           relu\n"
    "    conv2: conv2d(planes, kernel=3, padding=1, bias=no)\n"
    "    bn2:   batch_norm\n"
    "    downsample: conv2d(planes, kernel=1, stride=stride, bias=no),\n"
    "                batch_norm <- in if stride != 1 or dim(in, 1) != planes\n"
    "           add <- bn2, downsample\n"
    "           relu\n"
    "[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n";

__attribute__((unused)) static const char transformer_ini[] =
    "[run]\nname = run\n[data]\nsource = random\ntokens = 16\nclasses = 30\nsamples = 48\nbatch = 4\n"
    "[model]\ninputs = tokens: i32[16]\ntargets = next: i32[16]\nlayers =\n"
    "    wte:  embedding(30, 16, init=normal(0, 0.02))\n"
    "    wpe:  positions(16, init=normal(0, 0.02)) <- tokens\n"
    "    x:    add <- wte, wpe\n"
    "    h:    block(16, heads=2) * 2\n"
    "    ln_f: layer_norm\n"
    "    head: linear(30, bias=no)\n"
    "loss = cross_entropy\n"
    "[block block]\nargs = width, heads\nlayers =\n"
    "    ln_1: layer_norm\n"
    "    qkv:  linear(3*width)\n"
    "    q, k, v: split(3, axis=-1)\n"
    "    y:    attention(heads, causal=yes) <- q, k, v\n"
    "    proj: linear(width)\n"
    "    a:    add <- in, proj\n"
    "    ln_2: layer_norm\n"
    "    up:   linear(4*width)\n"
    "          gelu(tanh)\n"
    "    down: linear(width)\n"
    "          add <- a, down\n"
    "[optimizer]\ntype = adamw\nlr = 1e-3\nweight_decay = 0.1\nclip = 1.0\n"
    "[group.no_decay]\nmatch = *.bias, *ln_*\nweight_decay = 0\n";

#endif
