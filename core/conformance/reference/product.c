/* core/conformance/reference/product.c: products of the reference: matmul, convolution and its gradients,
 * embedding. */
#include "core/conformance/reference/reference.h"
#include "tenon/attributes.h"

/* Element (row, column) of op(m), in the matrix of the batch at `index` of the result. */
static double matmul_element(const tn_type *m, const double *v, int32_t transposed, const int64_t *index,
                             int32_t rank, int64_t row, int64_t column) {
  int64_t at[TN_MAX_RANK];
  for (int32_t d = 0; d < m->rank - 2; d++) at[d] = m->dims[d] == 1 ? 0 : index[rank - m->rank + d];
  at[m->rank - 2] = transposed ? column : row;
  at[m->rank - 1] = transposed ? row : column;
  return v[tn_reference_flatten(m, at)];
}

static void reference_matmul(const tn_reference_call *c) {
  const tn_matmul_attributes *m = c->attributes;
  const tn_type *a = c->in[0], *b = c->in[1], *y = c->out[0];
  int64_t inner = a->dims[a->rank - (m->transpose_a ? 2 : 1)], index[TN_MAX_RANK];
  for (int64_t i = 0; i < tn_type_count(y); i++) {
    tn_reference_unflatten(y, i, index);
    int64_t row = index[y->rank - 2], column = index[y->rank - 1];
    double sum = c->n_in > 2 && c->in[2] != NULL ? c->x[2][column] : 0;
    for (int64_t k = 0; k < inner; k++)
      sum += matmul_element(a, c->x[0], m->transpose_a, index, y->rank, row, k) *
             matmul_element(b, c->x[1], m->transpose_b, index, y->rank, k, column);
    c->y[0][i] = sum;
  }
}

/* ---- convolution ---- */

/* One product of a convolution: indices of its elements of x, w and y. */
typedef struct tap {
  int64_t x, w, y;
} tap;

/* Calls visit for every product whose element of x is inside the input. All three ops share this loop. */
static void conv2d_each_tap(const tn_reference_call *c, const tn_type *x, const tn_type *w, const tn_type *y,
                            void (*visit)(const tn_reference_call *c, tap t)) {
  const tn_conv2d_attributes *a = c->attributes;
  int64_t out[4], k[4], outputs = w->dims[0] / a->groups;
  for (int64_t i = 0; i < tn_type_count(y); i++) {
    tn_reference_unflatten(y, i, out);
    for (int64_t j = 0; j < w->dims[1] * w->dims[2] * w->dims[3]; j++) {
      tn_reference_unflatten(w, out[1] * w->dims[1] * w->dims[2] * w->dims[3] + j, k);
      int64_t row = out[2] * a->stride.v[0] + k[2] * a->dilation.v[0] - a->padding.v[0];
      int64_t column = out[3] * a->stride.v[1] + k[3] * a->dilation.v[1] - a->padding.v[1];
      if (row < 0 || column < 0 || row >= x->dims[2] || column >= x->dims[3]) continue;
      int64_t in[4] = {out[0], out[1] / outputs * w->dims[1] + k[1], row, column};
      visit(c, (tap){tn_reference_flatten(x, in), tn_reference_flatten(w, k), i});
    }
  }
}

static void conv2d_add_to_y(const tn_reference_call *c, tap t) {
  c->y[0][t.y] += c->x[0][t.x] * c->x[1][t.w];
}
static void conv2d_add_to_x(const tn_reference_call *c, tap t) {
  c->y[0][t.x] += c->x[0][t.y] * c->x[1][t.w];
}
static void conv2d_add_to_w(const tn_reference_call *c, tap t) {
  c->y[0][t.w] += c->x[0][t.x] * c->x[1][t.y];
}

static void reference_conv2d(const tn_reference_call *c) {
  int64_t index[4];
  for (int64_t i = 0; c->n_in > 2 && c->in[2] != NULL && i < tn_type_count(c->out[0]); i++) {
    tn_reference_unflatten(c->out[0], i, index);
    c->y[0][i] = c->x[2][index[1]];
  }
  conv2d_each_tap(c, c->in[0], c->in[1], c->out[0], conv2d_add_to_y);
}
static void reference_conv2d_grad_input(const tn_reference_call *c) {
  conv2d_each_tap(c, c->out[0], c->in[1], c->in[0], conv2d_add_to_x);
}
static void reference_conv2d_grad_weight(const tn_reference_call *c) {
  conv2d_each_tap(c, c->in[0], c->out[0], c->in[1], conv2d_add_to_w);
}

/* ---- embedding ---- */

static void reference_embedding(const tn_reference_call *c) {
  int64_t width = c->in[1]->dims[1];
  for (int64_t i = 0; i < tn_type_count(c->out[0]); i++)
    c->y[0][i] = c->x[1][(int64_t)c->x[0][i / width] * width + i % width];
}

static void reference_embedding_grad(const tn_reference_call *c) {
  int64_t width = c->out[0]->dims[1];
  for (int64_t i = 0; i < tn_type_count(c->in[1]); i++)
    c->y[0][(int64_t)c->x[0][i / width] * width + i % width] += c->x[1][i];
}

const tn_reference_op tn_reference_product_ops[] = {TN_REFERENCE_OP(matmul),
                                                    TN_REFERENCE_OP(conv2d),
                                                    TN_REFERENCE_OP(conv2d_grad_input),
                                                    TN_REFERENCE_OP(conv2d_grad_weight),
                                                    TN_REFERENCE_OP(embedding),
                                                    TN_REFERENCE_OP(embedding_grad),
                                                    {NULL, NULL}};
