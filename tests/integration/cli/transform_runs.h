/* tests/integration/cli/transform_runs.h: trainings with transforms on the host and on the device. */
#pragma once

#include "program.h"

/* Two epochs with a padded last batch, and validation. The transforms and sizes are open. */
__attribute__((unused)) static const char model[] =
    "[run]\nname = run\nepochs = 2\nseed = 3\n[data]\nsource = digits\nepoch = 90\nbatch = 8\nlast = pad\n"
    "workers = 1\ntransforms = %s\n[data.valid]\nbatch = 20\nepoch = 50\n"
    "[model]\ninputs = image: f32[1, %d, %d]\nlayers =\n    conv: conv2d(4, kernel=3)\n    relu\n    "
    "flatten\n"
    "    fc: linear(10)\nloss = cross_entropy\nmetrics = accuracy\n"
    "[optimizer]\ntype = sgd\nlr = 0.05\nmomentum = 0.9\n";

static inline void write_model(const char *transforms, int height, int width) {
  char text[2048];
  snprintf(text, sizeof text, model, transforms, height, width);
  file_write("model.ini", text);
}

/* Trains with all transforms on the host, and then with the last `n` and with each shorter suffix on the
 * device. */
static inline void train_both_ways(const char *backend, int n, const char *more) {
  static int calls; /* names the outputs: a run into a folder that exists gets a name of its own */
  char host[32], output[32];
  snprintf(host, sizeof host, "host_%d", ++calls);
  const json_t *expected =
      program_json(0, "train model.ini --output %s --set backend.use=%s --set data.device_transforms=no %s",
                   host, backend, more);
  for (int on_device = 1; on_device <= n; on_device++) {
    snprintf(output, sizeof output, "device_%d_%d", calls, on_device);
    const json_t *got =
        program_json(0, "train model.ini --output %s --set backend.use=%s --set data.device_transforms=%d %s",
                     output, backend, on_device, more);
    assert_true(program_number(got, "train.loss") == program_number(expected, "train.loss"));
    assert_true(program_number(got, "valid.loss") == program_number(expected, "valid.loss"));
    checkpoints_equal(output, host);
  }
}

__attribute__((unused)) static const char chain[] =
    "random_crop(28, padding=3), random_flip, resize(40), center_crop(36), normalize(mean=0.13, std=0.31)";
