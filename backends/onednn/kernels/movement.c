/* backends/onednn/kernels/movement.c: data movement: transpose, slice, concat, and the sum of tensors that
 * are padded side by side, which is the gradient of the slices of a tensor. Each is one strided copy for each
 * operand: of contiguous runs where both sides have them, of squares that are transposed in registers where
 * only one side has. Slices and joined tensors may be images with channels in blocks or innermost: then the
 * copies are those of the dimensions of memory. */
#include <stdbool.h>
#include <string.h>

#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "backends/shared/movement.h"
#include "backends/onednn/kernels/image_layouts.h"
#include "backends/onednn/kernels/transpose.h"
#include "backends/shared/integer_math.h"
#include "tenon/attributes.h"

enum { CHUNK_BYTES = 1 << 16, PIECE_BYTES = 1 << 16 };

/* The innermost dimension has stride 1 in the result. */
typedef struct movement_copy {
  tn_movement walk;
  int32_t across; /* the dimension with stride 1 in the operand, where it is not the innermost; else -1 */
  int64_t rows, pieces; /* runs, or matrices to transpose; pieces of each */
  int64_t per_chunk;
} movement_copy;

typedef struct movement_kernel {
  tn_transpose_function transpose;
  int64_t size; /* of an element */
  int32_t n;
  movement_copy copies[];
} movement_kernel;

/* ---- launch --------------------------------------------------------------------------------------- */

typedef struct movement_job {
  const movement_kernel *kernel;
  const movement_copy *p;
  uint8_t *to;
  const uint8_t *from;
} movement_job;

/* Counts through all dimensions but the innermost and `across`. */
typedef struct movement_odometer {
  int64_t at[TN_MAX_RANK], to, from;
} movement_odometer;

static movement_odometer movement_start(const movement_copy *p, int64_t row) {
  movement_odometer o = {{0}, p->walk.to_first, p->walk.from_first};
  for (int32_t i = p->walk.rank - 1; i-- > 0;) {
    if (i == p->across) continue;
    o.at[i] = row % p->walk.dims[i];
    row /= p->walk.dims[i];
    o.to += o.at[i] * p->walk.to[i];
    o.from += o.at[i] * p->walk.from[i];
  }
  return o;
}

static void movement_step(const movement_copy *p, movement_odometer *o) {
  for (int32_t i = p->walk.rank - 1; i-- > 0;) {
    if (i == p->across) continue;
    o->to += p->walk.to[i];
    o->from += p->walk.from[i];
    if (++o->at[i] < p->walk.dims[i]) return;
    o->to -= p->walk.dims[i] * p->walk.to[i];
    o->from -= p->walk.dims[i] * p->walk.from[i];
    o->at[i] = 0;
  }
}

/* A piece of a run, or of the dimension `across` of a matrix. */
static void movement_piece(const movement_job *j, const movement_odometer *o, int64_t piece) {
  const movement_copy *p = j->p;
  int32_t last = p->walk.rank - 1;
  int64_t size = j->kernel->size, extent = p->walk.dims[p->across < 0 ? last : p->across];
  int64_t length = divide_up(extent, p->pieces), first = piece * length, n = least(length, extent - first);
  if (n <= 0) return;
  if (p->across < 0) {
    memcpy(j->to + (o->to + first) * size, j->from + (o->from + first) * size, (size_t)(n * size));
    return;
  }
  int64_t to = o->to + first * p->walk.to[p->across], from = o->from + first;
  j->kernel->transpose(j->from + from * size, p->walk.from[last], j->to + to * size, p->walk.to[p->across],
                       p->walk.dims[last], n);
}

static void movement_chunk(void *arg, int64_t chunk) {
  const movement_job *j = arg;
  const movement_copy *p = j->p;
  int64_t task = chunk * p->per_chunk, end = least(p->rows * p->pieces, task + p->per_chunk);
  int64_t piece = task % p->pieces;
  movement_odometer o = movement_start(p, task / p->pieces);
  for (; task < end; task++) {
    movement_piece(j, &o, piece);
    if (++piece < p->pieces) continue;
    piece = 0;
    movement_step(p, &o);
  }
}

static tn_status onednn_movement_launch(tn_launch *l) {
  const movement_kernel *k = l->prepared;
  for (int32_t i = 0; i < k->n; i++) {
    const movement_copy *p = &k->copies[i];
    movement_job j = {k, p, l->out[0].data, l->in[i].data};
    tn_parallel(l, divide_up(p->rows * p->pieces, p->per_chunk), movement_chunk, &j);
  }
  return TN_OK;
}

/* ---- copies --------------------------------------------------------------------------------------- */

/* False where the copy has neither runs nor matrices. */
static bool movement_make_copy(movement_copy *p, const tn_type *type, tn_movement walk) {
  int64_t size = (int64_t)tn_dtype_size(type->dtype);
  *p = (movement_copy){.walk = walk, .across = -1, .rows = 1, .pieces = 1};
  int32_t last = p->walk.rank - 1;
  if (p->walk.to[last] != 1) return false;
  for (int32_t i = 0; i < last && p->walk.from[last] != 1; i++)
    if (p->walk.from[i] == 1) p->across = i;
  if (p->walk.from[last] != 1 && (p->across < 0 || (size != 2 && size != 4))) return false;
  int64_t bytes = p->walk.dims[last] * size * (p->across < 0 ? 1 : p->walk.dims[p->across]);
  for (int32_t i = 0; i < last; i++)
    if (i != p->across) p->rows *= p->walk.dims[i];
  if (p->walk.dims[last] == 0) p->rows = 0;
  p->pieces =
      at_least_1(least(divide_up(bytes, PIECE_BYTES), p->walk.dims[p->across < 0 ? last : p->across]));
  p->per_chunk = at_least_1(CHUNK_BYTES / at_least_1(bytes / p->pieces));
  return true;
}

/* How the tensors lie: TN_IMAGE_..., and the channels of a block. */
typedef struct movement_way {
  int32_t way, block;
} movement_way;

/* Whether the channels from `index` on begin a block, where there are blocks. */
static bool movement_begins_block(movement_way w, int32_t dim, int64_t index) {
  return w.way != TN_IMAGE_BLOCKS || dim != 1 || index % w.block == 0;
}

/* An index of a dimension as one of the dimension of memory. */
static int64_t movement_index(movement_way w, int32_t dim, int64_t index) {
  return w.way == TN_IMAGE_BLOCKS && dim == 1 ? index / w.block : index;
}

/* An operand that begins at index `before` of dimension `axis` of the result. */
static bool movement_beside(movement_copy *p, movement_way w, const tn_type *x, const tn_type *y,
                            int32_t axis, int64_t before) {
  if (!tn_image_can(w.way, x, w.block) || !tn_image_can(w.way, y, w.block)) return false;
  if (!movement_begins_block(w, axis, before)) return false;
  tn_type from = tn_image_memory(w.way, x, w.block), to = tn_image_memory(w.way, y, w.block);
  return movement_make_copy(p, &from,
                            tn_movement_beside(&from, &to, tn_image_dimension(w.way, x->rank, axis),
                                               movement_index(w, axis, before)));
}

static bool movement_concat(movement_copy *copies, movement_way w, const tn_node *n) {
  int32_t axis = tn_movement_axis(n);
  int64_t before = 0;
  for (int32_t i = 0; i < n->n_in; i++) {
    if (!movement_beside(&copies[i], w, n->in[i], &n->out[0], axis, before)) return false;
    before += n->in[i]->dims[axis];
  }
  return true;
}

/* A slice of images as one of the dimensions of memory. */
static bool movement_slice_images(movement_copy *p, movement_way w, const tn_node *n) {
  const tn_slice_attributes *a = n->attributes;
  int64_t starts[TN_MAX_RANK] = {0}, steps[TN_MAX_RANK];
  int32_t rank = n->in[0]->rank;
  if (!tn_image_can(w.way, n->in[0], w.block) || !tn_image_can(w.way, &n->out[0], w.block)) return false;
  tn_type x = tn_image_memory(w.way, n->in[0], w.block), y = tn_image_memory(w.way, &n->out[0], w.block);
  for (int32_t i = 0; i < TN_MAX_RANK; i++) steps[i] = 1;
  for (int32_t i = 0; i < rank; i++) {
    int32_t at = tn_image_dimension(w.way, rank, i);
    starts[at] = movement_index(w, i, a->starts.v[i]);
    if (a->steps.n > 0) steps[at] = a->steps.v[i];
    if (!movement_begins_block(w, i, a->starts.v[i]) ||
        (w.way == TN_IMAGE_BLOCKS && i == 1 && steps[at] != 1))
      return false;
  }
  tn_slice_attributes memory = {.starts = {x.rank, starts}, .steps = {x.rank, steps}};
  const tn_type *in[] = {&x};
  tn_node slice = *n;
  slice.attributes = &memory;
  slice.in = in;
  slice.out = &y;
  return movement_make_copy(p, &x, tn_movement_of_slice(&slice));
}

static bool movement_slice(movement_copy *p, movement_way w, const tn_node *n) {
  if (w.way != TN_IMAGE_PLAIN) return movement_slice_images(p, w, n);
  return movement_make_copy(p, n->in[0], tn_movement_of_slice(n));
}

/* The one dimension that a pad extends, without padding between elements; -1 for other pads. */
static int32_t movement_padded_dimension(const tn_node *pad) {
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

/* Whether tensors that begin at `low` and have `length` indices cover `extent` without gaps and overlaps. */
static bool movement_covers(const int64_t *low, const int64_t *length, int32_t n, int64_t extent) {
  int64_t at = 0;
  for (int32_t filled = 0; filled < n; filled++) {
    int32_t next = -1;
    for (int32_t i = 0; i < n; i++)
      if (low[i] == at && length[i] > 0) next = i;
    if (next < 0) return false;
    at += length[next];
  }
  return at == extent;
}

/* The pads come first, in the order of the operands. */
static bool movement_pads(movement_copy *copies, movement_way w, const tn_match *m) {
  int64_t low[3], length[3];
  const tn_type *y = m->out[0];
  int32_t axis = movement_padded_dimension(m->nodes[0].node);
  for (int32_t i = 0; i < m->n_in; i++) {
    const tn_node *pad = m->nodes[i].node;
    if (axis < 0 || movement_padded_dimension(pad) != axis || m->nodes[i].in[0] != i) return false;
    low[i] = ((const tn_pad_attributes *)pad->attributes)->low.v[axis];
    length[i] = pad->in[0]->dims[axis];
    if (!movement_beside(&copies[i], w, pad->in[0], y, axis, low[i])) return false;
  }
  return movement_covers(low, length, m->n_in, y->dims[axis]);
}

/* ---- query and prepare ---------------------------------------------------------------------------- */

static size_t movement_kernel_bytes(const tn_match *m) {
  return sizeof(movement_kernel) + (size_t)m->n_in * sizeof(movement_copy);
}

static movement_way movement_way_of(const void *backend, int32_t way) {
  return (movement_way){way, tn_onednn_isa_of(backend) >= TN_ISA_AVX512 ? 16 : 8};
}

static bool movement_make_copies(movement_copy *copies, movement_way w, const tn_match *m) {
  const tn_node *n = m->nodes[0].node;
  if (strcmp(n->op, "transpose") == 0)
    return w.way == TN_IMAGE_PLAIN && movement_make_copy(copies, n->in[0], tn_movement_of_transpose(n));
  if (strcmp(n->op, "slice") == 0) return movement_slice(copies, w, n);
  if (strcmp(n->op, "concat") == 0) return movement_concat(copies, w, n);
  return movement_pads(copies, w, m);
}

static void movement_make(const tn_match *m, const void *backend, movement_kernel *k) {
  const tn_transpose_loops *loops = TN_LOOPS_PICK_AT(tn_loops_transpose, tn_onednn_isa_of(backend));
  k->size = (int64_t)tn_dtype_size(m->out[0]->dtype);
  k->transpose = k->size == 2 ? loops->of_2 : loops->of_4;
  k->n = m->n_in;
}

static void movement_offer(tn_query *q, movement_way w, tn_operand_layout *rules) {
  const tn_match *m = q->match;
  for (int32_t i = 0; i < m->n_in + 1; i++)
    rules[i] = (tn_operand_layout){TN_LAYOUT_FIXED, 0, tn_image_layout(w.way, m->out[0]->rank, w.block)};
  tn_offer(q, (tn_variant){.id = w.way,
                           .name = tn_image_way_name(w.way),
                           .in = w.way == TN_IMAGE_PLAIN ? NULL : rules,
                           .out = w.way == TN_IMAGE_PLAIN ? NULL : rules + m->n_in,
                           .prepared_bytes = (int64_t)movement_kernel_bytes(m),
                           .cost_s = tn_cost_of_bytes(q->device, 2 * (double)tn_type_bytes(m->out[0]))});
}

static tn_status onednn_movement_query(tn_query *q) {
  const tn_match *m = q->match;
  movement_copy *copies = tn_new(q, movement_kernel_bytes(m));
  tn_operand_layout *rules = tn_new(q, (size_t)(m->n_in + 1) * sizeof *rules);
  bool any = false;
  for (int32_t way = TN_IMAGE_PLAIN; way < TN_IMAGE_WAYS && copies != NULL && rules != NULL; way++) {
    movement_way w = movement_way_of(q->backend, way);
    if (!movement_make_copies(copies, w, m)) continue;
    movement_offer(q, w, rules);
    any = true;
  }
  bool made = copies != NULL && rules != NULL;
  tn_delete(q, copies);
  tn_delete(q, rules);
  if (!made) return TN_ENOMEM;
  return any ? TN_OK : tn_fail(q, TN_EUNSUPPORTED, NULL, "the elements form neither runs nor matrices");
}

static tn_status onednn_movement_prepare(tn_prepare *p, void **made) {
  movement_kernel *kernel = tn_new(p, movement_kernel_bytes(p->match));
  if (kernel == NULL) return TN_ENOMEM;
  movement_make(p->match, p->backend, kernel);
  movement_make_copies(kernel->copies, movement_way_of(p->backend, p->variant), p->match);
  *made = kernel;
  return TN_OK;
}

TN_DEFINE_KERNEL(onednn, transpose, "onednn_transpose", "y = transpose(x)",
                 "dimensions in another order, in runs or squares",
                 TN_KERNEL_CALLBACKS_WITH(onednn_movement, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, slice, "onednn_slice", "y = slice(x)", "a part of a tensor, run by run",
                 TN_KERNEL_CALLBACKS_WITH(onednn_movement, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, concat, "onednn_concat", "y = concat(xs*)",
                 "tensors joined along one dimension, run by run",
                 TN_KERNEL_CALLBACKS_WITH(onednn_movement, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, beside_2, "onednn_beside_2", "a = pad(x); b = pad(y); s = add(a, b)",
                 "two gradients of one tensor's halves, side by side",
                 TN_KERNEL_CALLBACKS_WITH(onednn_movement, tn_delete_prepared));
TN_DEFINE_KERNEL(onednn, beside_3, "onednn_beside_3",
                 "a = pad(x); b = pad(y); c = pad(z); s = add(a, b); t = add(s, c)",
                 "three gradients of one tensor's thirds, side by side",
                 TN_KERNEL_CALLBACKS_WITH(onednn_movement, tn_delete_prepared));
