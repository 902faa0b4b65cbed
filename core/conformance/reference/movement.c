/* core/conformance/reference/movement.c: data movement ops of the reference. */
#include <string.h>

#include "core/conformance/reference/reference.h"
#include "tenon/attributes.h"

static void reference_copy(const tn_reference_call *c) {
  memcpy(c->y[0], c->x[0], (size_t)tn_type_count(c->out[0]) * sizeof(double));
}

static void reference_transpose(const tn_reference_call *c) {
  const tn_transpose_attributes *a = c->attributes;
  int64_t index[TN_MAX_RANK], from[TN_MAX_RANK];
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) {
    tn_reference_unflatten(c->out[0], i, index);
    for (int64_t d = 0; d < a->order.n; d++) from[a->order.v[d]] = index[d];
    c->y[0][i] = c->x[0][tn_reference_flatten(c->in[0], from)];
  }
}

static void reference_slice(const tn_reference_call *c) {
  const tn_slice_attributes *a = c->attributes;
  int64_t index[TN_MAX_RANK];
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) {
    tn_reference_unflatten(c->out[0], i, index);
    for (int32_t d = 0; d < c->in[0]->rank; d++)
      index[d] = a->starts.v[d] + index[d] * (a->steps.n > 0 ? a->steps.v[d] : 1);
    c->y[0][i] = c->x[0][tn_reference_flatten(c->in[0], index)];
  }
}

/* The element of x that element i of an axis of a crop comes from; negative or too large: none. */
static int64_t reference_crop_source(const tn_reference_call *c, int64_t sample, int32_t axis, int64_t i) {
  const tn_crop_attributes *a = c->attributes;
  bool has_start = c->n_in > 1 && c->in[1] != NULL, has_mirror = c->n_in > 2 && c->in[2] != NULL;
  double start = has_start ? c->x[1][2 * sample + axis] : 0;
  bool mirrored = has_mirror && c->x[2][2 * sample + axis] != 0;
  return (int64_t)start + (mirrored ? a->size.v[axis] - 1 - i : i);
}

static void reference_crop(const tn_reference_call *c) {
  int64_t index[TN_MAX_RANK];
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++) {
    bool inside = true;
    tn_reference_unflatten(c->out[0], i, index);
    for (int32_t axis = 0; axis < 2; axis++) {
      int32_t d = c->in[0]->rank - 2 + axis;
      index[d] = reference_crop_source(c, index[0], axis, index[d]);
      inside = inside && index[d] >= 0 && index[d] < c->in[0]->dims[d];
    }
    if (inside) c->y[0][i] = c->x[0][tn_reference_flatten(c->in[0], index)];
  }
}

static void reference_pad(const tn_reference_call *c) {
  const tn_pad_attributes *a = c->attributes;
  int64_t index[TN_MAX_RANK];
  for (int64_t i = 0; i < tn_type_count(c->in[0]); i++) {
    tn_reference_unflatten(c->in[0], i, index);
    for (int32_t d = 0; d < c->in[0]->rank; d++)
      index[d] = a->low.v[d] + index[d] * (a->inner.n > 0 ? a->inner.v[d] + 1 : 1);
    c->y[0][tn_reference_flatten(c->out[0], index)] = c->x[0][i];
  }
}

static void reference_concat(const tn_reference_call *c) {
  const tn_axis_attributes *a = c->attributes;
  int64_t axis = tn_reference_axis(a->axis, c->out[0]), start = 0, index[TN_MAX_RANK];
  for (int32_t k = 0; k < c->n_in; start += c->in[k++]->dims[axis])
    for (int64_t i = 0; i < tn_type_count(c->in[k]); i++) {
      tn_reference_unflatten(c->in[k], i, index);
      index[axis] += start;
      c->y[0][tn_reference_flatten(c->out[0], index)] = c->x[k][i];
    }
}

static void reference_pack(const tn_reference_call *c) {
  const tn_pack_attributes *a = c->attributes;
  for (int32_t k = 0; k < c->n_in; k++)
    memcpy(c->y[0] + a->offsets.v[k], c->x[k], (size_t)tn_type_count(c->in[k]) * sizeof(double));
}

/* The reference is one rank, whose sum, part and whole are the operand: all_reduce and so on are copies. */
const tn_reference_op tn_reference_movement_ops[] = {{"copy", reference_copy},
                                                     {"reorder", reference_copy},
                                                     {"reshape", reference_copy},
                                                     {"transpose", reference_transpose},
                                                     {"slice", reference_slice},
                                                     {"pad", reference_pad},
                                                     {"concat", reference_concat},
                                                     {"pack", reference_pack},
                                                     {"crop", reference_crop},
                                                     {"all_reduce", reference_copy},
                                                     {"reduce_scatter", reference_copy},
                                                     {"all_gather", reference_copy},
                                                     {NULL, NULL}};
