/* tests/fakecuda/cudnn/program.h: a graph of operations as plain data: what support.c decides about and run.c
 * interprets. It refers to no descriptor. */
#pragma once

#include "tests/fakecuda/cudnn/body.h"

enum { FAKEDNN_RANK = 8, FAKEDNN_SLOTS = 15, FAKEDNN_SPATIAL = 2 };

typedef struct fakednn_tensor {
  int64_t uid, alignment;
  int64_t dims[FAKEDNN_RANK], strides[FAKEDNN_RANK]; /* in elements */
  int32_t type;                                      /* a cudnnDataType_t */
  int32_t rank, writer;                              /* writer: the node, -1: none */
  bool is_virtual, by_value;
} fakednn_tensor;

/* The tensors of an operation, by slot. Convolutions have the tensor of the data, of the filter, of the
 * result of the forward operation, or their gradients. */
enum { FAKEDNN_CONV_X, FAKEDNN_CONV_W, FAKEDNN_CONV_Y };
enum { FAKEDNN_PW_X, FAKEDNN_PW_B, FAKEDNN_PW_T, FAKEDNN_PW_DY, FAKEDNN_PW_Y, FAKEDNN_PW_DX };
enum { FAKEDNN_STATS_X, FAKEDNN_STATS_SUM, FAKEDNN_STATS_SQUARES };
enum { FAKEDNN_RED_X, FAKEDNN_RED_Y };
/* The lengths of each batch: rows, columns, inner products. */
enum { FAKEDNN_MM_A, FAKEDNN_MM_B, FAKEDNN_MM_C, FAKEDNN_MM_ROWS, FAKEDNN_MM_COLUMNS, FAKEDNN_MM_INNER };
enum {
  FAKEDNN_BNF_SUM,
  FAKEDNN_BNF_SQUARES,
  FAKEDNN_BNF_SCALE,
  FAKEDNN_BNF_BIAS,
  FAKEDNN_BNF_MEAN_BEFORE,
  FAKEDNN_BNF_VARIANCE_BEFORE,
  FAKEDNN_BNF_COUNT,
  FAKEDNN_BNF_EPSILON,
  FAKEDNN_BNF_FACTOR,
  FAKEDNN_BNF_MEAN_AFTER,
  FAKEDNN_BNF_VARIANCE_AFTER,
  FAKEDNN_BNF_MEAN,
  FAKEDNN_BNF_INVERSE_DEVIATION,
  FAKEDNN_BNF_EQ_SCALE,
  FAKEDNN_BNF_EQ_BIAS
};
enum {
  FAKEDNN_BNB_MEAN,
  FAKEDNN_BNB_INVERSE_DEVIATION,
  FAKEDNN_BNB_SCALE,
  FAKEDNN_BNB_X,
  FAKEDNN_BNB_DY,
  FAKEDNN_BNB_DSCALE,
  FAKEDNN_BNB_DBIAS,
  FAKEDNN_BNB_EQ_DY_SCALE,
  FAKEDNN_BNB_EQ_X_SCALE,
  FAKEDNN_BNB_EQ_BIAS
};

typedef struct fakednn_node {
  int32_t kind, mode; /* mode: of pointwise operations and reductions */
  int32_t axis;
  int32_t tensor[FAKEDNN_SLOTS]; /* -1: absent */
  double alpha, beta;            /* convolutions; pointwise: the factors of x and b */
  double lower, upper, slope;    /* ReLU */
  double elu, softplus, swish;   /* parameters of activations */
  double padding;                /* what a matmul writes behind the lengths of a batch */
  int64_t stride[FAKEDNN_SPATIAL], dilation[FAKEDNN_SPATIAL];
  int64_t before[FAKEDNN_SPATIAL], after[FAKEDNN_SPATIAL]; /* padding */
} fakednn_node;

typedef struct fakednn_program {
  int32_t n_tensors, n_nodes;
  fakednn_tensor *tensors;
  fakednn_node *nodes; /* in an order in which they can run */
} fakednn_program;

typedef struct fakednn_slot {
  int32_t attribute;
  bool output;
} fakednn_slot;

/* The slots of a kind of operation; NULL: the kind has none. */
const fakednn_slot *fakednn_slots(int32_t kind, int *n);

void fakednn_read_tensor(const fakednn_body *body, fakednn_tensor *tensor);
/* Reads an operation, whose tensors are not numbered yet. */
void fakednn_read_node(const fakednn_body *operation, fakednn_node *node);

/* Elements from the first to the last of a tensor's memory. */
int64_t fakednn_span(const fakednn_tensor *tensor);
int64_t fakednn_elements(const fakednn_tensor *tensor);
/* Bytes of an element; 0: the double does not compute with the type. */
int64_t fakednn_data_size(int32_t type);
