/* core/commands/data_fields.c: see data_fields.h. */
#include "core/commands/data_fields.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/base/element.h"
#include "core/data/transform_chain.h"
#include "core/formats/png.h"
#include "core/infer/prediction/picture_text.h"
#include "core/run/result.h"

/* ---- numbers ---- */

static int32_t data_find_target(const tn_loader *loader) {
  for (int32_t i = 0; i < tn_loader_field_count(loader); i++) {
    const tn_field *f = tn_loader_field(loader, i);
    if (f->role == TN_FIELD_TARGET && f->classes > 0 && f->type.dtype == TN_I32) return i;
  }
  return -1;
}

tn_status tn_data_fields_start(tn_arena *arena, const tn_loader *loader, tn_data_fields *fields) {
  int32_t n = tn_loader_field_count(loader);
  *fields = (tn_data_fields){.loader = loader, .target = data_find_target(loader)};
  fields->sums = tn_arena_alloc(arena, tn_size_mul((size_t)n, sizeof *fields->sums));
  int64_t classes = fields->target >= 0 ? tn_loader_field(loader, fields->target)->classes : 1;
  fields->samples = tn_arena_alloc(arena, tn_size_mul((size_t)classes, sizeof *fields->samples));
  if (fields->sums == NULL || fields->samples == NULL) return TN_ENOMEM;
  for (int32_t i = 0; i < n; i++) fields->sums[i] = (tn_field_sums){.least = INFINITY, .greatest = -INFINITY};
  return TN_OK;
}

static void data_add_number(tn_field_sums *s, double x) {
  if (isnan(x)) {
    s->missing++;
    return;
  }
  if (s->n++ == 0) s->shift = x;
  if (x < s->least) s->least = x;
  if (x > s->greatest) s->greatest = x;
  double off = x - s->shift;
  s->sum += off;
  s->squares += off * off;
}

static void data_add_classes(tn_data_fields *fields, const tn_field *f, const int32_t *values, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (values[i] >= 0 && values[i] < f->classes) fields->samples[values[i]]++;
}

/* The type of a sample in a batch of this length; 0: all have one length. */
static tn_type data_type_of(const tn_loader *loader, int32_t field, int64_t length) {
  const tn_transform_chain *chain = tn_loader_chain(loader);
  tn_type type = tn_loader_field(loader, field)->type;
  if (length > 0 && field < chain->n_fields && chain->axis[field] >= 0)
    type.dims[chain->axis[field]] = length;
  return type;
}

void tn_data_fields_add(tn_data_fields *fields, void *const *values, int64_t samples, int64_t length) {
  for (int32_t i = 0; i < tn_loader_field_count(fields->loader); i++) {
    const tn_field *f = tn_loader_field(fields->loader, i);
    tn_type type = data_type_of(fields->loader, i, length);
    int64_t n = samples * tn_type_count(&type);
    for (int64_t k = 0; k < n; k++)
      data_add_number(&fields->sums[i], tn_element_load(f->type.dtype, values[i], k));
    if (i == fields->target) data_add_classes(fields, f, values[i], n);
  }
}

static json_t *data_field_json(const tn_field *f, const tn_field_sums *s) {
  double n = (double)s->n, off = s->sum / n, variance = s->squares / n - off * off;
  return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o}", "name", tn_json_text(f->name),
                   "role", f->role == TN_FIELD_TARGET ? "target" : "input", "type", tn_json_type(&f->type),
                   "min", tn_json_real(s->least), "max", tn_json_real(s->greatest), "mean",
                   tn_json_real(s->shift + off), "deviation",
                   tn_json_real(sqrt(variance > 0 ? variance : 0 * variance)), "missing",
                   (json_int_t)s->missing, "number", (json_int_t)(s->n + s->missing), "classes",
                   f->classes > 0 ? json_integer(f->classes) : json_null());
}

json_t *tn_data_fields_json(const tn_data_fields *fields) {
  json_t *list = json_array();
  for (int32_t i = 0; i < tn_loader_field_count(fields->loader); i++)
    json_array_append_new(list, data_field_json(tn_loader_field(fields->loader, i), &fields->sums[i]));
  return list;
}

json_t *tn_data_classes_json(const tn_data_fields *fields) {
  if (fields->target < 0) return json_null();
  const tn_field *f = tn_loader_field(fields->loader, fields->target);
  json_t *list = json_array();
  for (int64_t i = 0; i < f->classes; i++) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)i);
    const char *name = f->class_names != NULL ? f->class_names[i] : number;
    json_array_append_new(
        list, json_pack("{s:o, s:I}", "name", tn_json_text(name), "samples", (json_int_t)fields->samples[i]));
  }
  return list;
}

/* ---- a picture ---- */

enum { DATA_TILES = 64, DATA_BORDER = 2 };

typedef struct data_grid {
  const tn_type *type; /* of a tile */
  int64_t columns, width, height;
  uint8_t *rgb;
  double low, scale; /* of the numbers: the least one is black, the greatest one white */
} data_grid;

static const tn_field *data_find_picture(const tn_loader *loader, int32_t *field) {
  for (*field = 0; *field < tn_loader_field_count(loader); ++*field)
    if (tn_picture_is(&tn_loader_field(loader, *field)->type)) return tn_loader_field(loader, *field);
  return NULL;
}

/* Bytes are shades already. */
static void data_find_range(data_grid *g, const void *values, int64_t n) {
  double low = INFINITY, high = -INFINITY;
  g->low = 0;
  g->scale = 1;
  if (g->type->dtype == TN_U8) return;
  for (int64_t i = 0; i < n; i++) {
    double x = tn_element_load(g->type->dtype, values, i);
    if (isfinite(x) && x < low) low = x;
    if (isfinite(x) && x > high) high = x;
  }
  g->low = high > low ? low : 0;
  g->scale = high > low ? 255 / (high - low) : 0;
}

static uint8_t data_shade(const data_grid *g, double x) {
  double shade = (x - g->low) * g->scale + 0.5;
  return (uint8_t)(shade >= 255 ? 255 : shade > 0 ? shade : 0); /* NaN is black */
}

static void data_draw_tile(data_grid *g, const void *values, int64_t tile) {
  int64_t height = g->type->dims[1], width = g->type->dims[2], plane = height * width;
  int64_t left = tile % g->columns * (width + DATA_BORDER), top = tile / g->columns * (height + DATA_BORDER);
  int64_t first = tile * tn_type_count(g->type);
  for (int64_t y = 0; y < height; y++)
    for (int64_t x = 0; x < width; x++)
      for (int64_t c = 0; c < 3; c++) {
        int64_t at = first + (g->type->dims[0] == 3 ? c : 0) * plane + y * width + x;
        g->rgb[3 * ((top + y) * g->width + left + x) + c] =
            data_shade(g, tn_element_load(g->type->dtype, values, at));
      }
}

tn_status tn_data_write_picture(tn_env *env, const tn_loader *loader, void *const *values, int64_t samples,
                                const char *path) {
  int32_t field;
  int64_t tiles = samples < DATA_TILES ? samples : DATA_TILES;
  const tn_field *f = data_find_picture(loader, &field);
  if (f == NULL)
    return tn_failf(
        env, TN_EINVAL,
        "%s: no field is a picture, expected one of u8 or f32[1 or 3, height, width] with sides of at "
        "most 512",
        path);
  data_grid g = {.type = &f->type, .columns = (int64_t)ceil(sqrt((double)tiles))};
  g.width = g.columns * (f->type.dims[2] + DATA_BORDER) - DATA_BORDER;
  g.height = (tiles + g.columns - 1) / g.columns * (f->type.dims[1] + DATA_BORDER) - DATA_BORDER;
  size_t bytes = 3 * (size_t)g.width * (size_t)g.height;
  g.rgb = tn_alloc(env, bytes);
  if (g.rgb == NULL) return TN_ENOMEM;
  memset(g.rgb, 255, bytes);
  data_find_range(&g, values[field], tiles * tn_type_count(&f->type));
  for (int64_t i = 0; i < tiles; i++) data_draw_tile(&g, values[field], i);
  tn_status status = tn_png_write(env, path, g.width, g.height, g.rgb);
  tn_release(env, g.rgb);
  return status;
}
