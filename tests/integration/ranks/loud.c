/* A source of images of noise, of which one is a thousand times as loud: where the loss is scaled for fp16,
 * the gradients of the rank that has it overflow, and those of all other ranks do not. */
#include <tenon/plugin/source.h>
#include <tenon/random.h>

enum { SIDE = 28, CLASSES = 10 };

typedef struct loud_options {
  int64_t samples, loud;
} loud_options;

typedef struct loud {
  loud_options options;
  tn_field fields[2];
} loud;

static tn_status loud_open(tn_env *env, const void *options, int32_t split, uint64_t seed, void **source) {
  (void)split, (void)seed;
  loud *s = tn_new(env, sizeof *s);
  *source = s;
  if (s == NULL) return TN_ENOMEM;
  s->options = *(const loud_options *)options;
  s->fields[0] = (tn_field){.struct_size = sizeof(tn_field),
                            .name = "image",
                            .type = {TN_F32, 3, {1, SIDE, SIDE}},
                            .role = TN_FIELD_INPUT};
  s->fields[1] = (tn_field){.struct_size = sizeof(tn_field),
                            .name = "label",
                            .type = {.dtype = TN_I32},
                            .role = TN_FIELD_TARGET,
                            .classes = CLASSES};
  return TN_OK;
}

static tn_status loud_describe(tn_env *env, void *source, tn_description *description) {
  loud *s = source;
  (void)env;
  description->count = s->options.samples;
  description->n_fields = 2;
  description->fields = s->fields;
  return TN_OK;
}

static tn_status loud_read(tn_sample *sample, void *source) {
  const loud_options *o = &((const loud *)source)->options;
  float *image = tn_sample_field(sample, 0, NULL), factor = sample->index == o->loud ? 1000.0f : 1.0f;
  int32_t *label = tn_sample_field(sample, 1, NULL);
  if (image == NULL || label == NULL) return TN_ENOMEM;
  tn_rng rng = tn_rng_at((uint64_t)sample->index, 0);
  *label = (int32_t)tn_rng_below(&rng, CLASSES);
  for (int i = 0; i < SIDE * SIDE; i++)
    image[i] = factor * ((float)tn_rng_between(&rng, -1, 1) + (i % CLASSES == *label ? 1.0f : 0.0f));
  return TN_OK;
}

static void loud_close(tn_env *env, void *source) { tn_delete(env, source); }

static const tn_option options[] = {
    TN_OPT(loud_options, samples, TN_OPT_INT, "60", ">= 1", "in an epoch"),
    TN_OPT(loud_options, loud, TN_OPT_INT, "-1", NULL, "index of the loud sample; -1: there is none"),
    TN_OPT_END};

static const tn_source source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "loud", "noise, of which one image is loud", loud_options, options),
    .open = loud_open,
    .describe = loud_describe,
    .read = loud_read,
    .close = loud_close};

TN_PLUGIN(loud, "1", "MIT", &source.item)
