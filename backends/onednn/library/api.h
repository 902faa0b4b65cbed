/* backends/onednn/library/api.h: the border to the library, where its versions 2 and 3 differ. What stands
 * here is done by api_v2.c or api_v3.c, whichever the build chooses; all else in dnn/ is written once, on top
 * of it and of calls that both versions have.
 *
 * 2.6 (Debian 12): https://oneapi-src.github.io/oneDNN/v2/; 3: https://uxlfoundation.github.io/oneDNN/ */
#ifndef TN_BACKENDS_ONEDNN_LIBRARY_API_H
#define TN_BACKENDS_ONEDNN_LIBRARY_API_H

#include <oneapi/dnnl/dnnl.h>
#include <stdint.h>

/* ---- descriptions of memory ---------------------------------------------------------------------- */

/* A description as calls take it: borrowed from whoever made it, a dnnl_memory_desc_t or a primitive. */
#if DNNL_VERSION_MAJOR == 2
typedef const dnnl_memory_desc_t *tn_dnn_desc;
#else
typedef const_dnnl_memory_desc_t tn_dnn_desc;
#endif

/* Makes a description in *desc, which stays where it is as long as it is used. */
dnnl_status_t tn_dnn_desc_by_strides(dnnl_memory_desc_t *desc, int32_t rank, const dnnl_dims_t dims,
                                     dnnl_data_type_t dtype, const dnnl_dims_t strides);
dnnl_status_t tn_dnn_desc_by_tag(dnnl_memory_desc_t *desc, int32_t rank, const dnnl_dims_t dims,
                                 dnnl_data_type_t dtype, dnnl_format_tag_t tag);
void tn_dnn_desc_destroy(dnnl_memory_desc_t *desc);
tn_dnn_desc tn_dnn_desc_of(const dnnl_memory_desc_t *desc);

/* Strides of the outer dimensions, and the inner blocks from the outermost on. */
typedef struct tn_dnn_blocks {
  int32_t n;
  dnnl_dims_t strides, sizes, dims;
} tn_dnn_blocks;

/* dnnl_unimplemented for memory that only the library understands, as Winograd's weights. */
dnnl_status_t tn_dnn_desc_blocks(tn_dnn_desc desc, int32_t rank, tn_dnn_blocks *blocks);

/* ---- primitives ---------------------------------------------------------------------------------- */

typedef struct tn_dnn_window {
  dnnl_dims_t stride, dilation, low, high; /* dilation counts the gaps; low and high pad */
} tn_dnn_window;

typedef struct tn_dnn_convolution {
  dnnl_prop_kind_t kind; /* forward_training, forward_inference, backward_data or backward_weights */
  dnnl_alg_kind_t algorithm;
  tn_dnn_desc x, w, bias, y; /* bias: NULL without; none for gradients */
  tn_dnn_window window;
} tn_dnn_convolution;

/* hint: a primitive of the forward direction for gradients, otherwise NULL. */
dnnl_status_t tn_dnn_new_convolution(dnnl_engine_t engine, const tn_dnn_convolution *convolution,
                                     dnnl_primitive_attr_t attributes, dnnl_primitive_desc_t hint,
                                     dnnl_primitive_desc_t *primitive);

/* What a primitive does with its result: adds it to what was there before; max(0, result). */
dnnl_status_t tn_dnn_append_sum(dnnl_post_ops_t ops);
dnnl_status_t tn_dnn_append_relu(dnnl_post_ops_t ops);

#endif
