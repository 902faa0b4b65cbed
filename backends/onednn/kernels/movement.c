/* Elements that move as they are: transpose, slice, concat, and the sum of tensors padded so that they lie
 * side by side, as the gradient of a tensor cut in pieces is. Each is one copy per operand between dimensions
 * at any strides: whole runs where both sides have neighbours, squares turned in registers where only one
 * has. */
#include <stdbool.h>
#include <string.h>

#include "backends/onednn/kernels/kernels.h"
#include "backends/onednn/kernels/transpose.h"
#include "backends/onednn/integer_math.h"
#include "tenon/attributes.h"

enum { CHUNK_BYTES = 1 << 16, PIECE_BYTES = 1 << 16 };

/* Dimensions outermost first, the innermost with stride 1 on the result's side; strides in elements. */
typedef struct part {
  int32_t rank;
  int32_t
      across; /* the dimension along which the operand has stride 1, where it is not the innermost; else -1 */
  int64_t dims[TN_MAX_RANK], to[TN_MAX_RANK], from[TN_MAX_RANK];
  int64_t to_first, from_first;
  int64_t rows, pieces; /* runs, or matrices to turn; and into how many pieces each is cut */
  int64_t per_chunk;
} part;

typedef struct plan {
  tn_turn_function turn;
  int64_t size; /* of an element */
  int32_t n;
  part parts[];
} plan;

/* ---- launch --------------------------------------------------------------------------------------- */

typedef struct job {
  const plan *plan;
  const part *p;
  uint8_t *to;
  const uint8_t *from;
} job;

/* Loops over all dimensions but the innermost, and but the one across. */
typedef struct odometer {
  int64_t at[TN_MAX_RANK], to, from;
} odometer;

static odometer start_at(const part *p, int64_t row) {
  odometer o = {{0}, p->to_first, p->from_first};
  for (int32_t i = p->rank - 1; i-- > 0;) {
    if (i == p->across) continue;
    o.at[i] = row % p->dims[i];
    row /= p->dims[i];
    o.to += o.at[i] * p->to[i];
    o.from += o.at[i] * p->from[i];
  }
  return o;
}

static void step(const part *p, odometer *o) {
  for (int32_t i = p->rank - 1; i-- > 0;) {
    if (i == p->across) continue;
    o->to += p->to[i];
    o->from += p->from[i];
    if (++o->at[i] < p->dims[i]) return;
    o->to -= p->dims[i] * p->to[i];
    o->from -= p->dims[i] * p->from[i];
    o->at[i] = 0;
  }
}

/* A piece of a run, or of a matrix: of its dimension across. */
static void do_piece(const job *j, const odometer *o, int64_t piece) {
  const part *p = j->p;
  int32_t last = p->rank - 1;
  int64_t size = j->plan->size, whole = p->dims[p->across < 0 ? last : p->across];
  int64_t length = divide_up(whole, p->pieces), first = piece * length, n = least(length, whole - first);
  if (n <= 0) return;
  if (p->across < 0) {
    memcpy(j->to + (o->to + first) * size, j->from + (o->from + first) * size, (size_t)(n * size));
    return;
  }
  int64_t to = o->to + first * p->to[p->across], from = o->from + first;
  j->plan->turn(j->from + from * size, p->from[last], j->to + to * size, p->to[p->across], p->dims[last], n);
}

static void move_chunk(void *arg, int64_t chunk) {
  const job *j = arg;
  const part *p = j->p;
  int64_t task = chunk * p->per_chunk, end = least(p->rows * p->pieces, task + p->per_chunk);
  int64_t piece = task % p->pieces;
  odometer o = start_at(p, task / p->pieces);
  for (; task < end; task++) {
    do_piece(j, &o, piece);
    if (++piece < p->pieces) continue;
    piece = 0;
    step(p, &o);
  }
}

static tn_status launch(tn_launch *l) {
  const plan *k = l->plan;
  for (int32_t i = 0; i < k->n; i++) {
    const part *p = &k->parts[i];
    job j = {k, p, l->out[0].data, l->in[i].data};
    tn_parallel(l, divide_up(p->rows * p->pieces, p->per_chunk), move_chunk, &j);
  }
  return TN_OK;
}

/* ---- parts ---------------------------------------------------------------------------------------- */

static void strides_of(const tn_type *type, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t i = type->rank; i-- > 0;) {
    strides[i] = stride;
    stride *= type->dims[i];
  }
}

/* Neighbouring dimensions that lie one after the other on both sides are one. */
static void add_dimension(part *p, int64_t dim, int64_t to, int64_t from) {
  int32_t last = p->rank - 1;
  if (dim == 1) return;
  if (last >= 0 && p->to[last] == dim * to && p->from[last] == dim * from) {
    p->dims[last] *= dim;
    p->to[last] = to;
    p->from[last] = from;
    return;
  }
  p->dims[p->rank] = dim;
  p->to[p->rank] = to;
  p->from[p->rank++] = from;
}

/* False: neither runs nor matrices. */
static bool make_part(part *p, int64_t size, const tn_type *type, const int64_t *to, const int64_t *from,
                      int64_t to_first, int64_t from_first) {
  *p = (part){.across = -1, .to_first = to_first, .from_first = from_first, .rows = 1, .pieces = 1};
  for (int32_t i = 0; i < type->rank; i++) add_dimension(p, type->dims[i], to[i], from[i]);
  if (p->rank == 0) {
    p->rank = 1;
    p->dims[0] = p->to[0] = p->from[0] = 1;
  }
  int32_t last = p->rank - 1;
  if (p->to[last] != 1) return false;
  for (int32_t i = 0; i < last && p->from[last] != 1; i++)
    if (p->from[i] == 1) p->across = i;
  if (p->from[last] != 1 && (p->across < 0 || (size != 2 && size != 4))) return false;
  int64_t bytes = p->dims[last] * size * (p->across < 0 ? 1 : p->dims[p->across]);
  for (int32_t i = 0; i < last; i++)
    if (i != p->across) p->rows *= p->dims[i];
  if (p->dims[last] == 0) p->rows = 0;
  p->pieces = at_least_1(least(divide_up(bytes, PIECE_BYTES), p->dims[p->across < 0 ? last : p->across]));
  p->per_chunk = at_least_1(CHUNK_BYTES / at_least_1(bytes / p->pieces));
  return true;
}

static bool transpose_part(part *p, const tn_node *n) {
  const tn_transpose_attributes *a = n->attributes;
  int64_t own[TN_MAX_RANK], from[TN_MAX_RANK], to[TN_MAX_RANK];
  strides_of(n->in[0], own);
  strides_of(&n->out[0], to);
  for (int32_t i = 0; i < n->in[0]->rank; i++) from[i] = own[a->order.v[i]];
  return make_part(p, (int64_t)tn_dtype_size(n->in[0]->dtype), &n->out[0], to, from, 0, 0);
}

static bool slice_part(part *p, const tn_node *n) {
  const tn_slice_attributes *a = n->attributes;
  int64_t from[TN_MAX_RANK], to[TN_MAX_RANK], first = 0;
  strides_of(n->in[0], from);
  strides_of(&n->out[0], to);
  for (int32_t i = 0; i < n->in[0]->rank; i++) {
    first += a->starts.v[i] * from[i];
    if (a->steps.n > 0) from[i] *= a->steps.v[i];
  }
  return make_part(p, (int64_t)tn_dtype_size(n->in[0]->dtype), &n->out[0], to, from, 0, first);
}

/* An operand that begins `before` indices into dimension `axis` of the result. */
static bool beside_part(part *p, const tn_type *x, const tn_type *y, int32_t axis, int64_t before) {
  int64_t from[TN_MAX_RANK], to[TN_MAX_RANK];
  strides_of(x, from);
  strides_of(y, to);
  return make_part(p, (int64_t)tn_dtype_size(x->dtype), x, to, from, before * to[axis], 0);
}

static bool concat_parts(part *parts, const tn_node *n) {
  const tn_axis_attributes *a = n->attributes;
  int32_t axis = (int32_t)(a->axis < 0 ? a->axis + n->out[0].rank : a->axis);
  int64_t before = 0;
  for (int32_t i = 0; i < n->n_in; i++) {
    if (!beside_part(&parts[i], n->in[i], &n->out[0], axis, before)) return false;
    before += n->in[i]->dims[axis];
  }
  return true;
}

/* The dimension that a pad makes longer, with nothing between its elements; -1: another kind of pad. */
static int32_t padded_dimension(const tn_node *pad) {
  const tn_pad_attributes *a = pad->attributes;
  int32_t found = -1;
  for (int32_t i = 0; i < pad->in[0]->rank; i++) {
    if (a->inner.n > 0 && a->inner.v[i] != 0) return -1;
    if (a->low.v[i] == 0 && a->high.v[i] == 0) continue;
    if (found >= 0) return -1;
    found = i;
  }
  return found;
}

/* Whether tensors that begin at `low` and are `length` long fill `whole` without a gap: then, and only then,
 * do their sizes add up to it while every one ends where another begins. */
static bool fill_whole(const int64_t *low, const int64_t *length, int32_t n, int64_t whole) {
  int64_t at = 0;
  for (int32_t filled = 0; filled < n; filled++) {
    int32_t next = -1;
    for (int32_t i = 0; i < n; i++)
      if (low[i] == at && length[i] > 0) next = i;
    if (next < 0) return false;
    at += length[next];
  }
  return at == whole;
}

/* The pads come first, in the order of the operands. */
static bool pads_parts(part *parts, const tn_match *m) {
  int64_t low[3], length[3];
  const tn_type *y = m->out[0];
  int32_t axis = padded_dimension(m->nodes[0].node);
  for (int32_t i = 0; i < m->n_in; i++) {
    const tn_node *pad = m->nodes[i].node;
    if (axis < 0 || padded_dimension(pad) != axis || m->nodes[i].in[0] != i) return false;
    low[i] = ((const tn_pad_attributes *)pad->attributes)->low.v[axis];
    length[i] = pad->in[0]->dims[axis];
    if (!beside_part(&parts[i], pad->in[0], y, axis, low[i])) return false;
  }
  return fill_whole(low, length, m->n_in, y->dims[axis]);
}

/* ---- query and prepare ---------------------------------------------------------------------------- */

static size_t plan_bytes(const tn_match *m) { return sizeof(plan) + (size_t)m->n_in * sizeof(part); }

static bool make_parts(part *parts, const tn_match *m) {
  const tn_node *n = m->nodes[0].node;
  if (strcmp(n->op, "transpose") == 0) return transpose_part(parts, n);
  if (strcmp(n->op, "slice") == 0) return slice_part(parts, n);
  if (strcmp(n->op, "concat") == 0) return concat_parts(parts, n);
  return pads_parts(parts, m);
}

static void make_plan(const tn_match *m, const void *backend, plan *k) {
  const tn_turn_loops *loops = TN_LOOPS_PICK_AT(tn_loops_turn, tn_onednn_isa_of(backend));
  k->size = (int64_t)tn_dtype_size(m->out[0]->dtype);
  k->turn = k->size == 2 ? loops->of_2 : loops->of_4;
  k->n = m->n_in;
}

static tn_status query(tn_query *q) {
  const tn_match *m = q->match;
  part *parts = tn_new(q, plan_bytes(m));
  if (parts == NULL) return TN_ENOMEM;
  bool can = make_parts(parts, m);
  tn_delete(q, parts);
  if (!can) return tn_fail(q, TN_EUNSUPPORTED, NULL, "its elements lie neither in runs nor in matrices");
  tn_variant v = {.struct_size = sizeof v,
                  .name = "runs",
                  .prepared_bytes = (int64_t)plan_bytes(m),
                  .cost_s = 1e-7 + 2 * (double)tn_type_bytes(m->out[0]) / 1e10,
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status prepare(tn_prepare *p, void **made) {
  plan *keep = tn_new(p, plan_bytes(p->match));
  if (keep == NULL) return TN_ENOMEM;
  make_plan(p->match, p->backend, keep);
  make_parts(keep->parts, p->match);
  *made = keep;
  return TN_OK;
}

static void release(tn_env *env, void *made) { tn_delete(env, made); }

#define MOVE(id, text, what)                                                                                 \
  const tn_kernel tn_onednn_##id = {.item = TN_ITEM_PLAIN(tn_kernel, TN_KERNEL, "onednn_" #id, what),        \
                                    .family = "onednn",                                                      \
                                    .pattern = text,                                                         \
                                    .query = query,                                                          \
                                    .prepare = prepare,                                                      \
                                    .release = release,                                                      \
                                    .launch = launch}

MOVE(transpose, "y = transpose(x)", "dimensions in another order, in runs or squares");
MOVE(slice, "y = slice(x)", "a part of a tensor, run by run");
MOVE(concat, "y = concat(xs*)", "tensors joined along one dimension, run by run");
MOVE(beside_2, "a = pad(x); b = pad(y); s = add(a, b)", "two gradients of one tensor's halves, side by side");
MOVE(beside_3, "a = pad(x); b = pad(y); c = pad(z); s = add(a, b); t = add(s, c)",
     "three gradients of one tensor's thirds, side by side");
