/* tests/integration/cli/nets.h: small networks of each kind, two epochs of which take a second. */
#pragma once

#include "configs.h"

__attribute__((unused)) static const char lenet_ini[] =
    "[run]\nname = run\n[data]\nsource = digits\nepoch = 96\nbatch = 8\nworkers = 1\n"
    "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
    "[data.valid]\nbatch = 20\nepoch = 50\n" LENET;

__attribute__((unused)) static const char resnet_ini[] =
    "[run]\nname = run\n[data]\nsource = random\nshape = 3, 12, 12\nclasses = 5\n"
    "samples = 72\nbatch = 6\n" RESNET("batch_norm", "           dropout(0.1)\n", "0.05");

__attribute__((unused)) static const char transformer_ini[] =
    "[run]\nname = run\n[data]\nsource = random\ntokens = 16\nclasses = 30\n"
    "samples = 48\nbatch = 4\n" TRANSFORMER("linear(3*width)");
