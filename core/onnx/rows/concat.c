/* core/onnx/rows/concat.c: Concat. A network such as DenseNet joins a list that grows by one value from layer
 * to layer. Such a node becomes `concat(BEFORE, LAST)`, where BEFORE is the line of the list without its last
 * value, so all layers have one form. */
#include <string.h>

#include "core/onnx/import.h"

/* The key of the first `count` operands: "1|stem|layer1.conv2". */
static const char *concat_key(const onnx_use *n, int32_t axis, const char *const *operands, int32_t count) {
  tn_text text = tn_text_new(n->m->env);
  tn_text_addf(&text, "%d", axis);
  for (int32_t i = 0; i < count; i++) tn_text_addf(&text, "|%s", operands[i]);
  const char *key = text.failed ? NULL : tn_arena_strdup(&n->m->arena, text.v);
  tn_text_free(&text);
  return key;
}

/* Replaces the longest beginning of the operands that an earlier line has joined by that line. The number of
 * operands then; -1: memory is out. */
static int32_t concat_shorten(const onnx_use *n, int32_t axis, const char **operands, int32_t count) {
  for (int32_t k = count - 1; k > 1; k--) {
    const char *key = concat_key(n, axis, operands, k);
    if (key == NULL) return -1;
    int64_t found = tn_name_index_find(&n->m->joins, key);
    if (found == TN_NAME_INDEX_NONE) continue;
    operands[0] = n->m->joined.v[found];
    memmove(operands + 1, operands + k, (size_t)(count - k) * sizeof *operands);
    return count - k + 1;
  }
  return count;
}

static tn_status concat_note(const onnx_use *n, const char *key) {
  if (tn_name_index_find(&n->m->joins, key) != TN_NAME_INDEX_NONE) return TN_OK;
  TN_TRY(tn_name_index_add(&n->m->joins, key));
  return tn_vec_push(n->m->env, &n->m->joined, onnx_find(n->m, n->node->out[0])->line);
}

static tn_status row_concat(const onnx_use *n) {
  const char *operands[ONNX_MOST_OPERANDS];
  int32_t axis = onnx_axis(onnx_whole(n, "axis", 0), onnx_type(n, 0)->rank), count = n->node->n_in;
  if (count == 1) return onnx_pass(n, 0);
  if (count > ONNX_MOST_OPERANDS) return ONNX_REFUSE(n, "more than %d operands", ONNX_MOST_OPERANDS);
  for (int32_t i = 0; i < count; i++)
    if ((operands[i] = onnx_text_of(n, i, false)) == NULL) return onnx_failed(n);
  const char *key = concat_key(n, axis, operands, count);
  count = concat_shorten(n, axis, operands, count);
  if (key == NULL || count < 0) return TN_ENOMEM;
  TN_TRY(axis == 1 ? onnx_emit(n, operands, count, "concat")
                   : onnx_emit(n, operands, count, "concat(axis=%d)", axis));
  return concat_note(n, key);
}

const onnx_row onnx_concat_rows[] = {{"Concat", row_concat, NULL}, {NULL, NULL, NULL}};
