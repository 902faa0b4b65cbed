/* core/onnx/rows/rows.c: the rows of all families, and templates of calls. */
#include <stdlib.h>
#include <string.h>

#include "core/onnx/import.h"

static const onnx_row *row_find(const onnx_row *family, const char *op) {
  for (const onnx_row *row = family; row->op != NULL; row++)
    if (strcmp(row->op, op) == 0) return row;
  return NULL;
}

/* A function of the file comes first; com.microsoft has operators of its own beside those of the main domain.
 */
const onnx_row *onnx_row_of(const onnx_import *m, const tn_onnx_node *node) {
  const onnx_row *const families[] = {
      onnx_pointwise_rows, onnx_shape_rows,     onnx_concat_rows, onnx_window_rows, onnx_product_rows,
      onnx_norm_rows,      onnx_reduction_rows, onnx_index_rows,  onnx_loss_rows,   onnx_attention_rows,
      onnx_recurrent_rows, onnx_quantized_rows, onnx_resize_rows, onnx_flow_rows};
  bool contrib = strcmp(node->domain, "com.microsoft") == 0;
  if (onnx_function_of(m, node) != NULL) return &onnx_function_row;
  if (!contrib && node->domain[0] != '\0' && strcmp(node->domain, "ai.onnx") != 0) return NULL;
  const onnx_row *row = contrib ? row_find(onnx_contrib_rows, node->op) : NULL;
  for (size_t i = 0; i < sizeof families / sizeof *families && row == NULL; i++)
    row = row_find(families[i], node->op);
  return row;
}

/* "alpha=0.01" between the braces: the attribute's value as text, or the default, which is that of the op,
 * too. */
static const char *row_attribute(const onnx_use *n, const char *part, size_t length, bool *usual) {
  size_t name = strcspn(part, "=");
  const char *otherwise = onnx_print(n, "%.*s", (int)(length - name - 1), part + name + 1),
             *value = otherwise;
  const tn_onnx_attribute *a = onnx_attribute(n, onnx_print(n, "%.*s", (int)name, part));
  enum { FLOAT = 1, INT = 2, STRING = 3 };
  if (a != NULL && a->type == STRING) value = onnx_word(n, a->name, otherwise);
  if (a != NULL && a->type == INT) value = onnx_print(n, "%lld", (long long)a->whole);
  if (a != NULL && a->type == FLOAT) value = onnx_float_text(n, a->number);
  *usual = *usual && strcmp(value, otherwise) == 0;
  return value;
}

/* The call with the values of its attributes; without options where all of them are the usual ones. */
static tn_status row_fill(const onnx_use *n, const char *call) {
  tn_text text = tn_text_new(n->m->env);
  bool usual = true;
  for (const char *at = call; *at != '\0';) {
    size_t plain = strcspn(at, "{");
    tn_text_addn(&text, at, plain);
    at += plain;
    if (*at == '\0') break;
    size_t length = strcspn(++at, "}");
    tn_text_add(&text, row_attribute(n, at, length, &usual));
    at += length + 1;
  }
  int shown = usual ? (int)strcspn(call, "(") : (int)text.n;
  tn_status status = text.failed ? TN_ENOMEM : onnx_emit(n, NULL, 0, "%.*s", shown, text.v);
  tn_text_free(&text);
  return status;
}

tn_status onnx_row_apply(const onnx_row *row, const onnx_use *n) {
  return row->emit != NULL ? row->emit(n) : row_fill(n, row->call);
}
