#include "core/records/checkpoints/weights_folder.h"

#include <sys/stat.h>

#include "core/base/file/file.h"
#include "core/base/text/text.h"
#include "core/records/checkpoints/checkpoint_files.h"

/* Below the folder that the user names, the best first. The first places are in that folder itself. */
enum { WEIGHTS_IN_FOLDER = 2 };
static const char *const weights_folder_places[] = {"model.safetensors",
                                                    "model.safetensors.index.json",
                                                    "checkpoints/best/model.safetensors",
                                                    "checkpoints/last/model.safetensors",
                                                    "best/model.safetensors",
                                                    "last/model.safetensors"};

/* Damage shows in many ways: in a header that cannot be parsed, in names that do not fit, in numbers that are
 * not finite. So after a failure the file is compared with its record. If it is as it was written, a training
 * may have exchanged the checkpoint meanwhile, and the second use decides. */
static tn_status weights_folder_try(const void *handle, const char *path, tn_weights_use use, void *context,
                                    bool *damaged) {
  tn_status status = use(context, path);
  *damaged = false;
  if (status != TN_EINVAL && status != TN_ENONFINITE && status != TN_EUNSUPPORTED) return status;
  tn_status look = tn_checkpoint_file_check(handle, path);
  *damaged = look == TN_EINVAL;
  return look == TN_OK ? use(context, path) : look;
}

tn_status tn_weights_use_file(const void *handle, const char *path, tn_weights_use use, void *context) {
  bool damaged;
  return weights_folder_try(handle, path, use, context, &damaged);
}

/* The first text of damage stays. */
static tn_status weights_folder_keep_damage(const void *handle, char **damage) {
  if (*damage == NULL) *damage = tn_strdup(handle, tn_error_text(handle));
  if (*damage == NULL) return TN_ENOMEM;
  tn_error_clear(handle);
  return TN_OK;
}

/* A checkpoint without weights is damaged, too, and so is a file or a link to nowhere in its place. The
 * folder that the user names may be that of a run, or have other files. */
static tn_status weights_folder_miss(const void *handle, bool named, const char *path, bool *damaged) {
  struct stat info;
  char *of_file = tn_path_folder(handle, path);
  if (of_file == NULL) return TN_ENOMEM;
  bool is_folder = stat(of_file, &info) == 0 && S_ISDIR(info.st_mode), is_there = lstat(of_file, &info) == 0;
  tn_status status = tn_checkpoint_file_check(handle, path);
  if (status == TN_OK && is_there && !is_folder)
    status = tn_failf(handle, TN_EINVAL, "%s: is not a folder", of_file);
  if (status == TN_OK && is_there && !named) status = tn_failf(handle, TN_EINVAL, "%s: is missing", path);
  *damaged = status == TN_EINVAL;
  tn_release(handle, of_file);
  return status;
}

/* Another place is tried where this one does not exist, or is damaged. */
static tn_status weights_folder_try_place(const void *handle, bool named, char **path, tn_weights_use use,
                                          void *context, char **damage) {
  bool damaged = false, there = tn_file_exists(*path);
  tn_status status = there ? weights_folder_try(handle, *path, use, context, &damaged)
                           : weights_folder_miss(handle, named, *path, &damaged);
  if (damaged) status = weights_folder_keep_damage(handle, damage);
  if (there && !damaged && status == TN_OK) {
    if (*damage != NULL) tn_logf(handle, TN_LOG_WARN, "%s; the weights are those of %s", *damage, *path);
    return TN_OK;
  }
  tn_release(handle, *path);
  *path = NULL;
  return status;
}

tn_status tn_weights_use_folder(const void *handle, const char *folder, tn_weights_use use, void *context,
                                char **path) {
  enum { PLACES = sizeof weights_folder_places / sizeof *weights_folder_places };
  tn_status status = TN_OK;
  char *damage = NULL;
  *path = NULL;
  for (int i = 0; i < PLACES && status == TN_OK && *path == NULL; i++) {
    *path = tn_path_join(handle, folder, weights_folder_places[i]);
    status = *path != NULL
                 ? weights_folder_try_place(handle, i < WEIGHTS_IN_FOLDER, path, use, context, &damage)
                 : TN_ENOMEM;
  }
  if (status == TN_OK && *path == NULL && damage != NULL) status = tn_failf(handle, TN_EINVAL, "%s", damage);
  tn_release(handle, damage);
  return status;
}
