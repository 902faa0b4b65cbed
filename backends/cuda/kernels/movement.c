/* backends/cuda/kernels/movement.c: ops that move elements without computing with them: transpose and slice
 * as one strided copy, pad, and concat and pack part by part in one launch (device/movement.cu). */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/kernels/index.h"
#include "backends/cuda/kernels/strided.h"
#include "backends/cuda/rates.h"
#include "backends/shared/cost.h"
#include "backends/shared/define_kernel.h"
#include "tenon/attributes.h"

_Static_assert((int)MOVEMENT_RANK >= (int)TN_MAX_RANK && sizeof(struct parts_args) <= 4096,
               "arguments of a launch");

static int32_t cuda_movement_size(const tn_match *m) { return (int32_t)tn_dtype_size(m->out[0]->dtype); }

static tn_status cuda_movement_offer(tn_query *q, const char *name, int64_t prepared_bytes) {
  return tn_offer(q, (tn_variant){.name = name,
                                  .prepared_bytes = prepared_bytes,
                                  .cost_s = tn_cuda_bytes_s(q->device, TN_CUDA_STREAM,
                                                            2 * (double)tn_type_bytes(q->match->out[0]))});
}

/* ---- transpose and slice ---- */

static tn_status cuda_walk_query(tn_query *q) {
  return cuda_movement_offer(q, "strided copy", sizeof(tn_cuda_strided));
}

static tn_status cuda_walk_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  tn_cuda_strided *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  tn_movement walk = strcmp(n->op, "transpose") == 0 ? tn_movement_of_transpose(n) : tn_movement_of_slice(n);
  return tn_cuda_strided_prepare(p, cuda_movement_size(p->match), &walk, keep);
}

static void cuda_walk_release(tn_env *env, void *made) {
  tn_cuda_strided_release(made);
  tn_delete(env, made);
}

static tn_status cuda_walk_launch(tn_launch *l) {
  return tn_cuda_strided_launch(l, l->prepared, l->out[0].data, l->in[0].data);
}

/* ---- pad ---- */

typedef struct pad_kernel {
  int32_t unit; /* bytes that `units` copies at once; 0: there is no such copy */
  tn_cuda_function elements, units;
  struct pad_args elements_args, units_args;
} pad_kernel;

/* Dimensions of a pad, outermost first. */
typedef struct pad_dims {
  int32_t rank;
  int64_t in[TN_MAX_RANK], out[TN_MAX_RANK], low[TN_MAX_RANK], step[TN_MAX_RANK];
} pad_dims;

/* A dimension without padding is one with the dimension outside it, if that has none between its elements. */
static void pad_add_dimension(pad_dims *p, int64_t in, int64_t out, int64_t low, int64_t step) {
  int32_t last = p->rank - 1;
  if (last >= 0 && in == out && p->step[last] == 1) {
    p->in[last] *= in;
    p->out[last] *= in;
    p->low[last] *= in;
    return;
  }
  p->in[p->rank] = in;
  p->out[p->rank] = out;
  p->low[p->rank] = low;
  p->step[p->rank++] = step;
}

static pad_dims pad_dims_of(const tn_node *n) {
  const tn_pad_attributes *a = n->attributes;
  pad_dims p = {.rank = 0};
  for (int32_t i = 0; i < n->in[0]->rank; i++)
    pad_add_dimension(&p, n->in[0]->dims[i], n->out[0].dims[i], a->low.v[i],
                      a->inner.n > 0 ? a->inner.v[i] + 1 : 1);
  if (p.rank == 0) pad_add_dimension(&p, 1, 1, 0, 1);
  return p;
}

static int32_t pad_unit(int32_t size, const pad_dims *p) {
  int32_t last = p->rank - 1;
  if (p->step[last] != 1) return size;
  return tn_cuda_unit_bytes(size, (int64_t[]){p->in[last], p->out[last], p->low[last]}, 3);
}

static struct pad_args pad_args_of(const pad_dims *p, int64_t per_unit) {
  struct pad_args a = {.rank = p->rank, .count = 1};
  int64_t stride = 1;
  for (int32_t i = p->rank; i-- > 0;) {
    int64_t n = i == p->rank - 1 ? per_unit : 1;
    a.dims[i] = tn_cuda_divider(p->out[i] / n);
    a.step[i] = tn_cuda_divider(p->step[i]);
    a.low[i] = p->low[i] / n;
    a.size[i] = p->in[i] / n;
    a.stride[i] = stride;
    stride *= a.size[i];
    a.count *= p->out[i] / n;
  }
  return a;
}

static tn_status cuda_pad_query(tn_query *q) {
  return cuda_movement_offer(q, "strided copy and zeros", sizeof(pad_kernel));
}

static tn_status pad_request(tn_prepare *p, const struct pad_args *a, int32_t unit,
                             tn_cuda_function *function) {
  return tn_cuda_request(p, function, "movement.cu", "pad_%d%s", (int)unit, tn_cuda_long(a->count));
}

static tn_status cuda_pad_prepare(tn_prepare *p, void **made) {
  int32_t size = cuda_movement_size(p->match);
  pad_kernel *keep = *made = tn_new(p, sizeof *keep);
  if (keep == NULL) return TN_ENOMEM;
  if (tn_type_count(p->match->out[0]) == 0) return TN_OK;
  pad_dims dims = pad_dims_of(p->match->nodes[0].node);
  int32_t unit = pad_unit(size, &dims);
  keep->elements_args = pad_args_of(&dims, 1);
  tn_status status = pad_request(p, &keep->elements_args, size, &keep->elements);
  if (status != TN_OK || unit == size) return status;
  keep->unit = unit;
  keep->units_args = pad_args_of(&dims, unit / size);
  return pad_request(p, &keep->units_args, unit, &keep->units);
}

static void cuda_pad_release(tn_env *env, void *made) {
  pad_kernel *k = made;
  tn_cuda_withdraw(&k->elements);
  tn_cuda_withdraw(&k->units);
  tn_delete(env, k);
}

static tn_status cuda_pad_launch(tn_launch *l) {
  const pad_kernel *k = l->prepared;
  void *to = l->out[0].data;
  const void *from = l->in[0].data;
  bool in_units = k->unit > 0 && tn_cuda_aligned(to, from, k->unit);
  struct pad_args a = in_units ? k->units_args : k->elements_args;
  tn_cuda_grid grid = tn_cuda_grid_of(a.count, TN_CUDA_THREADS, TN_CUDA_BLOCKS);
  a.to = to;
  a.from = from;
  return tn_cuda_launch(l, in_units ? &k->units : &k->elements, &grid, &a, sizeof a);
}

/* ---- concat and pack ---- */

/* Where the elements of a part come from. */
enum { PART_ZEROS = -1 };
typedef struct parts_part {
  int32_t operand; /* or PART_ZEROS */
  struct movement_part part;
} parts_part;

typedef struct parts_kernel {
  tn_cuda_function function;
  int32_t size, n;
  parts_part part[];
} parts_kernel;

/* A pack has at most one gap in front of each operand and one behind the last. */
static size_t parts_bytes(const tn_match *m) {
  return sizeof(parts_kernel) + (2 * (size_t)m->nodes[0].node->n_in + 1) * sizeof(parts_part);
}

static void parts_add(parts_kernel *k, int32_t operand, int64_t to_first, int64_t to_row, int64_t run,
                      int64_t count) {
  struct movement_part part = {.to_first = to_first, .to_row = to_row, .count = count};
  if (count == 0) return;
  if (run < count) part.run = tn_cuda_divider(run);
  k->part[k->n++] = (parts_part){operand, part};
}

/* A row of an operand holds its indices of the axis and of the dimensions inside it. */
static void parts_fill_concat(parts_kernel *k, const tn_node *n) {
  int32_t axis = tn_movement_axis(n);
  int64_t inside = 1, before = 0;
  for (int32_t i = axis + 1; i < n->out[0].rank; i++) inside *= n->out[0].dims[i];
  for (int32_t i = 0; i < n->n_in; i++) {
    parts_add(k, i, before * inside, n->out[0].dims[axis] * inside, n->in[i]->dims[axis] * inside,
              tn_type_count(n->in[i]));
    before += n->in[i]->dims[axis];
  }
}

static void parts_fill_pack(parts_kernel *k, const tn_node *n) {
  const tn_pack_attributes *a = n->attributes;
  int64_t end = 0;
  for (int32_t i = 0; i < n->n_in; i++) {
    int64_t first = a->offsets.v[i], count = tn_type_count(n->in[i]);
    parts_add(k, PART_ZEROS, end, 0, first - end, first - end);
    parts_add(k, i, first, 0, count, count);
    end = first + count;
  }
  parts_add(k, PART_ZEROS, end, 0, a->count - end, a->count - end);
}

static tn_status cuda_parts_query(tn_query *q) {
  return cuda_movement_offer(q, "part by part", (int64_t)parts_bytes(q->match));
}

static tn_status cuda_parts_prepare(tn_prepare *p, void **made) {
  const tn_node *n = p->match->nodes[0].node;
  parts_kernel *keep = *made = tn_new(p, parts_bytes(p->match));
  if (keep == NULL) return TN_ENOMEM;
  keep->size = cuda_movement_size(p->match);
  if (strcmp(n->op, "concat") == 0)
    parts_fill_concat(keep, n);
  else
    parts_fill_pack(keep, n);
  return tn_cuda_request(p, &keep->function, "movement.cu", "parts_%d", (int)keep->size);
}

/* A part is copied 16 bytes at a time where each of its rows begins at a multiple of 16 bytes on both sides.
 */
static bool parts_in_vectors(const struct movement_part *p, const void *to, int32_t size) {
  int64_t per_vector = 16 / size;
  if (!tn_cuda_aligned((const uint8_t *)to + p->to_first * size, p->from, 16)) return false;
  return p->run.divisor == 0 || (p->run.divisor % per_vector == 0 && p->to_row % per_vector == 0);
}

/* Fills in the parts from `first` on and returns the number of blocks. */
static uint32_t parts_fill_launch(const tn_launch *l, const parts_kernel *k, int32_t first,
                                  struct parts_args *a) {
  int64_t blocks = 0;
  a->to = l->out[0].data;
  for (a->n = 0; a->n < MOVEMENT_PARTS && first + a->n < k->n; a->n++) {
    const parts_part *from = &k->part[first + a->n];
    struct movement_part *p = &a->part[a->n];
    *p = from->part;
    p->from = from->operand == PART_ZEROS ? NULL : l->in[from->operand].data;
    p->vector = parts_in_vectors(p, a->to, k->size);
    p->first_block = (unsigned)blocks;
    blocks += (p->count + MOVEMENT_CHUNK - 1) / MOVEMENT_CHUNK;
  }
  return (uint32_t)blocks;
}

static tn_status cuda_parts_launch(tn_launch *l) {
  const parts_kernel *k = l->prepared;
  tn_status status = TN_OK;
  for (int32_t first = 0; first < k->n && status == TN_OK; first += MOVEMENT_PARTS) {
    struct parts_args a;
    memset(&a, 0, sizeof a);
    const tn_cuda_grid grid = {.blocks = {parts_fill_launch(l, k, first, &a), 1, 1},
                               .threads = {TN_CUDA_THREADS, 1, 1}};
    status = tn_cuda_launch(l, &k->function, &grid, &a, sizeof a);
  }
  return status;
}

/* ---- descriptors ---- */

TN_DEFINE_KERNEL(cuda, transpose, "cuda_transpose", "y = transpose(x)",
                 "dimensions in another order, tile by tile", TN_KERNEL_CALLBACKS(cuda_walk));
TN_DEFINE_KERNEL(cuda, slice, "cuda_slice", "y = slice(x)", "a part of a tensor",
                 TN_KERNEL_CALLBACKS(cuda_walk));
TN_DEFINE_KERNEL(cuda, pad, "cuda_pad", "y = pad(x)",
                 "a tensor with zeros around it and between its elements", TN_KERNEL_CALLBACKS(cuda_pad));
TN_DEFINE_KERNEL(cuda, concat, "cuda_concat", "y = concat(xs*)", "tensors joined along one dimension",
                 TN_KERNEL_CALLBACKS_WITH(cuda_parts, tn_cuda_release_function));
TN_DEFINE_KERNEL(cuda, pack, "cuda_pack", "y = pack(xs*)", "tensors flattened and concatenated",
                 TN_KERNEL_CALLBACKS_WITH(cuda_parts, tn_cuda_release_function));
