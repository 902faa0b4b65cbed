/* A source: points on two circles, one class each. `[data] source = rings`. */
#include <math.h>

#include <tenon/plugin/source.h>

struct rings {
  int64_t count;
  double noise;
};
static const tn_option options[] = {
    TN_OPT(struct rings, count, TN_OPT_INT, "1024", ">= 1", "points in an epoch"),
    TN_OPT(struct rings, noise, TN_OPT_FLOAT, "0.1", ">= 0", "width of a circle"), TN_OPT_END};

static const tn_field fields[] = {
    {.struct_size = sizeof(tn_field), .name = "point", .type = {TN_F32, 1, {2}}, .role = TN_FIELD_INPUT},
    {.struct_size = sizeof(tn_field),
     .name = "label",
     .type = {TN_I32, 0, {0}},
     .role = TN_FIELD_TARGET,
     .classes = 2}};

struct source {
  struct rings options;
  uint64_t seed;
};

static tn_status open_source(tn_env *env, const void *given, int32_t split, uint64_t seed, void **self) {
  struct source *s = tn_new(env, sizeof *s);
  if (!s) return TN_ENOMEM;
  s->options = *(const struct rings *)given;
  s->seed = tn_hash_mix(seed, (uint64_t)split);
  *self = s;
  return TN_OK;
}
static void close_source(tn_env *env, void *self) { tn_delete(env, self); }

static tn_status describe(tn_env *env, void *self, tn_description *d) {
  (void)env;
  d->count = ((struct source *)self)->options.count;
  d->n_fields = 2;
  d->fields = fields;
  return TN_OK;
}

static tn_status read_point(tn_sample *sample, void *self) {
  const struct source *s = self;
  tn_rng rng = tn_rng_at(tn_hash_mix(s->seed, (uint64_t)sample->index), 0);
  float *point = tn_sample_field(sample, 0, NULL);
  int32_t *label = tn_sample_field(sample, 1, NULL);
  if (!point || !label) return TN_ENOMEM;
  double angle = tn_rng_between(&rng, 0, 6.283185307179586);
  *label = (int32_t)tn_rng_below(&rng, 2);
  double radius = 1.0 + *label + s->options.noise * (tn_rng_uniform(&rng) - 0.5);
  point[0] = (float)(radius * cos(angle));
  point[1] = (float)(radius * sin(angle));
  return TN_OK;
}

static tn_status class_of(tn_env *env, void *self, int64_t index, int64_t *number) {
  const struct source *s = self;
  tn_rng rng = tn_rng_at(tn_hash_mix(s->seed, (uint64_t)index), 0);
  (void)env;
  tn_rng_between(&rng, 0, 6.283185307179586); /* the angle, as in read_point */
  *number = (int64_t)tn_rng_below(&rng, 2);
  return TN_OK;
}

static const tn_source rings = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "rings", "points on two circles", struct rings, options),
    .open = open_source,
    .close = close_source,
    .describe = describe,
    .read = read_point,
    .class_of = class_of};

TN_PLUGIN(rings, "1.0", "MIT", &rings.item)
