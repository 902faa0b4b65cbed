/* backends/cuda/cudnn/graph.h: a graph of cuDNN's operations, as plain data.
 *
 * A kernel describes what it computes: tensors, and operations between them. Nothing here calls cuDNN or
 * fails: a graph that outgrows its arrays is refused by engines.h, which asks cuDNN for the engines that
 * compute a graph; plan.h makes one of them ready and runs it. So a query costs no descriptors where the
 * answer for the graph's text is known.
 *
 *     tn_cudnn_graph g = {0};
 *     int32_t x = tn_cudnn_image(&g, type_of_x), w = tn_cudnn_image(&g, type_of_w);
 *     int32_t c = tn_cudnn_virtual(&g, TN_F32, dims_of_y), y = tn_cudnn_image(&g, type_of_y);
 *     tn_cudnn_convolve(&g, TN_CUDNN_CONV_FORWARD, &window, x, w, c);
 *     tn_cudnn_pointwise(&g, CUDNN_POINTWISE_RELU_FWD, c, TN_CUDNN_NONE, y);
 *
 * A tensor is named by its number, from 0 in the order of adding; cuDNN's unique id is the number plus 1. A
 * launch passes addresses by the same numbers. Arithmetic is in f32, but that of i32 and bool in their own
 * types. */
#pragma once

#include <cudnn_graph.h>
#include <stdbool.h>

#include "tenon/attributes.h"
#include "tenon/base.h"

enum {
  TN_CUDNN_NONE = -1, /* an absent tensor */
  TN_CUDNN_RANK = 6,
  TN_CUDNN_TENSORS = 48,
  TN_CUDNN_OPERATIONS = 32,
  TN_CUDNN_ROLES = 16, /* tensors of an operation */
  TN_CUDNN_TEXT = 16384
};

typedef struct tn_cudnn_tensor {
  int32_t dtype; /* TN_F16, TN_BF16, TN_F32, TN_I32, TN_I64, TN_BOOL */
  int32_t rank;
  int64_t dims[TN_CUDNN_RANK], strides[TN_CUDNN_RANK]; /* strides in elements */
  int32_t alignment;                                   /* of the address, in bytes; 0: 16 */
  bool is_virtual;                                     /* between operations of the graph, never in memory */
  bool by_value;                                       /* one number, `value`, that the graph contains */
  double value;
} tn_cudnn_tensor;

/* Kinds of operations, with the order of their tensors in `tensor`. */
enum {
  TN_CUDNN_CONV_FORWARD = 0,    /* x, w, y */
  TN_CUDNN_CONV_GRAD_INPUT,     /* dx, w, dy */
  TN_CUDNN_CONV_GRAD_WEIGHT,    /* x, dw, dy */
  TN_CUDNN_POINTWISE,           /* x, b, y, predicate; mode: cudnnPointwiseMode_t */
  TN_CUDNN_POINTWISE_BACKWARD,  /* x, dy, dx; mode: a cudnnPointwiseMode_t that ends in BWD */
  TN_CUDNN_GEN_STATS,           /* x, sum, sum of squares: each f32 (1, channels, 1, 1) */
  TN_CUDNN_REDUCTION,           /* x, y: dimensions of 1 in y are reduced; mode: cudnnReduceTensorOp_t */
  TN_CUDNN_MATMUL,              /* a, b, c, m, n, k: the last three are optional lengths of each batch */
  TN_CUDNN_BN_BACKWARD_WEIGHTS, /* see tn_cudnn_bn_backward_weights */
  TN_CUDNN_RESHAPE, /* x, y: the same elements; a transpose where the strides of a virtual y say so */
  TN_CUDNN_KINDS
};

/* A window over two spatial dimensions {height, width}. */
typedef struct tn_cudnn_window {
  int64_t stride[2], dilation[2], before[2], after[2]; /* before, after: padding */
} tn_cudnn_window;

typedef struct tn_cudnn_operation {
  int32_t kind, mode;
  int64_t axis;                   /* of CUDNN_POINTWISE_GEN_INDEX */
  int32_t tensor[TN_CUDNN_ROLES]; /* numbers, TN_CUDNN_NONE where absent */
  tn_cudnn_window window;         /* of convolutions */
} tn_cudnn_operation;

/* Begin with {0}. Copied freely; 12 KiB. */
typedef struct tn_cudnn_graph {
  int32_t n_tensors, n_operations;
  bool outgrown;          /* an array was full */
  int64_t most_workspace; /* engines with more are left out, bytes; 0: 256 MiB */
  tn_cudnn_tensor tensors[TN_CUDNN_TENSORS];
  tn_cudnn_operation operations[TN_CUDNN_OPERATIONS];
} tn_cudnn_graph;

/* ---- tensors: each returns the number ---- */

int32_t tn_cudnn_add_tensor(tn_cudnn_graph *g, const tn_cudnn_tensor *tensor);
/* In memory: an image (batch, channels, height, width) or a weight (outputs, inputs, height, width) with the
 * second dimension innermost: NHWC, KRSC. */
int32_t tn_cudnn_image(tn_cudnn_graph *g, const tn_type *type);
/* In memory: a number for each channel of an image, f32, as (1, channels, 1, 1). */
int32_t tn_cudnn_channels(tn_cudnn_graph *g, int32_t dtype, int64_t channels);
/* A virtual tensor with the dims and strides of another one. */
int32_t tn_cudnn_virtual_like(tn_cudnn_graph *g, int32_t dtype, int32_t other);
/* A number, f32, with as many dimensions as the graph's other tensors have, each of 1. */
int32_t tn_cudnn_number(tn_cudnn_graph *g, int32_t rank, double value);
/* The same, i32. */
int32_t tn_cudnn_integer(tn_cudnn_graph *g, int32_t rank, int64_t value);

/* ---- operations ---- */

/* kind: one of TN_CUDNN_CONV_...; the tensors are x, w, y or their gradients. The groups follow from the
 * channels of x and w. */
void tn_cudnn_convolve(tn_cudnn_graph *g, int32_t kind, const tn_cudnn_window *window, int32_t x, int32_t w,
                       int32_t y);
/* y = mode(x, b); b is TN_CUDNN_NONE for modes of one operand. */
void tn_cudnn_pointwise(tn_cudnn_graph *g, int32_t mode, int32_t x, int32_t b, int32_t y);
/* y = predicate ? x : b. */
void tn_cudnn_select(tn_cudnn_graph *g, int32_t predicate, int32_t x, int32_t b, int32_t y);
/* y[i] = index of i along an axis; x gives the dims. */
void tn_cudnn_gen_index(tn_cudnn_graph *g, int64_t axis, int32_t x, int32_t y);
/* dx = mode(dy, x); x is the operand of the forward op. */
void tn_cudnn_pointwise_backward(tn_cudnn_graph *g, int32_t mode, int32_t dy, int32_t x, int32_t dx);
void tn_cudnn_gen_stats(tn_cudnn_graph *g, int32_t x, int32_t sum, int32_t squares);
void tn_cudnn_reduce(tn_cudnn_graph *g, int32_t mode, int32_t x, int32_t y);
/* c = a b over the last two dims; others are batch. */
void tn_cudnn_matmul(tn_cudnn_graph *g, int32_t a, int32_t b, int32_t c);
void tn_cudnn_reshape(tn_cudnn_graph *g, int32_t x, int32_t y);

/* The gradients of a batch norm's scale and bias, and the coefficients of
 * dx = equivalent_dy_scale dy + equivalent_x_scale x + equivalent_bias. */
typedef struct tn_cudnn_bn_backward_tensors {
  int32_t mean, inverse_deviation, scale, x, dy, dscale, dbias, equivalent_dy_scale, equivalent_x_scale,
      equivalent_bias;
} tn_cudnn_bn_backward_tensors;
void tn_cudnn_bn_backward_weights(tn_cudnn_graph *g, const tn_cudnn_bn_backward_tensors *t);

/* ---- text ---- */

/* Writes what the graph is, the same text for equal graphs: the key of remembered answers. false: it does not
 * fit. */
bool tn_cudnn_graph_text(const tn_cudnn_graph *g, char text[TN_CUDNN_TEXT]);
