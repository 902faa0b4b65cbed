/* core/infer/places/masks.c: scores as class numbers, in JSON and as PNG. */
#include "core/base/file/file.h"
#include "core/formats/png.h"
#include "core/infer/places/places.h"
#include "core/run/result.h"

static uint8_t mask_best(const tn_places *p, const float *scores, int64_t pixel) {
  int64_t plane = p->height * p->width, best = 0;
  if (p->binary) return scores[pixel] > 0;
  const float *at = p->classes_last ? scores + pixel * p->classes : scores + pixel;
  int64_t step = p->classes_last ? 1 : plane;
  for (int64_t k = 1; k < p->classes; k++)
    if (at[k * step] > at[best * step]) best = k;
  return (uint8_t)best;
}

/* [{"class": 1, "name": "road", "part": 0.61}, ...], the largest first. */
static json_t *mask_areas(const tn_places *p) {
  int64_t counts[TN_MASK_CLASSES] = {0}, plane = p->height * p->width;
  json_t *list = json_array();
  for (int64_t i = 0; i < plane; i++) counts[p->mask[i]]++;
  for (int32_t n = 0; n < p->top; n++) {
    int64_t most = 0;
    for (int64_t k = 1; k < p->classes; k++)
      if (counts[k] > counts[most]) most = k;
    if (counts[most] == 0) break;
    json_t *one = tn_places_class(p, most);
    json_object_set_new(one, "part", json_real((double)counts[most] / (double)plane));
    json_array_append_new(list, one);
    counts[most] = 0;
  }
  return list;
}

tn_status tn_mask_write(const tn_places *p, const char *name, json_t *prediction) {
  const tn_run *run = p->forward->run;
  uint8_t palette[3 * TN_MASK_CLASSES];
  for (int64_t k = 0; k < p->classes; k++) tn_class_color(k, palette + 3 * k);
  char *path = tn_path_join(&run->env, p->masks, name);
  if (path == NULL) return TN_ENOMEM;
  tn_status status =
      tn_png_write_indexed(&run->env, path, p->width, p->height, p->mask, palette, (int32_t)p->classes);
  json_object_set_new(prediction, "mask", tn_json_text(path));
  tn_release(&run->env, path);
  return status;
}

void tn_mask_add(tn_places *p, int32_t slot, int64_t row, json_t *prediction) {
  const float *scores = tn_forward_output(p->forward, slot, 0);
  scores += row * tn_type_count(&p->forward->outputs[0].row);
  for (int64_t i = 0; i < p->height * p->width; i++) p->mask[i] = mask_best(p, scores, i);
  json_object_set_new(prediction, "areas", mask_areas(p));
}
