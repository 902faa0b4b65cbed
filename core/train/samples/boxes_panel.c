/* core/train/samples/boxes_panel.c: boxes over the picture that they belong to. */
#include <string.h>

#include "core/base/element.h"
#include "core/train/samples/sample_view.h"

/* Outputs have a score for each box; those with less are not drawn. */
static const double LEAST_SCORE = 0.5;

static const tn_sample_value *box_find_picture(const tn_sample_set *set) {
  for (int32_t i = 0; i < set->n_values; i++)
    if (set->values[i].role == TN_FIELD_INPUT && tn_canvas_takes(&set->values[i].type))
      return &set->values[i];
  return NULL;
}

/* The values "labels" or "scores" beside boxes: a number for each. NULL where the set lacks them. */
static const tn_sample_value *box_find_beside(const tn_sample_set *set, const tn_sample_value *boxes,
                                              const char *name) {
  const tn_sample_value *v = tn_sample_find(set, name, boxes->role);
  return v != NULL && v->type.rank == 1 && v->type.dims[0] == boxes->type.dims[0] ? v : NULL;
}

static bool box_takes(const tn_sample_set *set, const tn_sample_value *value) {
  const tn_type *type = &value->type;
  return value->role != TN_FIELD_INPUT && strcmp(value->name, "boxes") == 0 && type->dtype == TN_F32 &&
         type->rank == 2 && type->dims[1] == 4 && box_find_picture(set) != NULL;
}

static double box_number(const tn_sample_value *beside, int64_t i, int64_t k, double otherwise) {
  return beside != NULL ? tn_element_load(beside->type.dtype, tn_sample_row(beside, i), k) : otherwise;
}

/* Boxes without an area are padding. */
static tn_status box_draw(const tn_sample_set *set, const tn_sample_value *value, int64_t i,
                          tn_canvas *canvas) {
  const tn_sample_value *picture = box_find_picture(set), *labels = box_find_beside(set, value, "labels"),
                        *scores = box_find_beside(set, value, "scores");
  TN_TRY(tn_canvas_open(&set->run->env, &picture->type, tn_sample_row(picture, i), canvas));
  for (int64_t k = 0; k < value->type.dims[0]; k++) {
    float box[4];
    double label = box_number(labels, i, k, 0);
    memcpy(box, tn_sample_row(value, i) + (size_t)k * sizeof box, sizeof box);
    if (label >= 0 && box_number(scores, i, k, 1) >= LEAST_SCORE && box[2] > box[0] && box[3] > box[1])
      tn_canvas_outline(canvas, box, (int64_t)label);
  }
  return TN_OK;
}

const tn_sample_view tn_box_view = {.takes = box_takes, .draw = box_draw};
