/* core/infer/places/find_places.c: whether outputs are masks or boxes, by their types and names. */
#include "core/base/text/text.h"
#include "core/infer/places/places.h"
#include "core/infer/prediction/predict_classes.h"
#include "core/model/model.h"

static const tn_type *find_row_type(const tn_places *p, int32_t k) { return &p->forward->outputs[k].row; }

static bool find_is_map(const tn_type *type, int64_t height, int64_t width) {
  bool channel = type->rank == 3 && type->dims[0] == 1;
  return (type->rank == 2 || channel) && type->dims[type->rank - 2] == height &&
         type->dims[type->rank - 1] == width;
}

/* [height, width] or [1, height, width] of scores of a yes. */
static bool find_binary(tn_places *p, const tn_type *row, const tn_type *target) {
  if (row->rank < 2 || !find_is_map(row, row->dims[row->rank - 2], row->dims[row->rank - 1])) return false;
  p->height = row->dims[row->rank - 2];
  p->width = row->dims[row->rank - 1];
  p->classes = 2;
  p->binary = true;
  return find_is_map(target, p->height, p->width);
}

/* [classes, height, width] or [height, width, classes]. */
static bool find_classes(tn_places *p, const tn_type *row, const tn_type *target) {
  if (row->rank != 3 || target->rank != 2 || tn_dtype_is_float(target->dtype)) return false;
  p->classes_last = find_is_map(target, row->dims[0], row->dims[1]);
  int32_t first = p->classes_last ? 0 : 1;
  p->classes = row->dims[p->classes_last ? 2 : 0];
  p->height = row->dims[first];
  p->width = row->dims[first + 1];
  return p->classes_last || find_is_map(target, p->height, p->width);
}

static tn_status find_masks(tn_places *p) {
  tn_run *run = p->forward->run;
  const tn_type *row = find_row_type(p, 0);
  tn_signature signature;
  int32_t scores = tn_predict_scores(run);
  bool binary = scores == TN_SCORES_OF_LABELS;
  if (row->dtype != TN_F32 || scores == TN_SCORES_NONE) return TN_OK;
  TN_TRY(tn_signature_read(&run->env, &run->arena, &run->ini, &signature));
  for (int32_t i = 0; i < signature.n_targets && p->kind == TN_PLACES_NONE; i++) {
    const tn_type *target = &signature.targets[i].type;
    bool found = binary ? find_binary(p, row, target) : find_classes(p, row, target);
    if (found && p->classes <= TN_MASK_CLASSES) p->kind = TN_PLACES_MASKS;
  }
  if (p->kind != TN_PLACES_MASKS) return TN_OK;
  p->mask = tn_alloc(&run->env, tn_size_mul((size_t)p->height, (size_t)p->width));
  return p->mask != NULL ? TN_OK : TN_ENOMEM;
}

static int32_t find_output(const tn_places *p, const char *name) {
  for (int32_t k = 0; k < p->forward->n_outputs; k++)
    if (tn_text_equal(p->forward->outputs[k].name, name)) return k;
  return -1;
}

/* boxes f32[n, 4], scores f32[n], and labels i32[n] or i64[n]. */
static void find_boxes(tn_places *p) {
  p->boxes = find_output(p, "boxes");
  p->scores = find_output(p, "scores");
  p->labels = find_output(p, "labels");
  if (p->boxes < 0 || p->scores < 0) return;
  const tn_type *boxes = find_row_type(p, p->boxes), *scores = find_row_type(p, p->scores);
  bool fits = boxes->dtype == TN_F32 && boxes->rank == 2 && boxes->dims[1] == 4 && scores->dtype == TN_F32 &&
              scores->rank == 1 && scores->dims[0] == boxes->dims[0];
  const tn_type *labels = p->labels >= 0 ? find_row_type(p, p->labels) : NULL;
  fits = fits && (labels == NULL || ((labels->dtype == TN_I32 || labels->dtype == TN_I64) &&
                                     labels->rank == 1 && labels->dims[0] == boxes->dims[0]));
  if (fits) p->kind = TN_PLACES_BOXES;
}

/* The names of as many classes; of boxes those of any target. */
static void find_names(tn_places *p) {
  const char *target;
  json_t *names;
  if (p->forward->run->class_names != NULL) p->document = json_loads(p->forward->run->class_names, 0, NULL);
  json_object_foreach(p->document, target, names) {
    bool fits = p->kind == TN_PLACES_BOXES || (int64_t)json_array_size(names) == p->classes;
    if (p->names == NULL && fits) p->names = names;
  }
}

/* The first output is a picture, as that of a generator. */
static void find_made(tn_places *p) {
  if (p->masks != NULL && p->forward->n_outputs > 0 && tn_canvas_takes(find_row_type(p, 0)))
    p->kind = TN_PLACES_PICTURES;
}

static void find_picture(tn_places *p) {
  const tn_loader *loader = p->forward->loader;
  p->picture = -1;
  for (int32_t i = 0; loader != NULL && p->picture < 0 && i < tn_loader_field_count(loader); i++) {
    const tn_field *field = tn_loader_field(loader, i);
    if (field->role == TN_FIELD_INPUT && tn_canvas_takes(&field->type)) p->picture = i;
  }
}

tn_status tn_places_find(tn_places *p) {
  p->kind = TN_PLACES_NONE;
  TN_TRY(find_masks(p));
  if (p->kind == TN_PLACES_NONE) find_boxes(p);
  if (p->kind == TN_PLACES_NONE) find_made(p);
  if (p->kind != TN_PLACES_NONE) find_names(p);
  find_picture(p);
  return TN_OK;
}

json_t *tn_places_class(const tn_places *p, int64_t number) {
  json_t *one = json_pack("{s:I}", "class", (json_int_t)number);
  json_t *name = number >= 0 ? json_array_get(p->names, (size_t)number) : NULL;
  if (one != NULL && json_is_string(name)) json_object_set(one, "name", name);
  return one;
}
