/* backends/onednn/library/api_v2.c: the calls of version 2: descriptions are structs of the caller, and a
 * primitive needs an operation descriptor. */
#include <string.h>

#include "backends/onednn/library/api.h"

/* ---- descriptions of memory ---------------------------------------------------------------------- */

dnnl_status_t tn_dnnl_desc_by_strides(dnnl_memory_desc_t *desc, int32_t rank, const dnnl_dims_t dims,
                                      dnnl_data_type_t dtype, const dnnl_dims_t strides) {
  return dnnl_memory_desc_init_by_strides(desc, rank, dims, dtype, strides);
}

dnnl_status_t tn_dnnl_desc_by_tag(dnnl_memory_desc_t *desc, int32_t rank, const dnnl_dims_t dims,
                                  dnnl_data_type_t dtype, dnnl_format_tag_t tag) {
  return dnnl_memory_desc_init_by_tag(desc, rank, dims, dtype, tag);
}

void tn_dnnl_desc_destroy(dnnl_memory_desc_t *desc) { (void)desc; }

tn_dnnl_desc tn_dnnl_desc_of(const dnnl_memory_desc_t *desc) { return desc; }

dnnl_status_t tn_dnnl_desc_blocks(tn_dnnl_desc desc, int32_t rank, tn_dnnl_blocks *blocks) {
  const dnnl_blocking_desc_t *b = &desc->format_desc.blocking;
  if (desc->format_kind != dnnl_blocked || desc->ndims != rank) return dnnl_unimplemented;
  blocks->n = b->inner_nblks;
  memcpy(blocks->strides, b->strides, sizeof blocks->strides);
  memcpy(blocks->sizes, b->inner_blks, sizeof blocks->sizes);
  memcpy(blocks->dims, b->inner_idxs, sizeof blocks->dims);
  return dnnl_success;
}

/* ---- primitives ---------------------------------------------------------------------------------- */

static dnnl_status_t api_describe(dnnl_convolution_desc_t *desc, const tn_dnnl_convolution *c) {
  const tn_dnnl_window *w = &c->window;
  switch (c->kind) {
  case dnnl_backward_data:
    return dnnl_dilated_convolution_backward_data_desc_init(desc, c->algorithm, c->x, c->w, c->y, w->stride,
                                                            w->dilation, w->low, w->high);
  case dnnl_backward_weights:
    return dnnl_dilated_convolution_backward_weights_desc_init(desc, c->algorithm, c->x, c->w, NULL, c->y,
                                                               w->stride, w->dilation, w->low, w->high);
  default:
    return dnnl_dilated_convolution_forward_desc_init(desc, c->kind, c->algorithm, c->x, c->w, c->bias, c->y,
                                                      w->stride, w->dilation, w->low, w->high);
  }
}

dnnl_status_t tn_dnnl_new_convolution(dnnl_engine_t engine, const tn_dnnl_convolution *c,
                                      dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t hint,
                                      dnnl_primitive_desc_t *primitive) {
  dnnl_convolution_desc_t desc;
  dnnl_status_t status = api_describe(&desc, c);
  if (status != dnnl_success) return status;
  return dnnl_primitive_desc_create(primitive, &desc, attributes, engine, hint);
}

dnnl_status_t tn_dnnl_new_matmul(dnnl_engine_t engine, tn_dnnl_desc a, tn_dnnl_desc b, tn_dnnl_desc c,
                                 dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *primitive) {
  dnnl_matmul_desc_t desc;
  dnnl_status_t status = dnnl_matmul_desc_init(&desc, a, b, NULL, c);
  if (status != dnnl_success) return status;
  return dnnl_primitive_desc_create(primitive, &desc, attributes, engine, NULL);
}

dnnl_status_t tn_dnnl_append_sum(dnnl_post_ops_t ops) { return dnnl_post_ops_append_sum(ops, 1.0f); }

static dnnl_status_t api_append(dnnl_post_ops_t ops, dnnl_alg_kind_t function, float alpha, float beta) {
  return dnnl_post_ops_append_eltwise(ops, 1.0f, function, alpha, beta);
}

/* This version has no hardsigmoid. */
dnnl_status_t tn_dnnl_append_activation(dnnl_post_ops_t ops, int32_t activation) {
  switch (activation) {
  case TN_DNNL_RELU: return api_append(ops, dnnl_eltwise_relu, 0, 0);
  case TN_DNNL_RELU6: return api_append(ops, dnnl_eltwise_clip, 0, 6);
  case TN_DNNL_SILU: return api_append(ops, dnnl_eltwise_swish, 1, 0);
  case TN_DNNL_HARDSWISH: return api_append(ops, dnnl_eltwise_hardswish, 0, 0);
  case TN_DNNL_SIGMOID: return api_append(ops, dnnl_eltwise_logistic, 0, 0);
  case TN_DNNL_HARDSIGMOID: break;
  default: return dnnl_unimplemented;
  }
  dnnl_status_t status = api_append(ops, dnnl_eltwise_linear, 1.0f / 6, 0.5f);
  return status == dnnl_success ? api_append(ops, dnnl_eltwise_clip, 0, 1) : status;
}
