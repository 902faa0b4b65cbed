/* plugins/losses/similarity.c: losses of embeddings, which compare rows: triplet_margin, cosine_embedding and
 * info_nce; multi_margin and multi_label_margin, which compare scores; and tversky, which compares areas.
 * Each has a value per sample. */
#include "plugins/losses/losses.h"

static tn_status rows_check(tn_build *b, int32_t n) {
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  if (x->rank < 2) return tn_fail(b, TN_EINVAL, NULL, "the first input has no rows, expected (N, D)");
  for (int32_t i = 1; i < n; i++)
    if (!tn_type_same_dims(x, tn_val_type(b, tn_build_in(b, i))))
      return tn_fail(b, TN_EINVAL, NULL, "inputs 1 and %d have different shapes, expected the same shape",
                     i + 1);
  return TN_OK;
}

/* The sum over the last axis. */
static tn_val rows_sum(tn_build *b, tn_val x, int32_t keep) {
  const int64_t axis[] = {-1};
  return tn_reduce_sum(b, x, 1, axis, keep);
}

static tn_val rows_positive(tn_build *b, tn_val x) { return tn_maximum(b, x, loss_number_like(b, x, 0)); }

/* ---- triplet_margin ---- */

typedef struct triplet_options {
  double margin, p, epsilon;
  int32_t swap;
} triplet_options;
static const tn_option triplet_rows[] = {
    TN_OPT(triplet_options, margin, TN_OPT_FLOAT, "1", "> 0",
           "by which the negative is to be farther than the positive"),
    TN_OPT(triplet_options, p, TN_OPT_FLOAT, "2", "> 0", "of the norm"),
    TN_OPT(triplet_options, epsilon, TN_OPT_FLOAT, "1e-6", ">= 0", "added to each difference"),
    TN_OPT(triplet_options, swap, TN_OPT_FLAG, "no", NULL,
           "the positive counts as anchor where that is nearer to the negative"),
    TN_OPT_END};

static tn_val triplet_distance(tn_build *b, const triplet_options *o, int32_t x, int32_t y) {
  const int64_t axis[] = {-1};
  tn_val difference = tn_affine(b, tn_sub(b, tn_build_in(b, x), tn_build_in(b, y)), 1, o->epsilon);
  return tn_norm(b, difference, o->p, 1, axis, 0);
}

static tn_status build_triplet(tn_build *b, const void *given) {
  const triplet_options *o = given;
  TN_TRY(rows_check(b, 3));
  tn_val near = triplet_distance(b, o, 0, 1), far = triplet_distance(b, o, 0, 2);
  if (o->swap) far = tn_minimum(b, far, triplet_distance(b, o, 1, 2));
  tn_build_yield(b, 0, rows_positive(b, tn_affine(b, tn_sub(b, near, far), 1, o->margin)));
  return TN_OK;
}
const tn_layer_kind loss_triplet_margin = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "triplet_margin",
                    "how far a positive is from being nearer to the anchor than a negative by the margin "
                    "(Schroff et al., "
                    "CVPR 2015)",
                    triplet_options, triplet_rows),
    .role = TN_LAYER_LOSS,
    .min_in = 3,
    .max_in = 3,
    .types = "anchors, positives and negatives (N, D)",
    .example = "loss = triplet_margin(margin=0.5) <- fc, fc * 2, fc + 1",
    .build = build_triplet};

/* ---- cosine_embedding ---- */

typedef struct cosine_options {
  double margin;
} cosine_options;
static const tn_option cosine_rows[] = {TN_OPT(cosine_options, margin, TN_OPT_FLOAT, "0", "[-1, 1]",
                                               "cosine up to which rows of the target -1 may be similar"),
                                        TN_OPT_END};

/* PyTorch adds 1e-12 to the squares of the norms. */
static tn_val cosine_of(tn_build *b, tn_val x, tn_val y) {
  tn_val squares = tn_mul(b, tn_affine(b, rows_sum(b, tn_mul(b, x, x), 0), 1, 1e-12),
                          tn_affine(b, rows_sum(b, tn_mul(b, y, y), 0), 1, 1e-12));
  return tn_div(b, rows_sum(b, tn_mul(b, x, y), 0), tn_sqrt(b, squares));
}

static tn_status build_cosine(tn_build *b, const void *given) {
  const cosine_options *o = given;
  TN_TRY(rows_check(b, 2));
  tn_val cosine = cosine_of(b, tn_build_in(b, 0), tn_build_in(b, 1)), target = tn_build_in(b, 2);
  if (!tn_type_same_dims(tn_val_type(b, cosine), tn_val_type(b, target)))
    return tn_fail(b, TN_EINVAL, NULL,
                   "the target has not one number for each row, expected (N) of 1 and -1");
  tn_val same = tn_gt(b, target, loss_number_like(b, target, 0));
  tn_build_yield(
      b, 0,
      tn_where(b, same, tn_affine(b, cosine, -1, 1), rows_positive(b, tn_affine(b, cosine, 1, -o->margin))));
  return TN_OK;
}
const tn_layer_kind loss_cosine_embedding = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "cosine_embedding",
                    "1 - cosine of rows whose target is 1, and the cosine above the margin where it is -1",
                    cosine_options, cosine_rows),
    .role = TN_LAYER_LOSS,
    .min_in = 3,
    .max_in = 3,
    .types = "two tensors (N, D), and targets (N) of 1 and -1",
    .example = "targets = label: f32[]\nloss = cosine_embedding <- fc, fc * 2, label",
    .build = build_cosine};

/* ---- info_nce ---- */

typedef struct nce_options {
  double temperature;
  int32_t symmetric;
} nce_options;
static const tn_option nce_rows[] = {
    TN_OPT(nce_options, temperature, TN_OPT_FLOAT, "0.07", "> 0", "by which cosines are divided"),
    TN_OPT(nce_options, symmetric, TN_OPT_FLAG, "yes", NULL, "the mean of both directions, as CLIP has it"),
    TN_OPT_END};

static tn_val nce_normalized(tn_build *b, tn_val x) {
  tn_val norm = tn_sqrt(b, rows_sum(b, tn_mul(b, x, x), 1));
  return tn_div(b, x, tn_maximum(b, norm, loss_number_like(b, norm, 1e-12)));
}

static tn_status build_nce(tn_build *b, const void *given) {
  const nce_options *o = given;
  TN_TRY(rows_check(b, 2));
  tn_val x = nce_normalized(b, tn_build_in(b, 0)), y = nce_normalized(b, tn_build_in(b, 1));
  if (tn_build_n_in(b) > 2) x = tn_mul(b, x, tn_exp(b, tn_build_in(b, 2)));
  if (tn_val_type(b, x)->rank != 2)
    return tn_fail(b, TN_EINVAL, NULL, "expected two inputs (N, D), and a scalar as a third one");
  tn_type rows = {TN_I32, 1, {tn_val_dim(b, x, 0)}};
  tn_val label = tn_iota(b, &rows, 0), scores = tn_matmul(b, x, y, 0, 0, 1, 0);
  if (tn_build_n_in(b) < 3) scores = tn_affine(b, scores, 1 / o->temperature, 0);
  tn_val loss = tn_cross_entropy(b, scores, label, 1, -100, 0);
  if (o->symmetric)
    loss = tn_affine(b, tn_add(b, loss, tn_cross_entropy(b, scores, label, 0, -100, 0)), 0.5, 0);
  tn_build_yield(b, 0, loss);
  return TN_OK;
}
const tn_layer_kind loss_info_nce = {
    .item = TN_ITEM(
        tn_layer_kind, TN_LAYER, "info_nce",
        "cross entropy of cosines: row i of one input belongs to row i of the other, among all rows of the "
        "batch of a device (van den Oord et al., 2018; CLIP, Radford et al., ICML 2021)",
        nce_options, nce_rows),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 3,
    .types =
        "two tensors (N, D), and the logarithm of a learned factor in place of 1 / temperature, a scalar",
    .example = "loss = info_nce(temperature=0.1) <- fc, fc * 2",
    .build = build_nce};

/* ---- multi_margin ---- */

typedef struct margin_options {
  double margin, p;
} margin_options;
static const tn_option margin_rows[] = {
    TN_OPT(margin_options, margin, TN_OPT_FLOAT, "1", NULL,
           "by which the score of the target is to be higher"),
    TN_OPT(margin_options, p, TN_OPT_FLOAT, "1", "[1, 2]", "power of each distance"), TN_OPT_END};

static tn_status build_multi_margin(tn_build *b, const void *given) {
  const margin_options *o = given;
  tn_val x = tn_build_in(b, 0), target = tn_build_in(b, 1);
  const tn_type *type = tn_val_type(b, x);
  if (type->rank != 2 || tn_val_type(b, target)->rank != 1)
    return tn_fail(b, TN_EINVAL, NULL, "expected scores (N, classes) and class numbers (N)");
  int64_t classes = type->dims[1];
  tn_val mark = tn_one_hot(b, target, classes, type->dtype), own = rows_sum(b, tn_mul(b, x, mark), 1);
  tn_val below = rows_positive(b, tn_affine(b, tn_sub(b, x, own), 1, o->margin));
  if (o->p != 1) below = tn_pow(b, below, loss_number_like(b, below, o->p));
  tn_val others = tn_mul(b, below, tn_affine(b, mark, -1, 1));
  tn_build_yield(b, 0, tn_affine(b, rows_sum(b, others, 0), 1.0 / (double)classes, 0));
  return TN_OK;
}
const tn_layer_kind loss_multi_margin = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "multi_margin",
                    "how far the target's score is from being above all others by the margin", margin_options,
                    margin_rows),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 2,
    .types = "scores (N, classes) and class numbers (N)",
    .example = "loss = multi_margin",
    .build = build_multi_margin};

/* ---- multi_label_margin ---- */

/* 1 for each class of the target in front of its first number below 0. */
static tn_val labels_listed(tn_build *b, tn_val target, int32_t dtype) {
  return tn_cumprod(b, tn_to_dtype(b, tn_ge(b, target, loss_number_like(b, target, 0)), dtype), 1, 0, 0);
}

/* max(0, 1 - (x_j - x_k)) of each class j of the target (N, j, 1) and each other class k (N, 1, k). */
static tn_status build_multi_label(tn_build *b, const void *options) {
  (void)options;
  TN_TRY(rows_check(b, 2));
  tn_val x = tn_build_in(b, 0), target = tn_build_in(b, 1);
  const tn_type type = *tn_val_type(b, x);
  if (type.rank != 2 || tn_dtype_is_float(tn_val_type(b, target)->dtype))
    return tn_fail(b, TN_EINVAL, NULL,
                   "expected scores (N, classes), and (N, classes) class numbers that end with one below 0");
  const int64_t places[] = {1}, pairs[] = {1, 2};
  tn_val listed = labels_listed(b, target, type.dtype);
  tn_val own = tn_gather(b, x, tn_maximum(b, target, loss_number_like(b, target, 0)), 1);
  tn_val marks = tn_mul(b, tn_one_hot(b, target, type.dims[1], type.dtype), tn_unsqueeze(b, listed, 2));
  tn_val others = tn_affine(b, tn_reduce_max(b, marks, 1, places, 0), -1, 1);
  tn_val gap = tn_sub(b, tn_unsqueeze(b, x, 1), tn_unsqueeze(b, own, 2));
  tn_val counted = tn_mul(b, tn_unsqueeze(b, listed, 2), tn_unsqueeze(b, others, 1));
  tn_val each = tn_mul(b, rows_positive(b, tn_affine(b, gap, 1, 1)), counted);
  tn_build_yield(b, 0, tn_affine(b, tn_reduce_sum(b, each, 2, pairs, 0), 1.0 / (double)type.dims[1], 0));
  return TN_OK;
}
const tn_layer_kind loss_multi_label_margin = {
    .item = TN_ITEM_PLAIN(tn_layer_kind, TN_LAYER, "multi_label_margin",
                          "how far the scores of a sample's classes are from being above all others by 1"),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 2,
    .types = "scores (N, classes), and (N, classes) class numbers, of which those in front of the first one "
             "below 0 count",
    .example =
        "inputs = x: f32[16]\nlayers = fc: linear(10)\ntargets = label: i32[10]\nloss = multi_label_margin",
    .build = build_multi_label};

/* ---- areas ---- */

typedef struct area_options {
  double alpha, beta, smooth;
} area_options;
static const tn_option area_rows[] = {
    TN_OPT(area_options, alpha, TN_OPT_FLOAT, "0.5", ">= 0",
           "weight of elements that are predicted wrongly; 0.5 and 0.5: dice"),
    TN_OPT(area_options, beta, TN_OPT_FLOAT, "0.5", ">= 0", "weight of elements that are missed"),
    TN_OPT(area_options, smooth, TN_OPT_FLOAT, "1", "> 0", "added to both parts of the fraction"),
    TN_OPT_END};

static tn_val area_sum(tn_build *b, tn_val x) {
  int64_t axes[TN_MAX_RANK];
  int32_t n = tn_val_type(b, x)->rank - 1;
  for (int32_t i = 0; i < n; i++) axes[i] = 1 + i;
  return tn_reduce_sum(b, x, n, axes, 0);
}

static tn_status build_tversky(tn_build *b, const void *given) {
  const area_options *o = given;
  TN_TRY(rows_check(b, 2));
  tn_val p = tn_build_in(b, 0), t = tn_to_dtype(b, tn_build_in(b, 1), tn_val_type(b, p)->dtype);
  tn_val both = area_sum(b, tn_mul(b, p, t)), wrong = tn_sub(b, area_sum(b, p), both),
         missed = tn_sub(b, area_sum(b, t), both);
  tn_val cost = tn_add(b, tn_affine(b, wrong, o->alpha, o->smooth), tn_affine(b, missed, o->beta, 0));
  tn_val part = tn_div(b, tn_affine(b, both, 1, o->smooth), tn_add(b, both, cost));
  tn_build_yield(b, 0, tn_affine(b, part, -1, 1));
  return TN_OK;
}
const tn_layer_kind loss_tversky = {
    .item = TN_ITEM(tn_layer_kind, TN_LAYER, "tversky",
                    "1 - the Tversky index of each sample (Salehi et al., 2017); with its defaults the Dice "
                    "loss (Milletari et "
                    "al., 2016)",
                    area_options, area_rows),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 2,
    .types = "probabilities and targets from 0 to 1, two tensors (N, ...) of one shape",
    .example = "targets = label: f32[10]\nloss = tversky(alpha=0.3, beta=0.7) <- sigmoid(fc), label",
    .build = build_tversky};
