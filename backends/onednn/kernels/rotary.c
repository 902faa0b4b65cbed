/* backends/onednn/kernels/rotary.c: the parts of the op rotary behind its cosines and sines, in one pass: the
 * first and the second half of each head, their products, and both halves side by side. The cosines and sines
 * depend on the position alone, so that all layers read one table of each. */
#include "backends/onednn/kernels/rotary.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/shared/integer_math.h"
#include "tenon/attributes.h"

enum { CHUNK = 1 << 14 /* elements */, HALVES = 3 /* the axis of the two halves of a head */ };

typedef struct rotary_kernel {
  const tn_rotary_loops *loops;
  int64_t rows, tokens, heads, pairs, per_chunk; /* rows: tokens of all samples */
} rotary_kernel;

/* ---- query and prepare ---------------------------------------------------------------------------- */

static void rotary_make(const tn_match *m, const void *backend, rotary_kernel *p) {
  const int64_t *x = m->in[0]->dims;
  *p = (rotary_kernel){.loops = TN_LOOPS_PICK_AT(tn_loops_rotary, tn_onednn_isa_of(backend)),
                       .rows = x[0] * x[1],
                       .tokens = x[1],
                       .heads = x[2],
                       .pairs = x[4]};
  p->per_chunk = at_least_1(CHUNK / at_least_1(2 * p->heads * p->pairs));
}

/* Whether node `index` takes half `half` of each head. */
static bool rotary_takes_half(const tn_match *m, int32_t index, int64_t half) {
  const tn_node *slice = m->nodes[index].node;
  const tn_slice_attributes *a = slice->attributes;
  const tn_type *y = &slice->out[0];
  for (int32_t i = 0; i < 5; i++)
    if (i != HALVES && y->dims[i] != m->in[0]->dims[i]) return false;
  return y->dims[HALVES] == 1 && a->starts.v[HALVES] == half;
}

static bool rotary_joins_halves(const tn_match *m) {
  const tn_node *join = m->nodes[m->n_nodes - 1].node;
  int64_t axis = ((const tn_axis_attributes *)join->attributes)->axis;
  return (axis < 0 ? axis + join->out[0].rank : axis) == HALVES && tn_type_same_dims(m->out[0], m->in[0]);
}

/* (1, tokens, 1, 1, pairs) beside (samples, tokens, heads, 2, pairs). */
static bool rotary_is_table(const tn_type *table, const tn_type *x) {
  const int64_t dims[5] = {1, x->dims[1], 1, 1, x->dims[4]};
  for (int32_t i = 0; i < 5; i++)
    if (table->rank != 5 || table->dims[i] != dims[i]) return false;
  return true;
}

static tn_status onednn_rotary_query(tn_query *q) {
  const tn_match *m = q->match;
  const tn_type *x = m->in[0];
  if (x->dtype != TN_F32)
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "elements are %s, expected f32", tn_dtype_name(x->dtype));
  if (x->rank != 5 || x->dims[HALVES] != 2 || !rotary_takes_half(m, 0, 0) || !rotary_takes_half(m, 1, 1) ||
      !rotary_joins_halves(m) || !rotary_is_table(m->in[1], x) || !rotary_is_table(m->in[2], x))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "not rotary positions whose pairs are the halves of a head");
  static const int32_t inplace[1][2] = {{0, 0}};
  return tn_offer(q, (tn_variant){.name = "tokens",
                                  .prepared_bytes = sizeof(rotary_kernel),
                                  .n_inplace = 1,
                                  .inplace = inplace,
                                  .cost_s = tn_cost_of_bytes(q->device, tn_match_bytes(m))});
}

static tn_status onednn_rotary_prepare(tn_prepare *p, void **made) {
  rotary_kernel *kernel = tn_new(p, sizeof *kernel);
  if (kernel == NULL) return TN_ENOMEM;
  rotary_make(p->match, p->backend, kernel);
  *made = kernel;
  return TN_OK;
}

/* ---- launch --------------------------------------------------------------------------------------- */

static void rotary_chunk(void *arg, int64_t chunk) {
  const tn_launch *l = arg;
  const rotary_kernel *p = l->prepared;
  int64_t width = 2 * p->heads * p->pairs, end = least(p->rows, (chunk + 1) * p->per_chunk);
  for (int64_t row = chunk * p->per_chunk; row < end; row++) {
    int64_t at = row % p->tokens * p->pairs;
    p->loops->turn((const float *)l->in[0].data + row * width, (const float *)l->in[1].data + at,
                   (const float *)l->in[2].data + at, p->heads, p->pairs,
                   (float *)l->out[0].data + row * width);
  }
}

static tn_status onednn_rotary_launch(tn_launch *l) {
  const rotary_kernel *p = l->prepared;
  int64_t chunks = divide_up(p->rows, p->per_chunk);
  if (chunks == 1)
    rotary_chunk(l, 0);
  else if (chunks > 1)
    tn_parallel(l, chunks, rotary_chunk, l);
  return TN_OK;
}

TN_DEFINE_KERNEL(onednn, rotary, "onednn_rotary",
                 "a = slice(x); b = slice(x); p = mul(a, c); q = mul(b, s); d = sub(p, q); e = mul(b, c); "
                 "f = mul(a, s); g = add(e, f); y = concat(d, g)",
                 "rotary positions from tables of cosines and sines",
                 TN_KERNEL_CALLBACKS_WITH(onednn_rotary, tn_delete_prepared));
