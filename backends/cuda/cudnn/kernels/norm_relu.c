/* backends/cuda/cudnn/kernels/norm_relu.c: see norm_relu.h. */
#include "backends/cuda/cudnn/kernels/norm_relu.h"

#include "backends/shared/constants.h"

static bool norm_relu_is_row(const tn_type *t, int64_t channels) {
  return t->dtype == TN_F32 && t->rank == 1 && t->dims[0] == channels;
}

tn_status tn_cudnn_norm_relu_check(tn_query *q, const tn_cudnn_conv *c) {
  const tn_match *m = q->match;
  bool rows = true;
  for (int32_t i = TN_CUDNN_NORM_RSTD; i <= TN_CUDNN_NORM_BETA; i++)
    rows = rows && norm_relu_is_row(m->in[i], c->x->dims[1]);
  if (!rows || !tn_type_equal(m->in[TN_CUDNN_NORM_X], c->x))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "not a batch norm with statistics in f32");
  if (!tn_operand_is_zero(m, TN_CUDNN_NORM_ZERO))
    return tn_fail(q, TN_EUNSUPPORTED, NULL, "not a ReLU: the other operand of the maximum is not zero");
  return tn_cudnn_conv_check(q, c);
}
