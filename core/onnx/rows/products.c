/* core/onnx/rows/products.c: products of matrices. */
#include <ctype.h>
#include <string.h>

#include "core/onnx/import.h"

/* Finds the Add of a bias behind a product. Returns the operand of the bias in it, or -1. */
static int32_t product_bias(const onnx_use *n, int64_t width, onnx_use *next) {
  if (!onnx_next(n, "Add", next)) return -1;
  for (int32_t i = 0; i < next->node->n_in; i++)
    if (onnx_is_weight(next, i, 1) && onnx_operand(next, i)->type.dims[0] == width &&
        onnx_operand(next, i)->is_weight)
      return i;
  return -1;
}

static tn_status row_linear(const onnx_use *n, int64_t units, const char *bias, const onnx_use *result,
                            bool transposed) {
  const onnx_layer_weight weights[] = {{"weight", n->node->in[1], transposed}, {"bias", bias, false}};
  bool has = bias[0] != '\0';
  return onnx_layer(n, 0, result, weights, has ? 2 : 1,
                    onnx_print(n, "linear(%lld%s)", (long long)units, has ? "" : ", bias=no"));
}

/* A vector is a row on the left and a column on the right; the result has not this dimension. */
static tn_status matmul_of_vector(const onnx_use *n) {
  const tn_type a = onnx_operand(n, 0)->type, b = onnx_operand(n, 1)->type;
  const char *left = onnx_text_of(n, 0, false), *right = onnx_text_of(n, 1, false);
  if (left == NULL || right == NULL) return onnx_failed(n);
  if (a.rank == 0 || b.rank == 0) return ONNX_REFUSE(n, "a number in the place of a matrix");
  return onnx_compute(n, "matmul(%s%s, %s%s)%s%s", left, a.rank == 1 ? "[None]" : "", right,
                      b.rank == 1 ? "[:, None]" : "", a.rank == 1 ? "[..., 0, :]" : "",
                      b.rank == 1 ? "[..., 0]" : "");
}

static tn_status row_matmul(const onnx_use *n) {
  const tn_type *a = &onnx_operand(n, 0)->type, *b = &onnx_operand(n, 1)->type;
  if (a->rank < 2 || b->rank < 2) return matmul_of_vector(n);
  if (!onnx_is_weight(n, 1, 2) || !onnx_operand(n, 1)->is_weight) return onnx_emit(n, NULL, 0, "matmul");
  onnx_use next = *n;
  int32_t bias = product_bias(n, b->dims[1], &next);
  if (bias >= 0) n->m->done.v[next.number] = true;
  return row_linear(n, b->dims[1], bias >= 0 ? next.node->in[bias] : "", bias >= 0 ? &next : n, true);
}

static tn_status row_gemm(const onnx_use *n) {
  bool turn_a = onnx_whole(n, "transA", 0), turn_b = onnx_whole(n, "transB", 0), has = onnx_has(n, 2);
  double alpha = onnx_number(n, "alpha", 1), beta = onnx_number(n, "beta", 1);
  const tn_type *b = &onnx_operand(n, 1)->type;
  if (b->rank != 2 || onnx_operand(n, 0)->type.rank != 2)
    return ONNX_REFUSE(n, "a product of %d dimensions", b->rank);
  int64_t units = b->dims[turn_b ? 0 : 1];
  bool plain = !turn_a && alpha == 1 &&
               (!has || (beta == 1 && onnx_is_weight(n, 2, 1) && onnx_operand(n, 2)->type.dims[0] == units));
  if (plain && onnx_is_weight(n, 1, 2)) return row_linear(n, units, has ? n->node->in[2] : "", n, !turn_b);
  const char *x[] = {onnx_text_of(n, 0, false), onnx_text_of(n, 1, false)},
             *c = has ? onnx_text_of(n, 2, true) : "0";
  if (x[0] == NULL || x[1] == NULL || c == NULL) return onnx_failed(n);
  return onnx_compute(n, "matmul(%s, %s, transpose_a=%s, transpose_b=%s) * %s + %s * %s", x[0], x[1],
                      turn_a ? "yes" : "no", turn_b ? "yes" : "no", onnx_float_text(n, alpha), c,
                      onnx_float_text(n, beta));
}

/* The letters that "..." stands for: capital ones, of which an operand with fewer dimensions has the last. */
static tn_status einsum_dots(const onnx_use *n, int32_t operand, int32_t letters, int32_t *most, char *to) {
  int32_t rank = operand < n->node->n_in ? onnx_operand(n, operand)->type.rank - letters : *most;
  if (rank < 0 || rank > TN_MAX_RANK || (*most >= 0 && rank != *most))
    return ONNX_REFUSE(n, "an ellipsis that broadcasts");
  *most = rank;
  for (int32_t i = 0; i < rank; i++) to[i] = (char)('A' + i);
  to[rank] = '\0';
  return TN_OK;
}

/* Subscripts are a word of the language: "ij,jk->ik" is ij_jk_ik. */
static tn_status row_einsum(const onnx_use *n) {
  const tn_onnx_attribute *equation = onnx_attribute(n, "equation");
  const char *given = equation != NULL ? equation->text : "", *word = "";
  int32_t operand = 0, most = -1;
  for (const char *c = given; *c != '\0'; c++) {
    char dots[TN_MAX_RANK + 1];
    if (*c == ' ' || *c == '>') continue;
    if (*c == ',' || *c == '-') {
      word = onnx_print(n, "%s_", word);
      operand = *c == '-' ? n->node->n_in : operand + 1;
    } else if (*c == '.') {
      int32_t letters = 0;
      const char *first = c;
      while (first > given && first[-1] != ',') first--;
      for (const char *k = first; *k != '\0' && *k != ',' && *k != '-'; k++)
        letters += isalpha((unsigned char)*k) != 0;
      TN_TRY(einsum_dots(n, operand, letters, &most, dots));
      word = onnx_print(n, "%s%s", word, dots);
      c += strncmp(c, "...", 3) == 0 ? 2 : 0;
    } else {
      if (!islower((unsigned char)*c)) return ONNX_REFUSE(n, "subscripts other than small letters");
      word = onnx_print(n, "%s%c", word, *c);
    }
  }
  return onnx_emit(n, NULL, 0, "einsum(equation=%s)", word);
}

const onnx_row onnx_product_rows[] = {
    {"MatMul", row_matmul, NULL, 2},
    {"Gemm", row_gemm, NULL, 2},
    {"Einsum", row_einsum, NULL},
    {NULL, NULL, NULL},
};
