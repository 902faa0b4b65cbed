/* tests/integration/cuda/cudnn_models.h: what tests of cuDNN's kernels share. */
#pragma once

#include <stddef.h>

/* Convolution, batch norm and ReLU, small: for many runs. Images have 3 channels, for which cuDNN compiles an
 * engine in 16 bits. */
__attribute__((unused)) static const char cudnn_blocks_ini[] =
    "[run]\nname = run\nseed = 1\n"
    "[data]\nsource = random\nshape = 3, 8, 8\nclasses = 4\nsamples = 16\nbatch = 4\n"
    "[data.valid]\nepoch = 4\n"
    "[model]\ninputs = image: f32[3, 8, 8]\nlayers =\n"
    "    conv1: conv2d(8, kernel=3, padding=1, bias=no)\n"
    "    bn1:   batch_norm\n           relu\n"
    "    conv2: conv2d(16, kernel=3, stride=2, padding=1, bias=no)\n"
    "    bn2:   batch_norm\n           relu\n"
    "    conv3: conv2d(16, kernel=3, padding=1, bias=no)\n"
    "    bn3:   batch_norm\n           relu\n"
    "           global_avg_pool\n    fc:    linear(4)\n"
    "loss = cross_entropy\n[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n";

/* The kernels that fold a batch norm for inference: those of infer_test.c. */
__attribute__((unused)) static const char *const cudnn_folded_kernels[] = {
    "cudnn_conv2d_norm", "cudnn_conv2d_norm_relu", "cudnn_conv2d_norm_add_relu", NULL};
