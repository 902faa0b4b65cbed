/* tests/unit/backends/sim/rig.h: one simulated device, driven through its table as the host does it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/sim/callbacks.h"
#include "backends/sim/sim.h"

enum { FLOATS = 64, BYTES = FLOATS * 4 };

/* The message of the last failure, and how often memory was asked for. */
extern char rig_text[2048];
extern _Atomic(int) rig_allocations;

typedef struct rig {
  tn_env env;
  const tn_backend *b;
  void *self, *device;
  void *streams[TN_STREAMS];
  void *compute, *in, *out;
} rig;

/* Opens device 0. order, seed, fail and drop are taken from `options`, 0 and NULL being defaults. */
rig *rig_open(tn_sim_options options);
/* Waits for all streams and closes. */
void rig_close(rig *r);

float *rig_device(rig *r);  /* BYTES of device memory, zeroed and waited for */
float *rig_staging(rig *r); /* BYTES of staging memory */
void rig_free(rig *r, int32_t kind, void *address);
void *rig_event(rig *r);
void rig_record_await(rig *r, void *event, void *from, void *to);
float rig_first(rig *r, float *device); /* after waiting for all streams */

/* A launch that adds `amount` to every element: out = in + amount. It lives in the caller. */
typedef struct rig_add {
  tn_launch launch;
  tn_view in, out;
  float amount;
} rig_add;
void rig_add_make(rig_add *add, const char *name, float *in, float *out, float amount);
tn_status rig_add_enqueue(rig *r, rig_add *add, void *stream);
tn_status rig_add_launch(tn_launch *l);

#define OK(call) assert_int_equal((call), TN_OK)
#define SAYS(part)                                                                                           \
  do {                                                                                                       \
    if (strstr(rig_text, part) == NULL) fail_msg("'%s' does not say '%s'", rig_text, part);                  \
  } while (0)
