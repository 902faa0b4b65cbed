/* plugins/sources/digits/digits.c: digits drawn from strokes, without files. Every training sample is new;
 * the validation samples are the same for every seed. */
#include "plugins/sources/digits/draw.h"
#include "plugins/sources/sources.h"

typedef struct digits_options {
  int64_t validation;
} digits_options;

static const tn_option options[] = {
    TN_OPT(digits_options, validation, TN_OPT_INT, "10000", ">= 1", "samples for validation"), TN_OPT_END};

/* The default length of a training epoch. */
enum { EPOCH = 20000 };

/* The seed of the validation samples; it is part of the definition of the data. */
static const uint64_t VALIDATION_SEED = 0x6469676974730001u;

typedef struct digits {
  int64_t count; /* -1 for training */
} digits;

static const char *const class_names[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
static const tn_field fields[] = {
    {sizeof(tn_field), "image", {TN_U8, 3, {1, DIGIT_SIDE, DIGIT_SIDE}}, TN_FIELD_INPUT, 0, NULL},
    {sizeof(tn_field), "label", {TN_I32, 0, {0}}, TN_FIELD_TARGET, 10, class_names},
};

static tn_status digits_open(tn_env *env, const void *opts, int32_t split, uint64_t seed, void **source) {
  (void)seed; /* the key of a sample includes the seed */
  const digits_options *o = opts;
  digits *d = tn_new(env, sizeof(*d));
  if (d == NULL) return TN_ENOMEM;
  *d = (digits){split == TN_SPLIT_TRAIN ? -1 : o->validation};
  *source = d;
  return TN_OK;
}

static void digits_close(tn_env *env, void *source) { tn_delete(env, source); }

static tn_status digits_describe(tn_env *env, void *source, tn_description *description) {
  (void)env;
  description->count = ((const digits *)source)->count;
  description->epoch = EPOCH;
  description->n_fields = 2;
  description->fields = fields;
  return TN_OK;
}

static tn_status digits_read(tn_sample *s, void *source) {
  const digits *d = source;
  uint8_t *image = tn_sample_field(s, 0, NULL);
  int32_t *label = tn_sample_field(s, 1, NULL);
  if (image == NULL || label == NULL) return TN_ENOMEM;
  uint64_t key = d->count < 0 ? s->key : tn_hash_mix(VALIDATION_SEED, (uint64_t)s->index);
  tn_rng rng = tn_rng_at(key, 0);
  *label = (int32_t)tn_rng_below(&rng, 10);
  digit_draw(&rng, *label, image);
  return TN_OK;
}

const tn_source digits_source = {
    .item = TN_ITEM(tn_source, TN_SOURCE, "digits", "28 x 28 digits drawn from strokes, an unlimited number",
                    digits_options, options),
    .types = "image: u8[1, 28, 28], label: i32[]",
    .example = "source = digits\nepoch = 10000",
    .open = digits_open,
    .close = digits_close,
    .describe = digits_describe,
    .read = digits_read,
};
