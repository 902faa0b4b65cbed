/* tests/unit/graph/rig_ops.c: the ops of the rig. The ops of tenon/ops.h are minimal versions. */
#include "tests/unit/graph/rig.h"

#define ANY_FLOAT            "; T in f16 f32 f64"
#define UNARY                "(x:T) -> (y:T)" ANY_FLOAT
#define BINARY               "(x:T, y:T) -> (z:T)"
#define PLAIN(op)            .item = TN_ITEM_PLAIN(tn_op, TN_OP, op, "for tests")
#define WITH(op, S, options) .item = TN_ITEM(tn_op, TN_OP, op, "for tests", S, options)

static void yield_to(tn_build *b, int32_t i, tn_val v) {
  tn_build_yield(b, i, tn_sum_to(b, v, tn_val_type(b, tn_build_in(b, i))));
}

/* ---- pointwise ---- */

static tn_status add_grad(tn_build *b, const void *a) {
  (void)a;
  for (int32_t i = 0; i < 2; i++)
    if (tn_build_wants_grad(b, i)) yield_to(b, i, tn_build_out_grad(b, 0));
  return TN_OK;
}
static tn_status sub_grad(tn_build *b, const void *a) {
  (void)a;
  if (tn_build_wants_grad(b, 0)) yield_to(b, 0, tn_build_out_grad(b, 0));
  if (tn_build_wants_grad(b, 1)) yield_to(b, 1, tn_neg(b, tn_build_out_grad(b, 0)));
  return TN_OK;
}
static tn_status mul_grad(tn_build *b, const void *a) {
  (void)a;
  for (int32_t i = 0; i < 2; i++)
    if (tn_build_wants_grad(b, i)) yield_to(b, i, tn_mul(b, tn_build_out_grad(b, 0), tn_build_in(b, 1 - i)));
  return TN_OK;
}
static tn_status neg_grad(tn_build *b, const void *a) {
  (void)a;
  tn_build_yield(b, 0, tn_neg(b, tn_build_out_grad(b, 0)));
  return TN_OK;
}
static tn_status exp_grad(tn_build *b, const void *a) {
  (void)a;
  tn_build_yield(b, 0, tn_mul(b, tn_build_out_grad(b, 0), tn_build_out(b, 0)));
  return TN_OK;
}
static tn_status affine_grad(tn_build *b, const void *attributes) {
  const tn_affine_attributes *a = attributes;
  tn_build_yield(b, 0, tn_affine(b, tn_build_out_grad(b, 0), a->scale, 0));
  return TN_OK;
}
static tn_status where_grad(tn_build *b, const void *a) {
  (void)a;
  tn_val zero = tn_affine(b, tn_build_out_grad(b, 0), 0, 0);
  if (tn_build_wants_grad(b, 1))
    yield_to(b, 1, tn_where(b, tn_build_in(b, 0), tn_build_out_grad(b, 0), zero));
  if (tn_build_wants_grad(b, 2))
    yield_to(b, 2, tn_where(b, tn_build_in(b, 0), zero, tn_build_out_grad(b, 0)));
  return TN_OK;
}

static const tn_op op_add = {PLAIN("add"), .schema = BINARY, .op_class = TN_CLASS_POINTWISE,
                             .flags = TN_OP_COMMUTATIVE, .grad = add_grad};
static const tn_op op_sub = {PLAIN("sub"), .schema = BINARY, .op_class = TN_CLASS_POINTWISE,
                             .grad = sub_grad};
static const tn_op op_mul = {PLAIN("mul"), .schema = BINARY, .op_class = TN_CLASS_POINTWISE,
                             .flags = TN_OP_COMMUTATIVE, .grad = mul_grad};
static const tn_op op_neg = {PLAIN("neg"), .schema = UNARY, .op_class = TN_CLASS_POINTWISE, .grad = neg_grad};
static const tn_op op_exp = {PLAIN("exp"), .schema = UNARY, .op_class = TN_CLASS_POINTWISE, .grad = exp_grad};
static const tn_op op_gt = {PLAIN("gt"), .schema = "(x:T, y:T) -> (z:bool)", .op_class = TN_CLASS_POINTWISE,
                            .flags = TN_OP_NONDIFF};
static const tn_op op_where = {PLAIN("where"), .schema = "(c:bool, x:T, y:T) -> (z:T)",
                               .op_class = TN_CLASS_POINTWISE, .grad = where_grad};
static const tn_option affine_options[] = {
    TN_OPT(tn_affine_attributes, scale, TN_OPT_FLOAT, "1", NULL, "factor"),
    TN_OPT(tn_affine_attributes, shift, TN_OPT_FLOAT, "0", NULL, "added"), TN_OPT_END};
static const tn_op op_affine = {WITH("affine", tn_affine_attributes, affine_options), .schema = UNARY,
                                .op_class = TN_CLASS_POINTWISE, .grad = affine_grad};

static tn_status cast_infer(tn_infer *n) {
  n->node.out[0] = *n->node.in[0];
  n->node.out[0].dtype = ((const tn_cast_attributes *)n->node.attributes)->to;
  return TN_OK;
}
static tn_status cast_grad(tn_build *b, const void *a) {
  (void)a;
  tn_build_yield(b, 0, tn_to_dtype(b, tn_build_out_grad(b, 0), tn_val_type(b, tn_build_in(b, 0))->dtype));
  return TN_OK;
}
static const tn_option cast_options[] = {TN_OPT(tn_cast_attributes, to, TN_OPT_DTYPE, NULL, NULL, "dtype"),
                                         TN_OPT_END};
static const tn_op op_cast = {WITH("cast", tn_cast_attributes, cast_options), .schema = "(x:T) -> (y:any)",
                              .op_class = TN_CLASS_POINTWISE, .infer = cast_infer, .grad = cast_grad};

/* ---- shapes ---- */

static tn_status take_dims(tn_infer *n, const tn_ints *dims) {
  if (dims->n > TN_MAX_RANK)
    return tn_fail(n, TN_EINVAL, "dims", "dims has %d entries, expected at most 8", (int)dims->n);
  n->node.out[0].rank = (int32_t)dims->n;
  for (int64_t i = 0; i < dims->n; i++) n->node.out[0].dims[i] = dims->v[i];
  return TN_OK;
}

static tn_status full_infer(tn_infer *n) {
  const tn_full_attributes *a = n->node.attributes;
  n->node.out[0].dtype = a->dtype;
  return take_dims(n, &a->dims);
}
static const tn_option full_options[] = {
    TN_OPT(tn_full_attributes, dims, TN_OPT_INTS, "[]", NULL, "dimensions"),
    TN_OPT(tn_full_attributes, value, TN_OPT_FLOAT, "0", NULL, "value"),
    TN_OPT(tn_full_attributes, dtype, TN_OPT_DTYPE, "f32", NULL, "dtype"), TN_OPT_END};
static const tn_op op_full = {WITH("full", tn_full_attributes, full_options), .schema = "() -> (y:any)",
                              .op_class = TN_CLASS_POINTWISE, .infer = full_infer, .flags = TN_OP_NONDIFF};

static tn_status dims_infer(tn_infer *n) {
  return take_dims(n, &((const tn_reshape_attributes *)n->node.attributes)->dims);
}
static const tn_option dims_options[] = {
    TN_OPT(tn_reshape_attributes, dims, TN_OPT_INTS, NULL, NULL, "dimensions"), TN_OPT_END};
static tn_status reshape_grad(tn_build *b, const void *a) {
  (void)a;
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  tn_build_yield(b, 0, tn_reshape(b, tn_build_out_grad(b, 0), x->rank, x->dims));
  return TN_OK;
}
static const tn_op op_reshape = {WITH("reshape", tn_reshape_attributes, dims_options),
                                 .schema = "(x:T) -> (y:T)",
                                 .op_class = TN_CLASS_MOVE,
                                 .infer = dims_infer,
                                 .flags = TN_OP_VIEW,
                                 .grad = reshape_grad};
static tn_status broadcast_grad(tn_build *b, const void *a) {
  (void)a;
  yield_to(b, 0, tn_build_out_grad(b, 0));
  return TN_OK;
}
static const tn_op op_broadcast = {WITH("broadcast", tn_broadcast_attributes, dims_options),
                                   .schema = "(x:T) -> (y:T)", .op_class = TN_CLASS_POINTWISE,
                                   .infer = dims_infer, .grad = broadcast_grad};

static bool reduces(const tn_reduce_attributes *a, int32_t axis) {
  for (int64_t i = 0; i < a->axes.n; i++)
    if (a->axes.v[i] == axis) return true;
  return a->axes.n == 0;
}
static tn_status reduce_infer(tn_infer *n) {
  const tn_reduce_attributes *a = n->node.attributes;
  tn_type *out = &n->node.out[0];
  for (int32_t i = 0; i < n->node.in[0]->rank; i++)
    if (!reduces(a, i) || a->keep) out->dims[out->rank++] = reduces(a, i) ? 1 : n->node.in[0]->dims[i];
  return TN_OK;
}
static tn_status reduce_grad(tn_build *b, const void *attributes) {
  const tn_reduce_attributes *a = attributes;
  const tn_type *x = tn_val_type(b, tn_build_in(b, 0));
  tn_type kept = *x;
  for (int32_t i = 0; i < x->rank; i++)
    if (reduces(a, i)) kept.dims[i] = 1;
  tn_val dy = tn_reshape(b, tn_build_out_grad(b, 0), kept.rank, kept.dims);
  tn_build_yield(b, 0, tn_broadcast(b, dy, x->rank, x->dims));
  return TN_OK;
}
static const tn_option reduce_options[] = {
    TN_OPT(tn_reduce_attributes, axes, TN_OPT_INTS, "[]", NULL, "axes"),
    TN_OPT(tn_reduce_attributes, keep, TN_OPT_FLAG, "no", NULL, "keep them as 1"), TN_OPT_END};
static const tn_op op_reduce_sum = {WITH("reduce_sum", tn_reduce_attributes, reduce_options),
                                    .schema = "(x:T) -> (y:T)", .op_class = TN_CLASS_REDUCE,
                                    .infer = reduce_infer, .grad = reduce_grad};

/* ---- ops that only tests have ---- */

static tn_status sincos_grad(tn_build *b, const void *a) {
  (void)a;
  tn_val ds = tn_build_out_grad(b, 0), dc = tn_build_out_grad(b, 1), dx = 0;
  if (ds != 0) dx = tn_mul(b, ds, tn_build_out(b, 1));
  if (dc != 0)
    dx = dx != 0 ? tn_sub(b, dx, tn_mul(b, dc, tn_build_out(b, 0)))
                 : tn_neg(b, tn_mul(b, dc, tn_build_out(b, 0)));
  tn_build_yield(b, 0, dx);
  return TN_OK;
}
static const tn_op op_sincos = {PLAIN("sincos"), .schema = "(x:T) -> (s:T, c:T)" ANY_FLOAT,
                                .op_class = TN_CLASS_POINTWISE, .grad = sincos_grad};

static tn_status square_decompose(tn_build *b, const void *a) {
  (void)a;
  tn_build_yield(b, 0, tn_mul(b, tn_build_in(b, 0), tn_build_in(b, 0)));
  return TN_OK;
}
static const tn_op op_square = {PLAIN("square"), .schema = UNARY, .op_class = TN_CLASS_POINTWISE,
                                .decompose = square_decompose};

static tn_status fourth_decompose(tn_build *b, const void *a) {
  (void)a;
  tn_build_yield(b, 0, tn_op1(b, "square", tn_op1(b, "square", tn_build_in(b, 0))));
  return TN_OK;
}
static const tn_op op_fourth = {PLAIN("fourth"), .schema = UNARY, .op_class = TN_CLASS_POINTWISE,
                                .decompose = fourth_decompose};

typedef struct parabola_attributes {
  double a;
} parabola_attributes;
static const tn_option parabola_options[] = {
    TN_OPT(parabola_attributes, a, TN_OPT_FLOAT, "1", NULL, "curvature"), TN_OPT_END};
static const tn_op op_parabola = {WITH("parabola", parabola_attributes, parabola_options), .schema = UNARY,
                                  .op_class = TN_CLASS_POINTWISE, .formula = "y = a * x * x + x"};

static const tn_op op_products = {PLAIN("products"), .schema = "(x:T, y:T, z:T) -> (q:T, r:T)",
                                  .op_class = TN_CLASS_POINTWISE,
                                  .formula = "part = x * y; r = part * z; q = part",
                                  .gradient = "s = dq + dr * z; dx = s * y; dy = s * x; "
                                              "dz = dr * q"};

static tn_status endless_decompose(tn_build *b, const void *a) {
  (void)a;
  tn_build_yield(b, 0, tn_op1(b, "endless", tn_build_in(b, 0)));
  return TN_OK;
}
static const tn_op op_endless = {PLAIN("endless"), .schema = UNARY, .op_class = TN_CLASS_POINTWISE,
                                 .decompose = endless_decompose};
static const tn_op op_opaque = {PLAIN("opaque"), .schema = UNARY, .op_class = TN_CLASS_POINTWISE};

typedef struct crooked_attributes {
  int32_t fault;
} crooked_attributes;
static tn_status crooked_decompose(tn_build *b, const void *attributes) {
  tn_val x = tn_build_in(b, 0);
  switch (((const crooked_attributes *)attributes)->fault) {
  case 0: tn_build_yield(b, 0, tn_reduce_sum(b, x, 0, NULL, 0)); return TN_OK;
  case 1: return TN_OK; /* yields nothing */
  case 2: tn_build_yield(b, 1, x); return TN_OK;
  case 3:
    tn_build_yield(b, 0, x);
    tn_build_yield(b, 0, x);
    return TN_OK;
  case 4:
    tn_op_begin(b, "neg");
    tn_build_yield(b, 0, x);
    return TN_OK; /* without tn_op_end */
  default: return tn_fail(b, TN_EUNSUPPORTED, "fault", "not for this fault");
  }
}
static tn_status crooked_grad(tn_build *b, const void *attributes) {
  if (((const crooked_attributes *)attributes)->fault == 5)
    return tn_fail(b, TN_EUNSUPPORTED, NULL, "no gradient today");
  tn_build_yield(b, 0, tn_reduce_sum(b, tn_build_out_grad(b, 0), 0, NULL, 0));
  return TN_OK;
}
static const tn_option crooked_options[] = {
    TN_OPT(crooked_attributes, fault, TN_OPT_ENUM, "type", "type|none|range|twice|open|code", "the fault"),
    TN_OPT_END};
static const tn_op op_crooked = {WITH("crooked", crooked_attributes, crooked_options), .schema = UNARY,
                                 .op_class = TN_CLASS_POINTWISE, .decompose = crooked_decompose,
                                 .grad = crooked_grad};

static tn_status halves_decompose(tn_build *b, const void *a) {
  tn_val x = tn_build_in(b, 0);
  const int64_t n = tn_val_dim(b, x, 0) / 2, dims[] = {2, n};
  (void)a;
  if (n == 3) return tn_fail(b, TN_EUNSUPPORTED, NULL, "halves of 3 elements");
  tn_build_yield(b, 0, tn_reshape(b, x, 2, dims));
  if (n != 4) tn_build_yield(b, 1, tn_cast(b, tn_reduce_sum(b, x, 0, NULL, 0), TN_F64));
  return TN_OK;
}
static const tn_op op_halves = {PLAIN("halves"), .schema = "(x:T) -> (y:T, sum:f64)" ANY_FLOAT,
                                .op_class = TN_CLASS_MOVE, .decompose = halves_decompose};

static tn_status bottomless_decompose(tn_build *b, const void *a) {
  (void)a;
  tn_build_yield(b, 0, tn_op1(b, "bottomless", tn_build_in(b, 0)));
  return TN_OK;
}
static const tn_op op_bottomless = {PLAIN("bottomless"), .schema = UNARY, .op_class = TN_CLASS_MOVE,
                                    .decompose = bottomless_decompose};

static const tn_op op_fuse = {PLAIN("fuse"), .schema = "(x:T, w?:T, y:T) -> (z:T)",
                              .op_class = TN_CLASS_POINTWISE};
static const tn_op op_total = {PLAIN("total"), .schema = "(xs*:T) -> (y:T)", .op_class = TN_CLASS_POINTWISE};

static tn_status noise_infer(tn_infer *n) {
  return take_dims(n, &((const tn_random_attributes *)n->node.attributes)->dims);
}
static const tn_option noise_options[] = {
    TN_OPT(tn_random_attributes, dims, TN_OPT_INTS, "[]", NULL, "dimensions"),
    TN_OPT(tn_random_attributes, stream, TN_OPT_INT, "0", NULL, "stream"), TN_OPT_END};
static const tn_op op_noise = {WITH("noise", tn_random_attributes, noise_options),
                               .schema = "(iteration:i64) -> (y:f64)", .op_class = TN_CLASS_RANDOM,
                               .infer = noise_infer, .flags = TN_OP_NONDIFF};

static const tn_op op_report = {PLAIN("report"), .schema = "(x) -> ()",
                                .flags = TN_OP_EFFECT | TN_OP_NONDIFF};

static const tn_option tagged_options[] = {
    TN_OPT(tagged_attributes, flag, TN_OPT_FLAG, "no", NULL, "flag"),
    TN_OPT(tagged_attributes, mode, TN_OPT_ENUM, "slow", "slow|fast", "enum"),
    TN_OPT(tagged_attributes, kind, TN_OPT_DTYPE, "any", NULL, "dtype"),
    TN_OPT(tagged_attributes, whole, TN_OPT_INT, "0", ">= -10", "int"),
    TN_OPT(tagged_attributes, size, TN_OPT_SIZE, "0", NULL, "size"),
    TN_OPT(tagged_attributes, real, TN_OPT_FLOAT, "0", NULL, "float"),
    TN_OPT(tagged_attributes, time, TN_OPT_DURATION, "0", NULL, "duration"),
    TN_OPT(tagged_attributes, text, TN_OPT_TEXT, "", NULL, "text"),
    TN_OPT(tagged_attributes, init, TN_OPT_INIT, "zeros", NULL, "initializer"),
    TN_OPT(tagged_attributes, ints, TN_OPT_INTS, "[]", NULL, "ints"),
    TN_OPT(tagged_attributes, floats, TN_OPT_FLOATS, "[]", NULL, "floats"),
    TN_OPT_END};
static const tn_op op_tagged = {WITH("tagged", tagged_attributes, tagged_options), .schema = "(x:T) -> (y:T)",
                                .op_class = TN_CLASS_POINTWISE};

static const tn_item *const items[] = {&op_add.item,
                                       &op_sub.item,
                                       &op_mul.item,
                                       &op_neg.item,
                                       &op_exp.item,
                                       &op_gt.item,
                                       &op_where.item,
                                       &op_affine.item,
                                       &op_cast.item,
                                       &op_full.item,
                                       &op_reshape.item,
                                       &op_broadcast.item,
                                       &op_reduce_sum.item,
                                       &op_sincos.item,
                                       &op_square.item,
                                       &op_fourth.item,
                                       &op_parabola.item,
                                       &op_products.item,
                                       &op_endless.item,
                                       &op_opaque.item,
                                       &op_crooked.item,
                                       &op_fuse.item,
                                       &op_total.item,
                                       &op_noise.item,
                                       &op_report.item,
                                       &op_tagged.item,
                                       &op_halves.item,
                                       &op_bottomless.item,
                                       NULL};

const tn_plugin rig_plugin = {
    (uint32_t)sizeof(tn_plugin), TN_ABI_MAJOR, TN_ABI_MINOR, 0, "rig", "1", "MIT", TN_BUILD_TEXT, items};
