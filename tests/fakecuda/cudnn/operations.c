/* tests/fakecuda/cudnn/operations.c: see operations.h: tensors, convolutions and operations as they finalize.
 */
#include "tests/fakecuda/cudnn/operations.h"
#include "tests/fakecuda/cudnn/pointwise.h"
#include "tests/fakecuda/cudnn/program.h"

#define BAD CUDNN_STATUS_BAD_PARAM

/* ---- tensors ---- */

static bool is_vectorized(const fakednn_body *body) {
  return fakednn_integer(body, CUDNN_ATTR_TENSOR_VECTOR_COUNT, 0, 1) != 1 ||
         fakednn_integer(body, CUDNN_ATTR_TENSOR_REORDERING_MODE, 0, 0) != CUDNN_TENSOR_REORDERING_NONE;
}

cudnnStatus_t fakednn_finalize_tensor(fakednn_body *body) {
  int64_t rank = fakednn_count_of(body, CUDNN_ATTR_TENSOR_DIMENSIONS);
  FAKEDNN_REQUIRE(rank <= CUDNN_DIM_MAX, BAD, "a tensor of %lld dimensions", (long long)rank);
  FAKEDNN_REQUIRE(fakednn_count_of(body, CUDNN_ATTR_TENSOR_STRIDES) == rank, BAD,
                  "%lld dimensions and %lld strides", (long long)rank,
                  (long long)fakednn_count_of(body, CUDNN_ATTR_TENSOR_STRIDES));
  fakednn_tensor t;
  fakednn_read_tensor(body, &t);
  for (int i = 0; i < t.rank; i++) {
    FAKEDNN_REQUIRE(t.dims[i] >= 1, BAD, "dimension %d of tensor %lld is %lld", i, (long long)t.uid,
                    (long long)t.dims[i]);
    FAKEDNN_REQUIRE(t.strides[i] >= 0, BAD, "stride %d of tensor %lld is %lld", i, (long long)t.uid,
                    (long long)t.strides[i]);
  }
  FAKEDNN_REQUIRE(t.alignment >= 1 && (t.alignment & (t.alignment - 1)) == 0, BAD,
                  "tensor %lld is aligned to %lld bytes, expected a power of 2", (long long)t.uid,
                  (long long)t.alignment);
  if (!fakednn_data_size(t.type)) return fakednn_lacks("elements of the type %d", t.type);
  return is_vectorized(body) ? fakednn_lacks("vectorized or reordered tensors") : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t fakednn_finalize_convolution(fakednn_body *body) {
  int64_t spatial = fakednn_integer(body, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 0, 0);
  const int32_t arrays[] = {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                            CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS};
  const int64_t least[] = {1, 1, 0, 0};
  for (int i = 0; i < 4; i++) {
    FAKEDNN_REQUIRE(fakednn_count_of(body, arrays[i]) == spatial, BAD,
                    "attribute %d of a convolution has %lld elements for %lld spatial dimensions", arrays[i],
                    (long long)fakednn_count_of(body, arrays[i]), (long long)spatial);
    for (int64_t at = 0; at < spatial; at++) {
      FAKEDNN_REQUIRE(fakednn_integer(body, arrays[i], at, 0) >= least[i], BAD,
                      "attribute %d of a convolution is %lld", arrays[i],
                      (long long)fakednn_integer(body, arrays[i], at, 0));
    }
  }
  if (spatial != FAKEDNN_SPATIAL) return fakednn_lacks("convolutions of %lld dimensions", (long long)spatial);
  if (fakednn_integer(body, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, 0, 0) != CUDNN_DATA_FLOAT)
    return fakednn_lacks("convolutions that compute in another type than float");
  return CUDNN_STATUS_SUCCESS;
}

/* Whole numbers and conditions are floats here, which are exact below 2^24. */
static bool computes_in(int32_t mode, int64_t type) {
  bool compares = mode >= CUDNN_POINTWISE_CMP_EQ && mode <= CUDNN_POINTWISE_LOGICAL_NOT;
  bool counts = mode == CUDNN_POINTWISE_GEN_INDEX || mode == CUDNN_POINTWISE_ADD ||
                mode == CUDNN_POINTWISE_SUB || mode == CUDNN_POINTWISE_MUL;
  return type == CUDNN_DATA_FLOAT || (type == CUDNN_DATA_BOOLEAN && compares) ||
         (type == CUDNN_DATA_INT32 && counts);
}

cudnnStatus_t fakednn_finalize_pointwise(fakednn_body *body) {
  int32_t mode = (int32_t)fakednn_integer(body, CUDNN_ATTR_POINTWISE_MODE, 0, 0);
  int64_t type = fakednn_integer(body, CUDNN_ATTR_POINTWISE_MATH_PREC, 0, 0);
  if (!fakednn_pointwise_inputs(mode)) return fakednn_lacks("the pointwise mode %d", mode);
  if (!computes_in(mode, type))
    return fakednn_lacks("the pointwise mode %d computed in type %lld", mode, (long long)type);
  return CUDNN_STATUS_SUCCESS;
}

/* ---- operations ---- */

static cudnnStatus_t check_convolution(const fakednn_node *node, const fakednn_tensor *t) {
  const fakednn_tensor *x = &t[FAKEDNN_CONV_X], *w = &t[FAKEDNN_CONV_W], *y = &t[FAKEDNN_CONV_Y];
  FAKEDNN_REQUIRE(x->rank == 4 && w->rank == 4 && y->rank == 4, BAD,
                  "a convolution of tensors with %d, %d and %d dimensions", x->rank, w->rank, y->rank);
  FAKEDNN_REQUIRE(x->dims[0] == y->dims[0], BAD, "batches of %lld and %lld", (long long)x->dims[0],
                  (long long)y->dims[0]);
  FAKEDNN_REQUIRE(w->dims[0] == y->dims[1], BAD, "%lld filters for %lld channels of the result",
                  (long long)w->dims[0], (long long)y->dims[1]);
  int64_t groups = x->dims[1] / w->dims[1];
  FAKEDNN_REQUIRE(groups > 0 && groups * w->dims[1] == x->dims[1] && w->dims[0] % groups == 0, BAD,
                  "%lld channels with filters of %lld channels, %lld of them", (long long)x->dims[1],
                  (long long)w->dims[1], (long long)w->dims[0]);
  for (int i = 0; i < FAKEDNN_SPATIAL; i++) {
    int64_t window = node->dilation[i] * (w->dims[2 + i] - 1) + 1;
    int64_t room = x->dims[2 + i] + node->before[i] + node->after[i] - window;
    FAKEDNN_REQUIRE(room >= 0 && room / node->stride[i] + 1 == y->dims[2 + i], BAD,
                    "spatial dimension %d of the result is %lld, expected %lld", i, (long long)y->dims[2 + i],
                    (long long)(room / node->stride[i] + 1));
  }
  return CUDNN_STATUS_SUCCESS;
}

/* Each dimension of an operand is that of the result, or 1. */
static cudnnStatus_t check_broadcast(const char *name, const fakednn_tensor *in, const fakednn_tensor *out) {
  FAKEDNN_REQUIRE(in->rank == out->rank, BAD, "%s has %d dimensions, the result %d", name, in->rank,
                  out->rank);
  for (int i = 0; i < in->rank; i++) {
    FAKEDNN_REQUIRE(in->dims[i] == out->dims[i] || in->dims[i] == 1, BAD,
                    "dimension %d of %s is %lld, of the result %lld", i, name, (long long)in->dims[i],
                    (long long)out->dims[i]);
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_pointwise(const fakednn_node *node, const fakednn_tensor *t) {
  static const char *const names[] = {"X", "B", "T", "DY"};
  unsigned reads = fakednn_pointwise_inputs(node->mode);
  bool backward = reads >> FAKEDNN_PW_DY & 1;
  int out = backward ? FAKEDNN_PW_DX : FAKEDNN_PW_Y;
  FAKEDNN_REQUIRE(t[out].rank > 0 && !t[backward ? FAKEDNN_PW_Y : FAKEDNN_PW_DX].rank, BAD,
                  "the pointwise mode %d writes %s", node->mode, backward ? "DX" : "Y");
  for (int i = 0; i < FAKEDNN_PW_INPUTS; i++) {
    FAKEDNN_REQUIRE((reads >> i & 1) == (unsigned)(t[i].rank > 0), BAD, "the pointwise mode %d %s %s",
                    node->mode, reads >> i & 1 ? "needs" : "does not read", names[i]);
    if (t[i].rank) FAKEDNN_TRY(check_broadcast(names[i], &t[i], &t[out]));
  }
  FAKEDNN_REQUIRE(node->mode != CUDNN_POINTWISE_GEN_INDEX || (node->axis >= 0 && node->axis < t[out].rank),
                  BAD, "axis %d of a result with %d dimensions", node->axis, t[out].rank);
  return CUDNN_STATUS_SUCCESS;
}

/* Sums of each channel: (1, C, 1, 1). */
static cudnnStatus_t check_channels(const char *name, const fakednn_tensor *sum, const fakednn_tensor *x) {
  FAKEDNN_REQUIRE(sum->rank == x->rank, BAD, "%s has %d dimensions, X %d", name, sum->rank, x->rank);
  for (int i = 0; i < x->rank; i++) {
    FAKEDNN_REQUIRE(sum->dims[i] == (i == 1 ? x->dims[1] : 1), BAD, "dimension %d of %s is %lld", i, name,
                    (long long)sum->dims[i]);
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_statistics(const fakednn_tensor *t) {
  FAKEDNN_TRY(check_channels("SUM", &t[FAKEDNN_STATS_SUM], &t[FAKEDNN_STATS_X]));
  return check_channels("SQSUM", &t[FAKEDNN_STATS_SQUARES], &t[FAKEDNN_STATS_X]);
}

static cudnnStatus_t check_bn_backward(const fakednn_tensor *t) {
  for (int i = FAKEDNN_BNB_MEAN; i <= FAKEDNN_BNB_EQ_BIAS; i++) {
    if (i == FAKEDNN_BNB_X || i == FAKEDNN_BNB_DY) continue;
    FAKEDNN_TRY(check_channels("a coefficient", &t[i], &t[FAKEDNN_BNB_X]));
  }
  return check_broadcast("DY", &t[FAKEDNN_BNB_DY], &t[FAKEDNN_BNB_X]);
}

static cudnnStatus_t check_bn_finalize(const fakednn_node *node, const fakednn_tensor *t) {
  if (node->mode != CUDNN_BN_FINALIZE_STATISTICS_TRAINING) return fakednn_lacks("BN_FINALIZE for inference");
  FAKEDNN_REQUIRE(!t[FAKEDNN_BNF_COUNT].rank || t[FAKEDNN_BNF_COUNT].type == CUDNN_DATA_INT64, BAD,
                  "ACCUM_COUNT is of the type %d, expected CUDNN_DATA_INT64", t[FAKEDNN_BNF_COUNT].type);
  for (int i = FAKEDNN_BNF_SUM; i <= FAKEDNN_BNF_EQ_BIAS; i++) {
    bool number = i >= FAKEDNN_BNF_COUNT && i <= FAKEDNN_BNF_FACTOR;
    if (!t[i].rank) continue;
    FAKEDNN_REQUIRE(fakednn_elements(&t[i]) == (number ? 1 : fakednn_elements(&t[FAKEDNN_BNF_SUM])), BAD,
                    "a tensor of BN_FINALIZE has %lld elements", (long long)fakednn_elements(&t[i]));
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_matmul(const fakednn_tensor *t) {
  const fakednn_tensor *a = &t[FAKEDNN_MM_A], *b = &t[FAKEDNN_MM_B], *c = &t[FAKEDNN_MM_C];
  int m = c->rank - 2, n = c->rank - 1;
  FAKEDNN_REQUIRE(c->rank >= 2 && a->rank == c->rank && b->rank == c->rank, BAD,
                  "a product of tensors with %d, %d and %d dimensions", a->rank, b->rank, c->rank);
  FAKEDNN_REQUIRE(a->dims[n] == b->dims[m] && a->dims[m] == c->dims[m] && b->dims[n] == c->dims[n], BAD,
                  "a product of %lld x %lld and %lld x %lld to %lld x %lld", (long long)a->dims[m],
                  (long long)a->dims[n], (long long)b->dims[m], (long long)b->dims[n], (long long)c->dims[m],
                  (long long)c->dims[n]);
  for (int i = FAKEDNN_MM_ROWS; i <= FAKEDNN_MM_INNER; i++) {
    FAKEDNN_REQUIRE(!t[i].rank || (t[i].type == CUDNN_DATA_INT32 && fakednn_elements(&t[i]) == c->dims[0]),
                    BAD, "lengths of the type %d, %lld of them for a batch of %lld", t[i].type,
                    (long long)fakednn_elements(&t[i]), (long long)c->dims[0]);
  }
  for (int i = 0; i < m; i++) {
    const int64_t dims[] = {a->dims[i], b->dims[i]};
    for (int j = 0; j < 2; j++) {
      FAKEDNN_REQUIRE(dims[j] > 0 && c->dims[i] % dims[j] == 0, BAD, "batches of %lld, %lld and %lld",
                      (long long)a->dims[i], (long long)b->dims[i], (long long)c->dims[i]);
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_reshape(const fakednn_tensor *t) {
  FAKEDNN_REQUIRE(fakednn_elements(&t[0]) == fakednn_elements(&t[1]), BAD, "%lld elements reshaped to %lld",
                  (long long)fakednn_elements(&t[0]), (long long)fakednn_elements(&t[1]));
  return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_reduction(const fakednn_node *node, const fakednn_tensor *t) {
  if (node->mode < CUDNN_REDUCE_TENSOR_ADD || node->mode > CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS)
    return fakednn_lacks("the reduction %d", node->mode);
  return check_broadcast("Y", &t[FAKEDNN_RED_Y], &t[FAKEDNN_RED_X]);
}

cudnnStatus_t fakednn_finalize_operation(const fakednn_body *body) {
  int n;
  fakednn_node node;
  fakednn_tensor t[FAKEDNN_SLOTS] = {{0}};
  const fakednn_slot *slots = fakednn_slots(body->type, &n);
  for (int i = 0; i < n; i++) {
    const fakednn_body *part = fakednn_part(body, slots[i].attribute, 0);
    if (part) fakednn_read_tensor(part, &t[i]);
    FAKEDNN_REQUIRE(!slots[i].output || !t[i].by_value, BAD, "tensor %lld is a value and is written",
                    (long long)t[i].uid);
  }
  fakednn_read_node(body, &node);
  switch (body->type) {
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
  case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: return check_convolution(&node, t);
  case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR: return check_pointwise(&node, t);
  case CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR: return check_statistics(t);
  case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: return check_reduction(&node, t);
  case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return check_matmul(t);
  case CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR: return check_bn_backward(t);
  case CUDNN_BACKEND_OPERATION_BN_FINALIZE_STATISTICS_DESCRIPTOR: return check_bn_finalize(&node, t);
  default: return check_reshape(t);
  }
}
