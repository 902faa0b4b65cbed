#include "tests/unit/data/numbers.h"

#include <string.h>

#include "tests/support/await.h"
#include "tests/support/test_clock.h"

typedef struct opened {
  numbers options;
  tn_field fields[2];
  int64_t position;
} opened;

static tn_status numbers_open(tn_env *env, const void *options, int32_t split, uint64_t seed, void **source) {
  (void)split, (void)seed;
  opened *o = tn_new(env, sizeof(*o));
  if (o == NULL) return TN_ENOMEM;
  o->options = *(const numbers *)options;
  if (o->options.opens != NULL) o->options.opens[0]++;
  o->fields[0] =
      (tn_field){sizeof(tn_field), "x", {TN_F32, 1, {o->options.vary ? -1 : 4}}, TN_FIELD_INPUT, 0, NULL};
  o->fields[1] = (tn_field){sizeof(tn_field), "y", {TN_I32, 0, {0}}, TN_FIELD_TARGET, 10, NULL};
  *source = o;
  return TN_OK;
}

static void numbers_close(tn_env *env, void *source) {
  const opened *o = source;
  if (o->options.opens != NULL) o->options.opens[1]++;
  tn_delete(env, source);
}

static tn_status numbers_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  opened *o = source;
  description->count = o->options.count;
  description->epoch = o->options.epoch;
  description->n_fields = 2;
  description->fields = o->fields;
  return TN_OK;
}

static tn_status numbers_read(tn_sample *s, void *source) {
  const opened *o = source;
  if (o->options.reads != NULL) atomic_fetch_add(&o->options.reads[s->index], 1);
  if (o->options.fail_at > 0 && s->index >= o->options.fail_at)
    return tn_fail(s, TN_EIO, NULL, "number %lld is broken", (long long)s->index);
  if (s->index >= o->options.corrupt_from && s->index < o->options.corrupt_to)
    return tn_fail(s, TN_EINVAL, NULL, "number %lld is corrupt", (long long)s->index);
  if (o->options.hang_at > 0 && s->index == o->options.hang_at) {
    if (o->options.hang_from != NULL) {
      AWAIT(atomic_load(o->options.hang_from) != 0);
      test_clock_pass(o->options.hang_s);
    }
    AWAIT(tn_sample_stopping(s));
    return tn_fail(s, TN_ESTOPPED, NULL, "number %lld is not wanted", (long long)s->index);
  }
  tn_type type = {TN_F32, 1, {o->options.vary ? 1 + s->index % 5 : 4}};
  float *x = tn_sample_field(s, 0, o->options.vary ? &type : NULL);
  if (x == NULL) return TN_ENOMEM;
  memset(x, 0, tn_type_bytes(&type));
  x[0] = (float)s->index;
  if (type.dims[0] > 1) x[1] = (float)(s->key % 65536);
  if (o->options.forget) return TN_OK;
  int32_t *y = tn_sample_field(s, 1, NULL);
  if (y == NULL) return TN_ENOMEM;
  *y = (int32_t)s->index;
  return TN_OK;
}

static tn_status numbers_class_of(tn_env *env, void *source, int64_t index, int64_t *number) {
  (void)env;
  *number = index < 2 ? 9 : index < 8 ? 3 : 5;
  if (((const opened *)source)->options.odd_class) *number = 10;
  return TN_OK;
}

static tn_status numbers_weight_of(tn_env *env, void *source, int64_t index, double *weight) {
  const double *weights = ((const opened *)source)->options.weights;
  if (weights == NULL) return tn_fail(env, TN_EUNAVAILABLE, NULL, "there are no weights");
  *weight = weights[index];
  return TN_OK;
}

static tn_status stream_next(tn_sample *s, void *source) {
  opened *o = source;
  if (o->options.ends_at > 0 && o->position == o->options.ends_at) return TN_EOF;
  s->index = o->position++;
  return numbers_read(s, source);
}

static tn_status stream_tell(tn_env *env, void *source, int64_t *position) {
  (void)env;
  *position = ((opened *)source)->position;
  return TN_OK;
}

static tn_status stream_seek(tn_env *env, void *source, int64_t position) {
  (void)env;
  ((opened *)source)->position = position;
  return TN_OK;
}

const tn_source numbers_source = {
    .item = TN_ITEM_PLAIN(tn_source, TN_SOURCE, "numbers", "indices as values"),
    .open = numbers_open,
    .close = numbers_close,
    .describe = numbers_describe,
    .read = numbers_read,
    .class_of = numbers_class_of,
    .weight_of = numbers_weight_of,
};

const tn_source numbers_stream = {
    .item = TN_ITEM_PLAIN(tn_source, TN_SOURCE, "numbers", "indices as values, one after the other"),
    .open = numbers_open,
    .close = numbers_close,
    .describe = numbers_describe,
    .next = stream_next,
    .tell = stream_tell,
    .seek = stream_seek,
};

static tn_status keep_type(tn_env *env, const void *options, int32_t n, const tn_type *in, tn_type *out) {
  (void)env, (void)options;
  for (int32_t i = 0; i < n; i++) out[i] = in[i];
  return TN_OK;
}

static tn_status shift_apply(tn_transform_call *c, const void *options) {
  (void)options;
  for (int32_t k = 0; k < c->n; k++)
    for (int64_t i = 0; i < tn_type_count(&c->in_type[k]); i++)
      ((float *)c->out[k])[i] = ((const float *)c->in[k])[i] + 1000;
  return TN_OK;
}

static tn_status jitter_apply(tn_transform_call *c, const void *options) {
  (void)options;
  tn_rng rng = tn_rng_at(c->key, 0);
  for (int64_t i = 0; i < tn_type_count(&c->in_type[0]); i++)
    ((float *)c->out[0])[i] = ((const float *)c->in[0])[i] + (float)tn_rng_uniform(&rng);
  return TN_OK;
}

static tn_status toss_draw(tn_transform_call *c, const void *options, int32_t *values) {
  tn_rng rng = tn_rng_at(c->key, 0);
  if (options != NULL && c->index == 5) return tn_fail(c, TN_EINVAL, NULL, "five is not to its taste");
  if (c->in != NULL || c->out != NULL || c->n != 1 || c->in_type[0].dims[0] != c->out_type[0].dims[0])
    return tn_fail(c, TN_EINTERNAL, NULL, "wrong call");
  values[0] = (int32_t)(1000 * tn_rng_uniform(&rng));
  return TN_OK;
}

/* The loader emits nothing. */
static tn_status build_nothing(tn_build *b, const void *options) {
  (void)options;
  return tn_build_status(b);
}

static tn_status pass_apply(tn_transform_call *c, const void *options) {
  (void)options;
  for (int32_t k = 0; k < c->n; k++) memcpy(c->out[k], c->in[k], tn_type_bytes(&c->in_type[k]));
  return TN_OK;
}

static tn_status twice_infer(tn_env *env, const void *options, int32_t n, const tn_type *in, tn_type *out) {
  (void)env, (void)options, (void)n;
  if (in[0].dims[0] >= 0) out[0].dims[0] = 2 * in[0].dims[0];
  return TN_OK;
}

static tn_status twice_apply(tn_transform_call *c, const void *options) {
  (void)options;
  size_t bytes = tn_type_bytes(&c->in_type[0]);
  if (c->out_type[0].dims[0] != 2 * c->in_type[0].dims[0])
    return tn_fail(c, TN_EINTERNAL, NULL, "wrong type");
  memcpy(c->out[0], c->in[0], bytes);
  memcpy((char *)c->out[0] + bytes, c->in[0], bytes);
  return TN_OK;
}

static tn_status fix_infer(tn_env *env, const void *options, int32_t n, const tn_type *in, tn_type *out) {
  (void)env, (void)options;
  for (int32_t i = 0; i < n; i++) out[i] = (tn_type){in[i].dtype, 1, {8}};
  return TN_OK;
}

static tn_status fix_apply(tn_transform_call *c, const void *options) {
  (void)options;
  float *out = c->out[0];
  for (int i = 0; i < 8; i++) out[i] = i < c->in_type[0].dims[0] ? ((const float *)c->in[0])[i] : -1;
  return TN_OK;
}

static tn_status reverse_apply(tn_transform_call *c, const void *options) {
  (void)options;
  int64_t batch = c->in_type[0].dims[0];
  size_t bytes = tn_type_bytes(&c->in_type[0]) / (size_t)batch;
  for (int64_t i = 0; i < batch; i++)
    memcpy((char *)c->out[0] + (size_t)i * bytes, (const char *)c->in[0] + (size_t)(batch - 1 - i) * bytes,
           bytes);
  return TN_OK;
}

static tn_status picky_apply(tn_transform_call *c, const void *options) {
  const float *x = c->in[0];
  if (x[0] == 5) return tn_fail(c, TN_EINVAL, NULL, "five is not to its taste");
  memcpy(c->out[0], x, tn_type_bytes(&c->in_type[0]));
  (void)options;
  return TN_OK;
}

#define TRANSFORM(NAME, GRANULARITY, TRAINING, INFER, APPLY)                                                 \
  {                                                                                                          \
    .item = TN_ITEM_PLAIN(tn_transform, TN_TRANSFORM, NAME, "for tests"), .granularity = GRANULARITY,        \
    .training_only = TRAINING, .infer = INFER, .apply = APPLY                                                \
  }

const tn_transform shift_transform = TRANSFORM("shift", TN_PER_SAMPLE, 0, keep_type, shift_apply);
const tn_transform jitter_transform = TRANSFORM("jitter", TN_PER_SAMPLE, 1, keep_type, jitter_apply);
const tn_transform twice_transform = TRANSFORM("twice", TN_PER_SAMPLE, 0, twice_infer, twice_apply);
const tn_transform fix_transform = TRANSFORM("fix", TN_PER_SAMPLE, 0, fix_infer, fix_apply);
const tn_transform reverse_transform = TRANSFORM("reverse", TN_PER_BATCH, 0, keep_type, reverse_apply);
const tn_transform picky_transform = TRANSFORM("picky", TN_PER_SAMPLE, 0, keep_type, picky_apply);
const tn_transform toss_transform = {
    .item = TN_ITEM_PLAIN(tn_transform, TN_TRANSFORM, "toss", "for tests"),
    .training_only = 1,
    .infer = keep_type,
    .apply = jitter_apply,
    .build = build_nothing,
    .draws = 1,
    .draw = toss_draw,
};
const tn_transform pass_transform = {
    .item = TN_ITEM_PLAIN(tn_transform, TN_TRANSFORM, "pass", "for tests"),
    .infer = keep_type,
    .apply = pass_apply,
    .build = build_nothing,
};
