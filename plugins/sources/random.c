/* plugins/sources/random.c: random images with random labels, random tokens, or fields of any name and type,
 * for benchmarks, dry runs and tests of a configuration. */
#include <math.h>

#include "plugins/sources/random_fields.h"

typedef struct random_options {
  tn_ints shape;
  int64_t classes, tokens, samples;
  const char *fields, *targets;
} random_options;

static const tn_option options[] = {
    TN_OPT(random_options, shape, TN_OPT_INTS, "[]", ">= 1",
           "dimensions of field image (f32, standard normal); []: 3, 224, 224"),
    TN_OPT(random_options, classes, TN_OPT_INT, "1000", "[1, 2147483647]",
           "classes of field label, or number of different tokens"),
    TN_OPT(random_options, tokens, TN_OPT_INT, "0", ">= 0",
           "if above 0: fields tokens and next of this length replace image and label"),
    TN_OPT(random_options, samples, TN_OPT_INT, "10000", ">= 1", "samples in an epoch"),
    TN_OPT(
        random_options, fields, TN_OPT_TEXT, "", NULL,
        "fields in place of image and label: dense: f32[13], ids: i64[26], length: i32[] 1..20. Floats are "
        "standard normal, whole numbers in the range behind the type, or below classes"),
    TN_OPT(random_options, targets, TN_OPT_TEXT, "", NULL,
           "targets beside fields: click: f32[], label: i32[]. Floats are from [0, 1)"),
    TN_OPT_END};

/* The seed of the validation samples, which are the same for every run. */
static const uint64_t VALIDATION_SEED = 0x72616e646f6d0001u;

typedef struct noise {
  random_options options;
  int32_t split;
  random_fields fields;
} noise;

static tn_field random_field_of(const char *name, int32_t dtype, int32_t role, int64_t classes) {
  return (tn_field){.struct_size = sizeof(tn_field),
                    .name = name,
                    .type = {.dtype = dtype},
                    .role = role,
                    .classes = classes};
}

/* The fields that the configuration names. */
static tn_status describe_fields(tn_env *env, noise *n) {
  const random_options *o = &n->options;
  if (o->shape.n > 0 || o->tokens > 0)
    return tn_fail(env, TN_EINVAL, "fields",
                   "fields replaces image and tokens, expected neither shape nor tokens");
  if (o->fields == NULL || *o->fields == '\0')
    return tn_fail(env, TN_EINVAL, "targets",
                   "targets stands without fields, expected both, as in ids: i64[26]");
  tn_status status = random_fields_parse(env, "fields", o->fields, TN_FIELD_INPUT, o->classes, &n->fields);
  if (status != TN_OK || o->targets == NULL) return status;
  return random_fields_parse(env, "targets", o->targets, TN_FIELD_TARGET, o->classes, &n->fields);
}

static tn_status describe_image(tn_env *env, noise *n) {
  const tn_ints *shape = &n->options.shape;
  if (shape->n > TN_MAX_RANK - 1)
    return tn_fail(env, TN_EINVAL, "shape", "shape has %lld dimensions, expected at most %d",
                   (long long)shape->n, TN_MAX_RANK - 1);
  n->fields.v[0] = random_field_of("image", TN_F32, TN_FIELD_INPUT, 0);
  n->fields.v[0].type = (tn_type){TN_F32, 3, {3, 224, 224}};
  n->fields.n = 2;
  if (shape->n > 0) n->fields.v[0].type.rank = (int32_t)shape->n;
  for (int64_t i = 0; i < shape->n; i++) n->fields.v[0].type.dims[i] = shape->v[i];
  n->fields.v[1] = random_field_of("label", TN_I32, TN_FIELD_TARGET, n->options.classes);
  return TN_OK;
}

static tn_status describe_tokens(tn_env *env, noise *n) {
  if (n->options.shape.n > 0)
    return tn_fail(env, TN_EINVAL, "shape", "shape has no effect beside tokens = %lld: there is no image",
                   (long long)n->options.tokens);
  n->fields.v[0] = random_field_of("tokens", TN_I32, TN_FIELD_INPUT, 0);
  n->fields.v[1] = random_field_of("next", TN_I32, TN_FIELD_TARGET, n->options.classes);
  n->fields.n = 2;
  for (int i = 0; i < 2; i++) {
    n->fields.v[i].type.rank = 1;
    n->fields.v[i].type.dims[0] = n->options.tokens;
  }
  return TN_OK;
}

static int random_has_fields(const random_options *o) {
  return (o->fields != NULL && *o->fields != '\0') || (o->targets != NULL && *o->targets != '\0');
}

static void random_close(tn_env *env, void *source) { tn_delete(env, source); }

static tn_status random_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed; /* the key of a sample includes the seed */
  noise *n = tn_new(env, sizeof(*n));
  if (n == NULL) return TN_ENOMEM;
  n->options = *(const random_options *)opts;
  n->split = split;
  tn_status status = random_has_fields(&n->options) ? describe_fields(env, n)
                     : n->options.tokens > 0        ? describe_tokens(env, n)
                                                    : describe_image(env, n);
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
  description->n_fields = n->fields.n;
  description->fields = n->fields.v;
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

static tn_status read_fields(tn_sample *s, const noise *n, tn_rng *rng) {
  for (int32_t i = 0; i < n->fields.n; i++) {
    void *out = tn_sample_field(s, i, NULL);
    if (out == NULL) return TN_ENOMEM;
    random_fields_fill(rng, &n->fields, i, out);
  }
  return TN_OK;
}

static tn_status random_read(tn_sample *s, void *source) {
  const noise *n = source;
  tn_rng rng =
      tn_rng_at(n->split == TN_SPLIT_TRAIN ? s->key : tn_hash_mix(VALIDATION_SEED, (uint64_t)s->index), 0);
  if (random_has_fields(&n->options)) return read_fields(s, n, &rng);
  void *input = tn_sample_field(s, 0, NULL);
  int32_t *target = tn_sample_field(s, 1, NULL);
  if (input == NULL || target == NULL) return TN_ENOMEM;
  if (n->options.tokens > 0) {
    fill_tokens(&rng, n->options.classes, input, target, n->options.tokens);
    return TN_OK;
  }
  fill_normal(&rng, input, tn_type_count(&n->fields.v[0].type));
  *target = (int32_t)tn_rng_below(&rng, n->options.classes);
  return TN_OK;
}

const tn_source random_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "random",
                    "noise with labels, tokens, or fields of any name and type", random_options, options),
    .types =
        "image: f32[shape], label: i32[]; or tokens: i32[tokens], next: i32[tokens]; or fields and targets",
    .example = "source = random\nshape = [3, 32, 32]\nclasses = 10",
    .open = random_open,
    .close = random_close,
    .describe = random_describe,
    .read = random_read,
};
