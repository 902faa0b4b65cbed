/* backends/cuda/cudnn/descriptors.c: see descriptors.h. */
#include "backends/cuda/cudnn/descriptors.h"

#include <stdio.h>
#include <string.h>

/* ---- calls ---- */

void tn_cudnn_calls_init(tn_cudnn_calls *c, const tn_cudnn_library *library) {
  c->library = library;
  c->code = CUDNN_STATUS_SUCCESS;
  c->why[0] = '\0';
  c->n_owned = 0;
}

void tn_cudnn_calls_free(tn_cudnn_calls *c) {
  while (c->n_owned > 0) (void)c->library->call.cudnnBackendDestroyDescriptor(c->owned[--c->n_owned]);
}

void tn_cudnn_disown(tn_cudnn_calls *c, cudnnBackendDescriptor_t descriptor) {
  int32_t n = 0;
  for (int32_t i = 0; i < c->n_owned; i++)
    if (c->owned[i] != descriptor) c->owned[n++] = c->owned[i];
  c->n_owned = n;
}

void tn_cudnn_check(tn_cudnn_calls *c, cudnnStatus_t code, const char *call) {
  char last[TN_CUDNN_WHY] = "";
  if (code == CUDNN_STATUS_SUCCESS || !tn_cudnn_ok(c)) return;
  c->code = code;
  c->library->call.cudnnGetLastErrorString(last, sizeof last);
  last[sizeof last - 1] = '\0';
  for (char *at = last; *at != '\0'; at++)
    if (*at == '\n') *at = ' ';
  snprintf(c->why, sizeof c->why, "%s: %s%s%.*s%s", call, c->library->call.cudnnGetErrorString(code),
           *last ? " (" : "", (int)sizeof last - 128, last, *last ? ")" : "");
}

bool tn_cudnn_broke(const tn_cudnn_calls *c) {
  int category = CUDNN_STATUS_CATEGORY(c->code);
  return !tn_cudnn_ok(c) && category != CUDNN_STATUS_BAD_PARAM && category != CUDNN_STATUS_NOT_SUPPORTED;
}

tn_status tn_cudnn_status(tn_env *env, const tn_cuda_libraries *libraries, const tn_cudnn_calls *c) {
  if (tn_cudnn_ok(c)) return TN_OK;
  tn_status status = c->code == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                             c->code == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
                         ? TN_ENOMEM
                     : CUDNN_STATUS_CATEGORY(c->code) == CUDNN_STATUS_NOT_SUPPORTED ? TN_EUNSUPPORTED
                                                                                    : TN_EDEVICE;
  return tn_fail(env, status, NULL, "%s%s", c->why, tn_cuda_fault_hint(libraries));
}

/* ---- descriptors ---- */

static void calls_fail(tn_cudnn_calls *c, const char *why) {
  if (!tn_cudnn_ok(c)) return;
  c->code = CUDNN_STATUS_NOT_SUPPORTED;
  snprintf(c->why, sizeof c->why, "%s", why);
}

cudnnBackendDescriptor_t tn_cudnn_create(tn_cudnn_calls *c, cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t d = NULL;
  if (c->n_owned == TN_CUDNN_OWNED) calls_fail(c, "the graph has more descriptors than there is room for");
  if (!tn_cudnn_ok(c)) return NULL;
  tn_cudnn_check(c, c->library->call.cudnnBackendCreateDescriptor(type, &d), "cudnnBackendCreateDescriptor");
  if (tn_cudnn_ok(c)) c->owned[c->n_owned++] = d;
  return tn_cudnn_ok(c) ? d : NULL;
}

void tn_cudnn_set(tn_cudnn_calls *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, int64_t n, const void *values) {
  char call[64];
  if (!tn_cudnn_ok(c)) return;
  cudnnStatus_t code = c->library->call.cudnnBackendSetAttribute(d, name, type, n, values);
  if (code == CUDNN_STATUS_SUCCESS) return;
  snprintf(call, sizeof call, "cudnnBackendSetAttribute of %d", (int)name);
  tn_cudnn_check(c, code, call);
}

void tn_cudnn_set_descriptor(tn_cudnn_calls *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                             cudnnBackendDescriptor_t value) {
  tn_cudnn_set(c, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, (const void *)&value);
}

void tn_cudnn_set_int(tn_cudnn_calls *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                      int64_t value) {
  tn_cudnn_set(c, d, name, CUDNN_TYPE_INT64, 1, &value);
}

int64_t tn_cudnn_get(tn_cudnn_calls *c, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, int64_t n, void *values) {
  int64_t found = 0;
  char call[64];
  if (!tn_cudnn_ok(c)) return 0;
  cudnnStatus_t code = c->library->call.cudnnBackendGetAttribute(d, name, type, n, &found, values);
  if (code == CUDNN_STATUS_SUCCESS) return found;
  snprintf(call, sizeof call, "cudnnBackendGetAttribute of %d", (int)name);
  tn_cudnn_check(c, code, call);
  return 0;
}

int64_t tn_cudnn_get_descriptors(tn_cudnn_calls *c, cudnnBackendDescriptor_t d,
                                 cudnnBackendAttributeName_t name, cudnnBackendDescriptorType_t type,
                                 int64_t most, cudnnBackendDescriptor_t *values) {
  int64_t n = tn_cudnn_get(c, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, NULL);
  if (n > most) n = most;
  for (int64_t i = 0; i < n; i++) values[i] = tn_cudnn_create(c, type);
  return n > 0 ? tn_cudnn_get(c, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, values) : 0;
}

void tn_cudnn_finalize(tn_cudnn_calls *c, cudnnBackendDescriptor_t d) {
  if (tn_cudnn_ok(c)) tn_cudnn_check(c, c->library->call.cudnnBackendFinalize(d), "cudnnBackendFinalize");
}

cudnnBackendDescriptor_t tn_cudnn_describe_device(tn_cudnn_calls *c, const char *details) {
  cudnnBackendDescriptor_t d = tn_cudnn_create(c, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  tn_cudnn_set(c, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(details) + 1,
               details);
  tn_cudnn_finalize(c, d);
  return d;
}

/* ---- tensors ---- */

static cudnnDataType_t descriptor_dtype(int32_t dtype) {
  switch (dtype) {
  case TN_F16: return CUDNN_DATA_HALF;
  case TN_BF16: return CUDNN_DATA_BFLOAT16;
  case TN_F64: return CUDNN_DATA_DOUBLE;
  case TN_I32: return CUDNN_DATA_INT32;
  case TN_I64: return CUDNN_DATA_INT64;
  case TN_BOOL: return CUDNN_DATA_BOOLEAN;
  default: return CUDNN_DATA_FLOAT;
  }
}

static cudnnBackendDescriptor_t descriptor_of_tensor(tn_cudnn_calls *c, const tn_cudnn_tensor *t,
                                                     int32_t number) {
  cudnnDataType_t dtype = descriptor_dtype(t->dtype);
  bool yes = true;
  cudnnBackendDescriptor_t d = tn_cudnn_create(c, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tn_cudnn_set_int(c, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, number + 1);
  tn_cudnn_set(c, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &dtype);
  tn_cudnn_set(c, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t->rank, t->dims);
  tn_cudnn_set(c, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t->rank, t->strides);
  tn_cudnn_set_int(c, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, t->alignment > 0 ? t->alignment : 16);
  if (t->is_virtual) tn_cudnn_set(c, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
  if (t->by_value) tn_cudnn_set(c, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
  tn_cudnn_finalize(c, d);
  return d;
}

/* ---- operations ---- */

/* The descriptor of an operation, and the attributes of its tensors in the order of graph.h. */
typedef struct operation_shape {
  cudnnBackendDescriptorType_t type;
  int32_t n_roles;
  cudnnBackendAttributeName_t role[TN_CUDNN_ROLES];
} operation_shape;

static const operation_shape operation_shapes[TN_CUDNN_KINDS] = {
    [TN_CUDNN_CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                               3,
                               {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y}},
    [TN_CUDNN_CONV_GRAD_INPUT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                  3,
                                  {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY}},
    [TN_CUDNN_CONV_GRAD_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                   3,
                                   {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}},
    [TN_CUDNN_POINTWISE] = {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                            4,
                            {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                             CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_ATTR_OPERATION_POINTWISE_TDESC}},
    [TN_CUDNN_POINTWISE_BACKWARD] = {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                                     3,
                                     {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                      CUDNN_ATTR_OPERATION_POINTWISE_DYDESC,
                                      CUDNN_ATTR_OPERATION_POINTWISE_DXDESC}},
    [TN_CUDNN_GEN_STATS] = {CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
                            3,
                            {CUDNN_ATTR_OPERATION_GENSTATS_XDESC, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC,
                             CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC}},
    [TN_CUDNN_REDUCTION] = {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                            2,
                            {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, CUDNN_ATTR_OPERATION_REDUCTION_YDESC}},
    [TN_CUDNN_MATMUL] = {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                         6,
                         {CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC,
                          CUDNN_ATTR_OPERATION_MATMUL_CDESC, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC,
                          CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC,
                          CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC}},
    [TN_CUDNN_BN_BACKWARD_WEIGHTS] =
        {CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR,
         10,
         {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC,
          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC,
          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC,
          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC,
          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
          CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS}},
    [TN_CUDNN_RESHAPE] = {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                          2,
                          {CUDNN_ATTR_OPERATION_RESHAPE_XDESC, CUDNN_ATTR_OPERATION_RESHAPE_YDESC}},
};

static const cudnnDataType_t arithmetic = CUDNN_DATA_FLOAT;

static void operation_set_convolution(tn_cudnn_calls *c, cudnnBackendDescriptor_t op,
                                      const tn_cudnn_operation *o) {
  static const cudnnBackendAttributeName_t names[][3] = {
      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const float one = 1, zero = 0;
  cudnnBackendDescriptor_t d = tn_cudnn_create(c, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  tn_cudnn_set(c, d, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &arithmetic);
  tn_cudnn_set(c, d, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  tn_cudnn_set_int(c, d, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2);
  tn_cudnn_set(c, d, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, o->window.stride);
  tn_cudnn_set(c, d, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, o->window.before);
  tn_cudnn_set(c, d, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, o->window.after);
  tn_cudnn_set(c, d, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, o->window.dilation);
  tn_cudnn_finalize(c, d);
  tn_cudnn_set_descriptor(c, op, names[o->kind][0], d);
  tn_cudnn_set(c, op, names[o->kind][1], CUDNN_TYPE_FLOAT, 1, &one);
  tn_cudnn_set(c, op, names[o->kind][2], CUDNN_TYPE_FLOAT, 1, &zero);
}

/* Indices and conditions are computed in their own types. */
static cudnnDataType_t operation_arithmetic(const tn_cudnn_graph *g, const tn_cudnn_operation *o) {
  int32_t dtype = g->tensors[o->tensor[2]].dtype;
  return dtype == TN_I32 || dtype == TN_BOOL ? descriptor_dtype(dtype) : arithmetic;
}

static void operation_set_pointwise(tn_cudnn_calls *c, cudnnBackendDescriptor_t op, const tn_cudnn_graph *g,
                                    const tn_cudnn_operation *o) {
  cudnnPointwiseMode_t mode = (cudnnPointwiseMode_t)o->mode;
  cudnnDataType_t precision = operation_arithmetic(g, o);
  cudnnBackendDescriptor_t d = tn_cudnn_create(c, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  tn_cudnn_set(c, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  tn_cudnn_set(c, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision);
  if (mode == CUDNN_POINTWISE_GEN_INDEX) tn_cudnn_set_int(c, d, CUDNN_ATTR_POINTWISE_AXIS, o->axis);
  tn_cudnn_finalize(c, d);
  tn_cudnn_set_descriptor(c, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, d);
}

static void operation_set_reduction(tn_cudnn_calls *c, cudnnBackendDescriptor_t op,
                                    const tn_cudnn_operation *o) {
  cudnnReduceTensorOp_t mode = (cudnnReduceTensorOp_t)o->mode;
  cudnnBackendDescriptor_t d = tn_cudnn_create(c, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  tn_cudnn_set(c, d, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
  tn_cudnn_set(c, d, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &arithmetic);
  tn_cudnn_finalize(c, d);
  tn_cudnn_set_descriptor(c, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, d);
}

static void operation_set_matmul(tn_cudnn_calls *c, cudnnBackendDescriptor_t op) {
  cudnnBackendDescriptor_t d = tn_cudnn_create(c, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  tn_cudnn_set(c, d, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &arithmetic);
  tn_cudnn_finalize(c, d);
  tn_cudnn_set_descriptor(c, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, d);
}

static void operation_set_gen_stats(tn_cudnn_calls *c, cudnnBackendDescriptor_t op) {
  const cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
  tn_cudnn_set(c, op, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode);
  tn_cudnn_set(c, op, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &arithmetic);
}

/* The attributes of an operation besides tensors. */
static void operation_set_rest(tn_cudnn_calls *c, cudnnBackendDescriptor_t op, const tn_cudnn_graph *g,
                               const tn_cudnn_operation *o) {
  switch (o->kind) {
  case TN_CUDNN_CONV_FORWARD:
  case TN_CUDNN_CONV_GRAD_INPUT:
  case TN_CUDNN_CONV_GRAD_WEIGHT: operation_set_convolution(c, op, o); break;
  case TN_CUDNN_POINTWISE:
  case TN_CUDNN_POINTWISE_BACKWARD: operation_set_pointwise(c, op, g, o); break;
  case TN_CUDNN_REDUCTION: operation_set_reduction(c, op, o); break;
  case TN_CUDNN_MATMUL: operation_set_matmul(c, op); break;
  case TN_CUDNN_GEN_STATS: operation_set_gen_stats(c, op); break;
  case TN_CUDNN_BN_BACKWARD_WEIGHTS:
    tn_cudnn_set(c, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &arithmetic);
    break;
  default: break;
  }
}

static cudnnBackendDescriptor_t descriptor_of_operation(tn_cudnn_calls *c, const tn_cudnn_graph *g,
                                                        const tn_cudnn_operation *o,
                                                        const cudnnBackendDescriptor_t *tensors) {
  const operation_shape *shape = &operation_shapes[o->kind];
  cudnnBackendDescriptor_t op = tn_cudnn_create(c, shape->type);
  operation_set_rest(c, op, g, o);
  for (int32_t i = 0; i < shape->n_roles; i++)
    if (o->tensor[i] != TN_CUDNN_NONE) tn_cudnn_set_descriptor(c, op, shape->role[i], tensors[o->tensor[i]]);
  tn_cudnn_finalize(c, op);
  return op;
}

cudnnBackendDescriptor_t tn_cudnn_describe_graph(tn_cudnn_calls *c, const tn_cudnn_graph *g,
                                                 cudnnHandle_t handle) {
  cudnnBackendDescriptor_t tensors[TN_CUDNN_TENSORS], operations[TN_CUDNN_OPERATIONS];
  if (g->outgrown) calls_fail(c, "the graph has more tensors or operations than there is room for");
  for (int32_t i = 0; i < g->n_tensors; i++) tensors[i] = descriptor_of_tensor(c, &g->tensors[i], i);
  for (int32_t i = 0; i < g->n_operations; i++)
    operations[i] = descriptor_of_operation(c, g, &g->operations[i], tensors);
  cudnnBackendDescriptor_t d = tn_cudnn_create(c, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  tn_cudnn_set(c, d, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, g->n_operations,
               operations);
  if (handle != NULL)
    tn_cudnn_set(c, d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, (const void *)&handle);
  tn_cudnn_finalize(c, d);
  return d;
}

/* ---- plans ---- */

static cudnnBackendDescriptor_t descriptor_of_knob(tn_cudnn_calls *c, const tn_cudnn_engine *e, int32_t i) {
  cudnnBackendDescriptor_t d = tn_cudnn_create(c, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
  tn_cudnn_set(c, d, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &e->knob[i]);
  tn_cudnn_set_int(c, d, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, e->knob_value[i]);
  tn_cudnn_finalize(c, d);
  return d;
}

static cudnnBackendDescriptor_t descriptor_of_engine(tn_cudnn_calls *c, const tn_cudnn_engine *e,
                                                     cudnnBackendDescriptor_t graph,
                                                     cudnnBackendDescriptor_t device) {
  cudnnBackendDescriptor_t knobs[TN_CUDNN_KNOBS];
  cudnnBackendDescriptor_t engine = tn_cudnn_create(c, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  tn_cudnn_set_descriptor(c, engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
  tn_cudnn_set_int(c, engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, e->index);
  if (device != NULL) tn_cudnn_set_descriptor(c, engine, CUDNN_ATTR_ENGINE_DEVICEPROP, device);
  tn_cudnn_finalize(c, engine);
  for (int32_t i = 0; i < e->n_knobs; i++) knobs[i] = descriptor_of_knob(c, e, i);
  cudnnBackendDescriptor_t d = tn_cudnn_create(c, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  tn_cudnn_set_descriptor(c, d, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  if (e->n_knobs > 0)
    tn_cudnn_set(c, d, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR, e->n_knobs, knobs);
  tn_cudnn_finalize(c, d);
  return d;
}

cudnnBackendDescriptor_t tn_cudnn_describe_plan(tn_cudnn_calls *c, const tn_cudnn_graph *g,
                                                const tn_cudnn_engine *e, const char *details,
                                                cudnnHandle_t handle) {
  cudnnBackendDescriptor_t device = handle == NULL ? tn_cudnn_describe_device(c, details) : NULL;
  cudnnBackendDescriptor_t graph = tn_cudnn_describe_graph(c, g, handle);
  cudnnBackendDescriptor_t engine = descriptor_of_engine(c, e, graph, device);
  cudnnBackendDescriptor_t plan = tn_cudnn_create(c, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  tn_cudnn_set_descriptor(c, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine);
  if (handle != NULL)
    tn_cudnn_set(c, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, (const void *)&handle);
  else
    tn_cudnn_set_descriptor(c, plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  tn_cudnn_finalize(c, plan);
  return plan;
}
