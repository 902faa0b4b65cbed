/* backends/onednn/library/api_v3.c: the calls of version 3: descriptions are objects of the library, and each
 * kind of primitive has a call of its own. */
#include <string.h>

#include "backends/onednn/library/api.h"

/* ---- descriptions of memory ---------------------------------------------------------------------- */

dnnl_status_t tn_dnnl_desc_by_strides(dnnl_memory_desc_t *desc, int32_t rank, const dnnl_dims_t dims,
                                      dnnl_data_type_t dtype, const dnnl_dims_t strides) {
  return dnnl_memory_desc_create_with_strides(desc, rank, dims, dtype, strides);
}

dnnl_status_t tn_dnnl_desc_by_tag(dnnl_memory_desc_t *desc, int32_t rank, const dnnl_dims_t dims,
                                  dnnl_data_type_t dtype, dnnl_format_tag_t tag) {
  return dnnl_memory_desc_create_with_tag(desc, rank, dims, dtype, tag);
}

void tn_dnnl_desc_destroy(dnnl_memory_desc_t *desc) { dnnl_memory_desc_destroy(*desc); }

tn_dnnl_desc tn_dnnl_desc_of(const dnnl_memory_desc_t *desc) { return *desc; }

/* Copies n numbers from the array of the library that a query returns. */
static dnnl_status_t api_read_lengths(tn_dnnl_desc desc, dnnl_query_t what, int32_t n, dnnl_dim_t *lengths) {
  const dnnl_dim_t *found = NULL;
  if (n == 0) return dnnl_success;
  dnnl_status_t status = dnnl_memory_desc_query(desc, what, &found);
  if (status == dnnl_success) memcpy(lengths, found, (size_t)n * sizeof *lengths);
  return status;
}

dnnl_status_t tn_dnnl_desc_blocks(tn_dnnl_desc desc, int32_t rank, tn_dnnl_blocks *blocks) {
  dnnl_format_kind_t kind = dnnl_format_kind_undef;
  int32_t dims = 0;
  dnnl_status_t status = dnnl_memory_desc_query(desc, dnnl_query_format_kind, &kind);
  if (status == dnnl_success) status = dnnl_memory_desc_query(desc, dnnl_query_ndims_s32, &dims);
  if (status == dnnl_success && (kind != dnnl_blocked || dims != rank)) return dnnl_unimplemented;
  if (status == dnnl_success) status = dnnl_memory_desc_query(desc, dnnl_query_inner_nblks_s32, &blocks->n);
  if (status == dnnl_success) status = api_read_lengths(desc, dnnl_query_strides, rank, blocks->strides);
  if (status == dnnl_success)
    status = api_read_lengths(desc, dnnl_query_inner_blks, blocks->n, blocks->sizes);
  if (status == dnnl_success) status = api_read_lengths(desc, dnnl_query_inner_idxs, blocks->n, blocks->dims);
  return status;
}

/* ---- primitives ---------------------------------------------------------------------------------- */

dnnl_status_t tn_dnnl_new_convolution(dnnl_engine_t engine, const tn_dnnl_convolution *c,
                                      dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t hint,
                                      dnnl_primitive_desc_t *primitive) {
  const tn_dnnl_window *w = &c->window;
  switch (c->kind) {
  case dnnl_backward_data:
    return dnnl_convolution_backward_data_primitive_desc_create(primitive, engine, c->algorithm, c->x, c->w,
                                                                c->y, w->stride, w->dilation, w->low, w->high,
                                                                hint, attributes);
  case dnnl_backward_weights:
    return dnnl_convolution_backward_weights_primitive_desc_create(primitive, engine, c->algorithm, c->x,
                                                                   c->w, NULL, c->y, w->stride, w->dilation,
                                                                   w->low, w->high, hint, attributes);
  default:
    return dnnl_convolution_forward_primitive_desc_create(primitive, engine, c->kind, c->algorithm, c->x,
                                                          c->w, c->bias, c->y, w->stride, w->dilation, w->low,
                                                          w->high, attributes);
  }
}

dnnl_status_t tn_dnnl_new_matmul(dnnl_engine_t engine, tn_dnnl_desc a, tn_dnnl_desc b, tn_dnnl_desc c,
                                 dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *primitive) {
  return dnnl_matmul_primitive_desc_create(primitive, engine, a, b, NULL, c, attributes);
}

/* Without a zero point, in the type of the result. */
dnnl_status_t tn_dnnl_append_sum(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}

dnnl_status_t tn_dnnl_append_activation(dnnl_post_ops_t ops, int32_t activation) {
  switch (activation) {
  case TN_DNNL_RELU: return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0);
  case TN_DNNL_RELU6: return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_clip, 0, 6);
  case TN_DNNL_SILU: return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_swish, 1, 0);
  case TN_DNNL_HARDSWISH: return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_hardswish, 1.0f / 6, 0.5f);
  case TN_DNNL_SIGMOID: return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_logistic, 0, 0);
  case TN_DNNL_HARDSIGMOID:
    return dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_hardsigmoid, 1.0f / 6, 0.5f);
  default: return dnnl_unimplemented;
  }
}
