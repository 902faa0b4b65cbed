/* core/infer/places/places.c: see places.h. */
#include "core/infer/places/places.h"

#include <string.h>

#include "core/base/file/file.h"
#include "core/formats/png.h"
#include "core/run/result.h"
#include "tenon/file_names.h"

static tn_status places_check_folders(const tn_places *p) {
  const tn_run *run = p->forward->run;
  bool drawn = p->kind == TN_PLACES_MASKS || p->kind == TN_PLACES_BOXES;
  if (p->masks != NULL && p->kind != TN_PLACES_MASKS && p->kind != TN_PLACES_PICTURES)
    return tn_failf(
        &run->env, TN_EINVAL,
        "%s: is a folder, which masks and pictures are written to, but the model has no scores of classes "
        "for each pixel (%d at most) and a target of class numbers [height, width], and its first output is "
        "no picture, f32 or u8[1 or 3, height, width]; name a .npy, .safetensors, .csv or .json file",
        p->masks, TN_MASK_CLASSES);
  if (p->show != NULL && !drawn)
    return tn_failf(
        &run->env, TN_EINVAL,
        "--show %s: the model predicts neither masks nor outputs called boxes and scores, which can be drawn",
        p->show);
  if (p->show != NULL && p->picture < 0 && p->forward->loader != NULL)
    return tn_failf(
        &run->env, TN_EINVAL,
        "--show %s: no input is a picture, f32 or u8[1 or 3, height, width], over which places can be drawn",
        p->show);
  if (p->masks != NULL) TN_TRY(tn_folder_make(&run->env, p->masks));
  return p->show != NULL ? tn_folder_make(&run->env, p->show) : TN_OK;
}

tn_status tn_places_start(const tn_forward *forward, tn_places *p) {
  p->forward = forward;
  TN_TRY(tn_places_find(p));
  TN_TRY(places_check_folders(p));
  p->taken = json_object();
  return p->taken != NULL ? TN_OK : TN_ENOMEM;
}

void tn_places_finish(tn_places *p) {
  json_decref(p->document);
  json_decref(p->taken);
  if (p->forward != NULL) tn_release(&p->forward->run->env, p->mask);
}

/* ---- files ---- */

/* The input's name without folder and ending, "-2" behind the second of a name. */
static const char *places_file_name(tn_places *p, const char *input) {
  tn_arena *arena = &p->forward->run->arena;
  const char *slash = strrchr(input, '/'), *base = slash != NULL ? slash + 1 : input,
             *dot = strrchr(base, '.');
  int n = (int)(tn_name_is_picture(base) ? dot - base : (ptrdiff_t)strlen(base));
  const char *name = tn_arena_printf(arena, "%.*s.png", n, base);
  for (int k = 2; name != NULL && json_object_get(p->taken, name) != NULL; k++)
    name = tn_arena_printf(arena, "%.*s-%d.png", n, base, k);
  if (name != NULL) json_object_set_new(p->taken, name, json_true());
  return name;
}

static tn_status places_write_shown(const tn_places *p, const tn_canvas *canvas, const char *name,
                                    json_t *prediction) {
  const tn_run *run = p->forward->run;
  char *path = tn_path_join(&run->env, p->show, name);
  if (path == NULL) return TN_ENOMEM;
  tn_status status = tn_png_write(&run->env, path, canvas->width, canvas->height, canvas->rgb);
  json_object_set_new(prediction, "shown", tn_json_text(path));
  tn_release(&run->env, path);
  return status;
}

static tn_status places_show(const tn_places *p, int32_t slot, int64_t row, const char *name,
                             json_t *prediction) {
  const tn_run *run = p->forward->run;
  const tn_type *type = &tn_loader_field(p->forward->loader, p->picture)->type;
  const char *value = (const char *)p->forward->fields[slot][p->picture] + (size_t)row * tn_type_bytes(type);
  tn_canvas canvas;
  TN_TRY(tn_canvas_open(&run->env, type, value, &canvas));
  if (p->kind == TN_PLACES_MASKS)
    tn_canvas_blend(&canvas, p->mask, p->width, p->height);
  else
    tn_boxes_draw(p, slot, row, &canvas);
  tn_status status = places_write_shown(p, &canvas, name, prediction);
  tn_release(&run->env, canvas.rgb);
  return status;
}

/* The picture that the model has made, and "picture". */
static tn_status places_write_made(const tn_places *p, int32_t slot, int64_t row, const char *name,
                                   json_t *prediction) {
  const tn_run *run = p->forward->run;
  const tn_type *type = &p->forward->outputs[0].row;
  const char *values = tn_forward_output(p->forward, slot, 0);
  tn_canvas canvas;
  TN_TRY(tn_canvas_open(&run->env, type, values + (size_t)row * tn_type_bytes(type), &canvas));
  char *path = tn_path_join(&run->env, p->masks, name);
  tn_status status =
      path != NULL ? tn_png_write(&run->env, path, canvas.width, canvas.height, canvas.rgb) : TN_ENOMEM;
  if (status == TN_OK) json_object_set_new(prediction, "picture", tn_json_text(path));
  tn_release(&run->env, path);
  tn_release(&run->env, canvas.rgb);
  return status;
}

tn_status tn_places_row(tn_places *p, int32_t slot, int64_t row, const char *input, json_t *prediction) {
  bool writes = p->masks != NULL || p->show != NULL;
  const char *name = writes ? places_file_name(p, input) : NULL;
  if (writes && name == NULL) return TN_ENOMEM;
  if (p->kind == TN_PLACES_PICTURES) return places_write_made(p, slot, row, name, prediction);
  if (p->kind == TN_PLACES_MASKS)
    tn_mask_add(p, slot, row, prediction);
  else
    tn_boxes_add(p, slot, row, prediction);
  if (p->masks != NULL) TN_TRY(tn_mask_write(p, name, prediction));
  return p->show != NULL ? places_show(p, slot, row, name, prediction) : TN_OK;
}
