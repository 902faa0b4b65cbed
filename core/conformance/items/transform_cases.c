/* core/conformance/items/transform_cases.c: transforms: a result is a function of the sample and its key, all
 * of it is written and nothing else, and the form for the device has the values of the host's. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/conformance/items/items.h"
#include "tenon/plugin/transform.h"

enum { BATCH = 3, DRAWS = 64, PATTERN = 0xA5, OTHER_PATTERN = 0x5A, AROUND = 0x3C, OTHERWISE_AROUND = 0xFF };

/* Fields that a transform may take: bytes and numbers, pictures and vectors. */
static const tn_type field_types[] = {
    {TN_U8, 3, {3, 9, 7}},    {TN_F32, 3, {3, 9, 7}}, {TN_U8, 3, {1, 12, 12}},
    {TN_F32, 3, {1, 33, 18}}, {TN_F32, 1, {5}},       {TN_U8, 1, {11}},
    {TN_I64, 1, {6}},         {TN_I32, 0, {0}},       {TN_F32, 2, {4, 3}}};

typedef struct transform_use {
  tn_check *check;
  const tn_transform *transform;
  const void *options;
  tn_type in, out; /* of one call */
  tn_scratch scratch;
  tn_guarded from[BATCH], to[BATCH];
  int32_t draws[BATCH * DRAWS];
} transform_use;

/* ---- one call ---- */

static void transform_fill(transform_use *u, int32_t sample) {
  tn_rng rng = tn_rng_at((uint64_t)sample, 5);
  uint8_t *data = tn_guarded_data(&u->from[sample]);
  for (int64_t i = 0; i < tn_type_count(&u->in); i++) {
    int64_t byte = tn_rng_below(&rng, 256);
    switch (u->in.dtype) {
    case TN_U8: data[i] = (uint8_t)byte; break;
    case TN_I32: ((int32_t *)(void *)data)[i] = (int32_t)byte % 10; break;
    case TN_I64: ((int64_t *)(void *)data)[i] = byte % 10; break;
    default: ((float *)(void *)data)[i] = (float)(byte - 100) / 100;
    }
  }
}

static uint64_t transform_key(int32_t sample) { return 1000 + (uint64_t)sample; }

static tn_status transform_apply(transform_use *u, int32_t sample, uint8_t pattern, tn_scratch *scratch) {
  tn_env *env = u->check->suite->env;
  const void *in = tn_guarded_data(&u->from[sample]);
  void *out = tn_guarded_new(env, &u->to[sample], tn_type_bytes(&u->out), pattern);
  tn_transform_call call = {.env = *env,
                            .struct_size = sizeof call,
                            .n = 1,
                            .in_type = &u->in,
                            .out_type = &u->out,
                            .in = &in,
                            .out = &out,
                            .index = sample,
                            .key = transform_key(sample),
                            .scratch = scratch};
  return out != NULL ? u->transform->apply(&call, u->options) : TN_ENOMEM;
}

/* ---- on the host ---- */

static void transform_check_bounds(transform_use *u, int32_t sample, uint64_t before) {
  int64_t offset;
  if (!tn_guarded_intact(&u->to[sample], &offset))
    tn_check_fail(u->check, "sample %d: byte %lld of the result is written, which has %zu bytes", sample,
                  (long long)offset, u->to[sample].bytes);
  uint64_t now = tn_hash_bytes(TN_HASH_START, tn_guarded_data(&u->from[sample]), u->from[sample].bytes);
  if (now != before || !tn_guarded_intact(&u->from[sample], &offset))
    tn_check_fail(u->check, "sample %d: it changes its operand; expected that it writes its result only",
                  sample);
}

static void transform_compare(transform_use *u, int32_t sample, const uint8_t *first) {
  const uint8_t *now = tn_guarded_data(&u->to[sample]);
  for (size_t i = 0; i < u->to[sample].bytes; i++) {
    if (now[i] == first[i]) continue;
    if (now[i] == OTHER_PATTERN && first[i] == PATTERN)
      tn_check_fail(u->check, "sample %d: byte %zu of the result is not written", sample, i);
    else
      tn_check_fail(
          u->check,
          "sample %d: byte %zu of the result is %u after other samples, expected %u as on a new worker; a "
          "result depends on the sample and its key only",
          sample, i, now[i], first[i]);
    return;
  }
}

/* The sample again, after another one, with other bytes around it and in the memory of its result. */
static tn_status transform_apply_again(transform_use *u, int32_t sample) {
  tn_env *env = u->check->suite->env;
  TN_TRY(transform_apply(u, BATCH - 1 - sample, PATTERN, &u->scratch));
  if (tn_guarded_new(env, &u->from[sample], tn_type_bytes(&u->in), OTHERWISE_AROUND) == NULL)
    return TN_ENOMEM;
  transform_fill(u, sample);
  return transform_apply(u, sample, OTHER_PATTERN, &u->scratch);
}

static tn_status transform_check_sample(transform_use *u, int32_t sample) {
  tn_env *env = u->check->suite->env;
  tn_scratch fresh = {NULL, 0};
  uint64_t before = tn_hash_bytes(TN_HASH_START, tn_guarded_data(&u->from[sample]), u->from[sample].bytes);
  tn_status status = transform_apply(u, sample, PATTERN, &fresh);
  tn_release(env, fresh.memory);
  TN_TRY(status);
  transform_check_bounds(u, sample, before);
  uint8_t *first = tn_alloc(env, u->to[sample].bytes + 1);
  if (first == NULL) return TN_ENOMEM;
  memcpy(first, tn_guarded_data(&u->to[sample]), u->to[sample].bytes);
  status = transform_apply_again(u, sample);
  if (status == TN_OK) transform_compare(u, sample, first);
  tn_release(env, first);
  return status;
}

static tn_status transform_check_host(transform_use *u) {
  for (int32_t i = 0; i < BATCH && u->check->wrong[0] == '\0'; i++) TN_TRY(transform_check_sample(u, i));
  return TN_OK;
}

/* ---- on the device ---- */

static tn_type transform_batched(const tn_type *type) {
  tn_type t = {type->dtype, type->rank + 1, {BATCH}};
  for (int32_t i = 0; i < type->rank; i++) t.dims[i + 1] = type->dims[i];
  return t;
}

/* A graph with inputs x and draws and output y. */
static tn_status transform_emit(transform_use *u, tn_item_run *run) {
  const tn_suite *suite = u->check->suite;
  const tn_transform *t = u->transform;
  tn_type type = t->granularity == TN_PER_BATCH ? u->in : transform_batched(&u->in),
          pairs = {TN_I32, 2, {BATCH, t->draws}};
  tn_val yielded = 0;
  TN_TRY(tn_graph_create(suite->env, suite->site.ops, &run->d.graph));
  TN_TRY(tn_builder_create(run->d.graph, &run->builder));
  tn_build *b = tn_builder_handle(run->builder);
  const tn_val in[2] = {tn_graph_input(run->d.graph, "x", &type),
                        t->draws > 0 ? tn_graph_input(run->d.graph, "draws", &pairs) : 0};
  const tn_build_frame frame = {
      .in = in, .n_in = 1 + (t->draws > 0), .yielded = &yielded, .n_yield = 1, .prefix = "", .where = ""};
  tn_builder_push(b, &frame);
  tn_status status = t->build(b, u->options);
  if (status == TN_OK) status = tn_build_status(b);
  tn_builder_pop(b);
  if (status != TN_OK) {
    tn_error_move(suite->env, b);
    return status;
  }
  if (yielded == 0) return tn_failf(suite->env, TN_EABI, "build yields no value");
  TN_TRY(tn_graph_output(run->d.graph, "y", yielded));
  return tn_reference_create(run->d.graph, &run->reference);
}

static double transform_element(int32_t dtype, const void *data, int64_t i) {
  switch (dtype) {
  case TN_U8:
  case TN_BOOL: return ((const uint8_t *)data)[i];
  case TN_I32: return ((const int32_t *)data)[i];
  case TN_I64: return (double)((const int64_t *)data)[i];
  default: return (double)((const float *)data)[i];
  }
}

static tn_status transform_draw(transform_use *u, int32_t sample, double *draws) {
  tn_env *env = u->check->suite->env;
  const tn_transform *t = u->transform;
  tn_transform_call call = {.env = *env,
                            .struct_size = sizeof call,
                            .n = 1,
                            .in_type = &u->in,
                            .out_type = &u->out,
                            .index = sample,
                            .key = transform_key(sample),
                            .scratch = &u->scratch};
  if (t->draws == 0 || draws == NULL) return TN_OK;
  TN_TRY(t->draw(&call, u->options, u->draws));
  for (int32_t i = 0; i < t->draws; i++) draws[sample * t->draws + i] = u->draws[i];
  return TN_OK;
}

/* Interpolation on the device may round a byte to the next one. */
static void transform_compare_device(transform_use *u, const tn_item_run *run, int32_t samples) {
  tn_type type;
  const double *y = tn_reference_output(run->reference, "y", &type);
  int64_t n = tn_type_count(&u->out);
  tn_type expected = u->transform->granularity == TN_PER_BATCH ? u->out : transform_batched(&u->out);
  if (!tn_type_equal(&type, &expected))
    tn_check_fail(u->check, "build yields another type than infer gives, batch in front");
  for (int64_t i = 0; i < samples * n && u->check->wrong[0] == '\0'; i++) {
    double host = transform_element(u->out.dtype, tn_guarded_data(&u->to[i / n]), i % n);
    double allowed = u->out.dtype == TN_U8             ? 1
                     : tn_dtype_is_float(u->out.dtype) ? 1e-4 * fmax(1, fabs(host))
                                                       : 0;
    if (!(fabs(y[i] - host) <= allowed))
      tn_check_fail(u->check,
                    "sample %lld, element %lld: build gives %.9g, apply gives %.9g; expected the same",
                    (long long)(i / n), (long long)(i % n), y[i], host);
  }
}

static tn_status transform_run_device(transform_use *u, tn_item_run *run) {
  int64_t n = tn_type_count(&u->in);
  int32_t samples = u->transform->granularity == TN_PER_BATCH ? 1 : BATCH;
  double *x = tn_reference_input(run->reference, "x");
  for (int32_t s = 0; s < samples; s++) {
    for (int64_t i = 0; x != NULL && i < n; i++)
      x[s * n + i] = transform_element(u->in.dtype, tn_guarded_data(&u->from[s]), i);
    TN_TRY(transform_draw(u, s, tn_reference_input(run->reference, "draws")));
    TN_TRY(transform_apply(u, s, PATTERN, &u->scratch));
  }
  TN_TRY(tn_reference_run(run->reference));
  transform_compare_device(u, run, samples);
  return TN_OK;
}

static tn_status transform_check_device(transform_use *u) {
  tn_item_run run = {.builder = NULL};
  if (u->transform->build == NULL || u->transform->draws > DRAWS) return TN_OK;
  tn_status status = transform_emit(u, &run);
  if (status == TN_OK) status = transform_run_device(u, &run);
  tn_item_run_close(&run);
  return status;
}

/* ---- fields ---- */

static bool transform_is_fixed(const tn_type *type) {
  for (int32_t i = 0; i < type->rank; i++)
    if (type->dims[i] < 0) return false;
  return true;
}

/* Whether the transform takes a field of the type. */
static bool transform_takes(transform_use *u, const tn_type *type) {
  tn_env *env = u->check->suite->env;
  u->in = u->transform->granularity == TN_PER_BATCH ? transform_batched(type) : *type;
  u->out = u->in;
  bool taken =
      u->transform->infer(env, u->options, 1, &u->in, &u->out) == TN_OK && transform_is_fixed(&u->out);
  if (!taken) return false;
  tn_error_clear(env);
  return true;
}

static tn_status transform_with_field(transform_use *u, tn_status (*look)(transform_use *u)) {
  tn_env *env = u->check->suite->env;
  tn_status status = TN_OK;
  for (int32_t i = 0; i < BATCH && status == TN_OK; i++) {
    if (tn_guarded_new(env, &u->from[i], tn_type_bytes(&u->in), AROUND) == NULL)
      status = TN_ENOMEM;
    else
      transform_fill(u, i);
  }
  if (status == TN_OK) status = look(u);
  for (int32_t i = 0; i < BATCH; i++) {
    tn_guarded_free(env, &u->from[i]);
    tn_guarded_free(env, &u->to[i]);
  }
  tn_release(env, u->scratch.memory);
  u->scratch = (tn_scratch){NULL, 0};
  return status;
}

static tn_status transform_with_fields(transform_use *u, tn_status (*look)(transform_use *u)) {
  int32_t taken = 0;
  for (size_t i = 0; i < sizeof field_types / sizeof *field_types && u->check->wrong[0] == '\0'; i++) {
    if (!transform_takes(u, &field_types[i])) continue;
    taken++;
    TN_TRY(transform_with_field(u, look));
  }
  if (taken == 0)
    snprintf(u->check->lacking, sizeof u->check->lacking,
             "with its default options it takes no field that is tried: %s",
             tn_error_text(u->check->suite->env));
  return TN_OK;
}

static tn_status transform_run_check(tn_check *check, tn_status (*look)(transform_use *u)) {
  const tn_suite *suite = check->suite;
  tn_graph *graph = NULL;
  transform_use *u = tn_arena_alloc(&check->suite->arena, sizeof *u);
  if (u == NULL) return TN_ENOMEM;
  *u = (transform_use){.check = check, .transform = (const tn_transform *)(const void *)check->entry->item};
  TN_TRY(tn_graph_create(suite->env, suite->site.ops, &graph));
  tn_draw d = {.graph = graph, .settings = suite->site.settings};
  tn_status status = tn_item_options(&d, check->entry->item, check->item, &u->options);
  if (status == TN_OK) {
    status = transform_with_fields(u, look);
  } else if (status != TN_ENOMEM && !tn_item_is_set(&d, check->item)) {
    snprintf(check->lacking, sizeof check->lacking,
             "a required option is unknown, set it (--set %s.OPTION=VALUE): %s", check->item,
             tn_error_text(suite->env));
    status = TN_OK;
  }
  tn_graph_destroy(graph);
  return status;
}

static tn_status check_host(tn_check *check) { return transform_run_check(check, transform_check_host); }
static tn_status check_device(tn_check *check) { return transform_run_check(check, transform_check_device); }

tn_status tn_transform_cases(tn_suite *suite, const tn_entry *entry, const char *item) {
  const tn_transform *transform = (const tn_transform *)(const void *)entry->item;
  TN_TRY(tn_check_run(suite, entry, item, "host", check_host));
  return transform->build != NULL ? tn_check_run(suite, entry, item, "device", check_device) : TN_OK;
}
