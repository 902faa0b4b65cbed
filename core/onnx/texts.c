/* core/onnx/texts.c: numbers and lists as the model language writes them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/onnx/import.h"

const char *onnx_print(const onnx_use *n, const char *format, ...) {
  va_list args;
  char text[1024];
  va_start(args, format);
  int length = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const char *kept = length >= 0 && (size_t)length < sizeof text ? tn_arena_strdup(&n->m->arena, text) : NULL;
  return kept != NULL ? kept : "";
}

const char *onnx_list_text(const onnx_use *n, const int64_t *list, int32_t count, bool one) {
  bool equal = one && count > 0;
  for (int32_t i = 1; i < count; i++) equal = equal && list[i] == list[0];
  if (equal) return onnx_print(n, "%lld", (long long)list[0]);
  tn_text text = tn_text_new(n->m->env);
  for (int32_t i = 0; i < count; i++) tn_text_addf(&text, "%s%lld", i > 0 ? ", " : "", (long long)list[i]);
  const char *kept = tn_arena_printf(&n->m->arena, "[%s]", text.v != NULL ? text.v : "");
  tn_text_free(&text);
  return kept != NULL ? kept : "";
}

const char *onnx_float_text(const onnx_use *n, double value) {
  char text[32];
  if (isinf(value)) return value > 0 ? "inf" : "-inf";
  for (int digits = 1; digits <= 9; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if ((float)strtod(text, NULL) == (float)value) break;
  }
  return onnx_print(n, "%s", text);
}

double onnx_decimal(const onnx_use *n, double value) { return strtod(onnx_float_text(n, value), NULL); }
