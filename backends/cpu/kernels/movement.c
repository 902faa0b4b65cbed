/* backends/cpu/kernels/movement.c: ops that move elements without computing with them: transpose, slice, pad,
 * concat and pack, as strided copies (strided_copy.h), and copy. */
#include "backends/shared/define_kernel.h"
#include "tenon/plugin/storage.h"
#include "backends/cpu/kernels/common/strided_copy.h"

#include <stdbool.h>
#include <string.h>

#include "tenon/attributes.h"

typedef struct movement_kernel {
  bool gaps; /* some elements of the result come from no operand: they are zero */
  int32_t n_parts;
  tn_strided parts[]; /* one for each operand */
} movement_kernel;

/* ---- the copies of each op ---- */

static tn_strided movement_part(const tn_node *n, tn_movement walk) {
  return tn_strided_make(tn_dtype_size(n->out[0].dtype), &walk);
}

static tn_movement movement_of_pack(const tn_node *n, int32_t operand) {
  const tn_pack_attributes *a = n->attributes;
  const int64_t count = tn_type_count(n->in[operand]), one = 1;
  tn_movement walk = tn_movement_make(1, &count, &one, &one);
  walk.to_first = a->offsets.v[operand];
  return walk;
}

static void movement_fill_concat(movement_kernel *p, const tn_node *n) {
  int32_t axis = tn_movement_axis(n);
  int64_t before = 0;
  for (int32_t i = 0; i < n->n_in; i++) {
    p->parts[i] = movement_part(n, tn_movement_beside(n->in[i], &n->out[0], axis, before));
    before += n->in[i]->dims[axis];
  }
}

static void movement_fill(movement_kernel *p, const tn_node *n) {
  int64_t given = 0;
  if (strcmp(n->op, "transpose") == 0) p->parts[0] = movement_part(n, tn_movement_of_transpose(n));
  if (strcmp(n->op, "slice") == 0) p->parts[0] = movement_part(n, tn_movement_of_slice(n));
  if (strcmp(n->op, "pad") == 0) p->parts[0] = movement_part(n, tn_movement_of_pad(n));
  if (strcmp(n->op, "concat") == 0) movement_fill_concat(p, n);
  for (int32_t i = 0; i < n->n_in && strcmp(n->op, "pack") == 0; i++)
    p->parts[i] = movement_part(n, movement_of_pack(n, i));
  for (int32_t i = 0; i < n->n_in; i++) given += tn_type_count(n->in[i]);
  p->n_parts = n->n_in;
  p->gaps = given < tn_type_count(&n->out[0]);
}

/* ---- query, prepare, launch ---- */

static size_t movement_bytes(const tn_match *m) {
  return sizeof(movement_kernel) + (size_t)m->nodes[0].node->n_in * sizeof(tn_strided);
}

static tn_status movement_query(tn_query *q) {
  return tn_offer(q,
                  (tn_variant){.name = "strided copy", .prepared_bytes = (int64_t)movement_bytes(q->match)});
}

static tn_status movement_prepare(tn_prepare *p, void **made) {
  movement_kernel *keep = tn_new(p, movement_bytes(p->match));
  if (keep == NULL) return TN_ENOMEM;
  movement_fill(keep, p->match->nodes[0].node);
  *made = keep;
  return TN_OK;
}

/* Skips empty operands, which have no memory. */
static tn_status movement_launch(tn_launch *l) {
  const movement_kernel *p = l->prepared;
  const tn_view *y = &l->out[0];
  if (p->gaps) tn_cpu_zero_bytes(l, y->data, tn_type_bytes(&y->type));
  for (int32_t i = 0; i < p->n_parts; i++) {
    if (tn_type_count(&l->in[i].type) == 0 || tn_type_count(&y->type) == 0) continue;
    tn_strided_copy(l, &p->parts[i], y->data, l->in[i].data);
  }
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, transpose, "transpose", "y = transpose(x)",
                 "permutes the dimensions, copied tile by tile",
                 TN_KERNEL_CALLBACKS_WITH(movement, tn_delete_prepared));
TN_DEFINE_KERNEL(cpu, slice, "slice", "y = slice(x)", "a part of a tensor",
                 TN_KERNEL_CALLBACKS_WITH(movement, tn_delete_prepared));
TN_DEFINE_KERNEL(cpu, pad, "pad", "y = pad(x)", "a tensor with zeros around it and between its elements",
                 TN_KERNEL_CALLBACKS_WITH(movement, tn_delete_prepared));
TN_DEFINE_KERNEL(cpu, concat, "concat", "y = concat(xs*)", "tensors joined along one dimension",
                 TN_KERNEL_CALLBACKS_WITH(movement, tn_delete_prepared));
TN_DEFINE_KERNEL(cpu, pack, "pack", "y = pack(xs*)", "tensors flattened and concatenated",
                 TN_KERNEL_CALLBACKS_WITH(movement, tn_delete_prepared));

/* ---- copy: the bytes of the storage, padding included ---- */

static tn_status copy_query(tn_query *q) {
  static const tn_operand_layout any = {.rule = TN_LAYOUT_ANY};
  static const int32_t inplace[1][2] = {{0, 0}};
  return tn_offer(q,
                  (tn_variant){.name = "bytes", .in = &any, .out = &any, .n_inplace = 1, .inplace = inplace});
}

static tn_status copy_launch(tn_launch *l) {
  const tn_view *x = &l->in[0];
  tn_storage s = tn_storage_of(&x->type, &x->layout);
  tn_cpu_copy_bytes(l, l->out[0].data, x->data, (size_t)s.count * tn_dtype_size(x->type.dtype));
  return TN_OK;
}

TN_DEFINE_KERNEL(cpu, copy, "copy", "y = copy(x)", "copies the bytes of a tensor", .query = copy_query,
                 .launch = copy_launch);
