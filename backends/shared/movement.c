/* backends/shared/movement.c: strides of the ops that move elements. Operands and results are row-major. */
#include "backends/shared/movement.h"

#include "tenon/attributes.h"

static void movement_strides(const tn_type *type, int64_t *strides) {
  int64_t stride = 1;
  for (int32_t i = type->rank; i-- > 0;) {
    strides[i] = stride;
    stride *= type->dims[i];
  }
}

static void movement_add_dimension(tn_movement *m, int64_t dim, int64_t to, int64_t from) {
  int32_t last = m->rank - 1;
  if (dim == 1) return;
  if (last >= 0 && m->to[last] == dim * to && m->from[last] == dim * from) {
    m->dims[last] *= dim;
    m->to[last] = to;
    m->from[last] = from;
    return;
  }
  m->dims[m->rank] = dim;
  m->to[m->rank] = to;
  m->from[m->rank++] = from;
}

tn_movement tn_movement_make(int32_t rank, const int64_t *dims, const int64_t *to, const int64_t *from) {
  tn_movement m = {.rank = 0};
  for (int32_t i = 0; i < rank; i++) movement_add_dimension(&m, dims[i], to[i], from[i]);
  if (m.rank > 0) return m;
  m.rank = 1;
  m.dims[0] = m.to[0] = m.from[0] = 1;
  return m;
}

tn_movement tn_movement_of_transpose(const tn_node *n) {
  const tn_transpose_attributes *a = n->attributes;
  const tn_type *y = &n->out[0];
  int64_t own[TN_MAX_RANK], from[TN_MAX_RANK], to[TN_MAX_RANK];
  movement_strides(n->in[0], own);
  movement_strides(y, to);
  for (int32_t i = 0; i < y->rank; i++) from[i] = own[a->order.v[i]];
  return tn_movement_make(y->rank, y->dims, to, from);
}

tn_movement tn_movement_of_slice(const tn_node *n) {
  const tn_slice_attributes *a = n->attributes;
  const tn_type *y = &n->out[0];
  int64_t from[TN_MAX_RANK], to[TN_MAX_RANK], first = 0;
  movement_strides(n->in[0], from);
  movement_strides(y, to);
  for (int32_t i = 0; i < y->rank; i++) {
    first += a->starts.v[i] * from[i];
    if (a->steps.n > 0) from[i] *= a->steps.v[i];
  }
  tn_movement m = tn_movement_make(y->rank, y->dims, to, from);
  m.from_first = first;
  return m;
}

tn_movement tn_movement_of_pad(const tn_node *n) {
  const tn_pad_attributes *a = n->attributes;
  const tn_type *x = n->in[0];
  int64_t from[TN_MAX_RANK], to[TN_MAX_RANK], first = 0;
  movement_strides(x, from);
  movement_strides(&n->out[0], to);
  for (int32_t i = 0; i < x->rank; i++) {
    first += a->low.v[i] * to[i];
    if (a->inner.n > 0) to[i] *= a->inner.v[i] + 1;
  }
  tn_movement m = tn_movement_make(x->rank, x->dims, to, from);
  m.to_first = first;
  return m;
}

tn_movement tn_movement_beside(const tn_type *x, const tn_type *y, int32_t axis, int64_t before) {
  int64_t from[TN_MAX_RANK], to[TN_MAX_RANK];
  movement_strides(x, from);
  movement_strides(y, to);
  tn_movement m = tn_movement_make(x->rank, x->dims, to, from);
  m.to_first = before * to[axis];
  return m;
}

int32_t tn_movement_axis(const tn_node *n) {
  const tn_axis_attributes *a = n->attributes;
  return (int32_t)(a->axis < 0 ? a->axis + n->out[0].rank : a->axis);
}
