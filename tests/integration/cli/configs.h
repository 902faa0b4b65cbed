/* tests/integration/cli/configs.h: configurations that the tests train. */
#ifndef TN_TESTS_INTEGRATION_CLI_CONFIGS_H
#define TN_TESTS_INTEGRATION_CLI_CONFIGS_H

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

#endif
