/* backends/onednn/library/conv.h: a convolution, one of its gradients, or a convolution with what follows it
 * in inference, as a recipe. */
#ifndef TN_BACKENDS_ONEDNN_LIBRARY_CONV_H
#define TN_BACKENDS_ONEDNN_LIBRARY_CONV_H

#include <stdbool.h>

#include "backends/onednn/library/primitive_list.h"
#include "tenon/attributes.h"

enum { TN_DNN_CONV_FORWARD = 0, TN_DNN_CONV_GRAD_INPUT = 1, TN_DNN_CONV_GRAD_WEIGHT = 2 };

/* How: a variant is a sum of these. */
enum {
  TN_DNN_WINOGRAD = 1,
  TN_DNN_IN_F32 = 2, /* bf16 operands and results, computed in f32 */
  TN_DNN_FOLDED = 4  /* weights and bias come from the folded memory */
};

/* x (N, C, H, W), w (O, C / groups, h, w) and y (N, O, H', W'), whichever of them is the result. Forward: x,
 * w and bias are operands 0, 1, 2; the gradients: dy, w -> dx and x, dy -> dw. */
typedef struct tn_dnn_conv {
  int32_t what;
  const tn_conv2d_attributes *attributes;
  const tn_type *x, *w, *y, *bias; /* bias: NULL without */
  tn_layout w_lies;                /* unset: row-major */
  /* forward only: */
  const tn_type *added; /* added to the result; NULL: nothing is */
  int32_t added_at;     /* number of that operand */
  bool relu;            /* last of all */
} tn_dnn_conv;

typedef struct tn_dnn_conv_layouts {
  tn_layout x, y;
  tn_layout w; /* in which the weights need no copy; unset: they need one however they lie */
} tn_dnn_conv_layouts;

/* Where a folded convolution keeps its weights, which lie as its primitive wants them, and its bias. */
typedef struct tn_dnn_folded {
  tn_dnn_desc w;
  int64_t bias_offset, bytes;
} tn_dnn_folded;

/* TN_EUNSUPPORTED where the library cannot do it, or does not do it so. `folded` is filled for TN_DNN_FOLDED,
 * is valid until the recipe is finished, and may be NULL otherwise. */
tn_status tn_dnn_conv_recipe(tn_dnn_recipe *recipe, const tn_dnn_conv *conv, int32_t how,
                             tn_dnn_conv_layouts *layouts, tn_dnn_folded *folded);
/* An order of magnitude, to rank variants until they are measured. */
double tn_dnn_conv_estimate_s(const tn_dnn_conv *conv, int32_t how, int32_t threads);

/* All ways of doing it that make sense: `add` is asked for each. The first may fail with TN_EUNSUPPORTED,
 * which says why there is none. */
tn_status tn_dnn_conv_ways(tn_query *q, const tn_dnn_conv *conv, int32_t base,
                           tn_status (*add)(tn_query *q, const tn_dnn_conv *conv, int32_t how));

/* Weights of groups have the group as a dimension of their own: the same bytes. */
tn_type tn_dnn_group_weights(const tn_dnn_conv *conv);

#endif
