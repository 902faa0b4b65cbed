/* plugins/losses/ctc.c: connectionist temporal classification (Graves et al., ICML 2006): the sum over all
 * alignments of a target with the steps of a sequence, between whose classes blanks may stand. */
#include "plugins/losses/losses.h"

typedef struct ctc_options {
  int64_t blank;
} ctc_options;

static const tn_option ctc_rows[] = {
    TN_OPT(ctc_options, blank, TN_OPT_INT, "0", ">= 0", "the class that stands for no element of the target"),
    TN_OPT_END};

typedef struct ctc {
  tn_val scores, target, steps, length; /* (N, T, classes), (N, L), (N), (N) */
  int64_t n, most;                      /* N, L */
} ctc;

/* Input i, a number for each sequence; `most` for each where it is absent. */
static tn_status ctc_lengths(tn_build *b, int32_t i, int64_t most, int64_t n, tn_val *lengths) {
  const tn_type all = {TN_I32, 1, {n}};
  if (i >= tn_build_n_in(b)) {
    *lengths = tn_full(b, &all, (double)most);
    return TN_OK;
  }
  const tn_type *type = tn_val_type(b, tn_build_in(b, i));
  if (type->rank != 1 || tn_dtype_is_float(type->dtype))
    return tn_fail(b, TN_EINVAL, NULL,
                   "input %d has rank %d and type %s, expected a whole number for each sequence, as in "
                   "length: i32[]",
                   i + 1, (int)type->rank, tn_dtype_name(type->dtype));
  *lengths = tn_to_dtype(b, tn_build_in(b, i), TN_I32);
  return TN_OK;
}

static tn_status ctc_read(tn_build *b, ctc *c) {
  const tn_type x = *tn_val_type(b, tn_build_in(b, 0)), t = *tn_val_type(b, tn_build_in(b, 1));
  if (x.rank != 3 || t.rank != 2 || tn_dtype_is_float(t.dtype) || !tn_dtype_is_float(x.dtype))
    return tn_fail(b, TN_EINVAL, NULL,
                   "scores of rank %d and targets of rank %d (%s), expected scores (N, steps, classes) and "
                   "class numbers (N, length)",
                   (int)x.rank, (int)t.rank, tn_dtype_name(t.dtype));
  if (tn_build_n_in(b) == 3)
    return tn_fail(
        b, TN_EINVAL, NULL,
        "3 inputs, expected 2, or 4: scores, target, steps of each sequence, length of each target");
  c->n = x.dims[0];
  c->most = t.dims[1];
  c->scores = tn_to_dtype(b, tn_build_in(b, 0), x.dtype == TN_F64 ? TN_F64 : TN_F32);
  c->target = tn_to_dtype(b, tn_build_in(b, 1), TN_I32);
  TN_TRY(ctc_lengths(b, 2, x.dims[1], c->n, &c->steps));
  return ctc_lengths(b, 3, c->most, c->n, &c->length);
}

/* Blank, target 0, blank, target 1, ... blank: (N, 2 L + 1). Elements behind the end are blanks. */
static tn_val ctc_states(tn_build *b, const ctc *c, int64_t blank) {
  const tn_type place = {TN_I32, 2, {1, c->most}}, one = {TN_I32, 2, {c->n, 1}};
  const int64_t column[] = {c->n, 1}, pair[] = {c->n, c->most, 1}, flat[] = {c->n, 2 * c->most};
  tn_val none = tn_scalar(b, TN_I32, (double)blank);
  tn_val inside = tn_lt(b, tn_iota(b, &place, 1), tn_reshape(b, c->length, 2, column));
  tn_val own = tn_reshape(b, tn_where(b, inside, c->target, none), 3, pair);
  tn_val pairs[] = {tn_broadcast(b, none, 3, pair), own};
  tn_val parts[] = {tn_reshape(b, tn_concat(b, 2, pairs, 2), 2, flat), tn_full(b, &one, (double)blank)};
  return tn_concat(b, 2, parts, 1);
}

/* Whether a path may leave out the state in front: it is a blank between two different classes. */
static tn_val ctc_skips(tn_build *b, const ctc *c, tn_val states) {
  int64_t n = 2 * c->most + 1, head = n < 2 ? n : 2;
  tn_val parts[] = {tn_slice_axis(b, states, 1, 0, head), tn_slice_axis(b, states, 1, 0, n - head)};
  return tn_ne(b, states, tn_concat(b, 2, parts, 1));
}

static tn_status build_ctc(tn_build *b, const void *options) {
  const ctc_options *o = options;
  ctc c;
  TN_TRY(ctc_read(b, &c));
  int64_t steps = tn_val_dim(b, c.scores, 1), classes = tn_val_dim(b, c.scores, 2), n = 2 * c.most + 1;
  if (o->blank >= classes)
    return tn_fail(b, TN_EINVAL, "blank", "blank is %lld, expected one of the %lld classes",
                   (long long)o->blank, (long long)classes);
  tn_val states = ctc_states(b, &c, o->blank), two = tn_scalar(b, TN_I32, 2), one = tn_scalar(b, TN_I32, 1);
  const int64_t row[] = {c.n, 1, n}, all[] = {c.n, steps, n};
  tn_val index = tn_broadcast(b, tn_reshape(b, states, 3, row), 3, all);
  tn_val score = tn_gather(b, tn_log_softmax(b, c.scores, 2), index, 2);
  tn_val total =
      tn_alignment(b, score, ctc_skips(b, &c, states), c.steps, tn_add(b, tn_mul(b, c.length, two), one));
  tn_val divisor = tn_to_dtype(b, tn_maximum(b, c.length, one), tn_val_type(b, total)->dtype);
  tn_val loss = tn_div(b, tn_neg(b, total), divisor);
  tn_build_yield(b, 0, tn_where(b, tn_is_inf(b, total), loss_number_like(b, loss, 0), loss));
  return TN_OK;
}

const tn_layer_kind loss_ctc = {
    .item =
        TN_ITEM(tn_layer_kind, TN_LAYER, "ctc",
                "negative log-likelihood of a sequence of classes, over all its alignments with the steps "
                "(Graves et al., 2006), divided by its length; 0 for a target that is too long for its steps",
                ctc_options, ctc_rows),
    .role = TN_LAYER_LOSS,
    .min_in = 2,
    .max_in = 4,
    .types =
        "scores (N, steps, classes) before the softmax; targets (N, length) of class numbers; the number of "
        "steps of each sequence and the length of each target (N); without these two, all steps and all "
        "elements of the target count",
    .example = "inputs = x: f32[20, 8]\ntargets = text: i32[6]\nlayers = fc: linear(10)\nloss = ctc",
    .build = build_ctc};
