/* core/onnx/rows/windows.c: convolutions and pooling. */
#include <string.h>

#include "core/onnx/import.h"

enum { MOST_SPACE = 3, WINDOW_MOST = 1 << 20 };

/* The attributes of a window. */
typedef struct window {
  int32_t rank; /* dimensions behind the channels */
  int64_t kernel[MOST_SPACE], stride[MOST_SPACE], dilation[MOST_SPACE];
  int64_t pads[2 * MOST_SPACE]; /* in front of each dimension, then behind each */
} window;

static tn_status window_list(const onnx_use *n, const char *name, int32_t count, int64_t otherwise,
                             int64_t *to) {
  const int64_t *list;
  int32_t given;
  TN_TRY(onnx_wholes(n, name, -1, &list, &given));
  if (given >= 0 && given != count)
    return ONNX_REFUSE(n, "%s has %d numbers, expected %d", name, given, count);
  for (int32_t i = 0; i < count; i++) to[i] = given >= 0 ? list[i] : otherwise;
  return TN_OK;
}

/* Padding with which the result has size / stride elements, rounded up. */
static void window_fit(const onnx_use *n, window *w, bool behind) {
  for (int32_t i = 0; i < w->rank; i++) {
    int64_t size = onnx_operand(n, 0)->type.dims[i + 2], reach = (w->kernel[i] - 1) * w->dilation[i] + 1;
    int64_t all = ((size + w->stride[i] - 1) / w->stride[i] - 1) * w->stride[i] + reach - size;
    if (all < 0) all = 0;
    w->pads[i] = behind ? all / 2 : all - all / 2;
    w->pads[w->rank + i] = all - w->pads[i];
  }
}

static bool window_is_wild(int64_t number) { return number < 1 || number > WINDOW_MOST; }

static tn_status window_read(const onnx_use *n, const int64_t *kernel, window *w) {
  const char *automatic = onnx_word(n, "auto_pad", "NOTSET");
  *w = (window){.rank = onnx_operand(n, 0)->type.rank - 2};
  if (w->rank < 1 || w->rank > MOST_SPACE) return ONNX_REFUSE(n, "windows of %d dimensions", w->rank);
  if (kernel != NULL)
    memcpy(w->kernel, kernel, (size_t)w->rank * sizeof *kernel);
  else
    TN_TRY(window_list(n, "kernel_shape", w->rank, 1, w->kernel));
  TN_TRY(window_list(n, "strides", w->rank, 1, w->stride));
  TN_TRY(window_list(n, "dilations", w->rank, 1, w->dilation));
  TN_TRY(window_list(n, "pads", 2 * w->rank, 0, w->pads));
  for (int32_t i = 0; i < w->rank; i++)
    if (window_is_wild(w->kernel[i]) || window_is_wild(w->stride[i]) || window_is_wild(w->dilation[i]))
      return ONNX_REFUSE(n, "a window whose size, stride or dilation is below 1 or above %d", WINDOW_MOST);
  if (strncmp(automatic, "SAME", 4) == 0) window_fit(n, w, strcmp(automatic, "SAME_UPPER") == 0);
  return TN_OK;
}

static bool window_all(const int64_t *list, int32_t count, int64_t value) {
  for (int32_t i = 0; i < count; i++)
    if (list[i] != value) return false;
  return true;
}

static bool window_is_even(const window *w) {
  return memcmp(w->pads, w->pads + w->rank, (size_t)w->rank * sizeof *w->pads) == 0;
}

/* ", stride=2", or nothing where all are `usual`. */
static const char *window_option(const onnx_use *n, const char *name, const int64_t *list, int32_t count,
                                 int64_t usual) {
  return window_all(list, count, usual)
             ? ""
             : onnx_print(n, ", %s=%s", name, onnx_list_text(n, list, count, true));
}

static const char *window_padding(const onnx_use *n, const window *w) {
  return window_is_even(w) ? window_option(n, "padding", w->pads, w->rank, 0)
                           : onnx_print(n, ", padding=%s", onnx_list_text(n, w->pads, 2 * w->rank, false));
}

/* ---- convolutions ---- */

static const char *conv_options(const onnx_use *n, const window *w, const char *more) {
  int64_t groups = onnx_whole(n, "group", 1);
  return onnx_print(n, "%s%s%s%s%s", window_option(n, "stride", w->stride, w->rank, 1), window_padding(n, w),
                    window_option(n, "dilation", w->dilation, w->rank, 1),
                    groups > 1 ? onnx_print(n, ", groups=%lld", (long long)groups) : "", more);
}

static tn_status conv_emit(const onnx_use *n, const char *name, int64_t channels, const window *w,
                           const char *more) {
  bool has_bias = onnx_has(n, 2);
  const char *options = conv_options(n, w, more);
  if (!onnx_is_weight(n, 1, -1) || (has_bias && !onnx_is_weight(n, 2, 1))) {
    if (!window_is_even(w)) return ONNX_REFUSE(n, "a kernel that the model computes, with uneven padding");
    const char *parts = options[0] == ',' ? options + 2 : options;
    return onnx_emit(n, NULL, 0, "op.%s(%s)", name, parts);
  }
  const onnx_layer_weight weights[] = {{"weight", n->node->in[1], false},
                                       {"bias", has_bias ? n->node->in[2] : "", false}};
  return onnx_layer(n, 0, n, weights, has_bias ? 2 : 1,
                    onnx_print(n, "%s(%lld, kernel=%s%s%s)", name, (long long)channels,
                               onnx_list_text(n, w->kernel, w->rank, true), options,
                               has_bias ? "" : ", bias=no"));
}

static tn_status row_conv(const onnx_use *n) {
  const tn_type *weight = &onnx_operand(n, 1)->type;
  window w;
  if (weight->rank != onnx_operand(n, 0)->type.rank)
    return ONNX_REFUSE(n, "a kernel of %d dimensions", weight->rank);
  TN_TRY(window_read(n, weight->dims + 2, &w));
  return conv_emit(n, onnx_print(n, "conv%dd", w.rank), weight->dims[0], &w, "");
}

/* Of the result: those of a group times the groups. */
static int64_t conv_channels(const onnx_use *n, const tn_type *weight) {
  int64_t channels;
  return __builtin_mul_overflow(weight->dims[1], onnx_whole(n, "group", 1), &channels) ? 0 : channels;
}

static tn_status row_conv_transpose(const onnx_use *n) {
  const tn_type *weight = &onnx_operand(n, 1)->type;
  int64_t more[MOST_SPACE];
  window w;
  if (weight->rank != onnx_operand(n, 0)->type.rank)
    return ONNX_REFUSE(n, "a kernel of %d dimensions", weight->rank);
  if (onnx_attribute(n, "output_shape") != NULL || strncmp(onnx_word(n, "auto_pad", ""), "SAME", 4) == 0)
    return ONNX_REFUSE(n, "padding that follows from output_shape");
  TN_TRY(window_read(n, weight->dims + 2, &w));
  TN_TRY(window_list(n, "output_padding", w.rank, 0, more));
  return conv_emit(n, onnx_print(n, "conv_transpose%dd", w.rank), conv_channels(n, weight), &w,
                   window_option(n, "output_padding", more, w.rank, 0));
}

/* ---- pooling ---- */

/* Padding that differs on both sides, or is more than half of the kernel, is a line of its own. */
static const char *pool_input(const onnx_use *n, window *w, const char *value) {
  const char *x = onnx_text_of(n, 0, false);
  bool wide = false;
  int64_t low[TN_MAX_RANK] = {0}, high[TN_MAX_RANK] = {0};
  for (int32_t i = 0; i < w->rank; i++) wide = wide || w->pads[i] > w->kernel[i] / 2;
  if (x == NULL || (window_is_even(w) && !wide)) return x;
  memcpy(low + 2, w->pads, (size_t)w->rank * sizeof *low);
  memcpy(high + 2, w->pads + w->rank, (size_t)w->rank * sizeof *high);
  memset(w->pads, 0, sizeof w->pads);
  return onnx_between(n, &x, 1, "extend(%s, %s, value=%s)", onnx_list_text(n, low, w->rank + 2, false),
                      onnx_list_text(n, high, w->rank + 2, false), value);
}

static const char *pool_options(const onnx_use *n, const window *w) {
  bool own = memcmp(w->stride, w->kernel, (size_t)w->rank * sizeof *w->stride) == 0;
  return onnx_print(n, "%s%s%s%s", onnx_list_text(n, w->kernel, w->rank, true),
                    own ? "" : onnx_print(n, ", stride=%s", onnx_list_text(n, w->stride, w->rank, true)),
                    window_padding(n, w), onnx_whole(n, "ceil_mode", 0) ? ", ceil=yes" : "");
}

static tn_status row_max_pool(const onnx_use *n) {
  window w;
  TN_TRY(window_read(n, NULL, &w));
  if (n->node->n_out > 1) return ONNX_REFUSE(n, "indices of the maxima");
  const char *x = pool_input(n, &w, "-inf");
  if (x == NULL) return onnx_failed(n);
  return onnx_emit(n, &x, 1, "max_pool(%s%s)", pool_options(n, &w),
                   window_option(n, "dilation", w.dilation, w.rank, 1));
}

static tn_status row_average_pool(const onnx_use *n) {
  window w;
  bool include = onnx_whole(n, "count_include_pad", 0);
  TN_TRY(window_read(n, NULL, &w));
  bool padded = !window_all(w.pads, 2 * w.rank, 0);
  if (!window_all(w.dilation, w.rank, 1)) return ONNX_REFUSE(n, "means of windows with dilation");
  if (!window_is_even(&w) && !include)
    return ONNX_REFUSE(n, "means of windows with uneven padding that does not count");
  const char *x = pool_input(n, &w, "0");
  if (x == NULL) return onnx_failed(n);
  return onnx_emit(n, &x, 1, "avg_pool(%s%s)", pool_options(n, &w),
                   padded && !include ? ", include_pad=no" : "");
}

/* Exporters flatten the result, which global_avg_pool has done already. */
static tn_status row_global_average(const onnx_use *n) {
  onnx_use next;
  bool flattened = onnx_next(n, "Flatten", &next) && onnx_whole(&next, "axis", 1) == 1;
  const char *x = onnx_text_of(n, 0, false);
  int32_t rank = onnx_operand(n, 0)->type.rank;
  if (x == NULL) return onnx_failed(n);
  if (flattened) {
    n->m->done.v[next.number] = true;
    const char *line = onnx_between(n, &x, 1, "global_avg_pool");
    return line != NULL ? onnx_bind(&next, 0, line) : onnx_failed(n);
  }
  int64_t axes[TN_MAX_RANK];
  for (int32_t i = 2; i < rank; i++) axes[i - 2] = i;
  return onnx_emit(n, &x, 1, "mean(axis=%s, keep=yes)", onnx_list_text(n, axes, rank - 2, false));
}

static tn_status row_global_max(const onnx_use *n) {
  int64_t axes[TN_MAX_RANK];
  int32_t rank = onnx_operand(n, 0)->type.rank;
  for (int32_t i = 2; i < rank; i++) axes[i - 2] = i;
  return onnx_emit(n, NULL, 0, "amax(axis=%s, keep=yes)", onnx_list_text(n, axes, rank - 2, false));
}

const onnx_row onnx_window_rows[] = {
    {"Conv", row_conv, NULL, 2},
    {"ConvTranspose", row_conv_transpose, NULL, 2},
    {"MaxPool", row_max_pool, NULL},
    {"AveragePool", row_average_pool, NULL},
    {"GlobalAveragePool", row_global_average, NULL},
    {"GlobalMaxPool", row_global_max, NULL},
    {NULL, NULL, NULL},
};
