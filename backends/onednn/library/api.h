/* backends/onednn/library/api.h: the calls in which versions 2 and 3 of the library differ. The build
 * compiles api_v2.c or api_v3.c; the other files of this folder use this header and calls that both versions
 * have.
 *
 * 2.6 (Debian 12): https://oneapi-src.github.io/oneDNN/v2/; 3: https://uxlfoundation.github.io/oneDNN/ */
#pragma once

#include <oneapi/dnnl/dnnl.h>
#include <stdint.h>

/* ---- descriptions of memory ---------------------------------------------------------------------- */

/* A borrowed description, owned by a dnnl_memory_desc_t or a primitive. */
#if DNNL_VERSION_MAJOR == 2
typedef const dnnl_memory_desc_t *tn_dnnl_desc;
#else
typedef const_dnnl_memory_desc_t tn_dnnl_desc;
#endif

/* Makes a description in *desc, which must not move while it is in use. */
dnnl_status_t tn_dnnl_desc_by_strides(dnnl_memory_desc_t *desc, int32_t rank, const dnnl_dims_t dims,
                                      dnnl_data_type_t dtype, const dnnl_dims_t strides);
dnnl_status_t tn_dnnl_desc_by_tag(dnnl_memory_desc_t *desc, int32_t rank, const dnnl_dims_t dims,
                                  dnnl_data_type_t dtype, dnnl_format_tag_t tag);
void tn_dnnl_desc_destroy(dnnl_memory_desc_t *desc);
tn_dnnl_desc tn_dnnl_desc_of(const dnnl_memory_desc_t *desc);

/* Strides of the outer dimensions, and the inner blocks from the outermost on. */
typedef struct tn_dnnl_blocks {
  int32_t n;
  dnnl_dims_t strides, sizes, dims;
} tn_dnnl_blocks;

/* dnnl_unimplemented for opaque layouts, such as those of Winograd weights. */
dnnl_status_t tn_dnnl_desc_blocks(tn_dnnl_desc desc, int32_t rank, tn_dnnl_blocks *blocks);

/* ---- primitives ---------------------------------------------------------------------------------- */

typedef struct tn_dnnl_window {
  dnnl_dims_t stride, dilation, low, high; /* dilation counts the gaps; low and high pad */
} tn_dnnl_window;

typedef struct tn_dnnl_convolution {
  dnnl_prop_kind_t kind; /* forward_training, forward_inference, backward_data or backward_weights */
  dnnl_alg_kind_t algorithm;
  tn_dnnl_desc x, w, bias, y; /* bias: NULL without one, and for gradients */
  tn_dnnl_window window;
} tn_dnnl_convolution;

/* hint: a forward primitive for gradients, otherwise NULL. */
dnnl_status_t tn_dnnl_new_convolution(dnnl_engine_t engine, const tn_dnnl_convolution *convolution,
                                      dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t hint,
                                      dnnl_primitive_desc_t *primitive);

/* c = a b, of matrices. */
dnnl_status_t tn_dnnl_new_matmul(dnnl_engine_t engine, tn_dnnl_desc a, tn_dnnl_desc b, tn_dnnl_desc c,
                                 dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t *primitive);

/* Post-ops: the sum with the previous contents of the result, and an activation. */
enum {
  TN_DNNL_NONE = 0,
  TN_DNNL_RELU,
  TN_DNNL_RELU6,
  TN_DNNL_SILU,
  TN_DNNL_HARDSWISH,
  TN_DNNL_SIGMOID,
  TN_DNNL_HARDSIGMOID
};
dnnl_status_t tn_dnnl_append_sum(dnnl_post_ops_t ops);
dnnl_status_t tn_dnnl_append_activation(dnnl_post_ops_t ops, int32_t activation);
