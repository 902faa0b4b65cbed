/* backends/onednn/library/conv.h: convolutions as lists of primitives: forward, gradients, and inference with
 * the ops behind the convolution. A transposed convolution is the gradient of an input. */
#pragma once

#include <stdbool.h>

#include "backends/onednn/library/primitive_list.h"
#include "tenon/attributes.h"

enum { TN_CONV_FORWARD = 0, TN_CONV_GRAD_INPUT = 1, TN_CONV_GRAD_WEIGHT = 2 };

/* The id of a variant is a sum of these. */
enum {
  TN_CONV_WINOGRAD = 1,
  TN_CONV_IN_F32 = 2, /* bf16 operands and results, computed in f32 */
  TN_CONV_FOLDED = 4, /* weights and bias are read from the folded memory */
  TN_CONV_LAST = 8    /* channels are the innermost dimension, not in blocks: any number of them */
};

/* x (N, C, H, W), w (O, C / groups, h, w) and y (N, O, H', W'), or with a depth in front of the height, or
 * their gradients. Operands and results: x, w, bias -> y; dy, w -> dx; x, dy -> dw. */
typedef struct tn_dnnl_conv {
  int32_t direction; /* TN_CONV_... */
  const tn_conv2d_attributes *attributes;
  const tn_type *x, *w, *y, *bias; /* bias may be NULL */
  tn_layout w_layout;              /* of the weights in memory; unset: row-major */
  /* Forward only: */
  const tn_type *added; /* a residual that is added to the result, or NULL */
  int32_t added_at;     /* the number of that operand */
  int32_t activation;   /* TN_DNNL_..., behind the sum */
} tn_dnnl_conv;

typedef struct tn_dnnl_conv_layouts {
  tn_layout x, y;
  tn_layout w; /* the layout of weights that needs no reorder; unset: every layout needs one */
} tn_dnnl_conv_layouts;

/* The folded memory of a convolution: the weights in the layout of its primitive, then, forward, the bias. */
typedef struct tn_dnnl_folded {
  tn_dnnl_desc w;
  int64_t bias_offset, bytes;
} tn_dnnl_folded;

/* Of a match whose first node is a convolution or one of its gradients, and whose first result has its type.
 */
tn_dnnl_conv tn_dnnl_conv_of(const tn_match *match);

/* TN_EUNSUPPORTED where the library has no such convolution, or not in this variant. `folded` is filled for
 * TN_CONV_FOLDED, is valid until the list is finished, and may be NULL otherwise. */
tn_status tn_dnnl_conv_list(tn_primitive_list *list, const tn_dnnl_conv *conv, int32_t how,
                            tn_dnnl_conv_layouts *layouts, tn_dnnl_folded *folded);
/* An estimate to rank variants until they are measured. */
double tn_dnnl_conv_cost_s(const tn_dnnl_conv *conv, int32_t how, const tn_device_properties *device);

/* Calls `add` for each variant. Where all of them fail with TN_EUNSUPPORTED, the failure of the first one is
 * returned. */
tn_status tn_dnnl_conv_variants(tn_query *q, const tn_dnnl_conv *conv, int32_t base,
                                tn_status (*add)(tn_query *q, const tn_dnnl_conv *conv, int32_t how));

/* "direct", "winograd in f32", "channels last": the variant without TN_CONV_FOLDED. */
const char *tn_dnnl_conv_name(int32_t how);

/* The type of weights with the groups as the first dimension, over the same bytes. */
tn_type tn_dnnl_group_weights(const tn_dnnl_conv *conv);
