/* plugins/transforms/policy/aug_mix.c: aug_mix (Hendrycks et al., "AugMix", ICLR 2020), with the ops and
 * strengths of torchvision's. Chains of ops begin at the picture; the result is a mean of it and of their
 * ends. */
#include <string.h>

#include "plugins/transforms/policy/auto_augment.h"

typedef struct aug_mix_options {
  int64_t severity, mixture_width, chain_depth;
  double alpha;
  int32_t all_ops;
  sampling how;
} aug_mix_options;

enum { AUG_MIX_BINS = 10, MOST_CHAINS = 32, MOST_DEPTH = 3 };

static const tn_option options[] = {
    TN_OPT(aug_mix_options, severity, TN_OPT_INT, "3", "[1, 10]", "strengths that are drawn from, of 10"),
    TN_OPT(aug_mix_options, mixture_width, TN_OPT_INT, "3", "[1, 32]", "number of chains"),
    TN_OPT(aug_mix_options, chain_depth, TN_OPT_INT, "-1", "[-1, 1000]", "ops of a chain; -1: 1 to 3, drawn"),
    TN_OPT(
        aug_mix_options, alpha, TN_OPT_FLOAT, "1", "(0, 1000]",
        "the parts of the chains are drawn from the Dirichlet distribution (alpha, alpha, ...), and that of "
        "all of them as well"),
    TN_OPT(aug_mix_options, all_ops, TN_OPT_FLAG, "yes", NULL,
           "also brightness, color, contrast and sharpness, which the corruptions of ImageNet-C have, too"),
    SAMPLING_OPTIONS_OF(aug_mix_options, "bilinear"),
    TN_OPT_END};

static tn_status aug_mix_infer(tn_env *env, const void *opts, int32_t n, const tn_type *in, tn_type *out) {
  const aug_mix_options *o = opts;
  for (int32_t k = 0; k < n; k++) out[k] = in[k];
  TN_TRY(canvas_check(env, n, in, 0));
  return sampling_check(env, &o->how, n, in);
}

/* Without identity; without all_ops also without those that ImageNet-C has. */
static augment_op aug_mix_draw_op(const aug_mix_options *o, tn_rng *rng) {
  int64_t left_out = o->all_ops ? 0 : AUGMENT_SHARPNESS - AUGMENT_BRIGHTNESS + 1;
  int64_t op = AUGMENT_IDENTITY + 1 + tn_rng_below(rng, AUGMENT_OPS - 1 - left_out);
  return (augment_op)(op >= AUGMENT_BRIGHTNESS ? op + left_out : op);
}

static void aug_mix_run_chain(const aug_mix_options *o, tn_rng *rng, canvas *c) {
  int64_t depth = o->chain_depth > 0 ? o->chain_depth : 1 + tn_rng_below(rng, MOST_DEPTH);
  for (int64_t i = 0; i < depth; i++) {
    augment_op op = aug_mix_draw_op(o, rng);
    int64_t bin = tn_rng_below(rng, o->severity);
    augment_apply_either_way(c, op, augment_mix_magnitude(op, bin, AUG_MIX_BINS, c), rng, &o->how);
  }
}

VECTORIZED static void aug_mix_add(const uint8_t *restrict from, double part, int64_t n,
                                   float *restrict sum) {
  float by = (float)part;
  for (int64_t i = 0; i < n; i++) sum[i] += by * (float)from[i];
}

static void aug_mix_chains(const aug_mix_options *o, tn_rng *rng, const uint8_t *in, int64_t n, canvas *c,
                           float *sum) {
  double parts[MOST_CHAINS], all[2];
  random_dirichlet(rng, o->alpha, 2, all);
  random_dirichlet(rng, o->alpha, o->mixture_width, parts);
  aug_mix_add(in, all[0], n, sum);
  for (int64_t i = 0; i < o->mixture_width; i++) {
    memcpy(c->pixels, in, (size_t)n);
    aug_mix_run_chain(o, rng, c);
    aug_mix_add(c->pixels, parts[i] * all[1], n, sum);
  }
  for (int64_t i = 0; i < n; i++) c->pixels[i] = (uint8_t)(sum[i] < 255 ? sum[i] : 255);
}

/* Fields that go together get the same choices. */
static tn_status aug_mix_apply(tn_transform_call *c, const void *opts) {
  tn_status status = TN_OK;
  for (int32_t k = 0; status == TN_OK && k < c->n; k++) {
    canvas work;
    tn_rng rng = tn_rng_at(c->key, 0);
    int64_t n = tn_type_count(&c->in_type[k]);
    float *sum = tn_new(&c->env, ((size_t)n + 1) * sizeof *sum);
    status = sum != NULL ? canvas_open(c, k, &work) : TN_ENOMEM;
    if (status == TN_OK) aug_mix_chains(opts, &rng, c->in[k], n, &work, sum);
    tn_delete(&c->env, sum);
  }
  return status;
}

const tn_transform aug_mix_transform = {
    .item = TN_ITEM(tn_transform, TN_TRANSFORM, "aug_mix",
                    "a mean of the picture and of several random changes of it (AugMix; training only; u8)",
                    aug_mix_options, options),
    .training_only = 1,
    .types = "u8 [channels, height, width], 1 or 3 channels",
    .example = "transforms = aug_mix(severity=3), to_float",
    .infer = aug_mix_infer,
    .apply = aug_mix_apply,
};
