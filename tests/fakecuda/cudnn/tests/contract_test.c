/* tests/fakecuda/cudnn/tests/contract_test.c: the double against the library: the same calls are made on
 * both, each in a process of its own, and the statuses are compared. Nothing is executed, so the library
 * needs no device.
 *
 * contract_test PATH: what the calls on the library at PATH return, a line for each.
 * contract_test: compares the double with the library where that is found; else it is skipped. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "tests/fakecuda/cudnn/tests/patterns.h"

enum { TYPES = 31, ROOM = 1024, SKIPPED = 77, LINES = 1024, LEAST = 400 };

static rig_library dnn;

/* ---- attributes ---- */

/* Kinds with the range of their attributes' names. */
static const struct {
  int kind, first, end;
} kinds[] = {
    {CUDNN_BACKEND_POINTWISE_DESCRIPTOR, 0, 11},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, 100, 108},
    {CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1300, 1310},
    {CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 300, 306},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, 200, 206},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, 400, 405},
    {CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, 600, 603},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, 700, 707},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, 711, 719},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, 705, 713},
    {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, 750, 760},
    {CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR, 770, 776},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, 800, 804},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, 1000, 1014},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, 900, 912},
    {CUDNN_BACKEND_MATMUL_DESCRIPTOR, 1500, 1505},
    {CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, 1520, 1529},
    {CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR, 780, 798},
    {CUDNN_BACKEND_REDUCTION_DESCRIPTOR, 1600, 1604},
    {CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, 1610, 1614},
    {CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR, 1620, 1632},
    {CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, 2200, 2203},
};

static cudnnBackendDescriptor_t create(int kind) {
  cudnnBackendDescriptor_t d = NULL;
  if (dnn.cudnnBackendCreateDescriptor((cudnnBackendDescriptorType_t)kind, &d) != CUDNN_STATUS_SUCCESS)
    abort();
  return d;
}

/* "lacks" where the double says that it lacks it. */
static const char *text_of(cudnnStatus_t status, char text[16]) {
  bool lacks = status == CUDNN_STATUS_NOT_SUPPORTED && dnn.fakecudnn_why &&
               strstr(dnn.fakecudnn_why(), "the double lacks");
  snprintf(text, 16, lacks ? "lacks" : "%d", (int)status);
  return text;
}

/* The status of a set, with `count` elements of zeros. */
static const char *try_set(int kind, int name, int type, int64_t count, char text[16]) {
  static const int64_t zeros[64];
  cudnnBackendDescriptor_t d = create(kind);
  cudnnStatus_t status = dnn.cudnnBackendSetAttribute(d, (cudnnBackendAttributeName_t)name,
                                                      (cudnnBackendAttributeType_t)type, count, zeros);
  text_of(status, text);
  dnn.cudnnBackendDestroyDescriptor(d);
  return text;
}

/* Descriptors and handles are not zeros. */
static bool may_be_zeros(int type) {
  return type != CUDNN_TYPE_BACKEND_DESCRIPTOR && type != CUDNN_TYPE_HANDLE;
}

static void say_types(int kind, int name) {
  char text[16];
  printf("types: descriptor %d, attribute %d:", kind, name);
  for (int type = 0; type < TYPES; type++) {
    if (may_be_zeros(type)) printf(" %s", try_set(kind, name, type, 1, text));
  }
  printf("\n");
}

static void say_counts(int kind, int name, int type) {
  static const int64_t counts[] = {-1, 0, 1, 2, 3, 9};
  char text[16];
  if (strcmp(try_set(kind, name, type, 1, text), "0") != 0) return;
  printf("counts: descriptor %d, attribute %d, type %d:", kind, name, type);
  for (int i = 0; i < 6; i++) printf(" %s", try_set(kind, name, type, counts[i], text));
  printf("\n");
}

static void say_attributes(void) {
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    for (int name = kinds[k].first; name < kinds[k].end; name++) {
      say_types(kinds[k].kind, name);
      for (int type = 0; type < TYPES; type++) {
        if (may_be_zeros(type)) say_counts(kinds[k].kind, name, type);
      }
    }
  }
}

/* ---- descriptors as attributes ---- */

typedef struct part {
  int kind, name, type;
} part;

/* The library does not survive descriptors of another type. */
static void say_part(rig_graph *g, const part *p, cudnnBackendDescriptor_t good) {
  char text[16];
  cudnnBackendDescriptor_t raw = rig_create(g, p->type);
  const struct {
    const char *what;
    int64_t count;
    cudnnBackendDescriptor_t d[2];
  } cases[] = {{"finalized", 1, {good}}, {"not finalized", 1, {raw}}, {"two", 2, {good, good}}};
  for (int i = 0; i < 3; i++) {
    cudnnBackendDescriptor_t d = create(p->kind);
    cudnnStatus_t status = dnn.cudnnBackendSetAttribute(
        d, (cudnnBackendAttributeName_t)p->name, CUDNN_TYPE_BACKEND_DESCRIPTOR, cases[i].count, cases[i].d);
    printf("parts: descriptor %d, attribute %d, %s: %s\n", p->kind, p->name, cases[i].what,
           text_of(status, text));
    dnn.cudnnBackendDestroyDescriptor(d);
  }
}

static void say_parts(void) {
  static const part parts[] = {
      {10, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, 17},
      {10, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, 1},
      {11, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, 17},
      {11, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, 17},
      {12, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, 17},
      {13, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, 17},
      {13, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, 0},
      {14, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, 17},
      {19, CUDNN_ATTR_OPERATION_MATMUL_ADESC, 17},
      {19, CUDNN_ATTR_OPERATION_MATMUL_DESC, 18},
      {20, CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC, 17},
      {22, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, 17},
      {22, CUDNN_ATTR_OPERATION_REDUCTION_DESC, 21},
      {23, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, 17},
      {31, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, 17},
      {15, CUDNN_ATTR_OPERATIONGRAPH_OPS, 13},
      {4, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, 15},
      {4, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, 38},
      {2, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, 15},
      {3, CUDNN_ATTR_ENGINECFG_ENGINE, 2},
      {5, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, 3},
      {5, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, 38},
  };
  rig_graph *g = rig_new(&dnn, NULL);
  cudnnBackendDescriptor_t good[40] = {NULL}, configs[RIG_CONFIGS];
  pattern_add(g, 8, CUDNN_DATA_HALF);
  rig_close(g);
  good[38] = rig_device(g, 90);
  rig_ask(g, CUDNN_HEUR_MODE_A, good[38], configs);
  good[17] = g->tensors[0].descriptor, good[10] = g->operations[0], good[13] = g->operations[1];
  good[15] = g->graph, good[3] = configs[0];
  static const struct {
    int type, name, enumeration, value;
  } simple[] = {
      {0, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_ADD},
      {18, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT},
      {21, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, CUDNN_REDUCE_TENSOR_ADD}};
  for (int i = 0; i < 3; i++) {
    cudnnBackendDescriptor_t d = good[simple[i].type] = rig_create(g, simple[i].type);
    rig_set_enum(g, d, simple[i].name, simple[i].enumeration, simple[i].value);
    if (i == 0) rig_set_enum(g, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    if (i == 2) rig_set_enum(g, d, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
    rig_finalize(g, d);
  }
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    if (good[parts[i].type]) say_part(g, &parts[i], good[parts[i].type]);
  }
  rig_free(g);
}

/* ---- finalization ---- */

/* The status of the first call of a graph that failed. */
static void say_graph(const char *name, rig_graph *g) {
  printf("%s: %d\n", name, (int)g->status);
  rig_free(g);
}

static cudnnBackendDescriptor_t raw_tensor(rig_graph *g, int leave_out) {
  cudnnBackendDescriptor_t d = rig_create(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const int64_t dims[] = {2, 8, 4, 4}, strides[] = {128, 1, 32, 8};
  if (leave_out != 0) rig_set_int(g, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, 5);
  if (leave_out != 1) rig_set_enum(g, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_HALF);
  if (leave_out != 2) rig_set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
  if (leave_out != 3)
    rig_set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, leave_out == 5 ? 3 : 4, strides);
  if (leave_out != 4) rig_set_int(g, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, leave_out == 6 ? 3 : 16);
  return d;
}

static void say_tensors(void) {
  static const char *const names[] = {"tensor without uid",           "tensor without type",
                                      "tensor without dimensions",    "tensor without strides",
                                      "tensor without alignment",     "tensor of 4 dimensions and 3 strides",
                                      "tensor with an alignment of 3"};
  static const int64_t sizes[][2] = {{0, 1}, {-1, 1}, {4, 0}, {4, -1}};
  for (int i = 0; i < 7; i++) {
    rig_graph *g = rig_new(&dnn, NULL);
    rig_finalize(g, raw_tensor(g, i));
    say_graph(names[i], g);
  }
  for (int i = 0; i < 4; i++) {
    rig_graph *g = rig_new(&dnn, NULL);
    cudnnBackendDescriptor_t d = raw_tensor(g, -1);
    const int64_t dims[] = {2, 8, 4, sizes[i][0]}, strides[] = {128, 1, 32, sizes[i][1]};
    char name[64];
    rig_set(g, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims);
    rig_set(g, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides);
    rig_finalize(g, d);
    snprintf(name, sizeof name, "tensor with a dimension of %d and a stride of %d", (int)sizes[i][0],
             (int)sizes[i][1]);
    say_graph(name, g);
  }
}

static void say_states(void) {
  rig_graph *g = rig_new(&dnn, NULL);
  cudnnBackendDescriptor_t d = raw_tensor(g, -1);
  int64_t value[8] = {0}, n = -1;
  printf("get before finalize: %d\n",
         (int)dnn.cudnnBackendGetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &n, value));
  rig_finalize(g, d);
  printf("finalize twice: %d\n", (int)dnn.cudnnBackendFinalize(d));
  printf("set after finalize: %d\n",
         (int)dnn.cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, value));
  printf("set of the wrong type after finalize: %d\n",
         (int)dnn.cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_FLOAT, 1, value));
#define GET(name, type, count, to)                                                                           \
  n = -1,                                                                                                    \
  printf("get %s %s %s %s: %d", #name, #type, #count, #to,                                                   \
         (int)dnn.cudnnBackendGetAttribute(d, CUDNN_ATTR_##name, CUDNN_TYPE_##type, count, &n, to)),         \
  printf(" %lld\n", (long long)n)
  GET(TENSOR_UNIQUE_ID, INT64, 1, value);
  GET(TENSOR_UNIQUE_ID, INT64, 2, value);
  GET(TENSOR_UNIQUE_ID, INT64, 1, NULL);
  GET(TENSOR_UNIQUE_ID, INT32, 1, value);
  GET(TENSOR_DIMENSIONS, INT64, 0, NULL);
  GET(TENSOR_DIMENSIONS, INT64, 2, value);
  GET(TENSOR_DIMENSIONS, INT64, 8, value);
  GET(CONVOLUTION_COMP_TYPE, INT64, 1, value);
#undef GET
  printf("get without a place for the count: %d\n",
         (int)dnn.cudnnBackendGetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, NULL, value));
  printf("set of NULL: %d\n",
         (int)dnn.cudnnBackendSetAttribute(NULL, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, value));
  printf("get of NULL: %d\n", (int)dnn.cudnnBackendGetAttribute(NULL, CUDNN_ATTR_TENSOR_UNIQUE_ID,
                                                                CUDNN_TYPE_INT64, 1, &n, value));
  printf("finalize of NULL: %d\n", (int)dnn.cudnnBackendFinalize(NULL));
  printf("destroy of NULL: %d\n", (int)dnn.cudnnBackendDestroyDescriptor(NULL));
  printf("create of type 99: %d\n",
         (int)dnn.cudnnBackendCreateDescriptor((cudnnBackendDescriptorType_t)99, &d));
  rig_free(g);
}

/* ---- operations and graphs ---- */

static rig_graph *convolution_of(int64_t n, int64_t c, int64_t k, int64_t cw, int64_t p, int64_t q,
                                 int64_t ny) {
  rig_graph *g = rig_new(&dnn, NULL);
  int x = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, n, c, 8, 8),
      w = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, k, cw, 3, 3);
  int y = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, ny, 16, p, q);
  rig_convolve(g, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, x, w, y, 1, 1, 1);
  return g;
}

static void say_convolutions(void) {
  say_graph("convolution", convolution_of(2, 8, 16, 8, 8, 8, 2));
  say_graph("convolution with another batch in the result", convolution_of(2, 8, 16, 8, 8, 8, 3));
  say_graph("convolution with another height in the result", convolution_of(2, 8, 16, 8, 7, 8, 2));
  say_graph("convolution with a larger width in the result", convolution_of(2, 8, 16, 8, 8, 9, 2));
  say_graph("convolution with other filters than channels", convolution_of(2, 8, 8, 8, 8, 8, 2));
  say_graph("convolution with 2 groups", convolution_of(2, 8, 16, 4, 8, 8, 2));
  say_graph("convolution with channels that are no multiple", convolution_of(2, 8, 16, 3, 8, 8, 2));
}

static rig_graph *add_images(int64_t b_channels, int64_t b_height, int type, int kind) {
  rig_graph *g = rig_new(&dnn, NULL);
  int x = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 16, 8, 8),
      y = rig_image(g, CUDNN_DATA_HALF, kind, 2, 16, 8, 8);
  int b = rig_image(g, type, RIG_MEMORY, 1, b_channels, b_height, b_height == 8 ? 8 : 1);
  rig_pointwise(g, CUDNN_POINTWISE_ADD, x, b, -1, y);
  return g;
}

static rig_graph *closed(rig_graph *g) {
  rig_close(g);
  return g;
}

static void say_pointwise(void) {
  rig_graph *g;
  say_graph("addition of channels", add_images(16, 1, CUDNN_DATA_HALF, RIG_MEMORY));
  say_graph("addition of channels that do not fit", add_images(8, 1, CUDNN_DATA_HALF, RIG_MEMORY));
  say_graph("graph of an addition of channels that do not fit",
            closed(add_images(8, 1, CUDNN_DATA_HALF, RIG_MEMORY)));
  g = add_images(16, 1, CUDNN_DATA_HALF, RIG_MEMORY);
  rig_pointwise(g, CUDNN_POINTWISE_ADD, 0, -1, -1, 1);
  say_graph("addition of one operand", g);
  g = add_images(16, 1, CUDNN_DATA_HALF, RIG_MEMORY);
  rig_pointwise(g, CUDNN_POINTWISE_EXP, 0, 2, -1, 1);
  say_graph("exp of two operands", g);
  g = add_images(16, 1, CUDNN_DATA_HALF, RIG_MEMORY);
  rig_pointwise(g, CUDNN_POINTWISE_EXP, 0, -1, -1, -1);
  say_graph("exp without a result", g);
  g = add_images(16, 1, CUDNN_DATA_HALF, RIG_MEMORY);
  rig_pointwise(g, CUDNN_POINTWISE_RELU_BWD, 0, -1, -1, 1);
  say_graph("gradient of relu without DY", g);
}

static void say_matmuls(void) {
  static const int64_t shapes[][8] = {{4, 16, 8, 8, 32, 16, 32, 2},
                                      {4, 16, 8, 9, 32, 16, 32, 2},
                                      {4, 16, 8, 8, 32, 16, 31, 2},
                                      {4, 16, 8, 8, 32, 16, 32, 3}};
  static const char *const names[] = {"product", "product of other inner lengths",
                                      "product with another width", "product with other batches"};
  for (int i = 0; i < 4; i++) {
    const int64_t *s = shapes[i];
    rig_graph *g = rig_new(&dnn, NULL);
    int a = rig_matrix(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, s[0], s[1], s[2]);
    int b = rig_matrix(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, s[0], s[3], s[4]);
    int c = rig_matrix(g, CUDNN_DATA_HALF, RIG_MEMORY, s[7], s[0], s[5], s[6]);
    rig_multiply(g, a, b, c);
    say_graph(names[i], g);
  }
}

static void say_reductions(void) {
  static const int64_t channels[] = {16, 16, 8, 16};
  static const int types[] = {CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT};
  static const int64_t heights[] = {1, 1, 1, 8};
  static const char *const names[] = {"statistics", "statistics of half", "statistics of fewer channels",
                                      "statistics of rows"};
  for (int i = 0; i < 4; i++) {
    rig_graph *g = rig_new(&dnn, NULL);
    int x = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 16, 8, 8);
    int sum = rig_image(g, types[i], RIG_MEMORY, 1, channels[i], heights[i], 1);
    int squares = rig_image(g, types[i], RIG_MEMORY, 1, channels[i], heights[i], 1);
    rig_statistics(g, x, sum, squares);
    say_graph(names[i], g);
    g = rig_new(&dnn, NULL);
    x = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 16, 8, 8);
    sum = rig_image(g, types[i], RIG_MEMORY, 1, channels[i], heights[i], 1);
    rig_reduce(g, CUDNN_REDUCE_TENSOR_ADD, x, sum);
    printf("reduction in place of ");
    say_graph(names[i], g);
  }
}

static void say_batch_norms(void) {
  static const char *const names[] = {"BN_FINALIZE", "BN_FINALIZE with a count of float",
                                      "BN_FINALIZE with other channels", "BN_FINALIZE without EQ_BIAS",
                                      "BN_FINALIZE without SCALE"};
  for (int i = 0; i < 5; i++) {
    rig_graph *g = rig_new(&dnn, NULL);
    int t[15];
    for (int j = 0; j < 12; j++)
      t[j] = rig_image(g, CUDNN_DATA_FLOAT, RIG_MEMORY, 1, i == 2 && j == 10 ? 8 : 16, 1, 1);
    t[12] = i == 1 ? rig_value(g, 64) : rig_count(g, 64);
    t[13] = rig_value(g, 1e-5f), t[14] = rig_value(g, 0.1f);
    if (i == 3) t[11] = -1;
    if (i == 4) t[2] = -1;
    rig_bn_finalize(g, t);
    say_graph(names[i], g);
  }
  for (int i = 0; i < 3; i++) {
    rig_graph *g = rig_new(&dnn, NULL);
    int t[10], x = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 16, 8, 8);
    int dy = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 16, 8, i == 1 ? 7 : 8);
    for (int j = 0; j < 10; j++)
      t[j] = rig_image(g, CUDNN_DATA_FLOAT, RIG_MEMORY, 1, i == 2 && j == 2 ? 8 : 16, 1, 1);
    t[3] = x, t[4] = dy;
    rig_bn_backward(g, t);
    say_graph(i == 0   ? "BN_BWD_WEIGHTS"
              : i == 1 ? "BN_BWD_WEIGHTS with another DY"
                       : "BN_BWD_WEIGHTS with another SCALE",
              g);
  }
}

static void say_reshapes(void) {
  for (int64_t width = 7; width <= 8; width++) {
    rig_graph *g = rig_new(&dnn, NULL);
    int x = rig_matrix(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 4, 16, 8),
        y = rig_matrix(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 4, width, 16);
    rig_reshape(g, x, y);
    say_graph(width == 8 ? "reshape" : "reshape to fewer elements", g);
  }
}

static void say_gradients(void) {
  static const int gradients[] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                                  CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR};
  for (int kind = 0; kind < 2; kind++) {
    for (int64_t height = 7; height <= 8; height++) {
      rig_graph *g = rig_new(&dnn, NULL);
      int x = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 8, 8, 8),
          w = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, 16, 8, 3, 3);
      int dy = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 16, height, 8);
      rig_convolve(g, gradients[kind], x, w, dy, 1, 1, 1);
      printf("%s gradient of %d rows: %d\n", kind ? "data" : "weight", (int)height, (int)g->status);
      rig_free(g);
    }
  }
}

static void say_graphs(void) {
  rig_graph *g = rig_new(&dnn, NULL);
  rig_close(g);
  say_graph("graph without operations", g);
  g = convolution_of(2, 8, 16, 8, 8, 8, 2);
  g->operations[g->n_operations++] = g->operations[0];
  say_graph("graph with an operation twice", closed(g));
  g = add_images(16, 1, CUDNN_DATA_HALF, RIG_MEMORY);
  rig_pointwise(g, CUDNN_POINTWISE_EXP, 0, -1, -1, 1);
  say_graph("graph with a tensor of two writers", closed(g));
  g = add_images(16, 1, CUDNN_DATA_HALF, RIG_VIRTUAL);
  say_graph("graph whose result is virtual", closed(g));
  g = rig_new(&dnn, NULL);
  int x = rig_image(g, CUDNN_DATA_HALF, RIG_VIRTUAL, 2, 16, 8, 8),
      y = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 16, 8, 8);
  rig_pointwise(g, CUDNN_POINTWISE_EXP, x, -1, -1, y);
  say_graph("graph with a virtual operand that nothing writes", closed(g));
  g = rig_new(&dnn, NULL);
  x = rig_image(g, CUDNN_DATA_HALF, RIG_VIRTUAL, 2, 16, 8, 8),
  y = rig_image(g, CUDNN_DATA_HALF, RIG_VIRTUAL, 2, 16, 8, 8);
  rig_pointwise(g, CUDNN_POINTWISE_EXP, x, -1, -1, y);
  rig_pointwise(g, CUDNN_POINTWISE_EXP, y, -1, -1, x);
  say_graph("graph with a circle", closed(g));
  g = convolution_of(2, 8, 16, 8, 8, 8, 2);
  g->n_tensors = 0; /* the next one has uid 1 again */
  x = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 16, 8, 8);
  g->n_tensors = 2;
  y = rig_image(g, CUDNN_DATA_HALF, RIG_MEMORY, 2, 16, 8, 8);
  rig_pointwise(g, CUDNN_POINTWISE_EXP, y, -1, -1, x);
  say_graph("graph with two tensors of one uid", closed(g));
}

/* ---- engines and plans ---- */

static void say_engines(void) {
  cudnnBackendDescriptor_t configs[RIG_CONFIGS], d;
  rig_graph *g = rig_new(&dnn, NULL);
  pattern_add(g, 0, CUDNN_DATA_HALF);
  rig_close(g);
  d = rig_create(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  rig_set_enum(g, d, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  rig_finalize(g, d);
  printf("heuristics without a graph: %d\n", (int)g->status), g->status = CUDNN_STATUS_SUCCESS;
  d = rig_create(g, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  rig_set_part(g, d, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, g->graph);
  rig_set_part(g, d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, rig_device(g, 90));
  rig_finalize(g, d);
  printf("heuristics without a mode: %d\n", (int)g->status), g->status = CUDNN_STATUS_SUCCESS;
  rig_ask(g, 7, rig_device(g, 90), configs);
  printf("heuristics with mode 7: %d\n", (int)g->status), g->status = CUDNN_STATUS_SUCCESS;
  int n = rig_ask(g, CUDNN_HEUR_MODE_A, rig_device(g, 90), configs);
  printf("heuristics of mode A: %d, some %d\n", (int)g->status, n > 0);
  rig_plan(g, configs[0], rig_device(g, 90));
  printf("plan: %d\n", (int)g->status), g->status = CUDNN_STATUS_SUCCESS;
  d = rig_create(g, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  rig_set_part(g, d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, rig_device(g, 90));
  rig_finalize(g, d);
  printf("plan without a configuration: %d\n", (int)g->status), g->status = CUDNN_STATUS_SUCCESS;
  for (int64_t index = -1; index < 1000; index += 1000) {
    d = rig_create(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    rig_set_part(g, d, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, g->graph);
    rig_set_part(g, d, CUDNN_ATTR_ENGINE_DEVICEPROP, rig_device(g, 90));
    rig_set_int(g, d, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
    rig_finalize(g, d);
    printf("engine %lld: %d\n", (long long)index, (int)g->status), g->status = CUDNN_STATUS_SUCCESS;
  }
  static const char *const devices[] = {"", "{}", "{\"deviceVer\":900}", "no json"};
  for (int i = 0; i < 4; i++) {
    d = rig_create(g, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    rig_set(g, d, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(devices[i]) + 1,
            devices[i]);
    rig_finalize(g, d);
    printf("device of '%s': %d\n", devices[i], (int)g->status), g->status = CUDNN_STATUS_SUCCESS;
  }
  rig_free(g);
}

/* The library compiles, and loads the kernel by the driver's double. */
static void say_compiled(void) {
  cudnnBackendDescriptor_t configs[RIG_CONFIGS];
  rig_graph *g = rig_new(&dnn, NULL);
  pattern_add(g, 4, CUDNN_DATA_HALF);
  rig_close(g);
  cudnnBackendDescriptor_t device = rig_device(g, 90);
  rig_ask(g, CUDNN_HEUR_MODE_A, device, configs);
  rig_plan(g, configs[0], device);
  say_graph("plan of an engine compiled at run time", g);
}

static void say_packs(void) {
  static const int64_t uids[] = {1, 2, 3, 3};
  void *pointers[] = {(void *)16, (void *)32, (void *)48, (void *)64};
  static const int counts[][2] = {{3, 3}, {3, 2}, {4, 4}, {3, 0}, {0, 3}};
  static const char *const names[] = {"pack", "pack with 3 uids and 2 pointers", "pack with a uid twice",
                                      "pack without pointers", "pack without uids"};
  for (int i = 0; i < 5; i++) {
    rig_graph *g = rig_new(&dnn, NULL);
    cudnnBackendDescriptor_t p = rig_create(g, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    if (counts[i][0]) rig_set(g, p, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, counts[i][0], uids);
    if (counts[i][1])
      rig_set(g, p, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, counts[i][1], pointers);
    rig_finalize(g, p);
    say_graph(names[i], g);
  }
}

/* ---- support ---- */

/* Which sorts of engine the heuristics name: of the library, compiled, without tensor cores. */
typedef struct sorts {
  bool own, compiled, exact;
} sorts;

static bool has_note(cudnnBackendDescriptor_t engine, int name, int type, int note) {
  int64_t n = 0;
  int notes[16];
  dnn.cudnnBackendGetAttribute(engine, (cudnnBackendAttributeName_t)name, (cudnnBackendAttributeType_t)type,
                               16, &n, notes);
  for (int i = 0; i < n; i++) {
    if (notes[i] == note) return true;
  }
  return false;
}

static void add_sorts(rig_graph *g, int mode, cudnnBackendDescriptor_t device, sorts *found) {
  cudnnBackendDescriptor_t configs[RIG_CONFIGS];
  int n = rig_ask(g, mode, device, configs);
  for (int i = 0; i < n && i < RIG_CONFIGS; i++) {
    int64_t count = 0;
    cudnnBackendDescriptor_t engine = rig_create(g, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    dnn.cudnnBackendGetAttribute(configs[i], CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                                 &count, &engine);
    bool at_run_time = has_note(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE,
                                CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
    found->own |= !at_run_time;
    found->compiled |= at_run_time;
    found->exact |= !has_note(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                              CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  }
}

/* false: there is no such pattern. */
static bool say_pattern(int arch, int type, const char *type_name, int number) {
  rig_graph *g = rig_new(&dnn, NULL);
  sorts found = {false, false, false};
  const char *name = pattern_add(g, number, type);
  rig_close(g);
  cudnnBackendDescriptor_t device = rig_device(g, arch);
  if (name) {
    add_sorts(g, CUDNN_HEUR_MODE_A, device, &found);
    add_sorts(g, CUDNN_HEUR_MODE_FALLBACK, device, &found);
    printf("support of sm_%d, %s, %s: %d%s%s%s\n", arch, type_name, name, (int)g->status,
           found.own ? " own" : "", found.compiled ? " compiled" : "",
           found.exact && type == CUDNN_DATA_FLOAT ? " exact" : "");
  }
  rig_free(g);
  return name != NULL;
}

static void say_support(void) {
  for (int arch = 80; arch <= 90; arch += 10) {
    for (int i = 0; say_pattern(arch, CUDNN_DATA_HALF, "half", i); i++) {
      say_pattern(arch, CUDNN_DATA_BFLOAT16, "bfloat16", i);
      say_pattern(arch, CUDNN_DATA_FLOAT, "float", i);
    }
  }
}

static int say_all(const char *path) {
  const char *missing = rig_open(path, &dnn);
  if (missing) fprintf(stderr, "%s: %s\n", path, missing);
  if (missing) return 1;
  say_attributes();
  say_parts();
  say_tensors();
  say_states();
  say_convolutions();
  say_pointwise();
  say_matmuls();
  say_gradients();
  say_reductions();
  say_batch_norms();
  say_reshapes();

  say_graphs();
  say_engines();
  say_compiled();
  say_packs();
  say_support();
  return 0;
}

/* ---- comparison ---- */

/* Where the double refuses what the library accepts, with the reason. The library finds the first ones when
 * the operation or the plan is made, and does not find the others. */
static const struct {
  const char *line, *why;
} stricter[] = {
    {"not finalized", "a part is refused when it is set"},
    {", two", "an array of two is one too many"},
    {"tensor without uid", "a tensor needs one"},
    {"tensor without type", "a tensor needs one"},
    {"tensor with a dimension of 0", "an empty tensor has no work"},
    {"channels that do not fit", "a result is as large as its operands"},
    {"statistics of fewer channels", "a sum for each channel"},
    {"statistics of rows", "a sum for each channel"},
    {"BN_BWD_WEIGHTS with another", "operands of one size"},
    {"exp of two operands", "the second one is not read"},
    {"a virtual operand that nothing writes", "its values are nowhere"},
    {"heuristics without a mode", "the mode is required"},
    {"heuristics with mode 7", "there is no such mode"},
    {"pack with a uid twice", "one of the pointers is not used"},
};

static bool may_be_stricter(const char *line, const char *library) {
  if (strcmp(library, "0") != 0 && !strstr(line, ", two")) return false;
  for (size_t i = 0; i < sizeof stricter / sizeof *stricter; i++) {
    if (strstr(line, stricter[i].line)) return true;
  }
  return false;
}

typedef struct lines {
  int n;
  char text[LINES][ROOM];
} lines;

/* Reads the lines that this program prints for a library, in a process of its own. */
static void read_lines(const char *program, const char *library, const char *driver, lines *to) {
  char command[3 * ROOM];
  const char *end = strrchr(library, '/');
  snprintf(command, sizeof command, "FAKECUDA_DEVICES=0 LD_LIBRARY_PATH='%.*s' '%s' '%s' '%s' 2>/dev/null",
           (int)(end - library), library, program, library, driver);
  FILE *from = popen(command, "r");
  for (to->n = 0; from && to->n < LINES && fgets(to->text[to->n], ROOM, from);) {
    to->text[to->n][strcspn(to->text[to->n], "\n")] = '\0';
    if (strstr(to->text[to->n], ": ")) to->n++;
  }
  if (!from || pclose(from) != 0) to->n = 0;
}

/* Cuts a line behind its last ": ", and returns the rest. */
static char *cut(char *line) {
  char *at = line;
  for (char *next; (next = strstr(at, ": "));) at = next + 2;
  at[-2] = '\0';
  return at;
}

static int compare_line(const char *line, const char *value, const lines *library) {
  size_t length = strlen(line);
  for (int i = 0; i < library->n; i++) {
    const char *other = library->text[i];
    if (strncmp(other, line, length) != 0 || strncmp(other + length, ": ", 2) != 0) continue;
    other += length + 2;
    if (strcmp(other, value) == 0 || strstr(value, "lacks") || may_be_stricter(line, other)) return 0;
    fprintf(stderr, "%s\n  the double:  %s\n  the library: %s\n", line, value, other);
    return 1;
  }
  fprintf(stderr, "%s: the library has no such line\n", line);
  return 1;
}

static const char *find_library(void) {
  static char path[ROOM];
  char roots[] = CUDA_ROOTS;
  static const char *const folders[] = {"lib64", "lib", "lib/x86_64-linux-gnu"};
  for (char *rest, *root = strtok_r(roots, ":", &rest); root; root = strtok_r(NULL, ":", &rest)) {
    for (int i = 0; i < 3; i++) {
      snprintf(path, sizeof path, "%s/%s/libcudnn.so.9", root, folders[i]);
      if (access(path, R_OK) == 0) return path;
    }
  }
  return NULL;
}

static int compare(const char *program) {
  static lines of_double, of_library;
  const char *library = find_library();
  if (!library) {
    printf("skipped: libcudnn.so.9 is in no folder of %s\n", CUDA_ROOTS);
    return SKIPPED;
  }
  read_lines(program, FAKECUDNN_PATH, FAKECUDA_DRIVER_PATH, &of_double);
  read_lines(program, library, FAKECUDA_DRIVER_PATH, &of_library);
  if (of_double.n < LEAST || of_library.n < LEAST) {
    fprintf(stderr, "%d lines of the double and %d of %s, expected at least %d\n", of_double.n, of_library.n,
            library, LEAST);
    return 1;
  }
  int bad = 0;
  for (int i = 0; i < of_double.n; i++) {
    char *value = cut(of_double.text[i]);
    bad += compare_line(of_double.text[i], value, &of_library);
  }
  printf("%d answers of the double, %d differ from those of %s\n", of_double.n, bad, library);
  return bad > 0;
}

int main(int argc, char **argv) {
  if (argc < 2) return compare(argv[0]);
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc > 2) dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
  int code = say_all(argv[1]);
  fflush(stdout);
  _exit(code); /* the library's memory is not looked at by a sanitizer */
}
