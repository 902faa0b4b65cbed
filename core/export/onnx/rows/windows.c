/* core/export/onnx/rows/windows.c: convolutions, pooling, resizing. */
#include <stdio.h>
#include <string.h>

#include "core/export/onnx/nodes.h"
#include "tenon/attributes.h"

enum { WINDOW_TEXT = 160 };

/* "[1, 1, 1, 1]": those in front of each dimension, then those behind. */
static void window_pads(const tn_ints *padding, int32_t spatial, char text[WINDOW_TEXT]) {
  size_t at = (size_t)snprintf(text, WINDOW_TEXT, "[");
  for (int32_t i = 0; i < 2 * spatial; i++)
    at += (size_t)snprintf(text + at, WINDOW_TEXT - at, "%s%lld", i > 0 ? ", " : "",
                           (long long)padding->v[i % padding->n]);
  snprintf(text + at, WINDOW_TEXT - at, "]");
}

/* ---- convolutions ---- */

/* The kernel's and the bias's names; with a batch norm that is folded into them. */
static tn_status conv_weights(const export_use *u, const char **kernel, const char **bias) {
  bool folds = u->x->folded[u->node->first_out] != 0;
  *kernel = export_fold_weight(u, false);
  if (*kernel == NULL) *kernel = export_operand(u, 1);
  *bias = folds ? export_fold_weight(u, true) : export_operand(u, 2);
  return *kernel != NULL && *bias != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status conv_write(const export_use *u) {
  const tn_conv2d_attributes *a = u->node->attributes;
  const char *kernel, *bias;
  char pads[WINDOW_TEXT];
  window_pads(&a->padding, export_type(u, 0)->rank - 2, pads);
  TN_TRY(conv_weights(u, &kernel, &bias));
  return export_yield(u,
                      "Conv(x, '%s', '%s', strides={stride}, pads=%s, dilations={dilation}, group={groups})",
                      kernel, bias, pads);
}

static tn_status conv_transpose_write(const export_use *u) {
  const tn_conv2d_attributes *a = u->node->attributes;
  char pads[WINDOW_TEXT];
  window_pads(&a->padding, export_type(u, 0)->rank - 2, pads);
  return export_yield(
      u,
      "ConvTranspose(x, w, bias, strides={stride}, pads=%s, dilations={dilation}, group={groups}, "
      "output_padding={output_padding})",
      pads);
}

/* ---- pooling ---- */

/* The size of a result where windows that reach over the border count, or do not. */
static int64_t pool_size(const export_use *u, int32_t i, bool ceil) {
  const tn_pool2d_attributes *a = u->node->attributes;
  int64_t stride = a->stride.n > 0 ? a->stride.v[i] : a->kernel.v[i], n = a->padding.n,
          room = export_type(u, 0)->dims[2 + i] + a->padding.v[i % n] +
                 a->padding.v[(i + export_type(u, 0)->rank - 2) % n] - a->kernel.v[i];
  return (room + (ceil ? stride - 1 : 0)) / stride + 1;
}

static bool pool_has_sizes(const export_use *u, bool ceil) {
  for (int32_t i = 0; i < export_type(u, 0)->rank - 2; i++)
    if (pool_size(u, i, ceil) != export_result(u, 0)->dims[2 + i]) return false;
  return true;
}

/* Means of windows that reach over the border are divided differently by runtimes. */
static bool pool_is_inside(const export_use *u) { return pool_has_sizes(u, false); }
/* A window that begins in the padding behind the image counts in ONNX, and not here. */
static bool pool_fits(const export_use *u) { return pool_is_inside(u) || pool_has_sizes(u, true); }

/* The attributes that all have. */
static void pool_attributes(const export_use *u, char text[2 * WINDOW_TEXT]) {
  const tn_pool2d_attributes *a = u->node->attributes;
  char pads[WINDOW_TEXT];
  window_pads(&a->padding, export_type(u, 0)->rank - 2, pads);
  snprintf(text, 2 * WINDOW_TEXT, "kernel_shape={kernel}, strides=%s, pads=%s, ceil_mode=%d",
           a->stride.n > 0 ? "{stride}" : "{kernel}", pads, !pool_is_inside(u));
}

static tn_status pool_max(const export_use *u) {
  char attributes[2 * WINDOW_TEXT];
  pool_attributes(u, attributes);
  return export_yield(u, "MaxPool(x, %s)", attributes);
}

static tn_status pool_average(const export_use *u) {
  char attributes[2 * WINDOW_TEXT];
  pool_attributes(u, attributes);
  return export_yield(u, "AveragePool(x, %s, count_include_pad={include_pad})", attributes);
}

/* Places in all of x, of which the op has those in the image of a channel. */
static tn_status pool_max_places(const export_use *u) {
  const tn_type *x = export_type(u, 0);
  char attributes[2 * WINDOW_TEXT];
  int64_t image = 1;
  for (int32_t i = 2; i < x->rank; i++) image *= x->dims[i];
  pool_attributes(u, attributes);
  return export_yield(u, "value, place = MaxPool(x, %s); Identity(value); Cast(Mod(place, %lld:i64), to=i32)",
                      attributes, (long long)image);
}

/* The result is (N, C), without the dimensions of size 1. */
static tn_status pool_global(const export_use *u, const char *op) {
  const tn_type *x = export_type(u, 0);
  char axes[WINDOW_TEXT];
  if (x->rank < 3) return export_yield(u, "Identity(x)");
  size_t at = (size_t)snprintf(axes, sizeof axes, "[");
  for (int32_t i = 2; i < x->rank; i++)
    at += (size_t)snprintf(axes + at, sizeof axes - at, "%s%d", i > 2 ? ", " : "", i);
  return export_yield(u, "Squeeze(%s(x), %s])", op, axes);
}

static tn_status pool_global_average(const export_use *u) { return pool_global(u, "GlobalAveragePool"); }
static tn_status pool_global_max(const export_use *u) { return pool_global(u, "GlobalMaxPool"); }

/* ---- images ---- */

static bool image_has_rank_4(const export_use *u) { return export_type(u, 0)->rank == 4; }

const export_row export_rows_windows[] = {
    {"conv1d", .emit = conv_write},
    {"conv2d", .emit = conv_write},
    {"conv3d", .emit = conv_write},
    {"conv_transpose1d", .emit = conv_transpose_write},
    {"conv_transpose2d", .emit = conv_transpose_write},
    {"conv_transpose3d", .emit = conv_transpose_write},
    {"max_pool1d", .emit = pool_max, .takes = pool_fits},
    {"max_pool2d", .emit = pool_max, .takes = pool_fits},
    {"max_pool3d", .emit = pool_max, .takes = pool_fits},
    {"max_pool1d", .emit = pool_max_places, .takes = pool_fits, .results = 2},
    {"max_pool2d", .emit = pool_max_places, .takes = pool_fits, .results = 2},
    {"max_pool3d", .emit = pool_max_places, .takes = pool_fits, .results = 2},
    {"avg_pool1d", .emit = pool_average, .takes = pool_is_inside},
    {"avg_pool2d", .emit = pool_average, .takes = pool_is_inside},
    {"avg_pool3d", .emit = pool_average, .takes = pool_is_inside},
    {"global_avg_pool", .emit = pool_global_average},
    {"global_max_pool", .emit = pool_global_max},
    {"pixel_shuffle", "DepthToSpace(x, blocksize={factor}, mode='CRD')", .takes = image_has_rank_4},
    {NULL},
};
