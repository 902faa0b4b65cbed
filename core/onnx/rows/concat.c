/* core/onnx/rows/concat.c: Concat. A network such as DenseNet joins a list that grows by one value from layer
 * to layer. Such a node becomes `concat(BEFORE, LAST)`, where BEFORE is the line of the list without its last
 * value, so all layers have one form. Two parts of one value in the other order are `roll`. */
#include <stdlib.h>
#include <string.h>

#include "core/onnx/import.h"

/* The key of the operands: "1|stem|layer1.conv2". Without its last part it is that of one operand less. */
static char *concat_key(const onnx_use *n, int32_t axis, const char *const *operands, int32_t count) {
  tn_text text = tn_text_new(n->m->env);
  tn_text_addf(&text, "%d", axis);
  for (int32_t i = 0; i < count; i++) tn_text_addf(&text, "|%s", operands[i]);
  char *key = text.failed ? NULL : tn_arena_strdup(&n->m->arena, text.v);
  tn_text_free(&text);
  return key;
}

/* Replaces the longest beginning of the operands that an earlier line has joined by that line, and returns
 * the number of operands then. `key` is that of all operands; it is cut. */
static int32_t concat_shorten(const onnx_use *n, char *key, const char **operands, int32_t count) {
  for (int32_t k = count - 1; k > 1; k--) {
    *strrchr(key, '|') = '\0';
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

enum { CONCAT_LINES_BACK = 16 };

/* The expression of one of the last lines, "x[:, 3:]"; NULL: the name is not that of such a line. */
static const char *concat_expression(const onnx_use *n, const char *name) {
  const onnx_import *m = n->m;
  for (size_t i = m->lines.n; i > 0 && i + CONCAT_LINES_BACK > m->lines.n; i--)
    if (m->lines.v[i - 1].computes && strcmp(m->lines.v[i - 1].names, name) == 0)
      return m->lines.v[i - 1].call;
  return NULL;
}

/* The text behind "x[" and ":, " for each axis before this one; NULL: the expression has another form. */
static const char *concat_part(const char *text, const char *x, size_t length, int32_t axis) {
  if (text == NULL || strncmp(text, x, length) != 0 || text[length] != '[') return NULL;
  text += length + 1;
  for (int32_t i = 0; i < axis; i++, text += 3)
    if (strncmp(text, ":, ", 3) != 0) return NULL;
  return text;
}

/* Whether the operands are x[K:] and x[:K] along the axis; then *length is that of x in *x, *from is K. */
static bool concat_is_roll(const onnx_use *n, int32_t axis, const char *const *operands, const char **x,
                           size_t *length, long long *from) {
  char *end, *other;
  *x = concat_expression(n, operands[0]);
  *length = *x != NULL ? onnx_name_length(*x) : 0;
  const char *last = concat_part(*x, *x, *length, axis);
  const char *first = *x != NULL ? concat_part(concat_expression(n, operands[1]), *x, *length, axis) : NULL;
  if (last == NULL || first == NULL || first[0] != ':') return false;
  *from = strtoll(last, &end, 10);
  bool same = strtoll(first + 1, &other, 10) == *from && *from != 0;
  return same && strcmp(end, ":]") == 0 && strcmp(other, "]") == 0;
}

/* "roll(x, shifts=[-3], axes=[1])"; one call for a value that was rolled along another axis before. */
static tn_status concat_roll(const onnx_use *n, int32_t axis, const char *x, size_t length, long long from) {
  const char *name = onnx_print(n, "%.*s", (int)length, x), *before = concat_expression(n, name);
  const char *axes = before != NULL && strncmp(before, "roll(", 5) == 0 ? strstr(before, "], axes=[") : NULL;
  if (axes == NULL) return onnx_compute(n, "roll(%s, shifts=[%lld], axes=[%d])", name, -from, axis);
  return onnx_compute(n, "%.*s, %lld%.*s, %d])", (int)(axes - before), before, -from, (int)strlen(axes) - 2,
                      axes, axis);
}

static tn_status row_concat(const onnx_use *n) {
  const char *operands[ONNX_MOST_OPERANDS], *x;
  size_t length;
  long long from;
  int32_t axis = onnx_axis(onnx_whole(n, "axis", 0), onnx_type(n, 0)->rank), count = n->node->n_in;
  if (count == 1) return onnx_pass(n, 0);
  if (axis < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  if (count > ONNX_MOST_OPERANDS) return ONNX_REFUSE(n, "more than %d operands", ONNX_MOST_OPERANDS);
  for (int32_t i = 0; i < count; i++)
    if ((operands[i] = onnx_text_of(n, i, false)) == NULL) return onnx_failed(n);
  if (count == 2 && concat_is_roll(n, axis, operands, &x, &length, &from))
    return concat_roll(n, axis, x, length, from);
  const char *key = concat_key(n, axis, operands, count);
  char *shorter = key != NULL ? tn_arena_strdup(&n->m->arena, key) : NULL;
  if (shorter == NULL) return TN_ENOMEM;
  count = concat_shorten(n, shorter, operands, count);
  TN_TRY(axis == 1 ? onnx_emit(n, operands, count, "concat")
                   : onnx_emit(n, operands, count, "concat(axis=%d)", axis));
  return concat_note(n, key);
}

const onnx_row onnx_concat_rows[] = {{"Concat", row_concat, NULL}, {NULL, NULL, NULL}};
