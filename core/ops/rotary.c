/* core/ops/rotary.c: rotary positions (Su et al., "RoFormer", 2021): each pair of elements of a head turns by
 * an angle that grows with the position. Angles are in the dtype of sums A. */
#include <math.h>

#include "core/ops/common.h"

static tn_status rotary_infer(tn_infer *n) {
  const tn_rotary_attributes *a = n->node.attributes;
  const tn_type *x = n->node.in[0], *start = n->node.in[1];
  TN_TRY(tn_ops_check_rank(n, "x", x, 3, "batch, tokens, heads * width"));
  if (x->dims[2] % a->heads != 0 || x->dims[2] / a->heads % 2 != 0)
    return tn_fail(n, TN_EINVAL, "heads", "x is %s, expected an even width for each of %lld heads",
                   tn_ops_text(x).v, (long long)a->heads);
  n->node.out[0] = *x;
  return start == NULL ? TN_OK : tn_ops_check_rank(n, "start", start, 0, "no dimension");
}

/* The angle of each token and pair, with dims that broadcast against the elements. */
static tn_val rotary_angles(tn_build *b, const tn_rotary_attributes *a, int32_t dtype, int64_t tokens,
                            int64_t pairs) {
  const tn_type rows = {TN_I64, 5, {1, tokens, 1, 1, 1}};
  tn_type columns = {dtype, 5, {1, 1, 1, 1, 1}};
  columns.dims[a->interleaved ? 3 : 4] = pairs;
  tn_val position = tn_iota(b, &rows, 1);
  if (tn_build_in(b, 1) != 0) position = tn_add(b, position, tn_build_in(b, 1));
  double slope = pairs > 0 ? -log(a->base) / (double)pairs : 0;
  tn_val speed = tn_exp(b, tn_affine(b, tn_iota(b, &columns, a->interleaved ? 3 : 4), slope, 0));
  return tn_mul(b, tn_to_dtype(b, position, dtype), speed);
}

static tn_status rotary_decompose(tn_build *b, const void *attributes) {
  const tn_rotary_attributes *a = attributes;
  tn_type t = tn_ops_type(b, tn_build_in(b, 0));
  int64_t pairs = t.dims[2] / a->heads / 2, dims[] = {t.dims[0], t.dims[1], a->heads, 2, pairs};
  int32_t pair = a->interleaved ? 4 : 3;
  dims[pair] = 2;
  dims[7 - pair] = pairs;
  tn_val x = tn_reshape(b, tn_ops_wide(b, tn_build_in(b, 0)), 5, dims);
  tn_val angles = rotary_angles(b, a, tn_val_type(b, x)->dtype, t.dims[1], pairs);
  tn_val c = tn_cos(b, angles), s = tn_sin(b, angles);
  if (a->inverse) s = tn_neg(b, s);
  tn_val first = tn_slice_axis(b, x, pair, 0, 1), second = tn_slice_axis(b, x, pair, 1, 2);
  const tn_val turned[] = {tn_sub(b, tn_mul(b, first, c), tn_mul(b, second, s)),
                           tn_add(b, tn_mul(b, second, c), tn_mul(b, first, s))};
  tn_val y = tn_reshape(b, tn_concat(b, 2, turned, pair), t.rank, t.dims);
  tn_build_yield(b, 0, tn_to_dtype(b, y, t.dtype));
  return TN_OK;
}

/* The gradient of turning is turning back. */
static tn_status rotary_grad(tn_build *b, const void *attributes) {
  const tn_rotary_attributes *a = attributes;
  tn_build_yield(b, 0,
                 tn_rotary(b, tn_build_out_grad(b, 0), tn_build_in(b, 1), a->heads, a->base, a->interleaved,
                           !a->inverse));
  return TN_OK;
}

static void rotary_cost(const tn_node *n, tn_cost *cost) { tn_ops_cost(n, cost, 3 * tn_ops_count(n->in[0])); }

static const tn_option rotary_options[] = {
    TN_OPT(tn_rotary_attributes, heads, TN_OPT_INT, NULL, ">= 1", "of x: (batch, tokens, heads * width)"),
    TN_OPT(tn_rotary_attributes, base, TN_OPT_FLOAT, "10000", "> 0",
           "pair i turns by position * base^(-2 i / width)"),
    TN_OPT(tn_rotary_attributes, interleaved, TN_OPT_FLAG, "no", NULL,
           "pairs are neighbours; else elements i and i + width / 2"),
    TN_OPT(tn_rotary_attributes, inverse, TN_OPT_FLAG, "no", NULL, "turns back"), TN_OPT_END};

const tn_op tn_op_rotary = {
    .item = TN_ITEM(tn_op, TN_OP, "rotary",
                    "turns each pair of elements of a head by an angle that grows with the position",
                    tn_rotary_attributes, rotary_options),
    .schema = "(x:T, start?:i64) -> (y:T)" TN_OPS_FLOATS,
    .op_class = TN_CLASS_NORM,
    .infer = rotary_infer,
    .decompose = rotary_decompose,
    .grad = rotary_grad,
    .cost = rotary_cost,
    .notes = "The first token has the position `start`, 0 where it is absent. J. Su and others, \"RoFormer: "
             "enhanced transformer with rotary position embedding\", 2021.",
};
