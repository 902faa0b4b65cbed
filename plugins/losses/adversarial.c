/* plugins/losses/adversarial.c: the losses of generative adversarial networks, of the scores that a
 * discriminator gives real samples, and those of a generator: with the non-saturating cross entropy
 * (Goodfellow et al., NeurIPS 2014), least squares (Mao et al., ICCV 2017), hinge (Lim and Ye, 2017), and the
 * difference of means (Arjovsky, Chintala, Bottou, ICML 2017). */
#include "plugins/losses/losses.h"

enum { ADVERSARIAL_BCE = 0, ADVERSARIAL_SQUARES = 1, ADVERSARIAL_HINGE = 2, ADVERSARIAL_WASSERSTEIN = 3 };

typedef struct adversarial_options {
  int32_t kind;
} adversarial_options;

static const tn_option adversarial_rows[] = {
    TN_OPT(adversarial_options, kind, TN_OPT_ENUM, "bce", "bce|least_squares|hinge|wasserstein",
           "bce: cross entropy, non-saturating; least_squares: the squared distance to 1 or 0; hinge; "
           "wasserstein: the score itself"),
    TN_OPT_END};

/* log(1 + e^x) without a large exponential. */
static tn_val adversarial_softplus(tn_build *b, tn_val x) {
  tn_val rest = tn_log1p(b, tn_exp(b, tn_neg(b, tn_abs(b, x))));
  return tn_add(b, tn_maximum(b, x, loss_number_like(b, x, 0)), rest);
}

/* The loss of scores that ought to be those of real samples (sign 1), or of others (sign -1). */
static tn_val adversarial_judge(tn_build *b, const adversarial_options *o, tn_val x, int sign) {
  switch (o->kind) {
  case ADVERSARIAL_BCE: return adversarial_softplus(b, sign > 0 ? tn_neg(b, x) : x);
  case ADVERSARIAL_SQUARES: {
    tn_val error = sign > 0 ? tn_affine(b, x, 1, -1) : x;
    return tn_mul(b, error, error);
  }
  case ADVERSARIAL_HINGE: return tn_maximum(b, tn_affine(b, x, -sign, 1), loss_number_like(b, x, 0));
  default: return sign > 0 ? tn_neg(b, x) : x;
  }
}

static tn_status adversarial_real(tn_build *b, const void *options) {
  tn_build_yield(b, 0, adversarial_judge(b, options, tn_build_in(b, 0), 1));
  return TN_OK;
}

static tn_status adversarial_fake(tn_build *b, const void *options) {
  tn_build_yield(b, 0, adversarial_judge(b, options, tn_build_in(b, 0), -1));
  return TN_OK;
}

/* A generator raises the scores of its samples; a hinge would end its gradient where they are good. */
static tn_status adversarial_generator(tn_build *b, const void *options) {
  const adversarial_options *o = options;
  tn_val x = tn_build_in(b, 0);
  tn_build_yield(b, 0, o->kind == ADVERSARIAL_HINGE ? tn_neg(b, x) : adversarial_judge(b, options, x, 1));
  return TN_OK;
}

#define ADVERSARIAL(name_, doc_, build_)                                                                     \
  const tn_layer_kind loss_##name_ = {                                                                       \
      .item = TN_ITEM(tn_layer_kind, TN_LAYER, #name_, doc_, adversarial_options, adversarial_rows),         \
      .role = TN_LAYER_LOSS,                                                                                 \
      .min_in = 1,                                                                                           \
      .max_in = 1,                                                                                           \
      .types = "scores (N, ...) before the sigmoid",                                                         \
      .example = "loss = " #name_ "(kind=hinge) <- fc",                                                      \
      .build = build_}
ADVERSARIAL(gan_real, "loss of a discriminator whose scores of real samples are given", adversarial_real);
ADVERSARIAL(gan_fake, "loss of a discriminator whose scores of generated samples are given",
            adversarial_fake);
ADVERSARIAL(gan_generator, "loss of a generator whose samples a discriminator has given the scores",
            adversarial_generator);
