/* core/ops/attention.c: scaled dot-product attention (Vaswani et al., "Attention is all you need", NeurIPS
 * 2017) over (batch, heads, tokens, width). The second result is the log-sum-exp of each query, from which
 * the gradient recomputes the probabilities (Dao et al., "FlashAttention", NeurIPS 2022). With `heads` the
 * operands are (batch, tokens, heads * width), the results of linear layers; the decomposition transposes
 * them if no kernel reads that form. Scores, their gradients' row terms, and the softmax are in f32 (f64 for
 * f64), products with probabilities in T. */
#include <math.h>

#include "core/ops/attention.h"

/* ---- shapes ---- */

tn_type tn_attention_split(const tn_attention_attributes *a, const tn_type *x) {
  tn_type type = *x;
  if (a->heads == 0) return type;
  type.rank = 4;
  type.dims[1] = a->heads;
  type.dims[2] = x->dims[1];
  type.dims[3] = x->dims[2] / a->heads;
  return type;
}

static tn_status attention_check_operand(tn_infer *n, const char *name, const tn_type *x) {
  const tn_attention_attributes *a = n->node.attributes;
  if (a->heads == 0) return tn_ops_check_rank(n, name, x, 4, "batch, heads, tokens, width");
  tn_status status = tn_ops_check_rank(n, name, x, 3, "batch, tokens, heads * width");
  if (status != TN_OK || x->dims[2] % a->heads == 0) return status;
  return tn_fail(n, TN_EINVAL, "heads", "%lld does not divide the width of %s, which is %s",
                 (long long)a->heads, name, tn_ops_text(x).v);
}

static tn_status attention_check_shapes(tn_infer *n) {
  static const char *const name[] = {"q", "k", "v"};
  const tn_attention_attributes *a = n->node.attributes;
  const tn_type *q = n->node.in[0], *k = n->node.in[1], *v = n->node.in[2];
  tn_status status = TN_OK;
  for (int32_t i = 0; i < 3 && status == TN_OK; i++)
    status = attention_check_operand(n, name[i], n->node.in[i]);
  if (status != TN_OK) return status;
  int32_t tokens = a->heads == 0 ? 2 : 1;
  tn_type keys = *q, values = *q;
  keys.dims[tokens] = values.dims[tokens] = k->dims[tokens];
  values.dims[q->rank - 1] = v->dims[q->rank - 1];
  status = tn_ops_check_dims_of(n, "k", k, &keys);
  return status != TN_OK ? status : tn_ops_check_dims_of(n, "v", v, &values);
}

static tn_status attention_infer(tn_infer *n) {
  const tn_attention_attributes *a = n->node.attributes;
  const tn_type *q = n->node.in[0], *k = n->node.in[1], *v = n->node.in[2];
  TN_TRY(attention_check_shapes(n));
  tn_type heads = tn_attention_split(a, q), keys = tn_attention_split(a, k);
  int64_t first_sees = a->causal ? keys.dims[2] - heads.dims[2] + 1 : keys.dims[2];
  if (first_sees < 1 && heads.dims[2] > 0)
    return tn_fail(n, TN_EINVAL, NULL, "q is %s and k is %s%s: the first query would see no key",
                   tn_ops_text(q).v, tn_ops_text(k).v, a->causal ? ", causal" : "");
  if (a->scale == 0 && heads.dims[3] == 0)
    return tn_fail(n, TN_EINVAL, "scale", "scale is 1 / sqrt(head width) unless given, but q is %s",
                   tn_ops_text(q).v);
  n->node.out[0] = *q;
  n->node.out[0].dims[q->rank - 1] = v->dims[q->rank - 1];
  n->node.out[1] = heads;
  n->node.out[1].rank = 3;
  n->node.out[1].dims[3] = 0;
  n->node.out[1].dtype = tn_ops_accumulator(q->dtype);
  tn_status status = tn_ops_check_count(n, &n->node.out[0]);
  return status != TN_OK ? status : tn_ops_check_count(n, &n->node.out[1]);
}

/* ---- emitting ---- */

tn_val tn_attention_to_heads(tn_build *b, const tn_attention_attributes *a, tn_val x) {
  tn_type type = tn_ops_type(b, x), heads = tn_attention_split(a, &type);
  if (a->heads == 0) return x;
  tn_val apart = tn_reshape(b, x, 4, (int64_t[]){heads.dims[0], heads.dims[2], a->heads, heads.dims[3]});
  return tn_transpose(b, apart, 4, (int64_t[]){0, 2, 1, 3});
}

tn_val tn_attention_from_heads(tn_build *b, const tn_attention_attributes *a, tn_val x) {
  tn_type t = tn_ops_type(b, x);
  if (a->heads == 0) return x;
  tn_val tokens = tn_transpose(b, x, 4, (int64_t[]){0, 2, 1, 3});
  return tn_reshape(b, tokens, 3, (int64_t[]){t.dims[0], t.dims[2], a->heads * t.dims[3]});
}

static double attention_scale_of(tn_build *b, const tn_attention_attributes *a, tn_val q) {
  return a->scale != 0 ? a->scale : 1 / sqrt((double)tn_val_dim(b, q, 3));
}

static tn_val attention_product(tn_build *b, const tn_attention_attributes *a, tn_val x, tn_val y,
                                int32_t transpose_x, int32_t transpose_y) {
  return tn_matmul(b, x, y, 0, transpose_x, transpose_y, a->math);
}

/* Scores rounded to T would make every exponential inexact. */
tn_val tn_attention_scores(tn_build *b, const tn_attention_attributes *a, tn_val q, tn_val k) {
  tn_val s = attention_product(b, a, tn_ops_wide(b, q), tn_ops_wide(b, k), 0, 1);
  return tn_affine(b, s, attention_scale_of(b, a, q), 0);
}

/* s where a query sees a key, else `hidden`. */
static tn_val attention_mask(tn_build *b, const tn_attention_attributes *a, tn_val s, double hidden) {
  if (!a->causal) return s;
  int64_t queries = tn_val_dim(b, s, 2), keys = tn_val_dim(b, s, 3);
  tn_val sees = tn_triangular_mask(b, queries, keys, keys - queries);
  return tn_where(b, sees, s, tn_scalar(b, tn_val_type(b, s)->dtype, hidden));
}

static const bool over_keys[TN_MAX_RANK] = {[3] = true};

/* The same op on transposed operands, for which a kernel may exist. */
static tn_status attention_transposed(tn_build *b, const tn_attention_attributes *a) {
  tn_val in[3];
  for (int32_t i = 0; i < 3; i++) in[i] = tn_attention_to_heads(b, a, tn_build_in(b, i));
  tn_val y = tn_attention(b, in[0], in[1], in[2], a->causal, a->scale, a->math, 0);
  tn_build_yield(b, 0, tn_attention_from_heads(b, a, y));
  tn_build_yield(b, 1, tn_op_result(b, y, 1));
  return TN_OK;
}

static tn_status attention_decompose(tn_build *b, const void *attributes) {
  const tn_attention_attributes *a = attributes;
  if (a->heads > 0) return attention_transposed(b, a);
  int32_t dtype = tn_val_type(b, tn_build_in(b, 0))->dtype;
  tn_val s = attention_mask(b, a, tn_attention_scores(b, a, tn_build_in(b, 0), tn_build_in(b, 1)), -INFINITY);
  if (tn_type_count(tn_val_type(b, s)) == 0) { /* no queries or keys: reduce_max is undefined */
    tn_build_yield(b, 0, attention_product(b, a, tn_to_dtype(b, s, dtype), tn_build_in(b, 2), 0, 0));
    tn_build_yield(b, 1, tn_reduce_sum(b, s, 1, (int64_t[]){3}, 0));
    return TN_OK;
  }
  tn_val largest = tn_ops_reduce(b, "reduce_max", s, over_keys);
  tn_val e = tn_exp(b, tn_sub(b, s, largest));
  tn_val sum = tn_ops_reduce(b, "reduce_sum", e, over_keys);
  tn_val p = tn_to_dtype(b, tn_div(b, e, sum), dtype);
  tn_val lse = tn_add(b, largest, tn_log(b, sum));
  tn_type rows = tn_ops_type(b, lse);
  tn_build_yield(b, 0, attention_product(b, a, p, tn_build_in(b, 2), 0, 0));
  tn_build_yield(b, 1, tn_reshape(b, lse, 3, rows.dims));
  return TN_OK;
}

static tn_status attention_grad_infer(tn_infer *n) {
  const tn_type *q = n->node.in[0], *y = n->node.in[3];
  tn_infer forward = *n;
  tn_type out[2] = {{0}};
  forward.node.out = out;
  forward.node.n_out = 2;
  out[0].dtype = q->dtype;
  tn_status status = attention_infer(&forward);
  if (status == TN_OK) status = tn_ops_check_dims_of(n, "y", y, &out[0]);
  if (status == TN_OK) status = tn_ops_check_dims_of(n, "lse", n->node.in[4], &out[1]);
  if (status == TN_OK) status = tn_ops_check_dims_of(n, "dy", n->node.in[5], &out[0]);
  for (int32_t i = 0; i < 3; i++) n->node.out[i] = *n->node.in[i];
  return status;
}

/* The operands of a gradient, split into heads; dy or dlse may be 0. */
typedef struct gradient {
  tn_val q, k, v, y, lse, dy, dlse;
} gradient;

/* With p = exp(s - lse) and delta = sum(dy y): ds = p (dy v^T - delta + dlse), dq = scale ds k,
 * dk = scale ds^T q, dv = p^T dy. d[2] is unchanged if dy is 0. */
static void attention_emit_gradient(tn_build *b, const tn_attention_attributes *a, const gradient *g,
                                    tn_val d[3]) {
  tn_val s = tn_attention_scores(b, a, g->q, g->k);
  int32_t dtype = tn_val_type(b, g->q)->dtype;
  tn_type type = tn_ops_type(b, s);
  tn_val lse = tn_ops_keep(b, g->lse, &type, over_keys);
  tn_val p = attention_mask(b, a, tn_exp(b, tn_sub(b, s, lse)), 0), inner = 0;
  if (g->dy != 0) {
    tn_val delta = tn_mul(b, tn_ops_wide(b, g->dy), tn_ops_wide(b, g->y));
    inner = tn_sub(b, attention_product(b, a, tn_ops_wide(b, g->dy), tn_ops_wide(b, g->v), 0, 1),
                   tn_ops_reduce(b, "reduce_sum", delta, over_keys));
    d[2] = attention_product(b, a, tn_to_dtype(b, p, dtype), g->dy, 1, 0);
  }
  inner = tn_ops_sum(b, inner, tn_ops_keep(b, g->dlse, &type, over_keys));
  tn_val ds = tn_to_dtype(b, tn_affine(b, tn_mul(b, p, inner), attention_scale_of(b, a, g->q), 0), dtype);
  d[0] = attention_product(b, a, ds, g->k, 0, 0);
  d[1] = attention_product(b, a, ds, g->q, 1, 0);
}

/* `v` has q, k, v, y, lse and dy. */
static void attention_emit_grad_op(tn_build *b, const tn_attention_attributes *a, const tn_val *v,
                                   int64_t heads, tn_val d[3]) {
  d[0] = tn_attention_grad(b, v[0], v[1], v[2], v[3], v[4], v[5], a->causal, a->scale, a->math, heads);
  d[1] = tn_op_result(b, d[0], 1);
  d[2] = tn_op_result(b, d[0], 2);
}

static tn_status attention_grad_decompose(tn_build *b, const void *attributes) {
  const tn_attention_attributes *a = attributes;
  tn_val v[6], d[3] = {0};
  for (int32_t i = 0; i < 6; i++)
    v[i] = i == 4 ? tn_build_in(b, i) : tn_attention_to_heads(b, a, tn_build_in(b, i));
  const gradient g = {v[0], v[1], v[2], v[3], v[4], v[5], 0};
  if (a->heads > 0)
    attention_emit_grad_op(b, a, v, 0, d);
  else
    attention_emit_gradient(b, a, &g, d);
  for (int32_t i = 0; i < 3; i++) tn_build_yield(b, i, tn_attention_from_heads(b, a, d[i]));
  return TN_OK;
}

/* The case of a gradient of the log-sum-exp, such as a regularizer has, with or without one of y. */
static void attention_emit_in_parts(tn_build *b, const tn_attention_attributes *a, tn_val d[3]) {
  tn_val dy = tn_build_out_grad(b, 0);
  const gradient g = {tn_attention_to_heads(b, a, tn_build_in(b, 0)),
                      tn_attention_to_heads(b, a, tn_build_in(b, 1)),
                      tn_attention_to_heads(b, a, tn_build_in(b, 2)),
                      tn_attention_to_heads(b, a, tn_build_out(b, 0)),
                      tn_build_out(b, 1),
                      dy != 0 ? tn_attention_to_heads(b, a, dy) : 0,
                      tn_build_out_grad(b, 1)};
  attention_emit_gradient(b, a, &g, d);
  for (int32_t i = 0; i < 3; i++) d[i] = d[i] != 0 ? tn_attention_from_heads(b, a, d[i]) : 0;
}

/* attention_grad covers gradients of y only. */
static tn_status attention_grad_rule(tn_build *b, const void *attributes) {
  const tn_attention_attributes *a = attributes;
  tn_val d[3] = {0};
  if (tn_build_out_grad(b, 1) == 0) {
    const tn_val values[] = {tn_build_in(b, 0),  tn_build_in(b, 1),  tn_build_in(b, 2),
                             tn_build_out(b, 0), tn_build_out(b, 1), tn_build_out_grad(b, 0)};
    attention_emit_grad_op(b, a, values, a->heads, d);
  } else {
    attention_emit_in_parts(b, a, d);
  }
  for (int32_t i = 0; i < 3; i++)
    if (tn_build_wants_grad(b, i) && d[i] != 0) tn_build_yield(b, i, d[i]);
  return TN_OK;
}

/* Two products and a softmax (5 flops) for each pair of a query and a key that it sees. */
void tn_attention_cost(const tn_node *n, tn_cost *cost) {
  const tn_attention_attributes *a = n->attributes;
  const tn_type q = tn_attention_split(a, n->in[0]), k = tn_attention_split(a, n->in[1]),
                v = tn_attention_split(a, n->in[2]);
  double queries = (double)q.dims[2], keys = (double)k.dims[2];
  double pairs = a->causal ? queries * (keys - queries) + queries * (queries + 1) / 2 : queries * keys;
  double heads = (double)q.dims[0] * (double)q.dims[1];
  tn_ops_cost(n, cost, heads * pairs * (2 * (double)q.dims[3] + 2 * (double)v.dims[3] + 5));
}

/* Five products and the recomputed softmax. */
static void attention_grad_cost(const tn_node *n, tn_cost *cost) {
  tn_attention_cost(n, cost);
  cost->flops *= 2.5;
}

/* ---- cached_attention ---- */

static tn_status cached_check_shapes(tn_infer *n) {
  static const char *const name[] = {"q", "k", "v", "keys", "values"};
  const tn_type *q = n->node.in[0], *v = n->node.in[2], *cache = n->node.in[3];
  tn_status status = TN_OK;
  for (int32_t i = 0; i < 5 && status == TN_OK; i++)
    status = attention_check_operand(n, name[i], n->node.in[i]);
  if (status != TN_OK) return status;
  int32_t tokens = q->rank - 2;
  tn_type expected[5] = {*q, *q, *q, *q, *q};
  expected[2].dims[tokens + 1] = expected[4].dims[tokens + 1] = v->dims[tokens + 1];
  expected[3].dims[tokens] = expected[4].dims[tokens] = cache->dims[tokens];
  for (int32_t i = 1; i < 5 && status == TN_OK; i++)
    status = tn_ops_check_dims_of(n, name[i], n->node.in[i], &expected[i]);
  return status != TN_OK ? status : tn_ops_check_rank(n, "position", n->node.in[5], 0, "no dimension");
}

static tn_status cached_infer(tn_infer *n) {
  const tn_attention_attributes *a = n->node.attributes;
  const tn_type *q = n->node.in[0], *cache = n->node.in[3];
  TN_TRY(cached_check_shapes(n));
  if (cache->dims[q->rank - 2] < 1 || cache->dims[q->rank - 2] < q->dims[q->rank - 2])
    return tn_fail(n, TN_EINVAL, NULL, "keys is %s and q is %s: the cache has no room for the tokens",
                   tn_ops_text(cache).v, tn_ops_text(q).v);
  if (a->scale == 0 && tn_attention_split(a, q).dims[3] == 0)
    return tn_fail(n, TN_EINVAL, "scale", "scale is 1 / sqrt(head width) unless given, but q is %s",
                   tn_ops_text(q).v);
  n->node.out[0] = *n->node.in[2];
  n->node.out[1] = *n->node.in[3];
  n->node.out[2] = *n->node.in[4];
  return TN_OK;
}

/* i64 (rows, columns): the index along an axis. */
static tn_val cached_index(tn_build *b, int64_t rows, int64_t columns, int64_t axis) {
  const tn_type type = {TN_I64, 2, {rows, columns}};
  return tn_iota(b, &type, axis);
}

/* The cache with `rows` from `position` on. A product with ones and zeros moves each row to its place. */
static tn_val cached_write(tn_build *b, tn_val cache, tn_val rows, tn_val position) {
  tn_type all = tn_ops_type(b, cache);
  int32_t dtype = all.dtype;
  int64_t room = all.dims[all.rank - 2], tokens = tn_val_dim(b, rows, all.rank - 2);
  tn_val row = cached_index(b, room, 1, 0), end = tn_add(b, position, tn_scalar(b, TN_I64, (double)tokens));
  tn_val written = tn_and(b, tn_ge(b, row, position), tn_lt(b, row, end));
  tn_val source = tn_add(b, cached_index(b, room, tokens, 1), position);
  tn_val select = tn_to_dtype(b, tn_eq(b, cached_index(b, room, tokens, 0), source), dtype);
  return tn_where(b, written, tn_matmul(b, select, rows, 0, 0, 0, TN_MATH_FULL), cache);
}

/* Rows behind the tokens may hold anything, so that 0 * NaN must not reach the sum. */
static tn_val cached_values(tn_build *b, tn_val values, tn_val end) {
  tn_val row = cached_index(b, tn_val_dim(b, values, 2), 1, 0);
  return tn_where(b, tn_lt(b, row, end), values, tn_ops_zero(b, values));
}

/* Operands (batch, heads, tokens, width). */
static tn_val cached_attend(tn_build *b, const tn_attention_attributes *a, tn_val q, tn_val keys,
                            tn_val values, tn_val position) {
  int32_t dtype = tn_val_type(b, q)->dtype;
  int64_t queries = tn_val_dim(b, q, 2), room = tn_val_dim(b, keys, 2);
  tn_val s = tn_attention_scores(b, a, q, keys);
  tn_val last = tn_add(b, cached_index(b, queries, room, 0), position);
  tn_val sees = tn_le(b, cached_index(b, queries, room, 1), last);
  s = tn_where(b, sees, s, tn_scalar(b, tn_val_type(b, s)->dtype, -INFINITY));
  tn_val e = tn_exp(b, tn_sub(b, s, tn_ops_reduce(b, "reduce_max", s, over_keys)));
  tn_val p = tn_to_dtype(b, tn_div(b, e, tn_ops_reduce(b, "reduce_sum", e, over_keys)), dtype);
  tn_val end = tn_add(b, position, tn_scalar(b, TN_I64, (double)queries));
  return attention_product(b, a, p, cached_values(b, values, end), 0, 0);
}

static tn_status cached_decompose(tn_build *b, const void *attributes) {
  const tn_attention_attributes *a = attributes;
  tn_val position = tn_build_in(b, 5);
  tn_val keys = cached_write(b, tn_build_in(b, 3), tn_build_in(b, 1), position);
  tn_val values = cached_write(b, tn_build_in(b, 4), tn_build_in(b, 2), position);
  tn_val y = cached_attend(b, a, tn_attention_to_heads(b, a, tn_build_in(b, 0)),
                           tn_attention_to_heads(b, a, keys), tn_attention_to_heads(b, a, values), position);
  tn_build_yield(b, 0, tn_attention_from_heads(b, a, y));
  tn_build_yield(b, 1, keys);
  tn_build_yield(b, 2, values);
  return TN_OK;
}

/* The tokens before are unknown here: half of the cache. In place, only the new rows are written. */
static void cached_cost(const tn_node *n, tn_cost *cost) {
  const tn_attention_attributes *a = n->attributes;
  const tn_type q = tn_attention_split(a, n->in[0]), v = tn_attention_split(a, n->in[2]);
  double room = (double)tn_attention_split(a, n->in[3]).dims[2], rows = tn_ops_count(&q) + tn_ops_count(&v);
  double pairs = (double)q.dims[0] * (double)q.dims[1] * (double)q.dims[2] * room / 2;
  double cached = (tn_ops_count(n->in[3]) + tn_ops_count(n->in[4])) / 2;
  cost->flops = pairs * (2 * (double)q.dims[3] + 2 * (double)v.dims[3] + 5);
  cost->bytes = (2 * rows + cached) * (double)tn_dtype_size(q.dtype);
}

static const tn_option attention_options[] = {TN_ATTENTION_CAUSAL, TN_ATTENTION_PRODUCTS, TN_OPT_END};

const tn_op tn_op_attention = {
    .item = TN_ITEM(tn_op, TN_OP, "attention",
                    "softmax(scale q k^T) v over (batch, heads, tokens, width), and "
                    "log(sum(exp)) of each query",
                    tn_attention_attributes, attention_options),
    .schema = "(q:T, k:T, v:T) -> (y:T, lse:any)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_MATMUL,
    .infer = attention_infer,
    .decompose = attention_decompose,
    .grad = attention_grad_rule,
    .cost = tn_attention_cost,
    .notes = "Operands are (batch, heads, tokens, width), or (batch, tokens, heads * width) where `heads` "
             "is not 0. The second result is the log of each row's sum of exponentials. T. Dao and others, "
             "\"FlashAttention\", NeurIPS 2022.",
};

const tn_op tn_op_attention_grad = {
    .item = TN_ITEM(tn_op, TN_OP, "attention_grad", "gradient of attention's first result",
                    tn_attention_attributes, attention_options),
    .schema = "(q:T, k:T, v:T, y:T, lse:A, dy:T) -> (dq:T, dk:T, dv:T)" TN_OPS_FLOATS "; A in f32 f64",
    .op_class = TN_CLASS_MATMUL,
    .infer = attention_grad_infer,
    .decompose = attention_grad_decompose,
    .cost = attention_grad_cost,
};

static const tn_option cached_options[] = {TN_ATTENTION_PRODUCTS, TN_OPT_END};

const tn_op tn_op_cached_attention = {
    .item = TN_ITEM(tn_op, TN_OP, "cached_attention",
                    "causal attention of new tokens, whose keys and values are written into a cache from "
                    "`position` on, to themselves and to the tokens before them",
                    tn_attention_attributes, cached_options),
    .schema =
        "(q:T, k:T, v:T, keys:T, values:T, position:i64) -> (y:T, all_keys:T, all_values:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_MATMUL,
    .infer = cached_infer,
    .decompose = cached_decompose,
    .cost = cached_cost,
    .notes = "k and v of n tokens replace the rows position .. position + n - 1 of the caches keys and "
             "values; query i sees the rows up to position + i. The caches have as many rows as tokens "
             "fit, and position + n is at most that. Operands are (batch, heads, tokens, width), or "
             "(batch, tokens, heads * width) where `heads` is not 0. A kernel may write the caches in "
             "place.",
};
