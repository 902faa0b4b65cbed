/* tests/integration/ranks/models.h: ResNet-18 for images of 32x32, as docs/examples/cifar10_resnet18.ini has
 * it, with an eighth of the channels and statistics of the whole batch; and LeNet on the source
 * `loud`. */
#pragma once

#include "tests/integration/cli/configs.h"

#define INIT "init=kaiming_normal(mode=fan_out)"
static const char resnet18_ini[] =
    "[run]\nname = run\nseed = 5\nepochs = 20\n"
    "[data]\nsource = random\nshape = 3, 32, 32\nclasses = 10\nsamples = 60\nbatch = 12\nworkers = 1\n"
    "[data.valid]\nepoch = 24\n"
    "[model]\ninputs = image: f32[3, 32, 32]\nlayers =\n"
    "    conv1:  conv2d(8, kernel=3, padding=1, bias=no, " INIT ")\n"
    "    bn1:    batch_norm(sync=yes)\n"
    "            relu\n"
    "    layer1: basic(8) * 2\n"
    "    layer2: basic(16, stride=2), basic(16)\n"
    "    layer3: basic(32, stride=2), basic(32)\n"
    "    layer4: basic(64, stride=2), basic(64)\n"
    "            global_avg_pool\n"
    "    fc:     linear(10)\n"
    "loss = cross_entropy\nmetrics = accuracy\n"
    "[block basic]\nargs = planes, stride=1\nlayers =\n"
    "    conv1: conv2d(planes, kernel=3, stride=stride, padding=1, bias=no, " INIT ")\n"
    "    bn1:   batch_norm(sync=yes)\n"
    "           relu\n"
    "    conv2: conv2d(planes, kernel=3, padding=1, bias=no, " INIT ")\n"
    "    bn2:   batch_norm(sync=yes)\n"
    "    downsample: conv2d(planes, kernel=1, stride=stride, bias=no, " INIT "),\n"
    "                batch_norm(sync=yes) <- in if stride != 1 or dim(in, 1) != planes\n"
    "           add <- bn2, downsample\n"
    "           relu\n"
    "[optimizer]\ntype = sgd\nlr = 0.02\nmomentum = 0.9\nweight_decay = 5e-4\n";

/* The loud sample is the last of the second batch, so the last rank has it. */
static const char loud_ini[] = "[run]\nname = run\nseed = 3\nepochs = 20\n"
                               "[plugins]\nload = " LOUD "\n"
                               "[data]\nsource = loud\nbatch = 12\nshuffle = no\nworkers = 1\n"
                               "[data.train]\nloud = 23\n"
                               "[precision]\ninit_scale = 65536\n" LENET;
