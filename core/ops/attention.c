/* Scaled dot-product attention (Vaswani et al., "Attention is all you need", NeurIPS 2017) over
 * (batch, heads, tokens, width), which also gives each query's log-sum-exp, so that the gradient can
 * recompute the probabilities instead of keeping them (Dao et al., "FlashAttention", NeurIPS 2022).
 * Scores, what is subtracted from their gradient, and the softmax are in f32 (f64 for f64), products with
 * probabilities in T. */
#include <math.h>

#include "core/ops/common.h"

/* ---- shapes ---- */

static tn_status attention_infer(tn_infer *n) {
  static const char *const name[] = {"q", "k", "v"};
  const tn_attention_attributes *a = n->node.attributes;
  const tn_type *q = n->node.in[0], *k = n->node.in[1], *v = n->node.in[2];
  tn_status status = TN_OK;
  for (int32_t i = 0; i < 3 && status == TN_OK; i++)
    status = tn_ops_check_rank(n, name[i], n->node.in[i], 4, "batch, heads, tokens, width");
  if (status != TN_OK) return status;
  tn_type keys = *k, values = *v;
  keys.dims[0] = values.dims[0] = q->dims[0];
  keys.dims[1] = values.dims[1] = q->dims[1];
  keys.dims[3] = q->dims[3];
  values.dims[2] = k->dims[2];
  status = tn_ops_check_dims_of(n, "k", k, &keys);
  if (status == TN_OK) status = tn_ops_check_dims_of(n, "v", v, &values);
  if (status != TN_OK) return status;
  int64_t first_sees = a->causal ? k->dims[2] - q->dims[2] + 1 : k->dims[2];
  if (first_sees < 1 && q->dims[2] > 0)
    return tn_fail(n, TN_EINVAL, NULL, "q is %s and k is %s%s: the first query would see no key",
                   tn_ops_text(q).v, tn_ops_text(k).v, a->causal ? ", causal" : "");
  if (a->scale == 0 && q->dims[3] == 0)
    return tn_fail(n, TN_EINVAL, "scale", "scale is 1 / sqrt(head width) unless given, but q is %s",
                   tn_ops_text(q).v);
  n->node.out[0] = *q;
  n->node.out[0].dims[3] = v->dims[3];
  n->node.out[1] = *q;
  n->node.out[1].rank = 3;
  n->node.out[1].dims[3] = 0;
  n->node.out[1].dtype = tn_ops_accumulator(q->dtype);
  return tn_ops_check_count(n, &n->node.out[0]);
}

/* ---- emitting ---- */

static double scale_of(tn_build *b, const tn_attention_attributes *a) {
  return a->scale != 0 ? a->scale : 1 / sqrt((double)tn_dim(b, tn_in(b, 0), 3));
}

static tn_val product(tn_build *b, const tn_attention_attributes *a, tn_val x, tn_val y, int32_t transpose_x,
                      int32_t transpose_y) {
  tn_begin(b, "matmul");
  tn_arg(b, x);
  tn_arg(b, y);
  tn_set_int(b, "transpose_a", transpose_x);
  tn_set_int(b, "transpose_b", transpose_y);
  tn_set_text(b, "math", tn_ops_math(a->math));
  return tn_end(b);
}

/* scale q k^T in A: (batch, heads, queries, keys). Rounding scores to T would be felt in every exponential.
 */
static tn_val scores(tn_build *b, const tn_attention_attributes *a) {
  tn_val s = product(b, a, tn_ops_wide(b, tn_in(b, 0)), tn_ops_wide(b, tn_in(b, 1)), 0, 1);
  return tn_affine(b, s, scale_of(b, a), 0);
}

/* s where a query sees a key, else `hidden`. */
static tn_val mask(tn_build *b, const tn_attention_attributes *a, tn_val s, double hidden) {
  if (!a->causal) return s;
  int64_t queries = tn_dim(b, s, 2), keys = tn_dim(b, s, 3);
  tn_begin(b, "triangular_mask");
  tn_set_int(b, "rows", queries);
  tn_set_int(b, "columns", keys);
  tn_set_int(b, "diagonal", keys - queries);
  tn_val sees = tn_end(b);
  return tn_where(b, sees, s, tn_scalar(b, tn_type_of(b, s)->dtype, hidden));
}

static const bool over_keys[TN_MAX_RANK] = {[3] = true};

static tn_status attention_decompose(tn_build *b, const void *attributes) {
  const tn_attention_attributes *a = attributes;
  int32_t dtype = tn_type_of(b, tn_in(b, 0))->dtype;
  tn_val s = mask(b, a, scores(b, a), -INFINITY);
  if (tn_type_count(tn_type_of(b, s)) == 0) { /* no queries: nothing to take the largest of */
    tn_yield(b, 0, product(b, a, tn_cast(b, s, dtype), tn_in(b, 2), 0, 0));
    tn_yield(b, 1, tn_reduce(b, "reduce_sum", s, 1, (int64_t[]){3}, 0));
    return TN_OK;
  }
  tn_val largest = tn_ops_reduce(b, "reduce_max", s, over_keys);
  tn_val e = tn_exp(b, tn_sub(b, s, largest));
  tn_val sum = tn_ops_reduce(b, "reduce_sum", e, over_keys);
  tn_val p = tn_cast(b, tn_div(b, e, sum), dtype);
  tn_val lse = tn_add(b, largest, tn_log_of(b, sum));
  tn_type rows = tn_ops_type(b, lse);
  tn_yield(b, 0, product(b, a, p, tn_in(b, 2), 0, 0));
  tn_yield(b, 1, tn_reshape(b, lse, 3, rows.dims));
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

/* What a gradient is made of; dy or dlse may be 0. */
typedef struct gradient {
  tn_val y, lse, dy, dlse;
} gradient;

/* With p = exp(s - lse) and delta = sum(dy y): ds = p (dy v^T - delta + dlse), dq = scale ds k,
 * dk = scale ds^T q, dv = p^T dy, which is left at 0 without dy. q, k and v are operands 0, 1 and 2. */
static void emit_gradient(tn_build *b, const tn_attention_attributes *a, const gradient *g, tn_val d[3]) {
  tn_val q = tn_in(b, 0), k = tn_in(b, 1), v = tn_in(b, 2), s = scores(b, a);
  int32_t dtype = tn_type_of(b, q)->dtype;
  tn_type type = tn_ops_type(b, s);
  tn_val lse = tn_ops_keep(b, g->lse, &type, over_keys);
  tn_val p = mask(b, a, tn_exp(b, tn_sub(b, s, lse)), 0), inner = 0;
  if (g->dy != 0) {
    tn_val delta = tn_mul(b, tn_ops_wide(b, g->dy), tn_ops_wide(b, g->y));
    inner = tn_sub(b, product(b, a, tn_ops_wide(b, g->dy), tn_ops_wide(b, v), 0, 1),
                   tn_ops_reduce(b, "reduce_sum", delta, over_keys));
    d[2] = product(b, a, tn_cast(b, p, dtype), g->dy, 1, 0);
  }
  inner = tn_ops_sum(b, inner, tn_ops_keep(b, g->dlse, &type, over_keys));
  tn_val ds = tn_cast(b, tn_affine(b, tn_mul(b, p, inner), scale_of(b, a), 0), dtype);
  d[0] = product(b, a, ds, k, 0, 0);
  d[1] = product(b, a, ds, q, 1, 0);
}

static tn_status attention_grad_decompose(tn_build *b, const void *attributes) {
  gradient g = {tn_in(b, 3), tn_in(b, 4), tn_in(b, 5), 0};
  tn_val d[3] = {0};
  emit_gradient(b, attributes, &g, d);
  for (int32_t i = 0; i < 3; i++) tn_yield(b, i, d[i]);
  return TN_OK;
}

static void emit_op(tn_build *b, const tn_attention_attributes *a, tn_val d[3]) {
  tn_begin(b, "attention_grad");
  for (int32_t i = 0; i < 3; i++) tn_arg(b, tn_in(b, i));
  tn_arg(b, tn_out(b, 0));
  tn_arg(b, tn_out(b, 1));
  tn_arg(b, tn_dout(b, 0));
  tn_set_int(b, "causal", a->causal);
  tn_set_float(b, "scale", a->scale);
  tn_set_text(b, "math", tn_ops_math(a->math));
  d[0] = tn_end(b);
  d[1] = tn_result(b, d[0], 1);
  d[2] = tn_result(b, d[0], 2);
}

/* The op knows of a gradient of y alone; one of the log-sum-exp, which a regularizer of it would have, is
 * emitted in parts. */
static tn_status attention_grad(tn_build *b, const void *attributes) {
  gradient g = {tn_out(b, 0), tn_out(b, 1), tn_dout(b, 0), tn_dout(b, 1)};
  tn_val d[3] = {0};
  if (g.dlse == 0)
    emit_op(b, attributes, d);
  else
    emit_gradient(b, attributes, &g, d);
  for (int32_t i = 0; i < 3; i++)
    if (tn_want(b, i) && d[i] != 0) tn_yield(b, i, d[i]);
  return TN_OK;
}

/* Two products and a softmax (5 flops) for each pair of a query and a key that it sees. */
static void attention_cost(const tn_node *n, tn_cost *cost) {
  const tn_attention_attributes *a = n->attributes;
  const tn_type *q = n->in[0], *k = n->in[1], *v = n->in[2];
  double queries = (double)q->dims[2], keys = (double)k->dims[2];
  double pairs = a->causal ? queries * (keys - queries) + queries * (queries + 1) / 2 : queries * keys;
  double heads = (double)q->dims[0] * (double)q->dims[1];
  tn_ops_cost(n, cost, heads * pairs * (2 * (double)q->dims[3] + 2 * (double)v->dims[3] + 5));
}

/* Five products and a softmax again. */
static void attention_grad_cost(const tn_node *n, tn_cost *cost) {
  attention_cost(n, cost);
  cost->flops *= 2.5;
}

static const tn_option attention_options[] = {TN_OPT(tn_attention_attributes, causal, TN_OPT_FLAG, "no", NULL,
                                                     "query i sees keys up to i + (keys - queries)"),
                                              TN_OPT(tn_attention_attributes, scale, TN_OPT_FLOAT, "0", NULL,
                                                     "of the products; 0: 1 / sqrt(head width)"),
                                              TN_OPS_MATH(tn_attention_attributes), TN_OPT_END};

const tn_op tn_op_attention = {
    .item = TN_ITEM(tn_op, TN_OP, "attention",
                    "softmax(scale q k^T) v over (batch, heads, tokens, width), and "
                    "log(sum(exp)) of each query",
                    tn_attention_attributes, attention_options),
    .schema = "(q:T, k:T, v:T) -> (y:T, lse:any)" TN_OPS_FLOATS,
    .version = 1,
    .klass = TN_CLASS_MATMUL,
    .infer = attention_infer,
    .decompose = attention_decompose,
    .grad = attention_grad,
    .cost = attention_cost,
};

const tn_op tn_op_attention_grad = {
    .item = TN_ITEM(tn_op, TN_OP, "attention_grad", "gradient of attention's first result",
                    tn_attention_attributes, attention_options),
    .schema = "(q:T, k:T, v:T, y:T, lse:A, dy:T) -> (dq:T, dk:T, dv:T)" TN_OPS_FLOATS "; A in f32 f64",
    .version = 1,
    .klass = TN_CLASS_MATMUL,
    .infer = attention_grad_infer,
    .decompose = attention_grad_decompose,
    .cost = attention_grad_cost,
};
