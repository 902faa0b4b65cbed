/* backends/cuda/cudnn/graph.c: see graph.h. */
#include "backends/cuda/cudnn/graph.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- tensors ---- */

/* A graph that has no room keeps a valid number, and is refused as a whole. */
int32_t tn_cudnn_add_tensor(tn_cudnn_graph *g, const tn_cudnn_tensor *tensor) {
  if (g->n_tensors == TN_CUDNN_TENSORS) {
    g->outgrown = true;
    return 0;
  }
  g->tensors[g->n_tensors] = *tensor;
  return g->n_tensors++;
}

int32_t tn_cudnn_image(tn_cudnn_graph *g, const tn_type *type) {
  int64_t c = type->dims[1], h = type->dims[2], w = type->dims[3];
  tn_cudnn_tensor t = {
      .dtype = type->dtype, .rank = 4, .dims = {type->dims[0], c, h, w}, .strides = {c * h * w, 1, w * c, c}};
  return tn_cudnn_add_tensor(g, &t);
}

int32_t tn_cudnn_channels(tn_cudnn_graph *g, int32_t dtype, int64_t channels) {
  tn_cudnn_tensor t = {
      .dtype = dtype, .rank = 4, .dims = {1, channels, 1, 1}, .strides = {channels, 1, channels, channels}};
  return tn_cudnn_add_tensor(g, &t);
}

int32_t tn_cudnn_virtual_like(tn_cudnn_graph *g, int32_t dtype, int32_t other) {
  tn_cudnn_tensor t = g->tensors[other];
  t.dtype = dtype;
  t.is_virtual = true;
  t.by_value = false;
  return tn_cudnn_add_tensor(g, &t);
}

int32_t tn_cudnn_number(tn_cudnn_graph *g, int32_t rank, double value) {
  tn_cudnn_tensor t = {.dtype = TN_F32, .rank = rank, .by_value = true, .value = value};
  for (int32_t i = 0; i < rank; i++) t.dims[i] = t.strides[i] = 1;
  return tn_cudnn_add_tensor(g, &t);
}

int32_t tn_cudnn_integer(tn_cudnn_graph *g, int32_t rank, int64_t value) {
  int32_t number = tn_cudnn_number(g, rank, (double)value);
  g->tensors[number].dtype = TN_I32;
  return number;
}

/* ---- operations ---- */

static void graph_add(tn_cudnn_graph *g, const tn_cudnn_operation *operation, int32_t n,
                      const int32_t *tensors) {
  if (g->n_operations == TN_CUDNN_OPERATIONS) {
    g->outgrown = true;
    return;
  }
  tn_cudnn_operation *o = &g->operations[g->n_operations++];
  *o = *operation;
  for (int32_t i = 0; i < TN_CUDNN_ROLES; i++) o->tensor[i] = i < n ? tensors[i] : TN_CUDNN_NONE;
}

/* graph_add with the tensors as arguments. */
#define GRAPH_ADD(g, operation, ...)                                                                         \
  graph_add(g, operation, (int32_t)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)),                     \
            (int32_t[]){__VA_ARGS__})

void tn_cudnn_convolve(tn_cudnn_graph *g, int32_t kind, const tn_cudnn_window *window, int32_t x, int32_t w,
                       int32_t y) {
  const tn_cudnn_operation o = {.kind = kind, .window = *window};
  GRAPH_ADD(g, &o, x, w, y);
}

void tn_cudnn_pointwise(tn_cudnn_graph *g, int32_t mode, int32_t x, int32_t b, int32_t y) {
  const tn_cudnn_operation o = {.kind = TN_CUDNN_POINTWISE, .mode = mode};
  GRAPH_ADD(g, &o, x, b, y);
}

void tn_cudnn_select(tn_cudnn_graph *g, int32_t predicate, int32_t x, int32_t b, int32_t y) {
  const tn_cudnn_operation o = {.kind = TN_CUDNN_POINTWISE, .mode = CUDNN_POINTWISE_BINARY_SELECT};
  GRAPH_ADD(g, &o, x, b, y, predicate);
}

void tn_cudnn_gen_index(tn_cudnn_graph *g, int64_t axis, int32_t x, int32_t y) {
  const tn_cudnn_operation o = {.kind = TN_CUDNN_POINTWISE, .mode = CUDNN_POINTWISE_GEN_INDEX, .axis = axis};
  GRAPH_ADD(g, &o, x, TN_CUDNN_NONE, y);
}

void tn_cudnn_pointwise_backward(tn_cudnn_graph *g, int32_t mode, int32_t dy, int32_t x, int32_t dx) {
  const tn_cudnn_operation o = {.kind = TN_CUDNN_POINTWISE_BACKWARD, .mode = mode};
  GRAPH_ADD(g, &o, x, dy, dx);
}

void tn_cudnn_gen_stats(tn_cudnn_graph *g, int32_t x, int32_t sum, int32_t squares) {
  const tn_cudnn_operation o = {.kind = TN_CUDNN_GEN_STATS};
  GRAPH_ADD(g, &o, x, sum, squares);
}

void tn_cudnn_reduce(tn_cudnn_graph *g, int32_t mode, int32_t x, int32_t y) {
  const tn_cudnn_operation o = {.kind = TN_CUDNN_REDUCTION, .mode = mode};
  GRAPH_ADD(g, &o, x, y);
}

void tn_cudnn_matmul(tn_cudnn_graph *g, int32_t a, int32_t b, int32_t c) {
  const tn_cudnn_operation o = {.kind = TN_CUDNN_MATMUL};
  GRAPH_ADD(g, &o, a, b, c);
}

void tn_cudnn_reshape(tn_cudnn_graph *g, int32_t x, int32_t y) {
  const tn_cudnn_operation o = {.kind = TN_CUDNN_RESHAPE};
  GRAPH_ADD(g, &o, x, y);
}

void tn_cudnn_bn_backward_weights(tn_cudnn_graph *g, const tn_cudnn_bn_backward_tensors *t) {
  const tn_cudnn_operation o = {.kind = TN_CUDNN_BN_BACKWARD_WEIGHTS};
  GRAPH_ADD(g, &o, t->mean, t->inverse_deviation, t->scale, t->x, t->dy, t->dscale, t->dbias,
            t->equivalent_dy_scale, t->equivalent_x_scale, t->equivalent_bias);
}

/* ---- text ---- */

typedef struct graph_text {
  char *text;
  int32_t n;
  bool full;
} graph_text;

TN_PRINTF(2, 3) static void graph_print(graph_text *t, const char *format, ...) {
  va_list args;
  if (t->full) return;
  va_start(args, format);
  int n = vsnprintf(t->text + t->n, (size_t)(TN_CUDNN_TEXT - t->n), format, args);
  va_end(args);
  t->full = n < 0 || n >= TN_CUDNN_TEXT - t->n;
  if (!t->full) t->n += n;
}

static void graph_print_list(graph_text *t, const char *name, const int64_t *values, int32_t n) {
  graph_print(t, " %s", name);
  for (int32_t i = 0; i < n; i++) graph_print(t, "%s%lld", i > 0 ? "," : "", (long long)values[i]);
}

static void graph_print_tensor(graph_text *t, const tn_cudnn_tensor *tensor, int32_t number) {
  graph_print(t, "t%d %s", (int)number, tn_dtype_name(tensor->dtype));
  graph_print_list(t, "", tensor->dims, tensor->rank);
  graph_print_list(t, "/", tensor->strides, tensor->rank);
  if (tensor->alignment > 0) graph_print(t, " align %d", (int)tensor->alignment);
  if (tensor->is_virtual) graph_print(t, " virtual");
  if (tensor->by_value) graph_print(t, " = %.9g", tensor->value);
  graph_print(t, "\n");
}

static void graph_print_operation(graph_text *t, const tn_cudnn_operation *o) {
  static const char *const names[TN_CUDNN_KINDS] = {"convolution",
                                                    "convolution input gradient",
                                                    "convolution weight gradient",
                                                    "pointwise",
                                                    "pointwise gradient",
                                                    "statistics",
                                                    "reduction",
                                                    "matmul",
                                                    "batch norm weight gradients",
                                                    "reshape"};
  int32_t n = TN_CUDNN_ROLES;
  while (n > 0 && o->tensor[n - 1] == TN_CUDNN_NONE) n--;
  graph_print(t, "%s %d %lld:", names[o->kind], (int)o->mode, (long long)o->axis);
  for (int32_t i = 0; i < n; i++)
    if (o->tensor[i] == TN_CUDNN_NONE)
      graph_print(t, " -");
    else
      graph_print(t, " t%d", (int)o->tensor[i]);
  if (o->kind <= TN_CUDNN_CONV_GRAD_WEIGHT) {
    graph_print_list(t, "stride ", o->window.stride, 2);
    graph_print_list(t, "dilation ", o->window.dilation, 2);
    graph_print_list(t, "padding ", o->window.before, 2);
    graph_print_list(t, "", o->window.after, 2);
  }
  graph_print(t, "\n");
}

bool tn_cudnn_graph_text(const tn_cudnn_graph *g, char text[TN_CUDNN_TEXT]) {
  graph_text t = {.text = text};
  *text = '\0';
  for (int32_t i = 0; i < g->n_tensors; i++) graph_print_tensor(&t, &g->tensors[i], i);
  for (int32_t i = 0; i < g->n_operations; i++) graph_print_operation(&t, &g->operations[i]);
  if (g->most_workspace > 0) graph_print(&t, "workspace %lld\n", (long long)g->most_workspace);
  return !t.full && !g->outgrown;
}
