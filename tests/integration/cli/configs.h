/* tests/integration/cli/configs.h: configurations that the tests train. */
#pragma once

/* LeNet-5 on digits, without [run] and [data]. */
#define LENET_CONVOLUTIONS                                                                                   \
  "[model]\ninputs = image: f32[1, 28, 28]\nlayers =\n"                                                      \
  "    conv1: conv2d(6, kernel=5, padding=2)\n"                                                              \
  "           relu\n"                                                                                        \
  "           max_pool(2)\n"                                                                                 \
  "    conv2: conv2d(16, kernel=5)\n"                                                                        \
  "           relu\n"                                                                                        \
  "           max_pool(2)\n"                                                                                 \
  "           flatten\n"
#define LENET_LEARNING                                                                                       \
  "loss = cross_entropy\nmetrics = accuracy\n"                                                               \
  "[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\nweight_decay = 5e-4\n"
#define LENET                                                                                                \
  LENET_CONVOLUTIONS                                                                                         \
  "    fc1:   linear(120)\n"                                                                                 \
  "           relu\n"                                                                                        \
  "    fc2:   linear(84)\n"                                                                                  \
  "           relu\n"                                                                                        \
  "    fc3:   linear(10)\n" LENET_LEARNING

/* A residual network with the lines NORM for batch norm and BEFORE_FC, without [run] and [data]. */
#define RESNET(NORM, BEFORE_FC, LR)                                                                          \
  "[model]\ninputs = image: f32[3, 12, 12]\nlayers =\n"                                                      \
  "    conv1: conv2d(8, kernel=3, padding=1, bias=no)\n"                                                     \
  "    bn1:   " NORM "\n"                                                                                    \
  "           relu\n"                                                                                        \
  "    layer1: basic(8)\n"                                                                                   \
  "    layer2: basic(16, stride=2), basic(16)\n"                                                             \
  "           global_avg_pool\n" BEFORE_FC "    fc:    linear(5)\n"                                          \
  "loss = cross_entropy\nmetrics = accuracy\n"                                                               \
  "[block basic]\nargs = planes, stride=1\nlayers =\n"                                                       \
  "    conv1: conv2d(planes, kernel=3, stride=stride, padding=1, bias=no)\n"                                 \
  "    bn1:   " NORM "\n"                                                                                    \
  "           relu\n"                                                                                        \
  "    conv2: conv2d(planes, kernel=3, padding=1, bias=no)\n"                                                \
  "    bn2:   " NORM "\n"                                                                                    \
  "    downsample: conv2d(planes, kernel=1, stride=stride, bias=no),\n"                                      \
  "                " NORM " <- in if stride != 1 or dim(in, 1) != planes\n"                                  \
  "           add <- bn2, downsample\n"                                                                      \
  "           relu\n"                                                                                        \
  "[optimizer]\ntype = sgd\nlr = " LR "\nmomentum = 0.9\n"

/* A transformer of two blocks on 16 tokens of 30, with the line QKV, without [run] and [data]. */
#define TRANSFORMER(QKV)                                                                                     \
  "[model]\ninputs = tokens: i32[16]\ntargets = next: i32[16]\nlayers =\n"                                   \
  "    wte:  embedding(30, 16, init=normal(0, 0.02))\n"                                                      \
  "    wpe:  positions(16, init=normal(0, 0.02)) <- tokens\n"                                                \
  "    x:    add <- wte, wpe\n"                                                                              \
  "    h:    block(16, heads=2) * 2\n"                                                                       \
  "    ln_f: layer_norm\n"                                                                                   \
  "    head: linear(30, bias=no)\n"                                                                          \
  "loss = cross_entropy\n"                                                                                   \
  "[block block]\nargs = width, heads\nlayers =\n"                                                           \
  "    ln_1: layer_norm\n"                                                                                   \
  "    qkv:  " QKV "\n"                                                                                      \
  "    q, k, v: split(3, axis=-1)\n"                                                                         \
  "    y:    attention(heads, causal=yes) <- q, k, v\n"                                                      \
  "    proj: linear(width)\n"                                                                                \
  "    a:    add <- in, proj\n"                                                                              \
  "    ln_2: layer_norm\n"                                                                                   \
  "    up:   linear(4*width)\n"                                                                              \
  "          gelu(tanh)\n"                                                                                   \
  "    down: linear(width)\n"                                                                                \
  "          add <- a, down\n"                                                                               \
  "[optimizer]\ntype = adamw\nlr = 1e-3\nweight_decay = 0.1\nclip = 1.0\n"                                   \
  "[group.no_decay]\nmatch = *.bias, *ln_*\nweight_decay = 0\n"

/* Ends by a signal alone, however late that comes: a trillion steps of noise_ini. */
#define ENDLESS "--quiet --set run.epochs=100000000000"

/* Random data without a pattern, ten short steps an epoch. */
static const char noise_ini[] = "[run]\n"
                                "name = noise\n"
                                "epochs = 2\n"
                                "[data]\n"
                                "source = random\n"
                                "shape = 1, 6, 6\n"
                                "classes = 4\n"
                                "samples = 80\n"
                                "batch = 8\n"
                                "[model]\n"
                                "inputs = image: f32[1, 6, 6]\n"
                                "layers =\n"
                                "         flatten\n"
                                "    fc1: linear(16)\n"
                                "         relu\n"
                                "    fc2: linear(4)\n"
                                "loss = cross_entropy\n"
                                "metrics = accuracy\n"
                                "[optimizer]\n"
                                "type = sgd\n"
                                "lr = 0.05\n"
                                "momentum = 0.9\n";

/* All kinds of state and randomness: drawn and shuffled samples, dropout, running statistics, moments and the
 * update counter, groups, a schedule with warm-up. */
static const char digits_ini[] = "[run]\n"
                                 "name = digits\n"
                                 "epochs = 2\n"
                                 "seed = 7\n"
                                 "[data]\n"
                                 "source = digits\n"
                                 "batch = 16\n"
                                 "epoch = 2400\n"
                                 "transforms = to_float, normalize(mean=0.13, std=0.31)\n"
                                 "[data.valid]\n"
                                 "batch = 100\n"
                                 "epoch = 250\n"
                                 "[model]\n"
                                 "inputs = image: f32[1, 28, 28]\n"
                                 "layers =\n"
                                 "    conv: conv2d(4, kernel=5, stride=2, padding=2)\n"
                                 "    bn:   batch_norm\n"
                                 "          relu\n"
                                 "          flatten\n"
                                 "          dropout(0.2)\n"
                                 "    fc:   linear(10)\n"
                                 "loss = cross_entropy\n"
                                 "metrics = accuracy\n"
                                 "[optimizer]\n"
                                 "type = adamw\n"
                                 "lr = 0.003\n"
                                 "clip = 1\n"
                                 "[group.plain]\n"
                                 "match = *.bias, bn.*\n"
                                 "weight_decay = 0\n"
                                 "[schedule]\n"
                                 "type = cosine\n"
                                 "warmup = 10\n";
