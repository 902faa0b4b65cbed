/* A source that learns the mean and the deviation of its training part. `[data] source = gauge`. */
#include <math.h>
#include <stdio.h>

#include <tenon/plugin/source.h>

struct gauge {
  double level;
};
static const tn_option options[] = {TN_OPT(struct gauge, level, TN_OPT_FLOAT, "20", NULL, "lowest reading"),
                                    TN_OPT_END};

enum { COUNT = 512 };
static const tn_field fields[] = {
    {.struct_size = sizeof(tn_field), .name = "reading", .type = {TN_F32, 1, {1}}, .role = TN_FIELD_INPUT},
    {.struct_size = sizeof(tn_field), .name = "high", .type = {TN_F32, 1, {1}}, .role = TN_FIELD_TARGET}};

struct source {
  double level, mean, deviation;
  uint64_t seed;
  char learnt[96];
};

static double reading_at(const struct source *s, uint64_t seed, int64_t index) {
  tn_rng rng = tn_rng_at(tn_hash_mix(seed, (uint64_t)index), 0);
  return s->level + 5 * tn_rng_uniform(&rng);
}

static void learn(struct source *s, uint64_t seed) {
  double squares = 0;
  for (int64_t i = 0; i < COUNT; i++) s->mean += reading_at(s, seed, i) / COUNT;
  for (int64_t i = 0; i < COUNT; i++) squares += pow(reading_at(s, seed, i) - s->mean, 2);
  s->deviation = sqrt(squares / COUNT);
}

static tn_status open_source(tn_env *env, const void *given, int32_t split, uint64_t seed, void **self) {
  const char *known = tn_env_learnt(env);
  double level = ((const struct gauge *)given)->level, mean = 0, deviation = 0;
  if (known && sscanf(known, "{\"mean\":%lf,\"deviation\":%lf}", &mean, &deviation) != 2)
    return tn_fail(env, TN_EINVAL, NULL, "learnt is '%s', expected a mean and a deviation", known);
  struct source *s = tn_new(env, sizeof *s);
  if (!s) return TN_ENOMEM;
  *s = (struct source){level, mean, deviation, tn_hash_mix(seed, (uint64_t)split), ""};
  if (!known) learn(s, tn_hash_mix(seed, TN_SPLIT_TRAIN));
  snprintf(s->learnt, sizeof s->learnt, "{\"mean\":%.17g,\"deviation\":%.17g}", s->mean, s->deviation);
  *self = s;
  return TN_OK;
}
static void close_source(tn_env *env, void *self) { tn_delete(env, self); }

static tn_status describe(tn_env *env, void *self, tn_description *d) {
  (void)env, (void)self;
  *d = (tn_description){.struct_size = d->struct_size, .count = COUNT, .n_fields = 2, .fields = fields};
  return TN_OK;
}

static tn_status read_reading(tn_sample *sample, void *self) {
  const struct source *s = self;
  float *reading = tn_sample_field(sample, 0, NULL), *high = tn_sample_field(sample, 1, NULL);
  if (!reading || !high) return TN_ENOMEM;
  *reading = (float)((reading_at(s, s->seed, sample->index) - s->mean) / s->deviation);
  *high = *reading > 0;
  return TN_OK;
}

static tn_status tell_learnt(tn_env *env, void *self, const char **text) {
  (void)env;
  *text = ((struct source *)self)->learnt;
  return TN_OK;
}

static const tn_source gauge = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "gauge", "readings of a gauge", struct gauge, options),
    .open = open_source,
    .close = close_source,
    .describe = describe,
    .read = read_reading,
    .learnt = tell_learnt};

TN_PLUGIN(gauge, "1.0", "MIT", &gauge.item)
