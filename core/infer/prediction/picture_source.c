/* core/infer/prediction/picture_source.c: see picture_source.h. */
#include "core/infer/prediction/picture_source.h"

#include <sys/stat.h>

#include "core/model/model.h"
#include "tenon/file_names.h"

/* A loader opens files by open_files. */
static tn_status picture_source_open_files(tn_env *env, const void *options, const char *const *paths,
                                           int32_t n, void **source) {
  const tn_picture_source *p = options;
  return p->inner->open_pictures(env, p->field, p->channels, paths, n, source);
}

static tn_status picture_source_find(tn_run *run, const tn_source **source) {
  const tn_entry *entries;
  int32_t n;
  TN_TRY(tn_registry_list(run->registry, &run->env, TN_SOURCE, &entries, &n));
  for (int32_t i = 0; i < n; i++) {
    *source = (const tn_source *)entries[i].item;
    if ((*source)->open_pictures != NULL) return TN_OK;
  }
  return tn_failf(&run->env, TN_EUNAVAILABLE, "no source opens pictures; give a .npy file");
}

/* ---- whether it is wanted ---- */

static bool picture_source_is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* Whether all inputs are pictures or folders; *files: whether one of them is no folder. */
static bool picture_source_may_be(const tn_predict_inputs *p, bool *files) {
  *files = false;
  for (int32_t i = 0; i < p->options->n_inputs; i++) {
    bool picture = tn_name_is_picture(p->paths[i]) && !picture_source_is_folder(p->paths[i]);
    if (!picture && !picture_source_is_folder(p->paths[i])) return false;
    *files = *files || picture;
  }
  return true;
}

/* Whether the model's only input is [1 or 3, height, width]. */
static tn_status picture_source_find_input(tn_run *run, tn_picture_source *pictures) {
  tn_signature signature;
  TN_TRY(tn_signature_read(&run->env, &run->arena, &run->ini, &signature));
  const tn_type *type = &signature.inputs[0].type;
  pictures->field = signature.inputs[0].name;
  pictures->channels = (int32_t)type->dims[0];
  pictures->wanted = signature.n_inputs == 1 && type->rank == 3 && (type->dims[0] == 1 || type->dims[0] == 3);
  return TN_OK;
}

tn_status tn_picture_source_open(const tn_predict_inputs *p, tn_picture_source *pictures) {
  const tn_data_setting *data = &p->run->settings.data[TN_SPLIT_VALID];
  bool files;
  *pictures = (tn_picture_source){.wanted = false};
  if (p->arrays || !data->given || data->source->open_pictures != NULL || !picture_source_may_be(p, &files))
    return TN_OK;
  TN_TRY(picture_source_find_input(p->run, pictures));
  if (!pictures->wanted && files)
    return tn_failf(&p->run->env, TN_EINVAL,
                    "%s: is a picture, but the model's inputs are not one picture [1 or 3, height, width]; "
                    "give a .npy or "
                    ".safetensors file, or one that the source of [data] reads",
                    p->paths[0]);
  if (!pictures->wanted) return TN_OK;
  TN_TRY(picture_source_find(p->run, &pictures->inner));
  pictures->source = *pictures->inner;
  pictures->source.open_files = picture_source_open_files;
  return TN_OK;
}
