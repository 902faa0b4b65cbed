/* plugins/transforms/policy/random_transforms.c: random_apply, random_choice and random_order of a list of
 * transforms. */
#include "plugins/transforms/policy/parts.h"

typedef struct several_options {
  tn_transforms transforms;
  double p;        /* random_apply */
  tn_floats parts; /* random_choice */
} several_options;

enum { MOST_PARTS = 64 };

#define TRANSFORMS_OPTION(doc) TN_OPT(several_options, transforms, TN_OPT_TRANSFORMS, NULL, NULL, doc)

static const tn_option apply_options[] = {
    TRANSFORMS_OPTION("a list, [color_jitter(0.4), gaussian_blur(5)], applied in its order"),
    TN_OPT(several_options, p, TN_OPT_FLOAT, "0.5", "[0, 1]", "probability, for the whole list"), TN_OPT_END};
static const tn_option choice_options[] = {
    TRANSFORMS_OPTION("a list, [random_flip, random_rotation(15)], of which one is applied"),
    {"p", TN_OPT_FLOATS, 0, (uint32_t)offsetof(several_options, parts), sizeof(tn_floats), "[]", ">= 0",
     "a weight for each transform; []: all are alike"},
    TN_OPT_END};
static const tn_option order_options[] = {
    TRANSFORMS_OPTION("a list, [random_flip, color_jitter(0.4)], of which all are applied"), TN_OPT_END};

static tn_status several_check(tn_env *env, const several_options *o, int32_t n) {
  TN_TRY(parts_check(env, &o->transforms, n));
  if (o->transforms.n <= MOST_PARTS) return TN_OK;
  return tn_fail(env, TN_EINVAL, "transforms", "transforms has %lld entries, expected at most %d",
                 (long long)o->transforms.n, MOST_PARTS);
}

/* ---- random_apply ---- */

static tn_status random_apply_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                    tn_type *out) {
  const several_options *o = opts;
  TN_TRY(several_check(env, o, n));
  tn_type *types = tn_new(env, 2 * (size_t)n * sizeof *types);
  if (types == NULL) return TN_ENOMEM;
  tn_type *to = types + n;
  tn_status status = TN_OK;
  for (int32_t k = 0; k < n; k++) types[k] = in[k];
  for (int64_t i = 0; status == TN_OK && i < o->transforms.n; i++) {
    status = parts_infer(env, &o->transforms.v[i], n, types, to);
    for (int32_t k = 0; k < n; k++) types[k] = to[k];
  }
  if (status == TN_OK) status = parts_check_kept(env, "the transforms of random_apply", n, in, types);
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  tn_delete(env, types);
  return status;
}

static tn_status random_apply_apply(tn_transform_call *c, const void *opts) {
  const several_options *o = opts;
  tn_rng rng = tn_rng_at(c->key, 0);
  int64_t order[MOST_PARTS];
  for (int64_t i = 0; i < o->transforms.n; i++) order[i] = i;
  return parts_apply(c, &o->transforms, order, tn_rng_uniform(&rng) < o->p ? o->transforms.n : 0);
}

/* ---- random_choice ---- */

static double choice_sum(const tn_floats *weights) {
  double sum = 0;
  for (int64_t i = 0; i < weights->n; i++) sum += weights->v[i];
  return sum;
}

static tn_status random_choice_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                     tn_type *out) {
  const several_options *o = opts;
  TN_TRY(several_check(env, o, n));
  if (o->parts.n > 0 && (o->parts.n != o->transforms.n || !(choice_sum(&o->parts) > 0)))
    return tn_fail(env, TN_EINVAL, "p",
                   "p has %lld numbers with the sum %g, expected one for each of the %lld "
                   "transforms, and a sum above 0",
                   (long long)o->parts.n, choice_sum(&o->parts), (long long)o->transforms.n);
  tn_type *other = tn_new(env, (size_t)n * sizeof *other);
  if (other == NULL) return TN_ENOMEM;
  tn_status status = parts_infer(env, &o->transforms.v[0], n, in, out);
  for (int64_t i = 1; status == TN_OK && i < o->transforms.n; i++) {
    status = parts_infer(env, &o->transforms.v[i], n, in, other);
    if (status == TN_OK) status = parts_check_kept(env, "the transforms of random_choice", n, out, other);
  }
  tn_delete(env, other);
  return status;
}

static int64_t choice_draw(const several_options *o, tn_rng *rng) {
  if (o->parts.n == 0) return tn_rng_below(rng, o->transforms.n);
  double at = tn_rng_uniform(rng) * choice_sum(&o->parts), sum = 0;
  int64_t last = 0;
  for (int64_t i = 0; i < o->parts.n; i++) {
    if (o->parts.v[i] == 0) continue;
    last = i;
    sum += o->parts.v[i];
    if (at < sum) break;
  }
  return last;
}

static tn_status random_choice_apply(tn_transform_call *c, const void *opts) {
  const several_options *o = opts;
  tn_rng rng = tn_rng_at(c->key, 0);
  return parts_apply(c, &o->transforms, (const int64_t[]){choice_draw(o, &rng)}, 1);
}

/* ---- random_order ---- */

static tn_status random_order_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in,
                                    tn_type *out) {
  const several_options *o = opts;
  TN_TRY(several_check(env, o, n));
  for (int64_t i = 0; i < o->transforms.n; i++) {
    TN_TRY(parts_infer(env, &o->transforms.v[i], n, in, out));
    TN_TRY(parts_check_kept(env, "the transforms of random_order", n, in, out));
  }
  return TN_OK;
}

static tn_status random_order_apply(tn_transform_call *c, const void *opts) {
  const several_options *o = opts;
  tn_rng rng = tn_rng_at(c->key, 0);
  int64_t order[MOST_PARTS];
  for (int64_t i = 0; i < o->transforms.n; i++) {
    int64_t k = tn_rng_below(&rng, i + 1);
    order[i] = order[k];
    order[k] = i;
  }
  return parts_apply(c, &o->transforms, order, o->transforms.n);
}

#define SEVERAL(NAME, doc, list, line)                                                                       \
  const tn_transform NAME##_transform = {                                                                    \
      .item = TN_ITEM(tn_transform, TN_TRANSFORM, #NAME, doc, several_options, list),                        \
      .training_only = 1,                                                                                    \
      .types = "the fields that its transforms take",                                                        \
      .example = "transforms = " line ", to_float",                                                          \
      .infer = NAME##_infer,                                                                                 \
      .apply = NAME##_apply,                                                                                 \
  };
SEVERAL(random_apply, "applies a list of transforms, with probability p (training only)", apply_options,
        "random_apply([color_jitter(0.4), gaussian_blur(5)], p=0.8)")
SEVERAL(random_choice, "applies one transform of a list (training only)", choice_options,
        "random_choice([random_equalize(p=1), gaussian_blur(5)], p=[0.3, 0.7])")
SEVERAL(random_order, "applies all transforms of a list, in random order (training only)", order_options,
        "random_order([random_flip, color_jitter(0.4), random_rotation(10)])")
