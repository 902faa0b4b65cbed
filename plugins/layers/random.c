/* plugins/layers/random.c: layers that draw numbers in training: dropout in its forms, rrelu. */
#include <math.h>

#include "plugins/layers/layers.h"

/* ---- drawing ---- */

enum { EACH_ELEMENT, EACH_CHANNEL, EACH_EXAMPLE };

static tn_val random_dropout(tn_build *b, tn_val x, double p) {
  tn_val iteration = tn_build_counter(b, TN_ITERATION), block = tn_build_counter(b, TN_BATCH_BLOCK);
  return tn_dropout(b, x, iteration, block, p, (int64_t)tn_build_random_stream(b, "mask"));
}

/* 0 with probability p, else 1 / (1 - p): a number for each element, channel or example of x. */
static tn_val random_mask(tn_build *b, tn_val x, int32_t each, double p) {
  tn_type type = *tn_val_type(b, x);
  for (int32_t i = each == EACH_CHANNEL ? 2 : 1; each != EACH_ELEMENT && i < type.rank; i++) type.dims[i] = 1;
  return random_dropout(b, tn_full(b, &type, 1), p);
}

/* The same for a probability p that moves, a scalar. */
static tn_val random_moved_mask(tn_build *b, tn_val x, int32_t each, tn_val p) {
  tn_val iteration = tn_build_counter(b, TN_ITERATION), block = tn_build_counter(b, TN_BATCH_BLOCK);
  tn_type type = *tn_val_type(b, x), f32;
  for (int32_t i = each == EACH_CHANNEL ? 2 : 1; each != EACH_ELEMENT && i < type.rank; i++) type.dims[i] = 1;
  f32 = type;
  f32.dtype = TN_F32;
  int64_t stream = (int64_t)tn_build_random_stream(b, "mask");
  tn_val drawn = tn_random_uniform(b, iteration, block, &f32, stream, 0, 1);
  tn_val scale = tn_div(b, tn_scalar(b, TN_F32, 1), tn_affine(b, p, -1, 1));
  tn_val mask = tn_where(b, tn_ge(b, drawn, p), scale, tn_scalar(b, TN_F32, 0));
  return tn_to_dtype(b, mask, type.dtype);
}

/* ---- dropout ---- */

typedef struct dropout_options {
  double p;
  int32_t each;
} dropout_options;
#define EACH_OPTION                                                                                          \
  TN_OPT(dropout_options, each, TN_OPT_ENUM, "element", "element|channel|example",                           \
         "replaced together: single elements, channels (Tompson et al., 2015), examples (drop path of a "    \
         "residual branch: Huang et al., 2016)")
static const tn_option dropout_rows[] = {TN_OPT_WITH(dropout_options, p, TN_OPT_FLOAT, TN_OPT_SCHEDULABLE,
                                                     "0.5", "[0, 1)", "fraction replaced in training"),
                                         EACH_OPTION, TN_OPT_END};

static tn_status build_dropout(tn_build *b, const void *given) {
  const dropout_options *o = given;
  tn_val x = tn_build_in(b, 0), p = tn_build_option_value(b, "p");
  if (p != 0)
    x = tn_mul(b, x, random_moved_mask(b, x, o->each, p));
  else if (tn_build_training(b) && o->p > 0)
    x = o->each == EACH_ELEMENT ? random_dropout(b, x, o->p) : tn_mul(b, x, random_mask(b, x, o->each, o->p));
  tn_build_yield(b, 0, x);
  return TN_OK;
}

const tn_layer_kind layer_dropout = {.item = TN_ITEM(tn_layer_kind, TN_LAYER, "dropout",
                                                     "sets a random fraction of the elements, channels or "
                                                     "examples to zero and scales the others (training "
                                                     "only)",
                                                     dropout_options, dropout_rows),
                                     .min_in = 1,
                                     .max_in = 1,
                                     .types = "one tensor of any shape; the result has the same",
                                     .example = "inputs = x: f32[64]\nlayers = dropout(0.1)",
                                     .build = build_dropout};

/* ---- alpha_dropout ---- */

static const tn_option alpha_dropout_rows[] = {
    TN_OPT(dropout_options, p, TN_OPT_FLOAT, "0.5", "[0, 1)", "fraction replaced in training"), EACH_OPTION,
    TN_OPT_END};

/* Replaced elements get the limit of selu, and all are scaled so that mean 0 and variance 1 stay. With a mask
 * m of 0 and 1 / q for q = 1 - p: a (x q m + low (1 - q m)) + c = a q m (x - low) + a low + c. */
static tn_status build_alpha_dropout(tn_build *b, const void *given) {
  static const double low = -1.7580993408473766; /* -scale alpha of selu */
  const dropout_options *o = given;
  tn_val x = tn_build_in(b, 0);
  if (tn_build_training(b) && o->p > 0) {
    double q = 1 - o->p, a = 1 / sqrt(q + low * low * q * o->p), c = -a * low * o->p;
    tn_val kept = tn_mul(b, tn_affine(b, x, 1, -low), random_mask(b, x, o->each, o->p));
    x = tn_affine(b, kept, a * q, a * low + c);
  }
  tn_build_yield(b, 0, x);
  return TN_OK;
}

const tn_layer_kind layer_alpha_dropout = {
    .item =
        TN_ITEM(tn_layer_kind, TN_LAYER, "alpha_dropout",
                "dropout behind selu, which keeps mean 0 and variance 1 (training only): Klambauer et al., "
                "\"Self-normalizing neural networks\", 2017",
                dropout_options, alpha_dropout_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "one tensor of any shape; the result has the same",
    .example = "inputs = x: f32[64]\nlayers =\n    selu\n    alpha_dropout(0.1)",
    .build = build_alpha_dropout};

/* ---- rrelu ---- */

typedef struct rrelu_options {
  double lower, upper;
} rrelu_options;
static const tn_option rrelu_rows[] = {
    TN_OPT(rrelu_options, lower, TN_OPT_FLOAT, "0.125", NULL, "least slope of elements below 0"),
    TN_OPT(rrelu_options, upper, TN_OPT_FLOAT, "0.3333333333333333", NULL, "greatest slope, at least lower"),
    TN_OPT_END};

static tn_status build_rrelu(tn_build *b, const void *given) {
  const rrelu_options *o = given;
  tn_val x = tn_build_in(b, 0);
  if (!(o->lower <= o->upper))
    return tn_fail(b, TN_EINVAL, "upper", "upper is %g, expected at least lower, %g", o->upper, o->lower);
  if (!tn_build_training(b) || o->lower == o->upper) {
    tn_build_yield(b, 0, tn_leaky_relu(b, x, (o->lower + o->upper) / 2));
    return TN_OK;
  }
  tn_val iteration = tn_build_counter(b, TN_ITERATION), block = tn_build_counter(b, TN_BATCH_BLOCK);
  int64_t stream = (int64_t)tn_build_random_stream(b, "slope");
  tn_val slope = tn_random_uniform(b, iteration, block, tn_val_type(b, x), stream, o->lower, o->upper);
  tn_val below = tn_lt(b, x, tn_scalar(b, tn_val_type(b, x)->dtype, 0));
  tn_build_yield(b, 0, tn_where(b, below, tn_mul(b, x, slope), x));
  return TN_OK;
}

const tn_layer_kind layer_rrelu = {
    .item =
        TN_ITEM(tn_layer_kind, TN_LAYER, "rrelu",
                "leaky ReLU whose slope below 0 is drawn for each element in training, and the mean of the "
                "bounds otherwise: Xu et al., 2015",
                rrelu_options, rrelu_rows),
    .min_in = 1,
    .max_in = 1,
    .types = "one tensor of any shape; the result has the same",
    .example = "inputs = x: f32[64]\nlayers = rrelu",
    .build = build_rrelu};
