/* plugins/sources/random.c: random images with random labels, or random tokens, of any shape, for benchmarks,
 * dry runs and tests of a configuration. */
#include <math.h>

#include "plugins/sources/sources.h"

typedef struct random_options {
  tn_ints shape;
  int64_t classes, tokens, samples;
} random_options;

static const tn_option options[] = {
    TN_OPT(random_options, shape, TN_OPT_INTS, "[]", ">= 1",
           "dimensions of field image (f32, standard normal); []: 3, 224, 224"),
    TN_OPT(random_options, classes, TN_OPT_INT, "1000", "[1, 2147483647]",
           "classes of field label, or number of different tokens"),
    TN_OPT(random_options, tokens, TN_OPT_INT, "0", ">= 0",
           "if above 0: fields tokens and next of this length replace image and label"),
    TN_OPT(random_options, samples, TN_OPT_INT, "10000", ">= 1", "samples in an epoch"), TN_OPT_END};

/* The seed of the validation samples, which are the same for every run. */
static const uint64_t VALIDATION_SEED = 0x72616e646f6d0001u;

typedef struct noise {
  random_options options;
  int32_t split;
  tn_field fields[2];
} noise;

static tn_field random_field_of(const char *name, int32_t dtype, int32_t role, int64_t classes) {
  return (tn_field){.struct_size = sizeof(tn_field),
                    .name = name,
                    .type = {.dtype = dtype},
                    .role = role,
                    .classes = classes};
}

static tn_status describe_image(tn_env *env, noise *n) {
  const tn_ints *shape = &n->options.shape;
  if (shape->n > TN_MAX_RANK - 1)
    return tn_fail(env, TN_EINVAL, "shape", "shape has %lld dimensions, expected at most %d",
                   (long long)shape->n, TN_MAX_RANK - 1);
  n->fields[0] = random_field_of("image", TN_F32, TN_FIELD_INPUT, 0);
  n->fields[0].type = (tn_type){TN_F32, 3, {3, 224, 224}};
  if (shape->n > 0) n->fields[0].type.rank = (int32_t)shape->n;
  for (int64_t i = 0; i < shape->n; i++) n->fields[0].type.dims[i] = shape->v[i];
  n->fields[1] = random_field_of("label", TN_I32, TN_FIELD_TARGET, n->options.classes);
  return TN_OK;
}

static tn_status describe_tokens(tn_env *env, noise *n) {
  if (n->options.shape.n > 0)
    return tn_fail(env, TN_EINVAL, "shape", "shape has no effect beside tokens = %lld: there is no image",
                   (long long)n->options.tokens);
  n->fields[0] = random_field_of("tokens", TN_I32, TN_FIELD_INPUT, 0);
  n->fields[1] = random_field_of("next", TN_I32, TN_FIELD_TARGET, n->options.classes);
  for (int i = 0; i < 2; i++) {
    n->fields[i].type.rank = 1;
    n->fields[i].type.dims[0] = n->options.tokens;
  }
  return TN_OK;
}

static void random_close(tn_env *env, void *source) { tn_delete(env, source); }

static tn_status random_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed; /* the key of a sample includes the seed */
  noise *n = tn_new(env, sizeof(*n));
  if (n == NULL) return TN_ENOMEM;
  n->options = *(const random_options *)opts;
  n->split = split;
  tn_status status = n->options.tokens > 0 ? describe_tokens(env, n) : describe_image(env, n);
  if (status == TN_OK)
    *source = n;
  else
    random_close(env, n);
  return status;
}

static tn_status random_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  noise *n = source;
  description->count = n->options.samples;
  description->n_fields = 2;
  description->fields = n->fields;
  return TN_OK;
}

/* Draws two numbers at a time (Box and Muller, Ann. Math. Stat. 1958). */
static void fill_normal(tn_rng *rng, float *out, int64_t count) {
  for (int64_t i = 0; i < count; i += 2) {
    float u = 1 - tn_uniform_of(tn_rng_u32(rng)), angle = 6.28318530718f * tn_uniform_of(tn_rng_u32(rng));
    float radius = sqrtf(-2 * logf(u));
    out[i] = radius * cosf(angle);
    if (i + 1 < count) out[i + 1] = radius * sinf(angle);
  }
}

static void fill_tokens(tn_rng *rng, int64_t classes, int32_t *tokens, int32_t *next, int64_t count) {
  int32_t token = (int32_t)tn_rng_below(rng, classes);
  for (int64_t i = 0; i < count; i++) {
    tokens[i] = token;
    next[i] = token = (int32_t)tn_rng_below(rng, classes);
  }
}

static tn_status random_read(tn_sample *s, void *source) {
  const noise *n = source;
  void *input = tn_sample_field(s, 0, NULL);
  int32_t *target = tn_sample_field(s, 1, NULL);
  if (input == NULL || target == NULL) return TN_ENOMEM;
  tn_rng rng =
      tn_rng_at(n->split == TN_SPLIT_TRAIN ? s->key : tn_hash_mix(VALIDATION_SEED, (uint64_t)s->index), 0);
  if (n->options.tokens > 0) {
    fill_tokens(&rng, n->options.classes, input, target, n->options.tokens);
    return TN_OK;
  }
  fill_normal(&rng, input, tn_type_count(&n->fields[0].type));
  *target = (int32_t)tn_rng_below(&rng, n->options.classes);
  return TN_OK;
}

const tn_source random_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "random", "noise with labels, or tokens, of any shape",
                    random_options, options),
    .types = "image: f32[shape], label: i32[]; or tokens: i32[tokens], next: i32[tokens]",
    .example = "source = random\nshape = [3, 32, 32]\nclasses = 10",
    .open = random_open,
    .close = random_close,
    .describe = random_describe,
    .read = random_read,
};
