/* plugins/sources/table/kinds/picture.c: pictures and masks, whose paths are relative to the folder of the
 * table. */
#include <stdio.h>
#include <string.h>

#include "plugins/sources/image/image.h"
#include "plugins/sources/table/kinds/kinds.h"

/* No JPEG or PNG with an allowed number of pixels is larger. */
static const size_t LARGEST_PICTURE = (size_t)1 << 30;

typedef struct picture_target {
  const table *t;
  const table_field *f;
  tn_sample *sample; /* NULL: only the size is wanted */
  int32_t field;
  int64_t row;
} picture_target;

/* ---- decoding ---- */

/* Messages of the decoder begin with the row and the path. */
static tn_status picture_decode(const picture_target *target, const void *handle, tn_scratch *scratch,
                                image_sink *sink) {
  char path[PATH_MAX], shown[2 * PATH_MAX];
  const uint8_t *bytes;
  size_t n;
  TN_TRY(kind_path(target->t, target->f, handle, target->row, path));
  TN_TRY(source_scan_file(handle, path, LARGEST_PICTURE, scratch, &bytes, &n));
  snprintf(shown, sizeof(shown), "%s:%u: %s", table_part_of(target->t, target->row)->path,
           (unsigned)target->t->lines[target->row], path);
  sink->handle = handle;
  sink->path = shown;
  sink->most_pixels = target->t->options->max_pixels;
  return image_decode(sink, bytes, n);
}

/* ---- sizes ---- */

typedef struct picture_sizes {
  table *t;
  const table_field *f;
  tn_scratch scratch;
  int64_t n, height, width; /* pictures so far, and their size; -1: it differs */
} picture_sizes;

static tn_status picture_probe(void *context, int64_t row) {
  picture_sizes *sizes = context;
  picture_target target = {.t = sizes->t, .f = sizes->f, .row = row};
  image_sink sink = {.at_least = 0};
  TN_TRY(picture_decode(&target, &sizes->t->env, &sizes->scratch, &sink));
  bool first = sizes->n++ == 0;
  sizes->height = first || sizes->height == sink.height ? sink.height : -1;
  sizes->width = first || sizes->width == sink.width ? sink.width : -1;
  return TN_OK;
}

/* Pictures of one size, as those of a few rows have it, have it in their type. */
static tn_status picture_find_size(table *t, const table_field *f, int64_t *height, int64_t *width) {
  picture_sizes sizes = {.t = t, .f = f, .height = -1, .width = -1};
  tn_status status = kind_probe(t, picture_probe, &sizes);
  *height = sizes.height;
  *width = sizes.width;
  tn_delete(&t->env, sizes.scratch.memory);
  return status;
}

static tn_status picture_fail_size(const picture_target *target, const image_sink *sink,
                                   const tn_type *described) {
  table_word cell = target->f->column[0]->texts[target->row];
  int32_t last = described->rank - 1;
  return table_fail_cell(
      target->t, target->sample, target->f->names[0], target->row, cell.text, cell.n,
      "has %lld x %lld pixels, expected %lld x %lld as the first row has; give all pictures one size",
      (long long)sink->width, (long long)sink->height, (long long)described->dims[last],
      (long long)described->dims[last - 1]);
}

/* The type of this sample, where it fits the described one. */
static tn_status picture_type(const picture_target *target, const image_sink *sink, tn_type *type) {
  *type = target->t->described[target->field].type;
  int64_t *size = &type->dims[type->rank - 2];
  if ((size[0] >= 0 && size[0] != sink->height) || (size[1] >= 0 && size[1] != sink->width))
    return picture_fail_size(target, sink, type);
  size[0] = sink->height;
  size[1] = sink->width;
  return TN_OK;
}

static int picture_stopping(const image_sink *sink) {
  return tn_sample_stopping(((const picture_target *)sink->context)->sample);
}

/* ---- pictures ---- */

static tn_status image_describe(table *t, table_field *f, tn_field *described) {
  int64_t height = -1, width = -1;
  TN_TRY(kind_check_paths(t, f));
  TN_TRY(picture_find_size(t, f, &height, &width));
  *described = kind_field(f, (tn_type){TN_U8, 3, {3, height, width}});
  return TN_OK;
}

static tn_status image_planes(image_sink *sink) {
  picture_target *target = sink->context;
  tn_type type;
  TN_TRY(picture_type(target, sink, &type));
  sink->to = tn_sample_field(target->sample, target->field, &type);
  return sink->to != NULL ? TN_OK : TN_ENOMEM;
}

static tn_status image_read(const table *t, const table_field *f, tn_sample *s, int32_t field) {
  picture_target target = {t, f, s, field, s->index};
  image_sink sink = {.planes = image_planes, .stopping = picture_stopping, .context = &target};
  return picture_decode(&target, s, s->scratch, &sink);
}

const table_kind kind_image = {.name = "image",
                               .types = "u8[3, height, width]",
                               .doc = "the path of a JPEG or PNG",
                               .files = true,
                               .form = TABLE_TEXTS,
                               .describe = image_describe,
                               .read = image_read};

/* ---- masks ---- */

static tn_status mask_describe(table *t, table_field *f, tn_field *described) {
  TN_TRY(image_describe(t, f, described));
  const int64_t *size = &described->type.dims[1];
  tn_type bytes = {TN_U8, 3, {1, size[0], size[1]}}, numbers = {TN_I32, 2, {size[0], size[1]}};
  described->type = f->choices.index ? numbers : bytes;
  return TN_OK;
}

static tn_status mask_planes(image_sink *sink) {
  picture_target *target = sink->context;
  tn_type type;
  TN_TRY(picture_type(target, sink, &type));
  sink->to = tn_new(target->sample, 3 * (size_t)sink->height * (size_t)sink->width + 1);
  return sink->to != NULL ? TN_OK : TN_ENOMEM;
}

/* The three planes of a grey picture are equal. */
static tn_status mask_copy(const picture_target *target, const image_sink *sink) {
  int64_t n = sink->height * sink->width;
  const uint8_t *plane = sink->to;
  tn_type type;
  TN_TRY(picture_type(target, sink, &type));
  if (memcmp(plane, plane + n, (size_t)n) != 0 || memcmp(plane, plane + 2 * n, (size_t)n) != 0) {
    table_word cell = target->f->column[0]->texts[target->row];
    return table_fail_cell(
        target->t, target->sample, target->f->names[0], target->row, cell.text, cell.n,
        "is a picture in colours, expected grey or a palette, whose values are the numbers of classes");
  }
  void *to = tn_sample_field(target->sample, target->field, &type);
  if (to == NULL) return TN_ENOMEM;
  if (!target->f->choices.index) memcpy(to, plane, (size_t)n);
  for (int64_t i = 0; i < n && target->f->choices.index; i++) ((int32_t *)to)[i] = plane[i];
  return TN_OK;
}

static tn_status mask_read(const table *t, const table_field *f, tn_sample *s, int32_t field) {
  picture_target target = {t, f, s, field, s->index};
  image_sink sink = {.planes = mask_planes,
                     .stopping = picture_stopping,
                     .context = &target,
                     .ignores_orientation = 1,
                     .keeps_palette = 1};
  tn_status status = picture_decode(&target, s, s->scratch, &sink);
  if (status == TN_OK) status = mask_copy(&target, &sink);
  tn_delete(s, sink.to);
  return status;
}

const table_kind kind_mask = {.name = "mask",
                              .types = "u8[1, height, width] or i32[height, width]",
                              .doc =
                                  "the path of a picture in grey or with a palette, whose values are classes",
                              .choices = CHOICE_INDEX,
                              .files = true,
                              .form = TABLE_TEXTS,
                              .describe = mask_describe,
                              .read = mask_read};
