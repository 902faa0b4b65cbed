/* backends/cpu/kernels/movement.c: ops that move elements without computing with them: transpose, slice, pad,
 * concat and pack, as strided copies (strided_copy.h), and copy. */
#include "backends/shared/define_kernel.h"
#include "backends/cpu/kernels/kernels.h"
#include "tenon/plugin/storage.h"
#include "backends/cpu/kernels/common/strided_copy.h"

#include <stdbool.h>
#include <string.h>

#include "tenon/attributes.h"

/* One strided copy per operand. */
typedef struct movement_part {
  tn_strided copy;
  int64_t to, from; /* where the copy begins, in elements */
} movement_part;

typedef struct movement_kernel {
  bool gaps; /* some elements of the result come from no operand: they are zero */
  int32_t n_parts;
  movement_part parts[];
} movement_kernel;

/* ---- the copies of each op ---- */

static movement_part movement_transpose_part(const tn_node *n) {
  const tn_transpose_attributes *a = n->attributes;
  const tn_type *x = n->in[0], *y = &n->out[0];
  int64_t own[TN_MAX_RANK], from[TN_MAX_RANK], to[TN_MAX_RANK];
  tn_cpu_strides(x->rank, x->dims, own);
  tn_cpu_strides(y->rank, y->dims, to);
  for (int32_t i = 0; i < x->rank; i++) from[i] = own[a->order.v[i]];
  return (movement_part){tn_strided_make(tn_dtype_size(x->dtype), y->rank, y->dims, to, from), 0, 0};
}

static movement_part movement_slice_part(const tn_node *n) {
  const tn_slice_attributes *a = n->attributes;
  const tn_type *x = n->in[0], *y = &n->out[0];
  int64_t from[TN_MAX_RANK], to[TN_MAX_RANK], offset = 0;
  tn_cpu_strides(x->rank, x->dims, from);
  tn_cpu_strides(y->rank, y->dims, to);
  for (int32_t i = 0; i < x->rank; i++) {
    offset += a->starts.v[i] * from[i];
    if (a->steps.n > 0) from[i] *= a->steps.v[i];
  }
  return (movement_part){tn_strided_make(tn_dtype_size(x->dtype), y->rank, y->dims, to, from), 0, offset};
}

static movement_part movement_pad_part(const tn_node *n) {
  const tn_pad_attributes *a = n->attributes;
  const tn_type *x = n->in[0], *y = &n->out[0];
  int64_t from[TN_MAX_RANK], to[TN_MAX_RANK], offset = 0;
  tn_cpu_strides(x->rank, x->dims, from);
  tn_cpu_strides(y->rank, y->dims, to);
  for (int32_t i = 0; i < x->rank; i++) {
    offset += a->low.v[i] * to[i];
    if (a->inner.n > 0) to[i] *= a->inner.v[i] + 1;
  }
  return (movement_part){tn_strided_make(tn_dtype_size(x->dtype), x->rank, x->dims, to, from), offset, 0};
}

/* `before`: the sum of the earlier operands' sizes along the axis. */
static movement_part movement_concat_part(const tn_node *n, int32_t operand, int64_t before) {
  const tn_axis_attributes *a = n->attributes;
  const tn_type *x = n->in[operand], *y = &n->out[0];
  int64_t from[TN_MAX_RANK], to[TN_MAX_RANK], axis = a->axis < 0 ? a->axis + y->rank : a->axis;
  tn_cpu_strides(x->rank, x->dims, from);
  tn_cpu_strides(y->rank, y->dims, to);
  return (movement_part){tn_strided_make(tn_dtype_size(x->dtype), x->rank, x->dims, to, from),
                         before * to[axis], 0};
}

static movement_part movement_pack_part(const tn_node *n, int32_t operand) {
  const tn_pack_attributes *a = n->attributes;
  const tn_type *x = n->in[operand];
  const int64_t count = tn_type_count(x), one = 1;
  return (movement_part){tn_strided_make(tn_dtype_size(x->dtype), 1, &count, &one, &one),
                         a->offsets.v[operand], 0};
}

static void movement_concat_parts(movement_kernel *p, const tn_node *n) {
  const tn_axis_attributes *a = n->attributes;
  int64_t before = 0;
  for (int32_t i = 0; i < n->n_in; i++) {
    p->parts[i] = movement_concat_part(n, i, before);
    before += n->in[i]->dims[a->axis < 0 ? a->axis + n->in[i]->rank : a->axis];
  }
}

static void movement_fill(movement_kernel *p, const tn_node *n) {
  int64_t given = 0;
  if (strcmp(n->op, "transpose") == 0) p->parts[0] = movement_transpose_part(n);
  if (strcmp(n->op, "slice") == 0) p->parts[0] = movement_slice_part(n);
  if (strcmp(n->op, "pad") == 0) p->parts[0] = movement_pad_part(n);
  if (strcmp(n->op, "concat") == 0) movement_concat_parts(p, n);
  for (int32_t i = 0; i < n->n_in && strcmp(n->op, "pack") == 0; i++) p->parts[i] = movement_pack_part(n, i);
  for (int32_t i = 0; i < n->n_in; i++) given += tn_type_count(n->in[i]);
  p->n_parts = n->n_in;
  p->gaps = given < tn_type_count(&n->out[0]);
}

/* ---- query, prepare, launch ---- */

static size_t movement_bytes(const tn_match *m) {
  return sizeof(movement_kernel) + (size_t)m->nodes[0].node->n_in * sizeof(movement_part);
}

static tn_status movement_query(tn_query *q) {
  tn_variant v = {.struct_size = sizeof v,
                  .name = "strided copy",
                  .prepared_bytes = (int64_t)movement_bytes(q->match),
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status movement_prepare(tn_prepare *p, void **made) {
  movement_kernel *keep = tn_new(p, movement_bytes(p->match));
  if (keep == NULL) return TN_ENOMEM;
  movement_fill(keep, p->match->nodes[0].node);
  *made = keep;
  return TN_OK;
}

static void movement_release(tn_env *env, void *made) { tn_delete(env, made); }

/* Skips empty operands, which have no memory. */
static tn_status movement_launch(tn_launch *l) {
  const movement_kernel *p = l->prepared;
  const tn_view *y = &l->out[0];
  int64_t size = (int64_t)tn_dtype_size(y->type.dtype);
  if (p->gaps) tn_cpu_zero_bytes(l, y->data, tn_type_bytes(&y->type));
  for (int32_t i = 0; i < p->n_parts; i++) {
    const movement_part *t = &p->parts[i];
    if (tn_type_count(&l->in[i].type) == 0 || tn_type_count(&y->type) == 0) continue;
    tn_strided_copy(l, &t->copy, (uint8_t *)y->data + t->to * size,
                    (const uint8_t *)l->in[i].data + t->from * size);
  }
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, transpose, "transpose", "y = transpose(x)",
                 "permutes the dimensions, copied tile by tile", TN_KERNEL_CALLBACKS(movement));
TN_DEFINE_KERNEL(cpu, slice, "slice", "y = slice(x)", "a part of a tensor", TN_KERNEL_CALLBACKS(movement));
TN_DEFINE_KERNEL(cpu, pad, "pad", "y = pad(x)", "a tensor with zeros around it and between its elements",
                 TN_KERNEL_CALLBACKS(movement));
TN_DEFINE_KERNEL(cpu, concat, "concat", "y = concat(xs*)", "tensors joined along one dimension",
                 TN_KERNEL_CALLBACKS(movement));
TN_DEFINE_KERNEL(cpu, pack, "pack", "y = pack(xs*)", "tensors flattened and concatenated",
                 TN_KERNEL_CALLBACKS(movement));

/* ---- copy: the bytes of the storage, padding included ---- */

static tn_status copy_query(tn_query *q) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY};
  static const int32_t inplace[1][2] = {{0, 0}};
  tn_variant v = {.struct_size = sizeof v,
                  .name = "bytes",
                  .in = &any,
                  .out = &any,
                  .n_inplace = 1,
                  .inplace = inplace,
                  .deterministic = 1,
                  .capturable = 1};
  tn_add_variant(q, &v);
  return TN_OK;
}

static tn_status copy_launch(tn_launch *l) {
  const tn_view *x = &l->in[0];
  tn_storage s = tn_storage_of(&x->type, &x->layout);
  tn_cpu_copy_bytes(l, l->out[0].data, x->data, (size_t)s.count * tn_dtype_size(x->type.dtype));
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, copy, "copy", "y = copy(x)", "copies the bytes of a tensor", .query = copy_query,
                 .launch = copy_launch);
