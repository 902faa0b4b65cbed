/* core/onnx/texts.c: numbers and lists as the model language writes them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/onnx/import.h"

const char *onnx_print_all(const onnx_use *n, const char *format, va_list args) {
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  char *text = length >= 0 ? tn_arena_alloc(&n->m->arena, (size_t)length + 1) : NULL;
  if (text == NULL) return "";
  vsnprintf(text, (size_t)length + 1, format, args);
  return text;
}

const char *onnx_print(const onnx_use *n, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const char *text = onnx_print_all(n, format, args);
  va_end(args);
  return text;
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
  if (value == nearbyint(value) && fabs(value) < 1e7) return onnx_print(n, "%.0f", value == 0 ? 0 : value);
  for (int digits = 1; digits <= 9; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    if ((float)strtod(text, NULL) == (float)value) break;
  }
  return onnx_print(n, "%s", text);
}

double onnx_decimal(const onnx_use *n, double value) { return strtod(onnx_float_text(n, value), NULL); }
