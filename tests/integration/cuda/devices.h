/* tests/integration/cuda/devices.h: the double of CUDA and the reference backend beside each other. DOUBLES:
 * the folder of the double's libraries. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tenon/tensor.h"

static tn_context *context;
static tn_device *cuda, *cpu;

/* Fails the test with the handle's message. */
#define OK(handle, call)                                                                                     \
  do {                                                                                                       \
    if ((call) != TN_OK) fail_msg("%s: %s", #call, tn_error_text(handle));                                   \
  } while (0)

static int open_devices_with(const char *options) {
  assert_int_equal(tn_context_open(NULL, &context), TN_OK);
  OK(context, tn_device_open(context, "cuda", 0, options, &cuda));
  OK(context, tn_device_open(context, "cpu", 0, "threads = 2", &cpu));
  return 0;
}

/* CMocka's set-up and tear-down of a group that tests the kernels of Tenon. */
static int open_devices(void **state) {
  (void)state;
  return open_devices_with("libraries = " DOUBLES "\ncudnn = no");
}

static int close_devices(void **state) {
  (void)state;
  tn_device_close(cuda);
  tn_device_close(cpu);
  tn_context_close(context);
  return 0;
}
