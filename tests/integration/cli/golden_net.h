/* tests/integration/cli/golden_net.h: the small net and the samples that tests/golden/small_net.py has for
 * PyTorch, and comparison with its tensors. */
#pragma once

#include "tensors.h"

#include <math.h>

enum { GOLDEN_NAMES = 8, GOLDEN_SAMPLES = 48, GOLDEN_PIXELS = 6 };
static const char *const golden_names[GOLDEN_NAMES] = {"fc1.weight", "fc1.bias",        "bn.weight",
                                                       "bn.bias",    "bn.running_mean", "bn.running_var",
                                                       "fc2.weight", "fc2.bias"};

/* images, labels and net.ini, a copy of `ini`. small_net.py has the same formulas. */
static inline void golden_write_data(const char *ini) {
  unsigned char images[16 + GOLDEN_SAMPLES * GOLDEN_PIXELS] = {0, 0, 8, 3, 0, 0, 0, GOLDEN_SAMPLES,
                                                               0, 0, 0, 2, 0, 0, 0, 3},
                                             labels[8 + GOLDEN_SAMPLES] = {0, 0, 8, 1,
                                                                           0, 0, 0, GOLDEN_SAMPLES};
  for (int i = 0; i < GOLDEN_SAMPLES; i++) {
    for (int j = 0; j < GOLDEN_PIXELS; j++)
      images[16 + i * GOLDEN_PIXELS + j] = (unsigned char)((i * 37 + j * 11 + i * j * 5) % 251);
    labels[8 + i] = (unsigned char)((i * i + i / 3) % 3);
  }
  file_write_bytes("images", images, sizeof images);
  file_write_bytes("labels", labels, sizeof labels);
  size_t n;
  file_write("net.ini", file_read(ini, &n));
}

/* The tensor of a file has the values of PyTorch within 2e-5 relative. */
static inline void golden_expect_tensor(const char *file, const char *name, const json_t *golden) {
  size_t n = 0;
  const float *values = tensor_find(file, name, &n);
  assert_non_null(values);
  assert_int_equal(n, json_array_size(golden));
  for (size_t i = 0; values && i < n; i++) {
    double want = json_number_value(json_array_get(golden, i));
    if (!(fabs((double)values[i] - want) <= 2e-5 * (1 + fabs(want))))
      fail_msg("%s[%zu] is %.7g, PyTorch has %.7g", name, i, (double)values[i], want);
  }
}
