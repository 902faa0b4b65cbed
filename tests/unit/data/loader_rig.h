/* tests/unit/data/loader_rig.h: loaders on the source `numbers`, and room for their batches. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/text/text.h"
#include "core/data/transform_chain.h"
#include "core/plugin/handles.h"
#include "tests/support/test_env.h"
#include "tests/unit/data/numbers.h"

enum { MOST = 32, WIDE = 8 };

/* Room for a batch of up to MOST samples of up to WIDE floats. */
typedef struct room {
  float x[MOST * WIDE];
  int32_t y[MOST];
  float weights[MOST];
  int64_t ids[MOST];
  void *fields[2];
} room;

static inline tn_batch batch_in(room *r) {
  memset(r, 0, sizeof(*r));
  r->fields[0] = r->x;
  r->fields[1] = r->y;
  return (tn_batch){r->fields, r->weights, r->ids};
}

static tn_error_record record;
static tn_env env;

static inline int start(void **state) {
  (void)state;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  return 0;
}

static inline tn_loader_options options_for(const numbers *source) {
  return (tn_loader_options){.source = &numbers_source,
                             .source_options = source,
                             .batch = 4,
                             .prefetch = 2,
                             .training = true,
                             .seed = 7,
                             .where = "a.ini:3"};
}

static inline tn_loader *make(const tn_loader_options *options) {
  tn_loader *loader;
  tn_status status = tn_loader_create(&env, options, &loader);
  if (status != TN_OK) fail_msg("%s", tn_error_text(&env));
  return loader;
}

static inline void refuses(const tn_loader_options *options, tn_status code, const char *text) {
  tn_loader *loader;
  assert_int_equal(tn_loader_create(&env, options, &loader), code);
  assert_null(loader);
  if (strstr(tn_error_text(&env), text) == NULL) fail_msg("'%s' lacks '%s'", tn_error_text(&env), text);
}

static inline tn_status next(tn_loader *loader, room *r, int64_t *samples) {
  tn_batch batch = batch_in(r);
  assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
  return tn_loader_wait(loader, samples);
}

/* A hash of all batches of an epoch, with two batches in flight. */
static inline uint64_t hash_epoch(tn_loader *loader, int64_t epoch, int64_t first) {
  static room rooms[2];
  uint64_t hash = TN_HASH_START;
  assert_int_equal(tn_loader_start(loader, epoch, first), TN_OK);
  for (int i = 0; i < 2; i++) {
    tn_batch batch = batch_in(&rooms[i]);
    assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
  }
  for (int i = 0;; i = !i) {
    int64_t samples;
    tn_status status = tn_loader_wait(loader, &samples);
    if (status == TN_EOF) break;
    assert_int_equal(status, TN_OK);
    hash = tn_hash_bytes(hash, rooms[i].x, sizeof(rooms[i].x));
    hash = tn_hash_bytes(hash, rooms[i].y, sizeof(rooms[i].y));
    hash = tn_hash_bytes(hash, rooms[i].weights, sizeof(rooms[i].weights));
    hash = tn_hash_bytes(hash, rooms[i].ids, sizeof(rooms[i].ids));
    hash = tn_hash_bytes(hash, &samples, sizeof(samples));
    tn_batch batch = batch_in(&rooms[i]);
    assert_int_equal(tn_loader_submit(loader, &batch), TN_OK);
  }
  return hash;
}
