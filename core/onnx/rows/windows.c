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

/* The same with a number for each dimension, as ops take it. */
static const char *window_each(const onnx_use *n, const char *name, const int64_t *list, int32_t count,
                               int64_t usual) {
  return window_all(list, count, usual)
             ? ""
             : onnx_print(n, ", %s=%s", name, onnx_list_text(n, list, count, false));
}

static const char *window_padding(const onnx_use *n, const window *w) {
  return window_is_even(w) ? window_option(n, "padding", w->pads, w->rank, 0)
                           : onnx_print(n, ", padding=%s", onnx_list_text(n, w->pads, 2 * w->rank, false));
}

/* ---- convolutions ---- */

static const char *conv_groups(const onnx_use *n) {
  int64_t groups = onnx_whole(n, "group", 1);
  return groups > 1 ? onnx_print(n, ", groups=%lld", (long long)groups) : "";
}

static const char *conv_options(const onnx_use *n, const window *w, const char *more) {
  return onnx_print(n, "%s%s%s%s%s", window_option(n, "stride", w->stride, w->rank, 1), window_padding(n, w),
                    window_option(n, "dilation", w->dilation, w->rank, 1), conv_groups(n), more);
}

/* Options of the op, which has a number for each dimension. */
static const char *conv_op_options(const onnx_use *n, const window *w) {
  const char *padding = window_all(w->pads, 2 * w->rank, 0)
                            ? ""
                            : onnx_print(n, ", padding=%s", onnx_list_text(n, w->pads, 2 * w->rank, false));
  return onnx_print(n, "%s%s%s%s", window_each(n, "stride", w->stride, w->rank, 1), padding,
                    window_each(n, "dilation", w->dilation, w->rank, 1), conv_groups(n));
}

static tn_status conv_emit(const onnx_use *n, const char *name, int64_t channels, const window *w,
                           const int64_t *more) {
  bool has_bias = onnx_has(n, 2);
  const char *options = conv_options(n, w, window_option(n, "output_padding", more, w->rank, 0));
  if (!onnx_is_weight(n, 1, -1) || (has_bias && !onnx_is_weight(n, 2, 1))) {
    const char *own =
        onnx_print(n, "%s%s", conv_op_options(n, w), window_each(n, "output_padding", more, w->rank, 0));
    const char *parts = own[0] == ',' ? own + 2 : own;
    return onnx_emit(n, NULL, 0, "op.%s(%s)", name, parts);
  }
  const onnx_layer_weight weights[] = {{"weight", n->node->in[1], false},
                                       {"bias", has_bias ? n->node->in[2] : "", false}};
  return onnx_layer(n, 0, n, weights, has_bias ? 2 : 1,
                    onnx_print(n, "%s(%lld, kernel=%s%s%s)", name, (long long)channels,
                               onnx_list_text(n, w->kernel, w->rank, true), options,
                               has_bias ? "" : ", bias=no"));
}

const char *onnx_conv_text(const onnx_use *n, int32_t i, const char *operands) {
  const tn_type *weight = &onnx_operand(n, i)->type;
  window w;
  if (weight->rank != onnx_operand(n, 0)->type.rank) {
    ONNX_REFUSE(n, "a kernel of %d dimensions", weight->rank);
    return NULL;
  }
  if (window_read(n, weight->dims + 2, &w) != TN_OK) return NULL;
  return onnx_print(n, "op.conv%dd(%s%s)", w.rank, operands, conv_op_options(n, &w));
}

static tn_status row_conv(const onnx_use *n) {
  const tn_type *weight = &onnx_operand(n, 1)->type;
  window w;
  if (weight->rank != onnx_operand(n, 0)->type.rank)
    return ONNX_REFUSE(n, "a kernel of %d dimensions", weight->rank);
  TN_TRY(window_read(n, weight->dims + 2, &w));
  return conv_emit(n, onnx_print(n, "conv%dd", w.rank), weight->dims[0], &w, (int64_t[MOST_SPACE]){0});
}

/* Of the result: those of a group times the groups. */
static int64_t conv_channels(const onnx_use *n, const tn_type *weight) {
  int64_t channels;
  return __builtin_mul_overflow(weight->dims[1], onnx_whole(n, "group", 1), &channels) ? 0 : channels;
}

/* Padding by which the result has the size that output_shape or auto_pad asks for. */
static tn_status conv_transpose_fit(const onnx_use *n, window *w, int64_t *more) {
  const int64_t *shape;
  int32_t count;
  const char *automatic = onnx_word(n, "auto_pad", "NOTSET");
  bool upper = strcmp(automatic, "SAME_UPPER") == 0, same = strncmp(automatic, "SAME", 4) == 0;
  TN_TRY(onnx_wholes(n, "output_shape", -1, &shape, &count));
  if (count < w->rank && !same) return TN_OK;
  for (int32_t i = 0; i < w->rank; i++) {
    int64_t size = onnx_operand(n, 0)->type.dims[i + 2];
    int64_t wanted = same && count < w->rank ? size * w->stride[i] : shape[count - w->rank + i];
    int64_t less = (size - 1) * w->stride[i] + (w->kernel[i] - 1) * w->dilation[i] + 1 + more[i] - wanted;
    int64_t cut = less > 0 ? less : 0;
    w->pads[i] = upper ? cut / 2 : cut - cut / 2;
    w->pads[w->rank + i] = cut - w->pads[i];
    more[i] += less < 0 ? -less : 0;
  }
  return TN_OK;
}

static tn_status row_conv_transpose(const onnx_use *n) {
  const tn_type *weight = &onnx_operand(n, 1)->type;
  int64_t more[MOST_SPACE];
  window w;
  if (weight->rank != onnx_operand(n, 0)->type.rank)
    return ONNX_REFUSE(n, "a kernel of %d dimensions", weight->rank);
  TN_TRY(window_read(n, weight->dims + 2, &w));
  TN_TRY(window_list(n, "output_padding", w.rank, 0, more));
  TN_TRY(conv_transpose_fit(n, &w, more));
  return conv_emit(n, onnx_print(n, "conv_transpose%dd", w.rank), conv_channels(n, weight), &w, more);
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

/* Elements behind the operand that the last windows reach, where sizes are rounded up; a window begins in the
 * operand or in front of it. */
static void pool_reach(const onnx_use *n, const window *w, int64_t *extra) {
  for (int32_t i = 0; i < w->rank; i++) {
    int64_t size = onnx_operand(n, 0)->type.dims[i + 2] + w->pads[i], all = size + w->pads[w->rank + i];
    int64_t reach = (w->kernel[i] - 1) * w->dilation[i] + 1, steps = all > reach ? all - reach : 0;
    int64_t last =
        onnx_whole(n, "ceil_mode", 0) ? (steps + w->stride[i] - 1) / w->stride[i] : steps / w->stride[i];
    if (last * w->stride[i] >= size) last--;
    extra[i] = last * w->stride[i] + reach > all ? last * w->stride[i] + reach - all : 0;
  }
}

/* The sums of windows of any form, by a convolution of each channel with ones. `counted`: elements of the
 * border are 1 in `text`, which has been extended to it. */
static const char *pool_sums(const onnx_use *n, const window *w, const char *text) {
  int64_t channels = onnx_operand(n, 0)->type.dims[1], dims[TN_MAX_RANK] = {channels, 1};
  memcpy(dims + 2, w->kernel, (size_t)w->rank * sizeof *dims);
  return onnx_let(n, "op.conv%dd(%s, full(%s, 1), groups=%lld%s%s)", w->rank, text,
                  onnx_list_text(n, dims, w->rank + 2, false), (long long)channels,
                  window_each(n, "stride", w->stride, w->rank, 1),
                  window_each(n, "dilation", w->dilation, w->rank, 1));
}

static const char *pool_extend(const onnx_use *n, const char *text, int32_t rank, const int64_t *before,
                               const int64_t *behind) {
  int64_t low[TN_MAX_RANK] = {0}, high[TN_MAX_RANK] = {0};
  memcpy(low + 2, before, (size_t)rank * sizeof *low);
  memcpy(high + 2, behind, (size_t)rank * sizeof *high);
  return onnx_let(n, "extend(%s, %s, %s)", text, onnx_list_text(n, low, rank + 2, false),
                  onnx_list_text(n, high, rank + 2, false));
}

/* x with its border of zeros. */
static const char *pool_bordered(const onnx_use *n, const window *w, const char *text) {
  int64_t extra[MOST_SPACE], behind[MOST_SPACE];
  pool_reach(n, w, extra);
  for (int32_t i = 0; i < w->rank; i++) behind[i] = w->pads[w->rank + i] + extra[i];
  return pool_extend(n, text, w->rank, w->pads, behind);
}

/* How many elements each window has. */
static const char *pool_counts(const onnx_use *n, const window *w, bool include) {
  const tn_type *x = &onnx_operand(n, 0)->type;
  int64_t extra[MOST_SPACE], dims[TN_MAX_RANK] = {1, x->dims[1]}, none[MOST_SPACE] = {0};
  pool_reach(n, w, extra);
  for (int32_t i = 0; i < w->rank; i++)
    dims[i + 2] = x->dims[i + 2] + (include ? w->pads[i] + w->pads[w->rank + i] : 0);
  const char *ones = onnx_let(n, "full(%s, 1)", onnx_list_text(n, dims, x->rank, false));
  if (ones == NULL) return NULL;
  ones = include ? pool_extend(n, ones, w->rank, none, extra) : pool_bordered(n, w, ones);
  return ones != NULL ? pool_sums(n, w, ones) : NULL;
}

/* ONNX counts in all of x, the op within a channel. */
static tn_status max_pool_indices(const onnx_use *n, const window *w) {
  const tn_type x = onnx_operand(n, 0)->type;
  const char *text = onnx_text_of(n, 0, false), *beside = "";
  long long plane = 1;
  if (text == NULL) return onnx_failed(n);
  if (onnx_whole(n, "storage_order", 0) || !window_is_even(w) || !window_all(w->dilation, w->rank, 1))
    return ONNX_REFUSE(n, "indices of the maxima of such windows");
  for (int32_t i = 0; i < w->rank; i++) {
    plane *= x.dims[i + 2];
    beside = onnx_print(n, "%s, 1", beside);
  }
  const char *call = onnx_print(
      n, "op.max_pool%dd(%s, %s%s%s%s)", w->rank, text, onnx_list_text(n, w->kernel, w->rank, false),
      window_each(n, "stride", w->stride, w->rank, 0), window_each(n, "padding", w->pads, w->rank, 0),
      onnx_whole(n, "ceil_mode", 0) ? ", ceil=yes" : "");
  const char *sample = onnx_size_text(n, x.dims[0]);
  const char *index =
      onnx_let(n, "cast(%s[1], to=i64) + (iota([%s, 1%s]) * %lld + iota([1, %lld%s], axis=1)) * %lld", call,
               sample, beside, (long long)x.dims[1], (long long)x.dims[1], beside, plane);
  if (index == NULL) return onnx_failed(n);
  TN_TRY(onnx_bind(n, 1, index));
  return onnx_compute(n, "%s[0]", call);
}

static tn_status row_max_pool(const onnx_use *n) {
  window w;
  TN_TRY(window_read(n, NULL, &w));
  if (onnx_wants(n, 1)) return max_pool_indices(n, &w);
  bool whole = onnx_operand(n, 0)->type.dtype != TN_F32;
  const char *x = pool_input(n, &w, whole ? "0" : "-inf");
  if (x == NULL) return onnx_failed(n);
  return onnx_emit(n, &x, 1, "max_pool(%s%s)", pool_options(n, &w),
                   window_option(n, "dilation", w.dilation, w.rank, 1));
}

static bool pool_is_wide(const window *w) {
  for (int32_t i = 0; i < w->rank; i++)
    if (w->pads[i] > w->kernel[i] / 2) return true;
  return false;
}

static tn_status row_average_pool(const onnx_use *n) {
  window w;
  bool include = onnx_whole(n, "count_include_pad", 0);
  TN_TRY(window_read(n, NULL, &w));
  bool padded = !window_all(w.pads, 2 * w.rank, 0), ceiled = onnx_whole(n, "ceil_mode", 0) != 0;
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  if (window_all(w.dilation, w.rank, 1) && window_is_even(&w) && !pool_is_wide(&w))
    return onnx_emit(n, &x, 1, "avg_pool(%s%s)", pool_options(n, &w),
                     padded && !include ? ", include_pad=no" : "");
  if (window_all(w.dilation, w.rank, 1) && include && !ceiled) {
    x = pool_input(n, &w, "0");
    return x != NULL ? onnx_emit(n, &x, 1, "avg_pool(%s)", pool_options(n, &w)) : onnx_failed(n);
  }
  x = pool_bordered(n, &w, x);
  const char *sums = x != NULL ? pool_sums(n, &w, x) : NULL,
             *counts = sums != NULL ? pool_counts(n, &w, include) : NULL;
  return counts != NULL ? onnx_compute(n, "%s / %s", sums, counts) : onnx_failed(n);
}

/* The p-norm of each window. */
static tn_status row_lp_pool(const onnx_use *n) {
  window w;
  double p = (double)onnx_whole(n, "p", 2);
  TN_TRY(window_read(n, NULL, &w));
  const char *x = onnx_text_of(n, 0, false);
  if (x != NULL)
    x = p == 2 ? onnx_let(n, "square(%s)", x) : onnx_let(n, "abs(%s) ** %s", x, onnx_float_text(n, p));
  if (x != NULL) x = pool_bordered(n, &w, x);
  if (x != NULL) x = pool_sums(n, &w, x);
  if (x == NULL) return onnx_failed(n);
  return p == 2 ? onnx_compute(n, "sqrt(%s)", x)
                : onnx_compute(n, "%s ** (1 / %s)", x, onnx_float_text(n, p));
}

/* The index counts in all of the result, that of the op within a channel. */
static tn_status row_max_unpool(const onnx_use *n) {
  window w;
  TN_TRY(window_read(n, NULL, &w));
  const tn_type *x = &onnx_operand(n, 0)->type;
  const char *text = onnx_text_of(n, 0, false), *index = onnx_text_of(n, 1, false);
  int64_t size[MOST_SPACE], plane = 1;
  if (onnx_has(n, 2)) return ONNX_REFUSE(n, "an index in an image of another size than the result");
  for (int32_t i = 0; i < w.rank; i++) {
    size[i] = (x->dims[i + 2] - 1) * w.stride[i] + w.kernel[i] - w.pads[i] - w.pads[w.rank + i];
    plane *= size[i];
  }
  if (text == NULL || index == NULL) return onnx_failed(n);
  return onnx_compute(n, "max_unpool%dd(%s, cast(%s %% %lld, to=i32), %s%s%s, size=%s)", w.rank, text, index,
                      (long long)plane, onnx_list_text(n, w.kernel, w.rank, false),
                      window_each(n, "stride", w.stride, w.rank, 0),
                      window_each(n, "padding", w.pads, w.rank, 0), onnx_list_text(n, size, w.rank, false));
}

/* ---- positions and patches ---- */

static tn_status row_grid_sample(const onnx_use *n) {
  const char *mode = onnx_word(n, "mode", "linear");
  bool nearest = strcmp(mode, "nearest") == 0, cubic = strstr(mode, "cubic") != NULL;
  if (cubic) return ONNX_REFUSE(n, "a cubic filter");
  if (onnx_operand(n, 0)->type.rank != 4) return ONNX_REFUSE(n, "volumes");
  return onnx_emit(n, NULL, 0, "grid_sample(mode=%s, padding_mode=%s%s)", nearest ? "nearest" : "bilinear",
                   onnx_word(n, "padding_mode", "zeros"),
                   onnx_whole(n, "align_corners", 0) ? ", align_corners=yes" : "");
}

static tn_status row_affine_grid(const onnx_use *n) {
  const int64_t *size;
  int32_t count;
  const char *x = onnx_text_of(n, 0, false);
  TN_TRY(onnx_wholes(n, "", 1, &size, &count));
  if (x == NULL) return onnx_failed(n);
  if (count != 4) return ONNX_REFUSE(n, "volumes");
  return onnx_emit(n, &x, 1, "affine_grid(%s%s)", onnx_list_text(n, size + 2, 2, false),
                   onnx_whole(n, "align_corners", 0) ? ", align_corners=yes" : "");
}

static tn_status row_fold(const onnx_use *n) {
  const int64_t *size, *kernel;
  int32_t count, rank;
  window w = {.rank = 2};
  const char *x = onnx_text_of(n, 0, false);
  TN_TRY(onnx_wholes(n, "", 1, &size, &count));
  TN_TRY(onnx_wholes(n, "", 2, &kernel, &rank));
  if (x == NULL) return onnx_failed(n);
  if (count != 2 || rank != 2) return ONNX_REFUSE(n, "volumes");
  TN_TRY(window_list(n, "strides", 2, 1, w.stride));
  TN_TRY(window_list(n, "dilations", 2, 1, w.dilation));
  TN_TRY(window_list(n, "pads", 4, 0, w.pads));
  if (!window_is_even(&w)) return ONNX_REFUSE(n, "padding that differs on both sides");
  return onnx_emit(n, &x, 1, "fold(%s, %s%s%s%s)", onnx_list_text(n, size, 2, false),
                   onnx_list_text(n, kernel, 2, false), window_each(n, "stride", w.stride, 2, 1),
                   window_each(n, "padding", w.pads, 2, 0), window_each(n, "dilation", w.dilation, 2, 1));
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
    {"LpPool", row_lp_pool, NULL},
    {"MaxUnpool", row_max_unpool, NULL, 2},
    {"GridSample", row_grid_sample, NULL, 2},
    {"AffineGrid", row_affine_grid, NULL, 2},
    {"Col2Im", row_fold, NULL, 3},
    {"GlobalAveragePool", row_global_average, NULL},
    {"GlobalMaxPool", row_global_max, NULL},
    {NULL, NULL, NULL},
};
