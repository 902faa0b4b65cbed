/* core/onnx/rows/resize.c: Resize and Upsample. What PyTorch's interpolate has becomes `interpolate`; other
 * filters and positions are a product with a matrix for each axis, since every element of the result is a sum
 * of elements along it. */
#include <math.h>
#include <string.h>

#include "core/onnx/import.h"

enum { MOST_TAPS = 512 };

typedef struct resize {
  const char *mode, *place, *nearest;
  bool antialias, exclude;
  double a, outside; /* of the cubic filter; of elements outside */
  double scale[TN_MAX_RANK], first[TN_MAX_RANK], last[TN_MAX_RANK]; /* of the region that is kept */
  int64_t in[TN_MAX_RANK], out[TN_MAX_RANK];
  int32_t rank;
} resize;

/* ---- sizes ---- */

static tn_status resize_axes(const onnx_use *n, int32_t rank, int32_t *axes, int32_t *count) {
  const int64_t *given;
  TN_TRY(onnx_wholes(n, "axes", -1, &given, count));
  if (*count > rank) return ONNX_REFUSE(n, "%d axes of %d dimensions", *count, rank);
  for (int32_t i = 0; i < *count; i++) {
    axes[i] = onnx_axis(given[i], rank);
    if (axes[i] < 0) return ONNX_REFUSE(n, "an axis that the operand lacks");
  }
  for (int32_t i = 0; *count < 0 && i < rank; i++) axes[i] = i;
  if (*count < 0) *count = rank;
  return TN_OK;
}

/* The same scale for all axes, by which no size is larger, or smaller, than the wanted one. */
static void resize_keep_aspect(resize *r, const char *policy, const int32_t *axes, int32_t count) {
  bool smaller = strcmp(policy, "not_larger") == 0;
  double scale = r->scale[axes[0]];
  if (strcmp(policy, "stretch") == 0) return;
  for (int32_t i = 1; i < count; i++)
    scale = smaller ? fmin(scale, r->scale[axes[i]]) : fmax(scale, r->scale[axes[i]]);
  for (int32_t i = 0; i < count; i++) {
    r->scale[axes[i]] = scale;
    r->out[axes[i]] = onnx_to_whole(floor(scale * (double)r->in[axes[i]] + 0.5));
  }
}

static tn_status resize_sizes(const onnx_use *n, resize *r) {
  bool upsample = strcmp(n->node->op, "Upsample") == 0, old = n->node->n_in == 2 && !upsample;
  int32_t scales = upsample || old ? 1 : 2, sizes = upsample || old ? -1 : 3, axes[TN_MAX_RANK], count;
  bool given = sizes > 0 && onnx_has(n, sizes);
  int64_t many;
  TN_TRY(resize_axes(n, r->rank, axes, &count));
  const double *known = onnx_known(n, given ? sizes : scales, &many);
  if (known == NULL) return onnx_failed(n);
  if (many != count) return ONNX_REFUSE(n, "%lld sizes of %d axes", (long long)many, count);
  for (int32_t i = 0; i < count; i++) {
    int32_t a = axes[i];
    double in = (double)r->in[a];
    r->scale[a] = given ? known[i] / in : known[i];
    r->out[a] = onnx_to_whole(given ? known[i] : floor(in * known[i] + 1e-6));
    if (onnx_is_batch(n->m, r->in[a]) && given) r->scale[a] = 1, r->out[a] = r->in[a];
    if (r->out[a] < 1 || r->scale[a] <= 0 || r->out[a] > 1 << 20)
      return ONNX_REFUSE(n, "a size below 1 or too large");
  }
  if (given) resize_keep_aspect(r, onnx_word(n, "keep_aspect_ratio_policy", "stretch"), axes, count);
  if (strcmp(r->place, "tf_crop_and_resize") != 0) return TN_OK;
  known = onnx_known(n, 1, &many);
  if (known == NULL) return onnx_failed(n);
  if (many != 2 * count) return ONNX_REFUSE(n, "a region of another number of axes");
  for (int32_t i = 0; i < count; i++) {
    r->first[axes[i]] = known[i];
    r->last[axes[i]] = known[count + i];
  }
  return TN_OK;
}

static tn_status resize_read(const onnx_use *n, resize *r) {
  const tn_type *x = &onnx_operand(n, 0)->type;
  bool upsample = strcmp(n->node->op, "Upsample") == 0 || n->m->file->opset < 11;
  *r = (resize){.mode = onnx_word(n, "mode", "nearest"),
                .place =
                    onnx_word(n, "coordinate_transformation_mode", upsample ? "asymmetric" : "half_pixel"),
                .nearest = onnx_word(n, "nearest_mode", upsample ? "floor" : "round_prefer_floor"),
                .antialias = onnx_whole(n, "antialias", 0) != 0,
                .exclude = onnx_whole(n, "exclude_outside", 0) != 0,
                .a = onnx_number(n, "cubic_coeff_a", -0.75),
                .outside = onnx_number(n, "extrapolation_value", 0),
                .rank = x->rank};
  for (int32_t i = 0; i < x->rank; i++) {
    r->in[i] = r->out[i] = x->dims[i];
    r->scale[i] = r->last[i] = 1;
  }
  return resize_sizes(n, r);
}

/* ---- positions and taps ---- */

/* Where element i of the result lies in the operand; *outside: beyond its ends. */
static double resample_position(const resize *r, int32_t axis, int64_t i, bool *outside) {
  double scale = r->scale[axis], in = (double)r->in[axis], out = scale * in, at = (double)i;
  *outside = false;
  if (strcmp(r->place, "align_corners") == 0) return out == 1 ? 0 : at * (in - 1) / (out - 1);
  if (strcmp(r->place, "asymmetric") == 0) return at / scale;
  if (strcmp(r->place, "pytorch_half_pixel") == 0 && out == 1) return -0.5;
  if (strcmp(r->place, "half_pixel_symmetric") == 0)
    return in / 2 * (1 - (double)r->out[axis] / out) + (at + 0.5) / scale - 0.5;
  if (strcmp(r->place, "tf_crop_and_resize") == 0) {
    double size = (r->last[axis] - r->first[axis]) * (in - 1);
    double x = (out == 1 ? size / 2 : at * size / (out - 1)) + r->first[axis] * (in - 1);
    *outside = x < 0 || x > in - 1;
    return x;
  }
  return (at + 0.5) / scale - 0.5;
}

static double cubic_part(double x, double a) {
  x = fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* The weights of neighbours of a position, the first of which is *start from the element below it. */
static int32_t resize_taps(const resize *r, double scale, double ratio, double *taps, int32_t *start) {
  bool cubic = strcmp(r->mode, "cubic") == 0, linear = strcmp(r->mode, "linear") == 0;
  double wide = r->antialias && scale < 1 ? scale : 1, sum = 0;
  if (!cubic && !linear) {
    bool up = ratio == 1 || (strcmp(r->nearest, "ceil") == 0) ||
              (strcmp(r->nearest, "round_prefer_ceil") == 0 && ratio >= 0.5) ||
              (strcmp(r->nearest, "round_prefer_floor") == 0 && ratio > 0.5);
    *start = up ? 1 : 0;
    taps[0] = 1;
    return 1;
  }
  *start = (int32_t)floor((cubic ? -2 : -1) / wide) + 1;
  int32_t count = 2 - 2 * *start;
  if (count > MOST_TAPS) return 0;
  for (int32_t i = 0; i < count; i++) {
    double at = (*start + i - ratio) * wide;
    taps[i] = cubic ? cubic_part(at, r->a) : fmax(0, 1 - fabs(at));
    sum += taps[i];
  }
  for (int32_t i = 0; i < count; i++) taps[i] /= sum;
  return count;
}

/* A row of the matrix of an axis: the weights of all elements for element i of the result. */
static bool resize_row(const resize *r, int32_t axis, int64_t i, double *row) {
  bool outside;
  double taps[MOST_TAPS], x = resample_position(r, axis, i, &outside), below = floor(x), ratio = x - below,
                          sum = 0;
  int64_t in = r->in[axis];
  int32_t start;
  if (outside) return true;
  if (ratio == 0) below--, ratio = 1;
  int32_t count = resize_taps(r, r->scale[axis], ratio, taps, &start);
  for (int32_t k = 0; k < count; k++) {
    int64_t at = (int64_t)below + start + k;
    if (r->exclude && (at < 0 || at >= in)) continue;
    sum += taps[k];
    row[at < 0 ? 0 : at >= in ? in - 1 : at] += taps[k];
  }
  for (int64_t k = 0; k < in && r->exclude && sum != 0; k++) row[k] /= sum;
  return count > 0;
}

/* ---- as interpolate ---- */

/* Whether `interpolate` takes the same nearest elements: those of floor((i + shift) in / out). */
static bool resize_is_nearest(const resize *r, double shift) {
  for (int32_t axis = 2; axis < r->rank; axis++)
    for (int64_t i = 0; i < r->out[axis]; i++) {
      bool outside;
      double taps[1], x = resample_position(r, axis, i, &outside), below = floor(x), ratio = x - below;
      int32_t start;
      if (ratio == 0) below--, ratio = 1;
      resize_taps(r, r->scale[axis], ratio, taps, &start);
      double at = fmin(fmax(below + start, 0), (double)r->in[axis] - 1);
      if (outside || at != fmin(floor(((double)i + shift) * (double)r->in[axis] / (double)r->out[axis]),
                                (double)r->in[axis] - 1))
        return false;
    }
  return true;
}

static bool resize_is_filter(const resize *r, bool *corners) {
  *corners = strcmp(r->place, "align_corners") == 0;
  bool half = strcmp(r->place, "half_pixel") == 0 || strcmp(r->place, "pytorch_half_pixel") == 0;
  for (int32_t axis = 2; axis < r->rank; axis++) {
    if (fabs(r->scale[axis] * (double)r->in[axis] - (double)r->out[axis]) > 1e-4) return false;
    if (r->antialias && r->scale[axis] < 1) return false;
    if (r->out[axis] == 1 && strcmp(r->place, "pytorch_half_pixel") == 0) return false;
  }
  return (half || *corners) && !r->exclude &&
         (strcmp(r->mode, "cubic") != 0 || (r->a == -0.75 && r->rank == 4));
}

/* The mode of `interpolate` with its options; NULL: it has none that is the same. */
static const char *resize_mode(const resize *r, bool *corners) {
  static const char *const filters[] = {"linear", "bilinear", "trilinear"};
  *corners = false;
  if (r->rank < 3 || r->rank > 5 || r->out[0] != r->in[0] || r->out[1] != r->in[1]) return NULL;
  if (strcmp(r->mode, "nearest") == 0)
    return resize_is_nearest(r, 0) ? "nearest" : resize_is_nearest(r, 0.5) ? "nearest_exact" : NULL;
  if (!resize_is_filter(r, corners)) return NULL;
  return strcmp(r->mode, "cubic") == 0 ? "bicubic" : filters[r->rank - 3];
}

/* ---- as matrices ---- */

static bool resize_changes(const resize *r, int32_t axis) {
  return r->in[axis] != r->out[axis] || r->scale[axis] != 1 || r->first[axis] != 0 || r->last[axis] != 1;
}

/* A buffer with the matrix of an axis, and one that is 1 where the result lies outside; "": nothing does. */
static tn_status resample_matrix(const onnx_use *n, const resize *r, int32_t axis, const char **matrix,
                                 const char **outside) {
  tn_type type = {.dtype = TN_F32, .rank = 2, .dims = {r->out[axis], r->in[axis]}},
          ends = {.dtype = TN_F32, .rank = 1, .dims = {r->out[axis]}};
  double *v = tn_arena_alloc(&n->m->arena, (size_t)tn_type_count(&type) * sizeof *v + 1);
  double *out = tn_arena_alloc(&n->m->arena, (size_t)r->out[axis] * sizeof *out + 1);
  bool some = false;
  if (v == NULL || out == NULL) return TN_ENOMEM;
  memset(v, 0, (size_t)tn_type_count(&type) * sizeof *v);
  for (int64_t i = 0; i < r->out[axis]; i++) {
    bool beyond;
    resample_position(r, axis, i, &beyond);
    some = some || beyond;
    out[i] = beyond;
    if (!resize_row(r, axis, i, v + i * r->in[axis]))
      return ONNX_REFUSE(n, "a filter of more than %d elements", MOST_TAPS);
  }
  const char *name = n->node->out[0];
  *matrix = onnx_buffer(n, onnx_print(n, "%s.filter", name), &type, v);
  *outside = some && r->outside != 0 ? onnx_buffer(n, onnx_print(n, "%s.outside", name), &ends, out) : "";
  return *matrix != NULL && *outside != NULL ? TN_OK : onnx_failed(n);
}

/* "abcd_zc_abzd": the product along an axis. */
static const char *resize_equation(const onnx_use *n, int32_t rank, int32_t axis) {
  char x[TN_MAX_RANK + 1] = "abcdefgh", y[TN_MAX_RANK + 1] = "abcdefgh";
  x[rank] = y[rank] = '\0';
  y[axis] = 'z';
  return onnx_print(n, "%s_z%c_%s", x, x[axis], y);
}

static tn_status resample_multiply(const onnx_use *n, const resize *r, const char *x) {
  for (int32_t axis = 0; axis < r->rank; axis++) {
    const char *matrix = NULL, *outside = "";
    if (!resize_changes(r, axis)) continue;
    if (onnx_is_batch(n->m, r->in[axis])) return ONNX_REFUSE(n, "another number of samples");
    TN_TRY(resample_matrix(n, r, axis, &matrix, &outside));
    x = onnx_let(n, "einsum(%s, %s, equation=%s)", x, matrix, resize_equation(n, r->rank, axis));
    if (x != NULL && outside[0] != '\0') {
      const char *beside = "";
      for (int32_t i = axis + 1; i < r->rank; i++) beside = onnx_print(n, "%s, None", beside);
      x = onnx_let(n, "%s + %s[:%s] * %s", x, outside, beside, onnx_float_text(n, r->outside));
    }
    if (x == NULL) return onnx_failed(n);
  }
  return onnx_bind(n, 0, x);
}

static tn_status row_resize(const onnx_use *n) {
  resize r;
  bool corners;
  const char *x = onnx_text_of(n, 0, false);
  if (x == NULL) return onnx_failed(n);
  TN_TRY(resize_read(n, &r));
  const char *mode = resize_mode(&r, &corners);
  if (mode == NULL) return resample_multiply(n, &r, x);
  return onnx_emit(n, &x, 1, "interpolate(size=%s, mode=%s%s)",
                   onnx_list_text(n, r.out + 2, r.rank - 2, false), mode,
                   corners ? ", align_corners=yes" : "");
}

const onnx_row onnx_resize_rows[] = {
    {"Resize", row_resize, NULL},
    {"Upsample", row_resize, NULL},
    {NULL, NULL, NULL},
};
