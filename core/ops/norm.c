/* core/ops/norm.c: normalization. Statistics and values computed from them are in the dtype of sums A: f32,
 * f64 for f64. A batch norm decomposes into one reduction, a few ops on channels, and one pointwise region,
 * forward and backward, which can fuse with neighbouring ops. */
#include "core/ops/common.h"

/* ---- shapes ---- */

static tn_status batch_norm_check_x(tn_infer *n, const tn_type *x) {
  if (x->rank >= 2 && x->rank <= 5) return TN_OK;
  return tn_fail(n, TN_EINVAL, NULL, "x is %s of rank %d, expected rank 2 .. 5: batch, channels, then space",
                 tn_ops_text(x).v, (int)x->rank);
}

static tn_type batch_norm_channels(const tn_type *x) {
  return (tn_type){tn_ops_accumulator(x->dtype), 1, {x->dims[1]}};
}

/* Marks all dimensions but the channels. */
static void batch_norm_mark_axes(const tn_type *x, bool *reduced) {
  for (int32_t i = 0; i < x->rank; i++) reduced[i] = i != 1;
}

static tn_status batch_norm_infer(tn_infer *n) {
  const tn_type *x = n->node.in[0];
  TN_TRY(batch_norm_check_x(n, x));
  tn_type channels = batch_norm_channels(x);
  n->node.out[0] = *x;
  n->node.out[1] = n->node.out[2] = channels;
  tn_status status = tn_ops_check_operand(n, "weight", n->node.in[1], &channels);
  return status != TN_OK ? status : tn_ops_check_operand(n, "bias", n->node.in[2], &channels);
}

static tn_status batch_norm_apply_infer(tn_infer *n) {
  static const char *const name[] = {"x", "mean", "variance", "weight", "bias"};
  const tn_type *x = n->node.in[0];
  tn_status status = batch_norm_check_x(n, x);
  if (status != TN_OK) return status;
  tn_type channels = batch_norm_channels(x);
  for (int32_t i = 1; i < 5 && status == TN_OK; i++)
    status = tn_ops_check_operand(n, name[i], n->node.in[i], &channels);
  n->node.out[0] = *x;
  return status;
}

/* ---- batch_norm ---- */

/* Replaces two sums of length C by their sums over ranks, in one collective. */
static void batch_norm_sum_over_ranks(tn_build *b, const tn_norm_attributes *a, tn_val *first,
                                      tn_val *second) {
  if (a->ranks == 1) return;
  int64_t channels = tn_val_dim(b, *first, 0);
  tn_val both = tn_all_reduce(b, tn_concat(b, 2, (tn_val[]){*first, *second}, 0), TN_REDUCTION_SUM);
  *first = tn_slice_axis(b, both, 0, 0, channels);
  *second = tn_slice_axis(b, both, 0, channels, 2 * channels);
}

/* Replaces the mean and variance of the own rank by those of all ranks, which have equally many elements:
 * the variance is the mean over ranks of variance + (own mean - mean)^2. One collective gathers the
 * statistics of all ranks: a sum of x and x squared would lose the digits that `moments` keeps. */
static void batch_norm_join_ranks(tn_build *b, const tn_norm_attributes *a, tn_val *mean, tn_val *variance) {
  if (a->ranks == 1) return;
  int64_t channels = tn_val_dim(b, *mean, 0);
  tn_val both = tn_concat(b, 2, (tn_val[]){*mean, *variance}, 0);
  tn_val all = tn_all_gather(b, tn_reshape(b, both, 2, (int64_t[]){1, 2 * channels}), a->ranks);
  tn_val means = tn_slice_axis(b, all, 1, 0, channels),
         variances = tn_slice_axis(b, all, 1, channels, 2 * channels);
  *mean = tn_reduce_mean(b, means, 1, (int64_t[]){0}, 0);
  tn_val apart = tn_sub(b, means, *mean), spread = tn_add(b, variances, tn_mul(b, apart, apart));
  *variance = tn_reduce_mean(b, spread, 1, (int64_t[]){0}, 0);
}

static tn_status batch_norm_decompose(tn_build *b, const void *attributes) {
  const tn_norm_attributes *a = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  bool reduced[TN_MAX_RANK];
  int64_t axes[TN_MAX_RANK];
  batch_norm_mark_axes(&x, reduced);
  int64_t n = tn_ops_marked(reduced, x.rank, axes);
  tn_val mean = tn_moments(b, tn_build_in(b, 0), n, axes), variance = tn_op_result(b, mean, 1);
  batch_norm_join_ranks(b, a, &mean, &variance);
  tn_build_yield(b, 0,
                 tn_batch_norm_apply(b, tn_build_in(b, 0), mean, variance, tn_build_in(b, 1),
                                     tn_build_in(b, 2), a->epsilon));
  tn_build_yield(b, 1, mean);
  tn_build_yield(b, 2, variance);
  return TN_OK;
}

/* Values of the gradient of batch_norm, in A. */
typedef struct batch_grad {
  tn_type x;
  int64_t count;           /* elements of a channel, over all ranks */
  tn_val mean, rstd;       /* [C] */
  tn_val sum, dot;         /* sum dy, sum dy (x - mean) rstd: [C]; 0 where y has no gradient */
  tn_val all_sum, all_dot; /* the same over all ranks */
} batch_grad;

static batch_grad batch_norm_grad_start(tn_build *b, const tn_norm_attributes *a) {
  batch_grad g = {.x = tn_ops_type(b, tn_build_in(b, 0)), .mean = tn_build_out(b, 1)};
  bool reduced[TN_MAX_RANK];
  int64_t axes[TN_MAX_RANK];
  batch_norm_mark_axes(&g.x, reduced);
  g.count = tn_ops_reduced_count(&g.x, reduced) * a->ranks;
  g.rstd = tn_rsqrt(b, tn_affine(b, tn_build_out(b, 2), 1, a->epsilon));
  if (tn_build_out_grad(b, 0) == 0) return g;
  int64_t n = tn_ops_marked(reduced, g.x.rank, axes);
  g.sum = tn_norm_grad_sums(b, tn_build_out_grad(b, 0), tn_build_in(b, 0), g.mean, g.rstd, n, axes);
  g.all_sum = g.sum;
  g.all_dot = g.dot = tn_op_result(b, g.sum, 1);
  if (tn_build_wants_grad(b, 0)) batch_norm_sum_over_ranks(b, a, &g.all_sum, &g.all_dot);
  return g;
}

/* The gradient of a statistic: the sum over the ranks, which all use the statistic. */
static tn_val batch_norm_statistic_grad(tn_build *b, const tn_norm_attributes *a, int32_t result) {
  tn_val d = tn_build_out_grad(b, result);
  return d == 0 || a->ranks == 1 ? d : tn_all_reduce(b, d, TN_REDUCTION_SUM);
}

/* dx = w rstd (dy - sum / n - (x - mean) rstd dot / n), written with one factor and one summand for
 * each channel: dx = p dy + q (x - mean) + r, where q and r include the gradients of variance and mean:
 * d variance / dx = 2 (x - mean) / n, d mean / dx = 1 / n. With several ranks, x affects every rank's y
 * through the statistics, so sum and dot are sums over ranks. The gradients of weight and bias, like those of
 * all parameters, are those of the own rank. */
static tn_val batch_norm_dx(tn_build *b, const tn_norm_attributes *a, const batch_grad *g) {
  tn_val dmean = batch_norm_statistic_grad(b, a, 1), dvariance = batch_norm_statistic_grad(b, a, 2),
         w = tn_build_in(b, 1);
  tn_val n = tn_scalar(b, tn_val_type(b, g->mean)->dtype, (double)g->count);
  tn_val q = dvariance == 0 ? 0 : tn_affine(b, dvariance, 2, 0), r = dmean, dx = 0;
  if (g->sum != 0) {
    tn_val p = w == 0 ? g->rstd : tn_mul(b, w, g->rstd);
    q = tn_ops_sum(b, q, tn_neg(b, tn_mul(b, tn_mul(b, p, g->rstd), g->all_dot)));
    r = tn_ops_sum(b, r, tn_neg(b, tn_mul(b, p, g->all_sum)));
    dx = tn_mul(b, tn_ops_channels(b, p, g->x.rank), tn_ops_wide(b, tn_build_out_grad(b, 0)));
  }
  if (q != 0) {
    tn_val centered = tn_sub(b, tn_ops_wide(b, tn_build_in(b, 0)), tn_ops_channels(b, g->mean, g->x.rank));
    dx = tn_ops_sum(b, dx, tn_mul(b, centered, tn_ops_channels(b, tn_div(b, q, n), g->x.rank)));
  }
  if (r != 0) dx = tn_ops_sum(b, dx, tn_ops_channels(b, tn_div(b, r, n), g->x.rank));
  return dx;
}

static tn_status batch_norm_grad(tn_build *b, const void *attributes) {
  batch_grad g = batch_norm_grad_start(b, attributes);
  if (tn_build_wants_grad(b, 0)) {
    tn_val dx = batch_norm_dx(b, attributes, &g);
    if (dx != 0) tn_build_yield(b, 0, tn_to_dtype(b, tn_broadcast(b, dx, g.x.rank, g.x.dims), g.x.dtype));
  }
  if (tn_build_wants_grad(b, 1) && g.dot != 0) tn_build_yield(b, 1, g.dot);
  if (tn_build_wants_grad(b, 2) && g.sum != 0) tn_build_yield(b, 2, g.sum);
  return TN_OK;
}

static const tn_option batch_norm_options[] = {
    TN_OPT(tn_norm_attributes, epsilon, TN_OPT_FLOAT, "1e-5", ">= 0", "added to the variance"),
    TN_OPT(tn_norm_attributes, ranks, TN_OPT_INT, "1", ">= 1", "over how many ranks the batch spans"),
    TN_OPT_END};
static const tn_option batch_norm_apply_options[] = {
    TN_OPT(tn_norm_attributes, epsilon, TN_OPT_FLOAT, "1e-5", ">= 0", "added to the variance"), TN_OPT_END};

/* 3 flops for each element in the reduction, 4 in the application. */
static void batch_norm_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, 7 * tn_ops_count(n->in[0]));
}

const tn_op tn_op_batch_norm = {
    .item = TN_ITEM(tn_op, TN_OP, "batch_norm",
                    "(x - mean) / sqrt(variance + epsilon) * weight + bias, by the "
                    "statistics of each channel over the batch; biased variance",
                    tn_norm_attributes, batch_norm_options),
    .schema = "(x:T, weight?:A, bias?:A) -> (y:T, mean:A, variance:A)" TN_OPS_FLOATS "; A in f32 f64",
    .op_class = TN_CLASS_NORM,
    .infer = batch_norm_infer,
    .decompose = batch_norm_decompose,
    .grad = batch_norm_grad,
    .cost = batch_norm_cost,
    .notes = "x is (N, C, ...), weight and bias are (C). `ranks` is tn_build_ranks(b) where the statistics "
             "span all ranks. S. Ioffe, C. Szegedy, \"Batch normalization\", ICML 2015.",
};

/* ---- batch_norm_apply ---- */

static tn_status batch_norm_apply_decompose(tn_build *b, const void *attributes) {
  const tn_norm_attributes *a = attributes;
  tn_type x = tn_ops_type(b, tn_build_in(b, 0));
  tn_val scale = tn_rsqrt(b, tn_affine(b, tn_build_in(b, 2), 1, a->epsilon));
  if (tn_build_in(b, 3) != 0) scale = tn_mul(b, scale, tn_build_in(b, 3));
  tn_val y = tn_sub(b, tn_ops_wide(b, tn_build_in(b, 0)), tn_ops_channels(b, tn_build_in(b, 1), x.rank));
  y = tn_mul(b, y, tn_ops_channels(b, scale, x.rank));
  if (tn_build_in(b, 4) != 0) y = tn_add(b, y, tn_ops_channels(b, tn_build_in(b, 4), x.rank));
  tn_build_yield(b, 0, tn_to_dtype(b, y, x.dtype));
  return TN_OK;
}

static void batch_norm_apply_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, (n->in[4] != NULL ? 3 : 2) * tn_ops_count(n->in[0]));
}

/* Its gradient is that of its decomposition. */
const tn_op tn_op_batch_norm_apply = {
    .item = TN_ITEM(tn_op, TN_OP, "batch_norm_apply", "batch_norm by given statistics", tn_norm_attributes,
                    batch_norm_apply_options),
    .schema = "(x:T, mean:A, variance:A, weight?:A, bias?:A) -> (y:T)" TN_OPS_FLOATS "; A in f32 f64",
    .op_class = TN_CLASS_NORM,
    .infer = batch_norm_apply_infer,
    .decompose = batch_norm_apply_decompose,
    .cost = batch_norm_apply_cost,
};

/* ---- layer_norm ---- */

/* The types of values with one element for each row, and for each position in a row. */
static void layer_norm_parts(const tn_type *x, int64_t trailing, tn_type *rows, tn_type *row) {
  int32_t lead = x->rank - (int32_t)trailing;
  *rows = (tn_type){tn_ops_accumulator(x->dtype), lead, {0}};
  *row = (tn_type){rows->dtype, (int32_t)trailing, {0}};
  for (int32_t i = 0; i < lead; i++) rows->dims[i] = x->dims[i];
  for (int32_t i = 0; i < row->rank; i++) row->dims[i] = x->dims[lead + i];
}

static tn_status layer_norm_infer(tn_infer *n) {
  const tn_norm_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0];
  if (a->trailing > x->rank)
    return tn_fail(n, TN_EINVAL, "trailing", "trailing is %lld, but x is %s of rank %d",
                   (long long)a->trailing, tn_ops_text(x).v, (int)x->rank);
  tn_type rows, row;
  layer_norm_parts(x, a->trailing, &rows, &row);
  n->node.out[0] = *x;
  n->node.out[1] = n->node.out[2] = rows;
  tn_status status = tn_ops_check_operand(n, "weight", n->node.in[1], &row);
  return status != TN_OK ? status : tn_ops_check_operand(n, "bias", n->node.in[2], &row);
}

static void layer_norm_mark_axes(const tn_type *x, int64_t trailing, bool *reduced) {
  for (int32_t i = 0; i < x->rank; i++) reduced[i] = i >= x->rank - trailing;
}

/* v without the reduced dimensions, which are 1. */
static tn_val layer_norm_drop_axes(tn_build *b, tn_val v, const tn_type *x, const bool *reduced) {
  tn_type rows = tn_ops_reduced(x, reduced, false);
  return tn_reshape(b, v, rows.rank, rows.dims);
}

static tn_status layer_norm_decompose(tn_build *b, const void *attributes) {
  const tn_norm_attributes *a = attributes;
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0));
  tn_type type = tn_ops_type(b, tn_build_in(b, 0));
  bool reduced[TN_MAX_RANK];
  layer_norm_mark_axes(&type, a->trailing, reduced);
  tn_val mean = tn_ops_reduce(b, "reduce_mean", x, reduced);
  tn_val centered = tn_sub(b, x, mean);
  tn_val variance = tn_ops_reduce(b, "reduce_mean", tn_mul(b, centered, centered), reduced);
  tn_val rstd = tn_rsqrt(b, tn_affine(b, variance, 1, a->epsilon));
  tn_val y = tn_mul(b, centered, rstd);
  if (tn_build_in(b, 1) != 0) y = tn_mul(b, y, tn_build_in(b, 1));
  if (tn_build_in(b, 2) != 0) y = tn_add(b, y, tn_build_in(b, 2));
  tn_build_yield(b, 0, tn_to_dtype(b, y, type.dtype));
  tn_build_yield(b, 1, layer_norm_drop_axes(b, mean, &type, reduced));
  tn_build_yield(b, 2, layer_norm_drop_axes(b, rstd, &type, reduced));
  return TN_OK;
}

/* Values of the gradient of layer_norm; weight, dy, dmean and drstd may be 0. */
typedef struct layer_grad {
  tn_type x;
  bool reduced[TN_MAX_RANK];
  tn_val normal, rstd; /* (x - mean) rstd; rstd with the trailing dimensions as 1 */
  tn_val weight, dy, dmean, drstd;
} layer_grad;

static layer_grad layer_norm_grad_start(tn_build *b, const tn_norm_attributes *a, tn_val x, tn_val mean,
                                        tn_val rstd) {
  layer_grad g = {.x = tn_ops_type(b, x)};
  layer_norm_mark_axes(&g.x, a->trailing, g.reduced);
  g.rstd = tn_ops_keep(b, rstd, &g.x, g.reduced);
  g.normal = tn_mul(b, tn_sub(b, tn_ops_wide(b, x), tn_ops_keep(b, mean, &g.x, g.reduced)), g.rstd);
  return g;
}

/* dx = rstd (g - mean(g) - normal mean(g normal)) with g = dy weight and normal = (x - mean) rstd. The
 * gradients of mean and rstd add dmean / n and drstd (-rstd^2 normal / n). */
static tn_val layer_norm_dx(tn_build *b, const layer_grad *l) {
  const tn_type *x = &l->x;
  tn_val dmean = tn_ops_keep(b, l->dmean, x, l->reduced), drstd = tn_ops_keep(b, l->drstd, x, l->reduced);
  tn_val n = tn_scalar(b, tn_val_type(b, l->rstd)->dtype, (double)tn_ops_reduced_count(x, l->reduced)),
         dx = 0;
  if (l->dy != 0) {
    tn_val g = tn_ops_wide(b, l->dy);
    if (l->weight != 0) g = tn_mul(b, g, l->weight);
    tn_val along = tn_ops_reduce(b, "reduce_mean", tn_mul(b, g, l->normal), l->reduced);
    dx = tn_sub(b, tn_sub(b, g, tn_ops_reduce(b, "reduce_mean", g, l->reduced)), tn_mul(b, l->normal, along));
    dx = tn_mul(b, dx, l->rstd);
  }
  if (dmean != 0) dx = tn_ops_sum(b, dx, tn_div(b, dmean, n));
  if (drstd != 0) {
    tn_val slope = tn_div(b, tn_mul(b, drstd, tn_neg(b, tn_mul(b, l->rstd, l->rstd))), n);
    dx = tn_ops_sum(b, dx, tn_mul(b, slope, l->normal));
  }
  return dx == 0 ? 0 : tn_to_dtype(b, tn_broadcast(b, dx, x->rank, x->dims), x->dtype);
}

/* layer_norm_grad covers gradients of y only. */
static void layer_norm_emit_grad(tn_build *b, const tn_norm_attributes *a) {
  tn_val dx = tn_layer_norm_grad(b, tn_build_out_grad(b, 0), tn_build_in(b, 0), tn_build_out(b, 1),
                                 tn_build_out(b, 2), tn_build_in(b, 1), a->trailing);
  for (int32_t i = 0; i < 3; i++)
    if (tn_build_wants_grad(b, i)) tn_build_yield(b, i, tn_op_result(b, dx, i));
}

static tn_status layer_norm_grad_rule(tn_build *b, const void *attributes) {
  if (tn_build_out_grad(b, 0) != 0 && tn_build_out_grad(b, 1) == 0 && tn_build_out_grad(b, 2) == 0) {
    layer_norm_emit_grad(b, attributes);
    return TN_OK;
  }
  layer_grad l =
      layer_norm_grad_start(b, attributes, tn_build_in(b, 0), tn_build_out(b, 1), tn_build_out(b, 2));
  l.weight = tn_build_in(b, 1);
  l.dy = tn_build_out_grad(b, 0);
  l.dmean = tn_build_out_grad(b, 1);
  l.drstd = tn_build_out_grad(b, 2);
  if (tn_build_wants_grad(b, 0)) {
    tn_val dx = layer_norm_dx(b, &l);
    if (dx != 0) tn_build_yield(b, 0, dx);
  }
  if (l.dy == 0) return TN_OK;
  if (tn_build_wants_grad(b, 1)) tn_ops_yield_to(b, 1, tn_mul(b, tn_ops_wide(b, l.dy), l.normal));
  if (tn_build_wants_grad(b, 2)) tn_ops_yield_to(b, 2, tn_ops_wide(b, l.dy));
  return TN_OK;
}

/* ---- layer_norm_grad ---- */

static tn_status layer_norm_grad_infer(tn_infer *n) {
  const tn_norm_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[1];
  if (a->trailing > x->rank)
    return tn_fail(n, TN_EINVAL, "trailing", "trailing is %lld, but x is %s of rank %d",
                   (long long)a->trailing, tn_ops_text(x).v, (int)x->rank);
  tn_type rows, row;
  layer_norm_parts(x, a->trailing, &rows, &row);
  tn_status status = tn_ops_check_dims_of(n, "dy", n->node.in[0], x);
  if (status == TN_OK) status = tn_ops_check_operand(n, "mean", n->node.in[2], &rows);
  if (status == TN_OK) status = tn_ops_check_operand(n, "rstd", n->node.in[3], &rows);
  if (status == TN_OK) status = tn_ops_check_operand(n, "weight", n->node.in[4], &row);
  n->node.out[0] = *x;
  n->node.out[1] = n->node.out[2] = row;
  return status;
}

/* The sums of a value over all leading dimensions. */
static tn_val layer_norm_sum_rows(tn_build *b, tn_val v, const layer_grad *l) {
  bool leading[TN_MAX_RANK];
  for (int32_t i = 0; i < l->x.rank; i++) leading[i] = !l->reduced[i];
  return layer_norm_drop_axes(b, tn_ops_reduce(b, "reduce_sum", v, leading), &l->x, leading);
}

static tn_status layer_norm_grad_decompose(tn_build *b, const void *attributes) {
  layer_grad l =
      layer_norm_grad_start(b, attributes, tn_build_in(b, 1), tn_build_in(b, 2), tn_build_in(b, 3));
  l.weight = tn_build_in(b, 4);
  l.dy = tn_build_in(b, 0);
  tn_build_yield(b, 0, layer_norm_dx(b, &l));
  tn_build_yield(b, 1, layer_norm_sum_rows(b, tn_mul(b, tn_ops_wide(b, l.dy), l.normal), &l));
  tn_build_yield(b, 2, layer_norm_sum_rows(b, tn_ops_wide(b, l.dy), &l));
  return TN_OK;
}

/* The recomputed `normal`, two sums along rows, two sums over rows, and dx. */
static void layer_norm_grad_cost(const tn_node *n, tn_cost *cost) {
  tn_ops_cost(n, cost, (11 + (n->in[4] != NULL)) * tn_ops_count(n->in[1]));
}

/* Two means, a centering, a square, a product by rstd, and one flop each for weight and bias. */
static void layer_norm_cost(const tn_node *n, tn_cost *cost) {
  int32_t flops = 5 + (n->in[1] != NULL) + (n->in[2] != NULL);
  tn_ops_cost(n, cost, flops * tn_ops_count(n->in[0]));
}

static const tn_option layer_norm_options[] = {
    TN_OPT(tn_norm_attributes, epsilon, TN_OPT_FLOAT, "1e-5", ">= 0", "added to the variance"),
    TN_OPT(tn_norm_attributes, trailing, TN_OPT_INT, "1", ">= 1",
           "how many trailing dimensions are normalized"),
    TN_OPT_END};

const tn_op tn_op_layer_norm = {
    .item = TN_ITEM(tn_op, TN_OP, "layer_norm",
                    "(x - mean) rstd weight + bias over trailing dimensions, with "
                    "rstd = 1 / sqrt(biased variance + epsilon)",
                    tn_norm_attributes, layer_norm_options),
    .schema = "(x:T, weight?:A, bias?:A) -> (y:T, mean:A, rstd:A)" TN_OPS_FLOATS "; A in f32 f64",
    .op_class = TN_CLASS_NORM,
    .infer = layer_norm_infer,
    .decompose = layer_norm_decompose,
    .grad = layer_norm_grad_rule,
    .cost = layer_norm_cost,
    .notes = "J. Ba, J. Kiros, G. Hinton, \"Layer normalization\", 2016.",
};

static const tn_option layer_norm_grad_options[] = {TN_OPT(tn_norm_attributes, trailing, TN_OPT_INT, "1",
                                                           ">= 1",
                                                           "how many trailing dimensions are normalized"),
                                                    TN_OPT_END};

const tn_op tn_op_layer_norm_grad = {
    .item = TN_ITEM(tn_op, TN_OP, "layer_norm_grad", "gradient of layer_norm's first result",
                    tn_norm_attributes, layer_norm_grad_options),
    .schema =
        "(dy:T, x:T, mean:A, rstd:A, weight?:A) -> (dx:T, dweight:A, dbias:A)" TN_OPS_FLOATS "; A in f32 f64",
    .op_class = TN_CLASS_NORM,
    .infer = layer_norm_grad_infer,
    .decompose = layer_norm_grad_decompose,
    .cost = layer_norm_grad_cost,
};
