/* A source whose samples are noise, but for some that are too large for any type: what overflows when. */
#include <math.h>
#include <tenon/plugin/source.h>
#include <tenon/random.h>

typedef struct spikes_options {
  tn_ints at;
  int64_t every, samples;
} spikes_options;

static const tn_option options[] = {
    TN_OPT(spikes_options, at, TN_OPT_INTS, "[]", ">= 0", "samples that are infinite"),
    TN_OPT(spikes_options, every, TN_OPT_INT, "0", ">= 0", "if above 0: each such sample is infinite"),
    TN_OPT(spikes_options, samples, TN_OPT_INT, "1000", ">= 1", "in an epoch"), TN_OPT_END};

typedef struct spikes {
  spikes_options options;
  tn_field fields[2];
} spikes;

static tn_status open_spikes(tn_env *env, const void *given, int32_t split, uint64_t seed, void **source) {
  (void)seed;
  if (split != TN_SPLIT_TRAIN) return tn_fail(env, TN_EUNAVAILABLE, NULL, "spikes are for training");
  spikes *s = tn_new(env, sizeof *s);
  if (s == NULL) return TN_ENOMEM;
  s->options = *(const spikes_options *)given;
  s->fields[0] = (tn_field){.struct_size = sizeof(tn_field),
                            .name = "image",
                            .type = {TN_F32, 3, {2, 4, 4}},
                            .role = TN_FIELD_INPUT};
  s->fields[1] = (tn_field){.struct_size = sizeof(tn_field),
                            .name = "label",
                            .type = {.dtype = TN_I32},
                            .role = TN_FIELD_TARGET,
                            .classes = 3};
  *source = s;
  return TN_OK;
}

static void close_spikes(void *source, tn_env *env) { tn_delete(env, source); }

static tn_status describe(void *source, tn_env *env, tn_description *description) {
  spikes *s = source;
  (void)env;
  description->count = s->options.samples;
  description->n_fields = 2;
  description->fields = s->fields;
  return TN_OK;
}

static int is_spike(const spikes_options *o, int64_t index) {
  for (int64_t i = 0; i < o->at.n; i++)
    if (o->at.v[i] == index) return 1;
  return o->every > 0 && index % o->every == 0;
}

static tn_status read_sample(void *source, tn_sample *s) {
  const spikes *from = source;
  float *image = tn_sample_field(s, 0, NULL);
  int32_t *label = tn_sample_field(s, 1, NULL);
  if (image == NULL || label == NULL) return TN_ENOMEM;
  tn_rng rng = tn_rng_at((uint64_t)s->index, 0);
  *label = (int32_t)tn_rng_below(&rng, 3);
  for (int i = 0; i < 32; i++)
    image[i] = (float)tn_rng_between(&rng, -1, 1) + (i % 3 == *label ? 1.0f : 0.0f);
  if (is_spike(&from->options, s->index)) image[0] = INFINITY;
  return TN_OK;
}

static const tn_source source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "spikes", "noise with infinite samples", spikes_options, options),
    .open = open_spikes,
    .close = close_spikes,
    .describe = describe,
    .read = read_sample};

TN_PLUGIN(spikes, "1.0", "MIT", &source.item)
