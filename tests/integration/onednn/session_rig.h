/* A session of a model in a file, on random weights, for comparisons of the fast CPU with the reference. Its
 * input `image` has PIXELS numbers a sample, its output CLASSES. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/model_file.h"
#include "tenon/session.h"

enum { BATCH = 3, PIXELS = 3 * 20 * 20, CLASSES = 6 };

typedef struct rig {
  tn_context *context;
  tn_run *run;
  tn_session *session;
  float image[BATCH * PIXELS], scores[BATCH * CLASSES];
} rig;

static inline void ok(tn_status status, const void *handle) {
  if (status != TN_OK) fail_msg("%s", tn_error_text(handle));
}

static inline rig *start(const model_file *file, const char *backend, const char *const *more,
                         int32_t n_more) {
  rig *r = calloc(1, sizeof *r);
  const char *set[8] = {backend, "backend.autotune=no"};
  for (int32_t i = 0; i < n_more; i++) set[2 + i] = more[i];
  const tn_run_options options = {.struct_size = sizeof options, .set = set, .n_set = 2 + n_more};
  const tn_session_options session = {
      .struct_size = sizeof session, .infer = 1, .batch = BATCH, .weights = ""};
  assert_non_null(r);
  ok(tn_context_open(NULL, &r->context), r->context);
  ok(tn_run_open(r->context, file->path, &options, &r->run), r->context);
  ok(tn_session_open(r->run, &session, &r->session), r->run);
  ok(tn_session_bind(r->session, "image", r->image, sizeof r->image), r->session);
  ok(tn_session_bind(r->session, "output", r->scores, sizeof r->scores), r->session);
  for (int32_t i = 0; i < BATCH * PIXELS; i++) r->image[i] = sinf(0.37f * (float)i) + 0.1f * (float)(i % 7);
  return r;
}

static inline void stop(rig *r) {
  tn_session_close(r->session);
  tn_run_close(r->run);
  tn_context_close(r->context);
  free(r);
}

static inline double difference(const rig *a, const rig *b) {
  double most = 0, largest = 1e-9;
  for (int32_t i = 0; i < BATCH * CLASSES; i++) {
    double d = fabs((double)a->scores[i] - (double)b->scores[i]);
    if (d > most || isnan(d)) most = d;
    largest = fmax(largest, fabs((double)a->scores[i]));
  }
  return most / largest;
}
