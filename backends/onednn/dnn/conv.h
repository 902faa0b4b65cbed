/* backends/onednn/dnn/conv.h: a convolution, or one of its gradients, as a recipe. */
#ifndef TN_ONEDNN_CONV_H
#define TN_ONEDNN_CONV_H

#include "dnn/dnn.h"
#include "tenon/attributes.h"

enum { TN_DNN_CONV_FORWARD = 0, TN_DNN_CONV_GRAD_INPUT = 1, TN_DNN_CONV_GRAD_WEIGHT = 2 };

/* x (N, C, H, W), w (O, C / groups, h, w) and y (N, O, H', W'), whichever of them is the result. */
typedef struct tn_dnn_conv {
  int32_t what;
  const tn_conv2d_attributes *attributes;
  const tn_type *x, *w, *y, *bias; /* bias: NULL without */
} tn_dnn_conv;

typedef struct tn_dnn_conv_layouts {
  tn_layout x, y;
} tn_dnn_conv_layouts;

/* `how`: the variant. TN_EUNSUPPORTED where the library cannot do it. */
tn_status tn_dnn_conv_recipe(tn_dnn_recipe *recipe, const tn_dnn_conv *conv, int32_t how,
                             tn_dnn_conv_layouts *layouts);

#endif
