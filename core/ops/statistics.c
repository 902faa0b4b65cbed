/* core/ops/statistics.c: composites of reductions, with the names and semantics of PyTorch: spreads, norms,
 * distances. f16 and bf16 are computed in f32. */
#include <math.h>

#include "core/ops/statistics.h"

/* ---- axes that are reduced ---- */

tn_status tn_statistic_begin(tn_build *b, const tn_reduce_attributes *a, tn_statistic *s) {
  s->x = tn_ops_type(b, tn_build_in(b, 0));
  s->keep = a->keep;
  TN_TRY(tn_ops_check_axes(b, &a->axes, s->x.rank, s->reduced));
  s->count = (double)tn_ops_reduced_count(&s->x, s->reduced);
  return TN_OK;
}

tn_status tn_statistic_along(tn_build *b, int64_t axis, tn_statistic *s) {
  *s = (tn_statistic){.x = tn_ops_type(b, tn_build_in(b, 0)), .keep = 1};
  TN_TRY(tn_ops_axis_of_x(b, axis, &s->axis));
  s->reduced[s->axis] = true;
  s->count = (double)s->x.dims[s->axis];
  return TN_OK;
}

tn_status tn_statistic_yield(tn_build *b, const tn_statistic *s, tn_val y, int32_t dtype) {
  tn_type type = tn_ops_reduced(&s->x, s->reduced, s->keep);
  tn_build_yield(b, 0, tn_to_dtype(b, tn_reshape(b, y, type.rank, type.dims), dtype));
  return TN_OK;
}

void tn_statistic_cost(const tn_node *n, tn_cost *cost) { tn_ops_cost(n, cost, 4 * tn_ops_count(n->in[0])); }

/* 0 where v is 0, and so is the gradient there. */
static tn_val statistic_root(tn_build *b, tn_val v) {
  tn_val zero = tn_ops_zero(b, v), is_zero = tn_eq(b, v, zero);
  return tn_where(b, is_zero, zero, tn_sqrt(b, tn_where(b, is_zero, tn_ops_number(b, v, 1), v)));
}

#define STATISTIC_AXES                                                                                       \
  TN_OPT(tn_reduce_attributes, axes, TN_OPT_INTS, "[]", NULL,                                                \
         "dimensions to reduce, -rank .. rank-1; none: all"),                                                \
      TN_OPT(tn_reduce_attributes, keep, TN_OPT_FLAG, "no", NULL, "keep reduced dimensions as 1")

static const tn_option statistic_options[] = {STATISTIC_AXES, TN_OPT_END};

/* ---- var, std ---- */

typedef struct spread_options {
  tn_reduce_attributes over;
  double correction;
} spread_options;

/* `moments` keeps the digits of the variance however far the mean is from 0. */
static tn_status statistic_spread(tn_build *b, const spread_options *o, bool root) {
  tn_statistic s;
  TN_TRY(tn_statistic_begin(b, &o->over, &s));
  int64_t axes[TN_MAX_RANK], n = tn_ops_marked(s.reduced, s.x.rank, axes);
  tn_val m = tn_moments(b, tn_build_in(b, 0), n, axes), v = tn_op_result(b, m, 1);
  int32_t dtype = tn_val_type(b, v)->dtype;
  double divisor = fmax(s.count - o->correction, 0);
  if (o->correction != 0) v = tn_div(b, tn_affine(b, v, s.count, 0), tn_scalar(b, dtype, divisor));
  return tn_statistic_yield(b, &s, root ? statistic_root(b, v) : v, s.x.dtype);
}

static tn_status var_decompose(tn_build *b, const void *attributes) {
  return statistic_spread(b, attributes, false);
}
static tn_status std_decompose(tn_build *b, const void *attributes) {
  return statistic_spread(b, attributes, true);
}

static const tn_option spread_rows[] = {
    STATISTIC_AXES,
    TN_OPT(spread_options, correction, TN_OPT_FLOAT, "1", NULL, "subtracted from the number of elements"),
    TN_OPT_END};

#define STATISTIC_FLOATS "(x:T) -> (y:T)" TN_OPS_FLOATS
TN_STATISTIC_OP(var, "variance, of a sample", spread_options, spread_rows, STATISTIC_FLOATS);
TN_STATISTIC_OP(std, "standard deviation, of a sample", spread_options, spread_rows, STATISTIC_FLOATS);

/* ---- norm ---- */

typedef struct norm_options {
  tn_reduce_attributes over;
  double p;
} norm_options;

/* v^p for v >= 0. Below 1 the slope at 0 is infinite; it counts as 0. */
static tn_val statistic_power(tn_build *b, tn_val v, double p) {
  tn_val power = tn_ops_number(b, v, p), zero = tn_ops_zero(b, v);
  if (p < 0 || p >= 1) return tn_pow(b, v, power);
  tn_val is_zero = tn_eq(b, v, zero);
  return tn_where(b, is_zero, zero, tn_pow(b, tn_where(b, is_zero, tn_ops_number(b, v, 1), v), power));
}

/* The p-norm of v over axes that become 1. */
static tn_val statistic_norm(tn_build *b, const tn_statistic *s, tn_val v, double p) {
  int32_t dtype = tn_val_type(b, v)->dtype;
  tn_val zero = tn_ops_zero(b, v);
  if (p == 0) return tn_ops_reduce(b, "reduce_sum", tn_to_dtype(b, tn_ne(b, v, zero), dtype), s->reduced);
  if (p == 2) return statistic_root(b, tn_ops_reduce(b, "reduce_sum", tn_mul(b, v, v), s->reduced));
  v = tn_abs(b, v);
  if (p == 1) return tn_ops_reduce(b, "reduce_sum", v, s->reduced);
  if (p == INFINITY) return tn_ops_reduce(b, "reduce_max", v, s->reduced);
  if (p == -INFINITY) return tn_neg(b, tn_ops_reduce(b, "reduce_max", tn_neg(b, v), s->reduced));
  tn_val sum = tn_ops_reduce(b, "reduce_sum", statistic_power(b, v, p), s->reduced),
         is_zero = tn_eq(b, sum, zero);
  tn_val root = tn_pow(b, tn_where(b, is_zero, tn_scalar(b, dtype, 1), sum), tn_scalar(b, dtype, 1 / p));
  return tn_where(b, is_zero, zero, root);
}

static tn_status norm_decompose(tn_build *b, const void *attributes) {
  const norm_options *o = attributes;
  tn_statistic s;
  TN_TRY(tn_statistic_begin(b, &o->over, &s));
  return tn_statistic_yield(b, &s, statistic_norm(b, &s, tn_ops_wide(b, tn_build_in(b, 0)), o->p), s.x.dtype);
}

typedef struct distance_options {
  double p;
  int64_t axis;
  double epsilon;
  int32_t keep;
} distance_options;

static tn_val statistic_at_least(tn_build *b, tn_val v, double least) {
  return tn_maximum(b, v, tn_ops_number(b, v, least));
}

static tn_status normalize_decompose(tn_build *b, const void *attributes) {
  const distance_options *o = attributes;
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0));
  tn_statistic s;
  TN_TRY(tn_statistic_along(b, o->axis, &s));
  tn_val y = tn_div(b, x, statistic_at_least(b, statistic_norm(b, &s, x, o->p), o->epsilon));
  tn_build_yield(b, 0, tn_to_dtype(b, y, s.x.dtype));
  return TN_OK;
}

#define STATISTIC_P(S)                                                                                       \
  TN_OPT(S, p, TN_OPT_FLOAT, "2", NULL,                                                                      \
         "the root of the sum of |x|^p; inf: the largest |x|; 0: how many are not 0")

static const tn_option norm_rows[] = {STATISTIC_P(norm_options), STATISTIC_AXES, TN_OPT_END};
static const tn_option normalize_rows[] = {
    STATISTIC_P(distance_options),
    TN_OPT(distance_options, axis, TN_OPT_INT, "1", NULL, "dimension of the vectors, -rank .. rank-1"),
    TN_OPT(distance_options, epsilon, TN_OPT_FLOAT, "1e-12", "> 0", "least divisor"), TN_OPT_END};

TN_STATISTIC_OP(norm, "p-norm", norm_options, norm_rows, STATISTIC_FLOATS,
                .notes = "The gradient is 0 where the norm is 0.");
TN_STATISTIC_OP(normalize, "x divided by its norm along an axis", distance_options, normalize_rows,
                STATISTIC_FLOATS);

/* ---- logsumexp, prod, any, all ---- */

/* Relative to the largest element, so that nothing overflows; an infinite one is no reference. */
static tn_status logsumexp_decompose(tn_build *b, const void *attributes) {
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0));
  tn_statistic s;
  TN_TRY(tn_statistic_begin(b, attributes, &s));
  if (s.count == 0) { /* the logarithm of 0 */
    tn_type y = tn_ops_reduced(&s.x, s.reduced, 1);
    return tn_statistic_yield(b, &s, tn_broadcast(b, tn_ops_number(b, x, -INFINITY), y.rank, y.dims),
                              s.x.dtype);
  }
  tn_val top = tn_ops_reduce(b, "reduce_max", x, s.reduced);
  top = tn_where(b, tn_is_finite(b, top), top, tn_ops_zero(b, x));
  tn_val sum = tn_ops_reduce(b, "reduce_sum", tn_exp(b, tn_sub(b, x, top)), s.reduced);
  return tn_statistic_yield(b, &s, tn_add(b, tn_log(b, sum), top), s.x.dtype);
}

static tn_status logsumexp_grad(tn_build *b, const void *attributes) {
  tn_val x = tn_build_in(b, 0);
  tn_statistic s;
  TN_TRY(tn_statistic_begin(b, attributes, &s));
  tn_val y = tn_ops_keep(b, tn_build_out(b, 0), &s.x, s.reduced),
         dy = tn_ops_keep(b, tn_build_out_grad(b, 0), &s.x, s.reduced);
  tn_val share = tn_exp(b, tn_sub(b, tn_ops_wide(b, x), tn_ops_wide(b, y)));
  tn_build_yield(b, 0, tn_to_dtype(b, tn_mul(b, tn_ops_wide(b, dy), share), s.x.dtype));
  return TN_OK;
}

/* The last of the running products of the reduced elements, brought to the last dimension. */
static tn_status prod_decompose(tn_build *b, const void *attributes) {
  tn_statistic s;
  TN_TRY(tn_statistic_begin(b, attributes, &s));
  int64_t order[TN_MAX_RANK], n = 0, count = (int64_t)s.count;
  for (int32_t i = 0; i < s.x.rank; i++)
    if (!s.reduced[i]) order[n++] = i;
  for (int32_t i = 0; i < s.x.rank; i++)
    if (s.reduced[i]) order[n++] = i;
  tn_type kept = tn_ops_reduced(&s.x, s.reduced, false);
  if (count == 0) return tn_statistic_yield(b, &s, tn_full(b, &kept, 1), s.x.dtype);
  const int64_t rows[] = {tn_type_count(&kept), count};
  tn_val x = tn_reshape(b, tn_transpose(b, tn_build_in(b, 0), n, order), 2, rows);
  tn_val y = tn_cumulative(b, x, 1, TN_CUMULATIVE_PROD, 0, 0);
  return tn_statistic_yield(b, &s, tn_slice_axis(b, y, 1, count - 1, count), s.x.dtype);
}

/* Whether an element, or every one, is not 0. */
static tn_status statistic_truth(tn_build *b, const tn_reduce_attributes *a, bool all) {
  tn_val x = tn_build_in(b, 0);
  tn_statistic s;
  TN_TRY(tn_statistic_begin(b, a, &s));
  if (s.x.dtype != TN_BOOL) x = tn_ne(b, x, tn_ops_zero(b, x));
  tn_val counted = tn_to_dtype(b, all ? tn_not(b, x) : x, TN_F32);
  tn_val some = tn_gt(b, tn_ops_reduce(b, "reduce_sum", counted, s.reduced), tn_scalar(b, TN_F32, 0));
  return tn_statistic_yield(b, &s, all ? tn_not(b, some) : some, TN_BOOL);
}

static tn_status any_decompose(tn_build *b, const void *attributes) {
  return statistic_truth(b, attributes, false);
}
static tn_status all_decompose(tn_build *b, const void *attributes) {
  return statistic_truth(b, attributes, true);
}

#define STATISTIC_TRUTH "(x:T) -> (y:bool); T in bool u8 i8 i32 i64 f16 bf16 f32 f64"
TN_STATISTIC_OP(logsumexp, "logarithm of the sum of the exponentials", tn_reduce_attributes,
                statistic_options, STATISTIC_FLOATS, .grad = logsumexp_grad);
TN_STATISTIC_OP(prod, "product; 1 over nothing", tn_reduce_attributes, statistic_options,
                "(x:T) -> (y:any)" TN_OPS_SUMS);
TN_STATISTIC_OP(any, "whether an element is not 0", tn_reduce_attributes, statistic_options, STATISTIC_TRUTH,
                .flags = TN_OP_NONDIFF);
TN_STATISTIC_OP(all, "whether no element is 0", tn_reduce_attributes, statistic_options, STATISTIC_TRUTH,
                .flags = TN_OP_NONDIFF);

/* ---- distances ---- */

static tn_status cosine_similarity_decompose(tn_build *b, const void *attributes) {
  const distance_options *o = attributes;
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0)), y = tn_ops_wide(b, tn_build_in(b, 1));
  tn_val dot = tn_mul(b, x, y);
  tn_type type = tn_ops_type(b, dot);
  bool reduced[TN_MAX_RANK] = {false};
  int32_t axis;
  TN_TRY(tn_ops_check_axis(b, o->axis, type.rank, &axis));
  reduced[axis] = true;
  tn_type kept = tn_ops_reduced(&type, reduced, false);
  tn_val norm[] = {tn_broadcast(b, x, type.rank, type.dims), tn_broadcast(b, y, type.rank, type.dims)};
  for (int32_t i = 0; i < 2; i++)
    norm[i] = statistic_at_least(
        b, statistic_root(b, tn_ops_reduce(b, "reduce_sum", tn_mul(b, norm[i], norm[i]), reduced)),
        o->epsilon);
  tn_val similarity = tn_div(b, tn_ops_reduce(b, "reduce_sum", dot, reduced), tn_mul(b, norm[0], norm[1]));
  similarity = tn_reshape(b, similarity, kept.rank, kept.dims);
  tn_build_yield(b, 0, tn_to_dtype(b, similarity, tn_val_type(b, tn_build_in(b, 0))->dtype));
  return TN_OK;
}

/* The p-norm of v along the last dimension. */
static tn_val statistic_distance(tn_build *b, tn_val v, double p, int32_t keep, int32_t dtype) {
  tn_statistic s = {.x = tn_ops_type(b, v)};
  if (s.x.rank == 0) return 0;
  s.reduced[s.x.rank - 1] = true;
  tn_type type = tn_ops_reduced(&s.x, s.reduced, keep);
  return tn_to_dtype(b, tn_reshape(b, statistic_norm(b, &s, v, p), type.rank, type.dims), dtype);
}

static tn_status pairwise_distance_decompose(tn_build *b, const void *attributes) {
  const distance_options *o = attributes;
  tn_val x = tn_ops_wide(b, tn_build_in(b, 0)), y = tn_ops_wide(b, tn_build_in(b, 1));
  tn_val v = tn_affine(b, tn_sub(b, x, y), 1, o->epsilon);
  if (tn_val_type(b, v)->rank == 0) return tn_fail(b, TN_EINVAL, NULL, "x is a scalar, expected vectors");
  int32_t dtype = tn_val_type(b, tn_build_in(b, 0))->dtype;
  tn_build_yield(b, 0, statistic_distance(b, v, o->p, o->keep, dtype));
  return TN_OK;
}

/* (..., rows, 1, width) - (..., 1, columns, width) */
static tn_status cdist_decompose(tn_build *b, const void *attributes) {
  const distance_options *o = attributes;
  tn_val v[2];
  int32_t dtype = tn_val_type(b, tn_build_in(b, 0))->dtype;
  for (int32_t i = 0; i < 2; i++) {
    tn_type t = tn_ops_type(b, tn_build_in(b, i));
    if (t.rank < 2 || t.rank >= TN_MAX_RANK)
      return tn_fail(b, TN_EINVAL, NULL, "an operand is %s, expected rows of vectors", tn_ops_text(&t).v);
    const int64_t width = t.dims[t.rank - 1], rows = t.dims[t.rank - 2];
    t.dims[t.rank - 2] = i == 0 ? rows : 1;
    t.dims[t.rank - 1] = i == 0 ? 1 : rows;
    t.dims[t.rank] = width;
    v[i] = tn_reshape(b, tn_ops_wide(b, tn_build_in(b, i)), t.rank + 1, t.dims);
  }
  tn_build_yield(b, 0, statistic_distance(b, tn_sub(b, v[0], v[1]), o->p, 0, dtype));
  return TN_OK;
}

static const tn_option cosine_rows[] = {
    TN_OPT(distance_options, axis, TN_OPT_INT, "1", NULL, "dimension of the vectors, -rank .. rank-1"),
    TN_OPT(distance_options, epsilon, TN_OPT_FLOAT, "1e-8", "> 0", "least norm"), TN_OPT_END};
static const tn_option pairwise_rows[] = {
    STATISTIC_P(distance_options),
    TN_OPT(distance_options, epsilon, TN_OPT_FLOAT, "1e-6", NULL, "added to every difference"),
    TN_OPT(distance_options, keep, TN_OPT_FLAG, "no", NULL, "keep the dimension as 1"), TN_OPT_END};
static const tn_option cdist_rows[] = {STATISTIC_P(distance_options), TN_OPT_END};

#define DISTANCE_OP(name, doc, rows)                                                                         \
  TN_STATISTIC_OP(name, doc, distance_options, rows, "(x:T, y:T) -> (z:T)" TN_OPS_FLOATS)
DISTANCE_OP(cosine_similarity, "cosine of the angle of vectors along an axis", cosine_rows);
DISTANCE_OP(pairwise_distance, "p-norm of x - y along the last dimension", pairwise_rows);
DISTANCE_OP(cdist, "p-norm of the difference of every row of x and every row of y", cdist_rows);
