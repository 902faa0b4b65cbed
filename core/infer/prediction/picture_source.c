/* core/infer/prediction/picture_source.c: a source around image_folder, whose field has another name. */
#include "core/infer/prediction/picture_source.h"

#include <string.h>
#include <sys/stat.h>

#include "core/base/text/text.h"
#include "core/model/model.h"
#include "tenon/file_names.h"

/* ---- the source ---- */

typedef struct renamed_source {
  const tn_picture_source *pictures;
  void *inner;
  tn_field field;
} renamed_source;

static tn_status renamed_open(tn_env *env, const void *options, int32_t split, uint64_t seed, void **source) {
  (void)options, (void)split, (void)seed, (void)source;
  return tn_failf(env, TN_EUNSUPPORTED, "it reads files that a user names, and no data");
}

static tn_status renamed_open_files(tn_env *env, const void *options, const char *const *paths, int32_t n,
                                    void **source) {
  const tn_picture_source *p = options;
  renamed_source *self = tn_alloc(env, sizeof *self);
  if (self == NULL) return TN_ENOMEM;
  *self = (renamed_source){.pictures = p};
  tn_status status = p->inner->open_files(env, p->inner_options, paths, n, &self->inner);
  if (status == TN_OK)
    *source = self;
  else
    tn_release(env, self);
  return status;
}

static void renamed_close(tn_env *env, void *source) {
  renamed_source *self = source;
  self->pictures->inner->close(env, self->inner);
  tn_release(env, self);
}

static tn_status renamed_describe(tn_env *env, void *source, tn_description *description) {
  renamed_source *self = source;
  TN_TRY(self->pictures->inner->describe(env, self->inner, description));
  self->field = *tn_description_field(description, 0);
  self->field.name = self->pictures->field;
  description->n_fields = 1;
  description->fields = &self->field;
  return TN_OK;
}

static tn_status renamed_read(tn_sample *s, void *source) {
  const renamed_source *self = source;
  return self->pictures->inner->read(s, self->inner);
}

static tn_status renamed_name(tn_env *env, void *source, int64_t index, char *text, size_t size) {
  const renamed_source *self = source;
  return self->pictures->inner->name(env, self->inner, index, text, size);
}

static const tn_source renamed = {
    .item = TN_ITEM_PLAIN(tn_source, TN_SOURCE, "pictures", "pictures that a user names"),
    .open = renamed_open,
    .close = renamed_close,
    .describe = renamed_describe,
    .read = renamed_read,
    .open_files = renamed_open_files,
    .name = renamed_name};

/* ---- whether it is wanted ---- */

/* A table reads files as well, but no pictures. */
static bool picture_source_has_own(const tn_source *source) {
  return source->open_files != NULL && !tn_text_equal(source->item.name, "table");
}

static bool picture_source_are_pictures(const tn_predict_inputs *p) {
  struct stat info;
  for (int32_t i = 0; i < p->options->n_inputs; i++)
    if (!tn_name_is_picture(p->paths[i]) && (stat(p->paths[i], &info) != 0 || !S_ISDIR(info.st_mode)))
      return false;
  return true;
}

/* The model's input, [1 or 3, height, width]. */
static tn_status picture_source_find_input(const tn_predict_inputs *p, const tn_signature_field **input) {
  tn_run *run = p->run;
  tn_signature signature;
  TN_TRY(tn_signature_read(&run->env, &run->arena, &run->ini, &signature));
  const tn_type *type = &signature.inputs[0].type;
  *input = &signature.inputs[0];
  if (signature.n_inputs == 1 && type->rank == 3 && (type->dims[0] == 1 || type->dims[0] == 3)) return TN_OK;
  return tn_failf(
      &run->env, TN_EINVAL,
      "%s: is a picture, but the model's inputs are not one picture [1 or 3, height, width]; give a .npy or "
      ".safetensors file, or one that the source of [data] reads",
      p->paths[0]);
}

/* ---- transforms ---- */

static tn_status picture_source_item(tn_run *run, uint32_t kind, const char *name, const tn_item **item,
                                     const void **options) {
  const tn_entry *entry;
  tn_options o;
  TN_TRY(tn_registry_find(run->registry, &run->env, kind, name, &entry));
  TN_TRY(tn_options_start(&run->env, &run->arena, entry->item, &o));
  *item = entry->item;
  *options = o.data;
  return TN_OK;
}

static tn_status picture_source_add_transforms(tn_run *run, const tn_type *input,
                                               tn_picture_source *pictures) {
  const tn_data_setting *data = &run->settings.data[TN_SPLIT_VALID];
  int32_t grey = input->dims[0] == 1;
  const tn_item *item;
  pictures->n_transforms = data->n_transforms + grey;
  pictures->transforms = tn_arena_alloc(
      &run->arena, tn_size_mul((size_t)pictures->n_transforms + 1, sizeof *pictures->transforms));
  if (pictures->transforms == NULL) return TN_ENOMEM;
  if (data->n_transforms > 0)
    memcpy(pictures->transforms + grey, data->transforms,
           (size_t)data->n_transforms * sizeof *data->transforms);
  if (!grey) return TN_OK;
  tn_transform_use *use = &pictures->transforms[0];
  *use = (tn_transform_use){.where = "pictures of one channel"};
  TN_TRY(picture_source_item(run, TN_TRANSFORM, "grayscale", &item, &use->options));
  use->transform = (const tn_transform *)item;
  return TN_OK;
}

tn_status tn_picture_source_open(const tn_predict_inputs *p, tn_picture_source *pictures) {
  const tn_data_setting *data = &p->run->settings.data[TN_SPLIT_VALID];
  const tn_signature_field *input;
  const tn_item *item;
  *pictures = (tn_picture_source){.wanted = false};
  if (p->arrays || !data->given || picture_source_has_own(data->source) || !picture_source_are_pictures(p))
    return TN_OK;
  TN_TRY(picture_source_find_input(p, &input));
  TN_TRY(picture_source_item(p->run, TN_SOURCE, "image_folder", &item, &pictures->inner_options));
  *pictures = (tn_picture_source){.wanted = true,
                                  .source = &renamed,
                                  .options = pictures,
                                  .inner = (const tn_source *)item,
                                  .inner_options = pictures->inner_options,
                                  .field = input->name};
  return picture_source_add_transforms(p->run, &input->type, pictures);
}
