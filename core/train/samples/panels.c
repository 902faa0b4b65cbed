/* core/train/samples/panels.c: values that are pictures. */
#include "core/base/element.h"
#include "core/train/samples/sample_view.h"

/* The least side of a picture, and of a matrix that is shown as one: short rows are features. */
enum { LEAST_SIDE = 2, LEAST_MATRIX = 8 };

/* The class numbers of a mask are shown by the colors of a byte. */
static bool panel_is_map(const tn_type *type) {
  bool number = !tn_dtype_is_float(type->dtype) && type->dtype != TN_U8;
  bool channel = type->rank == 3 && type->dims[0] == 1;
  return number && (type->rank == 2 || channel) && tn_type_count(type) > 0;
}

static const tn_sample_value *panel_find(const tn_sample_set *set, int32_t role, int64_t height,
                                         int64_t width, bool (*is)(const tn_type *type)) {
  for (int32_t i = 0; i < set->n_values; i++) {
    const tn_sample_value *v = &set->values[i];
    if (v->role == role && is(&v->type) && v->type.dims[v->type.rank - 2] == height &&
        v->type.dims[v->type.rank - 1] == width)
      return v;
  }
  return NULL;
}

/* ---- masks ---- */

/* The mask over the first picture of its size that the model reads, or alone. */
static tn_status panel_draw_mask(const tn_sample_set *set, int64_t i, const uint8_t *mask, int64_t height,
                                 int64_t width, tn_canvas *canvas) {
  const void *env = &set->run->env;
  const tn_sample_value *under = panel_find(set, TN_FIELD_INPUT, height, width, tn_canvas_takes);
  if (under == NULL) return tn_canvas_open_mask(env, mask, width, height, canvas);
  TN_TRY(tn_canvas_open(env, &under->type, tn_sample_row(under, i), canvas));
  tn_canvas_blend(canvas, mask, width, height);
  return TN_OK;
}

static bool mask_takes(const tn_sample_set *set, const tn_sample_value *value) {
  (void)set;
  return panel_is_map(&value->type);
}

/* A pixel without a class, which has a negative number, is as class 0. */
static tn_status mask_draw(const tn_sample_set *set, const tn_sample_value *value, int64_t i,
                           tn_canvas *canvas) {
  const tn_type *type = &value->type;
  int64_t height = type->dims[type->rank - 2], width = type->dims[type->rank - 1];
  uint8_t *mask = tn_alloc(&set->run->env, tn_size_mul((size_t)height, (size_t)width));
  if (mask == NULL) return TN_ENOMEM;
  for (int64_t k = 0; k < height * width; k++) {
    double number = tn_element_load(type->dtype, tn_sample_row(value, i), k);
    mask[k] = (uint8_t)(number > 0 ? (int64_t)number % 256 : 0);
  }
  tn_status status = panel_draw_mask(set, i, mask, height, width, canvas);
  tn_release(&set->run->env, mask);
  return status;
}

const tn_sample_view tn_mask_view = {.takes = mask_takes, .draw = mask_draw};

/* ---- scores of masks ---- */

/* Outputs [classes, height, width], or [1, height, width] of scores of a yes, with a target of that size. */
static bool mask_score_takes(const tn_sample_set *set, const tn_sample_value *value) {
  const tn_type *t = &value->type;
  return value->role == TN_SAMPLE_OUTPUT && t->rank == 3 && tn_dtype_is_float(t->dtype) &&
         panel_find(set, TN_FIELD_TARGET, t->dims[1], t->dims[2], panel_is_map) != NULL;
}

static uint8_t mask_score_best(const tn_type *type, const char *row, int64_t pixel) {
  int64_t plane = type->dims[1] * type->dims[2], best = 0;
  double most = tn_element_load(type->dtype, row, pixel);
  if (type->dims[0] == 1) return most > 0;
  for (int64_t c = 1; c < type->dims[0]; c++) {
    double score = tn_element_load(type->dtype, row, c * plane + pixel);
    if (score > most) most = score, best = c;
  }
  return (uint8_t)(best % 256);
}

static tn_status mask_score_draw(const tn_sample_set *set, const tn_sample_value *value, int64_t i,
                                 tn_canvas *canvas) {
  const tn_type *t = &value->type;
  int64_t plane = t->dims[1] * t->dims[2];
  uint8_t *mask = tn_alloc(&set->run->env, (size_t)plane);
  if (mask == NULL) return TN_ENOMEM;
  for (int64_t k = 0; k < plane; k++) mask[k] = mask_score_best(t, tn_sample_row(value, i), k);
  tn_status status = panel_draw_mask(set, i, mask, t->dims[1], t->dims[2], canvas);
  tn_release(&set->run->env, mask);
  return status;
}

const tn_sample_view tn_mask_score_view = {.takes = mask_score_takes, .draw = mask_score_draw};

/* ---- pictures ---- */

/* A matrix, such as a spectrogram, is a picture of one channel. */
static tn_type panel_picture_type(const tn_type *type) {
  if (type->rank != 2) return *type;
  return (tn_type){.dtype = type->dtype, .rank = 3, .dims = {1, type->dims[0], type->dims[1]}};
}

static bool panel_takes_picture(const tn_sample_set *set, const tn_sample_value *value) {
  const tn_type type = panel_picture_type(&value->type);
  int64_t least = value->type.rank == 2 ? LEAST_MATRIX : LEAST_SIDE;
  (void)set;
  return tn_canvas_takes(&type) && type.dims[1] >= least && type.dims[2] >= least;
}

static tn_status panel_draw_picture(const tn_sample_set *set, const tn_sample_value *value, int64_t i,
                                    tn_canvas *canvas) {
  const tn_type type = panel_picture_type(&value->type);
  return tn_canvas_open(&set->run->env, &type, tn_sample_row(value, i), canvas);
}

const tn_sample_view tn_picture_view = {.takes = panel_takes_picture, .draw = panel_draw_picture};
