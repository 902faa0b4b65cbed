/* tests/fakecuda/cudnn/program.c: see program.h. */
#include <float.h>
#include "tests/fakecuda/cudnn/program.h"

#define OP(name)         CUDNN_ATTR_OPERATION_##name
#define LIST(kind, list) [CUDNN_BACKEND_OPERATION_##kind##_DESCRIPTOR] = {list, sizeof(list) / sizeof *(list)}

static const fakednn_slot forward[] = {{OP(CONVOLUTION_FORWARD_X), false},
                                       {OP(CONVOLUTION_FORWARD_W), false},
                                       {OP(CONVOLUTION_FORWARD_Y), true}};
static const fakednn_slot data[] = {{OP(CONVOLUTION_BWD_DATA_DX), true},
                                    {OP(CONVOLUTION_BWD_DATA_W), false},
                                    {OP(CONVOLUTION_BWD_DATA_DY), false}};
static const fakednn_slot filter[] = {{OP(CONVOLUTION_BWD_FILTER_X), false},
                                      {OP(CONVOLUTION_BWD_FILTER_DW), true},
                                      {OP(CONVOLUTION_BWD_FILTER_DY), false}};
static const fakednn_slot pointwise[] = {{OP(POINTWISE_XDESC), false}, {OP(POINTWISE_BDESC), false},
                                         {OP(POINTWISE_TDESC), false}, {OP(POINTWISE_DYDESC), false},
                                         {OP(POINTWISE_YDESC), true},  {OP(POINTWISE_DXDESC), true}};
static const fakednn_slot statistics[] = {
    {OP(GENSTATS_XDESC), false}, {OP(GENSTATS_SUMDESC), true}, {OP(GENSTATS_SQSUMDESC), true}};
static const fakednn_slot reduction[] = {{OP(REDUCTION_XDESC), false}, {OP(REDUCTION_YDESC), true}};
static const fakednn_slot matmul[] = {{OP(MATMUL_ADESC), false},
                                      {OP(MATMUL_BDESC), false},
                                      {OP(MATMUL_CDESC), true},
                                      {OP(MATMUL_GEMM_M_OVERRIDE_DESC), false},
                                      {OP(MATMUL_GEMM_N_OVERRIDE_DESC), false},
                                      {OP(MATMUL_GEMM_K_OVERRIDE_DESC), false}};
static const fakednn_slot bn_finalize[] = {{OP(BN_FINALIZE_Y_SUM_DESC), false},
                                           {OP(BN_FINALIZE_Y_SQ_SUM_DESC), false},
                                           {OP(BN_FINALIZE_SCALE_DESC), false},
                                           {OP(BN_FINALIZE_BIAS_DESC), false},
                                           {OP(BN_FINALIZE_PREV_RUNNING_MEAN_DESC), false},
                                           {OP(BN_FINALIZE_PREV_RUNNING_VAR_DESC), false},
                                           {OP(BN_FINALIZE_ACCUM_COUNT_DESC), false},
                                           {OP(BN_FINALIZE_EPSILON_DESC), false},
                                           {OP(BN_FINALIZE_EXP_AVERATE_FACTOR_DESC), false},
                                           {OP(BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC), true},
                                           {OP(BN_FINALIZE_UPDATED_RUNNING_VAR_DESC), true},
                                           {OP(BN_FINALIZE_SAVED_MEAN_DESC), true},
                                           {OP(BN_FINALIZE_SAVED_INV_STD_DESC), true},
                                           {OP(BN_FINALIZE_EQ_SCALE_DESC), true},
                                           {OP(BN_FINALIZE_EQ_BIAS_DESC), true}};
static const fakednn_slot bn_backward[] = {
    {OP(BN_BWD_WEIGHTS_MEAN_DESC), false},      {OP(BN_BWD_WEIGHTS_INVSTD_DESC), false},
    {OP(BN_BWD_WEIGHTS_BN_SCALE_DESC), false},  {OP(BN_BWD_WEIGHTS_X_DESC), false},
    {OP(BN_BWD_WEIGHTS_DY_DESC), false},        {OP(BN_BWD_WEIGHTS_DBN_SCALE_DESC), true},
    {OP(BN_BWD_WEIGHTS_DBN_BIAS_DESC), true},   {OP(BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC), true},
    {OP(BN_BWD_WEIGHTS_EQ_X_SCALE_DESC), true}, {OP(BN_BWD_WEIGHTS_EQ_BIAS), true}};
static const fakednn_slot reshape[] = {{OP(RESHAPE_XDESC), false}, {OP(RESHAPE_YDESC), true}};

static const struct {
  const fakednn_slot *slots;
  int n;
} lists[] = {LIST(CONVOLUTION_FORWARD, forward),
             LIST(CONVOLUTION_BACKWARD_DATA, data),
             LIST(CONVOLUTION_BACKWARD_FILTER, filter),
             LIST(POINTWISE, pointwise),
             LIST(GEN_STATS, statistics),
             LIST(REDUCTION, reduction),
             LIST(MATMUL, matmul),
             LIST(BN_FINALIZE_STATISTICS, bn_finalize),
             LIST(BN_BWD_WEIGHTS, bn_backward),
             LIST(RESHAPE, reshape)};

const fakednn_slot *fakednn_slots(int32_t kind, int *n) {
  bool known = kind >= 0 && kind < (int32_t)(sizeof lists / sizeof *lists) && lists[kind].slots;
  *n = known ? lists[kind].n : 0;
  return known ? lists[kind].slots : NULL;
}

/* ---- tensors ---- */

void fakednn_read_tensor(const fakednn_body *body, fakednn_tensor *t) {
  *t = (fakednn_tensor){.uid = fakednn_integer(body, CUDNN_ATTR_TENSOR_UNIQUE_ID, 0, 0),
                        .alignment = fakednn_integer(body, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, 0, 1),
                        .type = (int32_t)fakednn_integer(body, CUDNN_ATTR_TENSOR_DATA_TYPE, 0, 0),
                        .rank = (int32_t)fakednn_count_of(body, CUDNN_ATTR_TENSOR_DIMENSIONS),
                        .writer = -1,
                        .is_virtual = fakednn_integer(body, CUDNN_ATTR_TENSOR_IS_VIRTUAL, 0, 0),
                        .by_value = fakednn_integer(body, CUDNN_ATTR_TENSOR_IS_BY_VALUE, 0, 0)};
  for (int i = 0; i < t->rank && i < FAKEDNN_RANK; i++) {
    t->dims[i] = fakednn_integer(body, CUDNN_ATTR_TENSOR_DIMENSIONS, i, 0);
    t->strides[i] = fakednn_integer(body, CUDNN_ATTR_TENSOR_STRIDES, i, 0);
  }
}

int64_t fakednn_elements(const fakednn_tensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++) n *= t->dims[i];
  return n;
}

int64_t fakednn_span(const fakednn_tensor *t) {
  int64_t last = 0;
  for (int i = 0; i < t->rank; i++) last += (t->dims[i] - 1) * t->strides[i];
  return last + 1;
}

int64_t fakednn_data_size(int32_t type) {
  switch (type) {
  case CUDNN_DATA_INT64: return 8;
  case CUDNN_DATA_FLOAT:
  case CUDNN_DATA_INT32: return 4;
  case CUDNN_DATA_HALF:
  case CUDNN_DATA_BFLOAT16: return 2;
  case CUDNN_DATA_INT8:
  case CUDNN_DATA_UINT8:
  case CUDNN_DATA_BOOLEAN: return 1;
  default: return 0;
  }
}

/* ---- operations ---- */

static void read_convolution(const fakednn_body *operation, int32_t part, int32_t alpha, int32_t beta,
                             fakednn_node *node) {
  const fakednn_body *c = fakednn_part(operation, part, 0);
  node->alpha = fakednn_number(operation, alpha, 1);
  node->beta = fakednn_number(operation, beta, 0);
  node->mode = (int32_t)fakednn_integer(c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, 0, 0);
  for (int i = 0; i < FAKEDNN_SPATIAL; i++) {
    node->stride[i] = fakednn_integer(c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, i, 1);
    node->dilation[i] = fakednn_integer(c, CUDNN_ATTR_CONVOLUTION_DILATIONS, i, 1);
    node->before[i] = fakednn_integer(c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, i, 0);
    node->after[i] = fakednn_integer(c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, i, 0);
  }
}

static void read_pointwise(const fakednn_body *operation, fakednn_node *node) {
  const fakednn_body *p = fakednn_part(operation, OP(POINTWISE_PW_DESCRIPTOR), 0);
  node->alpha = fakednn_number(operation, OP(POINTWISE_ALPHA1), 1);
  node->beta = fakednn_number(operation, OP(POINTWISE_ALPHA2), 1);
  node->mode = (int32_t)fakednn_integer(p, CUDNN_ATTR_POINTWISE_MODE, 0, 0);
  node->axis = (int32_t)fakednn_integer(p, CUDNN_ATTR_POINTWISE_AXIS, 0, -1);
  node->lower = fakednn_number(p, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP, 0);
  node->upper = fakednn_number(p, CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, DBL_MAX);
  node->slope = fakednn_number(p, CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, 0);
  node->elu = fakednn_number(p, CUDNN_ATTR_POINTWISE_ELU_ALPHA, 1);
  node->softplus = fakednn_number(p, CUDNN_ATTR_POINTWISE_SOFTPLUS_BETA, 1);
  node->swish = fakednn_number(p, CUDNN_ATTR_POINTWISE_SWISH_BETA, 1);
}

void fakednn_read_node(const fakednn_body *operation, fakednn_node *node) {
  *node = (fakednn_node){.kind = operation->type, .axis = -1, .alpha = 1};
  switch (operation->type) {
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    read_convolution(operation, OP(CONVOLUTION_FORWARD_CONV_DESC), OP(CONVOLUTION_FORWARD_ALPHA),
                     OP(CONVOLUTION_FORWARD_BETA), node);
    break;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    read_convolution(operation, OP(CONVOLUTION_BWD_DATA_CONV_DESC), OP(CONVOLUTION_BWD_DATA_ALPHA),
                     OP(CONVOLUTION_BWD_DATA_BETA), node);
    break;
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
    read_convolution(operation, OP(CONVOLUTION_BWD_FILTER_CONV_DESC), OP(CONVOLUTION_BWD_FILTER_ALPHA),
                     OP(CONVOLUTION_BWD_FILTER_BETA), node);
    break;
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: read_pointwise(operation, node); break;
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
    node->padding =
        fakednn_number(fakednn_part(operation, OP(MATMUL_DESC), 0), CUDNN_ATTR_MATMUL_PADDING_VALUE, 0);
    break;
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    node->mode = (int32_t)fakednn_integer(fakednn_part(operation, OP(REDUCTION_DESC), 0),
                                          CUDNN_ATTR_REDUCTION_OPERATOR, 0, 0);
    break;
  case CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR:
    node->mode = (int32_t)fakednn_integer(operation, OP(BN_FINALIZE_STATS_MODE), 0, 0);
    break;
  default: break;
  }
}
