/* core/export/onnx/rows/products.c: matrix products and attention. */
#include <stdio.h>

#include "core/export/onnx/nodes.h"
#include "tenon/attributes.h"

/* A matrix with its last two dimensions exchanged, as text. */
static const char *product_swapped(const export_use *u, int32_t i, const char *name) {
  const tn_type *type = export_type(u, i);
  int32_t rank = type->rank;
  tn_text text = tn_text_new(u->x->env);
  tn_text_addf(&text, "Transpose(%s, perm=[", name);
  for (int32_t k = 0; k < rank; k++)
    tn_text_addf(&text, "%s%d", k > 0 ? ", " : "", k < rank - 2 ? k : k == rank - 2 ? rank - 1 : rank - 2);
  const char *kept = tn_arena_printf(&u->x->arena, "%s])", text.v != NULL ? text.v : "");
  tn_text_free(&text);
  return kept;
}

/* A rounded weight that this product alone reads has been written transposed (quantize.c). */
static bool product_is_turned(const export_use *u, int32_t i) {
  return i == 1 && u->x->reads[u->node->in[i]] == 1 &&
         tn_graph_is(u->x->graph, u->node->in[i], "fake_quantize_channels");
}

static const char *product_operand(const export_use *u, int32_t i, const char *name, bool swapped) {
  if (!swapped || product_is_turned(u, i)) return name;
  const char *weight = export_transposed(u, i);
  return weight != NULL ? tn_arena_printf(&u->x->arena, "'%s'", weight) : product_swapped(u, i, name);
}

/* A linear layer of vectors is Gemm, which has the bias and the transposed weight. */
static bool product_is_gemm(const export_use *u) {
  return export_type(u, 0)->rank == 2 && export_type(u, 1)->rank == 2 &&
         tn_dtype_is_float(export_type(u, 0)->dtype);
}

bool export_product_swaps(const export_use *u) {
  const tn_matmul_attributes *a = u->node->attributes;
  return a->transpose_b && !(product_is_gemm(u) && export_has(u, 2));
}

static tn_status product_matmul(const export_use *u) {
  const tn_matmul_attributes *a = u->node->attributes;
  if (product_is_gemm(u) && export_has(u, 2))
    return export_yield(u, "Gemm(a, b, bias, transA={transpose_a}, transB={transpose_b})");
  const char *left = product_operand(u, 0, "a", a->transpose_a != 0),
             *right = product_operand(u, 1, "b", a->transpose_b != 0);
  if (left == NULL || right == NULL) return TN_ENOMEM;
  return export_yield(u, export_has(u, 2) ? "Add(MatMul(%s, %s), bias)" : "MatMul(%s, %s)", left, right);
}

/* ONNX aligns the causal mask at the first key, Tenon at the last. */
static bool attention_takes(const export_use *u) {
  const tn_attention_attributes *a = u->node->attributes;
  int32_t tokens = a->heads == 0 ? 2 : 1;
  return !a->causal || export_type(u, 0)->dims[tokens] == export_type(u, 1)->dims[tokens];
}

static tn_status attention_emit(const export_use *u) {
  const tn_attention_attributes *a = u->node->attributes;
  char scale[64] = "";
  if (a->scale != 0) snprintf(scale, sizeof scale, ", scale=%.9e", a->scale);
  if (a->heads == 0) return export_yield(u, "Attention(q, k, v, is_causal={causal}%s)", scale);
  return export_yield(
      u, "Attention(q, k, v, is_causal={causal}, q_num_heads={heads}, kv_num_heads={heads}%s)", scale);
}

const export_row export_rows_products[] = {
    {"matmul", .emit = product_matmul},
    {"attention", .emit = attention_emit, .takes = attention_takes, .since = 23},
    {NULL},
};
