/* core/infer/places/boxes.c: boxes with a score, in JSON and on a canvas. */
#include "core/base/element.h"
#include "core/infer/places/places.h"
#include "core/run/result.h"

typedef struct boxes_row {
  const float *boxes, *scores;
  const void *labels;
  int32_t dtype; /* of labels */
  int64_t n;
} boxes_row;

static boxes_row boxes_of(const tn_places *p, int32_t slot, int64_t row) {
  const tn_forward *f = p->forward;
  boxes_row b = {.n = p->forward->outputs[p->boxes].row.dims[0]};
  b.boxes = (const float *)tn_forward_output(f, slot, p->boxes) + row * 4 * b.n;
  b.scores = (const float *)tn_forward_output(f, slot, p->scores) + row * b.n;
  if (p->labels < 0) return b;
  b.dtype = p->forward->outputs[p->labels].row.dtype;
  b.labels =
      (const char *)tn_forward_output(f, slot, p->labels) + (size_t)row * f->outputs[p->labels].row_bytes;
  return b;
}

static int64_t boxes_label(const boxes_row *b, int64_t i) {
  return b->labels != NULL ? (int64_t)tn_element_load(b->dtype, b->labels, i) : 0;
}

/* The box with the highest score of those behind `before` in descending order, equal ones in their order; -1:
 * none has the threshold and a class. */
static int64_t boxes_next(const tn_places *p, const boxes_row *b, int64_t before) {
  int64_t best = -1;
  for (int64_t i = 0; i < b->n; i++) {
    bool taken = before >= 0 &&
                 (b->scores[i] > b->scores[before] || (b->scores[i] == b->scores[before] && i <= before));
    if (taken || !((double)b->scores[i] >= p->threshold) || boxes_label(b, i) < 0) continue;
    if (best < 0 || b->scores[i] > b->scores[best]) best = i;
  }
  return best;
}

void tn_boxes_add(const tn_places *p, int32_t slot, int64_t row, json_t *prediction) {
  json_t *list = json_array();
  const boxes_row all = boxes_of(p, slot, row), *b = &all;
  for (int64_t i = -1; (i = boxes_next(p, b, i)) >= 0;) {
    json_t *one = tn_places_class(p, boxes_label(b, i)), *box = json_array();
    for (int k = 0; k < 4; k++) json_array_append_new(box, tn_json_real((double)b->boxes[4 * i + k]));
    json_object_set_new(one, "score", tn_json_real((double)b->scores[i]));
    json_object_set_new(one, "box", box);
    json_array_append_new(list, one);
  }
  json_object_set_new(prediction, "boxes", list);
  if (p->picture < 0) return;
  const tn_type *picture = &tn_loader_field(p->forward->loader, p->picture)->type;
  json_object_set_new(prediction, "width", json_integer(picture->dims[2]));
  json_object_set_new(prediction, "height", json_integer(picture->dims[1]));
}

void tn_boxes_draw(const tn_places *p, int32_t slot, int64_t row, tn_canvas *canvas) {
  const boxes_row b = boxes_of(p, slot, row);
  for (int64_t i = -1; (i = boxes_next(p, &b, i)) >= 0;)
    tn_canvas_outline(canvas, b.boxes + 4 * i, boxes_label(&b, i));
}
