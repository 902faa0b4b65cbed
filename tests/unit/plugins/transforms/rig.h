/* tests/unit/plugins/transforms/rig.h: a picture, and calls of a transform on it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/config/options/options.h"
#include "core/plugin/handles.h"
#include "plugins/transforms/transforms.h"

enum { HIGH = 7, WIDE = 10, PLANE = HIGH * WIDE, MOST = 3 * 64 * 64 };

static tn_error_record record;
static tn_env env;
static tn_arena arena;
static uint8_t bytes[3 * PLANE];
static float floats[3 * PLANE];
static union {
  uint8_t u8[4 * MOST];
  float f32[MOST];
} out;

/* The scratch memory of a worker, reused by the transforms of a test. */
static tn_scratch scratch;

/* The picture of goldens.py. */
static inline int start(void **state) {
  (void)state;
  tn_error_record_init_root(&env, &record, &tn_host_api);
  arena = tn_arena_new(&env);
  for (int k = 0; k < 3; k++)
    for (int i = 0; i < PLANE; i++) bytes[k * PLANE + i] = (uint8_t)((i * 37 + i * i * 11 + k * 101) % 256);
  for (int i = 0; i < 3 * PLANE; i++) floats[i] = (float)bytes[i] / 255.0f;
  return 0;
}

static inline int stop(void **state) {
  (void)state;
  tn_release(&env, scratch.memory);
  scratch = (tn_scratch){NULL, 0};
  tn_arena_free(&arena);
  return 0;
}

/* Options from "name", "value" pairs, ended by NULL. */
static inline const void *options_of(const tn_transform *t, const char *const *pairs) {
  tn_options options;
  if (tn_options_start(&env, &arena, &t->item, &options) != TN_OK) fail_msg("%s", tn_error_text(&env));
  for (; *pairs != NULL; pairs += 2)
    if (tn_options_set_text(&env, &options, pairs[0], pairs[1]) != TN_OK) fail_msg("%s", tn_error_text(&env));
  if (tn_options_finish(&env, &options) != TN_OK) fail_msg("%s", tn_error_text(&env));
  return options.data;
}
#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})
#define NO_PAIRS   ((const char *const[]){NULL})

static const tn_type u8_picture = {TN_U8, 3, {3, HIGH, WIDE}}, f32_picture = {TN_F32, 3, {3, HIGH, WIDE}};

/* Runs a transform on one field into `out`; returns the result's type. */
static inline tn_type run(const tn_transform *t, const char *const *pairs, const tn_type *type,
                          const void *in, uint64_t key) {
  const void *options = options_of(t, pairs);
  tn_type result = *type;
  if (t->infer(&env, options, 1, type, &result) != TN_OK) fail_msg("%s", tn_error_text(&env));
  assert_true(tn_type_bytes(&result) <= sizeof(out));
  tn_transform_call call = {.env = env,
                            .struct_size = sizeof call,
                            .n = 1,
                            .in_type = type,
                            .out_type = &result,
                            .in = &in,
                            .key = key,
                            .scratch = &scratch};
  call.out = (void *const[]){&out};
  if (t->apply(&call, options) != TN_OK) fail_msg("%s", tn_error_text(&env));
  return result;
}

static inline void refuses(const tn_transform *t, const char *const *pairs, const tn_type *type,
                           const char *text) {
  tn_type result = *type;
  assert_int_equal(t->infer(&env, options_of(t, pairs), 1, type, &result), TN_EINVAL);
  if (strstr(tn_error_text(&env), text) == NULL) fail_msg("'%s' lacks '%s'", tn_error_text(&env), text);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)
