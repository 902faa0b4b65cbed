/* plugins/transforms/photometric/color_jitter.c: changes brightness, contrast, saturation and hue by random
 * factors and in random order, as torchvision's ColorJitter. */
#include "plugins/transforms/pixels/canvas.h"

typedef struct jitter_options {
  tn_floats brightness, contrast, saturation, hue;
} jitter_options;

#define JITTER(name)                                                                                         \
  TN_OPT(jitter_options, name, TN_OPT_FLOATS, "0", ">= 0",                                                   \
         "x: a factor from 1 - x to 1 + x; two numbers: from the first to the second")
static const tn_option options[] = {
    JITTER(brightness), JITTER(contrast), JITTER(saturation),
    TN_OPT(jitter_options, hue, TN_OPT_FLOATS, "0", "[-0.5, 0.5]",
           "x: a turn from -x to x, as part of the circle; two numbers: from the first to the second"),
    TN_OPT_END};

enum { BRIGHTNESS = 0, CONTRAST = 1, SATURATION = 2, HUE = 3, JITTERS = 4 };

typedef struct jitter_range {
  double low, high;
} jitter_range;

/* `centre` changes nothing. A factor is not negative. */
static jitter_range jitter_read(const tn_floats *list, double centre) {
  if (list->n == 2) return (jitter_range){list->v[0], list->v[1]};
  double low = centre - list->v[0];
  return (jitter_range){centre == 1 && low < 0 ? 0 : low, centre + list->v[0]};
}

static tn_status jitter_check(tn_env *env, const char *name, const tn_floats *list) {
  if (list->n == 1 && list->v[0] >= 0) return TN_OK;
  if (list->n == 2 && list->v[0] <= list->v[1]) return TN_OK;
  return tn_fail(env, TN_EINVAL, name,
                 "%s must be one number of at least 0, or two numbers, the smaller one first", name);
}

static tn_status color_jitter_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                    tn_type *out) {
  const jitter_options *o = opts;
  tn_status status = jitter_check(env, "brightness", &o->brightness);
  if (status == TN_OK) status = jitter_check(env, "contrast", &o->contrast);
  if (status == TN_OK) status = jitter_check(env, "saturation", &o->saturation);
  if (status == TN_OK) status = jitter_check(env, "hue", &o->hue);
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  return status == TN_OK ? canvas_check(env, n, in, 1) : status;
}

/* The random choices: an order, and a number for each change. */
typedef struct jitter_choice {
  int32_t order[JITTERS];
  float by[JITTERS];
} jitter_choice;

static jitter_choice jitter_choose(const tn_transform_call *c, const jitter_options *o) {
  tn_rng rng = tn_rng_at(c->key, 0);
  jitter_choice choice = {.order = {BRIGHTNESS, CONTRAST, SATURATION, HUE}};
  const tn_floats *const lists[JITTERS] = {&o->brightness, &o->contrast, &o->saturation, &o->hue};
  for (int32_t i = JITTERS - 1; i > 0; i--) {
    int32_t k = (int32_t)tn_rng_below(&rng, i + 1), other = choice.order[k];
    choice.order[k] = choice.order[i];
    choice.order[i] = other;
  }
  for (int32_t i = 0; i < JITTERS; i++) {
    jitter_range range = jitter_read(lists[i], i == HUE ? 0 : 1);
    choice.by[i] = (float)tn_rng_between(&rng, range.low, range.high);
  }
  return choice;
}

static void jitter_change(canvas *c, int32_t what, float by) {
  if (by == (what == HUE ? 0.0f : 1.0f)) return;
  switch (what) {
  case BRIGHTNESS: canvas_brightness(c, by); break;
  case CONTRAST: canvas_contrast(c, by); break;
  case SATURATION: canvas_saturation(c, by); break;
  default: canvas_hue(c, by);
  }
}

static tn_status color_jitter_apply(tn_transform_call *c, const void *opts) {
  jitter_choice choice = jitter_choose(c, opts);
  tn_status status = TN_OK;
  for (int32_t k = 0; status == TN_OK && k < c->n; k++) {
    canvas work;
    status = canvas_open(c, k, &work);
    for (int32_t i = 0; status == TN_OK && i < JITTERS; i++)
      jitter_change(&work, choice.order[i], choice.by[choice.order[i]]);
  }
  return status;
}

const tn_transform color_jitter_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "color_jitter",
                    "changes brightness, contrast, saturation and hue at random (training only; u8)",
                    jitter_options, options),
    .training_only = 1,
    .types = "u8 [channels, height, width], 1 or 3 channels",
    .example = "transforms = color_jitter(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1), to_float",
    .infer = color_jitter_infer,
    .apply = color_jitter_apply,
};
