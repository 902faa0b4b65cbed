/* core/ops/general_attention.c: general_attention: attention whose scores are bounded, biased or masked. Its
 * gradient is that of its decomposition, which holds the scores of all pairs. Scores and their softmax are in
 * the dtype of sums A, products with probabilities in T. */
#include <math.h>

#include "core/ops/attention.h"

/* Below every score that counts; finite, so that rows without a visible key have a softmax. */
#define HIDDEN (-1e30)

static tn_status general_attention_check_mask(tn_infer *n, const tn_type *scores) {
  const tn_type *mask = n->node.in[3];
  if (mask == NULL) return TN_OK;
  bool fits = mask->rank <= 4 && (mask->dtype == TN_BOOL || tn_dtype_is_float(mask->dtype));
  for (int32_t i = 0; i < mask->rank && fits; i++)
    fits = mask->dims[i] == 1 || mask->dims[i] == scores->dims[4 - mask->rank + i];
  if (fits) return TN_OK;
  return tn_fail(
      n, TN_EINVAL, NULL,
      "mask is %s, expected bool or floats that broadcast to [%lld, %lld, %lld, %lld]: batch, heads, "
      "queries, keys",
      tn_ops_text(mask).v, (long long)scores->dims[0], (long long)scores->dims[1], (long long)scores->dims[2],
      (long long)scores->dims[3]);
}

static tn_status general_attention_infer(tn_infer *n) {
  const tn_attention_attributes *a = n->node.attributes;
  tn_type out[2] = {{.dtype = n->node.in[0]->dtype}};
  tn_infer plain = *n;
  plain.node.out = out;
  plain.node.n_out = 2;
  TN_TRY(tn_op_attention.infer(&plain));
  tn_type scores = out[1], keys = tn_attention_split(a, n->node.in[1]);
  scores.rank = 4;
  scores.dims[3] = keys.dims[2];
  if (scores.dims[2] == 0 || scores.dims[3] == 0)
    return tn_fail(n, TN_EINVAL, NULL, "q is %s and k is %s, expected at least one query and one key",
                   tn_ops_text(n->node.in[0]).v, tn_ops_text(n->node.in[1]).v);
  n->node.out[0] = out[0];
  return general_attention_check_mask(n, &scores);
}

/* ---- alibi ---- */

/* 2^(scale h + shift) for h = 0 .. count - 1, as (1, count, 1, 1). */
static tn_val alibi_powers(tn_build *b, int32_t dtype, int64_t count, double scale, double shift) {
  const tn_type type = {dtype, 4, {1, count, 1, 1}};
  return tn_exp(b, tn_affine(b, tn_iota(b, &type, 1), scale * log(2), shift * log(2)));
}

/* The slope of each head: 2^(-8 (h + 1) / n) for n heads, a power of two. Where n is between two of them, the
 * slopes of the lower one come first, and then every other slope of the higher one. */
static tn_val alibi_slopes(tn_build *b, int32_t dtype, int64_t heads) {
  int64_t lower = 1;
  while (2 * lower <= heads) lower *= 2;
  double step = -8 / (double)lower;
  tn_val slopes = alibi_powers(b, dtype, lower, step, step);
  if (lower == heads) return slopes;
  tn_val between = alibi_powers(b, dtype, heads - lower, step, step / 2);
  return tn_concat(b, 2, (tn_val[]){slopes, between}, 1);
}

/* -slope |position of the query - position of the key|. */
static tn_val alibi_bias(tn_build *b, const tn_type *s) {
  const tn_type pairs = {s->dtype, 2, {s->dims[2], s->dims[3]}};
  tn_val query = tn_affine(b, tn_iota(b, &pairs, 0), 1, (double)(s->dims[3] - s->dims[2]));
  tn_val distance = tn_abs(b, tn_sub(b, query, tn_iota(b, &pairs, 1)));
  return tn_neg(b, tn_mul(b, distance, alibi_slopes(b, s->dtype, s->dims[1])));
}

/* ---- which keys a query sees ---- */

static tn_val general_attention_and(tn_build *b, tn_val x, tn_val y) {
  return x == 0 ? y : y == 0 ? x : tn_and(b, x, y);
}

/* 0: all. */
static tn_val general_attention_sees(tn_build *b, const tn_attention_attributes *a, const tn_type *s) {
  int64_t queries = s->dims[2], keys = s->dims[3], own = keys - queries;
  tn_val mask = tn_build_in(b, 3), sees = 0;
  if (a->causal) sees = tn_triangular_mask(b, queries, keys, own);
  if (a->window > 0 && a->window < keys + queries) {
    tn_val before = tn_not(b, tn_triangular_mask(b, queries, keys, own - a->window));
    sees = general_attention_and(b, sees, before);
    if (!a->causal)
      sees = general_attention_and(b, sees, tn_triangular_mask(b, queries, keys, own + a->window - 1));
  }
  if (mask == 0) return sees;
  if (tn_val_type(b, mask)->dtype != TN_BOOL)
    mask = tn_gt(b, tn_to_dtype(b, mask, s->dtype), tn_scalar(b, s->dtype, HIDDEN));
  return general_attention_and(b, sees, mask);
}

/* ---- decomposition ---- */

/* The scores in A, with the bound and the biases. */
static tn_val general_attention_scores(tn_build *b, const tn_attention_attributes *a, tn_val q, tn_val k) {
  tn_val s = tn_attention_scores(b, a, q, k), mask = tn_build_in(b, 3);
  if (a->softcap > 0) s = tn_affine(b, tn_tanh(b, tn_affine(b, s, 1 / a->softcap, 0)), a->softcap, 0);
  tn_type type = tn_ops_type(b, s);
  if (a->alibi) s = tn_add(b, s, alibi_bias(b, &type));
  if (mask != 0 && tn_val_type(b, mask)->dtype != TN_BOOL) s = tn_add(b, s, tn_to_dtype(b, mask, type.dtype));
  return s;
}

static tn_status general_attention_decompose(tn_build *b, const void *attributes) {
  const tn_attention_attributes *a = attributes;
  tn_val in[3];
  for (int32_t i = 0; i < 3; i++) in[i] = tn_attention_to_heads(b, a, tn_build_in(b, i));
  tn_val s = general_attention_scores(b, a, in[0], in[1]);
  tn_type type = tn_ops_type(b, s);
  tn_val sees = general_attention_sees(b, a, &type);
  if (sees != 0) s = tn_where(b, sees, s, tn_scalar(b, type.dtype, HIDDEN));
  tn_val p = tn_softmax(b, s, 3);
  if (sees != 0) p = tn_where(b, sees, p, tn_scalar(b, type.dtype, 0)); /* of a row without a visible key */
  p = tn_to_dtype(b, p, tn_val_type(b, in[2])->dtype);
  tn_val y = tn_matmul(b, p, in[2], 0, 0, 0, a->math);
  tn_build_yield(b, 0, tn_attention_from_heads(b, a, y));
  return TN_OK;
}

static const tn_option general_attention_options[] = {
    TN_ATTENTION_CAUSAL,
    TN_ATTENTION_PRODUCTS,
    TN_OPT(tn_attention_attributes, window, TN_OPT_INT, "0", ">= 0",
           "a query sees keys at a distance below this; 0: at any"),
    TN_OPT(tn_attention_attributes, softcap, TN_OPT_FLOAT, "0", ">= 0",
           "scores become softcap tanh(score / softcap); 0: they stay"),
    TN_OPT(tn_attention_attributes, alibi, TN_OPT_FLAG, "no", NULL,
           "scores fall with the distance, in each head with another slope"),
    TN_OPT_END};

const tn_op tn_op_general_attention = {
    .item = TN_ITEM(tn_op, TN_OP, "general_attention",
                    "attention with a mask, a window, bounded scores or linear biases",
                    tn_attention_attributes, general_attention_options),
    .schema = "(q:T, k:T, v:T, mask?:any) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_MATMUL,
    .infer = general_attention_infer,
    .decompose = general_attention_decompose,
    .cost = tn_attention_cost,
    .notes = "The mask broadcasts to (batch, heads, queries, keys): bool, true where a query sees a key, or "
             "floats that are added to the scores. The result of a query that sees no key is 0. The order is "
             "scale, softcap, alibi, mask. I. Beltagy, M. Peters, A. Cohan, \"Longformer\", 2020 (window); "
             "Gemma Team, \"Gemma 2\", 2024 (softcap); O. Press, N. Smith, M. Lewis, \"Train short, test "
             "long\", ICLR 2022 (alibi).",
};
