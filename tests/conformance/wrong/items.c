/* Items with one fault each, which a check of the suite must find. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <tenon/ops.h>
#include <tenon/plugin/layer.h>
#include <tenon/plugin/optimizer.h>
#include <tenon/plugin/precision.h>
#include <tenon/plugin/source.h>
#include <tenon/plugin/transform.h>

/* ---- optimizers ---- */

struct rate {
  double lr;
};
static const tn_option rate[] = {
    TN_OPT_WITH(struct rate, lr, TN_OPT_FLOAT, TN_OPT_SCHEDULED, "0.1", ">= 0", "learning rate"), TN_OPT_END};

static tn_val step(tn_build *b, tn_val direction) {
  return tn_sub(b, tn_build_in(b, 0), tn_mul(b, tn_build_option_value(b, "lr"), direction));
}

static tn_status update_deaf(tn_build *b, const void *given) {
  (void)given;
  tn_build_yield(b, 0, step(b, tn_build_in(b, 0)));
  return TN_OK;
}

static tn_status update_fixed(tn_build *b, const void *given) {
  const struct rate *o = given;
  tn_build_yield(b, 0, tn_sub(b, tn_build_in(b, 0), tn_affine(b, tn_build_in(b, 1), o->lr, 0)));
  return TN_OK;
}

static tn_status update_mixing(tn_build *b, const void *given) {
  (void)given;
  tn_val g = tn_build_in(b, 1);
  tn_build_yield(b, 0, step(b, tn_sub(b, g, tn_reduce_max(b, g, 0, NULL, 0))));
  return TN_OK;
}

static tn_status update_forgets(tn_build *b, const void *given) {
  (void)given;
  tn_val m = tn_build_state(b, "momentum", tn_val_type(b, tn_build_in(b, 0)), "zeros");
  tn_build_yield(b, 0, step(b, tn_add(b, m, tn_build_in(b, 1))));
  return TN_OK;
}

/* Counts its calls beside the graph: a resumed run begins to count anew. */
static tn_status update_outside(tn_build *b, const void *given) {
  static atomic_uint calls;
  (void)given;
  double share = 1.0 / (1.0 + atomic_fetch_add(&calls, 1) % 8);
  tn_val m = tn_build_state(b, "momentum", tn_val_type(b, tn_build_in(b, 0)), "zeros");
  tn_val now = tn_add(b, tn_affine(b, m, 0.9, 0), tn_affine(b, tn_build_in(b, 1), share, 0));
  tn_build_commit(b, m, now);
  tn_build_yield(b, 0, step(b, now));
  return TN_OK;
}

#define OPTIMIZER(id, text)                                                                                  \
  static const tn_optimizer id = {                                                                           \
      .item = TN_ITEM(tn_optimizer, TN_OPTIMIZER, "test_" #id, text, struct rate, rate),                     \
      .granularity = TN_UPDATE_ELEMENTWISE,                                                                  \
      .update = update_##id}
OPTIMIZER(deaf, "ignores the gradient");
OPTIMIZER(fixed, "ignores the schedule of lr");
OPTIMIZER(mixing, "mixes elements of all parameters");
OPTIMIZER(forgets, "never commits its state");
OPTIMIZER(outside, "keeps a number beside its states");

/* ---- a loss ---- */

static tn_status build_loss(tn_build *b, const void *given) {
  (void)given;
  tn_val x = tn_build_in(b, 0), y = tn_build_in(b, 1);
  if (!tn_type_same_dims(tn_val_type(b, x), tn_val_type(b, y)) || tn_val_type(b, y)->dtype != TN_F32)
    return tn_fail(b, TN_EINVAL, NULL, "expected two values of the same shape");
  tn_build_yield(b, 0, tn_sub(b, x, y));
  tn_build_yield(b, 1, x);
  return TN_OK;
}
static const tn_layer_kind loss = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "test_loss", "weighs by the prediction"),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 2,
    .build = build_loss};

/* ---- policies ---- */

static int32_t decide_integer(const void *options, const tn_precision_site *site) {
  (void)options;
  return site->op_class == TN_CLASS_MATMUL ? TN_I32 : site->dtype;
}
static const tn_precision integer = {
    .item = TN_ITEM_PLAIN(tn_precision, TN_PRECISION, "test_integer", "products of integers"),
    .decide = decide_integer};

static int32_t decide_same(const void *options, const tn_precision_site *site) {
  (void)options;
  return site->dtype;
}
static const tn_type scalar = {.dtype = TN_F32};
static tn_status scale_stuck(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_build_state(b, "scale", &scalar, "constant(1024)"));
  return TN_OK;
}
static tn_status scale_update(tn_build *b, const void *options) {
  (void)options;
  tn_val scale = tn_build_state(b, "scale", &scalar, "constant(1024)");
  tn_build_commit(b, scale, tn_where(b, tn_build_in(b, 0), scale, tn_affine(b, scale, 0.5, 0)));
  return TN_OK;
}
static const tn_precision stuck = {
    .item = TN_ITEM_PLAIN(tn_precision, TN_PRECISION, "test_stuck", "a scale that never grows again"),
    .decide = decide_same,
    .scale = scale_stuck,
    .update = scale_update};

/* ---- sources: a field of four numbers and a class ---- */

static const tn_field fields[] = {
    {.struct_size = sizeof(tn_field), .name = "x", .type = {TN_U8, 1, {4}}, .role = TN_FIELD_INPUT},
    {.struct_size = sizeof(tn_field),
     .name = "label",
     .type = {TN_I32, 0, {0}},
     .role = TN_FIELD_TARGET,
     .classes = 3}};

struct opened {
  unsigned number; /* of the call of open */
  int64_t position;
};

static tn_status open_source(tn_env *env, const void *options, int32_t split, uint64_t seed, void **self) {
  static atomic_uint opened;
  struct opened *o = tn_new(env, sizeof *o);
  (void)options;
  (void)split;
  (void)seed;
  if (!o) return TN_ENOMEM;
  o->number = atomic_fetch_add(&opened, 1);
  *self = o;
  return TN_OK;
}
static void close_source(tn_env *env, void *self) { tn_delete(env, self); }

static tn_status describe(tn_env *env, void *self, tn_description *d) {
  (void)env;
  (void)self;
  d->count = 20;
  d->n_fields = 2;
  d->fields = fields;
  d->keep = 1;
  return TN_OK;
}

static tn_status write_sample(tn_sample *s, int64_t written, uint8_t first, int32_t class) {
  uint8_t *x = tn_sample_field(s, 0, NULL);
  int32_t *label = tn_sample_field(s, 1, NULL);
  if (!x || !label) return TN_ENOMEM;
  for (int64_t i = 0; i < written; i++) x[i] = (uint8_t)(i * 7 + first);
  *label = class;
  return TN_OK;
}

static tn_status read_gaps(tn_sample *s, void *self) {
  (void)self;
  return write_sample(s, 3, 0, 0);
}
static tn_status read_beyond(tn_sample *s, void *self) {
  (void)self;
  return write_sample(s, 5, 0, 0);
}
static tn_status read_class(tn_sample *s, void *self) {
  (void)self;
  return write_sample(s, 4, 0, 3);
}
static tn_status read_opened(tn_sample *s, void *self) {
  return write_sample(s, 4, (uint8_t)((struct opened *)self)->number, 0);
}
static tn_status read_key(tn_sample *s, void *self) {
  (void)self;
  return write_sample(s, 4, (uint8_t)s->key, 0);
}

#define SOURCE(id, text)                                                                                     \
  static const tn_source id = {.item = TN_ITEM_PLAIN(tn_source, TN_SOURCE, "test_" #id, text),               \
                               .open = open_source,                                                          \
                               .close = close_source,                                                        \
                               .describe = describe,                                                         \
                               .read = read_##id}
SOURCE(gaps, "leaves a byte out");
SOURCE(beyond, "writes a byte too many");
SOURCE(class, "a class too high");
SOURCE(opened, "depends on how often it was opened");
SOURCE(key, "keeps samples that depend on the key");

static tn_status class_of_next(tn_env *env, void *self, int64_t index, int64_t *number) {
  (void)env;
  (void)self;
  *number = (index + 1) % 3;
  return TN_OK;
}
static tn_status read_told(tn_sample *s, void *self) {
  (void)self;
  return write_sample(s, 4, 0, (int32_t)(s->index % 3));
}
static const tn_source told = {.item =
                                   TN_ITEM_PLAIN(tn_source, TN_SOURCE, "test_told", "tells another class"),
                               .open = open_source,
                               .close = close_source,
                               .describe = describe,
                               .read = read_told,
                               .class_of = class_of_next};

/* learns how often it was opened */
static tn_status tell_learnt(tn_env *env, void *self, const char **text) {
  static char learnt[64];
  (void)env;
  snprintf(learnt, sizeof learnt, "{\"opened\": %u}", ((struct opened *)self)->number);
  *text = learnt;
  return TN_OK;
}
static const tn_source fickle = {
    .item = TN_ITEM_PLAIN(tn_source, TN_SOURCE, "test_fickle", "learns anew what it was given"),
    .open = open_source,
    .close = close_source,
    .describe = describe,
    .read = read_told,
    .learnt = tell_learnt};

static tn_status next_sample(tn_sample *s, void *self) {
  return write_sample(s, 4, (uint8_t)((struct opened *)self)->position++, 0);
}
static tn_status tell(tn_env *env, void *self, int64_t *position) {
  (void)env;
  *position = ((struct opened *)self)->position + 1;
  return TN_OK;
}
static tn_status seek(tn_env *env, void *self, int64_t position) {
  (void)env;
  ((struct opened *)self)->position = position;
  return TN_OK;
}
static const tn_source stream = {.item =
                                     TN_ITEM_PLAIN(tn_source, TN_SOURCE, "test_stream", "tells one too many"),
                                 .open = open_source,
                                 .close = close_source,
                                 .describe = describe,
                                 .next = next_sample,
                                 .tell = tell,
                                 .seek = seek};

/* ---- transforms of numbers ---- */

static tn_status infer(tn_env *env, const void *options, int32_t n, const tn_type *in, tn_type *out) {
  (void)options;
  (void)n;
  *out = *in;
  return in->dtype == TN_F32 ? TN_OK : tn_fail(env, TN_EINVAL, NULL, "expected f32");
}

static void copy_plus(const tn_transform_call *c, int64_t count, float added) {
  for (int64_t i = 0; i < count; i++) ((float *)c->out[0])[i] = ((const float *)c->in[0])[i] + added;
}

static tn_status apply_late(tn_transform_call *c, const void *options) {
  float *last = tn_transform_scratch(c, sizeof *last);
  (void)options;
  if (!last) return TN_ENOMEM;
  copy_plus(c, tn_type_count(c->in_type), *last);
  *last = ((const float *)c->in[0])[0];
  return TN_OK;
}
static tn_status apply_greedy(tn_transform_call *c, const void *options) {
  (void)options;
  copy_plus(c, tn_type_count(c->in_type) + 1, 0);
  return TN_OK;
}
static tn_status apply_brief(tn_transform_call *c, const void *options) {
  (void)options;
  copy_plus(c, tn_type_count(c->in_type) - 1, 0);
  return TN_OK;
}
static tn_status apply_shifted(tn_transform_call *c, const void *options) {
  (void)options;
  copy_plus(c, tn_type_count(c->in_type), 1);
  return TN_OK;
}
static tn_status build_shifted(tn_build *b, const void *options) {
  (void)options;
  tn_build_yield(b, 0, tn_affine(b, tn_build_in(b, 0), 1, 2));
  return TN_OK;
}

#define TRANSFORM(id, text, emit)                                                                            \
  static const tn_transform id = {.item = TN_ITEM_PLAIN(tn_transform, TN_TRANSFORM, "test_" #id, text),      \
                                  .infer = infer,                                                            \
                                  .apply = apply_##id,                                                       \
                                  .build = emit}
TRANSFORM(late, "adds what the last sample began with", NULL);
TRANSFORM(greedy, "writes an element too many", NULL);
TRANSFORM(brief, "leaves an element out", NULL);
TRANSFORM(shifted, "adds one on the host and two on the device", build_shifted);

TN_PLUGIN(wrong, "1", "MIT", &deaf.item, &fixed.item, &mixing.item, &forgets.item, &outside.item, &loss.item,
          &integer.item, &stuck.item, &gaps.item, &beyond.item, &class.item, &opened.item, &key.item,
          &told.item, &fickle.item, &stream.item, &late.item, &greedy.item, &brief.item, &shifted.item)
